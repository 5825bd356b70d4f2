"""Medians, quantiles, percentiles, with and without NaNs.

A quantile is the sorted sample interpolated at a *virtual index*, which need not be an integer
(R. J. Hyndman and Y. Fan, "Sample quantiles in statistical packages", American Statistician 50(4),
361-365, 1996). The sample is sorted by a gather and the virtual index is computed with wengert
operations, which gives the derivatives with respect to the sample and q.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from wengert._engine.core.handle import describe, dtype_of, is_traced, possibly, shape_of, value_of
from wengert._engine.kinds.reduction import Axis, axes_of, kept_shape
from wengert._engine.ops import casts, reductions, sorting
from wengert._engine.ops.elementwise.selection import where as choose
from wengert._engine.ops.shapes import reshape, transpose
from wengert._engine.tensor.numpy_dispatch import as_array, counterpart, spread, values

from .minmax_norms import given, kept, unkept

__all__ = ["median", "quantile", "percentile", "nanmedian", "nanquantile", "nanpercentile"]

# Methods that interpolate: the virtual index is n q + alpha + q (1 - alpha - beta) - 1.
PLOTTING = {
    "linear": (1.0, 1.0),
    "weibull": (0.0, 0.0),
    "hazen": (0.5, 0.5),
    "interpolated_inverted_cdf": (0.0, 1.0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
}
STEPS = (
    "inverted_cdf",
    "averaged_inverted_cdf",
    "closest_observation",
    "lower",
    "higher",
    "midpoint",
    "nearest",
)
# Methods that return an element.
WHOLE = ("inverted_cdf", "closest_observation", "lower", "higher", "nearest")


def _in_lines(a: Any, axis: Axis) -> Any:
    """The reduced axes as one last axis."""
    axes = axes_of(axis, a.ndim)
    rest = [k for k in range(a.ndim) if k not in axes]
    if axes and (*rest, *axes) != tuple(range(a.ndim)):
        a = transpose(a, axes=(*rest, *axes))
    if len(axes) == 1:
        return a
    n = math.prod(a.shape[len(rest) :])
    return reshape(a, shape=(*a.shape[: len(rest)], n))


class SortedSamples:
    """Samples along the last axis, and the indices that sort them.

    Attributes
    ----------
    n : array
        The number of elements of each sample that are not NaN; these are sorted first.
    undefined : array
        The mask of samples with a NaN.
    """

    def __init__(self, a: Any, axis: Axis, kth: Any = None) -> None:
        x = _in_lines(a, axis)
        self.x = casts.astype(x, float) if x.dtype.kind in "biu" else x
        values = value_of(self.x)
        self.length = self.x.shape[-1]
        holes = np.isnan(values)
        self.undefined = holes.any(-1)
        self.n = self.length - holes.sum(-1)
        if kth is None or possibly(self.undefined):
            self.order = np.argsort(values, axis=-1, kind="stable")
        else:  # only some ranks are needed: partition, in linear time
            self.order = np.argpartition(values, kth(self.length), axis=-1)

    @property
    def total(self) -> Any:
        """The number of elements of each sample including NaNs, in the shape of `n`."""
        if is_traced(self.n):
            return np.zeros_like(self.n) + self.length
        return np.full_like(self.n, self.length)

    def at(self, index: Any) -> Any:
        """The element of each sample with that rank."""
        rank = np.clip(index, 0, max(self.length - 1, 0)).astype(np.intp)[..., None]
        position = np.take_along_axis(self.order, rank, -1)
        return sorting.gather_along(self.x, position, axis=-1, unique=True)[..., 0]


def _middle(length: int) -> list[int]:
    return sorted({(length - 1) // 2, length // 2})


def _shape_kept(a: Any, axis: Axis) -> tuple[int, ...]:
    return kept_shape(shape_of(a), axis)


# ---- median ------------------------------------------------------------------------------------


def _median(a: Any, axis: Axis, keepdims: Any, ignore_nan: bool) -> Any:
    a = as_array(a)
    if not a.size:
        empty = reductions.mean(a, axis=axis, keepdims=True) + np.nan
        return unkept(empty, axis, keepdims)
    lines = SortedSamples(a, axis, _middle)
    n, undefined = lines.total, lines.undefined
    if ignore_nan:
        n, undefined = lines.n, lines.n == 0
        if not is_traced(undefined) and np.any(undefined):
            warnings.warn("All-NaN slice encountered", RuntimeWarning, stacklevel=4)
    low, high = (n - 1) // 2, n // 2
    middle = lines.at(high)
    if possibly(low != high):
        both = (lines.at(low) + middle) * 0.5
        apart = low != high
        middle = choose(apart, both, middle) if is_traced(apart) or not apart.all() else both
    if possibly(undefined):
        middle = choose(undefined, np.nan, middle)
    return unkept(middle.reshape(_shape_kept(a, axis)), axis, keepdims)


@counterpart(np.median)
def median(
    a: Any, axis: Axis = None, out: Any = None, overwrite_input: bool = False, keepdims: Any = False
) -> Any:
    """The median, as ``numpy.median``.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> wg.grad(np.median)(np.array([4.0, 1.0, 3.0, 9.0]))
    array([0.5, 0. , 0.5, 0. ])
    """
    return given(_median(a, axis, keepdims, False), out)


@counterpart(np.nanmedian)
def nanmedian(
    a: Any, axis: Axis = None, out: Any = None, overwrite_input: bool = False, keepdims: Any = False
) -> Any:
    """The median ignoring NaNs, as ``numpy.nanmedian``."""
    return given(_median(a, axis, keepdims, True), out)


# ---- quantiles ---------------------------------------------------------------------------------


def _step_index(q: Any, n: Any, method: str) -> tuple[Any, Any, Any]:
    """The two neighbors and the weight of the second, for discontinuous methods."""
    if method in ("inverted_cdf", "averaged_inverted_cdf"):
        v = n * q - 1
        floor = np.floor(v)
        whole = v == floor
        share = np.where(whole, 0.5, 1.0) if method[0] == "a" else np.where(whole, 0.0, 1.0)
        return floor, floor + 1, share
    if method == "closest_observation":
        v = n * q - 1 - 0.5
        floor = np.floor(v)
        stay = (v == floor) & (floor % 2 == 1)
        return floor, floor + 1, np.where(stay, 0.0, 1.0)
    v = (n - 1) * q
    if method == "nearest":
        near = np.rint(v)
        return near, near, np.zeros_like(v)
    low, high = np.floor(v), np.ceil(v)
    return low, high, np.full_like(v, {"lower": 0.0, "higher": 1.0, "midpoint": 0.5}[method])


def _read(lines: SortedSamples, q: Any, n: Any, method: str, dtype: Any) -> Any:
    """The quantile q, a scalar, of each sample; `dtype` is that of the interpolation weights."""
    if method in PLOTTING:
        alpha, beta = PLOTTING[method]
        if method == "linear":
            v = (n - 1) * q
        else:
            v = n * q + (alpha + q * (1.0 - alpha - beta)) - 1.0
        # Beyond the ends the quantile is the end element, constant with respect to q.
        v = choose(value_of(v) >= n - 1, n - 1.0, choose(value_of(v) < 0, 0.0, v))
        low = np.floor(value_of(v))
        share = v - low
        if dtype_of(share) != dtype:
            share = casts.astype(share, dtype)
        a, b = lines.at(low), lines.at(np.minimum(low + 1, n - 1))
    else:
        low, high, share = _step_index(value_of(q), n, method)
        last = np.maximum(n - 1, 0)
        a, b = lines.at(np.clip(low, 0, last)), lines.at(np.clip(high, 0, last))
        share = casts.astype(share, dtype)
    apart = b - a
    return choose(value_of(share) >= 0.5, b - apart * (1 - share), a + apart * share)


def _weighted(a: Any, q: Any, axis: Axis, weights: Any) -> tuple[list[Any], Any]:
    """The inverted distribution function of a weighted sample, a row for each q."""
    lines = SortedSamples(a, axis)
    w = values(weights)
    w = _in_lines(w if w.ndim == a.ndim else _along(w, a, axis), axis)
    share = np.cumsum(np.take_along_axis(w, lines.order, -1), axis=-1)
    share = share / share[..., -1:]
    rows = [lines.at((share < one).sum(-1)) for one in np.ravel(value_of(q))]
    return rows, lines.undefined


def _along(weights: Any, a: Any, axis: Axis) -> Any:
    axes = axes_of(axis, a.ndim)
    shape = tuple(n if k in axes else 1 for k, n in enumerate(a.shape))
    return spread(np.reshape(weights, shape), a.shape)


def _quantile(
    a: Any, q: Any, axis: Axis, method: str, keepdims: Any, weights: Any, ignore_nan: bool
) -> Any:
    spec = describe(q)
    weak = spec is not None and spec.weak  # NumPy then keeps the dtype of a
    a, q = as_array(a), as_array(q)
    if a.dtype.kind == "c":
        raise TypeError("a must be an array of real numbers")
    levels = value_of(q)
    proper = (levels >= 0) & (levels <= 1)
    if not is_traced(proper) and not np.all(proper):
        raise ValueError("Quantiles must be in the range [0, 1]")
    if method not in PLOTTING and method not in STEPS:
        raise ValueError(f"{method!r} is not a valid method. Use one of {(*PLOTTING, *STEPS)}")
    if q.size == 0:
        one = _quantile(a, 0.5, axis, method, keepdims, weights, ignore_nan)
        return np.zeros((*q.shape, *one.shape), one.dtype)
    shape = _shape_kept(a, axis)
    flat_q = reshape(q, shape=(-1,))
    if weights is not None:
        if method != "inverted_cdf":
            raise ValueError("Only method 'inverted_cdf' supports weights.")
        rows, undefined = _weighted(a, q, axis, weights)
    else:
        lines = SortedSamples(a, axis)
        n, undefined = lines.total, lines.undefined
        if ignore_nan:
            n, undefined = lines.n, lines.n == 0
        if ignore_nan and not is_traced(undefined) and np.any(undefined):
            warnings.warn("All-NaN slice encountered", RuntimeWarning, stacklevel=4)
        dtype = lines.x.dtype
        whole = method in WHOLE or (method == "linear" and q.dtype.kind in "iu")
        if not weak and not whole:
            dtype = np.result_type(dtype, q.dtype)
        rows = [_read(lines, flat_q[k], n, method, dtype) for k in range(q.size)]
    if is_traced(proper):  # a graph cannot raise for an invalid q: the result is NaN
        flat = reshape(proper, shape=(-1,))
        rows = [choose(flat[k], row, np.nan) for k, row in enumerate(rows)]
    if possibly(undefined):
        rows = [choose(undefined, np.nan, row) for row in rows]
    rows = [unkept(row.reshape(shape), axis, keepdims) for row in rows]
    if q.ndim == 0:
        return rows[0]
    stacked = np.stack(rows)
    return stacked.reshape(q.shape + stacked.shape[1:])


@counterpart(np.quantile)
def quantile(
    a: Any,
    q: Any,
    axis: Axis = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = False,
    *,
    weights: Any = None,
) -> Any:
    """The quantiles q, as ``numpy.quantile``, by all of NumPy's methods.

    Notes
    -----
    Differentiable with respect to the sample, and to q if the method interpolates. Weights only
    select elements (method "inverted_cdf"), so they have no derivative.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> x = np.array([1.0, 2.0, 4.0])
    >>> wg.grad(lambda x: np.quantile(x, 0.75))(x)
    array([0. , 0.5, 0.5])
    >>> float(wg.grad(lambda q: np.quantile(x, q))(0.75))
    4.0
    """
    return given(_quantile(a, q, axis, method, kept(keepdims), weights, False), out)


def _hundredths(q: Any) -> Any:
    return q / 100 if type(q) in (int, float) else as_array(q) / 100


@counterpart(np.percentile)
def percentile(
    a: Any,
    q: Any,
    axis: Axis = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = False,
    *,
    weights: Any = None,
) -> Any:
    """The percentiles q, as ``numpy.percentile``; see `quantile`."""
    return quantile(a, _hundredths(q), axis, out, False, method, keepdims, weights=weights)


@counterpart(np.nanquantile)
def nanquantile(
    a: Any,
    q: Any,
    axis: Axis = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = False,
    *,
    weights: Any = None,
) -> Any:
    """The quantiles ignoring NaNs, as ``numpy.nanquantile``."""
    if a.size == 0:  # as in NumPy, for all q
        return np.nanmean(a, axis=axis, out=out, keepdims=kept(keepdims))
    if weights is not None:
        weights = np.where(np.isnan(value_of(a)), 0.0, values(weights))
        a = choose(np.isnan(value_of(a)), np.inf, a)
    return given(_quantile(a, q, axis, method, kept(keepdims), weights, True), out)


@counterpart(np.nanpercentile)
def nanpercentile(
    a: Any,
    q: Any,
    axis: Axis = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = False,
    *,
    weights: Any = None,
) -> Any:
    """The percentiles ignoring NaNs, as ``numpy.nanpercentile``."""
    return nanquantile(a, _hundredths(q), axis, out, False, method, keepdims, weights=weights)
