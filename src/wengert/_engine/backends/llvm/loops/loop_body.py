"""The body of a loop as a function, which the loop calls in each step; checks for interrupts.

    LoopBody    `i64 @body(ptr %frame, addresses of inputs and results, ptr %work, i64 sizes)`

A body with arithmetic on a few numbers only is straight-line code (codegen/straightline.py), and
inlined: its inputs and results stay in registers.

    InterruptChecks    the checks for KeyboardInterrupt of one long loop

A check (codegen/host_callbacks.py) needs the GIL, for which a loop that runs without it may have to
wait: so it is made ten times a second, according to a clock that is read after a number of steps.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from wengert._engine.core.graph_classes import Body
from wengert._engine.core.symbolic.dim import Length, is_open, names_in

from ..codegen.element_access import is_element_store, is_held
from ..codegen.function import FunctionCodegen
from ..codegen.host_callbacks import CLOCK, external, handle_signals
from ..codegen.program_context import ProgramContext
from ..codegen.straightline import (
    BranchBlocks,
    KnownIntegers,
    StraightlineCode,
    is_choice,
    is_straight,
    read_anywhere,
    unrolled_size,
)
from ..ir.execution_engine import foreign
from ..ir.ir_builder import Function, ModuleBuilder, Section
from ..lowering.loop_ir import Expr
from ..schedule.fusion import FusedLoops, roots_of
from ..schedule.integer_ranges import InputFacts, Integers
from ..schedule.scheduling import Schedule
from ..schedule.slices import largest_sizes
from ..tuning import thresholds
from .in_place import body_schedule, in_place, read_by


class LoopBody(FunctionCodegen):
    """A body as a function.

    Parameters
    ----------
    name : str
        The name of the function.
    updates : sequence of (int, int)
        Inputs, and the results that may be written over them if the body permits it.
    facts : InputFacts, optional
        What is known of its inputs.
    is_unrolled : bool
        Whether loops of a few elements are straight-line code; not if most have many points.

    Attributes
    ----------
    in_place : list of bool
        For each of these pairs whether both may be given the same address.
    sizes : list of str
        The symbolic sizes that are passed to it.
    needs : Length
        The bytes of workspace that are passed to it.
    is_light : bool
        Whether it has no loops.
    is_straight : bool
        Whether it also reads all its inputs before it writes its results.
    """

    def __init__(
        self,
        context: ProgramContext,
        body: Body,
        name: str,
        updates: Sequence[tuple[int, int]],
        facts: InputFacts | None = None,
        is_unrolled: bool = True,
    ) -> None:
        self._is_unrolled = is_unrolled
        super().__init__(context, body_schedule(body, updates), Integers.of_body(body, facts))
        self.name = name
        self.largest_sizes = largest_sizes(body)
        plan = self.plan
        chains = [in_place(plan, plan.inputs[given], plan.outputs[k]) for given, k in updates]
        self.in_place = [chain is not None for chain in chains]
        pairs = zip(updates, chains, strict=True)
        self._written_over = {k for (_, k), chain in pairs if chain is not None}
        self._between = {
            x: f"%out{k}"
            for (_, k), chain in zip(updates, chains, strict=True)
            if chain is not None
            for x in chain
        }
        lengths = [n for expr in self.plan.reachable for n in expr.shape]
        lengths += [n for expr in self.plan.inputs for n in expr.shape]
        self.sizes = sorted((names_in(lengths) | body.local_names) - _learned(self.plan))
        self._choices: dict[Expr, BranchBlocks] = {}
        self._groups = self._grouped()
        outputs = set(self.plan.outputs)
        self._last = outputs - self._read_from_memory()
        is_single = len(self._groups) == 1 and isinstance(self._groups[0], list)
        stores = [s for s in self.plan.stages if is_element_store(s)]
        self._arrays = {x for x in outputs if x.operands[:1] and x.operands[0] in stores}
        self.is_light = is_single and outputs <= self._last | self._arrays
        self.is_straight = self.is_light and not self._arrays
        if self.is_light:  # numbers are written once everything has been read
            late = [self.plan.outputs[k] not in self._arrays for _, k in updates]
            self.in_place = [x or y for x, y in zip(self.in_place, late, strict=True)]
        arguments = [("ptr", "frame")]
        arguments += [("ptr", f"in{k}") for k in range(len(self.plan.inputs))]
        arguments += [("ptr", f"out{k}") for k in range(len(self.plan.outputs))]
        arguments += [("ptr", "work"), *[("i64", f"n{k}") for k in range(len(self.sizes))]]
        self.function = Function(self.module, name, arguments, "i64", "nounwind #1")
        self.write()
        text = self.module.parts[name]
        if text.count("\n") < thresholds.inlined_body_lines:
            self.module.parts[name] = text.replace("nounwind #1 {", "alwaysinline nounwind #1 {", 1)
        small = type(self.workspace) is int and self.workspace <= thresholds.workspace_stack_bytes
        self.needs: Length = 0 if small else self.workspace

    def keep_separate(self) -> None:
        """Let its code be there once, not in each call."""
        text = self.module.parts[self.name]
        head, line, rest = text.partition("\n")
        self.module.parts[self.name] = head.replace("alwaysinline ", "noinline ", 1) + line + rest

    # ---- arguments -------------------------------------------------------------------------------

    @property
    def frame(self) -> str:
        """The address of the program's frame."""
        return "%frame"

    def incoming(self) -> Mapping[Expr, str]:
        """The addresses of inputs and results."""
        found = {expr: f"%in{k}" for k, expr in enumerate(self.plan.inputs)}
        found.update({expr: f"%out{k}" for k, expr in enumerate(self.plan.outputs)})
        return {**found, **self._between}

    def separate_results(self) -> Sequence[Expr]:
        """The results that are not written over an input."""
        others = [x for k, x in enumerate(self.plan.outputs) if k not in self._written_over]
        # Straight-line code may write numbers over inputs that it has read.
        return [x for x in others if x in self._arrays] if self.is_light else others

    def named_size(self, name: str) -> str:
        """A symbolic size as an i64."""
        return f"%n{self.sizes.index(name)}"

    def constant(self, array: np.ndarray[Any, Any]) -> str:
        """The address of a constant array."""
        return self.context.framed(self._head, self.context.constant_slot(array))

    def memory(self, total: Length) -> str:
        """The workspace."""
        return "%work"

    def call(
        self,
        caller: FunctionCodegen,
        section: Section,
        inputs: Sequence[str],
        outputs: Sequence[str],
        work: str,
        known: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Emit a call, and return early if it fails; `known` are lengths computed by the run."""
        arguments = [f"ptr {caller.frame}", *[f"ptr {x}" for x in (*inputs, *outputs, work)]]
        arguments += [f"i64 {known.get(name) or caller.size(name)}" for name in self.sizes]
        status = section.value(f"call i64 @{self.name}({', '.join(arguments)})")
        caller.leave_if_not_zero(section, status)

    # ---- straight-line code ----------------------------------------------------------------------

    def _grouped(self) -> list[Any]:
        """The stages; consecutive ones without loops are grouped in lists."""
        groups: list[Any] = []
        straight = self._straight()
        for stage in self.plan.stages:
            if stage in straight:
                if groups and isinstance(groups[-1], list) and self._can_join(groups[-1], stage):
                    groups[-1].append(stage)
                else:
                    groups.append([stage])
            else:
                groups.append(stage)
        return groups

    def _straight(self) -> set[FusedLoops | Expr]:
        """The stages that are straight-line code.

        In a long body their values are not in registers in any case, and LLVM needs more than
        linear time for a long function; so loops of more than a few elements remain loops.
        """
        straight = {stage for stage in self.plan.stages if self._is_straight(stage)}
        sizes = {s: unrolled_size(s) for s in straight if isinstance(s, FusedLoops)}
        work = sum(work for _, work in sizes.values())
        if not self._is_unrolled or work > thresholds.unrolled_body_work:
            most = thresholds.unrolled_body_elements
            straight -= {s for s, (elements, _) in sizes.items() if elements > most}
        return straight

    def _is_straight(self, stage: FusedLoops | Expr) -> bool:
        if isinstance(stage, FusedLoops):
            return is_straight(stage)
        if is_choice(stage):
            branches = BranchBlocks(stage)
            if branches.are_straight and all(map(is_held, branches.read_of(stage))):
                self._choices[stage] = branches
        return stage in self._choices or is_element_store(stage)

    def _can_join(self, group: list[Any], stage: FusedLoops | Expr) -> bool:
        """Whether a stage can join straight-line code.

        After a branch or a store it reads no memory that loops of the same code write to.
        """
        stages = [*group, stage]
        if all(isinstance(x, FusedLoops) for x in stages):
            return True
        fused = [x for x in stages if isinstance(x, FusedLoops)]
        found = [x for fused in fused for x in read_anywhere(self.plan, fused)]
        return all(map(is_held, found))

    def is_written_out(self, stage: Expr) -> bool:
        """Whether a conditional is part of straight-line code."""
        return stage in self._choices

    def _known_integers(self, choices: Mapping[Expr, BranchBlocks]) -> KnownIntegers:
        """What is known of the integers of straight-line code, and of its branches."""
        found = KnownIntegers({}, {})
        pending = [(self.plan, self.integers, choices)]
        while pending:
            plan, integers, inner = pending.pop()
            for node, expr in plan.exprs.items():
                if isinstance(expr, Expr) and not expr.shape:
                    if integers.value(node) is not None:
                        found.ranges[expr] = integers.range_of(node)
                    elif node in integers.truths:
                        found.truths[expr] = integers.truths[node]
            for step, blocks in inner.items():
                values = [integers.value(x) for x in step.node.inputs[1:]]
                facts = integers.facts_of(values, integers.ranges)
                bodies = zip(blocks.plans, step.node.params["branches"], strict=True)
                for branch, body in bodies:
                    pending.append((branch, Integers.of_body(body, facts), blocks.inner))
        return found

    def _read_from_memory(self) -> set[Expr]:
        """Expressions that are read at positions unknown at compile time."""
        found: set[Expr] = set()
        for stage in self.plan.stages:
            for root in roots_of(stage):
                if isinstance(stage, FusedLoops):
                    found.update(a.expr for a in self.plan.accesses(root) if a.index is None)
        return found

    def run_stages(self, body: Section) -> None:
        """Emit the stages in order, consecutive ones without loops together."""
        for k, group in enumerate(self._groups):
            if isinstance(group, list):
                self._run_straight(body, group, self._needed_outside(k))
            else:
                self.run_stage(body, group)
                self._messages.after(body, group)

    def _needed_outside(self, number: int) -> set[Expr]:
        """Expressions that other groups read from memory, and results."""
        found = set(self.plan.outputs) | self._read_from_memory()
        for k, group in enumerate(self._groups):
            if k == number:
                continue
            for stage in group if isinstance(group, list) else [group]:
                found.update(read_by(self.plan, stage))
        return found

    def _run_straight(self, body: Section, stages: list[Any], needed: set[Expr]) -> None:
        stored = needed & self._stored
        # Without a choice, what is read from memory is read where it stands, behind its store.
        choices = {x: found for x, found in self._choices.items() if x in stages}
        known = self._known_integers(choices)
        made = StraightlineCode(
            self.language, stages, choices, self._parts, stored, self._last, known
        )
        self.language.home = self._head
        name = self.context.nest_name(made.function.text())
        self.context.needs_runtime |= made.needs_runtime
        table = self.table(body, made, {})
        body.write(f"call void @{name}(ptr {table})")
        self.check(body, made, table)


def _learned(plan: Schedule) -> frozenset[str]:
    """The lengths that loops of the schedule determine at run time."""
    lengths = []
    for stage in plan.stages:
        if isinstance(stage, Expr) and stage.node.op.kind == "control":
            lengths.append(stage.node.params.get("length"))
    return names_in([n for n in lengths if is_open(n)])


# ---- interrupts ----------------------------------------------------------------------------------


# A calling convention that preserves all registers, so carried values stay in them.
_CALLING_CONVENTION = "preserve_allcc"
_MONOTONIC = 1  # of clock_gettime on Linux; elsewhere another clock, which is good enough


class InterruptChecks:
    """Emits the checks of one loop.

    Parameters
    ----------
    section : Section
        Before the loop.
    is_light : bool
        Whether a step takes only a few instructions.
    """

    def __init__(self, module: ModuleBuilder, section: Section, is_light: bool) -> None:
        self._module, self._every = (
            module,
            thresholds.interrupt_light_steps if is_light else thresholds.interrupt_heavy_steps,
        )
        self._last = section.function.slot("i64")
        self._status = section.function.slot("i64")
        section.write(f"store i64 0, ptr {self._last}")

    def check(self, section: Section, step: str) -> str:
        """Check for an interrupt every so many steps; the status is nonzero if there is one."""
        if foreign() is not None:  # such code runs without Python
            return "0"
        section.write(f"store i64 0, ptr {self._status}")
        rest = section.value(f"and i64 {step}, {self._every - 1}")
        now = section.value(f"icmp eq i64 {rest}, {self._every - 1}")
        with section.when(now) as inner:
            found = inner.value(
                f"call {_CALLING_CONVENTION} i64 {_check_function(self._module)}(ptr {self._last})"
            )
            inner.write(f"store i64 {found}, ptr {self._status}")
        return section.value(f"load i64, ptr {self._status}")


def _check_function(module: ModuleBuilder) -> str:
    """The function that checks, given the time of the last check; returns ``@name``."""
    if "listen" not in module:
        function = Function(
            module, "listen", [("ptr", "last")], f"{_CALLING_CONVENTION} i64", "noinline nounwind"
        )
        body = function.body
        clock = _clock(module)
        if clock is not None:
            _return_if_early(body, clock)
        body.write(f"ret i64 {handle_signals(body)}")
        module.add(function)
    return "@listen"


def _return_if_early(body: Section, clock: str) -> None:
    """Return unless enough time has passed since the last check."""
    time = body.function.slot("[2 x i64]", 8)
    body.write(f"call i32 {clock}(i32 {_MONOTONIC}, ptr {time})")
    seconds = body.value(f"load i64, ptr {time}")
    rest = body.value(f"load i64, ptr {body.value(f'getelementptr i64, ptr {time}, i64 1')}")
    now = body.value(f"add i64 {body.value(f'mul i64 {seconds}, 1000000000')}, {rest}")
    last = body.value("load i64, ptr %last")
    is_first = body.value(f"icmp eq i64 {last}, 0")
    since = body.value(f"sub i64 {now}, {last}")
    is_early = body.value(f"icmp slt i64 {since}, {thresholds.interrupt_poll_nanoseconds}")
    stays = body.value(f"and i1 {is_early}, {body.value(f'xor i1 {is_first}, true')}")
    kept = body.value(f"select i1 {stays}, i64 {last}, i64 {now}")
    body.write(f"store i64 {kept}, ptr %last")
    n = body.function.number()
    leaves = body.value(f"or i1 {is_early}, {is_first}")
    body.write(f"br i1 {leaves}, label %early{n}, label %check{n}")
    body.label(f"early{n}")
    body.write("ret i64 0")
    body.label(f"check{n}")


def _clock(module: ModuleBuilder) -> str | None:
    """The POSIX clock; None if there is none: then only steps are counted."""
    if os.name != "posix":
        return None
    return external(module, CLOCK, "i32", ["i32", "ptr"])
