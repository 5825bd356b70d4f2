"""Row blocks: sums over rows, several rows at a time (schedule/row_blocks.py).

for the rows in blocks:
    for each loop group:
        a sum over rows:  for each vector of columns: for the rows of the block, in registers
        else:             for the rows of the block: the loops of the group

RowBlocks    these loops, and the buffers of results for the rows of a block
"""

from __future__ import annotations

from typing import Any

from ..ir.affine import size_of
from ..ir.ir_builder import Section
from ..ir.llvm_types import I64
from ..ir.simd_value import Lane
from ..lowering.loop_ir import Expr
from ..schedule.fusion import LoopGroup, role_of
from ..schedule.iteration_space import Axis, Space
from ..tuning import thresholds
from .elements import Elements
from .reductions import UFUNC, accumulator


class RowBlocks(Elements):
    """Loops over blocks of rows."""

    group: LoopGroup
    spaces: list[Space]
    _rows_inside: tuple[Axis, str, str] | None = None
    _block_start = ""

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
                with block.loop(first, last) as (row, i):
                    self._count(axis, row, i)
                    self._floor = row.inside()
                    self._open(row.inside(), list(space.axes), kept, False)
                self._leave(row)
        self._leave(block)

    def _add_rows(self, section: Section) -> None:
        """Combine the rows of a block in registers, then with the buffers."""
        assert self._rows_inside is not None
        axis, first, last = self._rows_inside
        width = 1 if self._vector_axis() is None else self.space.width
        kept: dict[Expr, Any] = {
            r: accumulator(
                self.language,
                section,
                r.rule.monoid,  # type: ignore[attr-defined]
                r.operands[0].dtype,
                width,
                False,
            )
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
