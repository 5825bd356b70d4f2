"""Bodies without the inputs that they do not use.

An enclosing loop stores all operands of a backward loop or branch, so these have only the operands
that they read.

    with_used_inputs    branches with the inputs that any of them uses
    used_of             which inputs a body uses
    with_consts         a loop body with some of its loop-invariant inputs
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from wengert._engine.core.graph_nodes import ancestors
from wengert._engine.core.subgraph import Body

from .restoration import BackwardBody


@functools.lru_cache(maxsize=512)
def with_used_inputs(branches: tuple[Body, ...]) -> tuple[tuple[Body, ...], tuple[int, ...]]:
    """Branches with the inputs that any of them uses, and the positions of these inputs."""
    reached = [set(ancestors(b.outputs)) for b in branches]
    used = tuple(
        [
            k
            for k in range(len(branches[0].inputs))
            if any(b.inputs[k] in nodes for b, nodes in zip(branches, reached, strict=True))
        ]
    )
    reduced = [Body(*b.outputs, inputs=[b.inputs[k] for k in used], name=b.name) for b in branches]
    return tuple(reduced), used


def used_of(body: Body, count: int) -> tuple[int, ...]:
    """Which of its first `count` inputs a body uses."""
    reached = set(ancestors(body.outputs))
    return tuple([k for k in range(count) if body.inputs[k] in reached])


def with_consts(body: Body, fixed: int, used: Sequence[int]) -> Body:
    """A body with some of its first inputs, and all others.

    Parameters
    ----------
    body : Body
    fixed : int
        The number of first inputs, which may be omitted.
    used : sequence of int
        The first inputs to keep.
    """
    if len(used) == fixed:
        return body
    inputs = [*[body.inputs[k] for k in used], *body.inputs[fixed:]]
    reduced = type(body)(*body.outputs, inputs=inputs, name=body.name)
    if isinstance(body, BackwardBody) and isinstance(reduced, BackwardBody):
        reduced.restores = body.restores
    return reduced
