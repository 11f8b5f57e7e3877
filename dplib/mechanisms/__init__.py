"""What a user names: mechanisms with one common interface.

    mechanism.delta(epsilon, direction="both")   -> Bracket
    mechanism.epsilon(delta, direction="both")   -> Bracket

(with method="renyi" an UpperBound).

Each class only says which dominating pair its rounds have; `accounting` does the rest.
`MatrixMechanism` has no pair for its rounds but bounds on what the past reveals, or on how often a record
takes part: its answers are `UpperBound`s. `BallsInBins`, `MinSeparation` and `RandomAllocation` have one pair for all
rounds together; their answers say whether they are exact, proved, estimated or certified.
"""

from .balls_in_bins import BallsInBins
from .composed import Composed, compose
from .dpsgd import FixedBatchDPSGD, LastIterate, PoissonDPSGD
from .matrix_mechanism import MatrixMechanism
from .min_separation import MinSeparation
from .random_allocation import RandomAllocation
from .truncated import TruncatedPoissonDPSGD

__all__ = [
    "BallsInBins",
    "Composed",
    "FixedBatchDPSGD",
    "LastIterate",
    "MatrixMechanism",
    "MinSeparation",
    "PoissonDPSGD",
    "RandomAllocation",
    "TruncatedPoissonDPSGD",
    "compose",
]
