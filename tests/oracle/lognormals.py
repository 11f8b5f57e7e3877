"""Balls in bins with C = I, any number of bins: E (S - e^epsilon)_+ for a mean S of independent lognormals, in mpmath.

On the side of Q the likelihood ratio of b orthogonal modes of norm mu is S = (1/b) sum_i exp(mu x_i - mu^2/2), x_i normal. With
phi(s) = E exp(-s exp(mu x - mu^2/2)), analytic on the plane cut along s <= 0,

    E (k - S)_+ = (1 / 2 pi i) int phi(s/b)^b e^{s k} / s^2 ds

along a hyperbola around the cut, by the trapezoid rule; phi itself by the trapezoid rule, its path
x -> x - i arg(s) / mu turned so that the exponent is real. Two hyperbolas and lattices must agree.

remove = E_Q (S - e^epsilon)_+ ;  add = e^epsilon E_Q (e^-epsilon - S)_+.
"""

from mpmath import mp, mpc, mpf


class Lognormal:
    """phi on a lattice of the given step."""

    def __init__(self, mu, step, offset, digits):
        self.mu = mpf(mu)
        reach = mp.sqrt(2 * mp.ln(10) * digits) + 1
        count = int(reach / step) + 1
        self.nodes = [(k + mpf(offset)) * mpf(step) for k in range(-count, count + 1)]
        self.step = mpf(step)
        self.ratios = [mp.exp(self.mu * x - self.mu**2 / 2) for x in self.nodes]

    def __call__(self, s):
        size, angle = abs(s), mp.arg(s) / self.mu
        # density at x - i angle: exp(-(x^2 - 2 i x angle - angle^2) / 2)
        front = mp.exp(angle * angle / 2) * self.step / mp.sqrt(2 * mp.pi)
        total = mp.fsum(
            mp.exp(-x * x / 2 - size * r) * mp.expj(x * angle) for x, r in zip(self.nodes, self.ratios)
        )
        return front * total


def put(mu, bins, strike, digits=45, nodes=90, stretch=1.0, step=0.08, offset=0.0):
    """E (strike - S)_+, by the hyperbola of Weideman and Trefethen."""
    phi, strike = Lognormal(mu, step, offset, digits + 15), mpf(strike)
    spacing = mpf("1.081792140") / nodes * mpf(stretch)
    scale = mpf("4.492075287") * nodes / strike / mpf(stretch)
    angle = mpf("1.172104229")
    total = mpf(0)
    for k in range(nodes):
        z = mpc((k + mpf(1) / 2) * spacing, 0)
        s = scale * (1 + mp.sin(mpc(0, 1) * z - angle))
        slope = scale * mpc(0, 1) * mp.cos(mpc(0, 1) * z - angle)
        # the half of the path below the axis gives the conjugate
        total += (phi(s / bins) ** bins * mp.exp(s * strike) / (s * s) * slope).imag
    return abs(total * spacing / mp.pi)


def hockey_stick(mu, bins, epsilon, side, **setting):
    if side == "add":
        return mp.exp(epsilon) * put(mu, bins, mp.exp(-epsilon), **setting)
    strike = mp.exp(epsilon)
    return put(mu, bins, strike, **setting) + 1 - strike
