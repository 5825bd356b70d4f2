"""Integrals in native code: the integrand is a function that QUADPACK's routine calls.

    QuadratureCodegen   the code of an integral

The routine (kernels/quadpack) passes a context and addresses of points and values.  The context has
the other arguments of the integrand's function: the frame, the captured values, its workspace.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wengert._engine.core.symbolic.dim import Length

from ..codegen.function import LINE, FunctionCodegen
from ..codegen.program_context import ProgramContext
from ..ir.ir_builder import Function, Section
from ..ir.llvm_types import F64, literal
from ..kernels import ArrayPointer, quadpack
from ..lowering.loop_ir import Expr
from ..schedule.integer_ranges import Integers

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
        self.context.steps.symbols[quadpack.NAME] = quadpack.address_of(quadpack.NAME)
        callee = routine.module.declare(quadpack.NAME, "i64", quadpack.KINDS)
        listed = ", ".join(f"{t} {x}" for t, x in zip(quadpack.KINDS, given, strict=True))
        status = section.value(f"call i64 {callee}({listed})")
        routine.leave_if_not_zero(section, status)
        routine.work_bytes = routine.work_bytes + (1 << 30)
