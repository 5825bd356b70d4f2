"""Bodies without the inputs that they do not use.

An operand that a backward loop or branch is given is stored by the loop around it, so it is given
those only that it reads.

    with_used_inputs    branches with the inputs that any of them uses
    used_of             which inputs a body uses
    with_consts         a loop body with some of its loop-invariant inputs
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from wengert._engine.core.subgraph import Body

from .residuals import ancestors
from .restoration import BackwardBody


@functools.lru_cache(maxsize=512)
def with_used_inputs(branches: tuple[Body, ...]) -> tuple[tuple[Body, ...], tuple[int, ...]]:
    """Branches with the inputs that any of them uses, and the numbers of these."""
    reached = [set(ancestors(b.outputs)) for b in branches]
    used = tuple(
        [
            k
            for k in range(len(branches[0].inputs))
            if any(b.inputs[k] in found for b, found in zip(branches, reached, strict=True))
        ]
    )
    made = [Body(*b.outputs, inputs=[b.inputs[k] for k in used], name=b.name) for b in branches]
    return tuple(made), used


def used_of(body: Body, count: int) -> tuple[int, ...]:
    """Which of its first inputs a body uses."""
    found = set(ancestors(body.outputs))
    return tuple([k for k in range(count) if body.inputs[k] in found])


def with_consts(body: Body, fixed: int, used: Sequence[int]) -> Body:
    """A body with some of its first inputs, and all others.

    Parameters
    ----------
    body : Body
    fixed : int
        How many of its inputs may be left out.
    used : sequence of int
        Those that stay.
    """
    if len(used) == fixed:
        return body
    inputs = [*[body.inputs[k] for k in used], *body.inputs[fixed:]]
    made = type(body)(*body.outputs, inputs=inputs, name=body.name)
    if isinstance(body, BackwardBody) and isinstance(made, BackwardBody):
        made.restores = body.restores
    return made
