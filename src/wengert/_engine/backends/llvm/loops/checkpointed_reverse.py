"""The backward pass of a loop that stores a few states and recomputes the others, in native code.

It starts with the checkpoints of the forward pass (loops/checkpoint_storage.py), and replaces those
that it no longer needs.  The schedule is computed at run time by
control_flow/checkpoint_schedule.py: a stack of intervals of steps, each with its first step and the
step after its last.  The state before interval k is in row k.

    CheckpointedReverse    its memory and its code
"""

from __future__ import annotations

from collections.abc import Sequence

from ..codegen.function import LINE, FunctionCodegen, bytes_of
from ..codegen.program_context import ProgramContext
from ..ir.index_analysis import Length
from ..ir.ir_builder import Section
from ..lowering.loop_ir import Expr
from ..schedule.integer_ranges import Integers
from ..schedule.scheduling import owner_of
from ..schedule.workspace import ends_with
from ..tuning import thresholds
from .checkpoint_storage import CheckpointLayout, schedule_call, scheduled
from .control_flow import Arrays, CarriedBuffers, Exprs, LoopCodegen, row, row_address
from .loop_body import InterruptChecks, LoopBody


class CheckpointedReverse:
    """The backward pass of a loop that stores a few states.

    Parameters
    ----------
    step : Expr
        The opaque call in the schedule.
    """

    def __init__(self, context: ProgramContext, step: Expr, known: Integers) -> None:
        self.params = params = step.node.params
        body = params["step"]
        self.fixed = len(body.inputs) - params["carried"] - params["stacked"]
        self.step = context.body(body)
        pulled, back = params["pulled"], params["back"]
        self.keep = context.body(params["keep"])
        self.kept = self.keep.plan.outputs[params["carried"] :]
        rows = len(back.inputs) - self.fixed - params["more"] - pulled
        self.back = LoopCodegen(context, {"body": back, "carried": pulled, "stacked": rows})
        inputs = self.step.plan.inputs
        self.state = inputs[self.fixed : self.fixed + params["carried"]]
        self.sizes = [bytes_of(x) for x in self.state]
        index = params["counted"] + len(self.step.plan.inputs)
        self.snapshots = owner_of(step.operands[index])
        self.call = step
        self._offsets: dict[LoopBody, Length] = {}

    def overwrites(self, position: int) -> bool:
        """Whether a result is written over an operand."""
        return False

    def reserve_workspace(self, total: Length) -> Length:
        """Reserve workspace for both bodies; returns the new total."""
        total = self.back.reserve_workspace(total)
        for body in (self.step, self.keep):
            needs = body.needs
            if type(needs) is not int or needs > 0:
                self._offsets[body] = total
                total = total + needs + LINE
        return total

    def set_workspace(self, routine: FunctionCodegen, base: str) -> None:
        """Set the base address of the workspace."""
        self.back.set_workspace(routine, base)
        self._work = {b: routine.inside(base, offset) for b, offset in self._offsets.items()}

    def work(self, body: LoopBody) -> str:
        """The workspace of a body."""
        return self._work.get(body, "null")

    def run(
        self, routine: FunctionCodegen, section: Section, operands: Arrays, parts: Exprs
    ) -> None:
        """Emit the backward pass."""
        _ReverseLoop(self, routine, section, operands, parts).write()
        routine.work_bytes = routine.work_bytes + (1 << 30)


class _ReverseLoop:
    """Emits the code of one backward pass."""

    def __init__(
        self,
        of: CheckpointedReverse,
        routine: FunctionCodegen,
        section: Section,
        operands: Arrays,
        parts: Exprs,
    ) -> None:
        self.of, self.routine, self.section, params = of, routine, section, of.params
        self.slots, self.block = params["slots"], params["block"]
        remaining = list(operands)
        if params["counted"]:
            number = section.value(f"load i64, ptr {remaining.pop(0).pointer}")
            self.count = section.larger(number, "0")
            routine.bind_length(params["length"], section, self.count)
            for part in parts[params["pulled"] :]:
                routine.allocate(section, part)
        else:
            self.count = routine.number(params["length"])
        carried = params["carried"]
        groups = []
        for n in (of.fixed, carried, params["stacked"], 1, params["more"], params["pulled"]):
            groups.append(remaining[:n])
            del remaining[:n]
        consts, _, self.xs, [snapshots], more, starts = groups
        self.consts = [x.pointer for x in consts]
        self.more = [x.pointer for x in more]
        self.rows = remaining
        results = [routine.result(p).pointer for p in parts]
        pulled = params["pulled"]
        self.carried = CarriedBuffers(
            *(of.back, routine, section, [x.pointer for x in starts], results[:pulled], "true")
        )
        self.gives = list(zip(results[pulled:], parts[pulled:], strict=True))
        known_sizes = [n for n in of.sizes if type(n) is int]
        self.registers: list[str] = []
        if (
            of.step.is_straight
            and of.keep.is_straight
            and len(known_sizes) == len(of.sizes)
            and sum(known_sizes) <= thresholds.loop_register_bytes
        ):
            self.registers = [routine.function.slot(f"[{n} x i8]", LINE) for n in known_sizes]
        self._allocate(snapshots.pointer)

    # ---- states ----------------------------------------------------------------------------------

    def _allocate(self, base: str) -> None:
        """Allocate the states, the intervals, and the residuals of a block."""
        routine, section, slots, state = self.routine, self.section, self.slots, self.of.state
        self.states = CheckpointLayout(routine, base, state)
        if not ends_with(routine.plan, self.of.call, self.of.snapshots):
            size = section.value(f"mul i64 {self.states.size}, {slots}")
            own = routine.allocate_bytes(section, size)
            section.copy_bytes(own, base, size)
            self.states = CheckpointLayout(routine, own, state)
        self.between: CheckpointLayout | None = None
        if not self.registers:
            size = section.value(f"mul i64 {self.states.size}, 2")
            self.between = CheckpointLayout(routine, routine.allocate_bytes(section, size), state)
        kept = CheckpointLayout(routine, "", self.of.kept)
        rows = section.smaller(self.count, str(self.block))
        size = section.value(f"mul i64 {kept.size}, {rows}")
        self.kept = CheckpointLayout(routine, routine.allocate_bytes(section, size), self.of.kept)
        self.begins = routine.allocate_bytes(section, str(16 * slots))
        self.ends = section.value(f"getelementptr i64, ptr {self.begins}, i64 {slots}")

    def _between(self, section: Section, number: str) -> list[str]:
        """One of the two buffers for recomputed states."""
        if self.between is None:
            return self.registers
        return self.between.row(section, section.value(f"and i64 {number}, 1"))

    # ---- the stack of intervals ------------------------------------------------------------------

    def write(self) -> None:
        """Emit the backward pass."""
        routine, section = self.routine, self.section
        self.interrupts = InterruptChecks(routine.module, section, self.of.step.is_light)
        top = routine.function.slot("i64")
        section.write(f"store i64 -1, ptr {top}")
        some = section.value(f"icmp sgt i64 {self.count}, 0")
        with section.when(some) as inner:
            self._stored_intervals(inner, top)
        n = routine.function.number()
        section.block(f"next{n}")
        head = section.inside()
        slot = head.value(f"load i64, ptr {top}")
        ended = head.value(f"icmp slt i64 {slot}, 0")
        head.write(f"br i1 {ended}, label %done{n}, label %go{n}")
        section.label(f"go{n}")
        go = section.inside()
        first = go.value(f"getelementptr i64, ptr {self.begins}, i64 {slot}")
        last = go.value(f"getelementptr i64, ptr {self.ends}, i64 {slot}")
        begin, end = go.value(f"load i64, ptr {first}"), go.value(f"load i64, ptr {last}")
        length = go.value(f"sub i64 {end}, {begin}")
        left = go.value(f"sub i64 {self.slots}, {slot}")
        steps, turns = scheduled(routine.module, go, length, left, self.block)
        middle = go.value(f"add i64 {begin}, {steps}")
        state = self._advance(go, self.states.row(go, slot), begin, steps)
        go.write(f"br i1 {turns}, label %turn{n}, label %keep{n}")
        section.label(f"keep{n}")
        keep = section.inside()
        following = keep.value(f"add i64 {slot}, 1")
        self.states.copy(keep, self.states.row(keep, following), state)
        keep.write(f"store i64 {middle}, ptr {last}")
        keep.write(f"store i64 {middle}, ptr {self._after(keep, first)}")
        keep.write(f"store i64 {end}, ptr {self._after(keep, last)}")
        keep.write(f"store i64 {following}, ptr {top}")
        keep.write(f"br label %next{n}")
        section.label(f"turn{n}")
        turn = section.inside()
        self._reverse_block(turn, state, steps, middle, turn.value(f"sub i64 {end}, {middle}"))
        turn.write(f"store i64 {middle}, ptr {last}")
        lower = turn.value(f"sub i64 {slot}, 1")
        is_one = turn.value(f"icmp eq i64 {steps}, 0")
        lower = turn.value(f"select i1 {is_one}, i64 {lower}, i64 {slot}")
        turn.write(f"store i64 {lower}, ptr {top}")
        turn.write(f"br label %next{n}")
        section.label(f"done{n}")
        self.carried.finish(section)

    def _stored_intervals(self, section: Section, top: str) -> None:
        """Push the intervals between the states stored by the forward pass: at least one."""
        routine, slots = self.routine, self.slots
        numbers = (routine.module, section, self.count, slots, self.block)
        distance = schedule_call("distance", *numbers) if self.of.params["spread"] else ""
        begin = routine.function.slot("i64")
        section.write(f"store i64 0, ptr {begin}")
        n = routine.function.number()
        section.block(f"stored{n}")
        inner = section.inside()
        k = inner.value(f"add i64 {inner.value(f'load i64, ptr {top}')}, 1")
        inner.write(f"store i64 {k}, ptr {top}")
        start = inner.value(f"load i64, ptr {begin}")
        rest = inner.value(f"sub i64 {self.count}, {start}")
        if distance:
            steps, is_last = distance, inner.value(f"icmp sle i64 {rest}, {distance}")
        else:
            left = inner.value(f"sub i64 {slots}, {k}")
            steps, is_last = scheduled(routine.module, inner, rest, left, self.block)
        following = inner.value(f"add i64 {start}, {steps}")
        end = inner.value(f"select i1 {is_last}, i64 {self.count}, i64 {following}")
        for base, value in ((self.begins, start), (self.ends, end)):
            address = inner.value(f"getelementptr i64, ptr {base}, i64 {k}")
            inner.write(f"store i64 {value}, ptr {address}")
        inner.write(f"store i64 {end}, ptr {begin}")
        inner.write(f"br i1 {is_last}, label %all{n}, label %stored{n}")
        section.label(f"all{n}")

    def _after(self, section: Section, place: str) -> str:
        return section.value(f"getelementptr i64, ptr {place}, i64 1")

    def _advance(
        self, section: Section, start: Sequence[str], begin: str, steps: str
    ) -> Sequence[str]:
        """Take a number of steps from a state; returns the addresses of the new state."""
        if self.registers:
            self.states.copy(section, self.registers, start)
            with section.loop("0", steps) as (inner, i):
                k = inner.value(f"add i64 {begin}, {i}")
                self._step(inner, self.registers, self.registers, k)
            return self.registers
        slots = [self.routine.function.slot("ptr") for _ in start]
        for slot, pointer in zip(slots, start, strict=True):
            section.write(f"store ptr {pointer}, ptr {slot}")
        with section.loop("0", steps) as (inner, i):
            source = [inner.value(f"load ptr, ptr {slot}") for slot in slots]
            target = self._between(inner, i)
            self._step(inner, source, target, inner.value(f"add i64 {begin}, {i}"))
            for slot, pointer in zip(slots, target, strict=True):
                inner.write(f"store ptr {pointer}, ptr {slot}")
        return [section.value(f"load ptr, ptr {slot}") for slot in slots]

    def _reverse_block(
        self, section: Section, state: Sequence[str], taken: str, begin: str, length: str
    ) -> None:
        """Recompute a block of steps from a state with residuals, and reverse it."""
        with section.loop("0", length) as (inner, i):
            k = inner.value(f"add i64 {begin}, {i}")
            number = inner.value(f"add i64 {taken}, {i}")
            target = source = self._between(inner, number)
            if not self.registers:
                is_first = inner.value(f"icmp eq i64 {i}, 0")
                before = self._between(inner, inner.value(f"sub i64 {number}, 1"))
                source = [
                    inner.value(f"select i1 {is_first}, ptr {a}, ptr {b}")
                    for a, b in zip(state, before, strict=True)
                ]
            self._step(inner, source, target, k, self.kept.row(inner, i))
        last = section.value(f"sub i64 {length}, 1")
        with section.loop("0", length) as (inner, i):
            number = inner.value(f"sub i64 {last}, {i}")
            self._backwards(inner, number, inner.value(f"add i64 {begin}, {number}"))

    # ---- single steps ----------------------------------------------------------------------------

    def _at(self, section: Section, k: str) -> str:
        """The row of a step."""
        if not self.of.params["reverse"]:
            return k
        last = section.value(f"sub i64 {self.count}, 1")
        return section.value(f"sub i64 {last}, {k}")

    def _step(
        self,
        section: Section,
        source: Sequence[str],
        target: Sequence[str],
        k: str,
        kept: Sequence[str] | None = None,
    ) -> None:
        """Take one step from a state to the next, and store residuals if `kept` is given."""
        body = self.of.step if kept is None else self.of.keep
        routine, at = self.routine, self._at(section, k)
        rows = [
            row_address(section, x.pointer, at, row(routine, x.shape, x.dtype)) for x in self.xs
        ]
        inputs = [*self.consts, *source, *rows]
        body.call(routine, section, inputs, [*target, *(kept or ())], self.of.work(body))
        routine.leave_if_not_zero(section, self.interrupts.check(section, k))

    def _backwards(self, section: Section, number: str, k: str) -> None:
        """Reverse one step, whose residuals are in the row with this number."""
        routine, params = self.routine, self.of.params
        at = self._at(section, k)
        xs = [self.xs[i] for i in params["read"]]
        rows = _rows(routine, section, at, xs)
        rows += self.kept.row(section, number)
        rows += [
            row_address(section, x.pointer, at, row(routine, x.shape, x.dtype)) for x in self.rows
        ]
        gives = [row_address(section, p, at, row(routine, x.shape, x.dtype)) for p, x in self.gives]
        read, written = self.carried.read(section), self.carried.written(section)
        self.of.back.body.call(
            routine,
            section,
            [*self.consts, *self.more, *read, *rows],
            [*written, *gives],
            self.of.back.work(),
        )
        self.carried.swap(section, written)
        routine.leave_if_not_zero(section, self.interrupts.check(section, k))


def _rows(routine: FunctionCodegen, section: Section, index: str, arrays: Arrays) -> list[str]:
    return [row_address(section, x.pointer, index, row(routine, x.shape, x.dtype)) for x in arrays]
