"""The figure style: light to import, opaque, and readable without colour."""

import itertools
import subprocess
import sys

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


def test_importing_the_module_does_not_import_matplotlib():
    code = "import sys, dplib.lessons.plotting; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_style_sets_an_opaque_light_face_and_the_cycle():
    plotting.use_style()
    settings = matplotlib.rcParams
    assert settings["figure.dpi"] == plotting.DPI
    assert settings["savefig.transparent"] is False
    for face in ("figure.facecolor", "axes.facecolor", "savefig.facecolor"):
        assert matplotlib.colors.to_rgba(settings[face])[3] == 1
        assert luminance(settings[face]) > 0.9
    cycle = list(settings["axes.prop_cycle"])
    assert [entry["color"] for entry in cycle] == [colour for colour, _ in plotting.CURVES]
    assert len({str(entry["linestyle"]) for entry in cycle}) == len(cycle)


def test_lines_and_text_stand_out_from_the_face():
    assert contrast(plotting.INK, plotting.FACE) >= 7
    for colour, _ in plotting.CURVES:
        assert contrast(colour, plotting.FACE) >= 4.5, colour  # curve names are text in this colour


def test_curves_differ_without_colour():
    for (_, first), (_, second) in itertools.combinations(plotting.CURVES, 2):
        assert first != second


def test_finish_names_axes_title_and_legend():
    _, ax = plotting.figure()
    ax.plot([0, 1], [0, 1], label="truth")
    plotting.finish(ax, x="group size k (records)", y="ε", title="σ = 1", legend="upper left")
    assert ax.get_xlabel() == "group size k (records)"
    assert ax.get_ylabel() == "ε"
    assert ax.get_title(loc="left") == "σ = 1" or ax.get_title() == "σ = 1"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["truth"]


def test_finish_leaves_a_shared_axis_to_its_neighbour():
    _, (top, bottom) = plotting.figure(2, 1, sharex=True)
    plotting.finish(top, y="density")
    plotting.finish(bottom, x="published value", y="loss")
    assert (top.get_xlabel(), bottom.get_xlabel()) == ("", "published value")
    with pytest.raises(ValueError, match="y must be a non-empty axis label"):
        plotting.finish(top, x="published value")
