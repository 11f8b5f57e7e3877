/* The page `live_large_batches`: the effective noise sigma(q, T) / q against q, for several numbers of steps. */
(function () {
  "use strict";

  const { PoissonDPSGD, NoBracketError, calibrate } = window.PrivacyAccountant;
  const RATES = Array.from({ length: 13 }, (_, i) => 10 ** (-3 + i / 4));
  const TOLERANCE = 1e-5;
  const DASHES = ["none", "7 4", "2 3", "9 3 2 3", "1 4", "12 3"];

  /** sigma(q, T) / q, an upper bound to 1e-5; null where no bracket closes, or no noise is needed. */
  function effectiveNoise(q, steps, epsilon, delta) {
    if (q <= delta) return null;
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
  const { svg: element, row, UNUSABLE } = window.LivePage;
  const { field, part, complain, save, restore } = window.LivePage.of(form);
  const STATE = ["epsilon", "delta", "steps"];

  function read() {
    const problems = { epsilon: "", delta: "", steps: "" };
    const number = (name) => { const text = field(name).value.trim(); return text === "" ? NaN : Number(text); };
    const epsilon = number("epsilon"), delta = number("delta");
    const steps = field("steps").value.split(",").map((text) => Number(text.trim() || NaN));
    if (!(epsilon >= 0.01 && epsilon <= 100)) problems.epsilon = `Epsilon must be from 0.01 to 100; got “${field("epsilon").value}”.`;
    if (!(delta >= 1e-50 && delta <= 0.1)) problems.delta = `Delta must be from 1e-50 to 0.1; got “${field("delta").value}”.`;
    if (!(steps.length <= 6 && steps.every((T) => Number.isInteger(T) && T >= 1 && T <= 1e6))) {
      problems.steps = `The numbers of steps must be at most six whole numbers from 1 to 1,000,000, with commas between; got “${field("steps").value}”.`;
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
      part("picture").replaceChildren();
      part("summary").textContent = UNUSABLE;
      return;
    }
    save(STATE);
    const work = asked.steps.flatMap((T) => RATES.map((q) => [T, q])), curves = new Map(asked.steps.map((T) => [T, []]));
    part("progress").max = work.length;
    part("progress").hidden = false;
    part("summary").textContent = "Computing…";
    let done = 0;
    const step = () => {
      if (mine !== running) return;
      const until = performance.now() + 30;
      while (done < work.length && performance.now() < until) {
        const [T, q] = work[done++];
        curves.get(T).push([q, effectiveNoise(q, T, asked.epsilon, asked.delta)]);
      }
      part("progress").value = done;
      if (done < work.length) return void setTimeout(step, 0);
      part("progress").hidden = true;
      draw(curves);
      form.setAttribute("aria-busy", "false");
    };
    setTimeout(step, 150);
  }

  function draw(curves) {
    const svg = part("picture"), width = 640, height = 400, left = 76, right = 24, top = 16, bottom = 50;
    svg.replaceChildren();
    // Each curve over its value at q = 1, where every round is a plain Gaussian.
    const series = [...curves].map(([T, points]) => {
      const full = points[points.length - 1][1];
      return [T, points.filter(([, value]) => value !== null).map(([q, value]) => [q, value / full])];
    });
    const values = series.flatMap(([, points]) => points.map(([, value]) => value));
    const high = Math.max(1.2, ...values), low = Math.min(0.9, ...values);
    const x = (q) => left + (Math.log10(q) + 3) / 3 * (width - left - right);
    const y = (v) => height - bottom - Math.log(v / low) / Math.log(high / low) * (height - top - bottom);
    const add = (...made) => svg.append(element(...made));
    const ticks = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].filter((v) => v >= low && v <= high);
    for (const v of ticks) {
      add("line", { x1: left, x2: width - right, y1: y(v), y2: y(v), class: "calculator-grid" });
      add("text", { x: left - 8, y: y(v) + 4, "text-anchor": "end" }, String(v));
    }
    for (const q of [0.001, 0.01, 0.1, 1]) add("text", { x: x(q), y: height - bottom + 18, "text-anchor": "middle" }, String(q));
    add("text", { x: (left + width - right) / 2, y: height - 10, "text-anchor": "middle" }, "sampling probability q");
    add("text", { transform: `translate(16 ${(height - bottom + top) / 2}) rotate(-90)`, "text-anchor": "middle" }, "effective noise (1 at q = 1)");
    const body = part("points").tBodies[0];
    body.replaceChildren();
    series.forEach(([T, points], i) => {
      if (!points.length) return;
      const look = { class: i ? "batches-line" : "calculator-exact", style: `stroke-dasharray: ${DASHES[i]}` }, key = width - right - 180;
      add("polyline", { points: points.map(([q, v]) => `${x(q)},${y(v)}`).join(" "), ...look });
      add("line", { x1: key, x2: key + 44, y1: top + 20 + 24 * i, y2: top + 20 + 24 * i, ...look });
      add("text", { x: key + 52, y: top + 25 + 24 * i }, `T = ${T}`);
      body.append(row([T, ...[0.001, 0.01, 0.1].map((q) => {
        const point = points.find(([rate]) => Math.abs(rate / q - 1) < 1e-9);
        return point ? point[1].toPrecision(4) : "no bracket here";
      })]));
    });
    const last = series[series.length - 1], first = last[1][0];
    const summary = first
      ? `With T = ${last[0]} steps the effective noise at q = ${Number(first[0].toPrecision(2))} is ${first[1].toPrecision(4)} times that of the full batch.`
      : "No bracket closes for these numbers.";
    part("summary").textContent = summary;
    svg.setAttribute("aria-label", `Effective noise against the sampling probability, for ${series.length} numbers of steps. ${summary}`);
  }

  const load = () => restore((name) => STATE.includes(name));
  form.addEventListener("input", start);
  form.addEventListener("submit", (event) => event.preventDefault());
  window.addEventListener("hashchange", () => { load(); start(); });
  load();
  start();
})();
