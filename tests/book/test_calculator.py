"""The wizard of chapter 18 in a browser, against the library."""

import collections
import contextlib
import functools
import io
import itertools
import json
import math
import re
from fractions import Fraction

import browser_checks as checks
import mpmath as mp
import notebook_tools as tools
import numpy as np
import pytest

import dplib
from dplib import accounting, contour, gaussian
from dplib.lessons import baselines
from dplib.results import NoBracketError

pytestmark = [pytest.mark.slow, pytest.mark.browser]
EVERY = {"poisson, swap": 2, "poisson, mixed": 4, "fixed, swap": 4}  # of the random sizes on which a scheme is compared
PAGE = "notebooks/18_which_accountant.html"
AGREEMENT = 1e-8  # relative: a bracket of the browser and one of the library
ASK = checks.script("epsilons")
ASK_SCHEMES = checks.script("schemes")


@pytest.fixture(scope="module")
def chapter(tab, watch, address):
    checks.open_without_formulas(tab, f"{address}/{PAGE}")


@pytest.fixture
def calculator(chapter, page):
    """The page as it was opened, with Poisson sampling chosen."""
    page.evaluate("() => { history.replaceState(null, '', location.pathname); document.getElementById('calculator').reset() }")
    choose(page, "poisson")
    return page


def settings(count):
    """Random settings, one in ten at the edge of what the page allows."""
    rng = np.random.default_rng(5)
    found = []
    for number in range(count):
        sigma, q = 10 ** rng.uniform(-0.3, 1.3), 10 ** rng.uniform(-3, -0.3)
        T, k = int(10 ** rng.uniform(2.5, 5)), int(10 ** rng.uniform(0, 1.5))
        delta = 10 ** rng.uniform(-12, -1)
        if number % 10 == 0:
            edge = rng.integers(7)
            sigma = [sigma, 0.05, 1000.0][edge] if edge in (1, 2) else sigma
            q, T = (1.0, T) if edge == 3 else (q, 1) if edge == 4 else (q, 10**7) if edge == 0 else (q, T)
            k, delta = (1000, delta) if edge == 5 else (k, 1e-100) if edge == 6 else (k, delta)
        found.append([sigma, q, T, k, delta, "add" if number % 3 == 0 else "remove"])
    return found


def scheme_settings(count):
    """Random sizes: (sigma, B, n, T, k, delta, epochs begun)."""
    rng = np.random.default_rng(6)
    for _ in range(count):
        n = int(10 ** rng.uniform(3, 7))
        B, k = max(1, int(n * 10 ** rng.uniform(-3, -0.5))), int(10 ** rng.uniform(0, 1.3))
        T = int(10 ** rng.uniform(2.5, 4.5))
        yield [10 ** rng.uniform(-0.2, 1.3), B, n, T, k, 10 ** rng.uniform(-10, -2), math.ceil(T / (n // B))]


def library_epsilon(sigma, q, T, k, delta, direction):
    """By the library's contour where there is a contour: the method that the page claims to use."""
    mechanism = dplib.PoissonDPSGD(sigma, q, T, k)
    if T == 1 or q == 1:
        return mechanism.epsilon(delta, direction)
    return contour.side_epsilon(mechanism.composition(), delta, direction)


def test_epsilon_agrees_with_the_library(bare):
    """On 160 random settings: the two brackets meet, and their ends differ by less than 1e-8."""
    asked = settings(160)
    answers = bare.evaluate(ASK, asked)
    answered, lost = 0, []
    for setting, answer in zip(asked, answers):
        try:
            ours = library_epsilon(*setting)
        except NoBracketError:
            # Where the library's contour does not close, the page must not show a number that it cannot back.
            ours = None
        if isinstance(answer, str):
            if ours is not None and ours.relative_width < AGREEMENT:
                lost.append((setting, answer))
            continue
        lower, upper = answer
        assert 0 <= lower <= upper < math.inf, setting
        if ours is None:
            ours = dplib.PoissonDPSGD(*setting[:4]).epsilon(setting[4], setting[5])
            assert lower <= ours.upper and ours.lower <= upper, setting
            continue
        answered += 1
        assert lower <= ours.upper and ours.lower <= upper, (setting, answer, ours)
        assert abs(upper - ours.upper) <= AGREEMENT * ours.upper, (setting, answer, ours)
        assert abs(lower - ours.lower) <= AGREEMENT * ours.upper, (setting, answer, ours)
    assert answered >= 0.9 * len(asked), (answered, lost[:5])


def swapped(mechanism, delta):
    """Removed, then added, each with half of delta."""
    first = contour.side_epsilon(mechanism.composition(), delta / 2, "remove").upper
    upper = first + contour.side_epsilon(mechanism.composition(), delta / 2 * math.exp(-first), "add").upper
    return dplib.Bracket(0.0, upper, "removed, then added")


def by_contour(mechanism, delta):
    return contour.side_epsilon(mechanism.composition(), delta, "remove")


def either_side(mechanism, delta):
    """The larger of both directions, each by the contour of the pair that faces it."""
    [(pair, rounds)] = mechanism.composition()
    sides = [contour.side_epsilon([(facing, rounds)], delta, "remove") for facing in (pair, pair.swapped)]
    return dplib.Bracket(max(side.lower for side in sides), max(side.upper for side in sides), "contour")


def told(sigma, k, epochs, delta):
    exact = gaussian.epsilon(k * math.sqrt(epochs) / sigma, delta)
    return dplib.Bracket(exact, exact, "closed form")


def test_every_scheme_agrees_with_the_library(bare):
    """Every other scheme's answer on 160 random sizes, those with others instead on a part of them: ends that differ by less than 1e-8."""
    asked = list(scheme_settings(160))
    answered = dict.fromkeys(("fixed", "known", "last", "poisson, swap", "poisson, mixed", "fixed, swap"), 0)
    for number, (setting, answers) in enumerate(zip(asked, bare.evaluate(ASK_SCHEMES, asked))):
        sigma, B, n, T, k, delta, epochs = setting
        fixed = dplib.FixedBatchDPSGD(sigma, B, n - k, T, k)
        routes = {
            "fixed": (by_contour, fixed, delta),
            "known": (told, sigma, k, epochs, delta),
            "last": (dplib.LastIterate.epsilon, dplib.LastIterate(sigma, B / n, T), delta),
            "poisson, swap": (either_side, dplib.PoissonDPSGD(sigma, B / n, T, k, "substitution"), delta),
            "poisson, mixed": (either_side, dplib.PoissonDPSGD(sigma, B / n, T, inserted=k, deleted=1 + k % 7), delta),
            "fixed, swap": (swapped, fixed, delta),
        }
        for scheme, answer in answers.items():
            if isinstance(answer, str) or number % EVERY.get(scheme, 1):
                continue
            route, *arguments = routes[scheme]
            try:
                found = route(*arguments)
            except (NoBracketError, ValueError):  # another accountant of the library, with a wider bracket
                if route in (by_contour, either_side):
                    found = arguments[0].epsilon(delta)
                    assert answer[0] <= found.upper and found.lower <= answer[1], (scheme, setting)
                continue
            assert abs(answer[1] - found.upper) <= AGREEMENT * found.upper, (scheme, setting)
            if route is not swapped:
                assert answer[0] <= found.upper and found.lower <= answer[1], (scheme, setting)
                assert abs(answer[0] - found.lower) <= AGREEMENT * found.upper, (scheme, setting)
            answered[scheme] += 1
    assert answered["known"] == answered["last"] == len(asked), answered
    for scheme in ("fixed", "poisson, swap", "poisson, mixed"):
        assert answered[scheme] >= 0.85 * len(asked) / EVERY.get(scheme, 1), answered
    assert answered["fixed, swap"] >= 25, answered


@pytest.mark.parametrize("B, n, k", [(1, 5, 1), (3, 7, 4), (40, 60, 30), (100, 10_000, 9), (2, 10**12, 1000)])
def test_the_weights_of_a_fixed_batch(bare, B, n, k):
    """Hypergeometric weights against exact fractions, as far as they are not negligible."""
    ask = "([B, n, k]) => { const [logs, error] = PrivacyAccountant.hypergeometric(B, n, k); return [[...logs], error]; }"
    logs, error = bare.evaluate(ask, [B, n, k])
    ways = [math.comb(k, j) * math.comb(n, B - j) for j in range(min(B, k) + 1)]
    exact = [math.log(Fraction(way, max(ways))) for way in ways]
    assert len(logs) == len(exact) and error < 1e-12
    assert all(abs(a - b) <= error + 1e-13 * abs(b) for a, b in zip(logs, exact))


def test_the_gaussian_mechanism_against_sixty_digits(bare):
    """Known batches: epsilon of shifts from 1e-6 to 1e8, and the kernel of every one-round delta, far to the left too."""
    rng = np.random.default_rng(11)
    x, shift = np.append(rng.uniform(-38, 60, 300), [2e8, 1e10]), 10 ** np.append(rng.uniform(-6, 8, 300), [1.0, 3.0])
    ours = bare.evaluate("pairs => pairs.map(([x, a]) => PrivacyAccountant.logTailDifference(x, a))", list(zip(x.tolist(), shift.tolist())))
    tail = lambda t: mp.erfc(t / mp.sqrt(2)) / 2
    for value, t, a in zip(ours, x.tolist(), shift.tolist()):
        with mp.workdps(400):
            t, a = mp.mpf(t), mp.mpf(a)
            if t < 1e6:
                exact = mp.log(tail(t) - mp.exp(a * (t + a / 2)) * tail(t + a))
            else:  # the Mills ratio is 1 / t
                exact = mp.log(1 / t - 1 / (t + a)) - t * t / 2 - mp.log(2 * mp.pi) / 2
            assert abs(value - exact) <= gaussian.TAIL_ERROR * (1 + abs(exact)), (t, a)
    asked = [[10 ** rng.uniform(-1.3, 3), int(10 ** rng.uniform(0, 7)), int(10 ** rng.uniform(0, 3)), 10 ** rng.uniform(-12, -0.01)] for _ in range(200)]
    asked.append([0.05, 10**7, 1, 1e-6])  # was off in the fifth digit
    for (sigma, steps, k, delta), (lower, upper) in zip(asked, bare.evaluate(checks.script("known_batches"), asked)):
        assert 0 <= lower <= upper <= max(1.000001 * lower, 1e-6)
        with mp.workdps(60):
            mu = k * mp.sqrt(steps) / mp.mpf(sigma)
            missed = lambda e, mu=mu, delta=delta: tail(e / mu - mu / 2) - mp.exp(e) * tail(e / mu + mu / 2) - mp.mpf(delta)
            assert missed(mp.mpf(upper)) <= 0, (sigma, steps, k, delta)
            assert lower == 0 or missed(mp.mpf(lower)) >= 0, (sigma, steps, k, delta)


def test_the_lemma_of_any_setting(bare):
    """One round, rare sampling, certain participation, many rounds: the lemma holds, it is never negative, and 0 only where nothing is lost."""
    rng, asked = np.random.default_rng(12), []
    for number in range(150):
        q, T = 1.0 if number % 10 == 0 else 10 ** rng.uniform(-6, 0), 1 if number % 3 else int(10 ** rng.uniform(0, 4))
        asked.append([10 ** rng.uniform(-0.5, 2), q, T, 10 ** rng.uniform(-12, -0.1), int(rng.integers(1, 17))])
    asked.append([2, 0.01, 1, 1e-5, 3])  # was -.049
    answers = bare.evaluate(checks.script("group_lemma"), asked)
    zeros = some = 0
    for (sigma, q, T, delta, k), bound in zip(asked, answers):
        if bound is None:
            continue
        assert 0 <= bound < math.inf
        composition = dplib.PoissonDPSGD(sigma, q, T).composition()
        try:
            log_delta = accounting.log_delta(composition, bound / k).lower
        except NoBracketError:
            continue
        assert math.log(k) + bound + log_delta <= math.log(delta) + 1e-12 * (1 + bound), (sigma, q, T, delta, k, bound)
        zeros, some = zeros + (bound == 0), some + (bound > 0)
        if bound and T == 1:
            assert bound == pytest.approx(baselines.group_lemma(dplib.PoissonDPSGD(sigma, q, T), delta, k), rel=1e-8)
    assert zeros > 10 and some > 50


# ------------------------------------------------------------------ the page


def result(page):
    return json.loads(page.evaluate("document.getElementById('calculator-table').dataset.result"))


def settle(page):
    page.wait_for_selector("#calculator[aria-busy=false]")


def choose(page, scheme):
    page.check(f"input[name=scheme][value={scheme}]")
    settle(page)


def fill(page, **values):
    for name, value in values.items():
        page.fill(f"#f-{name}", str(value))
    settle(page)


def table(page):
    rows = page.locator("#calculator-schemes tbody tr")
    return {row.locator("th").inner_text(): row.locator("td").all_inner_texts() for row in rows.all()}


def visible_numbers(page):
    """Numbers on the page that are no input: of the answer, the tables, the plot, the line of Python."""
    tables = [f"#calculator-{part} tbody" for part in ("table", "schemes", "points")]
    shown = page.locator(", ".join(["#calculator-answer", "#calculator-plot", "#calculator-python", *tables]))
    return re.findall(r"[0-9]", "".join(shown.all_text_contents()))


def ask(page, **state):
    """Answers and numbers by the address, as a link does it."""
    page.evaluate(
        "state => { document.getElementById('calculator').setAttribute('aria-busy', 'true'); location.hash = new URLSearchParams(state); }",
        {name: str(value) for name, value in state.items()},
    )
    settle(page)


def test_no_number_appears_before_the_question_is_answered(chromium, address):
    page = chromium.new_page(viewport=checks.DESKTOP)
    checks.open_without_formulas(page, f"{address}/{PAGE}")
    page.wait_for_timeout(500)  # a plot would be drawn by now
    assert page.locator("input[name=scheme]:checked").count() == 0
    assert "how batches are drawn" in page.inner_text("#calculator-answer")
    assert visible_numbers(page) == []
    fill(page, sigma=2)
    page.wait_for_timeout(500)
    assert visible_numbers(page) == [] and "scheme" not in page.url
    page.focus("input[name=scheme][value=poisson]")
    page.keyboard.press("Space")
    settle(page)
    assert "Poisson sampling" in page.inner_text("#calculator-detail")
    page.keyboard.press("ArrowDown")
    settle(page)
    assert "fixed size" in page.inner_text("#calculator-detail") and "scheme=fixed" in page.url
    page.close()


def test_all_schemes_stand_beside_each_other(calculator):
    """n = 10,000, B = 100, T = 2000, epsilon = 8, delta = 1e-5: the noise that each scheme needs."""
    ask(calculator, scheme="poisson", unknown="sigma", records=10_000, batch=100, steps=2000, epsilon=8, delta="1e-5")
    shown = ["0.643334", "1.28667", "nothing proved", "2.68431", "1.28667", "needs participations", "needs a separation", "nothing proved"]
    assert [row[0] for row in table(calculator).values()] == shown
    needed = {
        "poisson": dplib.calibrate(dplib.PoissonDPSGD(1, 0.01, 2000), epsilon=8, delta=1e-5).noise_multiplier,
        "fixed": dplib.calibrate(dplib.FixedBatchDPSGD(1, 100, 9999, 2000), epsilon=8, delta=1e-5).noise_multiplier,
        "bins": math.sqrt(20) / gaussian.calibrate(8, 1e-5),
        "truncated": 2 * dplib.calibrate(dplib.PoissonDPSGD(1, 0.01, 2000), epsilon=8, delta=1e-5).noise_multiplier,
    }
    for scheme, sigma in needed.items():
        choose(calculator, scheme)
        found = result(calculator)
        assert {name: value for name, value in found["rows"].items() if value} == pytest.approx(needed, rel=AGREEMENT)
        assert found["value"] == pytest.approx(sigma, rel=AGREEMENT)
        assert f"{sigma:.4f}"[:5] in calculator.inner_text("#calculator-answer")
    choose(calculator, "known")
    assert "choose zero-out" in calculator.inner_text("#calculator-answer")
    assert calculator.inner_text("#calculator-python") == ""
    calculator.check("input[name=relation][value=zero]")
    settle(calculator)
    assert table(calculator)["shuffled, in order, or known"] == ["2.68431", "closed form, no amplification"]


# ------------------------------------------------------------------ the decision, and the Python that goes with it

ANSWERS = {
    "scheme": {
        "poisson": "Poisson", "fixed": "fixed", "known": "shuffled", "bins": "bins",
        "truncated": "truncated", "allocation": "allocation", "pauses": "pauses", "phases": "phases",
    },
    "released": {"all": ("independent", "all"), "last": ("independent", "last"), "sums": ("correlated", "all")},
    "unit": {"record": "record", "group": "group"},
    "relation": {"add": "add/remove", "zero": "zero-out", "swap": "substitution", "mix": "mixed"},
}  # fmt: skip
COMBINATIONS = [dict(zip(ANSWERS, chosen)) for chosen in itertools.product(*ANSWERS.values())]


@functools.cache
def the_chapter():
    """What the chapter's list of rules defines."""
    names, notebook = {"product": itertools.product}, tools.read(tools.ROOT / "notebooks" / "18_which_accountant.ipynb")
    for cell in tools.code_cells(notebook):
        if re.match(r"ANSWERS = |def fits", tools.source(cell)):
            exec(tools.source(cell).partition("everybody")[0], names)
    return names


def ending_of(answers):
    scheme, (noise, released), unit, relation = (ANSWERS[question][chosen] for question, chosen in answers.items())
    return the_chapter()["decide"](scheme, noise, released, unit, relation)


def test_it_decides_as_the_chapter_does(form, html):
    """All sets of answers: the ending of the chapter's list of rules; where there is none, a reason and a way on."""
    seen = set()
    for answers in COMBINATIONS:
        ask(form, **answers, records=10_000, steps=1000, sigma=10)  # which the page answers fast
        ending = ending_of(answers)
        assert result(form)["ending"] == ending, answers
        said, proved = form.inner_text("#calculator-answer"), form.get_attribute("#calculator-proof", "href")
        if ending == "nothing proved":
            assert "hoose" in said and not re.search(r"\d", said), answers
        else:
            target, _, anchor = proved.partition("#")
            text = (html / "notebooks" / (target or "18_which_accountant.html")).read_text(encoding="utf-8")
            assert not anchor or f'id="{anchor}"' in text, proved
        seen.add(ending)
    assert len(seen) == len({rule[-1] for rule in the_chapter()["RULES"]}) - 2  # but the two endings in which parts take turns


def run(text):
    """What Python prints, line by line, as numbers."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(text, {})
    return [float(line) for line in printed.getvalue().split()]


def random_states():
    """Up to three of each ending, in turn with each question."""
    rng, seen = np.random.default_rng(8), collections.Counter()
    for answers in COMBINATIONS:
        ending = ending_of(answers)
        if ending == "nothing proved" or answers["released"] == "sums" or seen[ending] == 3:
            continue
        unknown = ("epsilon", "sigma", "steps")[seen[ending]]
        seen[ending] += 1
        records, rate = int(10 ** rng.uniform(3, 5)), 10 ** rng.uniform(-2.5, -1)
        yield answers | {
            "unknown": unknown,
            "records": records, "batch": max(1, int(records * rate)), "steps": int(10 ** rng.uniform(2.7, 3.7)),
            "sigma": round(10 ** rng.uniform(0, 0.8), 3), "epsilon": round(10 ** rng.uniform(-0.3, 0.9), 3),
            "group": int(rng.integers(1, 6)), "others": int(rng.integers(1, 6)), "delta": float(f"{10 ** rng.uniform(-9, -4):.3g}"),
            "largest": int(1.2 * records * rate) + 5, "parts": int(rng.integers(1, 4)), "separation": int(rng.integers(2, 6)),
        } | SMALL.get((answers["scheme"], unknown), {})  # fmt: skip


SMALL = {  # where more rounds take the library long
    ("pauses", "epsilon"): {"records": 2000, "batch": 80, "steps": 60},
    ("allocation", "epsilon"): {"records": 2000, "batch": 80, "steps": 25, "parts": 1},
    ("allocation", "sigma"): {"records": 2000, "batch": 80, "steps": 25, "parts": 1},
}
SECOND = {  # endings whose Python prints a smaller number as well: of which questions
    "bins": ("epsilon", "sigma"), "random allocation": ("epsilon", "sigma"), "pauses": ("epsilon",), "fixed batch, swap": ("epsilon", "sigma", "steps"),
    "truncated Poisson": ("epsilon", "sigma", "steps"), "truncated Poisson, zero-out": ("epsilon", "sigma", "steps"),
    "truncated Poisson, swap": ("epsilon", "sigma", "steps"),
}  # fmt: skip


def test_the_python_prints_what_the_page_says(form):
    """Random settings of every ending; a second number is the library's, and never worse."""
    compared, endings, seconds = 0, set(), 0
    for state in random_states():
        if state["unknown"] == "steps" and state["scheme"] == "truncated":
            state["unknown"] = "epsilon"  # the search takes a minute: see below
        ask(form, **state)
        found = result(form)
        ending, value = found["ending"], found["value"]
        if value is None and ending != "phases":
            continue
        printed = run(form.inner_text("#calculator-python"))
        steps = state["unknown"] == "steps"
        assert all(0 < number < math.inf for number in printed) or steps, state
        assert len(printed) == 1 + (state["unknown"] in SECOND.get(ending, ())), state
        if value is not None:
            assert printed[0] == pytest.approx(value, rel=0 if steps else AGREEMENT), state
            assert all(0.01 * value < number <= value * (1 + AGREEMENT) or steps and number >= value for number in printed[1:]), state
            said = form.inner_text("#calculator-detail")
            assert ("last line of the Python" in said) == (len(printed) == 2), (state, said)
        compared, endings, seconds = compared + 1, endings | {ending}, seconds + len(printed) - 1
    assert compared >= 45 and seconds >= 12 and len(endings) == 23, (compared, seconds, endings)


@pytest.mark.parametrize("relation", ["add", "zero", "swap"])
def test_steps_of_batches_that_are_cut(calculator, relation):
    """The library finds more steps than the bound at half the noise, and one more would be too many."""
    ask(calculator, scheme="truncated", relation=relation, unknown="steps", sigma=2, records=1000, batch=50, largest=60, epsilon=2, delta="1e-5")
    first, second = run(calculator.inner_text("#calculator-python"))
    adjacency = {"add": "add-remove", "zero": "zero-out", "swap": "substitution"}[relation]
    spent = [dplib.TruncatedPoissonDPSGD(2, 0.05, 1000, 60, int(second) + more, adjacency).epsilon(1e-5).upper for more in (0, 1)]
    assert first < second and spent[0] <= 2 < spent[1]


def test_fields_of_the_rarer_schemes(calculator):
    """Each asks for its own number, and says where that does not fit."""
    for scheme, name in (("truncated", "largest"), ("allocation", "parts"), ("pauses", "separation")):
        assert not calculator.is_visible(f"#f-{name}")
        choose(calculator, scheme)
        assert calculator.is_visible(f"#f-{name}")
    fill(calculator, separation=101)
    assert "at most n/B, 100" in calculator.inner_text("#calculator-separation-error")
    assert "cannot be used" in calculator.inner_text("#calculator-answer")
    choose(calculator, "poisson")
    calculator.check("input[name=relation][value=mix]")
    settle(calculator)
    assert "inserted=1, deleted=3" in calculator.inner_text("#calculator-python")
    exact = dplib.PoissonDPSGD(1, 0.01, 2000, inserted=1, deleted=3).epsilon(1e-6)
    assert result(calculator)["value"] == pytest.approx(exact.upper, rel=AGREEMENT)


@pytest.mark.parametrize("unknown", ["epsilon", "sigma"])
def test_an_encoder_gets_its_call(calculator, unknown):
    """The lines run, and what they print is an upper bound of the right size."""
    for scheme, unit, relation in (
        ("poisson", "record", "add"), ("bins", "record", "zero"), ("bins", "group", "add"), ("known", "group", "swap"),
        ("pauses", "record", "add"), ("pauses", "group", "mix"), ("allocation", "record", "add"), ("allocation", "group", "swap"),
    ):  # fmt: skip
        ask(calculator, scheme=scheme, unit=unit, relation=relation, released="sums", unknown=unknown, records=320, batch=20, steps=64, sigma=20, epsilon=1, group=2, delta="1e-5")
        assert result(calculator)["value"] is None
        assert "library" in calculator.inner_text("#calculator-answer")
        [printed] = run(calculator.inner_text("#calculator-python"))
        assert 0.01 < printed < 100


def test_batches_that_do_not_fit(calculator):
    """Known batches: 2000 steps of 7 batches an epoch begin 286 epochs. A fixed batch needs B records without the group."""
    ask(calculator, scheme="known")  # as an address said it when only zero-out was meant
    fill(calculator, batch=7000)
    assert "sqrt(286)" in calculator.inner_text("#calculator-python")
    choose(calculator, "fixed")
    fill(calculator, batch=50_000)
    assert "50001" in calculator.inner_text("#calculator-records-error")
    assert "cannot be used" in calculator.inner_text("#calculator-answer") and table(calculator) == {}


def test_the_advice_on_delta(calculator):
    """It says how many records a program with this delta may publish, and leads to the section on it."""
    assert "0.05 of 50,000 records" in calculator.inner_text("#calculator-advice")
    fill(calculator, delta="2e-5")
    assert "no protection" in calculator.inner_text("#calculator-advice")
    assert calculator.get_attribute(".calculator-advice a", "href").endswith("#choosing-delta")
    assert "calculator-advice" in calculator.get_attribute("#f-delta", "aria-describedby")


def test_a_refusal_is_said(calculator):
    fill(calculator, steps=2, batch=5)
    assert "No bracket closes" in calculator.inner_text("#calculator-answer")
    assert "steps=2" in calculator.inner_text("#calculator-python")


def test_the_address_holds_the_numbers(chromium, calculator):
    fill(calculator, batch=500, records=50000, steps=1234, sigma=1.5)
    expected, where = result(calculator), calculator.url
    assert "steps=1234" in where
    other = chromium.new_page()
    checks.open_without_formulas(other, where)
    settle(other)
    assert result(other) == expected
    assert other.input_value("#f-records") == "50000"
    other.close()


def test_an_anchor_is_no_state(chromium, address):
    """A link to a section leads there; the form leaves the address alone until somebody answers."""
    page = chromium.new_page(viewport=checks.PHONE)
    checks.open_page(page, f"{address}/{PAGE}#choosing-delta")
    settle(page)
    page.wait_for_function("() => Math.abs(document.getElementById('choosing-delta').getBoundingClientRect().top) < innerHeight")
    assert page.url.endswith("#choosing-delta")
    page.close()


def test_the_answer_stays_in_view(chromium, address):
    """On a phone, from the first question to the last line of the form."""
    page = chromium.new_page(viewport=checks.PHONE)
    checks.open_without_formulas(page, f"{address}/{PAGE}#scheme=poisson&steps=2000")
    settle(page)
    for place in ("input[name=scheme]", "input[name=unknown]", "#f-delta", "#calculator-schemes", "#calculator-python", "#calculator-table"):
        page.locator(place).first.evaluate("node => node.scrollIntoView({ block: 'center', behavior: 'instant' })")
        box = page.locator("p.calculator-answer").bounding_box()
        assert box["y"] >= 0 and box["y"] + box["height"] <= checks.PHONE["height"], (place, box)
        assert box["height"] < checks.PHONE["height"] / 4
    page.close()


def test_the_plot_has_a_table_beside_it(calculator):
    calculator.click("#calculator-growth summary")
    calculator.wait_for_function(
        "() => document.querySelectorAll('#calculator-points tbody tr').length === 16"
    )
    rows = calculator.locator("#calculator-points tbody tr")
    third = [float(text) for text in rows.nth(2).locator("td").all_text_contents()]
    assert third[1] == pytest.approx(dplib.PoissonDPSGD(1, 0.01, 2000, 3).epsilon(1e-6).upper, rel=1e-5)
    assert third[2] == pytest.approx(
        baselines.group_lemma(dplib.PoissonDPSGD(1, 0.01, 2000), 1e-6, 3), rel=1e-5
    )
    assert "At 16 records" in calculator.get_attribute("#calculator-plot", "aria-label")


def test_it_works_from_the_disk(chromium, html):
    page = chromium.new_page()
    page.goto((html / PAGE).as_uri())
    choose(page, "bins")
    page.wait_for_function("() => document.getElementById('calculator-answer').textContent.includes('ε ≤')")
    page.close()
