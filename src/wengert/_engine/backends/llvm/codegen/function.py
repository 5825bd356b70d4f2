"""A graph as one LLVM function: the stages of its schedule, in order.

Loop nests and kernels are functions of the module; identical ones are emitted once.
Intermediate arrays are in one block of memory, which is reused by lifetime.

    FunctionCodegen    the common base of the kernel of a graph (program.py) and loop bodies
                       (loops/loop_body.py)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np

from wengert._engine.core.symbolic.dim import LOCAL, OPEN, Dim, Length, is_open, names_in

from ..ir import execution_engine
from ..ir.execution_engine import foreign
from ..ir.index_analysis import size_of
from ..ir.ir_builder import Function, ModuleBuilder, Section
from ..ir.llvm_types import I64
from ..ir.scalar_language import Language
from ..ir.simd_value import Lane
from ..kernels import KERNELS, ArrayPointer, contiguous, is_served
from ..kernels.loop_helpers import offset as shifted
from ..lowering.loop_ir import Expr, Stored, strided_view
from ..lowering.scatter_chains import SliceUpdate
from ..schedule.fusion import FusedLoops, roots_of
from ..schedule.integer_ranges import Integers
from ..schedule.scheduling import Schedule, owner_of
from ..schedule.slices import largest_shape
from ..schedule.workspace import arranged, results_of_calls, taken_over
from ..tuning import thresholds
from .host_callbacks import called, copied_flag, is_conditional, lengths_of, table_of
from .loop_nests import LoopNest
from .nest_calls import EmittedNest, KernelDedup, LoopCalls
from .pending_messages import PendingMessages
from .program_context import ProgramContext

LINE = 64  # bytes of a cache line


class HasTable(Protocol):
    """A function with a table of addresses: a loop nest, or straight-line code."""

    table: list[Any]
    may_fail: bool


class FunctionCodegen:
    """A graph as one function that returns a status.

    Parameters
    ----------
    context : ProgramContext
        The program to which it belongs; a program is its own context.

    Attributes
    ----------
    function : Function
    workspace : Length
        Bytes of intermediate arrays.
    work_bytes : Length
        An estimate of the bytes that a run moves, or of equally expensive arithmetic.
    nests : list of (EmittedNest, str)
        The loop nests of its stages, and their names.
    largest_sizes : mapping
        Upper bounds of sizes that differ between the steps of a loop.
    """

    context: ProgramContext
    function: Function
    module: ModuleBuilder
    language: Language
    threads: int | None
    runs_once = False  # in a run of the program
    largest_sizes: Mapping[str, Length] = MappingProxyType({})

    def __init__(self, context: ProgramContext, plan: Schedule, integers: Integers) -> None:
        self.context, self.plan, self.integers = context, plan, integers
        self.module, self.language, self.threads = context.module, context.language, context.threads
        self.work_bytes: Length = 0
        self.workspace: Length = 0
        self.nests: list[tuple[EmittedNest, str]] = []
        self._pointers: dict[Any, str] = {}
        self._lanes: dict[Any, Any] = {}
        self._lengths_bound_in: dict[str, Section] = {}  # lengths computed at run time, and where
        self._parts: dict[Expr, list[Expr]] = {}
        self._spared: dict[Expr, tuple[int, ...]] = {}  # unused results of calls
        self._allocation_slots: list[str] = []
        self._nested: dict[Expr, Any] = {}

    # ---- defined by subclasses -------------------------------------------------------------------

    def incoming(self) -> Mapping[Expr, str]:
        """The addresses of inputs and results."""
        raise NotImplementedError

    def named_size(self, name: str) -> str:
        """A symbolic size that is an argument, as an i64."""
        raise NotImplementedError

    def constant(self, array: np.ndarray[Any, Any]) -> str:
        """The address of a constant array."""
        raise NotImplementedError

    def memory(self, total: Length) -> str:
        """The address of an allocated block."""
        raise NotImplementedError

    @property
    def frame(self) -> str:
        """The address of the program's frame."""
        raise NotImplementedError

    def separate_results(self) -> Sequence[Expr]:
        """The results whose memory is not that of an input."""
        raise NotImplementedError

    def is_written_out(self, stage: Expr) -> bool:
        """Whether the branches of a conditional are inlined as straight-line code."""
        return False

    def runtime(self, name: str, result: str, arguments: Sequence[str]) -> str:
        """Declare a function of the runtime; returns ``@name``."""
        return self.context.runtime(name, result, arguments)

    # ---- the function ----------------------------------------------------------------------------

    def write(self) -> None:
        """Emit the function."""
        body = self.function.body
        self._head = self.language.home = body.inside()
        self._status = self.function.slot("i64")
        self._head.write(f"store i64 0, ptr {self._status}")
        self._nested = {
            stage: self.context.nested(stage, self.integers)
            for stage in self.plan.stages
            if isinstance(stage, Expr)
            and stage.node.op.kind == "control"
            and not self.is_written_out(stage)
        }
        self.language.home = self._head
        self._place_all()
        self._stored = set(self.plan.stored)
        self._dedup = KernelDedup(self._stored, self._new_nest)
        self.run_stages(body)
        body.block("leave")
        self._messages.complete(body)
        self._free_memory(body)
        status = body.value(f"load i64, ptr {self._status}")
        body.write(f"ret i64 {status}")
        self.module.add(self.function)

    def run_stages(self, body: Section) -> None:
        """Emit the stages in order."""
        for stage in self.plan.stages:
            self.run_stage(body, stage)
            self._messages.after(body, stage)

    def run_stage(self, body: Section, stage: FusedLoops | Expr) -> None:
        """Emit one stage."""
        if stage in self._nested:
            self._run_nested(body, stage)
            return
        made = roots_of(stage) if isinstance(stage, FusedLoops) else self._parts[stage]
        for expr in made:
            if expr in self._stored and any(map(is_open, expr.shape)):
                self.allocate(body, expr)
        if isinstance(stage, FusedLoops):
            self._run_fused_loops(body, stage)
        else:
            self._run_step(body, stage)

    def _place_all(self) -> None:
        """Assign memory to every stored expression."""
        self._pointers.update(self.incoming())
        inner = [x for x in self.plan.stored if x not in self._pointers]
        self._parts, self._spared = results_of_calls(self.plan)
        self._messages = PendingMessages(
            self.context.steps, self.plan, self._parts, self.function, self._head
        )
        self._pointers.update(self._messages.slots)
        unused = {s: [self._parts[s][k] for k in places] for s, places in self._spared.items()}
        inner += [x for parts in unused.values() for x in parts if x not in self._pointers]
        sources = taken_over(self.plan, [*self.plan.outputs, *inner], self._overwrites)
        for expr in self.separate_results():  # what becomes a result is computed in its memory
            source = None if any(map(is_open, expr.shape)) else sources.get(expr)
            while source is not None and source not in self._pointers:
                self._pointers[source] = self._pointers[expr]
                source = sources.get(source)
        inner = [x for x in inner if x not in self._pointers]
        largest = {x: largest_shape(x.shape, self.largest_sizes) for x in inner}
        shapes = {x: shape for x, shape in largest.items() if shape is not None}
        inner = list(shapes)
        offsets, total = arranged(self.plan, inner, shapes, sources)
        for nested in self._nested.values():
            total = nested.reserve_workspace(total)
        self.workspace = total
        self._workspace_base: str | None = None
        if type(total) is int and total <= thresholds.workspace_stack_bytes:
            base = self.function.slot(f"[{max(total, 1)} x i8]", LINE)
        else:
            base = self.memory(total)
        for expr, offset in zip(inner, offsets, strict=True):
            self._pointers[expr] = self.inside(base, offset)
        for nested in self._nested.values():
            nested.set_workspace(self, base)

    def _overwrites(self, step: Expr, position: int) -> bool:
        """Whether a loop, or a body with lengths, writes a result over the operand it updates."""
        nested = self._nested.get(step)
        return nested is not None and nested.overwrites(position)

    def inside(self, base: str, offset: Length) -> str:
        """An address with an offset in bytes."""
        return self._head.value(f"getelementptr i8, ptr {base}, i64 {self.number(offset)}")

    def allocate_workspace(self, total: Length) -> str:
        """Allocate the workspace, which is freed at the end; returns its address."""
        alloc = self.runtime("wengert_alloc", "ptr", ["i64"])
        self.module.allocations.append((self.function.name, total))
        base = self._head.value(f"call ptr {alloc}(i64 {self.number(total)})")
        self._workspace_base = base
        none = self._head.value(f"icmp eq ptr {base}, null")
        self._head.write(f"store i64 3, ptr {self._status}")
        self._head.write(f"br i1 {none}, label %leave, label %begin")
        self._head.label("begin")
        self._head.write(f"store i64 0, ptr {self._status}")
        return base

    def allocate(self, section: Section, expr: Expr) -> None:
        """Allocate an array whose size is computed at run time, unless it has memory already."""
        if expr in self._pointers:
            return
        self._pointers[expr] = self.allocate_bytes(section, self.number(bytes_of(expr)))

    def allocate_bytes(self, section: Section, size: str) -> str:
        """Allocate a number of bytes (an i64), freed at the end."""
        alloc = self.runtime("wengert_alloc", "ptr", ["i64"])
        self.module.allocations.append((self.function.name, None))
        slot = self.allocation_slot()
        pointer = section.value(f"call ptr {alloc}(i64 {section.value(f'or i64 {size}, 1')})")
        section.write(f"store ptr {pointer}, ptr {slot}")
        self.leave_without(section, pointer)
        return pointer

    def leave_without(self, section: Section, pointer: str) -> None:
        """Return early if an allocation failed."""
        none = section.value(f"icmp eq ptr {pointer}, null")
        self.leave_if_not_zero(section, section.value(f"select i1 {none}, i64 3, i64 0"))

    def allocation_slot(self) -> str:
        """A slot for the address of memory that is allocated later, and freed at the end."""
        slot = self.function.slot("ptr")
        self._head.write(f"store ptr null, ptr {slot}")
        self._allocation_slots.append(slot)
        return slot

    def _free_memory(self, body: Section) -> None:
        free = ""
        if self._workspace_base is not None or self._allocation_slots:
            free = self.runtime("wengert_free", "void", ["ptr"])
        for slot in self._allocation_slots:
            late = body.value(f"load ptr, ptr {slot}")
            body.write(f"call void {free}(ptr {late})")
        if self._workspace_base is not None:
            body.write(f"call void {free}(ptr {self._workspace_base})")

    # ---- numbers and addresses -------------------------------------------------------------------

    def number(self, length: Length) -> str:
        """A length as an LLVM operand, computed as early as possible."""
        if not isinstance(length, Dim):
            return str(length)
        found = self._lanes.get(length)
        if found is None:
            sizes = {name: self._size(name) for name in sorted(names_in((length,)))}
            if after := [
                section for name, section in self._lengths_bound_in.items() if name in sizes
            ]:
                # A length that depends on one computed by the run is computed after it.
                sizes = {
                    n: Lane(self.language, after[-1], x.name, I64, 1) for n, x in sizes.items()
                }
            made: Any = length.replace(sizes)
            found = self._lanes[length] = made
        return str(found.name)

    def size(self, name: str) -> str:
        """A symbolic size as an i64."""
        return str(self._size(name).name)

    def _size(self, name: str) -> Any:
        if name not in self._lanes:
            self._lanes[name] = Lane(self.language, self._head, self.named_size(name), I64, 1)
        return self._lanes[name]

    def bind_length(self, length: Length, section: Section, value: str) -> None:
        """Bind a length that is computed at run time, or compare it if it is bound already."""
        if isinstance(length, Dim):
            (name,) = length.names
            if name in self._lanes:
                other = section.value(f"icmp ne i64 {value}, {self._lanes[name].name}")
                self.leave_if_not_zero(section, section.value(f"zext i1 {other} to i64"))
                return
            self._lanes[name] = Lane(self.language, section, value, I64, 1)
            self._lengths_bound_in[name] = section

    def pointer(self, expr: Expr) -> str:
        """The address of a stored expression."""
        found = self._pointers.get(expr)
        if found is None:
            assert isinstance(expr.rule, Stored) and expr.rule.array is not None, expr
            found = self._pointers[expr] = self.constant(np.array(expr.rule.array, order="C"))
        return found

    # ---- stages ----------------------------------------------------------------------------------

    def _run_fused_loops(self, body: Section, fused: FusedLoops) -> None:
        for root in roots_of(fused):
            if isinstance(root.rule, SliceUpdate):
                self._copy_apart(body, root, root.operands[1])
        nest = self._dedup.written(fused)
        self.nests.append((nest, nest.name))
        self.context.needs_runtime |= nest.needs_runtime
        LoopCalls(self, body, nest, nest.name).write()

    def _copy_apart(self, body: Section, to: Expr, of: Expr) -> None:
        """Copy an array, unless it is in the same memory."""
        target, source = self.pointer(to), self.pointer(owner_of(of))
        with body.when(body.value(f"icmp ne ptr {source}, {target}")) as inner:
            inner.copy_bytes(target, source, self.number(bytes_of(to)))

    def _new_nest(self, fused: FusedLoops) -> tuple[LoopNest, str]:
        width = execution_engine.loop_bytes()
        facts = self.runs_once, self.largest_sizes
        nest = LoopNest(self.language, fused, self._stored, width, *facts)
        self.language.home = self._head
        return nest, self.context.nest_name(nest.text("nest"), nest.has_offset_entries)

    def table(self, body: Section, nest: HasTable, instead: Mapping[Any, str]) -> str:
        """The table of a nest: addresses and sizes; `instead` replaces some addresses."""
        table = self.function.slot(f"[{len(nest.table) + 1} x i64]", 8)
        body.write(f"store i64 0, ptr {table}")
        for k, entry in enumerate(nest.table, 1):
            place = body.value(f"getelementptr i64, ptr {table}, i64 {k}")
            if isinstance(entry, str):
                body.write(f"store i64 {self._size(entry).name}, ptr {place}")
                continue
            expr, shift = entry if isinstance(entry, tuple) else (entry, 0)
            address = instead.get(expr) or self.pointer(expr)
            address = shifted(body, address, str(shift), expr.dtype)
            body.write(f"store ptr {address}, ptr {place}")
        return table

    def check(self, body: Section, nest: HasTable, table: str) -> None:
        """Return early if a nest has failed."""
        if nest.may_fail:
            self.leave_if_not_zero(body, body.value(f"load i64, ptr {table}"))

    def leave_if_not_zero(self, body: Section, status: str) -> None:
        """Return early with a status other than zero."""
        n = self.function.number()
        body.write(f"store i64 {status}, ptr {self._status}")
        failed = body.value(f"icmp ne i64 {status}, 0")
        body.write(f"br i1 {failed}, label %leave, label %on{n}")
        body.label(f"on{n}")

    def _run_nested(self, body: Section, step: Expr) -> None:
        operands = [self._operand(body, x, False) for x in step.operands]
        for part in self._parts[step]:
            names = names_in(part.shape)
            depends = any(n.startswith(OPEN) for n in names)
            if any(n.startswith(LOCAL) for n in names) and not depends:
                self.allocate(body, part)
        self._nested[step].run(self, body, operands, self._parts[step])

    def result(self, part: Expr) -> ArrayPointer:
        """The memory of a result of a call."""
        return contiguous(self.pointer(part), part.shape, part.dtype)

    def set_pointer(self, part: Expr, pointer: str) -> None:
        """Set the memory of a result whose size the call computes."""
        self._pointers[part] = pointer

    def _run_step(self, body: Section, step: Expr) -> None:
        node = step.node
        results = [self.result(p) for p in self._parts[step]]
        if is_served(node):
            strided = KERNELS[node.op.name].strided
            operands = [self._operand(body, x, strided) for x in step.operands]
            options = step.rule.options  # type: ignore[attr-defined]
            if KERNELS[node.op.name].skips_unused and step in self._spared:
                options = {**options, "unused": self._spared[step]}
            status = self.context.steps.write(
                body, node.op.name, node.params, operands, results, self.number, **options
            )
            if status != "0":
                self.leave_if_not_zero(body, status)
            return
        arrays = [*(self._operand(body, x, False) for x in step.operands), *results]
        if not is_conditional(node):
            self._run_host_callback(body, node, arrays)
            return
        with body.when(copied_flag(body, arrays[0].pointer, arrays[1].pointer)) as inner:
            self._run_host_callback(inner, node, arrays)

    def _operand(self, body: Section, x: Expr, strided: bool) -> ArrayPointer:
        if strided:
            view = strided_view(x)
            if view is not None:
                base, offset, strides = view
                pointer = self.pointer(base)
                count = self.number(offset * x.dtype.itemsize)
                if count != "0":
                    pointer = body.value(f"getelementptr i8, ptr {pointer}, i64 {count}")
                return ArrayPointer(pointer, x.shape, strides, x.dtype)
        return contiguous(self.pointer(owner_of(x)), x.shape, x.dtype)

    def _run_host_callback(self, body: Section, node: Any, arrays: Sequence[ArrayPointer]) -> None:
        if foreign() is not None and is_conditional(node):
            self.leave_if_not_zero(body, "1")  # code without Python returns a status
            return
        k = self.context.callbacks.add(node)
        pointers = [array.pointer for array in arrays]
        for name in lengths_of(node):
            pointers.append(self.function.slot("i64"))
            body.write(f"store i64 {self.size(name)}, ptr {pointers[-1]}")
        table = table_of(self.function, body, pointers)
        self.leave_if_not_zero(body, self.call_back(body, k, table))

    def call_back(self, body: Section, k: int, table: str = "null") -> str:
        """Call a host callback by its number; returns the status."""
        place = self.context.callback_slot()
        cell = body.value(f"getelementptr i64, ptr {self.frame}, i64 {place}")
        cell = body.value(f"load ptr, ptr {cell}")
        return called(body, cell, k, table, self.frame)


def bytes_of(expr: Expr) -> Length:
    """The size of an expression in bytes."""
    size: Length = size_of(expr.shape) * expr.dtype.itemsize
    return size
