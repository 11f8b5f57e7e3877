"""An accountant for whatever takes one of dp_accounting's: `calibrate_dp_mechanism`, JAX Privacy, TensorFlow Privacy."""

from __future__ import annotations

import math

from .._base import validate as check
from ..results import Bracket, NoBracketError, UpperBound
from .account import Account, Relation
from .events import RefusedEvent, account

try:
    from dp_accounting import dp_event
    from dp_accounting.privacy_accountant import NeighboringRelation, PrivacyAccountant
except ImportError as error:
    raise ImportError("dplib.bridges.dp_accounting needs the package dp-accounting: pip install dp-accounting") from error

_RELATIONS: dict[NeighboringRelation, Relation] = {
    NeighboringRelation.ADD_OR_REMOVE_ONE: "add/remove",
    NeighboringRelation.REPLACE_SPECIAL: "zero-out",
    NeighboringRelation.REPLACE_ONE: "substitution",
}


class Accountant(PrivacyAccountant):
    """A `PrivacyAccountant` of dp_accounting whose epsilon and delta are the upper ends of certified brackets.

    Parameters
    ----------
    neighboring_relation : as in dp_accounting.
    group_size : k >= 1 records that differ.

    `supports` is False, and `compose` raises `UnsupportedEventError` with the reason, for what `dplib.events` refuses. Where nothing
    can be proved epsilon is inf and delta 1, and `reason` says why; None otherwise.
    Cost: milliseconds a question (`accounting.delta`); a Rényi bound some hundredths of a second.

    >>> from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent
    >>> from dplib.bridges.dp_accounting import Accountant
    >>> accountant = Accountant().compose(PoissonSampledDpEvent(0.01, GaussianDpEvent(1.0)), 2000)
    >>> print(f"{accountant.get_epsilon(1e-6):.5f}")
    2.95525
    >>> accountant.bracket(1e-6).relative_width < 1e-9
    True
    """

    def __init__(
        self, neighboring_relation: NeighboringRelation = NeighboringRelation.ADD_OR_REMOVE_ONE, group_size: int = 1
    ):
        if neighboring_relation not in list(_RELATIONS):
            names = ", ".join(relation.name for relation in _RELATIONS)
            raise TypeError(f"neighboring_relation must be a NeighboringRelation of dp_accounting, {names}; got {neighboring_relation!r}")
        super().__init__(neighboring_relation)
        self._account = Account(_RELATIONS[neighboring_relation], group_size)
        self.reason: str | None = None

    def _maybe_compose(self, event: dp_event.DpEvent, count: int, do_compose: bool):
        count = check.whole("count", count, at_least=0)
        try:
            found = account(event, self._account.relation, self._account.group_size)
        except RefusedEvent as refusal:
            return self.CompositionErrorDetails(refusal.event, refusal.reason)
        except (ValueError, TypeError) as error:
            return self.CompositionErrorDetails(event, str(error))
        for item, rounds in found.rounds.items() if do_compose else ():
            self._account.add(item, rounds * count)
        return None

    def get_epsilon(self, target_delta: float) -> float:
        """The upper end of epsilon at `target_delta` in [0, 1]; inf where there is none."""
        delta = check.probability("target_delta", target_delta)
        if not self._account.rounds or (delta == 1 and self._account.is_private):
            return self._found(0.0)
        if delta in (0, 1):
            reason = "something was released without noise" if delta else "no finite epsilon is known at delta = 0"
            return self._found(math.inf, reason)
        return self._upper(self._account.epsilon, delta, math.inf)

    def get_delta(self, target_epsilon: float) -> float:
        """The upper end of delta at `target_epsilon` in [0, inf]; 1 where there is none."""
        if target_epsilon != math.inf:
            check.real("target_epsilon", target_epsilon, at_least=0)
        if not self._account.rounds or (target_epsilon == math.inf and self._account.is_private):
            return self._found(0.0)
        return self._upper(self._account.delta, min(target_epsilon, 1e100), 1.0)

    def bracket(self, delta: float) -> Bracket | UpperBound:
        """Both ends of epsilon at `delta` in (0, 1), or an UpperBound; raises NoBracketError where there is none."""
        return self._account.epsilon(delta)

    def _upper(self, ask, target, otherwise):
        try:
            return self._found(float(ask(target).upper))
        except NoBracketError as refusal:
            return self._found(otherwise, str(refusal))

    def _found(self, value, reason=None):
        self.reason = reason
        return value
