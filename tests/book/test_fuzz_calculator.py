"""Random input in the live calculator finds nothing, and faults that are put in are found."""

import json

import calculator_cases
import pytest
from hypothesis import given
from property_cases import hostile

pytestmark = [pytest.mark.slow, pytest.mark.browser]


@pytest.fixture(scope="module")
def page(chromium, tmp_path_factory):
    """The form and the scripts of the page, in a folder of their own."""
    folder = tmp_path_factory.mktemp("calculator")
    calculator_cases.page_of(folder)
    page = chromium.new_page()
    page.goto((folder / "page.html").as_uri())
    yield page
    page.close()


@pytest.fixture(scope="module")
def accountant(chromium):
    """An empty page with the accountant's scripts."""
    page = chromium.new_page()
    for name in calculator_cases.ACCOUNTANT:
        page.add_script_tag(path=calculator_cases.ROOT / "book" / "_live" / name)
    yield page
    page.close()


def shown(page, case):
    [seen] = page.evaluate(calculator_cases.ASK, [case])
    return seen


@hostile(150)
@given(case=calculator_cases.cases())
def test_any_input_is_answered_or_explained(page, case):
    assert calculator_cases.judged(*case, shown(page, case[0])) is None


@hostile(10)
@given(case=calculator_cases.cases(addresses=False))
def test_what_is_answered_meets_the_library(page, case):
    seen = shown(page, case[0])
    assert calculator_cases.judged(*case, seen) is None
    assert not seen["result"] or calculator_cases.contradiction(seen) is None


def test_the_plot_shows_numbers(page):
    shown(page, RIGHT)
    page.wait_for_selector("#calculator-points tbody td", state="attached", timeout=60_000)
    page.wait_for_function(calculator_cases.DRAWN, timeout=60_000)
    cells = page.evaluate(calculator_cases.PLOT)
    assert cells and calculator_cases.plot_problem(cells) is None


@hostile(40)
@given(case=calculator_cases.questions())
def test_the_accountant_meets_the_library(accountant, case):
    [seen] = accountant.evaluate(calculator_cases.ASK_ACCOUNTANT, [case])
    assert calculator_cases.false_answer(case, seen) is None


FIELDS = {"sigma": "1", "q": "0.01", "batch": "100", "records": "10000", "steps": "2000", "group": "3", "delta": "1e-6", "epsilon": "2"}
RIGHT = {"fields": FIELDS, "radios": {"unknown": "epsilon", "given": "sizes", "scheme": "poisson"}, "address": None}


@pytest.fixture
def bracketed(page):
    """An answer with a bracket above 0, as it may be changed."""
    seen = shown(page, RIGHT)
    assert seen["result"] and calculator_cases.judged(RIGHT, [], seen) is None
    return RIGHT, [], seen


def changed(what, seen, bad):
    found = json.loads(seen["result"])
    if what == "exception":
        seen["thrown"] = ["TypeError: x is undefined"]
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
        "shown",
        "accepted",
        "bracket",
        "is shown for",
        "complaint",
        "an open question",
        "fixed",
    ],
)
def test_a_fault_is_found(bracketed, what):
    case, bad, seen = bracketed
    changed(what, seen, bad)
    assert what in calculator_cases.judged(case, bad, seen)


def test_a_wrong_number_is_contradicted(bracketed):
    _, bad, seen = bracketed
    assert calculator_cases.contradiction(seen) is None
    changed("the library says", seen, bad)
    assert "the library says" in calculator_cases.contradiction(seen)


def test_a_plot_with_a_bad_number_is_found():
    assert calculator_cases.plot_problem(["1", "0.5", "no bracket here"]) is None
    for cell in ("NaN", "-1", "Infinity"):
        assert cell in calculator_cases.plot_problem(["1", cell])


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
    seen = {"refused": None, "thrown": None, "lower": lower, "upper": upper}
    assert words in calculator_cases.false_answer(case, seen)
    right = {"remove": ("0", "15"), "add": ("0", "15"), "lemma": ("0", "28.4"), "noise": ("0", "100")}[question]
    assert calculator_cases.false_answer(case, seen | {"lower": right[0], "upper": right[1]}) is None
    assert calculator_cases.false_answer(case, seen | {"refused": "too many nodes"}) is None
    for change, what in (({"upper": "NaN"}, "bracket"), ({"lower": "-0.05", "upper": "-0.049"}, "bracket"), ({"thrown": "TypeError"}, "exception")):
        assert what in calculator_cases.false_answer(case, seen | change)
