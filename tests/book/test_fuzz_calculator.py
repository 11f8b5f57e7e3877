"""The wizard of chapter 18 under random input: what a reader types into its fields, or finds in an address.

The page's own form and scripts run in Chromium, from a folder that holds nothing else. Each case fills every field, or
sets the address, and reads what the page then shows. A case is wrong if the page throws an exception,
shows a number that is none, infinite or negative, shows a bracket in the wrong order or rounded to the wrong side, takes
a number that it must refuse, refuses one without saying so at its field, or shows any number before it is said how
batches are drawn.
"""

import json
import math
import re
from pathlib import Path

import browser_checks as checks
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_cases import hostile, logs

pytestmark = [pytest.mark.slow, pytest.mark.browser]
# What is typed: `no_numbers` and `outside` must be refused, `edges` taken, and so every number in `ranges`.
TYPED = json.loads(Path(__file__).with_name("calculator_input.json").read_text(encoding="utf-8"))
FIELDS = TYPED["fields"]
WHOLE = {"steps", "group", "batch", "records", "others", "largest", "parts", "separation"}
SCHEMES = [scheme for scheme in TYPED["questions"]["scheme"] if scheme]
OTHERS = "|".join(("NaN", "Infinity", "undefined", "null", r"\[object"))

# Fill the form (or set the address) and say what is shown.
ASK = checks.script("fill_form")


# --- cases -------------------------------------------------------------------------------------------------


def _valid(name):
    value = logs(*TYPED["ranges"][name])
    shown = value.map(lambda x: str(round(x))) if name in WHOLE else st.tuples(value, st.sampled_from(["r", ".3g", ".6e"])).map(_written)
    return st.integers(0, 9).flatmap(lambda turn: st.sampled_from(TYPED["edges"][name]) if turn == 9 else shown)


def _written(value_and_form):
    value, form = value_and_form
    return repr(value) if form == "r" else format(value, form)


RADIOS = st.fixed_dictionaries(
    {question: st.sampled_from(answers) for question, answers in TYPED["questions"].items()}
)


@st.composite
def cases(draw):
    """({fields, radios, address}, names of the fields that must be refused, or None where nothing is known of them)."""
    kind = draw(st.sampled_from(["right", "wrong", "address", "broken address"]))
    if kind == "broken address":
        return {"fields": {}, "radios": {}, "address": draw(st.sampled_from(TYPED["addresses"]))}, None
    bad = draw(st.sets(st.sampled_from(FIELDS))) if kind == "wrong" else set()
    wrong = lambda name: st.sampled_from(TYPED["no_numbers"] + TYPED["outside"][name])
    fields = {name: draw(wrong(name) if name in bad else _valid(name)) for name in FIELDS}
    radios = draw(RADIOS)
    if kind == "address":
        return {"fields": {}, "radios": {}, "address": "&".join(f"{name}={value}" for name, value in (radios | fields).items())}, None
    return {"fields": fields, "radios": radios, "address": None}, sorted(bad)


@hostile(60)
@given(case=cases())
def test_any_input_is_answered_or_explained(form, case):
    [seen] = form.evaluate(ASK, [case[0]])
    assert judged(*case, seen) is None


# --- judgement ---------------------------------------------------------------------------------------------


def judged(case, bad, seen):
    """What is wrong with what the page shows, or None."""
    if seen["thrown"]:
        return f"exception: {seen['thrown'][0]}"
    visible = {name: field for name, field in seen["state"].items() if not field["hidden"]}
    complaints = {name for name, field in visible.items() if field["error"]}
    for name, field in seen["state"].items():
        if bool(field["error"]) != field["marked"]:
            return f"{name}: the mark and the message do not agree"
        if field["error"] and (
            field["hidden"]
            or "must be" not in field["error"]
            or (field["text"].strip() or "nothing") not in field["error"]
        ):
            return f"{name}: unclear message {field['error'][:100]!r}"
    if bad is not None:
        missed = [name for name in bad if name in visible and name not in complaints]
        if missed:
            return "accepted: " + ", ".join(f"{name} = {visible[name]['text'][:40]!r}" for name in missed)
        if extra := complaints - set(bad) - {"records", "separation"}:
            return f"refused, though allowed: {extra}"
    if complaints or not seen["scheme"]:
        said = "cannot be used" if complaints else "First say how batches are drawn"
        silent = (
            not seen["rows"]
            and not seen["schemes"]
            and not seen["python"]
            and not seen["result"]
            and said in seen["answer"]
        )
        return None if silent else "a complaint or an open question, and an answer too"
    return _answer_problem(seen, visible)


def _answer_problem(seen, visible):
    texts = [
        seen["answer"],
        seen["python"],
        *(text for row in seen["rows"] + seen["schemes"] for text in row),
    ]
    for text in texts:
        if re.search(OTHERS, text):
            return f"shown: {text[:120]!r}"
    found = json.loads(seen["result"])
    if problem := _scheme_problem(seen, found["rows"]):
        return problem
    if found["ending"] == "nothing proved":
        silent = not seen["rows"] and not seen["python"] and found["value"] is None and "hoose" in seen["answer"]
        return None if silent else "a number where nothing is proved"
    if not seen["python"]:
        return "no Python"
    if found["value"] is None:
        said = "No bracket closes" in seen["answer"] or "The library computes this" in seen["answer"]
        return None if said and not seen["rows"] else "a refusal that is not said"
    bound = re.search(r"(?:ε ≤|σ =) (\S+) (?:at|is)|(?:At most|At least) (\d+) steps|(Not even) one step", seen["answer"])
    if not bound or not 0 <= found["value"] < math.inf or not bound[3] and float(bound[1] or bound[2]) < found["value"]:
        return f"{seen['answer'][:80]!r} for {found['value']}"
    for side, row in zip(("remove", "add"), seen["rows"]):
        bracket = found[side]
        if "refused" in bracket:
            if not bracket["refused"] or row[1] != "no bracket here":
                return f"{side}: a refusal without a reason"
            continue
        low, high = map(float, row[1].split(" to "))
        if not 0 <= low <= bracket["lower"] <= bracket["upper"] <= high:
            return f"{side}: {row[1]!r} is shown for {bracket}"
    return None


def _scheme_problem(seen, numbers):
    """The table of all schemes: a row for each, its number rounded up."""
    if len(seen["schemes"]) != len(SCHEMES):
        return f"{len(seen['schemes'])} schemes"
    for scheme, (_, text, _) in zip(SCHEMES, seen["schemes"]):
        value = numbers[scheme]
        if value is None:
            if text not in ("no bracket here", "needs B and n", "needs participations", "needs a separation", "nothing proved", "the library"):
                return f"{scheme}: {text!r} without a number"
        elif not 0 <= value <= float(text) < math.inf:
            return f"{scheme}: {text!r} is shown for {value}"
    return None
