/* One round's factor of the contour integral with all bounds (dplib.accounting.contour_nodes), for a single mixture.
   Needs special.js and round.js before it. */
(function (root) {
  "use strict";

  const shared = (root.PrivacyAccountant = root.PrivacyAccountant || {});
  const { EPS, LOG_SQRT_2PI, NEGLIGIBLE, NoBracketError, logNdtr, logAddExp, logSum } = shared;

  const STRIP_CAP = 8;
  const STRIPS = [1, 0.7, 0.5, 0.35, 0.25, 0.15, 0.08, 0.04];
  const ROUNDING_SAFETY = 2;
  const LEVELS = [1e-8, 1e-5, 1e-3, 0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1 - 1e-4, 1 - 1e-7];
  const HALF = 16; // frequencies on each side of the middle of a block
  const CUTS = [1e-8, 1e-5, 1e-4, 1e-3, 0.01, 0.05];

  class Family {
    constructor(mixture, rounds, sign) {
      this.mixture = mixture;
      this.rounds = rounds;
      this.sign = sign;
      this.reach = -1;
      // Of a node, about nanoseconds: with each term of the mixture that is not negligible.
      this.nodeWork = 500 + 40 * Math.min(mixture.shifts.length, 20 / mixture.shifts[1]);
    }

    power(c) {
      return this.sign > 0 ? 1 + c : -c;
    }

    evaluate(u) {
      const n = u.length, base = new Float64Array(n), loss = new Float64Array(n), slope = new Float64Array(n);
      this.mixture.near = 0;
      for (let i = 0; i < n; i++) {
        const [value, mean, density] = this.mixture.ratio(u[i]);
        loss[i] = this.sign * value;
        slope[i] = mean;
        base[i] = this.sign > 0 ? density : -u[i] * u[i] / 2 - LOG_SQRT_2PI;
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
        if (!(count < 8000)) throw new NoBracketError("the contour needs too many nodes");
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

    /** Nodes that serve frequencies up to `frequency`; spend(count) is told of each grid that is tried. */
    nodes(c, low, high, frequency, spend = () => {}) {
      const [left, right] = this.window(low, high);
      const strip = Math.min(1 / Math.sqrt(this.mixture.variance), STRIP_CAP);
      let step = 2 * Math.PI * strip / (NEGLIGIBLE + strip * strip / 2);
      for (let attempt = 0; attempt < 14; attempt++) {
        const count = Math.ceil((right - left) / step) + 1;
        if (!(count < 60000)) break;
        spend(count);
        const grid = new Nodes(this, c, left, step, count);
        if (grid.serve(frequency)) return grid;
        step = Math.min(step / 1.2, grid.finerStep(frequency));
      }
      throw new NoBracketError("the contour needs too many nodes");
    }
  }

  /** The characteristic function of the tilted loss at multiples of `spacing`, in blocks: e^{i(b+a)x} is the product of
      e^{ibx}, from the middle b of the block, and e^{+-iax}, from a table that all blocks share. Both are kept less 1, and
      phi - 1 is summed, so that log1p keeps the digits that a power of 10^6 needs. */
  class Tables {
    constructor(centred, weights, spacing) {
      const n = centred.length;
      Object.assign(this, { centred, weights, spacing, width: 2 * HALF + 1 });
      this.even = [];
      this.odd = [];
      for (let a = 1; a <= HALF; a++) {
        const even = new Float64Array(n), odd = new Float64Array(n), half = a * spacing / 2;
        for (let k = 0; k < n; k++) {
          const sine = Math.sin(half * centred[k]);
          even[k] = -2 * sine * sine;
          odd[k] = 2 * sine * Math.cos(half * centred[k]);
        }
        this.even.push(even);
        this.odd.push(odd);
      }
      this.turned = [new Float64Array(n), new Float64Array(n)];
      this.real = new Float64Array(this.width);
      this.imaginary = new Float64Array(this.width);
    }

    /** The first frequency of a block, in multiples of the spacing. */
    first(block) {
      return block * this.width - HALF;
    }

    /** phi - 1 on a block. */
    sum(block) {
      const { centred, weights, turned: [p, q] } = this, n = p.length, half = block * this.width * this.spacing / 2;
      let middle = 0, side = 0;
      for (let k = 0; k < n; k++) {
        const w = weights[k], sine = Math.sin(half * centred[k]), even = -2 * sine * sine, odd = 2 * sine * Math.cos(half * centred[k]);
        middle += w * even;
        side += w * odd;
        p[k] = w * (1 + even);
        q[k] = w * odd;
      }
      this.real[HALF] = middle;
      this.imaginary[HALF] = side;
      for (let a = 1; a <= HALF; a++) {
        const even = this.even[a - 1], odd = this.odd[a - 1];
        let pe = 0, qo = 0, po = 0, qe = 0;
        for (let k = 0; k < n; k++) {
          const x = p[k], y = q[k], e = even[k], o = odd[k];
          pe += x * e;
          qo += y * o;
          po += x * o;
          qe += y * e;
        }
        this.real[HALF + a] = middle + (pe - qo);
        this.imaginary[HALF + a] = side + (qe + po);
        this.real[HALF - a] = middle + (pe + qo);
        this.imaginary[HALF - a] = side + (qe - po);
      }
    }

    /** [Re log phi, Im log phi, |phi - 1|] at one place of the block that was summed last. */
    logCharacteristic(place) {
      const real = this.real[place], imaginary = this.imaginary[place], square = real * (2 + real) + imaginary * imaginary;
      const size = Math.abs(square) < 0.5 ? 0.5 * Math.log1p(square) : 0.5 * Math.log(Math.max((1 + real) * (1 + real) + imaginary * imaginary, 1e-300));
      return [size, Math.atan2(imaginary, 1 + real), Math.sqrt(real * real + imaginary * imaginary)];
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

    tables(spacing) {
      return new Tables(this.centred, this.weights, spacing);
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
          // From the left: the smallest mass beyond is cut last.
          at: [...CUTS].reverse().map((mass) => {
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
      let real = 0, imaginary = 0, best = 1, i = 0;
      for (const { cut, error: [constant, linear, square], rest } of at) {
        for (; i < cut; i++) {
          real += weights[i] * Math.cos(y * loss[i]);
          imaginary += weights[i] * Math.sin(y * loss[i]);
        }
        // Half of the weight at the cut itself.
        const re = real + weights[cut] / 2 * Math.cos(y * loss[cut]), im = imaginary + weights[cut] / 2 * Math.sin(y * loss[cut]);
        best = Math.min(best, Math.sqrt(re * re + im * im) + rest + constant + y * (linear + y * square));
      }
      for (; i < weights.length; i++) {
        real += weights[i] * Math.cos(y * loss[i]);
        imaginary += weights[i] * Math.sin(y * loss[i]);
      }
      best = Math.min(best, Math.sqrt(real * real + imaginary * imaginary) + quadrature);
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

    /** Allowance for phi(y), given |phi(y) - 1|. A factor of `Tables` turns by up to 3 times the angle of phi. */
    characteristicRounding(y, distance) {
      const [base, error, loss, centred] = this.roundingSums();
      const scale = base + EPS * this.c * loss + this.logError, spread = error + 3 * EPS * centred;
      return ROUNDING_SAFETY * (scale * Math.min(distance + EPS, 2) + y * spread);
    }
  }

  Object.assign(shared, { Family });
})(typeof window === "undefined" ? globalThis : window);
