"""Fused loops whose LLVM code would be identical are found by a key, and emitted once.

A loop that Python unrolls gives the same fused loop a thousand times, over other arrays.  Emitting
a nest takes a millisecond, computing its key a tenth of that.

    EmittedNest    the nest of a fused loop, or of an identical one
    KernelDedup    the nests of one program, by key

The key has the expressions in the order in which they are met, each with its rule, shape, dtype and
the numbers of its operands.  Rules hold functions; two functions are equal if their code and their
closures are.  What cannot be compared by value is compared by identity, so two equal fused loops
may have different keys, but never the other way round (a test emits them all again).
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

_THROUGH = (
    View,
    Stored,
    ScalarConstant,
    IndexValue,
)  # rules whose parameters other rules may use, even if the expression is stored
_OURS = __package__
_PLAIN = frozenset({str, bytes, type(None), type(Ellipsis), type, Dim, np.ufunc, CodeType})


class EmittedNest:
    """The nest of a fused loop: what its callers need.

    Attributes
    ----------
    name : str
        Of its function.
    fused, group, space, spaces, table, partial, may_fail, needs_runtime
        As those of `LoopNest`.
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
            self.table = [x if isinstance(x, str) else instead[x] for x in nest.table]
            self.partial = {instead[x] for x in nest.partial}


class KernelDedup:
    """The nests of one program.

    Parameters
    ----------
    stored : set of Expr
        The roots that have memory.
    write : callable
        ``write(fused)`` gives a new nest and its name.
    """

    def __init__(
        self, stored: set[Expr], write: Callable[[FusedLoops], tuple[LoopNest, str]]
    ) -> None:
        self._stored, self._write = stored, write
        self._known: dict[Any, tuple[EmittedNest, list[Expr]]] = {}
        self._rules: dict[ElementRule, Any] = {}  # of those that hold no expressions

    def written(self, fused: FusedLoops) -> EmittedNest:
        """The nest of a fused loop, emitted if there is no identical one."""
        looked = StructuralKey(fused, self._stored, self._rules)
        known = self._known.get(looked.key)
        if known is not None:
            nest, exprs = known
            return EmittedNest(nest.name, nest, fused, dict(zip(exprs, looked.exprs, strict=True)))
        made, name = self._write(fused)
        found = EmittedNest(name, made, fused)
        self._known[looked.key] = found, looked.exprs
        return found


class StructuralKey:
    """The key of a fused loop.

    Attributes
    ----------
    key : tuple
        Equal only for fused loops whose nests have the same text.
    exprs : list of Expr
        All expressions met, in order; those of fused loops with equal keys correspond.
    """

    def __init__(self, fused: FusedLoops, stored: set[Expr], rules: dict[ElementRule, Any]) -> None:
        self.exprs: list[Expr] = []
        self._rules = rules
        self._met = 0
        self._numbers: dict[Expr, int] = {}
        self._inside: set[int] = set()
        roots = {r for s in fused.groups for r in s.roots}
        parts: list[Any] = [fused.rows, fused.block]
        for group in fused.groups:
            numbers = tuple(map(self._number, group.roots))
            parts.append((group.space, group.reduced, group.weight, numbers))
        done = 0
        while done < len(self.exprs):
            expr = self.exprs[done]
            done += 1
            flags = expr.is_root, expr.is_flat, expr in stored, expr in fused.local, expr.weight
            parts += (flags, expr.shape, expr.dtype)
            rule = expr.rule
            if expr.is_root and expr not in roots and not isinstance(rule, _THROUGH):
                # It is read from memory: how it was computed does not matter.
                parts.append((type(rule), rule.monoid if isinstance(rule, Reduce) else None))
                continue
            parts.append(self._rules.get(rule) or self._rule(rule))
            parts.append(tuple(map(self._number, expr.operands)))
        self.key = tuple(parts)

    def _rule(self, rule: ElementRule) -> Any:
        before = self._met
        found = type(rule), *map(self._frozen, vars(rule).values())
        if self._met == before:
            self._rules[rule] = found
        return found

    def _number(self, expr: Expr) -> int:
        self._met += 1
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
            kind.__module__.startswith(_OURS)
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
            return id(f.__code__ if f.__module__.startswith(_OURS) else f)
        if id(f) in self._inside:  # it is recursive
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
        """A node, without what its operands are computed from."""
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
