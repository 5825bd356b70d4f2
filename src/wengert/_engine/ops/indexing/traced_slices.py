"""Slices with bounds computed in a loop step: ``A[i, :j]``, ``x[i + 1:]``.

The length of such a slice differs between steps.  The length and the first position become symbolic
sizes, defined in the session that traces the step (`Session.lengths`); the code that uses them
becomes a node with these sizes as operands (control_flow/operations.py).

    named_slice     a slice with symbolic sizes for computed bounds
    named_length, named_start  such sizes for a length and a position
    define_length   defines a size of an inner loop in the enclosing one
    constant_slice  the same for constant bounds, if the length of the axis is computed
    has_local_axis  whether an array has such a length
    is_inside       whether a constant position is in range
    has_local       whether an index has such a slice
    DynamicSlice    raised for such a slice outside of a loop
    split_local     an index as one of fixed length, followed by slices of its result
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.handle import Handle, is_traced, shape_of, wrap
from wengert._engine.core.node import Node
from wengert._engine.core.op import lookup
from wengert._engine.core.recording import current_trace
from wengert._engine.core.symbolic.dim import LOCAL, Dim, is_open
from wengert._engine.core.tracing import size_value
from wengert.errors import TraceError, at, user_line

from ..casts import astype
from .slice_ends import Linear, linear, note_length

if TYPE_CHECKING:
    from wengert._engine.core.recording import Session
    from wengert._engine.core.types import Size

_numbers = itertools.count(1)


def named_slice(part: slice, length: Size) -> slice:
    """A slice with symbolic sizes for computed bounds.

    Parameters
    ----------
    part : slice
    length : int or Dim
        The length of the axis.

    Returns
    -------
    slice
        Its bounds are nonnegative and within the axis; for a negative step they are positions in
        the reversed axis (`split_local`).

    Raises
    ------
    TraceError
        The slice is not in a loop, or its step is computed.
    """
    session = current_trace()
    step = 1 if part.step is None else part.step
    if session is None or session.lengths is None or isinstance(step, Handle | Dim):
        raise unknown_length()
    if step == 0:
        raise ValueError("slice step cannot be zero")
    first, last = (_position(b, length, step > 0) for b in (part.start, part.stop))
    first = linear(0) if first is None else first
    last = linear(length) if last is None else last
    span = last.plus(first, -1)
    key: Any = ("count", span.key, abs(step))
    if not span.is_at_least_zero():
        span = linear(_call("maximum", _value(span), 0))
    count = _size(session, key, _ceil_divided(span, abs(step)))
    start = _size(session, ("start", first.key), first)
    return slice(start, start + count * abs(step), step)


def has_local_axis(x: object) -> bool:
    """Whether an array has a length that is known only within a step."""
    if not isinstance(x, Handle) or x.node.value is not None:
        return False
    return any(map(is_open, shape_of(x)))


def constant_slice(part: slice, length: Size) -> slice:
    """A slice with constant bounds, of an axis whose length is known only within a step.

    Returns
    -------
    slice
        The same if it is in range for all steps, or one with symbolic sizes, as `named_slice`.
    """
    start, stop, step = part.start, part.stop, 1 if part.step is None else part.step
    whole = linear(length)
    if (start in (None, 0) and stop is None) or _selects_span(start, stop, step, whole):
        return part
    session = current_trace()
    is_behind = step > 0 and (start is None or start >= 0) and (stop is None or stop < 0)
    if session is None or session.lengths is None or not is_behind:
        return named_slice(part, length)
    first = start or 0
    span = whole.plus(linear((stop or 0) - first))
    key: Any = ("count", span.key, step)
    if not span.is_at_least_zero():
        span = linear(_call("maximum", _value(span), 0))
    count = _size(session, key, _ceil_divided(span, step))
    return slice(first, first + count * step, step)


def _selects_span(start: int | None, stop: int | None, step: int, whole: Linear) -> bool:
    """Whether a slice with constant bounds is in range, and not empty, for all lengths."""
    if step < 0 or step == 0:
        return False
    ends = [
        linear(default) if bound is None else linear(bound) if bound >= 0 else None
        for bound, default in ((start, 0), (stop, whole))
    ]
    first, last = (
        whole.plus(linear(bound)) if end is None else end
        for end, bound in zip(ends, (start, stop), strict=True)
    )
    forms = (first, whole.plus(last, -1), last.plus(first, -1))
    return all(form.is_at_least_zero() for form in forms)


def is_inside(i: int, length: Size) -> bool:
    """Whether a constant position is in range for all steps."""
    form = linear(length).plus(linear(i if i < 0 else -1 - i))
    return form.is_at_least_zero()


def _position(bound: object, length: Size, forward: bool) -> Linear | None:
    """A bound as a position from 0 to the length, counted in the direction of the slice."""
    if bound is None:
        return None
    form = linear(bound)
    if not form.is_at_least_zero():
        from_end = form.plus(linear(length))
        if linear(-1).plus(form, -1).is_at_least_zero():
            form = from_end
        else:
            value = _value(form)
            form = linear(_call("where", _call("less", value, 0), _value(from_end), value))
    if not forward:
        form = linear(length - 1).plus(form, -1)
    if not form.is_at_least_zero():
        form = linear(_call("maximum", _value(form), 0))
    if not linear(length).plus(form, -1).is_at_least_zero():
        form = linear(_call("minimum", _value(form), _value(linear(length))))
    return form


def _ceil_divided(span: Linear, step: int) -> Linear:
    if step == 1:
        return span
    return linear(_call("floor_divide", _value(span.plus(linear(step - 1))), step))


def _call(name: str, *args: Any) -> Any:
    return lookup(name)(*[np.int64(x) if type(x) is int else x for x in args])


def _value(form: Linear) -> Any:
    """A linear form as an int64."""
    rest = form.rest
    total: Any = size_value(rest) if isinstance(rest, Dim) else np.int64(rest)
    for key, factor in form.terms.items():
        x: Any = wrap(form.nodes[key])
        term = x if factor == 1 else _call("multiply", x, factor)
        total = term if type(total) is np.int64 and total == 0 else _call("add", total, term)
    return total


def _size(session: Session, key: Any, form: Linear) -> Any:
    """A nonnegative integer that is known in each step, as a symbolic size."""
    if not form.terms:
        return form.rest
    assert session.lengths is not None
    name, outer = session.length_names.get(key), session.around
    while name is None and outer is not None:
        name, outer = outer.length_names.get(key), outer.around
    if name is None:
        name = session.length_names[key] = f"{LOCAL}{next(_numbers)}"
        session.lengths[name] = astype(_value(form.plus(linear(1))), np.dtype(np.int64)).node
        note_length(name, session.lengths[name])
    return Dim({((name, 1),): 1}) - 1  # a symbolic size is at least one


def named_length(form: Linear) -> Any:
    """A number that is known in each step, or zero if it is negative, as a symbolic size.

    Raises
    ------
    TraceError
        There is no enclosing loop.
    """
    key: Any = ("count", form.key, 1)
    if not form.is_at_least_zero():
        form = linear(_call("maximum", _value(form), 0))
    return _named(key, form)


def named_start(form: Linear) -> Any:
    """A position that is not negative, and known in each step, as a symbolic size."""
    return _named(("start", form.key), form)


def _named(key: Any, form: Linear) -> Any:
    if not form.terms:
        return form.rest
    session = current_trace()
    if session is None or session.lengths is None:
        raise unknown_length()
    return _size(session, key, form)


def define_length(name: str, node: Node) -> None:
    """Define the name of a length, which a step of an inner loop used, in the enclosing step."""
    session = current_trace()
    if session is None or session.lengths is None:
        raise unknown_length()
    session.lengths[name] = node
    note_length(name, node)


def value_of_form(form: Linear) -> Any:
    """A linear form as an int64."""
    return _value(form)


class DynamicSlice(TraceError):
    """An index with a slice of unknown length, or with a `Window` (windows.py)."""


def unknown_length() -> DynamicSlice:
    """The error for a slice outside of a loop."""
    return DynamicSlice(
        "the bound of a slice is computed from the inputs, so the number of elements is not known "
        "while a graph is built. Select with np.where and np.arange, which keeps the shape, or "
        f"take a fixed number of elements from a position, x[i + np.arange(n)]{at(user_line())}."
    )


# ---- indices with such slices ------------------------------------------------------------------


def axis_length(x: Any, parts: Sequence[Any], place: int) -> Any:
    """The length of the axis to which part number `place` of an index applies."""
    shape = shape_of(x)
    ellipsis = [k for k, p in enumerate(parts) if p is Ellipsis]
    if ellipsis and place > ellipsis[0]:
        axis = len(shape) - sum(p is not None for p in parts[place:])
    else:
        axis = sum(p is not None for p in parts[:place])
    if not 0 <= axis < len(shape):
        raise IndexError(
            f"too many indices: the array has {len(shape)} axes, but {len(parts)} were indexed"
            f"{at(user_line())}."
        )
    return shape[axis]


def is_computed(part: slice) -> bool:
    """Whether a bound of a slice is a traced value other than a symbolic size."""
    for bound in (part.start, part.stop, part.step):
        if isinstance(bound, Handle) and is_traced(bound) and "size" not in bound.node.params:
            return True
    return False


def has_local(template: object) -> bool:
    """Whether an index has a slice whose length is known only within a step."""
    if isinstance(template, tuple):
        return slice in map(type, template) and any(map(_is_local, template))
    return _is_local(template)


def _is_local(part: object) -> bool:
    return isinstance(part, slice) and (is_open(part.start) or is_open(part.stop))


def is_backward(template: object) -> bool:
    """Whether a slice whose length is known only within a step has a negative step."""
    parts = template if isinstance(template, tuple) else (template,)
    return any(_is_local(p) and (p.step or 1) < 0 for p in parts)


def split_local(template: object, operands: Sequence[Any]) -> tuple[Any, Any]:
    """An index as one of fixed length, followed by slices of its result.

    ``A[i, :j]`` is written as ``A[i][:j]``, so that only a row is an operand of the node that has
    computed sizes.

    Returns
    -------
    fixed, slices
        `fixed` is None if it would select everything.
    """
    parts = template if isinstance(template, tuple) else (template,)
    if any(shape_of(x) for x in operands):
        raise TraceError(
            "a slice with a bound computed in a loop step cannot be combined with an index array. "
            f"Apply one index after the other, x[rows][:, :j]{at(user_line())}."
        )
    fixed: list[Any] = []
    slices: list[Any] = []
    for part in parts:
        if _is_local(part):
            backwards = part.step is not None and part.step < 0
            fixed.append(slice(None, None, -1) if backwards else slice(None))
            slices.append(slice(part.start, part.stop, abs(part.step or 1)))
        else:
            fixed.append(part)
            if part is Ellipsis:
                slices.append(part)
            elif part is None or isinstance(part, slice):
                slices.append(slice(None))
    selects_all = all(p == slice(None) for p in fixed if p is not Ellipsis)
    return (None if selects_all else tuple(fixed)), tuple(slices)
