"""Convolution over channels and spatial axes, and its adjoints.

The three operations are the three derivatives of one trilinear form.  For x of shape (N, C, *axes),
w of shape (O, C/groups, *kernel), y of shape (N, O, *positions), and the positions of
ops/neural/sliding_windows.py,

    form = sum  y[n, o, i]  w[o, c, j]  x[n, group(o) C/groups + c, i stride + j dilation - low]

    convolution          y from x and w: cross-correlation, called convolution in deep learning
    convolution_input    x from y and w: the adjoint with respect to x, the transposed convolution
    convolution_weight   w from x and y: the adjoint with respect to w

Each is linear in both operands, and its derivative with respect to one of them is another of the
three.  The three are also closed under batching: a batch axis of two of the arrays is merged into
another axis, a batch axis of all three into the groups.

On NumPy arrays the windows of several samples are copied to a matrix (im2col) and multiplied.
Formula: V. Dumoulin, F. Visin, "A guide to convolution arithmetic for deep learning",
arXiv:1603.07285.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.op_facts import facts
from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic.constraints import require_equal
from wengert._engine.core.symbolic.dim import spelled
from wengert._engine.kinds.opaque import opaque
from wengert._engine.ops import cost_model

from .sliding_windows import (
    Array,
    WindowGeometry,
    added_windows,
    counts_of,
    merged,
    padded,
    split,
    windows_of,
)

if TYPE_CHECKING:
    from wengert._engine.kinds.opaque import Opaque

_BLOCK_BYTES = 1 << 22  # maximum number of bytes of windows that are copied at once


def geometry_of(
    kernel: Sequence[int],
    stride: tuple[int, ...],
    padding: tuple[Any, ...],
    dilation: tuple[int, ...],
) -> WindowGeometry:
    """The windows of a kernel, as WindowGeometry."""
    return WindowGeometry(tuple(kernel), tuple(stride), tuple(padding), tuple(dilation))


def _conj(x: Array) -> Any:
    return np.conjugate(x) if x.dtype.kind == "c" else x


def _blocks(count: int, size: int) -> Any:
    """Slices of samples of at most `_BLOCK_BYTES` bytes, at `size` bytes per sample."""
    step = max(1, _BLOCK_BYTES // max(size, 1))
    return [slice(k, min(k + step, count)) for k in range(0, count, step)]


def _columns(x: Array, geometry: WindowGeometry, groups: int) -> Array:
    """The windows of padded samples as columns: (N, groups, C/groups taps, positions)."""
    n, c = x.shape[:2]
    k = len(geometry.window)
    windows = windows_of(x, geometry)
    order = (0, 1, *range(2 + k, 2 + 2 * k), *range(2, 2 + k))
    taps, positions = prod(geometry.window), prod(windows.shape[2 : 2 + k])
    if taps == 1:
        order = (0, 1, *range(2, 2 + 2 * k))
    return windows.transpose(order).reshape(n, groups, c // groups * taps, positions)


# ---- the value ---------------------------------------------------------------------------------


def _convolution_oracle(
    x: Array, w: Any, *, stride: Any, padding: Any, dilation: Any, groups: Any
) -> Any:
    """The convolution, one output element at a time."""
    x, w = np.asarray(x), np.asarray(w)
    geometry = geometry_of(w.shape[2:], stride, padding, dilation)
    counts = counts_of(x.shape[2:], geometry, "input")
    y = np.zeros((x.shape[0], w.shape[0], *counts), np.result_type(x, w))
    inputs, outputs = w.shape[1], w.shape[0] // groups
    for n, o, *i in np.ndindex(*y.shape):
        for c, *j in np.ndindex(*w.shape[1:]):
            index = [
                a * s + b * d - low
                for a, b, s, d, (low, _) in zip(i, j, stride, dilation, padding, strict=True)
            ]
            if all(0 <= a < m for a, m in zip(index, x.shape[2:], strict=True)):
                y[n, o, *i] += w[o, c, *j] * x[n, o // outputs * inputs + c, *index]
    return y


@facts(flops=cost_model.convolution)
@opaque(trusted=True, oracle=_convolution_oracle)
def convolution(
    x: Array,
    w: Array,
    *,
    stride: tuple[int, ...],
    padding: tuple[Any, ...],
    dilation: tuple[int, ...],
    groups: int,
) -> Any:
    """y[n, o, i] = sum w[o, c, j] x[n, c, i stride + j dilation - low], in groups of channels."""
    geometry = geometry_of(w.shape[2:], stride, padding, dilation)
    counts = counts_of(x.shape[2:], geometry, "input")
    n, outputs = x.shape[0], w.shape[0]
    y = np.empty((n, outputs, *counts), np.result_type(x, w))
    if not y.size or not w.size:
        return np.zeros_like(y)
    matrix = w.reshape(groups, outputs // groups, -1)
    for part in _blocks(n, w[0].size * groups * prod(counts) * x.itemsize):
        columns = _columns(padded(x[part], geometry.padding), geometry, groups)
        y[part] = np.matmul(matrix, columns).reshape(y[part].shape)
    return y


@convolution.define_vjp
def _convolution_vjp(t: Array, out: Array, x: Array, w: Array, **params: Any) -> Any:
    return (
        convolution_input(t, _conj(w), size=tuple(x.shape[2:]), **params),
        convolution_weight(_conj(x), t, kernel=tuple(w.shape[2:]), **params),
    )


# ---- its adjoints ------------------------------------------------------------------------------


def _input_oracle(
    y: Any, w: Any, *, size: Any, stride: Any, padding: Any, dilation: Any, groups: Any
) -> Any:
    """The adjoint, by adding each element of y to the elements of x in its window."""
    y, w = np.asarray(y), np.asarray(w)
    inputs, outputs = w.shape[1], w.shape[0] // groups
    x = np.zeros((y.shape[0], inputs * groups, *size), np.result_type(y, w))
    for n, o, *i in np.ndindex(*y.shape):
        for c, *j in np.ndindex(*w.shape[1:]):
            index = [
                a * s + b * d - low
                for a, b, s, d, (low, _) in zip(i, j, stride, dilation, padding, strict=True)
            ]
            if all(0 <= a < m for a, m in zip(index, size, strict=True)):
                x[n, o // outputs * inputs + c, *index] += w[o, c, *j] * y[n, o, *i]
    return x


@facts(flops=cost_model.convolution_input)
@opaque(trusted=True, oracle=_input_oracle)
def convolution_input(
    y: Any, w: Any, *, size: Any, stride: Any, padding: Any, dilation: Any, groups: Any
) -> Any:
    """The adjoint of `convolution` with respect to x, whose axes have lengths `size`."""
    geometry = geometry_of(w.shape[2:], stride, padding, dilation)
    n, counts = y.shape[0], y.shape[2:]
    _check_counts(size, geometry, counts)
    channels, outputs = w.shape[1] * groups, w.shape[0]
    x = np.zeros((n, channels, *size), np.result_type(y, w))
    if not x.size or not y.size or not w.size:
        return x
    matrix = w.reshape(groups, outputs // groups, -1).swapaxes(1, 2)
    for part in _blocks(n, w[0].size * groups * prod(counts) * y.itemsize):
        rows = y[part].reshape(-1, groups, outputs // groups, prod(counts))
        columns = np.matmul(matrix, rows).reshape(len(rows), channels, *w.shape[2:], *counts)

        def tap_of(tap: Any, columns: Any = columns) -> Any:
            return columns[(slice(None), slice(None), *tap)]

        x[part] = added_windows(tap_of, size, geometry, (len(rows), channels), x.dtype)
    return x


@convolution_input.define_vjp
def _convolution_input_vjp(
    t: Array, out: Array, y: Array, w: Array, *, size: tuple[int, ...], **params: Any
) -> Any:
    return (
        convolution(t, _conj(w), **params),
        convolution_weight(t, _conj(y), kernel=tuple(w.shape[2:]), **params),
    )


def _weight_oracle(
    x: Array, y: Array, *, kernel: Any, stride: Any, padding: Any, dilation: Any, groups: Any
) -> Any:
    """The adjoint, each weight a sum of products of x and y over window positions."""
    x, y = np.asarray(x), np.asarray(y)
    inputs, outputs = x.shape[1] // groups, y.shape[1] // groups
    w = np.zeros((y.shape[1], inputs, *kernel), np.result_type(x, y))
    for n, o, *i in np.ndindex(*y.shape):
        for c, *j in np.ndindex(*w.shape[1:]):
            index = [
                a * s + b * d - low
                for a, b, s, d, (low, _) in zip(i, j, stride, dilation, padding, strict=True)
            ]
            if all(0 <= a < m for a, m in zip(index, x.shape[2:], strict=True)):
                w[o, c, *j] += y[n, o, *i] * x[n, o // outputs * inputs + c, *index]
    return w


@facts(flops=cost_model.convolution_weight)
@opaque(trusted=True, oracle=_weight_oracle)
def convolution_weight(
    x: Array,
    y: Array,
    *,
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[Any, ...],
    dilation: tuple[int, ...],
    groups: int,
) -> Any:
    """The adjoint of `convolution` with respect to w, whose kernels have the shape `kernel`."""
    geometry = geometry_of(kernel, stride, padding, dilation)
    n, counts, outputs = x.shape[0], y.shape[2:], y.shape[1]
    _check_counts(x.shape[2:], geometry, counts)
    inputs = x.shape[1] // groups
    w = np.zeros((outputs, inputs, *kernel), np.result_type(x, y))
    if not x.size or not y.size or not w.size:
        return w
    total = w.reshape(groups, outputs // groups, -1)
    for part in _blocks(n, x.shape[1] * prod(kernel) * prod(counts) * x.itemsize):
        columns = _columns(padded(x[part], geometry.padding), geometry, groups)
        rows = y[part].reshape(-1, groups, outputs // groups, prod(counts))
        for y_sample, x_columns in zip(rows, columns, strict=True):
            total += np.matmul(y_sample, x_columns.swapaxes(1, 2))
    return w


@convolution_weight.define_vjp
def _convolution_weight_vjp(
    t: Array, out: Array, x: Array, y: Array, *, kernel: tuple[int, ...], **params: Any
) -> Any:
    return (
        convolution_input(_conj(y), t, size=tuple(x.shape[2:]), **params),
        convolution(_conj(x), t, **params),
    )


# ---- shape rules, jvp and batching ---------------------------------------------------------------


def _check_counts(lengths: Sequence[Any], geometry: WindowGeometry, counts: Sequence[Any]) -> None:
    """Check that the spatial shape of y follows from those of x and w."""
    expected = counts_of(lengths, geometry, "input")
    for have, want in zip(counts, expected, strict=True):
        require_equal(
            have,
            want,
            f"windows of {spelled(geometry.window)} on axes {spelled(tuple(lengths))} have "
            f"{spelled(expected)} positions, not {spelled(tuple(counts))}",
        )


def _check_channels(channels: int, outputs: int, inputs: int, groups: int) -> None:
    require_equal(channels, inputs * groups, f"input channels in {groups} groups")
    if isinstance(outputs, int) and outputs % groups:
        raise ValueError(f"{outputs} output channels are not divisible into {groups} groups")


@convolution.spec
def _(x: Spec, w: Spec, *, groups: int, **params: Any) -> Spec:
    _check_channels(x.shape[1], w.shape[0], w.shape[1], groups)
    counts = counts_of(x.shape[2:], geometry_of(w.shape[2:], **params), "input")
    return Spec((x.shape[0], w.shape[0], *counts), np.result_type(x.dtype, w.dtype))


@convolution_input.spec
def _(y: Spec, w: Spec, *, size: tuple[int, ...], groups: int, **params: Any) -> Spec:
    require_equal(y.shape[1], w.shape[0], "output channels")
    _check_counts(size, geometry_of(w.shape[2:], **params), y.shape[2:])
    shape = (y.shape[0], w.shape[1] * groups, *size)
    return Spec(shape, np.result_type(y.dtype, w.dtype))


@convolution_weight.spec
def _(x: Spec, y: Spec, *, kernel: tuple[int, ...], groups: int, **params: Any) -> Spec:
    require_equal(x.shape[0], y.shape[0], "samples")
    _check_channels(x.shape[1], y.shape[1], x.shape[1] // groups, groups)
    _check_counts(x.shape[2:], geometry_of(kernel, **params), y.shape[2:])
    shape = (y.shape[1], x.shape[1] // groups, *kernel)
    return Spec(shape, np.result_type(x.dtype, y.dtype))


def _bilinear(op: Opaque, roles: str) -> None:
    """Define the jvp and the batching rule of an operation.

    `roles` states which of x, w and y the two operands and the result are.
    """

    @op.define_jvp
    def jvp(dots: list[Array | None], out: Array, a: Array, b: Array, **params: Any) -> Any:
        parts = [op(dots[0], b, **params)] if dots[0] is not None else []
        parts += [op(a, dots[1], **params)] if dots[1] is not None else []
        return parts[0] if len(parts) == 1 else parts[0] + parts[1]

    @op.batch
    def batch(
        args: list[Array], batched: list[bool], count: int, /, *, groups: int, **params: Any
    ) -> Any:
        return _batched(op, roles, args, batched, count, groups, params)


# For each combination of batched arrays: the axis into which the batch of an array is merged, and
# whether it is merged into each group of channels separately.
_MERGED = {
    "xy": {"x": (0, False), "y": (0, False)},
    "wy": {"w": (0, True), "y": (1, True)},
    "xw": {"x": (1, True), "w": (1, False)},
    "xwy": {"x": (1, False), "w": (0, False), "y": (1, False)},
}


def _batched(
    op: Opaque,
    roles: str,
    args: list[Array],
    batched: list[bool],
    size: int,
    groups: int,
    params: dict[str, Any],
) -> Any:
    """Merge the batch into samples, output channels, input channels, or groups."""
    with_batch = {r for r, b in zip(roles, batched, strict=False) if b} | {roles[2]}
    axes = _MERGED["".join(r for r in "xwy" if r in with_batch)]
    if size == 0 or (len(axes) == 3 and not isinstance(size, int)):
        return NotImplemented
    merged_args = []
    for a, b, r in zip(args, batched, roles, strict=False):
        if b:
            axis, inside = axes[r]
            a = merged(a, axis, groups if inside else 1)
        merged_args.append(a)
    out = op(*merged_args, groups=groups * size if len(axes) == 3 else groups, **params)
    axis, inside = axes[roles[2]]
    return split(out, size, axis, groups if inside else 1)


_bilinear(convolution, "xwy")
_bilinear(convolution_input, "ywx")
_bilinear(convolution_weight, "xyw")
_ONE: dict[str, Any] = {"stride": (2,), "padding": ((1, 0),), "dilation": (2,), "groups": 2}
_TWO: dict[str, Any] = {
    "stride": (1, 2),
    "padding": ((1, 1), (0, 0)),
    "dilation": (1, 1),
    "groups": 1,
}


@convolution.examples
def _(rng: np.random.Generator) -> Any:
    yield (rng.normal(size=(3, 2, 4)), rng.normal(size=(2, 1, 2))), _ONE
    yield (rng.normal(size=(1, 2, 2, 3)), rng.normal(size=(1, 2, 2, 1))), _TWO


@convolution_input.examples
def _(rng: np.random.Generator) -> Any:
    yield (rng.normal(size=(3, 2, 2)), rng.normal(size=(2, 1, 2))), {"size": (4,), **_ONE}
    yield (
        (rng.normal(size=(1, 1, 3, 2)), rng.normal(size=(1, 2, 2, 1))),
        {"size": (2, 3), **_TWO},
    )


@convolution_weight.examples
def _(rng: np.random.Generator) -> Any:
    yield (rng.normal(size=(3, 2, 4)), rng.normal(size=(3, 2, 2))), {"kernel": (2,), **_ONE}
    yield (
        (rng.normal(size=(1, 2, 2, 3)), rng.normal(size=(1, 1, 3, 2))),
        {"kernel": (2, 1), **_TWO},
    )
