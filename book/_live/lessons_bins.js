/* The figures that move in the lessons on hidden batches: balls in bins (14), Monte Carlo (15), the encoder (16), training (17).
   The encoders of chapter 17 are those of its study: the build puts them beside the scripts. */
(function (root) {
  "use strict";

  const { rootOfDecreasing } = root.PrivacyAccountant;
  const { move, number } = root.Moving, { random } = root.LivePage;
  const { between, normal, ndtr, delta, once, solve, shiftFor, hiddenBatch, deviations, gauss } = root.LessonFormulas;

  // ------------------------------------------------------------------ 14: two rounds, one of them with the record

  const bothRounds = once((epsilon, sigma) => hiddenBatch([[sigma ** -2, 0], [0, sigma ** -2]], epsilon));
  const toldBatch = (epsilon, sigma) => delta(1 / sigma, epsilon), onlySum = (epsilon, sigma) => delta(Math.SQRT1_2 / sigma, epsilon);

  // ------------------------------------------------------------------ 15: three bins in the plane at epsilon = 1

  const LEVEL = Math.E; // of the likelihood ratio
  const MODES = [[4, 0.3], [40, 0.24], [84, 0.3]].map(([angle, size]) => [size * Math.cos(angle * Math.PI / 180), size * Math.sin(angle * Math.PI / 180)]);
  const inner = ([a, b], [c, d]) => a * c + b * d;

  /** For first outputs u on a grid: what each bin adds to the ratio there, and the second output at which it is e. */
  const GRID = { step: 1 / 8, from: -14 };
  const border = once(() => between(0, 30 / GRID.step, 1).map((i) => {
    const u = GRID.from + i * GRID.step, terms = MODES.map((mode) => Math.exp(mode[0] * u - mode[0] ** 2 / 2) / MODES.length);
    const ratio = (v) => terms.reduce((sum, term, j) => sum + term * Math.exp(MODES[j][1] * v - MODES[j][1] ** 2 / 2), 0);
    return { u, terms, v: rootOfDecreasing((v) => Math.log(LEVEL / ratio(v)), -400, 400, 100) };
  }));

  const threeBins = once(() => border().reduce((sum, { u, terms, v }) => {
    const above = terms.reduce((total, term, j) => total + term * ndtr(MODES[j][1] - v), 0) - LEVEL * ndtr(-v);
    return sum + GRID.step * normal(u, 0, 1) * above;
  }, 0));

  /** The probability that an output around this mean has a loss above 1. */
  const beyond = ([x, y]) => border().reduce((sum, { u, v }) => (Math.abs(u - x) > 7 ? sum : sum + GRID.step * normal(u, x, 1) * ndtr(y - v)), 0);

  /** The tuples of so many bins, by their counts: sums of their modes, and probabilities; their total weight rho [A-15]. */
  const tuples = once((size) => {
    const logs = [0];
    for (let i = 1; i <= size; i++) logs.push(logs[i - 1] + Math.log(i));
    const list = [];
    for (let i = 0; i <= size; i++) for (let j = 0; i + j <= size; j++) {
      const counts = [i, j, size - i - j], mean = [0, 1].map((axis) => counts.reduce((sum, n, bin) => sum + n * MODES[bin][axis], 0));
      const pairs = (inner(mean, mean) - counts.reduce((sum, n, bin) => sum + n * inner(MODES[bin], MODES[bin]), 0)) / 2;
      list.push({ mean, weight: Math.exp(logs[size] - counts.reduce((sum, n) => sum + logs[n], 0) + pairs - size * Math.log(3)) });
    }
    const total = list.reduce((sum, { weight }) => sum + weight, 0);
    const counted = list.filter(({ weight }) => weight > 1e-9 * total); // the others together are below 1e-6
    return { list, total, beyond: counted.reduce((sum, { mean, weight }) => sum + weight / total * beyond(mean), 0) };
  });

  /** The largest summand of tuples of this size, over delta. */
  const largest = (size) => tuples(size).total / size * (1 - 1 / size) ** (size - 1) * LEVEL ** (1 - size) / threeBins();

  function cloud(size, count) {
    const next = random(15), { list, total } = tuples(size);
    return Array.from({ length: count }, () => {
      let rest = next() * total, at = 0;
      while (at < list.length - 1 && (rest -= list[at].weight) > 0) at++;
      return list[at].mean.map((x) => x + gauss(next));
    });
  }

  // ------------------------------------------------------------------ 16: two batches, the encoder [[1, 0], [c, 1]], delta = 1e-5

  const error = (c) => Math.sqrt((2 + (1 - c) ** 2) / 2);

  /** The noise that hidden batches need with this entry. */
  const noiseOf = once((c, epsilon) => {
    const most = Math.sqrt(1 + c * c) / shiftFor(epsilon, Math.log(1e-5)); // that of known batches
    return solve((sigma) => Math.log(hiddenBatch([[(1 + c * c) / sigma ** 2, c / sigma ** 2], [c / sigma ** 2, sigma ** -2]], epsilon) / 1e-5), 0.4 * most, 1.01 * most);
  });
  const relative = (c, epsilon) => noiseOf(c, epsilon) * error(c) / noiseOf(0, epsilon) / error(0);

  // ------------------------------------------------------------------ 17: the encoders of the study

  const SCHEMES = [["no amplification", 0], ["DP-SGD, Poisson", 1], ["buffered, bins", 2]];
  const ROUNDS = 256;
  const spread = once((scheme, epsilon) => {
    const { coefficients, noise } = root.TrainingEncoders[scheme][epsilon], c = new Float64Array(ROUNDS);
    c.set(coefficients);
    return deviations(c).map((x) => noise * x);
  });

  const LESSONS = [
    {
      figure: "fig-14-two-batches", panels: 3, height: 270,
      sliders: {
        epsilon: { label: "allowed loss ε", values: between(0, 2, 0.1), at: 0.5 },
        sigma: { label: "noise σ", values: [0.5, 0.6, 0.8, 1, 1.25, 1.5, 2, 3], at: 1 },
      },
      says: ({ epsilon, sigma }) => `At ε = ${epsilon} and σ = ${sigma} an adversary who is told the batch has δ = ${number(toldBatch(epsilon, sigma))}; one who sees both rounds ${number(bothRounds(epsilon, sigma))}, one who sees only their sum ${number(onlySum(epsilon, sigma))}.`,
      *draw({ epsilon, sigma }, panel) {
        const span = { from: -2.2, to: 3.2, ticks: { "-2": "−2", 0: "0", 2: "2" } }, s = sigma ** 2;
        const rest = (x) => 2 * Math.exp(epsilon) - Math.exp((x - 0.5) / s);
        const edges = [
          ["told the batch", (x) => (x > 0.5 + s * epsilon ? span.from : span.to), [[1, 0]]],
          ["both rounds", (x) => (rest(x) > 0 ? 0.5 + s * Math.log(rest(x)) : span.from), [[1, 0], [0, 1]]],
          ["only the sum", (x) => 0.5 + 2 * s * epsilon - x, [[1, 0], [0, 1]]],
        ];
        edges.forEach(([title, edge, modes], place) => {
          const chart = panel(place, { ...span, label: "first round" }, { ...span, label: "second round" }, title);
          const inside = (x) => Math.min(Math.max(edge(x), span.from), span.to);
          chart.area(() => span.to, inside, 0);
          if (place === 0) chart.rule(0.5 + s * epsilon);
          else chart.curve((x) => (edge(x) > span.from ? edge(x) : null), 0, chart.grid(960));
          chart.text(-0.2, -0.2, "+");
          for (const [x, y] of modes) chart.dot(x, y, 1);
        });
        yield;
      },
    },
    {
      figure: "fig-15-clouds", panels: 2, height: 330,
      sliders: { size: { label: "bins in a tuple κ", values: [1, 2, 3, 5, 8, 12, 16, 20, 24, 30], at: 20 } },
      says: ({ size }) => `In tuples of κ = ${size} a share of ${number(tuples(size).beyond)} of the samples lands beyond the line, and none counts for more than ${number(largest(size))} times δ, where δ is ${number(threeBins())}.`,
      *draw({ size }, panel) {
        const span = { from: -4, to: 9.5, ticks: { "-4": "−4", 0: "0", 4: "4", 8: "8" } };
        for (const [place, shown, title] of [[0, 1, "As training draws them"], [1, size, size === 1 ? "In tuples of one bin" : `In tuples of ${size} bins`]]) {
          const chart = panel(place, { ...span, label: "first output" }, { ...span, label: "second output" }, title), line = border().filter(({ u }) => u >= span.from && u <= span.to);
          chart.cloud(cloud(shown, 1500), 0);
          chart.curve((u) => line.find((point) => point.u === u).v, 1, line.map(({ u }) => u));
          yield;
        }
      },
    },
    {
      figure: "fig-16-two-batches", height: 330,
      sliders: {
        epsilon: { label: "target ε", values: [0.25, 0.5, 1, 1.5, 2, 3, 4, 8, 16], at: 8 },
        c: { label: "entry of the encoder c", values: between(0, 0.7, 0.05), at: 0.35 },
      },
      says: ({ epsilon, c }) => `For ε = ${epsilon} at δ = 10⁻⁵ the entry c = ${c} needs the noise σ = ${number(noiseOf(c, epsilon))}; the error is ${number(relative(c, epsilon))} times that of independent noise.`,
      *draw({ epsilon, c }, panel) {
        const entries = between(0, 0.7, 0.05), others = [0.25, 1, 2, 8].filter((other) => other !== epsilon);
        for (const target of [...others, epsilon]) for (const entry of entries) {
          relative(entry, target);
          yield;
        }
        const chart = panel(0, { from: 0, to: 0.7, label: "entry c of the encoder" }, { from: 0.9, to: 1.25, label: "error / error at c = 0" });
        chart.rule(c);
        for (const other of others) chart.curve((entry) => relative(entry, other), "thin moving-4", entries);
        chart.curve((entry) => relative(entry, epsilon), 0, entries);
        chart.dot(c, relative(c, epsilon), 0);
        chart.key([[`ε = ${epsilon}`, 0], [`ε = ${others.join(", ")}`, "thin moving-4"]], { end: "left" });
      },
    },
    {
      figure: "fig-17-noise", height: 320,
      sliders: {
        epsilon: { label: "promised ε", values: [0.5, 1, 2, 4, 8], at: 4 },
        t: { label: "number of rounds t", values: [1, 16, 32, 48, 64, 96, 128, 160, 192, 224, 256], at: 256 },
      },
      says: ({ epsilon, t }) => `At ε = ${epsilon} the noise in the model after round t = ${t} has the deviation ${SCHEMES.map(([scheme]) => `${number(spread(scheme, epsilon)[t - 1])} for ${scheme}`).join("; ")}.`,
      *draw({ epsilon, t }, panel) {
        const top = Math.max(...SCHEMES.map(([scheme]) => spread(scheme, epsilon)[ROUNDS - 1]));
        const chart = panel(0, { from: 0, to: ROUNDS + 8, label: "round" }, { from: 0, to: 1.25 * top, label: "noise in the model" });
        chart.rule(t);
        for (const [scheme, i] of SCHEMES) {
          chart.curve((round) => spread(scheme, epsilon)[round - 1], i, between(1, ROUNDS, 1));
          chart.dot(t, spread(scheme, epsilon)[t - 1], i);
        }
        chart.key(SCHEMES, { end: "left" });
        yield;
      },
    },
  ];

  LESSONS.forEach(move);
})(window);
