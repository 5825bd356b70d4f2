"""Dependence: which results of a body depend on which of its inputs, differentiably.

This determines which values of a loop have tangents if some operands have, and which cotangents
contribute to them: the carry is followed from step to step until a fixed point is reached.  Inner
branches and loops are analyzed too, because each of their results depends on some of their operands
only.

    Dependence    of a body's outputs on its inputs
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence

from wengert._engine.core.dispatch import PART
from wengert._engine.core.node import Node
from wengert._engine.core.op_facts import BRANCH, LOOP
from wengert._engine.core.subgraph import Body


class Dependence:
    """The dependence of the outputs of a body on its inputs, by number."""

    def __init__(self, body: Body) -> None:
        mask = {n: 1 << k if type(n) is Node else 0 for k, n in enumerate(body.inputs)}
        for node in body.nodes:
            if node not in mask:
                mask[node] = _reached(node, mask)
        count = len(body.inputs)
        self._of = [frozenset(k for k in range(count) if mask[n] >> k & 1) for n in body.outputs]

    def on(self, output: int) -> frozenset[int]:
        """The inputs that an output depends on."""
        return self._of[output]

    def moving(self, moved: Iterable[int], carried: range) -> frozenset[int]:
        """The inputs that have tangents in some step, if some have before the first."""
        found = set(moved)
        more = True
        while more:
            new = {k for i, k in enumerate(carried) if k not in found and self._of[i] & found}
            found |= new
            more = bool(new)
        return frozenset(found)

    def live(self, given: Iterable[int], moving: frozenset[int], carried: range) -> list[int]:
        """The carried inputs with tangents that an output with a cotangent depends on.

        Parameters
        ----------
        given : iterable of int
            The outputs with cotangents; of the carry those of the last step.
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


def _reached(node: Node, mask: Mapping[Node, int]) -> int:
    """The inputs that a node depends on."""
    if type(node) is not Node:
        return 0
    operands: Sequence[Node] = node.inputs
    if node.op is PART:
        (whole,) = node.args
        used = _used(whole, node.params["index"])
        if used is not None:
            operands = [a for k, a in enumerate(whole.args) if k in used]
    found = 0
    for a in operands:
        found |= mask[a]
    return found


def _used(node: Node, output: int) -> frozenset[int] | None:
    """The operands that a result of a conditional or loop depends on; None if not known."""
    params = node.params
    if node.op.control_flow == BRANCH:
        return frozenset([k + 1 for k in _of_choice(params["branches"])[output]])
    if node.op.control_flow != LOOP:
        return None
    carried = params["carried"]
    if node.op.name == "while" and output >= carried:
        if output == carried:  # the number of steps
            return frozenset()
        output -= 1
    found = _of_loop(params["body"], carried, params.get("stacked", 0))[output]
    return frozenset([k + params.get("counted", 0) for k in found])


@functools.lru_cache(maxsize=512)
def _of_choice(branches: tuple[Body, ...]) -> list[frozenset[int]]:
    """The inputs of the branches on which each result depends in any branch."""
    all_of = [Dependence(b) for b in branches]
    count = len(branches[0].outputs)
    return [frozenset[int]().union(*[d.on(k) for d in all_of]) for k in range(count)]


@functools.lru_cache(maxsize=512)
def _of_loop(body: Body, carried: int, stacked: int) -> list[frozenset[int]]:
    """The inputs of the body on whose initial values each result depends."""
    depends = Dependence(body)
    fixed = len(body.inputs) - carried - stacked
    found = []
    for k in range(len(body.outputs)):
        reached = set(depends.on(k))
        if k < carried:
            reached.add(fixed + k)  # the loop may have no steps
        pending = list(reached)
        while pending:
            i = pending.pop() - fixed
            if 0 <= i < carried:
                new = depends.on(i) - reached
                reached |= new
                pending += new
        found.append(frozenset(reached))
    return found
