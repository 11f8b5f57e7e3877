"""Studies: what is stored has the promised tables, agrees with the script that makes it, and with what is computed now."""

import json
import math

import numpy as np
import pytest
from folders import imported

import dplib
from dplib import encoder_baselines, matrices, optimize, utility
from dplib.lessons import studies
from dplib.lessons.studies import find

POINT = {"epochs", "batches_per_epoch", "epsilon", "method", "bands", "buffers", "rmse", "standard_error", "noise_multiplier", "kind", "best"}  # fmt: skip
TABLES = {
    "points": POINT,
    "encoders": {"epochs", "batches_per_epoch", "epsilon", "method", "buffers"},
    "histories": {"epochs", "batches_per_epoch", "epsilon", "method", "buffers", "rmse"},
    "certified": {"epochs", "batches_per_epoch", "epsilon", "method", "buffers", "estimate", "noise_multiplier", "rmse", "refused"},
    "samples": {"epochs", "batches_per_epoch", "epsilon", "samples", "rmse", "standard_error", "believed_rmse", "noise_multiplier"},
}  # fmt: skip
PLACE = ("epochs", "batches_per_epoch", "epsilon")


script = imported("tools", "study")


@pytest.fixture(scope="module")
def study():
    return studies.load("encoders")


# ------------------------------------------------------------------------- the stored file


def test_tables_and_columns(study):
    assert {"study", "about", "settings", "versions", "unfinished"} <= set(study)
    assert set(study) <= {"study", "about", "settings", "versions", "unfinished", *TABLES}
    for name, columns in TABLES.items():
        for row in study.get(name, []):
            assert columns <= set(row), (name, columns - set(row))
    assert {row["kind"] for row in study["points"]} <= {"exact", "certified", "estimate"}
    # One row for each place, method and number of bands or buffers.
    keys = [tuple(row[name] for name in (*PLACE, "method", "bands", "buffers")) for row in study["points"]]
    assert len(set(keys)) == len(keys)


LETTERS = script.letters_study


@pytest.mark.parametrize("name, about, settings, parts", [
    ("encoders", script.ABOUT, script.ENCODERS, script.encoder_parts),
    ("scaled", *script.scaled_study.STUDY[:3]), ("letters", LETTERS.ABOUT, LETTERS.SETTINGS, lambda: []),
])  # fmt: skip
def test_settings_are_those_of_the_script(name, about, settings, parts):
    study = studies.load(name)
    assert study["settings"] == json.loads(json.dumps(settings)) and study["about"] == about
    assert {"python", "numpy", "scipy", "jax", "dplib"} <= set(study["versions"])
    assert set(study["unfinished"]) <= {part for part, _ in parts()}


def test_the_best_number_of_bands_is_marked(study):
    places = {tuple(row[name] for name in PLACE) for row in find(study["points"], method="poisson")}
    for place in places:
        for method in ("unamplified", "poisson", "balls in bins"):
            rows = find(study["points"], **dict(zip(PLACE, place)), method=method)
            [best] = [row for row in rows if row["best"]]
            assert best["rmse"] == min(row["rmse"] for row in rows) and find(rows, bands=1)


def test_order_of_the_methods(study):
    """[N-5] Bins never cost anything; optimised encoders are not worse than those of the baselines."""
    for row in find(study["points"], method="toeplitz"):
        place = {name: row[name] for name in PLACE}
        slack = 1 + 4 * row["standard_error"] / row["rmse"]
        for other in find(study["points"], **place):
            if other["method"] in ("unamplified", "balls in bins", "buffered"):
                allowed = slack + 4 * other["standard_error"] / other["rmse"]
                assert row["rmse"] <= other["rmse"] * allowed * 1.001, other
    for row in study.get("certified", []):
        if row["refused"] is None:
            assert row["estimate"] <= row["noise_multiplier"] * 1.001
            assert row["failure_probability"] <= study["settings"]["delta"]


# ------------------------------------------------------------------------- computed again


AGAIN = [
    (encoder_baselines.unamplified, "unamplified", 1),
    (encoder_baselines.unamplified, "unamplified", 2048),
    (encoder_baselines.banded_poisson, "poisson", 16),
    (encoder_baselines.banded_balls_in_bins, "balls in bins", 1),
    (encoder_baselines.banded_balls_in_bins, "balls in bins", 64),
]


@pytest.mark.parametrize("function, method, bands", AGAIN)
def test_baselines_computed_again(study, function, method, bands):
    """Exact and certified rows to 2e-5, estimates to four standard errors of the difference."""
    setting = {"epochs": 16, "batches_per_epoch": 128, "epsilon": 4.0}
    [row] = find(study["points"], **setting, method=method, bands=bands)
    found = function(**setting, delta=1e-5, bands=bands)
    error = math.hypot(found.standard_error or 0, row["standard_error"] or 0)
    assert row["kind"] == found.kind and (found.kind == "estimate") == (error > 0)
    assert abs(found.objective - row["rmse"]) <= 4 * error + 2e-5 * row["rmse"]


def test_an_optimised_encoder_computed_again(study):
    """Minima agree to 0.1%, whatever way led to them."""
    setting = {"epochs": 16, "batches_per_epoch": 32, "epsilon": 4.0}
    rows = find(study["points"], **setting, method="toeplitz")
    if not rows:
        pytest.skip("that section of the study is unfinished")
    found = optimize.optimize("toeplitz", **setting, delta=1e-5, seed=3)
    assert float(found.objective) == pytest.approx(rows[0]["rmse"], rel=1e-3)


# ------------------------------------------------------------------------- the module and the script


def test_load_and_find(study):
    assert "encoders" in studies.names()
    assert find(study["points"], epsilon=1.0, method="poisson", bands=1)[0]["kind"] == "certified"
    assert find(study["points"], epsilon=-1.0) == []
    with pytest.raises(ValueError, match="no row of the table has a value named 'epsilom'"):
        find(study["points"], epsilom=1.0)
    for name, error in (("encoder", ValueError), (None, TypeError), ("../encoders", ValueError)):
        with pytest.raises(error, match="name must be one of"):
            studies.load(name)


# ------------------------------------------------------------------------- the study of scales


def test_the_study_of_scales():
    """Scales gain in every row, by as much as other code found at the main setting."""
    study = studies.load("scaled")
    errors = {}
    for row in study["points"]:
        place = tuple(row[name] for name in ("sampling", "kind", *PLACE))
        errors[*place, row["bands"], row["scales"]] = row["rmse"]
    for (*place, scales), error in errors.items():
        assert scales == "none" or error < errors[*place, "none"]
    expected = {
        "rows": (143.91, 77.12, 41.704, 22.952, 13.017, 7.723, 4.811),
        "both": (None, None, 41.527, 22.774, 12.886, 7.617, 4.732),
    }
    for scales, values in expected.items():
        for epsilon, value in zip(script.scaled_study.EPSILONS, values):
            found = errors["balls in bins", "estimate", 16, 128, epsilon, None, scales]
            assert value is None or found == pytest.approx(value, rel=2.5e-3)
            assert 1 < errors["balls in bins", "certified", 16, 128, epsilon, None, scales] / found < 1.005
    assert errors["poisson", "certified", 16, 128, 1.0, 5, "rows"] == pytest.approx(43.27, rel=1e-3)


def test_noise_of_scaled_bands():
    """[M-D] One band, no scales: Poisson DP-SGD. Scales that fall: no column is longer than its slot says."""
    base = encoder_baselines.without_amplification(64, bands=4)
    rows = [1.5] * 30 + [1.0] * 34
    mechanism = script.scaled_study.cyclic(base, np.array(rows), 16)
    lengths = np.repeat(mechanism.lengths, 4)
    assert np.all(matrices.scaled(base, rows).column_norms() <= lengths * (1 + 1e-12)) and mechanism.rate == 1 / 4
    plain = script.scaled_study.cyclic(matrices.identity(64), np.ones(64), 16)
    spent = [m.delta(1.0).upper for m in (plain, dplib.PoissonDPSGD(1.0, 1 / 16, 64))]
    assert spent[0] == pytest.approx(spent[1], rel=1e-9)


def test_scales_for_known_batches():
    """As was found by other code at 8 epochs of 8 batches: 3.4 to 3.5% less error, and no scales do better."""
    base = encoder_baselines.unamplified(epsilon=1.0, delta=1e-5, epochs=8, batches_per_epoch=8).encoder
    product = lambda rows: (
        utility.rmse(matrices.scaled(base, rows))
        * np.sqrt(np.diag(dplib.BallsInBins(matrices.scaled(base, rows), 1.0, 8, 8).gram()).max())
    )
    rows, rng = script.scaled_study.known_rows(base, 8), np.random.default_rng(0)
    assert -0.036 < product(rows) / product(np.ones(64)) - 1 < -0.034
    for _ in range(20):
        assert product(rows * np.exp(rng.normal(0, 0.01, 64))) > product(rows) * (1 - 1e-6)


# ------------------------------------------------------------------------- the study of letters


def test_the_study_of_letters():
    """The rate is the one that does best on pictures held back, and no run has fewer seeds."""
    study, letters = studies.load("letters"), LETTERS
    for epsilon in letters.EPSILONS:
        tuning = find(study["tuning"], epsilon=epsilon)
        assert {(row["learning_rate"], row["scheme"]) for row in tuning} == {(r, s) for r in letters.RATES for s in letters.TUNED}
        sums = {rate: sum(sum(row["accuracies"]) for row in tuning if row["learning_rate"] == rate) for rate in letters.RATES}
        runs = find(study["runs"], epsilon=epsilon)
        assert [row["scheme"] for row in runs] == [row["scheme"] for row in find(study["noise"], epsilon=epsilon)] == list(letters.SCHEMES)
        assert {row["learning_rate"] for row in runs} == {max(sums, key=sums.get)}
        assert {len(row["accuracies"]) for row in runs} == {letters.SEEDS}
