"""BallsInBins: against reference values, closed forms and quadrature; each answer says what it is."""

import dataclasses
import json
import math
import pickle
from pathlib import Path

import numpy as np
import pytest

import dplib
from dplib import Bracket, Certificate, Estimate, NoBracketError, gaussian, matrices, montecarlo

DATA = Path(__file__).resolve().parents[1] / "data" / "bnb.json"
ROWS = json.loads(DATA.read_text(encoding="utf-8"))["values"]


def encoder(kind, n):
    name = kind["kind"]
    if name == "identity":
        return matrices.identity(n)
    if name == "sqrt_banded":
        return matrices.optimal_counting(n, kind["h"])
    if name == "sqrt":
        return matrices.optimal_counting(n)
    if name == "geometric":
        return matrices.toeplitz(kind["lam"] ** np.arange(n))
    assert name == "blt"
    return matrices.buffered_linear_toeplitz(n, kind["omega"], kind["lam"])


def mechanism(row):
    return dplib.BallsInBins(encoder(row["C"], row["n"]), row["sigma"], row["b"], row["E"])


def label(row):
    return f"{row['C']['kind']}{row['C'].get('h', '')}-{row['n']}-{row['sigma']}"


SMALL = dplib.BallsInBins(matrices.optimal_counting(32, 8), 1.5, 8, 4)
IDENTITY = dplib.BallsInBins(matrices.identity(32), 1.5, 8, 4)

# --- reference values ------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", ROWS, ids=label)
def test_reference_values(row):
    """[N-3.2], [A-17] Both directions within four standard errors; where the reference has no digits, its magnitude."""
    training = mechanism(row)
    gram = training.gram()
    assert gram[0, 0] == pytest.approx(row["mode_norm2_first"], rel=1e-12)
    assert gram[-1, -1] == pytest.approx(row["mode_norm2_last"], rel=1e-12)
    assert gram[0, 1] == pytest.approx(row["gram_01"], rel=1e-12)
    for side in ("remove", "add"):
        found = training.delta(row["eps"], side, "estimate", samples=1024, seed=4)
        truth = row[f"delta_{side}"]
        if row[f"{side}_ok"]:
            assert abs(found.value - truth) <= 4 * math.hypot(found.standard_error, row[f"se_{side}"])
            assert found.standard_error < 0.08 * found.value
        else:
            assert 0.1 < found.value / truth < 10


@pytest.mark.parametrize("row", [row for row in ROWS if "fft_remove" in row], ids=label)
def test_brackets_contain_the_reference_values(row):
    """[A-16] C = I, by another program with another grid."""
    training = mechanism(row)
    remove, add = (training.delta(row["eps"], side) for side in ("remove", "add"))
    assert remove.lower * (1 - 1e-4) <= row["fft_remove"] <= remove.upper * (1 + 1e-4)
    assert remove.relative_width <= 1e-4
    if row["add_ok"]:
        assert add.lower * (1 - 1e-4) <= row["fft_add"] <= add.upper * (1 + 1e-4)
    assert training.delta(row["eps"]) == remove


@pytest.mark.parametrize("row", [row for row in ROWS if row["n"] == 512], ids=label)
def test_certificates_are_above_the_reference_values(row):
    """[A-15]"""
    for side in ("remove", "add"):
        proved = mechanism(row).delta(row["eps"], side, "certificate", samples=2**14)
        assert row[f"delta_{side}"] * (1 - 4e-3) <= proved.upper <= 1.3 * row[f"delta_{side}"]


# --- where the answer is known ---------------------------------------------------------------------------


def test_one_batch_is_the_gaussian_mechanism():
    """[N-3.2] (i) With b = 1 the record's participation is no secret."""
    training = dplib.BallsInBins(matrices.optimal_counting(6), 3.0, 1, 6)
    mu = float(np.linalg.norm(matrices.optimal_counting(6).entries().sum(axis=1))) / 3.0
    for side in ("remove", "add", "both"):
        delta, epsilon = training.delta(1.0, side), training.epsilon(1e-5, side)
        assert gaussian.delta(mu, 1.0) in delta and delta.relative_width < 1e-7
        assert gaussian.epsilon(mu, 1e-5) in epsilon and epsilon.relative_width < 1e-7
    assert delta.method == "closed form"
    sampled = training.delta(1.0, method="estimate")
    assert abs(sampled.value - gaussian.delta(mu, 1.0)) <= 4 * sampled.standard_error + 1e-9
    assert training.delta(1.0, method="certificate", samples=2**12).upper == pytest.approx(
        delta.upper, rel=1e-6
    )
    quieter = dplib.calibrate(training, epsilon=1.0, delta=1e-5)
    assert quieter.noise_multiplier == pytest.approx(3.0 * mu / gaussian.calibrate(1.0, 1e-5), rel=2e-6)


@pytest.mark.parametrize("side, truth", [("remove", 0.149178), ("add", 0.142687)])
def test_two_bins_by_quadrature(side, truth):
    """[N-3.2] (iv) b = 2, E = 1, C = I, sigma = 1, epsilon = 0.5."""
    training = dplib.BallsInBins(matrices.identity(2), 1.0, 2, 1)
    found = training.delta(0.5, side)
    assert found.lower - 5e-7 <= truth <= found.upper + 5e-7
    assert abs(training.delta(0.5, side, "estimate").value - truth) < 0.01 * truth
    assert training.delta(0.5, side, "certificate", samples=2**13).upper >= truth - 5e-7


@pytest.mark.parametrize("bins, epochs, noise", [(8, 4, 1.5), (16, 9, 2.7)])
def test_epochs_of_independent_noise_are_one_with_less(bins, epochs, noise):
    """[N-3.2] (ii) C = I: (b, E, sigma) is (b, 1, sigma / sqrt(E))."""
    many = dplib.BallsInBins(matrices.identity(bins * epochs), noise, bins, epochs)
    one = dplib.BallsInBins(matrices.identity(bins), noise / math.sqrt(epochs), bins, 1)
    for side in ("remove", "add"):
        a, b = many.delta(1.0, side), one.delta(1.0, side)
        assert a.lower == pytest.approx(b.lower, rel=1e-6) and a.upper == pytest.approx(b.upper, rel=1e-6)


@pytest.mark.parametrize("training", [SMALL, IDENTITY], ids=["counting", "identity"])
def test_random_bins_never_hurt(training):
    """[N-3.2] (iii) At most the average of the Gaussian mechanisms of the single modes."""
    norms = np.sqrt(np.diag(training.gram())) / training.noise_multiplier
    for epsilon in (0.0, 0.5, 2.0, 6.0):
        plain = np.mean([gaussian.delta(float(norm), epsilon) for norm in norms])
        for side in ("remove", "add"):
            found = training.delta(epsilon, side)
            assert (found.upper if isinstance(found, Bracket) else found.value) <= plain * (1 + 1e-3)


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 3.0])
def test_remove_is_the_larger_direction(epsilon):
    """[C-9m] The pair is a mixture of Gaussians against one of them: both is remove."""
    for training in (SMALL, IDENTITY):
        remove, add = (training.delta(epsilon, side, "estimate") for side in ("remove", "add"))
        assert add.value <= remove.value + 4 * math.hypot(remove.standard_error, add.standard_error)
        assert training.delta(epsilon, "both", "estimate") == remove
    remove, add = IDENTITY.delta(epsilon, "remove"), IDENTITY.delta(epsilon, "add")
    assert add.lower <= remove.upper and IDENTITY.delta(epsilon) == remove


@pytest.mark.parametrize("side", ["remove", "add"])
def test_lines_and_exact_method_agree(side):
    """[A-16], [A-17] Two routes that share nothing."""
    for epsilon in (0.0, 1.0, 3.0):
        exact, lines = IDENTITY.delta(epsilon, side), IDENTITY.delta(epsilon, side, "estimate")
        assert abs(lines.value - exact.midpoint) <= 4 * lines.standard_error + exact.width


def test_delta_and_epsilon_invert_each_other():
    for training, method in ((SMALL, "estimate"), (IDENTITY, "exact")):
        epsilon = training.epsilon(1e-4, method=method)
        at = epsilon.value if method == "estimate" else epsilon.upper
        delta = training.delta(at, method=method)
        assert (delta.value if method == "estimate" else delta.upper) == pytest.approx(1e-4, rel=0.02)
    assert isinstance(IDENTITY.epsilon(1e-4), Bracket)
    assert IDENTITY.epsilon(1e-4).lower <= IDENTITY.epsilon(1e-4).upper
    assert IDENTITY.epsilon(0.999).upper == 0 and SMALL.epsilon(0.999).value == 0


# --- which answer ----------------------------------------------------------------------------------------


def test_each_answer_says_what_it_is():
    assert isinstance(IDENTITY.delta(1.0), Bracket)
    assert isinstance(IDENTITY.delta(1.0, method="estimate"), Estimate)
    assert isinstance(SMALL.delta(1.0), Estimate) and SMALL.delta(1.0) == SMALL.delta(1.0, method="estimate")
    proved = SMALL.delta(1.0, method="certificate", samples=2**13)
    assert isinstance(proved, Certificate) and proved.method == "tuples" and proved.samples == 2**13
    for answer in (SMALL.delta(1.0), proved):
        with pytest.raises(TypeError):
            float(answer)


def test_an_estimate_never_stands_for_a_guarantee():
    for call in (
        lambda: SMALL.delta(1.0, method="exact"),
        lambda: SMALL.epsilon(1e-3, method="exact"),
        lambda: dplib.calibrate(SMALL, epsilon=1.0, delta=1e-3, method="exact"),
    ):
        with pytest.raises(ValueError, match="method must be 'auto', 'estimate' or 'certificate'"):
            call()
    # Whoever names a failure probability wants a certificate.
    for method in ("auto", "exact", "estimate"):
        with pytest.raises(ValueError, match="failure_probability goes with method='certificate'"):
            IDENTITY.delta(1.0, method=method, failure_probability=1e-6)


def test_the_failure_probability_is_below_delta():
    assert SMALL.delta(1.0, method="certificate", samples=2**13).failure_probability == 1e-9
    tiny = dataclasses.replace(SMALL, noise_multiplier=7.0).delta(2.0, "remove", "certificate", samples=2**14)
    assert tiny.upper < 1e-9 and tiny.failure_probability <= tiny.upper / 5
    for failure in (0.01, 1e-3):
        with pytest.raises(ValueError, match="failure_probability must be .* below 0.001"):
            SMALL.epsilon(1e-3, method="certificate", failure_probability=failure)
        with pytest.raises(ValueError, match="failure_probability must be .* below 0.001"):
            SMALL.certified(1.0, 1e-3, failure_probability=failure)


def test_where_an_exact_bracket_fails_auto_estimates(monkeypatch):
    def fails(*_):
        raise NoBracketError("no")

    monkeypatch.setattr(dplib.balls_in_bins.exact.lognormal_sum, "bracket", fails)
    assert isinstance(IDENTITY.delta(1.0), Estimate)
    with pytest.raises(NoBracketError):
        IDENTITY.delta(1.0, method="exact")


def test_certified_epsilon_is_a_little_above_the_estimate():
    proved = SMALL.epsilon(1e-3, method="certificate", samples=2**13)
    estimate = SMALL.epsilon(1e-3, method="estimate")
    assert estimate.value <= proved.upper <= 1.03 * estimate.value
    assert proved.failure_probability == 1e-9


def test_where_no_candidate_is_certified_more_samples_are_asked_for(monkeypatch):
    monkeypatch.setattr(dplib.balls_in_bins.certified, "_MARGINS", (-6.0,))
    with pytest.raises(ValueError, match="samples must be more to certify delta <= 0.000999999: no candidate up to"):
        SMALL.epsilon(1e-3, method="certificate", samples=2**12)


SIGNED = matrices.dense([[1.0, 0.0, 0.0], [-0.2, 1.0, 0.0], [0.6, 0.5, 1.0]], signed=True)


def test_entries_of_both_signs():
    """[N-K] |C| by default; C itself only for inputs that do not adapt, and only where C^T C >= 0."""
    array = SIGNED.entries()
    adaptive = dplib.BallsInBins(SIGNED, 1.0, 3, 1)
    oblivious = dplib.BallsInBins(SIGNED, 1.0, 3, 1, non_adaptive=True)
    np.testing.assert_allclose(adaptive.gram(), np.abs(array).T @ np.abs(array), rtol=1e-12)
    np.testing.assert_allclose(oblivious.gram(), array.T @ array, rtol=1e-12)
    assert oblivious.delta(1.0).value < 0.95 * adaptive.delta(1.0).value
    proved = oblivious.delta(1.0, method="certificate", samples=2**13)
    assert oblivious.delta(1.0).value < proved.upper < 1.1 * oblivious.delta(1.0).value
    with pytest.raises(ValueError, match="at least 0"):
        matrices.dense(array)
    with pytest.raises(ValueError, match="inner products of at least 0 for non_adaptive=True"):
        dplib.BallsInBins(
            matrices.dense([[1.0, 0.0], [-1.0, 1.0]], signed=True), 1.0, 2, 1, non_adaptive=True
        )


@pytest.mark.parametrize("epsilon, truth", [(0.0, 0.4223), (1.0, 0.17634)])
def test_the_example_with_a_negative_entry(epsilon, truth):
    """[N-A] The modes of |C| are attained by inputs of opposite sign."""
    training = dplib.BallsInBins(matrices.dense([[1.0, 0.0], [-1.0, 1.0]], signed=True), 1.0, 2, 1)
    np.testing.assert_array_equal(training.gram(), [[2.0, 1.0], [1.0, 1.0]])
    found = training.delta(epsilon, "remove")
    assert abs(found.value - truth) <= 4 * found.standard_error + 5e-5


# --- calibration -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("direction", ["remove", "add", "both"])
def test_exact_noise_is_the_smallest(direction):
    found = dplib.calibrate(IDENTITY, epsilon=1.0, delta=1e-4, direction=direction)
    assert found.delta(1.0, direction).upper <= 1e-4
    less = dataclasses.replace(found, noise_multiplier=found.noise_multiplier * (1 - 2e-5))
    assert less.delta(1.0, direction).upper > 1e-4
    if direction == "both":
        assert found == dplib.calibrate(IDENTITY, epsilon=1.0, delta=1e-4, direction="remove")


@pytest.mark.parametrize("delta", [1e-8, 0.2, 0.6])
def test_exact_noise_for_small_and_large_delta(delta):
    found = dplib.calibrate(IDENTITY, epsilon=0.5, delta=delta, method="exact")
    assert found.delta(0.5).upper == pytest.approx(delta, rel=2e-4) and found.delta(0.5).upper <= delta


def test_the_search_for_noise_walks_around_places_without_a_bracket():
    """Towards more noise and towards less; where nothing can be computed at all it says so."""

    def excess(x):
        if x > 1.6 or x < -1.6:
            raise NoBracketError("too far")
        return 1.55 - x

    for start, step in ((0.0, 0.5), (0.0, 1.5), (1.58, -0.1)):
        low, high = dplib.balls_in_bins.exact._ends(excess, start, step)
        assert low <= 1.55 <= high and excess(low) >= 0 >= excess(high)
    with pytest.raises(NoBracketError):
        dplib.balls_in_bins.exact._ends(excess, 2.0, 0.5)
    # Already on the other side: both ends are where the search began.
    assert dplib.balls_in_bins.exact._ends(excess, 1.58, 0.5) == (1.58, 1.58)


@pytest.mark.parametrize("direction", ["remove", "both"])
def test_estimated_noise_meets_the_target_by_estimate(direction):
    found = dplib.calibrate(SMALL, epsilon=1.0, delta=1e-5, direction=direction)
    assert type(found.noise_multiplier) is float and found.epochs == SMALL.epochs
    delta = found.delta(1.0, direction, seed=9)
    assert abs(delta.value - 1e-5) <= 6 * delta.standard_error
    exact = dplib.calibrate(IDENTITY, epsilon=1.0, delta=1e-5, direction=direction)
    lines = dplib.calibrate(IDENTITY, epsilon=1.0, delta=1e-5, direction=direction, method="estimate")
    assert lines.noise_multiplier == pytest.approx(exact.noise_multiplier, rel=3e-3)


def test_certified_noise_comes_with_its_certificate():
    found, proved = SMALL.certified(1.0, 1e-5, samples=2**14)
    estimate = dplib.calibrate(SMALL, epsilon=1.0, delta=1e-5, method="estimate")
    assert proved.upper + proved.failure_probability <= 1e-5 and proved.failure_probability == 1e-9
    assert 1 <= found.noise_multiplier / estimate.noise_multiplier <= 1.02
    assert dplib.calibrate(SMALL, epsilon=1.0, delta=1e-5, method="certificate", samples=2**14) == found


def test_what_a_search_spends_is_a_thousandth_of_a_small_delta():
    """[N-2.1s] Between 1e-6 and 0 the failure probability is delta / 1000, and is taken off delta."""
    found, proved = SMALL.certified(2.0, 1e-10, samples=2**15)
    assert proved.failure_probability == 1e-13 and proved.upper + proved.failure_probability <= 1e-10
    estimate = dplib.calibrate(SMALL, epsilon=2.0, delta=1e-10, method="estimate")
    assert 1 <= found.noise_multiplier / estimate.noise_multiplier <= 1.02


def test_options_of_sampling_are_refused_for_other_mechanisms():
    poisson = dplib.PoissonDPSGD(1.0, 0.01, 100)
    for name, value in (("seed", 3), ("samples", 100), ("failure_probability", 0.1)):
        with pytest.raises(ValueError, match=f"{name} must be left out"):
            dplib.calibrate(poisson, epsilon=1.0, delta=1e-5, **{name: value})
    with pytest.raises(ValueError, match="method must be one of"):
        dplib.calibrate(SMALL, epsilon=1.0, delta=1e-5, method="renyi")


def test_release_verifies_the_mechanism():
    """[N-2.1]"""
    room = dplib.calibrate(SMALL, epsilon=2.0, delta=5e-3)
    assert room.release(2.0, 1e-2, threshold=8e-3)
    assert not room.release(2.0, 4.5e-3, threshold=4e-3)
    with pytest.raises(ValueError, match="most_samples"):
        room.release(2.0, 1e-9)


# --- bad input -------------------------------------------------------------------------------------------

ARGUMENTS = {
    "encoder": matrices.identity(12),
    "noise_multiplier": 1.0,
    "batches_per_epoch": 4,
    "epochs": 3,
    "non_adaptive": False,
}


@pytest.mark.parametrize(
    "change, words",
    [
        # Batches that do not divide the rounds, an encoder of the wrong size.
        ({"batches_per_epoch": 5}, r"encoder must have one column for each round.*5 \* 3 = 15; got 12"),
        ({"encoder": matrices.identity(13)}, "encoder must have .* = 12; got 13"),
        ({"encoder": matrices.binary_tree(16)}, "encoder must have .* = 12; got 16"),
        ({"encoder": np.eye(12)}, "encoder must be an encoder"),
        ({"encoder": None}, "encoder must be an encoder"),
        ({"noise_multiplier": 0.0}, "noise_multiplier must be"),
        ({"noise_multiplier": math.nan}, "noise_multiplier must be"),
        ({"batches_per_epoch": 0}, "batches_per_epoch must be a whole number at least 1"),
        ({"batches_per_epoch": 1.5}, "batches_per_epoch must be a whole number"),
        ({"epochs": 0}, "epochs must be a whole number at least 1"),
        ({"epochs": "3"}, "epochs must be a whole number"),
        ({"non_adaptive": 1}, "non_adaptive must be True or False"),
    ],
)
def test_bad_mechanisms(change, words):
    with pytest.raises((ValueError, TypeError), match=words):
        dplib.BallsInBins(**ARGUMENTS | change)
    dplib.BallsInBins(**ARGUMENTS)


@pytest.mark.parametrize(
    "change, words",
    [
        ({"epsilon": -1.0}, "epsilon must be"),
        ({"epsilon": math.inf}, "epsilon must be"),
        ({"delta": 0.0}, "delta must be"),
        ({"delta": 1.0}, "delta must be"),
        ({"direction": "sideways"}, "direction must be one of"),
        ({"method": "renyi"}, "method must be one of"),
        ({"method": None}, "method must be one of"),
        ({"seed": -1}, "seed must be"),
        ({"samples": 1}, "samples must be"),
        ({"samples": 2.5}, "samples must be"),
        ({"method": "certificate", "failure_probability": 0.0}, "failure_probability must be"),
        ({"method": "certificate", "failure_probability": 1.0}, "failure_probability must be"),
        ({"method": "certificate", "samples": 100}, "samples must be"),
    ],
)
def test_bad_questions(change, words):
    for name in ("delta", "epsilon", "calibrate"):
        arguments = {
            "delta": {"epsilon": 1.0},
            "epsilon": {"delta": 1e-3},
            "calibrate": {"epsilon": 1.0, "delta": 1e-3},
        }[name]
        question = {
            "delta": SMALL.delta,
            "epsilon": SMALL.epsilon,
            "calibrate": lambda **rest: dplib.calibrate(SMALL, **rest),
        }[name]
        if set(change) & {"epsilon", "delta"} <= set(arguments):
            with pytest.raises((ValueError, TypeError), match=words):
                question(**arguments | change)


def test_a_budget_too_small_for_the_certificate_says_how_many_would_do():
    few = dplib.BallsInBins(matrices.identity(64), 1.0, 64, 1)
    with pytest.raises(ValueError, match=r"samples must be .*\d"):
        few.delta(1.0, "remove", "certificate", samples=1000)


def test_hopeless_noise_is_refused():
    for sigma in (1e-3, 1e-90):
        hopeless = dataclasses.replace(SMALL, noise_multiplier=sigma)
        with pytest.raises(NoBracketError, match="noise_multiplier .* too small"):
            hopeless.delta(1.0)
        with pytest.raises(NoBracketError, match="noise_multiplier .* too small"):
            hopeless.epsilon(1e-3)


def test_hardly_any_privacy_loss_is_below_the_floor():
    """Never 0: an upper end of 0 would be wrong."""
    one_batch = dplib.BallsInBins(matrices.identity(3), 2.0, 1, 3)
    assert one_batch.delta(300.0).upper == montecarlo.FLOOR
    for training in (SMALL, IDENTITY, one_batch):
        quiet = dataclasses.replace(training, noise_multiplier=1e4)
        for method in ("auto", "certificate"):
            assert quiet.delta(1.0, method=method).upper == montecarlo.FLOOR


def test_the_mechanism_is_a_value():
    copy = pickle.loads(pickle.dumps(SMALL))
    assert copy.delta(1.0).value == SMALL.delta(1.0).value
    assert "gram" not in repr(SMALL)
    gram = SMALL.gram()
    gram[0, 0] = 5.0
    assert SMALL.gram()[0, 0] != 5.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        SMALL.epochs = 5


def test_working_memory_does_not_grow_with_the_rounds():
    """Many rounds: the Gram matrix is all that is kept."""
    training = dplib.BallsInBins(matrices.optimal_counting(2**16, 64), 30.0, 64, 1024)
    assert training.gram().shape == (64, 64)
    assert training.delta(4.0, "remove", samples=256).value > 0


def test_hardly_any_noise_is_named_as_such():
    """Modes too long for a certificate in double precision are refused by the noise multiplier, not by the Gram matrix."""
    uneven = matrices.dense(np.diag([30.0, 1.0, 1.0, 1.0]))
    training = dplib.BallsInBins(uneven, 1.0, 4, 1)
    with pytest.raises(ValueError, match=r"noise_multiplier must be larger for a certificate .*; got 1.0"):
        training.delta(3.0, method="certificate")
    # Where delta is nearly 1 that is the answer.
    even = dplib.BallsInBins(matrices.dense(np.diag([30.0, 29.0, 31.0, 30.0])), 1.0, 4, 1)
    assert even.delta(3.0, method="certificate").upper == pytest.approx(1.0)


def test_an_estimate_with_too_few_lines_says_so(monkeypatch):
    training = dplib.BallsInBins(matrices.optimal_counting(128, bands=8), 2.0, 128, 1)
    assert training.delta(1.0, samples=2048).method == "lines"
    monkeypatch.setattr(dplib.balls_in_bins.importance_sampling, "_MOST", 2**11)
    found = training.delta(1.0)
    assert found.method == "lines; too few for a standard error of 1%"
    assert found.standard_error > 0.01 * found.value
