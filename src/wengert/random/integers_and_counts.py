"""Integers, booleans, permutations, choices, and counts: poisson, binomial, multinomial.

    bernoulli, rademacher, geometric  functions of uniform numbers
    randint                           integers between two bounds, without bias
    categorical                       classes, from logarithms of probabilities
    permutation, choice               elements in random order; random elements
    poisson, binomial, negative_binomial  one count per element
    multinomial                       counts with a given sum

All samples are piecewise constant, so they have no derivatives.  `permutation` and `choice` are
differentiable with respect to the array, as indexing is.  For derivatives of expectations use the
score function estimator, E[f(k) d log p(k)], with the log-probabilities of wengert.scipy.stats.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.handle import Handle, dtype_of, shape_of, value_of
from wengert._engine.tensor.numpy_dispatch import as_array, as_tensor
from wengert.errors import ArgumentError, DtypeError, ShapeError, at, user_line

from . import rejection_samplers
from .gamma_and_multivariate import gamma
from .inverse_transform import exponential, gumbel, uniform
from .keys import as_dtype, as_key, as_shape, bits, expect_shape, filled, parameters, split
from .rejection_samplers import below

__all__ = [
    "bernoulli", "binomial", "categorical", "choice", "geometric", "multinomial",
    "negative_binomial", "permutation", "poisson", "rademacher", "randint",
]  # fmt: skip


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


# ---- counts ------------------------------------------------------------------------------------


def poisson(key: Any, lam: Any, shape: Any = None, dtype: Any = "int64") -> Any:
    """Samples from the Poisson distribution.

    Parameters
    ----------
    key : array_like or Tensor
    lam : float, array_like or Tensor
        The rate, at least 0; the result is -1 for others.
    shape : int or tuple of int, optional
        By default that of `lam`.
    dtype : integer dtype

    Returns
    -------
    ndarray or Tensor
    """
    _, lengths, (lam,) = parameters(shape, "float64", lam)
    int64 = np.dtype(np.int64)
    counts = rejection_samplers.poisson_counts(as_key(key), filled(lam, lengths), dtype=int64)
    return counts.astype(as_dtype(dtype))


def binomial(key: Any, n: Any, p: Any, shape: Any = None, dtype: Any = "int64") -> Any:
    """Numbers of successes in `n` trials of probability `p`; -1 for invalid parameters."""
    _, lengths, (n, p) = parameters(shape, "float64", n, p)
    given = filled(n, lengths), filled(p, lengths)
    counts = rejection_samplers.binomial_counts(as_key(key), *given, dtype=np.dtype(np.int64))
    return counts.astype(as_dtype(dtype))


def negative_binomial(key: Any, n: Any, p: Any, shape: Any = None, dtype: Any = "int64") -> Any:
    """Numbers of failures before `n` successes of probability `p`."""
    kind, lengths, (n, p) = parameters(shape, "float64", value_of(n), value_of(p))
    first, second = split(key)
    rate = gamma(first, n, lengths, kind) * ((1.0 - p) / p)
    return poisson(second, rate, lengths, dtype)


def multinomial(key: Any, n: Any, p: Any, shape: Any = None, dtype: Any = "int64") -> Any:
    """Numbers of occurrences of each class in `n` trials.

    Parameters
    ----------
    key : array_like or Tensor
    n : int, array_like or Tensor
    p : array_like or Tensor
        (..., k): the probabilities, which sum to 1.
    shape : int or tuple of int, optional
        Shape of the result without its last axis, of length k; by default that of `n` and of `p`
        without its last axis.

    Returns
    -------
    ndarray or Tensor

    Notes
    -----
    The classes are sampled in sequence, each from a binomial distribution of the remaining trials.
    """
    p = as_array(p)
    *batch, count = shape_of(p)
    _, lengths, _ = parameters(shape, "float64", n, np.zeros(tuple(batch)))
    trials = filled(as_array(n).astype(np.float64), as_shape(lengths))
    mass: Any = 1.0  # probability of the remaining classes
    counts = []
    for k, child in enumerate(split(key, count)):
        chance = np.clip(p[..., k] / np.where(mass > 0.0, mass, 1.0), 0.0, 1.0)
        drawn = trials if k == count - 1 else binomial(child, trials, chance, lengths, "float64")
        counts.append(drawn)
        trials, mass = trials - drawn, mass - p[..., k]
    return np.stack(counts, axis=-1).astype(as_dtype(dtype))
