/* The figures that move in the lessons on what stands alone: the last iterate (6), Rényi divergences (7), one step (9), users (22). */
(function (root) {
  "use strict";

  const { PoissonDPSGD, LastIterate, calibrate } = root.PrivacyAccountant;
  const { move, number } = root.Moving;
  const { between, normal, delta, once, solve, shiftFor } = root.LessonFormulas;

  // ------------------------------------------------------------------ 6: two rounds with noise 1

  const loss = (q, x) => Math.log(1 - q + q * Math.exp(x - 0.5));

  /** The output with this loss; null where every output has a larger one. */
  const outputAt = (q, y) => (Math.exp(y) - 1 + q > 0 ? 0.5 + Math.log((Math.exp(y) - 1 + q) / q) : null);

  /** Hockey-stick divergence of one round at every order alpha > 0. */
  const atOrder = (q, alpha) => (alpha > 1 - q ? q * delta(1, Math.log((alpha - 1 + q) / q)) : 1 - alpha);

  /** delta (remove) of two rounds whose outputs are both seen: the second in closed form, the first by the trapezoid rule. */
  function deltaOfTwo(q, epsilon) {
    let sum = 0;
    for (let x = -9, step = 1 / 16; x < 11; x += step) sum += step * (q * normal(x, 1, 1) + (1 - q) * normal(x, 0, 1)) * atOrder(q, Math.exp(epsilon - loss(q, x)));
    return sum;
  }

  const bothSeen = once((q) => solve((epsilon) => Math.log(deltaOfTwo(q, epsilon) / 1e-6), 1e-3, 30));
  const sumSeen = once((q) => new LastIterate({ noiseMultiplier: 1, samplingProbability: q, steps: 2 }).epsilon(1e-6).upper);

  // ------------------------------------------------------------------ 7: the sampled Gaussian mechanism, noise 1

  /** Rényi divergence of one round, direction remove: the trapezoid rule, whose error here is far below rounding. */
  const divergence = once((q, order) => {
    const step = 1 / 16, terms = [];
    for (let x = -12; x < order + 14; x += step) terms.push(order * loss(q, x) - x * x / 2);
    const top = Math.max(...terms);
    return (top + Math.log(terms.reduce((sum, t) => sum + Math.exp(t - top), 0) * step / Math.sqrt(2 * Math.PI))) / (order - 1);
  });

  /** What the order promises after so many rounds [ZW-6]. */
  function promised(q, order, rounds, delta) {
    const s = order - 1, better = -s * Math.log1p(1 / s) - Math.log1p(s);
    return Math.max(rounds * divergence(q, order) + (better - Math.log(delta)) / s, 0);
  }

  const exact = once((q) => new PoissonDPSGD({ noiseMultiplier: 1, samplingProbability: q, steps: 2000 }).epsilon(1e-6).upper);

  // ------------------------------------------------------------------ 9: one step at delta = 1e-5

  const SLACK = 1e-5;

  /** The noise multiplier that one step needs. */
  const noiseOf = once((epsilon, q) => 1 / shiftFor(Math.log1p(Math.expm1(epsilon) / q), Math.log(SLACK / q)));

  const ORDERS = { 2: "2", 4: "4", 8: "8", 16: "16", 32: "32" };

  // ------------------------------------------------------------------ 22: 2000 rounds, q = 0.01 for an example, delta = 1e-6

  const noiseFor = once((samplingProbability, groupSize, epsilon) =>
    calibrate((noiseMultiplier) => new PoissonDPSGD({ noiseMultiplier, samplingProbability, steps: 2000, groupSize }), epsilon, 1e-6, 1e-6));
  const examplesDrawn = (k, epsilon) => noiseFor(0.01, k, epsilon);
  const usersAveraged = (k, epsilon) => k * noiseFor(0.01, 1, epsilon);

  const LESSONS = [
    {
      figure: "fig-6-forgets", panels: 2, height: 300,
      sliders: { q: { label: "sampling probability q", values: [0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1], at: 0.1 } },
      says: ({ q }) => `With q = ${q} both rounds have ε = ${number(bothSeen(q))} at δ = 10⁻⁶ if each output is seen, and ε = ${number(sumSeen(q))} if only their sum is.`,
      *draw({ q }, panel) {
        const span = { from: -1.5, to: 4.5 };
        const left = panel(0, { ...span, label: "output of round 1" }, { ...span, label: "output of round 2" }, q === 1 ? "Not sampled" : `Sampled, q = ${q}`);
        for (const middle of between(-0.5, 3.5, 0.5)) left.curve((x) => outputAt(q, 2 * loss(q, middle) - loss(q, x)), 0, left.grid(960));
        left.curve((x) => 3 - x, 1);
        left.key([["equal evidence", 0], ["equal sum", 1]]);
        const rates = between(0, 24, 1).map((i) => 100 ** (i / 24 - 1));
        for (const rate of rates) {
          bothSeen(rate);
          sumSeen(rate);
          yield;
        }
        const right = panel(1, { from: 0.01, to: 1, log: true, label: "sampling probability q" }, { from: 0.2, to: 10, log: true, label: "ε (δ = 10⁻⁶)" }, "What each tells");
        right.rule(q);
        [bothSeen, sumSeen].forEach((f, i) => {
          right.curve(f, i, rates);
          right.dot(q, f(q), i);
        });
        right.key([["both outputs", 0], ["only the sum", 1]], { end: "left" });
      },
    },
    {
      figure: "fig-7-pick-an-order", panels: 2,
      sliders: {
        order: { label: "order λ", values: [1.5, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 16, 24, 32], at: 7 },
        q: { label: "sampling probability q", values: [0.002, 0.005, 0.01, 0.02, 0.05, 0.1], at: 0.01 },
      },
      says: ({ order, q }) => `At q = ${q} the order λ = ${order} has divergence ${number(divergence(q, order))} in a round, and promises ε ≤ ${number(promised(q, order, 2000, 1e-6), 4, 1)} for 2000 rounds at δ = 10⁻⁶; exactly it is ε ≤ ${number(exact(q), 4, 1)}.`,
      *draw({ order, q }, panel) {
        const axis = { from: 1.3, to: 40, log: true, label: "order λ", ticks: ORDERS };
        const left = panel(0, axis, { from: 1e-6, to: 60, log: true, label: "Rényi divergence" }, "One round …");
        left.rule(order);
        left.curve((x) => x / 2, 0);
        left.curve((x) => divergence(q, x), 1, left.grid(80));
        left.dot(order, divergence(q, order), 1);
        left.key([["not sampled", 0], ["sampled", 1]], { from: 0.6 });
        yield;
        const truth = exact(q), right = panel(1, axis, { from: truth * 0.7, to: truth * 40, log: true, label: "ε (δ = 10⁻⁶)" }, "… and the promise for 2000");
        right.rule(order);
        right.curve((x) => promised(q, x, 2000, 1e-6), 1, right.grid(80));
        right.curve(() => truth, 3, [1.3, 40]);
        right.dot(order, promised(q, order, 2000, 1e-6), 1);
        right.key([["this order", 1], ["exact value", 3]]);
      },
    },
    {
      figure: "fig-9-slow-growth", panels: 2,
      sliders: {
        epsilon: { label: "target ε", values: [0.1, 0.25, 0.5, 1, 2, 4], at: 1 },
        q: { label: "sampling probability q", values: [0.00002, 0.00005, 0.0001, 0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1], at: 0.1 },
      },
      says: ({ epsilon, q }) => `For ε = ${epsilon} at δ = 10⁻⁵ a step with q = ${q} needs the noise σ = ${number(noiseOf(epsilon, q))}, an effective noise of ${number(noiseOf(epsilon, q) / q)}; with all data it is ${number(noiseOf(epsilon, 1))}.`,
      *draw({ epsilon, q }, panel) {
        const all = noiseOf(epsilon, 1), axis = { from: 1.02e-5, to: 1, log: true, label: "sampling probability q" };
        const left = panel(0, axis, { from: all * 1e-5, to: 5 * all, log: true, label: "noise σ" }, "The noise grows slowly …");
        left.rule(q);
        left.curve((x) => noiseOf(epsilon, x), 0);
        left.curve((x) => all * x, 1);
        left.dot(q, noiseOf(epsilon, q), 0);
        left.key([["the noise needed", 0], ["as fast as the batch", 1]], { from: 0.62 });
        yield;
        const right = panel(1, axis, { from: all / 3, to: 5e4 * 5 * noiseOf(epsilon, 2e-5), log: true, label: "effective noise σ / q" }, "… so the effective noise falls");
        right.rule(q);
        right.curve((x) => noiseOf(epsilon, x) / x, 0);
        right.dot(q, noiseOf(epsilon, q) / q, 0);
      },
    },
    {
      figure: "fig-22-noise", height: 330,
      sliders: {
        k: { label: "examples of a user k", values: between(1, 16, 1), at: 9 },
        epsilon: { label: "budget ε", values: [0.5, 1, 2, 4, 8], at: 8 },
      },
      says({ k, epsilon }) {
        const drawn = examplesDrawn(k, epsilon), averaged = usersAveraged(k, epsilon);
        return `For ε = ${epsilon} and k = ${k} the average needs noise ${number(drawn, 4, 1)} with sampled examples, ${number(noiseFor(k / 100, 1, epsilon), 4, 1)} with sampled users and one example of each, and ${number(averaged, 4, 1)} with whole users: they need less where averaging takes the clip norm below the share ${number(drawn / averaged)} of what it was.`;
      },
      *draw({ k, epsilon }, panel) {
        const sizes = between(1, 16, 1);
        for (const size of sizes) {
          examplesDrawn(size, epsilon);
          yield;
        }
        const least = examplesDrawn(1, epsilon);
        const chart = panel(0, { from: 0.4, to: 16.6, label: "examples of a user, k", ticks: { 1: "1", 4: "4", 8: "8", 12: "12", 16: "16" } }, { from: 0.7 * least, to: 60 * least, log: true, label: "noise in the average" });
        chart.rule(k);
        const curves = [["examples", (size) => examplesDrawn(size, epsilon)], ["users averaged, same clip norm", (size) => usersAveraged(size, epsilon)], ["users averaged, clip norm over √k", (size) => usersAveraged(size, epsilon) / Math.sqrt(size)]];
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
