"""Random input in the live calculator: a few cases find nothing, and faults that are put in are found."""

import copy
import json

import fuzz_calculator
import pytest

pytestmark = [pytest.mark.slow, pytest.mark.browser]


@pytest.fixture(scope="module")
def cases(chromium, tmp_path_factory):
    """The first cases, with what the page shows."""
    folder = tmp_path_factory.mktemp("calculator")
    fuzz_calculator.page_of(folder)
    asked = [fuzz_calculator.case_of(number) for number in range(120)]
    page = chromium.new_page()
    page.goto((folder / "page.html").as_uri())
    shown = page.evaluate(fuzz_calculator.ASK, [case for case, _ in asked])
    page.close()
    return [(case, bad, seen) for (case, bad), seen in zip(asked, shown)]


def test_a_few_cases_find_nothing(cases):
    problems = {number: fuzz_calculator.judged(*found) for number, found in enumerate(cases)}
    assert {number: wrong for number, wrong in problems.items() if wrong} == {}
    answered = [seen for _, _, seen in cases if seen["result"]]
    refused = [seen for _, _, seen in cases if "cannot be used" in seen["answer"]]
    asked = [seen for _, _, seen in cases if "First say how batches are drawn" in seen["answer"]]
    assert len(answered) > 20 and len(refused) > 20 and len(asked) > 3
    assert {seen["scheme"] for seen in answered} == {"poisson", "fixed", "known", "bins"}
    assert [fuzz_calculator.contradiction(seen) for seen in answered[:10]] == [None] * 10


def bracketed(cases):
    """An answer with a bracket above 0, as it may be changed."""
    for case, bad, seen in cases:
        if (
            seen["result"]
            and bad == []
            and seen["scheme"] != "bins"
            and '"method":"contour' in seen["result"].split('"add"')[0]
        ):
            return copy.deepcopy((case, bad, seen))
    raise AssertionError("no case has an answer")


def changed(what, seen, bad):
    found = json.loads(seen["result"])
    if what == "exception":
        seen["thrown"] = ["TypeError: x is undefined"]
    elif what == "s":
        seen["seconds"] = 11.0
    elif what == "shown":
        seen["answer"] = "ε ≤ NaN at δ = 1e-6"
    elif what == "accepted":
        bad.append("delta")
    elif what == "bracket":
        found["remove"]["lower"] = 2 * found["remove"]["upper"]
    elif what == "is shown for":
        found["remove"]["upper"] *= 1.01
    elif what == "an open question":
        seen["scheme"] = ""
    elif what == "fixed":
        found["rows"]["fixed"] = 1e9
    elif what == "complaint":
        seen["state"]["delta"] |= {
            "error": f"must be y; got {seen['state']['delta']['text']}",
            "marked": True,
        }
        bad.append("delta")
    elif what == "the library says":
        for side in ("remove", "add"):
            found[side] = {"lower": 1e6, "upper": 1.1e6}
    seen["result"] = json.dumps(found)


@pytest.mark.parametrize(
    "what",
    [
        "exception",
        "s",
        "shown",
        "accepted",
        "bracket",
        "is shown for",
        "complaint",
        "an open question",
        "fixed",
    ],
)
def test_a_fault_is_found(cases, what):
    case, bad, seen = bracketed(cases)
    assert fuzz_calculator.judged(case, bad, seen) is None
    changed(what, seen, bad)
    assert what in fuzz_calculator.judged(case, bad, seen)


def test_a_wrong_number_is_contradicted(cases):
    _, bad, seen = bracketed(cases)
    changed("the library says", seen, bad)
    assert "the library says" in fuzz_calculator.contradiction(seen)


def test_a_plot_with_a_bad_number_is_found():
    assert fuzz_calculator.plot_problem(["1", "0.5", "no bracket here"]) is None
    for cell in ("NaN", "-1", "Infinity"):
        assert cell in fuzz_calculator.plot_problem(["1", cell])


# --- the accountant alone ------------------------------------------------------------------------------


def test_a_few_questions_find_nothing(chromium):
    page = chromium.new_page()
    found = fuzz_calculator.brackets_on(page, 60)
    page.close()
    assert found["wrong"] == [] and found["cases"] == 60 and found["compared"] > 30
    assert set(found["groups"]) == {"poisson", "fixed", "known"}


ANSWERS = {
    "remove": ("200.0", "201.0", "the library says"),
    "add": ("1.0", "1.1", "the library says"),
    "lemma": ("0", "20.0", "does not meet the lemma"),
    "noise": ("0", "0.3", "the library says"),
}


@pytest.mark.parametrize("question", ANSWERS)
def test_a_wrong_answer_is_found(question):
    case = {"scheme": "poisson", "question": question, "sigma": 1.0, "q": 0.01, "steps": 2000, "group": 4, "delta": 1e-6, "epsilon": 1.0}
    lower, upper, words = ANSWERS[question]
    seen = {"refused": None, "thrown": None, "lower": lower, "upper": upper, "seconds": 0.1}
    assert words in fuzz_calculator.false_answer(case, seen)
    right = {"remove": ("0", "15"), "add": ("0", "15"), "lemma": ("0", "28.4"), "noise": ("0", "100")}[question]
    assert fuzz_calculator.false_answer(case, seen | {"lower": right[0], "upper": right[1]}) is None
    assert fuzz_calculator.false_answer(case, seen | {"refused": "too many nodes"}) is None
    for change, what in (({"upper": "NaN"}, "bracket"), ({"lower": "-0.05", "upper": "-0.049"}, "bracket"), ({"thrown": "TypeError"}, "exception")):
        assert what in fuzz_calculator.false_answer(case, seen | change)
    assert "11.0 s" in fuzz_calculator.false_answer(case, seen | {"seconds": 11.0})
