"""Upper confidence bounds on the mean of independent samples in [0, bound].

Each holds with probability at least 1 - failure_probability for *every* law of the samples, and
not only in the limit of many of them. `betting` is the sharpest here, by far where the
standard deviation is small against the bound:

    excess over the mean     betting             about max(sqrt(2 v l / n), bound l / n), at least bound l / n
                             maurer_pontil       sqrt(2 v l' / n) + 7 bound l' / (3 (n - 1))
                             chernoff_hoeffding  what a coin of the same mean, times bound, would need

with v the variance, l = log(1 / failure_probability) and l' = log(2 / failure_probability).
The samples must be independent draws of one law: stratified, antithetic or
quasi-random points void all three.
"""

from __future__ import annotations

import math

import numpy as np

from .._base.lazy_scipy import optimize

# Relative, and absolute in the logarithm of the capital: far above the rounding of sums of 2^30 terms.
_ALLOWANCE = 1e-9
_CAPITAL_ALLOWANCE = 1e-6
_BETS = np.concatenate([np.geomspace(1e-4, 0.3, 24), np.linspace(0.35, 0.98, 10)])


def betting(samples, bound, failure_probability, bet):
    """Upper bound on the mean from the capital of a gambler who bets against it.

    For a candidate mean m the capital prod_t (1 - bet (x_t - m)), x = samples / bound, has expectation at
    most 1 whenever the true mean is at least m. By Ville's inequality it reaches 1/failure_probability with
    probability at most failure_probability. It grows with m: the bound is where it crosses.

    samples : shape (n,), in [0, bound]. bet : in (0, 1), chosen without looking at these samples (`choose_bet`).

    Returns a float, at most `bound`. Cost: about ten passes over the samples.
    """
    scaled = np.asarray(samples) / bound
    needed = (-math.log(failure_probability) + _CAPITAL_ALLOWANCE) / len(scaled)
    return min(float(bound), bound * _crossing(scaled, needed, bet) * (1 + _ALLOWANCE))


def choose_bet(pilot, samples, failure_probability):
    """The bet in (0, 1) that gives the least bound for `samples` samples like those of the pilot, and that bound.

    pilot : shape (m,), samples in [0, 1] other than those to be certified.
    """
    needed = -math.log(failure_probability) / samples
    found = [(_crossing(pilot, needed, bet), bet) for bet in _BETS]
    value, bet = min(found)
    return float(bet), value


def _crossing(scaled, needed, bet):
    """The least m <= 1, rounded up, with mean log(1 + bet (m - x)) >= needed; 1 where there is none."""

    def missing(mean):
        return needed - float(np.log1p(bet * (mean - scaled)).mean())

    if missing(1.0) >= 0:
        return 1.0
    # log(1 + x) <= x: the first point is left of the crossing. The function is concave and increases,
    # so that every step of Newton's method stays left of it and comes closer.
    mean = min(1.0, float(scaled.mean()) + needed / bet)
    for _ in range(60):
        slope = float((bet / (1 + bet * (mean - scaled))).mean())
        step = missing(mean) / slope
        mean = min(1.0, mean + step)
        if step <= _ALLOWANCE * mean:
            break
    right = _ALLOWANCE
    while missing(min(1.0, mean * (1 + right))) > 0:
        right *= 2
    return min(1.0, mean * (1 + right))


def maurer_pontil(samples, bound, failure_probability):
    """Empirical Bernstein bound (Maurer and Pontil 2009) for the mean of n >= 2 samples in [0, bound]."""
    scaled = np.asarray(samples) / bound
    count, log_term = len(scaled), math.log(2 / failure_probability)
    variance = float(scaled.var(ddof=1)) * (1 + _ALLOWANCE)
    mean = float(scaled.mean()) * (1 + _ALLOWANCE)
    value = mean + math.sqrt(2 * variance * log_term / count) + 7 * log_term / (3 * (count - 1))
    return min(float(bound), bound * value * (1 + _ALLOWANCE))


def chernoff_hoeffding(mean, samples, failure_probability):
    """The largest p with samples * kl(mean, p) <= log(1/failure_probability): for samples in [0, 1].

    mean : their average. It needs nothing else, and cannot use a small variance.
    """
    excess = lambda p: relative_entropy(mean, p) + math.log(failure_probability) / samples
    if mean == 1 or excess(1 - 2.0**-53) <= 0:
        return 1.0
    # The allowance is far above what the root may be off.
    root = optimize.brentq(excess, mean, 1 - 2.0**-53, xtol=1e-300, rtol=_ALLOWANCE / 8)
    return min(1.0, root * (1 + _ALLOWANCE))


def highest_mean(samples, failure_probability):
    """Upper bound on the mean of samples in [0, 1] from their average alone, however few of them decide."""
    return chernoff_hoeffding(min(float(samples.mean()), 1.0), len(samples), failure_probability)


def named(method, samples, error, wanted):
    """The method of an estimate that says where draws were too few for the relative standard error that was wanted.

    samples : the number that was asked for, None where the draws chose it. error : the one that came out.
    """
    return f"{method}; too few for a standard error of {100 * wanted:g}%" if samples is None and error > wanted else method


def relative_entropy(x, y):
    """kl(x, y) = x log(x/y) + (1 - x) log((1-x)/(1-y)), of two coins; infinite where y cannot produce x."""
    if x == y:
        return 0.0
    first = 0.0 if x == 0 else (math.inf if y == 0 else x * math.log(x / y))
    second = 0.0 if x == 1 else (math.inf if y == 1 else (1 - x) * (math.log1p(-x) - math.log1p(-y)))
    return first + second
