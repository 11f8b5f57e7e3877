"""Data that the chapters train on."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from dplib.lessons import datasets


def test_digits_split_and_scale():
    data = datasets.digits()
    assert data.train_features.shape == (1438, 64) and data.test_features.shape == (359, 64)
    assert data.train_features.dtype == np.float32 and data.train_labels.dtype == np.int32
    together = np.concatenate([data.train_features, data.test_features]), np.concatenate([data.train_labels, data.test_labels])
    features, labels = load_digits(return_X_y=True)
    rows = lambda x, y: sorted(map(tuple, np.column_stack([x, y]).tolist()))
    assert rows((together[0] + 1) * 8, together[1]) == rows(features, labels)
    assert np.array_equal(data.test_labels, datasets.digits().test_labels)
    assert not np.array_equal(data.test_labels, datasets.digits(seed=1).test_labels)
    assert len(datasets.digits(test_share=0.5).test_labels) == 898
    assert len(datasets.digits(test_share=1e-9).test_labels) == 1


def test_letters_are_ten_classes_and_the_same_for_a_seed():
    data = datasets.letters(600, test_share=0.25, size=12)
    assert data.train_features.shape == (450, 12, 12, 1) and data.test_features.shape == (150, 12, 12, 1)
    assert data.train_features.dtype == np.float32 and data.train_labels.dtype == np.int32
    labels = np.concatenate([data.train_labels, data.test_labels])
    assert np.bincount(labels, minlength=10).min() > 30 and labels.max() == 9
    assert np.array_equal(data.train_features, datasets.letters(600, test_share=0.25, size=12).train_features)
    assert not np.array_equal(data.train_labels, datasets.letters(600, test_share=0.25, size=12, seed=1).train_labels)


def test_letters_can_be_told_apart_by_their_means():
    """No class is empty ground, and no two classes are one: nearest of ten means is right far more often than chance."""
    data = datasets.letters(4000)
    means = np.stack([data.train_features[data.train_labels == label].mean(axis=0) for label in range(10)])
    distances = ((data.test_features[:, None] - means) ** 2).sum(axis=(2, 3, 4))
    right = distances.argmin(axis=1) == data.test_labels
    assert all(right[data.test_labels == label].mean() > 0.05 for label in range(10)) and right.mean() > 0.28
    # A letter is brighter than the ground: its ink has a mass of its own.
    assert (means.max(axis=(1, 2, 3)) > -0.6).all() and data.train_features.mean() < -0.5


@pytest.mark.parametrize("wrong", [{"records": 19}, {"size": 7}, {"size": 33}, {"test_share": 0.0}, {"test_share": 1.0}, {"seed": -1}])
def test_letters_says_what_it_takes(wrong):
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be"):
        datasets.letters(**wrong)
