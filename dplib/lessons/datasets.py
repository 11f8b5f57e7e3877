"""Data for training: handwritten digits that ship with scikit-learn, and CIFAR-10 from its published archive."""

from __future__ import annotations

import hashlib
import os
import tarfile
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .._base import validate as check
from .._base.checkpoints import bar

CIFAR10_URL = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
CIFAR10_MD5 = "c32a1d4ab5d03f1284b67883e8d87530"
_RECORD = 1 + 32 * 32 * 3
_TRAIN = tuple(f"data_batch_{i}.bin" for i in range(1, 6))
_CHUNK = 2**20


@dataclass(frozen=True, eq=False)
class Dataset:
    """Features (float32) and labels (int32) of the records to train on and of those to test on."""

    train_features: np.ndarray
    train_labels: np.ndarray
    test_features: np.ndarray
    test_labels: np.ndarray

    def __repr__(self):
        shape = self.train_features.shape[1:]
        return (
            f"Dataset({len(self.train_labels)} to train, {len(self.test_labels)} to test, features {shape})"
        )


def digits(test_share=0.2, seed=0) -> Dataset:
    """1,797 handwritten digits of 8 x 8 pixels, from scikit-learn: no network is needed.

    test_share : part kept for testing, in (0, 1). seed : of the split, a whole number at least 0.
    Features have shape (records, 64) and lie in [-1, 1]: the sixteen grey levels scaled by constants, which costs no privacy.

    >>> from dplib.lessons import datasets
    >>> datasets.digits()
    Dataset(1438 to train, 359 to test, features (64,))
    """
    share = check.real("test_share", test_share, above=0, below=1)
    seed = check.whole("seed", seed, at_least=0)
    from sklearn.datasets import load_digits

    features, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(labels))
    held = min(max(1, round(share * len(labels))), len(labels) - 1)
    features, labels = (features / 8 - 1).astype(np.float32)[order], labels.astype(np.int32)[order]
    return Dataset(features[held:], labels[held:], features[:held], labels[:held])


def cifar10(path=None, *, download=True, url=CIFAR10_URL, md5=CIFAR10_MD5, timeout=30.0) -> Dataset:
    """CIFAR-10: 50,000 colour images of 32 x 32 pixels to train on, 10,000 to test on, ten classes.

    Parameters
    ----------
    path : the archive cifar-10-binary.tar.gz, a folder that holds it or its unpacked .bin files, or None for the
        folder ~/.cache/dplib. download : whether to fetch the archive where it is missing; a download that broke off
        goes on where it stopped. url, md5 : of the archive; md5=None skips the checksum. timeout : seconds, above 0.

    Features have shape (records, 32, 32, 3) and lie in [-1, 1]. The format: records of 3,073 bytes, the label and then
    1,024 red, green and blue values, in data_batch_1.bin to data_batch_5.bin and test_batch.bin.
    Raises FileNotFoundError where there is no file and none may be or can be fetched, ValueError for a wrong one.
    """
    download = check.flag("download", download)
    timeout = check.real("timeout", timeout, above=0)
    if not isinstance(url, str) or not url:
        raise TypeError(f"url must be text; got {url!r}")
    if md5 is not None and not isinstance(md5, str):
        raise TypeError(f"md5 must be text, or None; got {md5!r}")
    if path is None:
        path = Path.home() / ".cache" / "dplib"
        path.mkdir(parents=True, exist_ok=True)
    elif not isinstance(path, (str, os.PathLike)) or not os.fspath(path):
        raise TypeError(f"path must be a path, or None; got {path!r}")
    path = Path(path)
    if path.is_dir():
        unpacked = _folder(path)
        if unpacked is not None:
            return _assembled(lambda name: (unpacked / name).read_bytes(), unpacked)
        path = path / "cifar-10-binary.tar.gz"
    if not path.exists():
        if not download:
            raise FileNotFoundError(
                f"no CIFAR-10 archive at {path} and download=False; it is published at {url}"
            )
        if not path.parent.is_dir():
            raise ValueError(f"path must be in a folder that exists; got {str(path)!r}")
        _download(url, path, md5, timeout)
    elif md5 is not None:
        _verify(path, md5, "the file")
    return _from_archive(path)


def _folder(path):
    for folder in (path, path / "cifar-10-batches-bin"):
        if all((folder / name).is_file() for name in (*_TRAIN, "test_batch.bin")):
            return folder
    return None


def _from_archive(path):
    try:
        with tarfile.open(path, "r:gz") as archive:
            members = {Path(member.name).name: member for member in archive.getmembers() if member.isfile()}
            missing = [name for name in (*_TRAIN, "test_batch.bin") if name not in members]
            if missing:
                raise ValueError(
                    f"path must be the binary version of CIFAR-10; {path} lacks {', '.join(missing)}"
                )
            return _assembled(lambda name: archive.extractfile(members[name]).read(), path)
    except (tarfile.TarError, EOFError, OSError) as error:
        raise ValueError(f"path must be a gzipped tar archive; {path} is not: {error}") from error


def _assembled(read, where):
    train = [_records(read(name), name, where) for name in _TRAIN]
    images, labels = (np.concatenate(part) for part in zip(*train))
    return Dataset(images, labels, *_records(read("test_batch.bin"), "test_batch.bin", where))


def _records(content, name, where):
    if not content or len(content) % _RECORD:
        raise ValueError(
            f"path must hold records of {_RECORD} bytes; {name} in {where} has {len(content)} bytes"
        )
    rows = np.frombuffer(content, np.uint8).reshape(-1, _RECORD)
    if rows[:, 0].max() > 9:
        raise ValueError(f"path must hold labels from 0 to 9; {name} in {where} has {rows[:, 0].max()}")
    pixels = rows[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    return (pixels / np.float32(127.5) - 1).astype(np.float32), rows[:, 0].astype(np.int32)


# -------------------------------------------------------------------------------- download


def _download(url, path, md5, timeout):
    """Fetch into PATH.part, from where it stopped if it exists, verify, then move into place."""
    part = path.with_name(path.name + ".part")
    try:
        complete = _fetch(url, part, timeout)
    except (urllib.error.URLError, OSError) as error:
        raise FileNotFoundError(
            f"CIFAR-10 is not at {path} and could not be fetched from {url} ({error}). Without a network, put the "
            "archive there by hand, or give its path; what was fetched so far is kept"
        ) from error
    if not complete:
        raise FileNotFoundError(f"the connection to {url} broke off; call again to go on from {part}")
    if md5 is not None:
        try:
            _verify(part, md5, "the download")
        except ValueError:
            part.unlink()
            raise
    os.replace(part, path)


def _fetch(url, part, timeout):
    """Whether the file is complete now."""
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        response = urllib.request.urlopen(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        if have and error.code == 416:  # nothing is left to fetch
            return True
        raise
    with response:
        goes_on = have and response.status == 206
        length = response.headers.get("Content-Length")
        wanted = None if length is None else int(length) + (have if goes_on else 0)
        steps = 1 if wanted is None else max(1, wanted // _CHUNK)
        with open(part, "ab" if goes_on else "wb") as file, bar(description="CIFAR-10", total=steps) as progress:
            while chunk := response.read(_CHUNK):
                file.write(chunk)
                progress.update()
    return wanted is None or part.stat().st_size == wanted


def _verify(path, md5, what):
    digest = hashlib.md5(usedforsecurity=False)
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    if digest.hexdigest() != md5:
        raise ValueError(
            f"{what} {path} has MD5 {digest.hexdigest()} instead of {md5}: it is damaged or another file"
        )


def cifar10_experiment(data, config, *, seed=None, batches_per_epoch=100, epochs=20, batches=None, **options):
    """The CIFAR-10 configuration of the source of balls in bins (section 5.2): (`Trained`, accuracy on the test images).

    Parameters
    ----------
    data : `dplib.lessons.datasets.cifar10(...)`.
    config : `dplib.training.Config` with encoder, noise multiplier, peak learning rate (a number) and divisor (500, the size of the
        source's batches, is a constant that suits). Whatever else it says, as in the source: momentum 0.95, clip norm 1,
        and the learning rate falls linearly to a twentieth from a quarter of the rounds (500 of 2,000) to the end.
    seed : of noise, first parameters and batches; None for fresh entropy.
    batches_per_epoch, epochs : 100 and 20. batches : another stream; None: balls in bins.
    options : further arguments of `dplib.training.train`.

    The network is `dplib.lessons._vgg`: three pairs of convolutions with pooling, about 550,000 parameters. The source names
    a VGG model without listing its layers. Meant for a GPU: hours on a CPU.
    """
    import dataclasses

    from .. import batching, training
    from .._base.lazy_jax import load
    from . import _vgg

    jax = load()

    if not isinstance(data, Dataset):
        raise TypeError(f"data must be a dplib.lessons.datasets.Dataset; got {type(data).__name__}")
    if not isinstance(config, training.Config):
        raise TypeError(f"config must be a dplib.training.Config; got {config!r}")
    if callable(config.learning_rate) or np.ndim(config.learning_rate):
        raise TypeError(f"learning_rate must be a number, the peak; got {config.learning_rate!r}")
    b = check.whole("batches_per_epoch", batches_per_epoch, at_least=1)
    rounds = b * check.whole("epochs", epochs, at_least=1)
    if batches is None:
        batches = batching.balls_in_bins_stream(len(data.train_labels), b, epochs, seed=seed)
    rates = config.learning_rate * _vgg.cooldown(rounds)
    config = dataclasses.replace(config, learning_rate=rates, momentum=0.95, clip_norm=1.0, optimizer=None)
    params = _vgg.parameters(0 if seed is None else seed)
    options = {"rounds_per_call": 1, **options}
    train_set = (data.train_features, data.train_labels)
    result = training.train(_vgg.loss, params, train_set, batches, config, seed=seed, **options)
    return result, _vgg.accuracy(jax.device_put(result.params), data.test_features, data.test_labels)
