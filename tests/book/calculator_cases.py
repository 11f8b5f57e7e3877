"""The live calculator under random input: what a reader types into its fields, or finds in an address.

The page's own form and scripts run in Chromium, from a folder that holds nothing else. Each case fills every field, or
sets the address, and reads what the page then shows. A case is wrong if the page throws an exception,
shows a number that is none, infinite or negative, shows a bracket in the wrong order or rounded to the wrong side, takes
a number that it must refuse, refuses one without saying so at its field, or shows any number before it is said how
batches are drawn. A question asks the page's accountant alone, all over what its fields allow: brackets of epsilon in both
directions, the black-box lemma, the noise that a target needs. The library must not contradict its answers.
"""

import json
import math
import re
from pathlib import Path

from hypothesis import strategies as st
from property_cases import logs

import dplib
from dplib import accounting, results

ROOT = Path(__file__).resolve().parents[2]
SCHEMES = ("poisson", "fixed", "known", "bins", "")  # the last: not answered
FIELDS = ("sigma", "q", "batch", "records", "steps", "group", "delta", "epsilon")
NO_NUMBERS = (
    "", " ", "x", "NaN", "nan", "Infinity", "-Infinity", "inf", "1e400", "-1e400", "1,5", "1 000", "1_000", "0x",
    "1e", "e5", "--1", "1.2.3", "１２", "١٢", "½", "1/2", "null", "undefined", "true", "[1]", "{}", "<b>1</b>", "1;2",
    "'", '"', "\\", "%00", "💥", "-1", "-1e-9", "-0.5", "1e300", "9" * 400, "a" * 5000, "__proto__", "constructor",
)  # fmt: skip  (refused by every field)
EDGES = {
    "sigma": ("0.05", "1000", "0.0500001", " 1 ", "+1", "1.", ".5", "1e0", "0x1"),
    "q": ("0", "1", "1e-300", "5e-324", "0.999999999", "-0", "1e-12"),
    "batch": ("1", "1000000000000", "7.0", "1e3"),
    "records": ("1000000000000", "1e12"),
    "steps": ("1", "2", "10000000", "1e7", "5.0"),
    "group": ("1", "1000", "1e3", "16"),
    "delta": ("1e-100", "0.999999", "0.5", "1e-50", "9.9e-1"),
    "epsilon": ("10000", "1e4", "1e-300", "1e-9", "0.001"),
}
OUTSIDE = {
    "sigma": ("0", "0.0499", "1000.1", "1e-300"), "q": ("1.0000001", "2"), "batch": ("0", "1.5", "1e13"), "records": ("0", "2.5", "1e13"),
    "steps": ("0", "1.5", "10000001"), "group": ("0", "1001", "2.5"), "delta": ("0", "1", "1e-101", "1e-324"), "epsilon": ("0", "10001"),
}  # fmt: skip
RANGES = {
    "sigma": (0.05, 1000), "q": (1e-9, 1), "steps": (1, 1e7), "group": (1, 1000), "delta": (1e-60, 0.99), "epsilon": (1e-3, 1e3),
    "batch": (1, 1e6), "records": (1e6, 1e9),
}  # fmt: skip
WHOLE = {"steps", "group", "batch", "records"}
ADDRESSES = (
    "", "#", "sigma", "sigma=", "=1", "&&&", "sigma=%E0%A4%A", "sigma=1&sigma=x", "unknown=zzz", "given=<script>", "__proto__=1",
    "toString=1", "unknown=epsilon&given=q&sigma=1&q=0.01&steps=2000&group=1&delta=1e-6", "scheme=known", "scheme=zzz&sigma=2", "sigma=" + "9" * 10_000, "delta=%00",
)  # fmt: skip
OTHERS = "|".join(("NaN", "Infinity", "undefined", "null", r"\[object"))

# Fill the form (or set the address) and say what is shown.
ASK = """async (cases) => {
  const form = document.getElementById("calculator"), part = (name) => document.getElementById("calculator-" + name);
  const shown = [];
  for (const { fields, radios, address } of cases) {
    window.thrown = [];
    delete part("table").dataset.result;
    if (address !== null) {
      const moved = new Promise((done) => { addEventListener("hashchange", done, { once: true }); setTimeout(done, 50); });
      location.hash = address;
      await moved;
    }
    for (const [name, value] of Object.entries(radios)) for (const button of form.elements[name]) button.checked = button.value === value;
    for (const [name, value] of Object.entries(fields)) form.elements[name].value = value;
    if (address === null) form.dispatchEvent(new Event("submit", { cancelable: true }));
    const state = {};
    for (const input of form.querySelectorAll(".calculator-field input")) {
      const hidden = input.closest(".calculator-field").hidden;
      const error = part(input.name + "-error").textContent, marked = input.getAttribute("aria-invalid") === "true";
      state[input.name] = { text: input.value, hidden, error, marked };
    }
    const texts = (table) => [...part(table).tBodies[0].rows].map((row) => [...row.cells].map((cell) => cell.textContent));
    const scheme = form.elements.scheme.value;
    shown.push({ state, scheme, rows: texts("table"), schemes: texts("schemes"), answer: part("answer").textContent, python: part("python").textContent,
      result: part("table").dataset.result || null, thrown: window.thrown });
  }
  return shown;
}"""
DRAWN = """() => { const plot = document.getElementById("calculator-plot");
  return !plot.childElementCount || !plot.classList.contains("calculator-waiting"); }"""
PLOT = (
    """() => [...document.querySelectorAll("#calculator-points tbody td")].map((cell) => cell.textContent)"""
)


def page_of(folder):
    """The form and the scripts of the book's page, in a file of their own."""
    text = (ROOT / "book" / "calculator.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```\{raw\} html\n(.*?)```", text, re.DOTALL)
    watch = '<script>window.thrown = []; addEventListener("error", (event) => window.thrown.push(event.message));</script>'
    html = "\n".join(blocks)
    for name in re.findall(r"_static/live/(\w+\.js)", html):
        (folder / name).write_bytes((ROOT / "book" / "_live" / name).read_bytes())
    html = html.replace("../_static/live/", "")
    (folder / "page.html").write_text(
        f'<!doctype html><meta charset="utf-8">{watch}\n{html}', encoding="utf-8"
    )


# What the accountant says of each question, without a page around it.
ACCOUNTANT = ("special.js", "round.js", "integrand.js", "accountant.js")
ASK_ACCOUNTANT = """cases => cases.map(({ scheme, question, sigma, q, batch, records, steps, group, delta, epsilon }) => {
  const A = PrivacyAccountant;
  const make = (noiseMultiplier, groupSize) => ({
    poisson: () => new A.PoissonDPSGD({ noiseMultiplier, groupSize, samplingProbability: q, steps }),
    fixed: () => new A.FixedBatchDPSGD({ noiseMultiplier, groupSize, batchSize: batch, datasetSize: records, steps, patience: 5 }),
    known: () => A.knownBatches({ noiseMultiplier, groupSize, participations: steps }),
  })[scheme]();
  const answers = {
    remove: () => make(sigma, group).epsilon(delta, "remove"),
    add: () => make(sigma, group).epsilon(delta, "add"),
    lemma: () => { const upper = A.groupLemma(make(sigma, 1), delta, group); return { lower: 0, upper }; },
    noise: () => { const upper = A.calibrate((x) => make(x, group), epsilon, delta); return { lower: 0, upper }; },
  };
  let found;
  try { found = answers[question](); }
  catch (error) { found = error instanceof A.NoBracketError ? { refused: error.message } : { thrown: String(error) }; }
  // Numbers as text: JSON would turn what is no number into null.
  return { refused: found.refused, thrown: found.thrown, lower: String(found.lower), upper: String(found.upper) };
})"""


# --- cases -------------------------------------------------------------------------------------------------


def _valid(name):
    value = logs(*RANGES[name])
    shown = value.map(lambda x: str(round(x))) if name in WHOLE else st.tuples(value, st.sampled_from(["r", ".3g", ".6e"])).map(_written)
    return st.integers(0, 9).flatmap(lambda turn: st.sampled_from(EDGES[name]) if turn == 9 else shown)


def _written(value_and_form):
    value, form = value_and_form
    return repr(value) if form == "r" else format(value, form)


RADIOS = st.fixed_dictionaries(
    {"unknown": st.sampled_from(["epsilon", "sigma"]), "given": st.sampled_from(["q", "sizes"]), "scheme": st.sampled_from(SCHEMES)}
)


@st.composite
def cases(draw, addresses=True):
    """({fields, radios, address}, names of the fields that must be refused, or None where nothing is known of them)."""
    kind = draw(st.sampled_from(["right", "wrong", "address", "broken address"] if addresses else ["right"]))
    if kind == "broken address":
        return {"fields": {}, "radios": {}, "address": draw(st.sampled_from(ADDRESSES))}, None
    bad = draw(st.sets(st.sampled_from(FIELDS))) if kind == "wrong" else set()
    fields = {name: draw(st.sampled_from(NO_NUMBERS + OUTSIDE[name]) if name in bad else _valid(name)) for name in FIELDS}
    radios = draw(RADIOS)
    if kind == "address":
        return {"fields": {}, "radios": {}, "address": "&".join(f"{name}={value}" for name, value in (radios | fields).items())}, None
    return {"fields": fields, "radios": radios, "address": None}, sorted(bad)


@st.composite
def questions(draw):
    """A question to the page's accountant: all over what the fields allow, the ends among it."""
    question = draw(st.sampled_from(["remove", "remove", "add", "lemma", "noise"]))
    ends = {"sigma": (0.05, 1000.0), "group": (1, 1000), "steps": (1, 1e7), "delta": (1e-100, 0.99), "epsilon": (1e-3, 1e4), "q": (1e-6, 1.0)}
    case = {name: draw(logs(*both)) for name, both in ends.items()}
    case |= {"question": question, "scheme": draw(st.sampled_from(["poisson", "fixed", "known"])), "records": round(draw(logs(2, 1e9)))}
    case |= {name: round(case[name]) for name in ("group", "steps")}
    case["batch"] = min(max(1, round(case["q"] * case["records"])), case["records"])
    if question == "lemma":
        case |= {"scheme": "poisson", "group": draw(st.integers(2, 16))}  # as on the plot
    return case


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
        if extra := complaints - set(bad) - {"records"}:
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
    if seen["result"] is None:
        return None if "No bracket closes" in seen["answer"] else f"no answer: {seen['answer'][:100]!r}"
    found = json.loads(seen["result"])
    if problem := _scheme_problem(seen, found["rows"]):
        return problem
    if seen["scheme"] == "bins":
        bound = re.search(r"(?:ε ≤|multiplier) (\S+) ", seen["answer"])
        value = found["rows"].get("known")
        fine = "No bracket closes" in seen["answer"] if value is None else bound and float(bound[1]) >= value
        return None if fine else f"{seen['answer'][:80]!r} for {value}"
    if not 0 < found["sigma"] < math.inf:
        return f"noise multiplier {found['sigma']!r}"
    for side, row in zip(("remove", "add"), seen["rows"]):
        bracket = found[side]
        if "refused" in bracket:
            if not bracket["refused"] or row[1] != "no bracket here":
                return f"{side}: a refusal without a reason"
            continue
        if not (
            bracket["lower"] is not None
            and bracket["upper"] is not None
            and 0 <= bracket["lower"] <= bracket["upper"]
        ):
            return f"{side}: bracket {bracket}"
        low, high = map(float, row[1].split(" to "))
        if not (0 <= low <= bracket["lower"] and bracket["upper"] <= high):
            return f"{side}: {row[1]!r} is shown for {bracket}"
    if "refused" in found["remove"]:
        return None if "No bracket closes" in seen["answer"] else "a refusal that is not said"
    bound = re.search(r"ε ≤ (\S+) at", seen["answer"])
    return (
        None
        if bound and float(bound[1]) >= found["remove"]["upper"]
        else f"{seen['answer'][:80]!r} for {found['remove']}"
    )


def _scheme_problem(seen, numbers):
    """The table of all schemes: a row for each, its number rounded up."""
    if len(seen["schemes"]) != 4:
        return f"{len(seen['schemes'])} schemes"
    for scheme, (_, text, _) in zip(("poisson", "fixed", "known"), seen["schemes"]):
        value = numbers.get(scheme)
        if value is None:
            if text not in ("no bracket here", "needs B and n"):
                return f"{scheme}: {text!r} without a number"
        elif not 0 <= value <= float(text) < math.inf:
            return f"{scheme}: {text!r} is shown for {value}"
    return None


def _mechanisms(texts, sigma, *, sizes):
    """{scheme: the library's mechanism at `sigma`}."""
    steps, group = int(_number(texts["steps"])), int(_number(texts["group"]))
    if not sizes:
        return {"poisson": dplib.PoissonDPSGD(sigma, _number(texts["q"]), steps, group)}
    batch, records = int(_number(texts["batch"])), int(_number(texts["records"]))
    found = {"poisson": dplib.PoissonDPSGD(sigma, batch / records, steps, group)}
    if records - group >= batch:
        found["fixed"] = dplib.FixedBatchDPSGD(sigma, batch, records - group, steps, group)
    return found | {"known": dplib.PoissonDPSGD(sigma, 1.0, -(-steps // (records // batch)), group)}


def contradiction(seen):
    """What the library says against the page's brackets, or None; None, too, where the library has no answer."""
    found, texts = json.loads(seen["result"]), {name: field["text"] for name, field in seen["state"].items()}
    sizes = seen["state"]["q"]["hidden"]
    searched, delta = seen["state"]["sigma"]["hidden"], _number(texts["delta"])
    for scheme, value in found["rows"].items():
        if value is None:
            continue
        sigma = value if searched else _number(texts["sigma"])
        try:
            ours = _mechanisms(texts, sigma, sizes=sizes)[scheme].epsilon(delta)
        except results.NoBracketError:
            continue
        if ours.lower > (_number(texts["epsilon"]) if searched else value):
            return f"{scheme}: {value}, but the library says {ours!r}"
    if seen["scheme"] == "bins":
        return None
    mechanism = _mechanisms(texts, found["sigma"], sizes=sizes)[seen["scheme"]]
    for side in ("remove", "add"):
        if "refused" in found[side]:
            continue
        try:
            ours = mechanism.epsilon(delta, side)
        except results.NoBracketError:
            continue
        if ours.lower > found[side]["upper"] or found[side]["lower"] > ours.upper:
            return f"{side}: {found[side]}, but the library says {ours!r}"
    if searched and found["remove"].get("upper", 0) > _number(texts["epsilon"]):
        return "the noise multiplier misses the target"
    return None


def false_answer(case, seen):
    """What is wrong with an answer of the page's accountant, or None; then, too, where one of the two has no answer."""
    if seen["thrown"]:
        return f"exception: {seen['thrown']}"
    if seen["refused"]:
        return None
    lower, upper = float(seen["lower"]), float(seen["upper"])
    if not 0 <= lower <= upper < math.inf:
        return f"bracket [{lower!r}, {upper!r}]"
    try:
        return _excluded(case, lower, upper)
    except results.NoBracketError:
        return None


def _excluded(case, lower, upper):
    question, delta = case["question"], case["delta"]
    if question == "lemma":
        e, k = upper / case["group"], case["group"]
        ours = accounting.log_delta(_run_of(case, case["sigma"], 1).composition(), e)
        excess = math.log(k) + k * e + ours.lower - math.log(delta)
        return f"{upper!r} does not meet the lemma" if excess > 1e-13 * k * e else None
    sigma = upper if question == "noise" else case["sigma"]
    ours = _run_of(case, sigma, case["group"]).epsilon(delta, "remove" if question == "noise" else question)
    if question == "noise":
        return f"noise {upper!r}, but the library says {ours!r}" if ours.lower > case["epsilon"] else None
    if ours.lower > upper or lower > ours.upper:
        return f"[{lower!r}, {upper!r}], but the library says {ours!r}"
    return None


def _run_of(case, sigma, group):
    steps = case["steps"]
    if case["scheme"] == "fixed":
        return dplib.FixedBatchDPSGD(sigma, case["batch"], case["records"], steps, group)
    return dplib.PoissonDPSGD(sigma, case["q"] if case["scheme"] == "poisson" else 1.0, steps, group)


def _number(text):
    text = text.strip()
    return float(int(text, 16)) if text.lower().startswith("0x") else float(text)


def plot_problem(cells):
    wrong = [
        cell for cell in cells if cell not in ("no bracket here", "–") and not 0 <= float(cell) < math.inf
    ]
    return f"the plot shows {wrong[:3]}" if wrong else None
