"""Calls of loop nests: identical ones are emitted once; a nest is split among threads.

    EmittedNest      the loop nest of a fused loop, or of an identical one
    KernelDedup      the loop nests of one program, by key
    LoopCalls        calls a nest once, or in parts on several threads

A loop that Python unrolls gives the same fused loop a thousand times, over other arrays.  Emitting
a loop nest takes a millisecond, computing its key a tenth of that.

The key contains the expressions in the order in which they are visited, each with its rule, shape,
dtype and the numbers of its operands.  Rules contain functions; two functions are equal if their
code and their closures are.  Objects that cannot be compared by value are compared by identity, so
two equal fused loops may have different keys, but never the other way round (a test compares the
code of all).

The outermost loop of a nest is split.  Each part of a reduction over that loop has its own memory,
and the caller combines the parts in order; so results depend on the number of threads, but not on
their timing.  Small loops run on the calling thread.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import partial
from types import CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

from wengert._engine.core.node import Node
from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic.dim import Dim

from ..ir.index_analysis import Length, size_of
from ..ir.ir_builder import Section
from ..kernels.loop_helpers import kind_of, read, write
from ..lowering.loop_ir import ElementRule, Expr, IndexValue, Reduce, ScalarConstant, Stored, View
from ..schedule.fusion import FusedLoops
from ..schedule.iteration_space import Space
from ..tuning import thresholds
from .loop_nests import LoopNest, extent_of
from .program_context import FunctionContext
from .reductions import accumulator

# Rules whose parameters other rules may use, even if the expression is stored.
_TRANSPARENT = (View, Stored, ScalarConstant, IndexValue)
_PACKAGE = __package__
_PLAIN = frozenset({str, bytes, type(None), type(Ellipsis), type, Dim, np.ufunc, CodeType})


class EmittedNest:
    """The loop nest of a fused loop, as its callers see it.

    Attributes
    ----------
    name : str
        The name of its function.
    fused, group, space, spaces, table, partial, may_fail, needs_runtime
        As in `LoopNest`.
    """

    spaces: list[Space]
    table: list[Any]
    partial: set[Expr]
    may_fail: bool
    needs_runtime: bool

    def __init__(
        self,
        name: str,
        nest: LoopNest | EmittedNest,
        fused: FusedLoops,
        instead: dict[Any, Any] | None = None,
    ) -> None:
        self.name, self.fused = name, fused
        self.spaces = nest.spaces
        self.group, self.space = fused.groups[-1], nest.spaces[-1]
        self.may_fail, self.needs_runtime = nest.may_fail, nest.needs_runtime
        if instead is None:
            self.table, self.partial = list(nest.table), set(nest.partial)
        else:
            self.table = [
                x
                if isinstance(x, str)
                else (instead[x[0]], x[1])
                if isinstance(x, tuple)
                else instead[x]
                for x in nest.table
            ]
            self.partial = {instead[x] for x in nest.partial}


class KernelDedup:
    """The nests of one program.

    Parameters
    ----------
    stored : set of Expr
        The roots that have memory.
    write : callable
        ``write(fused)`` returns a new nest and its name.
    """

    def __init__(
        self, stored: set[Expr], write: Callable[[FusedLoops], tuple[LoopNest, str]]
    ) -> None:
        self._stored, self._write = stored, write
        self._known: dict[Any, tuple[EmittedNest, list[Expr]]] = {}
        self._rules: dict[ElementRule, Any] = {}  # only rules that contain no expressions

    def written(self, fused: FusedLoops) -> EmittedNest:
        """The loop nest of a fused loop, emitted unless there is an identical one."""
        structure = StructuralKey(fused, self._stored, self._rules)
        known = self._known.get(structure.key)
        if known is not None:
            nest, exprs = known
            return EmittedNest(
                nest.name, nest, fused, dict(zip(exprs, structure.exprs, strict=True))
            )
        made, name = self._write(fused)
        found = EmittedNest(name, made, fused)
        self._known[structure.key] = found, structure.exprs
        return found


class StructuralKey:
    """The key of a fused loop.

    Attributes
    ----------
    key : tuple
        Equal only for fused loops whose nests have the same text.
    exprs : list of Expr
        The visited expressions, in order; those of fused loops with equal keys correspond.
    """

    def __init__(self, fused: FusedLoops, stored: set[Expr], rules: dict[ElementRule, Any]) -> None:
        self.exprs: list[Expr] = []
        self._rules = rules
        self._visited = 0
        self._numbers: dict[Expr, int] = {}
        self._inside: set[int] = set()
        roots = {r for s in fused.groups for r in s.roots}
        parts: list[Any] = [fused.rows, fused.block]
        for group in fused.groups:
            numbers = tuple(map(self._number, group.roots))
            parts.append((group.space, group.reduced, group.weight, numbers))
        position = 0
        while position < len(self.exprs):
            expr = self.exprs[position]
            position += 1
            flags = expr.is_root, expr.is_flat, expr in stored, expr in fused.local, expr.weight
            parts += (flags, expr.shape, expr.dtype)
            rule = expr.rule
            if expr.is_root and expr not in roots and not isinstance(rule, _TRANSPARENT):
                # It is read from memory, so the computation of it does not matter.
                parts.append((type(rule), rule.monoid if isinstance(rule, Reduce) else None))
                continue
            parts.append(self._rules.get(rule) or self._rule(rule))
            parts.append(tuple(map(self._number, expr.operands)))
        self.key = tuple(parts)

    def _rule(self, rule: ElementRule) -> Any:
        before = self._visited
        found = type(rule), *map(self._frozen, vars(rule).values())
        if self._visited == before:
            self._rules[rule] = found
        return found

    def _number(self, expr: Expr) -> int:
        self._visited += 1
        found = self._numbers.get(expr)
        if found is None:
            found = self._numbers[expr] = len(self.exprs)
            self.exprs.append(expr)
        return found

    def _frozen(self, x: Any) -> Any:
        """A hashable value that is equal for equal `x`."""
        kind = type(x)
        if kind in _PLAIN:
            return x
        if kind is int or kind is bool:
            return kind, x
        if kind is float:
            return kind, struct.pack("d", x)
        freeze = _FREEZE.get(kind)
        if freeze is not None:
            return kind, freeze(self, x)
        if isinstance(x, np.dtype):
            return x
        if isinstance(x, tuple):
            return kind, *map(self._frozen, x)
        if isinstance(x, np.generic):
            return x.dtype, x.tobytes()
        if (
            kind.__module__.startswith(_PACKAGE)
            and hasattr(x, "__dict__")
            and id(x) not in self._inside
        ):
            self._inside.add(id(x))
            found = kind, *[(k, self._frozen(v)) for k, v in vars(x).items()]
            self._inside.discard(id(x))
            return found
        return kind, id(x)

    def _function(self, f: FunctionType) -> Any:
        if f.__closure__ is None and f.__defaults__ is None and f.__kwdefaults__ is None:
            return id(f.__code__ if f.__module__.startswith(_PACKAGE) else f)
        if id(f) in self._inside:  # recursive
            return id(f.__code__)
        self._inside.add(id(f))
        cells = [self._cell(c) for c in f.__closure__ or ()]
        found = id(f.__code__), id(f.__globals__), *cells, self._frozen(f.__defaults__)
        self._inside.discard(id(f))
        return *found, self._frozen(f.__kwdefaults__)

    def _cell(self, cell: Any) -> Any:
        try:
            return self._frozen(cell.cell_contents)
        except ValueError:  # an empty cell
            return "empty"

    def _node(self, node: Node) -> Any:
        """A node, without the nodes that compute its operands."""
        inputs = [(a.spec, self._frozen(a.value)) for a in node.inputs]
        return id(node.op), self._frozen(dict(node.params)), node.spec, tuple(inputs)


def _array(_: StructuralKey, x: np.ndarray[Any, Any]) -> Any:
    return (
        (x.dtype, x.shape, x.tobytes())
        if x.nbytes <= thresholds.compared_constant_bytes and x.dtype != object
        else id(x)
    )


_FREEZE: dict[type, Callable[[StructuralKey, Any], Any]] = {
    tuple: lambda self, x: tuple(map(self._frozen, x)),
    list: lambda self, x: tuple(map(self._frozen, x)),
    dict: lambda self, x: tuple([(self._frozen(k), self._frozen(v)) for k, v in x.items()]),
    slice: lambda self, x: tuple(map(self._frozen, (x.start, x.stop, x.step))),
    complex: lambda self, x: struct.pack("dd", x.real, x.imag),
    Expr: lambda self, x: self._number(x),
    Node: lambda self, x: self._node(x),
    Spec: lambda self, x: x,
    FunctionType: lambda self, x: self._function(x),
    MethodType: lambda self, x: (self._frozen(x.__func__), self._frozen(x.__self__)),
    partial: lambda self, x: (
        self._frozen(x.func),
        *map(self._frozen, x.args),
        self._frozen(x.keywords),
    ),
    np.ndarray: _array,
}


# ---- parallel loops ------------------------------------------------------------------------------


class LoopCalls:
    """Emits the calls of one loop nest.

    Parameters
    ----------
    body : Section
        The body of the kernel.
    name : str
        The name of the nest's function.
    """

    def __init__(
        self, program: FunctionContext, body: Section, nest: EmittedNest, name: str
    ) -> None:
        self.program, self.body, self.nest, self.name = program, body, nest, name

    def write(self) -> None:
        """Emit the serial call and, for enough work, the parallel one."""
        nest, body = self.nest, self.body
        length, each = extent_of(nest), work_of(nest)
        total = length * each
        self.program.work_bytes = self.program.work_bytes + total
        extent = self.program.number(length)
        table = self.program.table(body, nest, {})
        serial = any(_is_position(r) for r in nest.partial) or self.program.threads == 1
        if serial or (type(total) is int and total < 2 * thresholds.parallel_loop_work):
            self._call(body, table, extent)
        else:
            work, number = self.program.number(total), self.program.number(each)
            large = body.value(f"icmp sge i64 {work}, {2 * thresholds.parallel_loop_work}")
            small = body.value(f"xor i1 {large}, true")
            with body.when(small) as small_body:
                self._call(small_body, table, extent)
            with body.when(large) as large_body:
                self._share(large_body, table, extent, number)
        self.program.check(body, nest, table)

    def _call(self, section: Section, table: str, extent: str) -> None:
        section.write(f"call void @{self.name}(ptr {table}, i64 0, i64 {extent}, i64 0)")

    def _share(self, section: Section, table: str, extent: str, each: str) -> None:
        """Split the outermost loop among threads."""
        program = self.program
        parallel = program.runtime(
            "wengert_parallel", "void", ["ptr", "ptr", "i64", "i64", "i64", "i64"]
        )
        quotient = section.value(f"sdiv i64 {thresholds.parallel_loop_work}, {each}")
        grain = section.larger(quotient, "1")
        threads = str(program.threads or "")
        if not threads:
            getter = program.runtime("wengert_get_threads", "i64", [])
            threads = section.value(f"call i64 {getter}()")
        span = f"i64 0, i64 {extent}, i64 {grain}, i64 {threads}"
        partial = sorted(self.nest.partial, key=lambda x: x.number)
        if not partial:
            section.write(f"call void {parallel}(ptr @{self.name}, ptr {table}, {span})")
            return
        count = program.runtime("wengert_parts", "i64", ["i64"] * 4)
        parts = section.value(f"call i64 {count}({span})")
        several = section.value(f"icmp sgt i64 {parts}, 1")
        single = section.value(f"xor i1 {several}, true")
        with section.when(single) as one:
            self._call(one, table, extent)
        with section.when(several) as parallel_body:
            buffers = {x: self._partial_buffer(parallel_body, x, parts) for x in partial}
            all_allocated = "true"
            for buffer in buffers.values():
                allocated = parallel_body.value(f"icmp ne ptr {buffer}, null")
                all_allocated = parallel_body.value(f"and i1 {all_allocated}, {allocated}")
            failed = parallel_body.value(f"xor i1 {all_allocated}, true")
            with parallel_body.when(failed) as serial_body:  # run serially
                self._call(serial_body, table, extent)
            with parallel_body.when(all_allocated) as split_body:
                own = program.table(split_body, self.nest, buffers)
                split_body.write(f"call void {parallel}(ptr @{self.name}, ptr {own}, {span})")
                split_body.write(
                    f"store i64 {split_body.value(f'load i64, ptr {own}')}, ptr {table}"
                )
                for x, buffer in buffers.items():
                    self._combine(split_body, x, buffer, parts)
            free = program.runtime("wengert_free", "void", ["ptr"])
            for buffer in buffers.values():
                parallel_body.write(f"call void {free}(ptr {buffer})")

    def _partial_buffer(self, section: Section, expr: Expr, parts: str) -> str:
        """Memory for the partial results of all parts."""
        alloc = self.program.runtime("wengert_alloc", "ptr", ["i64"])
        size = self.program.number(size_of(expr.shape) * expr.dtype.itemsize)
        total = section.value(f"mul i64 {size}, {parts}")
        return section.value(f"call ptr {alloc}(i64 {total})")

    def _combine(self, section: Section, expr: Expr, buffer: str, parts: str) -> None:
        """Combine the partial results."""
        language, kind = self.program.language, kind_of(expr.dtype)
        count = self.program.number(size_of(expr.shape))
        monoid = expr.rule.monoid  # type: ignore[attr-defined]
        with section.loop("0", count) as (outer, k):
            total = accumulator(language, outer, monoid, expr.dtype, 1, False)
            with outer.loop("0", parts) as (inner, p):
                skipped = inner.value(f"mul i64 {p}, {count}")
                element = inner.value(f"add i64 {skipped}, {k}")
                address = inner.value(f"getelementptr {kind}, ptr {buffer}, i64 {element}")
                total.step(inner, read(language, inner, address, expr.dtype), None)
            result = total.result(outer, False)
            address = outer.value(
                f"getelementptr {kind}, ptr {self.program.pointer(expr)}, i64 {k}"
            )
            write(outer, address, language.cast(result, expr.dtype))


def _is_position(expr: Expr) -> bool:
    return expr.rule.monoid.startswith("arg")  # type: ignore[attr-defined,no-any-return]


def work_of(nest: EmittedNest) -> Length:
    """The work of one iteration of the outermost loop."""
    total: Length = 0
    for group, space in zip(nest.fused.groups, nest.spaces, strict=True):
        axes = list(space.axes)
        if not nest.fused.rows and axes:
            del axes[space.vector if space.strips and space.vector is not None else 0]
        inner: Length = group.weight + thresholds.element_overhead_work
        for n in group.space[1 : nest.fused.rows]:
            inner = inner * n
        for axis in axes:
            inner = inner * axis.length
        total = total + inner
    return total
