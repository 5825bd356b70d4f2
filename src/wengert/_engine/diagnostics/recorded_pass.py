"""Recorded passes: forward and backward passes that return every step, for diagnosis.

    backward_steps    a backward pass, a step for each node
    tangents          a forward pass, the tangent of each node
    contributions     the contributions of one node in a backward pass; tangent_of: its tangent

The same traversal as in reverse.py, in its simplest form and not optimized for speed: one step per
node, with the cotangent of the node and the contribution to each operand.

Unrolled loops: the loops of a graph run and recorded step by step, for diagnosis.

The node of a loop has operands and results, but not the values in its steps.  To find where a NaN
first appears in a loop, its steps are recorded as nodes, each with the number of its step.

    step_by_step   the results of a loop or branch, for `inline_graph`

Backward trace: the backward pass from some outputs to some targets, node by node.

An *edge* is the contribution of one node to the cotangent of one operand.  The other files search
for edges where the cotangent of the node is not zero and the contribution is, or where the
cotangent is finite and the contribution is not.

    Backward        the recorded pass, with its edges
    run_backward    the pass, guarded if necessary
    magnitude       the largest magnitude of a cotangent

Dependency trace: the nodes that a value depends on, differentiably or not.

`plain` is the current value of an operand: a large array that was modified after it was recorded is
not an error here, because the user is looking for the cause of a problem.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wengert._engine.autodiff.forward import jvp_from_vjp, settle
from wengert._engine.autodiff.infinities import project
from wengert._engine.autodiff.reverse import (
    complete,
    has_nan,
    pullback,
    through_hooks,
    vjp_from_jvp,
)
from wengert._engine.autodiff.tape import Tape, tape_between
from wengert._engine.core.dispatch import TupleCotangent
from wengert._engine.core.graph_copies import inline_graph
from wengert._engine.core.handle import Handle, value_of
from wengert._engine.core.node import Node, Watched
from wengert._engine.core.op import RuleContext, lookup
from wengert._engine.core.tracing import stepping
from wengert.errors import GuardError, at

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Operand


class PassStep(NamedTuple):
    """The step of a pass at one node.

    node : the node.
    before_hooks : its complete cotangent; a tuple for an operation with several outputs.
    cotangent : the cotangent after the hooks of the node, if it has any.
    raw : the contribution to each operand as its rule returns it, or None.
    projected : the same with the shape and dtype of the operand: summed over broadcast axes.
    """

    node: Node
    before_hooks: Any
    cotangent: Any
    raw: list[Any]
    projected: list[Any]


def backward_steps(
    tape: Tape, seeds: Mapping[Node, Any], guarded: bool = False
) -> Iterator[PassStep]:
    """The steps of a backward pass on values.

    Parameters
    ----------
    tape : Tape
        Its nodes have values.
    seeds : mapping from Node
        The cotangent of each output.
    guarded : bool
        Whether an exactly zero cotangent is zero times any factor.
    """
    ctx = RuleContext(tape.wanted, False, guarded)
    bars: dict[Node, Any] = dict(seeds)
    if tape.wanted is not None:
        bars = {n: t for n, t in seeds.items() if n in tape.wanted}
    for node in reversed(tape.nodes):
        before_hooks = bars.pop(node, None)
        if before_hooks is None:
            continue
        if type(before_hooks) is TupleCotangent and not node.op.differentiation.takes_parts:
            before_hooks = complete(before_hooks, node, False)
        t = before_hooks
        if node.info is not None and node.info.hooks is not None:
            t = _plain(through_hooks(node, t))
        raw = contributions(node, t, ctx)
        projected = [
            _plain(project(bar, a)) if bar is not None and ctx.wants(a) else None
            for a, bar in zip(node.args, raw, strict=True)
        ]
        yield PassStep(node, before_hooks, t, raw, projected)
        for a, bar in zip(node.args, projected, strict=True):
            if bar is not None:
                bars[a] = bars[a] + bar if a in bars else bar


def tangents(tape: Tape, known: Mapping[Node, Any]) -> dict[Node, Any]:
    """The tangents of all nodes between some targets and the outputs.

    Parameters
    ----------
    tape : Tape
        Its nodes have values.
    known : mapping from Node
        The tangents of the targets.
    """
    dot_of: dict[Node, Any] = dict(known)
    for node in tape.nodes:
        dots = [dot_of.get(a) if type(a) is Node else None for a in node.args]
        if node not in dot_of and any(d is not None for d in dots):
            dot = tangent_of(node, dots)
            if dot is not None:
                dot_of[node] = dot
    return dot_of


def tangent_of(node: Node, dots: list[Any]) -> Any:
    """The tangent of a node from those of its operands (None for zero).

    The caller must silence floating-point warnings.
    """
    inputs = [a.value if isinstance(a, Node) else a for a in node.args]
    op: Any = node.op
    rule = op.jvp if op.has_jvp else jvp_from_vjp
    out = None if op.vjp_into is not None and node.is_outdated else node.value
    dot = rule(node, dots, out, inputs, RuleContext(guarded=True))
    return None if dot is None else settle(dot, node, False)


def contributions(node: Node, t: Array | tuple[Operand, ...], ctx: RuleContext) -> list[Any]:
    """The contributions of a node to the cotangents of its operands, or None.

    The caller must silence floating-point warnings.
    """
    if not node.args:
        return []
    inputs = [a.value if isinstance(a, Node) else a for a in node.args]
    op: Any = node.op
    rule = op.vjp if op.has_vjp else vjp_from_jvp
    out = None if op.vjp_into is not None and node.is_outdated else node.value
    return [_plain(bar) for bar in rule(node, t, out, inputs, ctx)]


def _plain(bar: Any) -> Any:
    """The result of a rule as plain arrays; a user's rule may return handles and Python numbers."""
    if isinstance(bar, Handle):
        bar = value_of(bar)
    return (
        bar
        if bar is None or hasattr(bar, "dtype") or type(bar) is TupleCotangent
        else np.asarray(bar)
    )


def step_by_step(node: Node, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """The results of a loop or branch, with its nodes recorded as they run; None for other nodes.

    Parameters
    ----------
    node : Node
    args : sequence
        Tensors with values, arrays and numbers.
    params : dict
    """
    name = node.op.name
    if name == "scan":
        return _scan(args, params)
    if name == "while":
        return _while(node, args, params)
    if name in ("cond", "switch"):
        branches = params["branches"]
        index = min(max(int(_without_handle(args[0])), 0), len(branches) - 1)
        return tuple(inline_graph(branches[index], args[1:], step_by_step))
    return None


def _scan(args: Sequence[Any], params: dict[str, Any]) -> tuple[Any, ...]:
    body, carried, stacked = params["body"], params["carried"], params["stacked"]
    count = params["length"]
    if params["counted"]:
        count, args = max(int(_without_handle(args[0])), 0), args[1:]
    fixed = len(args) - carried - stacked
    consts, carry, rows = args[:fixed], args[fixed : fixed + carried], args[fixed + carried :]
    columns: list[list[Any]] = [[] for _ in body.outputs[carried:]]
    numbers = range(count)
    for k in stepping(body.name, reversed(numbers) if params["reverse"] else numbers):
        outs = inline_graph(body, [*consts, *carry, *[x[k] for x in rows]], step_by_step)
        carry = outs[:carried]
        for column, y in zip(columns, outs[carried:], strict=True):
            column.append(y)
    if params["reverse"]:
        columns = [c[::-1] for c in columns]
    return (*carry, *_stacked(columns, body.outputs[carried:]))


def _while(node: Node, args: Sequence[Any], params: dict[str, Any]) -> tuple[Any, ...]:
    body, condition, carried = params["body"], params["condition"], params["carried"]
    consts, carry = list(args[: len(args) - carried]), list(args[len(args) - carried :])
    columns: list[list[Any]] = [[] for _ in body.outputs[carried:]]
    count = 0
    for count in stepping(body.name, itertools.count()):
        if not _without_handle(inline_graph(condition, [*consts, *carry], step_by_step)[0]):
            break
        limit = params["limit"]
        if limit is not None and count >= limit:
            raise GuardError(
                f"a while_loop did not end within max_steps={limit} steps{at(node.where)}."
            )
        outs = inline_graph(body, [*consts, *carry], step_by_step)
        carry = outs[:carried]
        for column, y in zip(columns, outs[carried:], strict=True):
            column.append(y)
    return (*carry, np.int64(count), *_stacked(columns, body.outputs[carried:]))


def _stacked(columns: Sequence[list[Any]], outputs: Sequence[Node]) -> list[Any]:
    arrays: list[Any] = []
    for column, out in zip(columns, outputs, strict=True):
        if any(isinstance(y, Handle) for y in column):
            arrays.append(lookup("stack")(*column, axis=0))
        else:
            arrays.append(np.array(column, out.spec.dtype).reshape(len(column), *out.spec.shape))
    return arrays


def _without_handle(x: Array) -> Any:
    return x.node.value if isinstance(x, Handle) else x


class Edge(NamedTuple):
    """The contribution of one node to the cotangent of one operand.

    node : Node
    position : int
        The index of the operand.
    operand : Node
    raw, projected : float
        The largest magnitude before and after broadcasting is undone: 0 if all elements are exactly
        zero, NaN if one is NaN, inf if one is infinite.
    """

    node: Node
    position: int
    operand: Node
    raw: float
    projected: float


class Backward:
    """The record of one backward pass.

    Attributes
    ----------
    seeds : dict
        The cotangent of each output: ones.
    cotangents : dict
        The complete cotangent of each visited node, in order.
    before_hooks : dict
        The same before hooks were called, for nodes with hooks.
    edges : dict
        For each node, the edges whose operand it is.
    ctx : RuleContext
        The context that was passed to the rules.
    """

    def __init__(self, outputs: Sequence[Node], targets: Sequence[Node], guarded: bool) -> None:
        self.tape: Tape = tape_between(outputs, set(targets))
        self.ctx = RuleContext(self.tape.wanted, False, guarded)
        self.seeds = {n: np.ones(n.spec.shape, n.spec.dtype)[()] for n in outputs}
        self.cotangents: dict[Node, Any] = {}
        self.before_hooks: dict[Node, Any] = {}
        self.edges: dict[Node, list[Edge]] = {}
        with np.errstate(all="ignore"):
            for step in backward_steps(self.tape, self.seeds, guarded):
                self._add(step)

    def _add(self, step: PassStep) -> None:
        node = step.node
        self.cotangents[node] = step.cotangent
        if step.before_hooks is not step.cotangent:
            self.before_hooks[node] = step.before_hooks
        for i, (a, raw, projected) in enumerate(
            zip(node.args, step.raw, step.projected, strict=True)
        ):
            if projected is not None:
                edge = Edge(node, i, a, magnitude(raw), magnitude(projected))
                self.edges.setdefault(a, []).append(edge)


def run_backward(outputs: Sequence[Node], targets: Sequence[Node]) -> Backward:
    """The backward pass as in reverse.py, guarded if the result contains NaN.

    The cotangents of the targets are those of reverse.py itself, which repeats a pass after an
    overflow, or with limits; hooks, which may have effects, run once unless there are limits.

    Raises
    ------
    DerivativeError
        The derivative does not exist because values are equal.
    """
    back = Backward(outputs, targets, guarded=False)
    is_nan = _is_nan(back, targets)
    if is_nan:
        back = Backward(outputs, targets, guarded=True)
        is_nan = _is_nan(back, targets)
    nodes = back.tape.nodes
    has_hooks = any(n.info is not None and n.info.hooks is not None for n in nodes)
    if not has_hooks or (is_nan and any(n.op.differentiation.limits for n in nodes)):
        bars = pullback(back.seeds, targets)
        back.cotangents |= {n: t for n, t in zip(targets, bars, strict=True) if t is not None}
    return back


def _is_nan(back: Backward, targets: Sequence[Node]) -> bool:
    with np.errstate(all="ignore"):
        return any(has_nan(back.cotangents.get(n)) for n in targets)


def magnitude(t: Any) -> float:
    """The largest magnitude: NaN if an element is NaN, 0 for an empty array."""
    if isinstance(t, np.float64):
        return abs(float(t))
    if isinstance(t, TupleCotangent):
        t = tuple(t.values())
    if isinstance(t, tuple):
        magnitudes = [magnitude(part) for part in t if part is not None]
        return float(np.max(magnitudes)) if magnitudes else 0.0
    if t is None or np.size(t) == 0:
        return 0.0
    with np.errstate(all="ignore"):
        return float(np.max(np.abs(t)))


_serial = attrgetter("serial")


def ancestors(outputs: Iterable[Node], smooth: bool = False) -> list[Node]:
    """All nodes that some nodes depend on, in order of creation.

    Parameters
    ----------
    outputs : iterable of Node
    smooth : bool
        Whether to follow only operands that have a derivative.
    """
    seen = {n for n in outputs if not smooth or type(n) is Node}
    stack = list(seen)
    while stack:
        for a in stack.pop().args:
            if isinstance(a, Node) and a not in seen and (not smooth or type(a) is Node):
                seen.add(a)
                stack.append(a)
    return sorted(seen, key=_serial)


def dependent(nodes: Iterable[Node], sources: Iterable[Node], smooth: bool = False) -> set[Node]:
    """The nodes that depend on a source, the sources included; `nodes` is in order of creation.

    Parameters
    ----------
    smooth : bool
        Whether to follow only operands that have a derivative.
    """
    reached = set(sources)
    for node in nodes:
        if node in reached or (smooth and type(node) is not Node):
            continue
        if any(isinstance(a, Node) and a in reached for a in node.args):
            reached.add(node)
    return reached


def plain(operand: Operand | Node) -> Any:
    """The value of an operand, which is a node or a value."""
    if isinstance(operand, Watched):
        return operand.array
    return operand.value if isinstance(operand, Node) else operand
