"""Dependence: which outputs of a body depend differentiably on which of its inputs.

This determines which values of a loop have tangents if some operands have, and which cotangents
contribute to them; for the carry, by fixed-point iteration over the steps.  Inner branches and
loops are analyzed too, because each of their results may depend on some of their operands only.

    Dependence    of a body's outputs on its inputs

Bodies without the inputs that they do not use.

An enclosing loop stores all operands of a backward loop or branch, so these have only the operands
that they read.

    with_used_inputs    branches with the inputs that any of them uses
    used_of             which inputs a body uses
    with_consts         a loop body with some of its loop-invariant inputs
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence

from wengert._engine.core.dispatch import PART
from wengert._engine.core.graph_classes import Body
from wengert._engine.core.graph_nodes import ancestors
from wengert._engine.core.node import Node
from wengert._engine.core.op_facts import BRANCH, LOOP

from .restoration import BackwardBody


class Dependence:
    """On which inputs the outputs of a body depend, by position."""

    def __init__(self, body: Body) -> None:
        mask = {n: 1 << k if type(n) is Node else 0 for k, n in enumerate(body.inputs)}
        for node in body.nodes:
            if node not in mask:
                mask[node] = _inputs_of(node, mask)
        count = len(body.inputs)
        self._of = [frozenset(k for k in range(count) if mask[n] >> k & 1) for n in body.outputs]

    def on(self, output: int) -> frozenset[int]:
        """The inputs that an output depends on."""
        return self._of[output]

    def active(self, initial: Iterable[int], carried: range) -> frozenset[int]:
        """The inputs that have tangents in some step, if some have before the first."""
        active = set(initial)
        changed = True
        while changed:
            new = {k for i, k in enumerate(carried) if k not in active and self._of[i] & active}
            active |= new
            changed = bool(new)
        return frozenset(active)

    def live(
        self, with_cotangents: Iterable[int], active: frozenset[int], carried: range
    ) -> list[int]:
        """The carried inputs with tangents that an output with a cotangent depends on.

        Parameters
        ----------
        with_cotangents : iterable of int
            The outputs with cotangents; of the carry those of the last step.
        """
        reached = set(with_cotangents)
        live: set[int] = set()
        changed = True
        while changed:
            new = {
                k
                for i, k in enumerate(carried)
                if k in active
                and k not in live
                and (i in reached or any(k in self._of[j] for j in reached))
            }
            live |= new
            reached |= {k - carried.start for k in new}
            changed = bool(new)
        return sorted(live)


def _inputs_of(node: Node, mask: Mapping[Node, int]) -> int:
    """The inputs that a node depends on."""
    if type(node) is not Node:
        return 0
    operands: Sequence[Node] = node.inputs
    if node.op is PART:
        (call,) = node.args
        used_operands = _used_operands(call, node.params["index"])
        if used_operands is not None:
            operands = [a for k, a in enumerate(call.args) if k in used_operands]
    inputs = 0
    for a in operands:
        inputs |= mask[a]
    return inputs


def _used_operands(node: Node, output: int) -> frozenset[int] | None:
    """The operands that a result of a conditional or loop depends on; None if not known."""
    params = node.params
    if node.op.control_flow == BRANCH:
        return frozenset([k + 1 for k in _of_branches(params["branches"])[output]])
    if node.op.control_flow != LOOP:
        return None
    carried = params["carried"]
    if node.op.name == "while" and output >= carried:
        if output == carried:  # the number of steps
            return frozenset()
        output -= 1
    inputs = _of_loop(params["body"], carried, params.get("stacked", 0))[output]
    return frozenset([k + params.get("counted", 0) for k in inputs])


@functools.lru_cache(maxsize=512)
def _of_branches(branches: tuple[Body, ...]) -> list[frozenset[int]]:
    """The inputs of the branches on which each result depends in any branch."""
    all_of = [Dependence(b) for b in branches]
    count = len(branches[0].outputs)
    return [frozenset[int]().union(*[d.on(k) for d in all_of]) for k in range(count)]


@functools.lru_cache(maxsize=512)
def _of_loop(body: Body, carried: int, stacked: int) -> list[frozenset[int]]:
    """The inputs of the body on whose initial values each result depends."""
    depends = Dependence(body)
    fixed = len(body.inputs) - carried - stacked
    results = []
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
        results.append(frozenset(reached))
    return results


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
