"""A table of delta for every mechanism, in 60-digit arithmetic by two routes: tests/data/truth_values.json.

    python truth.py check            compare checksums of all tables, recompute a stated part (one minute)
    python truth.py check --all      recompute the whole table: five CPU minutes with gmpy2 beside mpmath
    python truth.py fill             compute delta of the rows that have none: a new row is written without it

Needs mpmath only; shares no code with dplib. Every parameter string stands for the double float(string), taken exactly.
`digits` of delta are those to which the two routes agree (at least 30), at most 40.
"""

import argparse
import hashlib
import itertools
import json
import sys
import time
from math import comb
from pathlib import Path

import lognormals
import slices
from mpmath import mp, mpf

mp.dps = 60
DATA = Path(__file__).resolve().parents[2] / "tests" / "data"
TABLE, SUMS = DATA / "truth_values.json", DATA / "SHA256SUMS"
FEWEST, MOST = 30, 40


def number(text):
    """The double that a reader of the table gets, exactly."""
    return mpf(float(text))


# --- modes and laws ---------------------------------------------------------------------------------------


def binomial(k, q):
    return [(mpf(j), comb(k, j) * q**j * (1 - q) ** (k - j)) for j in range(k + 1)]


def hypergeometric(batch, n, k):
    total = mpf(comb(n + k, batch))
    return [(mpf(2 * j), comb(k, j) * comb(n, batch - j) / total) for j in range(min(k, batch) + 1)]


def product(law, sigma, rounds):
    """Modes of independent rounds with one law."""
    kept = [(s / sigma, p) for s, p in law if p > mpf(10) ** -75]
    choices = list(itertools.product(kept, repeat=rounds))
    return slices.Modes([mp.fprod(p for _, p in c) for c in choices], [[s for s, _ in c] for c in choices])


def columns(params):
    """Columns of the encoder over sigma."""
    sigma = number(params["sigma"])
    if "table" in params:
        return [[number(x) / sigma for x in column] for column in zip(*params["table"])]
    c, n = [number(x) / sigma for x in params["coefficients"]], params["n"]
    c += [mpf(0)] * (n - len(c))
    return [[mpf(0)] * i + c[: n - i] for i in range(n)]


def total(vectors, size):
    return [mp.fsum(v[i] for v in vectors) for i in range(size)]


def subsets(chosen, q):
    n, size = len(chosen), len(chosen[0])
    sets = [[i for i in range(n) if word >> i & 1] for word in range(2**n)]
    return slices.Modes(
        [q ** len(s) * (1 - q) ** (n - len(s)) for s in sets],
        [total([chosen[i] for i in s], size) for s in sets],
    )


def modes(mechanism, p):
    if mechanism == "gaussian":
        return slices.Modes([1], [[number(p["mu"])]])
    if mechanism in ("one_step", "poisson"):
        return product(binomial(p["k"], number(p["q"])), number(p["sigma"]), p["T"])
    if mechanism == "last_iterate":
        return product(binomial(p["T"], number(p["q"])), number(p["sigma"]) * mp.sqrt(p["T"]), 1)
    if mechanism == "fixed_batch":
        return product(hypergeometric(p["batch_size"], p["dataset_size"], p["k"]), number(p["sigma"]), p["T"])
    if mechanism == "unamplified":
        c, n = [mpf(comb(2 * i, i)) / 4**i for i in range(p["n"])], p["n"]
        summed = [mp.fsum(c[t - s] for s in range(0, t + 1, p["period"])) for t in range(n)]
        return slices.Modes([1], [[mp.sqrt(mp.fsum(x * x for x in summed)) / number(p["sigma"])]])
    vectors = columns(p)
    if mechanism == "matrix":
        return subsets(vectors, number(p["q"]))
    if mechanism == "separated":
        return subsets(vectors[:: p["b"]], p["b"] * number(p["q"]))
    if mechanism == "balls_in_bins":
        b = p["b"]
        return slices.Modes([mpf(1) / b] * b, [total(vectors[i::b], len(vectors[0])) for i in range(b)])
    raise ValueError(mechanism)


# --- two routes for each case -------------------------------------------------------------------------------


def on_a_line(found, epsilon, side):
    """One dimension: closed form beyond the threshold, and Gauss-Legendre panels over P - e^epsilon Q (or Q - e^epsilon P)."""
    line = slices.Slices(found, None, 45)
    first = line.integrate(epsilon, side, 1, 0)
    u = line.crossing(line.log_p, epsilon if side == "remove" else -epsilon)
    if u is None:
        return first, first  # Q(R < e^-epsilon) = 0: delta is exactly 0
    parts = list(zip(found.p, line.along))

    def excess(x):
        with_it = mp.fsum(p * mp.npdf(x - a) for p, a in parts)
        return with_it - mp.exp(epsilon) * mp.npdf(x)

    # On the side of Q - e^epsilon P the roles change.
    def shortfall(x):
        return mp.npdf(x) - mp.exp(epsilon) * mp.fsum(p * mp.npdf(x - a) for p, a in parts)

    far = max(a for _, a in parts) + 22
    if side == "remove":
        ends = [u + k for k in range(int(far - u) + 2)]
        return first, mp.quad(excess, ends, method="gauss-legendre")
    ends = [u - k for k in range(int(u + 22) + 2)]
    return first, mp.quad(shortfall, ends[::-1], method="gauss-legendre")


def sliced(found, epsilon, side, quick=False):
    """Slices along two directions, by the two formulas, with finer steps until 30 digits agree."""
    dimension = slices.Slices(found, None, 10).dimension
    step, digits = (0.09, 48) if dimension == 1 else (0.2, 36)
    tilt = [1 + i % 3 for i in range(len(found.p))]
    for _ in range(3):
        first = slices.hockey_stick(found, epsilon, side, step, digits=digits)
        if quick:
            return first, None
        second = slices.from_the_other(found, epsilon, side, 0.93 * step, 0.25, tilt, digits)
        if first == 0 and abs(second) < mpf(10) ** -MOST:
            return first, first  # exactly 0, as above
        if agreed(first, second) >= FEWEST:
            break
        step *= 0.7
    return first, second


def independent_bins(params, epsilon, side, quick=False):
    """C = I: every mode has the norm sqrt(E) / sigma."""
    mu, b = mp.sqrt(params["n"] // params["b"]) / number(params["sigma"]), params["b"]
    first = lognormals.hockey_stick(mu, b, epsilon, side)
    if quick:
        return first, None
    if b <= 2:
        return first, sliced(modes("balls_in_bins", params), epsilon, side, quick=True)[0]
    return first, lognormals.hockey_stick(
        mu, b, epsilon, side, nodes=110, stretch=1.06, step=0.07, offset=0.25
    )


def two_routes(mechanism, params, epsilon, side, quick=False):
    epsilon = number(epsilon)
    if mechanism == "balls_in_bins" and params.get("coefficients") == ["1"]:
        return independent_bins(params, epsilon, side, quick)
    found = modes(mechanism, params)
    if slices.Slices(found, None, 10).dimension == 0:
        return on_a_line(found, epsilon, side)
    return sliced(found, epsilon, side, quick)


def agreed(a, b):
    if a == b:
        return MOST
    return min(MOST, int(-mp.log10(abs(a - b) / abs(a) + mpf(10) ** -(MOST + 1))))


# --- the table -------------------------------------------------------------------------------------------------

# Recomputed by `check`: quick ones of each mechanism, in pure Python about a minute.
QUICK = {"gaussian": 5, "one_step": 8, "last_iterate": 4, "poisson": 4, "fixed_batch": 6, "balls_in_bins": 6, "matrix": 4, "separated": 2, "unamplified": 3}  # fmt: skip


def read():
    return json.loads(TABLE.read_text(encoding="utf-8"))


def fill():
    """Compute the rows that have no delta yet."""
    table = read()
    for value in table["values"]:
        if "delta" not in value:
            first, second = two_routes(value["mechanism"], value["params"], value["epsilon"], value["direction"])
            digits = agreed(first, second)
            if digits < FEWEST:
                raise ArithmeticError(f"{value['id']}: the routes agree to {digits} digits")
            value |= {"delta": mp.nstr(first, digits), "digits": digits}
    rows = ",\n".join("  " + json.dumps(value) for value in table["values"])
    meta = json.dumps(table["meta"], indent=1)
    TABLE.write_text('{\n"meta": ' + meta + ',\n"values": [\n' + rows + "\n]\n}\n", encoding="utf-8")


def checksums():
    """Names of the tables whose content is not the sealed one."""
    lines = [line.split() for line in SUMS.read_text(encoding="utf-8").splitlines()]
    return [n for digest, n in lines if hashlib.sha256((DATA / n).read_bytes()).hexdigest() != digest]


def check(everything):
    broken = checksums()
    print(
        "seals:",
        f"broken: {', '.join(broken)}" if broken else f"{len(SUMS.read_text().splitlines())} tables intact",
    )
    left, wrong, count, start = dict(QUICK), 0, 0, time.process_time()
    for value in read()["values"]:
        mechanism = value["mechanism"]
        if not everything and not left[mechanism]:
            continue
        left[mechanism] -= not everything
        found, _ = two_routes(
            mechanism, value["params"], value["epsilon"], value["direction"], quick=not everything
        )
        allowed = mpf(10) ** (1 - min(value["digits"], FEWEST)) * abs(found)
        count += 1
        if abs(found - mpf(value["delta"])) > allowed:
            wrong += 1
            print("differs:", value["id"], mp.nstr(found, 35), value["delta"])
    print(
        f"recomputed {count} values, {wrong} differ from the table in their first {FEWEST} digits ({time.process_time() - start:.0f} CPU s)"
    )
    return 1 if broken or wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=["fill", "check"])
    parser.add_argument("--all", action="store_true", help="for check: every value")
    options = parser.parse_args()
    return fill() if options.command == "fill" else check(options.all)


if __name__ == "__main__":
    sys.exit(main())
