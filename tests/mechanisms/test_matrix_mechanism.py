"""MMCC end to end: reference values, truth, special cases, min-separation, calibration."""

import dataclasses
from functools import partial
from types import SimpleNamespace

import mpmath
import numpy as np
import pytest
from oracle_cases import load

from dplib import (
    MatrixMechanism,
    MinSeparation,
    PoissonDPSGD,
    accounting,
    calibrate,
    conditional,
    gaussian,
    matrices,
    mixtures,
)
from dplib.conditional import compose as _composed_rows
from dplib.lessons import truth
from dplib.results import Bracket, NoBracketError, UpperBound

COUNTING = matrices.optimal_counting(8)
# Of the large Toeplitz encoders `make test` has one, `make trust` all.
SLOW = ("toeplitz-n512-c20", "toeplitz-n256-c10-band8", "toeplitz-n128-c20", "toeplitz-n128-c10")
slow = partial(pytest.param, marks=pytest.mark.trust)


def reference_encoder(name, rounds):
    kind, *parts = name.split("-")
    if kind == "identity":
        return matrices.identity(rounds)
    if "treerestart" in name:
        return matrices.tree_restarts(rounds, 8)
    if kind == "tree":
        return matrices.tree_restarts(rounds, int(parts[0][1:]))
    return matrices.optimal_counting(rounds, 8 if "band8" in name else None)


@pytest.mark.parametrize("value", [slow(v) if v["id"] in SLOW else v for v in load("mmcc") if v["n"] <= 1024], ids=lambda v: v["id"])
def test_reference_values(value):
    """[M-Alg1] The published algorithm, each direction: between lower and 1.002 upper of other code."""
    encoder, delta = reference_encoder(value["id"], value["n"]), value["delta1"] + value["delta2"]
    run = MatrixMechanism(
        encoder, value["sigma"], value["p"], value.get("b", 1), "published", value["delta1"] / delta or None
    )
    for direction, key in (("remove", "rem"), ("add", "add")):
        found = run.epsilon(delta, direction)
        assert value["lower"][key] <= found.upper <= 1.002 * value["upper"][key]
        assert ("published" if value["delta1"] else "no tail") in found.method


@pytest.mark.parametrize("case", load("mmcc", "mc_truth"), ids=lambda case: case["id"].split(" ")[0])
def test_no_bound_is_below_the_sampled_truth(case):
    """[M-4.3] The better bounds against importance-sampled values; how far above they may be for 256 leaves."""
    kind, n, _ = case["id"].split(" ")[0].split("-")
    n = int(n[1:])
    encoder = matrices.binary_tree(n) if kind == "tree" else matrices.optimal_counting(n)
    bound = "pooled" if kind == "tree" else ("joint" if n == 4 else "aggregated")
    run = MatrixMechanism(encoder, case["sigma"], case["p"], tail_bound=bound, tail_share=0.1)
    for direction, key in (("remove", "rem"), ("add", "add"))[: 1 if n in (8, 12) else 2]:
        found = run.epsilon(case["delta"], direction).upper
        assert found >= case[key]["eps"] - 4 * case[key]["se"]
        if n == 256:
            assert direction == "add" or found <= (1.2 if "c10" in case["id"] else 1.1) * case[key]["eps"]


def random_encoder(rng, number):
    n = int(rng.integers(2, 6))
    if number % 3 == 0:
        return matrices.toeplitz(np.sort(np.append(1.0, rng.uniform(0, 1, n - 1)))[::-1])
    if number % 3 == 1:
        return matrices.tree_restarts(4, int(rng.choice([2, 4])))
    return matrices.dense(np.tril(rng.uniform(0, 1, (n, n)) * (rng.uniform(size=(n, n)) < 0.7), -1) + np.eye(n))


@pytest.mark.parametrize("number", [*range(6), *map(slow, range(6, 12))])
def test_large_delta_end_to_end(number):
    """[M-4.3, A-11, A-12, A-13, A-28] At delta = .1 to .001 the true delta at the bound's epsilon is at most delta."""
    rng = np.random.default_rng(100 + number)
    encoder = random_encoder(rng, number)
    norm, p, delta = float(encoder.column_norms().max()), rng.uniform(0.05, 0.5), 10 ** -rng.uniform(1, 3)
    sigma = norm * rng.uniform(0.8, 4)
    exact = truth.all_modes(encoder, sigma, p, samples=1024)
    direction = ("remove", "add")[number // 3 % 2]
    for tail_bound in (*conditional.candidates(encoder, 1), "renyi"):
        run = MatrixMechanism(encoder, sigma, p, tail_bound=tail_bound, tail_share=0.1)
        try:
            bound = run.epsilon(delta, direction).upper
        except NoBracketError:
            assert tail_bound != "joint"
            continue
        found = exact.delta(bound, direction)
        assert found.value - 4 * found.standard_error <= delta


# ------------------------------------------------------------------ special cases


@pytest.mark.parametrize(
    "encoder", (COUNTING, matrices.binary_tree(4), matrices.dense(COUNTING.entries())), ids=("counting", "tree", "dense")
)
def test_certain_and_impossible_participation(encoder):
    """[C-6] p = 1 is one Gaussian with mu = ||C 1|| / sigma, p = 0 nothing; b p = 1 the worst group's pattern."""
    n = encoder.columns
    assert MatrixMechanism(encoder, 1.0, 0.0).epsilon(1e-6).upper == 0
    mu = np.linalg.norm(encoder.multiply(np.ones(n))) / 5
    assert MatrixMechanism(encoder, 5.0, 1.0).epsilon(1e-6).upper == pytest.approx(gaussian.epsilon(mu, 1e-6), rel=1e-4)
    patterns = [(np.arange(n) % 2 == first).astype(float) for first in (0, 1)]
    mu = max(np.linalg.norm(encoder.multiply(pattern)) for pattern in patterns) / 5
    half = MatrixMechanism(encoder, 5.0, 0.5, 2).epsilon(1e-6).upper
    assert half == pytest.approx(gaussian.epsilon(mu, 1e-6), rel=1e-4)


@pytest.mark.parametrize("direction", ("remove", "add"))
def test_the_worst_group_of_columns_counts(direction):
    """[M-D] Independent columns of norms 1 and 2 in turn, b = 2: two rounds at rate b p with sensitivity 2."""
    mechanism = MatrixMechanism(matrices.dense(np.diag([1.0, 2.0, 1.0, 2.0])), 2.0, 0.1, min_separation=2)
    worst = PoissonDPSGD(1.0, 0.2, 2)
    assert mechanism.epsilon(1e-5, direction).upper == pytest.approx(worst.epsilon(1e-5, direction).upper, rel=1e-3)
    assert mechanism.delta(0.2, direction).upper == pytest.approx(worst.delta(0.2, direction).upper, rel=1e-3)


def test_rounding_entries_as_the_source_does_costs_something():
    run = MatrixMechanism(matrices.optimal_counting(32), 10.0, 0.1, tail_bound="published")
    exact = run.epsilon(1e-6, "remove").upper
    rounded = dataclasses.replace(run, round_entries_to=0.02).epsilon(1e-6, "remove").upper
    assert exact < rounded < 1.1 * exact


# ------------------------------------------------------------------ consistency


@pytest.mark.parametrize("tail_bound", ("best", "published"))
def test_delta_and_epsilon_belong_together(tail_bound):
    run = MatrixMechanism(matrices.optimal_counting(24), 16.0, 0.05, tail_bound=tail_bound)
    epsilon = run.epsilon(1e-5, "remove").upper
    back = run.delta(epsilon, "remove")
    assert isinstance(back, UpperBound) and back.upper == pytest.approx(1e-5, rel=0.05)


def test_delta_is_given_back_where_another_share_would_have_been_tried():
    run, epsilon = MatrixMechanism(matrices.optimal_counting(6), 10.7205807, 0.884528277), 0.148334465
    assert run.epsilon(run.delta(epsilon, "add").upper, "add").upper <= epsilon * (1 + 1e-6)


def test_far_out_deltas_are_found():
    """delta_1 is found although it is 1e-40 or less."""
    encoder = matrices.optimal_counting(64)
    run = MatrixMechanism(encoder, 10 * float(encoder.column_norms()[0]), 1 / 64, tail_bound="joint", tail_share=0.1)
    found = run.delta(3.0, "remove").upper
    assert found < 1e-50 and run.epsilon(found, "remove").upper == pytest.approx(3.0, rel=1e-3)


def test_the_best_bound_is_the_smallest_one():
    for encoder in (matrices.optimal_counting(12), matrices.binary_tree(8)):
        run = MatrixMechanism(encoder, 12.0, 0.1)
        best = run.epsilon(1e-6, "remove").upper
        for name in conditional.candidates(encoder, 1):
            assert best <= dataclasses.replace(run, tail_bound=name).epsilon(1e-6, "remove").upper * (1 + 1e-12)
        fixed = run.with_best_tail(1e-6, "remove")
        assert fixed.tail_bound != "best" and fixed.epsilon(1e-6, "remove").upper == best


@pytest.mark.parametrize("direction", ("remove", "add"))
def test_with_few_bands_the_renyi_bound_is_the_smallest(direction):
    """[A-28] Far below MMCC; the bound of `MinSeparation` without a pause, above its estimate; both questions agree."""
    encoder = matrices.optimal_counting(64, bands=4)
    best = MatrixMechanism(encoder, 4.0, 1 / 16)
    found = best.epsilon(1e-6, direction)
    others = [dataclasses.replace(best, tail_bound=name) for name in ("few", "joint", "aggregated")]
    assert "Renyi" in found.method and found.upper < 0.7 * min(run.epsilon(1e-6, direction).upper for run in others)
    paused = MinSeparation(encoder, 4.0, 1 / 16, 1)
    assert found.upper == paused.epsilon(1e-6, direction, "renyi").upper > paused.epsilon(1e-6, direction, "estimate").value
    assert best.delta(found.upper, direction).upper == pytest.approx(1e-6, rel=1e-9)
    assert best.with_best_tail(1e-6, direction).tail_bound == "renyi"
    with pytest.raises(ValueError, match="min_separation must be 1 for tail_bound='renyi'; got 2"):
        MatrixMechanism(encoder, 4.0, 1 / 16, 2, tail_bound="renyi")


def test_with_hardly_any_noise_counting_participations_still_answers():
    """"best" has an answer at any noise; a tail bound by itself says why it has none."""
    for encoder in (matrices.optimal_counting(32), matrices.binary_tree(32), matrices.dense(COUNTING.entries())):
        run = MatrixMechanism(encoder, 0.01, 0.1)
        found = run.epsilon(1e-6)
        assert found.upper > 1e4 and found.method == "participations counted"
        assert run.delta(found.upper).upper <= 1e-6 * (1 + 1e-6)
        with pytest.raises(NoBracketError, match="tail bound is void|truncation"):
            dataclasses.replace(run, tail_bound="joint").epsilon(1e-6)
    with pytest.raises(NoBracketError, match="epsilon above 300"):
        MatrixMechanism(COUNTING, 1.0, 0.1, tail_bound="joint").delta(301.0)
    assert MatrixMechanism(COUNTING, 1.0, 0.1).delta(301.0).upper < 1e-30


# ------------------------------------------------------------------ calibration


@pytest.mark.parametrize(
    "encoder, tail_bound, epsilon, direction",
    [(matrices.optimal_counting(24), "joint", 1.0, "both"), (matrices.tree_restarts(64, 4), "published", 0.5, "add"), (matrices.identity(8), "best", 2.0, "remove")],
    ids=("counting", "tree", "identity"),
)
def test_calibrated_noise_is_the_smallest(encoder, tail_bound, epsilon, direction):
    run = MatrixMechanism(encoder, 3.0, 0.1, tail_bound=tail_bound)
    found = calibrate(run, epsilon=epsilon, delta=1e-5, direction=direction)
    assert found.epsilon(1e-5, direction).upper <= epsilon
    assert dataclasses.replace(found, noise_multiplier=3.0) == run
    quieter = dataclasses.replace(found, noise_multiplier=found.noise_multiplier * (1 - 2e-4))
    assert quieter.epsilon(1e-5, direction).upper > epsilon


# ------------------------------------------------------------------ bad input


def test_less_sampling_never_costs_more():
    """[M-p] The smallest bound never falls as p rises, though it changes its kind on the way."""
    kinds = set()
    for encoder, noise in ((matrices.binary_tree(4), 1.0), (matrices.binary_tree(8), 8.0), (COUNTING, 1.5)):
        last = 0.0
        for p in np.geomspace(1e-6, 0.3, 5):
            found = MatrixMechanism(encoder, noise, float(p)).epsilon(1e-6, "remove")
            kinds.add(found.method)
            assert found.upper >= last * (1 - 1e-6)
            last = found.upper
    assert len(kinds) > 2


@pytest.mark.parametrize("direction", ["remove", "add"])
def test_where_no_accountant_closes_convexity_answers(direction):
    """The bound holds wherever an accountant answers, and is exact for one round of one sensitivity that is certain."""
    random = np.random.default_rng(3)
    for _ in range(3):
        pairs = [
            (mixtures.Mixture([0, *np.sort(random.uniform(0.3, 2, 2))], [1 - p, 0.3 * p, 0.7 * p], 1.0), int(random.integers(1, 4)))
            for p in 10 ** random.uniform(-3, -0.5, 3)
        ]
        stuck = _composed_rows.Accounted(pairs, direction, asked=False)
        for epsilon in (0.0, 0.3, 2.0):
            least = accounting.delta(pairs, epsilon, direction).lower  # 0 where added rows cannot lose so much
            bound = stuck.delta(epsilon)
            assert least <= bound and (direction == "add" or bound < 1e11 * least)
        for delta in (1e-2, 1e-6):
            found = stuck.epsilon(delta)
            assert found >= accounting.epsilon(pairs, delta, direction).lower
            assert found == 0 or stuck.delta(found) == pytest.approx(delta, rel=1e-8)
    sure = _composed_rows.Accounted([(mixtures.Mixture([1.5], [1.0], 1.0), 4)], direction, asked=False)
    assert sure.delta(1.0) == pytest.approx(gaussian.delta(3.0, 1.0), rel=1e-10)
    assert _composed_rows.Accounted([(mixtures.binomial(1, 0.0, 1.0), 3)], direction).delta(1.0) == 0


def test_an_accountant_that_refuses_leaves_it_to_convexity(monkeypatch):
    pairs = [(mixtures.binomial(1, 0.1, 1.0), 4)]
    rows, by_convexity = (_composed_rows.Accounted(pairs, "remove", asked) for asked in (True, False))
    assert rows.delta(0.5) < by_convexity.delta(0.5) and rows.epsilon(1e-3) < by_convexity.epsilon(1e-3)

    def refuses(*arguments, **options):
        raise NoBracketError("too hard")

    ask = accounting.epsilon
    monkeypatch.setattr(accounting, "delta", refuses)
    monkeypatch.setattr(accounting, "epsilon", lambda parts, *rest, **more: (refuses if parts is pairs else ask)(parts, *rest, **more))
    assert rows.delta(0.5) == by_convexity.delta(0.5) and rows.epsilon(1e-3) == by_convexity.epsilon(1e-3)


@pytest.mark.parametrize("p, count", [(1e-3, 1), (1e-7, 3), (0.3, 4)])
def test_the_bound_by_convexity_is_rounded_to_the_safe_side(p, count, monkeypatch):
    """The Gaussian pair is asked for a delta which times P(any participation) is at most delta, and its upper end counts."""
    asked = []
    answer = lambda pair, delta, side: asked.append(delta) or Bracket(1.0, 2.0, "stub")
    monkeypatch.setattr(_composed_rows.accounting, "epsilon", answer)
    stuck = _composed_rows.Accounted([(mixtures.binomial(1, p, 1.0), count)], "remove", asked=False)
    with mpmath.workdps(40):
        taken = 1 - (1 - mpmath.mpf(p)) ** count
        for delta in np.geomspace(1e-290, 0.5 * float(taken), 60):
            assert stuck.epsilon(float(delta)) == 2.0
            assert 0.99999 < asked[-1] * taken / mpmath.mpf(float(delta)) < 1


def test_truncation_costs_most_when_adding(monkeypatch):
    """A mass left out of P lowers e^epsilon P: it has to fit, times that, into what is set aside, else it is made smaller."""
    pairs, asked = [(mixtures.binomial(1, 0.1, 1.0), 5)], []

    def rows(*arguments, slack, **options):
        asked.append(slack)
        return [SimpleNamespace(pairs=pairs, delta_1=1e-4, slack=8 * slack, tail_bound="stub")]

    monkeypatch.setattr(conditional, "rows", rows)
    run = MatrixMechanism(COUNTING, 1.0, 0.1, tail_bound="joint")
    for direction in ("remove", "add"):
        asked.clear()
        delta = 1e-3  # four fifths of what is set aside, times e^epsilon, is too much
        found = run.epsilon(delta, direction).upper
        assert found == pytest.approx(accounting.epsilon(pairs, (1 - 1e-5) * 0.9e-3, direction).upper, rel=1e-4)
        assert (min(asked) < 1e-12) == (direction == "add")


def test_a_bad_event_that_is_too_rare_is_refused():
    for tail_bound in ("published", "joint", "aggregated", "pooled"):
        with pytest.raises(NoBracketError, match="as rare as 4.94066e-324; 1e-300 is the least"):
            conditional.rows(matrices.binary_tree(4), 4.0, 0.1, 5e-324, tail_bound)
    with pytest.raises(NoBracketError, match="the least"):
        conditional.published_tail(COUNTING, 4.0, 0.1, 1e-310)
    with pytest.raises(NoBracketError, match="1e-300 is the least"):
        MatrixMechanism(matrices.identity(3), 1.0, 0.1, tail_bound="joint").epsilon(5e-324)
