/* The figures that move, one a lesson: which figure, which sliders, the sentence, the drawing. The numbers come from
   closed forms and from the calculator's accountant. */
(function (root) {
  "use strict";

  const { PoissonDPSGD, NoBracketError, groupLemma, gaussianLogDelta } = root.PrivacyAccountant;
  const { move, number } = root.Moving;

  const between = (from, to, step) => Array.from({ length: Math.round((to - from) / step) + 1 }, (_, i) => Number((from + i * step).toPrecision(10)));
  const normal = (x, mean, sigma) => Math.exp(-(((x - mean) / sigma) ** 2) / 2) / sigma / Math.sqrt(2 * Math.PI);

  /** delta of a Gaussian release whose shift is mu times its noise. */
  const delta = (mu, epsilon) => Math.exp(gaussianLogDelta(mu, epsilon));

  /** delta (remove) of one round that a record joins in secret with probability q. */
  const sampled = (q, mu, epsilon) => q * delta(mu, Math.log1p(Math.expm1(epsilon) / q));

  /** f of its arguments, computed once for each; null where no bracket closes in the browser. */
  function once(f) {
    const known = new Map();
    return (...values) => {
      const key = values.join();
      if (!known.has(key)) {
        try {
          known.set(key, f(...values));
        } catch (error) {
          if (!(error instanceof NoBracketError)) throw error;
          known.set(key, null);
        }
      }
      return known.get(key);
    };
  }

  // The running example: 2000 rounds, 500 of 50,000 records in each, delta = 1e-6.
  const running = (sigma, groupSize = 1) => new PoissonDPSGD({ noiseMultiplier: sigma, samplingProbability: 0.01, steps: 2000, groupSize });
  const grown = once((k, sigma) => running(sigma, k).epsilon(1e-6).upper);
  const lemma = once((k, sigma) => groupLemma(running(sigma), 1e-6, k));

  const AMOUNTS = [0.3, 0.4, 0.5, 0.6, 0.8, 1, 1.25, 1.5, 2, 2.5, 3, 4];
  const DELTA_AXIS = { from: 1e-6, to: 1.5, log: true, label: "δ" };

  const LESSONS = [
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
  ];

  LESSONS.forEach(move);
})(window);
