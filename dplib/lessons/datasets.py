"""Data for training: handwritten digits that ship with scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._base import validate as check


@dataclass(frozen=True, eq=False)
class Dataset:
    """Features (float32) and labels (int32) of the records to train on and of those to test on."""

    train_features: np.ndarray
    train_labels: np.ndarray
    test_features: np.ndarray
    test_labels: np.ndarray


def digits(test_share: float = 0.2, seed: int = 0) -> Dataset:
    """1,797 handwritten digits of 8 x 8 pixels, from scikit-learn: no network is needed.

    test_share : part kept for testing, in (0, 1). seed : of the split, a whole number at least 0.
    Features have shape (records, 64) and lie in [-1, 1]: the sixteen grey levels scaled by constants, which costs no privacy.

    >>> from dplib.lessons import datasets
    >>> datasets.digits().train_features.shape, datasets.digits().test_features.shape
    ((1438, 64), (359, 64))
    """
    share = check.real("test_share", test_share, above=0, below=1)
    seed = check.whole("seed", seed, at_least=0)
    from sklearn.datasets import load_digits

    features, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(labels))
    held = min(max(1, round(share * len(labels))), len(labels) - 1)
    features, labels = (features / 8 - 1).astype(np.float32)[order], labels.astype(np.int32)[order]
    return Dataset(features[held:], labels[held:], features[:held], labels[:held])
