"""Windows of elements: what is beyond the borders (SciPy's modes), and weighted sums of windows.

    extended        an array with elements before and after it, along one axis
    arguments       one value for each axis, from a number or a sequence
    axes_of         the axes that a filter works on
    operand         an array in double precision
    result          the dtype of a result, from SciPy's argument `output`
    staged          the same for a filter of one axis, before that of the next
    MODES           the names of modes
    window_sum      with fixed weights, a linear operation
    window_product  with weights that are an operand
    windowed        one of them

The transpose of `window_sum` is the operation itself, of the cotangent with zeros around it and
reversed offsets.  In native code the sum is one loop, up to 128 weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.ndimage
import scipy.signal
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from wengert._engine.core.handle import Handle, describe
from wengert._engine.core.spec import Spec
from wengert._engine.kinds.linear_map import linear
from wengert._engine.kinds.opaque import opaque
from wengert._engine.ops import casts
from wengert._engine.serialization.class_registry import register_class
from wengert._engine.tensor.numpy_dispatch import as_array
from wengert.errors import ArgumentError, at, user_line
from wengert.numpy.padding import pad

from ..dispatch import floating, known_length
from ..signal.convolution import slide

# The canonical name of each mode of filters.
MODES = {
    "reflect": "reflect",
    "grid-mirror": "reflect",
    "constant": "constant",
    "grid-constant": "constant",
    "nearest": "nearest",
    "mirror": "mirror",
    "wrap": "wrap",
    "grid-wrap": "wrap",
}


def mode_of(mode: Any) -> str:
    """The canonical name of a mode of filters."""
    if not isinstance(mode, str):
        raise RuntimeError("A sequence of modes is not supported")
    if mode not in MODES:
        raise RuntimeError("boundary mode not supported")
    return MODES[mode]


def source_positions(positions: Any, n: int, mode: str) -> Any:
    """The positions of the elements that a mode other than 'constant' has at any positions."""
    if mode == "nearest" or n == 1:
        return np.clip(positions, 0, n - 1)
    if mode == "wrap":
        return positions % n
    if mode == "reflect":
        inside = positions % (2 * n)
        return np.where(inside < n, inside, 2 * n - 1 - inside)
    inside = positions % (2 * n - 2)
    return np.where(inside < n, inside, 2 * n - 2 - inside)


def extended(x: Any, axis: int, before: int, after: int, mode: str, cval: Any) -> Any:
    """An array with further elements along an axis.

    Parameters
    ----------
    x : array or Tensor
    axis : int
    before, after : int
        The numbers of elements.
    mode : str
        A canonical name.
    cval : number or Tensor
        The value of elements outside, for 'constant'.
    """
    if not (before or after):
        return x
    if mode == "constant":
        widths = [(0, 0)] * x.ndim
        widths[axis] = (before, after)
        return pad(x, widths, constant_values=cval)
    n = known_length(x.shape[axis], "a filter")
    if n == 0:
        return x
    positions = source_positions(np.arange(-before, n + after), n, mode)
    take = np.take
    parts = [x]
    if before:
        parts.insert(0, take(x, positions[:before], axis=axis))
    if after:
        parts.append(take(x, positions[before + n :], axis=axis))
    return np.concatenate(parts, axis=axis)


def arguments(value: Any, count: int, what: str = "sequence argument") -> list[Any]:
    """One value for each axis, from one for all or a sequence."""
    ndim: int = getattr(value, "ndim", 0)
    if not (ndim or isinstance(value, list | tuple)):
        return [value] * count
    values = list(value)
    if len(values) != count:
        raise RuntimeError(f"{what} must have length equal to input rank")
    return values


def axes_of(axes: Any, ndim: int) -> tuple[int, ...]:
    """The axes that a filter works on."""
    if axes is None:
        return tuple(range(ndim))
    if np.ndim(axes) == 0:
        return (normalize_axis_index(axes, ndim),)
    return tuple(normalize_axis_tuple(axes, ndim))


def operand(x: Any) -> tuple[Any, np.dtype[Any]]:
    """An operand in double precision, in which SciPy computes, and its dtype."""
    x = as_array(x)
    dtype = describe(x).dtype
    x = floating(x)
    wide = np.dtype(np.complex128 if dtype.kind == "c" else np.float64)
    return (x if x.dtype == wide else casts.astype(x, wide)), dtype


def staged(y: Any, dtype: np.dtype[Any], output: Any, name: str) -> Any:
    """An intermediate result, which SciPy stores in the dtype of the result."""
    stored = result(y, dtype, output, name)
    return y if stored is y else casts.astype(stored, y.dtype)


def result(y: Any, dtype: np.dtype[Any], output: Any, name: str) -> Any:
    """A result with SciPy's dtype: that of the input, or `output`.

    Raises
    ------
    ArgumentError
        `output` is an array.
    """
    if output is not None:
        if isinstance(output, np.ndarray) or hasattr(output, "node"):
            raise ArgumentError(
                f"{name} with an array as output: not supported with tensors. Use the result"
                f"{at(user_line())}."
            )
        dtype = np.dtype(output)
    if y.dtype.kind == "c" and dtype.kind != "c":
        dtype = np.result_type(dtype, np.complex64)
    return y if y.dtype == dtype else casts.astype(y, dtype)


_MAX_UNROLLED = 128


@register_class
@dataclass(frozen=True, eq=False)
class FixedWeights:
    """Weights that are numbers, compared by content."""

    array: np.ndarray[Any, Any]

    @property
    def _key(self) -> tuple[Any, ...]:
        return self.array.shape, self.array.dtype.str, self.array.tobytes()

    @property
    def cache_key(self) -> np.ndarray[Any, Any]:
        """What programs on disk are found by."""
        return self.array

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FixedWeights) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


def _reference(x: Any, weights: Any) -> Any:
    w = weights.array if isinstance(weights, FixedWeights) else weights
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape)
    axes = tuple(range(x.ndim))
    return np.tensordot(windows, w, (tuple(a + x.ndim for a in axes), axes))


@linear(name="ndimage.window_sum", oracle=_reference)
def window_sum(x: Any, *, weights: FixedWeights) -> Any:
    """Sums of windows with fixed weights, where the window is inside."""
    w = weights.array
    shape = _valid(x, w)
    out = np.zeros(shape, np.result_type(x, w))
    if not out.size:
        return out
    long = [k for k, m in enumerate(w.shape) if m > 1]
    if len(long) <= 1 and x.dtype.kind == w.dtype.kind == "f":
        axis = long[0] if long else 0
        full = scipy.ndimage.correlate1d(x, np.ravel(w), axis, out.dtype, "constant")
        start = w.shape[axis] // 2
        inside = [slice(None)] * x.ndim
        inside[axis] = slice(start, start + shape[axis])
        return full[tuple(inside)]
    for position in np.argwhere(w):
        out += w[tuple(position)] * x[_slices(position, shape)]
    return out


def _slices(start: Any, shape: tuple[int, ...]) -> tuple[slice, ...]:
    return tuple([slice(int(i), int(i) + n) for i, n in zip(start, shape, strict=True)])


@window_sum.spec
def _(x: Spec, *, weights: FixedWeights) -> Spec:
    w = weights.array
    shape = _valid(x, w)
    return Spec(shape, np.result_type(x.dtype, w.dtype))


@window_sum.transpose
def _(t: Any, x: Any, *, weights: FixedWeights) -> Any:
    w = np.conj(np.flip(weights.array))
    around = pad(t, [(m - 1, m - 1) for m in w.shape])
    bar = window_sum(around, weights=FixedWeights(np.ascontiguousarray(w)))
    return bar if x.dtype.kind == "c" or bar.dtype.kind != "c" else np.real(bar)


@window_sum.compose
def _(x: Any, *, weights: FixedWeights) -> Any:
    w = weights.array
    shape = _valid(x, w)
    positions = np.argwhere(w)
    if len(positions) > _MAX_UNROLLED:
        return slide(x, w)
    total: Any = None
    for position in positions:
        term = w[tuple(position)] * x[_slices(position, shape)]
        total = term if total is None else total + term
    if total is None:
        return np.zeros(shape, np.result_type(x.dtype, w.dtype))
    return total


@window_sum.examples
def _(rng: np.random.Generator) -> Any:
    yield (rng.normal(size=(4, 5)),), {"weights": FixedWeights(rng.normal(size=(1, 3)))}
    yield (rng.normal(size=(4, 5)),), {"weights": FixedWeights(rng.normal(size=(2, 3)))}
    yield (
        (rng.normal(size=5) + 1j * rng.normal(size=5),),
        {"weights": FixedWeights(np.array([0.5, 2.0]))},
    )


def _products(x: Any, w: Any) -> Any:
    """The sum of slices, each multiplied with a weight."""
    shape = _valid(x, w)
    total: Any = None
    for position in np.ndindex(*w.shape):
        term = w[position] * x[_slices(position, shape)]
        total = term if total is None else total + term
    return total


def _valid(x: Any, w: Any) -> tuple[int, ...]:
    return tuple([n - m + 1 for n, m in zip(x.shape, w.shape, strict=True)])


@opaque(name="ndimage.window_product", trusted=True, oracle=lambda x, w: _reference(x, w))
def window_product(x: Any, w: Any) -> Any:
    """Sums of windows with weights, where the window is inside."""
    return _products(x, w)


@window_product.spec
def _(x: Spec, w: Spec) -> Spec:
    return Spec(_valid(x, w), np.result_type(x.dtype, w.dtype))


@window_product.compose
def _(x: Any, w: Any) -> Any:
    return slide(x, w) if w.size > _MAX_UNROLLED else _products(x, w)


@window_product.define_vjp
def _(t: Any, out: Any, x: Any, w: Any) -> Any:
    around = pad(t, [(m - 1, m - 1) for m in w.shape])
    flipped = w[(slice(None, None, -1),) * w.ndim]
    of_x = window_product(around, np.conj(flipped) if w.dtype.kind == "c" else flipped)
    conj = np.conj(x) if x.dtype.kind == "c" else x
    if w.size > _MAX_UNROLLED:
        return of_x, slide(conj, t)
    sums = [np.sum(conj[_slices(p, t.shape)] * t) for p in np.ndindex(*w.shape)]
    return of_x, np.stack(sums).reshape(w.shape)


@window_product.define_jvp
def _(dots: Any, out: Any, x: Any, w: Any) -> Any:
    parts = [window_product(dots[0], w)] if dots[0] is not None else []
    parts += [window_product(x, dots[1])] if dots[1] is not None else []
    return parts[0] if len(parts) == 1 else parts[0] + parts[1]


@window_product.examples
def _(rng: np.random.Generator) -> Any:
    yield (rng.normal(size=(4, 5)), rng.normal(size=(2, 3))), {}
    x = rng.normal(size=(2, 5)) + 1j * rng.normal(size=(2, 5))
    yield (x[0], x[1, :3]), {}


def windowed(x: Any, weights: Any) -> Any:
    """Sums of windows with weights, numbers or a tensor, of as many axes as the array."""
    if not isinstance(weights, Handle):
        return window_sum(x, weights=FixedWeights(np.ascontiguousarray(weights)))
    kind = np.result_type(describe(x).dtype, describe(weights).dtype)
    return window_product(casts.astype(x, kind), casts.astype(weights, kind))
