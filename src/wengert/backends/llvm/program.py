"""Program: one graph as one module with one function, `i64 @kernel(ptr %frame)`.

The kernel runs the stages of the plan one after the other; nests and kernels are functions of the
module, and equal ones are one.  What is kept between stages lies in one piece of memory, in which a
place is used again when what it held is no longer needed.

    Program    text, ports, sizes, constants: all that is needed to compile and call it
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dims import Dim, Length, names_in
from ...core.graph import Graph
from ...core.late import Late
from ...core.spec import Spec
from . import engine
from .alike import Alike, Written
from .assembly import Function, Module, Section
from .dtypes import I64
from .entry import entry_text
from .islands import Islands
from .items import Held, Item, Part
from .kernels import KERNELS, Array, Steps, contiguous, is_served
from .lane import Lane
from .language import Language
from .lowering.leaves import stride_names
from .lowering.registry import specs_of
from .nests import Nest, named
from .parallel import Walking
from .plan import Plan, owner_of
from .port import Port
from .returned import is_single, nesting_of
from .runtime.library import symbols
from .strided import strided_view
from .walks import Walk
from .workspace import arranged

if TYPE_CHECKING:
    from . import summary as summaries
    from .summary import Summary
else:
    summaries = Late(f"{__package__}.summary")

_ON_STACK = 32768  # bytes kept between stages, up to which they are part of the stack
_LINE = 64
_LONG = 400  # lines of a kernel


class Program:
    """One graph, written for this machine.

    Parameters
    ----------
    graph : Graph
        Its sizes may have names: one program serves all of them.
    threads : int, optional
        How many it may use; by default as many as are set for all (`wengert.set_threads`).
    layouts : str
        For each input, then each variable, how it lies in memory (lowering/leaves.py).

    Attributes
    ----------
    inputs, outputs : tuple of Port
    sizes, size_slots : tuple
    slots : int
    constants : list of (int, numpy.ndarray)
    symbols : dict from str to int
        Addresses of what it needs from outside.
    threads : int or None
    requirements : list of Requirement
        What has to hold of the sizes.
    long : Length
        The work of a run, beside what moves inputs and outputs, as so many bytes moved.
    callbacks : Islands
    islands : list of Node
        The lines that are called back in Python.
    is_single : bool
        Whether a call returns its only output, and no tuple.
    nesting : tuple or None
        Of the results, if a call returns tuples in tuples; then there is an entry for that too.
    counts : list of int
        For each result of the graph 0, or how many outputs it is made of.
    workspace : Length
        Bytes of what is kept between stages.
    text : str
    plan : Plan
    """

    def __init__(self, graph: Graph, threads: int | None = None, layouts: str = "") -> None:
        self._graph, self.threads = weakref.ref(graph), threads
        self.layouts = layouts.ljust(len(graph.inputs) + len(graph.variables), "C")
        self.requirements = graph.requirements
        self.plan = Plan(graph, self.layouts)
        self.module = Module()
        self.language = Language(self.module)
        self.steps = Steps(self.language, threads)
        self.slots = 0
        self._stride_slots: dict[str, tuple[int, int]] = {}
        self.inputs = tuple(
            self._input(k, n.spec, layout)
            for k, (n, layout) in enumerate(
                zip((*graph.inputs, *graph.variables), self.layouts, strict=True)
            )
        )
        lengths = [n for item in self.plan.reachable for n in item.shape]
        lengths += [n for p in self.inputs for n in p.spec.shape]
        self.sizes = tuple(sorted(names_in(lengths)))
        self.size_slots = tuple(self._slot() for _ in self.sizes)
        results = (*graph.outputs, *graph.updates.values())
        self.outputs = tuple(self._port(s) for n in results for s in specs_of(n))
        self.counts = [len(n.spec) if isinstance(n.spec, tuple) else 0 for n in results]
        self.constants: list[tuple[int, np.ndarray[Any, Any]]] = []
        self.callbacks = Islands(graph, self.sizes, self.size_slots)
        self.long: Length = 0
        self._needs_runtime = False
        self.nests: list[tuple[Written, str]] = []
        self._nest_names: dict[str, str] = {}
        self._write()
        if self.islands:
            self.constants.append((self._island_slot, self.callbacks.pointer))
        self.is_single = is_single(graph)
        entry_text(self.module, self, single=self.is_single)
        self.nesting = nesting_of(graph)
        if self.nesting is not None:
            entry_text(self.module, self, nesting=self.nesting, name="nested")

    @property
    def graph(self) -> Graph:
        """The graph, which is not kept alive: programs are kept as long as graphs are."""
        found = self._graph()
        assert found is not None, "the graph of this program is gone"
        return found

    @property
    def islands(self) -> list[Any]:
        """The lines that are called back in Python."""
        return self.callbacks.nodes

    @functools.cached_property
    def text(self) -> str:
        """The module, as LLVM reads it."""
        return self.module.text(engine.heading())

    @functools.cached_property
    def modules(self) -> tuple[tuple[str, bool], ...]:
        """What is compiled: texts, and whether LLVM is to take no pains with each.

        A long kernel only hands addresses to nests and steps; LLVM would take time that grows
        faster than its length, to no effect.  Where calls return tuples in tuples, the entry that
        returns a flat one is for the long way only.
        """
        is_long = self.module.parts["kernel"].count("\n") > _LONG
        quick = ["kernel"] * is_long + ["entry"] * (self.nesting is not None)
        if not quick:
            return ((self.text, False),)
        seldom, often = self.module.halves(quick, engine.heading())
        return (often, False), (seldom, True)

    @property
    def calls_specials(self) -> bool:
        """Whether it calls special functions of SciPy's, which may set a Python exception."""
        return bool(self.module.symbols)

    @property
    def assembly(self) -> str:
        """The machine's instructions."""
        return engine.assembly_of(self.text)

    @property
    def loops(self) -> str:
        """What shares a loop, what is stored, and what is called."""
        return str(self.summary)

    @functools.cached_property
    def summary(self) -> Summary:
        """Its nests, calls, islands and buffers, and what they cost."""
        return summaries.summary_of(self)

    @property
    def symbols(self) -> dict[str, int]:
        """Addresses of what it needs from outside."""
        return {
            **self.steps.symbols,
            **self.module.symbols,
            **(symbols() if self._needs_runtime else {}),
        }

    def runtime(self, name: str, result: str, arguments: Sequence[str]) -> str:
        """A function of the runtime, as ``@name``."""
        self._needs_runtime = True
        return self.module.declare(name, result, arguments)

    def _slot(self) -> int:
        self.slots += 1
        return self.slots - 1

    def _port(self, spec: Spec) -> Port:
        return Port(spec, self._slot())

    def _input(self, number: int, spec: Spec, layout: str) -> Port:
        port = Port(spec, self._slot(), layout == "S", layout == "F")
        if port.strided:
            for name in stride_names(number, spec.ndim):
                self._stride_slots[name] = self._slot(), spec.dtype.itemsize
        return port

    # ---- the kernel ------------------------------------------------------------------------------

    def _write(self) -> None:
        self.function = Function(
            self.module, "kernel", [("ptr", "frame")], "i64", "nounwind #1", linkage=""
        )
        body = self.function.body
        self._head = self.language.home = body.inside()
        self._status = self.function.slot("i64")
        self._head.write(f"store i64 0, ptr {self._status}")
        self._pointers: dict[Any, str] = {}
        self._lanes: dict[Any, Any] = {}
        self._island_slot = -1
        self._place_all()
        self._stored = set(self.plan.stored)
        self._alike = Alike(self._stored, self._new_nest)
        for stage in self.plan.stages:
            if isinstance(stage, Walk):
                self._run_walk(body, stage)
            else:
                self._run_step(body, stage)
        body.write("br label %leave")
        body.label("leave")
        self._give_back(body)
        status = body.value(f"load i64, ptr {self._status}")
        body.write(f"ret i64 {status}")
        self.module.add(self.function)

    def _framed(self, slot: int, kind: str = "ptr") -> str:
        place = self._head.value(f"getelementptr i64, ptr %frame, i64 {slot}")
        return self._head.value(f"load {kind}, ptr {place}")

    def _place_all(self) -> None:
        """Where every stored item is."""
        for item, port in zip(self.plan.inputs, self.inputs, strict=True):
            self._pointers[item] = self._framed(port.slot)
        for item, port in zip(self.plan.outputs, self.outputs, strict=True):
            self._pointers[item] = self._framed(port.slot)
        inner = [x for x in self.plan.stored if x not in self._pointers]
        inner += [p for p in self._unused_parts() if p not in self._pointers]
        offsets, total = arranged(self.plan, inner)
        self.workspace = total
        self._held: str | None = None
        if type(total) is int and total <= _ON_STACK:
            base = self.function.slot(f"[{max(total, 1)} x i8]", _LINE)
        else:
            alloc = self.runtime("wengert_alloc", "ptr", ["i64"])
            count = self.number(total)
            base = self._head.value(f"call ptr {alloc}(i64 {count})")
            self._held = base
            none = self._head.value(f"icmp eq ptr {base}, null")
            self._head.write(f"store i64 3, ptr {self._status}")
            self._head.write(f"br i1 {none}, label %leave, label %begin")
            self._head.label("begin")
            self._head.write(f"store i64 0, ptr {self._status}")
        for item, offset in zip(inner, offsets, strict=True):
            self._pointers[item] = self._head.value(
                f"getelementptr i8, ptr {base}, i64 {self.number(offset)}"
            )

    def _unused_parts(self) -> list[Item]:
        """Results of steps that nobody reads, but that the step writes."""
        found: list[Item] = []
        self._parts: dict[Item, list[Item]] = {}
        for item in self.plan.reachable:
            if isinstance(item.rule, Part):
                self._parts.setdefault(item.operands[0], []).append(item)
        for stage in self.plan.stages:
            if isinstance(stage, Walk):
                continue
            node = stage.node
            specs = specs_of(node)
            mine = {p.rule.position: p for p in self._parts.get(stage, [])}  # type: ignore[attr-defined]
            for k, spec in enumerate(specs):
                if k not in mine:
                    mine[k] = Item(Part(k), (stage,), spec.shape, spec.dtype, node)
                    found.append(mine[k])
            self._parts[stage] = [mine[k] for k in range(len(specs))]
        return found

    def _give_back(self, body: Section) -> None:
        if self._held is not None:
            free = self.runtime("wengert_free", "void", ["ptr"])
            body.write(f"call void {free}(ptr {self._held})")

    def number(self, length: Length) -> str:
        """A length as LLVM writes it, computed before everything else."""
        if not isinstance(length, Dim):
            return str(length)
        found = self._lanes.get(length)
        if found is None:
            sizes = {name: self._size(name) for name in sorted(names_in((length,)))}
            made: Any = length.replace(sizes)
            found = self._lanes[length] = made
        return str(found.name)

    def _size(self, name: str) -> Any:
        found = self._lanes.get(name)
        if found is None:
            if name in self._stride_slots:
                slot, itemsize = self._stride_slots[name]
                value = self._head.value(f"sdiv i64 {self._framed(slot, 'i64')}, {itemsize}")
            else:
                value = self._framed(self.size_slots[self.sizes.index(name)], "i64")
            found = self._lanes[name] = Lane(self.language, self._head, value, I64, 1)
        return found

    def pointer(self, item: Item) -> str:
        """The address of a stored item."""
        found = self._pointers.get(item)
        if found is None:
            assert isinstance(item.rule, Held) and item.rule.array is not None, item
            slot = self._slot()
            self.constants.append((slot, _kept(item.rule.array)))
            found = self._pointers[item] = self._framed(slot)
        return found

    # ---- stages ----------------------------------------------------------------------------------

    def _run_walk(self, body: Section, walk: Walk) -> None:
        nest = self._alike.written(walk)
        self.nests.append((nest, nest.name))
        self._needs_runtime |= nest.needs_runtime
        Walking(self, body, nest, nest.name).write()

    def _new_nest(self, walk: Walk) -> tuple[Nest, str]:
        nest = Nest(self.language, walk, self._stored, engine.vector_bytes())
        self.language.home = self._head
        text = nest.text("nest")
        name = self._nest_names.get(text)
        if name is None:
            name = self._nest_names[text] = f"nest{len(self._nest_names)}"
            self.module.parts[name] = named(text, name)
        return nest, name

    def table(self, body: Section, nest: Written, instead: Mapping[Any, str]) -> str:
        """What a nest is given: addresses and sizes; `instead` has others for some items."""
        table = self.function.slot(f"[{len(nest.table) + 1} x i64]", 8)
        body.write(f"store i64 0, ptr {table}")
        for k, entry in enumerate(nest.table, 1):
            place = body.value(f"getelementptr i64, ptr {table}, i64 {k}")
            if isinstance(entry, str):
                body.write(f"store i64 {self._size(entry).name}, ptr {place}")
            else:
                body.write(f"store ptr {instead.get(entry) or self.pointer(entry)}, ptr {place}")
        return table

    def check(self, body: Section, nest: Written, table: str) -> None:
        """Leave if a nest has failed."""
        if nest.may_fail:
            self._leave_if_not_zero(body, body.value(f"load i64, ptr {table}"))

    def _leave_if_not_zero(self, body: Section, status: str) -> None:
        n = self.function.number()
        body.write(f"store i64 {status}, ptr {self._status}")
        failed = body.value(f"icmp ne i64 {status}, 0")
        body.write(f"br i1 {failed}, label %leave, label %on{n}")
        body.label(f"on{n}")

    def _run_step(self, body: Section, step: Item) -> None:
        node = step.node
        results = [contiguous(self.pointer(p), p.shape, p.dtype) for p in self._parts[step]]
        if is_served(node):
            strided = KERNELS[node.op.name].strided
            operands = [self._operand(body, x, strided) for x in step.operands]
            options = step.rule.options  # type: ignore[attr-defined]
            status = self.steps.write(
                body, node.op.name, node.params, operands, results, self.number, **options
            )
            if status != "0":
                self._leave_if_not_zero(body, status)
            return
        operands = [self._operand(body, x, False) for x in step.operands]
        self._run_island(body, node, [*operands, *results])

    def _operand(self, body: Section, x: Item, strided: bool) -> Array:
        if strided:
            view = strided_view(x)
            if view is not None:
                base, offset, strides = view
                pointer = self.pointer(base)
                count = self.number(offset * x.dtype.itemsize)
                moved = (
                    pointer
                    if count == "0"
                    else body.value(f"getelementptr i8, ptr {pointer}, i64 {count}")
                )
                return Array(moved, x.shape, strides, x.dtype)
        return contiguous(self.pointer(owner_of(x)), x.shape, x.dtype)

    def _run_island(self, body: Section, node: Any, arrays: Sequence[Array]) -> None:
        if self._island_slot < 0:
            self._island_slot = self._slot()
            cell = self._framed(self._island_slot)
            self._island = self._head.value(f"load ptr, ptr {cell}")
        k = self.callbacks.add(node)
        table = self.function.slot(f"[{max(len(arrays), 1)} x ptr]", 8)
        for n, array in enumerate(arrays):
            place = body.value(f"getelementptr ptr, ptr {table}, i64 {n}")
            body.write(f"store ptr {array.pointer}, ptr {place}")
        status = body.value(f"call i64 {self._island}(i64 {k}, ptr {table}, ptr %frame)")
        self._leave_if_not_zero(body, status)


def _kept(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A constant that nobody can change: in C order, with memory of its own."""
    return np.array(array, order="C", copy=True)
