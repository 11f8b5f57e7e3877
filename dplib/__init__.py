"""dplib: certified privacy accounting for sampled Gaussian mechanisms.

>>> import dplib
>>> dpsgd = dplib.PoissonDPSGD(noise_multiplier=1.0, sampling_probability=0.01, steps=2000)
>>> spent = dpsgd.epsilon(delta=1e-6)
>>> print(f"{spent.upper:.5f}")
2.95525
>>> spent.relative_width < 1e-9
True
"""

import importlib
import importlib.machinery
import sys

__version__ = "0.1.0"
__all__ = [
    "BallsInBins",
    "Bracket",
    "Certificate",
    "Estimate",
    "FixedBatchDPSGD",
    "LastIterate",
    "Ledger",
    "MatrixMechanism",
    "MinSeparation",
    "NoBracketError",
    "PoissonDPSGD",
    "RandomAllocation",
    "TruncatedPoissonDPSGD",
    "UpperBound",
    "calibrate",
    "compose",
]

# Everything is imported at its first use. Where the public names come from:
_HOMES = {
    "BallsInBins": "mechanisms",
    "Bracket": "results",
    "Certificate": "results",
    "Estimate": "results",
    "FixedBatchDPSGD": "mechanisms",
    "LastIterate": "mechanisms",
    "Ledger": "bridges.ledger",
    "MatrixMechanism": "mechanisms",
    "MinSeparation": "mechanisms",
    "NoBracketError": "results",
    "PoissonDPSGD": "mechanisms",
    "RandomAllocation": "mechanisms",
    "TruncatedPoissonDPSGD": "mechanisms",
    "UpperBound": "results",
    "calibrate": "mechanisms.calibration",
    "compose": "mechanisms.composed",
}
_ROOMS = (
    "accounting",
    "balls_in_bins",
    "batching",
    "bridges",
    "conditional",
    "gaussian",
    "lessons",
    "matrices",
    "mechanisms",
    "mixtures",
    "optimize",
    "results",
    "training",
)
# Modules of the rooms with a shorter name: `from dplib import renyi`, `import dplib.renyi`.
_ALIASES = {
    "audit": "training.audit",
    "calibration": "mechanisms.calibration",
    "contour": "accounting.contour",
    "encoder_baselines": "optimize.baselines",
    "events": "bridges.events",
    "lattice": "accounting.lattice",
    "montecarlo": "balls_in_bins",
    "published": "optimize.jax_descent",
    "renyi": "accounting.renyi",
    "sensitivity": "matrices.sensitivity",
    "utility": "matrices.prefix_errors",
}


def __getattr__(name):
    if name in _HOMES:
        found = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    elif name in _ROOMS or name in _ALIASES:
        found = importlib.import_module(f"{__name__}.{name}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__():
    return sorted({*globals(), *_HOMES, *_ROOMS, *_ALIASES})


class _Aliases:
    """Finds a module under its shorter name: the same object under both."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        package, _, short = name.rpartition(".")
        return importlib.machinery.ModuleSpec(name, cls) if package == __name__ and short in _ALIASES else None

    @staticmethod
    def create_module(spec):
        return None

    @staticmethod
    def exec_module(module):
        home = _ALIASES[module.__name__.rpartition(".")[2]]
        sys.modules[module.__name__] = importlib.import_module(f"{__name__}.{home}")


sys.meta_path.insert(0, _Aliases)  # before any other copy of the library is found
