"""Collect parts/*.json into tests/data/oracle.json.

    python merge.py
"""

from core import read_part, write

PARTS = ["one_step.json", "gaussian.json", "nested.json", "recursion.json", "contour.json"]


def main():
    values, seen = [], set()
    for part in PARTS:
        for n, v in enumerate(read_part(part)):
            key = (v["mechanism"], str(v["params"]), v["direction"], v["epsilon"])
            if key in seen:
                continue
            seen.add(key)
            v.pop("target", None)
            values.append({"id": f"{part[:-5].replace('_', '-')}-{n:03d}", **v})
    write("oracle.json", {
        "convention": "remove: P = sum_j p_j N(s_j, sigma^2), Q = N(0, sigma^2); add: the two swapped. "
                      "delta(epsilon) = sup_S P^T(S) - e^epsilon Q^T(S). poisson: s_j = j, p_j = Binom(k, q). "
                      "fixed_batch: s_j = 2j, j ~ Hypergeom(batch_size, dataset_size + k, k). mixture: as listed. "
                      "composition: a list of one-round mixtures with multiplicities (count).",
        "reading": "Every parameter string and every epsilon stands for the IEEE double float(string); delta is the exact value for "
                   "those doubles. delta is a decimal string (it may be below the smallest double); `digits` of its significant digits are agreed "
                   "by the routes named in `method`. conditioning (one-step and contour values): sum of the relative changes of delta when sigma, q and "
                   "epsilon each move by 2^-53 relative; a test in double precision should allow a small multiple of it (for the contour values it is estimated from the Chernoff bound, within a factor of about 2)."}, values)


if __name__ == "__main__":
    main()
