"""Checkpoints: states of a loop, stored for the backward pass.

The forward pass of a loop stores some of its states (`CheckpointWriter`), from which the backward
pass starts (loops/checkpointed_reverse.py).  Which ones is decided at run time, by the functions of
control_flow/checkpoint_schedule.py, which are traced to native code: row k of the storage contains
the state of the k-th step that they choose.

    schedule_call, scheduled    calls of the schedule
    CheckpointLayout            the addresses of the parts of a state
    CheckpointWriter            the stores of a forward pass
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from wengert._engine.control_flow.checkpoint_schedule import (
    advance,
    distance,
    offsets_of,
    reverses_next,
)
from wengert._engine.core.spec import Spec

from ..codegen.function import FunctionCodegen, bytes_of
from ..ir.ir_builder import Function, ModuleBuilder, Section
from ..ir.llvm_types import I64
from ..ir.scalar_language import Language
from ..ir.simd_value import Lane
from ..lowering.loop_ir import Expr
from ..special_functions.scalar_builder import ScalarBuilder
from ..special_functions.traced_scalar import Scope, TracedScalar

_SCHEDULE = {"advance": advance, "reverses_next": reverses_next, "distance": distance}
_ARGUMENTS = ("length", "slots", "block")
_ENDLESS = 1 << 62


@functools.cache
def _traced(name: str) -> str:
    """A function of the schedule as LLVM IR, with i64 arguments and result.

    Its calling convention preserves registers, because loops keep carried values in them.
    """
    module = ModuleBuilder()
    inline = "alwaysinline" if name == "reverses_next" else "noinline"
    function = Function(
        *(module, f"schedule.{name}", [("i64", n) for n in _ARGUMENTS], "i64"),
        *(f"{inline} nounwind", "internal preserve_allcc "),
    )
    scope = Scope(function.body, {})
    language = Language(module)
    language.home = scope.now
    writer = ScalarBuilder(language, scope)

    def repeat(step: Any, state: Any, going: Any) -> Any:
        now = [x if isinstance(x, TracedScalar) else writer.constant(x, scope) for x in state]
        return writer.repeat(lambda _, *values: step(*values), now, _ENDLESS, going)

    operands = [
        TracedScalar(writer, Lane(language, scope.now, f"%{n}", I64, 1), scope) for n in _ARGUMENTS
    ]
    options = {} if name == "reverses_next" else {"repeat": repeat}
    value = language.cast(_SCHEDULE[name](*operands, **options).seen_in(scope), I64)
    scope.now.write(f"ret i64 {value.name}")
    module.add(function)
    return module.parts[function.name]


def schedule_call(
    name: str,
    module: ModuleBuilder,
    section: Section,
    length: str,
    slots: str | int,
    block: str | int,
) -> str:
    """Call a function of the schedule; returns its i64 result."""
    module.include({f"schedule.{name}": _traced(name)})
    operands = f"i64 {length}, i64 {slots}, i64 {block}"
    return section.value(f"call preserve_allcc i64 @schedule.{name}({operands})")


def scheduled(
    module: ModuleBuilder, section: Section, length: str, slots: str | int, block: str | int
) -> tuple[str, str]:
    """The number of steps to take in an interval, and whether to reverse a block then (an i1)."""
    numbers = (module, section, length, slots, block)
    steps = schedule_call("advance", *numbers)
    reverses = schedule_call("reverses_next", *numbers)
    return steps, section.value(f"trunc i64 {reverses} to i1")


class CheckpointLayout:
    """The layout of states in rows of bytes.

    Parameters
    ----------
    base : str
        The address of the first row.
    parts : sequence of Expr
        The carried values.
    """

    def __init__(self, routine: FunctionCodegen, base: str, parts: Sequence[Expr]) -> None:
        self.routine, self.base = routine, base
        offsets = offsets_of([Spec(x.shape, x.dtype) for x in parts])
        self.size = routine.number(offsets[-1])
        self._offsets = [routine.number(n) for n in offsets[:-1]]
        self._sizes = [routine.number(bytes_of(x)) for x in parts]

    def row(self, section: Section, number: str) -> list[str]:
        """The addresses of the parts of a state."""
        skipped = section.value(f"mul i64 {number}, {self.size}")
        start = section.value(f"getelementptr i8, ptr {self.base}, i64 {skipped}")
        return [
            section.value(f"getelementptr i8, ptr {start}, i64 {offset}")
            for offset in self._offsets
        ]

    def copy(self, section: Section, target: Sequence[str], source: Sequence[str]) -> None:
        """Copy a state."""
        for a, b, n in zip(target, source, self._sizes, strict=True):
            section.copy_bytes(a, b, n)


class CheckpointWriter:
    """Stores checkpoints in a forward pass.

    Parameters
    ----------
    params : mapping
        The parameters of the loop: its slots and the length of a block.
    state : sequence of Expr
        The carried values.
    section : Section
        Before the loop.
    base : str
        The address of the first row.
    count : str or None
        The number of steps, if known.
    """

    def __init__(
        self,
        params: Mapping[str, Any],
        state: Sequence[Expr],
        routine: FunctionCodegen,
        section: Section,
        base: str,
        count: str | None,
    ) -> None:
        self.slots, self.block, self.count = params["slots"], params["block"], count
        self.layout = CheckpointLayout(routine, base, state)
        self._stored, self._next, self._distance = (routine.function.slot("i64") for _ in range(3))
        for slot, value in ((self._stored, 0), (self._next, 0), (self._distance, self.block)):
            section.write(f"store i64 {value}, ptr {slot}")

    def visit(self, section: Section, k: str, state: Sequence[str]) -> None:
        """Before step k: store the state if it is a checkpoint."""
        is_due = section.value(f"icmp eq i64 {k}, {section.value(f'load i64, ptr {self._next}')}")
        with section.when(is_due) as due:
            if self.count is None:
                self._visit_by_distance(due, k, state)
            else:
                stored = self._keep(due, state)
                self._plan(due, k, stored)

    def _keep(self, section: Section, state: Sequence[str]) -> str:
        stored = section.value(f"load i64, ptr {self._stored}")
        self.layout.copy(section, self.layout.row(section, stored), state)
        count = section.value(f"add i64 {stored}, 1")
        section.write(f"store i64 {count}, ptr {self._stored}")
        return count

    def _plan(self, section: Section, k: str, stored: str) -> None:
        """Set the step of the next checkpoint, in a loop of known length."""
        rest = section.value(f"sub i64 {self.count}, {k}")
        left = section.value(f"sub i64 {self.slots + 1}, {stored}")
        module = self.layout.routine.module
        steps, is_last = scheduled(module, section, rest, left, self.block)
        following = section.value(f"add i64 {k}, {steps}")
        following = section.value(f"select i1 {is_last}, i64 -1, i64 {following}")
        section.write(f"store i64 {following}, ptr {self._next}")

    def _visit_by_distance(self, section: Section, k: str, state: Sequence[str]) -> None:
        """For loops of unknown length: when the storage is full, drop every second checkpoint."""
        stored = section.value(f"load i64, ptr {self._stored}")
        is_full = section.value(f"icmp eq i64 {stored}, {self.slots}")
        with section.when(is_full) as full:
            half = (self.slots + 1) // 2
            with full.loop("1", str(half)) as (inner, j):
                twice = inner.value(f"mul i64 {j}, 2")
                target, source = self.layout.row(inner, j), self.layout.row(inner, twice)
                self.layout.copy(inner, target, source)
            distance = full.value(f"load i64, ptr {self._distance}")
            distance = full.value(f"mul i64 {distance}, 2")
            full.write(f"store i64 {distance}, ptr {self._distance}")
            full.write(f"store i64 {half}, ptr {self._stored}")
            full.write(f"store i64 {full.value(f'mul i64 {distance}, {half}')}, ptr {self._next}")
        following = section.value(f"load i64, ptr {self._next}")
        is_due = section.value(f"icmp eq i64 {k}, {following}")
        with section.when(is_due) as due:
            self._keep(due, state)
            distance = due.value(f"load i64, ptr {self._distance}")
            due.write(f"store i64 {due.value(f'add i64 {k}, {distance}')}, ptr {self._next}")
