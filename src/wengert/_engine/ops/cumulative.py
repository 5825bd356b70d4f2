"""Cumulative operations: sums, products, extremes, and the linear recurrence behind them.

    cumsum       y_i = x_0 + ... + x_i; linear, its transpose sums from the end
    shift        moves elements along an axis by one position and inserts a zero
    recurrence   s_i = b_i + a_i s_{i-1}: its derivative is another linear recurrence
    cumprod      y_i = x_0 ... x_i; its derivative is a recurrence without division, so it is
                 correct with any number of zeros, to any order
    exclusive    the product of all other elements: prefix products times suffix products
    running      the running maximum or minimum; ties share the derivative evenly

A recurrence takes O(n) work and O(log n) NumPy calls: pairs of steps are combined, the problem of
half the size is solved, and the remaining steps are filled in (G. E. Blelloch, "Prefix sums and
their applications", CMU-CS-90-190, 1990).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.handle import possibly, shape_of, value_of
from wengert._engine.core.op_facts import SELECTS, Differentiation, Remedy, facts
from wengert._engine.core.symbolic.dim import Dim
from wengert._engine.kinds.batching import along
from wengert._engine.kinds.linear_map import linear
from wengert._engine.kinds.opaque import opaque
from wengert._engine.kinds.reduction import Axis, axes_of, count_along
from wengert._engine.ops import cost_model

from .creation import positions
from .elementwise.selection import where
from .shapes import reshape, transpose

if TYPE_CHECKING:
    from wengert._engine.core.types import Array


def _slices(axis: int, ndim: int, part: slice) -> tuple[slice, ...]:
    return tuple(part if k == axis % ndim else slice(None) for k in range(ndim))


@facts(flops=cost_model.pass_over_operand)
@linear(oracle=lambda x, *, axis, reverse=False: _sum_oracle(x, axis, reverse))
def cumsum(x: Array, *, axis: int, reverse: bool = False) -> Any:
    """The cumulative sum along an axis, from its end if `reverse`."""
    if not reverse:
        return np.add.accumulate(x, axis=axis)
    reverse_slices = _slices(axis, np.ndim(x), slice(None, None, -1))
    return np.add.accumulate(x[reverse_slices], axis=axis)[reverse_slices].copy()


def _sum_oracle(x: Any, axis: int, reverse: bool) -> Any:
    n = x.shape[axis]
    triangle = np.tri(n).T if not reverse else np.tri(n)
    return np.moveaxis(np.moveaxis(x, axis, -1) @ triangle, -1, axis)


@cumsum.transpose
def _cumsum_back(t: Array, x: Array, *, axis: int, reverse: bool = False) -> Any:
    return cumsum(t, axis=axis, reverse=not reverse)


@facts(zero_slope=SELECTS)
@linear(oracle=lambda x, *, axis, by: _shift_oracle(x, axis, by))
def shift(x: Array, *, axis: int, by: int) -> Any:
    """Elements moved by one position (`by` is 1 or -1) along an axis; a zero is inserted."""
    x = np.asarray(x)
    out = np.zeros_like(x)
    target, source = (
        (slice(1, None), slice(None, -1)) if by == 1 else (slice(None, -1), slice(1, None))
    )
    out[_slices(axis, x.ndim, target)] = x[_slices(axis, x.ndim, source)]
    return out


def _shift_oracle(x: Any, axis: int, by: int) -> Any:
    shift_matrix = np.eye(x.shape[axis], k=by)
    return np.moveaxis(np.moveaxis(x, axis, -1) @ shift_matrix, -1, axis)


@shift.transpose
def _shift_back(t: Array, x: Array, *, axis: int, by: int) -> Any:
    return shift(t, axis=axis, by=-by)


for _op in (cumsum, shift):
    along(_op)


@cumsum.examples
def _(rng: np.random.Generator) -> Any:
    for reverse in (False, True):
        yield (rng.normal(size=(2, 4)),), {"axis": 1, "reverse": reverse}
    yield (rng.normal(size=(0, 4)),), {"axis": 0}


shift.differentiation = Differentiation(masks=True)


@shift.examples
def _(rng: np.random.Generator) -> Any:
    yield (rng.normal(size=(2, 4)),), {"axis": -1, "by": 1}
    yield (rng.normal(size=(3,)),), {"axis": 0, "by": -1}


# ---- the linear recurrence ---------------------------------------------------------------------


def _recurrence_oracle(a: Any, b: Any, *, axis: int, reverse: bool = False) -> Any:
    a, b = np.moveaxis(a, axis, 0), np.moveaxis(b, axis, 0)
    steps = range(len(b))
    states: dict[int, Any] = {}
    for i in reversed(steps) if reverse else steps:
        previous = states.get(i + 1 if reverse else i - 1)
        states[i] = b[i] if previous is None else b[i] + a[i] * previous
    return np.moveaxis(np.stack([states[i] for i in steps]), 0, axis)


@facts(flops=cost_model.pass_over_operand)
@opaque(trusted=True, oracle=_recurrence_oracle)
def recurrence(a: Array, b: Array, *, axis: int, reverse: bool = False) -> Any:
    """s_i = b_i + a_i s_{i-1} along an axis (s_{i+1} if `reverse`), with s = 0 before the first.

    The operands must have the same shape. O(n) work in O(log n) steps.
    """
    a, b = np.asarray(a), np.asarray(b)
    order = slice(None, None, -1 if reverse else 1)
    a, b = np.moveaxis(a, axis, 0)[order], np.moveaxis(b, axis, 0)[order]
    return np.ascontiguousarray(np.moveaxis(solved_recurrence(a, b)[order], 0, axis))


def solved_recurrence(a: Any, b: Any) -> Any:
    """The recurrence along the first axis: even steps from odd ones, which have half the length."""
    n = len(b)
    out = np.empty_like(b, dtype=np.result_type(a, b))
    if n <= 4:
        for i in range(n):
            out[i] = b[i] + a[i] * out[i - 1] if i else b[i]
        return out
    even, odd = slice(0, n - n % 2, 2), slice(1, None, 2)
    halved = solved_recurrence(a[odd] * a[even], b[odd] + a[odd] * b[even])
    out[odd] = halved
    out[0] = b[0]
    out[2::2] = b[2::2] + a[2::2] * halved[: (n - 1) // 2]
    return out


@recurrence.define_vjp
def _recurrence_vjp(
    t: Array, s: Array, a: Array, b: Array, *, axis: int, reverse: bool = False
) -> Any:
    step = -1 if reverse else 1
    b_bar = recurrence(_conj(shift(a, axis=axis, by=-step)), t, axis=axis, reverse=not reverse)
    return b_bar * _conj(shift(s, axis=axis, by=step)), b_bar


@recurrence.define_jvp
def _recurrence_jvp(
    dots: list[Array | None], s: Array, a: Array, b: Array, *, axis: int, reverse: bool = False
) -> Any:
    a_dot, b_dot = dots
    if a_dot is None:
        source = b_dot
    else:
        source = a_dot * shift(s, axis=axis, by=-1 if reverse else 1)
        source = source if b_dot is None else b_dot + source
    return recurrence(a, source, axis=axis, reverse=reverse)


along(recurrence)


@recurrence.examples
def _(rng: np.random.Generator) -> Any:
    for n, reverse in ((7, False), (6, True), (1, False)):
        yield (rng.normal(size=(2, n)), rng.normal(size=(2, n))), {"axis": 1, "reverse": reverse}
    a, b = rng.normal(size=(2, 5, 2)) + 1j * rng.normal(size=(2, 5, 2))
    yield (a, b), {"axis": 0}


def _conj(x: Array) -> Any:
    return x.conj() if x.dtype.kind == "c" else x


# ---- products ----------------------------------------------------------------------------------


def _product_oracle(x: Any, *, axis: int) -> Any:
    n = x.shape[axis]
    parts = [np.prod(x.take(range(i + 1), axis), axis) for i in range(n)]
    return np.stack(parts, axis) if parts else x


@facts(flops=cost_model.pass_over_operand, remedy=Remedy(overflow="Use np.cumsum of logarithms"))
@opaque(trusted=True, oracle=_product_oracle)
def cumprod(x: Array, *, axis: int) -> Any:
    """The cumulative product along an axis; its derivative is correct with any number of zeros."""
    return np.multiply.accumulate(x, axis=axis)


def _product_before(out: Array, axis: int) -> Any:
    """The product of all earlier elements, 1 for the first, from the cumulative product."""
    return shift(out, axis=axis, by=1) + _first(out, axis).astype(out.dtype)


def _first(x: Array, axis: int) -> Any:
    """A mask of the first elements along an axis."""
    shape = shape_of(x)
    axis = axis % len(shape)
    mask_shape = tuple(n if k == axis else 1 for k, n in enumerate(shape))
    return (positions(shape[axis]) == 0).reshape(mask_shape)


@cumprod.define_vjp
def _cumprod_vjp(t: Array, out: Array, x: Array, *, axis: int) -> Any:
    # x_bar_j = (prod of x before j) (sum over i >= j of t_i prod of x between j and i)
    after = recurrence(_conj(shift(x, axis=axis, by=-1)), t, axis=axis, reverse=True)
    bar = _conj(_product_before(out, axis)) * after
    if not possibly(np.logical_not(np.isfinite(value_of(out)))):
        return (bar,)
    # Where all cotangents are zero, the derivative is zero even if a product is NaN.
    unused = np.logical_and(
        np.all(value_of(t) == 0, axis=axis, keepdims=True), np.isnan(value_of(bar))
    )
    return (where(unused, 0.0, bar),)


@cumprod.define_jvp
def _cumprod_jvp(dots: list[Array], out: Array, x: Array, *, axis: int) -> Any:
    return recurrence(x, _product_before(out, axis) * dots[0], axis=axis)


along(cumprod)


@cumprod.examples
def _(rng: np.random.Generator) -> Any:
    x = rng.normal(size=(4, 6))
    x[1, 2] = x[2, 0] = x[2, 5] = x[3, 1] = x[3, 2] = x[3, 4] = 0.0
    yield (x,), {"axis": 1}
    yield (rng.normal(size=(3, 2)) + 1j * rng.normal(size=(3, 2)),), {"axis": 0}
    yield (rng.normal(size=(0, 2)),), {"axis": 0}


def exclusive(x: Array, axis: Axis) -> Any:
    """For each element, the product of all other elements along the reduced axes.

    Prefix products times suffix products: O(n), and correct for zeros because nothing is divided.
    """
    shape = getattr(x, "shape", ())
    n = count_along(shape, axis)
    if not isinstance(n, Dim) and n <= 1:
        return 1.0
    axes = axes_of(axis, len(shape))
    if len(axes) == 1:
        return _others(x, axes[0])
    order = (*[k for k in range(len(shape)) if k not in axes], *axes)
    moved = transpose(x, axes=order)
    # n rather than -1: another axis may be empty
    flat = reshape(moved, shape=(*moved.shape[: len(shape) - len(axes)], n))
    back = tuple(int(k) for k in np.argsort(order))
    return transpose(reshape(_others(flat, -1), shape=moved.shape), axes=back)


def _others(x: Array, axis: int) -> Any:
    """The product of all other elements along an axis."""
    reverse_slices = _slices(axis, len(x.shape), slice(None, None, -1))
    before = _product_before(cumprod(x, axis=axis), axis)
    after = _product_before(cumprod(x[reverse_slices], axis=axis), axis)[reverse_slices]
    return before * after


# ---- running extremes --------------------------------------------------------------------------


def _running_oracle(x: Any, *, axis: int, largest: bool) -> Any:
    pick = np.max if largest else np.min
    parts = [pick(x.take(range(i + 1), axis), axis) for i in range(x.shape[axis])]
    return np.stack(parts, axis)


@facts(flops=cost_model.pass_over_operand)
@opaque(trusted=True, oracle=_running_oracle)
def running(x: Array, *, axis: int, largest: bool) -> Any:
    """The running maximum or minimum; ties share the derivative evenly."""
    return (np.maximum if largest else np.minimum).accumulate(x, axis=axis)


def _extreme_state(out: Array, x: Array, axis: int) -> tuple[Any, Any, Any]:
    """Whether x attains the extreme, whether the extreme is unchanged, and the ties so far."""
    y, v = value_of(out), value_of(x)
    is_nan = np.isnan(y)
    is_extreme = (v == y) | (np.isnan(v) & is_nan)
    previous = shift(y, axis=axis, by=1)
    is_unchanged = ((y == previous) | (is_nan & np.isnan(previous))) & ~_first(y, axis)
    real_dtype = np.finfo(y.dtype).dtype
    ties = recurrence(is_unchanged.astype(real_dtype), is_extreme.astype(real_dtype), axis=axis)
    return is_extreme, is_unchanged.astype(y.dtype), np.maximum(ties, 1)


@running.define_vjp
def _running_vjp(t: Array, out: Array, x: Array, *, axis: int, largest: bool) -> Any:
    is_extreme, is_unchanged, ties = _extreme_state(out, x, axis)
    bar = recurrence(shift(is_unchanged, axis=axis, by=-1), t / ties, axis=axis, reverse=True)
    return (where(is_extreme, bar, 0.0),)


@running.define_jvp
def _running_jvp(dots: list[Array], out: Array, x: Array, *, axis: int, largest: bool) -> Any:
    is_extreme, is_unchanged, ties = _extreme_state(out, x, axis)
    return recurrence(is_unchanged, where(is_extreme, dots[0], 0.0), axis=axis) / ties


along(running)


running.differentiation = Differentiation(masks=True)


@running.examples
def _(rng: np.random.Generator) -> Any:
    for largest in (True, False):
        yield (rng.normal(size=(2, 6)),), {"axis": 1, "largest": largest}
