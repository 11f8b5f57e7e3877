"""The mixture-of-Gaussians pair with vector sensitivities [G-2.9], [M-K]."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .._base import validate as check
from .._base.log_space import log_sum_exp
from .._base.validate import Direction
from .pair import Mixture, _like


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

    def hockey_stick(
        self, epsilon: ArrayLike, direction: Direction = "remove", nodes: int = 400
    ) -> float | np.ndarray:
        """One-step delta by a tensor trapezoid rule, for modes in one or two dimensions.

        An estimate from quadrature (no bound is claimed): the integrand has a kink, so the error falls like 1 / nodes^2.
        With 400 nodes an axis it is about 1e-4 for modes of norm 2 sigma, and grows with the norm: 1e-3 at 20 sigma.
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
        log_absent = -(points**2).sum(axis=1) / 2 - dimension / 2 * math.log(2 * math.pi)
        with np.errstate(divide="ignore"):  # of weights that are 0
            log_weights = np.log(self.probabilities) - (modes**2).sum(axis=1) / 2
        log_present = log_absent + log_sum_exp(points @ modes.T + log_weights)
        first, second = (log_present, log_absent) if direction == "remove" else (log_absent, log_present)
        values = [cell * float((np.exp(first) * -np.expm1(np.minimum(second + e - first, 0.0))).sum()) for e in epsilon.ravel()]
        return _like(np.array(values).reshape(epsilon.shape), scalar)
