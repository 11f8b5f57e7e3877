/* The page `calculator`: asks how batches are drawn, reads the form, asks accountant.js, writes brackets, the other
   schemes, a plot and a shareable address. */
(function () {
  "use strict";

  const { PoissonDPSGD, FixedBatchDPSGD, knownBatches, NoBracketError, calibrate, groupLemma } = window.PrivacyAccountant;
  const form = document.getElementById("calculator");
  if (!form) return;
  const { svg: element, row, rounded, UNUSABLE } = window.LivePage;
  const { field, part, complain, save, restore } = window.LivePage.of(form);
  const PLOTTED = 16; // group sizes on the plot
  const MOST_BINS = 8192; // batches an epoch that the library's balls in bins takes
  const UNASKED = "First say how batches are drawn. No number holds without it.";
  const REFUSED = "no bracket here", UNDRAWN = "–";

  // What each field may hold: [name, label, whole number, allowed range as a test, and in words]
  const RULES = {
    sigma: ["noise multiplier", false, (x) => x >= 0.05 && x <= 1000, "from 0.05 to 1000"],
    q: ["sampling probability", false, (x) => x >= 0 && x <= 1, "from 0 to 1"],
    batch: ["batch size", true, (x) => x >= 1 && x <= 1e12, "a whole number, at least 1"],
    records: ["number of records", true, (x) => x >= 1 && x <= 1e12, "a whole number, at least the batch size"],
    steps: ["number of steps", true, (x) => x >= 1 && x <= 1e7, "a whole number from 1 to 10,000,000"],
    group: ["group size", true, (x) => x >= 1 && x <= 1000, "a whole number from 1 to 1000"],
    delta: ["delta", false, (x) => x >= 1e-100 && x <= 0.5, "at least 1e-100, at most 0.5"],
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
    values.scheme = field("scheme").value;
    if (!shown("batch")) return values;
    if (values.scheme === "fixed" && values.records - values.group < values.batch) {
      complain("records", `The number of records must be at least the batch size and the group together, ${values.batch + values.group}; got “${values.records}”.`);
      return null;
    }
    values.q = values.batch / values.records;
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

  // For each scheme: its mechanism, its name in the table, what a number holds for there and in the answer.
  const ALWAYS = "add/remove and zero-out";
  const SCHEMES = {
    poisson: {
      name: "Poisson sampling", holds: ALWAYS, verb: "adding, removing or zeroing out",
      make: (values, common) => new PoissonDPSGD({ ...common, samplingProbability: values.q, steps: values.steps }),
    },
    fixed: {
      name: "fixed size", holds: "add/remove", verb: "adding or removing",
      make: (values, common) => {
        const datasetSize = values.records - common.groupSize;
        if (datasetSize < values.batch) throw new NoBracketError("fewer records than a batch are left without the group");
        // Twice the sensitivity: what Poisson sampling leaves as a small epsilon is a large one here, and takes more work.
        return new FixedBatchDPSGD({ ...common, batchSize: values.batch, datasetSize, steps: values.steps, patience: 5 });
      },
    },
    known: {
      name: "shuffled, in order, or known", holds: "zero-out only; under add/remove nothing is proved here", verb: "zeroing out",
      make: (values, common) => knownBatches({ ...common, participations: values.epochs }),
    },
  };

  function mechanism(values, sigma, { group = values.group, scheme = values.scheme } = {}) {
    return SCHEMES[scheme].make(values, { noiseMultiplier: sigma, groupSize: group });
  }

  /** The noise multiplier that the form asks for, or the one that it gives. */
  function noise(values, scheme = values.scheme) {
    if (field("unknown").value === "epsilon") return values.sigma;
    // A fixed batch is searched in units of its sensitivity, 2: the search starts where the accountant closes.
    const unit = scheme === "fixed" ? 2 : 1;
    return unit * calibrate((sigma) => mechanism(values, unit * sigma, { scheme }), values.epsilon, values.delta);
  }

  function python(values) {
    const number = (x) => (Number.isInteger(x) && Math.abs(x) < 1e15 ? String(x) : x.toString());
    const searched = field("unknown").value === "sigma", { scheme, group } = values;
    const delta = `delta=${number(values.delta)}`, epsilon = searched ? `epsilon=${number(values.epsilon)}` : "", sigma = searched ? "1" : number(values.sigma);
    if (scheme === "known" || (scheme === "bins" && !exactBins(values))) {
      const length = `${group > 1 ? `${group} * ` : ""}math.sqrt(${values.epochs})`;
      const asked = searched ? `${length} / gaussian.calibrate(${epsilon}, ${delta})` : `gaussian.epsilon(mu=${length} / ${sigma}, ${delta})`;
      return `import math\nfrom dplib import gaussian\n${asked}`;
    }
    const rate = shown("batch") ? `${values.batch} / ${values.records}` : number(values.q), size = group > 1 ? `, group_size=${group}` : "";
    const made = {
      poisson: `PoissonDPSGD(noise_multiplier=${sigma}, sampling_probability=${rate}, steps=${values.steps}${size})`,
      fixed: `FixedBatchDPSGD(noise_multiplier=${sigma}, batch_size=${values.batch}, dataset_size=${values.records} - ${group}, steps=${values.steps}${size})`,
      bins: `BallsInBins(dplib.matrices.identity(${values.perEpoch * values.epochs}), noise_multiplier=${sigma}, batches_per_epoch=${values.perEpoch}, epochs=${values.epochs})`,
    }[scheme];
    return `import dplib\n${searched ? `dplib.calibrate(dplib.${made}, ${epsilon}, ${delta})` : `dplib.${made}.epsilon(${delta})`}`;
  }

  /** Whether the library knows the exact number for balls in bins. */
  function exactBins(values) {
    return values.group === 1 && values.perEpoch <= MOST_BINS;
  }

  function say(text) {
    if (part("answer").textContent !== text) part("answer").textContent = text;
  }

  function headed([head, ...cells]) {
    const made = row(cells), first = document.createElement("th");
    first.scope = "row";
    first.textContent = head;
    made.prepend(first);
    return made;
  }

  function tabulate(rows) {
    part("table").tBodies[0].replaceChildren(...rows.map(headed));
  }

  const REFUSAL = "No bracket closes here in the browser: the rounds are few, or sample too rarely. The library has accountants for these settings; the line of Python below asks them.";

  function bracketRow(name, result) {
    if (result.refused) return [name, REFUSED, result.refused];
    const width = result.upper - result.lower;
    return [name, interval(result), `${rounded(width, 2, 1)} (${result.method})`];
  }

  /** What each scheme needs, or gives, with the same numbers; {scheme: number, or null without a bracket}. */
  function compare(values, own) {
    const searched = field("unknown").value === "sigma", found = {}, sizes = shown("batch");
    part("quantity").textContent = searched ? "σ needed, rounded up" : "ε at this σ, rounded up";
    const rows = Object.entries(SCHEMES).map(([scheme, { name, holds }]) => {
      let cell = "needs B and n";
      if (sizes || scheme === "poisson") {
        const result = scheme === values.scheme ? own
          : attempt(() => (searched ? { value: noise(values, scheme) } : { value: mechanism(values, values.sigma, { scheme }).epsilon(values.delta).upper }));
        found[scheme] = result.refused ? null : result.value;
        cell = result.refused ? REFUSED : rounded(result.value, 6, 1);
      }
      return [scheme, headed([name, cell, holds])];
    });
    const bound = !sizes ? "needs B and n" : found.known === null ? "the line of Python below" : `at most ${rounded(found.known, 6, 1)}${exactBins(values) ? "; exactly: the library" : ""}`;
    rows.push(["bins", headed(["balls in bins", bound, ALWAYS])]);
    for (const [scheme, made] of rows) if (scheme === values.scheme) made.classList.add("calculator-chosen");
    part("schemes").tBodies[0].replaceChildren(...rows.map(([, made]) => made));
    return found;
  }

  /** Write the answer; returns the noise multiplier, or null where there is none to draw. */
  function answer(values) {
    const searched = field("unknown").value === "sigma", { scheme } = values;
    part("python").textContent = python(values);
    delete part("table").dataset.result;
    if (scheme === "bins") {
      const rows = compare(values, null), bound = rows.known;
      part("table").dataset.result = JSON.stringify({ scheme, sigma: null, rows });
      tabulate([]);
      const next = exactBins(values) ? "The line of Python below asks the library, which knows the exact number." : "The library has no better bound here.";
      say(bound === null ? REFUSAL : searched
        ? `Noise multiplier ${rounded(bound, 8, 1)} is enough for balls in bins, even if everybody knows the batches. ${next}`
        : `ε ≤ ${rounded(bound, 6, 1)} at δ = ${field("delta").value.trim()} for balls in bins, even if everybody knows the batches. ${next}`);
      return null;
    }
    const sigma = attempt(() => noise(values));
    if (sigma.refused) {
      say(REFUSAL);
      tabulate([]);
      compare(values, sigma);
      return null;
    }
    const started = performance.now();
    const remove = attempt(() => mechanism(values, sigma).epsilon(values.delta, "remove"));
    const add = attempt(() => mechanism(values, sigma).epsilon(values.delta, "add"));
    part("table").dataset.milliseconds = String(performance.now() - started);
    tabulate([bracketRow("remove", remove), bracketRow("add", add)]);
    const rows = compare(values, searched ? { value: sigma } : remove.refused ? remove : { value: remove.upper });
    part("table").dataset.result = JSON.stringify({ scheme, sigma, remove, add, rows });
    if (remove.refused) { say(REFUSAL); return sigma; }
    const guarantee = `ε ≤ ${rounded(remove.upper, 6, 1)} at δ = ${field("delta").value.trim()}`;
    const holds = `${SCHEMES[scheme].verb} ${who(values.group)}`;
    const name = scheme === "known" ? "shuffled or known batches" : scheme === "fixed" ? "batches of fixed size" : "Poisson sampling";
    say(searched
      ? `With ${name}, noise multiplier ${rounded(sigma, 8, 1)} is enough: ${guarantee}, ${holds}.`
      : `With ${name}: ${guarantee}, ${holds}.`);
    return sigma;
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
      const exact = attempt(() => mechanism(values, sigma, { group: k }).epsilon(values.delta));
      const point = { k, exact: exact.refused ? null : exact.upper };
      if (values.scheme === "poisson") {
        const lemma = attempt(() => ({ upper: groupLemma(mechanism(values, sigma, { group: 1 }), values.delta, k) }));
        point.lemma = lemma.refused ? null : lemma.upper;
      }
      points.push(point);
      if (points.length < sizes.length) setTimeout(step, 0);
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
    const free = ["", "poisson"].includes(field("scheme").value); // the other schemes need both sizes
    part("given").hidden = !free;
    const sizes = !free || field("given").value === "sizes", noise = field("unknown").value === "sigma";
    const show = (name, on) => { field(name).closest(".calculator-field").hidden = !on; };
    show("q", !sizes);
    show("batch", sizes);
    show("records", sizes);
    show("sigma", !noise);
    show("epsilon", noise);
  }

  const STATE = ["scheme", "unknown", "given", ...Object.keys(RULES)];
  const load = () => restore((name) => STATE.includes(name));

  function update() {
    form.setAttribute("aria-busy", "false");
    arrange();
    const values = read();
    part("advice").textContent = "";
    if (values) {
      save(STATE.filter((name) => (name in RULES ? shown(name) : field(name).value !== "")));
      advise(values);
    }
    const sigma = values && values.scheme ? answer(values) : null;
    if (!values || !values.scheme) {
      say(values ? UNASKED : UNUSABLE);
      tabulate([]);
      part("schemes").tBodies[0].replaceChildren();
      part("python").textContent = "";
      delete part("table").dataset.result;
    }
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
