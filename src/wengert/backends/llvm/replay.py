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
        rows = len(back.inputs) - self.fixed - params["more"] - pulled
        self.back = Loop(root, {"body": back, "carried": pulled, "stacked": rows})
        inputs = self.step.plan.inputs
        self.sizes = [bytes_of(x) for x in inputs[self.fixed : self.fixed + params["carried"]]]
        self._offset: Length | None = None

    def place(self, total: Length) -> Length:
        """Take memory for both bodies."""
        total = self.back.place(total)
        needs = self.step.needs
        if type(needs) is not int or needs > 0:
            self._offset = total
            total = total + needs + LINE
        return total

    def settle(self, routine: Routine, base: str) -> None:
        """Learn where that memory is."""
        self.back.settle(routine, base)
        self._work = "null" if self._offset is None else routine.inside(base, self._offset)

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
        if "split" not in routine.module:
            routine.module.parts["split"] = _SPLIT

    # ---- states ----------------------------------------------------------------------------------

    def _room(self) -> None:
        """Memory for the states and for the stretches, and the first of both."""
        routine, section, slots = self.routine, self.section, self.of.params["slots"]
        self.offsets: list[str] = []
        size = "0"
        for n in self.of.sizes:
            self.offsets.append(size)
            rounded = section.value(f"add i64 {routine.number(n)}, {LINE - 1}")
            rounded = section.value(f"and i64 {rounded}, -{LINE}")
            size = section.value(f"add i64 {size}, {rounded}")
        self.size = size
        states = section.value(f"mul i64 {size}, {slots + 2}")
        total = section.value(f"add i64 {states}, {16 * slots + LINE}")
        self.base = routine.asked_now(section, total)
        self.begins = section.value(f"getelementptr i8, ptr {self.base}, i64 {states}")
        self.ends = section.value(f"getelementptr i64, ptr {self.begins}, i64 {slots}")
        copy = routine.module.declare("llvm.memcpy.p0.p0.i64", "void", ["ptr", "ptr", "i64", "i1"])
        for x, place, n in zip(
            self.carry, self._leaves(section, self.base), self.of.sizes, strict=True
        ):
            section.write(
                f"call void {copy}(ptr {place}, ptr {x.pointer}, i64 {routine.number(n)}, i1 false)"
            )
        section.write(f"store i64 0, ptr {self.begins}")
        section.write(f"store i64 {self.count}, ptr {self.ends}")

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
        single = inner.value(f"icmp eq i64 {length}, 1")
        full = inner.value(f"icmp eq i64 {left}, 1")
        stays = inner.value(f"or i1 {single}, {full}")
        inner.write(f"br i1 {stays}, label %back{n}, label %on{n}")
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
        self._backwards(back, state, back.value(f"add i64 {begin}, {steps}"))
        below = back.value(f"sub i64 {slot}, 1")
        now = back.value(f"select i1 {single}, i64 {below}, i64 {slot}")
        back.write(f"store i64 {now}, ptr {top}")
        back.write(f"store i64 {back.value(f'sub i64 {end}, 1')}, ptr {last}")
        back.write(f"br label %next{n}")
        section.label(f"done{n}")
        self.carried.finish(section)

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
        place = routine.function.slot("ptr")
        section.write(f"store ptr {self._slot(section, slot)}, ptr {place}")
        last = section.value(f"sub i64 {steps}, 1")
        with section.loop("0", steps) as (inner, i):
            source = inner.value(f"load ptr, ptr {place}")
            goal = self._between(inner, i)
            if target is not None:
                is_last = inner.value(f"icmp eq i64 {i}, {last}")
                goal = inner.value(f"select i1 {is_last}, ptr {target}, ptr {goal}")
            at = self._at(inner, inner.value(f"add i64 {begin}, {i}"))
            rows = [moved(inner, x.pointer, at, row(routine, x.shape, x.dtype)) for x in self.xs]
            self.of.step.call(
                routine,
                inner,
                [*self.consts, *self._leaves(inner, source), *rows],
                self._leaves(inner, goal),
                self.of._work,
            )
            inner.write(f"store ptr {goal}, ptr {place}")
            routine.leave_if_not_zero(inner, self.listening.ask(inner, i))
        return section.value(f"load ptr, ptr {place}")

    def _backwards(self, section: Section, state: str, k: str) -> None:
        """One step back."""
        routine, params = self.routine, self.of.params
        at = self._at(section, k)
        leaves = self._leaves(section, state)
        xs = [self.xs[i] for i in params["read"]]
        rows = [moved(section, x.pointer, at, row(routine, x.shape, x.dtype)) for x in xs]
        rows += [leaves[i] for i in params["kept"]]
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
