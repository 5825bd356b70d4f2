"""Statistics: average, covariance, correlation, counts.

Medians and quantiles are in quantiles.py, moments in reductions.py, histograms in histograms.py.
Counts are integers without derivative; weighted counts are differentiable.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from wengert._engine.core.handle import dtype_of, is_traced, value_of
from wengert._engine.core.symbolic.dim import Dim
from wengert._engine.core.tracing import size_value
from wengert._engine.kinds.reduction import Axis, axes_of, count_along
from wengert._engine.ops import casts, reductions, sorting
from wengert._engine.ops.casts import broadcast_to
from wengert._engine.ops.indexing import getitem
from wengert._engine.ops.shapes import reshape
from wengert._engine.tensor.numpy_dispatch import as_array, counterpart
from wengert._engine.tensor.operand_conversion import needed

from ..errors import ShapeError, at, user_line
from .reduction_arguments import kept

__all__ = ["average", "cov", "corrcoef", "bincount"]


@counterpart(np.average)
def average(
    a: Any, axis: Axis = None, weights: Any = None, returned: bool = False, *, keepdims: Any = False
) -> Any:
    """The weighted mean, as ``numpy.average``; differentiable with respect to the weights too.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> x = np.array([1.0, 3.0])
    >>> wg.grad(lambda w: np.average(x, weights=w))(np.array([1.0, 1.0]))
    array([-0.5,  0.5])
    """
    a = as_array(a)
    keys: Any = {"axis": axis, "keepdims": kept(keepdims)}
    if weights is None:
        mean = reductions.mean(a, **keys)
        if not returned:
            return mean
        return mean, np.zeros_like(mean) + count_along(a.shape, axis)
    weights = as_array(weights)
    if weights.shape != a.shape:
        weights = _weights_along(weights, a, axis)
    whole = [np.dtype(float)] if dtype_of(a).kind in "biu" else []
    dtype = np.result_type(dtype_of(a), dtype_of(weights), *whole)
    a, weights = _of_dtype(a, dtype), _of_dtype(weights, dtype)
    total = reductions.sum(weights, **keys)
    none = value_of(total) == 0
    if not is_traced(none) and np.any(none):
        raise ZeroDivisionError("Weights sum to zero, can't be normalized")
    mean = reductions.sum(a * weights, **keys) / total
    if not returned:
        return mean
    return mean, broadcast_to(total, shape=mean.shape) if total.shape != mean.shape else total


def _of_dtype(x: Any, dtype: np.dtype[Any]) -> Any:
    return x if dtype_of(x) == dtype else casts.astype(x, dtype)


def _weights_along(weights: Any, a: Any, axis: Axis) -> Any:
    """Weights for some axes only, broadcast over the others."""
    if axis is None:
        raise TypeError("Axis must be specified when shapes of a and weights differ.")
    chosen = axis if isinstance(axis, tuple) else (axis,)
    axes = tuple(k % a.ndim for k in chosen)
    if weights.shape != tuple(a.shape[k] for k in axes):
        raise ShapeError(
            f"average: weights of shape {weights.shape} for axes {axes} of an array of shape "
            f"{a.shape}. Weights must have the shape of the array, or of these axes"
            f"{at(user_line())}."
        )
    order = np.argsort(axes)
    weights = weights.transpose(tuple(int(k) for k in order)) if weights.ndim > 1 else weights
    gone = axes_of(axes, a.ndim)
    shape = tuple(n if k in gone else 1 for k, n in enumerate(a.shape))
    return broadcast_to(reshape(weights, shape=shape), shape=a.shape)


# ---- covariance --------------------------------------------------------------------------------


@counterpart(np.cov)
def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: Any = None,
) -> Any:
    """The covariance matrix of variables in rows, as ``numpy.cov``.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> x = np.array([[0.0, 1.0, 2.0], [2.0, 0.0, 1.0]])
    >>> wg.grad(lambda x: np.cov(x)[0, 1])(x)
    array([[ 0.5, -0.5,  0. ],
           [-0.5,  0. ,  0.5]])
    """
    x = _variables(m, rowvar, dtype)
    if y is not None:
        x = np.concatenate([x, _variables(y, rowvar, x.dtype)], axis=0)
    if ddof is None:
        ddof = 0 if bias else 1
    w = _joint_weights(fweights, aweights)
    if w is None:
        mean = reductions.mean(x, axis=1, keepdims=True)
        total, used = x.shape[1], x.shape[1]
    else:
        total = reductions.sum(w)
        mean = reductions.sum(x * w, axis=1, keepdims=True) / total
        used = total
    if ddof == 0:
        free = used
    elif aweights is None or w is None:
        free = used - ddof
    else:
        free = used - ddof * reductions.sum(w * as_array(aweights)) / total
    if isinstance(free, Dim) or is_traced(free):
        free = np.maximum(size_value(free) if isinstance(free, Dim) else free, 0)
    elif value_of(free) <= 0:
        warnings.warn("Degrees of freedom <= 0 for slice", RuntimeWarning, stacklevel=2)
        free = 0.0
    apart = x - mean
    other = apart if w is None else apart * w
    other = other.conj() if other.dtype.kind == "c" else other
    return (np.matmul(apart, other.T) / free).squeeze()


def _variables(m: Any, rowvar: bool, dtype: Any) -> Any:
    m = as_array(m)
    if m.ndim > 2:
        raise ShapeError(f"cov of {m.ndim} axes: at most two are allowed{at(user_line())}.")
    m = casts.astype(m, np.result_type(m.dtype, np.float64) if dtype is None else dtype)
    if m.ndim < 2:
        return reshape(m, shape=(1, -1))
    return m.T if not rowvar and m.shape[0] != 1 else m


def _joint_weights(fweights: Any, aweights: Any) -> Any:
    if aweights is None:
        return None if fweights is None else as_array(fweights)
    aweights = as_array(aweights)
    return aweights if fweights is None else aweights * as_array(fweights)


@counterpart(np.corrcoef)
def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Any:
    """The matrix of correlation coefficients, as ``numpy.corrcoef``."""
    c = cov(x, y, rowvar, dtype=dtype)
    if c.ndim == 0:
        return c / c
    spread = np.sqrt(np.diagonal(c).real)
    c = c / reshape(spread, shape=(-1, 1)) / reshape(spread, shape=(1, -1))
    return c if c.dtype.kind == "c" else np.clip(c, -1.0, 1.0)


# ---- counts ------------------------------------------------------------------------------------


_BIN_COUNT = "how many bins there are"
_AT = "Add to a fixed number of bins, np.add.at(np.zeros(n, like=x), positions, 1)"


@counterpart(np.bincount)
def bincount(x: Any, /, weights: Any = None, minlength: int = 0) -> Any:
    """The number of occurrences of each integer, as ``numpy.bincount``; linear in the weights.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> wg.grad(lambda w: np.bincount([0, 1, 1], w)[1])(np.array([1.0, 1.0, 1.0]))
    array([0., 1., 1.])
    """
    if weights is None:
        needed(x, "np.bincount", _BIN_COUNT, _AT)
        return sorting.bincount(as_array(x), minlength=minlength)
    positions = np.asarray(needed(x, "np.bincount", _BIN_COUNT, _AT))
    weights = as_array(weights)
    if positions.shape != weights.shape:
        raise ShapeError(
            f"np.bincount of {positions.shape[0] if positions.ndim else 'no'} numbers with weights "
            f"of shape {weights.shape}: The weights and list don't have the same length"
            f"{at(user_line())}."
        )
    length = int(max(positions.max(initial=-1) + 1, minlength))
    weights = casts.astype(weights, float)
    return getitem.scatter(weights, positions, index=getitem.IndexSlot(0), shape=(length,))
