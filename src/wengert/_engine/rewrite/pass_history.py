"""Pass history: the graph before and after each pass.

A `PassRun` is one run of one pass: its name, its time, the graph before and after, and every rule
that was applied, with the node and its replacement.  `print(history)` shows them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.node import Node
from wengert._engine.core.node_info import short

from .driver import Applied
from .loops.nested_graphs import BodyHistory


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
