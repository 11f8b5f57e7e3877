/* The wizard on top of chapter 18: reads the answers to its questions, asks accountant.js for what endings.js decides, and writes
   the answer, the other schemes, the assumptions, Python, the proof, a plot and a shareable address. */
(function () {
  "use strict";

  const { NoBracketError, PoissonDPSGD, calibrate, largestSteps, groupLemma } = window.PrivacyAccountant;
  const { decide, assumptions, SCHEMES } = window.WizardEndings;
  const form = document.getElementById("calculator");
  if (!form) return;
  const { svg: element, row, rounded, UNUSABLE } = window.LivePage;
  const { field, part, complain, save, restore } = window.LivePage.of(form);
  const PLOTTED = 16; // group sizes on the plot
  const MOST_STEPS = 1e7;
  const UNASKED = "First say how batches are drawn. No number holds without it.";
  const REFUSED = "no bracket here", UNDRAWN = "–";
  const REFUSAL = "No bracket closes here in the browser: the rounds are few, or sample too rarely. The library has accountants for these settings; the Python below asks them.";

  // What each field may hold: [name, label, whole number, allowed range as a test, and in words]
  const RULES = {
    sigma: ["noise multiplier", false, (x) => x >= 0.05 && x <= 1000, "from 0.05 to 1000"],
    q: ["sampling probability", false, (x) => x >= 0 && x <= 1, "from 0 to 1"],
    batch: ["batch size", true, (x) => x >= 1 && x <= 1e12, "a whole number, at least 1"],
    records: ["number of records", true, (x) => x >= 1 && x <= 1e12, "a whole number, at least the batch size"],
    steps: ["number of steps", true, (x) => x >= 1 && x <= MOST_STEPS, "a whole number from 1 to 10,000,000"],
    group: ["group size", true, (x) => x >= 1 && x <= 1000, "a whole number from 1 to 1000"],
    others: ["number of others", true, (x) => x >= 1 && x <= 1000, "a whole number from 1 to 1000"],
    largest: ["largest batch", true, (x) => x >= 1 && x <= 1e12, "a whole number, at least 1"],
    parts: ["number of participations", true, (x) => x >= 1 && x <= 1000, "a whole number from 1 to 1000"],
    separation: ["separation", true, (x) => x >= 1 && x <= 1e6, "a whole number from 1 to 1,000,000, at most n/B"],
    delta: ["delta", false, (x) => x >= 1e-100 && x <= 0.5, "at least 1e-100, at most 0.5"],
    epsilon: ["epsilon", false, (x) => x > 0 && x <= 1e4, "above 0, at most 10,000"],
  };
  const CHOICES = ["scheme", "unit", "relation", "released", "unknown", "given"];

  function shown(name) {
    return !field(name).closest(".calculator-field").hidden;
  }

  /** The answers and the numbers of the visible fields, or null; what is wrong is said beside the field. */
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
    for (const name of CHOICES) values[name] = field(name).value;
    if (values.unit === "record") values.group = 1;
    if (values.relation !== "mix") values.others = values.relation === "swap" ? values.group : 0;
    values.rate = values.q;
    if (!shown("batch")) return values;
    if (values.scheme === "fixed" && values.records - values.group < values.batch) {
      complain("records", `The number of records must be at least the batch size and the group together, ${values.batch + values.group}; got “${values.records}”.`);
      return null;
    }
    if (values.separation * values.batch > values.records) {
      complain("separation", `The separation must be at most n/B, ${Math.floor(values.records / values.batch)}; got “${values.separation}”.`);
      return null;
    }
    values.q = values.batch / values.records;
    values.rate = `${values.batch} / ${values.records}`;
    values.perEpoch = Math.floor(values.records / values.batch);
    values.epochs = Math.ceil(values.steps / values.perEpoch);
    return values;
  }

  // ------------------------------------------------------------------ numbers in words

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

  const FOUND = {
    epsilon: { quantity: "ε at this σ, rounded up", text: (x, values, delta) => `ε ≤ ${rounded(x, 6, 1)} at δ = ${delta}` },
    sigma: { quantity: "σ needed, rounded up", text: (x, values, delta) => `σ = ${rounded(x, 8, 1)} is enough for ε = ${values.epsilon} at δ = ${delta}` },
    steps: {
      quantity: "T at most",
      text: (x, values, delta) => (x === 0 ? `Not even one step keeps ε ≤ ${values.epsilon} at δ = ${delta}` : `${x < MOST_STEPS ? "At most" : "At least"} ${x} steps keep ε ≤ ${values.epsilon} at δ = ${delta}`),
    },
  };

  /** What an ending gives for these values: { value }, or { refused } with the reason. */
  function solve(ending, values) {
    const { unknown, sigma, steps, group, epsilon, delta } = values, make = (found) => ending.make(values, { sigma, steps, group, ...found });
    // Where others are displaced the sensitivity is 2, and the unit of the search: it starts where the accountant closes.
    const unit = ["fixed", "truncated"].includes(values.scheme) ? 2 : 1;
    return attempt(() => ({
      value: unknown === "epsilon" ? make({}).epsilon(delta).upper
        : unknown === "sigma" ? unit * calibrate((x) => make({ sigma: unit * x }), epsilon, delta)
          : largestSteps((x) => make({ steps: x }), epsilon, delta, MOST_STEPS),
    }));
  }

  function say(text, detail = "") {
    if (part("answer").textContent !== text) part("answer").textContent = text;
    part("detail").textContent = detail;
  }

  function headed([head, ...cells]) {
    const made = row(cells), first = document.createElement("th");
    first.scope = "row";
    first.textContent = head;
    made.prepend(first);
    return made;
  }

  function bracketRow(name, result) {
    if (result.refused) return headed([name, REFUSED, result.refused]);
    const width = result.upper - result.lower;
    return headed([name, interval(result), `${rounded(width, 2, 1)} (${result.method})`]);
  }

  /** Both directions at the answer, where the ending has both. */
  function directions(ending, values, found) {
    if (!ending.directions || found.refused || found.value === 0) return {};
    const mechanism = ending.make(values, { sigma: values.sigma, steps: values.steps, group: values.group, [values.unknown]: found.value });
    return Object.fromEntries(["remove", "add"].map((side) => [side, attempt(() => mechanism.epsilon(values.delta, side))]));
  }

  /** Write the answer; what was found. */
  function answer(ending, values) {
    const { unknown, group, scheme, relation } = values, delta = field("delta").value.trim();
    const who = group === 1 ? "one record" : `${group} records together`;
    const related = { add: "add/remove", zero: "zero-out", swap: "substitution", mix: `${values.others} others instead` }[relation];
    part("words").hidden = Boolean(ending.refused);
    part("python").textContent = "";
    if (ending.refused) { say(ending.refused); return ending; }
    part("assumptions").textContent = assumptions(values);
    [part("proof").textContent, part("proof").href] = ending.proof;
    const what = `${SCHEMES[scheme].name} · ${who} · ${related} · ${ending.kind}. ${ending.next ? ending.next(values) : ""}`;
    if (ending.library) {
      say("The library computes this by the Python below; this page has no accountant for it.", what);
      part("python").textContent = ending.python(values);
      return { refused: "by the library" };
    }
    const found = solve(ending, values);
    part("python").textContent = ending.python(values, found.refused ? 1e4 : found.value);
    if (found.refused) say(REFUSAL, what);
    else say(FOUND[unknown].text(found.value, values, delta), what);
    const sides = directions(ending, values, found);
    part("table").tBodies[0].replaceChildren(...Object.entries(sides).map(([name, result]) => bracketRow(name, result)));
    return { ...found, ...sides };
  }

  let running = 0;

  /** What every scheme gives with the same answers and numbers, one after the other, so that the page stays responsive. */
  function compare(values, own, done) {
    const mine = running, rows = {}, waiting = Object.keys(SCHEMES);
    const step = () => {
      if (mine !== running) return;
      const scheme = waiting.shift(), ending = decide({ ...values, scheme });
      let cell = "nothing proved", kind = "";
      rows[scheme] = null;
      if (!ending.refused) {
        kind = ending.kind;
        const [needed, symbol] = SCHEMES[scheme].needs || [];
        if (values.perEpoch === undefined && scheme !== "poisson") cell = "needs B and n";
        else if (needed && values[needed] === undefined) cell = `needs ${symbol}`;
        else if (ending.library) cell = "the library";
        else {
          const found = scheme === values.scheme ? own : solve(ending, { ...values, scheme });
          cell = found.refused ? REFUSED : values.unknown === "steps" ? String(found.value) : rounded(found.value, 6, 1);
          rows[scheme] = found.refused ? null : found.value;
        }
      }
      const made = headed([SCHEMES[scheme].name, cell, kind]);
      if (scheme === values.scheme) made.classList.add("calculator-chosen");
      part("schemes").tBodies[0].append(made);
      if (waiting.length) setTimeout(step, 0);
      else done(rows);
    };
    part("quantity").textContent = FOUND[values.unknown].quantity;
    step();
  }

  /** What the chosen delta would allow. */
  function advise(values) {
    const many = (x) => (x < 1e15 ? x.toLocaleString("en", { maximumSignificantDigits: 3 }) : x.toPrecision(3));
    if (!shown("batch")) {
      part("advice").textContent = "δ must be far below 1/n: a program that publishes each record with probability δ keeps the promise.";
      return;
    }
    const published = values.records * values.delta;
    part("advice").textContent = `A program that publishes each record with probability δ keeps the promise: here ${many(published)} of ${values.records.toLocaleString("en")} records on average.`
      + (published >= 0.5 ? " That is no protection: choose δ far below 1/n." : "");
  }

  // ------------------------------------------------------------------ the plot: epsilon against group size

  let wanted = null; // what the plot shows once it is opened

  /** Compute the curves piece by piece, so that the page stays responsive; the lemma stands beside Poisson sampling. */
  function plot() {
    if (!wanted || !part("growth").open) return;
    const mine = running, points = [], { ending, values, found } = wanted;
    const chosen = { sigma: values.sigma, steps: values.steps, [values.unknown]: found.value };
    const made = (group) => ending.make(values, { ...chosen, group });
    const step = () => {
      if (mine !== running) return;
      const k = points.length + 1, exact = attempt(() => made(k).epsilon(values.delta));
      const point = { k, exact: exact.refused ? null : exact.upper };
      if (made(1).constructor === PoissonDPSGD && values.scheme === "poisson") {
        const lemma = attempt(() => ({ upper: groupLemma(made(1), values.delta, k) }));
        point.lemma = lemma.refused ? null : lemma.upper;
      }
      points.push(point);
      if (points.length < PLOTTED) setTimeout(step, 0);
      else draw(points);
    };
    part("plot").classList.add("calculator-waiting");
    setTimeout(step, 300);
  }

  function draw(points) {
    const svg = part("plot"), width = 640, height = 360, left = 88, right = 185, top = 20, bottom = 50;
    const values = points.flatMap((p) => [p.exact, p.lemma]).filter((x) => x > 0);
    svg.replaceChildren();
    svg.classList.remove("calculator-waiting");
    const body = part("points").tBodies[0];
    const shownBound = (x) => (x === undefined ? UNDRAWN : x === null ? REFUSED : rounded(x, 6, 1));
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
      const good = points.filter((p) => p[key] > 0);
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
    const finding = (last.exact ? ` At ${PLOTTED} records the mixture gives ${rounded(last.exact, 4, 1)}` : "")
      + (last.exact && last.lemma ? `, the lemma ${rounded(last.lemma, 4, 1)}` : "") + (last.exact ? "." : "");
    svg.setAttribute("aria-label", `Epsilon against group size, 1 to ${PLOTTED} records, for the mixture analysis${last.lemma === undefined ? "" : " and the black-box lemma"}.${finding}`);
  }

  // ------------------------------------------------------------------ the page

  function arrange() {
    const scheme = field("scheme").value, unknown = field("unknown").value;
    const free = ["", "poisson"].includes(scheme); // the other schemes need both sizes, and so do encoders
    const sizes = !free || field("released").value === "sums" || field("given").value === "sizes";
    part("given").hidden = !free || field("released").value === "sums";
    const show = (name, on) => { field(name).closest(".calculator-field").hidden = !on; };
    show("q", !sizes);
    show("batch", sizes);
    show("records", sizes);
    show("group", field("unit").value === "group");
    show("others", field("relation").value === "mix");
    show("largest", scheme === "truncated");
    show("parts", scheme === "allocation");
    show("separation", scheme === "pauses");
    show("sigma", unknown !== "sigma");
    show("epsilon", unknown !== "epsilon");
    show("steps", unknown !== "steps");
  }

  const STATE = [...CHOICES, ...Object.keys(RULES)];

  /** Fill the form from an address; whether it holds any of this page's numbers. Older ones have no questions 2 to 4. */
  function load() {
    const state = new URLSearchParams(location.hash.slice(1)), given = STATE.filter((name) => state.has(name));
    restore((name) => STATE.includes(name));
    if (given.length && !state.has("unit")) field("unit").value = Number(state.get("group") || 1) > 1 ? "group" : "record";
    if (state.get("scheme") === "known" && !state.has("relation")) field("relation").value = "zero";
    return given.length > 0;
  }

  function clear() {
    part("schemes").tBodies[0].replaceChildren();
    part("table").tBodies[0].replaceChildren();
    part("plot").replaceChildren();
    part("points").tBodies[0].replaceChildren();
    delete part("table").dataset.result;
    running++;
    wanted = null;
  }

  function update(keep) {
    form.setAttribute("aria-busy", "true");
    clear();
    arrange();
    const values = read(), silent = !values || !values.scheme;
    part("advice").textContent = "";
    part("code").hidden = true;
    part("growth").hidden = true;
    if (values) {
      if (keep) save(STATE.filter((name) => (name in RULES ? shown(name) : field(name).value !== "")));
      advise(values);
    }
    if (silent) {
      say(values ? UNASKED : UNUSABLE);
      part("python").textContent = "";
      part("words").hidden = true;
      form.setAttribute("aria-busy", "false");
      return;
    }
    const ending = decide(values), found = answer(ending, values);
    part("code").hidden = part("python").textContent === "";
    if (ending.directions && found.value > 0) {
      wanted = { ending, values, found };
      part("growth").hidden = false;
    }
    compare(values, found, (rows) => {
      const { value = null, remove, add } = found;
      part("table").dataset.result = JSON.stringify({ scheme: values.scheme, ending: ending.name, value, remove, add, rows });
      form.setAttribute("aria-busy", "false");
      plot();
    });
  }

  let waiting = 0;
  form.addEventListener("input", () => {
    form.setAttribute("aria-busy", "true");
    running++; // whoever types does not wait for old numbers
    clearTimeout(waiting);
    waiting = setTimeout(update, 120, true);
  });
  form.addEventListener("submit", (event) => { event.preventDefault(); update(true); });
  part("growth").addEventListener("toggle", plot);
  window.addEventListener("hashchange", () => { if (load()) update(true); });
  update(load());
})();
