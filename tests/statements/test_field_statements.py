"""Facts of the field, each checked by a route of its own: events, enumeration, a textbook formula, exact laws.

`test_statements.py` checks the same tags through the library's mixtures; here they are checked as statements about
any pair of laws, and at the numbers that the sources print.
"""

import itertools
import math

import numpy as np
import pytest
from domination_cases import discrete, stick
from hypothesis import example, given
from hypothesis import strategies as st
from property_cases import examples, logs
from scipy import fft, optimize, special

from dplib import accounting, gaussian, lattice, mixtures


def hockey_stick(first, second, alpha):
    return np.maximum(first - np.asarray(alpha) * second, 0).sum(axis=-1)


def laws(seed, count, outcomes=4, trials=2000):
    """`count` arrays of random laws, some of them with impossible outcomes."""
    rng = np.random.default_rng(seed)
    drawn = rng.dirichlet(np.full(outcomes, 0.6), size=(count, trials))
    drawn[:, : trials // 4, 0] = 0
    drawn[0, : trials // 8, 0] = 0.2  # P has mass where Q has none
    drawn /= drawn.sum(axis=-1, keepdims=True)
    return drawn, np.exp(rng.uniform(-2.5, 3, size=(trials, 1)))


def textbook(mu, epsilon):
    return special.ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * special.ndtr(-mu / 2 - epsilon / mu)


def test_hockey_stick_is_the_best_event():
    """[C-1] The largest P(E) - alpha Q(E) over all events is the sum of the positive parts."""
    (P, Q), alpha = laws(1, 2)
    events = np.array(list(itertools.product((0, 1), repeat=4)), float)
    best = ((P - alpha * Q) @ events.T).max(axis=1)
    assert np.allclose(best, hockey_stick(P, Q, alpha), rtol=0, atol=1e-14)


def test_trade_off_function_is_the_envelope_of_its_lines():
    """[C-1] The least second error at a level is the upper envelope of 1 - H_alpha - alpha * level."""
    levels, epsilons = np.linspace(0.002, 0.998, 300), np.linspace(-10, 10, 6000)
    for mu in (0.5, 1.5):
        deltas = np.array([gaussian.delta(mu, e) for e in epsilons])[:, None]
        envelope = (1 - deltas - np.exp(epsilons)[:, None] * levels).max(axis=0)
        exact = special.ndtr(special.ndtri(1 - levels) - mu)
        assert np.all(envelope <= exact + 1e-12) and np.all(envelope >= exact - 1e-5)


def test_loss_forms_of_the_hockey_stick():
    """[C-2] E(1 - alpha e^-L)_+ with L = +inf where Q = 0; and P(L > eps) - e^eps Q(L > eps)."""
    (P, Q), alpha = laws(3, 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        loss = np.where(P > 0, np.where(Q > 0, np.log(P / Q), np.inf), -np.inf)
    assert np.isposinf(loss).any()
    inverse = np.exp(-np.where(P > 0, loss, np.inf))
    expectation = (P * np.maximum(1 - alpha * inverse, 0)).sum(axis=1)
    above = loss > np.log(alpha)
    tails = (P * above).sum(axis=1) - alpha[:, 0] * (Q * above).sum(axis=1)
    exact = hockey_stick(P, Q, alpha)
    assert np.allclose(expectation, exact, rtol=0, atol=1e-13)
    assert np.allclose(tails, exact, rtol=0, atol=1e-13)
    assert np.all(exact <= (P * above).sum(axis=1) + 1e-14)  # delta is at most P(L > eps)


def test_the_two_values_of_a_pair_differ():
    """[C-3] P = (1, 0), Q = (0.9, 0.1): 0 in one order, 0.1 in the other, for every alpha >= 1/0.9."""
    P, Q = np.array([1.0, 0.0]), np.array([0.9, 0.1])
    for alpha in (1 / 0.9 + 1e-12, 2.0, 1e6):
        assert hockey_stick(P, Q, alpha) == 0 and hockey_stick(Q, P, alpha) == pytest.approx(0.1)
    sampled = mixtures.binomial(1, 0.3, 1.0)
    assert sampled.hockey_stick(0.2, "remove") > 3 * sampled.hockey_stick(0.2, "add")


@pytest.mark.parametrize("mu, printed", [(0.1, 0.3969), (0.05, 0.1892), (0.025, 0.0901)])
def test_printed_values_of_the_gaussian_mechanism(mu, printed):
    """[C-6] The unamplified labels of Figure 8 of Choquette-Choo et al. at delta = 1e-6, to every printed digit."""
    root = optimize.brentq(lambda epsilon: textbook(mu, epsilon) - 1e-6, 0, 5, xtol=1e-13)
    assert gaussian.epsilon(mu, 1e-6) == pytest.approx(root, rel=1e-8)
    assert round(root, 4) == printed
    assert gaussian.calibrate(root, 1e-6) == pytest.approx(mu, rel=1e-8)


def test_composition_needs_all_orders():
    """[C-7] Domination on alpha >= 1 alone does not survive two rounds, even at alpha = 1."""
    A, B = np.array([0.0, 1.0]), np.array([0.5, 0.5])
    P, Q = np.array([0.75, 0.25]), np.array([0.25, 0.75])
    alphas = np.linspace(1, 30, 3000)[:, None]
    assert np.all(hockey_stick(A, B, alphas) <= hockey_stick(P, Q, alphas) + 1e-14)
    twice = [hockey_stick(np.kron(x, x), np.kron(y, y), 1.0) for x, y in ((A, B), (P, Q))]
    assert twice == [0.75, 0.5]


def composed_gaussian(rounds, tilt, cells):
    """Losses and masses of Gaussian rounds with mu = 1 in all, composed by an FFT at this tilt."""
    spread = 1 / math.sqrt(rounds)
    step = spread / cells
    size = 2 * fft.next_fast_len(int(20 / step))
    losses = (np.arange(size) - size // 2) * step
    edges = np.append(losses - step / 2, losses[-1] + step / 2)
    masses = np.diff(special.ndtr((edges - spread**2 / 2) / spread))
    masses *= np.exp(tilt * np.clip(losses, -40 * spread, 40 * spread))
    total = masses.sum()
    wave = fft.rfft(np.fft.ifftshift(masses / total))
    live = np.sum(np.abs(np.append(wave, wave[1:-1])) ** (rounds - 1))
    sums = np.fft.fftshift(fft.irfft(wave**rounds, size))
    return losses, sums * np.exp(rounds * math.log(total) - tilt * losses), live


@pytest.mark.parametrize("rounds", [10, 1000, 100_000])
def test_numerical_floor_of_an_fft(rounds):
    """[C-10] Without a tilt the error is absolute, at most rounds * 2^-53 * K and not far below rounds * 2^-53."""
    errors, values = [], []
    for cells in (3.0, 3.1, 3.3, 3.6, 4.0):
        losses, plain, live = composed_gaussian(rounds, 0.0, cells)
        _, tilted, _ = composed_gaussian(rounds, 6.0, cells)
        for epsilon in (5.0, 7.0, 9.0):
            part = np.maximum(-np.expm1(np.minimum(epsilon - losses, 0)), 0)
            errors.append(abs(plain @ part - tilted @ part))
            values.append(tilted @ part / gaussian.delta(1.0, epsilon))
    unit = rounds * 2.0**-53
    assert 15 < live < 18  # 16.0 for a window of length 40
    assert 0.02 * unit < max(errors) < live * unit
    assert 1 < min(values) and max(values) < 2  # a coarse grid, but no noise: delta(9) is 1e-18


def test_no_floor_in_the_library():
    """[C-10] Both accountants hold a relative accuracy far below the floor, where an FFT has noise only."""
    sampled = [(mixtures.binomial(1, 0.01, 1.0), 2000)]
    for epsilon, power in ((8.0, 1e-20), (30.0, 1e-90)):
        by_contour = accounting.log_delta(sampled, epsilon, "remove", "contour")
        by_lattice = lattice.side_log_delta(sampled, epsilon, "remove", 1e-3)
        assert by_contour.upper < math.log(power)
        assert max(by_contour.lower, by_lattice.lower) <= min(by_contour.upper, by_lattice.upper)
        assert by_contour.width < 1e-9 and by_lattice.width < 0.1


@example(np.array([[0.9, 0.1], [0.2, 0.8], [0.85, 0.15], [0.25, 0.75]]), 1.0, 1.0)  # attained
@examples(60)
@given(discrete(4), logs(1e-6, 1), st.floats(0, 6))
def test_total_variation_lemma(laws, share, epsilon):
    """[R-3.4] |delta_M - delta_M'| <= (1 + e^eps) d on any laws; the factor is attained."""
    P, Q, to_p, to_q = laws
    P2, Q2 = (1 - share) * P + share * to_p, (1 - share) * Q + share * to_q
    alpha, d = math.exp(epsilon), 0.5 * max(np.abs(P - P2).sum(), np.abs(Q - Q2).sum())
    change = abs(stick(P, Q, alpha) - stick(P2, Q2, alpha))
    assert change <= (1 + alpha) * d * (1 + 1e-9) + 1e-14 * alpha
