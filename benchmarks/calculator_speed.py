"""Claim: the live calculator answers in under 50 ms in a browser, as close to the library as its bracket is wide."""

import sys

from _common import ROOT, Report, cpu_clock, median

sys.path.insert(0, str(ROOT / "scripts"))
from browser import find_chromium

import dplib

SETTINGS = [
    [sigma, q, steps, group]
    for sigma in (0.6, 1.0, 2.0)
    for q in (0.005, 0.02)
    for steps in (500, 2000, 20_000)
    for group in (1, 4, 16)
]
REPETITIONS = 5
SCRIPTS = ("special.js", "round.js", "accountant.js")
ASK = """([settings, delta, repetitions]) => settings.map(([sigma, q, T, k]) => {
  let bracket = null;
  const milliseconds = [];
  for (let i = 0; i < repetitions; i++) {
    const start = performance.now();
    const made = new PrivacyAccountant.PoissonDPSGD({noiseMultiplier: sigma, samplingProbability: q, steps: T, groupSize: k});
    try { bracket = made.epsilon(delta); } catch (error) { bracket = {lower: null, upper: null, refused: error.message}; }
    milliseconds.push(performance.now() - start);
  }
  milliseconds.sort((a, b) => a - b);
  return {...bracket, ms: milliseconds[Math.floor(repetitions / 2)]};
})"""


def main():
    from playwright.sync_api import sync_playwright

    report = Report("calculator_speed", "The live calculator beside the library")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
        page = browser.new_page()
        for script in SCRIPTS:
            page.add_script_tag(path=ROOT / "book" / "_live" / script)
        page.evaluate(ASK, [SETTINGS[:3], 1e-6, 3])  # compiled code
        answers = page.evaluate(ASK, [SETTINGS, 1e-6, REPETITIONS])
        browser.close()
    rows, gaps, ratios, refused = [], [], [], []
    for (sigma, q, steps, group), answer in zip(SETTINGS, answers):
        mechanism = dplib.PoissonDPSGD(sigma, q, steps, group)
        ours, seconds = cpu_clock(lambda m=mechanism: m.epsilon(1e-6, "remove"), 3)
        if answer["upper"] is None:
            refused.append(f"sigma {sigma}, q {q}, T {steps}, k {group}")
            continue
        gaps.append(abs(answer["upper"] / ours.upper - 1))
        ratios.append(answer["ms"] / 1e3 / median(seconds))
        if group != 4:
            rows.append({
                "sigma": sigma, "q": q, "T": steps, "k": group, "epsilon": round(ours.upper, 6),
                "browser ms": answer["ms"], "library ms": median(seconds) * 1e3, "relative gap": gaps[-1],
            })  # fmt: skip
    report.table(f"epsilon at delta = 1e-6, remove (median of {REPETITIONS} after compilation)", rows)
    report.say("")
    report.claim("slowest answer or refusal in the browser", max(answer["ms"] for answer in answers), at_most=50, unit="ms")
    report.claim("median time in the browser", median([answer["ms"] for answer in answers]), at_most=50, unit="ms")
    report.claim("largest relative gap to the library", max(gaps), at_most=1e-8)
    report.say(f"\n  Refused, the library answers: {'; '.join(refused) or 'none'}.")
    report.say(f"\n  The browser takes {median(ratios):.2g} times as long as the library (median).")
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
