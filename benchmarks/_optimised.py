"""Toeplitz encoders with all coefficients free, optimised for prefix sums under balls in bins.

Minimised is log sigma(C) + log ||A C^-1||: the noise multiplier that a privacy target asks for, times
the error that noise of size 1 has. Along a change of C that keeps delta,

    d log sigma = <D, dG> / (2 <D, G>),     D = d delta / d G,

with G the Gram matrix of the modes. D comes from the lines of the estimator, with the same draws for
every C, so that the function minimised is smooth.
"""

import functools
import math

import numpy as np

from dplib import _importance, matrices

LINES, ITERATIONS = 1024, 10


@functools.cache
def optimised(rounds, batches, epsilon, delta):
    """The encoder; about a dozen evaluations of sigma, some seconds."""
    from scipy.optimize import minimize

    # Variables of like size: the coefficients fall about like 1 / lag.
    scale = np.sqrt(np.arange(1, rounds) + 1)

    def objective(scaled):
        c = np.append(1.0, scaled / scale)
        first = modes(c, batches)
        log_sigma, pull = log_noise(first.T @ first, epsilon, delta)
        error, slope = log_error(c)
        slope += gram_gradient(c, pull, batches)
        return log_sigma + error, slope[1:] / scale

    start = matrices.optimal_counting(rounds, batches // 4).coefficients[1:] * scale
    options = {"maxiter": ITERATIONS, "ftol": 1e-5, "maxls": 5}
    found = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=[(0, None)] * len(start), options=options)
    return matrices.toeplitz(np.append(1.0, found.x / scale))


def log_noise(gram, epsilon, delta):
    """(log sigma, d log sigma / d gram)."""
    sigma, _ = _importance.solve_scale(gram, epsilon, delta, "remove", relative_error=0.01)
    estimator = _importance.Estimator(gram / sigma**2, epsilon, "remove")
    pull = estimator.gradient(np.random.default_rng(0), LINES)
    return math.log(sigma), pull / np.vdot(pull, gram) / 2


def modes(c, batches):
    """Columns m_0 ... m_{b-1}, shape (n, b): m_0 by its recursion, the others are it shifted."""
    n = len(c)
    first = c.copy()
    for start in range(batches, n, batches):
        first[start : start + batches] += first[start - batches : start]
    shifted = np.zeros((n, batches))
    for j in range(batches):
        shifted[j:, j] = first[: n - j]
    return shifted


def gram_gradient(c, weights, batches):
    """d <weights, G(c)> / d c for symmetric weights of shape (b, b)."""
    n = len(c)
    pulled = modes(c, batches) @ weights
    # Entry (t, j) belongs to the coefficients t - j, t - j - b, t - j - 2b, ... that are at least 0.
    by_lag = np.array([np.trace(pulled, offset=-d) for d in range(n)])
    gradient = by_lag.copy()
    for start in range(n - batches - 1, -1, -1):
        gradient[start] += gradient[start + batches]
    return 2 * gradient


def log_error(c):
    """log ||A C^-1|| (Frobenius) and its gradient."""
    n = len(c)
    inverse = _reciprocal(c)
    sums = np.cumsum(inverse)
    weighted = (n - np.arange(n)) * sums
    square = weighted @ sums
    # d sums = -(sums * inverse * dc) as power series; the gradient is a correlation.
    product = _convolve(sums, inverse, n)
    return 0.5 * math.log(square), -_convolve(weighted[::-1], product, n)[::-1] / square


def _convolve(x, y, n):
    size = 2 ** math.ceil(math.log2(2 * n))
    return np.fft.irfft(np.fft.rfft(x, size) * np.fft.rfft(y, size), size)[:n]


def _reciprocal(c):
    """First len(c) coefficients of 1 / c(x), by Newton's iteration."""
    n, series = len(c), np.array([1 / c[0]])
    while len(series) < n:
        size = min(2 * len(series), n)
        correction = -_convolve(_convolve(c[:size], series, size), series, size)
        correction[: len(series)] += 2 * series
        series = correction
    return series
