"""Integers, booleans, permutations and choices.

    bernoulli, rademacher, geometric    from uniform numbers
    randint                             between two bounds, exactly equally likely
    categorical                         a class, by the logarithms of probabilities
    permutation, choice                 elements in random order; some of them

No derivative passes, as none exists: what is drawn jumps.  The elements that `permutation` and
`choice` pick have the derivatives of an index.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.handle import Handle, dtype_of, shape_of, value_of
from wengert._engine.tensor.numpy_dispatch import as_array, as_tensor
from wengert.errors import ArgumentError, DtypeError, ShapeError, at, user_line

from .inverse_transform import exponential, gumbel, uniform
from .keys import as_dtype, as_shape, bits
from .parameter_shapes import expect_shape, parameters
from .rejection_samplers import below

__all__ = [
    "bernoulli",
    "rademacher",
    "geometric",
    "randint",
    "categorical",
    "permutation",
    "choice",
]


def bernoulli(key: Any, p: Any = 0.5, shape: Any = None) -> Any:
    """Booleans, each true with probability `p`.

    Parameters
    ----------
    key : array_like or Tensor
    p : float, array_like or Tensor
    shape : int or tuple of int, optional
        By default that of `p`.

    Returns
    -------
    ndarray or Tensor
        bool.
    """
    kind, lengths, (p,) = parameters(shape, "float64", p)
    return uniform(key, lengths, kind) < p


def rademacher(key: Any, shape: Any = (), dtype: Any = "int64") -> Any:
    """Signs: -1 or 1 with equal probability."""
    positive = bits(key, shape) < np.uint64(1 << 63)
    return np.where(positive, 1, -1).astype(as_dtype(dtype))


def geometric(key: Any, p: Any, shape: Any = None, dtype: Any = "int64") -> Any:
    """How many attempts of success probability `p` it takes until one succeeds: 1, 2, ..."""
    kind, lengths, (p,) = parameters(shape, "float64", p)
    with np.errstate(divide="ignore"):  # of p = 1 none fails
        failures = np.floor(exponential(key, lengths, kind) / -np.log1p(-value_of(p)))
    return (failures + 1.0).astype(as_dtype(dtype))


def randint(key: Any, shape: Any, minval: Any, maxval: Any, dtype: Any = "int64") -> Any:
    """Integers from `minval` to before `maxval`, each exactly equally likely.

    Parameters
    ----------
    key : array_like or Tensor
    shape : int or tuple of int
    minval, maxval : int, array_like or Tensor
        They broadcast to the shape.
    dtype : dtype of integers

    Returns
    -------
    ndarray or Tensor

    Raises
    ------
    ArgumentError
        There is not an integer between the bounds.

    Examples
    --------
    >>> import wengert as wg
    >>> x = wg.random.randint(wg.random.key(0), (1000,), -3, 4)
    >>> int(x.min()), int(x.max()), x.dtype
    (-3, 3, dtype('int64'))
    """
    kind, lengths = as_dtype(dtype), as_shape(shape)
    if kind.kind not in "iu":
        raise DtypeError(f"dtype={dtype!r} is not an integer dtype{at(user_line())}.")
    low, high = _bound(minval, lengths, "minval"), _bound(maxval, lengths, "maxval")
    if not isinstance(low, Handle) and not isinstance(high, Handle) and np.any(low >= high):
        raise ArgumentError(
            f"there is no integer from {minval} to before {maxval}{at(user_line())}."
        )
    return below(key, low, high - low, lengths).astype(kind)


def _bound(x: Any, shape: tuple[Any, ...], what: str) -> Any:
    x = as_array(x)
    if dtype_of(x).kind not in "iu":
        raise DtypeError(f"{what} is {dtype_of(x)}, and has to be whole{at(user_line())}.")
    expect_shape(x, shape, what)
    return x.astype(np.int64)


def categorical(key: Any, logits: Any, axis: int = -1, shape: Any = None) -> Any:
    """Classes whose probabilities are proportional to exp(logits).

    Parameters
    ----------
    key : array_like or Tensor
    logits : array_like or Tensor
        Logarithms of probabilities, up to a constant.
    axis : int, default -1
        Along which the classes are.
    shape : int or tuple of int, optional
        Of the result; it ends with that of `logits` without the axis, which is the default.

    Returns
    -------
    ndarray or Tensor
        int64, the index of a class.

    Notes
    -----
    The largest of logits to which Gumbel numbers are added: R. D. Luce (1959); E. J. Gumbel (1954).
    """
    logits = as_array(logits)
    rows = list(shape_of(logits))
    axis = axis % len(rows) if rows else 0
    batch = tuple(rows[:axis] + rows[axis + 1 :])
    lengths = batch if shape is None else as_shape(shape)
    if len(lengths) < len(batch) or lengths[len(lengths) - len(batch) :] != batch:
        raise ShapeError(f"shape={shape!r} does not end with {batch}{at(user_line())}.")
    noise = gumbel(key, (*lengths[: len(lengths) - len(batch)], *rows))
    return np.argmax(noise + logits, axis=axis - len(rows))


def permutation(key: Any, x: Any, axis: int = 0, independent: bool = False) -> Any:
    """The elements along an axis in random order, each order equally likely.

    Parameters
    ----------
    key : array_like or Tensor
    x : int, array_like or Tensor
        An integer stands for the numbers from 0 to before it.
    axis : int, default 0
    independent : bool, default False
        Whether each line along the axis has an order of its own.

    Returns
    -------
    ndarray or Tensor

    Notes
    -----
    Sorted by random words of 64 bits: two of n are equal with probability n^2 / 2^65.
    """
    if isinstance(x, int | np.integer):
        return np.argsort(bits(key, int(x)), kind="stable")
    x = as_array(x)
    shape = shape_of(x)
    if independent:
        return np.take_along_axis(x, np.argsort(bits(key, shape), axis, kind="stable"), axis)
    return _taken(x, np.argsort(bits(key, shape[axis]), kind="stable"), axis)


def choice(
    key: Any, a: Any, shape: Any = (), replace: bool = True, p: Any = None, axis: int = 0
) -> Any:
    """Elements of an array.

    Parameters
    ----------
    key : array_like or Tensor
    a : int, array_like or Tensor
        An integer stands for the numbers from 0 to before it.
    shape : int or tuple of int
    replace : bool, default True
        Whether an element may be chosen more than once.
    p : array_like or Tensor, optional
        Their probabilities; by default all are equally likely.
    axis : int, default 0
        Along which the elements are.

    Returns
    -------
    ndarray or Tensor

    Raises
    ------
    ArgumentError
        More elements than there are, none of them twice.
    """
    lengths = as_shape(shape)
    whole = isinstance(a, int | np.integer)
    if not whole:
        a = as_array(a)
    count = int(a) if whole else shape_of(a)[axis]
    total: Any = 1
    for n in lengths:
        total = total * n
    if not replace and isinstance(total, int) and isinstance(count, int) and total > count:
        raise ArgumentError(
            f"{total} elements are asked for, none of them twice, and there are {count}"
            f"{at(user_line())}."
        )
    if replace and p is None:
        index = randint(key, lengths, 0, count)
    elif replace:
        heights = np.cumsum(as_array(p))
        index = np.searchsorted(heights, heights[-1] * (1.0 - uniform(key, lengths)))
    elif p is None:
        index = permutation(key, count)[:total].reshape(lengths)
    else:
        with np.errstate(divide="ignore"):  # what has the probability 0 comes last
            order = np.argsort(-(gumbel(key, count) + np.log(as_array(p))))
        index = order[:total].reshape(lengths)
    return index if whole else _taken(a, index, axis)


def _taken(a: Any, index: Any, axis: int) -> Any:
    """`np.take`, which asks the array and not the index whether it is a tensor."""
    return np.take(as_tensor(a) if isinstance(index, Handle) else a, index, axis=axis)
