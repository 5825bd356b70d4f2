"""Branches, bodies with computed lengths, and integrals, in native code.

BranchCodegen        one of several bodies
SizedCodegen         a body with lengths that the run computes
QuadratureCodegen    an integral, whose integrand is a function that QUADPACK's routine calls

That routine (kernels/quadpack) passes a context and addresses of points and values.  The context
has the other arguments of the integrand's function: the frame, the captured values, its workspace.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wengert._engine.core.symbolic.dim import Length

from ..codegen.function import LINE, FunctionCodegen, bytes_of
from ..codegen.program_context import ProgramContext
from ..ir.ir_builder import Function, Section
from ..ir.llvm_types import F64, literal
from ..kernels import ArrayPointer
from ..kernels.index import address_of
from ..kernels.quadpack import routine as quadpack
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


# ---- integrals -----------------------------------------------------------------------------------


_WORD = 8  # bytes


class QuadratureCodegen:
    """An integral."""

    def __init__(self, context: ProgramContext, step: Expr, known: Integers) -> None:
        self.context, self.params = context, step.node.params
        self.body = context.body(self.params["body"], is_unrolled=False)
        values = self.body.plan.outputs[0]
        self._nodes, self._width = (int(n) for n in (*values.shape, 1)[:2])
        self._words = quadpack.work_words(self.params["limit"], self._nodes, self._width)
        self._function = self._integrand()

    def reserve_workspace(self, total: Length) -> Length:
        """Reserve workspace for the routine and the integrand; returns the new total."""
        self._offsets = total, total + self._words * _WORD + LINE
        needs: Length = self.body.needs
        return self._offsets[1] + needs + LINE

    def set_workspace(self, routine: FunctionCodegen, base: str) -> None:
        """Set the base address of the workspace."""
        self._work, self._own = (routine.inside(base, x) for x in self._offsets)

    def overwrites(self, position: int) -> bool:
        """Whether a result is written over an operand."""
        return False

    def _integrand(self) -> str:
        """The function that the routine calls: ``i64 f(context, x, values)``."""
        body = self.body
        name = f"integrand.{body.name}"
        if name in self.context.module:
            return name
        arguments = [("ptr", "context"), ("ptr", "x"), ("ptr", "values")]
        function = Function(self.context.module, name, arguments, "i64", "nounwind #1")
        section = function.body

        def word(k: int, kind: str) -> str:
            place = section.value(f"getelementptr i64, ptr %context, i64 {k}")
            return section.value(f"load {kind}, ptr {place}")

        count = len(body.plan.inputs) - 1
        given = [f"ptr {word(k, 'ptr')}" for k in range(count + 1)]  # the frame, captured values
        given += ["ptr %x", "ptr %values", f"ptr {word(count + 1, 'ptr')}"]
        given += [f"i64 {word(count + 2 + k, 'i64')}" for k in range(len(body.sizes))]
        listed = ", ".join(given)
        section.write(f"ret i64 {section.value(f'call i64 @{body.name}({listed})')}")
        self.context.module.add(function)
        return name

    def run(
        self,
        routine: FunctionCodegen,
        section: Section,
        operands: Sequence[ArrayPointer],
        parts: Sequence[Expr],
    ) -> None:
        """Emit the call of the routine."""
        *captured, low, high = [x.pointer for x in operands]
        words = [("ptr", x) for x in (routine.frame, *captured, self._own)]
        words += [("i64", routine.size(name)) for name in self.body.sizes]
        context = routine.function.slot(f"[{len(words)} x i64]", _WORD)
        for k, (kind, x) in enumerate(words):
            place = section.value(f"getelementptr i64, ptr {context}, i64 {k}")
            section.write(f"store {kind} {x}, ptr {place}")
        points = np.array(self.params["points"], float)
        tolerances = [literal(self.params[n], F64) for n in ("epsabs", "epsrel")]
        given = [
            f"@{self._function}",
            context,
            *[section.value(f"load double, ptr {x}") for x in (low, high)],
            *tolerances,
            str(self.params["limit"]),
            routine.constant(points) if points.size else "null",
            str(points.size),
            *(str(self._nodes), str(self._width), self._work),
            *[routine.result(p).pointer for p in parts],
        ]
        self.context.steps.symbols[quadpack.NAME] = address_of(quadpack.NAME)
        callee = routine.module.declare(quadpack.NAME, "i64", quadpack.KINDS)
        listed = ", ".join(f"{t} {x}" for t, x in zip(quadpack.KINDS, given, strict=True))
        status = section.value(f"call i64 {callee}({listed})")
        routine.leave_if_not_zero(section, status)
        routine.work_bytes = routine.work_bytes + (1 << 30)
