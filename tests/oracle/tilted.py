"""delta(epsilon) of T equal rounds in 80-bit floats, with an error bar; independent of dplib, needs NumPy and mpmath.

Rounds are a mixture pair: P = sum_j p_j N(a_j, 1) against Q = N(0, 1), R = dP/dQ, T of them; remove is P against Q, add
is Q against P. Four routes, none of which knows the others:

- `contour`: delta = (1/2 pi i) int M(z)^T e^{-z eps} / (z (z + 1)) dz along Re z = c > 0, and 1 - delta along -1 < c < 0 where
  that is the small one; M(z) = E_Q[R^(1+z)] (remove), E_Q[R^-z] (add). Trapezoid sums in both variables. The far end is
  cut by a smooth window, that is, delta is averaged with a kernel far narrower than what it varies over: so rare sampling,
  where M does not decay, needs no far end either. Where few rounds hold a participation, M is cut by smooth steps in u
  into layers, and the differences of their T-th powers are integrated along lines of their own, so that little cancels.
  Three lines c with steps, periods and windows of their own;
  the value is that of the first, the error bar ten times the largest deviation, and what rounding may do.
- `lattice`: a proved bracket up to rounding: cells of the loss, exact masses, T-fold by FFT under a tilt. Above, each
  cell's mass goes to its two ends so that P and Q keep theirs; below, it goes to one point, rounded down.
- `one_round`: T = 1, the closed form in 50 digits.
- `gaussian`: one sensitivity in every round (q = 1), the closed form in 50 digits.

A value is a dict: `small` says which of "delta" and "miss" = 1 - delta is the smaller one, `log` is its logarithm as a
string ("-inf" for a delta of zero), `error` bounds its relative error, `slope` is |d log / d eps|, `route` the route.
"""

import math

import mpmath
import numpy as np

REAL = np.longdouble
ROUNDING = float(np.finfo(REAL).eps)
LOG_TOLERANCE = 39.0  # 1e-17: aliasing, truncation
DEEP = 52.0  # nodes further than this below the largest are left out
MANY = 20.0  # expected participations up to which M is taken apart
DEEPEST = 1e3  # log delta below minus this is not asked
ENOUGH, ACCEPTED = 1e-11, 1e-6  # error bars: no further end is tried, and none above is a value
MOST_NODES, MOST_WORK = 200_000, 3e7


class Beyond(Exception):
    """No value at an affordable cost; the message says why."""


# ---------------------------------------------------------------- the pair


def binomial_law(k, q):
    """Sensitivities 0..k and their probabilities, 80 bits."""
    q = REAL(q)
    j = np.arange(1, k + 1, dtype=REAL)
    if q == 1:
        return np.array([REAL(k)]), np.array([REAL(1)])
    log_first = k * np.log1p(-q)
    logs = np.concatenate([[log_first], log_first + np.cumsum(np.log((k - j + 1) / j)) + j * (np.log(q) - np.log1p(-q))])
    return np.arange(k + 1).astype(REAL), np.exp(logs)


def hypergeometric_law(batch, n, k):
    """Sensitivities 2 j, j how many of k special records among n + k are in a batch; 80 bits."""
    least = max(0, batch - n)
    most = min(k, batch)
    j = np.arange(least + 1, most + 1, dtype=REAL)
    ratios = np.log((k - j + 1) / j) + np.log(REAL(batch) - j + 1) - np.log(REAL(n) - batch + j)
    logs = np.concatenate([[REAL(0)], np.cumsum(ratios)])
    if least == 0:  # the first one is a product of k factors near 1: no cancellation
        i = np.arange(1, k + 1, dtype=REAL)
        logs += np.sum(np.log1p(-REAL(batch) / (REAL(n) + i)))
        weights = np.exp(logs)
    else:
        weights = np.exp(logs - logs.max())
        weights /= weights.sum()
    return 2 * np.arange(least, most + 1).astype(REAL), weights


class Pair:
    """Shifts a_j (sensitivity over sigma) and probabilities p_j, in increasing order."""

    def __init__(self, sensitivities, probabilities, sigma):
        keep = probabilities > 0
        self.p = probabilities[keep]
        self.a = sensitivities[keep] / REAL(sigma)
        self.log_p = np.log(self.p)
        self.still = self.p[self.a == 0].sum()  # the probability of no shift: R is above it
        self.shifted = self.a > 0
        gaps = np.diff(self.a)
        self.gap = float(gaps.max()) if len(gaps) else 0.0
        self.low, self.high = float(self.a[0]), float(self.a[-1])

    def log_ratio(self, u):
        """log R(u), without cancellation where R is near 1."""
        out = np.empty(len(u), REAL)
        rows = max(1, 400_000 // len(self.a))
        for start in range(0, len(u), rows):
            x = u[start : start + rows, None] * self.a - self.a * self.a / 2
            near = np.expm1(np.minimum(x, 50)) @ self.p
            terms = x + self.log_p
            top = terms.max(axis=1)
            far = top + np.log(np.exp(terms - top[:, None]).sum(axis=1))
            out[start : start + rows] = np.where(np.abs(near) < 0.5, np.log1p(np.maximum(near, -0.9)), far)
        return out


def pair_of(setting):
    if setting["kind"] == "PoissonDPSGD":
        sigma, q, _, k = setting["arguments"]
        return Pair(*binomial_law(k, q), sigma)
    sigma, batch, n, _, k = setting["arguments"]
    return Pair(*hypergeometric_law(batch, n, k), sigma)


def rounds_of(setting):
    return setting["arguments"][-2]


# ------------------------------------------------------------ moments, roughly


def nodes(pair, power, step, shift=0.0):
    """Nodes in u whose part in E_Q[R^power] is not negligible, their log R, and their normalised log weights."""
    reach = math.sqrt(2 * DEEP)
    low, high = min(0.0, power * pair.high) - reach, max(0.0, power * pair.high) + reach
    if power > 0:
        low += power * pair.low
    elif power < 0:
        high += power * pair.low
    count = (high - low) / step
    if count * max(1, len(pair.a) / 8) > MOST_NODES:
        raise Beyond(f"{count:.3g} nodes in u")
    u = (np.arange(math.floor(low / step), math.ceil(high / step) + 1) + REAL(shift)) * REAL(step)
    loss = pair.log_ratio(u)
    log_weight = REAL(power) * loss - u * u / 2 + np.log(REAL(step)) - np.log(8 * np.arctan(REAL(1))) / 2
    keep = log_weight > log_weight.max() - DEEP
    return loss[keep], log_weight[keep]


def nodes_of_layer(pair, power, step, shift, low_cut, high_cut):
    """As `nodes`, for the part of Q below the smooth step at high_cut, with the share of each that is above the one at low_cut."""
    reach = math.sqrt(2 * DEEP)
    low, high = min(0.0, power * pair.high) - reach, max(0.0, power * pair.high) + reach
    if high_cut is not None:
        high = min(high, high_cut + 6 * STEP_WIDTH)
    if low_cut is not None:
        high = max(high, low_cut + reach)
    if (high - low) / step * max(1, len(pair.a) / 8) > MOST_NODES:
        raise Beyond(f"{(high - low) / step:.3g} nodes in u")
    u = (np.arange(math.floor(low / step), math.ceil(high / step) + 1) + REAL(shift)) * REAL(step)
    loss = pair.log_ratio(u)
    log_weight = REAL(power) * loss - u * u / 2 + np.log(REAL(step)) - np.log(8 * np.arctan(REAL(1))) / 2
    below = _below(u, high_cut)
    if low_cut is None:
        outer = below
    else:  # the difference of two steps, from the side where both are small
        between = np.where(u < low_cut + 1, _below(-u, -low_cut) - (1 - below), below - _below(u, low_cut))
        if high_cut is not None:
            between = np.where(u < low_cut + 1, _below(-u, -low_cut) - _below(-u, -high_cut), between)
        outer = np.maximum(between, 0)
    log_weight = log_weight + np.log(np.maximum(below, REAL("1e-4900")))
    share = outer / np.maximum(below, REAL("1e-4900"))
    log_outer = log_weight + np.log(np.maximum(share, REAL("1e-4900")))
    keep = (log_weight > log_weight.max() - DEEP) | (log_outer > log_outer.max() - DEEP)
    return loss[keep], log_weight[keep], share[keep] if low_cut is not None else None


STEP_WIDTH = 0.8


def _below(u, cut):
    """A smooth step, 1 far below the cut and 0 far above it, doubly exponentially; analytic in |Im u| < STEP_WIDTH pi / 2."""
    if cut is None:
        return np.ones(len(u), REAL)
    x = np.clip((u - cut) / STEP_WIDTH, -8, 8)
    return 1 / (1 + np.exp(2 * np.sinh(x)))


def fine(pair, power):
    """A step in u at which the trapezoid rule is exact to 80 bits.

    R has its zeros about pi / gap away from the real axis; and a negative power makes narrow peaks: the exponent is
    curved up to 1 + |power| (log R)'', where (log R)'' is a variance of the shifts.
    """
    strip = min(math.sqrt(2 * 45.0), 0.9 * math.pi / pair.gap if pair.gap else 9.0)
    step = min(2 * math.pi * strip / 46.0, 0.6)
    if power < 0:
        reach = math.sqrt(2 * DEEP)
        u = np.linspace(power * pair.high - reach, reach, 160).astype(REAL)
        loss = pair.log_ratio(u)
        x = u[:, None] * pair.a - pair.a * pair.a / 2 + pair.log_p - loss[:, None]
        part = np.exp(np.minimum(x, 0))
        variance = part @ pair.a**2 - (part @ pair.a) ** 2
        log_weight = power * loss - u * u / 2
        variance = variance[log_weight > log_weight.max() - DEEP].max()
        step /= math.sqrt(1 + abs(power) * max(float(variance), 0.0))
    return step


class Rough:
    """T log M on the real axis, enough to choose by; remembers what it was asked."""

    def __init__(self, pair, rounds, direction, epsilon, low_cut=None, high_cut=None):
        self.pair, self.rounds, self.epsilon, self.low_cut, self.high_cut = pair, rounds, epsilon, low_cut, high_cut
        self.layered = low_cut is not None or high_cut is not None
        self.sign = 1 if direction == "remove" else -1
        self.known = {}

    def power(self, c):
        return 1 + c if self.sign > 0 else -c

    def moments(self, c):
        """log M(c)^T, or of a layer A(c)^T - B(c)^T, and mean and variance of the loss under the tilt c."""
        if c not in self.known and self.layered:
            power = self.power(c)
            step = min(0.2, 1.7 * fine(self.pair, power))
            loss, log_weight, share = nodes_of_layer(self.pair, power, step, 0.0, self.low_cut, self.high_cut)
            top = log_weight.max()
            w = np.exp(log_weight - top)
            total = w.sum()
            outer = w if share is None else w * share
            part = outer.sum()
            if not part > 0:
                raise Beyond("an empty layer")
            mean = float(outer @ loss / part)
            variance = float(outer @ (loss - mean) ** 2 / part)
            log_part = REAL(0)
            if share is not None:
                log_part = np.log(-np.expm1(self.rounds * np.log1p(-min(part / total, 1 - REAL(1e-19)))))
            self.known[c] = (self.rounds * float(top + np.log(total)) + float(log_part), mean, variance)
        if c not in self.known:
            loss, log_weight = nodes(self.pair, self.power(c), 1.7 * fine(self.pair, self.power(c)))
            loss = self.sign * loss
            top = log_weight.max()
            w = np.exp(log_weight - top)
            total = w.sum()
            mean = float((w @ loss) / total)
            variance = float((w @ (loss - mean) ** 2) / total)
            self.known[c] = (self.rounds * float(top + np.log(total)), self.rounds * mean, self.rounds * variance)
        return self.known[c]

    def bound(self, c):
        """Log of the integrand at c: on the right of 0 bounds log delta, on the left log(1 - delta)."""
        return self.moments(c)[0] - c * self.epsilon - math.log(abs(c)) - math.log1p(c)

    def right(self):
        """c > 0 with the smallest bound, by golden section in log c."""
        return _golden(lambda x: self.bound(math.exp(x)), -12.0, 7.0, math.exp)

    def left(self):
        return _golden(lambda x: self.bound(-1 / (1 + math.exp(x))), -7.0, 12.0, lambda x: -1 / (1 + math.exp(x)))


def _golden(value, low, high, back):
    ratio = (math.sqrt(5) - 1) / 2

    def careful(x):
        try:
            return value(x)
        except (Beyond, OverflowError):
            return math.inf

    x, y = high - ratio * (high - low), low + ratio * (high - low)
    fx, fy = careful(x), careful(y)
    while high - low > 0.03:
        if fx <= fy:
            high, y, fy = y, x, fx
            x = high - ratio * (high - low)
            fx = careful(x)
        else:
            low, x, fx = x, y, fy
            y = low + ratio * (high - low)
            fy = careful(y)
    best = (low + high) / 2
    found = careful(best)
    if found == math.inf:
        raise Beyond("no moment is affordable")
    return back(best), found


def period(rough, c, log_value):
    """How far apart the copies that a trapezoid sum adds must be: each at most e^-39 of the value."""
    need = LOG_TOLERANCE - log_value
    mass = rough.moments(0.0)[0] if rough.layered else 0.0  # what is there at all
    sides = [(need + min(mass, 0.0)) / abs(c)]
    if c > 0:
        tries = [c * f for f in (1.03, 1.1, 1.25, 1.5, 2, 3, 5, 9, 20)]
    else:
        tries = [c + (-1 - c) * f for f in (0.05, 0.15, 0.3, 0.6, 0.9)]
        sides.append((rough.epsilon + need) / (1 + c))
    other = [math.inf] if c > 0 else [sides.pop()]
    for t in tries:
        try:
            other.append((rough.bound(t) + need) / abs(t - c))
        except (Beyond, OverflowError):
            break
    return max(*sides, min(other))


# -------------------------------------------------------------------- contour


def _window(t):
    """1 up to about t = .2, 0 from about t = 1, with a Fourier transform that falls like a Gaussian."""
    return np.array([math.erfc(6.2 * (2 * float(x) - 1.0)) / 2 for x in t]).astype(REAL)


def _log1p(z):
    """log(1 + z) without the cancellation of NumPy's, which takes the logarithm of the sum."""
    x, y = z.real, z.imag
    return np.log1p(x * (2 + x) + y * y) / 2 + 1j * np.arctan2(y, 1 + x)


def _line(rough, c, log_value, end, step_factor, shift):
    """log|integral| along Re z = c with two windows, [(value, slope)], and how much of it cancelled."""
    pair, rounds, sign = rough.pair, rough.rounds, rough.sign
    h = 2 * math.pi / period(rough, c, log_value)
    count = math.ceil(end / h) + 1
    power = rough.power(c)
    step = step_factor * fine(pair, power)
    if rough.layered:
        step = min(step, 0.17 * step_factor)

    def parts(step):
        if rough.layered:
            return nodes_of_layer(pair, power, step, shift, rough.low_cut, rough.high_cut)
        return *nodes(pair, power, step, shift), None

    loss, log_weight, share = parts(step)
    # The phase e^{iy loss} oscillates: so many nodes that the trapezoid rule sees it.
    slopes = np.abs(np.diff(loss)).max() / step if len(loss) > 1 else REAL(0)
    finer = 2 * math.pi / (1.2 * end * float(slopes) + 2 * math.pi * step_factor / step)
    if finer < 0.75 * step:
        loss, log_weight, share = parts(step_factor * finer)
    if len(loss) * count * (1 if share is None else 2) > MOST_WORK:
        raise Beyond(f"{len(loss)} x {count} evaluations")
    top = log_weight.max()
    weight = np.exp(log_weight - top)
    first = weight.sum()
    weight /= first
    log_first = top + np.log(first)  # log M(c)
    mean = weight @ loss
    block = max(1, math.isqrt(count))
    turns = np.exp(1j * (REAL(h) * np.arange(block, dtype=REAL))[:, None] * (loss - mean)[None, :] * sign)
    starts = REAL(h) * block * np.arange(-(-count // block), dtype=REAL)
    moments, outer = [], []
    for i in range(0, len(starts), 64):
        begin = np.exp(1j * starts[i : i + 64, None] * (loss - mean)[None, :] * sign) * weight
        moments.append((begin @ turns.T).ravel())
        if share is not None:
            outer.append(((begin * share) @ turns.T).ravel())
    m = np.concatenate(moments)[:count]
    y = REAL(h) * np.arange(count, dtype=REAL)
    z = REAL(c) + 1j * y
    # M(z)^T e^{-z eps} without the factor M(c)^T e^{-c eps}
    with np.errstate(divide="ignore", invalid="ignore"):
        log_m = np.log(m)
        spin = np.exp(rounds * log_m + 1j * y * (rounds * sign * mean - REAL(rough.epsilon)))
        if share is not None:  # M^T - A^T = M^T (1 - (1 - B / M)^T)
            spin = spin * -np.expm1(rounds * _log1p(-np.concatenate(outer)[:count] / m))
    spin = np.where(m == 0, 0, spin)
    spin[0] /= 2
    base = rounds * log_first - REAL(c) * REAL(rough.epsilon) + np.log(REAL(h)) - np.log(4 * np.arctan(REAL(1)))
    found = []
    for cut in (1.0, 0.73):
        window = _window(y / (cut * h * (count - 1)))
        terms = (spin / (z * (z + 1))).real * window
        value = terms.sum()
        slope = (spin / (z + 1)).real @ window
        turned = value if c > 0 else -value
        if not turned > 0:
            raise Undecided("the sum has the wrong sign")
        found.append((base + np.log(turned), slope / value, np.abs(terms).sum() / turned))
    rounding = 4 * ROUNDING * rounds * (1 + abs(power) * float(np.abs(loss).max())) + 16 * ROUNDING
    return found, rounding


def contour(pair, rounds, direction, epsilon):
    """The value, or Beyond."""
    if direction == "remove" and rounds * float(1 - pair.still) < MANY:
        cuts = _cuts(pair, epsilon)
        if cuts:
            return _layers(pair, rounds, epsilon, cuts)
    return _integrated(Rough(pair, rounds, direction, epsilon))


def _cuts(pair, epsilon):
    """Values of u between the layers: losses of 0.6, 2, 8 and 40 epsilon, where they are far enough apart."""
    cuts = []
    for part in (0.6, 2.0, 8.0, 40.0):
        cut = float(_threshold(pair, part * epsilon)) - (STEP_WIDTH if part < 1 else -STEP_WIDTH)
        if cut > (cuts[-1] + 2.5 if cuts else 1.0) and cut < 2000:
            cuts.append(cut)
    return cuts


def _layers(pair, rounds, epsilon, cuts):
    """M^T as a sum of (M up to a cut)^T - (M up to the cut below)^T, each along lines of its own."""
    layers = [Rough(pair, rounds, "remove", epsilon, low, high) for low, high in zip([None, *cuts], [*cuts, None])]
    bounds = [layer.right()[1] for layer in layers]
    total, error, slope = None, 0.0, 0.0
    for bound, layer in sorted(zip(bounds, layers), key=lambda item: -item[0]):
        if total is not None and bound < float(total) - LOG_TOLERANCE:
            error += math.exp(bound - float(total))
            continue
        found = _integrated(layer)
        if found["small"] == "miss":
            raise Beyond("no small value")
        log = REAL(found["log"])
        new = log if total is None else np.logaddexp(total, log)
        old_share = 0.0 if total is None else float(np.exp(total - new))
        new_share = float(np.exp(log - new))
        error = error * old_share + found["error"] * new_share
        slope = slope * old_share + found["slope"] * new_share
        total = new
    if error > ACCEPTED:
        raise Beyond(f"error {error:.1e}")
    return _value("delta", total, error, slope, "contour")


def _integrated(rough):
    best, bound = rough.right()
    if bound < -DEEPEST:
        raise Beyond("too deep")
    side = 1
    if bound > -0.7 and not rough.layered:
        left, left_bound = rough.left()
        if left_bound < -1.5:
            best, bound, side = left, left_bound, -1
    log_value = bound - 4.0
    spots = _spots(rough, best, log_value)
    end = 2 * 9.6 / math.sqrt(max(rough.moments(c)[2] for c in spots))
    found, reason, worse = None, None, False
    for _ in range(14):
        try:
            new = _agreed(rough, spots, log_value, end, side)
        except Undecided as error:
            reason = f"not stable: {error}"
            if error.seen is not None and error.seen < log_value - 1:  # smaller than thought: copies must be further apart
                log_value = error.seen - 2
                spots = _spots(rough, best, log_value)
                continue
        except Beyond as error:
            reason = str(error)
            break
        else:
            if found is None or new["error"] < found["error"]:
                found = new
            else:
                worse = True
            if found["error"] <= ENOUGH or worse:
                break
        end *= 2
    if found is None:
        raise Beyond(reason)
    return found


class Undecided(Exception):
    """The three lines do not agree yet; `seen` is the smallest value of log delta that they gave."""

    seen = None


def _spots(rough, best, log_value):
    """Three lines: near the saddle, where little cancels, but away from where the moments explode and periods with them."""
    lowest = rough.bound(best)
    choices = []
    for factor in (1.0, 0.88, 0.77, 0.67, 0.56, 0.46, 0.36, 0.28, 0.2):
        c = float(f"{best * factor:.5g}")
        lost = rough.bound(c) - lowest
        if lost < 14:
            choices.append((math.log(period(rough, c, log_value)) + max(lost, 0.0) / 10, c))
    if len(choices) < 3:
        extra = [float(f"{best * factor:.5g}") for factor in (0.96, 0.92, 0.88)]
        choices += [(math.inf, c) for c in extra]
    return [c for _, c in sorted(choices)[:3]]


def _agreed(rough, spots, log_value, end, side):
    found, rounding = [], 0.0
    for n, (c, factor, shift, further) in enumerate(zip(spots, (1.0, 0.83, 0.71), (0.0, 0.31, 0.77), (1.0, 1.13, 1.31))):
        values, rounds_off = _line(rough, c, log_value, end * further, factor, shift)
        found += values
        rounding = max(rounding, rounds_off * float(max(v[2] for v in values)))
        if n == 0 and abs(values[0][0] - values[1][0]) > 1e-6:
            raise Undecided(f"windows differ by {float(abs(values[0][0] - values[1][0])):.1e}")
        if min(v[0] for v in values) < log_value - 1:
            error = Undecided("below what the period was made for")
            error.seen = float(min(v[0] for v in values))
            raise error
    logs = [v[0] for v in found]
    spread = float(max(abs(x - logs[0]) for x in logs))
    error = 10 * spread + rounding
    if error > (1e-2 if rough.layered else ACCEPTED):
        raise Undecided(f"error {error:.1e}")
    slope = float(abs(found[0][1]))
    small = logs[0]
    if not small < 0:
        raise Undecided("not a probability")
    name, other = ("delta", "miss") if side > 0 else ("miss", "delta")
    if small > math.log(0.5):  # the other one is smaller: the same absolute error
        name, complement = other, np.log(-np.expm1(small))
        growth = float(np.exp(small - complement))
        small, error, slope = complement, error * growth, slope * growth
    return _value(name, small, error, slope, "contour")


def _text(number):
    return np.format_float_scientific(number, precision=20, trim="-") if isinstance(number, REAL) else mpmath.nstr(number, 21)


def _value(name, log, error, slope, route):
    error, slope = float(f"{error:.2e}"), float(f"{slope:.4g}")
    return {"small": name, "log": _text(log), "error": error, "slope": slope, "route": route}


ZERO = {"small": "delta", "log": "-inf", "error": 0.0, "slope": 0.0, "route": "zero"}


# -------------------------------------------------------------------- lattice


def lattice(pair, rounds, direction, epsilon, size=1 << 16):
    """Logs of a lower and an upper bound on delta (up to rounding in doubles), and of an estimate between them.

    Per cell of the loss, P and Q keep their masses in the upper bound, whose excess falls as h^2 (connecting the dots);
    in the lower one P's mass moves to the lower edge. The estimate extrapolates the upper ends at h and 2 h.
    """
    rough = Rough(pair, rounds, direction, epsilon)
    best, bound = rough.right()
    c = _spots(rough, best, bound - 4.0)[0]
    span = period(rough, c, bound - 4.0)
    loss, _ = nodes(pair, rough.power(c), fine(pair, rough.power(c)))
    low, high = float((rough.sign * loss).min()), float((rough.sign * loss).max())
    found = {}
    for n in (size // 2, size):
        h = span / n
        first, last = math.floor(low / h) - 1, math.ceil(high / h) + 1
        if last - first > 2_000_000:
            raise Beyond(f"{last - first} cells")
        lower, upper = _cells(pair, rough.sign, np.arange(first, last + 1) * h)
        for name, masses in (("lower", lower), ("upper", upper)):
            found[name, n] = _composed(masses, first, h, n, rounds, c, epsilon)
    estimate = found["upper", size] + np.log1p(-np.expm1(found["upper", size // 2] - found["upper", size]) / 3)
    return {
        "lower": max(found["lower", n] for n in (size // 2, size)),
        "upper": min(found["upper", n] for n in (size // 2, size)),
        "estimate": float(estimate),
    }


def _cells(pair, sign, edges):
    """Logs of the masses at the edges: P's mass at the lower edge of its cell; and P's and Q's kept."""
    u = _inverse(pair, sign * edges)
    if sign < 0:
        u = u[::-1]
    points, weights = np.polynomial.legendre.leggauss(8)
    middle, half = (u[1:] + u[:-1]) / 2, (u[1:] - u[:-1]) / 2
    level = (sign * edges)[:-1] if sign > 0 else (sign * edges)[::-1][:-1]  # log R at the left end of each cell
    h = abs(float(edges[1] - edges[0]))
    # In wide cells the rule is refined: pieces of at most .2.
    pieces = np.maximum(1, np.ceil(half / 0.1)).astype(int)
    which = np.repeat(np.arange(len(half)), pieces)
    number = np.arange(len(which)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    piece = half[which] / pieces[which]
    centre = middle[which] - half[which] + piece * (2 * number + 1)
    q_mass, excess = np.zeros(len(half)), np.zeros(len(half))
    with np.errstate(under="ignore"):
        for x, w in zip(points, weights):
            at = centre + piece * x
            density = w * piece * np.exp(-at * at / 2) / math.sqrt(2 * math.pi)
            ratio = np.exp(level[which]) * np.expm1(np.clip(_log_ratio(pair, at) - level[which], 0.0, h))
            q_mass += np.bincount(which, density, len(half))
            excess += np.bincount(which, density * ratio, len(half))
    p_mass = excess + q_mass * np.exp(level)
    edge = np.zeros(len(edges))
    kept = np.zeros(len(edges))
    if sign > 0:
        # m_low e^{-l} + m_high e^{-l-h} = Q, m_low + m_high = P
        up = excess / -math.expm1(-h)
        edge[:-1] = p_mass
        kept[:-1] += p_mass - up
        kept[1:] += up
    else:
        # The loss is -log R: here Q, N(0, 1), is what the loss is averaged over, and its upper end is the cell's left end.
        total = q_mass[::-1]
        down = excess[::-1] * np.exp(-level[::-1]) / math.expm1(h)
        edge[:-1] = total
        kept[:-1] += down
        kept[1:] += total - down
    return edge, kept


def _log_ratio(pair, u):
    """log R in doubles."""
    a, p, log_p = (x.astype(float) for x in (pair.a, pair.p, pair.log_p))
    out = np.empty(len(u))
    for start in range(0, len(u), 40_000):
        x = u[start : start + 40_000, None] * a - a * a / 2
        near = np.expm1(np.minimum(x, 50)) @ p
        top = (x + log_p).max(axis=1)
        far = top + np.log(np.exp(x + log_p - top[:, None]).sum(axis=1))
        out[start : start + 40_000] = np.where(np.abs(near) < 0.5, np.log1p(np.maximum(near, -0.9)), far)
    return out


def _inverse(pair, levels):
    """u with log R(u) = each level; levels below the range give a u far on the left."""
    low = np.full(len(levels), -40.0 - 2 * pair.high)
    high = np.maximum(0.0, levels.max() / max(pair.high, 1e-300) + pair.high) + 40.0 + np.zeros(len(levels))
    coarse = np.unique(np.concatenate([np.linspace(low[0], high[0], 4000), np.linspace(-12, 12 + pair.high, 4000)]))
    known = _log_ratio(pair, coarse)
    place = np.clip(np.searchsorted(known, levels), 1, len(coarse) - 1)
    low, high = coarse[place - 1], coarse[place]
    a, b = known[place - 1] - levels, known[place] - levels
    u = low + (high - low) * np.clip(-a / np.where(b > a, b - a, 1.0), 0.0, 1.0)
    for _ in range(40):  # secant within a bracket (Illinois)
        value = _log_ratio(pair, u) - levels
        right = value > 0
        a = np.where(right, a / np.where(b * value > 0, 2.0, 1.0), value)
        b = np.where(right, value, b)
        low, high = np.where(right, low, u), np.where(right, u, high)
        step = np.clip(-a / np.where(b > a, b - a, 1.0), 0.01, 0.99)
        new = low + (high - low) * step
        if np.abs(new - u).max() < 1e-14 * (1 + np.abs(u).max()):
            break
        u = new
    return u


def _composed(masses, first, h, n, rounds, c, epsilon):
    """log delta of the T-fold law on the lattice of period n h."""
    losses = (first + np.arange(len(masses))) * h
    with np.errstate(divide="ignore"):
        logs = np.log(np.maximum(masses, 0.0)) + c * losses
    top = logs.max()
    weights = np.bincount((first + np.arange(len(masses))) % n, np.exp(logs - top), n)
    total = weights.sum()
    law = np.fft.irfft((np.fft.rfft(weights / total)) ** rounds, n)
    start = math.ceil(epsilon / h)
    index = start + np.arange(n)
    x = index * h - epsilon
    value = float((law[index % n] * np.exp(-c * x) * -np.expm1(-x)).sum())
    return rounds * (float(top) + math.log(total)) - c * epsilon + math.log(value)


# ------------------------------------------------ lattice without cancellation


def positive(pair, rounds, direction, epsilon, size=12_000):
    """The value where the contour cancels: few rounds with a participation. Masses are only ever added and multiplied.

    The two-point cells of `lattice`, convolved directly on a window of the loss. What leaves it upwards can no longer come
    back below epsilon: its P and its Q mass are kept, which is all that delta needs; what leaves it downwards cannot
    come back above epsilon. The result is an upper bound, up to rounding, that falls as h^2; the value extrapolates from
    h and 2 h, and the error bar is all by which the bounds at 4 h, 2 h and h differ, if they differ less and less.
    """
    floor = -float(np.log(pair.still)) * rounds  # how far the loss can fall (remove) or rise (add) in all rounds
    low, high = (-floor, 2 * epsilon + 2 * floor) if direction == "remove" else (epsilon - floor, floor)
    found = []
    for n in (size // 4, size // 2, size):
        h = (high - low) / n
        first, last = math.floor(low / h) - 2, math.ceil(high / h) + 2
        law = _window_law(pair, 1 if direction == "remove" else -1, first, last, h)
        total = None
        left = rounds
        while left:
            if left & 1:
                total = law if total is None else _joined(total, law, first, h)
            left >>= 1
            if left:
                law = _joined(law, law, first, h)
        masses, p_out, q_out = total
        x = np.arange(first, last + 1) * h - epsilon
        delta = float(masses[x > 0] @ -np.expm1(-x[x > 0])) + p_out - math.exp(epsilon) * q_out
        if not 0 < delta < 0.5:
            raise Beyond("not small, or nothing left")
        found.append(math.log(delta))
    if abs(found[1] - found[2]) > abs(found[0] - found[1]) + 1e-12:
        raise Beyond("bounds that do not settle: they say nothing about what is left")
    gap = (found[1] - found[2]) / 3
    error = abs(found[0] - found[1]) + abs(found[1] - found[2]) + 1.6e-15 * rounds + 1e-12
    if error > 1e-2:
        raise Beyond(f"error {error:.1e}")
    slope = float(masses[x > 0] @ np.exp(-x[x > 0])) + math.exp(epsilon) * q_out
    return _value("delta", REAL(found[2]) - REAL(gap), error, slope / math.exp(found[2]), "positive lattice")


def _window_law(pair, sign, first, last, h):
    """One round: masses at first h ... last h, and the P and Q mass above."""
    edges = np.arange(first, last + 1) * h
    _, masses = _cells(pair, sign, edges)
    masses = np.maximum(masses, 0.0)
    if sign < 0:
        return masses, 0.0, 0.0
    u = _inverse(pair, edges[-1:])[0]
    p, a = pair.p.astype(float), pair.a.astype(float)
    above = lambda x: math.erfc(x / math.sqrt(2)) / 2
    return masses, float(sum(w * above(u - shift) for w, shift in zip(p, a))), above(u)


def _joined(one, two, first, h):
    """Two independent laws on the same window together."""
    (a, a_p, a_q), (b, b_p, b_q) = one, two
    n = len(a)
    x = (first + np.arange(n)) * h
    whole = np.convolve(a, b)  # index i + j stands for 2 first + i + j
    start = -first
    masses = whole[start : start + n] if start + n <= len(whole) else np.pad(whole[start:], (0, start + n - len(whole)))
    over = whole[start + n :]
    with np.errstate(over="ignore"):
        q_over = float(over @ np.exp(-(first + n + np.arange(len(over))) * h)) if len(over) else 0.0
        a_mass_q, b_mass_q = float(a @ np.exp(-x)), float(b @ np.exp(-x))
    p_out = float(over.sum()) + a_p * float(b.sum()) + float(a.sum()) * b_p + a_p * b_p
    q_out = q_over + a_q * b_mass_q + a_mass_q * b_q + a_q * b_q
    return masses, p_out, q_out


# --------------------------------------------------------------- closed forms


def _tail(x):
    return mpmath.erfc(x / mpmath.sqrt(2)) / 2


def _closed(delta, slope_mass, route):
    """From delta and -d delta / d eps, both mpf."""
    miss = 1 - delta
    small = min(delta, miss)
    if small <= mpmath.mpf(10) ** -(mpmath.mp.dps - 26) and miss < delta:
        raise Beyond("too near to 1")
    digits = float(mpmath.mpf(10) ** -(mpmath.mp.dps - 8) / (miss if miss < delta else 1))
    error = digits + 1e-19 * float(1 - mpmath.log(small))  # the logarithm is printed to 21 digits
    return _value("miss" if miss < delta else "delta", mpmath.log(small), error, float(slope_mass / small), route)


def gaussian(mu_squared, epsilon):
    """T rounds with one sensitivity: mu^2 = T a^2 as a Fraction's mpf."""
    with mpmath.workdps(60):
        mu, eps = mpmath.sqrt(mu_squared), mpmath.mpf(epsilon)
        up, low = _tail(eps / mu - mu / 2), mpmath.exp(eps) * _tail(eps / mu + mu / 2)
        if low > up * (1 - mpmath.mpf(10) ** -35):
            raise Beyond("cancels")
        return _closed(up - low, low, "gaussian")


def one_round(setting, direction, epsilon):
    """T = 1: threshold by the secant rule, tails in 60 digits; the law of the sensitivity in 60 digits too."""
    kind, arguments = setting["kind"], setting["arguments"]
    with mpmath.workdps(60):
        sigma, k, eps = mpmath.mpf(arguments[0]), arguments[-1], mpmath.mpf(epsilon)
        if kind == "PoissonDPSGD":
            q = mpmath.mpf(arguments[1])
            law = [(mpmath.mpf(j), mpmath.binomial(k, j) * q**j * (1 - q) ** (k - j)) for j in range(k + 1)]
        else:
            batch, n = arguments[1:3]
            whole = math.comb(n + k, batch) if n + k < 5000 else None
            law = []
            first = mpmath.mpf(1)
            for i in range(1, k + 1):
                first *= mpmath.mpf(n + i - batch) / (n + i)
            if first == 0 and whole is None:
                raise Beyond("everyone is always in the batch")
            weight = first
            for j in range(min(k, batch) + 1):
                if whole is not None:
                    weight = mpmath.mpf(math.comb(k, j) * math.comb(n, batch - j)) / whole
                law.append((mpmath.mpf(2 * j), weight))
                if whole is None:
                    weight = weight * (k - j) * (batch - j) / ((j + 1) * mpmath.mpf(n - batch + j + 1))
        law = [(s / sigma, w) for s, w in law if w > 0]
        level = eps if direction == "remove" else -eps
        if direction == "add" and law[0][0] == 0 and mpmath.log(law[0][1]) >= level:
            return ZERO
        pair = pair_of(setting)
        u = mpmath.mpf(float(_threshold(pair, float(level))))

        def distance(x):
            return mpmath.log(mpmath.fsum(w * mpmath.exp(a * x - a * a / 2) for a, w in law)) - level

        x, y = u, u + mpmath.mpf("1e-9") * (1 + abs(u))
        fx, fy = distance(x), distance(y)
        for _ in range(12):
            if fy == fx or abs(fy) < mpmath.mpf(10) ** -52:
                break
            x, y, fx = y, y - fy * (y - x) / (fy - fx), fy
            fy = distance(y)
        if abs(fy) > mpmath.mpf(10) ** -45:
            raise Beyond("no threshold")
        if direction == "remove":
            up = mpmath.fsum(w * _tail(y - a) for a, w in law)
            low = mpmath.exp(eps) * _tail(y)
        else:
            up = _tail(-y)
            low = mpmath.exp(eps) * mpmath.fsum(w * _tail(a - y) for a, w in law)
        if low > up * (1 - mpmath.mpf(10) ** -30):
            raise Beyond("cancels")
        return _closed(up - low, low, "one round")


def _threshold(pair, level):
    """u with log R(u) = level, by bisection in 80 bits."""
    low, high = REAL(-1), REAL(1)
    while pair.log_ratio(np.array([low]))[0] > level:
        low *= 2
        if low < -1e8:
            raise Beyond("threshold too far away")
    while pair.log_ratio(np.array([high]))[0] < level:
        high *= 2
        if high > 1e8:
            raise Beyond("threshold too far away")
    for _ in range(45):
        middle = (low + high) / 2
        low, high = (middle, high) if pair.log_ratio(np.array([middle]))[0] < level else (low, middle)
    return (low + high) / 2


# ------------------------------------------------------------------ the answer


def value(setting):
    """The value of a setting {kind, arguments, direction, epsilon}, by the first route that is made for it."""
    direction, epsilon, rounds = setting["direction"], setting["epsilon"], rounds_of(setting)
    pair = pair_of(setting)
    if len(pair.a) == 1:
        with mpmath.workdps(60):
            sensitivity = setting["arguments"][-1] if setting["kind"] == "PoissonDPSGD" else 2 * setting["arguments"][-1]
            return gaussian(rounds * (sensitivity / mpmath.mpf(setting["arguments"][0])) ** 2, epsilon)
    if rounds == 1:
        return one_round(setting, direction, epsilon)
    if direction == "add" and pair.still > 0 and epsilon >= -rounds * float(np.log(pair.still)):
        return ZERO
    try:
        return contour(pair, rounds, direction, epsilon)
    except Beyond:
        if pair.still == 0 or rounds * float(1 - pair.still) > MANY:
            raise
        return positive(pair, rounds, direction, epsilon)
