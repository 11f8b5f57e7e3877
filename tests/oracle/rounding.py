"""One-step quantities that an accountant computes, to 35 digits: tests/data/rounding.json.

    python rounding.py

kind "moment": log E_Q[R^w], w = 1 + z (remove) or w = -z (add), z = c + iy.
    Two shifted trapezoid lattices of different step agree; where R has few atoms, Arb's
    rigorous integration gives the same ball.
kind "loss": log R at x, in ball arithmetic (exact up to the rounding of the last digit).
"""

import math

from core import mixture_of, own_digits, text, write
from flint import acb, arb
from moments import moment, supports


def rigorous(mix, w_real, w_imag, modulus):
    """acb.integral of phi R^w; returns a ball or None when it cannot resolve the value."""
    w = acb(w_real, w_imag)
    w_real = float(w_real)
    norm = (2 * arb.pi()).sqrt()

    def f(z, analytic):
        r = mix.ratio(z)
        return (w * r.log(analytic=analytic) - z * z / 2).exp() / norm

    total = acb(0)
    for low, high in supports(mix, w_real, 230.0)[0]:
        pieces = max(1, int((high - low) * 4))
        if pieces > 1500:
            return None
        edges = [arb(low) + (arb(high) - arb(low)) * i / pieces for i in range(pieces + 1)]
        for a, b in zip(edges, edges[1:]):
            total += acb.integral(f, acb(a.mid()), acb(b.mid()), abs_tol=modulus * arb(10) ** -45, eval_limit=20000)
    return total


POISSON = [
    ("1", "0.01", 1), ("0.3", "0.001", 1), ("0.05", "0.5", 2), ("1000", "0.1", 1), ("4", "0.5", 16),
    ("2", "1e-6", 2), ("1", "0.1", 64), ("0.5", "0.01", 9), ("10", "0.99", 64), ("1000", "0.5", 64),
    ("0.3", "1e-6", 8), ("50", "0.01", 1000), ("1000", "1e-6", 1000), ("1", "1", 3),
]
MIXTURES = [
    ("1.5", ["0", "0.7", "1.9", "2.5"], ["0.5", "0.3125", "0.125", "0.0625"]),
    ("0.75", ["0.25", "1", "7.3"], ["0.75", "0.1875", "0.0625"]),
    ("0.05", ["0", "0.001", "1"], ["0.5", "0.49999904632568359375", "0.00000095367431640625"]),
]
POINTS = [("0.01", "0"), ("0.5", "3.75"), ("4", "0.25"), ("12.5", "17"), ("60", "1.5"), ("300", "50"), ("0.05", "50"), ("1.25", "12")]


def main():
    values = []
    settings = [{"sigma": s, "q": q, "k": k} for s, q, k in POISSON]
    settings += [{"sigma": s, "sensitivities": a, "probabilities": p} for s, a, p in MIXTURES]
    for index, params in enumerate(settings):
        mix = mixture_of(params)
        for n in range(3):
            c, y = POINTS[(index + 3 * n) % len(POINTS)]
            orientation = ("remove", "add")[(index + n) % 2]
            if params["sigma"] == "0.05" and float(c) > 5:
                c = "4"
            cf, yf = float(c), float(y)
            if len(mix.s) > 900 and cf > 20:
                c, cf = "12.5", 12.5
            real, imag = (1 + arb(cf), yf) if orientation == "remove" else (-arb(cf), -yf)
            at_real, d0 = moment(mix, real, 0.0)
            value, d1 = (at_real, d0) if yf == 0 else moment(mix, real, imag)
            while d1 < 35:  # cancels below the working precision: nearer to the real axis
                y = f"{yf / 8:.3g}"
                yf, imag = float(y), math.copysign(float(y), imag)
                value, d1 = moment(mix, real, imag)
            checks = "two trapezoid lattices"
            if len(mix.s) <= 10:
                ball = rigorous(mix, real, imag, abs(value).lower())
                if ball is not None and ball.is_finite():
                    agreed = int(-float((abs(ball - value).upper() / abs(value).lower()).log()) / math.log(10))
                    if agreed >= 30:
                        checks += f" and Arb's rigorous integral ({min(agreed, 60)} digits)"
                    else:
                        checks += f" (the rigorous integral resolves only {agreed} digits)"
            print(params, orientation, c, y, at_real.real.str(8), value.str(8), d0, d1, checks, flush=True)
            log, parts = value.log(), []
            for part, d in ((log.real, d1), (log.imag, d1), (at_real.real.log(), d0)):
                if not part == 0:  # relative digits of a logarithm near zero are fewer
                    parts.append(d + min(0, math.log10(abs(float(part)))))
            digits = int(min(35, *parts))
            if digits < 25:
                raise ArithmeticError(f"only {digits} digits")
            values.append({"id": f"moment-{len(values):02d}", "kind": "moment", "params": params, "direction": orientation,
                           "z": [c, y], "w": "1 + z" if orientation == "remove" else "-z",
                           "log_real": text(log.real, 35), "log_imag": text(log.imag, 35) if yf else "0",
                           "log_at_real_z": text(at_real.real.log(), 35), "method": checks, "digits": digits})
    count = len(values)
    for index, params in enumerate(settings):
        mix = mixture_of(params)
        sigma = float(params["sigma"])
        for n in range(2):
            x = [0.75, -3 * sigma, 7.25 * sigma, 1 + 2 * sigma, -0.125, 30 * sigma, 40.0][(index + 3 * n) % 7]
            x = float(f"{x:.6g}")
            loss = mix.ratio(arb(x) / arb(sigma)).log()
            entry = {"id": f"loss-{len(values) - count:02d}", "kind": "loss", "params": params, "x": repr(x),
                     "log_ratio": text(loss, 35), "method": "ball arithmetic", "digits": min(35, own_digits(loss))}
            print(entry["params"], x, entry["log_ratio"], entry["digits"])
            values.append(entry)
    write("rounding.json", {
        "convention": "R = P/Q with P = sum_j p_j N(s_j, sigma^2), Q = N(0, sigma^2). moment: log E_Q[R^w], z = c + iy given as [c, y]; "
                      "w = 1 + z for remove, w = -z for add. loss: log R(x).",
        "reading": "Every parameter string stands for the IEEE double float(string); the value is exact for those doubles. "
                   "log_imag is the principal value in (-pi, pi]. log_at_real_z is log E_Q[R^w] at y = 0: the scale against which rounding errors are measured."},
        values)


if __name__ == "__main__":
    main()
