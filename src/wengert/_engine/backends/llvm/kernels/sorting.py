"""Sorting and searching.

    argsort    one key; the order of equal elements is NumPy's, for every kind of sort
    lexsort    several keys

Arrays are sorted by NumPy's own functions.  A sequence that is not contiguous is copied first.

    searchsorted        binary search that starts at the position of equally spaced numbers; NaN
                        sorts last
    digitize            the same for increasing or decreasing bins; fails if they are not monotonic
    histogram_counts    the number of elements in each bin; the last bin includes its upper edge
    histogram_sums      the sum of the weights of the elements in each bin

Where all edges are near those of bins of equal width, an element is in the bin that its distance
from the first edge gives, or in the one below: one comparison with an edge decides.  Otherwise each
element is searched.  The kernels fail if edges decrease.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert._engine.core.node import DiscreteLeaf, Node
from wengert._engine.core.types import Scalar

from ..ir.execution_engine import foreign
from ..ir.ir_builder import Name, Section
from ..ir.llvm_types import BOOL, F64, I64, Dtype
from ..ir.simd_value import Lane
from ..runtime import library_symbols
from ..tuning import thresholds
from .fortran_calls import memory
from .kernel_call import ArrayPointer, KernelCall, kernel
from .loop_helpers import address, clear, copy, in_section, nest, offset, read, size_of, write


def _kind(kind: str | None) -> str:
    """The algorithm of a sorting kind, which NumPy identifies by its first letter."""
    first = str(kind or "quicksort")[0].lower()
    return {"q": "quicksort", "h": "heapsort"}.get(first, "stable")


def _is_known(node: DiscreteLeaf) -> bool:
    """Whether all versions of NumPy use the same algorithm, which is not the case for heapsort."""
    return _has_axis(node) and _kind(node.params.get("kind")) != "heapsort"


def _has_axis(node: DiscreteLeaf) -> bool:
    # NumPy treats a 0-d array as an array of one element.
    ranks = [x.spec.ndim for x in (node, *node.inputs)]
    return min(ranks) > 0 and isinstance(node.params.get("axis", -1), int)


@kernel("argsort", strided=True, serves=_is_known)
def argsort(call: KernelCall) -> None:
    """The positions that sort each sequence."""
    _sort(call, _kind(call.params.get("kind")))


@kernel("lexsort", strided=True, serves=_has_axis)
def lexsort(call: KernelCall) -> None:
    """The positions that sort by the last key, then by the one before."""
    _sort(call, "stable")


def _sort(call: KernelCall, kind: str) -> None:
    """Sort each sequence, by one key after the other."""
    (y,) = call.results
    axis = call.params.get("axis", -1) % len(y.shape)
    others = [k for k in range(len(y.shape)) if k != axis]
    n = y.shape[axis]
    keys = [(x, "" if x.strides[axis] == 1 else memory(call, n, x.dtype)) for x in call.operands]
    result_copy = "" if y.strides[axis] == 1 else memory(call, n, I64)
    with nest(call.section, [call.number(y.shape[k]) for k in others]) as (s, indices):
        target = _sequence(call, s, y, axis, others, indices)
        positions = target._replace(pointer=result_copy, strides=(1,)) if result_copy else target
        with s.loop("0", call.number(n)) as (t, i):
            t.write(f"store i64 {i}, ptr {offset(t, positions.pointer, i, I64)}")
        for x, scratch in keys:
            sequence = _sequence(call, s, x, axis, others, indices)
            if scratch:
                ordered = sequence._replace(pointer=scratch, strides=(1,))
                copy(call, s, ordered, sequence)
                sequence = ordered
            if foreign() is not None:  # exported code has its own (export/externals.py)
                call.module.allocations.append((call.function.name, n * I64.itemsize))
            symbol = f"argsort.{kind}.{x.dtype.str[1:]}"
            found = library_symbols.address_of(symbol)
            sort = call.external(symbol, found, "i32", ["ptr", "ptr", "i64", "ptr"])
            arrays = f"ptr {sequence.pointer}, ptr {positions.pointer}"
            status = s.value(f"call i32 {sort}({arrays}, i64 {call.number(n)}, ptr null)")
            call.fail_if(s.value(f"icmp slt i32 {status}, 0"), 1, s)
        if result_copy:
            copy(call, s, target, positions)


def _sequence(
    call: KernelCall,
    s: Section,
    x: ArrayPointer,
    axis: int,
    others: Sequence[int],
    indices: Sequence[Name],
) -> ArrayPointer:
    """A sequence along the axis, at some indices of the other axes."""
    shape, strides = (tuple(lengths[k] for k in others) for lengths in (x.shape, x.strides))
    pointer = address(call, s, ArrayPointer(x.pointer, shape, strides, x.dtype), indices)
    return ArrayPointer(pointer, (x.shape[axis],), (x.strides[axis],), x.dtype)


# ---- histograms and searches ---------------------------------------------------------------------


def _is_before(x: Any, y: Any) -> Any:
    """Whether x is ordered before y."""
    language = x.language
    less = language.binary("less", x, y)
    if x.dtype.kind != "f":
        return less
    ordered = language.unary("logical_not", language.unary("isnan", x))
    last = language.binary("logical_and", language.unary("isnan", y), ordered)
    return language.binary("logical_or", less, last)


class SortedArray:
    """A sorted array.

    Parameters
    ----------
    array : ArrayPointer
        A one-dimensional array.
    dtype : numpy.dtype
        The dtype in which values are compared.
    sorter : ArrayPointer, optional
        The positions that sort the array.
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
        self._guess = None if sorter is not None else self._linear_guess()

    def _linear_guess(self) -> tuple[Name, Any, Any] | None:
        """The parameters of a linear guess: an i1, the first number, and positions per unit.

        None for few numbers, for which bisection is fast.  The i1 is true if three of the numbers
        are where equally spaced numbers would be.
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
            scale = language.cast(Lane(language, t, last, I64, 1), F64) / (end - first)
            is_spaced: Any = language.constant(True, BOOL)
            for k in (1, 2, 3):
                i = t.value(f"udiv i64 {t.times(last, str(k))}, 4")
                expected = (language.cast(self.at(t, i), F64) - first) * scale
                error = language.abs(expected - language.cast(Lane(language, t, i, I64, 1), F64))
                is_near = language.less(error, language.constant(1.0, F64))
                is_spaced = language.logical_and(is_spaced, is_near)
            write(t, cells[0], first)
            write(t, cells[1], scale)
            write(t, spaced, is_spaced)
        first, scale = (read(language, s, cell, F64) for cell in cells)
        return read(language, s, spaced, BOOL).name, first, scale

    def _narrow(self, s: Section, key: Scalar, right: bool) -> None:
        """Start the search at the position that equally spaced numbers, such as bins, would have.

        If the numbers are not equally spaced, the search continues on one side of that position.
        """
        assert self._guess is not None
        is_spaced, first, scale = self._guess
        language = self.call.language
        with s.when(is_spaced) as t:
            x = (language.cast(in_section(t, key), F64) - first) * scale
            callee = self.call.module.declare("llvm.fptosi.sat.i64.f64", "i64", ["double"])
            guess = t.value(f"call i64 {callee}(double {x.name})")
            guess = t.smaller(t.larger(guess, "0"), t.minus(self.count, "2"))
            next_index = t.plus(guess, "1")
            is_after_guess = self._is_after(t, self.at(t, guess), in_section(t, key), right)
            is_after_next = self._is_after(t, self.at(t, next_index), in_section(t, key), right)
            beyond_next = t.plus(guess, "2")
            low = t.value(f"select i1 {is_after_guess}, i64 {next_index}, i64 0")
            low = t.value(f"select i1 {is_after_next}, i64 {beyond_next}, i64 {low}")
            high = t.value(f"select i1 {is_after_guess}, i64 {next_index}, i64 {guess}")
            high = t.value(f"select i1 {is_after_next}, i64 {self.count}, i64 {high}")
            t.write(f"store i64 {low}, ptr {self.low}")
            t.write(f"store i64 {high}, ptr {self.high}")

    def _is_after(self, s: Section, x: Any, key: Any, right: bool) -> Name:
        """Whether a key is inserted after a number, an i1."""
        if right:
            return s.value(f"xor i1 {_is_before(key, x).name}, true")
        result: Name = _is_before(x, key).name
        return result

    def at(self, s: Section, i: Name) -> Any:
        """The i-th number in sorted order."""
        call = self.call
        if self.sorter is not None:
            position = read(call.language, s, address(call, s, self.sorter, [i]), self.sorter.dtype)
            i = call.language.cast(position, I64).name
            inside = s.value(f"icmp ult i64 {i}, {self.count}")
            call.fail_if(s.value(f"xor i1 {inside}, true"), 1, s)
        x = read(call.language, s, address(call, s, self.array, [i]), self.array.dtype)
        return call.language.cast(x, self.dtype)

    def insertion_index(
        self, s: Section, key: Scalar, right: bool, decreasing: Name | None = None
    ) -> Name:
        """The insertion index of a number: before equal ones, or after them if `right`.

        If the i1 `decreasing` is true, the numbers are read from the end.
        """
        function = self.call.function
        n = function.number()
        s.write(f"store i64 0, ptr {self.low}")
        s.write(f"store i64 {self.count}, ptr {self.high}")
        if self._guess is not None and decreasing is None:
            self._narrow(s, key, right)
        s.block(f"search{n}")
        low, high = (s.value(f"load i64, ptr {cell}") for cell in (self.low, self.high))
        continues = s.value(f"icmp slt i64 {low}, {high}")
        s.write(f"br i1 {continues}, label %halve{n}, label %found{n}")
        s.label(f"halve{n}")
        middle = s.value(f"lshr i64 {s.plus(low, high)}, 1")
        index = middle
        if decreasing is not None:
            reversed_index = s.minus(s.minus(self.count, "1"), middle)
            index = s.value(f"select i1 {decreasing}, i64 {reversed_index}, i64 {middle}")
        after = self._is_after(s, self.at(s, index), in_section(s, key), right)
        above = s.plus(middle, "1")
        low_now = s.value(f"select i1 {after}, i64 {above}, i64 {low}")
        s.write(f"store i64 {low_now}, ptr {self.low}")
        high_now = s.value(f"select i1 {after}, i64 {high}, i64 {middle}")
        s.write(f"store i64 {high_now}, ptr {self.high}")
        s.write(f"br label %search{n}")
        s.label(f"found{n}")
        return low


def _common_dtype(*arrays: ArrayPointer) -> Dtype:
    return np.result_type(*(x.dtype for x in arrays))


def _is_ordered(node: DiscreteLeaf) -> bool:
    """Whether the elements of all operands are real."""
    return all(a.spec.dtype.kind in "biuf" for a in node.inputs)


def _loop_over(call: KernelCall, x: ArrayPointer) -> Any:
    return nest(call.section, [call.number(n) for n in x.shape])


@kernel("searchsorted", strided=True, serves=_is_ordered)
def searchsorted(call: KernelCall) -> None:
    """The insertion positions of elements in the sorted x."""
    x, v, *more = call.operands
    (y,) = call.results
    dtype = _common_dtype(x, v)
    sorted_array = SortedArray(call, x, dtype, more[0] if more else None)
    right = call.params.get("side", "left") == "right"
    with _loop_over(call, v) as (s, index):
        key = call.language.cast(read(call.language, s, address(call, s, v, index), v.dtype), dtype)
        position = sorted_array.insertion_index(s, key, right)
        s.write(f"store i64 {position}, ptr {address(call, s, y, index)}")


@kernel("digitize", strided=True, serves=_is_ordered)
def digitize(call: KernelCall) -> None:
    """The index of the bin of each element."""
    x, bins = call.operands
    (y,) = call.results
    dtype = _common_dtype(x, bins)
    sorted_array = SortedArray(call, bins, dtype)
    is_nondecreasing, is_nonincreasing = _directions(call, sorted_array)
    decreasing = call.section.value(f"xor i1 {is_nondecreasing}, true")
    is_not_nonincreasing = call.section.value(f"xor i1 {is_nonincreasing}, true")
    call.fail_if(call.section.value(f"and i1 {decreasing}, {is_not_nonincreasing}"))
    right = not call.params.get("right", False)
    with _loop_over(call, x) as (s, index):
        key = call.language.cast(read(call.language, s, address(call, s, x, index), x.dtype), dtype)
        from_start = sorted_array.insertion_index(s, key, right, decreasing)
        from_end = s.minus(sorted_array.count, from_start)
        bin_index = s.value(f"select i1 {decreasing}, i64 {from_end}, i64 {from_start}")
        s.write(f"store i64 {bin_index}, ptr {address(call, s, y, index)}")


def _directions(call: KernelCall, sorted_array: SortedArray) -> tuple[Name, Name]:
    """Whether numbers are nondecreasing, and whether they are nonincreasing; neither with NaN."""
    s, language = call.section, call.language
    cells = [call.function.slot("i8") for _ in range(2)]
    for cell in cells:
        write(s, cell, language.constant(True, BOOL))
    with s.loop("0", sorted_array.count) as (t, i):
        previous = t.larger(t.minus(i, "1"), "0")
        x, y = sorted_array.at(t, previous), sorted_array.at(t, i)
        for cell, ufunc in zip(cells, ("less_equal", "greater_equal"), strict=True):
            holds = language.binary(ufunc, x, y)
            write(t, cell, language.binary("logical_and", read(language, t, cell, BOOL), holds))
    is_nondecreasing, is_nonincreasing = (read(language, s, cell, BOOL).name for cell in cells)
    return is_nondecreasing, is_nonincreasing


_EDGE_ERROR = 0.25  # of an edge from that of bins of equal width, in widths of a bin


class _EqualBins:
    """The bins of edges that may be those of bins of equal width.

    The position of an edge is its distance from the first one, in bins.  Positions are computed in
    the same way for edges and elements, and rounding keeps their order; so if the position of each
    edge is within a quarter of its number, that of an element in bin k is between k - 1/4 and
    k + 5/4, and rounded it is k or k + 1.

    Attributes
    ----------
    hold : Name
        An i1 that is true if they are.
    """

    def __init__(self, call: KernelCall, edges: SortedArray) -> None:
        self.call, self.edges = call, edges
        s, language = call.section, call.language
        self.last = s.minus(edges.count, "1")  # also the number of bins
        flag = call.function.slot("i8")
        cells = [call.function.slot("double") for _ in range(2)]
        write(s, flag, language.constant(False, BOOL))
        for cell in cells:
            write(s, cell, language.constant(0, F64))
        with s.when(s.value(f"icmp sgt i64 {self.last}, 0")) as t:
            first, end = (language.cast(edges.at(t, i), F64) for i in ("0", self.last))
            scale = language.cast(Lane(language, t, self.last, I64, 1), F64) / (end - first)
            write(t, cells[0], first)
            write(t, cells[1], scale)
            finite = language.less(scale, language.constant(np.inf, F64))
            positive = language.less(language.constant(0.0, F64), scale)
            write(t, flag, language.logical_and(finite, positive))
        self.first, self.scale = (read(language, s, cell, F64) for cell in cells)
        with s.loop("0", edges.count) as (t, k):
            number = language.cast(Lane(language, t, k, I64, 1), F64)
            error = language.abs(self.position(t, edges.at(t, k)) - number)
            near = language.less(error, language.constant(_EDGE_ERROR, F64))
            write(t, flag, language.logical_and(read(language, t, flag, BOOL), near))
        self.hold: Name = read(language, s, flag, BOOL).name

    def position(self, s: Section, x: Any) -> Any:
        """The position of a number among the edges."""
        language = self.call.language
        first, scale = in_section(s, self.first), in_section(s, self.scale)
        return (language.cast(in_section(s, x), F64) - first) * scale

    def bin_of(self, s: Section, x: Any) -> Name:
        """The bin of a number that is between the first and the last edge."""
        language = self.call.language
        shifted = self.position(s, x) + language.constant(0.5, F64)
        k = s.value(f"fptosi double {shifted.name} to i64")
        below = language.less(in_section(s, x), self.edges.at(s, k)).name
        k = s.minus(k, s.value(f"zext i1 {below} to i64"))
        return s.smaller(k, s.minus(self.last, "1"))


def _has_real_edges(node: Node) -> bool:
    weights, x, edges = [a.spec for a in node.inputs]
    return all(s.dtype.kind in "biuf" for s in (x, edges)) and weights.dtype.kind != "b"


@kernel("histogram_counts", strided=True, serves=_is_ordered)
def histogram_counts(call: KernelCall) -> None:
    """The number of elements in each bin."""
    x, edges = call.operands
    (y,) = call.results

    def add(s: Section, target: Name, _: list[Name]) -> None:
        old = s.value(f"load i64, ptr {target}")
        s.write(f"store i64 {s.plus(old, '1')}, ptr {target}")

    _histogram(call, x, edges, y, add)


@kernel("histogram_sums", strided=True, serves=_has_real_edges)
def histogram_sums(call: KernelCall) -> None:
    """The sum of the weights of the elements in each bin."""
    weights, x, edges = call.operands
    (y,) = call.results
    language = call.language

    def add(s: Section, target: Name, index: list[Name]) -> None:
        weight = read(language, s, address(call, s, weights, index), weights.dtype)
        old = read(language, s, target, y.dtype)
        write(s, target, language.cast(old + language.cast(weight, y.dtype), y.dtype))

    _histogram(call, x, edges, y, add)


def _histogram(
    call: KernelCall,
    x: ArrayPointer,
    edges: ArrayPointer,
    y: ArrayPointer,
    add: Callable[[Section, Name, list[Name]], None],
) -> None:
    """Call `add` for each element between the edges, with the address of its bin."""
    language, dtype = call.language, _common_dtype(x, edges)
    sorted_edges = SortedArray(call, edges, dtype)
    is_nondecreasing, _ = _directions(call, sorted_edges)
    call.fail_if(call.section.value(f"xor i1 {is_nondecreasing}, true"))
    clear(call, call.section, y.pointer, size_of(y), y.dtype)
    bins = _EqualBins(call, sorted_edges)
    last = sorted_edges.at(call.section, bins.last)
    first = sorted_edges.at(call.section, "0")
    lengths = [call.number(n) for n in x.shape]
    some = call.section.value(f"icmp sgt i64 {bins.last}, 0")
    searches = call.section.value(f"xor i1 {bins.hold}, {some}")  # equal bins are some
    for equal, condition in ((True, bins.hold), (False, searches)):
        with call.section.when(condition) as branch, nest(branch, lengths) as (s, index):
            key = language.cast(read(language, s, address(call, s, x, index), x.dtype), dtype)
            above = language.binary("greater_equal", key, in_section(s, first))
            below = language.binary("less_equal", key, in_section(s, last))
            with s.when(language.logical_and(above, below).name) as t:
                if equal:
                    k = bins.bin_of(t, key)
                else:
                    k = t.minus(sorted_edges.insertion_index(t, key, True), "1")
                    k = t.smaller(k, t.minus(bins.last, "1"))
                add(t, offset(t, y.pointer, k, y.dtype), index)
