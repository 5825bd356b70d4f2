"""Passes one by one: the graph before and after each, and the verification that it may replace.

A `PassRun` is one run of one pass: its name, its time, the graph before and after, and every rule
that was applied, with the node and its replacement.  `print(history)` shows them.

The graph after a pass must have the same inputs, and the same number of outputs, updates and
effects with the same specs; each node must come after its operands, and have the spec that its
operation infers from them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.node import LeafOp, Node
from wengert._engine.core.node_properties import short
from wengert._engine.core.spec import bare
from wengert._engine.core.tracing import infer
from wengert.errors import GraphError, at, user_line

from .driver import Applied
from .loops.loop_passes import BodyHistory


@dataclass(frozen=True)
class PassRun:
    """One run of one pass.

    Attributes
    ----------
    name : str
        The name of the pass; passes that share one traversal are joined: "fold + merge + ...".
    seconds : float
        The time of the pass and its verification.
    before, after : Graph
    applied : tuple of Applied
        ``(rule, node, replacement)``, in order. The node is one of `before`, or was created by an
        earlier rule.
    inside : tuple of BodyHistory
        ``(name, history)`` of the bodies of loops and branches, if these were simplified.
    """

    __module__ = "wengert.rewrite"

    name: str
    seconds: float
    before: BaseGraph
    after: BaseGraph
    applied: tuple[Applied, ...]
    inside: tuple[BodyHistory, ...] = ()

    @property
    def counts(self) -> Counter[str]:
        """How often each rule was applied."""
        return Counter(a.rule for a in self.applied)

    def __str__(self) -> str:
        head = (
            f"{self.name}: {len(self.before)} nodes -> {len(self.after)}, "
            f"{self.seconds * 1e3:.1f} ms"
        )
        lines = [head, *(f"    {n} x {rule}" for rule, n in self.counts.most_common())]
        for body in self.inside:
            text = str(body.history).replace("\n", "\n        ")
            lines += [f"    in {body.name}:", f"        {text}"]
        return "\n".join(lines)


class PassHistory:
    """The steps of one simplification, in order.

    Attributes
    ----------
    steps : list of PassRun
    """

    __module__ = "wengert.rewrite"

    def __init__(self) -> None:
        self.steps: list[PassRun] = []

    def __len__(self) -> int:
        return len(self.steps)

    def __iter__(self) -> Iterator[PassRun]:
        return iter(self.steps)

    def __getitem__(self, index: int) -> PassRun:
        return self.steps[index]

    def __str__(self) -> str:
        return "\n".join(map(str, self.steps)) if self.steps else "nothing was done"

    def __repr__(self) -> str:
        return (
            f"<PassHistory of {len(self)} steps: {', '.join(s.name for s in self.steps) or 'none'}>"
        )

    def applications(self) -> str:
        """Every application of a rule, one per line, with the user's source line."""
        lines: list[str] = []
        for step in self.steps:
            for body in step.inside:
                text = body.history.applications()
                lines += [f"in {body.name}:", *(f"    {line}" for line in text.splitlines())]
            lines += map(_formatted, step.applied)
        return "\n".join(lines)


def _formatted(applied: Applied) -> str:
    where = applied.node.where
    location = f"   # {short(where)}" if where else ""
    return f"{applied.rule}: {_brief(applied.node)} -> {_brief(applied.replacement)}{location}"


def _brief(node: Node) -> str:
    operands = ", ".join(a.name or a.op.name for a in node.inputs)
    return f"{node.op.name}({operands})" if operands else node.name or node.op.name


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
