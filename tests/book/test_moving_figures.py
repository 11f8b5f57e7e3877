"""The figures of lessons that readers can move, in a browser, against the library."""

import functools
import math
import re
from itertools import product

import browser_checks as checks
import live_pages
import notebook_tools as tools
import numpy as np
import pytest
from scipy import optimize, special, stats

import dplib
from dplib import conditional, gaussian, matrices, mixtures, montecarlo, renyi, sensitivity, utility
from dplib.lessons import one_step, studies

pytestmark = [pytest.mark.slow, pytest.mark.browser]


# ------------------------------------------------------------------ the numbers of the sentences, from the library


def sampled(q, epsilon):
    certain = gaussian.delta(1, epsilon)
    return [epsilon, certain, q, q * certain, dplib.PoissonDPSGD(1, q, 1).delta(epsilon).upper]


def schemes(sigma):
    made = [dplib.PoissonDPSGD(sigma, 0.01, 2000), dplib.FixedBatchDPSGD(sigma, 500, 49_999, 2000), dplib.PoissonDPSGD(sigma, 1.0, 20)]
    return [sigma, *(mechanism.epsilon(1e-6).upper for mechanism in made)]


def repeated(rounds):
    one, all_of_them = (dplib.PoissonDPSGD(1, 0.01, count).epsilon(1e-6).upper for count in (1, rounds))
    return [rounds, all_of_them, all_of_them / one, rounds]


def crossing(q, epsilon):
    return [q, epsilon, mixtures.binomial(1, q, 1.0).inverse_loss(epsilon), dplib.PoissonDPSGD(1, q, 1).delta(epsilon).upper]


def mistaken(sigma):
    """The lower bound [A-19] of 20 epochs of 100 rounds, by the threshold that is best for the adversary."""
    mu = np.sqrt(20) / sigma
    tau = np.linspace(mu, 2 * mu + 6, 100_001)
    p1, p2 = (-np.expm1(stats.norm.logcdf(tau - c * mu) + 99 * stats.norm.logcdf(tau)) for c in (1, 2))
    return [sigma, dplib.PoissonDPSGD(sigma, 0.01, 2000).epsilon(1e-6).upper, np.log(np.maximum(p2 - 1e-6, 1e-300) / p1).max()]


def one_axis(epsilon, batch):
    drafts = dplib.PoissonDPSGD(1, batch / 50_000, 10**6 // batch), dplib.FixedBatchDPSGD(1, batch, 49_999, 10**6 // batch)
    poisson, fixed = (dplib.calibrate(draft, epsilon=epsilon, delta=1e-6).noise_multiplier for draft in drafts)
    return [epsilon, batch, poisson, fixed, math.sqrt(20) / gaussian.calibrate(epsilon, 1e-6)]


def grown(k, sigma):
    one, all_of_them = (dplib.PoissonDPSGD(sigma, 0.01, 2000, size).epsilon(1e-6).upper for size in (1, k))
    return [sigma, k, all_of_them, all_of_them / one, one]


def forgets(q):
    return [q, *(kind(1, q, 2).epsilon(1e-6).upper for kind in (dplib.PoissonDPSGD, dplib.LastIterate))]


def order(order, q):
    divergence = renyi.subsampled_gaussian(order, 1.0, q).upper
    promised = renyi.to_epsilon(lambda _: divergence, 1e-6, rounds=2000, orders=[order]).upper
    return [q, order, divergence, promised, 2000, dplib.PoissonDPSGD(1, q, 2000).epsilon(1e-6).upper]


def one_release(epsilon, q):
    noise, all_data = one_step.noise_multiplier(epsilon, 1e-5, [q, 1.0])
    return [epsilon, q, noise, noise / q, all_data]


def bands(count):
    encoder, independent = matrices.optimal_counting(1024, bands=count), matrices.identity(1024)
    length = sensitivity.single(encoder)
    return [count, length, length * utility.rmse(encoder), 1024, utility.rmse(independent)]


def belief(rounds, c, q, delta_1):
    """The largest bound on what is believed about round 1."""
    encoder = matrices.optimal_counting(rounds)
    return conditional.published_tail(encoder, c * encoder.column_norms()[0], q, delta_1)[:, 0].max()


def shuffled_tree(levels):
    """Balls in bins of one record a bin, with the tree as encoder: the noise is an estimate."""
    run = dplib.BallsInBins(matrices.binary_tree(2**levels), 1.0, 2**levels, 1)
    secret = dplib.calibrate(run, epsilon=1.0, delta=1e-3, samples=2**14).noise_multiplier
    return [levels, 2**levels, 1, math.sqrt(levels + 1) / gaussian.calibrate(1.0, 1e-3), secret]


def two_batches(epsilon, sigma):
    hidden = dplib.BallsInBins(matrices.identity(2), sigma, 2, 1).delta(epsilon, "remove")
    told, summed = (gaussian.delta(mu / sigma, epsilon) for mu in (1.0, math.sqrt(0.5)))
    return [epsilon, sigma, told, hidden.midpoint, summed]


def users(k, epsilon):
    """Noise in the average gradient: sampled examples, sampled users with one example, whole users."""
    drawn, one_each, whole = (
        dplib.calibrate(dplib.PoissonDPSGD(1.0, q, 2000, size), epsilon=epsilon, delta=1e-6).noise_multiplier
        for q, size in ((0.01, k), (k / 100, 1), (0.01, 1))
    )
    return [epsilon, k, drawn, one_each, k * whole, drawn / (k * whole)]


ANGLES = np.radians([4, 40, 84])
MODES = np.array([0.3, 0.24, 0.3])[:, None] * np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1)


def tuples(size):
    """The sums of the modes of the tuples, by their counts, and the weights of the tuples [A-15]."""
    counts = np.array([(i, j, size - i - j) for i in range(size + 1) for j in range(size + 1 - i)])
    gram = MODES @ MODES.T
    pairs = (np.sum((counts @ gram) * counts, axis=1) - counts @ np.diag(gram)) / 2
    orders = special.gammaln(size + 1) - special.gammaln(counts + 1).sum(axis=1)
    return counts @ MODES, np.exp(orders + pairs - size * math.log(3))


@functools.cache
def slices():
    """Slices along the axis that the page integrates in closed form, their width, and where in each the loss is 1."""
    v, step = np.linspace(-14, 16, 961, retstep=True)

    def log_ratio(u, v):
        return special.logsumexp(np.multiply.outer(u, MODES[:, 0]) + np.multiply.outer(v, MODES[:, 1]) - np.sum(MODES**2, axis=1) / 2, axis=-1) - math.log(3)

    return v, step, np.array([optimize.brentq(lambda u, at=at: log_ratio(u, at) - 1, -2000, 2000) for at in v])


def clouds(size):
    """Outputs slice by slice, and the other way round."""
    means, weights = tuples(size)
    v, step, edge = slices()
    lands = (stats.norm.pdf(v - means[:, 1:]) * special.ndtr(means[:, :1] - edge) * step).sum(axis=1)
    terms = np.exp(np.multiply.outer(v, MODES[:, 1]) - MODES[:, 1] ** 2 / 2) / 3 * special.ndtr(MODES[:, 0] - edge[:, None])
    delta = np.sum(stats.norm.pdf(v) * (terms.sum(axis=1) - math.e * special.ndtr(-edge))) * step
    found = montecarlo.estimate(MODES @ MODES.T, 1.0, "remove", samples=2**12)
    assert abs(found.value - delta) < 5 * found.standard_error
    top = optimize.minimize_scalar(lambda y: math.expm1(1 - y) * math.exp((1 - size) * y), bounds=(1, 40), method="bounded", options={"xatol": 1e-12})
    return [size, lands @ weights / weights.sum(), -top.fun * weights.sum() / delta, delta]


def encoder_of_two(epsilon, c):
    needed = {}
    for entry in (0.0, c):
        encoder = matrices.toeplitz([1.0, entry])
        run = dplib.calibrate(dplib.BallsInBins(encoder, 1.0, 2, 1), epsilon=epsilon, delta=1e-5, samples=2**14)
        needed[entry] = run.noise_multiplier, run.noise_multiplier * utility.rmse(encoder)
    return [epsilon, c, needed[c][0], needed[c][1] / needed[0.0][1]]


def training(epsilon, t):
    values = []
    for scheme in ("no amplification", "DP-SGD, Poisson", "buffered, bins"):
        row = studies.find(studies.load("training")["encoders"], scheme=scheme, epsilon=epsilon)[0]
        coefficients = np.zeros(256)
        coefficients[: len(row["coefficients"])] = row["coefficients"]
        values.append(utility.deviations(matrices.toeplitz(coefficients), row["noise_multiplier"])[t - 1])
    return [epsilon, t, *values]


# Chapter, figure, and the numbers of its sentence, from the library; positions of the sliders.
MOVING = {
    "fig-0-four-schemes": ("00_tour", schemes, [(0.7,), (1,), (16,)]),
    "fig-1-hockey-stick": ("01_hockey_stick", lambda epsilon, sigma: [epsilon, sigma, gaussian.delta(1 / sigma, epsilon)], [(0, 0.5), (0.5, 1), (1.2, 2), (4, 4)]),
    "fig-2-losses": ("02_accounting", repeated, [(100,), (2000,), (20_000,)]),
    "fig-3-secret": ("03_subsampling", sampled, [(0.001, 0.5), (0.1, 1), (0.6, 2.5), (1, 0)]),
    "fig-4-one-crossing": ("04_mixtures", crossing, [(0.02, 1), (0.5, 0.5), (0.9, 2)]),
    "fig-5-growth": ("05_group_privacy", grown, [(2, 1), (9, 0.8), (16, 4)]),
    "fig-19-mistakes": ("19_common_mistakes", mistaken, [(0.8,), (1,), (8,)]),
    "fig-21-one-axis": ("21_one_axis", one_axis, [(2, 500), (1, 250), (8, 5000)]),
    "fig-6-forgets": ("06_last_iterate", forgets, [(0.01,), (0.1,), (0.7,), (1,)]),
    "fig-7-pick-an-order": ("07_renyi", order, list(product((1.5, 2, 7, 32), (0.002, 0.01, 0.1)))[::2]),
    "fig-9-slow-growth": ("09_one_step", one_release, list(product((0.1, 1, 4), (0.00002, 0.0001, 0.01, 0.1, 0.5, 1)))[::2]),
    "fig-22-noise": ("22_users", users, list(product((1, 4, 9, 16), (0.5, 2, 8)))[::3]),
    "fig-10-noise-fades": ("10_matrix_mechanism", bands, [(2**power,) for power in range(11)]),
    "fig-11-posterior": ("11_conditional_composition", lambda c, share: [c, share, belief(24, c, 0.1, share), 0.1], list(product((1, 2, 5), (0.0001, 0.01, 0.2)))[::2]),
    "fig-12-belief": ("12_mmcc", lambda c: [c, belief(64, c, 1 / 64, 5e-7), 64 * belief(64, c, 1 / 64, 5e-7)], [(2,), (3,), (4,), (6,), (12,)]),
    "fig-13-levels": ("13_shuffled_tree", shuffled_tree, [(1,), (2,), (4,), (6,)]),
    "fig-14-two-batches": ("14_balls_in_bins", two_batches, list(product((0, 0.5, 1.3, 2), (0.5, 1, 3)))[::2]),
    "fig-15-clouds": ("15_monte_carlo", clouds, [(1,), (5,), (20,), (30,)]),
    "fig-16-two-batches": ("16_optimizing_the_encoder", encoder_of_two, [(8, 0.35), (0.25, 0.7), (1, 0.1), (16, 0.3)]),
    "fig-17-noise": ("17_training", training, list(product((0.5, 1, 2, 4, 8), (1, 64, 256)))[::2]),
}
# The values of a slider ascend. Each position draws anew, so that it is searched by halves.
SET = checks.script("move")


def numbers(sentence):
    """Those of a sentence, powers of ten included; a power alone is none."""
    digits = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
    found = re.findall(r"(?<![\w⁻])(\d+(?:\.\d+)?)(?![\d.]*⁻)(?: · 10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+))?", sentence)
    return [float(f"{mantissa}e{power.translate(digits) or 0}") for mantissa, power in found]


def test_every_figure_that_moves_is_tested_and_in_a_notebook():
    assert list(live_pages.FIGURES) == list(MOVING)
    scripts = dict.fromkeys(lesson for _, lesson in live_pages.FIGURES.values())
    texts = {name: (tools.ROOT / "book" / "_live" / name).read_text(encoding="utf-8") for name in scripts}
    placed = {figure: name for name, text in texts.items() for figure in re.findall(r'figure: "([\w-]+)"', text)}
    assert placed == {figure: lesson for figure, (_, lesson) in live_pages.FIGURES.items()}
    shown = "".join(path.read_text(encoding="utf-8") for path in sorted(tools.ROOT.glob("notebooks/*.ipynb")))
    assert [name for name in [*MOVING, *live_pages.IN_CHAPTERS] if f'"name": "{name}"' not in shown] == []


@pytest.mark.parametrize("figure", MOVING)
def test_a_figure_moves(page, address, figure):
    """By keyboard and to several positions, where its numbers are the library's; and back to the stored picture."""
    chapter, expected, positions = MOVING[figure]
    checks.open_without_formulas(page, f"{address}/notebooks/{chapter}.html")
    where, says = page.locator(f"#{figure}"), page.locator(f"#{figure} [role=status]")
    image, drawing = where.locator(":scope > img"), where.locator(":scope > svg")
    first = says.inner_text()
    assert image.is_visible() and not drawing.is_visible()
    where.locator("input").first.press("ArrowRight")
    drawing.wait_for(state="visible")
    assert says.inner_text() != first and not image.is_visible()
    for position in positions:
        page.evaluate(SET, [figure, list(position)])
        wanted = expected(*position)
        text = says.inner_text()
        assert numbers(text) == pytest.approx(wanted, rel=1e-3), text  # four digits, rounded to nearest or up
        for bound in re.findall(r"≤ (\d+(?:\.\d+)?)", text):
            assert any(0 <= float(bound) / value - 1 < 1e-3 for value in wanted), text
        for bound in re.findall(r"at least (\d+(?:\.\d+)?)", text):
            assert any(0 <= value / float(bound) - 1 < 1e-3 for value in wanted), text
    page.emulate_media(media="print")
    assert image.is_visible() and not drawing.is_visible() and not where.locator("input").first.is_visible()
    page.emulate_media(media="screen")
    fits_a_small_phone(page, drawing)
    where.get_by_role("button").click()
    assert image.is_visible() and not drawing.is_visible() and says.inner_text() == first


def fits_a_small_phone(page, drawing):
    """360 pixels wide, in both themes: nothing runs out of the page, curves and words are seen on the ground."""
    page.set_viewport_size({"width": 360, "height": 740})
    checks.settle(page)
    assert checks.overflow_problems(page) == []
    assert drawing.bounding_box()["width"] <= 360
    outside = """node => [...node.querySelectorAll('text')].filter(text => {
      const box = text.getBoundingClientRect(), all = node.getBoundingClientRect();
      return box.left < all.left - 1 || box.right > all.right + 1;
    }).map(text => text.textContent)"""
    assert drawing.evaluate(outside) == []
    colours = "node => ['text', 'polyline, path.moving-cloud'].map(kind => getComputedStyle(node.querySelector(kind))[kind === 'text' ? 'fill' : 'stroke'])"
    for theme in ("light", "dark"):
        checks.put_theme(page, theme)
        for colour in drawing.evaluate(colours):
            brightness = sum(map(float, re.findall(r"[\d.]+", colour)[:3])) / 3
            assert brightness < 140 if theme == "light" else brightness > 140, (theme, colour)


def test_without_scripts_the_stored_figure_stands(chromium, address):
    context = chromium.new_context(viewport=checks.DESKTOP, java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{address}/notebooks/01_hockey_stick.html")
    assert page.locator("#fig-1-hockey-stick img").is_visible() and page.locator("input[type=range]").count() == 0
    context.close()
