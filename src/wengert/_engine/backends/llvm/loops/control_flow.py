"""Loops in native code.

A loop calls the function of its body (loops/loop_body.py) with the addresses that the step reads
and writes.  Carried values alternate between two buffers, without copies; if a step may overwrite
its inputs, there is one buffer; numbers stay in registers.

    ScanCodegen, WhileCodegen  the code of each
    checkpointed_forward       a loop that stores checkpoints for the backward pass
                               (loops/checkpoint_storage.py)
    CarriedBuffers             the buffers of carried values
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from wengert._engine.core.graph_classes import Body
from wengert._engine.core.symbolic.dim import Length

from ..codegen.function import LINE, FunctionCodegen, bytes_of
from ..codegen.program_context import ProgramContext
from ..ir.index_analysis import is_one, size_of
from ..ir.ir_builder import Section
from ..kernels import ArrayPointer
from ..lowering.loop_ir import Expr
from ..schedule.integer_ranges import InputFacts, Integers, loop_facts
from ..tuning import thresholds
from .carried_elements import CarriedElements, with_elements
from .checkpoint_storage import CheckpointWriter
from .in_place import carried_pairs
from .loop_body import InterruptChecks

Arrays = Sequence[ArrayPointer]
Exprs = Sequence[Expr]


class LoopCodegen:
    """The common part of scans and while loops.

    Parameters
    ----------
    params : mapping
        The parameters of the node: the body, and how many of its inputs are carried and stacked.
    elements : CarriedElements, optional
        Elements of arrays that are carried as well, after the values of the node.
    facts : callable, optional
        ``facts(body, carried)`` is what is known of the inputs of the body.
    """

    def __init__(
        self,
        context: ProgramContext,
        params: Mapping[str, Any],
        elements: CarriedElements | None = None,
        facts: Callable[[Body, int], InputFacts | None] = lambda body, carried: None,
    ) -> None:
        self.elements = elements
        self.own = params["carried"]
        self.context, self.params = context, params if elements is None else elements.params
        body: Body = self.params["body"]
        self.carried = self.params["carried"]
        self.stacked = self.params.get("stacked", 0)
        self.fixed = len(body.inputs) - self.carried - self.stacked
        known = facts(body, self.carried)
        self.body = context.body(body, carried_pairs(self.params), known)
        state = self.body.plan.inputs[self.fixed : self.fixed + self.carried]
        total = sum(_known_bytes(x) for x in state)
        self.in_place = self.body.in_place
        if self.body.is_straight and total <= thresholds.loop_register_bytes:
            self.in_registers = [True] * self.carried
        else:
            self.in_registers = [_is_number(x) for x in state]
        self.sizes = [bytes_of(x) for x in state]
        self.state = state
        self._workspace: list[tuple[Any, Length]] = []

    def reserve_workspace(self, total: Length) -> Length:
        """Reserve workspace for the body and for carried values; returns the new total."""
        wanted: list[Any] = [("work", self.body.needs)]
        own = [self.in_place[k] or self.in_registers[k] for k in range(self.carried)]
        wanted += [(k, n) for k, n in enumerate(self.sizes) if not own[k]]
        for k, element in enumerate(() if self.elements is None else self.elements.elements):
            if element.is_column:
                wanted.append((("column", k), self.sizes[self.own + k]))
        for key, size in wanted:
            if type(size) is not int or size > 0:
                self._workspace.append((key, total))
                total = total + (-(-size // LINE) * LINE if type(size) is int else size + LINE)
        return total

    def set_workspace(self, routine: FunctionCodegen, base: str) -> None:
        """Set the base address of the workspace."""
        self.memory = {key: routine.inside(base, offset) for key, offset in self._workspace}

    def overwrites(self, position: int) -> bool:
        """Whether a result is written over the value that is carried into the first step."""
        return position < self.own and (self.in_place[position] or self.in_registers[position])

    def work(self) -> str:
        """The workspace of the body."""
        return self.memory.get("work", "null")

    def _memory_of_column(self, k: int) -> str:
        return self.memory["column", k]

    def outputs(self, parts: Sequence[Expr]) -> Sequence[Expr]:
        """The results of the loop, without the checkpoints, which are last."""
        return parts[:-1] if "loop" in self.params else parts

    def checkpoint_writer(
        self, routine: FunctionCodegen, section: Section, parts: Sequence[Expr], count: str | None
    ) -> CheckpointWriter | None:
        """The writer of checkpoints, if the loop stores any."""
        if "loop" not in self.params:
            return None
        base = routine.result(parts[-1]).pointer
        return CheckpointWriter(self.params, self.state, routine, section, base, count)


class CarriedBuffers:
    """The buffers of carried values, from step to step.

    A value that a step may overwrite has one.  The others have two: numbers are copied from the
    second to the first after each step, so that both are registers, and arrays alternate.
    """

    def __init__(
        self,
        loop: LoopCodegen,
        routine: FunctionCodegen,
        section: Section,
        init: Sequence[str],
        out: Sequence[str],
        first_to_out: str,
    ) -> None:
        self.loop, self.routine, self.out = loop, routine, out
        self.sizes = [routine.number(n) for n in loop.sizes]
        self.current: list[str] = []
        self.next: list[str] = []
        self.alternate = [
            not x and not y for x, y in zip(loop.in_place, loop.in_registers, strict=True)
        ]
        for k, (source, target) in enumerate(zip(init, out, strict=True)):
            if loop.in_registers[k]:
                now = following = self._register(k)
                section.copy_bytes(now, source, self.sizes[k])
                if not loop.in_place[k]:
                    following = self._register(k)
            elif loop.in_place[k]:
                now = following = target
                distinct = section.value(f"icmp ne ptr {source}, {target}")
                with section.when(distinct) as inner:
                    inner.copy_bytes(target, source, self.sizes[k])
            else:
                now, following = routine.function.slot("ptr"), routine.function.slot("ptr")
                section.write(f"store ptr {source}, ptr {now}")
                other = loop.memory.get(k, target)
                first = section.value(f"select i1 {first_to_out}, ptr {target}, ptr {other}")
                section.write(f"store ptr {first}, ptr {following}")
            self.current.append(now)
            self.next.append(following)

    def _register(self, k: int) -> str:
        return self.routine.function.slot(f"[{max(int(self.sizes[k]), 1)} x i8]", LINE)

    def read(self, section: Section) -> list[str]:
        """The addresses that a step reads from."""
        return self._addresses(section, self.current)

    def written(self, section: Section) -> list[str]:
        """The addresses that a step writes to."""
        return self._addresses(section, self.next)

    def _addresses(self, section: Section, buffers: Sequence[str]) -> list[str]:
        return [
            section.value(f"load ptr, ptr {x}") if alternates else x
            for x, alternates in zip(buffers, self.alternate, strict=True)
        ]

    def swap(self, section: Section, written: Sequence[str]) -> None:
        """Let the next step read what this one has written."""
        for k, (now, following) in enumerate(zip(self.current, self.next, strict=True)):
            if self.alternate[k]:
                other, out = self.loop.memory.get(k, self.out[k]), self.out[k]
                section.write(f"store ptr {written[k]}, ptr {now}")
                is_out = section.value(f"icmp eq ptr {written[k]}, {out}")
                unused = section.value(f"select i1 {is_out}, ptr {other}, ptr {out}")
                section.write(f"store ptr {unused}, ptr {following}")
            elif now != following:
                section.copy_bytes(now, following, self.sizes[k])

    def finish(self, section: Section) -> None:
        """Copy the carried values to the results."""
        for k, now in enumerate(self.current):
            if not self.alternate[k]:
                if now != self.out[k]:
                    section.copy_bytes(self.out[k], now, self.sizes[k])
                continue
            last = section.value(f"load ptr, ptr {now}")
            is_distinct = section.value(f"icmp ne ptr {last}, {self.out[k]}")
            with section.when(is_distinct) as inner:
                inner.copy_bytes(self.out[k], last, self.sizes[k])


class ScanCodegen(LoopCodegen):
    """A loop whose length is known when it begins."""

    def __init__(self, context: ProgramContext, step: Expr, known: Integers) -> None:
        params = step.node.params
        if "loop" in params:  # with checkpoints
            super().__init__(context, params)
            return
        facts = functools.partial(loop_facts, known, step.node)
        super().__init__(context, params, with_elements(params), facts)

    def run(
        self, routine: FunctionCodegen, section: Section, operands: Arrays, parts: Exprs
    ) -> None:
        """Emit the loop."""
        params, operands = self.params, list(operands)
        if params["counted"]:
            given = section.value(f"load i64, ptr {operands.pop(0).pointer}")
            count = section.larger(given, "0")
            self._allocate_results(routine, section, self.outputs(parts), count)
        else:
            count = routine.number(params["length"])
        checkpoints = self.checkpoint_writer(routine, section, parts, count)
        parts = self.outputs(parts)
        first, xs = operands[: self.fixed + self.own], operands[self.fixed + self.own :]
        results = [routine.result(p).pointer for p in parts]
        consts = [x.pointer for x in first[: self.fixed]]
        init, out = [x.pointer for x in first[self.fixed :]], results[: self.own]
        if self.elements is not None:
            memory = self._memory_of_column
            read_before = self.elements.begin(routine, section, first, count, memory)
            init, out = init + read_before, out + read_before
        odd = section.value(f"trunc i64 {count} to i1")
        carry = CarriedBuffers(self, routine, section, init, out, odd)
        rows = [(x.pointer, row(routine, x.shape, x.dtype)) for x in xs]
        outputs_by_row = [
            (p, row(routine, part.shape, part.dtype))
            for p, part in zip(results[self.own :], parts[self.own :], strict=True)
        ]
        last = section.value(f"sub i64 {count}, 1")
        interrupts = InterruptChecks(routine.module, section, self.body.is_light)
        with section.loop("0", count) as (inner, i):
            k = inner.value(f"sub i64 {last}, {i}") if params["reverse"] else i
            x_rows = [row_address(inner, p, k, n) for p, n in rows]
            y_rows = [row_address(inner, p, k, n) for p, n in outputs_by_row]
            read, written = carry.read(inner), carry.written(inner)
            if checkpoints is not None:
                checkpoints.visit(inner, i, read)
            self.body.call(
                routine, inner, [*consts, *read, *x_rows], [*written, *y_rows], self.work()
            )
            carry.swap(inner, written)
            routine.leave_if_not_zero(inner, interrupts.check(inner, i))
        carry.finish(section)
        if isinstance(params["length"], int):
            routine.work_bytes = routine.work_bytes + params["length"] * (self.body.work_bytes + 8)
        else:
            routine.work_bytes = routine.work_bytes + (1 << 30)

    def _allocate_results(
        self, routine: FunctionCodegen, section: Section, parts: Sequence[Expr], count: str
    ) -> None:
        """Allocate stacked results, now that their size is known."""
        ys = parts[self.own :]
        if not ys:
            return
        routine.bind_length(self.params["length"], section, count)
        for part in ys:
            routine.allocate(section, part)


class WhileCodegen(LoopCodegen):
    """A loop that ends when its condition is false."""

    def __init__(self, context: ProgramContext, step: Expr, known: Integers) -> None:
        super().__init__(context, step.node.params)
        self.condition = context.body(self.params["condition"])

    def reserve_workspace(self, total: Length) -> Length:
        """Reserve workspace for the condition too."""
        total = super().reserve_workspace(total)
        size = self.condition.needs
        if type(size) is not int or size > 0:
            self._workspace.append(("condition", total))
            total = total + size + LINE
        return total

    def run(
        self, routine: FunctionCodegen, section: Section, operands: Arrays, parts: Exprs
    ) -> None:
        """Emit the loop."""
        checkpoints = self.checkpoint_writer(routine, section, parts, None)
        parts = self.outputs(parts)
        consts = [x.pointer for x in operands[: self.fixed]]
        results = [routine.result(p).pointer for p in parts[: self.carried + 1]]
        out = results[: self.carried]
        init = [x.pointer for x in operands[self.fixed :]]
        carry = CarriedBuffers(self, routine, section, init, out, "true")
        steps = routine.function.slot("i64")
        section.write(f"store i64 0, ptr {steps}")
        flag = routine.function.slot("i8")
        stacks = _GrowingStacks(routine, section, parts[self.carried + 1 :])
        interrupts = InterruptChecks(routine.module, section, self.body.is_light)
        n = routine.function.number()
        section.block(f"while{n}")
        head = section.inside()
        read = carry.read(head)
        test = self.memory.get("condition", "null")
        self.condition.call(routine, head, [*consts, *read], [flag], test)
        holds = head.value(f"trunc i8 {head.value(f'load i8, ptr {flag}')} to i1")
        head.write(f"br i1 {holds}, label %do{n}, label %done{n}")
        section.label(f"do{n}")
        inner = section.inside()
        count = inner.value(f"load i64, ptr {steps}")
        if self.params["limit"] is not None:
            over = inner.value(f"icmp sge i64 {count}, {self.params['limit']}")
            routine.leave_if_not_zero(inner, inner.value(f"zext i1 {over} to i64"))
        y_rows = stacks.rows(inner, count)
        read, written = carry.read(inner), carry.written(inner)
        if checkpoints is not None:
            checkpoints.visit(inner, count, read)
        self.body.call(routine, inner, [*consts, *read], [*written, *y_rows], self.work())
        carry.swap(inner, written)
        routine.leave_if_not_zero(inner, interrupts.check(inner, count))
        following = inner.value(f"add i64 {count}, 1")
        inner.write(f"store i64 {following}, ptr {steps}")
        inner.write(f"br label %while{n}")
        section.label(f"done{n}")
        carry.finish(section)
        total = section.value(f"load i64, ptr {steps}")
        section.write(f"store i64 {total}, ptr {results[self.carried]}")
        if stacks.parts:
            routine.bind_length(self.params["length"], section, total)
            stacks.set_result_pointers(section)
        routine.work_bytes = routine.work_bytes + (1 << 30)


class _GrowingStacks:
    """Memory that grows with the number of steps of a loop."""

    def __init__(self, routine: FunctionCodegen, section: Section, parts: Sequence[Expr]) -> None:
        self.routine, self.parts = routine, parts
        self.sizes = [row(routine, p.shape, p.dtype) for p in parts]
        self.slots = [routine.allocation_slot() for _ in parts]
        self.capacity = routine.function.slot("i64")
        section.write(f"store i64 0, ptr {self.capacity}")
        largest = "1"
        for size in self.sizes:
            largest = section.larger(largest, size)
        rows = section.value(f"sdiv i64 {thresholds.growing_stack_bytes}, {largest}")
        self.first = section.larger(rows, "1")

    def rows(self, section: Section, count: str) -> list[str]:
        """The addresses of the rows of this step, in memory allocated as needed."""
        if not self.parts:
            return []
        routine = self.routine
        alloc = routine.runtime("wengert_alloc", "ptr", ["i64"])
        routine.module.allocations.append((routine.function.name, None))
        free = routine.runtime("wengert_free", "void", ["ptr"])
        capacity = section.value(f"load i64, ptr {self.capacity}")
        full = section.value(f"icmp sge i64 {count}, {capacity}")
        with section.when(full) as more:
            twice = more.value(f"mul i64 {capacity}, 2")
            new_capacity = more.larger(twice, self.first)
            for slot, size in zip(self.slots, self.sizes, strict=True):
                total = more.value(f"mul i64 {new_capacity}, {size}")
                pointer = more.value(f"call ptr {alloc}(i64 {more.value(f'or i64 {total}, 1')})")
                routine.leave_without(more, pointer)
                old = more.value(f"load ptr, ptr {slot}")
                used = more.value(f"mul i64 {count}, {size}")
                more.copy_bytes(pointer, old, used)
                more.write(f"call void {free}(ptr {old})")
                more.write(f"store ptr {pointer}, ptr {slot}")
            more.write(f"store i64 {new_capacity}, ptr {self.capacity}")
        found = []
        for slot, size in zip(self.slots, self.sizes, strict=True):
            found.append(row_address(section, section.value(f"load ptr, ptr {slot}"), count, size))
        return found

    def set_result_pointers(self, section: Section) -> None:
        for slot, part in zip(self.slots, self.parts, strict=True):
            self.routine.set_pointer(part, section.value(f"load ptr, ptr {slot}"))


def checkpointed_forward(context: ProgramContext, step: Expr, known: Integers) -> LoopCodegen:
    """A loop that stores checkpoints."""
    codegen = ScanCodegen if step.node.params["loop"] == "scan" else WhileCodegen
    return codegen(context, step, known)


def _known_bytes(expr: Expr) -> int:
    size = bytes_of(expr)
    return size if type(size) is int else thresholds.workspace_stack_bytes


def _is_number(expr: Expr) -> bool:
    return all(map(is_one, expr.shape))


def row(routine: FunctionCodegen, shape: Sequence[Length], dtype: np.dtype[Any]) -> str:
    """The size of one row in bytes."""
    return routine.number(size_of(shape[1:]) * dtype.itemsize)


def row_address(section: Section, pointer: str, k: str, size: str) -> str:
    """The address of row k."""
    skipped = section.value(f"mul i64 {k}, {size}")
    return section.value(f"getelementptr i8, ptr {pointer}, i64 {skipped}")
