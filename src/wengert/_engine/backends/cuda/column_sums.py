"""Sums over rows in kernels of fused loops that compute rows (block_codegen.py).

Each group of lanes has a buffer of one row for the states of such a sum, to which it adds its rows.
At the end it stores the buffer; another kernel merges those of all groups (block_kernels.py).

    ColumnSum     one sum
    ColumnSums    the code of all in a function
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from ..llvm.codegen.reductions import accumulator
from ..llvm.ir.index_analysis import Length, offset_of, size_of
from ..llvm.ir.ir_builder import Section
from ..llvm.ir.memory_access import load, store
from ..llvm.lowering.loop_ir import Expr, Reduce, memory_strides
from ..llvm.schedule.fusion import role_of
from .block_threads import LaneGroup
from .checked_values import CheckedNest

# How the lanes of a group compute the elements of a loop group:
FIRST = "first"  # the first lane stores all
TOGETHER = "together"  # the lanes reduce together, and the first stores the results
APART = "apart"  # each lane computes elements of its own


class ColumnSum(NamedTuple):
    """A sum over rows: its root, the number of columns, an accumulator, where its states are."""

    root: Expr
    count: Length
    state: Any
    places: tuple[str, ...]


class ColumnSums(CheckedNest):
    """A loop nest with sums over rows.

    Attributes
    ----------
    lanes : LaneGroup
    columns : list of ColumnSum
    """

    lanes: LaneGroup
    columns: list[ColumnSum]
    _mode: str

    @abstractmethod
    def _local_memory(self, key: Any, size: Length) -> str:
        """The address of memory of this group of lanes (block_codegen.py)."""

    def _begin_columns(self, section: Section) -> None:
        """Initialize the buffers of sums over rows."""
        for group in self.fused.groups:
            if len(self.fused.groups) == 1 or role_of(group, self.fused.rows) != "columns":
                continue
            for root in group.roots:
                if isinstance(root.rule, Reduce):
                    self._columns.add(root)
                    self.columns.append(self._column_sum(root))
        for column in self.columns:
            with self._each_column(section, column) as (inner, t):
                for slot, place in zip(column.state.states, column.places, strict=True):
                    address = self._state_address(inner, place, t, slot)
                    store(self.language, inner, address, slot.get(inner), 1, None)
        if self.columns:
            self.lanes.barrier(section)

    def _column_sum(self, root: Expr) -> ColumnSum:
        rule: Any = root.rule
        one = accumulator(self.language, self._head, rule.monoid, root.operands[0].dtype, 1, True)
        count = size_of(root.shape)
        places = [
            self._local_memory((root, k), count * slot.dtype.itemsize)
            for k, slot in enumerate(one.states)
        ]
        return ColumnSum(root, count, one, tuple(places))

    @contextmanager
    def _each_column(self, section: Section, column: ColumnSum) -> Iterator[tuple[Section, str]]:
        count = self._name(self._number(column.count))
        with section.loop(self.lanes.lane, count, "%lanes") as found:
            yield found

    def _state_address(self, section: Section, base: str, place: str, slot: Any) -> str:
        kind = self._element(slot.dtype)
        return section.value(f"getelementptr {kind}, ptr {base}, i64 {place}")

    def _combine_in_memory(self, section: Section, root: Expr, value: Any) -> None:
        """Add one element to the sum of its column."""
        if self._mode == FIRST:
            with section.when(self.lanes.is_first) as s:
                self._add_to_column(s, root, value)
        else:
            self._add_to_column(section, root, value)

    def _add_to_column(self, section: Section, root: Expr, value: Any) -> None:
        (column,) = [c for c in self.columns if c.root is root]
        offset, _ = self._split(offset_of(self._kept_index(root), memory_strides(root)))
        pairs = list(zip(column.state.states, column.places, strict=True))
        places = [self._state_address(section, p, self._name(offset), x) for x, p in pairs]
        for (slot, _), place in zip(pairs, places, strict=True):
            slot.put(section, load(self.language, section, place, slot.dtype, 1, None))
        column.state.step(section, value, None)
        column.state.flush(section)
        for (slot, _), place in zip(pairs, places, strict=True):
            store(self.language, section, place, slot.get(section), 1, None)

    def _end_columns(self, section: Section) -> None:
        """Store the buffers."""
        if not self.columns:
            return
        self.lanes.barrier(section)
        number = 0
        for column in self.columns:
            count = self._name(self._number(column.count))
            with self._each_column(section, column) as (inner, t):
                before = inner.value(f"mul i64 {self.lanes.number}, {count}")
                there = inner.value(f"add i64 {before}, {t}")
                for slot, place in zip(column.state.states, column.places, strict=True):
                    address = self._state_address(inner, place, t, slot)
                    value = load(self.language, inner, address, slot.dtype, 1, None)
                    target = self._state_address(inner, f"%state{number}", there, slot)
                    store(self.language, inner, target, value, 1, None)
                    number += 1
