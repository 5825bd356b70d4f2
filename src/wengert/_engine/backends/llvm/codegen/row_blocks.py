"""Row blocks: several rows at a time (schedule/slices.py).

For each block of rows every loop group has a loop: a sum over rows, for each vector of columns, is
a sum of the block in registers; sums along rows are computed for some rows together; all else is
done row by row.

RowBlocks          these loops, and the buffers of results for the rows of a block
RowAccumulators    the accumulators of rows that are summed together

Offset entries: constant offsets of reads as part of the addresses in the table of a nest.

An unrolled loop gives nests that differ only in the elements of an array that they read.  With the
offset in the address that the caller passes, they have the same text, and are emitted once.  Other
nests keep offsets in their code, where they cost nothing and need no register.

    OffsetEntries    reads of such nests
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..ir.index_analysis import Affine, FlatIndex, Index, offset_of, size_of
from ..ir.ir_builder import Section
from ..ir.llvm_types import I64
from ..ir.simd_value import Lane
from ..lowering.loop_ir import Condition, Expr
from ..schedule.fusion import LoopGroup, role_of
from ..schedule.iteration_space import Axis, Space
from ..schedule.slices import is_jammed
from ..tuning import thresholds
from .elements import Elements
from .reductions import BLOCK, UFUNC, accumulator


class OffsetEntries(Elements):
    """Elements, read through entries `(expression, offset)` of the table.

    Attributes
    ----------
    has_offset_entries : bool
        Whether it has them: a run goes through it once, in a few steps.
    """

    has_offset_entries = False

    def _load(self, expr: Expr, index: Index, mask: Lane | None) -> Any:
        form = offset_of(index, self._strides(expr))
        shift = form.offset
        if (
            not self.has_offset_entries
            or type(shift) is not int
            or shift == 0
            or expr in self._own
            or expr in self.partial
            or expr in self.fused.local
        ):
            return super()._load(expr, index, mask)
        pointer = self._entry((expr, shift))
        return self._load_from(expr, *self._split(form.plus(-shift)), mask, pointer)


class RowAccumulators:
    """The accumulators of one reduction, for several rows."""

    def __init__(self, rows: Sequence[Any]) -> None:
        self.rows = rows

    def flush(self, section: Section) -> None:
        """Flush each."""
        for one in self.rows:
            one.flush(section)


class RowBlocks(OffsetEntries):
    """Loops over blocks of rows."""

    group: LoopGroup
    spaces: list[Space]
    _rows_inside: tuple[Axis, str, str] | None = None
    _block_start = ""
    _at_once: Sequence[Lane] = ()  # the counters of rows that are summed together
    _row_counter = 0

    # ---- loops -----------------------------------------------------------------------------------

    def _blocks(self, section: Section, axis: Axis, start: str, stop: str) -> None:
        """Emit the loops of all groups, for each block of rows."""
        with section.loop(start, stop, str(self.fused.block)) as (block, first):
            end = block.value(f"add nsw i64 {first}, {self.fused.block}")
            last = block.smaller(end, stop)
            self._block_start = first
            for group, space in zip(self.fused.groups, self.spaces, strict=True):
                self.group, self.space = group, space
                self._floor = block.inside()
                kept = sum(not a.is_reduced for a in space.axes)
                if role_of(group, self.fused.rows) == "columns":
                    self._rows_inside = axis, first, last
                    self._open(block.inside(), list(space.axes), kept, False)
                    self._rows_inside = None
                    continue
                step = thresholds.jammed_rows if is_jammed(group, self.fused) else 1
                with block.loop(first, last, str(step)) as (row, i):
                    begun = self._count(axis, row, i)
                    if step > 1:
                        self._begin_rows(begun, axis, i, last, step)
                    self._floor = row.inside()
                    self._open(row.inside(), list(space.axes), kept, False)
                    self._at_once = ()
                self._leave(row)
        self._leave(block)

    def _begin_rows(self, section: Section, axis: Axis, i: str, stop: str, count: int) -> None:
        """Count several rows together; beyond the last it is the last again."""
        last = section.minus(stop, "1")
        rows = [section.smaller(section.plus(i, str(k)), last) for k in range(count)]
        self._row_counter = axis.counter
        self._at_once = [Lane(self.language, section, row, I64, 1) for row in rows]

    def _started(self, section: Section, root: Expr, width: int, blocked: bool) -> Any:
        """The accumulator of a reduction, or those of all rows that are summed together."""
        monoid, dtype = root.rule.monoid, root.operands[0].dtype  # type: ignore[attr-defined]
        made = [
            accumulator(self.language, section, monoid, dtype, width, blocked)
            for _ in self._at_once or "1"
        ]
        return RowAccumulators(made) if self._at_once else made[0]

    @property
    def _block_terms(self) -> int:
        """How many terms are added without compensation: for several rows vectors are shorter."""
        return 2 * BLOCK if self._at_once else BLOCK

    def _each_row(self, one: Any) -> Iterator[Any]:
        """An accumulator, or those of several rows, each while its row is the current one."""
        if not isinstance(one, RowAccumulators):
            yield one
            return
        for lane, row in zip(self._at_once, one.rows, strict=True):
            self._counters[self._row_counter] = lane
            for memo in (self._memo, self._numbers):
                for key in [k for k in memo if _depends(k, self._row_counter)]:
                    del memo[key]
            yield row

    def _add_rows(self, section: Section) -> None:
        """Combine the rows of a block in registers, then with the buffers."""
        assert self._rows_inside is not None
        axis, first, last = self._rows_inside
        width = 1 if self._vector_axis() is None else self.space.width
        kept = {
            r: self._started(section, r, width, False)
            for r in self.group.roots
            if r in self._columns
        }
        with section.loop(first, last) as (row, i):
            self._count(axis, row, i)
            self._body(row.inside(), kept)
        self._leave(row)
        for root, one in kept.items():
            self._combine_in_memory(section, root, one.result(section, False))

    def _combine_in_memory(self, section: Section, root: Expr, value: Any) -> None:
        """Combine one more row with the buffer, elementwise."""
        index = self._kept_index(root)
        current = self._current(section, root, index)
        ufunc = UFUNC[root.rule.monoid]  # type: ignore[attr-defined]
        new = self.language.cast(self.language.binary(ufunc, value, current), root.dtype)
        self._put(section, root, new, index)

    # ---- buffers for the rows of a block ---------------------------------------------------------

    def _of_block(self, expr: Expr, pointer: Lane) -> Lane:
        """The address that row 0 would have in such a buffer."""
        section = pointer.section
        assert section is not None
        size = self._name(self._number(size_of(expr.shape[self.fused.rows :])))
        skipped = section.minus("0", section.times(self._block_start, size))
        return Lane(
            self.language,
            section,
            section.value(
                f"getelementptr {self._element(expr.dtype)}, ptr {pointer.name}, i64 {skipped}"
            ),
            I64,
            1,
        )

    def _row_buffer(self, expr: Expr) -> Lane:
        """A buffer for the rows of a block of an intermediate result."""
        size = size_of(expr.shape[self.fused.rows :]) * expr.dtype.itemsize * self.fused.block
        if type(size) is int and size <= thresholds.row_stack_bytes:
            name = self.function.slot(f"[{size} x i8]", 64)
        else:
            allocate = self.language.module.declare("wengert_alloc", "ptr", ["i64"])
            self.language.module.allocations.append((self.function.name, size))
            count = self._name(self._number(size))
            name = self._head.value(f"call ptr {allocate}(i64 {count})")
            self._scratch.append(name)
            self.may_fail = True
            none = self._head.value(f"icmp eq ptr {name}, null")
            n = self.function.number()
            self._head.write(f"br i1 {none}, label %none{n}, label %some{n}")
            self._head.label(f"none{n}")
            self.fail(self._head)
            self._head.write("ret void")
            self._head.label(f"some{n}")
        return Lane(self.language, self._head, name, I64, 1)

    # ---- the loops of a group (loop_nests.py) ----------------------------------------------------

    def _open(self, section: Section, axes: list[Axis], kept: int, outermost: bool) -> None:
        raise NotImplementedError

    def _body(self, section: Section, kept: dict[Expr, Any]) -> None:
        raise NotImplementedError

    def _count(self, axis: Axis, inner: Section, i: str) -> Section:
        raise NotImplementedError

    def _leave(self, inner: Section) -> None:
        raise NotImplementedError

    def _kept_index(self, root: Expr) -> tuple[Any, ...]:
        raise NotImplementedError


def _depends(key: Any, counter: int) -> bool:
    """Whether what is remembered under a key is that of the current count of a loop."""
    if isinstance(key, Affine | Condition | FlatIndex):
        form = key if isinstance(key, Affine) else key.form
        return any(c == counter for c, _ in form.terms)
    return isinstance(key, tuple) and any(_depends(k, counter) for k in key)
