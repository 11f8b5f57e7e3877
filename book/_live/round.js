/* One round: the mixture pair with sensitivity Binomial(k, q) or 2 Hypergeometric(B, n + k, k) (dplib.mixtures), and the
   one of the last iterate, Binomial(T, q).
   Needs special.js before it. */
(function (root) {
  "use strict";

  const shared = (root.PrivacyAccountant = root.PrivacyAccountant || {});
  const { EPS, LOG_SQRT_2PI, TAIL_ERROR, NoBracketError, erf, logNdtr, logAddExp, logSum, logTailDifference, rootOfDecreasing } = shared;

  const NEGLIGIBLE = 46; // e^-46: what may be left out before it is bounded
  const MOST_COUNTS = 12000; // numbers of participations: beyond it, an answer would take seconds

  /** Logarithms of the binomial coefficients C(k, j), j = 0..k, each from the exact integer. */
  function logChoose(k) {
    const row = new Float64Array(k + 1);
    let value = 1n;
    for (let j = 0; j <= k / 2; j++) {
      const digits = value.toString(16);
      row[j] = row[k - j] = Math.log(parseInt(digits.slice(0, 14), 16)) + Math.max(digits.length - 14, 0) * 4 * Math.LN2;
      value = value * BigInt(k - j) / BigInt(j + 1);
    }
    return row;
  }

  /** The weights of Binomial(k, q): [logarithms, their error]. */
  function binomial(k, q) {
    const choose = logChoose(k), logP = choose.map((c, j) => c + j * Math.log(q) + (k - j) * Math.log1p(-q));
    const best = Math.max(...logP);
    let size = 0;
    logP.forEach((p, j) => {
      if (p > best - 100) size = Math.max(size, choose[j] - j * Math.log(q) - (k - j) * Math.log1p(-q));
    });
    return [logP, EPS * (size + 6)];
  }

  /** Weights from their mode outwards, as in the library; ratio(j): the logarithm of the weight at j + 1 over the one at j.
      [logarithms, their error]. */
  function walk(low, mode, top, ratio) {
    const logP = new Float64Array(top - low + 1);
    let relevant = 0, size = 0;
    for (let j = mode; j < top; j++) logP[j + 1 - low] = logP[j - low] + ratio(j);
    for (let j = mode; j > low; j--) logP[j - 1 - low] = logP[j - low] - ratio(j - 1);
    for (const p of logP) if (p > -100) { relevant++; size += Math.abs(p); }
    return [logP, EPS * (8 + 6 * relevant + size)];
  }

  /** The weights of Hypergeometric(B, n + k, k), of how many of k records are among the B drawn from n + k. */
  function hypergeometric(B, n, k) {
    const top = Math.min(B, k), ratio = (j) => Math.log((k - j) * (B - j) / ((j + 1) * (n - B + j + 1)));
    let mode = 0;
    while (mode < top && ratio(mode) > 0) mode++; // the ratios fall
    return walk(0, mode, top, ratio);
  }

  /** The weights of Binomial(T, q) for many trials: [logarithms, their error, the counts that they belong to]. By Chernoff a
      count j has at most the probability e^-apart(j); those with less than e^-reach are left out, except for 0. */
  function manyTrials(T, q, reach) {
    const mode = Math.min(Math.floor((T + 1) * q), T);
    const apart = (j) => (j ? j * Math.log(j / (T * q)) : 0) + (j < T ? (T - j) * Math.log((T - j) / (T * (1 - q))) : 0);
    const [low, top] = [0, T].map((end) => {
      let inside = mode, outside = end; // convex: once outside, always outside
      if (apart(end) <= reach) return end;
      while (Math.abs(outside - inside) > 1) {
        const middle = Math.floor((inside + outside) / 2);
        if (apart(middle) <= reach) inside = middle;
        else outside = middle;
      }
      return outside;
    });
    if (top - low > MOST_COUNTS) throw new NoBracketError("too many numbers of participations count");
    const [logP, error] = walk(low, mode, top, (j) => Math.log((T - j) / (j + 1)) + Math.log(q) - Math.log1p(-q));
    const counts = Float64Array.from(logP, (_, i) => low + i);
    return low ? [Float64Array.of(-Infinity, ...logP), error, Float64Array.of(0, ...counts)] : [logP, error, counts];
  }

  /** The pair of one round: `unit` times a whole random number as sensitivity, in units of the noise. */
  class Mixture {
    /** weights : logarithms of its probabilities at 0, 1, ... or at the counts, up to a constant, and their error. */
    constructor([logWeights, logError, counts], unit, sigma) {
      const k = logWeights.length - 1, norm = logSum(logWeights);
      this.shifts = Float64Array.from({ length: k + 1 }, (_, j) => unit * (counts ? counts[j] : j) / sigma);
      this.logError = logError;
      this.logP = logWeights.map((p) => p - norm);
      this.p = this.logP.map(Math.exp);
      this.positive = this.p.subarray(1).reduce((sum, p) => sum + p, 0);
      this.logFloor = this.positive < 0.5 ? Math.log1p(-this.positive) : this.logP[0];
      this.top = this.shifts[k];
      this.cut = NEGLIGIBLE + Math.log(k + 1);
      // Equally spaced shifts with log-concave weights: see Mixture.variance_bound in the library.
      let bound = (this.top / 2) ** 2;
      const gap = this.shifts[1];
      if (k >= 2 && gap > 1e-3) {
        let weight = 0, second = 0;
        for (let i = 1, n = 4 + Math.ceil(10 / gap); i < n; i++) {
          const w = 2 * Math.exp(-gap * gap * i * (i - 1) / 2);
          weight += w;
          second += i * i * w;
        }
        bound = Math.min(bound, gap * gap * second / (1 + weight) * (1 + 1e-9));
      }
      this.variance = Math.max(bound, 1e-12);
      this.near = 0; // index of the largest term at the last u
      // Upper bound on delta of one round at epsilon = 0: it is convex in the mixture, and adds up over rounds.
      this.totalVariation = this.p.reduce((sum, p, j) => sum + p * erf(this.shifts[j] / Math.sqrt(8)), 0) * (1 + 1e-12);
    }

    /** Of the terms log p_j + a_j u - a_j^2 / 2: the place j of the largest, the log of the sum over it, and the mean of
        a_j under these weights. The terms are concave in j: from the largest one outwards until they are negligible.
        Each is taken as its difference from the largest, which keeps the digits that both would lose at a large u. */
    sums(u) {
      const { shifts: a, logP, cut } = this, last = a.length - 1;
      const over = (i, j) => logP[i] - logP[j] + (a[i] - a[j]) * (u - (a[i] + a[j]) / 2);
      let j = this.near;
      while (j < last && over(j + 1, j) > 0) j++;
      while (j > 0 && over(j - 1, j) > 0) j--;
      this.near = j;
      let total = 1, first = a[j];
      for (let i = j + 1; i <= last; i++) {
        const t = over(i, j);
        if (t < -cut) break;
        const w = Math.exp(t);
        total += w;
        first += w * a[i];
      }
      for (let i = j - 1; i >= 0; i--) {
        const t = over(i, j);
        if (t < -cut) break;
        const w = Math.exp(t);
        total += w;
        first += w * a[i];
      }
      return [j, Math.log(total), first / total];
    }

    /** (log P/Q, its slope = posterior mean of the shift, log of the density of P) at u. */
    ratio(u) {
      const [j, rest, slope] = this.sums(u), a = this.shifts[j];
      // The density in its own terms: as loss - u^2 / 2 it would lose the digits of a large u.
      let value = this.logP[j] + a * (u - a / 2) + rest;
      if (Math.abs(value) < 0.3) {
        // Near R = 1 only log1p(sum p_j expm1(.)) keeps the digits.
        let sum = 0;
        for (let j = 1; j < this.p.length; j++) {
          const x = this.shifts[j] * (u - this.shifts[j] / 2);
          sum += x < 1 ? this.p[j] * Math.expm1(x) : Math.exp(Math.min(x + this.logP[j], 2)) - this.p[j];
        }
        value = Math.log1p(sum);
      }
      return [value, slope, this.logP[j] - (u - a) * (u - a) / 2 + rest - LOG_SQRT_2PI];
    }

    ratioError(logRatio, slope, u) {
      let size = Math.abs(logRatio);
      size = size < 0.3 ? Math.min(1 + size, 2 * size + 2 * this.positive) : 1 + size;
      return (4 * EPS + this.logError) * size + 4 * EPS * slope * (Math.abs(u) + slope);
    }

    /** The u with log P/Q = y, for y above the floor. */
    inverse(y) {
      const gap = (u) => y - this.ratio(u)[0];
      let low = -1, high = 1;
      while (gap(low) < 0) { low *= 2; if (low < -1e12) return -Infinity; }
      while (gap(high) > 0) high *= 2;
      return rootOfDecreasing(gap, low, high);
    }

    /** (log delta, -d log delta / d epsilon, bound on the error of log delta) at the threshold u. */
    oneRound(u, sign) {
      const { shifts: a, logP } = this, [value, slope] = this.ratio(u), terms = [], seconds = [];
      for (let j = 0; j < a.length; j++) {
        if (sign < 0) seconds.push(logP[j] + logNdtr(u - a[j]));
        if (j === 0) continue;
        const x = sign > 0 ? u - a[j] : -u;
        const weight = sign > 0 ? logP[j] : logP[j] + a[j] * (u - a[j] / 2) - value;
        terms.push(weight + logTailDifference(x, a[j]));
      }
      const logDelta = logSum(terms);
      const second = sign > 0 ? value + logNdtr(-u) : -value + logSum(seconds);
      const rate = Math.exp(Math.min(second - logDelta, 700));
      const slack = 4 * TAIL_ERROR * (1 + Math.abs(logDelta)) + this.logError;
      return [logDelta, rate, slack + rate * 4 * this.ratioError(value, slope, u)];
    }
  }

  Object.assign(shared, { NEGLIGIBLE, Mixture, binomial, hypergeometric, manyTrials });
})(typeof window === "undefined" ? globalThis : window);
