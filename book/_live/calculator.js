/* The page `calculator`: reads the form, asks accountant.js, writes brackets, a plot and a shareable address. */
(function () {
  "use strict";

  const { PoissonDPSGD, NoBracketError, calibrate, groupLemma } = window.PrivacyAccountant;
  const form = document.getElementById("calculator");
  if (!form) return;
  const { svg: element, row, UNUSABLE } = window.LivePage;
  const { field, part, complain, save, restore } = window.LivePage.of(form);
  const PLOTTED = 16; // group sizes on the plot

  // What each field may hold: [name, label, whole number, allowed range as a test, and in words]
  const RULES = {
    sigma: ["noise multiplier", false, (x) => x >= 0.05 && x <= 1000, "from 0.05 to 1000"],
    q: ["sampling probability", false, (x) => x >= 0 && x <= 1, "from 0 to 1"],
    batch: ["batch size", true, (x) => x >= 1 && x <= 1e12, "a whole number, at least 1"],
    records: ["number of records", true, (x) => x >= 1 && x <= 1e12, "a whole number, at least the batch size"],
    steps: ["number of steps", true, (x) => x >= 1 && x <= 1e7, "a whole number from 1 to 10,000,000"],
    group: ["group size", true, (x) => x >= 1 && x <= 1000, "a whole number from 1 to 1000"],
    delta: ["delta", false, (x) => x >= 1e-100 && x < 1, "at least 1e-100, below 1"],
    epsilon: ["epsilon", false, (x) => x > 0 && x <= 1e4, "above 0, at most 10,000"],
  };

  function shown(name) {
    return !field(name).closest(".calculator-field").hidden;
  }

  /** The numbers of the visible fields, or null; what is wrong is said beside the field. */
  function read() {
    const values = {};
    let good = true;
    for (const [name, [label, whole, allowed, words]] of Object.entries(RULES)) {
      if (!shown(name)) { complain(name, ""); continue; }
      const text = field(name).value.trim(), x = Number(text);
      const fine = text !== "" && Number.isFinite(x) && (!whole || Number.isInteger(x)) && allowed(x);
      complain(name, fine ? "" : `The ${label} must be ${words}; got “${text || "nothing"}”.`);
      good = good && fine;
      values[name] = x;
    }
    if (good && shown("batch") && values.batch > values.records) {
      complain("records", `The number of records must be at least the batch size, ${values.batch}; got “${values.records}”.`);
      good = false;
    }
    if (!good) return null;
    if (shown("batch")) values.q = values.batch / values.records;
    return values;
  }

  // ------------------------------------------------------------------ numbers in words

  /** x to `digits` significant digits, rounded down (-1), up (+1) or to nearest (0). */
  function rounded(x, digits, way = 0) {
    if (x === 0 || !Number.isFinite(x)) return String(x);
    let text = x.toPrecision(digits);
    const back = Number(text);
    if ((way > 0 && back < x) || (way < 0 && back > x)) {
      const unit = 10 ** (Math.floor(Math.log10(Math.abs(x))) - digits + 1);
      text = (back + way * unit).toPrecision(digits);
    }
    if (/e/.test(text)) return Number(text).toExponential().replace("e+", "e");
    return text.includes(".") ? text.replace(/0+$/, "").replace(/\.$/, "") : text;
  }

  function interval(bracket) {
    const same = Math.max(4, Math.min(15, 2 - Math.floor(Math.log10((bracket.upper - bracket.lower) / bracket.upper))));
    const digits = Number.isFinite(same) ? same : 12;
    return `${rounded(bracket.lower, digits, -1)} to ${rounded(bracket.upper, digits, 1)}`;
  }

  function attempt(compute) {
    try {
      return compute();
    } catch (error) {
      if (error instanceof NoBracketError) return { refused: error.message };
      throw error;
    }
  }

  // ------------------------------------------------------------------ the answer

  function mechanism(values, sigma, group = values.group) {
    return new PoissonDPSGD({ noiseMultiplier: sigma, samplingProbability: values.q, steps: values.steps, groupSize: group });
  }

  function python(values, sigma) {
    const number = (x) => (Number.isInteger(x) && Math.abs(x) < 1e15 ? String(x) : x.toString());
    const rate = shown("batch") ? `${values.batch} / ${values.records}` : number(values.q);
    const group = values.group > 1 ? `, group_size=${values.group}` : "";
    const made = (noise) => `dplib.PoissonDPSGD(noise_multiplier=${noise}, sampling_probability=${rate}, steps=${values.steps}${group})`;
    if (sigma === null) return `import dplib\ndplib.calibrate(${made(1)}, epsilon=${number(values.epsilon)}, delta=${number(values.delta)})`;
    return `import dplib\n${made(number(values.sigma))}.epsilon(delta=${number(values.delta)})`;
  }

  function say(text) {
    if (part("answer").textContent !== text) part("answer").textContent = text;
  }

  function tabulate(rows) {
    const body = part("table").tBodies[0];
    body.replaceChildren(...rows.map(([head, ...cells]) => {
      const made = row(cells), first = document.createElement("th");
      first.scope = "row";
      first.textContent = head;
      made.prepend(first);
      return made;
    }));
  }

  const REFUSAL = "No bracket closes here in the browser: the rounds are few, or sample too rarely. The library has accountants for these settings; the line of Python below asks them.";

  function bracketRow(name, result) {
    if (result.refused) return [name, "no bracket here", result.refused];
    const width = result.upper - result.lower;
    return [name, interval(result), `${rounded(width, 2, 1)} (${result.method})`];
  }

  function answer(values) {
    const wanted = field("unknown").value;
    let sigma = values.sigma;
    if (wanted === "sigma") {
      const found = attempt(() => calibrate((s) => mechanism(values, s), values.epsilon, values.delta));
      part("python").textContent = python(values, null);
      if (found.refused) { say(REFUSAL); tabulate([]); return null; }
      sigma = found;
    } else part("python").textContent = python(values, sigma);
    const started = performance.now();
    const remove = attempt(() => mechanism(values, sigma).epsilon(values.delta, "remove"));
    const add = attempt(() => mechanism(values, sigma).epsilon(values.delta, "add"));
    part("table").dataset.milliseconds = String(performance.now() - started);
    part("table").dataset.result = JSON.stringify({ sigma, remove, add });
    tabulate([bracketRow("remove", remove), bracketRow("add", add)]);
    if (remove.refused) { say(REFUSAL); return sigma; }
    const guarantee = `ε ≤ ${rounded(remove.upper, 6, 1)} at δ = ${field("delta").value.trim()}`;
    say(wanted === "sigma"
      ? `Noise multiplier ${rounded(sigma, 8, 1)} is enough: ${guarantee}, adding or removing ${who(values.group)}.`
      : `${guarantee}, adding or removing ${who(values.group)}.`);
    return sigma;
  }

  function who(group) {
    return group === 1 ? "one record" : `up to ${group} records together`;
  }

  // ------------------------------------------------------------------ the plot: epsilon against group size

  let drawing = 0;

  /** Compute the curves piece by piece, so that the page stays responsive. */
  function plot(values, sigma) {
    const mine = ++drawing, sizes = Array.from({ length: PLOTTED }, (_, i) => i + 1), points = [];
    const step = () => {
      if (mine !== drawing) return;
      const k = sizes[points.length];
      const exact = attempt(() => mechanism(values, sigma, k).epsilon(values.delta));
      const lemma = attempt(() => ({ upper: groupLemma(mechanism(values, sigma, 1), values.delta, k) }));
      points.push({ k, exact: exact.refused ? null : exact.upper, lemma: lemma.refused ? null : lemma.upper });
      if (points.length < sizes.length) setTimeout(step, 0);
      else draw(points);
    };
    part("plot").classList.add("calculator-waiting");
    setTimeout(step, 300);
  }

  function draw(points) {
    const svg = part("plot"), width = 640, height = 360, left = 88, right = 185, top = 20, bottom = 50;
    const values = points.flatMap((p) => [p.exact, p.lemma]).filter((x) => x !== null && x > 0);
    svg.replaceChildren();
    svg.classList.remove("calculator-waiting");
    const body = part("points").tBodies[0];
    const shownBound = (x) => (x === null ? "no bracket here" : rounded(x, 6, 1));
    body.replaceChildren(...points.map((p) => row([p.k, shownBound(p.exact), shownBound(p.lemma)])));
    if (!values.length) {
      svg.append(element("text", { x: left, y: height / 2 }, "Nothing to draw: ε is 0, or no bracket closes."));
      return;
    }
    const low = Math.floor(Math.log10(Math.min(...values))), high = Math.max(Math.ceil(Math.log10(Math.max(...values))), low + 1);
    const x = (k) => left + (k - 1) / (PLOTTED - 1) * (width - left - right);
    const y = (v) => height - bottom - (Math.log10(v) - low) / (high - low) * (height - top - bottom);
    const every = Math.max(1, Math.ceil((high - low) / 6));
    for (let e = low; e <= high; e++) {
      if ((e - low) % every) continue;
      svg.append(element("line", { x1: left, x2: width - right, y1: y(10 ** e), y2: y(10 ** e), class: "calculator-grid" }));
      svg.append(element("text", { x: left - 8, y: y(10 ** e) + 4, "text-anchor": "end" }, e >= -3 && e <= 3 ? String(10 ** e) : `1e${e}`));
    }
    for (const k of [1, 2, 4, 6, 8, 10, 12, 14, 16]) svg.append(element("text", { x: x(k), y: height - bottom + 18, "text-anchor": "middle" }, String(k)));
    svg.append(element("text", { x: (left + width - right) / 2, y: height - 10, "text-anchor": "middle" }, "group size (records)"));
    svg.append(element("text", { transform: `translate(16 ${(height - bottom + top) / 2}) rotate(-90)`, "text-anchor": "middle" }, "ε (upper bound)"));
    const series = [["exact", "mixture", "calculator-exact"], ["lemma", "black-box lemma", "calculator-lemma"]];
    const ends = [];
    for (const [key, label, style] of series) {
      const good = points.filter((p) => p[key] !== null && p[key] > 0);
      if (!good.length) continue;
      svg.append(element("polyline", { points: good.map((p) => `${x(p.k)},${y(p[key])}`).join(" "), class: style }));
      for (const p of good) svg.append(element("circle", { cx: x(p.k), cy: y(p[key]), r: 3, class: style }));
      const last = good[good.length - 1];
      let at = y(last[key]) + 4;
      for (const other of ends) if (Math.abs(other - at) < 16) at = other + 16;
      ends.push(at);
      svg.append(element("text", { x: x(last.k) + 9, y: at, class: style + "-label" }, label));
    }
    const last = points[PLOTTED - 1];
    const finding = last.exact !== null && last.lemma !== null
      ? ` At ${PLOTTED} records the mixture gives ${rounded(last.exact, 4, 1)}, the lemma ${rounded(last.lemma, 4, 1)}.` : "";
    svg.setAttribute("aria-label", `Epsilon against group size, 1 to ${PLOTTED} records, for the mixture analysis and the black-box lemma.${finding}`);
  }

  // ------------------------------------------------------------------ the page

  function arrange() {
    const sizes = field("given").value === "sizes", noise = field("unknown").value === "sigma";
    const show = (name, on) => { field(name).closest(".calculator-field").hidden = !on; };
    show("q", !sizes);
    show("batch", sizes);
    show("records", sizes);
    show("sigma", !noise);
    show("epsilon", noise);
  }

  const STATE = ["unknown", "given", ...Object.keys(RULES)];
  const load = () => restore((name) => STATE.includes(name));

  function update() {
    form.setAttribute("aria-busy", "false");
    arrange();
    const values = read();
    if (!values) {
      drawing++;
      say(UNUSABLE);
      tabulate([]);
      part("plot").replaceChildren();
      part("points").tBodies[0].replaceChildren();
      part("python").textContent = "";
      return;
    }
    save(STATE.filter((name) => !(name in RULES) || shown(name)));
    const sigma = answer(values);
    if (sigma !== null) plot(values, sigma);
    else { drawing++; part("plot").replaceChildren(); part("points").tBodies[0].replaceChildren(); }
  }

  let waiting = 0;
  form.addEventListener("input", () => {
    form.setAttribute("aria-busy", "true");
    drawing++; // whoever types does not wait for a plot of old numbers
    clearTimeout(waiting);
    waiting = setTimeout(update, 120);
  });
  form.addEventListener("submit", (event) => { event.preventDefault(); update(); });
  window.addEventListener("hashchange", () => { load(); update(); });
  load();
  update();
})();
