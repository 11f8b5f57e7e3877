"""Where the integrand of balls in bins is largest, and how far it reaches around such a point [A-17].

The integrand q (w - e^epsilon)_+ of the remove direction peaks near points of the surface w = e^epsilon
that are nearest to 0. There x is a combination of the modes whose weights are in proportion to the shares
of the bins in w: a fixed point, one for each place of a cluster of bins. log w is convex, so that across
the direction of x the integrand falls more slowly than the normal density q: by exp(c u^2 / 2) in a
direction with curvature c < 1. A proposal of unit covariance there has a large variance from c = 1/2 on.
"""

from __future__ import annotations

import numpy as np

from .._base.lazy_scipy import special
from .line_integral import LOWEST, crossing

_SETTLING = 12  # steps of the fixed point, whose error falls by about 0.6 in each
_SPACING = 1.5  # of the points that are kept, in standard deviations of the noise
_FALL = 12.0  # of the logarithm of the peak: lower ones are left out
_AXES, _SPARE = 12, 4  # directions of one peak; further ones that help to find them
_ROUNDS = 3  # of the iteration for them
_LEAST, _MOST = 0.12, 0.75  # curvatures that matter; larger ones (a cluster may move) count as this
_START = 4.0  # of the clusters, in units of 1 / mean squared norm
_RANK = 1e-10


def settled(gram, level, count):
    """Weights of the bins at fixed points, from `count` clusters and as many single bins: (2 count, b)."""
    b = len(gram)
    middles = np.unique(np.round(np.linspace(0, b - 1, count)).astype(int))
    wide = special.softmax(_START * gram[middles] / np.mean(gram.diagonal()), axis=1)
    profile = np.concatenate([wide, np.eye(b)[middles]])
    rest = np.broadcast_to(-gram.diagonal() / 2, profile.shape)
    for _ in range(_SETTLING):
        _, profile, _, _ = crossing(rest, profile @ gram, level, np.inf, LOWEST)
    return profile


def chosen(gram, combination, height):
    """Which of the points to keep: the high ones, none closer to an earlier one than the spacing. Row numbers."""
    places = combination @ gram
    squares = np.einsum("ij,ij->i", places, combination)
    distances = squares[:, None] + squares - 2 * places @ combination.T
    left, kept = height > height.max() - _FALL, []
    while np.any(left):
        kept.append(int(np.argmax(left)))
        left &= distances[kept[-1]] > _SPACING**2
        left[kept[-1]] = False
    return np.array(kept)


def axes(gram, combination, rng):
    """(directions, stretches) of the points: shapes (points, axes, b) and (points, axes).

    Directions are combinations of the modes, of length 1 and at right angles to each other and to their point. A
    normal law that is stretched like this along them is as wide as the integrand.
    """
    points, b = combination.shape
    tilt = combination.sum(axis=1)
    shares, step = combination / tilt[:, None], combination @ gram
    norm = np.einsum("ij,ij->i", step, combination)

    def across(values):
        along = np.einsum("ckb,cb->ck", values, step) / norm[:, None]
        return values - along[:, :, None] * combination[:, None, :]

    count = min(_AXES + _SPARE, b)
    found = across(rng.standard_normal((points, count, b)) * np.sqrt(shares)[:, None, :])
    for attempt in range(_ROUNDS + 1):
        found, images = _orthonormal(found, gram)
        # The curvature of log w, diag(shares) - shares shares', as a map of combinations.
        bent = shares[:, None, :] * images
        bent -= shares[:, None, :] * bent.sum(axis=2, keepdims=True)
        if attempt < _ROUNDS:
            found = across(bent)
    curvature, turn = np.linalg.eigh(np.einsum("ckb,clb->ckl", images, bent) * tilt[:, None, None])
    curvature, turn = curvature[:, ::-1][:, :_AXES], turn[:, :, ::-1][:, :, :_AXES]
    count = int(np.sum(curvature.max(axis=0) > _LEAST))
    curvature = np.clip(curvature[:, :count], 0.0, _MOST)
    return np.einsum("ckl,ckb->clb", turn[:, :, :count], found), 1 / np.sqrt(1 - curvature)


def _orthonormal(values, gram):
    """(directions, gram times them), at right angles; those that are not independent of the others become 0."""
    images = (values.reshape(-1, len(gram)) @ gram).reshape(values.shape)
    sizes, turn = np.linalg.eigh(np.einsum("ckb,clb->ckl", images, values))
    safe = sizes > _RANK * np.maximum(sizes[:, -1:], 1e-300)
    turn = turn * np.where(safe, 1 / np.sqrt(np.where(safe, sizes, 1.0)), 0.0)[:, None, :]
    return np.einsum("ckl,ckb->clb", turn, values), np.einsum("ckl,ckb->clb", turn, images)
