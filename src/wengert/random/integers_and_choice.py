"""Integers, booleans, permutations and choices.

    bernoulli, rademacher, geometric    functions of uniform numbers
    randint                             integers between two bounds, without bias
    categorical                         classes, from logarithms of probabilities
    permutation, choice                 elements in random order; random elements

The samples are piecewise constant, so they have no derivatives.  `permutation` and `choice` are
differentiable with respect to the array, as indexing is.
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
    """Booleans that are true with probability `p`.

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
    """-1 or 1 with equal probability."""
    positive = bits(key, shape) < np.uint64(1 << 63)
    return np.where(positive, 1, -1).astype(as_dtype(dtype))


def geometric(key: Any, p: Any, shape: Any = None, dtype: Any = "int64") -> Any:
    """Numbers of trials until the first success, of probability `p`: 1, 2, ..."""
    kind, lengths, (p,) = parameters(shape, "float64", p)
    with np.errstate(divide="ignore"):  # p = 1
        failures = np.floor(exponential(key, lengths, kind) / -np.log1p(-value_of(p)))
    return (failures + 1.0).astype(as_dtype(dtype))


def randint(key: Any, shape: Any, minval: Any, maxval: Any, dtype: Any = "int64") -> Any:
    """Integers uniformly distributed in [minval, maxval), without bias.

    Parameters
    ----------
    key : array_like or Tensor
    shape : int or tuple of int
    minval, maxval : int, array_like or Tensor
        Bounds, which broadcast to the shape.
    dtype : integer dtype

    Returns
    -------
    ndarray or Tensor

    Raises
    ------
    ArgumentError
        There is no integer between the bounds.

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
            f"randint: there is no integer in [{minval}, {maxval}){at(user_line())}."
        )
    return below(key, low, high - low, lengths).astype(kind)


def _bound(x: Any, shape: tuple[Any, ...], what: str) -> Any:
    x = as_array(x)
    if dtype_of(x).kind not in "iu":
        raise DtypeError(f"{what} has dtype {dtype_of(x)}, not an integer dtype{at(user_line())}.")
    expect_shape(x, shape, what)
    return x.astype(np.int64)


def categorical(key: Any, logits: Any, axis: int = -1, shape: Any = None) -> Any:
    """Classes with probabilities proportional to exp(logits).

    Parameters
    ----------
    key : array_like or Tensor
    logits : array_like or Tensor
        Logarithms of probabilities, up to a constant.
    axis : int, default -1
        The axis of the classes.
    shape : int or tuple of int, optional
        Shape of the result, whose last axes are those of `logits` without `axis`; by default only
        these.

    Returns
    -------
    ndarray or Tensor
        int64, indices of classes.

    Notes
    -----
    The Gumbel-max method: the argmax of logits plus Gumbel variates (E. J. Gumbel, 1954; R. D.
    Luce, 1959).
    """
    logits = as_array(logits)
    sizes = list(shape_of(logits))
    axis = axis % len(sizes) if sizes else 0
    batch = tuple(sizes[:axis] + sizes[axis + 1 :])
    lengths = batch if shape is None else as_shape(shape)
    if len(lengths) < len(batch) or lengths[len(lengths) - len(batch) :] != batch:
        raise ShapeError(
            f"categorical: shape={shape!r} does not end with {batch}, the shape of logits without "
            f"the axis{at(user_line())}."
        )
    noise = gumbel(key, (*lengths[: len(lengths) - len(batch)], *sizes))
    return np.argmax(noise + logits, axis=axis - len(sizes))


def permutation(key: Any, x: Any, axis: int = 0, independent: bool = False) -> Any:
    """A uniformly distributed permutation of the elements along an axis.

    Parameters
    ----------
    key : array_like or Tensor
    x : int, array_like or Tensor
        An integer stands for ``arange(x)``.
    axis : int, default 0
    independent : bool, default False
        Permute each slice along the axis independently.

    Returns
    -------
    ndarray or Tensor

    Notes
    -----
    Elements are sorted by random words of 64 bits; the probability that two of n words are equal is
    n^2 / 2^65.
    """
    if isinstance(x, int | np.integer):
        return np.argsort(bits(key, int(x)), kind="stable")
    x = as_array(x)
    shape = shape_of(x)
    if independent:
        return np.take_along_axis(x, np.argsort(bits(key, shape), axis, kind="stable"), axis)
    return _take(x, np.argsort(bits(key, shape[axis]), kind="stable"), axis)


def choice(
    key: Any, a: Any, shape: Any = (), replace: bool = True, p: Any = None, axis: int = 0
) -> Any:
    """Random elements of an array.

    Parameters
    ----------
    key : array_like or Tensor
    a : int, array_like or Tensor
        An integer stands for ``arange(a)``.
    shape : int or tuple of int
    replace : bool, default True
        Draw with replacement.
    p : array_like or Tensor, optional
        Probabilities of the elements; by default uniform.
    axis : int, default 0
        The axis of the elements.

    Returns
    -------
    ndarray or Tensor

    Raises
    ------
    ArgumentError
        More elements are drawn without replacement than there are.
    """
    lengths = as_shape(shape)
    of_integers = isinstance(a, int | np.integer)
    if not of_integers:
        a = as_array(a)
    count = int(a) if of_integers else shape_of(a)[axis]
    total: Any = 1
    for n in lengths:
        total = total * n
    if not replace and isinstance(total, int) and isinstance(count, int) and total > count:
        raise ArgumentError(
            f"choice: {total} of {count} elements cannot be drawn without replacement"
            f"{at(user_line())}."
        )
    if replace and p is None:
        index = randint(key, lengths, 0, count)
    elif replace:
        cumulative = np.cumsum(as_array(p))
        index = np.searchsorted(cumulative, cumulative[-1] * (1.0 - uniform(key, lengths)))
    elif p is None:
        index = permutation(key, count)[:total].reshape(lengths)
    else:
        with np.errstate(divide="ignore"):  # elements of probability 0 are last
            order = np.argsort(-(gumbel(key, count) + np.log(as_array(p))))
        index = order[:total].reshape(lengths)
    return index if of_integers else _take(a, index, axis)


def _take(a: Any, index: Any, axis: int) -> Any:
    """`np.take` that also accepts a plain array with a tensor as index."""
    return np.take(as_tensor(a) if isinstance(index, Handle) else a, index, axis=axis)
