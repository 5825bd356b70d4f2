"""Keys of random numbers, and broadcasting of parameters to the shape of the result.

    key, split, fold_in      a key from a seed; several from one; one from a key and an integer
    key_data, wrap_key_data  a key as an array, and an array as a key
    bits                     the random words of a key, from which all samples are computed
    parameters               dtype and shape of the result, and validated parameters
    parameter                a validated parameter
    expect_shape             check that an array broadcasts
    filled                   broadcast a parameter, for operations that take arrays of one shape
    as_floating              float64 or float32

A key is an array of two words, uint64[2].  Equal keys give equal numbers in any order and on any
backend, so a program should use each key once: to draw once, or to split it.  The generator is
Philox 4x64 (J. K. Salmon et al., 2011).  Samples, split keys and folded keys of a key use disjoint
ranges of counters (_engine/ops/random/bits.py), so they share no random bits.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from wengert._engine.core.handle import Handle, dtype_of, shape_of
from wengert._engine.core.symbolic.dim import Dim
from wengert._engine.ops.random import bits as draws
from wengert._engine.tensor.numpy_dispatch import broadcast_shapes
from wengert.errors import ArgumentError, DtypeError, ShapeError, at, user_line

__all__ = ["bits", "fold_in", "key", "key_data", "split", "wrap_key_data"]

WORD = np.dtype(np.uint64)


def key(seed: Any) -> Any:
    """A key from a seed.

    Parameters
    ----------
    seed : int or sequence of int
        At least zero, of any size. It is hashed by NumPy's SeedSequence, so similar seeds give
        unrelated numbers.

    Returns
    -------
    ndarray
        uint64[2].

    Raises
    ------
    ArgumentError
        The seed is negative, not an integer, or traced.

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
            "key(seed) was given a traced seed, whose value is unknown. Make the key outside the "
            f"function and pass it, or fold the number into a key: fold_in(key, number)"
            f"{at(user_line())}."
        )
    try:
        return np.random.SeedSequence(_entropy(seed)).generate_state(2, WORD)
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            f"seed={seed!r}: {error}. Pass an integer of at least zero, or a sequence of them"
            f"{at(user_line())}."
        ) from error


def _entropy(seed: Any) -> Any:
    """A seed as Python integers; NumPy wraps or rounds others, or raises."""
    if isinstance(seed, list | tuple | np.ndarray):
        return [operator.index(n) for n in np.asarray(seed, dtype=object).ravel()]
    return operator.index(seed)


def split(key: Any, num: Any = 2) -> Any:
    """Independent keys from a key.

    Parameters
    ----------
    key : array_like or Tensor
        uint64[2].
    num : int or tuple of int
        Number or shape of the keys.

    Returns
    -------
    ndarray or Tensor
        uint64[num, 2].

    Notes
    -----
    Key i is the first half of block i + 1 of the counters for splitting, so it does not depend on
    `num`.

    Examples
    --------
    >>> import wengert as wg
    >>> wg.random.split(wg.random.key(7), 3).shape
    (3, 2)
    """
    return draws.split(as_key(key), shape=as_shape(num))


def fold_in(key: Any, data: Any) -> Any:
    """A key from a key and an integer, such as the number of a step, an item or a process.

    Parameters
    ----------
    key : array_like or Tensor
        uint64[2].
    data : int, array_like or Tensor
        Integers, of which the lower 64 bits are used. An array gives a key for each element.

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
            f"fold_in(key, data): data has dtype {dtype_of(data)}, not an integer dtype"
            f"{at(user_line())}."
        )
    return draws.fold(as_key(key), data)


def key_data(key: Any) -> Any:
    """The words of a key: the key itself, which is an array."""
    return as_key(key)


def wrap_key_data(data: Any) -> Any:
    """Words as a key: the array itself, after a check.

    Parameters
    ----------
    data : array_like or Tensor
        uint64[2].
    """
    return as_key(data)


def bits(key: Any, shape: Any = (), dtype: Any = "uint64") -> Any:
    """Random words of independent, uniformly distributed bits.

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
        raise DtypeError(f"bits(dtype={dtype!r}): expected uint64 or uint32{at(user_line())}.")
    return draws.bits(as_key(key), number=0, shape=as_shape(shape), dtype=kind)


# ---- validation of arguments -------------------------------------------------------------------


def as_key(key: Any) -> Any:
    """A validated key.

    Raises
    ------
    ArgumentError
        It is not a key, but a seed or a batch of keys.
    """
    if not isinstance(key, Handle):
        key = np.asarray(key)
    if dtype_of(key) != WORD or not shape_of(key) or shape_of(key)[-1] != 2:
        raise ArgumentError(
            f"{dtype_of(key)}{list(shape_of(key))} is not a key, which is uint64[2]. Make one from "
            f"a seed: wengert.random.key(0){at(user_line())}."
        )
    if len(shape_of(key)) > 1:
        raise ArgumentError(
            f"expected one key, got an array of keys of shape {shape_of(key)[:-1]}. Use "
            f"wengert.vmap to draw with each of them{at(user_line())}."
        )
    return key


def as_shape(shape: Any) -> tuple[Any, ...]:
    """A length, or a sequence of lengths, as a tuple; symbolic sizes are allowed.

    Raises
    ------
    ShapeError
        An element is not a length.
    """
    lengths = []
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
        lengths.append(n)
    return tuple(lengths)


def as_dtype(dtype: Any) -> np.dtype[Any]:
    """A NumPy dtype."""
    try:
        return np.dtype(dtype)
    except (TypeError, ValueError) as error:
        raise DtypeError(f"dtype={dtype!r} is not a dtype{at(user_line())}.") from error


def as_floating(dtype: Any) -> np.dtype[Any]:
    """float64 or float32."""
    kind = as_dtype(dtype)
    if kind not in (np.float64, np.float32):
        raise DtypeError(f"dtype={dtype!r}: expected float64 or float32{at(user_line())}.")
    return kind


def parameter(x: Any, dtype: np.dtype[Any], shape: tuple[Any, ...]) -> Any:
    """A parameter of a distribution in the dtype of the result.

    Raises
    ------
    DtypeError
        It is not real.
    ShapeError
        It does not broadcast to the shape of the result.
    """
    if not isinstance(x, Handle):
        x = np.asarray(x)
    if dtype_of(x).kind not in "biuf":
        raise DtypeError(
            f"a parameter has dtype {dtype_of(x)}, which is not real{at(user_line())}."
        )
    expect_shape(x, shape, "a parameter")
    return x if dtype_of(x) == dtype else x.astype(dtype)


def expect_shape(x: Any, shape: tuple[Any, ...], what: str) -> None:
    """Raise if an array does not broadcast to the shape of the result."""
    try:
        fits = broadcast_shapes(shape_of(x), shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise ShapeError(
            f"{what} of shape {shape_of(x)} does not broadcast to shape={shape}{at(user_line())}."
        )


def parameters(
    shape: Any, dtype: Any, *given: Any
) -> tuple[np.dtype[Any], tuple[Any, ...], list[Any]]:
    """Dtype and shape of the result, by default that of the parameters, and the parameters."""
    kind = as_floating(dtype)
    if shape is None:
        try:
            lengths = broadcast_shapes(*map(shape_of, given))
        except ValueError as error:
            raise ShapeError(f"the parameters: {error}{at(user_line())}.") from error
    else:
        lengths = as_shape(shape)
    return kind, lengths, [parameter(x, kind, lengths) for x in given]


def filled(x: Any, shape: tuple[Any, ...]) -> Any:
    """A parameter broadcast to the shape of the result."""
    return x if shape_of(x) == shape else np.broadcast_to(x, shape)
