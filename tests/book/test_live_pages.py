"""The live pages on sampling schemes and on large batches, in a browser."""

import browser_checks as checks
import numpy as np
import pytest

from dplib.calibration import effective_noise

pytestmark = [pytest.mark.slow, pytest.mark.browser]
RECORDS, B, E = 30, 6, 5


def drawn(page, scheme, seeds=40, records=RECORDS, b=B, epochs=E):
    """Participation, shape (seeds, rounds, records)."""
    rounds = page.evaluate(checks.script("draw"), [scheme, records, b, epochs, seeds])
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
    checks.open_without_formulas(page, f"{address}/notebooks/{chapter}.html#further-reading")
    page.wait_for_selector(f"figure + p.live + form#{form}")
    page.wait_for_function("name => /\\d/.test(document.querySelector(`#${name}-summary`).textContent)", arg=form)
    assert page.url.endswith("#further-reading")
    before = page.inner_html(f"#{form}-picture")
    page.fill(f"#{form} input >> nth=0", "2")
    page.wait_for_function("([name, old]) => document.querySelector(`#${name}-picture`).innerHTML !== old", arg=[form, before])
    page.wait_for_selector(f"#{form}:not([aria-busy=true])")
    assert page.url.endswith("#further-reading")
