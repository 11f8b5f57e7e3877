"""The figure style: light to import, opaque, and readable without colour."""

import itertools

import matplotlib
import pytest

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from dplib.lessons import plotting


@pytest.fixture(autouse=True)
def _style_does_not_leak():
    with matplotlib.rc_context():
        yield
    plt.close("all")


def luminance(colour):
    """Relative luminance of a colour, as the web accessibility guidelines define it."""
    channels = matplotlib.colors.to_rgb(colour)
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(first, second):
    high, low = sorted((luminance(first), luminance(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_lines_and_text_stand_out_from_the_face():
    assert contrast(plotting.INK, plotting.FACE) >= 7
    for colour, _ in plotting.CURVES:
        assert contrast(colour, plotting.FACE) >= 4.5, colour  # curve names are text in this colour


def test_curves_differ_without_colour():
    for (_, first), (_, second) in itertools.combinations(plotting.CURVES, 2):
        assert first != second
