"""An accountant for Opacus, and what Opacus's own hooks get wrong about batches.

    from dplib.bridges import opacus
    opacus.register()
    PrivacyEngine(accountant="dplib")
"""

from __future__ import annotations

import functools
import math
from typing import Any

from .. import mixtures
from .._base import validate as check
from ..mechanisms.dpsgd import law_of
from ..results import Bracket, NoBracketError, UpperBound
from .account import NON_PRIVATE, Account


class Rounds:
    """What an accountant counts and answers; with Opacus's `IAccountant` it is one, whose epsilon is the upper end of a certified bracket, for adding or removing one record.

    `step`, and the hook that Opacus attaches to its optimizer, count rounds of Poisson sampling. Where gradients of several Poisson
    batches are accumulated before a step, Opacus multiplies the sampling probability by their number; a record may be in
    several of them, so that its sensitivity is Binomial(batches, q), and that is what is counted here.

    `history` holds (noise multiplier, sampling probability, rounds), with the number of accumulated batches as a fourth entry
    where it is above 1. Noise 0 gives epsilon inf, and so does a setting that nothing is proved about; `reason` says why.

    >>> from dplib.bridges.opacus import Rounds
    >>> counted = Rounds()
    >>> for _ in range(2000):
    ...     counted.step(noise_multiplier=1.0, sample_rate=0.01)
    >>> print(f"{counted.get_epsilon(delta=1e-6):.5f}")
    2.95525
    """

    _mechanism = "dplib"

    def __init__(self):
        self.history: list[tuple] = []
        self.reason: str | None = None

    def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
        """Count a round. Raises ValueError or TypeError unless sample_rate is in [0, 1] and noise_multiplier at least 0."""
        self._count(noise_multiplier, sample_rate, 1)

    def get_optimizer_hook_fn(self, sample_rate: float) -> Any:
        """What Opacus calls after each step; sample_rate : of one batch, before accumulation."""
        q = _rate(sample_rate)

        def hook(optimizer):
            self._count(optimizer.noise_multiplier, q, optimizer.accumulated_iterations)

        return hook

    def get_epsilon(self, delta: float, *args: Any, **kwargs: Any) -> float:
        """The upper end of epsilon at `delta` in (0, 1); inf where there is none. What other accountants take is ignored."""
        try:
            self.reason, found = None, float(self.bracket(delta).upper)
        except NoBracketError as refusal:
            self.reason, found = str(refusal), math.inf
        return found

    def bracket(self, delta: float) -> Bracket | UpperBound:
        """Both ends of epsilon at `delta` in (0, 1); raises NoBracketError where there are none."""
        total = Account()
        for noise, q, rounds, *batches in self.history:
            item = _item(noise, _rate(q), *batches)
            if item:
                total.add(item, check.whole("rounds", rounds, at_least=0))
        return total.epsilon(delta)

    def __len__(self) -> int:
        return sum(rounds for _, _, rounds, *_ in self.history)

    @classmethod
    def mechanism(cls) -> str:
        return cls._mechanism

    def _count(self, noise, q, batches):
        noise, q = check.real("noise_multiplier", noise, at_least=0), _rate(q)
        batches = check.whole("accumulated_iterations", batches, at_least=1)
        law = (noise, q, *[batches] * (batches > 1))
        if self.history:
            last_noise, last_q, rounds, *more = self.history[-1]
            if (last_noise, last_q, *more) == law:
                self.history[-1] = (noise, q, rounds + 1, *more)
                return
        self.history.append((noise, q, 1, *law[2:]))


def _rate(q):
    try:
        return check.probability("sample_rate", q)
    except ValueError as error:
        raise ValueError(f"{error}: of one batch, not of all that are accumulated") from None


def _item(noise, q, batches=1):
    if q == 0:
        return None
    if noise == 0:
        return NON_PRIVATE
    if batches == 1:
        return ("gaussian", noise) if q == 1 else ("poisson", q, noise)
    pair = mixtures.binomial(batches, q, noise)
    return ("mixture", *map(tuple, law_of(pair)), noise)


@functools.cache
def accountant(name: str = "dplib") -> type:
    """The class of accountants that Opacus knows by this name. Raises ImportError without Opacus."""
    try:
        from opacus.accountants import IAccountant
    except ImportError as error:
        raise ImportError("dplib.bridges.opacus needs the package opacus, 1.6 or later: pip install opacus") from error
    return type("Accountant", (Rounds, IAccountant), {"_mechanism": name})


def register(name: str = "dplib") -> None:
    """Make `PrivacyEngine(accountant=name)` and `get_noise_multiplier(accountant=name)` use this accountant.

    Raises TypeError unless name is a string, ImportError without Opacus.
    """
    if not isinstance(name, str):
        raise TypeError(f"name must be a string; got {name!r}")
    made = accountant(name)
    from opacus.accountants.registry import register_accountant

    register_accountant(name, made, force=True)


def check_loader(data_loader: Any) -> float:
    """The sampling probability of a loader that `make_private` returned, checked against what Opacus will account for.

    Opacus takes the probability to be 1 / len(data_loader). Raises ValueError where that is below the probability of the sampler,
    as with a loader that was given a number of steps, and where batches are not drawn by independent coins at all
    (poisson_sampling=False): then Poisson accounting promises too much.
    """
    q = getattr(getattr(data_loader, "batch_sampler", None), "sample_rate", None)
    if q is None:
        raise ValueError(
            "data_loader must draw each record by its own coin, made by make_private(poisson_sampling=True); got batches of "
            f"{type(getattr(data_loader, 'batch_sampler', None)).__name__}, whose guarantee is another one"
        )
    taken = 1 / len(data_loader)
    if taken < q * (1 - 1e-9):
        raise ValueError(
            f"data_loader must have at most 1 / sample_rate batches; Opacus takes the sampling probability from their number, "
            f"1 / {len(data_loader)}, and the sampler's is {q:g}, {q / taken:.3g} times as large"
        )
    return float(q)
