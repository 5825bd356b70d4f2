"""Verification of passes: the resulting graph can replace the original.

It must have the same inputs, and the same number of outputs, updates and effects with the same
specs; each node must come after its operands, and have the spec that its operation infers from
them.
"""

from __future__ import annotations

from typing import Any

from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.node import LeafOp, Node
from wengert._engine.core.spec import bare
from wengert._engine.core.tracing import infer
from wengert.errors import GraphError, at, user_line


def check(name: str, before: BaseGraph, after: Any, verify: bool, trusted: set[Node]) -> None:
    """Check that a pass returned a valid graph with the same inputs and outputs.

    Nodes are immutable, so nodes that have already been verified (`trusted`) are skipped.
    """

    def invalid(what: str) -> GraphError:
        return GraphError(
            f"the pass {name!r} returned {what}. A pass takes a graph and returns one with the "
            f"same inputs, outputs of the same shapes and dtypes, and valid nodes{at(user_line())}."
        )

    if not isinstance(after, BaseGraph):
        raise invalid(f"a {type(after).__name__}")
    if after.inputs != before.inputs:
        raise invalid("a graph with other inputs")
    for what, old, new in (
        ("output", before.outputs, after.outputs),
        ("effect", before.effects, after.effects),
        ("update", tuple(before.updates), tuple(after.updates)),
    ):
        if len(old) != len(new):
            raise invalid(f"a graph with {len(new)} {what}s instead of {len(old)}")
    pairs = [*zip(before.outputs, after.outputs, strict=True)]
    pairs += [*zip(before.updates.values(), after.updates.values(), strict=True)]
    for i, (node, replacement) in enumerate(pairs):
        if node is not replacement and node.spec != replacement.spec:
            raise invalid(f"{replacement.spec} for output {i}, which was {node.spec}")
    if verify:
        problem = _wrong_node(after, trusted)
        if problem is not None:
            raise invalid(f"a graph in which {problem}")


def _wrong_node(graph: BaseGraph, trusted: set[Node]) -> str | None:
    """A description of the first invalid node; None if all are valid."""
    specs: dict[Node, Any] = {}
    for i, node in enumerate(graph.nodes):
        info = node.info
        spec = info.spec if info is not None and info.spec is not None else node.spec
        specs[node] = spec
        if node in trusted:
            continue
        trusted.add(node)
        if isinstance(node.op, LeafOp):
            continue
        try:
            operands = tuple([specs[a] for a in node.args])
        except KeyError:
            return f"node %{i} ({node.op.name}) uses a node that comes after it"
        inferred, _ = infer(node.op, operands, node.params)
        if inferred is not spec and bare(inferred) != bare(spec):
            return (
                f"node %{i} ({node.op.name}) has the spec {spec}, but its operands give "
                f"{inferred}{at(node.where)}"
            )
    return None
