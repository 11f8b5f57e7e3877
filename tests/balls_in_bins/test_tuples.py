"""Samplers of the certificate [A-15]: unbiased, never above their bound, rounded in the safe direction."""

import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest

from dplib import gaussian
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


def standard_scores(sampler, truth, blocks=8):
    values = draw(sampler, blocks) * sampler.bound
    return (values.mean() - truth) / (values.std() / math.sqrt(len(values)))


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


def test_missing_column_would_be_noticed():
    """Without the extra column the factor samples a smaller covariance in some entry."""
    gram = bands(9, 4, 0.8)
    rows = [[Fraction(value) for value in row[:-1]] for row in tuple_sampler.factor(gram).rows]
    gaps = [
        sum(a * b for a, b in zip(rows[i], rows[j])) - Fraction(gram[i, j])
        for i in range(9)
        for j in range(9)
    ]
    assert min(gaps) < 0


# --- remove -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [2, 3, 6])
def test_equal_modes_are_a_gaussian(size):
    """[C-6] All modes equal: w is one lognormal, and every line gives delta of a Gaussian of sensitivity mu."""
    mu = 0.9
    truth = gaussian.delta(mu, 0.7)
    values = (
        draw(remove(np.full((4, 4), mu**2), 0.7, size), 2) * remove(np.full((4, 4), mu**2), 0.7, size).bound
    )
    assert values.mean() == pytest.approx(truth, rel=1e-3)
    assert values.std() < 0.03 * truth
    factor = tuple_sampler.factor(np.full((4, 4), mu**2))
    assert abs(standard_scores(tuple_sampler.add_sampler(factor, 0.7), truth)) < 4


@pytest.mark.parametrize("common", [False, True])
@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_two_bins(size, common):
    """[N-3.2] b = 2, sigma = 1, epsilon = 0.5: delta = .149178 (remove), .142687 (add), for any tuple size."""
    assert abs(standard_scores(remove(np.eye(2), 0.5, size, common), 0.149178)) < 4
    assert abs(standard_scores(tuple_sampler.add_sampler(tuple_sampler.factor(np.eye(2)), 0.5), 0.142687)) < 4


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


def test_line_average_has_the_same_mean_for_any_lattice():
    """[A-15] The random offset makes the lattice unbiased, whatever its step; a fine one has the least variance."""
    sampler = remove(bands(16, 5, 0.7), 1.0, 6)
    found = {}
    for points in (6, 24, 96):
        values = draw(dataclasses.replace(sampler, step=tuple_sampler._REACH / points), 8)
        found[points] = values.mean(), values.std() / math.sqrt(len(values))
    for points in (6, 24):
        error = math.hypot(found[points][1], found[96][1])
        assert abs(found[points][0] - found[96][0]) < 4 * error
    assert found[96][1] < 0.8 * found[6][1]


def test_lattice_weights_sum_to_one():
    """[A-15] sum_i step phi(step (i + offset)) is 1 up to exp(-2 pi^2 / step^2): the bound survives the average."""
    offsets = np.linspace(0, 1, 11)[:, None]
    for step in (0.25, 0.1):
        points = step * (np.arange(-400, 400) + offsets)
        sums = (step * np.exp(-(points**2) / 2) / math.sqrt(2 * math.pi)).sum(axis=1)
        assert np.abs(sums - 1).max() < 1e-13


@pytest.mark.parametrize("common", [False, True])
def test_samples_stay_below_their_bound(common):
    """[A-15] Before the final clipping nothing exceeds the bound by more than the rounding allowances."""
    for gram, epsilon, size in (
        (bands(16, 5, 0.7), 0.3, 3),
        (np.full((5, 5), 0.5), 0.2, 2),
        (np.eye(4) * 2, 2.0, 4),
    ):
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
    """[A-15] Along it every y_l rises at least with the stated slope: nearly the distance of the modes' hull from 0."""
    from scipy.optimize import minimize

    uneven = np.random.default_rng(6).random(7) + 0.3
    for gram in (bands(9, 4, 0.7), np.full((4, 4), 0.3), bands(7, 3, 0.7) * np.outer(uneven, uneven)):
        weights, slope = tuple_sampler.common_direction(gram)
        assert weights @ gram @ weights == pytest.approx(1, rel=1e-12)
        assert slope <= (gram @ weights).min() <= slope * (1 + 1e-8)
        bins = len(gram)
        closest = minimize(
            lambda w, gram=gram: w @ gram @ w,
            np.full(bins, 1 / bins),
            jac=lambda w, gram=gram: 2 * gram @ w,
            bounds=[(0, 1)] * bins,
            constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
            method="SLSQP",
            options={"ftol": 1e-14},
        )
        assert 0.9 * math.sqrt(closest.fun) <= slope <= math.sqrt(closest.fun) * (1 + 1e-6)


@pytest.mark.parametrize("size", [2, 6])
def test_common_direction_lowers_the_bound(size):
    """[A-15] On such lines log w cannot stay where the payoff is large."""
    for gram in (bands(16, 5, 0.7), np.full((5, 5), 0.5), np.eye(4) * 2):
        assert remove(gram, 0.3, size, common=True).bound < 0.9 * remove(gram, 0.3, size).bound


@pytest.mark.parametrize(("size", "slope"), [(2, 0.5), (6, 0.1), (14, 0.17), (14, 1.0), (40, 5.0), (3, 0.0)])
def test_line_peak(size, slope):
    """[A-15] No loss that rises at least with `slope` has a larger lattice average of its payoff; some come close."""
    rng = np.random.default_rng(7)
    peak = tuple_sampler.line_peak(size, slope)
    half = round(tuple_sampler._REACH / tuple_sampler._STEP)
    most = (1 - 1 / size) ** (size - 1) / size

    def average(start, bend, offset):
        points = tuple_sampler._STEP * (np.arange(-half, half) + offset)
        loss = slope * (points - start) + bend * (np.exp(points - 2) - 0.01)  # above epsilon
        w = np.exp(np.maximum(loss - (slope == 0) * math.log1p(-1 / size), 0))
        return (
            (tuple_sampler._STEP * np.exp(-(points**2) / 2) * (w - 1) * w**-size).sum()
            / math.sqrt(2 * math.pi)
            / most
        )

    best = max(average(rng.uniform(-3, 3), rng.exponential(), rng.random()) for _ in range(3000))
    for start in np.linspace(-6, 6, 1201):
        best = max(best, *(average(start, 0.0, offset) for offset in (0.0, 0.3, 0.5, 0.8)))
    assert best <= peak <= 1.03 * best


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


def test_normals():
    normals, valid = tuple_sampler._normals(np.random.default_rng(1), (2000, 50))
    assert np.all(valid == (np.abs(normals).max(axis=1) < tuple_sampler._FARTHEST))
    assert abs(normals.mean()) < 4 / math.sqrt(normals.size)
    assert abs(normals.var() - 1) < 4 * math.sqrt(2 / normals.size)


def test_slack_covers_extended_precision():
    """[A-15] log w on the line, recomputed with 80-bit numbers, differs by far less than the slack."""
    gram = bands(12, 6, 0.6)
    sampler = remove(gram, 0.4, 5)
    rng = np.random.default_rng(2)
    counts = sampler.draw_counts(rng)[:200]
    normals, _ = tuple_sampler._normals(rng, (200, 13))
    rows = sampler.factor.rows

    def line(kind):
        r, n, z = rows.astype(kind), counts.astype(kind), normals.astype(kind)
        exact = r @ r.T
        noise, forces = z @ r.T, n @ exact
        length = np.sqrt((n * forces).sum(axis=1))
        slopes = forces / length[:, None]
        along = (n * noise).sum(axis=1) / length
        return forces - exact.diagonal() / 2 + noise + (kind(1.3) - along)[:, None] * slopes

    assert np.finfo(np.longdouble).eps < 1e-17 or pytest.skip("no extended precision here")
    error = np.abs(line(np.longdouble) - line(np.float64)).max()
    assert 0 < error < sampler.slack / 100


def test_too_large_entries_are_refused():
    factor = tuple_sampler.factor(np.eye(3) * 1e4)
    with pytest.raises(ValueError, match="gram must be small enough"):
        tuple_sampler.remove_sampler(factor, 1.0, fit(Shares(factor.gram, 3), 3))
    with pytest.raises(ValueError, match="gram must be small enough"):
        tuple_sampler.add_sampler(tuple_sampler.factor(np.eye(3) * 1e12), 1.0)


# --- add --------------------------------------------------------------------------------------------------


def test_half_space_contains_the_region():
    """[A-15] Any weights give a half-space around {log w < -epsilon}; the chosen ones are no worse than others."""
    rng = np.random.default_rng(3)
    for gram in (bands(8, 3, 0.5), np.eye(5), np.full((3, 3), 0.2) + np.diag([0.0, 0.3, 0.9])):
        rows = tuple_sampler.factor(gram).rows
        omega, threshold = tuple_sampler.half_space(gram, 0.4)
        assert omega.sum() == pytest.approx(1, abs=1e-12)
        direction = omega @ rows
        length = np.linalg.norm(direction)
        x = rng.standard_normal((200_000, rows.shape[1])) - 1.5 * direction / length
        inside = np.log(np.exp(x @ rows.T - gram.diagonal() / 2).mean(axis=1)) < -0.4
        assert inside.sum() > 1000
        assert (x[inside] @ direction / length).max() <= -threshold
        for _ in range(20):
            other = rng.dirichlet(np.full(len(gram), 3.0))
            height = 0.4 - other @ gram.diagonal() / 2 - other @ np.log(len(gram) * other)
            assert height / math.sqrt(other @ gram @ other) <= threshold + 1e-9


def test_half_space_is_the_supporting_one():
    """The threshold is the distance of the region from the origin: the convex programme finds the same."""
    from scipy.optimize import minimize

    gram = bands(6, 3, 0.7) * np.outer(*2 * [[1.0, 0.9, 0.8, 0.7, 0.8, 1.0]])
    rows, epsilon = np.linalg.cholesky(gram), 1.0
    found = minimize(
        lambda x: x @ x / 2,
        -np.ones(6),
        jac=lambda x: x,
        constraints={
            "type": "ineq",
            "fun": lambda x: -epsilon - np.log(np.exp(rows @ x - gram.diagonal() / 2).mean()),
        },
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    _, threshold = tuple_sampler.half_space(gram, epsilon)
    assert threshold == pytest.approx(np.linalg.norm(found.x), rel=1e-5)


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


def test_certify_both_sides():
    gram = bands(16, 8, 0.5)
    both = [certificate.certify(gram, 1.0, side, 2**14, 1e-6, 1) for side in ("remove", "add")]
    for result in both:
        assert result.mean + 3 * result.standard_error < result.upper < 1.2 * result.mean
        assert result.upper <= result.bound
        assert (result.samples, result.failure_probability) == (2**14, 1e-6)
    assert both[0].size >= 2
    assert both[1].size == 0
    again = certificate.certify(gram, 1.0, "remove", 2**14, 1e-6, 1, tuple_size=both[0].size)
    assert again == both[0]
    other = certificate.certify(gram, 1.0, "remove", 2**14, 1e-6, 2)
    assert other.mean != both[0].mean
    assert other.mean == pytest.approx(both[0].mean, abs=5 * other.standard_error)


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


def test_the_choice_of_a_tuple_size_fits_each_law_once(monkeypatch):
    fitted, pilots, real, pilot = [], [], certificate.fit, certificate._pilot

    def counted(shares, size):
        fitted.append(size)
        return real(shares, size)

    def listed(sampler, seed, key, blocks):
        pilots.append(key[0])
        return pilot(sampler, seed, key, blocks)

    monkeypatch.setattr(certificate, "fit", counted)
    monkeypatch.setattr(certificate, "_pilot", listed)
    certificate.prepare(bands(8, 4, 0.5), 0.8, "remove", 2**13, 1e-3, 0)
    assert len(fitted) == len(set(fitted)) and set(pilots) == set(fitted)
    assert len(pilots) > 2 * len(fitted)  # the best size has two pilots


def test_what_the_drawn_tuples_miss_is_added():
    """[A-15] Twice what they miss, or what lies beyond the line, raises the bound by that."""
    sampler = remove(bands(8, 4, 0.5), 0.8, 5)
    assert sampler.extra >= sampler.missed > 0
    plan = certificate.Plan(sampler, draw(sampler, 4))
    worse = certificate.Plan(dataclasses.replace(sampler, missed=sampler.missed + 1e-3), plan.pilot)
    one, two = (certificate.run(p, 2**13, 1e-3, 0, (0,)).upper for p in (plan, worse))
    assert two - one == pytest.approx(1e-3 * sampler.bound, rel=1e-6)


def test_smaller_failure_probability_costs_more():
    gram = bands(8, 4, 0.5)
    uppers = [
        certificate.certify(gram, 0.8, "remove", 2**13, beta, 0, tuple_size=5).upper
        for beta in (0.1, 1e-5, 1e-12)
    ]
    assert uppers == sorted(uppers)


def test_a_number_of_samples_that_is_no_multiple_of_a_block():
    gram = bands(8, 4, 0.5)
    found = certificate.certify(gram, 0.8, "remove", 5000, 1e-3, 0, tuple_size=5)
    sampler = certificate.prepare(gram, 0.8, "remove", 5000, 1e-3, 0, 5).sampler
    values = np.concatenate(certificate.random_blocks.run(sampler, 2, seed=0, key=(certificate._FINAL,)))
    assert len(values) == 8192 and found.mean == pytest.approx(values[:5000].mean() * sampler.bound, rel=1e-12)


def test_budget_too_small():
    """The error says how many samples would do, and so many do."""
    gram = bands(16, 8, 0.5)
    with pytest.raises(ValueError, match=r"samples must be about \S+ for an upper bound within 2 times") as error:
        certificate.certify(gram, 1.0, "remove", 64, 1e-9, 1, tuple_size=5)
    many = int(float(str(error.value).split("about ")[1].split()[0]))
    result = certificate.certify(gram, 1.0, "remove", many, 1e-9, 1, tuple_size=5)
    assert result.mean < result.upper < 2.5 * result.mean
    with pytest.raises(ValueError, match=r"samples must be more than .* within 2 times delta"):
        certificate.certify(np.eye(64), 3.0, "add", 2**12, 1e-9, 1)


@pytest.mark.parametrize("bins, size", [(16, 17), (16, 33), (64, 8), (64, 17)])
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
    found = certificate.run(certificate.prepare(gram, plan.sampler.epsilon, "remove", 2**13, 1e-9, 0), 2**13, 1e-9, 0, ())
    assert found.mean == pytest.approx(truth, rel=0.05) and found.upper < 1.2 * truth


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
            value = upper if key[0] == 2 else 1.0
            return certificate.Certified(value, value, 0.0, 1.0, 3, samples, share)

        monkeypatch.setattr(certificate, "run", planted)
        try:
            search(upper)
        except ValueError:
            return False
        return True

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


@pytest.mark.parametrize("side", ["remove", "add"])
def test_smallest_noise_and_epsilon(side):
    """[A-15] The candidate passes at the target, and little more noise, or epsilon, is asked for than estimated."""
    gram, epsilon, delta = bands(6, 4, 4.0), 1.0, 1e-2
    options = {"samples": 2**14, "failure_probability": 1e-6, "seed": 0}
    start, error = importance_sampling.solve_scale(gram, epsilon, delta, side)
    noise, result = certified.smallest_noise(gram, epsilon, delta, side, **options)
    assert start - 4 * error < noise < 1.1 * start
    assert result.upper + result.failure_probability <= delta and result.failure_probability == 1e-6
    found = certified.smallest_epsilon(gram / noise**2, delta, side, **options)
    assert found.upper == pytest.approx(epsilon, rel=0.1)
    again = certificate.certify(gram / noise**2, found.upper, side, 2**14, 1e-6, 99)
    assert again.mean - 4 * again.standard_error < delta
    assert certified.smallest_epsilon(gram / 1e4, 0.1, side, **options).upper == 0.0


def test_candidates_that_fail_are_refused(monkeypatch):
    monkeypatch.setattr(certificate, "overshoot", lambda *_: 0.5)  # a prediction that is far too good
    options = {"samples": 2**12, "failure_probability": 1e-6, "seed": 0}
    with pytest.raises(ValueError, match="samples must be more to certify delta <= 0.009999: no candidate"):
        certified.smallest_noise(bands(6, 4, 4.0), 1.0, 1e-2, "remove", **options)


# --- delta near 1 ------------------------------------------------------------------------------------------


def test_one_index_where_delta_is_near_one():
    """[A-15] Tuples of one index have payoffs of at most 1: with little noise the bound stays close to delta."""
    for bins, square in ((4, 20.0), (16, 45.0)):
        gram = square * np.eye(bins)
        result = certificate.certify(gram, 1.0, "remove", 2**14, 1e-6, 1)
        estimate = math.exp(importance_sampling.estimate(gram, 1.0, "remove", relative_error=1e-3).log_value)
        assert result.size == 1 and result.bound == pytest.approx(1)
        assert result.mean == pytest.approx(estimate, abs=5 * result.standard_error + 3e-3)
        assert estimate - 3e-3 < result.upper < 1.01 * estimate


def test_plain_sampler_agrees_with_tuples():
    """[A-15] k = 1 against k = 3: the same mean, and never above the bound."""
    factor = tuple_sampler.factor(bands(9, 4, 1.5))
    plain = tuple_sampler.plain_sampler(factor, 0.7)
    values, others = draw(plain, 8), draw(remove(bands(9, 4, 1.5), 0.7, 3), 8)
    bound = remove(bands(9, 4, 1.5), 0.7, 3).bound
    error = math.hypot(values.std(), bound * others.std()) / math.sqrt(len(values))
    assert abs(values.mean() * plain.bound - others.mean() * bound) < 4 * error
    assert values.max() <= 1.0
    with pytest.raises(tuple_sampler.OutOfRange):
        tuple_sampler.plain_sampler(tuple_sampler.factor(np.eye(3) * 1e4), 1.0)


def test_small_epsilon_takes_long_tuples():
    """[C-6] Nearly Gaussian, epsilon = 0.1: tuples of about sqrt(2 log(1/delta)) / mu indices; the bound is within 1%."""
    mu = 0.03
    plan = certificate.prepare(np.full((3, 3), mu**2), 0.1, "remove", 2**17, 1e-9, 0)
    assert plan.sampler.size > 40
    assert plan.estimate == pytest.approx(gaussian.delta(mu, 0.1), rel=5e-3)
    assert plan.predicted(2**17, 1e-9) < 1.01 * plan.estimate


def test_hardly_any_noise():
    """[C-6] The bound never exceeds 1, and a delta of nearly 1 is no error."""
    upper = certificate.certify(np.full((1, 1), 26.6), 0.1, "remove", 2**13, 1e-3, 1).upper
    assert gaussian.delta(math.sqrt(26.6), 0.1) < upper < 0.992
    assert certificate.certify(np.full((1, 1), 300.0), 0.1, "remove", 2**13, 1e-3, 1).upper == 1.0


def test_workers_do_not_matter():
    """The sampler travels to other processes, and the blocks do not depend on who draws them."""
    import joblib

    gram = bands(8, 4, 0.5)
    alone = certificate.certify(gram, 0.8, "remove", 3 * 4096, 1e-3, 0, tuple_size=4)
    with joblib.parallel_config(backend="threading", n_jobs=2):
        assert certificate.certify(gram, 0.8, "remove", 3 * 4096, 1e-3, 0, tuple_size=4) == alone


def test_sizes_of_tuples_increase():
    """The search for the best size goes from one to its neighbours: it needs them in order, each once."""
    assert list(certificate._SIZES) == sorted(set(certificate._SIZES)) and certificate._SIZES[0] == 1
