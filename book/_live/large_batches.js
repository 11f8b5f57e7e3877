/* The page `live_large_batches`: the effective noise sigma(q, T) / q against q, for several numbers of steps. */
(function () {
  "use strict";

  const { PoissonDPSGD, NoBracketError, calibrate } = window.PrivacyAccountant;
  const RATES = Array.from({ length: 13 }, (_, i) => 10 ** (-3 + i / 4));
  const TOLERANCE = 1e-5;
  const MOST_CURVES = 5;

  /** sigma(q, T) / q, an upper bound to 1e-5; null where no bracket closes, or no noise is needed. */
  function effectiveNoise(q, steps, epsilon, delta) {
    if (-Math.expm1(steps * Math.log1p(-q)) <= delta) return null;  // the record hardly ever takes part
    const make = (sigma) => new PoissonDPSGD({ noiseMultiplier: sigma, samplingProbability: q, steps, patience: 5 });
    try {
      return calibrate(make, epsilon, delta, TOLERANCE) / q;
    } catch (error) {
      if (error instanceof NoBracketError) return null;
      throw error;
    }
  }

  window.LargeBatches = { effectiveNoise, RATES };
  const form = document.getElementById("batches");
  if (!form) return;
  const { row, UNUSABLE } = window.LivePage, { Panel, frame } = window.Moving;
  const { field, part, complain, save, restore } = window.LivePage.of(form);
  const STATE = ["epsilon", "delta", "steps"];

  function read() {
    const problems = { epsilon: "", delta: "", steps: "" };
    const number = (name) => { const text = field(name).value.trim(); return text === "" ? NaN : Number(text); };
    const epsilon = number("epsilon"), delta = number("delta");
    const steps = field("steps").value.split(",").map((text) => Number(text.trim() || NaN));
    if (!(epsilon >= 0.01 && epsilon <= 100)) problems.epsilon = `Epsilon must be from 0.01 to 100; got “${field("epsilon").value}”.`;
    if (!(delta >= 1e-50 && delta <= 0.1)) problems.delta = `Delta must be from 1e-50 to 0.1; got “${field("delta").value}”.`;
    if (!(steps.length <= MOST_CURVES && steps.every((T) => Number.isInteger(T) && T >= 1 && T <= 1e6))) {
      problems.steps = `The numbers of steps must be at most five whole numbers from 1 to 1,000,000, with commas between; got “${field("steps").value}”.`;
    }
    for (const [name, text] of Object.entries(problems)) complain(name, text);
    return Object.values(problems).some(Boolean) ? null : { epsilon, delta, steps };
  }

  let running = 0;

  function start() {
    const mine = ++running, asked = read();
    form.setAttribute("aria-busy", "true");
    if (!asked) {
      form.setAttribute("aria-busy", "false");
      part("progress").hidden = true;
      part("picture").replaceChildren();
      part("summary").textContent = UNUSABLE;
      return;
    }
    save(STATE);
    // From q = 1, which is a closed form, to rare sampling, which takes longest; the picture grows as the points come.
    const curves = new Map(asked.steps.map((T) => [T, []])), work = RATES.toReversed().flatMap((q) => asked.steps.map((T) => [T, q]));
    part("progress").max = work.length;
    part("progress").hidden = false;
    part("summary").textContent = "Computing…";
    let done = 0;
    const step = () => {
      if (mine !== running) return;
      const until = performance.now() + 30;
      while (done < work.length && performance.now() < until) {
        const [T, q] = work[done++], points = curves.get(T);
        // Where the accountant gives up, rarer sampling is harder still.
        points.push([q, points.length && points[points.length - 1][1] === null ? null : effectiveNoise(q, T, asked.epsilon, asked.delta)]);
      }
      part("progress").value = done;
      draw(curves);
      if (done < work.length) return void setTimeout(step, 0);
      part("progress").hidden = true;
      report(curves);
      form.setAttribute("aria-busy", "false");
    };
    step();
  }

  /** {T: [[q, effective noise over its value at q = 1, where every round is a plain Gaussian], …]}, as far as it is known. */
  function relative(curves) {
    return [...curves].map(([T, points]) => [T, points.filter(([, value]) => value !== null).map(([q, value]) => [q, value / points[0][1]])]);
  }

  function draw(curves) {
    const series = relative(curves), values = series.flatMap(([, points]) => points.map(([, value]) => value));
    const { picture, box } = frame(part("picture"), 1, 400);
    const panel = new Panel(
      picture, box(0),
      { from: 1e-3, to: 1, log: true, label: "sampling probability q", ticks: { 0.001: "0.001", 0.01: "0.01", 0.1: "0.1", 1: "1" } },
      { from: Math.min(0.9, ...values), to: Math.max(10, ...values), log: true, label: "effective noise (1 at q = 1)" },
    );
    series.forEach(([, points], i) => panel.curve((q) => points.find(([rate]) => rate === q)[1], i, points.map(([q]) => q)));
    panel.key(series.map(([T], i) => [`T = ${T.toLocaleString("en")}`, i]));
    part("picture").replaceChildren(picture);
  }

  function report(curves) {
    const series = relative(curves);
    part("points").tBodies[0].replaceChildren(...series.map(([T, points]) => row([T, ...[0.001, 0.01, 0.1].map((q) => {
      const point = points.find(([rate]) => Math.abs(rate / q - 1) < 1e-9);
      return point ? point[1].toPrecision(4) : "no bracket here";
    })])));
    const [T, points] = series[series.length - 1], [q, value] = points[points.length - 1];
    const summary = `With T = ${T.toLocaleString("en")} steps the effective noise at q = ${Number(q.toPrecision(2))} is ${value.toPrecision(4)} times that of the full batch.`;
    part("summary").textContent = summary;
    part("picture").setAttribute("aria-label", `Effective noise against the sampling probability, for ${series.length} numbers of steps. ${summary}`);
  }

  const load = () => restore((name) => STATE.includes(name));
  let waiting = 0;
  form.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(start, 150); });
  form.addEventListener("submit", (event) => event.preventDefault());
  window.addEventListener("hashchange", () => { load(); start(); });
  load();
  start();
})();
