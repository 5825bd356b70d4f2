"""Shapes of indexed arrays, for lengths that are integers or symbolic sizes.

NumPy clips slices that extend beyond the end, so the length of the result would be a piecewise
function of the size.  For a symbolic size the rule requires that nothing is clipped
(`core/symbolic/constraints.py`): x[2:5] of length n requires n >= 5, and the graph raises an error
for other sizes.

    chosen_shape    the shape of x[index]
    slice_length    the number of elements of a slice

Lengths that are computed in a loop step: of new arrays, and of stored values.

    computed_length    a length that may be a traced integer
    computed_range     the numbers of a range whose ends may be traced integers
    length_pairs       pairs of lengths of a value and its target
    with_lengths       a cotangent with the value's expressions for its lengths
    of_last_stores     a cotangent, zero for stores that a later one to the same element overwrote

In a loop, such a length becomes a symbolic size, as that of a slice does (traced_slices.py).

A value may have fewer axes than the elements that it is stored to, or axes of length one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.handle import Handle, is_traced
from wengert._engine.core.op import lookup
from wengert._engine.core.recording import current_trace
from wengert._engine.core.runtime_checks import RuntimeChecks
from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic.constraints import broadcast, require_at_least
from wengert._engine.core.symbolic.dim import Dim, bounds
from wengert._engine.ops.casts import astype
from wengert._engine.ops.creation import positions
from wengert.errors import TraceError, at, user_line, user_place

from .slice_ends import linear
from .template import is_unique
from .traced_slices import named_length, value_of_form

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Size

Shape = tuple[Any, ...]


def chosen_shape(shape: Shape, parts: Sequence[Any]) -> Shape:
    """The shape of x[index].

    Parameters
    ----------
    shape : tuple
        The shape of x.
    parts : sequence
        The parts of the index: integers, slices, None, Ellipsis, and the specs of arrays.

    Raises
    ------
    IndexError
        As in NumPy, if the sizes are known.
    TraceError
        The index has a mask, which selects an unknown number of elements.
    """
    lengths = iter(shape)
    out: list[Any] = []
    arrays: list[Shape] = []
    position, after_arrays, are_separated = 0, False, False
    has_arrays = any(isinstance(p, Spec) for p in parts)
    for part in _full(parts, len(shape)):
        if part is None:
            out.append(1)
        elif isinstance(part, slice):
            out.append(slice_length(part, next(lengths)))
        elif part is not Ellipsis:
            if isinstance(part, Spec):
                next(lengths)
            else:
                _check_position(part, next(lengths))
            if has_arrays:  # an integer with index arrays acts as a 0-d array
                are_separated |= after_arrays
                position = len(out) if not arrays else position
                arrays.append(part.shape if isinstance(part, Spec) else ())
            continue
        after_arrays = bool(arrays)
    if arrays:
        # The axes of index arrays that are not adjacent come first.
        position = 0 if are_separated else position
        out[position:position] = broadcast(*arrays)
    return tuple(out)


def _full(parts: Sequence[Any], ndim: int) -> list[Any]:
    """The parts with full slices added after the ellipsis, one part per axis.

    The ellipsis remains, because it separates index arrays even if it covers no axes.
    """
    for part in parts:
        if isinstance(part, Spec) and part.dtype.kind == "b":
            raise mask_error()
    if sum(p is Ellipsis for p in parts) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    used = sum(p is not None and p is not Ellipsis for p in parts)
    if used > ndim:
        raise IndexError(
            f"too many indices: the array has {ndim} axes, but {used} were indexed"
            f"{at(user_line())}."
        )
    missing = [slice(None)] * (ndim - used)
    for i, part in enumerate(parts):
        if part is Ellipsis:
            return [*parts[: i + 1], *missing, *parts[i + 1 :]]
    return [*parts, *missing]


def values_needed(name: str) -> Callable[..., Any]:
    """The shape rule of an operation whose result shape depends on values."""

    def rule(*specs: Spec, **params: Any) -> Any:
        raise TraceError(
            f"{name} of {', '.join(map(str, specs))}: the shape of the result depends on values, "
            "which are not known while a graph is built. Select with np.where, which keeps the "
            f"shape, or compute it outside the traced function{at(user_line())}."
        )

    return rule


def mask_error() -> TraceError:
    """The error for a mask of unknown values."""
    return TraceError(
        "a boolean mask selects a number of elements that is not known while a graph is built. "
        "Keep the shape and select with np.where(mask, x, 0.0), or pass a mask that does not "
        f"depend on the inputs as a plain array{at(user_line())}."
    )


def _check_position(i: Any, length: Any) -> None:
    if not isinstance(i, Dim) and not isinstance(length, Dim):
        if not -length <= i < length:
            raise IndexError(f"index {i} is out of bounds for an axis of length {length}"
                             f"{at(user_line())}.")  # fmt: skip
        return
    if _is_negative(i):
        require_at_least(length, -i, f"index {i} of an axis of length {length}")
    else:
        require_at_least(i, 0, f"index {i} of an axis of length {length}")
        require_at_least(length, i + 1, f"index {i} of an axis of length {length}")


def _is_negative(i: Size) -> bool:
    """Whether a position counts from the end; False if the sign is unknown."""
    if not isinstance(i, Dim):
        return bool(i < 0)
    _, high = bounds(i)
    return high is not None and high < 0


def slice_length(part: slice, length: Size) -> Any:
    """The number of elements that a slice of an axis selects."""
    start, stop, step = part.start, part.stop, 1 if part.step is None else part.step
    if isinstance(step, Dim):
        raise TraceError(
            f"the step {step} of a slice is not known while a graph is built. Use an integer step"
            f"{at(user_line())}."
        )
    if not any(isinstance(n, Dim) for n in (start, stop, length)):
        return len(range(*part.indices(length)))
    if step == 0:
        raise ValueError("slice step cannot be zero")
    reason = f"slice {_spelled(part)} of an axis of length {length}"
    resolve = _resolver(length, reason)
    if step > 0:
        first = resolve(start, 0, 0)
        span = resolve(stop, length, 0) - first
    else:
        first = resolve(start, length - 1, 1)
        span = first - resolve(stop, -1, 1)
    require_at_least(span, 0, reason)
    return (span + abs(step) - 1) // abs(step)


def slice_start(part: slice, length: Size) -> Any:
    """The first position of a slice that is not clipped (see `slice_length`)."""
    step = 1 if part.step is None else part.step
    if not any(isinstance(n, Dim) for n in (part.start, part.stop, length)):
        selected = range(*part.indices(length))
        return selected.start if selected else 0
    if part.start is None:
        return 0 if step > 0 else length - 1
    return position_of(part.start, length)


def position_of(i: Size, length: Size) -> Any:
    """A position counted from the start."""
    return length + i if _is_negative(i) else i


def _resolver(length: Size, reason: str) -> Callable[[Any, Any, int], Any]:
    def resolve(bound: Size | None, default: Size, inside: int) -> Any:
        """A bound counted from the start, which is required to be in range."""
        if bound is None:
            return default
        if _is_negative(bound):
            require_at_least(length, -bound, reason)
            return length + bound
        require_at_least(bound, 0, reason)
        require_at_least(length, bound + inside, reason)
        return bound

    return resolve


def _spelled(part: slice) -> str:
    words = ["" if b is None else str(b) for b in (part.start, part.stop)]
    return ":".join(words + ([] if part.step is None else [str(part.step)]))


def computed_length(n: Any, what: str) -> Size:
    """A length, in which a traced integer is a symbolic size.

    Parameters
    ----------
    n : int, Dim or Tensor
    what : str
        The function that makes the array, for messages.

    Raises
    ------
    TraceError
        The integer is not known, and the array is not made in a loop.
    """
    if not isinstance(n, Handle) or not is_traced(n):
        return n  # type: ignore[no-any-return]
    _refuse_others([n], what)
    _refuse_outside_of_loops(what)
    form = linear(n)
    if not form.is_at_least_zero():
        error = ValueError(f"negative dimensions are not allowed{at(user_place())}")
        RuntimeChecks.add(lookup("less")(n, 0), error)
    return named_length(form)  # type: ignore[no-any-return]


def computed_range(start: Any, stop: Any, step: Any, dtype: Any) -> Any:
    """The integers from start up to stop, of which some are traced.

    Raises
    ------
    TraceError
        It is not made in a loop, or has other than integers.
    """
    _refuse_others([start, stop, step], "np.arange")
    _refuse_outside_of_loops("np.arange")
    if isinstance(step, Handle) or step == 0:
        raise TraceError(
            "np.arange: the step is not known while a graph is built, or zero. Use "
            f"start + step * np.arange(n){at(user_line())}."
        )
    span = linear(stop).plus(linear(start), -1)
    if step < 0:
        span = linear(0).plus(span, -1)
    if abs(step) != 1:
        count = lookup("floor_divide")(value_of_form(span) + (abs(step) - 1), abs(step))
        span = linear(count)
    numbers = positions(named_length(span))
    if step != 1:
        numbers = numbers * step
    if isinstance(start, Handle) or start != 0:
        numbers = start + numbers
    return numbers if dtype is None else astype(numbers, dtype)


def _refuse_outside_of_loops(what: str) -> None:
    session = current_trace()
    if session is None or session.lengths is None:
        raise TraceError(
            f"{what}: the length of the array is a traced number, whose value is not known while a "
            "graph is built. Take it from a shape (len(x), x.shape[0]), make the argument that it "
            "is computed from static (wengert.jit(f, static_argnames='n')), or take a part of an "
            f"array of the greatest length, {what}(longest)[:n]{at(user_line())}."
        )


def _refuse_others(values: list[Any], what: str) -> None:
    for x in values:
        is_integer = isinstance(x, int | np.integer) or (
            isinstance(x, Handle) and x.node.spec.dtype.kind in "iu" and not x.node.spec.shape
        )
        if not is_integer:
            raise TraceError(
                f"{what}: the number of elements depends on {x!r}, which is not an integer. Use "
                f"np.linspace(start, stop, num), or start + step * np.arange(n){at(user_line())}."
            )


def is_one(n: Size) -> bool:
    return type(n) is int and n == 1


def length_pairs(shape: tuple[Any, ...], chosen: tuple[Any, ...]) -> list[tuple[Any, Any]]:
    """Pairs of lengths of a value and its target, padded with leading axes of length one."""
    ndim = max(len(shape), len(chosen))
    padded = ((1,) * (ndim - len(s)) + s for s in (shape, chosen))
    return list(zip(*padded, strict=True))


def with_lengths(v_bar: Array, shape: tuple[Any, ...]) -> Any:
    """`v_bar` with the value's expressions for lengths that are required to be equal."""
    pairs = length_pairs(shape, v_bar.shape)
    lengths = tuple(m if is_one(n) else n for n, m in pairs)[len(pairs) - v_bar.ndim :]
    return v_bar if lengths == v_bar.shape else v_bar.reshape(lengths)


def of_last_stores(v_bar: Any, shape: tuple[int, ...], index: Any) -> Any:
    """The cotangent of the stored elements, zero for stores that a repeated index overwrote."""
    if is_unique(index):
        return v_bar
    last_write = np.full(shape, -1, np.intp)
    writes = np.arange(last_write[index].size).reshape(last_write[index].shape)
    last_write[index] = writes
    is_last = last_write[index] == writes
    return v_bar if is_last.all() else np.where(is_last, v_bar, 0.0)
