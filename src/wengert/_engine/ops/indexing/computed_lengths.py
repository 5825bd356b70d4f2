"""Lengths that are computed in a loop step: of new arrays, and of stored values.

    computed_length    a length that may be a traced integer
    computed_range     the numbers of a range whose ends may be traced integers
    length_pairs       pairs of lengths of a value and its target
    with_lengths       a cotangent with the value's expressions for its lengths
    of_last_stores     a cotangent, zero for stores that a later one to the same element overwrote

In a loop, such a length becomes a symbolic size, as that of a slice does (traced_slices.py).

A value may have fewer axes than the elements that it is stored to, or axes of length one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.handle import Handle, is_traced
from wengert._engine.core.op import lookup
from wengert._engine.core.recording import current_trace
from wengert._engine.core.runtime_checks import RuntimeChecks
from wengert.errors import TraceError, at, user_line, user_place

from ..casts import astype
from ..creation import positions
from .slice_ends import linear
from .template import is_unique
from .traced_slices import named_length, value_of_form

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Size


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
