"""Data that the chapters train on."""

import numpy as np
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
