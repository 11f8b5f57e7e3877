"""Shared arithmetic of the oracle: mixtures in ball arithmetic.

Independent of dplib. Every number is an Arb ball, so rounding errors are
tracked rigorously; the other errors (truncation, step size) are dealt with in
the scripts that use this module.

Coordinates: u = x / sigma, a_j = s_j / sigma, and
    R(u) = (dP/dQ)(sigma u) = sum_j p_j exp(a_j u - a_j^2 / 2).
Inputs are IEEE doubles, taken exactly: a parameter written 0.1 means the
double nearest to 1/10, not the fraction.
"""

import json
import pathlib
from fractions import Fraction
from math import comb

from flint import arb, arb_poly, ctx, fmpq

ctx.prec = 320
DATA = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data"


def ball(value):
    """An exact (or rounded-to-precision) ball of a double, int or Fraction."""
    if isinstance(value, Fraction):
        return arb(fmpq(value.numerator, value.denominator))
    return arb(value)


def exact(text):
    """The double that a reader of the JSON file gets, as a Fraction."""
    return Fraction(float(text))


def binomial_law(k, q):
    q = Fraction(q)
    return list(range(k + 1)), [comb(k, j) * q**j * (1 - q) ** (k - j) for j in range(k + 1)]


def hypergeometric_law(batch, n, k):
    total = comb(n + k, batch)
    return [2 * j for j in range(k + 1)], [Fraction(comb(k, j) * comb(n, batch - j), total) if batch >= j else Fraction(0) for j in range(k + 1)]


class Mixture:
    """P = sum_j p_j N(s_j, sigma^2) against Q = N(0, sigma^2)."""

    def __init__(self, sensitivities, probabilities, sigma):
        pairs = sorted((Fraction(s), Fraction(p)) for s, p in zip(sensitivities, probabilities) if p > 0)
        self.s = [s for s, _ in pairs]
        self.p = [p for _, p in pairs]
        self.sigma = Fraction(sigma)
        self.prec = None
        self.prepare()

    def prepare(self):
        """(Re)build the balls at the working precision."""
        if self.prec == ctx.prec:
            return
        self.prec = ctx.prec
        self.pb = [ball(p) for p in self.p]
        self.a = [ball(s / self.sigma) for s in self.s]
        self.h = [a * a / 2 for a in self.a]
        self.c = [p * (-h).exp() for p, h in zip(self.pb, self.h)]
        step = self.s[1] - self.s[0] if len(self.s) > 1 else None
        self.poly = None
        if self.s[0] == 0 and len(self.s) > 3 and all(s == i * step for i, s in enumerate(self.s)):
            self.poly, self.step = arb_poly(self.c), ball(step / self.sigma)

    def ratio(self, u):
        """R(u), u an arb or acb."""
        if self.poly is not None:
            return self.poly((u * self.step).exp())
        return sum((c * (a * u).exp() for c, a in zip(self.c, self.a)), u * 0)


def mixture_of(entry_params):
    """The mixture of a JSON params object (mechanism poisson, fixed_batch or mixture)."""
    p = entry_params
    sigma = exact(p["sigma"])
    if "q" in p:
        return Mixture(*binomial_law(p["k"], exact(p["q"])), sigma)
    if "batch_size" in p:
        return Mixture(*hypergeometric_law(p["batch_size"], p["dataset_size"], p["k"]), sigma)
    return Mixture([exact(s) for s in p["sensitivities"]], [exact(w) for w in p["probabilities"]], sigma)


def text(value, digits=36):
    """Decimal string of the midpoint with the given number of significant digits."""
    return value.mid().str(digits, radius=False) if isinstance(value, arb) else str(value)


def own_digits(value):
    return int(value.rel_accuracy_bits() * 0.30103)


def write(name, meta, values):
    path = DATA / name
    rows = ",\n".join("  " + json.dumps(v) for v in values)
    head = json.dumps(meta, indent=1)
    path.write_text('{\n"meta": ' + head + ',\n"values": [\n' + rows + "\n]\n}\n")
    print("wrote", path.name, len(values), "values")
