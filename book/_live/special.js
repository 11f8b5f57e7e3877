/* Special functions in double precision, and the Gaussian mechanism in closed form (dplib.gaussian).
   A classic script: it works from the disk. */
(function (root) {
  "use strict";

  const shared = (root.PrivacyAccountant = root.PrivacyAccountant || {});

  const EPS = 2 ** -52;
  const LOG_SQRT_2PI = 0.9189385332046727;
  const TAIL_ERROR = 2e-14; // of log delta of the Gaussian mechanism, times 1 + |log delta|

  class NoBracketError extends Error {}

  /** erf(x) for x >= 0: its series near 0, where it must keep its digits. */
  function erf(x) {
    if (x >= 0.6) return 1 - erfcx(x) * Math.exp(-x * x);
    let term = x, sum = x;
    for (let n = 1; n < 40; n++) {
      term *= -x * x / n;
      sum += term / (2 * n + 1);
      if (Math.abs(term) < 1e-18 * Math.abs(sum)) break;
    }
    return sum * 2 / Math.sqrt(Math.PI);
  }

  /** exp(x^2) erfc(x) for x >= 0: the trapezoid rule on a Gaussian integral, with its residue. */
  function erfcx(x) {
    if (x < 0.6) return Math.exp(x * x) * (1 - erf(x));
    if (x > 1e8) return 1 / (x * Math.sqrt(Math.PI));
    const h = 0.5;
    let sum = 0;
    for (let n = 14; n >= 1; n--) {
      const t = n * h;
      sum += Math.exp(-t * t) / (t * t + x * x);
    }
    let value = h * x / Math.PI * (1 / (x * x) + 2 * sum);
    if (x < Math.PI / h) value += 2 * Math.exp(x * x) / (1 - Math.exp(2 * Math.PI * x / h));
    return value;
  }

  /** log of the standard normal distribution function. */
  function logNdtr(x) {
    if (x < 0) return Math.log(0.5 * erfcx(-x / Math.SQRT2)) - x * x / 2;
    return Math.log1p(-0.5 * erfcx(x / Math.SQRT2) * Math.exp(-x * x / 2));
  }

  function mills(x) {
    return Math.sqrt(Math.PI / 2) * erfcx(x / Math.SQRT2);
  }

  function logAddExp(a, b) {
    const top = Math.max(a, b);
    if (!isFinite(top)) return top;
    return top + Math.log1p(Math.exp(Math.min(a, b) - top));
  }

  function logSum(terms) {
    let top = -Infinity, sum = 0;
    for (let i = 0; i < terms.length; i++) if (terms[i] > top) top = terms[i];
    if (!isFinite(top)) return top;
    // Below e^-60 of the largest a term adds less than rounding.
    for (let i = 0; i < terms.length; i++) if (terms[i] > top - 60) sum += Math.exp(terms[i] - top);
    return top + Math.log(sum);
  }

  /** Nodes and weights of Gauss and Legendre on [-1, 1]. */
  function gaussLegendre(n) {
    const nodes = new Float64Array(n), weights = new Float64Array(n);
    for (let i = 0; i < n; i++) {
      let x = Math.cos(Math.PI * (i + 0.75) / (n + 0.5)), slope = 1;
      for (let k = 0; k < 20; k++) {
        let p = 1, previous = 0;
        for (let j = 1; j <= n; j++) [p, previous] = [((2 * j - 1) * x * p - (j - 1) * previous) / j, p];
        slope = n * (x * p - previous) / (x * x - 1);
        const step = p / slope;
        x -= step;
        if (Math.abs(step) < 1e-16) break;
      }
      nodes[i] = x;
      weights[i] = 2 / ((1 - x * x) * slope * slope);
    }
    return [nodes, weights];
  }
  const MANY = gaussLegendre(60), FEW = gaussLegendre(24);

  /** log of phi(x) (M(x) - M(x + a)), M the Mills ratio, a > 0: the delta of a Gaussian with mu = a. */
  function logTailDifference(x, a) {
    const small = a < 0.1 * (1 + Math.max(x, 0)) && a * -x < 1;
    if (x < -3 && small) {
      let sum = 0;
      for (let i = 0; i < 24; i++) {
        const t = a * (FEW[0][i] + 1) / 2;
        sum += FEW[1][i] * (Math.exp(-x * x / 2 - LOG_SQRT_2PI) - (x + t) * Math.exp(logNdtr(-x - t) + t * (x + t / 2)));
      }
      return Math.log(sum * a / 2);
    }
    if (x < -3) {
      // e^{a (x + a/2)} Phi(-x - a) is phi(x) M(x + a): the exponent of a large shift would have no digits left.
      const beyond = x + a, first = logNdtr(-x);
      const second = beyond > 0 ? Math.log(mills(beyond)) - x * x / 2 - LOG_SQRT_2PI : logNdtr(-beyond) + a * (x + a / 2);
      return first + Math.log(-Math.expm1(Math.min(second - first, -1e-300)));
    }
    // M(x) is 1 / x up to 1 / x^2, and the integral below would underflow.
    if (x > 1e8) return Math.log(a) - Math.log(x) - Math.log(x + a) - x * x / 2 - LOG_SQRT_2PI;
    if (!small) return Math.log(mills2(x) - mills2(x + a)) - x * x / 2 - LOG_SQRT_2PI;
    const reach = 40 / (3 + Math.max(x, 0)) + Math.max(-x, 0);
    let sum = 0;
    for (let i = 0; i < 60; i++) {
      const t = reach * (MANY[0][i] + 1) / 2;
      sum += MANY[1][i] * Math.exp(-x * t - t * t / 2) * -Math.expm1(-a * t);
    }
    return Math.log(sum * reach / 2) - x * x / 2 - LOG_SQRT_2PI;
  }

  /** The Mills ratio, also a little left of 0. */
  function mills2(x) {
    return x >= 0 ? mills(x) : Math.sqrt(2 * Math.PI) * Math.exp(x * x / 2) - mills(-x);
  }

  /** The root of a decreasing function between two ends, by bisection and secants (Illinois). */
  function rootOfDecreasing(f, low, high, rounds = 200) {
    let fl = f(low), fh = f(high), side = 0;
    for (let i = 0; i < rounds; i++) {
      let middle = (low * fh - high * fl) / (fh - fl);
      if (!(middle > low && middle < high)) middle = (low + high) / 2;
      if (high - low <= 4 * EPS * Math.max(Math.abs(low), Math.abs(high)) + 1e-300) break;
      const value = f(middle);
      if (value === 0) return middle;
      if (value > 0) {
        low = middle; fl = value;
        if (side === 1) fh /= 2;
        side = 1;
      } else {
        high = middle; fh = value;
        if (side === -1) fl /= 2;
        side = -1;
      }
    }
    return (low + high) / 2;
  }

  // ------------------------------------------------------------------ the Gaussian mechanism

  function gaussianLogDelta(mu, epsilon) {
    const x = epsilon / mu - mu / 2;
    if (Math.abs(x) > 1e150) return x > 0 ? -Infinity : 0;
    return logTailDifference(x, mu);
  }

  function gaussianEpsilon(mu, logDelta) {
    if (gaussianLogDelta(mu, 0) <= logDelta) return 0;
    // In the threshold x, not in epsilon: delta falls from 1 to 0 over a few units of x, far from 0 if mu is large.
    let top = 1;
    while (logTailDifference(top, mu) > logDelta) top *= 2;
    const x = rootOfDecreasing((t) => logTailDifference(t, mu) - logDelta, Math.max(-mu / 2, -60), top);
    return Math.max(mu * (x + mu / 2), 0);
  }

  Object.assign(shared, { EPS, LOG_SQRT_2PI, TAIL_ERROR, NoBracketError, gaussLegendre, erf, erfcx, logNdtr, logAddExp, logSum, logTailDifference, rootOfDecreasing, gaussianLogDelta, gaussianEpsilon });
})(typeof window === "undefined" ? globalThis : window);
