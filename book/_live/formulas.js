/* What the moving figures of several lessons compute: closed forms, small quadratures, encoders with one coefficient a lag. */
(function (root) {
  "use strict";

  const { NoBracketError, gaussianLogDelta, gaussLegendre, logNdtr } = root.PrivacyAccountant;

  const between = (from, to, step) => Array.from({ length: Math.round((to - from) / step) + 1 }, (_, i) => Number((from + i * step).toPrecision(10)));
  const normal = (x, mean, sigma) => Math.exp(-(((x - mean) / sigma) ** 2) / 2) / sigma / Math.sqrt(2 * Math.PI);
  const ndtr = (x) => Math.exp(logNdtr(x));

  /** delta of a Gaussian release whose shift is mu times its noise. */
  const delta = (mu, epsilon) => Math.exp(gaussianLogDelta(mu, epsilon));

  /** delta (remove) of one round that a record joins in secret with probability q. */
  const sampled = (q, mu, epsilon) => q * delta(mu, Math.log1p(Math.expm1(epsilon) / q));

  /** The output of such a round at which its loss is epsilon, with noise 1. */
  const crossing = (q, epsilon) => 0.5 + Math.log((Math.expm1(epsilon) + q) / q);

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

  /** The x between two positive ends at which a decreasing function is 0, to nine digits: secants in log x (Illinois). */
  function solve(f, low, high) {
    const value = (x) => Math.min(Math.max(f(Math.exp(x)), -30), 30); // far from the root its side is enough
    let a = Math.log(low), b = Math.log(high), fa = value(a), fb = value(b), side = 0, last = Infinity;
    for (let i = 0; i < 100; i++) {
      const x = (a * fb - b * fa) / (fb - fa), fx = value(x);
      if (Math.abs(x - last) < 1e-10 || fx === 0) return Math.exp(x);
      last = x;
      if (fx > 0) {
        [a, fa] = [x, fx];
        if (side === 1) fb /= 2;
        side = 1;
      } else {
        [b, fb] = [x, fx];
        if (side === -1) fa /= 2;
        side = -1;
      }
    }
    return Math.exp(last);
  }

  /** The shift over noise of a Gaussian release that has exactly this epsilon and log delta. */
  const shiftFor = (epsilon, logDelta) => solve((mu) => logDelta - gaussianLogDelta(mu, epsilon), 1e-3, 100);

  // ------------------------------------------------------------------ two hidden batches

  const NODES = gaussLegendre(60);

  /** delta (remove) of a record in one of two batches, whose modes have the inner products [[a, b], [b, c]] in units of the
      noise: the second normal variable in closed form, the first by quadrature on both sides of a kink. */
  function hiddenBatch([[a, b], [, c]], epsilon) {
    const first = Math.sqrt(a), cross = b / first, s = Math.sqrt(c - cross * cross), alpha = Math.exp(epsilon);
    const kink = (epsilon + Math.LN2 + a / 2) / first, low = Math.min(-9, kink - 18), parts = 3;
    let sum = 0;
    for (const [from, to] of [[low, kink], [kink, kink + 18]]) {
      const half = (to - from) / parts / 2;
      for (let part = 0; part < parts; part++) for (let i = 0; i < NODES[0].length; i++) {
        const z = from + half * (2 * part + 1 + NODES[0][i]), gap = alpha - Math.exp(first * z - a / 2) / 2;
        const second = cross * z - cross * cross / 2 - Math.LN2; // log of what the other batch adds at its mean
        const d = (second - Math.log(gap > 0 ? gap : alpha * 1e-200)) / s + s / 2;
        sum += half * NODES[1][i] * normal(z, 0, 1) * (Math.exp(second) * ndtr(d) - gap * ndtr(d - s));
      }
    }
    return sum;
  }

  // ------------------------------------------------------------------ encoders

  /** The first column of the square root of prefix sums over n rounds, cut off after so many bands. */
  function squareRoot(n, bands = n) {
    const c = new Float64Array(n);
    c[0] = 1;
    for (let k = 1; k < bands; k++) c[k] = c[k - 1] * (1 - 1 / (2 * k));
    return c;
  }

  const norm = (c) => Math.hypot(...c);

  /** First column of A C^-1, A the prefix sums: how much of the noise of a round is in the model so many rounds later. */
  function noiseLeft(c) {
    const inverse = new Float64Array(c.length), left = new Float64Array(c.length);
    let last = c.length - 1;
    while (c[last] === 0) last--;
    for (let k = 0; k < c.length; k++) {
      let value = k === 0 ? 1 : 0;
      for (let lag = Math.min(k, last); lag > 0; lag--) value -= c[lag] * inverse[k - lag];
      inverse[k] = value / c[0];
      left[k] = inverse[k] + (k ? left[k - 1] : 0);
    }
    return left;
  }

  /** Standard deviation of the noise in the model after each round, at noise 1. */
  function deviations(c) {
    let sum = 0;
    return noiseLeft(c).map((x) => Math.sqrt((sum += x * x)));
  }

  /** Root mean square of the deviations. */
  const rmse = (c) => norm(deviations(c)) / Math.sqrt(c.length);

  /** A standard normal number from two uniform ones of a generator. */
  const gauss = (next) => Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next());

  root.LessonFormulas = { between, normal, ndtr, delta, sampled, crossing, once, solve, shiftFor, hiddenBatch, squareRoot, norm, noiseLeft, deviations, rmse, gauss };
})(typeof window === "undefined" ? globalThis : window);
