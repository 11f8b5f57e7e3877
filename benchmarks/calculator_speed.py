"""Claim: the live calculator answers in under 50 ms in a browser, as close to the library as its bracket is wide."""

import sys

from _common import ROOT, Report, cpu_clock, median

sys.path.insert(0, str(ROOT / "tools"))
from browser import find_chromium

import dplib

USUAL = [
    [sigma, q, steps, group, 1e-6, "remove"]
    for sigma in (0.6, 1.0, 2.0)
    for q in (0.005, 0.02)
    for steps in (500, 2000, 20_000)
    for group in (1, 4, 16)
]
# Few rounds, rare sampling, large groups, tiny delta: here the characteristic function decays slowly.
HARD = [
    [sigma, q, steps, group, delta, direction]
    for steps in (10, 100, 500)
    for sigma in (0.6, 1.0, 2.0)
    for q in (0.0005, 0.005, 0.02, 0.1)
    for group in (1, 64)
    for delta in (1e-6, 1e-12)
    for direction in ("remove", "add")
]
REPETITIONS = 5
SCRIPTS = ("special.js", "round.js", "integrand.js", "accountant.js")
ASK = """([[sigma, q, T, k, delta, direction], repetitions]) => {
  let bracket = null;
  for (let i = 0; i < repetitions; i++) {
    const made = new PrivacyAccountant.PoissonDPSGD({noiseMultiplier: sigma, samplingProbability: q, steps: T, groupSize: k});
    try { bracket = made.epsilon(delta, direction); } catch (error) {
      if (!(error instanceof PrivacyAccountant.NoBracketError)) throw error;
      bracket = {lower: null, upper: null};
    }
  }
  return bracket;
}"""


class Timed:
    """A page with the calculator's scripts; each question is timed by the CPU clock of the page's thread."""

    def __init__(self, browser):
        self.page = browser.new_page()
        for script in SCRIPTS:
            self.page.add_script_tag(path=ROOT / "book" / "_live" / script)
        self.session = self.page.context.new_cdp_session(self.page)
        self.session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def clock(self):
        metrics = self.session.send("Performance.getMetrics")["metrics"]
        return next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration")

    def ask(self, setting):
        start = self.clock()
        answer = self.page.evaluate(ASK, [setting, REPETITIONS])
        return answer | {"ms": (self.clock() - start) * 1e3 / REPETITIONS}


def ask():
    """(answers to the usual settings, to the hard ones), as the page's scripts give them in a browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
        page = Timed(browser)
        for setting in USUAL[:3]:  # compiled code
            page.ask(setting)
        answers = [[page.ask(setting) for setting in settings] for settings in (USUAL, HARD)]
        browser.close()
    return answers


def beside(setting, answer, repetitions):
    """(bracket of the library, its seconds, relative gap of the upper ends) where the browser answered."""
    sigma, q, steps, group, delta, direction = setting
    mechanism = dplib.PoissonDPSGD(sigma, q, steps, group)
    ours, seconds = cpu_clock(lambda: mechanism.epsilon(delta, direction), repetitions)
    assert answer["lower"] <= ours.upper and ours.lower <= answer["upper"], setting
    return ours, median(seconds), abs(answer["upper"] / ours.upper - 1) if ours.upper else 0.0


def usual_table(report, answers):
    """The table of the usual settings; returns (gaps, ratios of the times)."""
    rows, gaps, ratios = [], [], []
    for setting, answer in zip(USUAL, answers):
        if answer["upper"] is None:
            continue
        ours, seconds, gap = beside(setting, answer, 3)
        gaps.append(gap)
        ratios.append(answer["ms"] / 1e3 / seconds)
        sigma, q, steps, group, _, _ = setting
        if group != 4:
            rows.append({
                "sigma": sigma, "q": q, "T": steps, "k": group, "epsilon": round(ours.upper, 6),
                "browser ms": answer["ms"], "library ms": seconds * 1e3, "relative gap": gap,
            })  # fmt: skip
    report.table(f"epsilon at delta = 1e-6, remove (CPU time, mean of {REPETITIONS} after compilation)", rows)
    return gaps, ratios


def hard_table(report, answers):
    """The table of the hard settings, a row for each number of rounds and direction; returns the gaps."""
    rows, gaps = [], []
    for steps in sorted({setting[2] for setting in HARD}):
        for direction in ("remove", "add"):
            chosen = [pair for pair in zip(HARD, answers) if pair[0][2] == steps and pair[0][5] == direction]
            answered = [pair for pair in chosen if pair[1]["upper"] is not None]
            refusals = [answer["ms"] for _, answer in chosen if answer["upper"] is None]
            # Where the library answers by another method with a wider bracket, the brackets only have to meet.
            compared = [beside(*pair, 1) for pair in answered]
            gaps += [gap for ours, _, gap in compared if ours.relative_width < 1e-8]
            rows.append({
                "T": steps, "direction": direction, "settings": len(chosen), "answered": len(answered),
                "slowest answer ms": max((answer["ms"] for _, answer in answered), default=0.0),
                "slowest refusal ms": max(refusals, default=0.0),
            })  # fmt: skip
    report.say("")
    report.table("few rounds, q from 0.0005 to 0.1, groups of 1 and 64, delta = 1e-6 and 1e-12", rows)
    return gaps


def main():
    report = Report("calculator_speed", "The live calculator beside the library")
    usual, hard = ask()
    gaps, ratios = usual_table(report, usual)
    gaps += hard_table(report, hard)
    milliseconds = [answer["ms"] for answer in usual + hard]
    refused = [str(setting) for setting, answer in zip(USUAL, usual) if answer["upper"] is None]
    report.say("")
    report.claim("slowest answer or refusal in the browser", max(milliseconds), at_most=50, unit="ms")
    report.claim("median time in the browser, usual settings", median([answer["ms"] for answer in usual]), at_most=50, unit="ms")  # fmt: skip
    report.claim("largest relative gap to the library", max(gaps), at_most=1e-8)
    report.say(f"\n  Refused of the usual settings: {'; '.join(refused) or 'none'}.")
    report.say(
        f"\n  The browser takes {median(ratios):.2g} times as long as the library (median, usual settings)."
    )
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
