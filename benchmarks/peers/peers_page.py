"""The tables of book/peers.md, from benchmarks/results/peers.json.

Each table stands between `<!-- peers: NAME -->` and `<!-- peers: end -->`; the text around it is written by hand.
"""

import math
import re
from pathlib import Path

from questions import ALONE, LIBRARIES, QUESTIONS

PAGE = Path(__file__).resolve().parents[2] / "book" / "peers.md"
EQUAL = 1e-6  # relative: less is agreement
WIDE = 1e-3  # so far below the upper end of a bracket, and above the lower one, is tighter
TICK = 0.01  # seconds: the clock of CPU time resolves no less
ACCOUNTANTS = {
    "bracket": "", "pld": "PLD", "rdp": "Rényi", "prv": "PRV", "fourier": "Fourier", "exact": "exact",
    "mmcc": "MMCC", "renyi": "Rényi", "certificate": "certificate", "blocks": "published blocks", "estimate": "estimate", "sampled": "Monte Carlo",
    "separated": "Monte Carlo, b-min-sep", "free": "free coefficients", "banded": "banded",
    "buffered": "buffered", "normalised": "banded, columns of norm 1", "dense": "all entries free",
    "poisson": "banded, cyclic Poisson", "bins": "free, balls in bins",
}  # fmt: skip
HEADS = {
    "sigma": "$\\sigma$", "q": "$q$", "steps": "$T$", "delta": "$\\delta$", "epsilon": "$\\varepsilon$",
    "batch": "$B$", "records": "$n+1$", "group": "$k$", "order": "order", "rounds": "rounds", "batches": "$b$",
    "bands": "bands", "separation": "$b$", "probability": "$p$", "epochs": "$E$", "size": "$n$",
    "largest": "largest batch",
}  # fmt: skip


def reference(rows, row):
    """What a row is judged by: dplib's bracket for the same setting where there is one, else its first row."""
    same = [
        other
        for other in rows
        if (other["question"], other["setting"], other["library"]) == (row["question"], row["setting"], "dplib")
        and "failure" not in other
    ]
    brackets = [other for other in same if other["accountant"] == "bracket"]
    return (brackets + same + [None])[0]


def verdict(row, reference, quantity):
    """In words, how a row compares with the reference; "" for the reference itself.

    An upper bound below the certified lower end is too small: it is no guarantee. Otherwise the smaller of two upper
    bounds is the tighter; a wide bracket has room for one below its upper end. Values without a stated error are said to differ, estimates by their standard errors.
    """
    if "failure" in row or reference is None or row is reference:
        return ""
    if row["value"] == "infinite":
        return "no bound"
    value, direction = row["value"], row["direction"]
    if direction == "upper, replace-one":
        return "other neighbours"
    if direction in ("upper", "bracket", "value") and "lower" in reference:
        lower, upper = reference["lower"], reference["value"]
        if value < lower * (1 - EQUAL):
            return f"{_percent(1 - value / lower)} too small"
        if value < upper * (1 - WIDE):
            return f"{_percent(1 - value / upper)} below"
        if value <= upper * (1 + EQUAL):
            return "equal"
        return f"{value / upper:.3g} times as large" if value > 11 * upper else f"{_percent(value / upper - 1)} above"
    if direction == "estimate":
        error = math.hypot(row["standard_error"], reference.get("standard_error", 0.0))
        # Without a single sample in the tail there is no standard error either.
        return "no sample in the tail" if error == 0 or value == 0 else f"{(value - reference['value']) / error:+.1f} s.e."
    change = value / reference["value"] - 1
    if abs(change) < 1e-4:
        return "equal to 0.01%"
    if change > 10:
        return f"{1 + change:.3g} times as large"
    return f"{_percent(abs(change))} {'above' if change > 0 else 'below'}"


def _percent(share):
    return f"{100 * share:.2g}%" if share < 0.1 else f"{100 * share:.3g}%"


def _number(value):
    if value is None:
        return "any"
    if isinstance(value, str):
        return value
    if value and (abs(value) < 1e-3 or abs(value) >= 1e6):
        digits, power = f"{value:.4e}".split("e")
        digits = digits.rstrip("0").rstrip(".")
        return f"$10^{{{int(power)}}}$" if digits == "1" else f"${digits}\\cdot10^{{{int(power)}}}$"
    return f"{value:.5g}" if isinstance(value, float) else f"{value:,}"


def _who(library, accountant):
    kind = ACCOUNTANTS[accountant]
    return f"{library}, {kind}" if kind else library


def _failure(text):
    """Of a failure, as much as fits in a cell."""
    if text.startswith(("no answer", "memory")):
        return text
    if text.startswith("NotImplementedError: "):  # said by the functions of benchmarks/peers
        return text.partition(": ")[2]
    return "error: `" + text.split(":")[0].replace("|", " ")[:60] + "`"


def _answer(row, reference, quantity):
    """A cell: the value, and how it compares."""
    if "failure" in row:
        return _failure(row["failure"])
    told = verdict(row, reference, quantity)
    if told.endswith("too small"):
        told = f"**{told}**"
    value = _number(row["value"])
    if row["direction"] == "bracket" and row["lower"] < row["value"] * (1 - WIDE):
        value = f"[{_number(row['lower'])}, {value}]"
    if row.get("standard_error"):
        value += f" ± {row['standard_error']:.2g}"
    return value + (f" ({told})" if told else "")


def _cost(row, reference):
    """A cell: CPU time over the reference's, and megabytes."""
    if "failure" in row:
        return "–"
    if row is reference or reference is None:
        return f"1 · {row['peak_mb']} MB" if reference else f"{row['peak_mb']} MB"
    ratio = max(row["cpu_s"], TICK) / max(reference["cpu_s"], TICK)
    return f"{ratio:.2g} · {row['peak_mb']} MB"


def table(question, rows, cell):
    """Settings down, accountants across."""
    mine = [row for row in rows if row["question"] == question.name]
    names = list(question.settings[0])
    heads = [HEADS[name] for name in names] + [_who(*answer) for answer in question.answers]
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for setting in question.settings:
        cells = [_number(setting[name]) for name in names]
        for answer in question.answers:
            found = [
                row for row in mine if row["setting"] == setting and (row["library"], row["accountant"]) == answer
            ]
            if len(found) != 1:
                raise ValueError(f"{question.name}: {len(found)} rows of {answer} at {setting}: run `make peers`")
            cells.append(cell(found[0], reference(mine, found[0])))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def blocks(record):
    """Name of a block: its text."""
    rows, found = record["rows"], {}
    for question in QUESTIONS:
        values = table(question, rows, lambda row, base, kind=question.quantity: _answer(row, base, kind))
        absent = "; ".join(f"{name} ({reason})" for name, reason in question.absent.items() if reason != ALONE.get(name))
        found[question.name] = values + (f"\n\nWithout an answer: {absent}." if absent else "")
        found[question.name + " cost"] = table(question, rows, _cost)
    found["versions"] = "\n".join(
        ["| Library | Version |", "|---|---|", *(f"| {name} | {record['versions'][name]} |" for name in LIBRARIES)]
    )
    found["summary"] = summary(rows)
    return found


def summary(rows):
    """Counts for each accountant that claims upper bounds on epsilon."""
    lines = [
        "| Accountant | settings | valid and smaller than dplib's | valid and equal | valid and larger | too small | no answer |",
        "|---|---|---|---|---|---|---|",
    ]
    asked = [question for question in QUESTIONS if question.quantity == "epsilon"]
    accountants = dict.fromkeys(answer for question in asked for answer in question.answers if answer[0] != "dplib")
    for library, accountant in accountants:
        counts = dict.fromkeys(("below", "equal", "above", "too small", "failure"), 0)
        for question in asked:
            for row in rows:
                if (row["question"], row["library"], row["accountant"]) != (question.name, library, accountant):
                    continue
                told = "failure" if "failure" in row else verdict(row, reference(rows, row), "epsilon")
                told = "above" if told == "no bound" or told.endswith("as large") else told
                for kind in counts:
                    counts[kind] += told.endswith(kind)
        total = sum(counts.values())
        if total:
            numbers = " | ".join(str(number) for number in (total, *counts.values()))
            lines.append(f"| {_who(library, accountant)} | {numbers} |")
    return "\n".join(lines)


def filled(page, record):
    """The page with every block replaced; ValueError where a block is missing or unknown."""
    texts = blocks(record)
    seen = re.findall(r"<!-- peers: ([a-z ]+) -->\n", page)
    names = [name for name in seen if name != "end"]
    if sorted(names) != sorted(texts):
        raise ValueError(f"book/peers.md has the blocks {sorted(names)}, there are {sorted(texts)}")

    def replace(match):
        return f"<!-- peers: {match[1]} -->\n\n{texts[match[1]]}\n\n<!-- peers: end -->\n"

    return re.sub(r"<!-- peers: (?!end)([a-z ]+) -->\n.*?<!-- peers: end -->\n", replace, page, flags=re.S)


def write(record):
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), record), encoding="utf-8")
