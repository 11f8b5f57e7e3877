"""Auditing: a lower bound on epsilon from what a training run, or a worst case, lets one see.

An attacker who must tell apart two neighbouring datasets from a score makes two kinds of errors, and
(epsilon, delta) limits both. Counted on independent runs, with Clopper and Pearson's intervals for the
two rates, this turns into a lower bound on epsilon that holds with a stated confidence. An audit can refute
a claimed guarantee; it never proves one, and it is only as strong as the score.

    epsilon_lower_bound   from scores of runs with and without the record
    transcripts           such runs for the worst case, made with the library's own samplers and noise
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .._base import validate as check
from .._base.lazy_jax import load
from .._base.lazy_scipy import special
from .._base.validate import Direction
from ..batching.streams import Batches
from ..matrices.encoders import Encoder
from ..results import LowerEnd
from . import correlated_noise_jax

_THRESHOLDS = 200
_MOST_ENTRIES = 2**28


@dataclass(frozen=True)
class Audit:
    """A lower bound on epsilon: at most the truth with probability at least `confidence`.

    lower : the bound, at least 0; its digits are rounded down. direction : "remove" (the event is a large score; its
    probability with the record against that without) or "add" (a small score, the other way round). threshold : of
    the score. hits, false_alarms : shares of the counted runs in which the event happened, where it should be likely
    and where it should be rare.
    """

    lower: float
    confidence: float
    delta: float
    direction: str
    threshold: float
    hits: float
    false_alarms: float

    def __str__(self):
        # Of all three the smaller number is the weaker claim.
        return (
            f"epsilon at least {self.lower:.4g} at delta {LowerEnd(self.delta):g} "
            f"(confidence {LowerEnd(self.confidence):g}, {self.direction})"
        )


def epsilon_lower_bound(
    scores_with: ArrayLike, scores_without: ArrayLike, delta: float, *, confidence: float = 0.95,
    direction: Direction = "both",
) -> Audit:
    """A lower bound on epsilon from the scores of independent runs with and without a record.

    Parameters
    ----------
    scores_with, scores_without : flat lists of at least 10 finite numbers, one from each run; a large score speaks
        for the record. Each run has its own randomness, and the order has nothing to do with the scores: they are not sorted.
    delta : in [0, 1). confidence : in (0, 1). direction : "remove", "add" or "both" (whichever looks better).

    Returns an `Audit`. For an event S, P(S) <= e^epsilon Q(S) + delta gives

        epsilon >= log((p - delta) / q),   p a lower bound of P(S), q an upper bound of Q(S),

    each Clopper and Pearson's with failure probability (1 - confidence) / 2. The event is chosen on every
    second run and counted on the others, so that the choice costs nothing.
    Raises ValueError or TypeError on bad input.

    >>> import numpy as np
    >>> from dplib import audit, gaussian
    >>> noise = np.random.default_rng(0)
    >>> found = audit.epsilon_lower_bound(1 + noise.standard_normal(2000), noise.standard_normal(2000), delta=1e-3)
    >>> 0 < found.lower < gaussian.epsilon(mu=1.0, delta=1e-3)
    True
    """
    present, absent = _scores("scores_with", scores_with), _scores("scores_without", scores_without)
    delta = check.real("delta", delta, at_least=0, below=1)
    confidence = check.real("confidence", confidence, above=0, below=1)
    direction = check.direction(direction)
    failure = (1 - confidence) / 2
    found = []
    for side in ("remove", "add") if direction == "both" else (direction,):
        # By its sign the small scores become the large ones.
        sign, likely, rare = (1, present, absent) if side == "remove" else (-1, -absent, -present)
        thresholds = np.unique(
            np.quantile(np.concatenate([likely[::2], rare[::2]]), np.linspace(0, 1, _THRESHOLDS))
        )
        guesses = _bound(likely[::2], rare[::2], thresholds, delta, failure)[0]
        place = int(np.argmax(guesses))
        found.append((guesses[place], side, sign, thresholds[place], likely[1::2], rare[1::2]))
    _, side, sign, threshold, likely, rare = max(found, key=lambda event: event[0])
    lower, hits, false_alarms = (float(part) for part in _bound(likely, rare, threshold, delta, failure))
    return Audit(LowerEnd(max(lower, 0.0)), confidence, delta, side, float(sign * threshold), hits, false_alarms)


def transcripts(
    batches: Batches, encoder: Encoder, noise_multiplier: float, *, seed: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """What an observer sees in the worst case, in many runs at once: (with the record, without it).

    Parameters
    ----------
    batches : a stream of `dplib.batching` with as many records as there are to be runs: record r is the one whose
        presence is hidden in run r. Its scheme must let records choose independently (Poisson, cyclic Poisson, b-min-sep,
        balls in bins), so that the runs are independent; this is not checked.
    encoder : square encoder with at least as many columns as there are rounds. noise_multiplier : sigma, from 1e-15 to 1e15.
    seed : of the noise, a whole number at least 0; None for fresh entropy.

    Returns two float32 arrays of shape (rounds, runs): the sums x + C^-1 z of a single coordinate, where the record
    contributes 1 to each of its rounds and the others nothing. They come from the samplers and the noise that
    `training` uses. `encoder.multiply` (for as many columns as rounds) turns them into C x + z, whose noise is independent.
    Raises ValueError or TypeError on bad input.
    """
    jax = load()
    import jax.numpy as jnp

    if not isinstance(batches, Batches):
        raise TypeError(f"batches must be a stream of dplib.batching; got {batches!r}")
    kind, arrays = correlated_noise_jax.plan(encoder, len(batches))
    sigma = check.real("noise_multiplier", noise_multiplier, at_least=1e-15, at_most=1e15)
    if len(batches) * batches.records > _MOST_ENTRIES:
        raise ValueError(
            f"batches must have at most 2**28 rounds times records; got {len(batches)} * {batches.records}"
        )
    if seed is not None:
        seed = check.whole("seed", seed, at_least=0, at_most=2**128)
    blank = jnp.zeros(batches.records, jnp.float32)

    @jax.jit
    def run(key):
        def one(memory, t):
            w, memory = correlated_noise_jax.step(kind, arrays, memory, t, key, sigma, blank)
            return memory, w

        return jax.lax.scan(one, correlated_noise_jax.start(kind, blank), jnp.arange(len(batches)))[1]

    key = correlated_noise_jax.key_of(seed)  # of fresh entropy for None
    present, absent = np.array(run(key)), np.asarray(run(key ^ np.uint32(1)))
    for t, batch in enumerate(batches):
        present[t, batch] += 1
    return present, absent


def _bound(likely, rare, thresholds, delta, failure):
    """(log((p - delta) / q), share of hits, share of false alarms) of the events score >= threshold."""
    hits = len(likely) - np.searchsorted(np.sort(likely), thresholds)
    alarms = len(rare) - np.searchsorted(np.sort(rare), thresholds)
    # Clopper-Pearson: quantiles of beta laws; no hit and nothing but alarms have no law.
    low = np.where(hits > 0, special.betaincinv(np.maximum(hits, 1), len(likely) - hits + 1, failure), 0.0)
    silent = len(rare) - alarms
    high = np.where(silent > 0, special.betaincinv(alarms + 1, np.maximum(silent, 1), 1 - failure), 1.0)
    value = np.full(np.shape(low), -np.inf)
    value = np.log(np.maximum(low - delta, 1e-300) / high, out=value, where=low > delta)
    return value, hits / len(likely), alarms / len(rare)


def _scores(name, scores):
    scores = check.vector(name, scores)
    if len(scores) < 10:
        raise ValueError(f"{name} must hold at least 10 scores; got {len(scores)}")
    return scores
