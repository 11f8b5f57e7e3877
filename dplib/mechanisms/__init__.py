"""What a user names: mechanisms with one common interface.

    mechanism.delta(epsilon, direction="both")   -> Bracket
    mechanism.epsilon(delta, direction="both")   -> Bracket

(with method="renyi" an UpperBound).

Each class only says which dominating pair its rounds have; `accounting` does the rest.
`MatrixMechanism` has no pair for its rounds but bounds on what the past reveals, on how often a record
takes part, or on moments of all rounds together: its answers are `UpperBound`s. `BallsInBins`, `MinSeparation` and `RandomAllocation` have one pair for all
rounds together; their answers say whether they are exact, proved, estimated or certified.
"""

import importlib

# Imported at their first use: who asks about Poisson sampling loads nothing of bins or matrices.
_HOMES = {
    "BallsInBins": "balls_in_bins",
    "Composed": "composed",
    "FixedBatchDPSGD": "dpsgd",
    "LastIterate": "dpsgd",
    "MatrixMechanism": "matrix_mechanism",
    "MinSeparation": "min_separation",
    "PoissonDPSGD": "dpsgd",
    "RandomAllocation": "random_allocation",
    "TruncatedPoissonDPSGD": "truncated",
    "compose": "composed",
}
__all__ = list(_HOMES)


def __getattr__(name):
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
