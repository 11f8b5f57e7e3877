"""The live calculator in a browser, against the library."""

import json
import math

import browser_checks as checks
import notebook_tools as tools
import numpy as np
import pytest

import dplib
from dplib import baselines, contour
from dplib.results import NoBracketError

pytestmark = [pytest.mark.slow, pytest.mark.browser]
SCRIPTS = ["special.js", "round.js", "integrand.js", "accountant.js"]
PAGE = "book/calculator.html"
AGREEMENT = 1e-8  # relative: a bracket of the browser and one of the library
ASK = """settings => settings.map(([sigma, q, T, k, delta, direction]) => {
  const A = PrivacyAccountant;
  const made = new A.PoissonDPSGD({noiseMultiplier: sigma, samplingProbability: q, steps: T, groupSize: k});
  try { const b = made.epsilon(delta, direction); return [b.lower, b.upper]; }
  catch (error) { if (error instanceof A.NoBracketError) return error.message; throw error; }
})"""


@pytest.fixture(scope="module")
def bare(chromium):
    """A page with the accountant's scripts and nothing else."""
    page = chromium.new_page()
    for script in SCRIPTS:
        page.add_script_tag(path=tools.ROOT / "book" / "_live" / script)
    yield page
    page.close()


@pytest.fixture
def calculator(chromium, address):
    """The page, with what a reader would see of errors."""
    page = chromium.new_page(viewport=checks.DESKTOP)
    watch = checks.Watch(page, address)
    checks.open_page(page, f"{address}/{PAGE}")
    yield page
    assert watch.take() == []
    page.close()


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


def library_epsilon(sigma, q, T, k, delta, direction):
    """By the library's contour where there is a contour: the method that the page claims to use."""
    mechanism = dplib.PoissonDPSGD(sigma, q, T, k)
    if T == 1 or q == 1:
        return mechanism.epsilon(delta, direction)
    return contour.side_epsilon(mechanism.composition(), delta, direction)


def test_epsilon_agrees_with_the_library(bare):
    """On 320 random settings: the two brackets meet, and their ends differ by less than 1e-8."""
    asked = settings(320)
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


def test_special_functions(bare):
    """erfcx and log of the normal distribution function against SciPy, 1e-13."""
    from scipy import special

    x = np.concatenate([np.linspace(0, 8, 400), np.geomspace(8, 1e6, 100)])
    ours = np.array(bare.evaluate("x => x.map(PrivacyAccountant.erfcx)", x.tolist()))
    assert np.max(np.abs(ours / special.erfcx(x) - 1)) < 1e-13
    x = np.linspace(-37, 8, 500)
    ours = np.array(bare.evaluate("x => x.map(PrivacyAccountant.logNdtr)", x.tolist()))
    assert np.max(np.abs(ours / special.log_ndtr(x) - 1)) < 1e-13


@pytest.mark.parametrize(
    "epsilon, q, T, k", [(1.0, 0.01, 2000, 1), (8.0, 0.1, 500, 4), (0.3, 0.002, 20000, 2)]
)
def test_the_noise_agrees_with_the_library(bare, epsilon, q, T, k):
    ours = bare.evaluate(
        """([epsilon, q, T, k]) => PrivacyAccountant.calibrate((sigma) => new PrivacyAccountant.PoissonDPSGD(
        {noiseMultiplier: sigma, samplingProbability: q, steps: T, groupSize: k}), epsilon, 1e-6)""",
        [epsilon, q, T, k],
    )
    sigma = dplib.calibrate(dplib.PoissonDPSGD(1.0, q, T, k), epsilon=epsilon, delta=1e-6).noise_multiplier
    assert ours == pytest.approx(sigma, rel=AGREEMENT)
    assert dplib.PoissonDPSGD(ours, q, T, k).epsilon(1e-6).lower <= epsilon


@pytest.mark.parametrize("k", [1, 4, 8, 9, 16])
def test_the_lemma_agrees_with_the_library(bare, k):
    ours = bare.evaluate(
        """k => PrivacyAccountant.groupLemma(new PrivacyAccountant.PoissonDPSGD(
        {noiseMultiplier: 1, samplingProbability: 0.01, steps: 2000}), 1e-6, k)""",
        k,
    )
    assert ours == pytest.approx(baselines.group_lemma(dplib.PoissonDPSGD(1, 0.01, 2000), 1e-6, k), rel=1e-8)


# ------------------------------------------------------------------ the page


def result(page):
    return json.loads(page.evaluate("document.getElementById('calculator-table').dataset.result"))


def fill(page, **values):
    for name, value in values.items():
        page.fill(f"#f-{name}", str(value))
    page.wait_for_selector("#calculator[aria-busy=false]")


def test_the_page_answers(calculator):
    """The example of chapter 5: nine records, 40.8010."""
    fill(calculator, group=9)
    shown = result(calculator)["remove"]
    ours = dplib.PoissonDPSGD(1, 0.01, 2000, 9).epsilon(1e-6)
    assert shown["lower"] <= ours.upper and ours.lower <= shown["upper"]
    assert "40.8011" in calculator.inner_text("#calculator-answer")  # rounded up: it is an upper bound
    assert "group_size=9" in calculator.inner_text("#calculator-python")
    exec(calculator.inner_text("#calculator-python"), {})


def test_bad_input_is_explained_at_the_field(calculator):
    for name, value in (
        ("sigma", "-1"),
        ("q", "1.5"),
        ("steps", "2.5"),
        ("group", "0"),
        ("delta", "x"),
        ("delta", ""),
    ):
        old = calculator.input_value(f"#f-{name}")
        fill(calculator, **{name: value})
        message = calculator.inner_text(f"#calculator-{name}-error")
        assert (value or "nothing") in message and "must be" in message, (name, value, message)
        assert calculator.get_attribute(f"#f-{name}", "aria-invalid") == "true"
        assert "cannot be used" in calculator.inner_text("#calculator-answer")
        assert calculator.locator("#calculator-table tbody tr").count() == 0
        fill(calculator, **{name: old})
        assert calculator.inner_text(f"#calculator-{name}-error") == ""
    assert "ε ≤" in calculator.inner_text("#calculator-answer")


def test_a_refusal_is_said(calculator):
    fill(calculator, steps=2, q=0.0001)
    assert "No bracket closes" in calculator.inner_text("#calculator-answer")
    assert "steps=2" in calculator.inner_text("#calculator-python")


def test_the_address_holds_the_numbers(chromium, calculator):
    calculator.check("input[value=sizes]")
    fill(calculator, batch=500, records=50000, steps=1234, sigma=1.5)
    expected, where = result(calculator), calculator.url
    assert "steps=1234" in where
    other = chromium.new_page()
    other.goto(where)
    other.wait_for_function("() => document.getElementById('calculator-table').dataset.result !== undefined")
    assert result(other) == expected
    assert other.input_value("#f-records") == "50000"
    other.close()


def test_the_noise_is_found(calculator):
    calculator.check("input[name=unknown][value=sigma]")
    fill(calculator, epsilon=2)
    sigma = dplib.calibrate(dplib.PoissonDPSGD(1, 0.01, 2000), epsilon=2, delta=1e-6).noise_multiplier
    assert result(calculator)["sigma"] == pytest.approx(sigma, rel=AGREEMENT)
    assert not calculator.is_visible("#f-sigma") and calculator.is_visible("#f-epsilon")


def test_the_plot_has_a_table_beside_it(calculator):
    calculator.wait_for_function("() => document.querySelectorAll('#calculator-points tbody tr').length === 16")
    rows = calculator.locator("#calculator-points tbody tr")
    third = [float(text) for text in rows.nth(2).locator("td").all_text_contents()]
    assert third[1] == pytest.approx(dplib.PoissonDPSGD(1, 0.01, 2000, 3).epsilon(1e-6).upper, rel=1e-5)
    assert third[2] == pytest.approx(
        baselines.group_lemma(dplib.PoissonDPSGD(1, 0.01, 2000), 1e-6, 3), rel=1e-5
    )
    assert "At 16 records" in calculator.get_attribute("#calculator-plot", "aria-label")


def test_the_keyboard_reaches_every_field(calculator):
    calculator.focus("input[name=unknown][value=epsilon]")
    reached = set()
    for _ in range(9):
        reached.add(calculator.evaluate("document.activeElement.name || document.activeElement.tagName"))
        calculator.keyboard.press("Tab")
    assert {"unknown", "given", "sigma", "q", "steps", "group", "delta"} <= reached


def test_it_works_from_the_disk(chromium, html):
    page = chromium.new_page()
    page.goto((html / PAGE).as_uri())
    page.wait_for_function("() => document.getElementById('calculator-answer').textContent.includes('ε ≤')")
    page.close()
