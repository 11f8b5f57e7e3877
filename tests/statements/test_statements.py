"""Statements of the theorem index, each checked by a route of its own: enumeration, quadrature, exact fractions.

The tests of a module check that module; these check that the theorem is true of the numbers.
"""

import dataclasses
import itertools
import math
from collections import Counter

import dp_accounting
import numpy as np
import pytest
from dp_accounting.rdp import RdpAccountant
from oracle_cases import load
from scipy import special

import dplib
from dplib import accounting, gaussian, mixtures
from dplib.lessons import baselines

DIRECTIONS = ("remove", "add")
EPSILONS = (0.0, 0.1, 0.4, 1.0)
X = np.linspace(-14.0, 16.0, 30001)
STEP = X[1] - X[0]
FIGURES = load("group_figures")


def hockey_stick(first, second, epsilon):
    return np.maximum(first - math.exp(epsilon) * second, 0).sum() * STEP


def both(with_group, without, epsilon, direction):
    """Divergence of two densities on X, remove or add."""
    pair = (with_group, without) if direction == "remove" else (without, with_group)
    return hockey_stick(*pair, epsilon)


@pytest.mark.parametrize("mu", [0.2, 1.0, 3.0])
def test_gaussian_mechanism(mu):
    """[C-6] The formula is the integral, in both directions; rounds add in squares."""
    shifted, centred = (np.exp(-((X - m) ** 2) / 2) / math.sqrt(2 * math.pi) for m in (mu, 0.0))
    for epsilon in EPSILONS:
        formula = special.ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * special.ndtr(
            -mu / 2 - epsilon / mu
        )
        assert gaussian.delta(mu, epsilon) == pytest.approx(formula, rel=1e-9, abs=1e-14)
        for direction in DIRECTIONS:
            assert both(shifted, centred, epsilon, direction) == pytest.approx(formula, abs=1e-7)
        rounds = [(mixtures.Mixture([1.0], [1.0], 1 / mu), 3), (mixtures.Mixture([2.0], [1.0], 1 / mu), 1)]
        assert gaussian.delta(mu * math.sqrt(7), epsilon) in accounting.delta(rounds, epsilon)


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("epsilon", [0.2, 0.8])
def test_losses_of_two_rounds_add(direction, epsilon):
    """[C-7] delta of two rounds = average over the first loss of the second round's delta at what is left."""
    first, second = mixtures.binomial(2, 0.3, 1.0), mixtures.hypergeometric(4, 12, 2, 3.0)
    loss = first.loss(X) if direction == "remove" else -first.loss(X)
    law = first.density(X) if direction == "remove" else first.reference_density(X)
    expected = (law * second.hockey_stick(epsilon - loss, direction)).sum() * STEP
    for method in ("contour", "lattice"):
        try:
            bracket = accounting.delta([(first, 1), (second, 1)], epsilon, direction, method=method)
        except dplib.NoBracketError:
            assert method == "contour"  # two rounds are few for it
            continue
        assert bracket.lower * (1 - 1e-7) <= expected <= bracket.upper * (1 + 1e-7)


@pytest.mark.parametrize("sharpened", [False, True])
def test_black_box_value_solves_its_equation_and_exceeds_the_truth(sharpened):
    """[G-1.1] The value reported for a group meets the target, barely, and is an upper bound."""
    one, k, delta = dplib.PoissonDPSGD(2.0, 0.02, 300), 3, 1e-5
    value = baselines.group_lemma(one, delta, k, sharpened=sharpened)
    growth = lambda e: math.expm1(k * e) / math.expm1(e) if sharpened else k * math.exp(k * e)
    e = value / k
    assert one.delta(e).upper * growth(e) <= delta * (1 + 1e-9)
    assert one.delta(e * (1 - 1e-6)).upper * growth(e * (1 - 1e-6)) > delta
    assert value > dataclasses.replace(one, group_size=k).epsilon(delta).upper


def test_adjacency_grows_with_the_group_and_covers_both_directions():
    """[G-2.5] Up to k records: larger groups lose more, and `both` is the larger direction."""
    previous = 0.0
    for k in (1, 2, 5):
        run = dplib.PoissonDPSGD(1.5, 0.05, 100, group_size=k)
        remove, add, larger = (run.epsilon(1e-5, d) for d in ("remove", "add", "both"))
        assert larger.upper == max(remove.upper, add.upper) and larger.lower > previous
        previous = larger.upper


def subsets(records):
    return itertools.chain.from_iterable(itertools.combinations(records, r) for r in range(len(records) + 1))


@pytest.mark.parametrize("value", FIGURES, ids=lambda v: v["id"])
def test_points_of_both_figures(value):
    """[G-4] Points of figures 1 and 2, computed elsewhere, lie in the brackets of both directions."""
    if value["mechanism"] == "poisson":
        run = dplib.PoissonDPSGD(value["sigma"], 0.01, 2000, value["k"])
    else:
        run = dplib.FixedBatchDPSGD(value["sigma"], 500, 50_000, 2000, value["k"])
    for direction in DIRECTIONS:
        bracket, expected = run.epsilon(1e-6, direction), value[f"epsilon_{direction}"]
        slack = expected * max(value["relative_bound"], 1e-9)
        assert bracket.lower - slack <= expected <= bracket.upper + slack
        assert bracket.relative_width < 1e-6


@pytest.mark.parametrize(
    "one, k",
    [
        (dplib.FixedBatchDPSGD(2.0, 1, 1000, 1), 1000),
        (dplib.PoissonDPSGD(0.5, 1e-3, 1), 2),
        (dplib.PoissonDPSGD(0.3, 0.01, 2000), 2),
    ],
)
def test_linear_extrapolation_is_not_a_lower_bound(one, k):
    """[G-4L] Three settings in which a group of k loses less than k times one record, but not less than one."""
    group = dataclasses.replace(one, group_size=k).epsilon(1e-6)
    single = one.epsilon(1e-6)
    assert group.upper < k * single.lower
    assert group.upper < baselines.linear_extrapolation(one, 1e-6, k)
    assert group.lower >= single.lower * (1 - 1e-9)


def test_linear_extrapolation_is_not_an_upper_bound_either():
    """[G-4L] In figure 1 the group loses more than the line says."""
    one = dplib.PoissonDPSGD(1.0, 0.01, 2000)
    assert dataclasses.replace(one, group_size=9).epsilon(1e-6).lower > baselines.linear_extrapolation(
        one, 1e-6, 9
    )


def test_first_group_for_which_dp_accounting_answers_infinity():
    """[G-1.1] The sharpened and the raw lemma on the Renyi accountant that TensorFlow Privacy uses: k = 9 and 8."""
    event = dp_accounting.PoissonSampledDpEvent(0.01, dp_accounting.GaussianDpEvent(1.0))
    accountant = RdpAccountant().compose(event, 2000)

    def answer(growth):
        """The largest delta_1 with delta_1 growth(e) <= delta, from above; infinite if there is none."""
        asked, e = math.log(1e-6), 0.0
        while math.isfinite(e):
            e, previous = accountant.get_epsilon(math.exp(asked)), e
            if e <= previous * (1 + 1e-6):
                break
            asked = math.log(1e-6) - growth(e)
        return e

    sharpened = lambda k: lambda e: (k - 1) * e + math.log(math.expm1(-k * e) / math.expm1(-e))
    raw = lambda k: lambda e: math.log(k) + k * e
    one = dplib.PoissonDPSGD(1.0, 0.01, 2000)
    for form, first in ((sharpened, 9), (raw, 8)):
        assert math.isinf(answer(form(first)))
        last = (first - 1) * answer(form(first - 1))
        assert math.inf > last > baselines.group_lemma(one, 1e-6, first - 1, sharpened=form is sharpened)


def test_product_mixture_by_enumeration():
    """[M-4.2] The support and the probabilities of sum_j c_j Bern(p_j), set by set."""
    c, p = (1.0, 0.5, 2.0, 0.5), (0.1, 0.4, 0.25, 0.7)
    law = Counter()
    for chosen in subsets(range(4)):
        law[sum(c[j] for j in chosen)] += math.prod(p[j] if j in chosen else 1 - p[j] for j in range(4))
    pair = mixtures.product(p, c, 1.3)
    assert list(pair.sensitivities) == pytest.approx(sorted(law))
    assert list(pair.probabilities) == pytest.approx([law[s] for s in sorted(law)])
