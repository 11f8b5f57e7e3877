"""One factor of the contour integral on a line beside the real axis, where frequencies damp the integrand.

The integral of f(u) = base(u) e^{(c + iy) loss(u)} along u + ia is the one along u, as f is analytic in between. There the loss has the
imaginary part arg R(u + ia) >= 0, so that |f| falls as e^{-y arg R}:

E3  The trapezoid rule on the line v = a misses at most (N(0) + N(2a)) / (e^{2 pi a / h} - 1), and no frequency makes N(v) larger than it is
    at frequency 0: the same nodes serve all frequencies.
E2  |phi(y)| is at most the integral of |f| along any line, and that falls in y: what bounds one frequency bounds all above it. The rule
    finds this integral, too. |f(u + ia)| is e^F for a function F that is analytic, and F at u + ib is the mean of log f at heights
    a + b and a - b, of which the upper one turns the ratio by more: again no frequency makes it larger.

The argument of R increases in the height as long as no shift turns by more than a right angle: the largest shift times the height
of the upper line stays below 1.5. For losses that fall in u everything is mirrored: the lines are below the axis.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from .._base.log_space import EPS

_MOST_TURN = 1.5  # of the largest shift, below pi / 2
_MILD = 2.0  # sqrt of twice the exponent by which a power may raise the integrand on the upper line
_ALONE = 16  # so many frequencies are summed one by one
_MOST_LINES = 24


def line_of(nodes, halvings=0):
    """The line that serves all frequencies, or one nearer to the axis by so many halvings of its height."""
    return Line(nodes, nodes.quadrature.upper_line / 2 ** (1 + halvings))


def upper_line(family, c, strip):
    """The height 2a up to which no frequency makes the integrand larger, and the ratio's power not much, shape (rows, 1)."""
    mild = _MILD / np.sqrt(np.maximum(family.fall(c), 1e-12))
    return np.minimum(strip, np.minimum(_MOST_TURN / family.shift, mild)[:, None])


class Line:
    """The nodes of a family at the height `a`, shape (rows, 1): complex weights over M(c), and losses over their mean."""

    def __init__(self, nodes, a):
        self.nodes, self.a = nodes, a
        more, rise = nodes.family.turned(nodes.c, nodes.u, a)
        log_size = nodes.log_weights + a * a / 2 + more.real
        # Nodes that carry nothing are dropped, as on the axis.
        self.alive = (log_size > math.log(1e-19 / len(nodes.u))).any(axis=0)
        phase = more.imag - nodes.family.sign * a * nodes.u
        self.size = np.exp(log_size[:, self.alive])
        self.weights = self.size * np.exp(1j * phase[:, self.alive])
        self.loss = (nodes.loss - nodes.mean[:, None] + rise)[:, self.alive]

    @cached_property
    def _rounding_sums(self):
        """Weighted sums: what a small phase lets a weight's error do, what it does at most, the error of the loss."""
        nodes, a, keep = self.nodes, self.a, self.alive
        family, u, loss = nodes.family, nodes.u[keep], nodes.loss[:, keep]
        means = tuple(mean[:, keep] for mean in nodes.means)
        base, error = family.rounding(u, nodes.base[:, keep], loss, means)
        log_error, shift = family.log_error[:, None], family.shift[:, None]
        # A posterior weight that is off by a factor 1 + e moves the logarithm of the turned ratio by e a E|J| / (1 - k), about.
        terms = 8 + family.terms + shift * (np.abs(u) + shift)
        turned = 2 * a * sum(means) * (EPS * terms + log_error)
        size = base + log_error + abs(nodes.c) * (error + EPS * np.abs(loss)) + family.bend(nodes.c) * turned + EPS * (8 + np.abs(a * u))
        size, spread = self.size * size, np.abs(self.loss)
        each = self.size * (error + turned + 2 * EPS * spread)
        return (size * spread).sum(axis=1)[:, None], 2 * size.sum(axis=1)[:, None], each.sum(axis=1)[:, None]

    def rounding(self, y):
        """Bound on the rounding error of phi(y), shape (rows, n)."""
        near, far, each = self._rounding_sums
        return np.minimum(y * near, far) + y * each

    def integral(self, y):
        """The integral of |f| along the line as the rule finds it, shape (rows, n)."""
        return np.stack([np.exp(-y[:, None] * turn) @ size for size, turn in zip(self.size, self.loss.imag)])


def turned_sums(weights, loss, y):
    """sum w (e^{iy loss} - 1) at evenly spaced frequencies, shape (rows, n), with the digits of what is small.

    With y = s + t, e^{iyx} - 1 = (e^{isx} - 1)(e^{itx} - 1) + (e^{isx} - 1) + (e^{itx} - 1): few exponentials, and one matrix product.
    """
    return np.stack([_row(w, x, y) for w, x in zip(weights, loss)])


def _row(weights, loss, y):
    if len(y) <= _ALONE:
        return _turns(y, loss) @ weights
    count = math.isqrt(len(y))
    first, second = _turns(y[::count], loss) * weights, _turns(y[:count] - y[0], loss)
    sums = first @ second.T + first.sum(axis=1)[:, None] + second @ weights
    return sums.ravel()[: len(y)]


def _turns(y, loss):
    """e^{iy loss} - 1, shape (n, nodes), with the relative accuracy of both parts of the exponent: e^r cos x - 1 = (e^r - 1) - 2 e^r sin^2(x/2)."""
    half = 0.5 * y[:, None] * loss.real
    out = np.empty(half.shape, complex)
    sine = np.sin(half)
    np.cos(half, out=half)
    out.real, out.imag = -2 * sine * sine, 2 * sine * half
    if np.iscomplexobj(loss):
        fall = -y[:, None] * loss.imag
        out *= np.exp(fall)
        out.real += np.expm1(fall)
    return out


class LineDecay:
    """Bounds on |phi| from some frequency on, from the best of some lines."""

    def __init__(self, nodes):
        self.nodes, self._lines = nodes, {}

    def beyond(self, y):
        """Upper bounds on |phi| at all frequencies from y on, shape (rows, n); y increasing."""
        nodes = self.nodes
        # For a Gaussian loss the best height is y times its deviation.
        steps = float(nodes.quadrature.upper_line.max()) / 2 / max(float(y[0]) * float(nodes.deviation.max()), 1e-300)
        bound = np.ones((len(nodes.weights), len(y)))
        for halvings in range(1 + min(max(math.ceil(math.log2(steps)), 0), _MOST_LINES)):
            if halvings not in self._lines:
                self._lines[halvings] = line_of(nodes, halvings)
            bound = np.minimum(bound, self._lines[halvings].integral(y))
        # The rule for |f| has the upper line on both sides.
        error = 2 * nodes.quadrature.line_error
        return np.minimum(bound * (1 + 64 * EPS) + error[:, None], 1.0)

    modulus_bound = beyond

    def between(self, bounds, lengths):
        """Upper bounds on |phi| between each frequency and the next one, from those at all."""
        return bounds[:, :-1]
