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


def beside(setting, answer):
    """A row: the library's bracket, its seconds, and the relative gap of the upper ends, where the browser answered."""
    sigma, q, steps, group, delta, direction = setting
    mechanism = dplib.PoissonDPSGD(sigma, q, steps, group)
    ours, seconds = cpu_clock(lambda: mechanism.epsilon(delta, direction), 3)
    assert answer["lower"] <= ours.upper and ours.lower <= answer["upper"], setting
    return {
        "sigma": sigma, "q": q, "T": steps, "k": group, "epsilon": round(ours.upper, 6), "browser ms": answer["ms"],
        "library ms": median(seconds) * 1e3, "relative gap": abs(answer["upper"] / ours.upper - 1),
    }  # fmt: skip


def main():
    report = Report("calculator_speed", "The live calculator beside the library")
    usual, hard = ask()
    rows = [beside(*pair) for pair in zip(USUAL, usual) if pair[1]["upper"] is not None]
    report.table(f"epsilon at delta = 1e-6, remove (CPU time, mean of {REPETITIONS} after compilation)", rows)
    milliseconds = [answer["ms"] for answer in usual + hard]
    report.say("")
    report.claim("slowest answer or refusal in the browser", max(milliseconds), at_most=50, unit="ms")
    report.claim("median time in the browser, usual settings", median([answer["ms"] for answer in usual]), at_most=50, unit="ms")  # fmt: skip
    report.claim("largest relative gap to the library", max(row["relative gap"] for row in rows), at_most=1e-8)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
