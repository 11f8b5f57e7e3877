"""Errors of the probabilities, made visible: every accountant's bracket covers the error that a mixture states.

Such errors are a few units in the last place otherwise, and no test would miss their allowance.
"""

import numpy as np
import pytest

from dplib import accounting, contour, lattice, mixtures, renyi
from dplib._base.log_space import EPS
from dplib.accounting.contour_nodes import Family, nodes_for
from dplib.mixtures import Mixture

SIZE = 3e-6
GROUP = mixtures.binomial(3, 0.1, 1.0)
SKEWED = mixtures.Mixture([0.0, 0.7, 2.0], [0.5, 0.4, 0.1], 1.2)


def disturbed(mixture, sign):
    """The mixture with log probabilities that are off by about SIZE, towards larger sensitivities or away from them."""
    log_p = mixture.log_probabilities + sign * SIZE * np.linspace(-1, 1, len(mixture.shifts))
    found = Mixture._from_logs(mixture.noise_multiplier, mixture.sensitivities, log_p, 0.0)
    error = float(np.abs(found.log_probabilities - mixture.log_probabilities).max()) + 4 * EPS
    return Mixture._from_logs(mixture.noise_multiplier, mixture.sensitivities, log_p, error)


ROUTES = {
    "contour": lambda mixture, direction: contour.side_log_delta([(mixture, 200)], 1.0, direction),
    "contour, two kinds": lambda mixture, direction: contour.side_log_delta(
        [(mixture, 100), (mixtures.binomial(3, 0.12, 1.0), 100)], 1.0, direction
    ),
    "lattice": lambda mixture, direction: lattice.side_log_delta([(mixture, 3)], 0.5, direction, 3e-6),
    "one round": lambda mixture, direction: accounting.log_delta([(mixture, 1)], 0.1, direction),
    "Renyi": lambda mixture, direction: renyi.divergence(mixture, 3.0, direction),
}


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("mixture", [GROUP, pytest.param(SKEWED, marks=pytest.mark.trust)], ids=["group", "skewed"])
def test_brackets_cover_the_error_that_a_mixture_states(route, direction, sign, mixture):
    exact, found = (ROUTES[route](m, direction) for m in (mixture, disturbed(mixture, sign)))
    assert found.lower <= exact.upper and exact.lower <= found.upper
    middle = lambda bracket: (bracket.lower + bracket.upper) / 2
    # It would not be covered without the allowance.
    assert abs(middle(found) - middle(exact)) > 0.51 * exact.width


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize("mixture", [GROUP, SKEWED], ids=["group", "skewed"])
def test_transforms_of_one_round_cover_it(direction, mixture):
    """The transform itself, at each frequency, over its own moment."""
    y, sign = np.geomspace(0.01, 20, 40), 1 if direction == "remove" else -1
    found, exact = (nodes_for(Family([m], [1], sign), 0.7, 0.7, 0.7, 20.0) for m in (disturbed(mixture, 1), mixture))
    (first, distance), (second, _) = (nodes.log_characteristic(y) for nodes in (found, exact))
    error = np.abs(np.exp(first[0] + 1j * y * found.mean[0]) - np.exp(second[0] + 1j * y * exact.mean[0]))
    assert np.all(error <= found.characteristic_rounding(y, distance)[0] + 1e-13)
    assert error.max() > 1e-8
