"""Backward trace: the backward pass from some outputs to some targets, node by node.

An *edge* is the contribution of one node to the cotangent of one operand.  The other files search
for edges: where the cotangent of the node is not zero and the contribution is; where the cotangent
is finite and the contribution is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.autodiff.reverse import has_nan, pullback
from wengert._engine.autodiff.tape import Tape, tape_between
from wengert._engine.core.dispatch import TupleCotangent
from wengert._engine.core.node import Node
from wengert._engine.core.op import RuleContext

from .recorded_pass import PassStep, watched


class Edge(NamedTuple):
    """The contribution of one node to the cotangent of one operand.

    node : Node
    position : int
        Which operand.
    operand : Node
    given, passed : float
        Largest magnitude before and after broadcasting is undone: 0 if all are exactly zero, NaN if
        one is NaN, inf if one is infinite.
    """

    node: Node
    position: int
    operand: Node
    given: float
    passed: float


class Backward:
    """One backward pass.

    Attributes
    ----------
    seeds : dict
        The cotangent of each output: ones.
    cotangents : dict
        The complete cotangent of each node that was visited, in order.
    arrived : dict
        The same before hooks were called, for nodes with hooks.
    into : dict
        For each node the edges that lead to it.
    ctx : RuleContext
        The context that the rules were passed.
    """

    def __init__(self, outputs: Sequence[Node], targets: Sequence[Node], guarded: bool) -> None:
        self.tape: Tape = tape_between(outputs, set(targets))
        self.ctx = RuleContext(self.tape.wanted, False, guarded)
        self.seeds = {n: np.ones(n.spec.shape, n.spec.dtype)[()] for n in outputs}
        self.cotangents: dict[Node, Any] = {}
        self.arrived: dict[Node, Any] = {}
        self.into: dict[Node, list[Edge]] = {}
        with np.errstate(all="ignore"):
            for step in watched(self.tape, self.seeds, guarded):
                self._keep(step)

    def _keep(self, step: PassStep) -> None:
        node = step.node
        self.cotangents[node] = step.cotangent
        if step.arrived is not step.cotangent:
            self.arrived[node] = step.arrived
        for i, (a, given, passed) in enumerate(
            zip(node.args, step.given, step.passed, strict=True)
        ):
            if passed is not None:
                edge = Edge(node, i, a, magnitude(given), magnitude(passed))
                self.into.setdefault(a, []).append(edge)


def swept(outputs: Sequence[Node], targets: Sequence[Node]) -> Backward:
    """The backward pass as in reverse.py: guarded if the result has NaN, then with limits.

    Raises
    ------
    DerivativeError
        The derivative does not exist because values are equal.
    """
    found = Backward(outputs, targets, guarded=False)
    if not _is_nan(found, targets):
        return found
    found = Backward(outputs, targets, guarded=True)
    if _is_nan(found, targets) and any(n.op.differentiation.limits for n in found.tape.nodes):
        bars = pullback(found.seeds, targets)
        found.cotangents |= {n: t for n, t in zip(targets, bars, strict=True) if t is not None}
    return found


def _is_nan(found: Backward, targets: Sequence[Node]) -> bool:
    with np.errstate(all="ignore"):
        return any(has_nan(found.cotangents.get(n)) for n in targets)


def magnitude(t: Any) -> float:
    """The largest magnitude: NaN if an element is NaN, 0 for an empty array."""
    if isinstance(t, np.float64):
        return abs(float(t))
    if isinstance(t, TupleCotangent):
        t = tuple(t.values())
    if isinstance(t, tuple):
        found = [magnitude(part) for part in t if part is not None]
        return float(np.max(found)) if found else 0.0
    if t is None or np.size(t) == 0:
        return 0.0
    with np.errstate(all="ignore"):
        return float(np.max(np.abs(t)))
