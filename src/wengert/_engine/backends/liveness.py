"""Liveness: live ranges of the values of a graph, and reuse of their memory.

last_uses    for each node the values that can be freed after it has run
specs_at     the specs of all nodes, with numbers for sizes
known_bytes  the memory of a value, as far as it is known before the run
live_bytes   the memory in use while each node runs
in_place     the nodes that can reuse the memory of an operand after its last use
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.node import LeafOp, Node
from wengert._engine.core.spec import at_sizes, lengths_of
from wengert._engine.core.symbolic.dim import is_open, names_in
from wengert._engine.ops.cost_model import bytes_of, shares_memory
from wengert.errors import ArgumentError, at, user_line


def last_uses(graph: BaseGraph) -> list[tuple[int, ...]]:
    """For each node the nodes whose last use it is; the node itself, if it has no uses.

    Values of outputs and updates live to the end; those of leaves are owned by the caller or the
    graph.
    """
    slot = {n: i for i, n in enumerate(graph.nodes)}
    kept = {slot[n] for n in (*graph.outputs, *graph.updates.values())}
    last: dict[int, int] = {}
    for i, node in enumerate(graph.nodes):
        for a in node.inputs:
            last[slot[a]] = i
        last[i] = i
    gone: list[list[int]] = [[] for _ in graph.nodes]
    for k, i in last.items():
        if k not in kept and not isinstance(graph.nodes[k].op, LeafOp):
            gone[i].append(k)
    return [tuple(ks) for ks in gone]


def specs_at(graph: BaseGraph, sizes: Mapping[str, int]) -> list[Any]:
    """The spec of each node, with numbers for named sizes.

    Lengths that are known only when a loop ends stay symbolic.

    Raises
    ------
    ArgumentError
        A size has no value; the message names it.
    """
    found = [at_sizes(n.spec, sizes) for n in graph.nodes]
    unknown = names_in([d for spec in found for d in lengths_of(spec) if not is_open(d)])
    if unknown:
        name = min(unknown)
        raise ArgumentError(f"the size {name} has no value. Pass one{at(user_line())}.")
    return found


def known_bytes(spec: Any) -> int:
    """The memory of a value, without outputs whose length is known only when a loop ends."""
    parts = spec if type(spec) is tuple else (spec,)
    return sum(bytes_of(s) for s in parts if s is not None and not any(map(is_open, s.shape)))


def live_bytes(graph: BaseGraph, specs: Sequence[Any], planned: Mapping[int, int]) -> list[int]:
    """The bytes of intermediate values and results in memory while each node runs.

    Inputs, variables and constants are not counted: they exist before and after.

    Parameters
    ----------
    graph : Graph
    specs : sequence
        See `specs_at`.
    planned : mapping
        For a node the operand whose memory it reuses (`in_place`); empty for none.

    Returns
    -------
    list of int
        Shared memory (views) is counted once, until its last use.
    """
    slot = {n: i for i, n in enumerate(graph.nodes)}
    owner = list(range(len(graph.nodes)))  # the node that owns the memory of a value
    for i, node in enumerate(graph.nodes):
        if not isinstance(node.op, LeafOp) and node.inputs and shares_memory(node):
            owner[i] = owner[slot[node.inputs[0]]]
        elif i in planned:
            owner[i] = owner[planned[i]]
    end = list(range(len(graph.nodes)))
    kept = [slot[n] for n in (*graph.outputs, *graph.updates.values())]
    for i, node in enumerate(graph.nodes):
        for a in (*node.inputs, node):
            end[owner[slot[a]]] = i
    for k in kept:
        end[owner[k]] = len(graph.nodes) - 1
    change = [0] * (len(graph.nodes) + 1)
    for k, node in enumerate(graph.nodes):
        if owner[k] == k and not isinstance(node.op, LeafOp):
            size = 0 if node.op.aliasing.uniform else known_bytes(specs[k])
            change[k] += size
            change[end[k] + 1] -= size
    held, now = [], 0
    for delta in change[:-1]:
        now += delta
        held.append(now)
    return held


def writes_anywhere(node: Node) -> bool:
    """Whether a node takes an output array (`out=`): it is one call of a NumPy ufunc."""
    op: Any = node.op
    ufunc = getattr(op, "ufunc", None)
    return isinstance(ufunc, np.ufunc) and op.run is ufunc and not node.params and ufunc.nout == 1


def in_place(graph: BaseGraph, specs: Sequence[Any]) -> dict[int, int]:
    """For nodes that can reuse the memory of an operand, that operand.

    Such a node is elementwise; the operand has its shape and dtype, does not share memory with
    another value, and has its last use there.
    """
    slot = {n: i for i, n in enumerate(graph.nodes)}
    shared = set()  # nodes whose memory may have other references
    for node in graph.nodes:
        if isinstance(node.op, LeafOp) or writes_anywhere(node) or node.op.kind == "contraction":
            continue
        for a in node.inputs:
            if known_bytes(specs[slot[node]]) and not _is_copied(node):
                shared.add(slot[a])
    found: dict[int, int] = {}
    for i, gone in enumerate(last_uses(graph)):
        node = graph.nodes[i]
        if node.op.kind != "elementwise" or not writes_anywhere(node) or specs[i].shape == ():
            continue
        for k in gone:
            fits = k != i and specs[k] == specs[i] and writes_anywhere(graph.nodes[k])
            if fits and k not in shared:
                found[i] = k
                break
    return found


def _is_copied(node: Node) -> bool:
    """Whether the value of a node is always newly allocated: a reduction to fewer elements."""
    return bool(node.op.kind == "reduction")
