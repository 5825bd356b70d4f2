"""Statistics: average, covariance, correlation, counts, histograms.

    histogram                   of numbers
    histogram2d, histogramdd    of points in two and more dimensions
    histogram_bin_edges         only the edges of the bins

Medians and quantiles are in quantiles.py, moments in reductions.py.  Counts are integers without
derivative; weighted counts are differentiable.  Results of histograms are differentiable with
respect to weights; equidistant edges computed from the data with respect to the smallest and
largest element; densities with respect to both.
"""

from __future__ import annotations

import operator
import warnings
from typing import Any

import numpy as np

from wengert._engine.core.handle import Handle, dtype_of, is_traced, shape_of, value_of
from wengert._engine.core.symbolic.dim import Dim
from wengert._engine.core.tracing import size_value
from wengert._engine.kinds.reduction import Axis, axes_of, count_along
from wengert._engine.ops import casts, reductions, sorting
from wengert._engine.ops.casts import broadcast_to
from wengert._engine.ops.indexing import getitem
from wengert._engine.ops.shapes import reshape
from wengert._engine.tensor.numpy_dispatch import as_array, as_tensor, counterpart, values
from wengert._engine.tensor.operand_conversion import needed

from ..errors import ArgumentError, ShapeError, at, user_line
from .cumulative import diff
from .minmax_norms import kept
from .ranges_and_windows import linspace

__all__ = """
    average cov corrcoef bincount histogram histogram2d histogramdd histogram_bin_edges
""".split()


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


_SEVERAL = (list, tuple, np.ndarray)


@counterpart(np.histogram)
def histogram(
    a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> Any:
    """The number of elements in each bin, as ``numpy.histogram``.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> x = np.array([0.1, 0.2, 0.7])
    >>> wg.grad(lambda w: np.histogram(x, [0.0, 0.5, 1.0], weights=w)[0][0])(np.ones(3))
    array([1., 1., 0.])
    """
    a = as_array(a)
    edges = _edges(a, bins, range, weights)
    flat = reshape(a, shape=(-1,))
    if weights is None:
        counts = sorting.histogram_counts(flat, edges)
    else:
        counts = _weighted_counts(flat, edges, reshape(as_array(weights), shape=(-1,)))
    if not density:
        return counts, edges
    return counts / casts.astype(diff(edges), float) / reductions.sum(counts), edges


def _edges(a: Any, bins: Any, range: Any, weights: Any) -> Any:
    if _are_edges(bins):
        return as_array(bins)
    bins = bins if isinstance(bins, str) else operator.index(bins)
    if is_traced(a):
        return _traced_edges(a, bins, range)
    known = None if is_traced(weights) else value_of(weights)
    plain = np.histogram_bin_edges(value_of(a), bins, range, known)
    if range is not None or not a.size:
        return plain
    low, high = reductions.min(a), reductions.max(a)
    if value_of(low) == value_of(high):
        low, high = low - 0.5, high + 0.5
    return linspace(low, high, len(plain), dtype=plain.dtype)


def _are_edges(bins: Any) -> bool:
    """Whether bins are given by their edges, and not by their number or by a rule."""
    return len(shape_of(bins)) > 0 if isinstance(bins, Handle) else np.ndim(bins) == 1


def _traced_edges(a: Any, bins: Any, range: Any) -> Any:
    """The same while a graph is built."""
    if isinstance(bins, str):
        remedy = "Pass their number, or the edges"
        needed(a, f"np.histogram with bins={bins!r}", "how many bins there are", remedy)
    if range is not None:
        return np.histogram_bin_edges(np.empty(0, a.dtype), bins, range)
    low, high = reductions.min(a), reductions.max(a)
    same = value_of(low) == value_of(high)
    low, high = np.where(same, low - 0.5, low), np.where(same, high + 0.5, high)
    return linspace(low, high, bins + 1, dtype=np.result_type(a.dtype, 1.0))


def _weighted_counts(a: Any, edges: Any, weights: Any) -> Any:
    if weights.dtype == bool:
        weights = casts.astype(weights, int)
    return sorting.histogram_sums(weights, value_of(a), value_of(edges))


@counterpart(np.histogram_bin_edges)
def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    """The edges of the bins, as ``numpy.histogram_bin_edges``; by default they span the data."""
    return _edges(as_array(a), bins, range, weights)


# ---- of points ---------------------------------------------------------------------------------


@counterpart(np.histogram2d)
def histogram2d(
    x: Any, y: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> Any:
    """The number of points in each bin of the plane, as ``numpy.histogram2d``."""
    if (isinstance(bins, Handle) and _are_edges(bins)) or (
        isinstance(bins, _SEVERAL) and len(bins) not in (1, 2)
    ):
        bins = [bins, bins]
    counts, edges = histogramdd([x, y], bins, range, density, weights)
    return counts, edges[0], edges[1]


@counterpart(np.histogramdd)
def histogramdd(
    sample: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> Any:
    """The number of points in each bin, as ``numpy.histogramdd``.

    Parameters
    ----------
    sample : array_like of shape (n, d), or sequence of d arrays of shape (n,)
    bins : int, or sequence of d numbers or edges
    range : sequence of d pairs, optional
    density : bool, optional
        Divide by the volume of each bin and the total.
    weights : array_like of shape (n,), optional

    Returns
    -------
    counts : array of d axes
    edges : tuple of d arrays
    """
    columns = _columns(sample)
    many = len(columns)
    bins = list(bins) if np.iterable(bins) else [bins] * many
    ranges = [None] * many if range is None else list(range)
    if len(bins) != many or len(ranges) != many:
        raise ArgumentError(
            f"histogramdd of points with {many} coordinates was given {len(bins)} bins and "
            f"{len(ranges)} ranges. Pass one for each coordinate{at(user_line())}."
        )
    edges = tuple(_edges_along(x, b, r) for x, b, r in zip(columns, bins, ranges, strict=True))
    shape = tuple(e.shape[0] - 1 for e in edges)
    place: Any = 0
    inside: Any = True
    for x, e in zip(map(values, columns), map(values, edges), strict=True):
        n = e.shape[0] - 1
        inside = inside & (x >= e[0]) & (x <= e[-1])
        which = np.clip(np.searchsorted(e, x, side="right") - 1, 0, n - 1)
        place = place * n + which
    total = int(np.prod(shape))
    weights = np.ones_like(columns[0], float) if weights is None else as_array(weights)
    chosen = np.where(inside, casts.astype(weights, float), 0.0)
    counts = reshape(
        getitem.scatter(as_tensor(chosen), place, index=getitem.IndexSlot(0), shape=(total,)),
        shape=shape,
    )
    return (_per_volume(counts, edges) if density else counts), edges


def _columns(sample: Any) -> list[Any]:
    """The coordinates, an array for each."""
    if isinstance(sample, Handle | np.ndarray):
        points: Any = as_array(sample)
        points = points if points.ndim == 2 else reshape(points, shape=(-1, 1))
        return [points[:, k] for k in np.arange(points.shape[1])]
    columns = [as_array(x) for x in sample]
    if len({x.shape for x in columns}) != 1 or columns[0].ndim != 1:
        raise ShapeError(
            f"histogramdd of coordinates of shapes {[x.shape for x in columns]}: pass vectors of "
            f"equal length, or a matrix with a row for each point{at(user_line())}."
        )
    return columns


def _edges_along(x: Any, bins: Any, range: Any) -> Any:
    if _are_edges(bins):
        return as_array(bins)
    count = operator.index(bins)
    if range is not None or not x.size:
        low, high = (0.0, 1.0) if range is None else range
        return np.linspace(low, high, count + 1)
    return _edges(x, count, None, None)


def _per_volume(counts: Any, edges: tuple[Any, ...]) -> Any:
    shares = counts / reductions.sum(counts)
    for k, e in enumerate(edges):
        shape = [1] * len(edges)
        shape[k] = -1
        shares = shares / reshape(as_array(casts.astype(diff(e), float)), shape=tuple(shape))
    return shares
