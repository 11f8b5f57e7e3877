"""Balls in bins with orthogonal modes of equal norm: delta as a bracket, without sampling [A-16].

For Gamma = d I the likelihood ratio is w = (X_1 + ... + X_b) / b with independent
X_j = exp(sqrt(d) Z_j - d/2) under Q, and
  remove  delta = E[(w - e^eps)_+],      add  delta = E[(1 - e^eps w)_+].
In units where the strike is one (X_j divided by b e^eps, or by b e^-eps) both are a
constant times E[f(S)] with S = sum_j X_j and f(S) = (g (S - 1))_+, g = +1 or -1.

X_j is moved to a grid with spacing h = 1/n by mean-preserving splitting: from x in a
cell [lo, hi] to T = hi with probability (x - lo) / h, else to T = lo.
  upper  f is convex in every coordinate and E[T_j | X_j] = X_j:  E f(S) <= E f(T).
  lower  tangent at T:  E f(S) >= E f(T) + E[f'(T) sum_j (X_j - T_j)].
Both miss by about b h^2 / 12 times the density of S at the strike, and need only one
law: the split masses u_i, and the defects s_i = E[X - T; T = x_i].

Remove: once some X_j exceeds the strike, f is linear, and that part has a closed form.
Add: f is zero there. What is left lives on [0, 1]. It is tilted by e^{g theta x} to
the strike, and the b-fold sums come from one discrete Fourier transform with period
Lambda. The payoff is summed over all periods, so that the transform returns exactly
sum_m e^{-m theta Lambda} E(Y + m Lambda)_+, Y = g (S - 1): an upper bound as it stands;
for the lower one the terms m != 0 are subtracted, bounded by Chernoff at other tilts.

The sums over the grid are taken among the frequencies, where payoff and masses are
multiplied. Rounding: relative allowances for masses and transform (`lognormal_grid`).
"""

from __future__ import annotations

import math

import numpy as np

from .. import gaussian
from .._base import validate as check
from .._base.lazy_scipy import optimize, special
from .._base.log_space import EPS
from ..gaussian import LOG_SQRT_2PI
from ..results import Bracket, NoBracketError
from .lognormal_grid import Law, Sum, TooLarge

# Below this a bracket is [0, FLOOR]: still a valid upper bound.
FLOOR = 1e-300
_METHOD = "sum of lognormals"
# What is cut off is about e^-26 = 5e-12 of the answer.
_CUT = 26.0
_CLOSE = 1e-6  # relative, of the root that an epsilon is looked for with


def bracket(bins, norm_squared, epsilon, side, tolerance=1e-4) -> Bracket:
    """Bracket of delta at `epsilon` for balls in bins with Gram matrix norm_squared * I.

    Parameters
    ----------
    bins : batches per epoch b, a whole number at least 2.
    norm_squared : squared norm d of every mode in units of the noise, above 0
        (for C = I with E epochs: E / sigma^2).
    epsilon : at least 0.
    side : "remove" (the mixture against the noise) or "add".
    tolerance : in [1e-7, 0.1]; the bracket is at most this wide, relative to its upper end.

    Below FLOOR = 1e-300 the answer is [0, FLOOR]. The arguments were checked by the mechanism. Raises
    NoBracketError where the grid would become too large. Cost: 2 to 40
    milliseconds at the default tolerance for 128 bins; the grid grows like sqrt(bins / tolerance).
    """
    answer = _widest(bins, norm_squared, epsilon, side, tolerance)
    if answer.relative_width > tolerance * (1 + 1e-9) and answer.upper > FLOOR:
        raise NoBracketError(
            f"delta at epsilon = {epsilon:g} with {bins} bins and norm_squared = {norm_squared:g} could not "
            f"be bracketed to {tolerance:g}; the narrowest bracket is [{answer.lower:.6g}, {answer.upper:.6g}]"
        )
    return answer


def epsilon_bracket(bins, norm_squared, delta, side, tolerance=1e-4) -> Bracket:
    """Bracket of the smallest epsilon >= 0 with delta(epsilon) <= `delta`.

    Arguments as for `bracket`; delta in (0, 1), at least 1e-290. `tolerance` is the width
    of the brackets of delta that are used: the width in epsilon is about tolerance divided
    by the slope of log(delta). The upper end is an epsilon at which the upper bound of
    delta has been seen to be at most `delta`; the lower end likewise.
    """
    delta = check.real("delta", delta, at_least=1e-290, below=1)
    at = lambda epsilon, tolerance: _widest(bins, norm_squared, epsilon, side, tolerance)
    return _invert(at, delta, gaussian.epsilon(math.sqrt(norm_squared), delta), tolerance)


def _widest(bins, norm_squared, epsilon, side, tolerance) -> Bracket:
    """The bracket as narrow as it gets: wider than the tolerance where the grid would become too large."""
    log_plain = log_ceiling(norm_squared, epsilon)
    if log_plain < math.log(FLOOR):
        return Bracket(0.0, FLOOR, _METHOD)
    upper = math.exp(log_plain)
    plan = _Plan(bins, norm_squared, epsilon, side, log_plain, tolerance)
    cells, lower = plan.cells(tolerance), 0.0
    if cells > 4096:  # the estimate may be too careful: a quarter of it tells what is needed
        cells = max(cells // 4, 2048)
    failures = 0
    for _ in range(10):
        try:
            low, high, gap = _evaluate(plan, cells)
        except TooLarge:
            if lower > 0:
                break
            cells = max(cells // 16, 2)  # a wide bracket is better than none
            continue
        lower, upper = max(lower, low), min(upper, high)
        if upper < FLOOR:
            return Bracket(0.0, FLOOR, _METHOD)
        if upper - lower <= tolerance * upper:
            break
        # The rest is rounding, and what was cut off or wrapped around because the estimate was too high.
        room = tolerance - max((high - low - gap) / high, 0.0)
        small = room > 0.3 * tolerance
        failures += not small
        if failures == 4:
            break
        cells = math.ceil(
            cells * min(max(1.04 * math.sqrt(gap / high / (room if small else tolerance)), 1), 16)
        )
        log_high = math.log(high) - plan.log_scale
        plan.log_answer = min(log_high, plan.log_answer - (0 if small else 2))
    return Bracket(min(lower, upper), upper, _METHOD)


def log_ceiling(norm_squared, epsilon):
    """log of delta of one mode of this squared norm alone, rounded up: random bins never hurt [N-3.2]."""
    value = gaussian.log_delta(math.sqrt(norm_squared) * (1 + 1e-12), epsilon)
    return min(value + gaussian.TAIL_ERROR * (1 + abs(value)), 0.0)


def _evaluate(plan, cells):
    """(lower, upper, the part of the width that is the grid's) of delta, with `cells` cells up to the strike."""
    law = Law(plan, cells)
    low, high, gap = Sum(law).log_bounds()
    value = lambda log: math.exp(min(plan.log_scale + log, 1.0))
    log_linear, log_error, log_outer = plan.outside(max(law.z_high, float(plan.edges[-1])))
    upper = sum(map(value, (high, plan.log_cut(law), log_linear, log_error, log_outer)))
    lower = value(low) + max(value(log_linear) - value(log_error), 0.0)
    return lower * (1 - 16 * EPS), upper * (1 + 16 * EPS), value(gap)


class _Problem:
    """The problem in units of the strike, and bounds on what lies beyond a z.

    log X = root * Z + shift with root = sqrt(d); delta = e^log_scale * E(g (S - 1))_+.
    """

    def __init__(self, bins, norm_squared, epsilon, side):
        self.bins, self.root, self.epsilon = bins, math.sqrt(norm_squared), epsilon
        self.sign = 1 if side == "remove" else -1
        log_strike = math.log(bins) + self.sign * epsilon
        self.shift = -norm_squared / 2 - log_strike
        self.log_mean = -log_strike  # of one X
        self.log_scale = epsilon if self.sign > 0 else 0.0
        self.z_strike = -self.shift / self.root

    def log_beyond(self, z):
        """log of E[S; some Z_j > z], bounded by the sum over j: what remove loses beyond z."""
        first = math.log(self.bins) + self.log_mean
        return first + float(
            np.logaddexp(
                special.log_ndtr(self.root - z), math.log(self.bins - 1) + special.log_ndtr(-z)
            )
        )

    def linear_part(self, z):
        """(log E[S - 1; some Z_j > z], log of its rounding error)."""
        log_p = float(special.log_ndtr(z))
        log_q = float(special.log_ndtr(z - self.root))
        # Times e^log_scale: E w (1 - q p^{b-1}) - e^eps (1 - p^b), with p = P(Z <= z), q = E[X; Z <= z] / E X.
        first = -math.expm1(max(log_q + (self.bins - 1) * log_p, -1e5))
        log_above = float(special.log_ndtr(-z))
        log_some = math.log(self.bins) + log_above  # of 1 - p^b, where that is tiny
        if log_some > -40:
            log_some = math.log(-math.expm1(max(self.bins * log_p, -1e5)))
        second = math.exp(self.epsilon + log_some)
        spread = abs(self.shift) + self.root**2 + abs(self.log_mean)
        relative = 1e-13 + 16 * EPS * (1 + abs(z) + self.root) * (1 + spread / self.root)
        log = lambda number: math.log(number) - self.log_scale if number > 0 else -math.inf
        return log(first - second), log(relative * (first + second))


class _Plan(_Problem):
    """Tilt, window and grid, by estimates that no bound relies on; and what is cut off, bounded."""

    def __init__(self, bins, norm_squared, epsilon, side, log_plain, tolerance=1e-4):
        super().__init__(bins, norm_squared, epsilon, side)
        # Wrapped-around terms may cost a fiftieth of the width.
        self.log_negligible = math.log(50 / tolerance)
        # One huge X_j is far likelier under the tilt than in truth: cut where it no longer matters,
        # which depends on the answer.
        self.log_answer = log_plain - self.log_scale
        for _ in range(8):
            before, top = self.log_answer, self._top()
            self._nodes(top)
            self._saddle()
            self.linear = self.sign > 0 and top == self.z_strike
            self.log_linear, _, self.log_outer = self.outside(top)
            self.log_answer = max(self.log_estimate, self.log_linear)
            if self._top() <= top and self.log_answer > before - 3:
                break
        self._tails()

    def _top(self):
        """z above which f(S) is as good as linear, or E[S; some Z_j > z] negligible; for add the strike."""
        if self.sign < 0:
            return min(self.z_strike, 45.0 + 2 * self.epsilon / self.root)
        room = min(self.log_answer, 0.0) - _CUT - math.log(2 * self.bins) - self.log_mean
        first = self.root - special.ndtri_exp(min(room, -1.0))
        second = -special.ndtri_exp(min(room - math.log(self.bins), -1.0))
        return min(self.z_strike, float(max(first, second)))

    def _nodes(self, high):
        """Panels of z up to `high`, wide enough for every coordinate to carry its share of epsilon."""
        low = min(-45.0 - 2 * self.epsilon / self.root, high - 1.0)
        ends = np.exp(np.array([low, high]) * self.root + self.shift)
        even = np.linspace(*ends, 300)[1:-1]
        even = (np.log(even[even > 0]) - self.shift) / self.root
        edges = np.concatenate([np.linspace(low, high, 400), even])
        self.edges = edges = np.unique(edges[(edges >= low) & (edges <= high)])
        middle, half = (edges[1:] + edges[:-1]) / 2, (edges[1:] - edges[:-1]) / 2
        points, weights = np.polynomial.legendre.leggauss(4)
        z = middle[:, None] + half[:, None] * points
        self.x = np.exp(self.root * z + self.shift).ravel()
        self.log_mass = (-z * z / 2 - LOG_SQRT_2PI + np.log(half[:, None] * weights)).ravel()

    def log_moment(self, theta):
        """(log E e^{g theta X}, mean of g X, variance) of the part below the strike, an estimate."""
        logs = self.log_mass + theta * self.sign * self.x
        top = float(logs.max())
        weights = np.exp(logs - top)
        total = float(weights.sum())
        mean = float(weights @ self.x) / total
        variance = float(weights @ (self.x - mean) ** 2) / total
        return top + math.log(total), self.sign * mean, variance

    def _saddle(self):
        """The saddle point b E_theta[g X] - g = 2 / theta; estimates of the answer and the density there."""
        slope = lambda theta: self.bins * self.log_moment(theta)[1] - self.sign - 2 / theta
        low, high = 1e-3, 1e3
        while slope(low) > 0 and low > 1e-30:
            low /= 1e3
        while slope(high) < 0 and high < 1e30:
            high *= 1e3
        for _ in range(40):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if slope(middle) < 0 else (low, middle)
            if high / low < 1.001:
                break
        self.theta = theta = high
        log_moment, mean, variance = self.log_moment(theta)
        lead = self.bins * log_moment - self.sign * theta
        deviation = max(math.sqrt(self.bins * variance), 0.01 / theta)
        centre = self.bins * mean - self.sign
        reach = min(centre + 10 * deviation, centre + 40 / theta)
        y = np.linspace(0, max(reach, 1e-300), 401)[1:]
        density = np.exp(-(((y - centre) / deviation) ** 2) / 2 - theta * y) / deviation
        payoff = float((y * density).sum() * y[0]) / math.sqrt(2 * math.pi)
        at_strike = math.exp(-((centre / deviation) ** 2) / 2) / deviation / math.sqrt(2 * math.pi)
        self.log_estimate = lead + math.log(payoff + 1e-300)
        self.log_density = lead + math.log(at_strike + 1e-300)

    def outside(self, z):
        """Of E f(S) over some Z_j > z: (log of the part known, log of its error, log of a bound on the rest)."""
        if self.linear:
            return *self.linear_part(z), -math.inf
        return -math.inf, -math.inf, self.log_beyond(z) if self.sign > 0 else -math.inf

    def _tails(self):
        """Bounds on E[e^{g theta X}; Z < edge] and E[e^{g theta X}; Z > edge, X <= 1], for every edge.

        A panel's mass is at most its width times its largest density. No quadrature is involved.
        """
        edges, theta = self.edges, self.sign * self.theta
        x = np.exp(self.root * edges + self.shift)
        nearest = np.where(edges[1:] * edges[:-1] < 0, 0.0, np.minimum(abs(edges[1:]), abs(edges[:-1])))
        far = x[1:] if theta > 0 else x[:-1]
        logs = np.log(np.diff(edges)) - nearest**2 / 2 - LOG_SQRT_2PI + theta * far
        below = special.log_ndtr(edges[0]) + max(theta * x[0], 0.0)
        above = -math.inf  # X > 1: zero for add; for remove in `outside`
        if theta < 0 and edges[-1] < self.z_strike:
            above = special.log_ndtr(-edges[-1]) + theta * x[-1]
        self.log_left = np.logaddexp.accumulate(np.append(below, logs)) + 1e-6
        self.log_right = np.logaddexp.accumulate(np.append(above, logs[::-1]))[::-1] + 1e-6

    def _chernoff(self, log_moments):
        """log of the Chernoff bound on E f(S), from the log of the product of the moments at theta."""
        return float(log_moments) - self.sign * self.theta - 1 - math.log(self.theta) + 1e-6

    def log_cut(self, law):
        """log of a bound on E f(S) over the outcomes with some X_j outside the law's window."""
        left, right = self.log_left[law.low], self.log_right[law.high]
        cut = float(np.logaddexp(left, right))
        everything = float(np.logaddexp(law.log_moment + 1e-6, cut))
        chernoff = self._chernoff(math.log(self.bins) + cut + (self.bins - 1) * everything)
        return float(np.logaddexp(chernoff, self.log_outer))

    def cells(self, tolerance):
        """Cells up to the strike, so that the two bounds differ by about tolerance."""
        log_square = math.log(5.0 * tolerance / self.bins) + self.log_answer - self.log_density
        spacing = min(math.exp(min(log_square / 2, 0.0)), 0.5 / self.theta, 1 / 8)
        return math.ceil(min(1 / spacing, 2.0**45))

    def window(self):
        """The two edges (as indices) beyond which the law is cut: the Chernoff bound of the rest is negligible."""
        allowed = self.log_answer - _CUT - self._chernoff(self.bins * self.log_moment(self.theta)[0])
        allowed += self.log_moment(self.theta)[0] - math.log(self.bins)
        low = max(int(np.searchsorted(self.log_left, allowed)) - 1, 0)
        inside = np.flatnonzero(self.log_right <= allowed)
        high = int(inside[0]) if len(inside) else len(self.edges) - 1
        return low, high


def _invert(at, delta, top, tolerance):
    """Bracket of the epsilon where a decreasing delta(epsilon), known in brackets, meets `delta`."""
    gap = lambda x: math.log(max(at(x, tolerance).midpoint, FLOOR) / delta)
    if at(0.0, tolerance).upper <= delta:
        return Bracket(0.0, 0.0, _METHOD)
    x, high = 0.0, top * (1 + 1e-9) + 1e-12
    if gap(x) > 0:
        # One bin is never better: at `high` the gap is at most zero, but for rounding.
        held = lambda x: min(gap(x), 0.0) if x == high else gap(x)
        x = float(optimize.brentq(held, 0.0, high, xtol=1e-300, rtol=_CLOSE))
    step = 1e-4 * (x + high)
    slope = max((gap(x) - gap(x + step)) / step, 1e-6)
    # Outwards until the ends of the brackets confirm.
    return _confirmed(at, delta, x, tolerance, 0.7 * tolerance / slope)


def _confirmed(at, delta, x, tolerance, step):
    ends = []
    for sign, holds in (
        (-1, lambda answer: answer.lower >= delta),
        (1, lambda answer: answer.upper <= delta),
    ):
        distance = step
        while True:
            end = max(x + sign * distance, 0.0)
            if (end == 0.0 and sign < 0) or holds(at(end, tolerance)):
                break
            distance *= 1.5
            if distance > 1e3 * (1 + x):
                raise NoBracketError(f"epsilon at delta = {delta:g} could not be bracketed")
        ends.append(end)
    return Bracket(*ends, _METHOD)
