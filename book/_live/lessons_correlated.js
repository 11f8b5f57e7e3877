/* The figures that move in the lessons on correlated noise: the matrix mechanism (10), conditional composition (11),
   MMCC (12), the shuffled tree (13). */
(function (root) {
  "use strict";

  const { logNdtr, rootOfDecreasing } = root.PrivacyAccountant;
  const { move, number } = root.Moving, { random } = root.LivePage;
  const { between, normal, ndtr, once, solve, shiftFor, squareRoot, norm, noiseLeft, deviations, rmse, gauss } = root.LessonFormulas;

  // ------------------------------------------------------------------ 10: at equal privacy, one participation

  const ROUNDS = 1024;
  const KINDS = new Map(); // bands -> what the picture shows of this encoder
  function kind(bands) {
    if (!KINDS.has(bands)) {
      const c = squareRoot(ROUNDS, bands), length = norm(c);
      KINDS.set(bands, { length, error: length * rmse(c), left: noiseLeft(c).map((x) => length * x), spread: deviations(c).map((x) => length * x) });
    }
    return KINDS.get(bands);
  }

  // ------------------------------------------------------------------ 11 and 12: what an adversary believes about round 1

  const logit = (p) => Math.log(p / (1 - p)), expit = (x) => 1 / (1 + Math.exp(-x));

  /** The smallest t with Pr[Binomial(n, q) > t] <= tail. */
  function binomialQuantile(n, q, tail) {
    let mass = (1 - q) ** n, t = 0;
    const masses = [mass];
    for (let j = 0; j < n; j++) masses.push(mass *= (n - j) / (j + 1) * q / (1 - q));
    for (let above = 0, j = n; j > 0; j--) {
      above += masses[j];
      if (above > tail) { t = j; break; }
    }
    return t;
  }

  /** Bounds on the belief in round 1 before the rounds 1, 2, …, for all but a share delta1 of the runs [M-Alg2].

      c : first column of the encoder, falling; sigma : noise; q : sampling probability. */
  function promised(c, sigma, q, delta1) {
    const n = c.length, tail = delta1 / (n * (n - 1)), quantile = rootOfDecreasing((z) => logNdtr(-z) - Math.log(tail), 0, 40);
    const bounds = [q];
    for (let row = 1; row < n; row++) {
      const most = Math.min(binomialQuantile(row, q, tail), row);
      const square = c.subarray(0, row).reduce((sum, x) => sum + x * x, 0) / sigma ** 2;
      let taken = 0; // the largest inner products are those with the rounds next to the first
      for (let lag = 0; lag < most; lag++) for (let i = 0; i + lag < row; i++) taken += c[i] * c[i + lag] / sigma ** 2;
      bounds.push(expit(logit(q) + quantile * Math.sqrt(square) + taken - square / 2));
    }
    return bounds;
  }

  /** Simulated runs: whether round 1 used the record, and the belief in it before each round, from the outputs so far. */
  function simulated(c, sigma, q, count, seed) {
    const next = random(seed), n = c.length;
    return Array.from({ length: count }, (_, run) => {
      const used = Array.from({ length: n }, () => next() < q), belief = [q];
      used[0] = run % 2 === 0; // half of the runs of either kind
      let odds = logit(q);
      for (let row = 0; row < n - 1; row++) {
        let output = sigma * gauss(next);
        used.forEach((is, column) => { if (is && column <= row) output += c[row - column]; });
        odds += (c[row] * output - c[row] ** 2 / 2) / sigma ** 2;
        belief.push(expit(odds));
      }
      return { used: used[0], belief };
    });
  }

  const TWENTY_FOUR = squareRoot(24), SIXTY_FOUR = squareRoot(64);
  const bound11 = (c, share) => promised(TWENTY_FOUR, c * norm(TWENTY_FOUR), 0.1, share);
  const bound12 = (c) => promised(SIXTY_FOUR, c * norm(SIXTY_FOUR), 1 / 64, 5e-7);

  // ------------------------------------------------------------------ 13: the noise of a shuffled tree for epsilon = 1 at delta = 1e-3

  const TARGET = 1, SLACK = 1e-3, PARTS = 32; // steps of the grid in one shift by 1 / (2 sigma^2) + log 2
  const release = 1 / shiftFor(TARGET, Math.log(SLACK));
  const known = (height) => Math.sqrt(height + 1) * release;
  const twoLevels = (height) => Math.sqrt(2 - 2 ** -height) * release;

  /** log(1 + x + iy) and e^(x + iy) - 1 as pairs, without loss of digits near 0. */
  const log1p = (x, y) => [0.5 * Math.log1p(x * (2 + x) + y * y), Math.atan2(y, 1 + x)];
  const expm1 = (x, y) => [Math.expm1(x) * Math.cos(y) - 2 * Math.sin(y / 2) ** 2, Math.exp(x) * Math.sin(y)];

  /** log delta (remove) of a tree over 2^height records in secret order: from the characteristic function of the likelihood
      ratio on a grid of log frequencies, level by level. */
  function treeLogDelta(height, sigma) {
    const tau = 1 / (2 * sigma ** 2), step = (tau + Math.LN2) / PARTS, first = Math.trunc(-26 / step), count = Math.trunc(4.5 / step) - first;
    const reach = Math.floor(9 / (step * sigma)), s = Float64Array.from({ length: count }, (_, i) => Math.exp((first + i) * step));
    const weights = Float64Array.from({ length: 2 * reach + 1 }, (_, i) => normal((i - reach) * step * sigma, 0, 1) * step * sigma);
    /** The logs of 1 + the weighted means of row, which begins `reach` places before the result. */
    const averaged = (re, im) => {
      const out = [new Float64Array(count), new Float64Array(count)];
      for (let k = 0; k < count; k++) {
        let x = 0, y = 0;
        for (let j = 0; j < weights.length; j++) {
          x += weights[j] * re[k + j];
          y += weights[j] * im[k + j];
        }
        [out[0][k], out[1][k]] = log1p(x, y);
      }
      return out;
    };
    const pairs = (list) => [Float64Array.from(list, (z) => z[0]), Float64Array.from(list, (z) => z[1])];
    const around = (from, length, shift) => Array.from({ length }, (_, i) => expm1(0, 2 ** shift * Math.exp((from + i) * step - (shift ? 0 : tau))));
    let log = averaged(...pairs(around(first - reach, count + 2 * reach, 0)));
    const below = around(first - reach - PARTS, reach + PARTS, 1), beyond = Array.from({ length: reach }, () => [-1, 0]);
    let second = Math.exp(2 * tau);
    for (let level = 0; level < height; level++) {
      const doubled = Array.from(log[0], (x, i) => expm1(2 * x, 2 * log[1][i]));
      log = averaged(...pairs([...below, ...doubled, ...beyond]));
      second = Math.exp(2 * tau) * (second + 1) / 2;
    }
    const strike = Math.exp(TARGET), spread = Math.sqrt(second - 1), d = (1 - strike) / spread;
    let sum = 0;
    for (let i = 0; i < count; i++) {
      const [ax, ay] = expm1(-s[i] * s[i] * (second - 1) / 2, s[i]), [bx, by] = expm1(log[0][i], log[1][i]);
      sum += (Math.cos(s[i] * strike) * (ax - bx) + Math.sin(s[i] * strike) * (ay - by)) / s[i];
    }
    return Math.log(spread * normal(d, 0, 1) + (1 - strike) * ndtr(d) + sum * step / Math.PI);
  }

  const secret = once((height) => solve((sigma) => treeLogDelta(height, sigma) - Math.log(SLACK), 0.999 * twoLevels(height), 1.15 * twoLevels(height)));

  const LOGITS = Object.fromEntries([0.01, 0.1, 0.5, 0.9, 0.99].map((p) => [logit(p), String(p)]));
  const rows = (n) => between(0, n - 1, 1);

  const LESSONS = [
    {
      figure: "fig-10-noise-fades", panels: 2,
      sliders: { bands: { label: "number of bands b", values: [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024], at: 64 } },
      says({ bands }) {
        const { length, error } = kind(bands);
        return `With b = ${bands} the noise must be ${number(length)} times that of a single release, and the error is ${number(error)} over 1024 rounds; independent noise has ${number(kind(1).error)}.`;
      },
      *draw({ bands }, panel) {
        const shown = [["square root", kind(ROUNDS), 0], ["independent", kind(1), 1], [`b = ${bands}`, kind(bands), 2]], key = shown.map(([words, , i]) => [words, i]);
        const axis = { from: 1, to: ROUNDS, log: true, label: "round" }, at = [...new Set(between(0, 200, 1).map((i) => Math.round(ROUNDS ** (i / 200))))];
        const left = panel(0, axis, { from: 0, to: 2.3, label: "weight" }, "Noise of round 1 …");
        for (const [, { left: weight }, i] of shown) left.curve((t) => weight[t - 1], i, at);
        left.key(key);
        const right = panel(1, axis, { from: 0.8, to: 40, log: true, label: "its standard deviation" }, "… and of all rounds together");
        for (const [, { spread }, i] of shown) right.curve((t) => spread[t - 1], i, at);
        right.key(key, { end: "left" });
        yield;
      },
    },
    {
      figure: "fig-11-posterior", height: 340,
      sliders: {
        c: { label: "noise / column norm c", values: [1, 1.25, 1.5, 2, 3, 4, 5, 8], at: 1 },
        share: { label: "runs set aside δ₁", values: [0.0001, 0.001, 0.01, 0.05, 0.2], at: 0.05 },
      },
      says: ({ c, share }) => `With c = ${c} and δ₁ = ${share} no row finds the belief above ${number(Math.max(...bound11(c, share)), 4, 1)}, outside of the runs set aside; before the first row it is q = 0.1.`,
      *draw({ c, share }, panel) {
        const chart = panel(0, { from: 1, to: 24, label: "row about to be released", ticks: { 1: "1", 5: "5", 10: "10", 15: "15", 20: "20", 24: "24" } }, { from: logit(0.0005), to: logit(0.9995), label: "belief in round 1", ticks: LOGITS });
        const bound = bound11(c, share), at = rows(24);
        for (const { used, belief } of simulated(TWENTY_FOUR, c * norm(TWENTY_FOUR), 0.1, 40, 11)) chart.curve((row) => logit(belief[row - 1]), used ? "thin moving-0" : "thin moving-4", at.map((row) => row + 1));
        chart.curve((row) => logit(bound[row - 1]), 1, at.map((row) => row + 1));
        chart.key([["round 1 used the record", 0], ["it did not", "thin moving-4"], ["bound in advance", 1]], { from: 0.72 });
        yield;
      },
    },
    {
      figure: "fig-12-belief", height: 320,
      sliders: { c: { label: "noise / column norm c", values: [2, 2.5, 3, 4, 5, 6, 8, 12], at: 4 } },
      says({ c }) {
        const bound = Math.max(...bound12(c));
        return `With c = ${c} the belief stays at or below ${number(bound, 4, 1)}, which is ${number(64 * bound, 4, 1)} times the sampling probability, but for a chance of one in two million at most.`;
      },
      *draw({ c }, panel) {
        const chart = panel(0, { from: 0, to: 64, label: "outputs seen so far" }, { from: 0.002, to: 1, log: true, label: "belief in round 1" });
        for (const { belief } of simulated(SIXTY_FOUR, c * norm(SIXTY_FOUR), 1 / 64, 60, 12)) chart.curve((seen) => belief[seen], "thin moving-0", rows(64));
        const bound = bound12(c);
        chart.curve((seen) => bound[seen], 1, rows(64).slice(1));
        chart.curve(() => 1 / 64, 3, [0, 64]);
        chart.key([["60 runs", 0], ["bound, fixed before", 1], ["before training", 3]]);
        yield;
      },
    },
    {
      figure: "fig-13-levels", panels: 2,
      sliders: { h: { label: "levels below the root h", values: between(1, 20, 1), at: 10 } },
      says: ({ h }) => `With h = ${h} the tree has ${2 ** h} records; for ε = ${TARGET} it needs the noise σ = ${number(known(h))} if the order is known, and ${number(secret(h))} if it is secret.`,
      *draw({ h }, panel) {
        const left = panel(0, { from: -0.5, to: 20.5, label: "level" }, { from: 0, to: 1.5, label: "share of a level" }, "What the levels add up to");
        left.curve(() => 1, 1, [0, h]);
        left.curve((level) => 2 ** -level, 0, between(0, h, 0.25));
        for (let level = 0; level <= h; level++) {
          left.dot(level, 1, 1);
          left.dot(level, 2 ** -level, 0);
        }
        left.key([[`order known: ${h + 1} in all`, 1], [`order secret: ${number(2 - 2 ** -h)} in all`, 0]]);
        const heights = [1, 2, 3, 4, 6, 9, 14, 20];
        for (const height of heights) {
          secret(height);
          yield;
        }
        const right = panel(1, { from: 1, to: 20, label: "records", ticks: { 1: "2", 5: "2⁵", 10: "2¹⁰", 15: "2¹⁵", 20: "2²⁰" } }, { from: 2, to: 13, label: "noise σ" }, "The noise for ε = 1, δ = 10⁻³");
        right.rule(h);
        [[known, 1], [secret, 0], [twoLevels, 2]].forEach(([f, i]) => right.curve(f, i, f === secret ? heights : between(1, 20, 1)));
        right.dot(h, known(h), 1);
        right.dot(h, secret(h), 0);
        right.key([["order known", 1], ["order secret", 0], ["two levels alone", 2]], { end: "left" });
      },
    },
  ];

  root.CorrelatedLessons = { promised, treeLogDelta };
  LESSONS.forEach(move);
})(window);
