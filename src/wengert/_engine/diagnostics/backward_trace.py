"""Backward trace: the backward pass from some outputs to some targets, node by node.

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

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wengert._engine.autodiff.reverse import has_nan, pullback
from wengert._engine.autodiff.tape import Tape, tape_between
from wengert._engine.core.dispatch import TupleCotangent
from wengert._engine.core.node import Node, Watched
from wengert._engine.core.op import RuleContext

from .recorded_pass import PassStep, backward_steps

if TYPE_CHECKING:
    from wengert._engine.core.types import Operand


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
