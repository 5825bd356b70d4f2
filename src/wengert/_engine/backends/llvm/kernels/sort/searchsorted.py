"""Searching sorted arrays, and histogram counts.

    searchsorted       binary search that starts at the position for equally spaced numbers; NaN is
                       last
    digitize           the same for increasing or decreasing bins
    histogram_counts   the number of elements in each bin; the last bin includes its upper edge

The kernel fails if bins are not monotonic.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.node import DiscreteLeaf
from wengert._engine.core.types import Scalar

from ...ir.ir_builder import Name, Section
from ...ir.llvm_types import BOOL, F64, Dtype
from ...ir.simd_value import Lane
from ...tuning import thresholds
from ..kernel_call import ArrayPointer, KernelCall, kernel
from ..loop_helpers import clear, moved, nest, offset, place, read, size_of, write

_I64 = np.dtype(np.int64)


def _is_before(x: Any, y: Any) -> Any:
    """Whether x is ordered before y."""
    language = x.language
    less = language.binary("less", x, y)
    if x.dtype.kind != "f":
        return less
    ordered = language.unary("logical_not", language.unary("isnan", x))
    last = language.binary("logical_and", language.unary("isnan", y), ordered)
    return language.binary("logical_or", less, last)


class _Sorted:
    """A sorted array.

    Parameters
    ----------
    array : ArrayPointer
        Of one axis.
    dtype : numpy.dtype
        The values that are compared.
    sorter : ArrayPointer, optional
        The positions that bring them into order.
    """

    def __init__(
        self,
        call: KernelCall,
        array: ArrayPointer,
        dtype: Dtype,
        sorter: ArrayPointer | None = None,
    ) -> None:
        self.call, self.array, self.dtype, self.sorter = call, array, dtype, sorter
        self.count = call.number(array.shape[0])
        self.low, self.high = call.function.slot("i64"), call.function.slot("i64")
        self._guess = None if sorter is not None else self._line()

    def _line(self) -> tuple[Name, Any, Any] | None:
        """What guesses positions need: an i1, the first number, and positions per difference.

        None where numbers are few, and all of them are soon looked at.  The i1 holds if the numbers
        are equally spaced as far as three of them tell.
        """
        length = self.array.shape[0]
        if type(length) is int and length < thresholds.guessed_search_elements:
            return None
        s, language = self.call.section, self.call.language
        cells = [self.call.function.slot("double") for _ in range(2)]
        spaced = self.call.function.slot("i8")
        for cell in cells:
            write(s, cell, language.constant(0, F64))
        write(s, spaced, language.constant(False, BOOL))
        with s.when(s.value(f"icmp sge i64 {self.count}, 4")) as t:
            last = t.minus(self.count, "1")
            first, end = (language.cast(self.at(t, i), F64) for i in ("0", last))
            scale = language.cast(Lane(language, t, last, _I64, 1), F64) / (end - first)
            all_near: Any = language.constant(True, BOOL)
            for k in (1, 2, 3):
                i = t.value(f"udiv i64 {t.times(last, str(k))}, 4")
                there = (language.cast(self.at(t, i), F64) - first) * scale
                away = language.abs(there - language.cast(Lane(language, t, i, _I64, 1), F64))
                near = language.less(away, language.constant(1.0, F64))
                all_near = language.logical_and(all_near, near)
            write(t, cells[0], first)
            write(t, cells[1], scale)
            write(t, spaced, all_near)
        first, scale = (read(language, s, cell, F64) for cell in cells)
        return read(language, s, spaced, BOOL).name, first, scale

    def _narrow(self, s: Section, key: Scalar, right: bool) -> None:
        """Begin the search where a number is if they are equally spaced, as the edges of bins are.

        Where they are not, one side of that position is left.
        """
        assert self._guess is not None
        some, first, scale = self._guess
        language = self.call.language
        with s.when(some) as t:
            x = (language.cast(moved(t, key), F64) - first) * scale
            callee = self.call.module.declare("llvm.fptosi.sat.i64.f64", "i64", ["double"])
            guess = t.value(f"call i64 {callee}(double {x.name})")
            guess = t.smaller(t.larger(guess, "0"), t.minus(self.count, "2"))
            after = t.plus(guess, "1")
            one = self._is_behind(t, self.at(t, guess), moved(t, key), right)
            two = self._is_behind(t, self.at(t, after), moved(t, key), right)
            beyond = t.plus(guess, "2")
            low = t.value(f"select i1 {one}, i64 {after}, i64 0")
            low = t.value(f"select i1 {two}, i64 {beyond}, i64 {low}")
            high = t.value(f"select i1 {one}, i64 {after}, i64 {guess}")
            high = t.value(f"select i1 {two}, i64 {self.count}, i64 {high}")
            t.write(f"store i64 {low}, ptr {self.low}")
            t.write(f"store i64 {high}, ptr {self.high}")

    def _is_behind(self, s: Section, x: Any, key: Any, right: bool) -> Name:
        """Whether a key is inserted behind one of the numbers, as an i1."""
        if right:
            return s.value(f"xor i1 {_is_before(key, x).name}, true")
        found: Name = _is_before(x, key).name
        return found

    def at(self, s: Section, i: Name) -> Any:
        """The i-th number in order."""
        call = self.call
        if self.sorter is not None:
            found = read(call.language, s, place(call, s, self.sorter, [i]), self.sorter.dtype)
            i = call.language.cast(found, _I64).name
            inside = s.value(f"icmp ult i64 {i}, {self.count}")
            call.fail_if(s.value(f"xor i1 {inside}, true"), 1, s)
        x = read(call.language, s, place(call, s, self.array, [i]), self.array.dtype)
        return call.language.cast(x, self.dtype)

    def place(self, s: Section, key: Scalar, right: bool, falling: Name | None = None) -> Name:
        """The insertion position of a number: before equal ones, or after them if `right`.

        If the i1 `falling` is true, the numbers are read from their end.
        """
        function = self.call.function
        n = function.number()
        s.write(f"store i64 0, ptr {self.low}")
        s.write(f"store i64 {self.count}, ptr {self.high}")
        if self._guess is not None and falling is None:
            self._narrow(s, key, right)
        s.block(f"search{n}")
        low, high = (s.value(f"load i64, ptr {cell}") for cell in (self.low, self.high))
        more = s.value(f"icmp slt i64 {low}, {high}")
        s.write(f"br i1 {more}, label %halve{n}, label %found{n}")
        s.label(f"halve{n}")
        middle = s.value(f"lshr i64 {s.plus(low, high)}, 1")
        index = middle
        if falling is not None:
            back = s.minus(s.minus(self.count, "1"), middle)
            index = s.value(f"select i1 {falling}, i64 {back}, i64 {middle}")
        behind = self._is_behind(s, self.at(s, index), moved(s, key), right)
        after = s.plus(middle, "1")
        s.write(
            f"store i64 {s.value(f'select i1 {behind}, i64 {after}, i64 {low}')}, ptr {self.low}"
        )
        s.write(
            f"store i64 {s.value(f'select i1 {behind}, i64 {high}, i64 {middle}')}, ptr {self.high}"
        )
        s.write(f"br label %search{n}")
        s.label(f"found{n}")
        return low


def _common(*arrays: ArrayPointer) -> Dtype:
    return np.result_type(*(x.dtype for x in arrays))


def _is_ordered(node: DiscreteLeaf) -> bool:
    return all(a.spec.dtype.kind in "biuf" for a in node.inputs)


def _each(call: KernelCall, x: ArrayPointer) -> Any:
    """Loops over all elements."""
    return nest(call.section, [call.number(n) for n in x.shape])


@kernel("searchsorted", strided=True, serves=_is_ordered)
def searchsorted(call: KernelCall) -> None:
    """The insertion positions of elements in the sorted x."""
    x, v, *more = call.operands
    (y,) = call.results
    dtype = _common(x, v)
    them = _Sorted(call, x, dtype, more[0] if more else None)
    right = call.params.get("side", "left") == "right"
    with _each(call, v) as (s, at):
        key = call.language.cast(read(call.language, s, place(call, s, v, at), v.dtype), dtype)
        found = them.place(s, key, right)
        s.write(f"store i64 {found}, ptr {place(call, s, y, at)}")


@kernel("digitize", strided=True, serves=_is_ordered)
def digitize(call: KernelCall) -> None:
    """The index of the bin of each element."""
    x, bins = call.operands
    (y,) = call.results
    dtype = _common(x, bins)
    them = _Sorted(call, bins, dtype)
    rises, falls = _direction(call, them)
    falling = call.section.value(f"xor i1 {rises}, true")
    neither = call.section.value(f"xor i1 {falls}, true")
    call.fail_if(call.section.value(f"and i1 {falling}, {neither}"))
    right = not call.params.get("right", False)
    with _each(call, x) as (s, at):
        key = call.language.cast(read(call.language, s, place(call, s, x, at), x.dtype), dtype)
        up = them.place(s, key, right, falling)
        down = s.minus(them.count, up)
        found = s.value(f"select i1 {falling}, i64 {down}, i64 {up}")
        s.write(f"store i64 {found}, ptr {place(call, s, y, at)}")


def _direction(call: KernelCall, them: _Sorted) -> tuple[Name, Name]:
    """Whether numbers are nondecreasing, and whether they are nonincreasing; neither with NaN."""
    s, language = call.section, call.language
    cells = [call.function.slot("i8") for _ in range(2)]
    for cell in cells:
        write(s, cell, language.constant(True, BOOL))
    with s.loop("0", them.count) as (t, i):
        before = t.larger(t.minus(i, "1"), "0")
        x, y = them.at(t, before), them.at(t, i)
        for cell, ufunc in zip(cells, ("less_equal", "greater_equal"), strict=True):
            both = language.binary(ufunc, x, y)
            write(t, cell, language.binary("logical_and", read(language, t, cell, BOOL), both))
    rises, falls = (read(language, s, cell, BOOL).name for cell in cells)
    return rises, falls


@kernel("histogram_counts", strided=True, serves=_is_ordered)
def histogram_counts(call: KernelCall) -> None:
    """The number of elements in each bin."""
    x, edges = call.operands
    (y,) = call.results
    language, dtype = call.language, _common(x, edges)
    them = _Sorted(call, edges, dtype)
    rises, _ = _direction(call, them)
    call.fail_if(call.section.value(f"xor i1 {rises}, true"))
    clear(call, call.section, y.pointer, size_of(y), y.dtype)
    count = call.number(y.shape[0])
    with _each(call, x) as (s, at):
        key = language.cast(read(language, s, place(call, s, x, at), x.dtype), dtype)
        behind = s.minus(them.place(s, key, True), "1")
        edge = language.binary("equal", moved(s, key), them.at(s, count)).name
        last = s.minus(count, "1")
        index = s.value(f"select i1 {edge}, i64 {last}, i64 {behind}")
        inside = s.value(f"icmp ult i64 {index}, {count}")
        with s.when(inside) as t:
            _count(t, y, index)


def _count(s: Section, y: ArrayPointer, index: Name) -> None:
    """One more."""
    target = offset(s, y.pointer, index, y.dtype)
    old = s.value(f"load i64, ptr {target}")
    s.write(f"store i64 {s.plus(old, '1')}, ptr {target}")
