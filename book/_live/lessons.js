/* The figures that move, one a lesson: which figure, which sliders, the sentence, the drawing. Here those of chapters 0 to 5
   and 19 and 21; numbers come from closed forms and from the calculator's accountant. */
(function (root) {
  "use strict";

  const { PoissonDPSGD, FixedBatchDPSGD, knownBatches, groupLemma, logNdtr, calibrate } = root.PrivacyAccountant;
  const { move, number } = root.Moving;

  const { between, normal, delta, sampled, crossing, once, shiftFor } = root.LessonFormulas;

  // The running example: 2000 rounds, 500 of 50,000 records in each, delta = 1e-6.
  const running = (sigma, groupSize = 1, steps = 2000) => new PoissonDPSGD({ noiseMultiplier: sigma, samplingProbability: 0.01, steps, groupSize });
  const grown = once((k, sigma) => running(sigma, k).epsilon(1e-6).upper);
  const repeated = once((steps) => running(1, 1, steps).epsilon(1e-6).upper);
  const lemma = once((k, sigma) => groupLemma(running(sigma), 1e-6, k));
  const fixed = once((sigma) => new FixedBatchDPSGD({ noiseMultiplier: sigma, batchSize: 500, datasetSize: 49999, steps: 2000, patience: 5 }).epsilon(1e-6));
  const shuffledMost = (sigma) => knownBatches({ noiseMultiplier: sigma, participations: 20 }).epsilon(1e-6).upper;

  // The noise of 20 epochs over 50,000 records, by batch size: what the three schemes need for (epsilon, 1e-6).
  const needs = {
    Poisson: once((epsilon, batch) => calibrate((sigma) => new PoissonDPSGD({ noiseMultiplier: sigma, samplingProbability: batch / 5e4, steps: 1e6 / batch, patience: 5 }), epsilon, 1e-6, 1e-5)),
    "fixed batch, add/remove": (epsilon, batch) => 2 * needs.Poisson(epsilon, batch), // its pair [G-3.3]: the same coin, and a shift of 2
    "known batches": (epsilon) => Math.sqrt(20) / shiftFor(epsilon, Math.log(1e-6)),
  };

  /** [A-19] A lower bound for a permutation that is kept for all epochs: the largest of the 100 batch means, over all thresholds. */
  const shuffledLeast = once((sigma) => {
    const mu = Math.sqrt(20) / sigma, exceeds = (tau, shift) => -Math.expm1(logNdtr(tau - shift) + 99 * logNdtr(tau));
    return Math.max(...between(0, 4000, 1).map((i) => {
      const tau = i / 4000 * (2 * mu + 9), event = exceeds(tau, 2 * mu) - 1e-6;
      return event > 1e-6 ? Math.log(event / exceeds(tau, mu)) : 0;
    }));
  });

  /** Fourier transform in place of 2^m complex numbers. */
  function fourier(re, im, sign) {
    const n = re.length;
    for (let i = 1, j = 0; i < n; i++) {
      let bit = n >> 1;
      for (; j & bit; bit >>= 1) j ^= bit;
      j ^= bit;
      if (i < j) [re[i], re[j], im[i], im[j]] = [re[j], re[i], im[j], im[i]];
    }
    for (let size = 2; size <= n; size *= 2) {
      for (let k = 0; k < size / 2; k++) {
        const c = Math.cos(2 * Math.PI * k / size), s = sign * Math.sin(2 * Math.PI * k / size);
        for (let i = k; i < n; i += size) {
          const j = i + size / 2, x = re[j] * c - im[j] * s, y = re[j] * s + im[j] * c;
          [re[j], im[j], re[i], im[i]] = [re[i] - x, im[i] - y, re[i] + x, im[i] + y];
        }
      }
    }
  }

  const STEP = 2e-3, CELLS = 2 ** 14;

  /** Density of the privacy loss of so many rounds of the running example, as a function: for a picture, on a lattice. */
  const lossDensity = once((rounds) => {
    const re = new Float64Array(CELLS), im = new Float64Array(CELLS), q = 0.01;
    const tail = (y) => { // of the loss of one round, which is ln(1 - q + q e^{x - 1/2})
      const odds = (Math.exp(y) - 1 + q) / q, x = odds > 0 ? 0.5 + Math.log(odds) : -Infinity;
      return (1 - q) * Math.exp(logNdtr(-Math.max(x, -40))) + q * Math.exp(logNdtr(1 - Math.max(x, -40)));
    };
    const place = (i) => (i + CELLS) % CELLS;
    for (let i = -CELLS / 2; i < CELLS / 2; i++) re[place(i)] = tail((i - 0.5) * STEP) - tail((i + 0.5) * STEP);
    fourier(re, im, 1);
    for (let i = 0; i < CELLS; i++) {
      const size = Math.hypot(re[i], im[i]) ** rounds, angle = rounds * Math.atan2(im[i], re[i]);
      [re[i], im[i]] = [size * Math.cos(angle), size * Math.sin(angle)];
    }
    fourier(re, im, -1);
    return (y) => Math.max(re[place(Math.round(y / STEP))] / CELLS / STEP, 1e-12);
  });

  const AMOUNTS = [0.3, 0.4, 0.5, 0.6, 0.8, 1, 1.25, 1.5, 2, 2.5, 3, 4];
  const DELTA_AXIS = { from: 1e-6, to: 1.5, log: true, label: "δ" };

  const LESSONS = [
    {
      figure: "fig-0-four-schemes", height: 330,
      sliders: { sigma: { label: "noise multiplier σ", values: [0.7, 0.8, 1, 1.25, 1.5, 2, 3, 4, 6, 8, 12, 16], at: 1 } },
      says: ({ sigma }) => `At σ = ${sigma} Poisson sampling has ε ≤ ${number(grown(1, sigma), 4, 1)}, batches of fixed size have ε ≤ ${number(fixed(sigma).upper, 4, 1)}, and shuffled ones, for zero-out only, ε ≤ ${number(shuffledMost(sigma), 4, 1)}.`,
      *draw({ sigma }, panel) {
        const noise = between(0, 20, 1).map((i) => 0.6 * (16 / 0.6) ** (i / 20));
        const curves = [["Poisson (add/remove, zero-out)", (s) => grown(1, s), 0], ["fixed size (add/remove)", (s) => fixed(s)?.upper ?? null, 1], ["shuffled (zero-out only)", shuffledMost, 3]];
        const chart = panel(0, { from: 0.6, to: 17, log: true, label: "noise multiplier σ" }, { from: 0.05, to: 300, log: true, label: "ε (δ = 10⁻⁶)" }, "balls in bins: only in the figure of the book");
        chart.rule(sigma);
        for (const [, f, i] of curves) {
          for (const s of noise) {
            f(s);
            yield;
          }
          chart.curve(f, i, noise);
          chart.dot(sigma, f(sigma), i);
        }
        chart.key(curves.map(([words, , i]) => [words, i]));
      },
    },
    {
      figure: "fig-1-hockey-stick", panels: 2,
      sliders: {
        epsilon: { label: "allowed loss ε", values: between(0, 4, 0.05), at: 0.5 },
        sigma: { label: "noise σ", values: AMOUNTS, at: 1 },
      },
      says: ({ epsilon, sigma }) => `At ε = ${epsilon} and noise σ = ${sigma} the shaded area is δ = ${number(delta(1 / sigma, epsilon))}.`,
      *draw({ epsilon, sigma }, panel) {
        const present = (x) => normal(x, 1, sigma), covered = (x) => Math.exp(epsilon) * normal(x, 0, sigma);
        const reach = Math.max(3.5, 3 * sigma), top = Math.min(1.35 * Math.max(present(1), covered(0)), 2.5 * present(1));
        const left = panel(0, { from: -reach, to: reach + 1.5, label: "published number" }, { from: 0, to: top, label: "density" });
        left.area(present, covered, 0);
        left.curve(present, 0);
        left.curve(covered, 1);
        left.key([["with you", 0], ["e^ε times without you", 1]]);
        const right = panel(1, { from: 0, to: 4, label: "ε" }, DELTA_AXIS);
        for (const other of [0.5, 1, 2]) right.curve((e) => delta(1 / other, e), "faint");
        right.curve((e) => delta(1 / sigma, e), 0);
        right.curve((e) => Math.max(0.75 - Math.exp(e) / 4, 1e-12), 3);
        right.key([[`σ = ${sigma}`, 0], ["σ = 0.5, 1 and 2", "faint"], ["coin", 3]], { end: sigma < 1 ? "left" : "right", from: sigma < 1 ? 0.65 : 0 });
        right.rule(epsilon);
        right.dot(epsilon, delta(1 / sigma, epsilon), 0);
      },
    },
    {
      figure: "fig-2-losses", panels: 2,
      sliders: { rounds: { label: "number of rounds T", values: [100, 200, 500, 1000, 2000, 5000, 10000, 20000], at: 2000 } },
      says({ rounds }) {
        const one = repeated(1), all = repeated(rounds);
        return `After T = ${rounds} rounds ε ≤ ${number(all, 4, 1)} at δ = 10⁻⁶: ${number(all / one)} times the ε of one round, not ${rounds} times.`;
      },
      *draw({ rounds }, panel) {
        [1, rounds].forEach((count, place) => {
          const title = place ? `… and ${count.toLocaleString("en")} of them` : "One round …";
          const chart = panel(place, { from: -4, to: 12, label: "privacy loss" }, { from: 1e-8, to: 1e3, log: true, label: "density" }, title);
          const density = lossDensity(count), epsilon = repeated(count);
          chart.area(density, () => 1e-12, 0);
          chart.curve(density, 0, chart.grid(960));
          chart.rule(epsilon, `ε ≤ ${number(epsilon, 4, 1)}`);
        });
      },
    },
    {
      figure: "fig-3-secret", panels: 2,
      sliders: {
        q: { label: "sampling probability q", values: [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, ...between(0.1, 1, 0.1)], at: 0.1 },
        epsilon: { label: "allowed loss ε", values: between(0, 2.5, 0.1), at: 1 },
      },
      says({ q, epsilon }) {
        const certain = delta(1, epsilon), hidden = sampled(q, 1, epsilon);
        return `At ε = ${epsilon} a record that is drawn for certain has δ = ${number(certain)}; the coin q = ${q} in plain sight makes it ${number(q * certain)}, in secret ${number(hidden)}.`;
      },
      *draw({ q, epsilon }, panel) {
        const left = panel(0, { from: -3.5, to: 4.5, label: "what the adversary sees" }, { from: 0, to: 0.6, label: "density" }, "One round …");
        left.curve((x) => normal(x, 1, 1), 0);
        left.curve((x) => q * normal(x, 1, 1) + (1 - q) * normal(x, 0, 1), 1);
        left.curve((x) => normal(x, 0, 1), 2);
        left.key([["drawn", 0], ["drawn in secret", 1], ["absent", 2]]);
        const right = panel(1, { from: 0, to: 2.5, label: "ε" }, { ...DELTA_AXIS, from: 1e-9 }, "… and what it costs");
        const curves = [["drawn", (e) => delta(1, e)], ["coin hidden", (e) => sampled(q, 1, e)], ["coin seen", (e) => q * delta(1, e)]];
        right.rule(epsilon);
        curves.forEach(([, f], i) => {
          right.curve(f, i);
          right.dot(epsilon, f(epsilon), i);
        });
        right.key(curves.map(([words], i) => [words, i]), { end: "left", from: 0.62 });
      },
    },
    {
      figure: "fig-4-one-crossing", panels: 2,
      sliders: {
        q: { label: "participation q", values: [0.02, 0.05, ...between(0.1, 1, 0.1)], at: 0.5 },
        epsilon: { label: "allowed loss ε", values: between(0, 2, 0.1), at: 0.5 },
      },
      says: ({ q, epsilon }) => `With q = ${q} the loss crosses ε = ${epsilon} at x = ${number(crossing(q, epsilon))}; the area beyond is δ = ${number(sampled(q, 1, epsilon))}.`,
      *draw({ q, epsilon }, panel) {
        const present = (x) => (1 - q) * normal(x, 0, 1) + q * normal(x, 1, 1), scaled = (x) => Math.exp(epsilon) * normal(x, 0, 1);
        const axis = { from: -4, to: 5, label: "published value x" }, edge = crossing(q, epsilon);
        const left = panel(0, axis, { from: 0, to: 1, label: "density" });
        left.area(present, scaled, 0);
        left.curve(present, 0);
        left.curve((x) => normal(x, 0, 1), 1);
        left.curve(scaled, 2);
        left.rule(edge);
        left.key([["with the record", 0], ["without", 1], ["e^ε times without", 2]]);
        const right = panel(1, axis, { from: -1, to: 3.2, label: "loss" });
        right.curve((x) => Math.log(1 - q + q * Math.exp(x - 0.5)), 0);
        right.curve(() => epsilon, 3);
        right.rule(edge);
        right.dot(edge, epsilon, 0);
        right.key([["loss", 0], [`ε = ${epsilon}`, 3]], { end: "left" });
      },
    },
    {
      figure: "fig-5-growth", height: 340,
      sliders: {
        k: { label: "group size k", values: between(1, 16, 1), at: 9 },
        sigma: { label: "noise multiplier σ", values: [0.8, 1, 1.25, 1.5, 2, 3, 4], at: 1 },
      },
      says({ k, sigma }) {
        const one = grown(1, sigma), all = grown(k, sigma);
        return `At σ = ${sigma} the exact value for ${k === 1 ? "one person" : `${k} people`} is ε ≤ ${number(all, 4, 1)}: ${number(all / one)} times that of one person, ε ≤ ${number(one, 4, 1)}.`;
      },
      *draw({ k, sigma }, panel) {
        const sizes = between(1, 16, 1);
        for (const size of sizes) {
          grown(size, sigma);
          lemma(size, sigma);
          yield;
        }
        const one = grown(1, sigma);
        const chart = panel(0, { from: 0.4, to: 16.6, label: "group size k", ticks: { 1: "1", 4: "4", 8: "8", 12: "12", 16: "16" } }, { from: 10 ** Math.floor(Math.log10(one)), to: 1e6, log: true, label: "ε at δ = 10⁻⁶" });
        chart.rule(k);
        const curves = [["exact", (size) => grown(size, sigma)], ["k times one person", (size) => size * one], ["textbook lemma, plain form", (size) => lemma(size, sigma)]];
        curves.forEach(([, f], i) => {
          chart.curve(f, i, sizes);
          chart.dot(k, f(k), i);
        });
        chart.key(curves.map(([words], i) => [words, i]), { end: "left" });
      },
    },
    {
      figure: "fig-19-mistakes", height: 330,
      sliders: { sigma: { label: "noise multiplier σ", values: [0.8, 1, 1.25, 1.5, 2, 3, 4, 6, 8], at: 1 } },
      says: ({ sigma }) => `At σ = ${sigma} a program that accounts shuffled batches as Poisson claims ε = ${number(grown(1, sigma), 4, 1)}; the truth is at least ${number(shuffledLeast(sigma), 4, -1)}.`,
      *draw({ sigma }, panel) {
        const claimed = grown(1, sigma), rows = [
          ["shuffled, as Poisson", claimed, shuffledLeast(sigma)], ["fixed batch, as Poisson", claimed, fixed(sigma).lower],
          ["sensitivity: 2C", claimed, grown(1, sigma / 2)], ["k times one record, k = 9", 9 * claimed, grown(9, sigma)],
        ];
        const chart = panel(0, { from: 0.1, to: 300, log: true, label: "ε" }, { from: 0, to: rows.length, label: "", ticks: {} });
        rows.forEach(([name, said, truth], i) => {
          const y = rows.length - i - 0.6;
          chart.text(0.11, y + 0.25, name);
          chart.curve(() => y, 1, [said, truth]);
          chart.dot(said, y, 0);
          chart.dot(truth, y, 1);
        });
        chart.key([["claimed", 0], ["true", 1]]);
      },
    },
    {
      figure: "fig-21-one-axis", height: 340,
      sliders: {
        epsilon: { label: "target ε", values: [1, 2, 4, 8], at: 2 },
        batch: { label: "batch size B", values: [250, 500, 1250, 2500, 5000], at: 500 },
      },
      says({ epsilon, batch }) {
        const [poisson, fixed, known] = Object.values(needs).map((noise) => number(noise(epsilon, batch), 4, 1));
        return `For ε = ${epsilon} at batches of ${batch} Poisson sampling needs σ = ${poisson}, a batch of fixed size ${fixed} (add/remove), known batches ${known}.`;
      },
      *draw({ epsilon, batch }, panel) {
        const sizes = [250, 500, 1250, 2500, 5000];
        for (const size of sizes) for (const noise of Object.values(needs)) {
          noise(epsilon, size);
          yield;
        }
        const chart = panel(0, { from: 220, to: 5700, log: true, label: "expected batch size B" }, { from: 0.3, to: 30, log: true, label: "noise multiplier σ" });
        chart.rule(batch);
        Object.values(needs).forEach((noise, i) => {
          chart.curve((size) => noise(epsilon, size), i, sizes);
          chart.dot(batch, noise(epsilon, batch), i);
        });
        chart.key(Object.keys(needs).map((words, i) => [words, i]), { end: "left" });
      },
    },
  ];

  LESSONS.forEach(move);
})(window);
