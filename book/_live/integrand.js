/* One round's factor of the contour integral with all bounds (dplib.accounting.contour_nodes), for a single mixture, and for a pair of
   mixtures on both sides (dplib.accounting.two_sided_nodes).
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
      this.variance = mixture.variance; // bound on the second derivative of log P/Q ...
      this.spread = mixture.variance; // ... and of the loss, here the same
      this.shift = mixture.top;
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

    // -- bounds between the nodes on the weight w = base e^{c loss}, from the posterior means at the nodes

    /** The derivative of log w at node i. */
    drift(c, nodes, i) {
      return this.power(c) * nodes.slope[i] - nodes.u[i];
    }

    /** The second derivative of log w is at most 1 plus this times the bound on that of the loss, in size. */
    bend(c) {
      return Math.abs(this.power(c));
    }

    /** How far the second derivative of log w may lie below -1. */
    fall(c) {
      return Math.max(-this.power(c), 0) * this.variance;
    }

    /** Bound on the derivative of log w, plus u, in size. */
    steepest(c) {
      return Math.abs(this.power(c)) * this.shift;
    }

    /** On the cell from node i on: the loss is as steep as this at least and at most, and bends by at most this. */
    onCell(nodes, i) {
      const least = nodes.slope[i], most = nodes.slope[i + 1];
      return [least, most, Math.min(this.variance, this.shift * most)];
    }

    /** Rates at which w falls, at least, left and right of the window; negative ones say nothing. */
    rates(c, { slope, u }) {
      const w = this.power(c), low = u[0], high = u[u.length - 1], last = slope[slope.length - 1];
      if (w <= 0) return [w * slope[0] - low, high - w * last];
      const right = high - w * this.shift;
      return [-low, w * this.variance <= 1 ? Math.max(right, high - w * last) : right];
    }

    /** On the line v = a, cell i, the last one for all that lies outside: log of the factor by which w may exceed its real
        value, and the argument of the ratio. */
    line(c, a, nodes, i) {
      const mean = i === nodes.count - 1 ? this.shift : nodes.slope[i + 1], [k, turn] = turned(a, mean, this.shift, this.variance);
      const fall = Math.max(-this.power(c), 0);
      return [a * a / 2 - (fall ? fall * Math.log1p(-k) : 0), turn];
    }

    /** Bound on the rounding error of the loss at node i. */
    lossError(nodes, i) {
      return this.mixture.ratioError(nodes.loss[i], nodes.slope[i], nodes.u[i]);
    }

    // -- where the integrand lives

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
        const wanted = Math.min(0.5, 0.6 / Math.sqrt(this.variance + 1e-9));
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
      const strip = Math.min(1 / Math.sqrt(this.variance), STRIP_CAP);
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

  /** [k, a m + pi k / 2]: |R(u + ia)| is in [1 - k, 1] R(u), its argument at most the second; m : the largest posterior mean. */
  function turned(a, mean, shift, variance) {
    const k = a * a / 2 * Math.min(variance, shift * mean);
    return [k, a * mean + Math.PI / 2 * k];
  }

  const MARGIN = 14, MOST_ROUGH = 20000; // around the modes; nodes of the grid that finds the window

  /** A pair with mixtures on both sides, facing its direction: P = phi S, Q = phi S', S grows and S' falls in u. At tilt c the
      integrand is phi S^(1+c) S'^-c; the derivative of the loss is the sum of the two posterior means, `up` and `down`. */
  class TwoSidedFamily extends Family {
    /** gained, lost : the mixtures of P, and of Q mirrored. */
    constructor(gained, lost, rounds) {
      super(gained, rounds, 1);
      Object.assign(this, { gained, lost, tops: [gained.top, lost.top], variances: [gained.variance, lost.variance] });
      this.variance = Math.max(...this.variances);
      this.spread = gained.variance + lost.variance;
      this.shift = Math.max(...this.tops);
      this.nodeWork += new Family(lost, rounds, 1).nodeWork;
      // What the sums ask of a mixture.
      this.mixture = { logError: gained.logError + lost.logError };
    }

    evaluate(u) {
      const n = u.length, [base, loss, slope, up, down] = [0, 1, 2, 3, 4].map(() => new Float64Array(n));
      this.gained.near = 0;
      this.lost.near = this.lost.shifts.length - 1;
      for (let i = 0; i < n; i++) {
        const [more, first, density] = this.gained.ratio(u[i]), [less, second] = this.lost.ratio(-u[i]);
        base[i] = density;
        loss[i] = more - less;
        up[i] = first;
        down[i] = second;
        slope[i] = first + second;
      }
      return { base, loss, slope, up, down };
    }

    drift(c, nodes, i) {
      return (1 + c) * nodes.up[i] + c * nodes.down[i] - nodes.u[i];
    }

    bend(c) {
      return 1 + c;
    }

    fall(c) {
      return c * this.variances[1];
    }

    steepest(c) {
      return (1 + c) * this.tops[0] + c * this.tops[1];
    }

    onCell({ up, down }, i) {
      const bend = Math.min(this.variances[0], this.tops[0] * up[i + 1]) + Math.min(this.variances[1], this.tops[1] * down[i]);
      return [up[i] + down[i + 1], up[i + 1] + down[i], bend];
    }

    rates(c, { up, down, u, count }) {
      const last = count - 1, fallen = u[last] - c * down[last], right = fallen - (1 + c) * this.tops[0];
      const concave = (1 + c) * this.variances[0] <= 1;
      return [c * down[0] - u[0], concave ? Math.max(right, fallen - (1 + c) * up[last]) : right];
    }

    line(c, a, { up, down, count }, i) {
      const last = i === count - 1, [, turn] = turned(a, last ? this.tops[0] : up[i + 1], this.tops[0], this.variances[0]);
      const [k, other] = turned(a, last ? this.tops[1] : down[i], this.tops[1], this.variances[1]);
      return [a * a / 2 - c * Math.log1p(-k), turn + other];
    }

    lossError({ loss, up, down, u }, i) {
      const first = this.gained.ratio(u[i])[0], second = this.lost.ratio(-u[i])[0];
      return EPS * Math.abs(loss[i]) + this.gained.ratioError(first, up[i], u[i]) + this.lost.ratioError(second, down[i], -u[i]);
    }

    /** S^(1+c) is at most m^c times the sum of the powers of its terms, and S' at least its term at 0. */
    humps(c) {
      const { shifts: a, logP } = this.gained, w = 1 + c;
      const heights = logP.map((p, j) => w * (p - a[j] * a[j] / 2) - c * this.lost.logP[0] + w * w * a[j] * a[j] / 2);
      return { heights, centres: a.map((x) => w * x), slack: c * Math.log(a.length) };
    }

    /** An interval outside of which the weights are negligible, about: bounds come later. */
    window(...tilts) {
      const ends = [];
      for (const c of tilts) {
        const low = -MARGIN, high = this.steepest(c) + MARGIN, count = Math.ceil((high - low) * 4) + 2, step = (high - low) / (count - 1);
        if (!(count < MOST_ROUGH)) throw new NoBracketError("the contour needs too many nodes");
        const u = Float64Array.from({ length: count }, (_, i) => low + i * step), { base, loss } = this.evaluate(u);
        const logs = base.map((b, i) => b + c * loss[i]), total = logSum(logs);
        const alive = [...logs.keys()].filter((i) => logs[i] > total - NEGLIGIBLE - 6);
        ends.push(u[Math.max(alive[0] - 1, 0)], u[Math.min(alive[alive.length - 1] + 1, count - 1)]);
        // The humps have to be small as well.
        const { heights, centres, slack } = this.humps(c);
        heights.forEach((height, j) => {
          const room = NEGLIGIBLE + 4 + slack + height - total - Math.log(step), reach = Math.sqrt(2 * Math.max(room, 0));
          if (room > 0) ends.push(centres[j] - reach, centres[j] + reach);
        });
      }
      return [Math.min(...ends), Math.max(...ends)];
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
      this.strips = STRIPS.map((s) => s * Math.min(1 / Math.sqrt(family.variance), STRIP_CAP));
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
      const { family, u, count } = this, w = family.power(c), low = u[0], high = u[count - 1];
      const ends = [this.base[0] + c * this.loss[0], this.base[count - 1] + c * this.loss[count - 1]];
      const sides = family.rates(c, this).map((rate, i) => (rate > 0 ? ends[i] - Math.log(rate) : Infinity));
      if (w >= 1 && Math.max(...sides) > logMoment - NEGLIGIBLE) {
        const { heights, centres, slack } = family.humps(c);
        [(x) => low - x, (x) => x - high].forEach((reach, i) => {
          const terms = heights.map((height, j) => height + logNdtr(reach(centres[j])));
          sides[i] = Math.min(sides[i], slack + logSum(terms));
        });
      }
      const lead = Math.log(2 + this.step * (Math.abs(low) + Math.abs(high) + family.steepest(c)));
      return Math.min(lead + logAddExp(sides[0], sides[1]), 1e300);
    }

    /** What the bound on shifted lines needs at tilt c: for each strip, masses and turns of the cells. */
    lineParts(c) {
      if (!this.lines.has(c)) {
        const { family, step: h, count } = this, weights = this.tilted(c);
        const logMoment = logSum(weights) + Math.log(h), logTail = this.logTail(c, logMoment);
        const bend = h * h / 8 * (1 + family.fall(c)) + Math.log(h);
        const strips = this.strips.map((a) => {
          const mass = new Float64Array(count), turn = new Float64Array(count);
          for (let i = 0; i < count; i++) {
            const [more, angle] = family.line(c, a, this, i);
            mass[i] = (i === count - 1 ? logTail : Math.max(weights[i], weights[i + 1]) + bend) + more;
            turn[i] = angle;
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
      return [w, Math.exp(this.step ** 2 / 8 * (1 + this.family.fall(this.c)))];
    }

    outside() {
      return 1e-15 + Math.exp(Math.min(this.lineParts(this.c).logTail - this.logMoment, 700));
    }

    /** Bound on |(log w)'| on the cell from node i to i + 1. */
    drift(i) {
      const { family, c } = this, end = (k) => Math.abs(family.drift(c, this, k));
      return Math.max(end(i), end(i + 1)) + this.step / 2 * (1 + family.bend(c) * family.spread);
    }

    /** [V, rest, far]: |phi(y)| <= rest + V / y for y > 0, at most `aim` from y = far on. */
    decayConstants(aim) {
      const h = this.step, { shift, spread: bound } = this.family;
      const [start, stop] = this.part, [w, bend] = this.weightsFrom(start, stop), n = stop - start;
      const power = this.family.bend(this.c);
      const variation = new Float64Array(n), share = new Float64Array(n), upper = new Float64Array(n);
      const g = w.map((x, i) => x / this.slope[start + i]);
      for (let i = 0; i < n - 1; i++) {
        const [least, , variance] = this.family.onCell(this, start + i), larger = Math.max(w[i], w[i + 1]) * bend, sup = larger / least;
        const ratio = Math.min(shift, bound / least);
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
        const h = this.step, power = this.family.bend(this.c), start = this.alive[0], n = this.count - start;
        const [w, bend] = this.weightsFrom(start, this.count), outside = this.outside();
        const beyond = new Float64Array(n), sums = [0, 1, 2].map(() => new Float64Array(n));
        const sup = (i) => h * bend * Math.max(w[i], w[i + 1]);
        for (let i = n - 2; i >= 0; i--) beyond[i] = beyond[i + 1] + sup(i);
        for (let i = 0; i < n - 1; i++) {
          const size = this.drift(start + i), [, end, variance] = this.family.onCell(this, start + i), cell = sup(i) * h * h / 12;
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
        const { family } = this, { mixture, sign } = family, sums = [0, 0, 0, 0];
        this.alive.forEach((i, k) => {
          const w = this.weights[k];
          sums[0] += w * EPS * (8 + Math.abs(this.base[i]));
          sums[1] += w * family.lossError(this, i);
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

  Object.assign(shared, { Family, TwoSidedFamily });
})(typeof window === "undefined" ? globalThis : window);
