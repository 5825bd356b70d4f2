"""Extremes, booleans, norms, log-sum-exp; the arguments that reductions share.

    max, min, ptp, argmax, argmin, any, all, count_nonzero
    NOTHING                          NumPy's marker for an omitted option
    logsumexp, softmax, log_softmax  numerically stable, as in SciPy; weights of any sign
    vector_norm, matrix_norm         all orders except those that need singular values

Ties share the derivative evenly; the derivative of a NaN result goes to the NaN elements.
Positions, booleans and counts have no derivative.

The derivative of norms at the zero vector is 0, and so is that of logsumexp if all elements are
-inf.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from wengert._engine.core.handle import Handle, dtype_of, is_traced, shape_of, value_of
from wengert._engine.kinds.reduction import Axis, axes_of, count_along
from wengert._engine.ops import casts, reductions
from wengert._engine.ops.elementwise.selection import absolute
from wengert._engine.ops.elementwise.selection import where as choose
from wengert._engine.ops.neural import softmax as shares
from wengert._engine.tensor.numpy_dispatch import broadcast_shapes, counterpart, spread
from wengert._engine.tensor.numpy_protocols import deliver
from wengert.errors import ShapeError, at, user_line

__all__ = [
    "all",
    "amax",
    "amin",
    "any",
    "argmax",
    "argmin",
    "count_nonzero",
    "log_softmax",
    "logsumexp",
    "matrix_norm",
    "max",
    "min",
    "ptp",
    "softmax",
    "vector_norm",
]

# ---- arguments ---------------------------------------------------------------------------------


NOTHING = np._NoValue  # type: ignore[attr-defined]


def given(x: Any, out: Any) -> Any:
    """The result, written to `out=` if given."""
    return x if out is None else deliver(x, out)


def masked(a: Any, where: Any, fill: Any) -> Any:
    """`a` with the identity element where the mask is False."""
    if where is True or where is NOTHING:
        return a
    dtype = dtype_of(a)
    return choose(where, a, fill if isinstance(fill, Handle) else dtype.type(fill))


def typed(a: Any, dtype: Any) -> Any:
    """`a` in the dtype of the computation."""
    return a if dtype is None or dtype is NOTHING else casts.astype(a, dtype)


def whole(op: Any, a: Any, dtype: Any, **how: Any) -> Any:
    """A sum or product in integers of `dtype`, modulo its range, as in NumPy."""
    return converted(op(casts.astype(a, dtype), **how), dtype)


def converted(x: Any, dtype: Any) -> Any:
    """`x` converted to a dtype; `x` itself if it has it."""
    return x if dtype_of(x) == np.dtype(dtype) else casts.astype(x, dtype)


def started(x: Any, initial: Any, combine: Any) -> Any:
    """A result combined with `initial=`."""
    if initial is None or initial is NOTHING:
        return x
    return combine(x, cast_initial(initial, dtype_of(x)))


def cast_initial(initial: Any, dtype: np.dtype[Any]) -> Any:
    """The initial value of a reduction, cast as in NumPy, so that the result keeps its dtype."""
    if not isinstance(initial, Handle):
        return dtype.type(initial)
    return initial if dtype_of(initial) == dtype else casts.astype(initial, dtype)


def kept(keepdims: Any) -> bool:
    """Whether the reduced axes are kept."""
    return keepdims is not NOTHING and bool(keepdims)


def unkept(x: Any, axis: Axis, keepdims: Any) -> Any:
    """Remove the reduced axes unless keepdims is true."""
    if kept(keepdims):
        return x
    shape = shape_of(x)
    gone = axes_of(axis, len(shape))
    return x.reshape(tuple(n for k, n in enumerate(shape) if k not in gone))


def count(a: Any, axis: Axis, where: Any) -> Any:
    """The number of elements selected by the mask, with reduced axes kept, in `a`'s precision."""
    dtype = dtype_of(a)
    mask = spread(value_of(where), shape_of(a))
    real = dtype.type(0).real.dtype if dtype.kind in "fc" else np.dtype(float)
    return np.add.reduce(mask, axis=axis, keepdims=True).astype(real)


# ---- extremes and booleans ---------------------------------------------------------------------


def _extreme(op: Any, a: Any, axis: Axis, keepdims: Any, initial: Any, where: Any) -> Any:
    combine = np.maximum if op is reductions.max else np.minimum
    if initial is NOTHING or initial is None:
        if not (where is True or where is NOTHING):
            raise ShapeError(
                f"{op.name} with where= has no value if the mask selects no element. Pass initial= "
                f"too, for example {'-' if op is reductions.max else ''}np.inf{at(user_line())}."
            )
        return op(a, axis=axis, keepdims=kept(keepdims))
    initial = cast_initial(initial, dtype_of(a))
    a = masked(a, where, initial)
    shape = shape_of(a)
    if count_along(shape, axis):
        return combine(op(a, axis=axis, keepdims=kept(keepdims)), initial)
    empty = reductions.sum(a, axis=axis, keepdims=kept(keepdims))  # zeros of the right shape
    return casts.astype(empty, dtype_of(a)) + initial


@counterpart(np.max)
def max(
    a: Any,
    axis: Axis = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = NOTHING,
    where: Any = True,
) -> Any:
    """The largest element over axes, as ``numpy.max``: NaN if there is one.

    Notes
    -----
    Ties share the derivative evenly (docs/conventions.md).

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> wg.grad(np.max)(np.array([3.0, 1.0, 3.0]))
    array([0.5, 0. , 0.5])
    """
    return given(_extreme(reductions.max, a, axis, keepdims, initial, where), out)


@counterpart(np.min)
def min(
    a: Any,
    axis: Axis = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = NOTHING,
    where: Any = True,
) -> Any:
    """The smallest element over axes, as ``numpy.min``; see `max`."""
    return given(_extreme(reductions.min, a, axis, keepdims, initial, where), out)


@counterpart(np.amax)
def amax(a: Any, *args: Any, **kwargs: Any) -> Any:
    """Alias of `max`."""
    return max(a, *args, **kwargs)


@counterpart(np.amin)
def amin(a: Any, *args: Any, **kwargs: Any) -> Any:
    """Alias of `min`."""
    return min(a, *args, **kwargs)


@counterpart(np.ptp)
def ptp(a: Any, axis: Axis = None, out: Any = None, keepdims: Any = False) -> Any:
    """The largest minus the smallest element, as ``numpy.ptp``."""
    keys: Any = {"axis": axis, "keepdims": kept(keepdims)}
    return given(reductions.max(a, **keys) - reductions.min(a, **keys), out)


@counterpart(np.argmax)
def argmax(a: Any, axis: int | None = None, out: Any = None, *, keepdims: Any = False) -> Any:
    """The index of the first largest element, as ``numpy.argmax``; no derivative."""
    return given(reductions.argmax(a, axis=axis, keepdims=kept(keepdims)), out)


@counterpart(np.argmin)
def argmin(a: Any, axis: int | None = None, out: Any = None, *, keepdims: Any = False) -> Any:
    """The index of the first smallest element, as ``numpy.argmin``; no derivative."""
    return given(reductions.argmin(a, axis=axis, keepdims=kept(keepdims)), out)


# ---- booleans and counts -------------------------------------------------------------------


@counterpart(np.any)
def any(
    a: Any, axis: Axis = None, out: Any = None, keepdims: Any = False, *, where: Any = True
) -> Any:
    """Whether any element is nonzero, as ``numpy.any``."""
    a = masked(a, where, 0)
    return given(reductions.any(a, axis=axis, keepdims=kept(keepdims)), out)


@counterpart(np.all)
def all(
    a: Any, axis: Axis = None, out: Any = None, keepdims: Any = False, *, where: Any = True
) -> Any:
    """Whether all elements are nonzero, as ``numpy.all``."""
    a = masked(a, where, 1)
    return given(reductions.all(a, axis=axis, keepdims=kept(keepdims)), out)


@counterpart(np.count_nonzero)
def count_nonzero(a: Any, axis: Axis = None, *, keepdims: Any = False) -> Any:
    """The number of nonzero elements, as ``numpy.count_nonzero``."""
    return reductions.count_nonzero(a, axis=axis, keepdims=keepdims)


# ---- norms -------------------------------------------------------------------------------------


def logsumexp(
    a: Any,
    axis: Axis = None,
    b: Any = None,
    keepdims: bool = False,
    return_sign: bool = False,
) -> Any:
    """log(sum(b exp(a))) without overflow, as ``scipy.special.logsumexp``.

    Parameters
    ----------
    a : array or Tensor
    axis : int, tuple of int or None
    b : array or Tensor, optional
        Factors, of any sign; may be zero. Broadcast against `a`.
    keepdims : bool
    return_sign : bool
        Also return the sign of the sum, and the logarithm of its absolute value.

    Returns
    -------
    array or Tensor
        A tuple with the sign if `return_sign`. NaN where the sum is negative otherwise.

    Notes
    -----
    The derivative with respect to `a` is the softmax, or 0 if all of `a` is -inf. The derivative
    with respect to `b` is ``exp(a - out)``, also for zero weights; it is infinite if the sum is 0.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> round(float(wg.numpy.logsumexp(np.array([1000.0, 1000.0]))), 4)
    1000.6931
    >>> wg.grad(wg.numpy.logsumexp)(np.array([1000.0, 1000.0, -np.inf]))
    array([0.5, 0.5, 0. ])
    """
    a = a if isinstance(a, Handle) else np.asarray(a)
    if b is None:
        out = reductions.logsumexp(a, axis=axis, keepdims=keepdims)
        return (out, np.ones_like(value_of(out))) if return_sign else out
    b = b if isinstance(b, Handle) else np.asarray(b)
    used = spread(value_of(b) != 0, broadcast_shapes(a.shape, b.shape))
    masked = choose(used, a, -np.inf)
    top = _finite_top(masked, axis)
    if isinstance(b, Handle) and (is_traced(b) or not used.all()):
        terms = _weighted(a - top, b, used)
    else:
        terms = b * np.exp(masked - top)
    s = reductions.sum(terms, axis=axis, keepdims=True)
    sign = np.sign(value_of(s))
    if return_sign:
        s = s * sign
    empty = value_of(s) == 0  # and not by cancellation, where derivatives are infinite
    if is_traced(empty) or empty.any():
        empty = empty & ~np.any(value_of(terms) != 0, axis=axis, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        out = choose(empty, -np.inf, np.log(choose(empty, 1.0, s))) + top
        if isinstance(b, Handle) and (is_traced(empty) or empty.any()):
            exponent = np.minimum((value_of(a) - top).real, np.log(np.finfo(s.dtype).max))
            size = np.exp(exponent)  # the derivative with respect to the weights
            more = reductions.sum(choose(size > 0, b * size, 0.0), axis=axis, keepdims=True)
            out = out + choose(empty, np.log(choose(empty, more, 1.0)), 0.0)
    out = unkept(out, axis, keepdims)
    return (out, unkept(sign, axis, keepdims)) if return_sign else out


def _weighted(x: Any, b: Any, used: Any) -> Any:
    """b exp(x), for weights that may be zero.

    The derivative with respect to a zero weight is exp(x), which may overflow although the product
    does not: it is multiplied as two finite factors.
    """
    largest = 2.0 * np.floor(np.log(np.finfo(x.dtype).max))
    half = 0.5 * choose(value_of(x).real > largest, largest, x)
    return b * np.exp(choose(used, x, half)) * choose(used, 1.0, np.exp(choose(used, 0.0, half)))


def softmax(x: Any, axis: Axis = None) -> Any:
    """exp(x) / sum(exp(x)) over an axis, as ``scipy.special.softmax``.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> wg.numpy.softmax(np.array([1000.0, 1000.0]))
    array([0.5, 0.5])
    """
    x = x if isinstance(x, Handle) else np.asarray(x)
    if x.dtype.kind != "c":
        return shares.softmax(x, axis=_all_axes(x, axis))
    e = np.exp(_shifted(x, axis))
    return e / reductions.sum(e, axis=axis, keepdims=True)


def log_softmax(x: Any, axis: Axis = None) -> Any:
    """The logarithm of the softmax, as ``scipy.special.log_softmax``."""
    x = x if isinstance(x, Handle) else np.asarray(x)
    if x.dtype.kind != "c":
        return shares.log_softmax(x, axis=_all_axes(x, axis))
    x = _shifted(x, axis)
    return x - reductions.logsumexp(x, axis=axis, keepdims=True)


def _all_axes(x: Any, axis: Axis) -> Axis:
    return tuple(range(x.ndim)) if axis is None else axis


def _shifted(x: Any, axis: Axis) -> Any:
    """x minus its maximum, which does not change the softmax and avoids overflow."""
    return x - _finite_top(x, axis)


def _finite_top(x: Any, axis: Axis) -> Any:
    """The maximum, as a constant; 0 if it is infinite."""
    top = np.maximum.reduce(value_of(x).real, axis=axis, keepdims=True, initial=-np.inf)
    return np.where(np.isfinite(top), top, 0).astype(top.dtype)


# ---- norms -------------------------------------------------------------------------------------


def vector_norm(x: Any, ord: float = 2, axis: Axis = None, keepdims: bool = False) -> Any:
    """The norm of vectors along axes, for every order, as ``numpy.linalg.vector_norm``.

    Parameters
    ----------
    x : array or Tensor
        Real or complex.
    ord : float
        p of the p-norm; inf and -inf for the largest and smallest absolute value, 0 for the
        number of nonzero elements.
    axis : int, tuple of int or None
    keepdims : bool

    Notes
    -----
    The derivative at the zero vector is 0, and so is that of |x| at 0 (docs/conventions.md).

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> wg.grad(wg.numpy.vector_norm)(np.array([3.0, 4.0]))
    array([0.6, 0.8])
    """
    x = x if isinstance(x, Handle) else np.asarray(x)
    if x.dtype.kind in "biu":
        x = casts.astype(x, float)
    keys: Any = {"axis": axis, "keepdims": keepdims}
    if ord == 2:
        return reductions.norm2(x, **keys)
    if ord == math.inf:
        return reductions.max(absolute(x), **keys)
    if ord == -math.inf:
        return reductions.min(absolute(x), **keys)
    if ord == 1:
        return reductions.sum(absolute(x), **keys)
    if ord == 0:
        return casts.astype(reductions.count_nonzero(x, **keys), x.dtype.type(0).real.dtype)
    return reductions.norm_p(x, p=ord, **keys)


def matrix_norm(
    x: Any, ord: Any = "fro", axis: tuple[int, int] = (-2, -1), keepdims: bool = False
) -> Any:
    """The norm of matrices in two axes: "fro", 1, -1, inf or -inf.

    The spectral and nuclear norms need singular values: ``wengert.numpy.linalg.norm``.
    """
    if ord in ("fro", "f"):
        return vector_norm(x, 2, axis, keepdims)
    if ord not in (1, -1, math.inf, -math.inf):
        raise ValueError(f"ord={ord!r} is not one of 'fro', 1, -1, inf, -inf{at(user_line())}")
    x = x if isinstance(x, Handle) else np.asarray(x)
    if x.dtype.kind in "biu":
        x = casts.astype(x, float)
    row, column = (k % x.ndim for k in axis)
    summed, compared = (row, column) if abs(ord) == 1 else (column, row)
    sums = reductions.sum(absolute(x), axis=summed, keepdims=True)
    pick = reductions.max if ord > 0 else reductions.min
    if ord > 0 and sums.shape[compared] == 0:
        pick = reductions.sum  # empty: the norm is 0
    return unkept(pick(sums, axis=compared, keepdims=True), (row, column), keepdims)
