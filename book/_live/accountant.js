/* The contour accountant of dplib (module contour) for DP-SGD: Poisson sampling, batches of fixed size, known batches, the
   last iterate, and substitution by way of a removal.

   For a composition with loss L = T L_1 and M(z) = E exp(zL), every c > 0 gives
       delta(eps) = (1/pi) Re int_0^inf M(c+iy) e^{-(c+iy) eps} / ((c+iy)(c+iy+1)) dy.
   The errors are those of the library: E1 aliasing in y, E2 truncation in y, E3 trapezoid in u, and an
   allowance for rounding; each is added to the bracket. Needs special.js, round.js and integrand.js before it. */
(function (root) {
  "use strict";

  const shared = (root.PrivacyAccountant = root.PrivacyAccountant || {});
  const { EPS, TAIL_ERROR, NoBracketError, NEGLIGIBLE, Mixture, Family, TwoSidedFamily, binomial, hypergeometric, manyTrials, logAddExp, rootOfDecreasing, gaussianLogDelta, gaussianEpsilon } = shared;

  const MOST_WIDTH = 1e-8; // of a bracket of epsilon, relative: the library has other accountants for wider ones
  const MOST_WORK = 14e6; // of one question, about nanoseconds; refused beyond it
  const PAIR_WORK = 2, BOUND_WORK = 30; // of a frequency, per node: summed, bounded
  const MOST_LOSS = 30; // e^30: by how much Chernoff's bound at a tilt may exceed the least one; beyond it no digit is left
  const MOST_ENDS = 250; // of the intervals that bound the high frequencies
  const OFFSETS = [0.06, 0.12, 0.25, 0.5, 1, 2, 4, 8]; // of the tilts beside the chosen one, in 1 / deviation

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
    /** work : { left } what the question may still cost; the first tilts leave some of it to the others. */
    constructor(family, c, epsilon, work) {
      this.family = family;
      this.c = c;
      this.work = work;
      this.reserve = 0.4 * work.left;
      const s = Math.sqrt(family.coarse(c)[2]);
      if (!(s > 0 && isFinite(s))) throw new NoBracketError("the tilted loss has no spread");
      this.e2 = Infinity;
      this.choosePeriod(s, epsilon);
      let frequency = 12 / s, atLeast = 0;
      this.chooseNodes(frequency);
      this.others = this.others.map(([other]) => [other, this.nodes.logMomentBound(other)]);
      for (let attempt = 0; attempt < 7; attempt++) {
        const reached = this.sumFrequencies(s, atLeast);
        if (this.e3 * c * (1 + c) * s > 1e-11 && reached > frequency) {
          frequency = reached;
          this.chooseNodes(frequency);
          continue;
        }
        this.e2 = this.frequencyTail(reached, s);
        if (this.e2 * c * (1 + c) * s < 1e-13) break;
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
      const tilts = this.others.map(([other]) => other), low = Math.min(this.c, ...tilts), high = Math.max(this.c, ...tilts);
      this.nodes = this.family.nodes(this.c, low, high, frequency, (count) => this.spend(count * this.family.nodeWork));
      this.logMoment = this.nodes.rounds * this.nodes.logMoment;
      this.mean = this.nodes.rounds * this.nodes.mean;
    }

    /** log of a bound on the aliasing E1 over M(c) e^{-c eps}. */
    logAliasing(epsilon, period = this.period, others = this.others) {
      const { c } = this;
      let below = c * epsilon - this.logMoment - c * period - Math.log(-Math.expm1(-c * period)), above = Infinity;
      for (const [other, moment] of others) {
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

    /** The shortest period whose aliases do not matter, and a tilt on each side that bounds them: from coarse moments. */
    choosePeriod(s, epsilon) {
      const { c, family } = this, aim = -Math.log(c * (1 + c) * s) - 34;
      this.logMoment = family.coarse(c)[0];
      // Where the moments explode just above c, only the nearest tilts say how small the aliases are.
      const tilts = [...OFFSETS.map((k) => c + k / s), ...OFFSETS.map((k) => c - k / s).filter((other) => other > 0.05 * c)];
      const moments = tilts.map((other) => [other, family.coarse(other)[0]]);
      let best = Infinity;
      for (const multiple of [8, 9, 10, 12, 15, 20, 25, 30, 40, 50, 65, 80, 100, 130, 200, 400]) {
        const period = multiple * s, least = (pairs) => {
          let found = null, value = Infinity;
          for (const pair of pairs) {
            const x = this.aliasingAt(...pair, epsilon, period);
            if (x < value) [value, found] = [x, pair];
          }
          return found ? [found] : [];
        };
        const others = [...least(moments.filter(([other]) => other < c)), ...least(moments.filter(([other]) => other > c))];
        const value = this.logAliasing(epsilon, period, others);
        if (value < best - 0.5) {
          best = value;
          this.period = period;
          this.others = others;
        }
        if (value < aim) break;
      }
      if (best === Infinity) throw new NoBracketError("no period keeps the aliases small");
      this.spacing = 2 * Math.PI / this.period;
    }

    /** The terms of the sum: blocks of frequencies until they are negligible. Returns the last frequency. */
    sumFrequencies(s, atLeast) {
      const { c, nodes, spacing } = this, T = nodes.rounds, tables = nodes.tables(spacing), { width } = tables;
      this.y = [];
      this.real = [];
      this.imaginary = [];
      this.e3 = this.spoiled = this.size = this.moment = 0;
      let block = 0, stop = 1 + Math.ceil(8.5 / s / spacing / width), quadrature = 0;
      for (; ; block++) {
        if (block === stop) stop *= 2;
        const first = Math.max(0, tables.first(block)), last = tables.first(block + 1) - 1;
        // One bound on the trapezoid rule serves all frequencies up to the next doubling.
        if (block === 0 || 2 * block === stop) quadrature = Math.min(nodes.quadratureError(spacing * (tables.first(stop) - 1)), 1e100);
        this.spend(PAIR_WORK * nodes.weights.length * width);
        tables.sum(block);
        let end = 0;
        for (let i = first; i <= last; i++) {
          const y = spacing * i, [size, angle, distance] = tables.logCharacteristic(i - tables.first(block));
          const floor = Math.max(size, -18), perError = T * Math.exp(-floor);
          const error = perError * (quadrature + nodes.characteristicRounding(y, distance));
          // spacing / pi / (z (z + 1)) at z = c + iy
          const re = c * (c + 1) - y * y, im = y * (2 * c + 1), norm = Math.sqrt(re * re + im * im);
          const weight = spacing / Math.PI / norm, turn = T * angle - Math.atan2(im, re);
          const power = Math.exp(T * size), modulus = power * weight * (i ? 1 : 0.5);
          this.y.push(y);
          this.real.push(modulus * Math.cos(turn));
          this.imaginary.push(modulus * Math.sin(turn));
          this.size += modulus;
          this.moment += modulus * (y + c);
          const most = weight * Math.exp(Math.min(T * floor + error, 300));
          this.spoiled += most * -Math.expm1(-error);
          this.e3 += most * perError * quadrature;
          end = power * c * (c + 1) / norm;
        }
        if (end < Math.exp(-42) && last * spacing > atLeast) return last * spacing;
      }
    }

    bound() {
      const { nodes } = this;
      if (!(this.e3 < 1e3)) throw new NoBracketError("the quadrature bound is too weak");
      if (!isFinite(this.e2)) throw new NoBracketError("the bound on high frequencies does not close");
      const allowance = nodes.rounds * nodes.rounding(this.c) + EPS * (this.y.length + 4 + Math.abs(this.logMoment));
      this.error = this.e2 + this.spoiled + this.size * allowance;
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
        this.spend(BOUND_WORK * nodes.weights.length);
        return nodes.modulusBound(y, quadrature.get(doubling)) ** 2;
      };
      const size = c * (1 + c) * s, enough = (y, length) => -38 - Math.log(size * length / (y * y));
      let ends = [];
      for (let j = 0; j < steps; j++) {
        const y = top * 1.4 ** j;
        ends.push([y, square(y)]);
      }
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
            this.stillLarge = z;
          }
          next.push(ends[j]);
        }
        if (!poor) return (tail + sum) / Math.PI;
        if (ends.length > MOST_ENDS) return Infinity; // summing further is cheaper by now
        ends = next;
      }
    }

    spend(work) {
      this.work.left -= work;
      if (this.work.left < this.reserve) throw new NoBracketError("the characteristic function decays too slowly");
    }

    /** [log lower, log value, log upper, slope of log value] of delta(epsilon). */
    logBounds(epsilon) {
      let value = 0, slope = 0;
      for (let i = 0; i < this.y.length; i++) {
        const y = this.y[i], re = this.real[i], im = this.imaginary[i];
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
  function firstThatCloses({ family, patience }, c, epsilon, answer) {
    const chernoff = (tilt) => family.coarse(tilt)[0] - tilt * epsilon + logKernel(tilt), least = chernoff(c);
    const work = { left: patience * MOST_WORK };
    let reason = null;
    for (const share of [0.8, 0.9, 1, 0.5]) {
      if (chernoff(share * c) > least + MOST_LOSS) continue;
      try {
        return answer(share * c, work);
      } catch (error) {
        if (!(error instanceof NoBracketError)) throw error;
        reason = reason || error;
      }
    }
    throw reason;
  }

  function sideLogDelta(problem, epsilon) {
    const family = problem.family;
    return firstThatCloses(problem, bestTilt(family, null, epsilon), epsilon, (c, work) => logDeltaAt(family, c, epsilon, work));
  }

  function logDeltaAt(family, c, epsilon, work) {
    const integral = new Integral(family, c, epsilon, work);
    const [lower, , upper] = integral.logBounds(epsilon);
    if (!isFinite(lower)) throw new NoBracketError("the error bound exceeds delta itself");
    const pad = 4 * EPS * (1 + Math.abs(integral.logMoment) + Math.abs(integral.c * epsilon));
    return bracket(lower - pad, Math.min(upper + pad, 0), "contour integral");
  }

  function sideEpsilon(problem, logDelta) {
    const family = problem.family, c = bestTilt(family, logDelta, null);
    const guess = (family.coarse(c)[0] - logDelta + logKernel(c)) / c;
    return firstThatCloses(problem, c, guess, (tilt, work) => epsilonAt(family, tilt, guess, logDelta, work));
  }

  function epsilonAt(family, c, guess, logDelta, work) {
    const integral = new Integral(family, c, guess, work);
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
    /** patience : what a question may cost, in units of some hundredths of a second. */
    constructor({ noiseMultiplier, samplingProbability, steps, groupSize = 1, patience = 1 }) {
      Object.assign(this, { noiseMultiplier, samplingProbability, steps, groupSize, patience });
      this.problems = {};
    }

    /** The pair of one round. */
    mixture() {
      return new Mixture(binomial(this.groupSize, this.samplingProbability), 1, this.noiseMultiplier);
    }

    problem(direction) {
      if (!this.problems[direction]) {
        const mixture = this.mixture(), sign = direction === "add" ? -1 : 1;
        this.problems[direction] = { mixture, sign, patience: this.patience, family: new Family(mixture, this.steps, sign) };
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

  /** DP-SGD with Poisson sampling, where `groupSize` records are only in the first dataset and `others` only in the second: a
      mixture on each side. */
  class MixedDPSGD extends PoissonDPSGD {
    constructor({ others, ...common }) {
      super(common);
      this.others = others;
    }

    problem(direction) {
      if (!this.problems[direction]) {
        const sizes = [this.groupSize, this.others], facing = direction === "add" ? sizes.reverse() : sizes;
        const [gained, lost] = facing.map((size) => new Mixture(binomial(size, this.samplingProbability), 1, this.noiseMultiplier));
        const mixture = { totalVariation: gained.totalVariation + lost.totalVariation, logFloor: -Infinity };
        this.problems[direction] = { mixture, patience: this.patience, family: new TwoSidedFamily(gained, lost, this.steps) };
      }
      return this.problems[direction];
    }

    get mu() {
      return (this.groupSize + this.others) * Math.sqrt(this.steps) / this.noiseMultiplier;
    }

    /** Of both directions the larger one; they are equal where as many records are there instead. */
    epsilon(delta, direction = "both") {
      if (this.steps === 1 && !this.trivial && this.samplingProbability < 1) throw new NoBracketError("of one round two tails are left to subtract");
      if (direction !== "both") return super.epsilon(delta, direction);
      const remove = super.epsilon(delta, "remove");
      if (this.others === this.groupSize) return remove;
      const add = super.epsilon(delta, "add");
      return bracket(Math.max(remove.lower, add.lower), Math.max(remove.upper, add.upper), remove.method);
    }
  }

  /** DP-SGD with batches of fixed size, drawn anew in every round: composition of the pair 2 Hypergeometric(B, n + k, k),
      where n is the number of records of the smaller dataset. */
  class FixedBatchDPSGD extends PoissonDPSGD {
    constructor({ batchSize, datasetSize, groupSize = 1, ...others }) {
      super({ ...others, groupSize, samplingProbability: batchSize / (datasetSize + groupSize) });
      Object.assign(this, { batchSize, datasetSize });
    }

    mixture() {
      return new Mixture(hypergeometric(this.batchSize, this.datasetSize, this.groupSize), 2, this.noiseMultiplier);
    }
  }

  /** Known batches, in which a record takes part at most `participations` times: one Gaussian release, the whole group
      in the same batches. It is that many rounds in which everybody takes part. */
  function knownBatches({ noiseMultiplier, participations, groupSize = 1 }) {
    return new PoissonDPSGD({ noiseMultiplier, samplingProbability: 1, steps: participations, groupSize });
  }

  /** The last iterate of linear losses: one release, whose sensitivity is the number of participations, in the direction
      remove, the larger one. What `manyTrials` leaves out is below e^-60 of delta. */
  class LastIterate extends PoissonDPSGD {
    constructor({ noiseMultiplier, samplingProbability, steps }) {
      super({ noiseMultiplier, samplingProbability, steps: 1 });
      this.trials = steps;
    }

    get mu() {
      return Math.sqrt(this.trials) / this.noiseMultiplier;
    }

    mixture() {
      const counts = manyTrials(this.trials, this.samplingProbability, this.reach);
      return new Mixture(counts, 1, this.noiseMultiplier * Math.sqrt(this.trials));
    }

    epsilon(delta) {
      this.reach = 60 + Math.log(this.trials) - Math.log(delta);
      this.problems = {};
      return super.epsilon(delta);
    }
  }

  /** Records that are replaced by others: they are removed, then the others are added, each with half of delta. Only an upper
      bound: P <= e^a Q + d/2 and Q <= e^b P' + d/2 e^-a give P <= e^(a+b) P' + d. */
  function replaced(mechanism, second = mechanism) {
    return {
      epsilon(delta) {
        const first = mechanism.epsilon(delta / 2, "remove").upper, rest = delta / 2 * Math.exp(-first) * (1 - 4 * EPS);
        if (rest < 1e-290) throw new NoBracketError("the delta that is left for adding is practically 0");
        return { upper: first + second.epsilon(rest, "add").upper, method: "removed, then added" };
      },
    };
  }

  /** The largest whole number of steps up to `most` whose upper end of epsilon (remove) meets the target; 0 if not even one does.
      make : function from a number of steps to a mechanism whose epsilon grows with it. */
  function largestSteps(make, epsilon, delta, most) {
    const excess = (steps) => Math.log(make(steps).epsilon(delta).upper / epsilon);
    let low = 0, high = most + 1, atLow = NaN, atHigh = NaN, steps = Math.min(1000, most);
    for (let i = 1; high - low > 1; i++) {
      const value = excess(steps);
      if (value <= 0) [low, atLow] = [steps, value];
      else [high, atHigh] = [steps, value];
      // Secants on log epsilon against log steps, kept inside; every fourth step halves.
      const slope = (atHigh - atLow) / Math.log(high / low);
      if (high > most) steps = 4 * low;
      else if (low === 0) steps = high / 4;
      else steps = Number.isFinite(slope) && slope > 0 && i % 4 ? low * Math.exp(-atLow / slope) : Math.sqrt(low * high);
      steps = Math.min(Math.max(Math.floor(steps), low + 1), high - 1);
    }
    return low;
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
    if (mechanism.trivial) return 0;
    const target = Math.log(delta), growth = (e) => Math.log(k) + k * e - target;
    const exact = (e) => growth(e) + mechanism.logDelta(e).upper;
    const closedForm = mechanism.steps === 1 || mechanism.samplingProbability === 1;
    const rough = closedForm ? exact : (e) => growth(e) + mechanism.logDeltaChernoff(e);
    // The growth is at least k, so that no e below this will do.
    const first = mechanism.epsilon(delta / k).upper;
    if (first === 0) return 0;
    let low = first, high = first;
    while (rough(high) > 0) [low, high] = [high, 1.6 * high];
    const safe = high === first ? first : rootOfDecreasing(rough, low, high, 12) * (1 + 1e-9);
    const settled = (e, excess) => {
      for (let nudge = 1e-12; excess(e) > 0; nudge *= 4) e = e * (1 + nudge) + 1e-300; // to the safe side of the root
      return e;
    };
    let e = safe;
    try {
      [low, high] = [first, Infinity];
      let value = exact(e), old = [e + 1e-5 * e + 1e-12, exact(e + 1e-5 * e + 1e-12)];
      for (let i = 0; i < 30; i++) {
        if (value > 0) low = Math.max(low, e);
        else high = Math.min(high, e);
        let next = e - value * (e - old[0]) / (value - old[1]);
        if (!(next > low && next < high)) next = high === Infinity ? 2 * e : (low + high) / 2;
        old = [e, value];
        e = next;
        if (Math.abs(e - old[0]) < 1e-10 * e) break;
        value = exact(e);
      }
      return k * settled(e, exact);
    } catch (error) {
      if (error instanceof NoBracketError) return k * settled(safe, rough);
      throw error;
    }
  }

  Object.assign(shared, { PoissonDPSGD, MixedDPSGD, FixedBatchDPSGD, LastIterate, knownBatches, replaced, calibrate, largestSteps, groupLemma });
})(typeof window === "undefined" ? globalThis : window);
