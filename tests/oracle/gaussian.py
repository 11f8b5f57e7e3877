"""q = 1: T rounds of the plain Gaussian mechanism, closed form, to T = 1e6.

    python gaussian.py          writes parts/gaussian.json

delta = Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu), mu = k sqrt(T) / sigma.
Ball arithmetic; the second route is the same formula in mpmath.
"""

import mpmath as mp
from core import ball, digits_of, exact, normal_tail, own_digits, text, write_part
from flint import arb

CASES = [  # sigma, k, T, direction, epsilon
    ("0.05", 1, 2, "remove", "700"), ("0.05", 3, 1000000, "add", "1800000000"), ("0.3", 2, 20, "remove", "900"),
    ("0.3", 64, 1000000, "remove", "22755600000"), ("1", 1, 1, "add", "0"), ("1", 1, 1000, "remove", "600"),
    ("1", 1, 1000000, "add", "497000"), ("1", 1, 1000000, "remove", "505000"), ("1", 8, 100, "add", "3900"),
    ("4", 1, 2000, "remove", "70"), ("4", 16, 2000, "add", "20000"), ("50", 1, 3, "remove", "0.1"),
    ("50", 1, 2000, "add", "2.5"), ("50", 2, 100000, "remove", "150"), ("1000", 1, 1, "remove", "0.0001"),
    ("1000", 1, 1, "add", "0.02"), ("1000", 1, 1000000, "remove", "12"), ("1000", 1, 1000000, "add", "0.001"),
    ("1000", 64, 1000000, "remove", "3500"), ("1000", 1000, 2000, "add", "1500"), ("1000", 1, 100000, "remove", "7"),
    ("2.5", 4, 50, "add", "0"),
]


def main():
    out = []
    for sigma, k, rounds, direction, eps in CASES:
        mu = k * arb(rounds).sqrt() / ball(exact(sigma))
        e = arb(float(eps))
        a = normal_tail(e / mu - mu / 2) - e.exp() * normal_tail(e / mu + mu / 2)
        mp.mp.dps = 120
        m = k * mp.sqrt(rounds) / mp.mpf(float(sigma))
        x = mp.mpf(float(eps))
        tail = lambda v: mp.erfc(v / mp.sqrt(2)) / 2
        b = arb(mp.nstr(tail(x / m - m / 2) - mp.exp(x) * tail(x / m + m / 2), 70))
        digits = min(40, digits_of(a, b), own_digits(a))
        print(sigma, k, rounds, direction, eps, a.str(8), digits)
        out.append({"mechanism": "poisson", "params": {"sigma": sigma, "q": "1", "k": k, "T": rounds}, "direction": direction,
                    "epsilon": eps, "delta": text(a, digits), "digits": digits,
                    "method": "Gaussian closed form in 320-bit ball arithmetic; same formula in mpmath, 120 digits"})
    write_part("gaussian.json", out)


if __name__ == "__main__":
    main()
