"""Memory of rows: arrays of the caller of a loop kernel, addresses in them, computed positions.

    ROWS, STACK           the whole array, of which loop groups compute the row
    PRIVATE, PARTIAL      an array for each row, one behind the other
    RowMemory             arguments, addresses, copies
    Argument              an array that the caller passes
    out[row] = x[row];    out[row, k[row], ...] = v[row]        (or += v[row])
    RowStore              such a store
    row_store             the store that a call is, or None

What a row writes is its own part of an array:

The index of the batch is its own number, and one position for each of the next axes:
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wengert._engine.ops.indexing.template import IndexSlot

from ...core.symbolic.dim import Dim, Length, names_in
from ..llvm.ir.index_analysis import counters, size_of
from ..llvm.ir.ir_builder import Function, Name, Section
from ..llvm.ir.llvm_types import I64
from ..llvm.ir.scalar_language import Language
from ..llvm.ir.simd_value import Lane
from ..llvm.lowering.gathers import RowGather, known
from ..llvm.lowering.loop_ir import Expr
from ..llvm.schedule.scheduling import owner_of
from .kernel_codegen import UnsupportedKernel
from .row_stages import OWN, Sharing

_MOST_ARGUMENTS = 400  # a kernel takes 4 KiB of parameters


@dataclass(frozen=True)
class Argument:
    """An array that the caller passes.

    Attributes
    ----------
    role : str
        ``operand``, ``constant``, ``result`` (of a carry), ``stack`` (results of steps), ``steps``
        (the number of steps of each row), ``work``, ``grown`` (one for each of a number of steps
        that is not known), ``needed`` (that number, of each row).
    which : object
        The number of an operand or result, or the expression of a constant.
    shape : tuple of Length
    dtype : numpy.dtype
    is_own : bool
        Whether there is one for each row.
    """

    role: str
    which: Any
    shape: tuple[Length, ...]
    dtype: np.dtype[Any]
    is_own: bool = False


class RowMemory:
    """The memory of a kernel.

    Parameters
    ----------
    function : Function
    language : Language
    rows : Length
    name : str
        Of the kernel; the functions of loop groups are named after it.
    """

    def __init__(self, function: Function, language: Language, rows: Length, name: str) -> None:
        self.function, self.language, self.rows, self.name = function, language, rows, name
        self.arguments: list[Argument] = []
        self.sizes: list[str] = []
        self.may_fail = False
        self._names: dict[Argument, Name] = {}
        self._lengths: dict[Any, Name] = {}
        language.home = self._head = function.body.inside()

    # ---- arguments -----------------------------------------------------------------------------

    def argument(self, made: Argument) -> Name:
        """The address of an array that the caller passes."""
        found = self._names.get(made)
        if found is None:
            if len(self.arguments) >= _MOST_ARGUMENTS:
                raise UnsupportedKernel(self.name)
            found = self._names[made] = f"%array{len(self.arguments)}"
            self.arguments.append(made)
        return found

    def work(self, x: Expr, kind: Sharing, steps: Length | None = None) -> Name:
        """The address of memory for an array; with `steps`, for as many of them."""
        shape = x.shape if steps is None else (steps, *x.shape)
        made = Argument("work", len(self.arguments), shape, x.dtype, kind in OWN)
        return self.argument(made)

    def size(self, name: str) -> Name:
        """A named size."""
        if name not in self.sizes:
            self.sizes.append(name)
        return f"%size{self.sizes.index(name)}"

    def number(self, length: Length) -> Name:
        """A length."""
        if not isinstance(length, Dim):
            return str(length)
        found = self._lengths.get(length)
        if found is None:
            sizes: Any = {
                n: Lane(self.language, self._head, self.size(n), I64, 1)
                for n in names_in((length,))
            }
            made: Any = length.replace(sizes)
            found = self._lengths[length] = made.name
        return found

    def own(self, s: Section, base: Name, row: Name, x: Expr, steps: Length = 1) -> Name:
        """The array of a row, of which there is one for each."""
        return self.offset(s, base, row, (steps, *x.shape), x.dtype)

    def offset(
        self, s: Section, base: Name, count: Name, shape: Sequence[Length], dtype: np.dtype[Any]
    ) -> Name:
        """An address after a number of arrays of a shape."""
        size = self.number(size_of(shape) * dtype.itemsize)
        return s.value(f"getelementptr i8, ptr {base}, i64 {s.times(count, size)}")

    def copy(
        self, s: Section, target: Name, source: Name, x: Expr, kind: Sharing, row: Name
    ) -> None:
        """Copy what a row has of an array."""
        if kind in OWN:
            self.copy_elements(s, target, source, x.shape, x.dtype)
            return
        outer, shape = (1, x.shape[1:]) if kind is Sharing.ROWS else (x.shape[0], x.shape[2:])
        with s.loop("0", self.number(outer)) as (t, k):
            place = t.plus(t.times(k, self.number(self.rows)), row)
            there = self.offset(t, target, place, shape, x.dtype)
            here = self.offset(t, source, place, shape, x.dtype)
            self.copy_elements(t, there, here, shape, x.dtype)

    def copy_elements(
        self,
        s: Section,
        target: Name,
        source: Name,
        shape: Sequence[Length],
        dtype: Any,
        repeated: bool = False,
    ) -> None:
        """Copy elements, or one of them repeatedly; from the address "" zeros."""
        size = min(dtype.itemsize, 8)
        words = dtype.itemsize // size
        kind, count = f"i{8 * size}", self.number(size_of(shape) * words)
        with s.loop("0", count) as (t, k):
            value = "0"
            if source:
                own = t.value(f"urem i64 {k}, {words}") if repeated else k
                place = t.value(f"getelementptr {kind}, ptr {source}, i64 {own}")
                value = t.value(f"load {kind}, ptr {place}")
            place = t.value(f"getelementptr {kind}, ptr {target}, i64 {k}")
            t.write(f"store {kind} {value}, ptr {place}")

    def fail_if(self, s: Section, status: Name) -> None:
        """Set the status of the run, if this one is not 0."""
        self.may_fail = True
        with s.when(s.value(f"icmp ne i64 {status}, 0")) as failed:
            failed.write(f"store i64 {status}, ptr %status")

    def loaded(self, s: Section, address: Name, dtype: np.dtype[Any]) -> Name:
        """An integer in memory as i64."""
        kind = f"i{8 * dtype.itemsize}"
        value = s.value(f"load {kind}, ptr {address}")
        if kind == "i64":
            return value
        return s.value(f"{'sext' if dtype.kind == 'i' else 'zext'} {kind} {value} to i64")


_WHOLE = slice(None)
_STORES = {"setitem": False, "scatter_add": True}  # and whether it adds


# Types in memory of what is added.
ADDED = {"f4": "float", "f8": "double", "i4": "i32", "i8": "i64"}


@dataclass(frozen=True)
class RowStore:
    """A store.

    Attributes
    ----------
    stage : Expr
        The call, whose operands are the array, the values, and index arrays.
    positions : tuple of Expr
        The index arrays of the axes after the batch.
    is_number : bool
        Whether the same number is stored everywhere.
    adds : bool
        Whether values are added.
    """

    stage: Expr
    positions: tuple[Expr, ...]
    is_number: bool
    adds: bool


def row_store(stage: Expr, rows: Length, kinds: Sequence[Any]) -> RowStore | None:
    """The store that a call is, or None."""
    node = stage.node
    adds = _STORES.get(node.op.name)
    if adds is None:
        return None
    template = node.params["index"]
    template = template if isinstance(template, tuple) else (template,)
    x, v, *arrays = stage.operands
    parts = list(template)
    while parts and (parts[-1] == _WHOLE or parts[-1] is Ellipsis):
        parts.pop()
    if len(parts) < 2 or len(parts) > len(x.shape):
        return None
    if not all(isinstance(p, IndexSlot) for p in parts):
        return None
    first, *others = [arrays[p.k] for p in parts]
    if any(a.shape != (rows,) or a.dtype.kind not in "iu" for a in (first, *others)):
        return None
    if not _counts_rows(first, rows) or x.shape[:1] != (rows,) or v.dtype != x.dtype:
        return None
    is_number = not v.shape
    if not is_number and v.shape != (rows, *x.shape[len(parts) :]):
        return None
    if {k.name for k in kinds} & {"PARTIAL", "STACK"}:
        return None
    if adds and x.dtype.str[1:] not in ADDED:
        return None
    return RowStore(stage, tuple(others), is_number, adds)


def _counts_rows(x: Expr, rows: Length) -> bool:
    """Whether an index array has the number of each row."""
    index = counters(x.shape)
    place = known(RowGather(owner_of(x), index, rows))
    return bool(place == index[0])
