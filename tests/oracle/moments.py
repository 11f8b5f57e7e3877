"""E_Q[R^w] for complex w by the trapezoid rule in u = x / sigma, in ball arithmetic.

The integrand phi(u) R(u)^w is analytic in a strip around the real axis, so the
trapezoid rule converges exponentially in 1/h. It is never trusted at one step:
callers compare two grids. The range of u is cut where the modulus falls below
exp(-depth) of its peak.
"""

import math

import numpy as np
from flint import acb, arb


def log_ratio(mix, u):
    """log R(u) in doubles, for choosing ranges only."""
    s = np.array([float(x) for x in mix.a])
    b = np.array([float(p.log() - h) for p, h in zip(mix.pb, mix.h)])
    u = np.asarray(u, dtype=float)
    out = np.empty_like(u)
    for i in range(0, len(u), 4096):
        e = b + np.multiply.outer(u[i:i + 4096], s)
        top = e.max(axis=1)
        out[i:i + 4096] = top + np.log(np.exp(e - top[:, None]).sum(axis=1))
    return out


def supports(mix, power, depth, spacing=0.125):
    """Intervals of u outside which phi(u) R(u)^power is below exp(-depth) of its peak."""
    ends = sorted((power * float(mix.a[0]), power * float(mix.a[-1])))
    reach = math.sqrt(2 * depth) + 2
    ends = [min(ends[0], 0) - reach, max(ends[1], 0) + reach]
    u = np.arange(math.floor(ends[0] / spacing), math.ceil(ends[1] / spacing) + 1) * spacing
    f = power * log_ratio(mix, u) - u * u / 2
    keep = np.flatnonzero(f > f.max() - depth)
    cuts = np.flatnonzero(np.diff(keep) > 1)
    starts, stops = keep[np.r_[0, cuts + 1]], keep[np.r_[cuts, len(keep) - 1]]
    return [(u[i] - spacing, u[j] + spacing) for i, j in zip(starts, stops)], f.max()


class Grid:
    """Nodes, losses and real weights phi(u) R(u)^power h on a shifted lattice of step h."""

    def __init__(self, mix, power, h, shift=0.0, depth=230.0):
        mix.prepare()
        self.loss, self.weight = [], []
        h_ball, norm = arb(h), arb(h) / (2 * arb.pi()).sqrt()
        p = power if isinstance(power, arb) else arb(power)
        power = float(p)
        for low, high in supports(mix, power, depth)[0]:
            for n in range(math.floor(low / h), math.ceil(high / h) + 1):
                u = (n + arb(shift)) * h_ball
                loss = mix.ratio(u).log()
                self.loss.append(loss)
                self.weight.append((p * loss - u * u / 2).exp() * norm)

    def moment(self, imaginary):
        """E[R^(power + i imaginary)]."""
        y = arb(imaginary)
        if y == 0:
            return acb(sum(self.weight, arb(0)))
        total = acb(0)
        for w, l in zip(self.weight, self.loss):
            total += acb(0, y * l).exp() * w
        return total


def step_for(mix):
    """A first guess of h: well inside the strip of analyticity (zeros of R near i pi sigma / gap)."""
    gap = max((float(b - a) for a, b in zip(mix.s, mix.s[1:])), default=0.0)
    strip = math.pi * float(mix.sigma) / gap if gap else 100.0
    return min(0.25, 2 * math.pi * min(strip, 2.0) / 60)


def moment(mix, real, imaginary, digits=40, depth=230.0):
    """real may be a ball (1 + c is not always a double). E_Q[R^(real + i imaginary)]: (value, agreed relative digits). Two lattices and their union."""
    h = step_for(mix) / max(1.0, abs(imaginary) / 30)
    for _ in range(8):
        a = Grid(mix, real, h, 0.0, depth).moment(imaginary)
        b = Grid(mix, real, h * 1.0625, 0.375, depth).moment(imaginary)
        gap = abs(a - b).upper() / abs(a).upper() if abs(a).upper() > 0 else arb(1)
        agreed = int(-float(gap.log()) / math.log(10)) if gap > 0 else 90
        if agreed >= digits:
            return a, min(agreed, 60)
        h /= 2
    return a, agreed
