"""Errors of prefix sums, against B = A C^+ built densely, and by simulation."""

import math

import numpy as np
import pytest
from encoders import ENCODERS, each

from dplib import matrices, utility

LONG = {"long": matrices.toeplitz(matrices.optimal_counting(2100).coefficients)}


@each(ENCODERS | LONG)
def test_errors_are_row_norms_of_the_decoder(encoder):
    """[N-RMSE] sigma ||A C^+||_F / sqrt(n), and sigma times the largest row norm."""
    n = encoder.columns
    B = np.linalg.solve(encoder.entries().T, np.tri(n).T).T if encoder.rows == n else np.tri(n) @ np.linalg.pinv(encoder.entries())
    norms = np.linalg.norm(B, axis=1)
    assert utility.deviations(encoder, 2.5) == pytest.approx(2.5 * norms, rel=1e-11)
    assert utility.rmse(encoder, 2.5) == pytest.approx(2.5 * np.linalg.norm(B) / math.sqrt(n), rel=1e-11)
    assert utility.largest_error(encoder, 2.5) == pytest.approx(2.5 * np.max(norms), rel=1e-11)


def test_errors_whose_squares_leave_the_range_of_floats():
    """C^-1 of 1 + 2 v has entries up to 2^599; its prefix sums have the closed form (1 - (-2)^t) / 3."""
    growing = matrices.toeplitz(np.concatenate([[1.0, 2.0], np.zeros(598)]))
    shrunk = [(1 - (-2) ** t) // 3 / 2**600 for t in range(1, 601)]
    wanted = math.ldexp(math.sqrt(math.fsum((600 - t) * v * v for t, v in enumerate(shrunk)) / 600), 600)
    for encoder in (growing, matrices.dense(growing.entries())):
        assert utility.rmse(encoder) == pytest.approx(wanted, rel=1e-12)
        assert utility.largest_error(encoder) > wanted
    beyond = matrices.toeplitz(np.concatenate([[1.0, 2.0], np.zeros(1098)]))
    for encoder in (beyond, matrices.dense(beyond.entries())):
        with pytest.raises(ValueError, match="encoder must have an inverse within the range of floats"):
            utility.rmse(encoder)


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"decoder": "dyadic"}, "decoder must be 'pseudo-inverse' for this encoder, which is no tree; got 'dyadic'"),
        ({"encoder": ENCODERS["tall"], "decoder": "causal"}, "decoder must be 'pseudo-inverse' for this encoder"),
        ({"encoder": matrices.dense(np.ones((1, 2)), [1])}, "array must have full column rank"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(arguments, words):
    for function in (utility.deviations, utility.rmse, utility.largest_error):
        with pytest.raises(ValueError, match=words):
            function(**{"encoder": ENCODERS["identity"]} | arguments)
