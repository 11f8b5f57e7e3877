"""The pages on the sources, errata and ledger, are complete."""

import json
import math
from pathlib import Path

import notebook_tools as tools
import source_checks

ERRATA = (tools.ROOT / "book" / "errata.md").read_text(encoding="utf-8")
LEDGER = (tools.ROOT / "book" / "reproductions.md").read_text(encoding="utf-8")
# Every figure and table of the five sources, as {section of the ledger: how its rows begin}.
TABLE = json.loads(Path(__file__).with_name("sources.json").read_text(encoding="utf-8"))
ITEMS = [(heading, start) for heading, starts in TABLE["items"].items() for start in starts]


def test_errata_are_complete():
    problems = source_checks.errata_problems(ERRATA)
    assert not problems, "\n".join(problems)


def test_times_follow_their_benchmarks():
    """Any number of the table would do for the test above; here each is the one that the sentence means."""
    found = {name: source_checks.result(name) for name in ("optimization", "mmcc_speed")}
    claims = {(name, c["what"].strip()): c["measured"] for name in found for c in found[name]["claims"]}
    seconds = [row["wall s"] for row in found["optimization"]["tables"]["Seconds, memory and errors"][:-1]]
    ours = claims["mmcc_speed", "published bound, 2,048 rounds"]
    theirs = ours * claims["mmcc_speed", "dp_accounting row by row over ours"]
    steps = source_checks.result("published_method")["tables"]["64 bits"]
    extrapolated = [row["300 steps, CPU s, extrapolated"] / 60 for row in steps]
    [memory] = [row["MB"] for row in steps if row["V100 s, published"] == "out of memory"]
    for text in (
        f"from {min(extrapolated):.0f} to {max(extrapolated):.0f} minutes of processor time",
        f"ran out of memory takes less than {math.ceil(memory / 100) * 100} MB here",
        f"on one processor core: {min(seconds):.1f} to {max(seconds):.1f} s to convergence",
        f" {claims['optimization', 'most memory']:.0f} MB for the setting that ran out",
        f"at most {claims['optimization', '128 batches instead of 32: times as long, the largest']:.2f} times as long",
        f"| {ours:.1f} s on one processor core with the published bound; about {round(theirs, -1):.0f} s (interpolated)",
    ):
        assert text in LEDGER, text


def test_ledger_is_complete():
    problems = source_checks.ledger_problems(LEDGER, ITEMS)
    assert not problems, "\n".join(problems)
