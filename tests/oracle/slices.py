"""Hockey-stick divergence of a mixture of shifted Gaussians in several dimensions, in mpmath.

P = sum_i p_i N(m_i, I) against Q = N(0, I). Along a direction w to which no mode is opposed, R = P/Q grows: on each
line parallel to w the region R > e^epsilon is a half-line, integrated in closed form. What is left is an
integral over the other coordinates of an analytic function, by the trapezoid rule.

Two routes: `hockey_stick` (formula of the direction asked for) and `from_the_other` (the other direction at -epsilon,
delta_PQ(e) = 1 - e^e + e^e delta_QP(-e)). Their integrands differ; the caller also changes w, step and offset.
"""

import itertools
import math

from mpmath import mp, mpf


def tail(x):
    """Pr[N(0, 1) > x]."""
    return mp.erfc(x / mp.sqrt(2)) / 2


class Modes:
    def __init__(self, probabilities, vectors):
        kept = [(p, v) for p, v in zip(probabilities, vectors) if p > 0]
        self.p = [mpf(p) for p, _ in kept]
        self.m = [[mpf(x) for x in v] for _, v in kept]

    def sliced(self, tilt):
        """Coordinates along w and across it; tilt: weights of the modes in w, None for equal ones."""
        size = len(self.m[0])
        tilt = [1] * len(self.m) if tilt is None else tilt
        w = _unit([mp.fsum(t * v[i] for t, v in zip(tilt, self.m)) for i in range(size)])
        basis = []
        for v in self.m:
            rest = v
            for _ in range(2):  # twice: orthogonal to working precision
                for e in [w, *basis]:
                    rest = [a - _dot(rest, e) * b for a, b in zip(rest, e)]
            if mp.sqrt(_dot(rest, rest)) > mpf(10) ** (-mp.dps // 2):
                basis.append(_unit(rest))
        along = [_dot(v, w) for v in self.m]
        if any(a < -(mpf(10) ** (-mp.dps // 2)) for a in along):
            raise ValueError("a mode is opposed to the direction")
        along = [a if a > mpf(10) ** (-mp.dps // 2) else mpf(0) for a in along]
        return along, [[_dot(v, e) for e in basis] for v in self.m]


def _dot(a, b):
    return mp.fsum(x * y for x, y in zip(a, b))


def _unit(v):
    length = mp.sqrt(_dot(v, v))
    return [x / length for x in v]


class Slices:
    """The integrand, with everything that does not depend on the slice prepared."""

    def __init__(self, modes, tilt, digits):
        self.along, self.across = modes.sliced(tilt)
        self.p, self.digits = modes.p, digits
        self.dimension = len(self.across[0])
        self.log_p = [mp.log(p) - mp.fsum(x * x for x in b) / 2 for p, b in zip(self.p, self.across)]
        self.fast = [(float(a), float(l) - float(a) ** 2 / 2) for a, l in zip(self.along, self.log_p)]
        self.start = 0.0

    def reach(self):
        return math.sqrt(2 * math.log(10) * (self.digits + 3))

    def nodes(self, step, offset):
        """Lattice points within reach of the centre of Q or of a mode."""
        reach = self.reach()
        centres = {tuple(round(float(x), 6) for x in b) for b in self.across} | {(0.0,) * self.dimension}
        sides = []
        for i in range(self.dimension):
            low = min(c[i] for c in centres) - reach
            high = max(c[i] for c in centres) + reach
            sides.append(range(math.floor(low / step), math.ceil(high / step) + 1))
        for place in itertools.product(*sides):
            v = [(k + offset) * step for k in place]
            if any(sum((a - b) ** 2 for a, b in zip(v, c)) <= reach * reach for c in centres):
                yield [(k + mpf(offset)) * mpf(step) for k in place]

    def crossing(self, logs, target):
        """u with log R(u) = target, or None where R stays above it. logs: of the modes' weights on this slice."""
        flat = mp.fsum(mp.exp(l) for l, a in zip(logs, self.along) if a == 0)
        rest = mp.exp(target) - flat
        if rest <= 0:
            return None
        goal = mp.log(rest)
        parts = [(l - a * a / 2, a) for l, a in zip(logs, self.along) if a > 0]
        quick, aim, u = [(float(l), float(a)) for l, a in parts], float(goal), self.start
        for _ in range(200):  # in floats first: convex and increasing, Newton cannot fail
            top = max(l + a * u for l, a in quick)
            weights = [math.exp(l + a * u - top) for l, a in quick]
            total = sum(weights)
            move = (top + math.log(total) - aim) * total / sum(w * a for w, (_, a) in zip(weights, quick))
            u -= move
            if abs(move) < 1e-11 * (1 + abs(u)):
                break
        self.start, u = u, mpf(u)
        for _ in range(12):
            weights = [(mp.exp(l + a * u), a) for l, a in parts]
            total = mp.fsum(w for w, _ in weights)
            move = (mp.log(total) - goal) * total / mp.fsum(w * a for w, a in weights)
            u -= move
            if abs(move) < mpf(10) ** (-mp.dps // 2 - 3) * (1 + abs(u)):  # the next move is its square
                return u
        raise ArithmeticError("no crossing")

    def integrate(self, epsilon, side, step, offset):
        total, factor = mpf(0), mp.exp(epsilon)
        for v in self.nodes(step, offset):
            weight = mp.exp(-mp.fsum(x * x for x in v) / 2)
            logs = [l + mp.fsum(x * b for x, b in zip(v, bs)) for l, bs in zip(self.log_p, self.across)]
            u = self.crossing(logs, epsilon if side == "remove" else -epsilon)
            if side == "remove":
                found = 1 if u is None else mp.fsum(mp.exp(l) * tail(u - a) for l, a in zip(logs, self.along))
                if u is None:
                    found = mp.fsum(mp.exp(l) for l in logs) - factor
                else:
                    found -= factor * tail(u)
            elif u is None:
                found = 0
            else:
                found = tail(-u) - factor * mp.fsum(mp.exp(l) * tail(a - u) for l, a in zip(logs, self.along))
            total += weight * found
        return total * (mpf(step) / mp.sqrt(2 * mp.pi)) ** self.dimension


def hockey_stick(modes, epsilon, side, step, offset=0.0, tilt=None, digits=45):
    return Slices(modes, tilt, digits).integrate(epsilon, side, step, offset)


def from_the_other(modes, epsilon, side, step, offset=0.0, tilt=None, digits=45):
    other = "add" if side == "remove" else "remove"
    value = Slices(modes, tilt, digits).integrate(-epsilon, other, step, offset)
    return 1 - mp.exp(epsilon) + mp.exp(epsilon) * value
