"""Sums, products, means and variances, and reductions ignoring NaNs.

The signatures are NumPy's: axis (int, tuple, None, negative), dtype, out, keepdims, initial and
where. Elements masked out by `where=` are replaced by the identity element, never multiplied by
zero, so a masked NaN or infinity has no effect.

Extremes, booleans, norms and log-sum-exp are in minmax_norms.py, cumulative sums in cumulative.py.

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

from . import cumulative, minmax_norms
from .minmax_norms import (
    NOTHING,
    count,
    given,
    kept,
    masked,
    started,
    typed,
    unkept,
    whole,
)

__all__ = [
    "mean", "nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmin",
    "nanprod", "nanstd", "nansum", "nanvar", "prod", "std", "sum", "var",
]  # fmt: skip


@counterpart(np.sum)
def sum(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = NOTHING,
    where: Any = True,
) -> Any:
    """The sum over axes, as ``numpy.sum``.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> wg.grad(lambda x: np.sum(x * x, where=x > 1.0))(np.array([1.0, 2.0]))
    array([0., 4.])
    """
    a = masked(a, where, 0)
    if dtype is not None and np.dtype(dtype).kind not in "fc":
        s = whole(reductions.sum, a, dtype, axis=axis, keepdims=kept(keepdims))
    else:
        s = reductions.sum(a, axis=axis, dtype=dtype, keepdims=kept(keepdims))
    return given(started(s, initial, np.add), out)


@counterpart(np.prod)
def prod(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = NOTHING,
    where: Any = True,
) -> Any:
    """The product over axes, as ``numpy.prod``.

    Notes
    -----
    The derivative does not divide by elements: it is correct with any number of zeros, to any
    order, and costs a few times the product.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> wg.grad(np.prod)(np.array([0.0, 2.0, 3.0]))
    array([6., 0., 0.])
    """
    a = masked(a, where, 1)
    if dtype is not None and np.dtype(dtype).kind not in "fc":
        p = whole(reductions.prod, a, dtype, axis=axis, keepdims=kept(keepdims))
    else:
        p = reductions.prod(a, axis=axis, dtype=dtype, keepdims=kept(keepdims))
    return given(started(p, initial, np.multiply), out)


# ---- moments -----------------------------------------------------------------------------------


def _mean_where(a: Any, axis: Axis, where: Any) -> Any:
    if dtype_of(a).kind in "biu":  # NumPy sums them in float64 here
        a = casts.astype(a, float)
    total = reductions.sum(masked(a, where, 0), axis=axis, keepdims=True)
    return total / count(a, axis, where)


@counterpart(np.mean)
def mean(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    *,
    where: Any = True,
) -> Any:
    """The arithmetic mean over axes, as ``numpy.mean``.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> wg.grad(np.mean)(np.array([1.0, 5.0]))
    array([0.5, 0.5])
    """
    a = typed(a, dtype)
    if where is True or where is NOTHING:
        m = reductions.mean(a, axis=axis, keepdims=kept(keepdims))
    else:
        m = unkept(_mean_where(a, axis, where), axis, keepdims)
    return given(typed(m, dtype), out)


def abs2(x: Any) -> Any:
    """The square of the absolute value."""
    return x * x if x.dtype.kind != "c" else (x * x.conj()).real


def freedom(ddof: Any, correction: Any) -> Any:
    """The number subtracted from n: `ddof`, or `correction`, its other name in NumPy 2."""
    if correction is NOTHING or correction is None:
        return ddof
    if ddof != 0:
        raise ValueError("ddof and correction can't be provided simultaneously.")
    return correction


def _spread(a: Any, axis: Axis, ddof: Any, where: Any, mean: Any) -> Any:
    """The variance by its definition, with the reduced axes kept: for a mask or a given mean."""
    if mean is NOTHING or mean is None:
        mean = _mean_where(a, axis, where)
    apart = masked(abs2(a - mean), where, 0)
    n = np.maximum(count(a, axis, where) - ddof, 0)
    return reductions.sum(apart, axis=axis, keepdims=True) / n


@counterpart(np.var)
def var(
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
    """The variance over axes, as ``numpy.var``: over n - ddof, of absolute values if complex.

    Notes
    -----
    A tensor given as `mean` is an operand, and is differentiated too.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> wg.grad(lambda x: np.var(x, ddof=1))(np.array([1.0, 3.0]))
    array([-2.,  2.])
    """
    a, ddof = typed(a, dtype), freedom(ddof, correction)
    if (where is True or where is NOTHING) and (mean is NOTHING or mean is None):
        v = reductions.var(a, axis=axis, ddof=ddof, keepdims=kept(keepdims))
    else:
        v = unkept(_spread(a, axis, ddof, where, mean), axis, keepdims)
    return given(v, out)


@counterpart(np.std)
def std(
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
    """The standard deviation over axes, as ``numpy.std``.

    Notes
    -----
    Where all elements are equal the value is 0 and has a kink like |x|; its derivative there is 0
    (docs/conventions.md).

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> wg.grad(np.std)(np.array([1.0, 3.0])), wg.grad(np.std)(np.array([2.0, 2.0]))
    (array([-0.5,  0.5]), array([0., 0.]))
    """
    a, ddof = typed(a, dtype), freedom(ddof, correction)
    if (where is True or where is NOTHING) and (mean is NOTHING or mean is None):
        return given(reductions.std(a, axis=axis, ddof=ddof, keepdims=kept(keepdims)), out)
    v = unkept(_spread(a, axis, ddof, where, mean), axis, keepdims)
    return given(root(v), out)


def root(v: Any) -> Any:
    """The square root of a variance, with derivative 0 at 0."""
    flat = value_of(v) == 0
    return choose(flat, 0.0, np.sqrt(choose(flat, 1.0, v))) if possibly(flat) else np.sqrt(v)


# ---- ignoring NaNs -----------------------------------------------------------------------------


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
    return sum(_filled(a, 0), axis, dtype, out, **options)


@counterpart(np.nanprod)
def nanprod(a: Any, axis: Axis = None, dtype: Any = None, out: Any = None, **options: Any) -> Any:
    """The product ignoring NaNs, as ``numpy.nanprod``."""
    return prod(_filled(a, 1), axis, dtype, out, **options)


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
    return _average(reductions.sum(abs2(apart), axis=axis, keepdims=True), n - ddof)


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
    ddof = freedom(ddof, correction)
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
    ddof = freedom(ddof, correction)
    v = _nan_spread(typed(a, dtype), axis, ddof, where, mean)
    return given(unkept(root(v), axis, keepdims), out)


# ---- extremes ----------------------------------------------------------------------------------


def _nan_extreme(name: str, a: Any, axis: Axis, options: dict[str, Any]) -> Any:
    pick = getattr(minmax_norms, name)
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
