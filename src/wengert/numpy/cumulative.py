"""Cumulative sums and products, differences, np.gradient, integrals, interpolation.

    cumsum, cumprod, cumulative_sum, cumulative_prod
    diff, ediff1d, gradient, trapezoid
    interp, convolve, correlate

All are linear or piecewise linear; interp is differentiable with respect to points and values.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert._engine.core.handle import is_traced, possibly, shape_of, value_of
from wengert._engine.core.symbolic.dim import Dim, is_symbolic
from wengert._engine.ops import casts, cumulative, reductions, sorting
from wengert._engine.ops.elementwise.selection import where as choose
from wengert._engine.ops.indexing import getitem
from wengert._engine.ops.shapes import reshape
from wengert._engine.tensor.numpy_dispatch import as_array, as_tensor, counterpart, spread, values

from ..errors import DtypeError, ShapeError, at, user_line
from .minmax_norms import NOTHING, converted, given

__all__ = [
    "cumsum",
    "cumprod",
    "cumulative_sum",
    "cumulative_prod",
    "diff",
    "ediff1d",
    "gradient",
    "trapezoid",
    "interp",
    "convolve",
    "correlate",
]


def _running(op: Any, a: Any, axis: Any, dtype: Any, out: Any) -> Any:
    a = as_array(a)
    if dtype is not None:
        a = casts.astype(a, dtype)
    if axis is None or a.ndim == 0:
        a, axis = reshape(a, shape=(-1,)), 0
    run = op(a, axis=operator.index(axis))  # small integers are promoted, as in NumPy
    return given(run if dtype is None else converted(run, dtype), out)


@counterpart(np.cumsum)
def cumsum(a: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> Any:
    """The cumulative sum, as ``numpy.cumsum``.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> wg.grad(lambda x: np.cumsum(x)[1])(np.array([1.0, 2.0, 3.0]))
    array([1., 1., 0.])
    """
    return _running(cumulative.cumsum, a, axis, dtype, out)


@counterpart(np.cumprod)
def cumprod(a: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> Any:
    """The cumulative product, as ``numpy.cumprod``.

    Notes
    -----
    The derivative is a linear recurrence without division: correct with any number of zeros, to
    any order, in O(n).

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> wg.grad(lambda x: np.cumprod(x)[2])(np.array([0.0, 2.0, 0.0]))
    array([0., 0., 0.])
    """
    return _running(cumulative.cumprod, a, axis, dtype, out)


def _with_start(op: Any, x: Any, axis: Any, dtype: Any, out: Any, include: bool, unit: int) -> Any:
    x = as_array(x)
    if axis is None:
        if x.ndim != 1:
            raise ShapeError(
                f"a cumulative sum or product of an array with {x.ndim} axes needs an axis: pass "
                f"axis={at(user_line())}."
            )
        axis = 0
    elif isinstance(axis, tuple) and len(axis) == 1:
        axis = axis[0]
    total = _running(op, x, axis, dtype, None)
    if include:
        shape = list(total.shape)
        shape[axis] = 1
        start = spread(np.asarray(unit, total.dtype), tuple(shape))
        total = np.concatenate([start, total], axis=axis)
    return given(total, out)


@counterpart(np.cumulative_sum)
def cumulative_sum(
    x: Any,
    /,
    *,
    axis: int | None = None,
    dtype: Any = None,
    out: Any = None,
    include_initial: bool = False,
) -> Any:
    """The cumulative sum, as ``numpy.cumulative_sum``."""
    return _with_start(cumulative.cumsum, x, axis, dtype, out, include_initial, 0)


@counterpart(np.cumulative_prod)
def cumulative_prod(
    x: Any,
    /,
    *,
    axis: int | None = None,
    dtype: Any = None,
    out: Any = None,
    include_initial: bool = False,
) -> Any:
    """The cumulative product, as ``numpy.cumulative_prod``."""
    return _with_start(cumulative.cumprod, x, axis, dtype, out, include_initial, 1)


# ---- differences -------------------------------------------------------------------------------


def _part(ndim: int, axis: int, part: Any) -> tuple[Any, ...]:
    return tuple(part if k == axis % ndim else slice(None) for k in range(ndim))


@counterpart(np.diff)
def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = NOTHING, append: Any = NOTHING) -> Any:
    """The n-th discrete difference, as ``numpy.diff``."""
    a = as_array(a)
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n}")
    if n == 0:
        return a
    if a.ndim == 0:
        raise ShapeError(f"diff of a number: at least one axis is required{at(user_line())}.")
    parts = [p for p in (prepend, a, append) if p is not NOTHING]
    if len(parts) > 1:
        end = tuple(1 if k == axis % a.ndim else m for k, m in enumerate(a.shape))
        parts = [spread(as_array(p), end) if not shape_of(p) else p for p in parts]
        a = np.concatenate(parts, axis=axis)
    high = _part(a.ndim, axis, slice(1, None))
    low = _part(a.ndim, axis, slice(None, -1))
    for _ in range(n):
        a = a[high] != a[low] if a.dtype == bool else a[high] - a[low]
    return a


@counterpart(np.ediff1d)
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """Differences of neighbors in the flattened array, as ``numpy.ediff1d``."""
    x = reshape(as_array(ary), shape=(-1,))
    parts = [to_begin, x[1:] - x[:-1], to_end]
    chosen = [reshape(as_array(p), shape=(-1,)) for p in parts if p is not None]
    chosen = [p if p.dtype == x.dtype else casts.astype(p, x.dtype) for p in chosen]
    return chosen[0] if len(chosen) == 1 else np.concatenate(chosen)


@counterpart(np.gradient)
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Second-order differences on a grid, as ``numpy.gradient``.

    A finite-difference derivative of samples, not a derivative in the sense of `grad`. It is linear
    in `f`, and differentiable with respect to the spacing too.
    """
    f = as_array(f)
    axes = range(f.ndim) if axis is None else (axis if isinstance(axis, tuple) else (axis,))
    steps = _steps(f, varargs, list(axes))
    if edge_order not in (1, 2):
        raise ValueError("'edge_order' greater than 2 not supported")
    if f.dtype.kind not in "fc":
        f = casts.astype(f, float)
    parts = []
    for k, h in zip(axes, steps, strict=True):
        k = k % f.ndim
        if not isinstance(f.shape[k], Dim) and f.shape[k] < edge_order + 1:
            raise ShapeError(
                f"gradient along axis {k} of length {f.shape[k]}: at least {edge_order + 1} "
                f"elements are required{at(user_line())}."
            )
        part = _gradient_along(f, k, h, edge_order)
        parts.append(part if part.dtype == f.dtype else casts.astype(part, f.dtype))
    return parts[0] if len(parts) == 1 else tuple(parts)


def _steps(f: Any, given_steps: Sequence[Any], axes: list[int]) -> list[Any]:
    """The spacing along each axis: a number, or an array of all distances."""
    if not given_steps:
        return [1.0] * len(axes)
    if len(given_steps) == 1 and not shape_of(given_steps[0]):
        return [given_steps[0]] * len(axes)
    if len(given_steps) != len(axes):
        raise TypeError("invalid number of arguments")
    steps: list[Any] = []
    for h, k in zip(given_steps, axes, strict=True):
        h = as_array(h)
        if h.ndim == 0:
            steps.append(h)
            continue
        if h.ndim != 1 or h.shape[0] != f.shape[k]:
            raise ShapeError(
                f"gradient: positions of shape {h.shape} along axis {k} of length {f.shape[k]}. "
                f"Pass a position for each element, or a number{at(user_line())}."
            )
        if h.dtype.kind in "iu":
            h = casts.astype(h, float)
        steps.append(h[1:] - h[:-1])
    return steps


def _gradient_along(f: Any, axis: int, h: Any, edge_order: int) -> Any:
    def at_(part: Any) -> Any:
        return f[_part(f.ndim, axis, part)]

    def shaped(step: Any) -> Any:
        return step.reshape(tuple(-1 if k == axis else 1 for k in range(f.ndim)))

    first, second, third = (at_(slice(k, k + 1)) for k in range(3))
    n = f.shape[axis]
    last, last2, last3 = (at_(slice(n - k, n - k + 1)) for k in (1, 2, 3))
    low, mid, high = at_(slice(None, -2)), at_(slice(1, -1)), at_(slice(2, None))
    even = not shape_of(h)
    if even:
        inner = (high - low) / (2.0 * h)
        ha = hb = hy = hz = h
    else:
        a, b = shaped(h[:-1]), shaped(h[1:])
        inner = -b / (a * (a + b)) * low + (b - a) / (a * b) * mid + a / (b * (a + b)) * high
        ha, hz = h[0], h[-1]
        hb, hy = (h[1], h[-2]) if edge_order == 2 else (ha, hz)
    if edge_order == 1:
        left, right = (second - first) / ha, (last - last2) / hz
    else:
        left = (
            -(2.0 * ha + hb) / (ha * (ha + hb)) * first
            + (ha + hb) / (ha * hb) * second
            - ha / (hb * (ha + hb)) * third
        )
        right = (
            hz / (hy * (hy + hz)) * last3
            - (hz + hy) / (hy * hz) * last2
            + (2.0 * hz + hy) / (hz * (hy + hz)) * last
        )
    return np.concatenate([left, inner, right], axis=axis)


@counterpart(np.trapezoid)
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """The integral by the trapezoidal rule, as ``numpy.trapezoid``."""
    y = as_array(y)
    step = dx
    if x is not None:
        x = as_array(x)
        step = diff(x) if x.ndim == 1 else diff(x, axis=axis)
        if x.ndim == 1:
            step = step.reshape(tuple(-1 if k == axis % y.ndim else 1 for k in range(y.ndim)))
    high, low = y[_part(y.ndim, axis, slice(1, None))], y[_part(y.ndim, axis, slice(None, -1))]
    return reductions.sum(step * (high + low) / 2.0, axis=axis)


@counterpart(np.interp)
def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Any:
    """Linear interpolation in one dimension, as ``numpy.interp``.

    Notes
    -----
    Differentiable with respect to `x`, `xp`, `fp`, `left` and `right`. At a point of `xp` the
    derivative with respect to `x` is the slope of the interval on its right.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> xp, fp = np.array([0.0, 1.0, 2.0]), np.array([0.0, 3.0, 4.0])
    >>> slope = wg.grad(lambda x: np.interp(x, xp, fp))
    >>> float(slope(0.5)), float(slope(1.5)), float(slope(9.0))
    (3.0, 1.0, 0.0)
    """
    x, xp = as_array(x), as_array(xp)
    if "c" in (x.dtype.kind, xp.dtype.kind):
        raise DtypeError(
            f"np.interp at {x.dtype} points between {xp.dtype} points: points must be real. Pass "
            f"their real parts, x.real{at(user_line())}."
        )
    x, xp = casts.astype(x, float), casts.astype(xp, float)
    fp = as_array(fp)
    fp = casts.astype(fp, complex if fp.dtype.kind == "c" else float)
    if period is not None:
        period = abs(period)
        x, xp = np.remainder(x, period), np.remainder(xp, period)
        order = np.argsort(values(xp))
        xp, fp = xp[order], fp[order]
        xp = np.concatenate([xp[-1:] - period, xp, xp[:1] + period])
        fp = np.concatenate([fp[-1:], fp, fp[:1]])
        left = right = None
    if xp.shape != fp.shape or xp.ndim != 1 or not xp.shape[0]:
        raise ShapeError(
            f"interp: xp has shape {xp.shape} and fp has shape {fp.shape}. They must be vectors of "
            f"the same length, which is not 0{at(user_line())}."
        )
    points, wanted, count = value_of(xp), value_of(x), xp.shape[0]
    below = wanted < points[0]
    above = wanted > points[-1]
    if isinstance(count, Dim) or count > 1:
        found = np.searchsorted(points, wanted, side="right") - 1
        j = np.minimum(np.maximum(found, 0), count - 2)  # -1 for a single point: its index
        outside = below | above
        if is_traced(j):  # plain arrays cannot be indexed with it
            xp, fp = as_tensor(xp), as_tensor(fp)
        start, value = xp[j], fp[j]
        length = xp[j + 1] - start
        moved = choose(outside, 0.0, x - start) if possibly(outside) else x - start
        flat = value_of(length) == 0
        if possibly(flat):
            length = choose(flat, 1.0, length)
        inside = value + moved * ((fp[j + 1] - value) / length)
    else:
        inside = getitem.read(fp, spread(np.zeros((), int), shape_of(wanted)))
    result = choose(below, fp[0] if left is None else left, inside)
    return choose(above, fp[-1] if right is None else right, result)


# ---- products of sequences ---------------------------------------------------------------------


def _sequence(x: Any, name: str) -> Any:
    x = as_array(x) if shape_of(x) else reshape(as_array(x), shape=(-1,))
    if x.ndim != 1 or x.shape[0] == 0:
        raise ShapeError(
            f"{name} of an array of shape {x.shape}: both must be vectors that are not "
            f"empty{at(user_line())}."
        )
    return x


@counterpart(np.convolve)
def convolve(a: Any, v: Any, mode: str = "full") -> Any:
    """The convolution of two sequences, as ``numpy.convolve``; linear in each."""
    a, v = _sequence(a, "convolve"), _sequence(v, "convolve")
    n, k = a.shape[0], v.shape[0]
    known = not is_symbolic((n, k))
    if (known or mode != "full") and k > n:
        a, v, n, k = v, a, k, n
    if mode == "valid":
        return sorting.slide(a, v[::-1])
    full = sorting.convolve(a, v)
    if mode == "full":
        return full
    if mode != "same":
        raise ValueError(f"mode must be one of 'valid', 'same', or 'full' (got '{mode}')")
    start = (k - 1) // 2
    return full[start : start + n]


@counterpart(np.correlate)
def correlate(a: Any, v: Any, mode: str = "valid") -> Any:
    """The cross-correlation of two sequences, as ``numpy.correlate``: `v` is conjugated."""
    a, v = _sequence(a, "correlate"), _sequence(v, "correlate")
    v, n, k = v.conj() if v.dtype.kind == "c" else v, a.shape[0], v.shape[0]
    if mode == "valid":
        return sorting.slide(a, v) if k <= n else sorting.slide(v, a)[::-1]
    full = sorting.convolve(a, v[::-1])
    if mode == "full":
        return full
    if mode != "same":
        raise ValueError(f"mode must be one of 'valid', 'same', or 'full' (got '{mode}')")
    size, short = max(n, k), min(n, k)
    start = (short - 1) // 2 if k <= n else short // 2
    return full[start : start + size]
