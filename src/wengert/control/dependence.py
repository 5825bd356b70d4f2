"""Dependence: which results of a body depend on which of its inputs, differentiably.

From this follows what moves in a loop when some of its operands move, and whose cotangents reach
them: a carry is followed from step to step until nothing new is found.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..core.body import Body
from ..core.node import Node


class Dependence:
    """Of the outputs of a body on its inputs, both by number."""

    def __init__(self, body: Body) -> None:
        mask = {n: 1 << k if type(n) is Node else 0 for k, n in enumerate(body.inputs)}
        for node in body.nodes:
            if node not in mask:
                found = 0
                for a in node.inputs if type(node) is Node else ():
                    found |= mask[a]
                mask[node] = found
        count = len(body.inputs)
        self._of = [frozenset(k for k in range(count) if mask[n] >> k & 1) for n in body.outputs]

    def on(self, output: int) -> frozenset[int]:
        """The inputs that an output depends on."""
        return self._of[output]

    def moving(self, moved: Iterable[int], carried: range) -> frozenset[int]:
        """The inputs that move, in some step, if some are moved before the first."""
        found = set(moved)
        more = True
        while more:
            new = {k for i, k in enumerate(carried) if k not in found and self._of[i] & found}
            found |= new
            more = bool(new)
        return frozenset(found)

    def live(self, given: Iterable[int], moving: frozenset[int], carried: range) -> list[int]:
        """The carried inputs that move, and that an output with a cotangent depends on.

        Parameters
        ----------
        given : iterable of int
            Outputs; of the carry those of the last step.
        """
        reached = set(given)
        found: set[int] = set()
        more = True
        while more:
            new = {
                k
                for i, k in enumerate(carried)
                if k in moving
                and k not in found
                and (i in reached or any(k in self._of[j] for j in reached))
            }
            found |= new
            reached |= {k - carried.start for k in new}
            more = bool(new)
        return sorted(found)
