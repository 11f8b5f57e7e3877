"""The live pages on sampling schemes and on large batches, in a browser."""

import re

import browser_checks as checks
import notebook_tools as tools
import numpy as np
import pytest
from scipy import stats

import dplib
from dplib import gaussian, mixtures
from dplib.calibration import effective_noise

pytestmark = [pytest.mark.slow, pytest.mark.browser]
RECORDS, B, E = 30, 6, 5


@pytest.fixture(scope="module")
def bare(chromium):
    page = chromium.new_page()
    for script in ("special.js", "round.js", "integrand.js", "accountant.js", "page.js", "moving.js", "sampling.js", "large_batches.js"):
        page.add_script_tag(path=tools.ROOT / "book" / "_live" / script)
    yield page
    page.close()


def drawn(page, scheme, seeds=40, records=RECORDS, b=B, epochs=E):
    """Participation, shape (seeds, rounds, records)."""
    rounds = page.evaluate(
        """([scheme, n, b, E, seeds]) => Array.from({length: seeds}, (_, seed) =>
        SamplingSchemes.SCHEMES[scheme].draw(n, b, E, SamplingSchemes.random(seed)).map((batch) => [...batch]))""",
        [scheme, records, b, epochs, seeds],
    )
    found = np.zeros((seeds, b * epochs, records), bool)
    for run, batches in enumerate(rounds):
        for t, batch in enumerate(batches):
            found[run, t, batch] = True
    return found


def test_schemes_keep_what_they_promise(bare):
    taken = {name: drawn(bare, name) for name in ("shuffling", "roundRobin", "ballsInBins", "fixed")}
    by_epoch = {name: x.reshape(-1, E, B, RECORDS) for name, x in taken.items()}
    for name in ("shuffling", "roundRobin", "ballsInBins"):
        assert (by_epoch[name].sum(axis=2) == 1).all(), name  # once an epoch
    for name in ("shuffling", "roundRobin", "fixed"):
        assert (taken[name].sum(axis=2) == RECORDS // B).all(), name  # batches of one size
    for name in ("roundRobin", "ballsInBins"):
        assert (by_epoch[name] == by_epoch[name][:, :1]).all(), name  # always in the same place
    assert (taken["roundRobin"] == taken["roundRobin"][:1]).all()
    assert not (by_epoch["shuffling"] == by_epoch["shuffling"][:, :1]).all()


def test_separation(bare):
    rounds = drawn(bare, "cyclicPoisson")
    for gap in range(1, B // 2):
        assert not (rounds[:, gap:] & rounds[:, :-gap]).any(), gap
    assert abs(rounds.mean() - 1 / B) < 0.01


@pytest.mark.parametrize("scheme", ["poisson", "ballsInBins"])
def test_rates_and_joint_participation(bare, scheme):
    """Two records meet in a round with probability 1/b^2 in both schemes; a false alarm has probability below 1e-4."""
    rounds = drawn(bare, scheme, seeds=400, records=2, epochs=1).astype(float)
    assert abs(rounds.mean() - 1 / B) < 4 * np.sqrt(1 / B / rounds.size)
    together = (rounds[..., 0] * rounds[..., 1]).mean()
    assert abs(together - 1 / B**2) < 4 * np.sqrt(1 / B**2 / (400 * B))


@pytest.mark.parametrize("q, steps", [(1.0, 100), (0.1, 1000), (0.01, 10_000), (0.1, 1)])
def test_effective_noise_agrees_with_the_library(bare, q, steps):
    ours = bare.evaluate("([q, T]) => LargeBatches.effectiveNoise(q, T, 1, 1e-5)", [q, steps])
    assert ours == pytest.approx(effective_noise(q, steps, 1, 1e-5), rel=2e-5)


@pytest.fixture
def page(chromium, address):
    found = chromium.new_page(viewport=checks.DESKTOP)
    watch = checks.Watch(found, address)
    yield found
    assert watch.take() == []
    found.close()


def test_sampling_page(page, address):
    checks.open_page(page, f"{address}/book/live_sampling.html#scheme=ballsInBins&records=12&b=4&E=3&seed=7")
    assert "each record takes part 3 times in 12 rounds" in page.inner_text("#sampling-summary")
    picture = page.inner_html("#sampling-picture")
    page.click("text=Draw again")
    assert page.inner_html("#sampling-picture") != picture
    page.fill("#s-seed", "7")
    assert page.inner_html("#sampling-picture") == picture
    page.fill("#s-records", "1")
    assert "from 2 to 60" in page.inner_text("#sampling-records-error")
    assert page.inner_html("#sampling-picture") == ""


def test_large_batches_page(page, address):
    checks.open_page(page, f"{address}/book/live_large_batches.html#epsilon=1&delta=1e-5&steps=1,+1000")
    page.wait_for_selector("#batches[aria-busy=false]", timeout=120_000)
    rows = page.locator("#batches-points tbody tr")
    assert rows.count() == 2
    shown = float(rows.nth(0).locator("td").nth(3).inner_text())
    ours = effective_noise([0.1, 1.0], 1, 1, 1e-5)
    assert shown == pytest.approx(ours[0] / ours[1], rel=1e-3)
    assert page.locator("#batches-picture polyline.moving-1").count() == 2  # the curve and its place in the key
    page.fill("#b-steps", "0")
    page.wait_for_function("() => document.querySelector('#b-steps').getAttribute('aria-invalid') === 'true'")
    assert "from 1 to 1,000,000" in page.inner_text("#batches-steps-error")


def test_large_batches_answer_at_their_defaults(page, address):
    checks.open_page(page, f"{address}/book/live_large_batches.html")
    page.wait_for_selector("#batches-picture polyline.moving-0")  # before all points are there
    page.wait_for_selector("#batches[aria-busy=false]")
    assert "no bracket" not in page.inner_text("#batches")
    last = float(page.locator("#batches-points tbody tr").last.locator("td").nth(1).inner_text())
    ours = effective_noise([0.001, 1.0], 100_000, 1, 1e-5)
    assert last == pytest.approx(ours[0] / ours[1], rel=1e-3)


@pytest.mark.parametrize("chapter, form", [("03_subsampling", "sampling"), ("08_large_batches", "batches")])
def test_live_pages_stand_in_their_chapters(page, address, chapter, form):
    """After a figure; they answer, and leave the address of the chapter's sections alone."""
    checks.open_page(page, f"{address}/notebooks/{chapter}.html#further-reading")
    page.wait_for_selector(f"figure + p.live + form#{form}")
    page.wait_for_function("name => /\\d/.test(document.querySelector(`#${name}-summary`).textContent)", arg=form)
    assert page.url.endswith("#further-reading")
    before = page.inner_html(f"#{form}-picture")
    page.fill(f"#{form} input >> nth=0", "2")
    page.wait_for_function("([name, old]) => document.querySelector(`#${name}-picture`).innerHTML !== old", arg=[form, before])
    page.wait_for_selector(f"#{form}:not([aria-busy=true])")
    assert page.url.endswith("#further-reading")


# ------------------------------------------------------------------ figures that move


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


def grown(k, sigma):
    one, all_of_them = (dplib.PoissonDPSGD(sigma, 0.01, 2000, size).epsilon(1e-6).upper for size in (1, k))
    return [sigma, k, all_of_them, all_of_them / one, one]


# Chapter, figure, and the numbers of its sentence, from the library; positions of the sliders.
MOVING = {
    "fig-0-four-schemes": ("00_tour", schemes, [(0.7,), (1,), (16,)]),
    "fig-1-hockey-stick": ("01_hockey_stick", lambda epsilon, sigma: [epsilon, sigma, gaussian.delta(1 / sigma, epsilon)], [(0, 0.5), (0.5, 1), (1.2, 2), (4, 4)]),
    "fig-2-losses": ("02_accounting", repeated, [(100,), (2000,), (20_000,)]),
    "fig-3-secret": ("03_subsampling", sampled, [(0.001, 0.5), (0.1, 1), (0.6, 2.5), (1, 0)]),
    "fig-4-one-crossing": ("04_mixtures", crossing, [(0.02, 1), (0.5, 0.5), (0.9, 2)]),
    "fig-5-growth": ("05_group_privacy", grown, [(2, 1), (9, 0.8), (16, 4)]),
    "fig-19-mistakes": ("19_common_mistakes", mistaken, [(0.8,), (1,), (8,)]),
}
SET = """([figure, values]) => [...document.querySelectorAll(`#${figure} .moving input`)].forEach((input, place) => {
  for (let at = 0; at <= Number(input.max); at++) {
    input.value = at;
    input.dispatchEvent(new Event("input", {bubbles: true}));
    if (Number(input.getAttribute("aria-valuetext").split("= ")[1]) === values[place]) return;
  }
  throw new Error(`no position ${values[place]}`);
})"""


def numbers(sentence):
    """Those of a sentence, powers of ten included; a power alone is none."""
    digits = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
    found = re.findall(r"(?<![\w⁻])(\d+(?:\.\d+)?)(?![\d.]*⁻)(?: · 10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+))?", sentence)
    return [float(f"{mantissa}e{power.translate(digits) or 0}") for mantissa, power in found]


def test_every_figure_that_moves_is_tested_and_in_a_notebook(monkeypatch):
    monkeypatch.syspath_prepend(str(tools.ROOT / "book" / "_ext"))
    import live_pages

    assert list(live_pages.FIGURES) == list(MOVING)
    lessons = (tools.ROOT / "book" / "_live" / "lessons.js").read_text(encoding="utf-8")
    assert re.findall(r'figure: "([\w-]+)"', lessons) == list(MOVING)
    shown = "".join(path.read_text(encoding="utf-8") for path in sorted(tools.ROOT.glob("notebooks/*.ipynb")))
    assert [name for name in [*MOVING, *live_pages.IN_CHAPTERS] if f'"name": "{name}"' not in shown] == []


@pytest.mark.parametrize("figure", MOVING)
def test_a_figure_moves(page, address, figure):
    """By keyboard and to several positions, where its numbers are the library's; and back to the stored picture."""
    chapter, expected, positions = MOVING[figure]
    checks.open_page(page, f"{address}/notebooks/{chapter}.html")
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
    where.get_by_role("button").click()
    assert image.is_visible() and not drawing.is_visible() and says.inner_text() == first


def test_without_scripts_the_stored_figure_stands(chromium, address):
    context = chromium.new_context(viewport=checks.DESKTOP, java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{address}/notebooks/01_hockey_stick.html")
    assert page.locator("#fig-1-hockey-stick img").is_visible() and page.locator("input[type=range]").count() == 0
    context.close()
