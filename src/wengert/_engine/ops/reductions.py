"""Reductions over one or more axes.

Each entry has `run`, NumPy's function if there is one, and its partial derivative, a linear map
`(t, out, x, axis) -> partial * t` in which `out` keeps the reduced axes with length one
(kinds/reduction.py).  Derivatives at ties, zeros and infinities:

    max, min     ties share evenly; if the result is NaN, the NaN elements share evenly
    prod         without division: correct with any number of zeros, to any order
    std, norms   0 where the value is 0
    logsumexp    0 where all elements are -inf; elements of +inf share evenly
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.device_arrays import LEAST_ELEMENTS
from wengert._engine.core.handle import Handle, is_traced, possibly, value_of
from wengert._engine.core.op_facts import AT_ORIGIN, SATURATES, Differentiation, Remedy, facts
from wengert._engine.core.symbolic.dim import Dim
from wengert._engine.core.tracing import is_decided_positive, size_value
from wengert._engine.kinds.reduction import count_along, reduction

from .cumulative import exclusive
from .elementwise.selection import absolute, direction, where

if TYPE_CHECKING:
    from wengert._engine.core.dispatch import Operation
    from wengert._engine.core.types import Array, Axes, Operand


def _axes_examples(op: Operation) -> None:
    """Define examples over one axis, several and all axes, with an empty array too."""

    @op.examples
    def _(rng: np.random.Generator) -> Any:
        yield (rng.normal(size=(2, 3)),), {}
        yield (rng.normal(size=(2, 3)),), {"axis": 1}
        yield (rng.normal(size=(2, 3)),), {"axis": -2, "keepdims": True}
        yield (rng.normal(size=(2, 2, 3)),), {"axis": (0, -1)}
        yield (rng.normal(size=(0, 3)),), {"axis": 1}
        yield (np.array(0.7),), {}


# ---- sums and means ----------------------------------------------------------------------------


@facts(remedy=Remedy(overflow="Rescale first, or sum logarithms with logsumexp"))
@reduction(oracle="numpy")
def sum(x: Any, *, axis: Any = None, dtype: Any = None, keepdims: Any = False) -> Any:
    """The sum over axes, by NumPy's pairwise summation."""
    return np.add.reduce(x, axis=axis, dtype=dtype, keepdims=keepdims)


@sum.partial
def _sum_partial(t: Array, out: Array, x: Array, axis: Axes) -> Any:
    return t


@reduction(oracle="numpy")
def mean(x: Array, *, axis: Axes = None, keepdims: bool = False) -> Any:
    """The arithmetic mean over axes."""
    return np.mean(x, axis=axis, keepdims=keepdims)


@mean.partial
def _mean_partial(t: Array, out: Array, x: Array, axis: int | None) -> Any:
    return t / count_along(getattr(x, "shape", ()), axis)


@facts(native=True)
@reduction(oracle="numpy")
def var(x: Array, *, axis: Axes = None, ddof: int = 0, keepdims: bool = False) -> Any:
    """The variance: the sum of squared deviations from the mean, divided by n - ddof."""
    return np.var(x, axis=axis, ddof=ddof, keepdims=keepdims)


def _degrees_of_freedom(x: Array, axis: Axes, ddof: float) -> Any:
    """n - ddof, NaN if it is not positive."""
    n = count_along(getattr(x, "shape", ()), axis) - ddof
    if isinstance(n, Handle) or (isinstance(n, Dim) and not is_decided_positive(n)):
        degrees: Any = n if isinstance(n, Handle) else size_value(n)
        return where(degrees > 0, degrees, np.nan)
    return n if n > 0 else np.nan


def _deviation(x: Array, axis: Axes) -> Any:
    return x - mean(x, axis=axis, keepdims=True)


@var.partial
def _var_partial(t: Array, out: Array, x: Array, axis: Axes, ddof: int = 0) -> Any:
    # The cotangent has few elements: it is scaled first.
    return (t * (2 / _degrees_of_freedom(x, axis, ddof))) * _deviation(x, axis)


@facts(zero_slope=AT_ORIGIN, native=True)
@reduction(oracle="numpy")
def std(x: Array, *, axis: int | None = None, ddof: float = 0, keepdims: bool = False) -> Any:
    """The square root of the variance; its derivative is 0 where all elements are equal."""
    return np.std(x, axis=axis, ddof=ddof, keepdims=keepdims)


@std.partial
def _std_partial(t: Array, out: Array, x: Array, axis: int | None, ddof: float = 0) -> Any:
    is_zero = value_of(out) == 0
    scale = _degrees_of_freedom(x, axis, ddof) * (
        where(is_zero, 1.0, out) if possibly(is_zero) else out
    )
    return _zero_where(is_zero, t * (_deviation(x, axis) / scale))


def _zero_where(zero: Array, bar: Array) -> Any:
    """`bar`, but 0 where `zero` is true."""
    return where(zero, 0.0, bar) if possibly(zero) else bar


# ---- products ----------------------------------------------------------------------------------


@facts(
    remedy=Remedy(
        singular="Use sums of logarithms, or keep the factors finite",
        overflow="Use sums of logarithms",
    )
)
@reduction(oracle="numpy")
def prod(x: Any, *, axis: Any = None, dtype: Any = None, keepdims: Any = False) -> Any:
    """The product over axes."""
    return np.multiply.reduce(x, axis=axis, dtype=dtype, keepdims=keepdims)


@prod.partial
def _prod_partial(t: Array, out: Array, x: Array, axis: Axes) -> Any:
    return t * exclusive(x, axis)


@prod.examples
def _(rng: np.random.Generator) -> Any:
    x = rng.normal(size=(4, 5))
    x[1, 2] = x[2, 0] = x[2, 4] = x[3, 1] = x[3, 2] = x[3, 3] = 0.0
    yield (x,), {"axis": 1}
    yield (x[:2],), {}
    yield (x[:2].reshape(2, 5, 1),), {"axis": (0, 2), "keepdims": True}
    yield (rng.normal(size=3) + 1j * rng.normal(size=3),), {}
    yield (rng.normal(size=(2, 0)),), {"axis": 1}


# ---- extremes ----------------------------------------------------------------------------------


@reduction(oracle="numpy")
def max(x: Any, *, axis: Any = None, keepdims: Any = False) -> Any:
    """The largest element, NaN if any element is NaN; ties share the derivative evenly."""
    return np.maximum.reduce(x, axis=axis, keepdims=keepdims)


@reduction(oracle="numpy")
def min(x: Any, *, axis: Any = None, keepdims: Any = False) -> Any:
    """The smallest element, NaN if any element is NaN; ties share the derivative evenly."""
    return np.minimum.reduce(x, axis=axis, keepdims=keepdims)


max.differentiation = min.differentiation = Differentiation(masks=True)


@max.partial
@min.partial
def _extreme_partial(t: Array, out: Array, x: Array, axis: Axes) -> Any:
    v, extreme = value_of(x), value_of(out)
    is_extreme = np.equal(v, extreme)
    is_nan = np.isnan(extreme)
    if possibly(is_nan):
        is_extreme = np.logical_or(is_extreme, np.logical_and(np.isnan(v), is_nan))
    return _shared(t, is_extreme, axis)


def _shared(t: Array, selected: Array, axis: Axes) -> Any:
    """t divided evenly among the elements where `selected` is true, 0 elsewhere."""
    count = sum(selected, axis=axis, keepdims=True)
    if possibly(np.greater(count, 1)):
        t = t / np.maximum(count, 1).astype(t.real.dtype)
    return where(selected, t, 0.0)


@reduction(discrete=True, oracle="numpy")
def argmax(x: Array, *, axis: int | None = None, keepdims: bool = False) -> Any:
    """The position of the first largest element."""
    return np.argmax(x, axis=axis, keepdims=keepdims)


@reduction(discrete=True, oracle="numpy")
def argmin(x: Array, *, axis: int | None = None, keepdims: bool = False) -> Any:
    """The position of the first smallest element."""
    return np.argmin(x, axis=axis, keepdims=keepdims)


for _op in (argmax, argmin):

    @_op.examples
    def _(rng: np.random.Generator) -> Any:
        yield (rng.normal(size=(2, 3)),), {}
        yield (rng.normal(size=(2, 3)),), {"axis": 1, "keepdims": True}
        yield (rng.normal(size=(2, 3)),), {"keepdims": True}


# ---- booleans and counts -------------------------------------------------------------------


@reduction(discrete=True, oracle="numpy")
def any(x: Array, *, axis: Axes = None, keepdims: bool = False) -> Any:
    """Whether any element is nonzero."""
    return np.any(x, axis=axis, keepdims=keepdims)


@reduction(discrete=True, oracle="numpy")
def all(x: Array, *, axis: Axes = None, keepdims: bool = False) -> Any:
    """Whether all elements are nonzero."""
    return np.all(x, axis=axis, keepdims=keepdims)


@reduction(discrete=True, oracle="numpy")
def count_nonzero(x: Array, *, axis: Axes = None, keepdims: bool = False) -> Any:
    """The number of nonzero elements."""
    return np.count_nonzero(x, axis=axis, keepdims=keepdims)


# ---- log-sum-exp -------------------------------------------------------------------------------


@facts(zero_slope=SATURATES, native=True)
@reduction(oracle=lambda x, **k: np.log(np.sum(np.exp(x), **k)))
def logsumexp(x: Operand, *, axis: Axes = None, keepdims: bool = False) -> Any:
    """log(sum(exp(x))), without overflow, and exact where one element dominates.

    The largest elements are excluded from the sum, whose log1p is taken, as in SciPy.
    """
    x = np.asarray(x)
    x = x.astype(float) if x.dtype.kind in "biu" else x
    with np.errstate(all="ignore"):
        top = np.maximum.reduce(x.real, axis=axis, keepdims=True, initial=-np.inf)
        shift = np.where(np.isfinite(top), top, 0)
        if x.dtype.kind == "c":
            out = np.log(np.add.reduce(np.exp(x - shift), axis=axis, keepdims=True)) + shift
        else:
            is_top = x == top
            count = np.add.reduce(is_top, axis=axis, keepdims=True).astype(x.dtype)
            count = np.maximum(count, 1)
            rest = np.add.reduce(np.where(is_top, 0, np.exp(x - shift)), axis=axis, keepdims=True)
            out = np.log1p(rest / count) + np.log(count) + top
    return out if keepdims else np.squeeze(out, axis=None if axis is None else axis)[()]


@logsumexp.partial
def _logsumexp_partial(t: Array, out: Array, x: Array, axis: Axes) -> Any:
    total = value_of(out)
    finite = np.isfinite(total)
    if not possibly(np.logical_not(finite)):
        return t * _shares(x, out, axis)
    inside = t * _shares(x, where(finite, out, 0.0), axis)
    infinite = np.logical_and(value_of(x) == np.inf, total == np.inf)
    outside = _shared(t, infinite, axis)
    outside = where(np.isnan(total), np.nan, outside)
    return where(finite, inside, outside)


def _shares(x: Array, out: Array, axis: Axes) -> Any:
    """The softmax, exp(x - out).

    The rounding error of a large `out` is a common factor of all elements.  In float32 it would
    leave three digits at 1e4, so for narrow dtypes the result is divided by its sum.
    """
    e = np.exp(x - out)
    if e.dtype.itemsize >= 8 or e.dtype.kind == "c":
        return e
    total = sum(e, axis=axis, keepdims=True)
    return e / where(value_of(total) == 0, 1.0, total)


# ---- norms -------------------------------------------------------------------------------------


@facts(zero_slope=AT_ORIGIN)
@reduction(oracle=lambda x, **k: np.sqrt(np.sum(np.abs(x) ** 2, **k)))
def norm2(x: Array, *, axis: Any = None, keepdims: Any = False) -> Any:
    """The Euclidean norm; its derivative is 0 at the zero vector."""
    x = np.asarray(x)
    if axis is None and not keepdims and x.dtype.char in "fd" and x.flags.c_contiguous:
        flat = x.reshape(-1)  # as numpy.linalg.norm, in one pass
        return np.sqrt(flat.dot(flat))
    square = x.real**2 + x.imag**2 if x.dtype.kind == "c" else x * x
    return np.sqrt(np.add.reduce(square, axis=axis, keepdims=keepdims))


@norm2.partial
def _norm2_partial(t: Array, out: Array, x: Array, axis: Axes) -> Any:
    zero = value_of(out) == 0
    length = where(zero, 1.0, out) if possibly(zero) else out
    if not is_traced(x) and x.size >= LEAST_ELEMENTS and x.size >= 16 * out.size:
        factor = t / length
        if _is_normal(value_of(factor)):  # one pass over a large x instead of two
            return _zero_where(zero, factor * x)
    return _zero_where(zero, t * (x / length))


def _is_normal(x: Array) -> bool:
    """Whether no element is so small or large that a product with it loses digits."""
    size = np.abs(x)
    limits = np.finfo(size.dtype)
    least, most = limits.tiny / limits.eps, limits.max * limits.eps
    return bool(np.all((size >= least) & (size <= most)))


@facts(zero_slope=AT_ORIGIN)
@reduction(oracle=lambda x, *, p, **k: np.sum(np.abs(x) ** p, **k) ** (1 / p))
def norm_p(x: Any, *, p: Any, axis: Any = None, keepdims: Any = False) -> Any:
    """(sum |x|**p)**(1/p); its derivative is 0 at the zero vector.

    For p < 1 the derivative with respect to an element that is zero, a cusp, is also 0.
    """
    total = np.add.reduce(np.abs(x) ** p, axis=axis, keepdims=keepdims)
    return total ** (1 / p)


@norm_p.partial
def _norm_p_partial(t: Array, out: Array, x: Array, axis: tuple[int, ...], p: float) -> Any:
    zero = value_of(out) == 0
    length = where(zero, 1.0, out) if possibly(zero) else out
    if p < 1:
        zero = np.logical_or(zero, value_of(x) == 0)
        x = where(value_of(x) == 0, 1.0, x)
    return _zero_where(zero, t * (direction(x) * (absolute(x) / length) ** (p - 1)))


@norm_p.examples
def _(rng: np.random.Generator) -> Any:
    x = rng.normal(size=(3, 4)) + 2.0
    for p in (0.5, 1, 3, 2.5, -1):
        yield (x,), {"p": p, "axis": 1}
    yield (x + 1j * rng.normal(size=(3, 4)),), {"p": 3}


for _op in (sum, mean, var, std, any, all, count_nonzero, logsumexp, norm2):
    _axes_examples(_op)


@max.examples
@min.examples
def _(rng: np.random.Generator) -> Any:
    yield (rng.normal(size=(2, 3)),), {}
    yield (rng.normal(size=(2, 3)),), {"axis": 1}
    yield (rng.normal(size=(2, 2, 3)),), {"axis": (0, -1), "keepdims": True}


@std.examples
def _(rng: np.random.Generator) -> Any:
    yield (rng.normal(size=(2, 3)),), {"axis": 1, "ddof": 1}
    yield (rng.normal(size=(2, 3)),), {}
    yield (rng.normal(size=3) + 1j * rng.normal(size=3),), {}
