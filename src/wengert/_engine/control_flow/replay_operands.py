"""The operands of the backward pass of a checkpointed loop (recompute.py), by group.

They are those of the loop, the states that it stored, and the cotangents.

OperandGroups    the groups
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wengert._engine.core.subgraph import Body


class OperandGroups:
    """The operands of a node by group.

    Attributes
    ----------
    count : sequence
        The number of steps, if it is an operand.
    consts, carry, xs : sequence
        Of the loop.
    snapshots : sequence
        The states that the forward loop stored.
    more : sequence
        Further loop-invariant operands of the backward loop.
    starts : sequence
        The carried cotangents, and the sums.
    rows : sequence
        The cotangents of the ys.
    """

    def __init__(self, args: Sequence[Any], params: Mapping[str, Any]) -> None:
        step: Body = params["step"]
        carried, stacked = params["carried"], params["stacked"]
        lengths = [
            int(params["counted"]),
            len(step.inputs) - carried - stacked,
            carried,
            stacked,
            1,
            params["more"],
            params["pulled"],
        ]
        groups = []
        start = 0
        for n in lengths:
            groups.append(args[start : start + n])
            start += n
        self.count, self.consts, self.carry, self.xs = groups[:4]
        self.snapshots, self.more, self.starts = groups[4:]
        self.rows = args[start:]
