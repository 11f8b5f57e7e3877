"""Scalar and vector mixture-of-Gaussians pairs [G-2.8], [M-4.2].

A mixture pair is P = sum_j p_j N(s_j, sigma^2) against Q = N(0, sigma^2) with
sensitivities s_j >= 0. It dominates one round of every sampled Gaussian
mechanism in this book. *Remove* means (P, Q): the record is in the first
dataset. *Add* means (Q, P).

Inside the module everything is standardised: u = x / sigma, shifts
a_j = s_j / sigma. The loss log(P/Q) = log sum_j p_j exp(a_j u - a_j^2 / 2) is
increasing and convex-ish in u; its derivative is the posterior mean of a_J.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from ._base import validate as check
from ._base.lazy_scipy import special
from ._base.log_space import EPS, blocks, complex_log1p, inverse_log_sum, log_sum, log_sum_exp  # noqa: F401
from ._base.weights import cut, is_one_sided, large_binomial, log_choose, stride, walk
from .gaussian import LOG_SQRT_2PI, log_tail_difference
from .results import NoBracketError

_THIN_FROM = 2000  # components


@dataclass(frozen=True, eq=False)
class Mixture:
    """A scalar mixture-of-Gaussians pair.

    Parameters
    ----------
    sensitivities : shape (m,), each 0 or at least 1e-300 noise multipliers, in the units of the clip norm.
    probabilities : shape (m,), non-negative, summing to 1 within 1e-12.
    noise_multiplier : sigma > 0, the standard deviation of the noise.

    Equal sensitivities are merged, zero-probability ones dropped, the rest sorted.
    Raises ValueError or TypeError on anything else.
    """

    sensitivities: np.ndarray
    probabilities: np.ndarray
    noise_multiplier: float

    def __post_init__(self):
        sigma = check.noise_multiplier(self.noise_multiplier)
        s = check.vector("sensitivities", self.sensitivities, at_least=0)
        p = check.probabilities("probabilities", self.probabilities, len(s))
        least = s.min(where=s > 0, initial=math.inf)
        if least / sigma < 1e-300:
            raise ValueError(f"sensitivities must be 0 or at least 1e-300 noise multipliers; got {float(least)!r} with {sigma!r}")
        with np.errstate(divide="ignore"):
            self._set(sigma, s, np.log(p), log_probability_error=4 * EPS)

    @classmethod
    def _from_logs(cls, sigma, sensitivities, log_probabilities, error, one_sided=False, longer=None):
        """Constructor for weights known in logs (a binomial tail can underflow)."""
        mixture = object.__new__(cls)
        mixture._set(sigma, np.asarray(sensitivities, float), log_probabilities, error, one_sided, longer)
        return mixture

    def _set(self, sigma, s, log_p, log_probability_error, one_sided=False, longer=None):
        values, group = np.unique(s, return_inverse=True)
        merged = np.full(len(values), -np.inf)
        np.logaddexp.at(merged, group, log_p)
        keep = merged > -np.inf
        values, merged = values[keep], merged[keep]
        merged -= log_sum_exp(merged)
        if len(values) == 1:
            merged[:] = 0.0
        for name, value in (
            ("sensitivities", values),
            ("probabilities", np.exp(merged)),
            ("noise_multiplier", sigma),
            ("shifts", values / sigma),
            ("log_probabilities", merged),
            # Bound on the rounding error of each log-probability that matters.
            ("log_probability_error", log_probability_error),
            # Whether small sensitivities are left out that only the reference sees: see `check_direction`.
            ("one_sided", one_sided),
            # Makes the mixture with them.
            ("_longer", longer),
        ):
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
            object.__setattr__(self, name, value)
        if not np.all(np.isfinite(self.shifts * self.shifts)):
            raise ValueError(
                "noise_multiplier must not be so small that (sensitivity / noise_multiplier)^2 "
                f"overflows; got {sigma!r}"
            )

    def facing(self, direction):
        """The mixture to compute with in this direction: this one, or for "add" the one with the components that it sees.

        Of more than 20,000 trials the weights below e^-1500 are left out. If the reference lies so far below the rest,
        one round's loss in direction "add" is above 1000, and these weights decide it. Raises NoBracketError where the
        reference is more than a million trials below the rest.
        """
        found = self._for_add if direction == "add" and self.one_sided else self
        found.check_direction(direction)
        return found

    @cached_property
    def _for_add(self):
        return self._longer() if self._longer else self

    def check_direction(self, direction):
        """Raises NoBracketError for "add" where components that this mixture has left out decide it: see `facing`."""
        if direction == "add" and self.one_sided:
            raise NoBracketError(
                f"no bracket in direction 'add': a loss of one round above 1000, from sensitivities below {self.sensitivities[0]:g} "
                "with probabilities below e^-1500, which are left out; direction 'remove' is the larger one"
            )

    def __repr__(self):
        return (
            f"Mixture({len(self.sensitivities)} sensitivities in "
            f"[{self.sensitivities[0]:g}, {self.sensitivities[-1]:g}], "
            f"noise_multiplier={self.noise_multiplier:g})"
        )

    @property
    def is_trivial(self) -> bool:
        """All sensitivities are 0: the two sides are equal and epsilon is 0."""
        return self.sensitivities[-1] == 0

    @property
    def is_gaussian(self) -> bool:
        """A single sensitivity: the plain Gaussian mechanism."""
        return len(self.sensitivities) == 1

    # -- public functions of the observed value x (in the units of the noise) --

    def loss(self, x):
        """Privacy loss log(P/Q)(x) in the remove orientation; increasing in x."""
        x, scalar = check.grid("x", x)
        return _like(self.log_ratio(x.ravel() / self.noise_multiplier).reshape(x.shape), scalar)

    def inverse_loss(self, loss):
        """The x at which the loss is `loss`; -inf at or below the loss's infimum."""
        loss, scalar = check.grid("loss", loss)
        u = self.inverse_log_ratio(loss.ravel()).reshape(loss.shape)
        return _like(u * self.noise_multiplier, scalar)

    def density(self, x):
        """Density of P at x."""
        x, scalar = check.grid("x", x)
        u = np.clip(x.ravel() / self.noise_multiplier, -1e150, 1e150)
        log_density = self.log_density(u).reshape(x.shape)
        return _like(np.exp(log_density) / self.noise_multiplier, scalar)

    def reference_density(self, x):
        """Density of Q at x."""
        x, scalar = check.grid("x", x)
        u = np.clip(x / self.noise_multiplier, -1e150, 1e150)
        return _like(np.exp(-u * u / 2 - LOG_SQRT_2PI) / self.noise_multiplier, scalar)

    def survival(self, x):
        """P(X > x)."""
        x, scalar = check.grid("x", x)
        u = x.reshape(-1, 1) / self.noise_multiplier
        tail = special.ndtr(self.shifts - u) @ self.probabilities
        return _like(tail.reshape(x.shape), scalar)

    def reference_survival(self, x):
        """Q(X > x)."""
        x, scalar = check.grid("x", x)
        return _like(special.ndtr(-x / self.noise_multiplier), scalar)

    def hockey_stick(self, epsilon, direction="remove"):
        """One-step delta in closed form, for every real epsilon (array in, array out).

        A positive sum of Gaussian deltas (no cancellation); relative accuracy
        about 1e-12, limited by the rounding of epsilon itself. direction:
        "remove" or "add". Raises ValueError or TypeError on bad input, NoBracketError
        as `facing`.
        """
        epsilon, scalar = check.grid("epsilon", epsilon)
        mixture = self.facing(check.direction(direction, both=False))
        values = np.exp(mixture.log_hockey_stick(epsilon.ravel(), direction))
        return _like(values.reshape(epsilon.shape), scalar)

    # -- standardised internals, shared with the accountants --

    @cached_property
    def log_floor(self) -> float:
        """Infimum of the log-ratio: log p_0 when some sensitivity is 0, else -inf."""
        if self.sensitivities[0] > 0:
            return -math.inf
        positive = math.fsum(self.probabilities[1:])
        return math.log1p(-positive) if positive < 0.5 else float(self.log_probabilities[0])

    @cached_property
    def variance_bound(self) -> float:
        """Upper bound on sup_u Var(a_J | u), the posterior variance of the shift.

        Popoviciu: at most (range / 2)^2. For equally spaced shifts d * (0..m) with
        log-concave weights the posterior ratios p_{j+1}/p_j fall at least by e^{-t},
        t = d^2, from one j to the next; |J - mode| is then dominated, in likelihood
        ratio, by the weights 1, 2 e^{-t i(i-1)/2} (i >= 1), whose second moment bounds
        the variance. The bound tends to 1 as d -> 0, for any number of components.
        """
        a, log_p = self.shifts, self.log_probabilities
        bound = ((a[-1] - a[0]) / 2) ** 2
        if len(a) > 2:
            gaps = np.diff(a)
            even = np.ptp(gaps) <= 1e-9 * gaps[0] and np.all(np.diff(log_p, 2) <= 0)
            if even and gaps[0] > 1e-3:
                t = gaps[0] ** 2
                i = np.arange(1.0, 4 + math.ceil(10 / gaps[0]))
                weights = 2 * np.exp(-t * i * (i - 1) / 2)
                bound = min(bound, t * (i * i @ weights) / (1 + weights.sum()) * (1 + 1e-9))
        return float(bound)

    def log_ratio(self, u):
        """log(P/Q) at standardised u, shape (n,)."""
        return self._posterior(u, moments=0)[0]

    def log_ratio_and_slope(self, u):
        """(log(P/Q), its derivative = posterior mean of the shift) at u, shape (n,)."""
        return self._posterior(u, moments=1)

    def log_ratio_error(self, log_ratio, slope, u):
        """Bound on the rounding error of log(P/Q) as computed, elementwise (`log_ratio` of either sign)."""
        positive = float(self.probabilities[self.shifts > 0].sum())
        size = np.abs(log_ratio)
        # A small loss is summed as log1p(sum p_j expm1(.)): its error scales with
        # sum p_j |expm1| <= |R - 1| + 2 P(a_J > 0).
        size = np.where(size < 0.3, np.minimum(1 + size, 2 * size + 2 * positive), 1 + size)
        error = (4 * EPS + self.log_probability_error) * size
        return error + 4 * EPS * slope * (np.abs(u) + slope)

    def log_density(self, u):
        """log of the standardised density of P, without the cancellation of loss - u^2/2."""
        a, log_p = self.shifts, self.log_probabilities
        out = np.empty(len(u))
        for rows, parts in blocks(a, log_p, u):
            terms = log_p[parts, None] - (u[rows] - a[parts, None]) ** 2 / 2
            top = terms.max(axis=0)
            terms -= top
            out[rows] = top + np.log(np.exp(terms, out=terms).sum(axis=0))
        return out - LOG_SQRT_2PI

    def inverse_log_ratio(self, y):
        """Standardised u with log_ratio(u) = y, shape (n,); -inf where y <= log_floor."""
        y = np.asarray(y, float)
        u = np.full(y.shape, -np.inf)
        if self.is_trivial:
            return u
        inside = y > self.log_floor
        target = y[inside]
        if self.sensitivities[0] == 0:
            # Solve for the components with a positive shift: log(e^y - p_0).
            positive = math.fsum(self.probabilities[1:])
            small = np.abs(target) < 0.5
            with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
                near = np.log(np.expm1(target) + positive)
                away = target + np.log1p(-np.exp(self.log_floor - target))
            target = np.where(small, near, away)
            a, log_p = self.shifts[1:], self.log_probabilities[1:]
        else:
            a, log_p = self.shifts, self.log_probabilities
        finite = np.isfinite(target)
        result = np.full(target.shape, -np.inf)
        result[finite] = inverse_log_sum(a, log_p, target[finite], self.variance_bound)
        # Where all terms are near their weights, their sum has lost the digits of a small loss: log1p has them.
        top = self.shifts[-1]
        near = np.flatnonzero((np.abs(y[inside]) < 0.3) & (top * (np.abs(result) + top) < 0.5))
        for _ in range(3 if len(near) else 0):
            value, slope = self._near_parts(result[near])
            result[near] -= (value - y[inside][near]) / slope
        u[inside] = result
        return u

    def log_hockey_stick(self, epsilon, direction):
        """log of the one-step delta, shape (n,), any real epsilon.

        remove: u* solves loss = eps; delta = sum_j p_j G(u* - a_j, a_j);
        add: u* solves loss = -eps; delta = sum_j w_j G(-u*, a_j), w the posterior
        at u*; G(x, a) = phi(x) (M(x) - M(x + a)) is the Gaussian delta.
        """
        epsilon = np.asarray(epsilon, float)
        u = self.inverse_log_ratio(epsilon if direction == "remove" else -epsilon)
        out = np.empty(len(epsilon))
        outside = np.isneginf(u)
        # Below its floor the loss is exceeded surely (remove) or never (add).
        with np.errstate(divide="ignore"):
            low = np.log(-np.expm1(np.minimum(epsilon[outside], 0.0)))
        out[outside] = low
        inside = ~outside
        if inside.any():
            out[inside] = self._log_delta_at(u[inside], direction)
        return out

    def _log_delta_at(self, u, direction):
        """log delta at the epsilon whose threshold is u (finite)."""
        self.check_direction(direction)
        positive = self.shifts > 0
        a, log_p = self.shifts[positive], self.log_probabilities[positive]
        if direction == "remove":
            x, log_weights = u[:, None] - a, np.broadcast_to(log_p, (len(u), len(a)))
        else:
            x = np.broadcast_to(-u[:, None], (len(u), len(a)))
            log_weights = log_p + a * (u[:, None] - a / 2) - self.log_ratio(u)[:, None]
        return log_sum_exp(log_weights + log_tail_difference(x, a))

    @cached_property
    def _near_one(self):
        """Ends of the interval of u on which |log(P/Q)| is at most 0.3."""
        return self.inverse_log_ratio(np.array([-0.3, 0.3]))

    def _posterior(self, u, moments):
        u = np.asarray(u, float)
        a, log_p = self.shifts, self.log_probabilities
        low, high = self._near_one if log_p[-1] < 0 else (math.inf, -math.inf)
        near = (u >= low) & (u <= high)
        some, far = near.any(), ~near
        value, slope = np.empty(len(u)), np.empty(len(u) if moments else 0)
        parts = [(near, self._near_parts), (far, lambda x: log_sum(a, log_p, x, moments))]
        for chosen, evaluate in parts if some else parts[1:]:
            found = evaluate(u[chosen] if some else u)
            value[chosen] = found[0]
            if moments:
                slope[chosen] = found[1]
        return (value, slope) if moments else (value,)

    def _near_parts(self, u):
        """(log(P/Q), posterior mean of the shift) where the ratio is near 1.

        There the logarithm would lose the relative accuracy of a small loss:
        log R = log1p(sum_j p_j expm1(a_j u - a_j^2/2)) keeps it.
        """
        a, p = self.shifts, self.probabilities
        value, slope = np.empty(len(u)), np.empty(len(u))
        for rows, parts in blocks(a, self.log_probabilities, u):
            exponent = a[parts, None] * (u[rows] - a[parts, None] / 2)
            share = p[parts, None]
            if exponent.max() < 600:
                terms = share * np.expm1(exponent, out=exponent)
            else:
                # A tiny probability times a huge ratio overflows only if taken apart.
                log_share = self.log_probabilities[parts, None]
                terms = np.where(
                    exponent < 1,
                    share * np.expm1(np.minimum(exponent, 1.0)),
                    np.exp(np.minimum(exponent + log_share, 2.0)) - share,
                )
            # A component that was left out still contributes expm1(-large) = -1.
            left_out = p[: parts.start or 0].sum() + p[parts.stop :].sum() if parts.stop else 0.0
            excess = terms.sum(axis=0) - left_out
            value[rows] = np.log1p(excess)
            terms += share
            slope[rows] = (a[parts] @ terms) / (1 + excess)
        return value, slope


def binomial(trials, probability, noise_multiplier) -> Mixture:
    """Sensitivity Binomial(trials, probability): k records, Poisson rate q [G-3.1].

    trials : k >= 0. probability : q in [0, 1]. noise_multiplier : sigma > 0.
    k = 0 or q = 0 gives the trivial pair, q = 1 the plain Gaussian. Of more than 2000
    components, one may stand for many neighbours, where the noise hides them: what that
    changes, below 1e-16 of P/Q, is part of the rounding error. Beyond k = 20,000 weights below
    e^-1500 are left out: no delta that a float can hold sees them in direction remove, and
    `facing` adds those that direction add sees.
    Cost: at most some tenths of a second and 100 MB, at k = 1e8.

    >>> from dplib import mixtures
    >>> pair = mixtures.binomial(trials=2, probability=0.5, noise_multiplier=1.0)
    >>> print(f"{pair.hockey_stick(0.28093, 'remove'):.4f}")
    0.2899
    """
    k = check.whole("trials", trials, at_least=0, at_most=10**8)
    q = check.probability("probability", probability)
    sigma = check.noise_multiplier(noise_multiplier)
    if k == 0 or q == 0:
        return Mixture._from_logs(sigma, [0.0], np.zeros(1), 0.0)
    if q == 1:
        return Mixture._from_logs(sigma, [float(k)], np.zeros(1), 0.0)
    if k > 1000:
        return _thinned(partial(large_binomial, k, q), 1.0, sigma)
    j = np.arange(k + 1.0)
    choose = log_choose(k)
    hits, misses = j * math.log(q), (k - j) * math.log1p(-q)
    log_p = choose + hits + misses
    # Each term is rounded once; far components (below e^-100) never dominate a sum.
    relevant = log_p > log_p.max() - 100
    error = EPS * float(np.max((choose + np.abs(hits) + np.abs(misses))[relevant]) + 4)
    return Mixture._from_logs(sigma, j, log_p, error)


def hypergeometric(batch_size, dataset_size, group_size, noise_multiplier) -> Mixture:
    """Sensitivity 2 * Hypergeometric(B, n + k, k): fixed batch size [G-3.3].

    batch_size : B, 1 <= B <= n. dataset_size : n >= 1, a lower bound on the
    number of records of the smaller dataset. group_size : k >= 0.
    The factor 2 is there because an inserted record displaces another one. Large groups
    are thinned as in `binomial`.
    """
    n = check.whole("dataset_size", dataset_size, at_least=1)
    b = check.whole("batch_size", batch_size, at_least=1, at_most=n)
    k = check.whole("group_size", group_size, at_least=0, at_most=10**6)
    sigma = check.noise_multiplier(noise_multiplier)
    top = min(b, k)
    if top == 0:
        return Mixture._from_logs(sigma, [0.0], np.zeros(1), 0.0)
    # P(m) is proportional to C(b, m) * C(n + k - b, k - m): the b drawn places
    # hold m of the k marked records. Walk by ratios from the mode outwards.
    j = np.arange(top)
    ratios = np.log((k - j) * (b - j) / ((j + 1.0) * (n - b + j + 1.0)))
    logs, error = walk(ratios, 1.0)
    return _thinned(partial(cut, np.arange(top + 1), logs, ratios, error, top), 2.0, sigma)


def _thinned(weights, unit, sigma, long=False):
    """The mixture with sensitivities unit * support, with no more components than make a difference.

    weights : function that returns support, logs, ratios, error; given the gap of the shifts, those that the reference sees too.
    """
    gap = unit / sigma
    support, logs, ratios, error = weights(gap) if long else weights()
    m, thinning = stride(ratios, gap) if len(support) > _THIN_FROM else (1, 0.0)
    kept = slice(int(np.argmax(logs)) % m, None, m)
    one_sided = is_one_sided(support, logs, gap)
    longer = partial(_thinned, weights, unit, sigma, long=True) if one_sided and not long else None
    return Mixture._from_logs(sigma, unit * support[kept], logs[kept], error + 2 * thinning, one_sided, longer)


def product(probabilities, sensitivities, noise_multiplier, *, limit=1_000_000) -> Mixture:
    """Sensitivity sum_j c_j Bernoulli(p_j), independent [M-4.2].

    probabilities, sensitivities : shape (n,), entries in [0, 1] and >= 0.
    Equal sums are merged while convolving, so equal sensitivities cost n + 1
    support points; more than `limit` points raise ValueError.
    """
    c = check.vector("sensitivities", sensitivities, at_least=0)
    p = check.vector("probabilities", probabilities, at_least=0, at_most=1)
    sigma = check.noise_multiplier(noise_multiplier)
    limit = check.whole("limit", limit, at_least=1)
    if len(c) != len(p):
        raise ValueError(
            f"sensitivities must have one entry per probability ({len(p)}); got {len(c)}"
        )
    support, weights = np.zeros(1), np.ones(1)
    for size, chance in zip(c, p):
        if size == 0 or chance == 0:
            continue
        values = np.concatenate([support, support + size])
        masses = np.concatenate([weights * (1 - chance), weights * chance])
        # Sums that differ by rounding only are one point; the larger one is kept,
        # which can only raise the privacy loss.
        order = np.argsort(values)
        values, masses = values[order], masses[order]
        last = np.append(np.diff(values) > 1e-12 * values[-1], True)
        group = np.concatenate([[0], np.cumsum(last)[:-1]])
        support, weights = values[last], np.bincount(group, masses)
        if len(support) > limit:
            raise ValueError(
                f"sensitivities must have at most {limit} distinct sums; round them up to a grid"
            )
    return Mixture(support, weights / math.fsum(weights), sigma)


def dominates(upper: Mixture, lower: Mixture) -> bool:
    """First-order stochastic dominance of the sensitivity laws, at equal noise [M-B: B.3].

    True means that `upper`'s pair dominates `lower`'s in both directions.
    """
    for name, value in (("upper", upper), ("lower", lower)):
        if not isinstance(value, Mixture):
            raise TypeError(f"{name} must be a Mixture; got {value!r}")
    if upper.noise_multiplier != lower.noise_multiplier:
        raise ValueError(
            "noise_multiplier must be equal in both mixtures; got "
            f"{upper.noise_multiplier!r} and {lower.noise_multiplier!r}"
        )
    points = np.union1d(upper.sensitivities, lower.sensitivities)
    tail = lambda m: np.array([math.fsum(m.probabilities[m.sensitivities >= t]) for t in points])
    return bool(np.all(tail(upper) >= tail(lower) - 1e-14))


@dataclass(frozen=True, eq=False)
class VectorMixture:
    """Mixture pair with vector sensitivities: P = sum_j p_j N(m_j, sigma^2 I), Q = N(0, sigma^2 I).

    modes : shape (m, d). probabilities : shape (m,). noise_multiplier : sigma > 0.
    """

    modes: np.ndarray
    probabilities: np.ndarray
    noise_multiplier: float

    def __post_init__(self):
        modes = check.matrix("modes", self.modes)
        p = check.probabilities("probabilities", self.probabilities, len(modes))
        object.__setattr__(self, "noise_multiplier", check.noise_multiplier(self.noise_multiplier))
        object.__setattr__(self, "modes", modes)
        object.__setattr__(self, "probabilities", p)

    def reduced(self) -> Mixture:
        """The scalar mixture of the norms; it dominates this pair in both directions [G-2.9]."""
        norms = np.linalg.norm(self.modes, axis=1)
        return Mixture(norms, self.probabilities, self.noise_multiplier)

    def gram(self) -> np.ndarray:
        """Inner products of the modes, shape (m, m); the pair depends on nothing else [M-K]."""
        return self.modes @ self.modes.T

    def hockey_stick(self, epsilon, direction="remove", nodes=400):
        """One-step delta by a tensor trapezoid rule, for modes in one or two dimensions.

        An estimate from quadrature (no bound is claimed): the integrand has a kink,
        so the error falls like 1 / nodes^2; at most about 5e-5 at 400 nodes an axis.
        """
        epsilon, scalar = check.grid("epsilon", epsilon)
        check.direction(direction, both=False)
        nodes = check.whole("nodes", nodes, at_least=10, at_most=5000)
        dimension = self.modes.shape[1]
        if dimension > 2:
            raise ValueError(f"modes must have one or two columns for quadrature; got {dimension}")
        modes = self.modes / self.noise_multiplier
        axes = [np.linspace(min(c.min(), 0) - 8, max(c.max(), 0) + 8, nodes) for c in modes.T]
        cell = math.prod(axis[1] - axis[0] for axis in axes)
        points = np.stack([g.ravel() for g in np.meshgrid(*axes, indexing="ij")], axis=1)
        reference = np.exp(-(points**2).sum(axis=1) / 2) / (2 * math.pi) ** (dimension / 2)
        ratio = np.zeros(len(points))
        for mode, weight in zip(modes, self.probabilities):
            ratio += weight * np.exp(points @ mode - mode @ mode / 2)
        first, second = (ratio, 1.0) if direction == "remove" else (1.0, ratio)
        values = [
            cell * float(reference @ np.maximum(first - math.exp(min(e, 700.0)) * second, 0.0))
            for e in epsilon.ravel()
        ]
        return _like(np.array(values).reshape(epsilon.shape), scalar)


def _like(array, scalar):
    return float(array) if scalar else array
