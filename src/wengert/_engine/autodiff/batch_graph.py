"""Batch nodes: a list that was written down for one row, evaluated for all rows at once.

A value is a pair: the value, and whether its first axis are the rows.  A node none of whose
operands has rows is evaluated as it is; any other by its operation's batching rule, which is
written in wengert operations: on plain arrays this runs NumPy, on tensors the nodes are recorded,
and derivatives of any order pass.

    BatchedNodes  evaluates the nodes that some outputs need
    one_by_one the way of operations without a rule: row after row
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core import nonfinite_checks
from wengert._engine.core.dispatch import PART, apply
from wengert._engine.core.handle import Handle, describe, shape_of, value_of, wrap
from wengert._engine.core.node import ConstantLeaf, LeafOp, Node
from wengert._engine.core.op import lookup
from wengert._engine.core.recording import current_trace, is_recording, no_grad, switches, tracing
from wengert._engine.core.spec import Spec, unweakened
from wengert._engine.core.static_params import sizes_of
from wengert._engine.core.symbolic.dim import is_open
from wengert._engine.core.tracing import derivation, part_of, placeholder
from wengert.errors import RuleError, ShapeError, TraceError, at, user_line

from .tape import VARIABLE

if TYPE_CHECKING:
    from wengert._engine.core.dispatch import Operation
    from wengert._engine.core.nonfinite_checks import Checks
    from wengert._engine.core.types import Array, Operand, Size

Pair = tuple[Any, bool]  # a value, and whether its first axis are the rows
_serial = attrgetter("serial")


class _Fallback:
    """What batches an operation that states no batching rule; set by vmap_fallback.py."""

    applied: Callable[..., Any]


def register_fallback(applied: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function what batches operations without a batching rule (a decorator)."""
    _Fallback.applied = staticmethod(applied)
    return applied


class BatchedNodes:
    """The evaluation of the nodes written down for one row.

    Parameters
    ----------
    rows : dict
        For the placeholders of a row all rows.
    size : int or Dim
        How many rows there are.
    since : int
        The serial number at which the list begins: older nodes are from outside.
    record : bool
        Whether derivatives are to pass to recorded values from outside.
    """

    def __init__(self, rows: dict[Node, Any], size: Size, since: int, record: bool = True) -> None:
        self.known: dict[Node, Pair] = {n: (x, True) for n, x in rows.items()}
        self.size, self.since = size, since
        self.inside_trace = current_trace() is not None
        self.record = record and is_recording()
        self._recorded: dict[Node, bool] = {}

    def values(self, outputs: Sequence[Node]) -> list[Pair]:
        """The values of some nodes for all rows."""
        nodes = self._needed(outputs)
        checks = nonfinite_checks.here() if switches.count else None
        if checks is not None:
            return self._looked_at(nodes, outputs, checks)
        with self._written_down(nodes) as stem:
            for node in nodes:
                if stem is not None:
                    stem.enter(node)
                    stem.level = node.level
                    stem.stays_linear(node, [self._pair(a)[0] for a in node.args])
                self.known[node] = self._value(node)
        return [self._pair(n) for n in outputs]

    def _looked_at(
        self, nodes: Sequence[Node], outputs: Sequence[Node], checks: Checks
    ) -> list[Pair]:
        """The same while `wengert.debug` looks for NaN, which it finds in these nodes."""
        watch = checks.locator.NodeWatch(checks)
        with nonfinite_checks.unseen(), np.errstate(all="ignore"):
            for node in nodes:
                out = self.known[node] = self._value(node)
                operands = [value_of(self._pair(a)[0]) for a in node.args]
                value = out[0] if type(out[0]) is tuple else (out[0],)
                watch.saw(node, None, operands, tuple(map(value_of, value)))
        watch.ended(nodes, outputs)
        return [self._pair(n) for n in outputs]

    def _needed(self, outputs: Iterable[Node]) -> list[Node]:
        """The nodes to evaluate, in order."""
        known, seen = self.known, set(outputs)
        stack, nodes = list(seen), []
        while stack:
            node = stack.pop()
            if node in known:
                continue
            if node.op is not VARIABLE:
                if (
                    node.value is not None
                    or node.serial < self.since
                    or isinstance(node.op, LeafOp)
                ):
                    known[node] = self._from_outside(node), False
                    continue
            elif node.serial < self.since:
                known[node] = self._from_outside(node), False
                continue
            nodes.append(node)
            for a in node.args:
                if isinstance(a, Node) and a not in seen:
                    seen.add(a)
                    stack.append(a)
        nodes.sort(key=_serial)
        return nodes

    @contextmanager
    def _written_down(self, nodes: Sequence[Node]) -> Iterator[Any]:
        """What is noted at nodes of a graph, if one is being built; quiet where derivatives are."""
        quiet = any(n.level for n in nodes)
        if not any(isinstance(x, Handle) and x.node.is_traced for x, _ in self.known.values()):
            with np.errstate(all="ignore") if quiet else nullcontext():
                yield None
            return
        with derivation(0) as stem:
            yield stem

    def _from_outside(self, node: Node) -> Any:
        """The value of a node that depends on no placeholder: plain, unless somebody records it."""
        if node.value is None or (self.inside_trace and not isinstance(node, ConstantLeaf)):
            return wrap(node)
        if type(node) is Node and self.record and self._is_recorded(node):
            return wrap(node)
        return unweakened(node.value)

    def _is_recorded(self, node: Node) -> bool:
        """Whether a node depends on something recorded outside, and not just on own variables."""
        known, stack = self._recorded, [node]
        while stack:
            top = stack[-1]
            if top in known:
                stack.pop()
                continue
            if top.serial < self.since or not top.args:
                known[top] = True
                continue
            args = top.args_as_nodes()
            waiting = [a for a in args if a not in known]
            if waiting:
                stack += waiting
            else:
                known[top] = any([known[a] for a in args])
        return known[node]

    def _pair(self, a: Operand | Node) -> Pair:
        return self.known[a] if isinstance(a, Node) else (a, False)

    def _value(self, node: Node) -> Pair:
        op: Any = node.op
        pairs = [self._pair(a) for a in node.args]
        if op is PART:
            (value, batched), index = pairs[0], node.params["index"]
            if isinstance(value, Handle):  # a node of several results that was there before
                return wrap(part_of(value.node, index)), batched
            return value[index], batched
        if op is VARIABLE:
            return pairs[0]
        args = [p[0] for p in pairs]
        flags = [p[1] for p in pairs]
        if type(node) is not Node and not op.discrete and node.args_as_nodes() and is_recording():
            with no_grad():  # as it was when the node was written down
                return self._applied(node, op, args, flags)
        return self._applied(node, op, args, flags)

    def _applied(self, node: Node, op: Operation, args: list[Any], flags: list[bool]) -> Pair:
        if True not in flags:
            if not args and (self.inside_trace or sizes_of(node.params)):
                return wrap(node), False
            return plainly(op, args, node.params), False
        out = op.batched(args, flags, self.size, node.params)
        if out is NotImplemented and not getattr(op, "trusted", True):
            out = _Fallback.applied(op, args, flags, node.params)
        elif out is NotImplemented:
            out = one_by_one(node, args, flags, self.size)
        self._check(node, out)
        return out, True

    def _check(self, node: Node, out: Any) -> None:
        """The result has the rows, and in each what the list says.

        Raises
        ------
        RuleError
            It has not: the rule is wrong, or the shape depends on the values.
        """
        spec = node.info.spec if node.info is not None else node.spec
        specs, outs = ((spec,), (out,)) if type(spec) is Spec else (spec, out)
        for one, x in zip(specs, outs, strict=True):
            shape = x.shape if type(x) is np.ndarray else shape_of(x)
            if shape != (self.size, *one.shape) and not any(map(is_open, one.shape)):
                raise RuleError(
                    f"vmap: {node.op.name} gave {shape_of(x)} for {self.size} rows of {one}. The "
                    "result of a batching rule has the rows first, and in each what the operation "
                    f"gives for one{at(node.where)}."
                )


def plainly(op: Operation, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """An operation on operands as they are."""
    if any(isinstance(a, Handle) for a in args):
        return apply(op, args, params)
    return op.run(*args, **params)


def one_by_one(node: Node, args: Sequence[Any], flags: Sequence[bool], size: Size) -> Any:
    """The results of an operation without a batching rule: row after row, put together again.

    Raises
    ------
    TraceError
        It is not known how many rows there are.
    ShapeError
        The results of two rows differ in shape.
    """
    op: Any = node.op
    if not isinstance(size, int):
        raise TraceError(
            f"vmap over {size} rows: {op.name} states no batching rule, so its rows are taken one "
            f"by one, and their number has to be known. State a rule (@{op.name}.batch), or trace "
            f"with a number{at(node.where)}."
        )
    several = type(node.spec) is tuple
    specs = node.spec if several else (node.spec,)
    if size == 0:
        empty = [np.zeros((0, *s.shape), s.dtype) for s in specs]
        return tuple(empty) if several else empty[0]
    columns: list[list[Any]] = [[] for _ in specs]
    for i in range(size):
        row = [_row(x, i) if b else x for x, b in zip(args, flags, strict=True)]
        out = plainly(op, row, node.params)
        for column, spec, x in zip(columns, specs, out if several else (out,), strict=True):
            if shape_of(x) != spec.shape:
                raise ShapeError(
                    f"vmap: {op.name} gave shape {shape_of(x)} for row {i}, but {spec} was "
                    "expected: its shape depends on the values, so rows do not fit into one array"
                    f"{at(node.where)}."
                )
            column.append(x)
    stack: Any = lookup("stack")
    made = [stack(*column, axis=0) for column in columns]
    return tuple(made) if several else made[0]


def _row(x: Array, i: int) -> Any:
    if isinstance(x, Handle):
        return apply(lookup("getitem"), (x,), {"index": i})
    return x[i]


def over_rows(
    fun: Callable[..., list[Any]],
    columns: Sequence[Any],
    size: Size,
    what: str,
    record: bool = True,
) -> list[Pair]:
    """The results of a function of one row, for all rows.

    Parameters
    ----------
    fun : callable
        Takes a handle for each column and returns a list.
    columns : sequence
        Arrays or handles with the rows first.
    size : int or Dim
        The number of rows.
    record : bool
        Whether derivatives are to pass to recorded values that `fun` takes from outside.

    Returns
    -------
    list of (value, bool)
        For each result its value, and whether its first axis are the rows.
    """
    rows: dict[Node, Any] = {}
    with tracing() as opened:
        opened.isolated = True
        for x in columns:
            spec = describe(x)
            rows[placeholder(Spec(spec.shape[1:], spec.dtype))] = x
        outs = fun(*map(wrap, rows))
        _check_untouched(opened.written, what)
        effects = list(opened.effects)
    nodes = [x.node for x in outs if isinstance(x, Handle)]
    values = iter(BatchedNodes(rows, size, opened.since, record).values([*nodes, *effects]))
    return [next(values) if isinstance(x, Handle) else (x, False) for x in outs]


def _check_untouched(written: dict[Any, Any], what: str) -> None:
    if written:
        raise TraceError(
            f"{what}: it wrote to a tensor from outside, which would be written to once for each "
            f"row. Return the new value instead{at(user_line())}."
        )
