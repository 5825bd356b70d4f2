"""Datasets from NumPy's files, data frames and scikit-learn's datasets.

    from_npz     arrays of an .npz or .npy file, nothing unpickled
    from_frame   columns of a pandas DataFrame, or of what has its methods
    from_bunch   what scikit-learn's load_... and fetch_... return

None of the libraries is imported: their objects are asked for what they have.
"""

from __future__ import annotations

import contextlib
import os
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wengert.errors import (
    ArgumentError,
    DtypeError,
    FileError,
    StructureError,
    WengertError,
    at,
    user_line,
)

from ..dataset import ArrayDataset, TensorDataset

__all__ = ["from_bunch", "from_frame", "from_npz"]


def from_npz(
    path: str | os.PathLike[str],
    names: Sequence[str] | None = None,
    mmap_mode: Any = None,
) -> ArrayDataset:
    """A dataset of the arrays in a file of NumPy's.

    Parameters
    ----------
    path : path
        An .npz file, as ``numpy.savez`` writes it, or an .npy file with one array.
    names : sequence of str, optional
        Which arrays, for items that are tuples in this order; by default all, as dicts.
    mmap_mode : {"r"}, optional
        Of an .npy file: leave the array on the disk until an item is asked for.

    Raises
    ------
    FileError
        It is damaged, no file of NumPy's, or holds objects, which would have to be unpickled.
    StructureError
        It has no array of that name.
    ShapeError
        The arrays are not of one length.

    Examples
    --------
    >>> import pathlib, tempfile, numpy as np
    >>> from wengert.data.readers.array_sources import from_npz
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "points.npz"
    >>> np.savez(path, x=np.eye(2), y=np.array([0, 1]))
    >>> from_npz(path, ["x", "y"])[1]
    (array([0., 1.]), np.int64(1))
    """
    given = os.fspath(path)
    try:
        with contextlib.ExitStack() as opened:  # np.load leaves a file open that it cannot read
            file = given if mmap_mode else opened.enter_context(open(given, "rb"))
            return _from_file(file, given, names, mmap_mode)
    except (ValueError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError) as error:
        if isinstance(error, WengertError):
            raise
        raise FileError(
            f"{given}: it is damaged, no file of NumPy's, or holds objects, which are not "
            f"unpickled ({error}). Save numbers by numpy.savez{at(user_line())}."
        ) from error


def _from_file(file: Any, given: str, names: Any, mmap_mode: Any) -> ArrayDataset:
    found: Any = np.load(file, allow_pickle=False, mmap_mode=mmap_mode)
    if isinstance(found, np.ndarray):
        if names is not None:
            raise StructureError(
                f"from_npz({given!r}, {list(names)}): it holds one array, without a name. "
                f"Leave names out{at(user_line())}."
            )
        return ArrayDataset(found)
    with found:
        chosen = found.files if names is None else list(names)
        missing = [n for n in chosen if n not in found.files]
        if missing:
            raise StructureError(
                f"from_npz({given!r}): it has no arrays {missing}, but {found.files}. Name "
                f"some of these{at(user_line())}."
            )
        arrays = {n: found[n] for n in chosen}
    return ArrayDataset(arrays) if names is None else TensorDataset(*arrays.values())


def from_frame(
    frame: Any, target: str | Sequence[str] | None = None, columns: Sequence[str] | None = None
) -> ArrayDataset:
    """A dataset of the rows of a data frame.

    Parameters
    ----------
    frame : pandas.DataFrame
        Or anything with ``columns``, and for each of them ``frame[column].to_numpy()``.
    target : str or sequence of str, optional
        The column to be predicted (shape ``(n,)``), or several (``(n, k)``); without it items are
        features only.
    columns : sequence of str, optional
        The features, of numbers; by default all that are not the target.

    Returns
    -------
    ArrayDataset
        Features are matrices of the common dtype of the columns, at least float32.

    Raises
    ------
    ArgumentError
        A column that is not there.
    DtypeError
        A feature that is not of numbers: encode it first (`wengert.data.encoders.OneHot`).
    """
    names = list(frame.columns)
    targets = [] if target is None else [target] if isinstance(target, str) else list(target)
    features = [n for n in names if n not in targets] if columns is None else list(columns)
    missing = [n for n in (*features, *targets) if n not in names]
    if missing or not features:
        raise ArgumentError(
            f"from_frame: columns {missing or 'to learn from'} are not among {names}. Name some of "
            f"these{at(user_line())}."
        )
    parts = [_numbers(frame, n) for n in features]
    dtype = np.result_type(np.float32, *parts)
    x = np.stack([p.astype(dtype) for p in parts], axis=1)
    if not targets:
        return ArrayDataset(x)
    if isinstance(target, str):
        return TensorDataset(x, np.asarray(frame[target].to_numpy()))
    return TensorDataset(x, np.stack([_numbers(frame, n) for n in targets], axis=1))


def _numbers(frame: Any, name: str) -> Any:
    values = np.asarray(frame[name].to_numpy())
    if values.dtype.kind == "O":
        try:  # columns with missing values may be of objects that are numbers
            return values.astype(np.float64)
        except (TypeError, ValueError):
            pass
    if values.dtype.kind not in "biuf":
        raise DtypeError(
            f"from_frame: column {name!r} is of {values.dtype} and not of numbers. Encode it first "
            f"(wengert.data.encoders.OneHot), or leave it out{at(user_line())}."
        )
    return values


def from_bunch(bunch: Any, dtype: Any = None) -> TensorDataset:
    """A dataset of what scikit-learn's loaders return.

    Parameters
    ----------
    bunch : sklearn.utils.Bunch
        With ``data`` and ``target``, arrays or data frames; or the pair of them
        (``return_X_y=True``).
    dtype : dtype, optional
        For the features; by default their own.

    Raises
    ------
    StructureError
        It has no data or no target.
    """
    if isinstance(bunch, tuple) and len(bunch) == 2:
        data, target = bunch
    elif isinstance(bunch, Mapping) and {"data", "target"} <= bunch.keys():
        data, target = bunch["data"], bunch["target"]
    else:
        raise StructureError(
            f"from_bunch of a {type(bunch).__name__} without data and target. Give what one of "
            f"scikit-learn's load_... functions returned{at(user_line())}."
        )
    x = np.asarray(data.to_numpy() if hasattr(data, "to_numpy") else data)
    y = np.asarray(target.to_numpy() if hasattr(target, "to_numpy") else target)
    if x.dtype.kind == "O":
        raise DtypeError(
            f"from_bunch: data are of {x.dtype} and not of numbers. Encode them first"
            f"{at(user_line())}."
        )
    return TensorDataset(x if dtype is None else x.astype(dtype), y)
