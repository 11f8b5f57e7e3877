"""dplib: certified privacy accounting for sampled Gaussian mechanisms.

>>> import dplib
>>> dpsgd = dplib.PoissonDPSGD(noise_multiplier=1.0, sampling_probability=0.01, steps=2000)
>>> spent = dpsgd.epsilon(delta=1e-6)
>>> print(f"{spent.upper:.5f}")
2.95525
>>> spent.relative_width < 1e-9
True
"""

from .calibrate import calibrate
from .mechanisms import BallsInBins, FixedBatchDPSGD, LastIterate, MatrixMechanism, PoissonDPSGD
from .results import Bracket, Certificate, Estimate, NoBracketError, UpperBound

__version__ = "0.1.0"
__all__ = [
    "BallsInBins",
    "Bracket",
    "Certificate",
    "Estimate",
    "FixedBatchDPSGD",
    "LastIterate",
    "MatrixMechanism",
    "NoBracketError",
    "PoissonDPSGD",
    "UpperBound",
    "calibrate",
]
