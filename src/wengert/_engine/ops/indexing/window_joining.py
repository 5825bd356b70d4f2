"""Parts, joins, products and solutions of windows.

The functions are registered by NumPy's names (window_functions.py): concatenate, unique, roll, dot,
where, solve ...
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.handle import shape_of
from wengert._engine.core.op import lookup

from ..creation import identity, positions
from ..elementwise.selection import where
from .masks import true_positions
from .slice_ends import SliceRange, as_value, clipped, taken
from .window_functions import (
    Function,
    as_window,
    first_window,
    flat,
    from_start,
    function,
    line,
    of_axis,
)
from .window_operators import elementwise, length_check, moved_to_start, product
from .window_sorting import sorted_window
from .windows import Window

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Operand

# ---- positions and parts -----------------------------------------------------------------------


@function("flip")
def _flip(m: Window, axis: int | None = None) -> Any:
    axes = range(m.ndim) if axis is None else (axis % m.ndim,)
    return m[tuple(slice(None, None, -1) if k in axes else slice(None) for k in range(m.ndim))]


@function("roll")
def _roll(a: Window, shift: int, axis: int | None = None) -> Any:
    a, axis = line(a, axis)
    if axis not in a.ranges:
        return Window(np.roll(a.whole, shift, axis), a.ranges)
    n = shape_of(a.whole)[axis]
    length = lookup("maximum")(a.length(axis), 1)
    return Window(taken(a.whole, (positions(n) - shift) % length, axis=axis), a.ranges)


@function("take")
def _take(
    a: Window, indices: Array, axis: int | None = None, out: None = None, mode: str = "raise"
) -> Any:
    if out is not None or mode != "raise":
        raise first_window((a, indices), "take").refusal(f"np.take with mode={mode!r}")
    a, axis = line(a, axis)
    return a[(slice(None),) * axis + (indices,)]


@function("concatenate", "hstack")
def _concatenate(arrays: Sequence[Array], axis: int = 0) -> Any:
    """Arrays of unknown length one after the other: the second begins where the first ends."""
    if isinstance(arrays, Window):  # a list of unknown length, of arrays
        return flat(arrays) if axis == 0 and arrays.ndim == 2 else _refused(arrays)
    result = as_window(arrays[0])
    axis = axis % result.ndim
    for other in arrays[1:]:
        result = _joined(line(result, axis)[0], line(as_window(other), axis)[0], axis)
    return result


def _joined(a: Window, b: Window, axis: int) -> Window:
    n, m = shape_of(a.whole)[axis], shape_of(b.whole)[axis]
    rest = {k: r for k, r in {**b.ranges, **a.ranges}.items() if k != axis}
    length = a.shape[axis]
    both = lookup("concatenate")(a.whole, b.whole, axis=axis)
    p = positions(n + m)
    places = where(
        p < as_value(length), p, clipped(p - as_value(length), 0, as_value(m) - 1) + as_value(n)
    )
    whole = taken(both, places, axis=axis)
    return Window(whole, {**rest, axis: SliceRange(0, as_value(length) + as_value(b.shape[axis]))})


def _refused(arrays: Window) -> Any:
    raise arrays.refusal("joining its elements along this axis")


@function("append")
def _append(arr: Window, values: Array, axis: int | None = None) -> Any:
    if axis is None:
        return _concatenate([flat(arr), flat(as_window(values))])
    return _concatenate([arr, values], axis)


@function("nonzero")
def _nonzero(a: Window) -> Any:
    return tuple(true_positions(a))


@function("flatnonzero")
def _flatnonzero(a: Window) -> Any:
    return _nonzero(flat(a))[0]


@function("unique")
def _unique(ar: Window, *, return_counts: bool = False) -> Any:
    if return_counts:
        return _unique_counts(ar)
    ordered, places = _first_of_equal(ar)
    return ordered[places]


def _unique_counts(ar: Window) -> Any:
    ordered, places = _first_of_equal(ar)
    n = shape_of(ordered.whole)[0]
    count, p = places.length(0), positions(n)
    following = taken(places.whole, clipped(p + 1, 0, as_value(n) - 1), axis=0)
    ends = where(p + 1 < count, following, as_value(ordered.shape[0]))
    return ordered[places], Window(ends - places.whole, places.ranges)


def _first_of_equal(ar: Window) -> tuple[Window, Window]:
    """The elements in order, and the positions of the first of equal ones; NaN are equal."""
    ordered = sorted_window(flat(ar))
    n = shape_of(ordered.whole)[0]
    p = positions(n)
    before = taken(ordered.whole, clipped(p - 1, 0, as_value(n) - 1), axis=0)
    differs = ordered.whole != before
    if ordered.dtype.kind == "f":
        differs = differs & ~(np.isnan(ordered.whole) & np.isnan(before))
    (places,) = true_positions(Window(differs | (p == 0), ordered.ranges))
    return ordered, places


@function("stack", "column_stack", "vstack")
def _stack(arrays: Sequence[Array], axis: int = 0) -> Any:
    """Arrays of the same unknown length as rows or columns of one array."""
    if isinstance(arrays, Window):  # a list of unknown length
        return arrays.copy() if axis == 0 and arrays.ndim > 1 else _refused(arrays)
    windows = [a for a in arrays]
    axis = axis % (windows[0].ndim + 1)
    index = (*(slice(None),) * axis, None)
    parts = [a[index] for a in windows]
    joined = elementwise(lambda *x: lookup("concatenate")(*x, axis=axis), "add", *parts)
    return joined


# ---- products and selections -------------------------------------------------------------------


@function("dot")
def _dot(a: Window, b: Array) -> Any:
    return product(a, b)


@function("inner")
def _inner(a: Window, b: Array) -> Any:
    return product(a, b if as_window(b).ndim < 2 else as_window(b).T)


@function("vdot")
def _vdot(a: Window, b: Array) -> Any:
    return product(elementwise(np.conj, "conj", a), b)


@function("outer")
def _outer(a: Window, b: Array) -> Any:
    one, other = flat(a), flat(as_window(b))
    return elementwise(lookup("multiply"), "multiply", one[:, None], other[None, :])


@function("solve")
def _solve(a: Window, b: Array) -> Any:
    """The solution of a system of unknown size: with ones on the diagonal of the other rows."""
    a = _square(a)
    b = as_window(b)
    b = moved_to_start(b, 0) if 0 in b.ranges else b
    whole = np.linalg.solve(a.whole, b.filled(0, of_axis(b, 0)))
    return Window(whole, {**b.ranges, 0: a.ranges[0]})


@function("inv")
def _inv(a: Window) -> Any:
    a = _square(a)
    return Window(np.linalg.inv(a.whole), a.ranges)


@function("det")
def _det(a: Window) -> Any:
    return np.linalg.det(_square(a).whole)


@function("slogdet")
def _slogdet(a: Window) -> Any:
    return np.linalg.slogdet(_square(a).whole)


@function("cholesky")
def _cholesky(a: Window) -> Any:
    a = _square(a)
    return Window(np.linalg.cholesky(a.whole), a.ranges)


def _square(a: Window) -> Window:
    """A square matrix of unknown size, continued by an identity."""
    a = from_start(a)
    if a.ndim != 2 or len(a.ranges) != 2:
        raise a.refusal("the solution of a system")
    length_check(a.length(0), a.length(1))
    n = min(shape_of(a.whole))
    a = Window(a.whole[:n, :n], a.ranges)
    return Window(where(a.mask(), a.whole, identity(n, a.dtype)), a.ranges)


@function("diag", "diagonal")
def _diagonal(a: Window) -> Any:
    a = from_start(a)
    if a.ndim != 2 or len(a.ranges) != 2:
        raise a.refusal("np.diag of it")
    return Window(np.diagonal(a.whole), {0: a.ranges[0]})


@function("trace")
def _trace(a: Window) -> Any:
    return _diagonal(a).sum()


@function("where")
def _where(condition: Window, x: Operand | None = None, y: Operand | None = None) -> Any:
    if x is None and y is None:
        return _nonzero(condition)
    return elementwise(where, "add", condition, x, y)


@function("clip")
def _clip(a: Window, a_min: Operand | None = None, a_max: Operand | None = None) -> Any:
    if a_min is not None:
        a = elementwise(lookup("maximum"), "add", a, a_min)
    return a if a_max is None else elementwise(lookup("minimum"), "add", a, a_max)


@function("shape")
def _shape(a: Window) -> Any:
    return a.shape


@function("ndim")
def _ndim(a: Window) -> Any:
    return a.ndim


@function("size")
def _size(a: Window) -> Any:
    return a.size


@function("copy")
def _copy(a: Window) -> Any:
    return a.copy()


@function("array", "asarray")
def _array(a: Window, dtype: object = None) -> Any:
    return a.copy() if dtype is None else a.astype(dtype)


@function("transpose")
def _transpose(a: Window) -> Any:
    return a.T


@function("squeeze", "ravel")
def _ravel(a: Window) -> Any:
    return flat(a)


@function("array_equal")
def _array_equal(a: Window, b: Array) -> Any:
    one, other = flat(a), flat(as_window(b))
    n = min(shape_of(one.whole)[0], shape_of(other.whole)[0])
    length = as_value(one.shape[0])
    same = (one.whole[:n] == other.whole[:n]) | (positions(n) >= length)
    return (length == as_value(other.shape[0])) & np.all(same)


def _elementwise(name: str) -> Function:
    def run(*args: object, **kwargs: object) -> Any:
        return elementwise(lambda *x: getattr(np, name)(*x, **kwargs), name, *args)

    return run


for _name in ("nan_to_num", "real", "imag", "angle", "round", "around", "sinc", "isclose",
              "zeros_like", "ones_like", "full_like", "heaviside"):  # fmt: skip
    function(_name)(_elementwise(_name))
