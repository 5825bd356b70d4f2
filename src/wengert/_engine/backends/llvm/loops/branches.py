"""Branches, and bodies with computed lengths, in native code.

BranchCodegen    one of several bodies
SizedCodegen     a body with lengths that the run computes
"""

from __future__ import annotations

from collections.abc import Sequence

from wengert._engine.core.symbolic.dim import Length

from ..codegen.function import LINE, FunctionCodegen, bytes_of
from ..codegen.program_context import ProgramContext
from ..ir.ir_builder import Section
from ..kernels import ArrayPointer
from ..lowering.loop_ir import Expr
from ..schedule.integer_ranges import Integers
from .in_place import updated_results, updates_of

Arrays = Sequence[ArrayPointer]
Exprs = Sequence[Expr]


class BranchCodegen:
    """A conditional: one of several bodies runs."""

    def __init__(self, context: ProgramContext, step: Expr, known: Integers) -> None:
        self._updates = updates_of(step.node)
        self._updated = updated_results(step.node)
        # A branch that only passes operands on has no code.
        self.branches = [
            context.body(x.body, x.updates) if x.results else None for x in self._updates
        ]
        self.bodies = [b for b in self.branches if b is not None]
        self.names: tuple[str, ...] = step.node.params.get("names", ())
        self.is_bool = step.operands[0].dtype.kind == "b"
        self.which = step.operands[0].dtype
        self._offset: Length = 0

    def reserve_workspace(self, total: Length) -> Length:
        """Reserve workspace for the bodies; returns the new total."""
        self._offset = total
        needs = [b.needs for b in self.bodies if type(b.needs) is not int or b.needs > 0]
        for size in needs:
            total = total + size + LINE
        return total

    def set_workspace(self, routine: FunctionCodegen, base: str) -> None:
        """Set the base address of the workspace."""
        self._memory = []
        offset = self._offset
        for body in self.branches:
            if body is None or (type(body.needs) is int and body.needs == 0):
                self._memory.append("null")
                continue
            self._memory.append(routine.inside(base, offset))
            offset = offset + body.needs + LINE

    def run(
        self, routine: FunctionCodegen, section: Section, operands: Arrays, parts: Exprs
    ) -> None:
        """Emit the branch."""
        which, *given = operands
        inputs = [x.pointer for x in given]
        outputs = [routine.result(p).pointer for p in parts]
        number = self._number(routine, section, which)
        n = routine.function.number()
        targets = " ".join(f"i64 {k}, label %branch{n}.{k}" for k in range(len(self.branches) - 1))
        last = len(self.branches) - 1
        section.write(f"switch i64 {number}, label %branch{n}.{last} [{targets}]")
        for k, body in enumerate(self.branches):
            section.label(f"branch{n}.{k}")
            inner = section.inside()
            written = [outputs[j] for j in self._updates[k].results]
            if body is not None:
                body.call(routine, inner, inputs, written, self._memory[k])
            for j, place in self._updates[k].passed.items():
                self._pass(routine, inner, inputs[place], outputs[j], parts[j])
            inner.write(f"br label %chosen{n}")
        section.label(f"chosen{n}")
        routine.work_bytes = routine.work_bytes + max(
            [b.work_bytes for b in self.bodies if type(b.work_bytes) is int], default=0
        )

    def _pass(
        self, routine: FunctionCodegen, section: Section, source: str, target: str, part: Expr
    ) -> None:
        """Emit a result that is an operand: nothing, if it has its memory."""
        distinct = section.value(f"icmp ne ptr {source}, {target}")
        with section.when(distinct) as inner:
            inner.copy_bytes(target, source, routine.number(bytes_of(part)))

    def overwrites(self, position: int) -> bool:
        """Whether a result is written over the array of which it is a version."""
        return position in self._updated

    def _number(self, routine: FunctionCodegen, section: Section, which: ArrayPointer) -> str:
        """The number of the branch, clamped to those that exist."""
        bits = 8 * which.dtype.itemsize
        value = section.value(f"load i{bits}, ptr {which.pointer}")
        signed = "sext" if which.dtype.kind == "i" else "zext"
        if bits < 64:
            value = section.value(f"{signed} i{bits} {value} to i64")
        low, high = ("smax", "smin") if which.dtype.kind == "i" else ("umax", "umin")
        for name, bound in ((low, 0), (high, len(self.branches) - 1)):
            function = routine.module.declare(f"llvm.{name}.i64", "i64", ["i64", "i64"])
            value = section.value(f"call i64 {function}(i64 {value}, i64 {bound})")
        return value


class SizedCodegen(BranchCodegen):
    """A body with lengths that are computed by the run; without any, a function that is called."""

    def __init__(self, context: ProgramContext, step: Expr, known: Integers) -> None:
        super().__init__(context, step, known)
        if not self.names:
            for body in self.bodies:
                body.keep_separate()

    def run(
        self, routine: FunctionCodegen, section: Section, operands: Arrays, parts: Exprs
    ) -> None:
        """Emit the call."""
        lengths, *given = operands
        known = {}
        for k, name in enumerate(self.names):
            place = section.value(f"getelementptr i64, ptr {lengths.pointer}, i64 {k}")
            known[name] = section.value(f"load i64, ptr {place}")
        inputs = [x.pointer for x in given]
        outputs = [routine.result(p).pointer for p in parts]
        (body,) = self.bodies
        body.call(routine, section, inputs, outputs, self._memory[0], known)
        routine.work_bytes = routine.work_bytes + (1 << 10)
