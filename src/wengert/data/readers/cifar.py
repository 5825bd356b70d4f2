"""CIFAR-10 and CIFAR-100, binary and Python versions.

    read_cifar   images and labels of a file of either version
    CIFAR10      the files of a folder as a dataset
    CIFAR100

The binary version has for each image its label (CIFAR-100: a coarse and a fine one) and 3,072
bytes, the planes of red, green and blue.  The Python version is a pickle.  Pickles can run
arbitrary code, so only the names that pickled NumPy arrays need are allowed.  (A. Krizhevsky,
"Learning multiple layers of features from tiny images", 2009.)
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
from .compressed import contents, damaged, find

__all__ = ["CIFAR10", "CIFAR100", "read_cifar"]

_PIXELS = 3 * 32 * 32
# The names in pickles of arrays, for all versions of NumPy; they can only create arrays.
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


class _ArrayUnpickler(pickle.Unpickler):
    """An unpickler that allows NumPy arrays only."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"it refers to {module}.{name}, which is not allowed")
        if module.startswith("numpy"):
            return _BUILDERS[name] if name in _BUILDERS else getattr(np, name)
        return super().find_class(module, name)


def read_cifar(path: str | os.PathLike[str], labels: int = 1) -> tuple[Any, Any]:
    """Read the images and labels of a file.

    Parameters
    ----------
    path : path
        ``data_batch_1.bin`` (binary), ``data_batch_1`` (Python), ``train``, ``test``...
    labels : {1, 2}
        Labels per image in a binary file: 1 in CIFAR-10, 2 (coarse, fine) in CIFAR-100.

    Returns
    -------
    images : array of uint8, shape (n, 3, 32, 32)
    labels : array of int64, shape (n,), or (n, 2) with two labels per image

    Raises
    ------
    FileError
        The file is damaged, truncated, or a pickle of something else.
    """
    if labels not in (1, 2):
        raise ArgumentError(f"read_cifar(labels={labels}): labels must be 1 or 2{at(user_line())}.")
    data = contents(path)
    if data[:1] == b"\x80":  # a pickle: the labels that binary files begin with are smaller
        return _read_pickle(path, data)
    if not data or len(data) % (labels + _PIXELS):
        raise damaged(
            path,
            f"its {len(data)} bytes are not a multiple of the size of an image, "
            f"{labels + _PIXELS} bytes: it is truncated or not a CIFAR file",
        )
    rows = np.frombuffer(data, np.uint8).reshape(-1, labels + _PIXELS)
    tags = rows[:, :labels].astype(np.int64)
    return _images(rows[:, labels:]), tags[:, 0] if labels == 1 else tags


def _read_pickle(path: Any, data: bytes) -> tuple[Any, Any]:
    try:
        loaded = _ArrayUnpickler(io.BytesIO(data), encoding="bytes").load()
    except (
        pickle.UnpicklingError,
        struct.error,
        *(EOFError, ValueError, TypeError, KeyError, IndexError, AttributeError),
        *(MemoryError, OverflowError, ImportError, UnicodeDecodeError),
    ) as error:
        raise damaged(path, f"it is a pickle that cannot be read: {error}") from error
    entries = {}
    if isinstance(loaded, dict):
        entries = {k.decode() if isinstance(k, bytes) else k: v for k, v in loaded.items()}
    pixels = entries.get("data")
    if not isinstance(pixels, np.ndarray) or pixels.dtype != np.uint8 or pixels.ndim != 2:
        raise damaged(path, "it is a pickle without CIFAR images")
    kinds = [k for k in ("labels", "coarse_labels", "fine_labels") if k in entries]
    try:
        tags = np.stack([np.asarray(entries[k], np.int64) for k in kinds], axis=1)
    except (ValueError, TypeError, OverflowError) as error:
        raise damaged(path, f"its labels are not integers ({error})") from error
    if pixels.shape != (len(tags), _PIXELS):
        raise damaged(path, f"it has images {pixels.shape} for {len(tags)} labels")
    return _images(pixels), tags[:, 0] if len(kinds) == 1 else tags


def _images(rows: Any) -> Any:
    return np.ascontiguousarray(rows).reshape(-1, 3, 32, 32)


def _read_files(
    root: Any, groups: list[tuple[str, ...]], labels: int, what: str
) -> tuple[Any, Any]:
    """The images and labels of several files, concatenated."""
    parts = [read_cifar(find(root, names, what), labels) for names in groups]
    return tuple(np.concatenate(column) for column in zip(*parts, strict=True))  # type: ignore


def _check_range(root: Any, tags: Any, count: int) -> None:
    if tags.size and (tags.min() < 0 or tags.max() >= count):
        raise damaged(
            root, f"its labels range from {tags.min()} to {tags.max()}, but it has {count} classes"
        )


class CIFAR10(TensorDataset):
    """CIFAR-10: small photographs of ten classes.

    Parameters
    ----------
    root : path
        The folder with ``data_batch_1.bin`` to ``data_batch_5.bin`` and ``test_batch.bin``, or the
        Python version, without ``.bin``; or its parent folder. Nothing is downloaded.
    train : bool, default True
        The 50,000 training images, or the 10,000 test images.

    Notes
    -----
    Items are (image, label): uint8 of shape (3, 32, 32), and int64.

    Raises
    ------
    FileError
        A file is missing or damaged, or a label is not from 0 to 9.
    """

    def __init__(self, root: str | os.PathLike[str], train: bool = True) -> None:
        stems = [f"data_batch_{k}" for k in range(1, 6)] if train else ["test_batch"]
        images, tags = _read_files(root, [(f"{s}.bin", s) for s in stems], 1, "CIFAR-10")
        _check_range(root, tags, 10)
        super().__init__(images, tags)


class CIFAR100(TensorDataset):
    """CIFAR-100: small photographs of a hundred classes in twenty groups.

    Parameters
    ----------
    root : path
        The folder with ``train.bin`` and ``test.bin``, or the Python version, without ``.bin``; or
        its parent folder. Nothing is downloaded.
    train : bool, default True
        The 50,000 training images, or the 10,000 test images.
    coarse : bool, default False
        Use the labels of the twenty groups instead of the hundred classes.

    Raises
    ------
    FileError
        A file is missing or damaged, or a label is out of range.
    """

    def __init__(
        self, root: str | os.PathLike[str], train: bool = True, coarse: bool = False
    ) -> None:
        stem = "train" if train else "test"
        images, tags = _read_files(root, [(f"{stem}.bin", stem)], 2, "CIFAR-100")
        if tags.ndim != 2:
            raise damaged(root, "its labels are not those of CIFAR-100")
        chosen = tags[:, 0 if coarse else 1]
        _check_range(root, chosen, 20 if coarse else 100)
        super().__init__(images, chosen)
