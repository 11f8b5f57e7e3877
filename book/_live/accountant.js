/* The contour accountant of dplib (module contour) for DP-SGD with Poisson sampling.

   For a composition with loss L = T L_1 and M(z) = E exp(zL), every c > 0 gives
       delta(eps) = (1/pi) Re int_0^inf M(c+iy) e^{-(c+iy) eps} / ((c+iy)(c+iy+1)) dy.
   The errors are those of the library: E1 aliasing in y, E2 truncation in y, E3 trapezoid in u, and an
   allowance for rounding; each is added to the bracket. Needs special.js and round.js before it. */
(function (root) {
  "use strict";

  const shared = (root.PrivacyAccountant = root.PrivacyAccountant || {});
  const { EPS, TAIL_ERROR, NoBracketError, NEGLIGIBLE, Mixture, Family, logAddExp, rootOfDecreasing, gaussianLogDelta, gaussianEpsilon } = shared;

  const MOST_WIDTH = 1e-8; // of a bracket of epsilon, relative: the library has other accountants for wider ones
  const MOST_WORK = 2e6; // (node, frequency) pairs for one tilt: a few hundredths of a second

  function logKernel(c) {
    return -c * Math.log1p(1 / c) - Math.log1p(c);
  }

  /** The tilt of the least Chernoff epsilon at logDelta, or of the least Chernoff delta at epsilon. */
  function bestTilt(family, logDelta, epsilon) {
    let low = 0, high = Infinity, c = 1;
    for (let i = 0; i < 80; i++) {
      const [k, mean, variance] = family.coarse(c);
      const [value, slope] = epsilon === null
        ? [c * mean - k + logDelta + Math.log1p(c), c * variance + 1 / (1 + c)]
        : [mean - epsilon - Math.log1p(1 / c), variance + 1 / (c * (1 + c))];
      if (value < 0) low = c;
      else high = c;
      let next = c - value / slope;
      if (!(next > low && next < high && isFinite(next))) next = high === Infinity ? 4 * c : low ? Math.sqrt(low * high) : c / 4;
      next = Math.min(Math.max(next, c / 16), 4 * c);
      if (Math.abs(next - c) < 1e-3 * c) { c = next; break; }
      c = next;
      if (!(c > 1e-14 && c < 1e9)) break;
    }
    return Math.max(c, 0.7 / Math.sqrt(Math.max(family.coarse(c)[2], 1e-300)));
  }

  class Integral {
    constructor(family, c, epsilon) {
      this.family = family;
      this.c = c;
      const s = Math.sqrt(family.coarse(c)[2]);
      if (!(s > 0 && isFinite(s))) throw new NoBracketError("the tilted loss has no spread");
      this.tilts = [1, 2, 4, 8].map((k) => c + k / s);
      for (const k of [1, 2, 4, 8]) if (c - k / s > 0.05 * c) this.tilts.push(c - k / s);
      this.work = 0;
      this.e2 = Infinity;
      let frequency = 12 / s, atLeast = 0;
      this.chooseNodes(frequency);
      this.choosePeriod(s, epsilon);
      for (let attempt = 0; attempt < 7; attempt++) {
        const reached = this.sumFrequencies(s, atLeast);
        if (this.e3 * c * (1 + c) * s > 1e-11 && reached > frequency) {
          frequency = reached;
          this.chooseNodes(frequency);
          continue;
        }
        this.e2 = this.frequencyTail(reached, s);
        if (this.e2 * c * (1 + c) * s < 1e-13 || this.work > MOST_WORK) break;
        const back = this.stillLarge;
        if (back && this.nodes.quadratureError(back) < 1e-6) atLeast = 1.05 * back;
        else {
          frequency = 2.5 * Math.max(frequency, reached);
          this.chooseNodes(frequency);
        }
      }
      this.bound();
    }

    chooseNodes(frequency) {
      this.nodes = this.family.nodes(this.c, Math.min(...this.tilts, this.c), Math.max(...this.tilts), frequency);
      this.logMoment = this.nodes.rounds * this.nodes.logMoment;
      this.mean = this.nodes.rounds * this.nodes.mean;
    }

    /** log of a bound on the aliasing E1 over M(c) e^{-c eps}. */
    logAliasing(epsilon, period = this.period) {
      const { c } = this;
      let below = c * epsilon - this.logMoment - c * period - Math.log(-Math.expm1(-c * period)), above = Infinity;
      for (const [other, moment] of this.others) {
        const value = this.aliasingAt(other, moment, epsilon, period);
        if (other < c) below = Math.min(below, value);
        else above = Math.min(above, value);
      }
      return logAddExp(below, above);
    }

    aliasingAt(other, moment, epsilon, period) {
      const gap = Math.abs(other - this.c) * period;
      const value = moment - this.logMoment - (other - this.c) * epsilon + logKernel(other);
      return value - gap - Math.log(-Math.expm1(-gap));
    }

    choosePeriod(s, epsilon) {
      this.others = this.tilts.map((c) => [c, this.nodes.logMomentAt(c)]);
      const aim = -Math.log(this.c * (1 + this.c) * s) - 34;
      let best = [Infinity, 8 * s];
      for (const multiple of [8, 9, 10, 12, 15, 20, 30, 50, 100, 200, 400, 1000, 3000]) {
        const value = this.logAliasing(epsilon, multiple * s);
        if (value < best[0] - 0.5) best = [value, multiple * s];
        if (value < aim) break;
      }
      this.period = best[1];
      this.spacing = 2 * Math.PI / this.period;
      // Of the tilts on each side keep the one that bounds best, with its certified moment.
      const ranked = this.others.map((pair) => [this.aliasingAt(...pair, epsilon, this.period), pair[0]]).sort((a, b) => a[0] - b[0]);
      this.others = [];
      for (const smaller of [true, false]) {
        for (const [, other] of ranked) {
          if ((other < this.c) !== smaller) continue;
          const moment = this.nodes.logMomentBound(other);
          if (isFinite(moment)) { this.others.push([other, moment]); break; }
        }
      }
    }

    sumFrequencies(s, atLeast) {
      const { c, nodes, spacing } = this, T = nodes.rounds, terms = [];
      this.e3 = this.spoiled = 0;
      let count = Math.max(24, Math.trunc(8.5 / s / spacing) + 2), start = 0;
      for (;;) {
        const quadrature = Math.min(nodes.quadratureError(spacing * (start + count - 1)), 1e100);
        let end = 0;
        for (let i = start; i < start + count; i++) {
          const y = spacing * i, [size, angle, distance] = nodes.logCharacteristic(y);
          const perError = T * Math.exp(-Math.max(size, -18)), logSize = T * Math.max(size, -18);
          const error = perError * (quadrature + nodes.characteristicRounding(y, distance));
          // spacing / pi / (z (z + 1)) at z = c + iy
          const re = c * (c + 1) - y * y, im = y * (2 * c + 1), norm = re * re + im * im;
          const weight = spacing / Math.PI / Math.sqrt(norm), turn = T * angle - Math.atan2(im, re);
          const modulus = Math.exp(T * size) * weight * (i ? 1 : 0.5);
          terms.push([y, modulus * Math.cos(turn), modulus * Math.sin(turn)]);
          const most = weight * Math.exp(Math.min(logSize + error, 300));
          this.spoiled += most * -Math.expm1(-error);
          this.e3 += most * perError * quadrature;
          end = Math.exp(T * size) * c * (c + 1) / Math.sqrt(norm);
        }
        start += count;
        this.countWork(count);
        if (end < Math.exp(-42) && start * spacing > atLeast) break;
        count = Math.min(2 * count, 4096);
        if (this.work > MOST_WORK) throw new NoBracketError("the characteristic function decays too slowly");
      }
      this.terms = terms;
      return terms[terms.length - 1][0];
    }

    bound() {
      const { nodes } = this;
      if (!(this.e3 < 1e3)) throw new NoBracketError("the quadrature bound is too weak");
      if (!isFinite(this.e2)) throw new NoBracketError("the bound on high frequencies does not close");
      this.size = this.terms.reduce((sum, [, re, im]) => sum + Math.hypot(re, im), 0);
      const allowance = nodes.rounds * nodes.rounding(this.c) + EPS * (this.terms.length + 4 + Math.abs(this.logMoment));
      this.error = this.e2 + this.spoiled + this.size * allowance;
      this.moment = this.terms.reduce((sum, [y, re, im]) => sum + Math.hypot(re, im) * (y + this.c), 0);
    }

    /** E2: bound on the frequencies beyond `top`. */
    frequencyTail(top, s) {
      const { nodes, spacing, c } = this, T = nodes.rounds;
      const [variation, rest, reach] = nodes.decayConstants(Math.exp(-NEGLIGIBLE / T));
      let far = Math.max(top, Math.min(reach, 1e300)), logFar = 0, i = 0;
      for (; i < 80; i++) {
        logFar = T * Math.log(Math.min(1, rest + variation / far));
        if (logFar < 1 - NEGLIGIBLE) break;
        far *= 1.3;
      }
      if (i === 80) throw new NoBracketError("too few rounds for the bound on high frequencies");
      let tail = Math.exp(logFar) * (1 + spacing / far) / far;
      const steps = 1 + Math.ceil(Math.log(far / top * 1.0001) / Math.log(1.4));
      // E3 grows with the frequency: one bound serves up to each doubling.
      const quadrature = new Map();
      const square = (y) => {
        const doubling = Math.ceil(Math.log2(y / top) - 1e-9);
        if (!quadrature.has(doubling)) quadrature.set(doubling, nodes.quadratureError(top * 2 ** doubling * (1 + 1e-8)));
        return nodes.modulusBound(y, quadrature.get(doubling)) ** 2;
      };
      const size = c * (1 + c) * s, enough = (y, length) => -38 - Math.log(size * length / (y * y));
      let ends = [];
      for (let j = 0; j < steps; j++) {
        const y = top * 1.4 ** j;
        ends.push([y, square(y)]);
      }
      this.countWork(steps);
      const large = ends.filter(([y, x]) => T / 2 * Math.log(Math.min(x, 1)) > enough(y, 0.4 * y));
      this.stillLarge = large.length ? large[large.length - 1][0] : 0;
      if (large.length) return Infinity;
      for (;;) {
        // On an interval a function exceeds its ends by length^2 / 8 max|f''|.
        const next = [ends[0]];
        let poor = 0, sum = 0;
        for (let j = 1; j < ends.length; j++) {
          const [y, x] = ends[j - 1], [z, w] = ends[j], length = z - y;
          const logBound = T / 2 * Math.log(Math.min(Math.max(x, w) + (length * nodes.deviation) ** 2 / 3.99, 1));
          sum += (length + spacing) * Math.exp(logBound) / (y * y);
          if (logBound > enough(y, length + spacing)) {
            const middle = (y + z) / 2;
            next.push([middle, square(middle)]);
            poor++;
          }
          next.push(ends[j]);
        }
        this.countWork(poor);
        if (!poor || ends.length > 3000 || this.work > MOST_WORK) return (tail + sum) / Math.PI;
        ends = next;
      }
    }

    countWork(frequencies) {
      this.work += frequencies * this.nodes.weights.length;
    }

    /** [log lower, log value, log upper, slope of log value] of delta(epsilon). */
    logBounds(epsilon) {
      let value = 0, slope = 0;
      for (const [y, re, im] of this.terms) {
        const angle = y * (this.mean - epsilon), cosine = Math.cos(angle), sine = Math.sin(angle);
        value += re * cosine - im * sine;
        slope += y * (re * sine + im * cosine);
      }
      const error = this.error + 4 * EPS * (Math.abs(this.mean) + Math.abs(epsilon)) * this.moment;
      const aliasing = Math.exp(Math.min(this.logAliasing(epsilon), 700)), lead = this.logMoment - this.c * epsilon;
      const log = (x) => (x > 0 ? lead + Math.log(x) : -Infinity);
      return [log(value - error - aliasing), log(value), log(value + error), value > 0 ? slope / value - this.c : -this.c];
    }
  }

  // ------------------------------------------------------------------ one direction

  const bracket = (lower, upper, method) => ({ lower, upper, method });

  /** The first answer among several tilts. Every tilt is exact; at the saddle c most digits are saved, but the
      moments just above it may explode, so that no period keeps the aliases small. */
  function firstThatCloses(c, answer) {
    let reason = null;
    for (const share of [0.8, 0.5, 1, 0.3]) {
      try {
        return answer(share * c);
      } catch (error) {
        if (!(error instanceof NoBracketError)) throw error;
        reason = reason || error;
      }
    }
    throw reason;
  }

  function sideLogDelta(problem, epsilon) {
    const family = problem.family;
    return firstThatCloses(bestTilt(family, null, epsilon), (c) => logDeltaAt(family, c, epsilon));
  }

  function logDeltaAt(family, c, epsilon) {
    const integral = new Integral(family, c, epsilon);
    const [lower, , upper] = integral.logBounds(epsilon);
    if (!isFinite(lower)) throw new NoBracketError("the error bound exceeds delta itself");
    const pad = 4 * EPS * (1 + Math.abs(integral.logMoment) + Math.abs(integral.c * epsilon));
    return bracket(lower - pad, Math.min(upper + pad, 0), "contour integral");
  }

  function sideEpsilon(problem, logDelta) {
    const family = problem.family, c = bestTilt(family, logDelta, null);
    const guess = (family.coarse(c)[0] - logDelta + logKernel(c)) / c;
    return firstThatCloses(c, (tilt) => epsilonAt(family, tilt, guess, logDelta));
  }

  function epsilonAt(family, c, guess, logDelta) {
    const integral = new Integral(family, c, guess);
    let x = guess;
    for (let i = 0; i < 60; i++) {
      const [, value, , slope] = integral.logBounds(x);
      if (!isFinite(value) || !(slope < 0)) throw new NoBracketError("the sum is lost in its own error");
      const step = (value - logDelta) / slope;
      x -= step;
      if (Math.abs(step) <= 4 * EPS * Math.abs(x) || Math.abs(value - logDelta) < 1e-14) break;
    }
    const [lower, value, upper, slope] = integral.logBounds(x);
    if (!isFinite(lower) || !(slope < 0) || !(upper - lower < 1)) throw new NoBracketError("the error bound exceeds delta itself");
    let width = 1.5 * Math.max(upper - value, value - lower) / -slope + 4 * EPS * Math.abs(x) + 1e-300;
    let high = x + width, low = x - width, tries = 0;
    // The ends are certified by evaluating the bounds there, not by linearisation.
    while (!(integral.logBounds(high)[2] <= logDelta)) {
      high += width;
      width *= 2;
      if (++tries > 40) throw new NoBracketError("the upper end could not be certified");
    }
    if (high <= 0) return bracket(0, 0, "contour integral");
    width = x - low;
    for (tries = 0; low > 0 && !(integral.logBounds(low)[0] >= logDelta); tries++) {
      low -= width;
      width *= 2;
      if (tries > 40) throw new NoBracketError("the lower end could not be certified");
    }
    if (high - low > MOST_WIDTH * high) throw new NoBracketError("the bracket is wider than this page shows");
    return bracket(Math.max(low, 0), high, "contour integral");
  }

  function oneRoundLogDelta(mixture, epsilon, sign) {
    const u = mixture.inverse(sign * epsilon);
    if (!isFinite(u)) return null;
    let [value, slope, slack] = mixture.oneRound(u, sign);
    slack += slope * (Math.abs(sign * mixture.ratio(u)[0] - epsilon) + EPS * epsilon);
    return bracket(value - slack, Math.min(value + slack, 0), "closed form");
  }

  function oneRoundEpsilon(mixture, logDelta, sign) {
    const start = mixture.inverse(0), [first, , slack0] = mixture.oneRound(start, sign);
    if (first + slack0 <= logDelta) return bracket(0, 0, "closed form");
    let u = start;
    if (first > logDelta) {
      let step = 1;
      while (mixture.oneRound(start + sign * step, sign)[0] > logDelta) step *= 2;
      u = start + sign * rootOfDecreasing((t) => mixture.oneRound(start + sign * t, sign)[0] - logDelta, 0, step);
    }
    const [value, slope, slack] = mixture.oneRound(u, sign), loss = Math.max(sign * mixture.ratio(u)[0], 0);
    const width = 1.5 * (slack + Math.abs(value - logDelta)) / slope + EPS * loss;
    return bracket(Math.max(loss - width, 0), loss + width, "closed form");
  }

  // ------------------------------------------------------------------ what the page calls

  /** DP-SGD with Poisson sampling: composition of the pair Binomial(k, q), in both directions. */
  class PoissonDPSGD {
    constructor({ noiseMultiplier, samplingProbability, steps, groupSize = 1 }) {
      Object.assign(this, { noiseMultiplier, samplingProbability, steps, groupSize });
      this.problems = {};
    }

    problem(direction) {
      if (!this.problems[direction]) {
        const mixture = new Mixture(this.groupSize, this.samplingProbability, this.noiseMultiplier);
        const sign = direction === "add" ? -1 : 1;
        this.problems[direction] = { mixture, sign, family: new Family(mixture, this.steps, sign) };
      }
      return this.problems[direction];
    }

    get trivial() {
      return this.samplingProbability === 0;
    }

    get mu() {
      return this.groupSize * Math.sqrt(this.steps) / this.noiseMultiplier;
    }

    /** Bracket of log delta at epsilon >= 0; lower = upper = -Infinity where delta is exactly 0. */
    logDelta(epsilon, direction = "remove") {
      const zero = bracket(-Infinity, -Infinity, "closed form");
      if (this.trivial) return zero;
      if (this.samplingProbability === 1) {
        const value = gaussianLogDelta(this.mu, epsilon), rate = Math.abs(epsilon / this.mu - this.mu / 2) + 2;
        const pad = TAIL_ERROR * (1 + Math.abs(value)) + 4 * EPS * (epsilon / this.mu + this.mu) * rate;
        return bracket(value - pad, Math.min(value + pad, 0), "closed form");
      }
      const problem = this.problem(direction);
      if (direction === "add" && epsilon >= -this.steps * problem.mixture.logFloor * (1 + 8 * EPS)) return zero;
      if (this.steps === 1) return oneRoundLogDelta(problem.mixture, epsilon, problem.sign) || zero;
      return sideLogDelta(problem, epsilon);
    }

    /** Chernoff's upper bound on log delta (remove) at epsilon: certified, some units above the truth, at any epsilon. */
    logDeltaChernoff(epsilon) {
      const { family } = this.problem("remove"), c = bestTilt(family, null, epsilon);
      const moment = family.nodes(c, c, c, 0).logMomentBound(c);
      return Math.min(moment - c * epsilon + logKernel(c), 0);
    }

    /** Bracket of the smallest epsilon >= 0 at delta in (0, 1). */
    epsilon(delta, direction = "remove") {
      if (this.trivial) return bracket(0, 0, "closed form");
      const logDelta = Math.log(delta);
      if (this.samplingProbability === 1) {
        const value = gaussianEpsilon(this.mu, logDelta);
        if (!value) return bracket(0, 0, "closed form");
        const pad = 1e-12 * value + this.mu * (TAIL_ERROR * (1 - logDelta) + 4 * EPS * this.mu);
        return bracket(Math.max(value - pad, 0), value + pad, "closed form");
      }
      const problem = this.problem(direction);
      if (this.steps * problem.mixture.totalVariation <= delta) return bracket(0, 0, "closed form");
      if (this.steps === 1) return oneRoundEpsilon(problem.mixture, logDelta, problem.sign);
      return sideEpsilon(problem, logDelta);
    }
  }

  /** The smallest noise multiplier, to `tolerance` and from above, whose upper end of epsilon (remove, the larger direction) meets the target.
      make : function from a noise multiplier to a mechanism. */
  function calibrate(make, epsilon, delta, tolerance = 1e-9) {
    const excess = (x) => make(Math.exp(x)).epsilon(delta).upper / epsilon - 1;
    let low = Math.log(0.5), high = Math.log(2);
    let atLow = excess(low), atHigh = excess(high);
    while (atHigh > 0) {
      [low, atLow] = [high, atHigh];
      high += 1;
      if (high > Math.log(1e6)) throw new NoBracketError("no noise multiplier up to a million meets the target");
      atHigh = excess(high);
    }
    while (atLow <= 0) {
      [high, atHigh] = [low, atLow];
      low -= 0.5;
      if (low < Math.log(0.02)) throw new NoBracketError("the target is met below the smallest noise multiplier of this page, 0.02");
      atLow = excess(low);
    }
    // Secants on log epsilon against log sigma, kept inside the bracket; the end returned is certified.
    for (let i = 0; i < 60 && high - low > tolerance; i++) {
      const slope = (Math.log1p(atHigh) - Math.log1p(atLow)) / (high - low);
      let x = Number.isFinite(slope) && slope < 0 ? low - Math.log1p(atLow) / slope : (low + high) / 2;
      x += (i % 2 ? -1 : 1) * 0.3 * tolerance; // from either side in turn, so that both ends close in
      if (i % 5 === 4 || !(x > low && x < high)) x = (low + high) / 2;
      const value = excess(x);
      if (value <= 0) [high, atHigh] = [x, value];
      else [low, atLow] = [x, value];
    }
    return Math.exp(high);
  }

  /** The black-box group lemma [G-1.1] in logarithms: k e for an e with k e^{ke} delta_1(e) <= delta, nearly the least.
      delta_1 comes from the contour; where that does not close (delta_1 is below 1e-1000, say), from Chernoff. */
  function groupLemma(mechanism, delta, k) {
    const target = Math.log(delta), first = mechanism.epsilon(delta).upper;
    if (first === 0) return 0;
    const growth = (e) => Math.log(k) + k * e - target;
    const rough = (e) => growth(e) + mechanism.logDeltaChernoff(e);
    let low = first, high = first;
    while (rough(high) > 0) [low, high] = [high, 1.6 * high];
    const safe = high === first ? first : rootOfDecreasing(rough, low, high, 12) * (1 + 1e-9);
    const settled = (e, excess) => {
      for (let nudge = 1e-12; excess(e) > 0; nudge *= 4) e *= 1 + nudge; // to the safe side of the root
      return e;
    };
    let e = settled(safe, rough);
    const exact = (x) => growth(x) + mechanism.logDelta(x).upper;
    try {
      let value = exact(e), old = null;
      for (let i = 0; i < 12; i++) {
        const other = old || [e * (1 + 1e-5), exact(e * (1 + 1e-5))];
        const step = value * (e - other[0]) / (value - other[1]);
        if (!Number.isFinite(step)) break;
        old = [e, value];
        e -= step;
        if (Math.abs(step) < 1e-10 * e) break;
        value = exact(e);
      }
      return k * settled(e, exact);
    } catch (error) {
      if (error instanceof NoBracketError) return k * settled(safe, rough);
      throw error;
    }
  }

  Object.assign(shared, { PoissonDPSGD, calibrate, groupLemma });
})(typeof window === "undefined" ? globalThis : window);
