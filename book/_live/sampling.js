/* The page `live_sampling`: who takes part in which round, under each sampling scheme, drawn again on demand. */
(function () {
  "use strict";

  const { random } = window.LivePage; // a link shows the same draw to everyone

  function shuffled(count, next) {
    const order = Array.from({ length: count }, (_, i) => i);
    for (let i = count - 1; i > 0; i--) {
      const j = Math.floor(next() * (i + 1));
      [order[i], order[j]] = [order[j], order[i]];
    }
    return order;
  }

  // Each scheme: (records, b = rounds an epoch, E = epochs, next) -> a set of records for each round.
  const SCHEMES = {
    poisson: {
      name: "Poisson",
      says: "Every record joins every round on its own, with probability 1/b. Batch sizes vary, and so does how often a record takes part. Mechanism: PoissonDPSGD.",
      draw: (n, b, E, next) => Array.from({ length: b * E }, () => pick(n, () => next() < 1 / b)),
    },
    fixed: {
      name: "fixed batch size",
      says: "Each round draws a new batch of exactly n/b different records. How often a record takes part varies. Mechanism: FixedBatchDPSGD.",
      draw: (n, b, E, next) => Array.from({ length: b * E }, () => new Set(shuffled(n, next).slice(0, Math.round(n / b)))),
    },
    shuffling: {
      name: "shuffling",
      says: "Once an epoch the records are shuffled and cut into b batches. Every record takes part once an epoch, and the batches of an epoch know of each other: accounting it as Poisson can claim too little.",
      draw: (n, b, E, next) => epochs(E, () => cut(shuffled(n, next), b)),
    },
    roundRobin: {
      name: "fixed round robin",
      says: "The batches are fixed once and for all, and taken in turn. Nothing is random, so nothing is amplified: the guarantee is that of the plain matrix mechanism with E participations.",
      draw: (n, b, E) => epochs(E, () => cut(Array.from({ length: n }, (_, i) => i), b)),
    },
    cyclicPoisson: {
      name: "cyclic Poisson",
      says: "The records are split at random into groups of rounds; the groups take turns, and each record of the group joins with probability s/b. Two participations of a record lie at least s rounds apart, s = b/2. Mechanism: MatrixMechanism with min_separation.",
      draw: (n, b, E, next) => {
        const s = Math.max(1, Math.floor(b / 2)), group = Array.from({ length: n }, () => Math.floor(next() * s));
        return Array.from({ length: b * E }, (_, t) => pick(n, (i) => group[i] === t % s && next() < Math.min(1, s / b)));
      },
    },
    ballsInBins: {
      name: "balls in bins",
      says: "Each record is thrown into one of b bins, once; bin i is the batch of the rounds i, i + b, i + 2b, … Batch sizes vary, every record takes part once an epoch, and always in the same place. Mechanism: BallsInBins.",
      draw: (n, b, E, next) => {
        const bin = Array.from({ length: n }, () => Math.floor(next() * b));
        return Array.from({ length: b * E }, (_, t) => pick(n, (i) => bin[i] === t % b));
      },
    },
  };

  function pick(n, joins) {
    const batch = new Set();
    for (let i = 0; i < n; i++) if (joins(i)) batch.add(i);
    return batch;
  }

  function cut(order, b) {
    return Array.from({ length: b }, (_, j) => new Set(order.slice(Math.round(j * order.length / b), Math.round((j + 1) * order.length / b))));
  }

  function epochs(E, make) {
    return Array.from({ length: E }, make).flat();
  }

  window.SamplingSchemes = { SCHEMES, random };

  // ------------------------------------------------------------------ the page

  const form = document.getElementById("sampling");
  if (!form) return;
  const { svg: element, UNUSABLE } = window.LivePage;
  const { field, part, complain, save, restore } = window.LivePage.of(form);
  const RULES = { records: ["number of records", 2, 60], b: ["rounds an epoch", 2, 40], E: ["number of epochs", 1, 8], seed: ["seed", 0, 4294967295] };

  for (const [key, { name }] of Object.entries(SCHEMES)) {
    field("scheme").append(Object.assign(document.createElement("option"), { value: key, textContent: name }));
  }

  function read() {
    const values = {};
    let good = true;
    for (const [name, [label, least, most]] of Object.entries(RULES)) {
      const text = field(name).value.trim(), x = Number(text), fine = text !== "" && Number.isInteger(x) && x >= least && x <= most;
      complain(name, fine ? "" : `The ${label} must be a whole number from ${least} to ${most}; got “${text || "nothing"}”.`);
      good = good && fine;
      values[name] = x;
    }
    return good ? values : null;
  }

  function draw() {
    const values = read(), svg = part("picture");
    svg.replaceChildren();
    if (!values) {
      part("summary").textContent = UNUSABLE;
      return;
    }
    const { records: n, b, E, seed } = values, scheme = SCHEMES[field("scheme").value];
    const rounds = scheme.draw(n, b, E, random(seed));
    const counts = Array.from({ length: n }, (_, i) => rounds.reduce((sum, batch) => sum + batch.has(i), 0));
    const sizes = rounds.map((batch) => batch.size);
    const cell = 14, left = 60, top = 60, right = 70, bottom = 44, T = rounds.length;
    const width = left + T * cell + right, height = top + n * cell + bottom;
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.style.minWidth = `${Math.min(width, 640)}px`;
    const add = (...made) => svg.append(element(...made));
    rounds.forEach((batch, t) => {
      const bar = sizes[t] / Math.max(...sizes, 1) * (top - 22);
      add("rect", { x: left + t * cell + 2, y: top - 4 - bar, width: cell - 4, height: bar, class: "sampling-size" });
      for (let i = 0; i < n; i++) {
        add("rect", { x: left + t * cell + 1, y: top + i * cell + 1, width: cell - 2, height: cell - 2, class: batch.has(i) ? "sampling-in" : "sampling-out" });
      }
    });
    for (let e = 0; e <= E; e++) add("line", { x1: left + e * b * cell, x2: left + e * b * cell, y1: top - 4, y2: top + n * cell + 4, class: "sampling-epoch" });
    counts.forEach((count, i) => add("rect", { x: left + T * cell + 6, y: top + i * cell + 3, width: count / Math.max(...counts, 1) * (right - 16), height: cell - 6, class: "sampling-size" }));
    add("text", { x: left, y: 14 }, `batch sizes, at most ${Math.max(...sizes)}`);
    add("text", { x: left + T * cell / 2, y: height - 12, "text-anchor": "middle" }, `rounds (${E} epochs of ${b})`);
    add("text", { transform: `translate(24 ${top + n * cell / 2}) rotate(-90)`, "text-anchor": "middle" }, "records");
    const range = (list) => (Math.min(...list) === Math.max(...list) ? `${list[0]}` : `${Math.min(...list)} to ${Math.max(...list)}`);
    part("says").textContent = scheme.says;
    const summary = `${scheme.name}: batches of ${range(sizes)} records; each record takes part ${range(counts)} times in ${T} rounds.`;
    part("summary").textContent = summary;
    svg.setAttribute("aria-label", `Who takes part in which round. ${summary}`);
    save(["scheme", ...Object.keys(RULES)]);
  }

  const load = () => restore((name, value) => (name === "scheme" ? value in SCHEMES : name in RULES));
  form.addEventListener("input", draw);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    field("seed").value = String(Math.floor(Math.random() * 1e6));
    draw();
  });
  window.addEventListener("hashchange", () => { load(); draw(); });
  load();
  draw();
})();
