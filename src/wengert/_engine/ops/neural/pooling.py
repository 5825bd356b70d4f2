"""Pooling: the sum or maximum of sliding windows.

    sum_pool           sums over windows of the last axes; its transpose is `sum_pool_adjoint`
    max_pool           maxima of windows
    max_pool_indices   their positions: the first of equal elements, in C order
    max_pool_tangent   the elements of one array at the positions of the maxima of another
    max_pool_adjoint   its transpose

The derivative of a maximum selects the position found in the forward pass: the first of equal
elements receives the whole cotangent, as in PyTorch; NaN counts as largest.  The last two are
therefore linear, and transposes of each other.  An average is a sum times a constant
(nn/functional/pooling.py).

The last axes, as many as the window has, are spatial axes; the axes before them are batch axes.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from wengert._engine.core.dispatch import Operation
from wengert._engine.core.op_facts import BY_NUMPY, facts
from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic.constraints import require_equal
from wengert._engine.kinds.batching import fronted
from wengert._engine.kinds.linear_map import linear
from wengert._engine.kinds.opaque import opaque

from .sliding_windows import Array, WindowGeometry, added_windows, counts_of, padded, windows_of


def _geometry(
    window: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[Any, ...],
    dilation: tuple[int, ...] | None = None,
) -> WindowGeometry:
    ones = (1,) * len(window)
    return WindowGeometry(tuple(window), tuple(stride), tuple(padding), tuple(dilation or ones))


# ---- sums --------------------------------------------------------------------------------------


def _sum_oracle(x: Array, *, window: Any, stride: Any, padding: Any) -> Any:
    geometry = _geometry(window, stride, padding)
    x, k = padded(np.asarray(x), geometry.padding), len(window)
    return windows_of(x, geometry).sum(axis=tuple(range(-k, 0)))


@linear(oracle=_sum_oracle)
def sum_pool(
    x: Array, *, window: tuple[int, ...], stride: tuple[int, ...], padding: tuple[Any, ...]
) -> Any:
    """Sums over windows of the last axes, with zero padding."""
    geometry = _geometry(window, stride, padding)
    x, k = np.asarray(x), len(window)
    counts = counts_of(x.shape[-k:], geometry, "input")
    x = padded(x, geometry.padding)
    out = np.zeros((*x.shape[:-k], *counts), x.dtype)
    for tap in geometry.taps():
        out += x[geometry.part(tap, counts)]
    return out


def _sum_adjoint_oracle(y: Any, *, size: Any, window: Any, stride: Any, padding: Any) -> Any:
    y = np.asarray(y)
    k = len(size)
    x: Any = np.zeros((*y.shape[: y.ndim - k], *size), y.dtype)
    for position in np.ndindex(*y.shape[y.ndim - k :]):
        slices = [
            slice(max(i * s - low, 0), max(i * s - low + w, 0))
            for i, s, w, (low, _) in zip(position, stride, window, padding, strict=True)
        ]
        x[(..., *slices)] += y[(..., *position, *[None] * k)]
    return x


@linear(oracle=_sum_adjoint_oracle)
def sum_pool_adjoint(
    y: Array,
    *,
    size: tuple[int, ...],
    window: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[Any, ...],
) -> Any:
    """The transpose of `sum_pool`: each element is added to all elements of its window."""
    geometry = _geometry(window, stride, padding)
    y = np.asarray(y)
    return added_windows(lambda tap: y, size, geometry, y.shape[: y.ndim - len(size)], y.dtype)


@sum_pool.transpose
def _(t: Array, x: Array, *, window: tuple[int, ...], **params: Any) -> Any:
    size = tuple(x.shape[x.ndim - len(window) :])
    return sum_pool_adjoint(t, size=size, window=window, **params)


@sum_pool_adjoint.transpose
def _(t: Array, y: Array, *, size: tuple[int, ...], **params: Any) -> Any:
    return sum_pool(t, **params)


# ---- maxima --------------------------------------------------------------------------------------


def _lowest(dtype: np.dtype[Any]) -> Any:
    if dtype.kind == "f":
        return -np.inf
    return False if dtype.kind == "b" else np.iinfo(dtype).min


def _largest(x: Array, geometry: WindowGeometry) -> tuple[Array, Array]:
    """The largest elements of windows, and the numbers of their taps, possibly in the padding."""
    k = len(geometry.window)
    counts = counts_of(x.shape[-k:], geometry, "input")
    x = padded(x, geometry.padding, _lowest(x.dtype))
    best = x[geometry.part((0,) * k, counts)].copy()
    taps = geometry.taps()
    numbers = np.zeros(best.shape, np.min_scalar_type(len(taps)))
    has_nan = x.size and x.dtype.kind == "f" and np.isnan(np.max(x))
    for number, tap in enumerate(taps[1:], 1):
        new = x[geometry.part(tap, counts)]
        is_better = new > best
        if has_nan:
            is_better |= np.isnan(new) & ~np.isnan(best)
        np.maximum(best, new, out=best)
        # `number` increases: the maximum is that of the last better tap
        np.maximum(numbers, is_better * numbers.dtype.type(number), out=numbers)
    return best, numbers


def _positions(x: Array, geometry: WindowGeometry) -> Array:
    """The positions of the largest elements in the flattened spatial axes."""
    k = len(geometry.window)
    lengths = x.shape[-k:]
    which = _largest_taps(x, geometry)
    tap = np.unravel_index(which, geometry.window)
    positions = np.zeros(which.shape, np.int64)
    for axis in range(k):
        indices = np.arange(which.shape[axis - k]).reshape(-1, *[1] * (k - 1 - axis))
        low = geometry.padding[axis][0]
        position = indices * geometry.stride[axis] + tap[axis] * geometry.dilation[axis] - low
        positions = positions * lengths[axis] + position
    return positions


def _largest_taps(x: Array, geometry: WindowGeometry) -> Array:
    """The numbers of the first largest taps, excluding the padding."""
    best, numbers = _largest(x, geometry)
    if not any(map(any, geometry.padding)) or not best.size:
        return numbers
    # Where all elements are -inf, equal to the padding, use the first tap inside.
    k = len(geometry.window)
    counts = best.shape[-k:]
    inside = padded(np.ones(x.shape[-k:], bool), geometry.padding, False)
    first = np.zeros(counts, numbers.dtype)
    for number, tap in reversed(list(enumerate(geometry.taps()))):
        first = np.where(inside[geometry.part(tap, counts)], number, first)
    return np.where(best == _lowest(x.dtype), first, numbers)


def _max_oracle(x: Array, *, window: Any, stride: Any, padding: Any, dilation: Any) -> Any:
    geometry = _geometry(window, stride, padding, dilation)
    x, k = np.asarray(x), len(window)
    x = padded(x, geometry.padding, _lowest(x.dtype))
    return windows_of(x, geometry).max(axis=tuple(range(-k, 0)))


@opaque(trusted=True, oracle=_max_oracle)
def max_pool(
    x: Array,
    *,
    window: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[Any, ...],
    dilation: tuple[int, ...],
) -> Any:
    """Maxima of windows over the last axes; padding is never selected."""
    geometry = _geometry(window, stride, padding, dilation)
    x, k = np.asarray(x), len(window)
    counts = counts_of(x.shape[-k:], geometry, "input")
    x = padded(x, geometry.padding, _lowest(x.dtype))
    out = None
    for tap in geometry.taps():
        part = x[geometry.part(tap, counts)]
        out = part.copy() if out is None else np.maximum(out, part, out=out)
    return out


def _indices_oracle(x: Array, *, window: Any, stride: Any, padding: Any, dilation: Any) -> Any:
    x, k = np.asarray(x), len(window)
    geometry = _geometry(window, stride, padding, dilation)
    lengths = x.shape[x.ndim - k :]
    numbers = padded(np.arange(prod(lengths)).reshape(lengths), padding, -1)
    numbers = windows_of(numbers, geometry)
    numbers = numbers.reshape(*numbers.shape[:k], -1)
    values = windows_of(padded(x, padding, -np.inf), geometry)
    values = values.reshape(*values.shape[: x.ndim], -1)
    out = np.zeros(values.shape[:-1], np.int64)
    for index in np.ndindex(*out.shape):
        positions = numbers[index[x.ndim - k :]]
        out[index] = positions[positions >= 0][np.argmax(values[index][positions >= 0])]
    return out


@facts(host_callback=BY_NUMPY)
@opaque(trusted=True, discrete=True, oracle=_indices_oracle)
def max_pool_indices(
    x: Array,
    *,
    window: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[Any, ...],
    dilation: tuple[int, ...],
) -> Any:
    """The positions of the largest elements of windows, in the flattened spatial axes."""
    return _positions(np.asarray(x), _geometry(window, stride, padding, dilation))


@max_pool.define_vjp
def _max_pool_vjp(t: Array, out: Array, x: Array, **params: Any) -> Any:
    return (max_pool_adjoint(t, x, **params),)


@max_pool.define_jvp
def _max_pool_jvp(dots: list[Array], out: Array, x: Array, **params: Any) -> Any:
    return max_pool_tangent(dots[0], x, **params)


def _tangent_oracle(
    v: Array, x: Array, *, window: Any, stride: Any, padding: Any, dilation: Any
) -> Any:
    v, k = np.asarray(v), len(window)
    positions = _positions(np.asarray(x), _geometry(window, stride, padding, dilation))
    lead = v.shape[: v.ndim - k]
    out = np.empty(positions.shape, v.dtype)
    for index in np.ndindex(*lead):
        out[index] = v[index].ravel()[positions[index]]
    return out


@linear(oracle=_tangent_oracle)
def max_pool_tangent(
    v: Array,
    x: Array,
    *,
    window: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[Any, ...],
    dilation: tuple[int, ...],
) -> Any:
    """The elements of v at the positions of the largest elements of x in each window."""
    v, x = np.asarray(v), np.asarray(x)
    geometry = _geometry(window, stride, padding, dilation)
    numbers, v = _largest_taps(x, geometry), padded(v, geometry.padding)
    counts = numbers.shape[x.ndim - len(window) :]
    out = np.zeros(numbers.shape, v.dtype)
    for number, tap in enumerate(geometry.taps()):
        out = np.where(numbers == number, v[geometry.part(tap, counts)], out)
    return out


def _adjoint_oracle(
    t: Array, x: Array, *, window: Any, stride: Any, padding: Any, dilation: Any
) -> Any:
    t, x, k = np.asarray(t), np.asarray(x), len(window)
    positions = _positions(x, _geometry(window, stride, padding, dilation))
    out = np.zeros(x.shape, t.dtype)
    for index in np.ndindex(*positions.shape):
        spatial_index = np.unravel_index(positions[index], x.shape[x.ndim - k :])
        out[(*index[: x.ndim - k], *spatial_index)] += t[index]
    return out


@linear(oracle=_adjoint_oracle)
def max_pool_adjoint(
    t: Array,
    x: Array,
    *,
    window: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[Any, ...],
    dilation: tuple[int, ...],
) -> Any:
    """Add each element of t at the position of the largest element of x in its window."""
    t, x = np.asarray(t), np.asarray(x)
    geometry = _geometry(window, stride, padding, dilation)
    which, lead = _largest_taps(x, geometry), x.ndim - len(window)
    numbers = {tap: number for number, tap in enumerate(geometry.taps())}

    def cotangent_of_tap(tap: tuple[int, ...]) -> Array:
        return np.where(which == numbers[tap], t, np.zeros((), t.dtype))

    return added_windows(cotangent_of_tap, x.shape[lead:], geometry, x.shape[:lead], t.dtype)


@max_pool_tangent.transpose
def _(t: Array, v: Array, x: Array, **params: Any) -> Any:
    return max_pool_adjoint(t, x, **params)


@max_pool_adjoint.transpose
def _(t: Array, y: Array, x: Array, **params: Any) -> Any:
    return max_pool_tangent(t, x, **params)


# ---- shapes, batching, examples ----------------------------------------------------------------


def _pooled(
    x: Spec,
    window: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[Any, ...],
    dilation: tuple[int, ...] | None = None,
) -> tuple[Any, ...]:
    lead = x.ndim - len(window)
    geometry = _geometry(window, stride, padding, dilation)
    return (*x.shape[:lead], *counts_of(x.shape[lead:], geometry, "input"))


@sum_pool.spec
def _(x: Spec, **params: Any) -> Spec:
    return Spec(_pooled(x, **params), x.dtype)


@sum_pool_adjoint.spec
def _(y: Spec, *, size: tuple[int, ...], **params: Any) -> Spec:
    out = Spec((*y.shape[: y.ndim - len(size)], *size), y.dtype)
    for have, want in zip(y.shape, _pooled(out, **params), strict=True):
        require_equal(have, want, "the positions of the windows of a pooling")
    return out


@max_pool.spec
def _(x: Spec, **params: Any) -> Spec:
    return Spec(_pooled(x, **params), x.dtype)


@max_pool_indices.spec
def _(x: Spec, **params: Any) -> Spec:
    return Spec(_pooled(x, **params), np.dtype(np.int64))


@max_pool_tangent.spec
def _(v: Spec, x: Spec, **params: Any) -> Spec:
    return Spec(_pooled(x, **params), v.dtype)


@max_pool_adjoint.spec
def _(t: Spec, x: Spec, **params: Any) -> Spec:
    for have, want in zip(t.shape, _pooled(x, **params), strict=True):
        require_equal(have, want, "the positions of the windows of a pooling")
    return Spec(x.shape, t.dtype)


def _batching(op: Operation) -> None:
    """Define the batching rule: leading axes are batch axes already, so a batch is one more."""

    @op.batch
    def batch(args: list[Array], batched: list[bool], count: int, /, **params: Any) -> Any:
        return op(*[fronted(a, b, count) for a, b in zip(args, batched, strict=True)], **params)


for _op in (
    sum_pool,
    sum_pool_adjoint,
    max_pool,
    max_pool_indices,
    max_pool_tangent,
    max_pool_adjoint,
):
    _batching(_op)
_SUMS: dict[str, Any] = {"window": (2, 3), "stride": (1, 2), "padding": ((1, 0), (0, 1))}
_MAX_POOL_PARAMS: dict[str, Any] = {**_SUMS, "dilation": (2, 1)}
_SMALL_POOL_PARAMS: dict[str, Any] = {
    "window": (2, 2),
    "stride": (1, 2),
    "padding": ((1, 0), (0, 1)),
    "dilation": (1, 1),
}
_LINE: dict[str, Any] = {"window": (2,), "stride": (2,), "padding": ((0, 0),)}


@sum_pool.examples
def _(rng: np.random.Generator) -> Any:
    yield (rng.normal(size=(2, 3, 4)),), _SUMS
    yield (rng.normal(size=(1, 2, 5)),), _LINE


@sum_pool_adjoint.examples
def _(rng: np.random.Generator) -> Any:
    yield (rng.normal(size=(5, 3, 2)),), {"size": (3, 4), **_SUMS}
    yield (rng.normal(size=(1, 2, 2)),), {"size": (5,), **_LINE}


@max_pool.examples
@max_pool_indices.examples
def _(rng: np.random.Generator) -> Any:
    yield (rng.normal(size=(2, 3, 4)),), _MAX_POOL_PARAMS
    yield (rng.normal(size=(1, 2, 5)),), {**_LINE, "dilation": (1,)}


@max_pool_tangent.examples
def _(rng: np.random.Generator) -> Any:
    yield (rng.normal(size=(3, 2, 2)), rng.normal(size=(3, 2, 2))), _SMALL_POOL_PARAMS


@max_pool_adjoint.examples
def _(rng: np.random.Generator) -> Any:
    yield (rng.normal(size=(3, 2, 1)), rng.normal(size=(3, 2, 2))), _SMALL_POOL_PARAMS
