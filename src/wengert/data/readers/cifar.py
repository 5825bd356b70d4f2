"""CIFAR-10 and CIFAR-100, binary and Python versions.

    read_cifar   one file of either version, as pictures and labels
    CIFAR10      a folder of them
    CIFAR100

Binary: for each picture its label (CIFAR-100: a coarse one and a fine one), then 3,072 bytes, a
plane each for red, green and blue.  The Python version is a pickle.  A pickle can run any program,
so it is not simply loaded: what it may name is limited to what an array of NumPy's is made of, and
everything else is refused.  (A. Krizhevsky, "Learning multiple layers of features from tiny
images", 2009.)
"""

from __future__ import annotations

import io
import os
import pickle
import struct
from typing import Any

import numpy as np

from wengert.errors import ArgumentError, at, user_line

from ..array_dataset import TensorDataset
from .compressed import contents, damaged, found

__all__ = ["CIFAR10", "CIFAR100", "read_cifar"]

_PIXELS = 3 * 32 * 32
# What pickles of arrays name, by versions of NumPy; neither can do more than make an array.
_ALLOWED = {
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy.core.numeric", "_frombuffer"),
    ("numpy._core.numeric", "_frombuffer"),
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("_codecs", "encode"),
}
_BUILDERS = {
    "_reconstruct": np.zeros(1).__reduce_ex__(2)[0],
    "_frombuffer": np.zeros(1).__reduce_ex__(5)[0],
}


class _Limited(pickle.Unpickler):
    """An unpickler that knows arrays, and nothing that could do harm."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"it names {module}.{name}, which is refused")
        if module.startswith("numpy"):
            return _BUILDERS[name] if name in _BUILDERS else getattr(np, name)
        return super().find_class(module, name)


def read_cifar(path: str | os.PathLike[str], labels: int = 1) -> tuple[Any, Any]:
    """Pictures and labels of one file.

    Parameters
    ----------
    path : path
        ``data_batch_1.bin`` (binary), ``data_batch_1`` (Python), ``train``, ``test``...
    labels : {1, 2}
        Of a binary file: how many stand before each picture, 1 in CIFAR-10 and 2 (coarse, fine) in
        CIFAR-100.

    Returns
    -------
    pictures : array of uint8, shape (n, 3, 32, 32)
    labels : array of int64, shape (n,) or, with two of them, (n, 2)

    Raises
    ------
    FileError
        It is damaged, truncated, or a pickle of something else.
    """
    if labels not in (1, 2):
        raise ArgumentError(f"read_cifar(labels={labels}): 1 or 2{at(user_line())}.")
    data = contents(path)
    if data[:1] == b"\x80":  # a pickle; of a binary file it is a label, which is smaller
        return _of_pickle(path, data)
    if not data or len(data) % (labels + _PIXELS):
        raise damaged(
            path,
            f"its {len(data)} bytes are not a multiple of the size of an image, "
            f"{labels + _PIXELS} bytes: "
            "truncated, or no file of CIFAR's",
        )
    rows = np.frombuffer(data, np.uint8).reshape(-1, labels + _PIXELS)
    tags = rows[:, :labels].astype(np.int64)
    return _pictures(rows[:, labels:]), tags[:, 0] if labels == 1 else tags


def _of_pickle(path: Any, data: bytes) -> tuple[Any, Any]:
    try:
        made = _Limited(io.BytesIO(data), encoding="bytes").load()
    except (
        pickle.UnpicklingError,
        struct.error,
        *(EOFError, ValueError, TypeError, KeyError, IndexError, AttributeError),
        *(MemoryError, OverflowError, ImportError, UnicodeDecodeError),
    ) as error:
        raise damaged(path, f"it is a pickle that cannot be read: {error}") from error
    words = {}
    if isinstance(made, dict):
        words = {k.decode() if isinstance(k, bytes) else k: v for k, v in made.items()}
    pixels = words.get("data")
    if not isinstance(pixels, np.ndarray) or pixels.dtype != np.uint8 or pixels.ndim != 2:
        raise damaged(path, "it is a pickle without pictures of CIFAR's")
    kinds = [k for k in ("labels", "coarse_labels", "fine_labels") if k in words]
    try:
        tags = np.stack([np.asarray(words[k], np.int64) for k in kinds], axis=1)
    except (ValueError, TypeError, OverflowError) as error:
        raise damaged(path, f"its labels are not integers ({error})") from error
    if pixels.shape != (len(tags), _PIXELS):
        raise damaged(path, f"it has pictures {pixels.shape}, for {len(tags)} labels")
    return _pictures(pixels), tags[:, 0] if len(kinds) == 1 else tags


def _pictures(rows: Any) -> Any:
    return np.ascontiguousarray(rows).reshape(-1, 3, 32, 32)


def _all(root: Any, groups: list[tuple[str, ...]], labels: int, what: str) -> tuple[Any, Any]:
    """The pictures and labels of several files, one after the other."""
    parts = [read_cifar(found(root, names, what), labels) for names in groups]
    return tuple(np.concatenate(column) for column in zip(*parts, strict=True))  # type: ignore


def _check_range(root: Any, tags: Any, count: int) -> None:
    if tags.size and (tags.min() < 0 or tags.max() >= count):
        raise damaged(
            root, f"labels from {tags.min()} to {tags.max()}, where there are {count} classes"
        )


class CIFAR10(TensorDataset):
    """CIFAR-10: small photographs of ten classes.

    Parameters
    ----------
    root : path
        The folder with ``data_batch_1.bin`` to ``data_batch_5.bin`` and ``test_batch.bin``, or the
        Python version, without ``.bin``; or with a folder that has them. Nothing is downloaded.
    train : bool, default True
        The 50,000 to learn from, or the 10,000 held out.

    Notes
    -----
    Items are (picture, label): uint8 of shape (3, 32, 32), and int64.

    Raises
    ------
    FileError
        A file is missing or damaged, or a label is not from 0 to 9.
    """

    def __init__(self, root: str | os.PathLike[str], train: bool = True) -> None:
        stems = [f"data_batch_{k}" for k in range(1, 6)] if train else ["test_batch"]
        pictures, tags = _all(root, [(f"{s}.bin", s) for s in stems], 1, "CIFAR-10")
        _check_range(root, tags, 10)
        super().__init__(pictures, tags)


class CIFAR100(TensorDataset):
    """CIFAR-100: small photographs of a hundred classes in twenty groups.

    Parameters
    ----------
    root : path
        The folder with ``train.bin`` and ``test.bin``, or the Python version, without ``.bin``; or
        with a folder that has them. Nothing is downloaded.
    train : bool, default True
        The 50,000 to learn from, or the 10,000 held out.
    coarse : bool, default False
        Labels of the twenty groups, in the place of the hundred classes.

    Raises
    ------
    FileError
        A file is missing or damaged, or a label is out of range.
    """

    def __init__(
        self, root: str | os.PathLike[str], train: bool = True, coarse: bool = False
    ) -> None:
        stem = "train" if train else "test"
        pictures, tags = _all(root, [(f"{stem}.bin", stem)], 2, "CIFAR-100")
        if tags.ndim != 2:
            raise damaged(root, "its labels are not of CIFAR-100")
        chosen = tags[:, 0 if coarse else 1]
        _check_range(root, chosen, 20 if coarse else 100)
        super().__init__(pictures, chosen)
