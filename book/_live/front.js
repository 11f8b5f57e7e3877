/* The front page's calculator: one line for one record, with the schemes and the accountant of chapter 18's wizard. */
(function () {
  "use strict";

  const { PoissonDPSGD, FixedBatchDPSGD, knownBatches, NoBracketError } = window.PrivacyAccountant;
  const { rounded } = window.LivePage;
  const form = document.getElementById("front"), answer = document.getElementById("front-answer");
  const door = document.querySelector(".doors a[href*='18_which_accountant.html']");
  const NAMES = { poisson: "Poisson sampling", fixed: "batches of fixed size", known: "shuffled or known batches" };
  const DELTA = 1e-6;
  let waiting = 0, state = {};

  function mechanism(scheme, { sigma, batch, records, steps }) {
    const common = { noiseMultiplier: sigma, groupSize: 1 };
    if (scheme === "poisson") return new PoissonDPSGD({ ...common, samplingProbability: batch / records, steps });
    if (scheme === "fixed") return new FixedBatchDPSGD({ ...common, batchSize: batch, datasetSize: records - 1, steps, patience: 5 });
    return knownBatches({ ...common, participations: Math.ceil(steps / Math.floor(records / batch)) });
  }

  function update() {
    const values = Object.fromEntries(["sigma", "batch", "records", "steps"].map((name) => [name, Number(form.elements[name].value)]));
    const { sigma, batch, records, steps } = values, scheme = form.elements.scheme.value;
    const whole = [batch, records, steps].every((x) => Number.isInteger(x) && x >= 1);
    if (!(whole && sigma >= 0.05 && sigma <= 1000 && batch < records && records <= 1e12 && steps <= 1e7)) {
      answer.textContent = "Numbers must be positive, and the batch smaller than the data.";
      return;
    }
    state = { scheme, ...values, delta: DELTA };
    let said;
    try {
      said = `<strong>ε ≤ ${rounded(mechanism(scheme, values).epsilon(DELTA).upper, 6, 1)}</strong> at δ = 10<sup>−6</sup>`;
    } catch (error) {
      if (!(error instanceof NoBracketError)) throw error;
      said = "no bracket closes here in the browser; the library has accountants for these numbers";
    }
    answer.innerHTML = `With <b>${NAMES[scheme]}</b>: ${said}${scheme === "known" ? ", zeroing out a record" : ""}`;
  }

  form.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(update, 120); });
  // The door takes the numbers along; before the click its address is plain, because the theme looks for anchors in it.
  door.addEventListener("click", () => { door.hash = new URLSearchParams(state); });
  form.addEventListener("submit", (event) => { event.preventDefault(); update(); });
  update();
})();
