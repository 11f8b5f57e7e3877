"""What a user names: mechanisms with one common interface.

    mechanism.delta(epsilon, direction="both")   -> Bracket
    mechanism.epsilon(delta, direction="both")   -> Bracket

(with method="renyi" an UpperBound).

Each class only says which dominating pair its rounds have; `accounting` does the rest.
`MatrixMechanism` has no pair for its rounds but bounds on what the past reveals, or on how often a record
takes part: its answers are `UpperBound`s. `BallsInBins` has one pair for all rounds together; its answers say
whether they are exact, estimated or certified. So do those of `RandomAllocation`, of k random rounds of t.
"""

from .balls_in_bins import BallsInBins
from .composed import Composed, compose
from .dpsgd import FixedBatchDPSGD, LastIterate, PoissonDPSGD
from .matrix_mechanism import MatrixMechanism
from .random_allocation import RandomAllocation
from .truncated import TruncatedPoissonDPSGD

__all__ = [
    "BallsInBins",
    "Composed",
    "FixedBatchDPSGD",
    "LastIterate",
    "MatrixMechanism",
    "PoissonDPSGD",
    "RandomAllocation",
    "TruncatedPoissonDPSGD",
    "compose",
]
