"""Deduplication of fused loops: those with identical LLVM code are found by a key.

A loop that Python unrolls gives the same fused loop a thousand times, over other arrays.  Emitting
a loop nest takes a millisecond, computing its key a tenth of that.

    EmittedNest    the loop nest of a fused loop, or of an identical one
    KernelDedup    the loop nests of one program, by key

The key contains the expressions in the order in which they are visited, each with its rule, shape,
dtype and the numbers of its operands.  Rules contain functions; two functions are equal if their
code and their closures are.  Objects that cannot be compared by value are compared by identity, so
two equal fused loops may have different keys, but never the other way round (a test compares the
code of all).
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

from ..lowering.loop_ir import ElementRule, Expr, IndexValue, Reduce, ScalarConstant, Stored, View
from ..schedule.fusion import FusedLoops
from ..schedule.iteration_space import Space
from ..tuning import thresholds
from .loop_nests import LoopNest

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
