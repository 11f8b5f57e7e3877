"""What is entered into a ledger, as it is stored and as the items of an account.

Mechanisms and events are stored alike, as trees of dictionaries with the name of the event's class, so that a file can be read
without dp_accounting.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from types import SimpleNamespace

from .._base import validate as check
from ..balls_in_bins import exact
from ..mechanisms.balls_in_bins import BallsInBins
from ..mechanisms.composed import Composed
from ..mechanisms.dpsgd import LastIterate, _Mechanism
from ..mechanisms.matrix_mechanism import MatrixMechanism
from ..mechanisms.min_separation import MinSeparation
from ..mechanisms.random_allocation import RandomAllocation
from .events import _name, account

_WHAT = "a mechanism of dplib, a DpEvent, {'epsilon': ..., 'delta': ...} or {'rho': ...}"


def read(what, count, relation, group_size):
    """(what is stored, {item: rounds}) of a release, `count` times. Raises ValueError or TypeError for what does not compose."""
    count = check.whole("count", count, at_least=1)
    if isinstance(what, Mapping):
        tree = _measured(what)
        item = ("zcdp", tree["rho"], 0.0) if "rho" in tree else ("release", tree["epsilon"], tree["delta"])
        return tree, {item: count} if any(tree.values()) else {}
    what = _as_allocation(what) if isinstance(what, BallsInBins) else what
    if isinstance(what, (BallsInBins, MatrixMechanism, MinSeparation)):
        raise ValueError(
            f"what must compose round by round; a {type(what).__name__} is accounted for as a whole. Enter its guarantee: "
            "{'epsilon': ..., 'delta': ...}"
        )
    if isinstance(what, LastIterate) and count > 1:
        raise ValueError(f"count must be 1 for a LastIterate, which is one release of a whole run; got {count}. Add each run by itself")
    known = isinstance(what, (_Mechanism, RandomAllocation))
    if not known and not isinstance(_name(what), str):
        raise TypeError(f"what must be {_WHAT}; got {what!r}")
    tree = _mechanism(what, relation, group_size) if known else _tree(what)
    found = account(node(tree) if isinstance(tree, dict) else what, relation, group_size)
    return tree, {item: rounds * count for item, rounds in found.rounds.items()}


def node(tree):
    """An object with the attributes of the event whose tree this is."""
    if isinstance(tree, dict):
        return SimpleNamespace(**{name: node(value) for name, value in tree.items()})
    return [node(part) for part in tree] if isinstance(tree, list) else tree


def day(date):
    """A date as "YYYY-MM-DD", or None."""
    if date is None or isinstance(date, datetime.date):
        return None if date is None else date.isoformat()[:10]
    try:
        return datetime.date.fromisoformat(date).isoformat()
    except (TypeError, ValueError):
        raise ValueError(f"date must be a date, 'YYYY-MM-DD' or None; got {date!r}") from None


def _as_allocation(bins):
    """Balls in bins whose modes are orthogonal and of one length (C = I) as what has the same pair, one round in so many; others as they are."""
    gram = bins.gram()
    if exact.kind(gram) != "independent":
        return bins
    return RandomAllocation(float(bins.noise_multiplier / math.sqrt(gram.max())), len(gram), 1)


def _mechanism(mechanism, relation, group_size):
    """The tree of a mechanism's event."""
    mechanism = _as_allocation(mechanism) if isinstance(mechanism, BallsInBins) else mechanism
    if isinstance(mechanism, Composed):
        return {"class_name": "ComposedDpEvent", "events": [_mechanism(phase, relation, group_size) for phase in mechanism.phases]}
    if isinstance(mechanism, RandomAllocation):
        rounds, participations, epochs, noise = mechanism._scheme
        return {"class_name": "RandomAllocation", "noise_multiplier": noise, "rounds": rounds, "participations": participations, "epochs": epochs}
    if getattr(mechanism, "inserted", None) is not None or getattr(mechanism, "deleted", None) is not None:
        raise ValueError("what must be for the neighbours of the ledger: leave inserted and deleted out")
    adjacency = getattr(mechanism, "adjacency", "add-remove")
    if adjacency not in ("add-remove", relation):  # add-remove is what nobody has said
        raise ValueError(f"what must have adjacency {relation.replace('/', '-')!r}, the relation of the ledger; got {adjacency!r}")
    size = getattr(mechanism, "group_size", 1)
    if size not in (1, group_size):
        raise ValueError(f"what must have group_size 1 or {group_size}, that of the ledger; got {size}")
    return mechanism._tree(group_size if relation == "add/remove" else 0)


def _measured(what):
    """A checked copy of {"epsilon", "delta"} or {"rho"}."""
    if set(what) not in ({"epsilon", "delta"}, {"rho"}):
        raise ValueError(f"what must be {_WHAT}; got {dict(what)!r}")
    if "rho" in what:
        return {"rho": check.real("rho", what["rho"], at_least=0, at_most=1e90)}
    return {"epsilon": check.target_epsilon(what["epsilon"]), "delta": check.real("delta", what["delta"], at_least=0, below=1)}


def _tree(value):
    """An event as dictionaries, lists and numbers."""
    if isinstance(value, (list, tuple)) and not hasattr(value, "class_name"):
        return [_tree(part) for part in value]
    named = getattr(value, "class_name", None) or type(value).__name__
    named = named.decode() if isinstance(named, bytes) else named
    attributes = [part.name for part in getattr(type(value), "__attrs_attrs__", ())]
    fields = vars(value) if isinstance(value, SimpleNamespace) else getattr(value, "_fields", attributes)
    if not fields and not named.endswith("DpEvent"):
        return value.tolist() if hasattr(value, "tolist") else value
    tree = {name: _tree(getattr(value, name)) for name in fields if name not in ("class_name", "module_name")}
    return {"class_name": named, **tree}
