"""Turn earlier reference tables (paths on the command line) into the clean files under tests/data/.

    python convert.py GROUP.json FIGURES.json RELIABILITY.json
"""

import json
import re
import sys

from core import write

group, figures, reliability = (json.load(open(path)) for path in sys.argv[1:4])

NAMES = {"poisson_group": "poisson", "fixed_batch_group": "fixed_batch", "mog": "mixture"}
values = []
for v in group["values"]:
    p = dict(v["params"])
    if "probs" in p:
        p["probabilities"] = p.pop("probs")
    if "B" in p:
        p["batch_size"], p["dataset_size"] = p.pop("B"), p.pop("n")
    p["T"] = p.pop("T")
    values.append({"id": f"group-{len(values):03d}", "mechanism": NAMES[v["mechanism"]], "params": p,
                   "direction": v["direction"], "epsilon": v["epsilon"], "delta": v["delta"],
                   "output": v["output"], "digits": v["digits"], "method": v["method"]})
write("group.json", {
    "convention": "remove: P = sum_j p_j N(s_j, sigma^2), Q = N(0, sigma^2); add: the two swapped. "
                  "delta(epsilon) = sup_S P^T(S) - e^epsilon Q^T(S). poisson: s_j = j, p_j = Binom(k, q). "
                  "fixed_batch: s_j = 2j, j ~ Hypergeom(batch_size, dataset_size + k, k).",
    "reading": "epsilon and delta are decimal strings, parameters are decimals, all meant exactly. "
               "`output` names the computed one of the two; it has `digits` agreed significant digits. "
               "T is the number of rounds."}, values)

rows = []
for v in figures:
    rows.append({"id": f"figure-{len(rows):02d}", "mechanism": {"poisson": "poisson", "fixed": "fixed_batch"}[v["kind"]],
                 "sigma": v["sigma"], "k": v["k"], "epsilon_remove": v["eps_remove"], "epsilon_add": v["eps_add"],
                 "relative_bound": v["bound"]})
write("group_figures.json", {
    "convention": "as in group.json; epsilon at delta = 1e-6, T = 2000 rounds; poisson: q = 0.01; "
                  "fixed_batch: batch_size = 500, dataset_size = 50000, noise sigma as given (twice the Poisson one)",
    "reading": "relative_bound: bound on the relative error of the method that produced the two values, rounding not included"}, rows)

cases = []
for c in reliability["cases"]:
    reported, outcome = c["dp_accounting"], "value"
    if isinstance(reported, str):
        match = re.match(r"([0-9.]+) in [0-9]+ s$", reported)
        if match:
            reported = float(match.group(1))
        elif "bad_alloc" in reported:
            reported, outcome = None, "memory exhausted"
        elif "no answer" in reported:
            reported, outcome = None, "no answer in two minutes"
        elif reported.startswith("inf"):
            reported, outcome = None, reported
        else:
            reported, outcome = None, reported
    kind = re.split("[:,]| or ", c["kind"])[0].strip().lower()
    truth = c["truth"]
    if isinstance(truth, str) and truth.startswith("["):
        truth = json.loads(truth)
    cases.append({"id": f"reliability-{len(cases):02d}", "input": c["input"], "reported": reported, "outcome": outcome,
                  "kind": kind, "truth": truth, "truth_method": c["truth_method"]})
write("reliability.json", {
    "peer": "dp_accounting 0.6.0, PLDAccountant, value_discretization_interval = 1e-4, get_epsilon unless noted",
    "reading": "reported: the peer's epsilon (null when it gave none; `outcome` says what happened instead); "
               "truth: epsilon (the larger of truth_remove and truth_add) to 12 digits; null or a word where the case has no number"}, cases)
