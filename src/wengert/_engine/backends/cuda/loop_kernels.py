"""Loops of a batch as one kernel: each thread runs all steps of some rows.

A loop over a batch (`vmap` of a `scan`) has a carry whose first axis is the batch. Where each row
of a step depends on the same row of the step before only, rows need not wait for each other:

    for each row of the thread:  for each step:  the loop groups of the body, for this row

The carry has two buffers, which are read and written in turn. What has no batch axis (a counter, a
time) has a copy for each row.

    LoopKernel        such a loop: its kernel, and how its caller passes arrays
    loop_kernel_of    the kernel of a loop; None if its rows depend on each other
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from wengert._engine.core.node import Node
from wengert._engine.core.symbolic.dim import Dim, Length, names_in

from ..llvm.codegen.loop_nests import LoopNest, extent_of
from ..llvm.ir.affine import FlatIndex, counter, size_of
from ..llvm.ir.ir_builder import Function, ModuleBuilder, Name, Section
from ..llvm.ir.llvm_types import I64
from ..llvm.ir.scalar_language import Language
from ..llvm.ir.simd_value import Lane
from ..llvm.lowering.loop_ir import Expr, Stored
from ..llvm.lowering.slice_updates import SliceUpdate
from ..llvm.schedule.fusion import FusedLoops, LoopGroup
from ..llvm.schedule.scheduling import Schedule
from .kernel_codegen import DeviceKernel, UnsupportedKernel

_LEAST_ROWS = 32  # a smaller batch does not keep a device busy


@dataclass(frozen=True)
class LoopKernel:
    """The kernel of a loop.

    Attributes
    ----------
    kernel : DeviceKernel
        Its arguments are the addresses of `fixed`, two of each carry, of stacked inputs and
        outputs, of `buffers`, the sizes, then rows and steps.
    plan : Schedule
        The schedule of the body.
    rows : Length
        The length of the batch.
    fixed : tuple of Expr
        Inputs and constants that are the same in each step.
    buffers : tuple of Expr
        Results of a step that only this step reads.
    sizes : tuple of str
        Names of sizes.
    private : frozenset of Expr
        What has no batch axis, and one copy for each row.
    """

    kernel: DeviceKernel
    plan: Schedule
    rows: Length
    fixed: tuple[Expr, ...]
    buffers: tuple[Expr, ...]
    sizes: tuple[str, ...]
    private: frozenset[Expr]


def loop_kernel_of(node: Node, name: str, opaque: set[str]) -> LoopKernel | None:
    """The kernel of a loop whose length is known before it starts, or None."""
    params = node.params
    plan = Schedule(params["body"], separate=True, opaque=opaque)
    if not all(isinstance(stage, FusedLoops) for stage in plan.stages):
        return None
    groups = [stage.groups[0] for stage in plan.stages if isinstance(stage, FusedLoops)]
    first = len(plan.inputs) - params["carried"] - params["stacked"]
    carries = plan.inputs[first : first + params["carried"]]
    for rows in dict.fromkeys(x.shape[0] for x in carries if x.shape):
        if type(rows) is int and rows < _LEAST_ROWS:
            continue
        if _is_by_rows(plan, groups, rows, plan.inputs[first:]):
            try:
                return _LoopCodegen(plan, groups, rows, params, name).made()
            except UnsupportedKernel:
                return None
    return None


def _has_rows(x: Expr, rows: Length) -> bool:
    return bool(x.shape) and bool(x.shape[0] == rows)


def _is_by_rows(
    plan: Schedule, groups: Sequence[LoopGroup], rows: Length, varying: Sequence[Expr]
) -> bool:
    """Whether each row of a step depends on the same row of what varies only."""
    changing = {*varying, *[r for group in groups for r in group.roots]}
    row = counter(0)
    for group in groups:
        by_rows = bool(group.space) and bool(group.space[0] == rows)
        if by_rows and group.reduced is not None and 0 in group.reduced:
            return False
        for root in group.roots:
            if isinstance(root.rule, SliceUpdate) or _has_rows(root, rows) != by_rows:
                return False
            for access in plan.accesses(root):
                x, index = access.expr, access.index
                if x not in changing or not _has_rows(x, rows):
                    continue
                if not by_rows or index is None or isinstance(index, FlatIndex):
                    return False
                if index[0] != row:
                    return False
    return True


class _LoopCodegen:
    """The code of one loop."""

    def __init__(
        self,
        plan: Schedule,
        groups: Sequence[LoopGroup],
        rows: Length,
        params: Any,
        name: str,
    ) -> None:
        self.plan, self.rows, self.params, self.name = plan, rows, params, name
        self.module = ModuleBuilder()
        self.language = Language(self.module)
        stored = set(plan.stored)
        self.nests = [
            LoopNest(self.language, FusedLoops([g], int(self._is_row(g))), stored, 0)
            for g in groups
        ]
        entries = {e: None for nest in self.nests for e in nest.table}
        count, carried = len(plan.inputs), params["carried"]
        first = count - carried - params["stacked"]
        self.carries = plan.inputs[first : first + carried]
        self.rows_in = plan.inputs[first + carried :]
        self.next, self.rows_out = plan.outputs[:carried], plan.outputs[carried:]
        known = {*self.carries, *self.rows_in, *plan.outputs}
        arrays = [e for e in entries if isinstance(e, Expr) and e not in known]
        self.fixed = tuple(e for e in arrays if isinstance(e.rule, Stored))
        self.buffers = tuple(e for e in arrays if not isinstance(e.rule, Stored))
        loop_arrays = (*self.carries, *self.buffers, *self.next)
        shapes = [n for x in (*plan.inputs, *plan.outputs, *loop_arrays) for n in x.shape]
        self.sizes = tuple(sorted({e for e in entries if isinstance(e, str)} | names_in(shapes)))
        self.private = frozenset(x for x in loop_arrays if not _has_rows(x, rows))

    def _is_row(self, group: LoopGroup) -> bool:
        return bool(group.space) and bool(group.space[0] == self.rows)

    def made(self) -> LoopKernel:
        """The kernel.

        Raises
        ------
        UnsupportedKernel
            It calls a function that is not part of it.
        """
        for k, nest in enumerate(self.nests):
            text = nest.function.text().replace("@nest(", f"@{self.name}_elements{k}(", 1)
            self.module.parts[f"{self.name}_elements{k}"] = text
            if nest.needs_runtime:
                raise UnsupportedKernel(self.name)
        for part, text in self.module.parts.items():
            if text.startswith("declare") and not part.startswith("llvm."):
                raise UnsupportedKernel(part)
        may_fail = any(nest.may_fail for nest in self.nests)
        self._write(may_fail)
        kernel = DeviceKernel(self.name, dict(self.module.parts), (), self.rows, 0, may_fail)
        return LoopKernel(
            kernel, self.plan, self.rows, self.fixed, self.buffers, self.sizes, self.private
        )

    # ---- the function --------------------------------------------------------------------------

    def _write(self, may_fail: bool) -> None:
        arguments = [("ptr", f"fixed{k}") for k in range(len(self.fixed))]
        for k in range(len(self.carries)):
            arguments += [("ptr", f"even{k}"), ("ptr", f"odd{k}")]
        arguments += [("ptr", f"in{k}") for k in range(len(self.rows_in))]
        arguments += [("ptr", f"out{k}") for k in range(len(self.rows_out))]
        arguments += [("ptr", f"buffer{k}") for k in range(len(self.buffers))]
        arguments += [("i64", f"size{k}") for k in range(len(self.sizes))]
        arguments += [("ptr", "status")] * may_fail
        arguments += [("i64", n) for n in ("rows", "steps", "first", "stride")]
        function = Function(self.module, self.name, arguments, "void", "#1", linkage="")
        tables = [function.slot(f"[{len(nest.table) + 1} x i64]", 8) for nest in self.nests]
        self.language.home = head = function.body.inside()
        self._lengths: dict[Any, Name] = {}
        self._head = head
        with (
            function.body.loop("%first", "%rows", "%stride") as (outer, row),
            outer.loop("0", "%steps") as (s, step),
        ):
            self._step(s, row, step, tables)
        function.body.write("ret void")
        self.module.add(function)

    def _step(self, s: Section, row: Name, step: Name, tables: Sequence[Name]) -> None:
        """All loop groups of one step, for one row."""
        place = step
        if self.params["reverse"]:
            place = s.minus(s.minus("%steps", "1"), step)
        is_odd = s.value(f"trunc i64 {step} to i1")
        addresses = self._addresses(s, row, place, is_odd)
        following = s.plus(row, "1")
        for k, (nest, table) in enumerate(zip(self.nests, tables, strict=True)):
            s.write(f"store i64 0, ptr {table}")
            for j, entry in enumerate(nest.table, 1):
                target = s.value(f"getelementptr i64, ptr {table}, i64 {j}")
                if isinstance(entry, str):
                    s.write(f"store i64 %size{self.sizes.index(entry)}, ptr {target}")
                else:
                    s.write(f"store ptr {addresses[entry]}, ptr {target}")
            span = f"i64 {row}, i64 {following}"
            if not nest.fused.rows:
                span = f"i64 0, i64 {self._number(extent_of(nest))}"
            s.write(f"call void @{self.name}_elements{k}(ptr {table}, {span}, i64 0)")
            if nest.may_fail:
                status = s.value(f"load i64, ptr {table}")
                with s.when(s.value(f"icmp ne i64 {status}, 0")) as failed:
                    failed.write(f"store i64 {status}, ptr %status")

    def _addresses(self, s: Section, row: Name, place: Name, is_odd: Name) -> dict[Any, Name]:
        """Where each array is in this step; of private ones the copy of this row."""
        found: dict[Any, Name] = {x: f"%fixed{k}" for k, x in enumerate(self.fixed)}
        for k, (old, new) in enumerate(zip(self.carries, self.next, strict=True)):
            now = s.value(f"select i1 {is_odd}, ptr %odd{k}, ptr %even{k}")
            then = s.value(f"select i1 {is_odd}, ptr %even{k}, ptr %odd{k}")
            found[old], found[new] = self._own(s, old, now, row), self._own(s, new, then, row)
        for k, x in enumerate(self.rows_in):
            found[x] = self._offset(s, f"%in{k}", place, x)
        for k, x in enumerate(self.rows_out):
            found[x] = self._offset(s, f"%out{k}", place, x)
        for k, x in enumerate(self.buffers):
            found[x] = self._own(s, x, f"%buffer{k}", row)
        return found

    def _own(self, s: Section, x: Expr, base: Name, row: Name) -> Name:
        return self._offset(s, base, row, x) if x in self.private else base

    def _offset(self, s: Section, base: Name, count: Name, x: Expr) -> Name:
        """An address after a number of arrays like this one."""
        size = self._number(size_of(x.shape) * x.dtype.itemsize)
        return s.value(f"getelementptr i8, ptr {base}, i64 {s.times(count, size)}")

    def _number(self, length: Length) -> Name:
        """A length, from the sizes that are arguments."""
        if not isinstance(length, Dim):
            return str(length)
        found = self._lengths.get(length)
        if found is None:
            sizes = {
                n: Lane(self.language, self._head, f"%size{self.sizes.index(n)}", I64, 1)
                for n in names_in((length,))
            }
            found = self._lengths[length] = length.replace(sizes).name  # type: ignore[arg-type,union-attr]
        return found
