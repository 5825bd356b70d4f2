"""Recorded passes: forward and backward passes that keep every step, for diagnosis.

    watched     from the outputs back, a step for each node
    tangents    from a target forward, the tangent of each node

The same traversal as in reverse.py, in its simplest form: one step per node, with the cotangent of
the node and the contribution to each operand.  All of them are stored, and it is not optimized for
speed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wengert._engine.autodiff.cotangent_space import project
from wengert._engine.autodiff.forward import jvp_from_vjp, settle
from wengert._engine.autodiff.reverse import complete, through_hooks, vjp_from_jvp
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
    arrived : its complete cotangent; a tuple for an operation with several outputs.
    cotangent : the cotangent after the hooks of the node, if it has any.
    given : the contribution to each operand returned by its rule, or None.
    passed : the same with the shape and dtype of the operand: summed over broadcast axes.
    """

    node: Node
    arrived: Any
    cotangent: Any
    given: list[Any]
    passed: list[Any]


def watched(tape: Tape, seeds: Mapping[Node, Any], guarded: bool = False) -> Iterator[PassStep]:
    """The steps of a backward pass on values.

    Parameters
    ----------
    tape : Tape
        Its nodes have values.
    seeds : mapping from Node
        The cotangent of each output.
    guarded : bool
        Whether an exactly zero cotangent times anything is zero.
    """
    ctx = RuleContext(tape.wanted, False, guarded)
    bars: dict[Node, Any] = dict(seeds)
    if tape.wanted is not None:
        bars = {n: t for n, t in seeds.items() if n in tape.wanted}
    for node in reversed(tape.nodes):
        arrived = bars.pop(node, None)
        if arrived is None:
            continue
        if type(arrived) is TupleCotangent and not node.op.differentiation.takes_parts:
            arrived = complete(arrived, node, False)
        t = arrived
        if node.info is not None and node.info.hooks is not None:
            t = _plain(through_hooks(node, t))
        given = given_by(node, t, ctx)
        passed = [
            _plain(project(bar, a)) if bar is not None and ctx.wants(a) else None
            for a, bar in zip(node.args, given, strict=True)
        ]
        yield PassStep(node, arrived, t, given, passed)
        for a, bar in zip(node.args, passed, strict=True):
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
    found: dict[Node, Any] = dict(known)
    for node in tape.nodes:
        dots = [found.get(a) if type(a) is Node else None for a in node.args]
        if node not in found and any(d is not None for d in dots):
            dot = tangent_of(node, dots)
            if dot is not None:
                found[node] = dot
    return found


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


def given_by(node: Node, t: Array | tuple[Operand, ...], ctx: RuleContext) -> list[Any]:
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
