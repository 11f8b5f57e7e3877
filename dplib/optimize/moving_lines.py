"""Lines of one proposal, moved along with the Gram matrix: delta as a smooth function of it [A-17].

The optimiser of encoders asks for delta at many nearby Gram matrices. Here the random numbers, the
components and their weights stay fixed; only the modes move. The normal numbers enter through a Cholesky
factor, which is smooth in the matrix (eigenvectors are not), turned such that at the first matrix
the leading coordinates still meet the directions of largest variance.
"""

from __future__ import annotations

import math

import numpy as np

from ..balls_in_bins.points import points
from ..balls_in_bins.proposal_lines import LineLaws, factor
from ..balls_in_bins.proposal_remove import LADDER, RemoveProposal

_JITTER = 1e-12  # of the largest diagonal entry: singular matrices have a factor, too


class _Centres(RemoveProposal):
    """Without tuples: which modes they draw does not depend smoothly on the matrix."""

    def offered(self):
        return LADDER


class MovingLines(LineLaws):
    """`count` lines drawn for one Gram matrix (in units of the noise), to be used at others."""

    smooth = True

    def __init__(self, gram, epsilon, rng, count):
        fitted = _Centres(gram, epsilon, rng)
        self.epsilon, self.level = fitted.epsilon, fitted.level
        self.tuples, self.group_sizes = [], fitted.group_sizes
        self.combinations = fitted.combinations
        log_chances = fitted.log_densities + self._norms(fitted.gram) / 2
        self.log_chances = log_chances - np.logaddexp.reduce(log_chances)
        self.cumulative = np.cumsum(np.exp(self.log_chances))
        self.cube = points(rng, count, 2 + len(fitted.gram))
        wanted = factor(fitted.gram)
        wanted = np.pad(wanted, ((0, 0), (0, len(wanted) - wanted.shape[1])))
        turned, _, right = np.linalg.svd(np.linalg.solve(_cholesky(fitted.gram), wanted))
        self.rotation = turned @ right  # the nearest orthogonal matrix

    def moved(self, gram):
        """Make the lines those of `gram` (in units of the noise); `scaled` changes the unit."""
        self.root, self.unit_gram = _cholesky(gram) @ self.rotation, gram

    def scaled(self, sigma):
        """(log delta, d log delta / d log sigma, S up to a factor) at unit gram / sigma^2."""
        self.gram, self.factor = self.unit_gram / sigma**2, self.root / sigma
        self.diagonal = np.diag(self.gram).copy()
        norms = self._norms(self.gram)
        self.log_densities = self.log_chances - norms / 2
        value = by_sigma = weights = 0.0
        for lines in self._parts(None, len(self.cube)):
            parts = self._integrals(lines, 0.0)
            value, by_sigma = value + parts[0].sum(), by_sigma + parts[1].sum()
            border = self._border(lines, 0.0)
            weights = weights + (lines.shares * border[:, None]).T @ lines.shares
        if not value > 0:  # the lines were drawn for something else
            return -math.inf, 0.0, weights
        return math.log(value / len(self.cube)), by_sigma / value, weights

    def _norms(self, gram):
        return np.einsum("ij,ij->i", self.combinations @ gram, self.combinations)

    def _parts(self, rng, size):
        for start in range(0, size, 256):
            yield self._geometry(self.cube[start : start + 256], rng)


def _cholesky(gram):
    return np.linalg.cholesky(gram + np.diag(np.full(len(gram), _JITTER * gram.diagonal().max())))
