"""Replay: a loop backwards with room for a few states, in native code.

States lie side by side in one piece of memory, two more places serve on the way from one to the
next.  What is to be done is found as it is done, by the same rule as in control/schedule.py: a
stack of stretches of the loop, each with the number of its first step and of the one behind its
last; the state before a stretch lies in the slot of its own number.

    Replay    how it is run
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .assembly import Section
from .control import Carried, Loop, moved, row
from .forms import Length
from .items import Item
from .kernels import Array
from .listening import Listening
from .nested import Nested
from .routine import LINE, Routine, bytes_of

if TYPE_CHECKING:
    from .program import Program

# The number of steps to take before the next state is kept (control/schedule.py); numbers beyond
# what any loop has are all the same.
_SPLIT = """define internal i64 @reach(i64 %room, i64 %times) noinline nounwind {
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

define internal i64 @split(i64 %length, i64 %room) noinline nounwind {
entry:
  %few = icmp sle i64 %length, %room
  br i1 %few, label %one, label %head
one:
  ret i64 1
head:
  %times = phi i64 [ 1, %entry ], [ %next, %body ]
  %far = call i64 @reach(i64 %room, i64 %times)
  %short = icmp slt i64 %far, %length
  br i1 %short, label %body, label %done
body:
  %next = add i64 %times, 1
  br label %head
done:
  %before = sub i64 %times, 1
  %left = call i64 @reach(i64 %room, i64 %before)
  %fewer = sub i64 %room, 1
  %right = call i64 @reach(i64 %fewer, i64 %before)
  %rest = sub i64 %length, %right
  %less = icmp slt i64 %left, %rest
  %steps = select i1 %less, i64 %left, i64 %rest
  ret i64 %steps
}"""


_IN_REGISTERS = 1024  # bytes of a state
_WORD = 8  # bytes, at which small parts of a state begin


class Replay:
    """A loop backwards, with room for a few states.

    Parameters
    ----------
    root : Program
    step : Item
        Of the plan.
    """

    def __init__(self, root: Program, step: Item) -> None:
        self.params = params = step.node.params
        body = params["step"]
        self.fixed = len(body.inputs) - params["carried"] - params["stacked"]
        self.step = root.body(body)
        pulled, back = params["pulled"], params["back"]
        self.keep = root.body(params["keep"])
        self.kept = self.keep.plan.outputs[params["carried"] :]
        rows = len(back.inputs) - self.fixed - params["more"] - pulled
        self.back = Loop(root, {"body": back, "carried": pulled, "stacked": rows})
        inputs = self.step.plan.inputs
        self.sizes = [bytes_of(x) for x in inputs[self.fixed : self.fixed + params["carried"]]]
        self._offsets: dict[Nested, Length] = {}

    def place(self, total: Length) -> Length:
        """Take memory for both bodies."""
        total = self.back.place(total)
        for body in (self.step, self.keep):
            needs = body.needs
            if type(needs) is not int or needs > 0:
                self._offsets[body] = total
                total = total + needs + LINE
        return total

    def settle(self, routine: Routine, base: str) -> None:
        """Learn where that memory is."""
        self.back.settle(routine, base)
        self._work = {b: routine.inside(base, offset) for b, offset in self._offsets.items()}

    def work(self, body: Nested) -> str:
        """The memory of a body."""
        return self._work.get(body, "null")

    def run(
        self, routine: Routine, section: Section, operands: Sequence[Array], parts: Sequence[Item]
    ) -> None:
        """Write it."""
        _Running(self, routine, section, operands, parts).write()
        routine.long = routine.long + (1 << 30)


class _Running:
    """One replay, as text."""

    def __init__(
        self,
        of: Replay,
        routine: Routine,
        section: Section,
        operands: Sequence[Array],
        parts: Sequence[Item],
    ) -> None:
        self.of, self.routine, self.section, params = of, routine, section, of.params
        given = list(operands)
        if params["counted"]:
            number = section.value(f"load i64, ptr {given.pop(0).pointer}")
            larger = routine.module.declare("llvm.smax.i64", "i64", ["i64", "i64"])
            self.count = section.value(f"call i64 {larger}(i64 {number}, i64 0)")
            routine.learn(params["length"], section, self.count)
            for part in parts[params["pulled"] :]:
                routine.ask(section, part)
        else:
            self.count = routine.number(params["length"])
        found = []
        for n in (of.fixed, params["carried"], params["stacked"], params["more"], params["pulled"]):
            found.append(given[:n])
            del given[:n]
        consts, self.carry, self.xs, more, starts = found
        self.consts = [x.pointer for x in consts]
        self.more = [x.pointer for x in more]
        self.rows = given
        results = [routine.result(p).pointer for p in parts]
        pulled = params["pulled"]
        self.carried = Carried(
            *(of.back, routine, section, [x.pointer for x in starts], results[:pulled], "true")
        )
        self.gives = list(zip(results[pulled:], parts[pulled:], strict=True))
        small = sum(n for n in of.sizes if type(n) is int) <= _IN_REGISTERS
        self.registers: list[str] = []
        if (
            of.step.is_straight
            and of.keep.is_straight
            and small
            and all(type(n) is int for n in of.sizes)
        ):
            self.registers = [routine.function.slot(f"[{n} x i8]", LINE) for n in of.sizes]
        if "split" not in routine.module:
            routine.module.parts["split"] = _SPLIT

    # ---- states ----------------------------------------------------------------------------------

    def _room(self) -> None:
        """Memory for the states and for the stretches, and the first of both."""
        routine, section, slots = self.routine, self.section, self.of.params["slots"]
        self.offsets, self.size = self._laid_out(self.of.sizes)
        self.kept_offsets, self.kept_size = self._laid_out([bytes_of(x) for x in self.of.kept])
        states = section.value(f"mul i64 {self.size}, {slots + 2}")
        rows = section.value(f"mul i64 {self.kept_size}, {slots}")
        total = section.value(f"add i64 {states}, {16 * slots + 2 * LINE}")
        total = section.value(f"add i64 {total}, {rows}")
        self.base = routine.asked_now(section, total)
        self.begins = section.value(f"getelementptr i8, ptr {self.base}, i64 {states}")
        self.ends = section.value(f"getelementptr i64, ptr {self.begins}, i64 {slots}")
        behind = (16 * slots + LINE - 1) // LINE * LINE
        self.kept = section.value(f"getelementptr i8, ptr {self.begins}, i64 {behind}")
        self._copy(section, self._leaves(section, self.base), [x.pointer for x in self.carry])
        section.write(f"store i64 0, ptr {self.begins}")
        section.write(f"store i64 {self.count}, ptr {self.ends}")

    def _laid_out(self, sizes: Sequence[Length]) -> tuple[list[str], str]:
        """Where parts begin that lie side by side, and how much all take."""
        section, offsets, size = self.section, [], "0"
        for n in sizes:
            offsets.append(size)
            # Small ones close together, so that many are in the nearest cache.
            align = _WORD if type(n) is int and n < LINE else LINE
            rounded = section.value(f"add i64 {self.routine.number(n)}, {align - 1}")
            rounded = section.value(f"and i64 {rounded}, -{align}")
            size = section.value(f"add i64 {size}, {rounded}")
        return offsets, size

    def _kept_row(self, section: Section, number: str) -> list[str]:
        """The addresses of what is kept of a step."""
        row_of = moved(section, self.kept, number, self.kept_size)
        return [
            section.value(f"getelementptr i8, ptr {row_of}, i64 {offset}")
            for offset in self.kept_offsets
        ]

    def _leaves(self, section: Section, state: str) -> list[str]:
        """The addresses of the parts of a state."""
        return [
            section.value(f"getelementptr i8, ptr {state}, i64 {offset}") for offset in self.offsets
        ]

    def _slot(self, section: Section, number: str) -> str:
        return moved(section, self.base, number, self.size)

    def _between(self, section: Section, k: str) -> str:
        """One of the two places that serve on the way: the one for a step's result."""
        odd = section.value(f"and i64 {k}, 1")
        number = section.value(f"add i64 {odd}, {self.of.params['slots']}")
        return self._slot(section, number)

    # ---- the stretches ---------------------------------------------------------------------------

    def write(self) -> None:
        """All of it."""
        routine, section = self.routine, self.section
        self._room()
        self.listening = Listening(routine.module, section, self.of.step.is_straight)
        top = routine.function.slot("i64")
        some = section.value(f"icmp sgt i64 {self.count}, 0")
        section.write(f"store i64 {section.value(f'select i1 {some}, i64 0, i64 -1')}, ptr {top}")
        n = routine.function.number()
        section.write(f"br label %next{n}")
        section.label(f"next{n}")
        head = section.inside()
        slot = head.value(f"load i64, ptr {top}")
        ended = head.value(f"icmp slt i64 {slot}, 0")
        head.write(f"br i1 {ended}, label %done{n}, label %go{n}")
        section.label(f"go{n}")
        inner = section.inside()
        first = inner.value(f"getelementptr i64, ptr {self.begins}, i64 {slot}")
        last = inner.value(f"getelementptr i64, ptr {self.ends}, i64 {slot}")
        begin, end = inner.value(f"load i64, ptr {first}"), inner.value(f"load i64, ptr {last}")
        length = inner.value(f"sub i64 {end}, {begin}")
        left = inner.value(f"sub i64 {self.of.params['slots']}, {slot}")
        fits = inner.value(f"icmp sle i64 {length}, {left}")
        inner.write(f"br i1 {fits}, label %all{n}, label %some{n}")
        section.label(f"all{n}")
        every = section.inside()
        self._there_and_back(every, slot, begin, length)
        every.write(f"store i64 {every.value(f'sub i64 {slot}, 1')}, ptr {top}")
        every.write(f"br label %next{n}")
        section.label(f"some{n}")
        rest = section.inside()
        full = rest.value(f"icmp eq i64 {left}, 1")
        rest.write(f"br i1 {full}, label %back{n}, label %on{n}")
        section.label(f"on{n}")
        on = section.inside()
        steps = on.value(f"call i64 @split(i64 {length}, i64 {left})")
        following = on.value(f"add i64 {slot}, 1")
        self._advance(on, slot, begin, steps, self._slot(on, following))
        middle = on.value(f"add i64 {begin}, {steps}")
        on.write(f"store i64 {middle}, ptr {last}")
        on.write(f"store i64 {middle}, ptr {on.value(f'getelementptr i64, ptr {first}, i64 1')}")
        on.write(f"store i64 {end}, ptr {on.value(f'getelementptr i64, ptr {last}, i64 1')}")
        on.write(f"store i64 {following}, ptr {top}")
        on.write(f"br label %next{n}")
        section.label(f"back{n}")
        back = section.inside()
        steps = back.value(f"sub i64 {length}, 1")
        state = self._advance(back, slot, begin, steps, None)
        k = back.value(f"add i64 {begin}, {steps}")
        if self.registers:
            self._copy(back, self.registers, self._leaves(back, state))
        self._keeping_step(back, state, "0", k)
        self._backwards(back, "0", k)
        back.write(f"store i64 {back.value(f'sub i64 {end}, 1')}, ptr {last}")
        back.write(f"br label %next{n}")
        section.label(f"done{n}")
        self.carried.finish(section)

    def _there_and_back(self, section: Section, slot: str, begin: str, length: str) -> None:
        """A stretch of which every state has a slot."""
        if self.registers:
            self._copy(section, self.registers, self._leaves(section, self._slot(section, slot)))
        last = section.value(f"sub i64 {length}, 1")
        with section.loop("0", length) as (inner, i):
            k = inner.value(f"add i64 {begin}, {i}")
            self._keeping_step(inner, self._slot(inner, slot), i, k)
        with section.loop("0", length) as (inner, i):
            number = inner.value(f"sub i64 {last}, {i}")
            self._backwards(inner, number, inner.value(f"add i64 {begin}, {number}"))

    def _keeping_step(self, section: Section, first: str, i: str, k: str) -> None:
        """Step number i of a stretch that begins with a state, keeping what the way back needs."""
        source = goal = self.registers
        if not self.registers:
            is_first = section.value(f"icmp eq i64 {i}, 0")
            before = self._between(section, section.value(f"sub i64 {i}, 1"))
            state = section.value(f"select i1 {is_first}, ptr {first}, ptr {before}")
            source = self._leaves(section, state)
            goal = self._leaves(section, self._between(section, i))
        self._step(section, source, goal, k, self._kept_row(section, i))

    def _at(self, section: Section, k: str) -> str:
        """The row of a step."""
        if not self.of.params["reverse"]:
            return k
        last = section.value(f"sub i64 {self.count}, 1")
        return section.value(f"sub i64 {last}, {k}")

    def _advance(
        self, section: Section, slot: str, begin: str, steps: str, target: str | None
    ) -> str:
        """So many steps from a slot; where the state is then."""
        routine = self.routine
        if self.registers:
            goal = self._slot(section, str(self.of.params["slots"])) if target is None else target
            self._copy(section, self.registers, self._leaves(section, self._slot(section, slot)))
            with section.loop("0", steps) as (inner, i):
                k = inner.value(f"add i64 {begin}, {i}")
                self._step(inner, self.registers, self.registers, k)
            self._copy(section, self._leaves(section, goal), self.registers)
            return goal
        place = routine.function.slot("ptr")
        section.write(f"store ptr {self._slot(section, slot)}, ptr {place}")
        last = section.value(f"sub i64 {steps}, 1")
        with section.loop("0", steps) as (inner, i):
            source = inner.value(f"load ptr, ptr {place}")
            goal = self._between(inner, i)
            if target is not None:
                is_last = inner.value(f"icmp eq i64 {i}, {last}")
                goal = inner.value(f"select i1 {is_last}, ptr {target}, ptr {goal}")
            k = inner.value(f"add i64 {begin}, {i}")
            self._step(inner, self._leaves(inner, source), self._leaves(inner, goal), k)
            inner.write(f"store ptr {goal}, ptr {place}")
        return section.value(f"load ptr, ptr {place}")

    def _copy(self, section: Section, to: Sequence[str], of: Sequence[str]) -> None:
        """A state as another."""
        routine = self.routine
        copy = routine.module.declare("llvm.memcpy.p0.p0.i64", "void", ["ptr", "ptr", "i64", "i1"])
        for a, b, n in zip(to, of, self.of.sizes, strict=True):
            section.write(f"call void {copy}(ptr {a}, ptr {b}, i64 {routine.number(n)}, i1 false)")

    def _step(
        self,
        section: Section,
        source: Sequence[str],
        goal: Sequence[str],
        k: str,
        kept: Sequence[str] | None = None,
    ) -> None:
        """One step from a state to the next, both given by their parts."""
        body = self.of.step if kept is None else self.of.keep
        routine, at = self.routine, self._at(section, k)
        rows = [moved(section, x.pointer, at, row(routine, x.shape, x.dtype)) for x in self.xs]
        inputs = [*self.consts, *source, *rows]
        body.call(routine, section, inputs, [*goal, *(kept or ())], self.of.work(body))
        routine.leave_if_not_zero(section, self.listening.ask(section, k))

    def _backwards(self, section: Section, number: str, k: str) -> None:
        """One step back, of which so much was kept in the row of that number."""
        routine, params = self.routine, self.of.params
        at = self._at(section, k)
        xs = [self.xs[i] for i in params["read"]]
        rows = [moved(section, x.pointer, at, row(routine, x.shape, x.dtype)) for x in xs]
        rows += self._kept_row(section, number)
        rows += [moved(section, x.pointer, at, row(routine, x.shape, x.dtype)) for x in self.rows]
        gives = [moved(section, p, at, row(routine, x.shape, x.dtype)) for p, x in self.gives]
        read, written = self.carried.read(section), self.carried.written(section)
        self.of.back.body.call(
            routine,
            section,
            [*self.consts, *self.more, *read, *rows],
            [*written, *gives],
            self.of.back.work(),
        )
        self.carried.turn(section, written)
        routine.leave_if_not_zero(section, self.listening.ask(section, k))
