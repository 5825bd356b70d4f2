"""Overflows: derivatives of functions whose intermediate values overflow.

The derivative of log(1 + exp(x)) at 800 is 1, but the chain rule gives inf / (1 + inf).  If values
are known, a pass after an overflow (the result is NaN or an output is infinite, and a node is
infinite or zero for finite operands) is repeated on a graph in which such compositions are replaced
by stable functions (rewrite/rules/stabilize.py).  If there is no rewrite rule, a slope of 0 that is
1 / inf becomes NaN, because the correct slope is not known.

    is_infinite     whether an output contains an infinity
    has_overflowed  whether a node overflowed
    stabilised      the outputs of a tape, computed without the overflow
    unknown_slopes  contributions to overflowed operands, with NaN for the zeros that are 1 / inf
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.copy_graph import rebuilt
from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.handle import Handle, value_of, wrap
from wengert._engine.core.node import Node
from wengert._engine.core.op import lookup
from wengert._engine.core.recording import enable_grad
from wengert._engine.core.replay import inline_graph
from wengert._engine.core.spec import Spec
from wengert._engine.core.tracing import placeholder

from .tape import Tape

if TYPE_CHECKING:
    from wengert._engine.core.types import Operand

REWRITING: list[str] = []  # the module that rewrites, registered by wengert/__init__.py


def is_infinite(nodes: Iterable[Any]) -> bool:
    """Whether a value contains an infinity; the cost is one sum each if none does."""
    for node in nodes:
        value = None if node.version is not None else node.value
        if type(value) is np.ndarray and value.dtype.kind in "fc":
            with np.errstate(all="ignore"):
                total = np.add.reduce(value, axis=None)
                if total - total == 0:
                    continue
            if np.isinf(value).any():
                return True
        elif isinstance(value, np.inexact) and np.isinf(value):
            return True
    return False


def has_overflowed(tape: Tape) -> bool:
    """Whether a node without poles overflowed to infinity, or underflowed to 0."""
    return any(_overflows(node) for node in tape.nodes if node.args and node.version is None)


def _overflows(node: Node) -> bool:
    op: Any = node.op
    value = node.value
    if op.differentiation.singular is True or not isinstance(value, np.ndarray | np.inexact):
        return False
    if value.dtype.kind not in "fc":
        return False
    mask = np.isinf(value)
    if len(node.args) == 1 and op.kind == "elementwise" and not (op.kinks or op.discrete):
        mask = mask | np.equal(value, 0) & np.not_equal(_plain(node.args[0]), 0)
    if not mask.any():
        return False
    for x in map(_plain, node.args):
        if isinstance(x, np.ndarray | np.inexact) and x.dtype.kind in "fc":
            finite = np.isfinite(x)
            mask = mask & (finite if finite.shape in ((), mask.shape) else finite.all())
    return bool(mask.any())


def _plain(a: Operand | Node) -> Any:
    return a.value if isinstance(a, Node) else a


def stabilised(
    tape: Tape, outputs: Sequence[Any], targets: Sequence[Node]
) -> dict[Node, Node] | None:
    """New outputs, equal functions of the same nodes without overflow; None if no rule applies.

    The targets and the other nodes that the tape starts from become the inputs of a graph, which is
    rewritten and evaluated at the same nodes.
    """
    if not REWRITING or any(map(_has_effects, tape.nodes)):
        return None
    inputs = dict.fromkeys(targets)
    inputs.update(dict.fromkeys(n for n in tape.nodes if not n.args))
    interior = {n for n in tape.nodes if n not in inputs}
    inputs.update(
        dict.fromkeys(a for n in interior for a in n.args_as_nodes() if a not in interior)
    )
    if not all(type(n.spec) is Spec for n in inputs):
        return None
    placeholders = {n: placeholder(n.spec) for n in inputs}
    nodes = rebuilt([n for n in tape.nodes if n in interior], placeholders)
    graph = BaseGraph(*[wrap(nodes[n]) for n in outputs], inputs=list(placeholders.values()))
    stable = import_module(REWRITING[0]).stabilised(graph)
    if stable is graph:
        return None
    with enable_grad(), np.errstate(all="ignore"):
        results = inline_graph(stable, [wrap(n) for n in inputs])
    if not all(isinstance(x, Handle) and type(x.node) is Node for x in results):
        return None
    return {n: x.node for n, x in zip(outputs, results, strict=True)}


def _has_effects(node: Node) -> bool:
    """Whether a node has side effects or is written in place."""
    hooked = node.info is not None and node.info.hooks is not None
    return bool(hooked or node.op.effects.side_effect or node.version is not None)


def unknown_slopes(node: Node, incoming: Sequence[Any], outgoing: Sequence[Any]) -> list[Any]:
    """The result of a rule, with NaN for zeros that are 1 / inf because the operand is infinite.

    Parameters
    ----------
    node : Node
        The node: a function of one operand, or one with poles.
    incoming, outgoing : sequence
        The (co)tangents that the rule took and returned, one per operand, or None.
    """
    op: Any = node.op
    single = op.differentiation.singular or len(node.args) == 1
    value = None if node.version is not None else node.value
    if not (single and isinstance(value, np.ndarray | np.inexact) and np.isinf(value).any()):
        return list(outgoing)
    results = []
    for a, t, bar in zip(node.args, incoming, outgoing, strict=True):
        x, seed, result = (value_of(y) for y in (_plain(a), t, bar))
        unknown: Any = False
        if seed is None or result is None:
            pass
        elif op.kind == "reduction":  # it overflowed itself: a norm of large numbers
            if np.isfinite(x).all() and np.any(seed):
                unknown = np.not_equal(x if np.shape(result) == np.shape(x) else 1, 0)
        elif np.shape(x) == np.shape(value):
            unknown = np.isinf(value) & np.isinf(x) & np.not_equal(seed, 0)
        unknown = unknown & np.equal(result, 0) if unknown is not False else unknown
        results.append(lookup("where")(unknown, np.nan, bar) if np.any(unknown) else bar)
    return results
