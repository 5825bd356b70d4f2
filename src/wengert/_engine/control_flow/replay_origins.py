"""Whether values in the backward pass of a checkpointed loop are the same in all processes.

Decisions about messages in its bodies must be, as in those of the loop (message_carry.py).

inputs_of_replay    what the inputs of its bodies depend on
"""

from __future__ import annotations

from collections.abc import Sequence

from wengert._engine.autodiff.messages import Origins, of_inputs, origins_of
from wengert._engine.core.node import Node
from wengert._engine.core.subgraph import Body, bodies_of

from .replay_operands import OperandGroups


def inputs_of_replay(node: Node, operands: Sequence[Origins]) -> list[dict[Node, Origins]]:
    """For each of the bodies of a replay, what its inputs depend on, in all steps.

    Parameters
    ----------
    node : Node
    operands : sequence
        What the operands of the node depend on.
    """
    params, parts = node.params, OperandGroups(operands, node.params)
    step, keep, back = (params[name] for name in ("step", "keep", "back"))
    carried, stacked = params["carried"], params["stacked"]
    of_step = of_inputs(step, [*parts.consts, *parts.carry, *parts.xs], carried, stacked)
    of_keep = dict(zip(keep.inputs, of_step.values(), strict=True))
    residuals = origins_of(keep.outputs[carried:], of_keep)
    rows = [*[parts.xs[k] for k in params["read"]], *residuals, *parts.rows]
    given = [*parts.consts, *parts.more, *parts.starts, *rows]
    of_back = of_inputs(back, given, params["pulled"], len(rows))
    found: dict[Body, dict[Node, Origins]] = {step: of_step, keep: of_keep, back: of_back}
    return [found[body] for body in bodies_of(node)]
