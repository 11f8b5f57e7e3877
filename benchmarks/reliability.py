"""Claim: every case in which a trusted accountant goes wrong gives the right value or a clear error,
within 2 s and 500 MB, start of the interpreter included."""

import sys

from _common import Report, in_fresh_process, values

SECONDS, MEGABYTES = 2.0, 500.0
# The committed truths have 12 digits.
DIGITS = 5e-12


def answer(sigma, q, k, rounds, delta):
    """Runs in its own process: the bracket, or the error's text."""
    import dplib

    mechanism = dplib.PoissonDPSGD(sigma, q, rounds, k)
    try:
        bracket = mechanism.epsilon(delta)
    except (dplib.NoBracketError, ValueError) as error:
        return {"error": str(error)}
    return {"lower": bracket.lower, "upper": bracket.upper, "method": bracket.method}


def main():
    report = Report("reliability", "Cases in which a trusted accountant goes wrong")
    rows, skipped = [], []
    for case in values("reliability"):
        given = case["input"]
        if "sigma" not in given:
            skipped.append(case)
            continue
        settings = (given["sigma"], given["q"], given.get("k", 1), given["T"], given["delta"])
        done = in_fresh_process("reliability", "answer", *settings, timeout=120)
        row = dict(zip(("sigma", "q", "k", "T", "delta"), settings))
        row |= {"id": case["id"], "peer": case["reported"] or case["outcome"], "truth": case["truth"]}
        row |= {"wall s": done["wall"], "inside s": done.get("seconds"), "peak MB": done.get("peak_mb")}
        found = done.get("answer", {})
        if "failure" in done:
            row["verdict"] = done["failure"]
            report.wrong(f"{case['id']}: {done['failure']}")
        elif "error" in found:
            row["verdict"] = "clear error: " + found["error"]
        else:
            room = DIGITS * case["truth"]
            right = found["lower"] - room <= case["truth"] <= found["upper"] + room
            row |= {"lower": found["lower"], "upper": found["upper"], "method": found["method"]}
            row["width"] = (found["upper"] - found["lower"]) / found["upper"]
            row["verdict"] = "right" if right else "WRONG"
            if not right:
                report.wrong(
                    f"{case['id']}: [{found['lower']!r}, {found['upper']!r}] misses {case['truth']!r}"
                )
        rows.append(row)
    columns = [
        "sigma",
        "q",
        "k",
        "T",
        "delta",
        "peer",
        "truth",
        "upper",
        "width",
        "method",
        "wall s",
        "peak MB",
    ]
    report.table("Cases (one process each, both directions)", rows, [*columns, "verdict"])
    report.say("\n  Peer: as recorded in tests/data/reliability.json, not run here.")
    for case in skipped:
        report.say(f"  Not run, no counterpart in dplib: {case['id']}, {case['input']['call']}.")
    report.say("")
    answered = [r for r in rows if r["verdict"] == "right" or r["verdict"].startswith("clear error")]
    report.claim("cases neither right nor a clear error", len(rows) - len(answered), at_most=0)
    report.claim("slowest case, whole process", max(r["wall s"] for r in rows), at_most=SECONDS, unit="s")
    report.claim("largest peak memory", max(r["peak MB"] or 0 for r in rows), at_most=MEGABYTES, unit="MB")
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
