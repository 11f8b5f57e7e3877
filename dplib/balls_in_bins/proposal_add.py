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
from .points import cubes
from .proposal_lines import factor

_PILOT = 1024
_LARGEST = 600.0  # changes of log densities that are safe to exponentiate


class AddProposal:
    """Lines for E_Q (1 - e^epsilon w)_+: see the module."""

    def __init__(self, gram, epsilon, rng, like=None):
        self.gram, self.epsilon = gram, epsilon
        self.diagonal = np.diag(gram).copy()
        self.level = math.log(len(gram)) - epsilon
        self.combination = self._nearest()
        self.norm = math.sqrt(self.combination @ gram @ self.combination)
        self.beta = gram @ self.combination / self.norm
        self._fit(rng)

    def _nearest(self):
        """Weights of the modes whose sum is normal to the border of the region at its point nearest to 0, about.

        Among all such lines through 0 that one crosses nearest to 0; its weights are the shares of the terms there.
        """
        b = len(self.gram)
        weights = np.full(b, 1 / b)
        distance, shares = self._distances(weights[None])
        best, target = distance[0], shares[0]
        for _ in range(100):
            trials = weights + np.array([1.0, 0.6, 0.3, 0.1, 0.03, 0.01])[:, None] * (target - weights)
            distance, shares = self._distances(trials)
            first = int(np.argmin(distance))
            if not distance[first] < best * (1 - 1e-9):
                break
            best, weights, target = distance[first], trials[first], shares[first]
        return weights

    def _distances(self, weights):
        """How far from 0 lines along the sum of the modes cross the border: (distances, shares there)."""
        steps = weights @ self.gram
        beta = steps / np.sqrt(np.einsum("ij,ij->i", steps, weights))[:, None]
        rest = np.broadcast_to(-self.diagonal / 2, beta.shape)
        crossed, shares, _, _ = crossing(rest, beta, self.level, np.inf)
        return np.abs(crossed), shares

    def _fit(self, rng):
        """Directions across the line with the curvature of the boundary, and how much of each shrinkage."""
        crossed, shares, slope, _ = crossing(-self.diagonal[None] / 2, self.beta[None], self.level, np.inf)
        root = factor(self.gram)
        along = root.T @ self.combination / self.norm
        across = root - np.outer(root @ along, along)
        hessian = across.T @ (shares[0][:, None] * across) - np.outer(
            across.T @ shares[0], across.T @ shares[0]
        )
        pressure = math.exp(-(crossed[0] ** 2) / 2 - LOG_SQRT_2PI - special.log_ndtr(crossed[0]))
        bends, directions = np.linalg.eigh((hessian + hessian.T) / 2)
        order = np.argsort(-bends)[: max(1, len(bends) - 1)] if len(bends) > 1 else np.arange(0)
        self.nearest = crossed[0]
        self.bends = np.maximum(bends[order], 0) * pressure / slope[0]
        self.root = across @ directions[:, order]
        self.shares = np.array([1.0])
        self.multipliers = np.array([1.0])
        if len(self.bends):
            self.multipliers = np.array([0.0, 0.5, 0.75, 1.0, 1.25])
            self.shares = np.full(5, 0.2)
            label, moment = [], []
            parts = list(self._parts(rng, _PILOT))
            rough = max(np.max(special.log_ndtr(part[1]) + part[6]) for part in parts)
            for part in parts:
                label.append(part[-1])
                moment.append(self._integrals(part, rough)[0] ** 2)
            label, moment = np.concatenate(label), np.concatenate(moment)
            second = np.bincount(label, moment, 5) / np.maximum(np.bincount(label, minlength=5), 1)
            self.shares = self.shares * np.sqrt(second) + 0.01 * np.sqrt(np.max(second))
            self.shares /= np.sum(self.shares)
        else:
            rough = float(special.log_ndtr(crossed[0]))
        values = self.lines(rng, _PILOT, rough)[0]
        self.log_scale = rough + math.log(np.mean(values))
        self.relative_variance = float(np.var(values) / np.mean(values) ** 2)

    def lines(self, rng, size, log_scale):
        """Integral of each line, and its derivatives by log sigma and epsilon, over exp(log_scale): (3, size)."""
        return np.concatenate([self._integrals(part, log_scale) for part in self._parts(rng, size)], axis=1)

    def _parts(self, rng, size):
        for cube in cubes(rng, size, 2 + len(self.bends)):
            yield self._geometry(cube)

    def _geometry(self, cube):
        chosen = np.minimum(
            np.searchsorted(np.cumsum(self.shares), cube[:, 0], side="right"), len(self.shares) - 1
        )
        scale = 1 / np.sqrt(1 + np.outer(self.multipliers, self.bends))
        place = special.ndtri(cube[:, 2:]) * scale[chosen]
        squares = place**2 / 2
        parts = [
            math.log(share)
            + np.sum(np.log1p(multiplier * self.bends)) / 2
            - multiplier * (squares @ self.bends)
            for share, multiplier in zip(self.shares, self.multipliers)
            if share > 0
        ]
        log_weight = -log_sum_exp(np.stack(parts, axis=1))
        rest = place @ self.root.T - self.diagonal / 2
        beta = np.broadcast_to(self.beta, rest.shape)
        crossed, shares, slope, excess = crossing(rest, beta, self.level, self.nearest)
        zeros = np.zeros(len(rest))
        # The same places as beyond a crossing, mirrored.
        distances, log_nodes = nodes(cube[:, 1], -crossed, zeros, -crossed, slope)
        return beta, crossed, shares, slope, distances, log_nodes + log_weight, log_weight, chosen

    def _integrals(self, part, log_scale):
        beta, crossed, shares, slope, distances, log_nodes, log_weight, _ = part
        result = np.zeros((3, len(crossed)))
        for distance, log_node in zip(distances, log_nodes):
            gain = loss_beyond(beta, shares, np.zeros(len(crossed)), -distance)
            weight = np.exp(np.minimum(log_node - log_scale, _LARGEST / 2))
            result[0] -= weight * np.expm1(gain)
            result[2] -= weight * np.exp(gain)
        result[1] = -self._border(part, log_scale) * np.einsum("ij,ij->i", shares @ self.gram, shares)
        return result

    def _border(self, part, log_scale):
        _, crossed, _, slope, _, _, log_weight, _ = part
        return (
            np.exp(np.minimum(log_weight - crossed**2 / 2 - LOG_SQRT_2PI - log_scale, _LARGEST / 2)) / slope
        )

    def gradient(self, rng, size, log_scale):
        """d delta / d gram over exp(log_scale), averaged over `size` lines: shape (b, b)."""
        total = 0.0
        for part in self._parts(rng, size):
            total = total + (part[2] * self._border(part, log_scale)[:, None]).T @ part[2]
        return total / (2 * size)
