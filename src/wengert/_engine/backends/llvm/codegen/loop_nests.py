"""Loop nests: the LLVM function of a fused loop.

A loop nest is one function, `void @nest(ptr %table, i64 %lo, i64 %hi, i64 %part)`: the table
contains the addresses of arrays and the sizes, the outermost loop runs from lo to hi.  A reduction
over that loop is written at `part` times its size, so that several parts can run in parallel
(codegen/nest_calls.py).  Nests with the same text are one function, so an unrolled loop is
compiled once.

    LoopNest    rows, reductions and stores; the loops around them are in kept_axes.py, and the
                rules emit the code inside them (elements.py)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ..ir.index_analysis import ZERO, Affine, Length, is_one, offset_of, size_of, strides_of
from ..ir.ir_builder import Function, Section
from ..ir.llvm_types import I64
from ..ir.memory_access import store
from ..ir.scalar_language import Language
from ..ir.simd_value import Lane
from ..lowering.loop_ir import ContractionTerm, Expr, Reduce, aligned
from ..lowering.scatter_chains import SliceUpdate
from ..schedule.fusion import FusedLoops, role_of
from ..schedule.iteration_space import Axis, space_for
from ..schedule.scheduling import is_one_place
from ..schedule.slices import is_jammed, largest_shape
from ..tuning import thresholds
from .kept_axes import KeptAxes, LoopPart
from .reductions import SumAccumulator, accumulator, identity

_SIGNATURE = [("ptr", "table"), ("i64", "lo"), ("i64", "hi"), ("i64", "part")]


class LoopNest(KeptAxes):
    """One fused loop as a function.

    A subclass for another kind of device has another `signature` (backends/cuda).

    Parameters
    ----------
    stored : container of Expr
        The roots that have memory.
    register_bytes : int
        The size of the processor's vector registers.
    once : bool
        Whether a run of the program goes through it once.
    largest : mapping
        Upper bounds of sizes that differ between the steps of a loop.

    Attributes
    ----------
    spaces : list of Space
        The iteration spaces of the loop groups.
    """

    signature: Sequence[tuple[str, str]] = _SIGNATURE

    def __init__(
        self,
        language: Language,
        fused: FusedLoops,
        stored: set[Any],
        register_bytes: int,
        once: bool = False,
        largest: Mapping[str, Length] = MappingProxyType({}),
    ) -> None:
        self._largest = largest
        function = Function(language.module, "nest", self.signature, "void", "nounwind #1")
        super().__init__(language, function, fused, stored)
        self.spaces = [
            space_for(s, register_bytes // (2 if is_jammed(s, fused) else 1), fused.rows)
            for s in fused.groups
        ]
        self.group, self.space = fused.groups[0], self.spaces[0]
        self.has_offset_entries = once and steps_of(self) <= thresholds.once_steps
        self.partial = self._found_partial()
        self._row_reductions: dict[Expr, Any] = {}
        self._write(function.body.inside())

    def _found_partial(self) -> set[Expr]:
        if not self.fused.rows and not (self.space.axes and self.space.axes[0].is_reduced):
            return set()
        rows = self.fused.rows
        return {
            root
            for group in self.fused.groups
            if not rows or role_of(group, rows) != "each"
            for root in group.roots
            if isinstance(root.rule, Reduce)
        }

    def text(self, name: str) -> str:
        """The function, under a name."""
        return named(self.function.text(), name)

    # ---- the loops -----------------------------------------------------------------------------

    def _write(self, body: Section) -> None:
        rows = [
            Axis(k, n, False)
            for k, n in enumerate(self.group.space[: self.fused.rows])
            if not is_one(n)
        ]
        if rows:
            self._begin(body)
        self._row(body.inside(), rows, True)
        self._end(body.inside())
        self._free_rows()
        self.function.body.write("ret void")

    def _begin(self, section: Section) -> None:
        """Initialize reductions over rows before the first row."""
        for group, space in zip(self.fused.groups, self.spaces, strict=True):
            role = role_of(group, self.fused.rows)
            width = 1 if space.vector is None else space.width
            for root in group.roots:
                if role == "each" or not isinstance(root.rule, Reduce):
                    continue
                if role == "columns":
                    self._columns.add(root)
                    self._clear(section, root)
                    continue
                self._row_reductions[root] = accumulator(
                    self.language, section, root.rule.monoid, root.operands[0].dtype, width, True
                )

    def _clear(self, section: Section, root: Expr) -> None:
        """Initialize the buffer in which rows are combined elementwise."""
        start = identity(root.rule.monoid, root.dtype)  # type: ignore[attr-defined]
        value = self.language.constant(start, root.dtype)
        count = self._name(self._number(size_of(root.shape)))
        pointer = self._entry(root)
        with section.loop("0", count) as (inner, i):
            address = self._address(
                inner, pointer, Lane(self.language, inner, i, I64, 1), root.dtype
            )
            store(self.language, inner, address, value, 1, None)

    def _end(self, section: Section) -> None:
        """Store the results of reductions over rows."""
        for group, space in zip(self.fused.groups, self.spaces, strict=True):
            self.group, self.space = group, space
            for root in group.roots:
                if root in self._row_reductions:
                    value = self._row_reductions[root].result(section, space.across)
                    self._put(
                        section,
                        root,
                        self.language.cast(value, root.dtype),
                        (ZERO,) * len(root.shape),
                    )

    def _row(self, section: Section, rows: list[Axis], outermost: bool) -> None:
        """Emit the loops over the rows, and all loop groups in each row."""
        if rows:
            start, stop = self._range(rows[0], section, outermost)
            if len(rows) == 1 and self.fused.block > 1:
                self._blocks(section, rows[0], start, stop)
                return
            with section.loop(start, stop) as (inner, i):
                self._count(rows[0], inner, i)
                self._row(inner.inside(), rows[1:], False)
            self._leave(inner)
            return
        for group, space in zip(self.fused.groups, self.spaces, strict=True):
            self.group, self.space = group, space
            self._floor = section.inside()
            kept = [a for a in space.axes if not a.is_reduced]
            self._open(section.inside(), list(space.axes), len(kept), outermost)

    # ---- inside the kept axes --------------------------------------------------------------------

    def _combine(self, section: Section, axes: list[Axis], outermost: bool) -> None:
        """Emit loops over the reduced axes, and store their results."""
        if self._rows_inside is not None:
            self._add_rows(section)
            return
        reductions = [
            r for r in self.group.roots if isinstance(r.rule, Reduce) and r not in self._columns
        ]
        width = 1 if self._vector_axis() is None else self.space.width
        blocked = self._is_long(axes)
        kept: dict[Expr, Any] = {
            r: self._row_reductions.get(r) or self._started(section, r, width, blocked)
            for r in reductions
        }
        if not axes:
            self._body(section, kept)
            self._flush(section, kept)
        else:
            once = len(axes) == 1 and not any(r in self._row_reductions for r in reductions)
            self._reduce(section.inside(), axes, kept, outermost, once)
        tail = section.inside()
        for root, one in kept.items():
            if root in self._row_reductions:
                continue
            index = self._kept_index(root)
            for row in self._each_row(one):
                value = self.language.cast(row.result(tail, self.space.across), root.dtype)
                if row is one and self.fused.rows and is_one_place(index, self.fused.rows):
                    self._memo[root, index, None] = value
                if root in self._stored or root in self.fused.local:
                    self._put(tail, root, value, index)

    def _is_long(self, axes: Sequence[Axis]) -> bool:
        if not axes:
            return False
        step = self.space.width if self.space.across else 1
        lengths = largest_shape([axis.length for axis in axes], self._largest)
        total = None if lengths is None else size_of(lengths)
        return type(total) is not int or total > 2 * self._block_terms * step

    def _reduce(
        self,
        section: Section,
        axes: list[Axis],
        kept: dict[Expr, Any],
        outermost: bool,
        once: bool = False,
    ) -> None:
        """Emit loops over the reduced axes.

        If the code runs `once` for each result, a block is flushed before the next one, and the
        last remains for the result: most rows of loops over triangles are short.
        """
        axis = axes[0]
        start, stop = self._range(axis, section, outermost)
        if len(axes) > 1:
            with section.loop(start, stop) as (inner, i):
                self._count(axis, inner, i)
                self._reduce(inner.inside(), axes[1:], kept, False)
            self._leave(inner)
            return
        wide = axis is self._vector_axis()
        pieces = self._steps(section, axis, start, stop) if wide else [LoopPart(start, stop, False)]
        width = self.space.width if wide else 1
        outer_mask = self._mask
        if not self._is_long([axis]):
            for begin, end, mask, *_ in pieces:
                self._terms(section, axis, (begin, end, stop), mask, width, kept, outer_mask)
            if not once:
                self._flush(section, kept)
            return
        step = self._block_terms * width
        for begin, end, mask, *_ in pieces:
            if mask and begin != start:  # less than a vector
                self._terms(section, axis, (begin, end, stop), mask, width, kept, outer_mask)
                if not once:
                    self._flush(section, kept)
                continue
            with section.loop(begin, end, str(step)) as (block, b):
                next_start = block.value(f"add nsw i64 {b}, {step}")
                block_end = block.smaller(next_start, end)
                if once:
                    with block.when(block.value(f"icmp ne i64 {b}, {begin}")) as later:
                        self._flush(later, kept)
                inner = block.inside()
                self._terms(inner, axis, (b, block_end, stop), mask, width, kept, outer_mask)
                if not once:
                    self._flush(block, kept)
            self._leave(block)
            self._mask = outer_mask

    def _flush(self, section: Section, kept: dict[Expr, Any]) -> None:
        for one in kept.values():
            one.flush(section)

    def _terms(
        self,
        section: Section,
        axis: Axis,
        ends: tuple[str, str, str],
        masked: bool,
        width: int,
        kept: dict[Expr, Any],
        outer_mask: Lane | None,
    ) -> None:
        """Emit the innermost loop."""
        begin, end, stop = ends
        with self._along(section, begin, end, width) as (inner, i):
            if axis is self._vector_axis():
                self._enter(axis, inner, i, masked, stop)
            else:
                self._count(axis, inner, i)
            self._body(inner.inside(), kept)
        self._leave(inner)
        self._mask = outer_mask

    def _body(self, section: Section, kept: dict[Expr, Any]) -> None:
        """Compute and store every root at the current index."""
        index = self.space.index
        for root in self.group.roots:
            if root in self._columns and root not in kept:
                self._combine_in_memory(section, root, self.read(root.operands[0], index, None))
                continue
            if root not in kept:
                value = root.rule.value(self, root, index, None)
                value = self.language.cast(value, root.dtype)
                if isinstance(root.rule, SliceUpdate):
                    self._put(section, root, value, root.rule.place(index))
                    continue
                self._memo[root, index, None] = value
                if root in self._stored or root in self.fused.local:
                    self._put(section, root, value, index)
                continue
            (x,) = root.operands
            for row in self._each_row(kept[root]):
                term = x.rule
                if (
                    isinstance(row, SumAccumulator)
                    and isinstance(term, ContractionTerm)
                    and _is_product(x)
                ):
                    places = [aligned(index, y.shape, x.shape) for y in x.operands]
                    pairs = zip(x.operands, places, strict=True)
                    factors = [self.read(y, place, None) for y, place in pairs]
                    row.step_product(section, factors, term.is_strong, self._mask)
                    continue
                value = self.read(x, index, None)
                if _monoid(root).startswith("arg"):
                    value = (value, self._flat_position(root))
                row.step(section, value, self._mask)

    def _flat_position(self, root: Expr) -> Any:
        """The flat position along the reduced axes."""
        (x,) = root.operands
        axes = root.rule.axes  # type: ignore[attr-defined]
        lengths = [x.shape[k] for k in axes]
        forms = [self.space.index[k] for k in axes]
        return self.lane_of(offset_of(tuple(forms), strides_of(lengths)))

    def _kept_index(self, root: Expr) -> tuple[Affine, ...]:
        axes = root.rule.axes  # type: ignore[attr-defined]
        return tuple(ZERO if k in axes else f for k, f in enumerate(self.space.index))


def named(text: str, name: str) -> str:
    """The text of a nest under another name."""
    return text.replace("@nest(", f"@{name}(", 1)


def _is_product(x: Expr) -> bool:
    """Whether a term of a sum is the product of two numbers, and not in memory."""
    return not x.is_root and len(x.operands) == 2 and all(y.dtype == x.dtype for y in x.operands)


def _monoid(root: Expr) -> str:
    return root.rule.monoid  # type: ignore[attr-defined,no-any-return]


def extent_of(nest: Any) -> Length:
    """The length of the outermost loop."""
    rows = [n for n in nest.group.space[: nest.fused.rows] if not is_one(n)]
    if rows:
        return rows[0]
    if nest.space.strips:
        return nest.space.axes[nest.space.vector].length
    return nest.space.axes[0].length if nest.space.axes else 1


def steps_of(nest: LoopNest) -> float:
    """How often a call of a nest runs its innermost code; infinity if sizes decide that."""
    most = 0.0
    for group, space in zip(nest.fused.groups, nest.spaces, strict=True):
        lengths = [*group.space[: nest.fused.rows], *[axis.length for axis in space.axes]]
        if any(type(n) is not int for n in lengths):
            return math.inf
        steps = math.prod(lengths)
        if space.vector is not None:
            length: Any = space.axes[space.vector].length
            steps = steps // max(length, 1) * -(-length // space.width)
        most = max(most, steps)
    return most
