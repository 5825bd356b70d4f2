"""Keys of random numbers, as in JAX.

    key, split, fold_in        a key from a seed; many from one; one from a key and a number
    key_data, wrap_key_data    a key as the array that it is, and the other way, checked
    bits                       the random words of a key, which every draw is made of

A key is an array of two words, uint64[2].  The same key gives the same numbers, whatever runs them
and in whatever order, so a program uses each key once: for one draw, or to be split.  Philox 4x64
(Salmon et al. 2011) makes numbers, children and folded keys from blocks of separate counters
(_engine/ops/random/philox.py), so nothing that comes of a key shares random bits with anything else
of it.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from wengert._engine.core.handle import Handle, dtype_of, shape_of
from wengert._engine.core.symbolic.dim import Dim
from wengert._engine.ops.random import bits as draws
from wengert._engine.ops.random import keys as ops
from wengert.errors import ArgumentError, DtypeError, ShapeError, at, user_line

WORD = np.dtype(np.uint64)

__all__ = ["key", "split", "fold_in", "key_data", "wrap_key_data", "bits"]


def key(seed: Any) -> Any:
    """A key from a seed: where a program starts.

    Parameters
    ----------
    seed : int or sequence of int
        At least zero, of any size. NumPy's SeedSequence spreads it over the words of the key, so
        neighboring seeds give unrelated numbers.

    Returns
    -------
    ndarray
        uint64[2].

    Raises
    ------
    ArgumentError
        The seed is not an integer of at least zero, or is only known when a graph runs.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> first, second = wg.random.split(wg.random.key(0))
    >>> x = wg.random.normal(first, (3,))
    >>> bool(np.all(x == wg.random.normal(first, (3,))))
    True
    >>> bool(np.any(x == wg.random.normal(second, (3,))))
    False
    """
    if isinstance(seed, Handle):
        raise ArgumentError(
            "a key is made from a seed that is known: make it outside of the function and pass the "
            f"key, or fold the number into one, fold_in(key, number){at(user_line())}."
        )
    try:
        return np.random.SeedSequence(_entropy(seed)).generate_state(2, WORD)
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            f"seed={seed!r}: {error}. Give an integer of at least zero, or several"
            f"{at(user_line())}."
        ) from error


def _entropy(seed: Any) -> Any:
    """A seed as integers of Python: of others NumPy wraps, rounds or crashes."""
    if isinstance(seed, list | tuple | np.ndarray):
        return [operator.index(n) for n in np.asarray(seed, dtype=object).ravel()]
    return operator.index(seed)


def split(key: Any, num: Any = 2) -> Any:
    """Keys from a key, each for a use of its own.

    Parameters
    ----------
    key : array_like or Tensor
        uint64[2].
    num : int or tuple of int
        How many, or a shape of them.

    Returns
    -------
    ndarray or Tensor
        uint64[num, 2].

    Notes
    -----
    Key i is the first half of block i + 1 of the counters for children: the first keys do not
    depend on how many are asked for.

    Examples
    --------
    >>> import wengert as wg
    >>> wg.random.split(wg.random.key(7), 3).shape
    (3, 2)
    """
    return ops.split(as_key(key), shape=as_shape(num))


def fold_in(key: Any, data: Any) -> Any:
    """The key of a key and an integer: of a step, a row, a process.

    Parameters
    ----------
    key : array_like or Tensor
        uint64[2].
    data : int, array_like or Tensor
        Integers; of negative ones and of large ones the lower 64 bits count. An array gives a
        key for each.

    Returns
    -------
    ndarray or Tensor
        uint64[..., 2].

    Examples
    --------
    >>> import wengert as wg
    >>> root = wg.random.key(7)
    >>> tenth, eleventh = (wg.random.fold_in(root, step) for step in (10, 11))
    >>> bool(wg.random.uniform(tenth) == wg.random.uniform(eleventh))
    False
    """
    if not isinstance(data, Handle):
        if isinstance(data, int):
            data %= 1 << 64
        data = np.asarray(data)
    if dtype_of(data).kind not in "iu":
        raise DtypeError(
            f"what is folded into a key is an integer, not {dtype_of(data)}{at(user_line())}."
        )
    return ops.fold(as_key(key), data)


def key_data(key: Any) -> Any:
    """The words of a key, which is the array that it is."""
    return as_key(key)


def wrap_key_data(data: Any) -> Any:
    """Words as a key: checked, and as they are.

    Parameters
    ----------
    data : array_like or Tensor
        uint64[2].
    """
    return as_key(data)


def bits(key: Any, shape: Any = (), dtype: Any = "uint64") -> Any:
    """Random words, each bit of them 0 or 1 with equal probability.

    Parameters
    ----------
    key : array_like or Tensor
    shape : int or tuple of int
    dtype : uint64 or uint32

    Returns
    -------
    ndarray or Tensor
    """
    kind = as_dtype(dtype)
    if kind not in (np.uint64, np.uint32):
        raise DtypeError(f"dtype={dtype!r}: bits are uint64 or uint32{at(user_line())}.")
    return draws.bits(as_key(key), number=0, shape=as_shape(shape), dtype=kind)


# ---- what all functions of keys begin with -----------------------------------------------------


def as_key(key: Any) -> Any:
    """A key, checked.

    Raises
    ------
    ArgumentError
        It is not a key: a seed, or a batch of keys.
    """
    if not isinstance(key, Handle):
        key = np.asarray(key)
    if dtype_of(key) != WORD or not shape_of(key) or shape_of(key)[-1] != 2:
        raise ArgumentError(
            f"{dtype_of(key)}{list(shape_of(key))} is not a key, which is uint64[2]. Make one of a "
            f"seed: wengert.random.key(0){at(user_line())}."
        )
    if len(shape_of(key)) > 1:
        raise ArgumentError(
            f"these are keys of shape {shape_of(key)[:-1]}, and one was expected. Draw for each "
            f"of them by wengert.vmap{at(user_line())}."
        )
    return key


def as_shape(shape: Any) -> tuple[Any, ...]:
    """One length or several as a tuple; symbolic sizes stay.

    Raises
    ------
    ShapeError
        Something is not a length.
    """
    found = []
    for n in tuple(shape) if isinstance(shape, tuple | list) else (shape,):
        if not isinstance(n, Dim):
            try:
                n = operator.index(n)
            except TypeError as error:
                raise ShapeError(
                    f"shape={shape!r}: {n!r} is not a length{at(user_line())}."
                ) from error
            if n < 0:
                raise ShapeError(f"shape={shape!r}: a length cannot be {n}{at(user_line())}.")
        found.append(n)
    return tuple(found)


def as_dtype(dtype: Any) -> np.dtype[Any]:
    """A dtype of NumPy's."""
    try:
        return np.dtype(dtype)
    except (TypeError, ValueError) as error:
        raise DtypeError(f"dtype={dtype!r} is not a dtype{at(user_line())}.") from error
