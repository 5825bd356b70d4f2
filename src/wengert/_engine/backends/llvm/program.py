"""A graph as one LLVM module with one function, `i64 @kernel(ptr %frame)`.

The kernel (codegen/function.py) reads its arguments from a frame; the bodies of loops are separate
functions, emitted once for all loops that share them.

Program    text, ports, sizes, constants: everything needed to compile and call it
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.graph_classes import Body
from wengert._engine.core.lazy_import import LazyModule
from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic.dim import LOCAL, OPEN, Length, names_in

from .abi import entry_text
from .abi.arguments_and_results import is_single, nesting_of
from .abi.ports import Port
from .codegen.function import FunctionCodegen
from .codegen.host_callbacks import LISTENED, HostCallbacks
from .codegen.loop_nests import extent_of, named
from .codegen.nest_calls import work_of
from .ir import execution_engine
from .ir.ir_builder import Function, ModuleBuilder, Section
from .ir.scalar_language import Language
from .kernels import KernelCalls
from .lowering.leaves_and_views import stride_names
from .lowering.loop_ir import Expr
from .lowering.registry import specs_of
from .runtime.runtime_library import symbols
from .schedule.integer_ranges import InputFacts, Integers
from .schedule.scheduling import Schedule
from .schedule.workspace import first_stage, overwritten
from .tuning import thresholds

if TYPE_CHECKING:
    from .codegen import batch_loops
    from .loops import branches_and_integrals, checkpointed_reverse, control_flow, loop_body
    from .loops.loop_body import LoopBody
    from .schedule.batch_loops import BatchLoop
else:  # not needed for most programs
    batch_loops = LazyModule("wengert._engine.backends.llvm.codegen.batch_loops")
    branches_and_integrals, checkpointed_reverse = (
        LazyModule("wengert._engine.backends.llvm.loops.branches_and_integrals"),
        LazyModule("wengert._engine.backends.llvm.loops.checkpointed_reverse"),
    )
    control_flow = LazyModule("wengert._engine.backends.llvm.loops.control_flow")
    loop_body = LazyModule("wengert._engine.backends.llvm.loops.loop_body")

# The code generators of loops and conditionals: `make(program, step)`.
_NESTED: dict[str, Callable[[], Any]] = {
    "scan": lambda: control_flow.ScanCodegen,
    "while": lambda: control_flow.WhileCodegen,
    "checkpointed": lambda: control_flow.checkpointed_forward,
    "replay": lambda: checkpointed_reverse.CheckpointedReverse,
    "cond": lambda: branches_and_integrals.BranchCodegen,
    "switch": lambda: branches_and_integrals.BranchCodegen,
    "sized": lambda: branches_and_integrals.SizedCodegen,
    "quadrature": lambda: branches_and_integrals.QuadratureCodegen,
}


class Program(FunctionCodegen):
    """The program of a graph for this machine.

    Parameters
    ----------
    graph : Graph
        May have symbolic sizes: one program serves all of them.
    threads : int, optional
        The number of threads; by default that of `wengert.set_threads`.
    layouts : str
        The layout of each input, then each variable (leaves_and_views.py).
    overwrites : bool
        Whether updates may be written in place (schedule/workspace.py).

    Attributes
    ----------
    inputs, outputs : tuple of Port
    overwritten : dict from int to int
        The input that is overwritten by each result written in place.
    sizes, size_slots : tuple
    slots : int
    constants : list of (int, numpy.ndarray)
    symbols : dict from str to int
        Addresses of external functions.
    threads : int or None
    requirements : list of Requirement
        Conditions that the sizes must satisfy.
    work_bytes : Length
        An estimate of the bytes that a run moves beside inputs and outputs.
    callbacks : HostCallbacks
    host_callbacks : list of Node
        The nodes that are called back in Python.
    is_single : bool
        Whether a call returns its only output itself.
    nesting : tuple or None
        The result indices in nested tuples, if a call returns these; this has an entry point of
        its own.
    counts : list of int
        The number of outputs of each result that is a tuple; 0 for others.
    workspace : Length
        Bytes of intermediate arrays.
    text : str
    plan : Schedule
    batch_loops : list of BatchLoop
        Those of the plan that it runs.
    """

    runs_once = True
    has_batch_loops = True
    is_called_by_python = True

    def __init__(
        self,
        graph: BaseGraph,
        threads: int | None = None,
        layouts: str = "",
        overwrites: bool = False,
    ) -> None:
        self._graph, self.threads = weakref.ref(graph), threads
        self.layouts = layouts.ljust(len(graph.inputs) + len(graph.variables), "C")
        self.requirements = graph.requirements
        self.module = ModuleBuilder()
        self.language = Language(self.module)
        self.batch_loops: list[BatchLoop] = []
        super().__init__(self, Schedule(graph, self.layouts), Integers(graph.nodes))
        self.steps = KernelCalls(self.language, threads)
        self.slots = 0
        self._stride_slots: dict[str, tuple[int, int]] = {}
        self.inputs = tuple(
            self._input(k, n.spec, layout)
            for k, (n, layout) in enumerate(
                zip((*graph.inputs, *graph.variables), self.layouts, strict=True)
            )
        )
        lengths = [n for expr in self.plan.reachable for n in expr.shape]
        lengths += [n for p in self.inputs for n in p.spec.shape]
        self.sizes = tuple(
            sorted({n for n in names_in(lengths) if not n.startswith((OPEN, LOCAL))})
        )
        self.size_slots = tuple(self._slot() for _ in self.sizes)
        results = (*graph.outputs, *graph.updates.values())
        self.outputs = tuple(Port(s, self._slot()) for n in results for s in specs_of(n))
        self.counts = [len(n.spec) if isinstance(n.spec, tuple) else 0 for n in results]
        self.constants: list[tuple[int, np.ndarray[Any, Any]]] = []
        self.callbacks = HostCallbacks(graph.nodes, self.sizes, self.size_slots)
        self.overwritten = overwritten(self.plan, graph) if overwrites else {}
        self.needs_runtime = False
        self._nest_names: dict[str, str] = {}
        self._once: set[str] = set()  # nests that a run goes through once
        self._bodies: dict[
            tuple[Body, tuple[tuple[int, int], ...], InputFacts | None, bool], LoopBody
        ] = {}
        self._count = 0  # of bodies, including those being emitted
        self._callback_slot = -1
        self.function = Function(
            self.module, "kernel", [("ptr", "frame")], "i64", "nounwind #1", linkage=""
        )
        self.write()
        if self._callback_slot >= 0:
            self.constants.append((self._callback_slot, self.callbacks.pointer))
        self.is_single = is_single(graph)
        self.nesting = None
        if not self.is_called_by_python:
            return
        entry_text(self.module, self, single=self.is_single)
        self.nesting = nesting_of(graph)
        if self.nesting is not None:
            entry_text(self.module, self, nesting=self.nesting, name="nested")

    @property
    def graph(self) -> BaseGraph:
        """The graph, held by a weak reference: a program does not outlive its graph."""
        found = self._graph()
        assert found is not None, "the graph of this program no longer exists"
        return found

    @property
    def host_callbacks(self) -> list[Any]:
        """The nodes that are called back in Python."""
        return self.callbacks.nodes

    @functools.cached_property
    def text(self) -> str:
        """The LLVM IR of the module."""
        return self.module.text(execution_engine.heading())

    @functools.cached_property
    def modules(self) -> tuple[tuple[str, bool], ...]:
        """The texts that are compiled, each with whether to use few optimization passes.

        A long kernel only passes addresses to nests and calls; optimizing it has no effect and
        takes time that grows faster than its length.  Long code without loops, of an unrolled
        program, takes more time to optimize than thousands of runs.  If calls return nested tuples,
        the entry point that returns a flat tuple is used by the slow path only.  An entry point
        runs once per call: with dozens of arguments, optimizing it takes longer than all its calls.
        """
        lines = {name: text.count("\n") for name, text in self.module.parts.items()}
        quick = ["kernel"] * (lines["kernel"] > thresholds.quick_kernel_lines and not self._bodies)
        quick += ["entry"] * (
            lines["entry"] > thresholds.quick_entry_lines or self.nesting is not None
        )
        quick += ["nested"] * (lines.get("nested", 0) > thresholds.quick_entry_lines)
        once = [*sorted(self._once), *(() if self._bodies else self.steps.unrolled)]
        if sum(lines[name] for name in once) > thresholds.quick_nest_lines:
            quick += once
        if quick or sum(lines[name] for name in self.module.cold) > thresholds.quick_kernel_lines:
            quick += self.module.cold
        if not quick:
            return ((self.text, False),)
        cold, hot = self.module.halves(quick, execution_engine.heading())
        return (hot, False), (cold, True)

    @property
    def calls_special_functions(self) -> bool:
        """Whether it calls special functions of SciPy, which may set a Python exception."""
        return bool(self.module.symbols)

    @property
    def cannot_fail(self) -> bool:
        """Whether nothing can fail after the first variable is overwritten."""
        if not self.overwritten:
            return True
        last_stages = len(self.plan.stages) - first_stage(self.plan, self.overwritten)
        may_fail = any(nest.may_fail for nest, _ in self.nests[-last_stages:])
        # Checks for interrupts come before the first overwritten variable.
        raises = not self.module.symbols.keys() <= LISTENED
        return not (may_fail or raises or self.host_callbacks)

    @property
    def assembly(self) -> str:
        """The assembly of the machine code."""
        return execution_engine.assembly_of(self.text)

    @property
    def symbols(self) -> dict[str, int]:
        """Addresses of external functions."""
        return {
            **self.steps.symbols,
            **self.module.symbols,
            **(symbols() if self.needs_runtime else {}),
        }

    def runtime(self, name: str, result: str, arguments: Sequence[str]) -> str:
        """Declare a function of the runtime; returns ``@name``."""
        self.needs_runtime = True
        return self.module.declare(name, result, arguments)

    def _slot(self) -> int:
        self.slots += 1
        return self.slots - 1

    def _input(self, number: int, spec: Spec, layout: str) -> Port:
        port = Port(spec, self._slot(), layout == "S", layout == "F")
        if port.strided:
            for name in stride_names(number, spec.ndim):
                self._stride_slots[name] = self._slot(), spec.dtype.itemsize
        return port

    # ---- batch loops -----------------------------------------------------------------------------

    def run_stages(self, body: Section) -> None:
        """Emit the stages in order; those of batch loops item by item, if that is possible."""
        loops = {loop.start: loop for loop in self.plan.batch_loops if self.has_batch_loops}
        position = 0
        while position < len(self.plan.stages):
            loop = loops.get(position)
            if loop is None or not self._run_batch_loop(body, loop):
                self.run_stage(body, self.plan.stages[position])
                position += 1
            else:
                position = loop.stop

    def _run_batch_loop(self, body: Section, loop: BatchLoop) -> bool:
        """Emit a loop over the items of a batch; False if its stages have to run one by one."""
        stages = self.plan.stages[loop.start : loop.stop]
        pairs = [
            (stage, None if isinstance(stage, Expr) else self._dedup.written(stage))
            for stage in (*loop.repeated, *stages)
        ]
        nests = [nest for _, nest in pairs if nest is not None]
        if not all([batch_loops.suits(nest, loop.length) for nest in nests]):
            return False
        results = {x: self._parts[x][0] for x in stages if isinstance(x, Expr)}
        title = f"batch{len(self.batch_loops)}"
        calls = batch_loops.BatchLoopCalls(self, loop, pairs, results, title)
        for nest in nests[len(loop.repeated) :]:
            self.nests.append((nest, nest.name))
            self.needs_runtime |= nest.needs_runtime
            self.work_bytes = self.work_bytes + extent_of(nest) * work_of(nest)
        frame = calls.write(body)
        if calls.may_fail:
            self.leave_if_not_zero(body, body.value(f"load i64, ptr {frame}"))
        self.batch_loops.append(loop)
        return True

    # ---- the kernel ------------------------------------------------------------------------------

    @property
    def frame(self) -> str:
        """The address of the frame, which the caller fills."""
        return "%frame"

    def framed(self, section: Section, slot: int, kind: str = "ptr") -> str:
        """Load a slot of the frame."""
        address = section.value(f"getelementptr i64, ptr %frame, i64 {slot}")
        return section.value(f"load {kind}, ptr {address}")

    def incoming(self) -> Mapping[Expr, str]:
        """The addresses of inputs and results, from the frame."""
        pairs = [*zip(self.plan.inputs, self.inputs, strict=True)]
        pairs += zip(self.plan.outputs, self.outputs, strict=True)
        pairs += [(self.plan.outputs[k], self.inputs[i]) for k, i in self.overwritten.items()]
        return {expr: self.framed(self._head, port.slot) for expr, port in pairs}

    def separate_results(self) -> Sequence[Expr]:
        """The results, except variables that are overwritten."""
        return [x for k, x in enumerate(self.plan.outputs) if k not in self.overwritten]

    def named_size(self, name: str) -> str:
        """A symbolic size, or a stride, as an i64."""
        if name in self._stride_slots:
            slot, itemsize = self._stride_slots[name]
            return self._head.value(f"sdiv i64 {self.framed(self._head, slot, 'i64')}, {itemsize}")
        return self.framed(self._head, self.size_slots[self.sizes.index(name)], "i64")

    def constant(self, array: np.ndarray[Any, Any]) -> str:
        """The address of a constant array."""
        return self.framed(self._head, self.constant_slot(array))

    def constant_slot(self, array: np.ndarray[Any, Any]) -> int:
        """The slot of the frame with the address of a constant array."""
        slot = self._slot()
        self.constants.append((slot, array))
        return slot

    def memory(self, total: Length) -> str:
        """Allocate a number of bytes."""
        return self.allocate_workspace(total)

    def callback_slot(self) -> int:
        """The slot of the frame with the entry of host callbacks."""
        if self._callback_slot < 0:
            self._callback_slot = self._slot()
        return self._callback_slot

    def nest_name(self, text: str, once: bool = False) -> str:
        """The name of a nest's function, emitted if there is no identical one."""
        name = self._nest_names.get(text)
        if name is None:
            name = self._nest_names[text] = f"nest{len(self._nest_names)}"
            self.module.parts[name] = named(text, name)
            if once:
                self._once.add(name)
        elif not once:
            self._once.discard(name)
        return name

    def body(
        self,
        body: Body,
        updates: Sequence[tuple[int, int]] = (),
        facts: InputFacts | None = None,
        is_unrolled: bool = True,
    ) -> LoopBody:
        """The function of a body, emitted at its first use."""
        key = body, tuple(updates), facts, is_unrolled
        found = self._bodies.get(key)
        if found is None:
            self._count += 1
            name = f"body{self._count}"
            found = loop_body.LoopBody(self, body, name, updates, facts, is_unrolled)
            self._bodies[key] = found
        return found

    def nested(self, step: Expr, known: Integers) -> Any:
        """The code generator of a loop or conditional, with its bodies."""
        return _NESTED[step.node.op.name]()(self, step, known)
