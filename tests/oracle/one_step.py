"""T = 1: the closed form in ball arithmetic, checked by a rigorous integral and by mpmath.

    python one_step.py          writes parts/one_step.json

Route A: delta = P(x > x*) - e^epsilon Q(x > x*), x* by Newton, in 320-bit balls.
Route B: k small: rigorous quadrature (acb.integral) of (P - e^epsilon Q) beyond x*;
         otherwise the closed form again in mpmath, x* by bisection, with its own binomial law.
"""

import itertools
import time

import mpmath as mp
from core import Mixture, digits_of, exact, mixture_of, normal_tail, own_digits, text, write_part
from flint import acb, arb, ctx

SIGMAS = ["0.05", "0.3", "1", "4", "50", "1000"]
RATES = ["1e-6", "1e-3", "0.1", "0.5", "0.99", "1"]
GROUPS = [1, 2, 16, 64, 1000]
TARGETS = [0.9, 0.3, 1e-2, 1e-4, 1e-6, 1e-9, 1e-15, 1e-30, 1e-60, 1e-100, 1e-200, 1e-300]


def integral_route(mix, eps, direction):
    """Rigorous quadrature of the integrand of the hockey stick beyond the threshold."""
    root2pi = (2 * arb.pi()).sqrt()
    factor = eps.exp()
    if direction == "remove":
        u = mix.inverse(eps)
        if u is None:
            return None
        f = lambda z, _: (mix.ratio(z) - factor) * (-z * z / 2).exp() / root2pi
        closed = mix.upper_tail(u)
        scale = closed - factor * normal_tail(u)
        end = u + 2
        while not mix.upper_tail(end) < scale * arb(10) ** -45:
            end += 2 + abs(end) / 8
        tail = mix.upper_tail(end)
        a, b = u, end
    else:
        u = mix.inverse(-eps)
        if u is None:
            return None
        f = lambda z, _: (1 - factor * mix.ratio(z)) * (-z * z / 2).exp() / root2pi
        scale = normal_tail(-u) - factor * mix.lower_tail(u)
        end = u - 2
        while not normal_tail(-end) < scale * arb(10) ** -45:
            end -= 2 + abs(end) / 8
        tail = normal_tail(-end)
        a, b = end, u
    # pieces a few units long, so that the quadrature need not search for the mass
    pieces, total = max(1, int(float((b - a).mid()) / 4)), acb(0)
    step = (b - a) / pieces
    if pieces > 400:
        return None
    for i in range(pieces):
        total += acb.integral(f, acb((a + i * step).mid()), acb((a + (i + 1) * step).mid() if i + 1 < pieces else b), abs_tol=abs(scale).upper() * arb(10) ** -46)
    return total.real + tail / 2 + arb(0, tail.upper() / 2)


def mpmath_route(params, eps, direction, digits=70):
    """Closed form once more, with another library, another law and another root finder."""
    mp.mp.dps = digits
    sigma = mp.mpf(float(params["sigma"]))
    if "q" in params:
        q, k = mp.mpf(float(params["q"])), params["k"]
        atoms = []
        for j in range(k + 1):
            w = mp.binomial(k, j) * q**j * (1 - q) ** (k - j)
            if w > 0:
                atoms.append((mp.mpf(j), w))
    elif "batch_size" in params:
        b, n, k = params["batch_size"], params["dataset_size"], params["k"]
        atoms = [(mp.mpf(2 * j), mp.binomial(k, j) * mp.binomial(n, b - j) / mp.binomial(n + k, b)) for j in range(min(k, b) + 1)]
    else:
        atoms = [(mp.mpf(float(s)), mp.mpf(float(w))) for s, w in zip(params["sensitivities"], params["probabilities"])]
    atoms = [(s / sigma, w) for s, w in atoms]
    eps = mp.mpf(float(eps))
    level = eps if direction == "remove" else -eps
    ratio = lambda u: sum(w * mp.exp(a * u - a * a / 2) for a, w in atoms)
    floor = sum(w for a, w in atoms if a == 0)
    if mp.exp(level) <= floor:
        return 1 - mp.exp(eps) if direction == "remove" else mp.mpf(0)
    target = mp.exp(level)
    low, high = mp.mpf(-1), mp.mpf(1)
    while ratio(low) > target:
        low *= 2
    while ratio(high) < target:
        high *= 2
    f = lambda u: mp.log(ratio(u)) - level
    for _ in range(60):  # bisection, then regula falsi (Anderson-Bjorck)
        middle = (low + high) / 2
        low, high = (middle, high) if f(middle) < 0 else (low, middle)
        if high - low < mp.mpf("1e-6") * max(1, abs(high)):
            break
    u = mp.findroot(f, (low, high), solver="anderson", tol=mp.mpf(10) ** (-digits), maxsteps=200, verify=False)
    tail = lambda v: mp.erfc(v / mp.sqrt(2)) / 2
    if direction == "remove":
        return sum(w * tail(u - a) for a, w in atoms) - mp.exp(eps) * tail(u)
    return tail(-u) - mp.exp(eps) * sum(w * tail(a - u) for a, w in atoms)


def short(value, figures=5):
    return f"{float(value):.{figures}g}"


def epsilon_near(mix, direction, target):
    """A short decimal epsilon whose delta is near the target, or None when it is out of reach."""
    ctx.prec = 128
    try:
        goal = arb(target).log()

        def log_delta(e):
            d = mix.hockey_stick(arb(e), direction)
            return d.log() if d > 0 else None

        try:
            first = log_delta(0)
        except ArithmeticError:
            return None
        if first is None or first < goal:
            return None
        low, high = 0.0, None
        if direction == "add" and mix.atom > 0:
            high = float(-mix.atom.log())
        else:
            high = 1.0
            while True:
                v = log_delta(high)
                if v is None or v < goal:
                    break
                low, high = high, high * 2
        for _ in range(60):
            middle = (low + high) / 2
            try:
                v = log_delta(middle)
            except ArithmeticError:
                v = None
            low, high = (low, middle) if v is None or v < goal else (middle, high)
            if high - low < 1e-4 * high:
                break
        for figures in (4, 6, 9, 12):
            e = short((low + high) / 2, figures)
            v = log_delta(float(e))
            if v is not None and abs(v - goal) < 0.15 * abs(goal) + 1:
                return e
        return None
    finally:
        ctx.prec = 320
        mix.prepare()


def conditioning(params, eps, direction, base):
    """Sum of relative changes of delta when sigma, q, epsilon each move by 2^-53 relative."""
    total = arb(0)
    nudge = 1 + arb(2) ** -53
    from fractions import Fraction

    from core import binomial_law
    mix = mixture_of(params)
    total += abs(mix.hockey_stick(arb(float(eps)) * nudge, direction) / base - 1)
    moved = Mixture(mix.s, mix.p, mix.sigma * (1 + Fraction(1, 2**53)))
    total += abs(moved.hockey_stick(arb(float(eps)), direction) / base - 1)
    if "q" in params and float(params["q"]) < 1:
        q = exact(params["q"]) * (1 - Fraction(1, 2**53))
        moved = Mixture(*binomial_law(params["k"], q), mix.sigma)
        total += abs(moved.hockey_stick(arb(float(eps)), direction) / base - 1)
    return float(total.mid())


def value(mechanism, params, direction, eps, mix=None):
    started = time.time()
    mix = mix or mixture_of(params)
    e = arb(float(eps))
    a = mix.hockey_stick(e, direction)
    zero = a == 0
    cond = 0.0 if zero else conditioning(params, eps, direction, a)
    b = None
    if not zero and len(mix.p) <= 17:
        b = integral_route(mix, e, direction)
        other = "rigorous ball quadrature of (P - e^epsilon Q) beyond the threshold"
    if b is None:
        m = mpmath_route(params, eps, direction)
        b = arb(mp.nstr(m, 60))
        other = "same closed form in mpmath, 70 digits, threshold by bisection and regula falsi"
    digits = 40 if zero and b == 0 else min(digits_of(a, b), own_digits(a), 40)
    print(mechanism, params, direction, eps, a.str(6), digits, f"cond {cond:.1e}", f"{time.time() - started:.1f}s", flush=True)
    return {"mechanism": mechanism, "params": params, "direction": direction, "epsilon": eps, "delta": text(a, max(3, digits)),
            "method": "closed form with Neyman-Pearson threshold in 320-bit ball arithmetic; " + other, "digits": digits,
            "conditioning": float(f"{cond:.1e}")}


MIXTURES = [
    (["0", "0.7", "1.9", "2.5"], ["0.5", "0.3125", "0.125", "0.0625"]),
    (["0.25", "1", "7.3"], ["0.75", "0.1875", "0.0625"]),
    (["0", "1", "1.0009765625"], ["0.9990234375", "0.00048828125", "0.00048828125"]),
    (["0", "0.001", "40"], ["0.5", "0.49999904632568359375", "0.00000095367431640625"]),
]


def main():
    out = []
    combos = list(itertools.product(range(6), range(6)))
    for index, (i, j) in enumerate(combos):
        for shift, direction in enumerate(("remove", "add")):
            k = GROUPS[(i + 2 * j + shift) % 5]
            params = {"sigma": SIGMAS[i], "q": RATES[j], "k": k, "T": 1}
            mix = mixture_of(params)
            wanted = [TARGETS[(5 * index + 7 * shift + n) % len(TARGETS)] for n in (0, 4, 8)]
            got = 0
            for target in wanted + TARGETS:
                if got == (2 if index % 2 else 1):
                    break
                eps = epsilon_near(mix, direction, target)
                if eps is not None and not any(v["params"] == params and v["direction"] == direction and v["epsilon"] == eps for v in out):
                    out.append(value("poisson", params, direction, eps, mix))
                    got += 1
    for params, direction, eps in [  # epsilon = 0, near 0, at and beyond the edge of the add side
        ({"sigma": "1", "q": "0.1", "k": 1, "T": 1}, "remove", "0"),
        ({"sigma": "1", "q": "0.1", "k": 1, "T": 1}, "add", "0"),
        ({"sigma": "1000", "q": "1e-6", "k": 1, "T": 1}, "remove", "0"),
        ({"sigma": "0.05", "q": "0.5", "k": 64, "T": 1}, "add", "0"),
        ({"sigma": "4", "q": "0.001", "k": 16, "T": 1}, "remove", "1e-9"),
        ({"sigma": "50", "q": "0.5", "k": 1000, "T": 1}, "add", "1e-12"),
        ({"sigma": "1000", "q": "1e-6", "k": 1000, "T": 1}, "remove", "1e-7"),
        ({"sigma": "1000", "q": "1e-6", "k": 1000, "T": 1}, "add", "1e-7"),
        ({"sigma": "1", "q": "0.1", "k": 2, "T": 1}, "add", "0.21"),
        ({"sigma": "1", "q": "0.1", "k": 2, "T": 1}, "add", "0.22"),
        ({"sigma": "0.3", "q": "1e-6", "k": 1, "T": 1}, "add", "9.9e-7"),
        ({"sigma": "0.05", "q": "0.5", "k": 1, "T": 1}, "add", "0.6931471"),
    ]:
        out.append(value("poisson", params, direction, eps))
    for batch, n, k, sigma in [(500, 50000, 4, "2"), (100, 1000, 16, "8"), (1, 1000, 1000, "2"), (500, 50000, 64, "0.3")]:
        params = {"sigma": sigma, "batch_size": batch, "dataset_size": n, "k": k, "T": 1}
        mix = mixture_of(params)
        for direction, target in (("remove", 1e-6), ("remove", 1e-80), ("add", 1e-4), ("add", 1e-20)):
            eps = epsilon_near(mix, direction, target)
            if eps:
                out.append(value("fixed_batch", params, direction, eps, mix))
    for s, p in MIXTURES:
        for sigma in ("0.3", "1.5", "50"):
            params = {"sigma": sigma, "sensitivities": s, "probabilities": p, "T": 1}
            mix = mixture_of(params)
            for direction, target in (("remove", 1e-8), ("add", 1e-5), ("remove", 1e-150), ("add", 1e-40)):
                if direction == "add" and sigma == "50" and target == 1e-40:
                    continue
                eps = epsilon_near(mix, direction, target)
                if eps:
                    out.append(value("mixture", params, direction, eps, mix))
    write_part("one_step.json", out)


if __name__ == "__main__":
    main()
