"""Recorded passes: forward and backward passes that return every step, for diagnosis.

    backward_steps    a backward pass, a step for each node
    tangents          a forward pass, the tangent of each node
    contributions     the contributions of one node in a backward pass; tangent_of: its tangent

The same traversal as in reverse.py, in its simplest form and not optimized for speed: one step per
node, with the cotangent of the node and the contribution to each operand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wengert._engine.autodiff.forward import jvp_from_vjp, settle
from wengert._engine.autodiff.reverse import complete, through_hooks, vjp_from_jvp
from wengert._engine.autodiff.strong_zeros import project
from wengert._engine.autodiff.tape import Tape
from wengert._engine.core.dispatch import TupleCotangent
from wengert._engine.core.handle import Handle, value_of
from wengert._engine.core.node import Node
from wengert._engine.core.op import RuleContext

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
