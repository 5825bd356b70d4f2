"""VJP rule of branches: the conditional of the branches' pullbacks.

Each branch is differentiated separately, and the same selector chooses the pullback.  A pullback
computes again what it needs of its branch, except results of messages (received_results.py).
Operands that no pullback reads are left out, so that an enclosing loop does not store them.

    pull_conditional    the rule of cond, switch and sized
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from wengert._engine.autodiff.reverse import gathered, pullback
from wengert._engine.core.graph_nodes import ancestors
from wengert._engine.core.handle import wrap
from wengert._engine.core.node import Node
from wengert._engine.core.op import RuleContext, lookup
from wengert._engine.core.replay import inline_graph
from wengert._engine.core.subgraph import Body
from wengert._engine.core.tracing import placeholder
from wengert._engine.core.uniform_arrays import uniform

from .message_carry import after_messages, body_derivative
from .received_results import Derivative, are_returned, divided, returned
from .sparse_cotangents import added_in_place
from .used_inputs import with_used_inputs


def pull_conditional(
    node: Node, t: Mapping[int, Any], inputs: Sequence[Any], ctx: RuleContext
) -> list[Any]:
    """The cotangents of a conditional's operands: the conditional of the branches' pullbacks."""
    which, *operands = inputs
    wanted = tuple([k for k, a in enumerate(node.args[1:]) if ctx.wants(a)])
    seeded = tuple(sorted(t))
    bodies = node.params["branches"]
    forward, back = _pulled_branches(
        bodies, seeded, wanted, ctx.guarded, are_returned(bodies, inputs)
    )
    branches, used_inputs = with_used_inputs(back)
    every = [*operands, *returned(node, inputs, forward), *[t[k] for k in seeded]]
    results = lookup(node.op.name)(
        which, *[every[k] for k in used_inputs], **{**node.params, "branches": branches}
    )
    cotangents: list[Any] = [None] * len(operands)
    for k, cotangent in zip(wanted, results, strict=True):
        cotangents[k] = cotangent
    # A branch that does not use an operand contributes zero.
    ctx.mask([node.args[k + 1] for k in wanted])
    return [None, *cotangents]


@functools.lru_cache(maxsize=512)
def _pulled_branches(
    bodies: tuple[Body, ...],
    seeded: tuple[int, ...],
    wanted: tuple[int, ...],
    guarded: bool,
    returns: bool,
) -> tuple[tuple[Body, ...], tuple[Body, ...]]:
    """The branches with further results, and their pullbacks; see `divided`."""
    pulled = [_pulled_branch(b, seeded, wanted, guarded, returns) for b in bodies]
    return divided(bodies, pulled, "backwards", returns)


@functools.lru_cache(maxsize=512)
def _pulled_branch(
    body: Body, seeded: tuple[int, ...], wanted: tuple[int, ...], guarded: bool, returns: bool
) -> Derivative:
    """The pullback of a branch: from operands and cotangents of results to those of operands."""
    with body_derivative():
        inputs = [placeholder(n.spec, n.name, type(n) is Node) for n in body.inputs]
        outs = inline_graph(body, [wrap(n) for n in inputs])
        seeds = [placeholder(body.outputs[k].spec) for k in seeded]
        handles = list(map(wrap, seeds))
        if not returns:
            pairs_of_seeds = zip(handles, seeded, strict=True)
            handles = [after_messages(s, outs[k], body) for s, k in pairs_of_seeds]
        nodes = [getattr(outs[k], "node", None) for k in seeded]
        targets = [inputs[k] for k in wanted]
        pairs = gathered(zip(nodes, handles, strict=True))
        cotangents = pullback(pairs, targets, masked=guarded) if pairs else [None] * len(targets)
        results = [
            (uniform(n.spec, 0) if cotangent is None else cotangent).node
            for cotangent, n in zip(cotangents, targets, strict=True)
        ]
        results = added_in_place(results, ancestors(results), keeps_sums=True)
    return Derivative(inputs, outs, seeds, results)
