"""Where to draw the lines in the add direction: a proposal fitted to the boundary at its nearest point [A-17].

Delta is the integral of q (1 - e^epsilon w)_+, q a standard normal density. The region is convex and the
integrand largest near its point x* of smallest norm. The proposal shrinks the directions across x* by the
curvature of the boundary there.
"""

from __future__ import annotations

import math

import numpy as np

from .._base.lazy_scipy import special
from .._base.log_space import log_sum_exp
from ..gaussian import LOG_SQRT_2PI
from .line_integral import crossing, loss_beyond, nodes
from .proposal_lines import PILOT, Lines, factor

_LARGEST = 300.0  # logarithms that are safe to exponentiate
_MULTIPLIERS = np.array([0.0, 0.5, 0.75, 1.0, 1.25])  # of the curvature
_STEPS = np.array([1.0, 0.6, 0.3, 0.1, 0.03, 0.01])  # tried towards the shares at the border


class AddProposal(Lines):
    """Lines for E_Q (1 - e^epsilon w)_+: see the module."""

    def __init__(self, gram, epsilon, rng, like=None):
        self.gram, self.diagonal = gram, np.diag(gram).copy()
        self.level = math.log(len(gram)) - epsilon
        combination = nearest(gram, self.level)
        norm = math.sqrt(combination @ gram @ combination)
        self.beta = gram @ combination / norm
        root = factor(gram)
        self._fit(root, root.T @ combination / norm, rng)

    def _fit(self, root, along, rng):
        """Directions across the line with the curvature of the boundary, and how much of each shrinkage."""
        [self.nearest], [shares], [slope], _ = crossing(-self.diagonal[None] / 2, self.beta[None], self.level, np.inf)
        across = root - np.outer(root @ along, along)
        hessian = across.T @ (shares[:, None] * across) - np.outer(across.T @ shares, across.T @ shares)
        pressure = math.exp(-(self.nearest**2) / 2 - LOG_SQRT_2PI - special.log_ndtr(self.nearest))
        bends, directions = np.linalg.eigh((hessian + hessian.T) / 2)
        order = np.argsort(-bends)[: len(bends) - 1]
        self.bends = np.maximum(bends[order], 0) * pressure / slope
        self.factor = across @ directions[:, order]
        self.shares = np.full(5, 0.2)
        parts = list(self._parts(rng, PILOT))
        rough = max(np.max(special.log_ndtr(crossed) + log_weight) for _, crossed, *_, log_weight, _ in parts)
        label = np.concatenate([part[-1] for part in parts])
        moment = np.concatenate([self._integrals(part, rough)[0] ** 2 for part in parts])
        second = np.bincount(label, moment, 5) / np.maximum(np.bincount(label, minlength=5), 1)
        self.shares = self.shares * np.sqrt(second) + 0.01 * np.sqrt(np.max(second))
        self.shares /= np.sum(self.shares)
        self._look(rng, rough)

    def _geometry(self, cube, rng):
        chosen = np.searchsorted(np.cumsum(self.shares), cube[:, 0], side="right")
        chosen = np.minimum(chosen, len(self.shares) - 1)
        scale = 1 / np.sqrt(1 + np.outer(_MULTIPLIERS, self.bends))
        place = special.ndtri(cube[:, 2:]) * scale[chosen]
        squares = place**2 / 2
        parts = [
            math.log(share) + np.sum(np.log1p(multiplier * self.bends)) / 2 - multiplier * (squares @ self.bends)
            for share, multiplier in zip(self.shares, _MULTIPLIERS)
            if share > 0
        ]
        log_weight = -log_sum_exp(np.stack(parts, axis=1))
        rest = place @ self.factor.T - self.diagonal / 2
        beta = np.broadcast_to(self.beta, rest.shape)
        crossed, shares, slope, _ = crossing(rest, beta, self.level, self.nearest)
        # The same places as beyond a crossing, mirrored.
        distances, log_nodes = nodes(cube[:, 1], -crossed, np.zeros(len(rest)), -crossed, slope)
        return beta, crossed, shares, slope, distances, log_nodes + log_weight, log_weight, chosen

    def _integrals(self, part, log_scale):
        beta, crossed, shares, slope, distances, log_nodes, log_weight, _ = part
        result = np.zeros((3, len(crossed)))
        for distance, log_node in zip(distances, log_nodes):
            gain = loss_beyond(beta, shares, np.zeros(len(crossed)), -distance)
            weight = np.exp(np.minimum(log_node - log_scale, _LARGEST))
            result[0] -= weight * np.expm1(gain)
            result[2] -= weight * np.exp(gain)
        border = np.exp(np.minimum(log_weight - crossed**2 / 2 - LOG_SQRT_2PI - log_scale, _LARGEST)) / slope
        result[1] = -border * np.einsum("ij,ij->i", shares @ self.gram, shares)
        return result


def nearest(gram, level):
    """Weights of the modes whose sum is normal to the border sum_l exp(y_l) = e^level at its point nearest to 0, about.

    Among all such lines through 0 that one crosses nearest to 0; its weights are the shares of the terms there.
    """
    weights, best = np.full(len(gram), 1 / len(gram)), math.inf
    trials = weights[None]
    for _ in range(101):
        steps = trials @ gram
        beta = steps / np.sqrt(np.einsum("ij,ij->i", steps, trials))[:, None]
        rest = np.broadcast_to(-gram.diagonal() / 2, beta.shape)
        crossed, shares, _, _ = crossing(rest, beta, level, np.inf)
        first = int(np.argmin(np.abs(crossed)))
        if not abs(crossed[first]) < best * (1 - 1e-9):
            break
        best, weights = abs(crossed[first]), trials[first]
        trials = weights + _STEPS[:, None] * (shares[first] - weights)
    return weights
