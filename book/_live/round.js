/* One round: the mixture pair with sensitivity Binomial(k, q) (dplib.mixtures), and its factor of the contour
   integral with all bounds (dplib._families), for a single mixture. */
(function (root) {
  "use strict";

  const shared = (root.PrivacyAccountant = root.PrivacyAccountant || {});
  const { EPS, LOG_SQRT_2PI, TAIL_ERROR, NoBracketError, erf, logNdtr, logAddExp, logSum, logTailDifference, rootOfDecreasing } = shared;

  const NEGLIGIBLE = 46; // e^-46: what may be left out before it is bounded
  const STRIP_CAP = 8;
  const STRIPS = [1, 0.7, 0.5, 0.35, 0.25, 0.15, 0.08, 0.04];
  const ROUNDING_SAFETY = 2;
  const LEVELS = [1e-8, 1e-5, 1e-3, 0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1 - 1e-4, 1 - 1e-7];
  const CUTS = [1e-8, 1e-5, 1e-4, 1e-3, 0.01, 0.05];

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

  /** The pair of one round: sensitivity Binomial(k, q), in units of the noise. */
  class Mixture {
    constructor(groupSize, probability, sigma) {
      const k = groupSize, q = probability;
      this.shifts = Float64Array.from({ length: k + 1 }, (_, j) => j / sigma);
      const choose = logChoose(k);
      this.logP = choose.map((c, j) => c + j * Math.log(q) + (k - j) * Math.log1p(-q));
      const best = Math.max(...this.logP);
      let size = 0;
      this.logP.forEach((p, j) => {
        if (p > best - 100) size = Math.max(size, choose[j] - j * Math.log(q) - (k - j) * Math.log1p(-q));
      });
      this.logError = EPS * (size + 6);
      const norm = logSum(this.logP);
      this.logP = this.logP.map((p) => p - norm);
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

    /** log sum_j exp(log p_j + a_j u - a_j^2 / 2 + extra) and the mean of a_j under these weights.
        The terms are concave in j: from the largest one outwards until they are negligible. */
    sums(u, extra = 0) {
      const { shifts: a, logP, cut } = this, last = a.length - 1;
      const at = (j) => logP[j] + a[j] * (u - a[j] / 2) + extra;
      let j = this.near, top = at(j);
      for (let next; j < last && (next = at(j + 1)) > top; j++) top = next;
      for (let next; j > 0 && (next = at(j - 1)) > top; j--) top = next;
      this.near = j;
      let total = 1, first = a[j];
      for (let i = j + 1; i <= last; i++) {
        const t = at(i) - top;
        if (t < -cut) break;
        const w = Math.exp(t);
        total += w;
        first += w * a[i];
      }
      for (let i = j - 1; i >= 0; i--) {
        const t = at(i) - top;
        if (t < -cut) break;
        const w = Math.exp(t);
        total += w;
        first += w * a[i];
      }
      return [top + Math.log(total), first / total];
    }

    /** (log P/Q, its slope = posterior mean of the shift) at u. */
    ratio(u) {
      const result = this.sums(u);
      if (Math.abs(result[0]) < 0.3) {
        // Near R = 1 only log1p(sum p_j expm1(.)) keeps the digits.
        let sum = 0;
        for (let j = 1; j < this.p.length; j++) {
          const x = this.shifts[j] * (u - this.shifts[j] / 2);
          sum += x < 1 ? this.p[j] * Math.expm1(x) : Math.exp(Math.min(x + this.logP[j], 2)) - this.p[j];
        }
        result[0] = Math.log1p(sum);
      }
      return result;
    }

    ratioError(logRatio, slope, u) {
      let size = Math.abs(logRatio);
      size = size < 0.3 ? Math.min(1 + size, 2 * size + 2 * this.positive) : 1 + size;
      return (4 * EPS + this.logError) * size + 4 * EPS * slope * (Math.abs(u) + slope);
    }

    /** log of the density of P, without the cancellation of loss - u^2 / 2. */
    logDensity(u) {
      return this.sums(u, -u * u / 2)[0] - LOG_SQRT_2PI;
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

  // ------------------------------------------------------------------ the integrand

  class Family {
    constructor(mixture, rounds, sign) {
      this.mixture = mixture;
      this.rounds = rounds;
      this.sign = sign;
      this.reach = -1;
    }

    power(c) {
      return this.sign > 0 ? 1 + c : -c;
    }

    evaluate(u) {
      const n = u.length, base = new Float64Array(n), loss = new Float64Array(n), slope = new Float64Array(n);
      this.mixture.near = 0;
      for (let i = 0; i < n; i++) {
        const [value, mean] = this.mixture.ratio(u[i]);
        loss[i] = this.sign * value;
        slope[i] = mean;
      }
      for (let i = 0; i < n; i++) {
        base[i] = this.sign > 0 ? this.mixture.logDensity(u[i]) : -u[i] * u[i] / 2 - LOG_SQRT_2PI;
      }
      return { base, loss, slope };
    }

    humps(c) {
      const { shifts: a, logP } = this.mixture, w = this.power(c);
      const heights = logP.map((p, j) => w * p + w * (w - 1) * a[j] * a[j] / 2);
      return { heights, centres: a.map((x) => w * x), slack: Math.max(w - 1, 0) * Math.log(a.length) };
    }

    window(low, high) {
      const ends = [];
      for (const c of [low, high]) {
        if (this.power(c) > 0) {
          const { heights, centres, slack } = this.humps(c);
          const best = Math.max(...heights);
          heights.forEach((height, j) => {
            const reach = Math.sqrt(2 * Math.max(NEGLIGIBLE + 4 + slack + height - best, 0));
            if (reach > 0) ends.push(centres[j] - reach, centres[j] + reach);
          });
        } else {
          const mode = this.mode(-this.power(c)), reach = Math.sqrt(2 * (NEGLIGIBLE + 4));
          ends.push(mode - reach, mode + reach);
        }
      }
      return [Math.min(...ends), Math.max(...ends)];
    }

    /** The mode of the log-concave weights phi R^-c. */
    mode(c) {
      let low = -c * this.mixture.top, high = 0;
      while (high - low > 0.25) {
        const u = (low + high) / 2;
        if (u + c * this.mixture.ratio(u)[1] > 0) high = u;
        else low = u;
      }
      return (low + high) / 2;
    }

    /** (K, K', K'') of all rounds at tilt c, to a few digits. */
    coarse(c) {
      if (c > this.reach) {
        this.reach = c > 1 ? 4 * c : 2 * c;
        const [low, high] = this.window(0, this.reach);
        const wanted = Math.min(0.5, 0.6 / Math.sqrt(this.mixture.variance + 1e-9));
        const count = Math.ceil((high - low) / wanted) + 1;
        if (!(count < 40000)) throw new NoBracketError("the contour needs too many nodes");
        const step = (high - low) / (count - 1);
        const parts = this.evaluate(Float64Array.from({ length: count }, (_, i) => low + i * step));
        this.grid = { base: parts.base.map((x) => x + Math.log(step)), loss: parts.loss };
      }
      const { base, loss } = this.grid, n = base.length;
      let top = -Infinity, total = 0, mean = 0, square = 0;
      for (let i = 0; i < n; i++) top = Math.max(top, base[i] + c * loss[i]);
      for (let i = 0; i < n; i++) {
        const w = Math.exp(base[i] + c * loss[i] - top);
        total += w;
        mean += w * loss[i];
      }
      mean /= total;
      for (let i = 0; i < n; i++) square += Math.exp(base[i] + c * loss[i] - top) * (loss[i] - mean) ** 2;
      return [this.rounds * (top + Math.log(total)), this.rounds * mean, this.rounds * square / total];
    }

    nodes(c, low, high, frequency) {
      const [left, right] = this.window(low, high);
      const strip = Math.min(1 / Math.sqrt(this.mixture.variance), STRIP_CAP);
      let step = 2 * Math.PI * strip / (NEGLIGIBLE + strip * strip / 2);
      for (let attempt = 0; attempt < 14; attempt++) {
        const count = Math.ceil((right - left) / step) + 1;
        if (!(count < 60000)) break;
        const grid = new Nodes(this, c, left, step, count);
        if (grid.serve(frequency)) return grid;
        step = Math.min(step / 1.2, grid.finerStep(frequency));
      }
      throw new NoBracketError("the contour needs too many nodes");
    }
  }

  class Nodes {
    constructor(family, c, low, step, count) {
      Object.assign(this, { family, c, step, rounds: family.rounds, count });
      this.u = Float64Array.from({ length: count }, (_, i) => low + i * step);
      Object.assign(this, family.evaluate(this.u));
      const tilted = this.tilted(c), top = Math.max(...tilted);
      const weights = tilted.map((x) => Math.exp(x - top));
      const total = weights.reduce((a, b) => a + b, 0);
      this.logMoment = top + Math.log(total * step);
      // Nodes that carry nothing are dropped from the sums (less than 1e-19 together).
      this.alive = [];
      weights.forEach((w, i) => { if (w / total > 1e-19 / count) this.alive.push(i); });
      this.weights = Float64Array.from(this.alive, (i) => weights[i] / total);
      this.mean = 0;
      this.alive.forEach((i, k) => { this.mean += this.weights[k] * this.loss[i]; });
      this.centred = Float64Array.from(this.alive, (i) => this.loss[i] - this.mean);
      let square = 0;
      this.centred.forEach((x, k) => { square += this.weights[k] * x * x; });
      this.deviation = Math.sqrt(square);
      this.strips = STRIPS.map((s) => s * Math.min(1 / Math.sqrt(family.mixture.variance), STRIP_CAP));
      this.lines = new Map();
    }

    tilted(c) {
      return this.base.map((b, i) => b + c * this.loss[i]);
    }

    /** [Re log phi, Im log phi, |phi - 1|] at frequency y, for the tilted loss centred at its mean. */
    logCharacteristic(y) {
      let real = 0, imaginary = 0;
      const { weights, centred } = this, half = y / 2;
      for (let i = 0; i < weights.length; i++) {
        const sine = Math.sin(half * centred[i]);
        real -= weights[i] * sine * sine;
        imaginary += weights[i] * sine * Math.cos(half * centred[i]);
      }
      real *= 2;
      imaginary *= 2;
      const square = real * (2 + real) + imaginary * imaginary;
      const size = Math.abs(square) < 0.5 ? 0.5 * Math.log1p(square) : Math.log(Math.max(Math.hypot(1 + real, imaginary), 1e-300));
      return [size, Math.atan2(imaginary, 1 + real), Math.hypot(real, imaginary)];
    }

    // -- E3: trapezoid in u

    logTail(c, logMoment) {
      const { family, u, count, slope } = this, { mixture } = family, w = family.power(c);
      const low = u[0], high = u[count - 1];
      const ends = [this.base[0] + c * this.loss[0], this.base[count - 1] + c * this.loss[count - 1]];
      let steep;
      if (w > 0) {
        steep = [-low, high - w * mixture.top];
        if (w * mixture.variance <= 1) steep[1] = Math.max(steep[1], high - w * slope[count - 1]);
      } else steep = [w * slope[0] - low, high - w * slope[count - 1]];
      const sides = steep.map((rate, i) => (rate > 0 ? ends[i] - Math.log(rate) : Infinity));
      if (w >= 1 && Math.max(...sides) > logMoment - NEGLIGIBLE) {
        const { heights, centres, slack } = family.humps(c);
        [(x) => low - x, (x) => x - high].forEach((reach, i) => {
          const terms = heights.map((height, j) => height + logNdtr(reach(centres[j])));
          sides[i] = Math.min(sides[i], slack + logSum(terms));
        });
      }
      const lead = Math.log(2 + this.step * (Math.abs(low) + Math.abs(high) + Math.abs(w) * mixture.top));
      return Math.min(lead + logAddExp(sides[0], sides[1]), 1e300);
    }

    /** What the bound on shifted lines needs at tilt c: for each strip, masses and turns of the cells. */
    lineParts(c) {
      if (!this.lines.has(c)) {
        const { family, step: h, count } = this, { mixture } = family;
        const fall = Math.max(-family.power(c), 0), weights = this.tilted(c);
        const logMoment = logSum(weights) + Math.log(h), logTail = this.logTail(c, logMoment);
        const bend = h * h / 8 * (1 + fall * mixture.variance) + Math.log(h);
        const strips = this.strips.map((a) => {
          const mass = new Float64Array(count), turn = new Float64Array(count);
          for (let i = 0; i < count; i++) {
            const last = i === count - 1, mean = last ? mixture.top : this.slope[i + 1];
            const k = a * a / 2 * Math.min(mixture.variance, mixture.top * mean);
            mass[i] = (last ? logTail : Math.max(weights[i], weights[i + 1]) + bend) + a * a / 2;
            if (fall) mass[i] -= fall * Math.log1p(-k);
            turn[i] = a * mean + Math.PI / 2 * k;
          }
          const exponent = 2 * Math.PI * a / h;
          return { a, mass, turn, decay: exponent + Math.log(-Math.expm1(-exponent)) };
        });
        this.lines.set(c, { strips, logTail, logMoment });
      }
      return this.lines.get(c);
    }

    lineSums(frequency, c) {
      const terms = new Float64Array(this.count);
      return this.lineParts(c).strips.map(({ mass, turn }) => {
        for (let i = 0; i < terms.length; i++) terms[i] = mass[i] + frequency * turn[i];
        return logSum(terms);
      });
    }

    /** Bound on |computed - true| of M(c + iy), 0 <= y <= frequency, over M(c). */
    quadratureError(frequency, c = this.c) {
      const { strips, logTail, logMoment } = this.lineParts(c);
      const least = Math.min(...this.lineSums(frequency, c).map((line, i) => line - strips[i].decay));
      return Math.exp(Math.min(logAddExp(Math.LN2 + least, logTail) - logMoment, 700)) + 1e-19;
    }

    serve(frequency) {
      return this.rounds * (this.quadratureError(frequency) - 1e-17) < 1e-14;
    }

    finerStep(frequency) {
      const { strips, logMoment } = this.lineParts(this.c), target = Math.log(4e14 * this.rounds) - logMoment;
      return Math.max(...this.lineSums(frequency, this.c).map((line, i) => 2 * Math.PI * strips[i].a / Math.max(line + target, 1)));
    }

    logMomentAt(c) {
      return this.rounds * (logSum(this.tilted(c)) + Math.log(this.step));
    }

    logMomentBound(c) {
      const error = this.quadratureError(0, c);
      if (!(error < 0.5)) return Infinity;
      return this.rounds * (this.lineParts(c).logMoment - Math.log1p(-error) + this.rounding(c));
    }

    // -- E2: how the characteristic function decays

    get part() {
      return [this.alive[0], this.alive[this.alive.length - 1] + 1];
    }

    /** Normalised weights from node `start` to `stop`, and the factor by which a cell may exceed its ends. */
    weightsFrom(start, stop) {
      const w = new Float64Array(stop - start);
      for (let i = start; i < stop; i++) w[i - start] = Math.exp(this.base[i] + this.c * this.loss[i] - this.logMoment);
      const fall = Math.max(-this.family.power(this.c), 0);
      return [w, Math.exp(this.step ** 2 / 8 * (1 + fall * this.family.mixture.variance))];
    }

    outside() {
      return 1e-15 + Math.exp(Math.min(this.lineParts(this.c).logTail - this.logMoment, 700));
    }

    /** Bound on |(log w)'| on the cell from node i to i + 1. */
    drift(i) {
      const power = this.family.power(this.c);
      const end = (k) => Math.abs(power * this.slope[k] - this.u[k]);
      return Math.max(end(i), end(i + 1)) + this.step / 2 * (1 + Math.abs(power) * this.family.mixture.variance);
    }

    /** [V, rest, far]: |phi(y)| <= rest + V / y for y > 0, at most `aim` from y = far on. */
    decayConstants(aim) {
      const h = this.step, { top: shift, variance: bound } = this.family.mixture;
      const [start, stop] = this.part, [w, bend] = this.weightsFrom(start, stop), n = stop - start;
      const power = Math.abs(this.family.power(this.c));
      const variation = new Float64Array(n), share = new Float64Array(n), upper = new Float64Array(n);
      const g = w.map((x, i) => x / this.slope[start + i]);
      for (let i = 0; i < n - 1; i++) {
        const m = this.slope[start + i], larger = Math.max(w[i], w[i + 1]) * bend, sup = larger / m;
        const ratio = Math.min(shift, bound / m), variance = Math.min(bound, shift * this.slope[start + i + 1]);
        const rate = this.drift(start + i) + ratio;
        const second = rate * rate + 1 + power * variance + 2 * shift * ratio;
        const cell = Math.min(h * sup * rate, Math.abs(g[i + 1] - g[i]) + h * h / 2 * sup * second);
        variation[i + 1] = variation[i] + cell;
        share[i + 1] = share[i] + h * Math.min(w[i], w[i + 1]) / bend;
        upper[i + 1] = upper[i] + h * larger;
      }
      const picks = LEVELS.map((level) => {
        let k = 0;
        while (k < n - 1 && share[k] / share[n - 1] < level) k++;
        return k;
      });
      const outside = this.outside();
      let best = [0, 1, Infinity];
      picks.forEach((i, a) => picks.slice(a + 1).forEach((j) => {
        const rest = upper[i] + upper[n - 1] - upper[j] + outside;
        const total = variation[j] - variation[i] + g[i] + g[j];
        const far = total / (aim - rest);
        if (i < j && rest < 0.95 * aim && isFinite(total) && far < best[2]) best = [total, rest, far];
      }));
      return best;
    }

    cutSums() {
      if (!this.cuts) {
        const h = this.step, { top: shift, variance: bound } = this.family.mixture;
        const power = Math.abs(this.family.power(this.c)), start = this.alive[0], n = this.count - start;
        const [w, bend] = this.weightsFrom(start, this.count), outside = this.outside();
        const beyond = new Float64Array(n), sums = [0, 1, 2].map(() => new Float64Array(n));
        const sup = (i) => h * bend * Math.max(w[i], w[i + 1]);
        for (let i = n - 2; i >= 0; i--) beyond[i] = beyond[i + 1] + sup(i);
        for (let i = 0; i < n - 1; i++) {
          const size = this.drift(start + i), end = this.slope[start + i + 1], cell = sup(i) * h * h / 12;
          const variance = Math.min(bound, shift * end);
          const rates = [size * size + 1 + power * variance, 2 * size * end + variance, end * end];
          sums.forEach((sum, k) => { sum[i + 1] = sum[i] + cell * rates[k]; });
        }
        this.cuts = {
          weights: w.map((x) => h * x),
          loss: Float64Array.from({ length: n }, (_, i) => this.loss[start + i] - this.mean),
          at: CUTS.map((mass) => {
            let cut = 0;
            while (cut < n && beyond[cut] >= mass) cut++;
            cut = Math.min(Math.max(cut, 2), n - 1);
            return { cut, error: sums.map((sum) => sum[cut]), rest: beyond[cut] + outside };
          }),
        };
      }
      return this.cuts;
    }

    /** Upper bound on |phi(y)|, given the quadrature error at y or beyond. */
    modulusBound(y, quadrature) {
      const { weights, loss, at } = this.cutSums();
      const wanted = new Map(at.map((cut) => [cut.cut, cut]));
      let real = 0, imaginary = 0, best = 1;
      for (let i = 0; i < weights.length; i++) {
        const cosine = weights[i] * Math.cos(y * loss[i]), sine = weights[i] * Math.sin(y * loss[i]);
        const cut = wanted.get(i);
        if (cut) {
          const [constant, linear, square] = cut.error;
          const size = Math.hypot(real + cosine / 2, imaginary + sine / 2);
          best = Math.min(best, size + cut.rest + constant + y * (linear + y * square));
        }
        real += cosine;
        imaginary += sine;
      }
      best = Math.min(best, Math.hypot(real, imaginary) + quadrature);
      return Math.min(best + this.characteristicRounding(y, 2), 1);
    }

    // -- rounding

    roundingSums() {
      if (!this.sums) {
        const { mixture, sign } = this.family, sums = [0, 0, 0, 0];
        this.alive.forEach((i, k) => {
          const w = this.weights[k];
          sums[0] += w * EPS * (8 + Math.abs(this.base[i]));
          sums[1] += w * mixture.ratioError(this.loss[i], this.slope[i], this.u[i]);
          sums[2] += w * Math.abs(this.loss[i]);
          sums[3] += w * Math.abs(this.centred[k]);
        });
        this.sums = sums;
        this.logError = mixture.logError;
        this.extra = sign > 0 ? mixture.logError : 0;
      }
      return this.sums;
    }

    rounding(c) {
      const [base, error] = this.roundingSums();
      return ROUNDING_SAFETY * (base + c * error) + this.extra;
    }

    characteristicRounding(y, distance) {
      const [base, error, loss, centred] = this.roundingSums();
      const scale = base + EPS * this.c * loss + this.logError, spread = error + EPS * centred;
      return ROUNDING_SAFETY * (scale * Math.min(distance + EPS, 2) + y * spread);
    }
  }

  Object.assign(shared, { NEGLIGIBLE, Mixture, Family });
})(typeof window === "undefined" ? globalThis : window);
