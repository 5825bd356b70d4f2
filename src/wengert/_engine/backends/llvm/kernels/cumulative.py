"""Cumulative operations: loops along one axis, in which each element depends on the one before.

    scan             the loops: y_i = combine(y_{i-1}, x_i), from y_0 = begin(x_0)
    cumsum, cumprod  cumulative sums and products
    running          cumulative minimum and maximum
    recurrence       y_i = b_i + a_i y_{i-1}

Along the last axis, the previous element is in a register.  Along another axis, elements of other
sequences are neighbors in memory: each step is computed for all sequences, in vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from wengert._engine.core.symbolic.dim import Length
from wengert._engine.core.types import Scalar

from ..ir import execution_engine
from ..ir.ir_builder import Name, Section
from ..ir.memory_access import load, store
from .kernel_call import ArrayPointer, KernelCall, kernel
from .loop_helpers import held, is_in_order, nest, offset, place, read, write

Begin = Callable[[Sequence[Any]], Any]
Combine = Callable[[Any, Sequence[Any]], Any]


class _Sequences:
    """Operands and result as sequences along an axis.

    Parameters
    ----------
    reverse : bool
        Whether they begin at their end.
    """

    def __init__(self, call: KernelCall, axis: int, reverse: bool) -> None:
        self.call, self.reverse = call, reverse
        (self.result,) = call.results
        self.arrays = (*call.operands, self.result)
        shape = self.result.shape
        self.axis = axis % len(shape)
        self.count = call.number(shape[self.axis])
        self.before, self.after = shape[: self.axis], shape[self.axis + 1 :]
        self.in_order = all(is_in_order(self.rest(x)) for x in self.arrays)

    def starts(self, s: Section, indices: Sequence[Name]) -> list[Name]:
        """The addresses of a block of sequences in each array."""
        found = []
        for x in self.arrays:
            lead = x._replace(shape=self.before, strides=x.strides[: self.axis])
            found.append(place(self.call, s, lead, indices))
        return found

    def at(self, s: Section, starts: Sequence[Name], i: Name) -> list[Name]:
        """The addresses of the elements of step i."""
        if self.reverse:
            i = s.minus(s.minus(self.count, "1"), i)
        found = []
        for x, start in zip(self.arrays, starts, strict=True):
            distance = s.times(i, self.call.number(x.strides[self.axis]))
            found.append(offset(s, start, distance, x.dtype))
        return found

    def rest(self, x: ArrayPointer) -> ArrayPointer:
        """The axes after it."""
        return ArrayPointer("", self.after, x.strides[self.axis + 1 :], x.dtype)


def scan(
    call: KernelCall, begin: Begin, combine: Combine, axis: int, reverse: bool = False
) -> None:
    """Write loops for y_i = combine(y_{i-1}, [x_i, ...]), y_0 = begin([x_0, ...]).

    Parameters
    ----------
    begin, combine : callable
        Operates on lanes; its result is cast to the result's dtype.
    reverse : bool
        From the end to the beginning.
    """
    them = _Sequences(call, axis, reverse)
    with nest(call.section, [call.number(n) for n in them.before]) as (s, outer):
        starts = them.starts(s, outer)
        with s.when(s.value(f"icmp sgt i64 {them.count}, 0")) as t:
            if all(n == 1 for n in them.after):
                _one_by_one(them, t, starts, begin, combine)
            else:
                _side_by_side(them, t, starts, begin, combine)


def _one_by_one(
    them: _Sequences, s: Section, starts: Sequence[Name], begin: Begin, combine: Combine
) -> None:
    """A single sequence."""
    call, dtype = them.call, them.result.dtype
    language = call.language
    cell = held(call, dtype)
    *given, target = them.at(s, starts, "0")
    values = [read(language, s, p, x.dtype) for p, x in zip(given, call.operands, strict=True)]
    first = language.cast(begin(values), dtype)
    write(s, cell, first)
    write(s, target, first)
    with s.loop("1", them.count) as (t, i):
        *given, target = them.at(t, starts, i)
        values = [read(language, t, p, x.dtype) for p, x in zip(given, call.operands, strict=True)]
        value = language.cast(combine(read(language, t, cell, dtype), values), dtype)
        write(t, cell, value)
        write(t, target, value)


def _side_by_side(
    them: _Sequences, s: Section, starts: Sequence[Name], begin: Begin, combine: Combine
) -> None:
    """Step by step, each step for all neighboring sequences."""
    call = them.call
    length: Length = 1
    for n in them.after:
        length = length * n
    width = execution_engine.vector_bytes() // them.result.dtype.itemsize if them.in_order else 1

    def step(t: Section, i: Name, before: Sequence[Name] | None) -> None:
        places = them.at(t, starts, i)
        if not them.in_order:
            with nest(t, [call.number(n) for n in them.after]) as (u, inner):
                _elements(them, u, places, before, inner, begin, combine, 1)
            return
        full = t.times(t.value(f"sdiv i64 {call.number(length)}, {width}"), str(width))
        for low, high, wide in (("0", full, width), (full, call.number(length), 1)):
            with t.loop(low, high, str(wide)) as (u, j):
                _elements(them, u, places, before, [j], begin, combine, wide)

    step(s, "0", None)
    with s.loop("1", them.count) as (t, i):
        step(t, i, them.at(t, starts, t.minus(i, "1")))


def _elements(
    them: _Sequences,
    s: Section,
    places: Sequence[Name],
    before: Sequence[Name] | None,
    indices: Sequence[Name],
    begin: Begin,
    combine: Combine,
    width: int,
) -> None:
    """One step of a vector of sequences."""
    call, dtype = them.call, them.result.dtype
    language = call.language

    def where(x: ArrayPointer, start: Name) -> Name:
        rest = them.rest(x)
        if them.in_order:
            return offset(s, start, indices[0], x.dtype)
        return place(call, s, rest._replace(pointer=start), indices)

    *given, target = [where(x, p) for x, p in zip(them.arrays, places, strict=True)]
    values = [
        load(language, s, p, x.dtype, width, None)
        for p, x in zip(given, call.operands, strict=True)
    ]
    if before is None:
        value = begin(values)
    else:
        old = load(language, s, where(them.result, before[-1]), dtype, width, None)
        value = combine(old, values)
    store(language, s, target, language.cast(value, dtype), width, None)


# ---- the kernels -------------------------------------------------------------------------------


def _accumulated(call: KernelCall, ufunc: str, reverse: bool = False) -> None:
    language, dtype = call.language, call.results[0].dtype

    def combine(before: Scalar, values: Sequence[Any]) -> Any:
        return language.binary(ufunc, before, language.cast(values[0], dtype))

    scan(call, lambda values: values[0], combine, call.params["axis"], reverse)


@kernel("cumsum", strided=True)
def cumsum(call: KernelCall) -> None:
    """The cumulative sum."""
    _accumulated(call, "add", bool(call.params.get("reverse", False)))


@kernel("cumprod", strided=True)
def cumprod(call: KernelCall) -> None:
    """The cumulative product."""
    _accumulated(call, "multiply")


@kernel("running", strided=True, serves=lambda node: node.spec.dtype.kind != "c")
def running(call: KernelCall) -> None:
    """The largest or smallest element so far; NaN after the first NaN."""
    _accumulated(call, "maximum" if call.params["largest"] else "minimum")


@kernel("recurrence", strided=True)
def recurrence(call: KernelCall) -> None:
    """y_i = b_i + a_i y_{i-1}."""
    language, dtype = call.language, call.results[0].dtype

    def combine(before: Scalar, values: Sequence[Any]) -> Any:
        a, b = (language.cast(x, dtype) for x in values)
        return b + a * before

    reverse = bool(call.params.get("reverse", False))
    scan(call, lambda values: values[1], combine, call.params["axis"], reverse)
