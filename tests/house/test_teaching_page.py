"""The numbers that the teaching guide prints are those of the library; its times are those of the chapters."""

import math
import re
from fractions import Fraction

import notebook_tools as tools
import numpy as np
import pytest
from folders import ROOT
from scipy.stats import norm

import dplib
from dplib import gaussian, mixtures
from dplib.results import UpperEnd

PAGE = (ROOT / "book" / "teaching.md").read_text(encoding="utf-8")
RUN = {"noise_multiplier": 1.0, "sampling_probability": 0.01, "steps": 2000}


def one_release():
    """The noise multiplier of one Gaussian release at epsilon 1, delta 1e-5."""
    return UpperEnd(1 / gaussian.calibrate(1.0, 1e-5))


def tail():
    mu = 1 / one_release()
    return norm.sf((1 - mu**2 / 2) / mu)


def orthogonal(length):
    """Remove at epsilon 1 of two equally likely orthogonal modes, by a sum over the plane."""
    z = np.linspace(-9, 9, 1501)
    weights = np.outer(norm.pdf(z), norm.pdf(z)) * (z[1] - z[0]) ** 2
    ratio = np.exp(length * z - length**2 / 2)
    return float(np.sum(weights * np.maximum((ratio[:, None] + ratio) / 2 - math.e, 0)))


def effective(probability, steps):
    run = dplib.PoissonDPSGD(noise_multiplier=1.0, sampling_probability=probability, steps=steps)
    return UpperEnd(dplib.calibrate(run, epsilon=1.0, delta=1e-5).noise_multiplier / probability)


def doubled_batch():
    """Epsilon of the running example with batches twice as large and the noise that was found for epsilon 3."""
    run = dplib.calibrate(dplib.PoissonDPSGD(**RUN), epsilon=3.0, delta=1e-6)
    return dplib.PoissonDPSGD(**RUN | {"noise_multiplier": run.noise_multiplier, "sampling_probability": 0.02}).epsilon(1e-6).upper


def two_phases():
    phases = [dplib.PoissonDPSGD(**RUN | {"noise_multiplier": sigma}) for sigma in (2.0, 4.0)]
    return dplib.compose(phases).epsilon(1e-6).upper


NUMBERS = [
    (r"\$\\sigma=(3\.\d+)\$, from the closed form", one_release),
    (r"\\Pr_P\[L>1\]=([\d.]+\\times10\^\{-4\})", tail),
    (r"\\ln3=([\d.]+)", lambda: math.log(3)),
    (r"e\\,\\Phi\(-\\frac32\)=([\d.]+)", lambda: gaussian.delta(1.0, 1.0)),
    (r"\\ln\\frac\{1\+e\}2=([\d.]+)", lambda: math.log((1 + math.e) / 2)),
    (r"0\.126937/2=([\d.]+)", lambda: mixtures.binomial(1, 0.5, 1.0).hockey_stick(math.log((1 + math.e) / 2))),
    (r"Orthogonal ones: \$\\delta=([\d.]+)\$", lambda: orthogonal(1.0)),
    (r"\$\\delta=(0\.0848)\$, still below", lambda: orthogonal(1.1)),
    (r"\$0\.99\^9=([\d.]+)\$", lambda: 0.99**9),
    (r"\$([\d.]+)\$ and \$40", lambda: dplib.PoissonDPSGD(**RUN).epsilon(1e-6, direction="remove").upper),
    (r"\$2\.95525\$ and \$([\d.]+)\$, certified", lambda: dplib.PoissonDPSGD(**RUN, group_size=9).epsilon(1e-6).upper),
    (r"Nine times the first is \$([\d.]+)\$", lambda: 9 * dplib.PoissonDPSGD(**RUN).epsilon(1e-6).upper),
    (r"-1\)\\big\)\$, which is \$([\d.]+\\times10\^\{-4\})", lambda: math.log(1 + 1e-4 * (math.e - 1))),
    (r"\$([\d.]+)\$ at \$q=1\$, which", lambda: effective(1.0, 1000)),
    (r"\$([\d.]+)\$ at \$q=0\.1\$\. Over", lambda: effective(0.1, 1000)),
    (r"the same budget needs \$([\d.]+)\$", lambda: effective(0.01, 1000)),
    (r"\\varepsilon=1\$: \$([\d.]+\\times10\^\{-9\})", lambda: mixtures.binomial(1, 0.01, 1.0).hockey_stick(1.0)),
    (r"\$([\d.]+)\$, \$12\.590\$", lambda: effective(0.01, 1)),
    (r"\$67\.380\$, \$([\d.]+)\$", lambda: effective(0.1, 1)),
    (r"\$12\.590\$ and \$([\d.]+)\$", lambda: effective(1.0, 1)),
    (r"\\sqrt\{512\.5\}=([\d.]+)", lambda: float(np.sqrt(np.mean(np.arange(1, 1025))))),
    (r"\\sqrt\{11\}=([\d.]+)", lambda: math.sqrt(11)),
    (r"\\sqrt E/\\sigma=([\d.]+)", lambda: math.sqrt(20)),
    (r"\\sqrt\{E/b\}/\\sigma=([\d.]+)", lambda: math.sqrt(Fraction(20, 100))),
    (r"known batches has \$\\varepsilon=([\d.]+)\$", lambda: UpperEnd(gaussian.epsilon(math.sqrt(20), 1e-6))),
    (r"\\ln\\frac53=([\d.]+)", lambda: math.log(5 / 3)),
    (
        r"\\sigma=\\frac14\$ and \$\\varepsilon=([\d.]+)\$",
        lambda: dplib.PoissonDPSGD(**RUN | {"noise_multiplier": 0.25}).epsilon(1e-6).upper,
    ),
    (r"batch is doubled, .*?\$\\varepsilon=([\d.]+)\$, more than twice", doubled_batch),
    (r"together they have \$\\varepsilon=([\d.]+)\$", two_phases),
]


@pytest.mark.parametrize("pattern, compute", NUMBERS, ids=[pattern for pattern, _ in NUMBERS])
def test_number(pattern, compute):
    found = re.findall(pattern, PAGE, re.DOTALL if ".*?" in pattern else 0)
    assert len(found) == 1, found
    digits, _, power = found[0].partition("\\times10^{")
    places = len(digits.partition(".")[2])
    value = compute()
    if isinstance(value, UpperEnd):  # a guarantee: rounded up
        assert not power and digits == f"{value:.{places}f}"
    else:
        value = float(value) / 10.0 ** int(power.rstrip("}") or 0)
        assert abs(value - float(digits)) <= 0.501 * 10.0**-places, value


def test_reading_times_are_those_of_the_chapters():
    links = re.findall(r"\]\(\.\./notebooks/([\w]+)\.ipynb\) \((\d+) min\)", PAGE)
    assert {stem for stem, _ in links} >= {path.stem for path in tools.chapters()}
    for stem, minutes in links:
        head = tools.source(tools.read(ROOT / "notebooks" / f"{stem}.ipynb")["cells"][0])
        assert f"**Reading time** {minutes} min" in head, stem


def test_each_answer_names_sections_of_its_lesson():
    """Of the lesson, not of its companion: a question can be answered from the lesson alone. The build follows the anchors."""
    chapter, places = None, 0
    for line in PAGE.split("## Question bank")[1].splitlines():
        heading = re.match(r"### (\d+)\. ", line)
        chapter = heading.group(1) if heading else chapter
        if line.startswith("*In the lesson*: "):
            places += 1
            links = re.findall(r"\[([^\]]+)\]\(\.\./notebooks/(\w+)\.ipynb#[\w-]+\)", line)
            assert links
            for text, stem in links:
                assert stem.startswith(f"{int(chapter):02d}_") and not stem.endswith("_in_depth"), line
                cells = tools.markdown_cells(tools.read(ROOT / "notebooks" / f"{stem}.ipynb"))
                assert any(re.search(rf"^##+ {re.escape(text)}$", tools.source(cell), re.MULTILINE) for cell in cells), line
    assert places == PAGE.count(":::{admonition} Answer")
