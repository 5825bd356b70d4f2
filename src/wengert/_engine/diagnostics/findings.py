"""Findings: the result of `wengert.why`, as text and as records.

A finding has a *symptom* (what is wrong with the gradient) and a *kind* (the cause):

    disconnected   unused released no_grad detached discrete condition converted branch copy
                   rewritten
    zero           masked saturated unchosen multiplied flat kink underflow vanished cancelled
                   overwritten hook
    nan, infinite  input constant operation overflow singular times_infinity
    huge, tiny     growth decay
    slow           loop repeated broadcast copies watched wide time
    error          rule mutated

Descriptions of nodes in messages.

named    a node by its operation, its name and its spec: ``matmul h float64[8,4]``
called   the same with another word for the operation: ``input x float64[3]``
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wengert._engine.core.node import Node
from wengert._engine.core.node_info import place_of
from wengert._engine.core.spec import shown

if TYPE_CHECKING:
    from wengert._engine.core.types import Array


@dataclass(frozen=True)
class Finding:
    """One finding about a gradient.

    Attributes
    ----------
    kind : str
        The cause, as one word; see the list at the top of this file.
    message : str
        One or two sentences: the symptom, the cause, and the remedy.
    node : Node or None
        The node of the graph where it happens.
    where : str or None
        The user's file and line, ``file.py:12, in f``.
    symptom : str
        The effect on the gradient: disconnected, zero, nan, infinite, huge, tiny, slow, error.
    """

    kind: str
    message: str
    node: Node | None = None
    where: str | None = None
    symptom: str = ""

    @property
    def file(self) -> str | None:
        """The user's file."""
        location = place_of(self.where)
        return None if location is None else location.file

    @property
    def line(self) -> int | None:
        """The user's line, counted from 1."""
        location = place_of(self.where)
        return None if location is None else location.line

    @property
    def text(self) -> str:
        """The source text of that line; empty if it cannot be read."""
        location = place_of(self.where)
        return "" if location is None else location.text

    def __str__(self) -> str:
        lines = [f"{self.kind}: {self.message}"]
        if self.where:
            lines.append(f"    at {self.where}")
            if self.text:
                lines.append(f"        {self.text}")
        return "\n".join(lines)


class Findings(Sequence[Finding]):
    """The findings about one gradient; true if there are any.

    Attributes
    ----------
    summary : str
        One sentence on the gradient.
    items : tuple of Finding
    gradient : array, container of arrays, or None
        The gradient that was examined; None if y does not depend on x, or values are not known.
    notes : tuple of str
        Further remarks.
    """

    def __init__(
        self,
        summary: str,
        items: Sequence[Finding] = (),
        gradient: Array | dict[Any, Any] | Sequence[Array | None] | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        self.summary = summary
        self.items = tuple(items)
        self.gradient = gradient
        self.notes = tuple(notes)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The causes, in order."""
        return tuple(f.kind for f in self.items)

    @property
    def symptoms(self) -> tuple[str, ...]:
        """The symptoms of the gradient, each once."""
        return tuple(dict.fromkeys(f.symptom for f in self.items))

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: Any) -> Any:
        return self.items[index]

    def __str__(self) -> str:
        parts = [self.summary]
        if len(self.items) == 1:
            parts += [str(f) for f in self.items]
        else:
            parts += [f"{k}. {f}" for k, f in enumerate(self.items, start=1)]
        if not self.items:
            parts.append("No cause of a problem was found.")
        return "\n".join([*parts, *self.notes])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def unique(findings: Sequence[Finding], limit: int = 8) -> list[Finding]:
    """The findings with each cause at each line once, limited to a readable number."""
    chosen: dict[tuple[Any, ...], Finding] = {}
    for f in findings:
        chosen.setdefault((f.symptom, f.kind, f.where, None if f.where else f.message), f)
    return list(chosen.values())[:limit]


def named(node: Node) -> str:
    """A node in a message: its operation, its name if it has one, and its spec."""
    return called(node.op.name, node)


def called(word: str, node: Node) -> str:
    """A node in a message, with a word such as input or parameter instead of its operation."""
    return f"{word} {node.name} {shown(node.spec)}" if node.name else f"{word} {shown(node.spec)}"
