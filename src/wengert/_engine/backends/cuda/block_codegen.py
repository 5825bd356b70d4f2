"""Code of loop groups whose rows are computed by groups of lanes (block_threads.py).

    for each row of the group, and part of it:
        for each loop group:  its elements, split among the lanes;  its sums, merged among them

One loop group alone: a row is what it keeps, and it may be divided into parts, whose states are
stored and merged by another kernel (block_kernels.py). Several loop groups, fused along rows:
results of one that the next ones read are in registers if they are one number in each row, else in
memory of this group of lanes, which its launch places in shared memory if rows fit.

Neighboring lanes read neighboring elements. A part consists of every so-manyth element, so that
neighboring groups do as well, where each has one lane.

    BlockNest    such code, as one function
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..llvm.codegen.reductions import BLOCK
from ..llvm.ir.index_analysis import Index, Length, offset_of, size_of
from ..llvm.ir.ir_builder import Section
from ..llvm.ir.llvm_types import I64
from ..llvm.ir.memory_access import store
from ..llvm.ir.simd_value import Lane
from ..llvm.lowering.loop_ir import Expr, Reduce, memory_strides
from ..llvm.schedule.fusion import LoopGroup
from ..llvm.schedule.integer_ranges import ANY, is_inside
from ..llvm.schedule.iteration_space import Axis, Space
from ..llvm.schedule.scheduling import accesses_of, is_one_place
from .block_threads import ARGUMENTS, LaneGroup
from .column_sums import APART, FIRST, TOGETHER, ColumnSums

_LIGHT = 12  # work of an element, up to which several are read before they are added
_FLAT = 64  # a shorter innermost reduced axis is split among lanes together with the others
ALIGNMENT = 16  # of rows in memory of a group


class BlockNest(ColumnSums):
    """One or several loop groups as a function of the threads of blocks.

    Attributes
    ----------
    rows : Length
        The number of rows.
    local_rows : dict from key to Length
        The results in memory of the group of lanes, with their bytes in a row.
    columns : list of ColumnSum
        The sums over rows, whose states are stored as those of parts are.
    must_leave : bool
        Whether a lane that finds a fault cannot go on: then each group has one lane.
    parts_of : list of (Expr, accumulator)
        The reductions whose states are stored if rows have several parts; their addresses are the
        arguments ``state0``, ``state1``, ...
    """

    signature = (("ptr", "table"), *[("i64", n) for n in ("parts", "lanes")], *ARGUMENTS)

    def _found_partial(self) -> set[Expr]:
        return set()

    def _write(self, body: Section) -> None:
        self.is_alone = len(self.fused.groups) == 1
        self.local_rows: dict[Any, Length] = {}
        self.parts_of: list[tuple[Expr, Any]] = []
        self._mode, self._part, self._base = TOGETHER, "0", ""
        self.must_leave = False
        self.columns = []
        self.lanes = LaneGroup(self.language.module, self.language, self._head)
        self.lanes.exchange = self._head.value("getelementptr i8, ptr %shared, i64 %local_bytes")
        rows = [Axis(k, n, False) for k, n in enumerate(self.group.space[: self.fused.rows])]
        if self.is_alone:
            rows = [axis for axis in self.space.axes if not axis.is_reduced]
        self.rows: Length = size_of([axis.length for axis in rows])
        self._row_axes = rows
        lengths = [self._name(self._number(axis.length)) for axis in rows]
        self._count_rows = "1"
        for length in lengths:
            self._count_rows = self._head.times(self._count_rows, length)
        total = self._count_rows
        if self.is_alone:
            total = self._head.times(total, "%parts")
        self._begin_columns(body.inside())
        with body.loop(self.lanes.number, total, self.lanes.count) as (row, t):
            start = row.inside()
            place = t
            if self.is_alone:
                place = start.value(f"urem i64 {t}, {self._count_rows}")
                self._part = start.value(f"udiv i64 {t}, {self._count_rows}")
            self._place_row = place
            for k in range(len(rows) - 1, -1, -1):
                i = place
                if k:
                    i = start.value(f"urem i64 {place}, {lengths[k]}")
                    place = start.value(f"udiv i64 {place}, {lengths[k]}")
                self._count(rows[k], row, i)
            self._groups(row)
            if self.local_rows or self.lanes.exchanged_bytes:
                self.lanes.barrier(row)
        self._leave(row)
        self._end_columns(body.inside())

    def _groups(self, row: Section) -> None:
        """All loop groups of one row, with barriers before what others have written is read."""
        written: set[Expr] = set()
        for group, space in zip(self.fused.groups, self.spaces, strict=True):
            self.group, self.space = group, space
            if any(self._reads_from(group, written)):
                self.lanes.barrier(row)
                written.clear()
            self._floor = row.inside()
            self._elements(row.inside(), space)
            written.update(group.roots)

    def _reads_from(self, group: LoopGroup, written: set[Expr]) -> list[Expr]:
        """The arrays of other lanes that a group reads."""
        return [
            a.expr
            for root in group.roots
            for a in accesses_of(root)
            if a.expr in written and not (self._is_number(a.expr, a.index))
        ]

    def _is_number(self, x: Expr, index: Index | None) -> bool:
        """Whether a result is in a register of each lane."""
        return isinstance(x.rule, Reduce) and is_one_place(index, self.fused.rows)

    def _elements(self, section: Section, space: Space) -> None:
        """The elements of one loop group in one row."""
        kept = [] if self.is_alone else [axis for axis in space.axes if not axis.is_reduced]
        reduced = [axis for axis in space.axes if axis.is_reduced]
        if not kept and not reduced:
            self._mode = FIRST
            self._combine(section, [], False)
        elif reduced and (space.across or not kept):
            self._mode = TOGETHER
            self._one_by_one(section, kept, reduced)
        else:
            self._mode = APART
            lengths = [self._name(self._number(axis.length)) for axis in kept]
            total = "1"
            for length in lengths:
                total = self._head.times(total, length)
            with section.loop(self.lanes.lane, total, "%lanes") as (inner, t):
                self._count_flat(inner, kept, lengths, t)
                self._combine(inner.inside(), reduced, False)
            self._leave(inner)

    def _one_by_one(self, section: Section, kept: list[Axis], reduced: list[Axis]) -> None:
        """Reductions by all lanes, for each index of kept axes."""
        if not kept:
            self._combine(section, reduced, False)
            return
        with section.loop("0", self._name(self._number(kept[0].length))) as (inner, i):
            self._count(kept[0], inner, i)
            self._one_by_one(inner.inside(), kept[1:], reduced)
        self._leave(inner)

    def _count_flat(
        self, inner: Section, axes: Sequence[Axis], lengths: Sequence[str], t: str
    ) -> None:
        """Set the counters of axes from one number."""
        start = inner.inside()
        place = t
        for k in range(len(axes) - 1, -1, -1):
            i = place
            if k:
                i = start.value(f"urem i64 {place}, {lengths[k]}")
                place = start.value(f"udiv i64 {place}, {lengths[k]}")
            self._count(axes[k], inner, i)

    # ---- reductions ----------------------------------------------------------------------------

    def _reduce(
        self,
        section: Section,
        axes: list[Axis],
        kept: dict[Expr, Any],
        outermost: bool,
        once: bool = False,
    ) -> None:
        if self._mode != TOGETHER:
            super()._reduce(section, axes, kept, outermost, once)
            return
        # The axis of the fewest steps in memory is the last.
        split = axes[-1] if self.space.across else axes[0]
        others = [axis for axis in axes if axis is not split]
        if others and type(split.length) is int and split.length < _FLAT:
            split, others = None, []  # type: ignore[assignment]
        self._reduce_others(section, others, axes if split is None else [split], kept)
        self.lanes.combine(section, list(kept.values()))
        if self.is_alone:
            self._store_states(section.inside(), kept)

    def _reduce_others(
        self, section: Section, others: list[Axis], split: list[Axis], kept: dict[Expr, Any]
    ) -> None:
        if others:
            with section.loop("0", self._name(self._number(others[0].length))) as (inner, i):
                self._count(others[0], inner, i)
                self._reduce_others(inner.inside(), others[1:], split, kept)
            self._leave(inner)
            return
        lengths = [self._name(self._number(axis.length)) for axis in split]
        total = "1"
        for length in lengths:
            total = self._head.times(total, length)
        start, step = self.lanes.lane, "%lanes"
        if self.is_alone:
            before = section.value(f"mul i64 {self._part}, %lanes")
            start = section.value(f"add i64 {before}, {start}")
            step = section.value("mul i64 %parts, %lanes")

        def add(inner: Section, t: str) -> None:
            self._count_flat(inner, split, lengths, t)
            self._body(inner.inside(), kept)
            self._leave(inner)

        if not self._is_long(split):
            with section.loop(start, total, step) as (inner, t):
                add(inner, t)
            self._flush(section, kept)
            return
        self._add_blocks(section, (start, total, step), kept, add)

    def _add_blocks(
        self, section: Section, ends: tuple[str, str, str], kept: dict[Expr, Any], add: Any
    ) -> None:
        """Blocks of terms; of light ones all are read before they are added."""
        start, total, step = ends
        whole = section.value(f"mul i64 {step}, {BLOCK}")
        rest = section.value(f"mul i64 {step}, {BLOCK - 1}")
        full_end = section.value(f"sub i64 {total}, {rest}")
        following = self.function.slot("i64")
        section.write(f"store i64 {start}, ptr {following}")
        if self.group.weight <= _LIGHT:
            with section.loop(start, full_end, whole) as (block, b):
                t = b
                for k in range(BLOCK):
                    add(block.inside(), t)
                    if k + 1 < BLOCK:
                        t = block.value(f"add i64 {t}, {step}")
                self._flush(block, kept)
                block.write(f"store i64 {block.value(f'add i64 {b}, {whole}')}, ptr {following}")
            self._leave(block)
        with section.loop(section.value(f"load i64, ptr {following}"), total, whole) as (block, b):
            end = block.smaller(block.value(f"add i64 {b}, {whole}"), total)
            with block.loop(b, end, step) as (inner, t):
                add(inner, t)
            self._flush(block, kept)
        self._leave(block)

    def _store_states(self, section: Section, kept: dict[Expr, Any]) -> None:
        """Store the states of reductions if rows have several parts."""
        several = section.value("icmp sgt i64 %parts, 1")
        with section.when(section.value(f"and i1 {several}, {self.lanes.is_first}")) as s:
            place = s.value(f"mul i64 {self._part}, {self._count_rows}")
            place = s.value(f"add i64 {place}, {self._place_row}")
            for root, one in kept.items():
                self.parts_of.append((root, one))
                for slot in one.states:
                    number = sum(len(x.states) for _, x in self.parts_of[:-1])
                    number += one.states.index(slot)
                    kind = self._element(slot.dtype)
                    address = s.value(f"getelementptr {kind}, ptr %state{number}, i64 {place}")
                    store(self.language, s, address, slot.get(s), 1, None)

    def _put(self, section: Section, root: Expr, value: Any, index: Index) -> None:
        is_result = isinstance(root.rule, Reduce)
        if self._mode == APART or (self._mode == TOGETHER and not is_result):
            super()._put(section, root, value, index)
            return
        condition = self.lanes.is_first
        if self.is_alone and self._mode == TOGETHER:
            one = section.value("icmp eq i64 %parts, 1")
            condition = section.value(f"and i1 {one}, {condition}")
        with section.when(condition) as s:
            super()._put(s, root, value, index)

    # ---- faults --------------------------------------------------------------------------------

    # Other lanes wait for one that has found a position out of range: it goes on with the first.
    # A lane alone leaves.

    def position(self, lane: Any, length: Length, mask: Lane | None, of: Expr | None = None) -> Any:
        """Integers as positions of an axis; of one that fails, the first position."""
        found = super().position(lane, length, mask, of)
        if is_inside(self.ranges.get(of, ANY), length):
            return found
        key = "valid position", found.name
        valid = self._memo.get(key)
        if valid is None:
            section = found.section
            n = self._name(self.language.cast(self._number(length), I64))
            outside = section.value(f"icmp uge i64 {found.name}, {n}")
            name = section.value(f"select i1 {outside}, i64 0, i64 {found.name}")
            valid = self._memo[key] = Lane(self.language, section, name, I64, 1)
        return valid

    def refuse(self, lanes: Lane, mask: Lane | None) -> None:
        """Return early if a mask is true."""
        self.must_leave = True
        super().refuse(lanes, mask)

    def _leave_if(self, section: Section, condition: str) -> None:
        n = self.function.number()
        is_alone = self._head.value("icmp eq i64 %lanes, 1")
        section.write(f"br i1 {condition}, label %outside{n}, label %inside{n}")
        section.label(f"outside{n}")
        self.fail(section)
        section.write(f"br i1 {is_alone}, label %leave{n}, label %inside{n}")
        section.label(f"leave{n}")
        section.write("br label %leave")
        section.label(f"inside{n}")

    # ---- memory of a group of lanes ------------------------------------------------------------

    def _row_buffer(self, expr: Expr) -> Lane:
        """The memory for the row of an intermediate result."""
        size = size_of(expr.shape[self.fused.rows :]) * expr.dtype.itemsize
        return Lane(self.language, self._head, self._local_memory(expr, size), I64, 1)

    def _local_memory(self, key: Any, size: Length) -> str:
        """The address of memory of this group of lanes."""
        head = self._head
        if not self._base:
            is_local = head.value("icmp sgt i64 %local_bytes, 0")
            place = head.value(f"select i1 {is_local}, ptr %shared, ptr %scratch")
            k = head.value(
                f"select i1 {is_local}, i64 {self.lanes.inside}, i64 {self.lanes.number}"
            )
            self._base = head.value(
                f"getelementptr i8, ptr {place}, i64 {head.value(f'mul i64 {k}, %row_bytes')}"
            )
        offset = "0"
        for other in self.local_rows.values():
            offset = head.plus(offset, self._rounded(other))
        self.local_rows[key] = size
        return head.value(f"getelementptr i8, ptr {self._base}, i64 {offset}")

    def _rounded(self, size: Length) -> str:
        """A number of bytes, rounded up."""
        more = self._head.plus(self._name(self._number(size)), str(ALIGNMENT - 1))
        return self._head.value(f"and i64 {more}, {-ALIGNMENT}")


def has_neighbors(nest: BlockNest) -> bool:
    """Whether neighboring lanes that reduce together read neighboring elements."""
    if not nest.is_alone:
        return True
    space = nest.space
    vector = space.axes[space.vector] if space.vector is not None else None
    if vector is None or not vector.is_reduced:
        return False
    forms = [
        offset_of(a.index, memory_strides(a.expr))
        for root in nest.group.roots
        for a in accesses_of(root)
        if a.index is not None
    ]
    near = sum(form.factor(vector.counter) == 1 for form in forms)
    beside = [axis for axis in space.axes if not axis.is_reduced]
    far = sum(any(form.factor(axis.counter) == 1 for axis in beside) for form in forms)
    return bool(near >= far)
