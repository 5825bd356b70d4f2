"""Reductions ignoring NaNs: nansum, nanmean, nanvar, nanmax, nancumsum, ...

NaNs are excluded by selection, not by multiplication, so their derivative is exactly 0. If all
elements are NaN, the value is NumPy's (0, 1, or NaN with a warning) and the derivative 0.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from wengert._engine.core.handle import dtype_of, is_traced, possibly, value_of
from wengert._engine.kinds.reduction import Axis
from wengert._engine.ops import casts, reductions
from wengert._engine.ops.elementwise.selection import where as choose
from wengert._engine.tensor.numpy_dispatch import counterpart

from . import cumulative, minmax
from . import reductions as ours
from .reduction_arguments import NOTHING, count, given, kept, masked, typed, unkept

__all__ = [
    "nansum",
    "nanprod",
    "nanmean",
    "nanvar",
    "nanstd",
    "nanmax",
    "nanmin",
    "nanargmax",
    "nanargmin",
    "nancumsum",
    "nancumprod",
]


def _filled(a: Any, fill: Any) -> Any:
    """`a` with its NaNs replaced; `a` itself if it has none."""
    if dtype_of(a).kind not in "fc":
        return a
    holes = np.isnan(value_of(a))
    return masked(a, ~holes, fill) if possibly(holes) else a


@counterpart(np.nansum)
def nansum(a: Any, axis: Axis = None, dtype: Any = None, out: Any = None, **options: Any) -> Any:
    """The sum ignoring NaNs, as ``numpy.nansum``.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> wg.grad(lambda x: np.nansum(x * x))(np.array([1.0, np.nan]))
    array([2., 0.])
    """
    return ours.sum(_filled(a, 0), axis, dtype, out, **options)


@counterpart(np.nanprod)
def nanprod(a: Any, axis: Axis = None, dtype: Any = None, out: Any = None, **options: Any) -> Any:
    """The product ignoring NaNs, as ``numpy.nanprod``."""
    return ours.prod(_filled(a, 1), axis, dtype, out, **options)


def _present(a: Any, where: Any) -> Any:
    """The mask of elements that are not NaN and selected by the user's mask."""
    mask = ~np.isnan(value_of(a))
    return mask if where is True or where is NOTHING else mask & value_of(where)


def _all_or_traced(condition: Any) -> bool:
    """Whether all are true; assumed during tracing. Otherwise NumPy warns."""
    return is_traced(condition) or bool(np.all(condition))


def _average(total: Any, n: Any) -> Any:
    """total / n, and NaN without a derivative where n is not positive."""
    empty = n <= 0
    if not possibly(empty):
        return total / n
    return choose(empty, np.nan, total / np.where(empty, 1, n))


def _inexact(a: Any) -> Any:
    """Integers as float64, in which NumPy sums them here: int64 would overflow."""
    return a if dtype_of(a).kind in "fc" else casts.astype(a, float)


@counterpart(np.nanmean)
def nanmean(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    *,
    where: Any = True,
) -> Any:
    """The mean ignoring NaNs, as ``numpy.nanmean``."""
    a = _inexact(typed(a, dtype))
    mask = _present(a, where)
    n = count(a, axis, mask)
    if not _all_or_traced(n):
        warnings.warn("Mean of empty slice", RuntimeWarning, stacklevel=2)
    m = _average(reductions.sum(masked(a, mask, 0), axis=axis, keepdims=True), n)
    return given(unkept(m, axis, keepdims), out)


def _nan_spread(a: Any, axis: Axis, ddof: Any, where: Any, mean: Any) -> Any:
    """The variance ignoring NaNs, with the reduced axes kept."""
    a = _inexact(a)
    mask = _present(a, where)
    n = count(a, axis, mask)
    a = masked(a, mask, 0)
    if mean is NOTHING or mean is None:
        mean = _average(reductions.sum(a, axis=axis, keepdims=True), n)
    apart = choose(mask, a - mean, 0.0)
    if not _all_or_traced(n > ddof):
        warnings.warn("Degrees of freedom <= 0 for slice.", RuntimeWarning, stacklevel=3)
    return _average(reductions.sum(ours.abs2(apart), axis=axis, keepdims=True), n - ddof)


@counterpart(np.nanvar)
def nanvar(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: Any = None,
    ddof: float = 0,
    keepdims: Any = False,
    *,
    where: Any = True,
    mean: Any = NOTHING,
    correction: Any = NOTHING,
) -> Any:
    """The variance ignoring NaNs, as ``numpy.nanvar``."""
    ddof = ours.freedom(ddof, correction)
    v = _nan_spread(typed(a, dtype), axis, ddof, where, mean)
    return given(unkept(v, axis, keepdims), out)


@counterpart(np.nanstd)
def nanstd(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: Any = None,
    ddof: float = 0,
    keepdims: Any = False,
    *,
    where: Any = True,
    mean: Any = NOTHING,
    correction: Any = NOTHING,
) -> Any:
    """The standard deviation ignoring NaNs, as ``numpy.nanstd``; derivative 0 at 0."""
    ddof = ours.freedom(ddof, correction)
    v = _nan_spread(typed(a, dtype), axis, ddof, where, mean)
    return given(unkept(ours.root(v), axis, keepdims), out)


# ---- extremes ----------------------------------------------------------------------------------


def _nan_extreme(name: str, a: Any, axis: Axis, options: dict[str, Any]) -> Any:
    pick = getattr(minmax, name)
    holes = np.isnan(value_of(a)) if dtype_of(a).kind in "fc" else False
    if not possibly(holes):
        return pick(a, axis, **options)
    found = pick(masked(a, ~holes, -np.inf if name == "max" else np.inf), axis, **options)
    keys: Any = {"axis": axis, "keepdims": kept(options.get("keepdims", False))}
    if options.get("initial", NOTHING) is NOTHING:
        empty = np.all(holes, **keys)
        if possibly(empty):
            if not is_traced(empty):
                warnings.warn("All-NaN slice encountered", RuntimeWarning, stacklevel=3)
            found = choose(empty, np.nan, found)
    return found


@counterpart(np.nanmax)
def nanmax(a: Any, axis: Axis = None, out: Any = None, **options: Any) -> Any:
    """The largest element ignoring NaNs, as ``numpy.nanmax``; ties share the derivative."""
    return given(_nan_extreme("max", a, axis, options), out)


@counterpart(np.nanmin)
def nanmin(a: Any, axis: Axis = None, out: Any = None, **options: Any) -> Any:
    """The smallest element ignoring NaNs, as ``numpy.nanmin``; ties share the derivative."""
    return given(_nan_extreme("min", a, axis, options), out)


def _nan_position(op: Any, fill: Any, a: Any, axis: Any, keepdims: Any) -> Any:
    keys: Any = {"axis": axis, "keepdims": kept(keepdims)}
    empty = np.all(np.isnan(value_of(a)), **keys)
    if is_traced(empty):
        return choose(empty, -1, op(_filled(a, fill), **keys))
    if np.any(empty):
        raise ValueError("All-NaN slice encountered")
    return op(_filled(a, fill), **keys)


@counterpart(np.nanargmax)
def nanargmax(a: Any, axis: int | None = None, out: Any = None, *, keepdims: Any = False) -> Any:
    """The index of the largest element ignoring NaNs, as ``numpy.nanargmax``.

    Notes
    -----
    If all elements are NaN it raises an error, as NumPy; in a graph the index is -1 instead.
    """
    return given(_nan_position(reductions.argmax, -np.inf, a, axis, keepdims), out)


@counterpart(np.nanargmin)
def nanargmin(a: Any, axis: int | None = None, out: Any = None, *, keepdims: Any = False) -> Any:
    """The index of the smallest element ignoring NaNs, as ``numpy.nanargmin``."""
    return given(_nan_position(reductions.argmin, np.inf, a, axis, keepdims), out)


# ---- cumulative --------------------------------------------------------------------------------


@counterpart(np.nancumsum)
def nancumsum(a: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> Any:
    """The cumulative sum with NaNs as zeros, as ``numpy.nancumsum``."""
    return cumulative.cumsum(_filled(a, 0), axis, dtype, out)


@counterpart(np.nancumprod)
def nancumprod(a: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> Any:
    """The cumulative product with NaNs as ones, as ``numpy.nancumprod``."""
    return cumulative.cumprod(_filled(a, 1), axis, dtype, out)
