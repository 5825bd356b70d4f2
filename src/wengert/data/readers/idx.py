"""IDX files, the format of MNIST.

    read_idx   a file, compressed or not, as an array
    MNIST      the four files of a folder as a dataset

The layout: two zero bytes, a byte for the element type, a byte for the number of axes, the length
of each axis, and the elements in C order, all big-endian.  (Y. LeCun, C. Cortes and C. Burges, "The
MNIST database of handwritten digits".)
"""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np

from ..array_dataset import TensorDataset
from .compressed import contents, damaged, find

__all__ = ["MNIST", "read_idx"]

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
