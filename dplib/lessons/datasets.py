"""Data for training that needs no network: handwritten digits from scikit-learn, letters drawn with Matplotlib's fonts."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np

from .._base import validate as check

_LETTERS = "ABCDEFGHIJ"
_FONTS = (
    "DejaVuSans", "DejaVuSans-Bold", "DejaVuSans-Oblique", "DejaVuSansMono", "DejaVuSerif", "DejaVuSerif-BoldItalic", "STIXGeneral",
    "STIXGeneralBol", "STIXGeneralItalic", "cmr10", "cmss10", "cmtt10", "cmti10", "cmb10",
)  # fmt: skip
_STAMP, _POINTS, _NOISE = 64, 44, 0.3  # pixels and type size of a letter before it is bent; deviation of a pixel's noise, of 2


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


def letters(records: int = 24_000, test_share: float = 1 / 6, size: int = 16, seed: int = 0) -> Dataset:
    """Pictures of the letters A to J, bent and noisy: ten classes, as many of them as a convolutional network needs.

    records : how many, at least 20. test_share : part kept for testing, in (0, 1). size : pixels of a side, 8 to 32.
    seed : of everything, a whole number at least 0.
    Each is one of fourteen typefaces that ship with Matplotlib, turned, sheared, moved and scaled at random, with noise on
    every pixel. Features have shape (records, size, size, 1) and lie about [-1, 1]. Cost: 40 microseconds a picture.

    >>> from dplib.lessons import datasets
    >>> datasets.letters(60).train_features.shape
    (50, 16, 16, 1)
    """
    records = check.whole("records", records, at_least=20)
    share = check.real("test_share", test_share, above=0, below=1)
    size = check.whole("size", size, at_least=8, at_most=32)
    rng = np.random.default_rng(check.whole("seed", seed, at_least=0))
    from PIL import Image

    stamps = _stamps()
    which = rng.integers(len(stamps), size=records)
    turn, shear, stretch = rng.normal(0, [[0.35], [0.3], [0.2]], (3, records))
    moved, features = rng.normal(0, 4, (records, 2)), np.empty((records, size, size), np.float32)
    for i, stamp in enumerate(which):
        cos, sin = math.cos(turn[i]), math.sin(turn[i])
        place = np.array([[cos, -sin], [sin, cos]]) @ [[1, shear[i]], [0, 1]] * (0.75 * _STAMP / size * math.exp(stretch[i]))
        corner = _STAMP / 2 - place @ [size / 2, size / 2] + moved[i]
        matrix = np.column_stack([place, corner]).ravel().tolist()
        features[i] = stamps[stamp].transform((size, size), Image.Transform.AFFINE, matrix, Image.Resampling.BILINEAR)
    features = features[..., None] / 127.5 - 1 + rng.normal(0, _NOISE, (records, size, size, 1)).astype(np.float32)
    labels, held = (which % len(_LETTERS)).astype(np.int32), min(max(1, round(share * records)), records - 1)
    return Dataset(features[held:], labels[held:], features[:held], labels[:held])


@functools.cache
def _stamps():
    """Every letter in every typeface, as pictures; letters of one face follow each other."""
    import matplotlib
    from PIL import Image, ImageDraw, ImageFont

    stamps = []
    for name in _FONTS:
        font = ImageFont.truetype(f"{matplotlib.get_data_path()}/fonts/ttf/{name}.ttf", _POINTS)
        for letter in _LETTERS:
            stamps.append(Image.new("L", (_STAMP, _STAMP)))
            ImageDraw.Draw(stamps[-1]).text((_STAMP / 2, _STAMP / 2), letter, fill=255, font=font, anchor="mm")
    return stamps
