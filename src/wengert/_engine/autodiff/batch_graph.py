"""Batching: a graph traced for one batch element, evaluated for the whole batch.

Values are pairs: the value, and whether its first axis is the batch axis.  A node without batched
operands is evaluated as it is, any other node by the batching rule of its operation.  Rules are
written in wengert operations: on plain arrays they run NumPy, on tensors the nodes are recorded and
can be differentiated to any order.

    BatchedGraph      evaluates the nodes that some outputs need
    apply_one_by_one  for operations without a batching rule: one element at a time
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core import runtime_checks
from wengert._engine.core.assigned_parts import assigned_parts
from wengert._engine.core.conversion_hook import object_changes
from wengert._engine.core.dispatch import PART, apply
from wengert._engine.core.handle import Handle, describe, dtype_of, shape_of, value_of, wrap
from wengert._engine.core.message_order import OrderWanted, advance, current
from wengert._engine.core.node import ConstantLeaf, LeafOp, Node
from wengert._engine.core.node_properties import sizes_of
from wengert._engine.core.op import lookup
from wengert._engine.core.recording import current_trace, is_recording, no_grad, switches, tracing
from wengert._engine.core.spec import Spec, unweakened
from wengert._engine.core.symbolic.dim import is_open
from wengert._engine.core.thread_state import call_ignoring_errors
from wengert._engine.core.tracing import derivation, part_of, placeholder
from wengert._engine.ops.messages import ordered_in_batch
from wengert.errors import RuleError, ShapeError, TraceError, at, user_line

from .tape import VARIABLE

if TYPE_CHECKING:
    from wengert._engine.core.dispatch import Operation
    from wengert._engine.core.runtime_checks import Checks
    from wengert._engine.core.tracing import Derivation
    from wengert._engine.core.types import Array, Operand, Size

Pair = tuple[Any, bool]  # a value, and whether its first axis is the batch axis
_serial = attrgetter("serial")


class _Fallback:
    """The function that batches operations without a batching rule; set by vmap_fallback.py."""

    applied: Callable[..., Any]


def register_fallback(applied: Callable[..., Any]) -> Callable[..., Any]:
    """Use a function for operations without a batching rule (a decorator)."""
    _Fallback.applied = staticmethod(applied)
    return applied


class BatchedGraph:
    """The batched evaluation of nodes that were traced for one element.

    Parameters
    ----------
    rows : dict
        The batch of values of each placeholder.
    size : int or Dim
        The size of the batch.
    since : int
        The serial number at which the trace began; older nodes are captured.
    record : bool
        Whether derivatives with respect to captured recorded values are needed.
    """

    def __init__(self, rows: dict[Node, Any], size: Size, since: int, record: bool = True) -> None:
        self.known: dict[Node, Pair] = {n: (x, True) for n, x in rows.items()}
        self.size, self.since = size, since
        self.inside_trace = current_trace() is not None
        self.record = record and is_recording()
        self._recorded: dict[Node, bool] = {}

    def values(self, outputs: Sequence[Node]) -> list[Pair]:
        """The batched values of some nodes."""
        nodes = self._needed(outputs)
        checks = runtime_checks.current_checks() if switches.count else None
        if checks is not None:
            return self._checked_values(nodes, outputs, checks)
        if any([isinstance(x, Handle) and x.node.is_traced for x, _ in self.known.values()]):
            with derivation(0) as context:  # records scopes and the user's lines
                self._evaluate(nodes, context)
        elif any([n.level for n in nodes]):
            call_ignoring_errors(self._evaluate, nodes)
        else:
            self._evaluate(nodes)
        return [self._pair(n) for n in outputs]

    def _evaluate(self, nodes: Sequence[Node], context: Derivation | None = None) -> None:
        for node in nodes:
            if context is not None:
                context.enter(node)
                context.level = node.level
                context.stays_linear(node, [self._pair(a)[0] for a in node.args])
            self.known[node] = self._value(node)

    def _checked_values(
        self, nodes: Sequence[Node], outputs: Sequence[Node], checks: Checks
    ) -> list[Pair]:
        """The same, with the checks of `wengert.debug`, which report NaN at these nodes."""
        watch = checks.locator.NodeWatch(checks)
        with runtime_checks.unchecked(), np.errstate(all="ignore"):
            for node in nodes:
                out = self.known[node] = self._value(node)
                operands = [value_of(self._pair(a)[0]) for a in node.args]
                value = out[0] if type(out[0]) is tuple else (out[0],)
                watch.check(node, None, operands, tuple(map(value_of, value)))
        watch.finish(nodes, outputs)
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
                    known[node] = self._captured(node), False
                    continue
            elif node.serial < self.since:
                known[node] = self._captured(node), False
                continue
            nodes.append(node)
            for a in node.args:
                if isinstance(a, Node) and a not in seen:
                    seen.add(a)
                    stack.append(a)
        nodes.sort(key=_serial)
        return nodes

    def _captured(self, node: Node) -> Any:
        """The value of a node that depends on no placeholder: plain unless it is recorded."""
        if node.value is None or (self.inside_trace and not isinstance(node, ConstantLeaf)):
            return wrap(node)
        if type(node) is Node and self.record and self._is_recorded(node):
            return wrap(node)
        return unweakened(node.value)

    def _is_recorded(self, node: Node) -> bool:
        """Whether a node depends on a captured recorded value."""
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
            missing = [a for a in args if a not in known]
            if missing:
                stack += missing
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
            if isinstance(value, Handle):  # a captured node with several results
                return wrap(part_of(value.node, index)), batched
            return value[index], batched
        if op is VARIABLE:
            return pairs[0]
        args = [p[0] for p in pairs]
        flags = [p[1] for p in pairs]
        if type(node) is not Node and not op.discrete and node.args_as_nodes() and is_recording():
            with no_grad():  # as when the node was traced
                return self._applied(node, op, args, flags)
        return self._applied(node, op, args, flags)

    def _applied(self, node: Node, op: Operation, args: list[Any], flags: list[bool]) -> Pair:
        if True not in flags:
            if not args and (self.inside_trace or sizes_of(node.params)):
                return wrap(node), False
            return apply_unbatched(op, args, node.params), False
        out = op.batched(args, flags, self.size, node.params)
        if out is NotImplemented and not getattr(op, "trusted", True):
            out = _Fallback.applied(op, args, flags, node.params)
        elif out is NotImplemented:
            out = apply_one_by_one(node, args, flags, self.size)
        return self._checked(node, out), True

    def _checked(self, node: Node, out: Any) -> Any:
        """The result, with the traced dtype, if it has the batch axis and the traced shape.

        The dtype differs if an operand was a number that promotes as Python's do, and is now an
        array.

        Raises
        ------
        RuleError
            The rule is wrong, or the shape depends on the values.
        """
        spec = node.info.spec if node.info is not None else node.spec
        if (
            type(spec) is Spec
            and type(out) is np.ndarray
            and out.shape == (self.size, *spec.shape)
            and out.dtype == spec.dtype
        ):
            return out
        specs, outs = ((spec,), (out,)) if type(spec) is Spec else (spec, out)
        for one, x in zip(specs, outs, strict=True):
            shape = x.shape if type(x) is np.ndarray else shape_of(x)
            if shape != (self.size, *one.shape) and not any(map(is_open, one.shape)):
                raise RuleError(
                    f"vmap: {node.op.name} gave shape {shape_of(x)} for a batch of {self.size} "
                    f"elements, each {one}. The result of a batching rule has the batch axis first "
                    f"and the shape of the result for one element after it{at(node.where)}."
                )
        if all(dtype_of(x) == one.dtype for one, x in zip(specs, outs, strict=True)):
            return out
        same = [lookup("cast")(x, dtype=one.dtype) for one, x in zip(specs, outs, strict=True)]
        return same[0] if type(spec) is Spec else tuple(same)


def apply_unbatched(op: Operation, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """An operation applied without batching."""
    if any(isinstance(a, Handle) for a in args):
        return apply(op, args, params)
    return op.run(*args, **params)


def apply_one_by_one(node: Node, args: Sequence[Any], flags: Sequence[bool], size: Size) -> Any:
    """Apply an operation without a batching rule to one element at a time, and stack the results.

    Raises
    ------
    TraceError
        The size of the batch is symbolic.
    ShapeError
        The results of two elements differ in shape.
    """
    op: Any = node.op
    if not isinstance(size, int):
        raise TraceError(
            f"vmap over {size} elements: {op.name} has no batching rule, so it is applied to one "
            f"element at a time, and their number must be known. Define a rule (@{op.name}.batch), "
            f"or trace with a number{at(node.where)}."
        )
    several = type(node.spec) is tuple
    specs = node.spec if several else (node.spec,)
    if size == 0:
        empty = [np.zeros((0, *s.shape), s.dtype) for s in specs]
        return tuple(empty) if several else empty[0]
    columns: list[list[Any]] = [[] for _ in specs]
    for i in range(size):
        row = [_row(x, i) if b else x for x, b in zip(args, flags, strict=True)]
        out = apply_unbatched(op, row, node.params)
        for column, spec, x in zip(columns, specs, out if several else (out,), strict=True):
            if shape_of(x) != spec.shape:
                raise ShapeError(
                    f"vmap: {op.name} gave shape {shape_of(x)} for batch element {i}, but {spec} "
                    "was expected: the shape depends on the values, so the results do not fit into "
                    f"one array{at(node.where)}."
                )
            column.append(x)
    stack: Any = lookup("stack")
    results = [stack(*column, axis=0) for column in columns]
    return tuple(results) if several else results[0]


def _row(x: Array, i: int) -> Any:
    if isinstance(x, Handle):
        return apply(lookup("getitem"), (x,), {"index": i})
    return x[i]


def map_over_batch(
    fun: Callable[..., list[Any]],
    columns: Sequence[Any],
    size: Size,
    what: str,
    record: bool = True,
) -> list[Pair]:
    """Evaluate a function of one batch element for the whole batch.

    Parameters
    ----------
    fun : callable
        Takes a handle for each column and returns a list.
    columns : sequence
        Arrays or handles with the batch axis first.
    size : int or Dim
        The size of the batch.
    what : str
        The transformation, for messages.
    record : bool
        Whether derivatives with respect to recorded values that `fun` captures are needed.

    Returns
    -------
    list of (value, bool)
        For each result its value, and whether its first axis is the batch axis.
    """
    rows: dict[Node, Any] = {}
    with tracing() as session, object_changes(inner=True) as changes:
        session.isolated = True
        for x in columns:
            spec = describe(x)
            rows[placeholder(Spec(spec.shape[1:], spec.dtype))] = x
        inputs = [wrap(n) for n in rows]
        outs, last_token = ordered_in_batch(lambda: fun(*inputs), inputs)
        _check_untouched(session.written, what)
        if changes is not None:
            assigned_parts(changes, ((), {}), what, session.since)
        effects = list(session.effects)
    nodes = [x.node for x in outs if isinstance(x, Handle)]
    if last_token is not None:
        nodes.append(last_token)
    pairs = BatchedGraph(rows, size, session.since, record).values([*nodes, *effects])
    values = iter(pairs)
    tokens = None if last_token is None else pairs[len(nodes) - 1][0]
    if isinstance(tokens, Handle):
        if current() is None and current_trace() is not None:
            raise OrderWanted(f"{what}: it calls a function for debugging{at(user_line())}.")
        advance(apply(lookup("sum"), (tokens,), {"axis": 0}))
    return [next(values) if isinstance(x, Handle) else (x, False) for x in outs]


def _check_untouched(written: dict[Any, Any], what: str) -> None:
    if written:
        raise TraceError(
            f"{what}: it wrote to a tensor from outside, which would be written to once for each "
            f"batch element. Return the new value instead{at(user_line())}."
        )
