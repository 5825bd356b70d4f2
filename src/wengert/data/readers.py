"""Readers of the files of MNIST (IDX) and of CIFAR-10 and CIFAR-100.

    contents    the bytes of a file, decompressed if it is gzip
    damaged     the error for a file that is not of the expected format
    find        the first existing file of several
    read_idx    a file, compressed or not, as an array
    MNIST       the four files of a folder as a dataset
    read_cifar  images and labels of a file of either version
    CIFAR10     the files of a folder as a dataset
    CIFAR100

The layout of IDX: two zero bytes, a byte for the element type, a byte for the number of axes, the
length of each axis, and the elements in C order, all big-endian.  (Y. LeCun, C. Cortes and C.
Burges, "The MNIST database of handwritten digits".)

The binary version of CIFAR has for each image its label (CIFAR-100: a coarse and a fine one) and
3,072 bytes, the planes of red, green and blue.  The Python version is a pickle.  Pickles can run
arbitrary code, so only the names that pickled NumPy arrays need are allowed.  (A. Krizhevsky,
"Learning multiple layers of features from tiny images", 2009.)
"""

from __future__ import annotations

import gzip
import io
import math
import os
import pickle
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from wengert.errors import ArgumentError, FileError, at, user_line

from .array_concat_split import TensorDataset

__all__ = ["CIFAR10", "CIFAR100", "MNIST", "read_cifar", "read_idx"]

# ---- files -------------------------------------------------------------------------------------


_GZIP = b"\x1f\x8b"


def contents(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a file, decompressed if they are in gzip format, whatever its name.

    Raises
    ------
    FileError
        The compressed data are damaged or truncated.
    OSError
        The file cannot be read.
    """
    data = Path(path).read_bytes()
    if not data.startswith(_GZIP):
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise damaged(path, f"it is compressed and cannot be decompressed ({error})") from error


def damaged(path: str | os.PathLike[str], what: str) -> FileError:
    """The error for a file that is not of the expected format."""
    return FileError(
        f"{os.fspath(path)}: {what}. Download it again, or pass another file{at(user_line())}."
    )


def find(root: str | os.PathLike[str], names: Sequence[str], what: str) -> Path:
    """The first existing file of several in a folder or its subfolders.

    Raises
    ------
    FileError
        None of them exists.
    """
    top = Path(root)
    for folder in (top, *sorted(p for p in top.glob("*") if p.is_dir())):
        for name in names:
            if (folder / name).is_file():
                return folder / name
    raise FileError(
        f"{top} has no file {' or '.join(names)} of {what}. Place it there: nothing is downloaded"
        f"{at(user_line())}."
    )


# ---- IDX ---------------------------------------------------------------------------------------


_DTYPES = {8: ">u1", 9: ">i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}


def read_idx(path: str | os.PathLike[str]) -> Any:
    """Read the array in an IDX file.

    Parameters
    ----------
    path : path
        The file, possibly compressed by gzip; this is detected from its content.

    Returns
    -------
    array
        In native byte order.

    Raises
    ------
    FileError
        The file is not an IDX file, or its size does not match its header.
    OSError
        The file cannot be read.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from wengert.data import read_idx
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "small-idx1-ubyte"
    >>> _ = path.write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 8, 9]))
    >>> read_idx(path)
    array([7, 8, 9], dtype=uint8)
    """
    data = contents(path)
    if len(data) < 4 or data[:2] != b"\0\0" or data[2] not in _DTYPES:
        magic = data[:4].hex(" ") or "nothing"
        raise damaged(path, f"it begins with {magic} and is not an IDX file")
    dtype, axes = np.dtype(_DTYPES[data[2]]), data[3]
    start = 4 + 4 * axes
    if len(data) < start:
        raise damaged(path, f"an IDX file of {axes} axes that ends in its header")
    shape = tuple(int(n) for n in np.frombuffer(data, ">u4", axes, 4))
    size, have = math.prod(shape) * dtype.itemsize, len(data) - start
    if size != have:
        how = "truncated" if have < size else "too long"
        raise damaged(path, f"it has {have} bytes after its header instead of {size}: {how}")
    array = np.frombuffer(data, dtype, offset=start).reshape(shape)
    return array.astype(dtype.newbyteorder("="))


class MNIST(TensorDataset):
    """MNIST, Fashion-MNIST, KMNIST: images and labels of four IDX files.

    Parameters
    ----------
    root : path
        The folder with ``train-images-idx3-ubyte``, ``train-labels-idx1-ubyte`` and the two that
        begin with ``t10k``, possibly compressed (``.gz``); or its parent folder. Nothing is
        downloaded.
    train : bool, default True
        The 60,000 training images, or the 10,000 test images.

    Notes
    -----
    Items are (image, label): uint8 of shape (1, 28, 28), and int64. Use
    ``dataset.map(transforms.AsFloat(), field=0)`` for floats from 0 to 1.

    Raises
    ------
    FileError
        A file is missing, damaged or of other contents, or the numbers of labels and images
        differ.
    """

    def __init__(self, root: str | os.PathLike[str], train: bool = True) -> None:
        begin = "train" if train else "t10k"
        arrays = []
        for kind, axes in (("images", 3), ("labels", 1)):
            names = [f"{begin}-{kind}{dot}idx{axes}-ubyte" for dot in "-."]
            path = find(root, [n + end for n in names for end in ("", ".gz")], "MNIST")
            array = read_idx(path)
            if array.ndim != axes or array.dtype != np.uint8:
                raise damaged(path, f"it contains {array.dtype}{list(array.shape)}, not {kind}")
            arrays.append(array)
        images, labels = arrays
        if len(images) != len(labels):
            raise damaged(path, f"it has {len(labels)} labels for {len(images)} images")
        super().__init__(images[:, None], labels.astype(np.int64))


# ---- CIFAR -------------------------------------------------------------------------------------


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
