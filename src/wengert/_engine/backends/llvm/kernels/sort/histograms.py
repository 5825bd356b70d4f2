"""Histograms: the number of elements in each bin, or the sum of their weights.

    histogram_counts    the number of elements in each bin; the last bin includes its upper edge
    histogram_sums      the sum of the weights of the elements in each bin

Where all edges are near those of bins of equal width, an element is in the bin that its distance
from the first edge gives, or in the one below: one comparison with an edge decides.  Otherwise each
element is searched (searchsorted.py).  The kernels fail if edges decrease.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wengert._engine.core.node import Node

from ...ir.ir_builder import Name, Section
from ...ir.llvm_types import BOOL, F64, I64
from ...ir.simd_value import Lane
from ..kernel_call import ArrayPointer, KernelCall, kernel
from ..loop_helpers import address, clear, in_section, nest, offset, read, size_of, write
from .searchsorted import SortedArray, common_dtype, directions, is_ordered

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


@kernel("histogram_counts", strided=True, serves=is_ordered)
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
    language, dtype = call.language, common_dtype(x, edges)
    sorted_edges = SortedArray(call, edges, dtype)
    is_nondecreasing, _ = directions(call, sorted_edges)
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
