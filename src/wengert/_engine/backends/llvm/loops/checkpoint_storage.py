"""Checkpoints: states of a loop, stored for the backward pass.

The forward pass of a loop stores some of its states (`CheckpointWriter`), from which the backward
pass starts (loops/checkpointed_reverse.py).  Which ones is decided at run time, by the rules of
control_flow/checkpoint_schedule.py in LLVM text: row k of the storage has the state of the k-th
step that they choose.

    CheckpointLayout    where the parts of a state are
    CheckpointWriter    the stores of a forward pass
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wengert._engine.backends.llvm.codegen.function import FunctionCodegen, bytes_of
from wengert._engine.backends.llvm.ir.ir_builder import ModuleBuilder, Section
from wengert._engine.backends.llvm.lowering.loop_ir import Expr
from wengert._engine.control_flow.checkpoint_budget import offsets_of
from wengert._engine.core.spec import Spec

# Numbers saturate beyond the length of any loop.  The calls preserve registers, in which loops
# around them carry values.
_RULES = """define internal preserve_allcc i64 @reach(i64 %room, i64 %times) noinline nounwind {
entry:
  %none = icmp slt i64 %times, 0
  br i1 %none, label %zero, label %start
zero:
  ret i64 0
start:
  %less = icmp slt i64 %room, %times
  %last = select i1 %less, i64 %room, i64 %times
  %sum = add i64 %room, %times
  br label %head
head:
  %k = phi i64 [ 1, %start ], [ %next, %body ]
  %found = phi i64 [ 1, %start ], [ %capped, %body ]
  %more = icmp sle i64 %k, %last
  br i1 %more, label %body, label %done
body:
  %above = add i64 %sum, 1
  %factor = sub i64 %above, %k
  %product = mul i64 %found, %factor
  %quotient = sdiv i64 %product, %k
  %large = icmp sgt i64 %quotient, 1099511627776
  %capped = select i1 %large, i64 1099511627776, i64 %quotient
  %next = add i64 %k, 1
  br label %head
done:
  ret i64 %found
}

define internal preserve_allcc i64 @split(i64 %length, i64 %room) noinline nounwind {
entry:
  %few = icmp sle i64 %length, %room
  br i1 %few, label %one, label %head
one:
  ret i64 1
head:
  %times = phi i64 [ 1, %entry ], [ %next, %body ]
  %far = call preserve_allcc i64 @reach(i64 %room, i64 %times)
  %short = icmp slt i64 %far, %length
  br i1 %short, label %body, label %done
body:
  %next = add i64 %times, 1
  br label %head
done:
  %before = sub i64 %times, 1
  %left = call preserve_allcc i64 @reach(i64 %room, i64 %before)
  %fewer = sub i64 %room, 1
  %right = call preserve_allcc i64 @reach(i64 %fewer, i64 %before)
  %rest = sub i64 %length, %right
  %less = icmp slt i64 %left, %rest
  %steps = select i1 %less, i64 %left, i64 %rest
  ret i64 %steps
}

define internal preserve_allcc i64 @blocks(i64 %length, i64 %block) alwaysinline nounwind {
entry:
  %sum = add i64 %length, %block
  %less = sub i64 %sum, 1
  %blocks = sdiv i64 %less, %block
  ret i64 %blocks
}

define internal i64 @left(
  i64 %count, i64 %slots, i64 %block, ptr %begins, ptr %ends
) noinline nounwind {
entry:
  store i64 0, ptr %begins
  br label %head
head:
  %k = phi i64 [ 0, %entry ], [ %following, %more ]
  %begin = phi i64 [ 0, %entry ], [ %middle, %more ]
  %rest = sub i64 %count, %begin
  %blocks = call preserve_allcc i64 @blocks(i64 %rest, i64 %block)
  %room = sub i64 %slots, %k
  %long = icmp sgt i64 %blocks, 1
  %free = icmp sgt i64 %room, 1
  %go = and i1 %long, %free
  %end = getelementptr i64, ptr %ends, i64 %k
  %following = add i64 %k, 1
  br i1 %go, label %more, label %done
more:
  %steps = call preserve_allcc i64 @split(i64 %blocks, i64 %room)
  %far = mul i64 %steps, %block
  %middle = add i64 %begin, %far
  store i64 %middle, ptr %end
  %next = getelementptr i64, ptr %begins, i64 %following
  store i64 %middle, ptr %next
  br label %head
done:
  store i64 %count, ptr %end
  ret i64 %following
}

define internal i64 @spread(
  i64 %count, i64 %slots, i64 %block, ptr %begins, ptr %ends
) noinline nounwind {
entry:
  br label %test
test:
  %distance = phi i64 [ %block, %entry ], [ %twice, %grow ]
  %blocks = call preserve_allcc i64 @blocks(i64 %count, i64 %distance)
  %many = icmp sgt i64 %blocks, %slots
  br i1 %many, label %grow, label %head
grow:
  %twice = mul i64 %distance, 2
  br label %test
head:
  %k = phi i64 [ 0, %test ], [ %following, %more ]
  %begin = phi i64 [ 0, %test ], [ %middle, %more ]
  %inside = icmp slt i64 %begin, %count
  br i1 %inside, label %more, label %done
more:
  %start = getelementptr i64, ptr %begins, i64 %k
  store i64 %begin, ptr %start
  %middle = add i64 %begin, %distance
  %before = icmp slt i64 %middle, %count
  %last = select i1 %before, i64 %middle, i64 %count
  %end = getelementptr i64, ptr %ends, i64 %k
  store i64 %last, ptr %end
  %following = add i64 %k, 1
  br label %head
done:
  ret i64 %k
}"""


def with_rules(module: ModuleBuilder) -> None:
    """Let the functions that say which states are kept be part of the module."""
    if "schedule" not in module:
        module.parts["schedule"] = _RULES


class CheckpointLayout:
    """Where the parts of a state lie, in rows of bytes.

    Parameters
    ----------
    routine : FunctionCodegen
    base : str
        The address of the first row.
    parts : sequence of Expr
        What is carried.
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

    def copy(self, section: Section, to: Sequence[str], of: Sequence[str]) -> None:
        """A state from one place to another."""
        function = _copying(self.routine.module)
        for a, b, n in zip(to, of, self._sizes, strict=True):
            section.write(f"call void {function}(ptr {a}, ptr {b}, i64 {n}, i1 false)")


def _copying(module: ModuleBuilder) -> str:
    return module.declare("llvm.memcpy.p0.p0.i64", "void", ["ptr", "ptr", "i64", "i1"])


class CheckpointWriter:
    """The snapshots that a loop leaves, which begins here.

    Parameters
    ----------
    params : mapping
        Of the loop: its slots and the length of a block.
    state : sequence of Expr
        What the loop carries.
    routine : FunctionCodegen
    section : Section
        Before the loop.
    base : str
        The address of the first row.
    count : str or None
        The number of steps, if it is known.
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
        self.snapshots = CheckpointLayout(routine, base, state)
        self._held, self._next, self._distance = (routine.function.slot("i64") for _ in range(3))
        for slot, value in ((self._held, 0), (self._next, 0), (self._distance, self.block)):
            section.write(f"store i64 {value}, ptr {slot}")
        with_rules(routine.module)

    def visit(self, section: Section, k: str, state: Sequence[str]) -> None:
        """Before step number k: keep the state, if it is one of those to keep."""
        is_due = section.value(f"icmp eq i64 {k}, {section.value(f'load i64, ptr {self._next}')}")
        with section.when(is_due) as due:
            if self.count is None:
                self._visit_by_distance(due, k, state)
            else:
                held = self._keep(due, state)
                self._plan(due, k, held)

    def _keep(self, section: Section, state: Sequence[str]) -> str:
        held = section.value(f"load i64, ptr {self._held}")
        self.snapshots.copy(section, self.snapshots.row(section, held), state)
        more = section.value(f"add i64 {held}, 1")
        section.write(f"store i64 {more}, ptr {self._held}")
        return more

    def _plan(self, section: Section, k: str, held: str) -> None:
        """The next step, of a loop whose length is known."""
        rest = section.value(f"sub i64 {self.count}, {k}")
        blocks = section.value(f"call preserve_allcc i64 @blocks(i64 {rest}, i64 {self.block})")
        long = section.value(f"icmp sgt i64 {blocks}, 1")
        free = section.value(f"icmp slt i64 {held}, {self.slots}")
        goes_on = section.value(f"and i1 {long}, {free}")
        less = section.value(f"sub i64 {self.slots}, {held}")
        more = section.value(f"add i64 {less}, 1")
        room = section.value(f"select i1 {goes_on}, i64 {more}, i64 1")
        blocks = section.value(f"select i1 {goes_on}, i64 {blocks}, i64 1")
        steps = section.value(f"call preserve_allcc i64 @split(i64 {blocks}, i64 {room})")
        far = section.value(f"mul i64 {steps}, {self.block}")
        following = section.value(f"add i64 {k}, {far}")
        following = section.value(f"select i1 {goes_on}, i64 {following}, i64 -1")
        section.write(f"store i64 {following}, ptr {self._next}")

    def _visit_by_distance(self, section: Section, k: str, state: Sequence[str]) -> None:
        """For loops of unknown length: when the storage is full, drop every second checkpoint."""
        held = section.value(f"load i64, ptr {self._held}")
        is_full = section.value(f"icmp eq i64 {held}, {self.slots}")
        with section.when(is_full) as full:
            half = (self.slots + 1) // 2
            with full.loop("1", str(half)) as (inner, j):
                twice = inner.value(f"mul i64 {j}, 2")
                to, of = self.snapshots.row(inner, j), self.snapshots.row(inner, twice)
                self.snapshots.copy(inner, to, of)
            distance = full.value(f"load i64, ptr {self._distance}")
            distance = full.value(f"mul i64 {distance}, 2")
            full.write(f"store i64 {distance}, ptr {self._distance}")
            full.write(f"store i64 {half}, ptr {self._held}")
            full.write(f"store i64 {full.value(f'mul i64 {distance}, {half}')}, ptr {self._next}")
        following = section.value(f"load i64, ptr {self._next}")
        still = section.value(f"icmp eq i64 {k}, {following}")
        with section.when(still) as due:
            self._keep(due, state)
            distance = due.value(f"load i64, ptr {self._distance}")
            due.write(f"store i64 {due.value(f'add i64 {k}, {distance}')}, ptr {self._next}")
