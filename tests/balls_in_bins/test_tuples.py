"""Samplers of the certificate [A-15]: unbiased, never above their bound, rounded in the safe direction."""

import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest

from dplib._base.random_blocks import generator
from dplib.balls_in_bins import certificate, certified, confidence_bounds, importance_sampling, tuple_sampler
from dplib.balls_in_bins.tuple_law import Shares, fit


def bands(bins, width, scale):
    lag = np.abs(np.subtract.outer(np.arange(bins), np.arange(bins)))
    return scale * np.maximum(0.0, 1 - lag / width)


def remove(gram, epsilon, size, common=False):
    factor = tuple_sampler.factor(gram)
    return tuple_sampler.remove_sampler(factor, epsilon, fit(Shares(factor.gram, size), size), common)


def draw(sampler, blocks, seed=1):
    return np.concatenate([sampler(generator(seed, (9,), i)) for i in range(blocks)])


# --- the factor -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "gram",
    [
        np.eye(5) * 1.7,
        np.full((6, 6), 0.3),
        bands(9, 4, 0.8),
        np.diag([1.0, 1e-14, 0.3]) + 0.0,
        np.outer([1.0, 1.0 + 1e-7, 1.0], [1.0, 1.0 + 1e-7, 1.0]) + 1e-14 * np.eye(3),
        np.array([[1.0, 1.0 + 1e-13], [1.0 + 1e-13, 1.0]]),  # indefinite by rounding
    ],
)
def test_factor_is_above_in_exact_arithmetic(gram):
    """[A-15] The exact Gram matrix of the rounded factor is at least the one asked for, entry by entry."""
    rows = [[Fraction(value) for value in row] for row in tuple_sampler.factor(gram).rows]
    for i in range(len(gram)):
        for j in range(len(gram)):
            exact = sum(a * b for a, b in zip(rows[i], rows[j]))
            assert exact >= Fraction(gram[i, j])
            floor = tuple_sampler._SMALLEST_DIAGONAL * gram.diagonal().max() if i == j else 0
            assert float(exact - Fraction(max(gram[i, j], floor))) < 1e-11


# --- remove -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "gram", [bands(16, 5, 0.7), np.eye(8) * 1.5, np.full((3, 3), 0.4) + np.diag([0.1, 0.5, 1.0])]
)
def test_samples_agree_with_the_definition(gram):
    """[A-15] Against plain sampling of the definition, both directions, at a delta where that is possible."""
    rng = np.random.default_rng(4)
    bins, epsilon = len(gram), 0.5
    y = rng.standard_normal((400_000, bins)) @ np.linalg.cholesky(gram).T - gram.diagonal() / 2
    w = np.exp(y).mean(axis=1)
    for sampler, payoff in (
        (remove(gram, epsilon, 4), np.maximum(w - math.exp(epsilon), 0)),
        (remove(gram, epsilon, 4, common=True), np.maximum(w - math.exp(epsilon), 0)),
        (tuple_sampler.add_sampler(tuple_sampler.factor(gram), epsilon), np.maximum(1 - math.exp(epsilon) * w, 0)),
    ):
        values = draw(sampler, 8) * sampler.bound
        error = math.hypot(values.std() / math.sqrt(len(values)), payoff.std() / math.sqrt(len(payoff)))
        assert abs(values.mean() - payoff.mean()) < 4 * error


@pytest.mark.parametrize("common", [False, True])
def test_samples_stay_below_their_bound(common):
    """[A-15] Before the final clipping nothing exceeds the bound by more than the rounding allowances."""
    for gram, epsilon, size in ((bands(16, 5, 0.7), 0.3, 3), (np.full((5, 5), 0.5), 0.2, 2), (np.eye(4) * 2, 2.0, 4)):
        sampler = remove(gram, epsilon, size, common)
        wide = dataclasses.replace(sampler, bound=2 * sampler.bound)  # clips at twice the bound
        assert draw(wide, 4).max() <= 0.5 * (1 + 1e-6)


def test_smaller_bound_is_noticed():
    """A bound that is too small is an error: where the line is short, samples come within a factor three of it."""
    sampler = remove(np.full((4, 4), 0.01), 0.0, 8)
    assert draw(sampler, 4).max() > 0.35
    with pytest.raises(ArithmeticError, match="a sample exceeds its bound"):
        draw(dataclasses.replace(sampler, bound=sampler.bound / 4), 4)


def test_common_direction():
    """[A-15] Along it every y_l rises at least with the stated slope, and hardly more than that."""
    uneven = np.random.default_rng(6).random(7) + 0.3
    for gram in (bands(9, 4, 0.7), np.full((4, 4), 0.3), bands(7, 3, 0.7) * np.outer(uneven, uneven)):
        weights, slope = tuple_sampler.common_direction(gram)
        assert weights @ gram @ weights == pytest.approx(1, rel=1e-12)
        assert slope <= (gram @ weights).min() <= slope * (1 + 1e-8)


@pytest.mark.parametrize(("size", "slope"), [(2, 0.5), (6, 0.1), (14, 0.17), (14, 1.0), (40, 5.0), (3, 0.0)])
def test_line_peak(size, slope):
    """[A-15] No loss that rises at least with `slope` has a larger lattice average of its payoff; some come close."""
    rng, step = np.random.default_rng(7), tuple_sampler._STEP
    half = round(tuple_sampler._REACH / step)
    most = (1 - 1 / size) ** (size - 1) / size

    def average(start, bend, offset):
        points = step * (np.arange(-half, half) + offset)
        loss = slope * (points - start) + bend * (np.exp(points - 2) - 0.01)  # above epsilon
        w = np.exp(np.maximum(loss - (slope == 0) * math.log1p(-1 / size), 0))
        return (step * np.exp(-(points**2) / 2) * (w - 1) * w**-size).sum() / math.sqrt(2 * math.pi) / most

    best = max(average(rng.uniform(-3, 3), rng.exponential(), rng.random()) for _ in range(3000))
    straight = max(average(start, 0.0, offset) for start in np.linspace(-6, 6, 1201) for offset in (0.0, 0.3, 0.5, 0.8))
    assert max(best, straight) <= tuple_sampler.line_peak(size, slope) <= 1.03 * max(best, straight)


def test_far_normals_count_as_the_bound(monkeypatch):
    """[A-15] Normals beyond the resolved range give the largest sample, never less."""
    gram = bands(6, 3, 0.5)
    sampler, adder = remove(gram, 0.5, 3), tuple_sampler.add_sampler(tuple_sampler.factor(gram), 0.5)
    plain = sampler(generator(1, (9,), 0)), adder(generator(1, (9,), 0))
    monkeypatch.setattr(tuple_sampler, "_FARTHEST", 2.0)
    cut = sampler(generator(1, (9,), 0)), adder(generator(1, (9,), 0))
    for before, after in zip(plain, cut):
        changed = before != after
        assert 0.05 < changed.mean() < 0.9
        assert np.all(after[changed] == 1.0)


def log_losses(kind, rows, counts, normals, place=1.3):
    """log w of every bin at one place of each line, in numbers of this kind."""
    rows, counts, normals = (np.asarray(x).astype(kind) for x in (rows, counts, normals))
    gram = rows @ rows.T
    noise, forces = normals @ rows.T, counts @ gram
    length = np.sqrt((counts * forces).sum(axis=1))
    along = kind(place) - (counts * noise).sum(axis=1) / length
    return forces - gram.diagonal() / 2 + noise + along[:, None] * forces / length[:, None]


@pytest.mark.skipif(np.finfo(np.longdouble).eps > 1e-17, reason="no extended precision here")
def test_slack_covers_extended_precision():
    """[A-15] log w on the line, recomputed with 80-bit numbers, differs by far less than the slack."""
    sampler, rng = remove(bands(12, 6, 0.6), 0.4, 5), np.random.default_rng(2)
    line = sampler.factor.rows, sampler.draw_counts(rng)[:200], tuple_sampler._normals(rng, (200, 13))[0]
    error = np.abs(log_losses(np.longdouble, *line) - log_losses(np.float64, *line)).max()
    assert 0 < error < sampler.slack / 100


# --- the whole certificate ----------------------------------------------------------------------------------


def test_coverage():
    """[A-15] At a failure probability of 0.2 the bound fails in at most about a fifth of the runs, and in some."""
    gram, truth = np.eye(2), 0.149178
    sampler = remove(gram, 0.5, 3)
    bet, _ = confidence_bounds.choose_bet(draw(sampler, 4, seed=2), 4096, 0.2)
    values = draw(sampler, 100, seed=3).reshape(100, 4096)
    uppers = np.array([sampler.bound * confidence_bounds.betting(row, 1.0, 0.2, bet) for row in values])
    failures = (uppers < truth).sum()
    assert 0 < failures <= 20 + 4 * 4


@pytest.mark.parametrize("side", ("remove", "add"))
def test_the_final_samples_are_fresh(side, monkeypatch):
    """No block of random numbers is drawn both for the pilots and for the certificate."""
    used, run = [], certificate.random_blocks.run

    def listed(task, blocks, **options):
        used.append((options["key"], blocks))
        return run(task, blocks, **options)

    monkeypatch.setattr(certificate.random_blocks, "run", listed)
    certificate.certify(bands(8, 4, 0.5), 0.8, side, 2**13, 1e-3, 0)
    *pilots, (last, blocks) = used
    assert pilots and blocks == 2**13 // tuple_sampler.BLOCK
    # Pilots differ from the last run in the first entry: none of their streams begins like one of its.
    assert all(key[0] != last[0] for key, _ in pilots)


def test_what_the_drawn_tuples_miss_is_added():
    """[A-15] Twice what they miss, or what lies beyond the line, raises the bound by that."""
    sampler = remove(bands(8, 4, 0.5), 0.8, 5)
    assert sampler.extra >= sampler.missed > 0
    plan = certificate.Plan(sampler, draw(sampler, 4))
    worse = certificate.Plan(dataclasses.replace(sampler, missed=sampler.missed + 1e-3), plan.pilot)
    one, two = (certificate.run(p, 2**13, 1e-3, 0, (0,)) for p in (plan, worse))
    assert two - one == pytest.approx(1e-3 * sampler.bound, rel=1e-6)


def test_budget_too_small():
    """The error says how many samples would do, and so many do."""
    gram = bands(16, 8, 0.5)
    with pytest.raises(ValueError, match=r"samples must be about \S+ for an upper bound within 2 times") as error:
        certificate.overshoot(certificate.prepare(gram, 1.0, "remove", 64, 1e-9, 1, 5), 64, 1e-9)
    many = int(float(str(error.value).split("about ")[1].split()[0]))
    plan = certificate.prepare(gram, 1.0, "remove", many, 1e-9, 1, 5)
    assert plan.estimate < certificate.run(plan, many, 1e-9, 1, ()) < 2.5 * plan.estimate
    with pytest.raises(ValueError, match=r"samples must be more than .* within 2 times delta"):
        certificate.certify(np.eye(64), 3.0, "add", 2**12, 1e-9, 1)


@pytest.mark.parametrize("bins, size", [(16, 17), (64, 8), *(pytest.param(*slow, marks=pytest.mark.trust) for slow in [(16, 33), (64, 17)])])
def test_tuples_that_drown_in_rounding_are_refused(bins, size):
    """Weakly correlated modes, long tuples: the mean of the samples would be 8 to 1e70 times too small."""
    gram = 0.5 * np.eye(bins) + 0.02 if bins == 16 else 2.0 * np.eye(bins) + 0.1
    plan = certificate.prepare(gram, 0.5 if bins == 16 else 1.0, "remove", 2**13, 1e-9, 0, size)
    truth = math.exp(importance_sampling.estimate(gram, plan.sampler.epsilon, "remove", seed=1).log_value)
    assert plan.estimate < truth / 5 and plan.sampler.extra * plan.sampler.bound > truth
    for refused in (certificate.run, certificate.overshoot):
        with pytest.raises(ValueError, match=f"no number of samples .* with tuples of {size}: rounding alone"):
            refused(plan, 2**13, 1e-9, *((0, ()) if refused is certificate.run else ()))
    # The size that is chosen for this table gives a mean that can be believed.
    chosen = certificate.prepare(gram, plan.sampler.epsilon, "remove", 2**13, 1e-9, 0)
    assert chosen.estimate == pytest.approx(truth, rel=0.05)
    assert chosen.estimate < certificate.run(chosen, 2**13, 1e-9, 0, ()) < 1.2 * truth


@pytest.mark.parametrize("side", ["remove", "add"])
@pytest.mark.parametrize("share", [0.999, 1e-7])
def test_what_a_search_may_get_wrong_is_paid_for_out_of_delta(side, share, monkeypatch):
    """[N-2.1s] Two candidates with delta = 1 pass as often as they may, the third always and is as bad as it may be.

    The delta of the whole procedure is computed with fractions, from the shares and the level that the search uses.
    """
    gram, delta, shares = bands(6, 4, 4.0), 1e-2, []
    options = {"samples": 2**12, "failure_probability": share * delta, "seed": 0}

    def passes(search, upper):
        """Whether a search whose first two candidates fail returns the third one with this certified bound."""
        shares.clear()

        def planted(plan, samples, share, seed, key):
            shares.append(share)
            return upper if key[0] == 2 else 1.0

        monkeypatch.setattr(certificate, "run", planted)
        try:
            search(upper)
        except ValueError:
            return False
        return True

    # Whether a candidate passes is planted, so that one plan will do for all.
    plan = certificate.prepare(gram, 1.0, side, 2**12, share * delta, 0)
    monkeypatch.setattr(certificate, "prepare", lambda *_: plan)
    monkeypatch.setattr(certificate, "overshoot", lambda *_: 1.5)
    noise = lambda upper: certified.smallest_noise(gram, 1.0, delta, side, **options)
    epsilon = lambda upper: certified.smallest_epsilon(gram / 9, delta, side, **options)
    for search in (noise, epsilon):
        level = certified.certified_level(delta, options["failure_probability"])
        above = math.nextafter(level, 1.0)
        assert passes(search, level) and not passes(search, above)
        beta = Fraction(options["failure_probability"])
        assert len(shares) == 3 and sum(map(Fraction, shares)) <= beta * (1 + Fraction(1, 10**12))
        spared = math.prod(1 - Fraction(share) for share in shares[:2])
        assert 1 - spared + spared * Fraction(level) <= Fraction(delta)
        # Certified at delta itself, the same candidates would have spent more than delta.
        assert 1 - spared + spared * Fraction(delta) > Fraction(delta) + Fraction(6, 10) * beta


# --- delta near 1 ------------------------------------------------------------------------------------------


def test_one_index_where_delta_is_near_one():
    """[A-15] Tuples of one index have payoffs of at most 1: with little noise the bound stays close to delta."""
    for bins, square in ((4, 20.0), (16, 45.0)):
        gram = square * np.eye(bins)
        plan = certificate.prepare(gram, 1.0, "remove", 2**14, 1e-6, 1)
        estimate = math.exp(importance_sampling.estimate(gram, 1.0, "remove", relative_error=1e-3).log_value)
        assert plan.sampler.size == 1 and plan.sampler.bound == pytest.approx(1)
        assert plan.estimate == pytest.approx(estimate, abs=8e-3)
        assert estimate - 3e-3 < certificate.run(plan, 2**14, 1e-6, 1, ()) < 1.01 * estimate
