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

Explanation: the result of `wengert.explain`, as text, HTML and attributes.

It has one entry per line of the user's program (`RecordedLine`), with its operations and their
shapes, the operations of its derivatives, and costs; and notes (graph_notes.py).
"""

from __future__ import annotations

import html
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.graph_classes import bodies_of
from wengert._engine.core.node import ConstantLeaf, LeafOp, Node
from wengert._engine.core.node_properties import place_of
from wengert._engine.core.spec import shown
from wengert._engine.core.symbolic.dim import is_open
from wengert._engine.ops.cost_model import bytes_of, flops_of, shares_memory, steps_of

if TYPE_CHECKING:
    from wengert._engine.backends.llvm.profile.program_summary import Summary
    from wengert._engine.core.types import Array, Size


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


TYPICAL_SIZE = 100  # assumed for a symbolic size when lines are compared


class RecordedLine:
    """The record of one line of the user's program.

    Attributes
    ----------
    where : str or None
        ``file.py:12, in f``; None for nodes without a line.
    nodes : tuple of Node
        The nodes of the graph recorded at it, including those of derivatives and loop bodies.
    times : dict
        How often nodes of loop bodies run, where known.
    """

    def __init__(
        self, where: str | None, nodes: Sequence[Node], times: Mapping[Node, Any] | None = None
    ) -> None:
        self.where = where
        self.nodes = tuple(nodes)
        self.times = times or {}

    @property
    def text(self) -> str:
        """The source text; empty if it cannot be read."""
        location = place_of(self.where)
        return "" if location is None else location.text

    @property
    def place(self) -> str:
        """File name and line number, without folders."""
        location = place_of(self.where)
        return "(no line)" if location is None else location.short

    def at_level(self, level: int) -> list[Node]:
        """Its nodes of a level: 0 for the value, k for the k-th derivative."""
        return [n for n in self.nodes if n.level == level]

    @property
    def levels(self) -> list[int]:
        """The levels of its nodes, ascending."""
        return sorted({n.level for n in self.nodes})

    @property
    def flops(self) -> Any:
        """Known floating-point operations: a number, or an expression in sizes."""
        return sum(_flops(n) * self.times.get(n, 1) for n in self.nodes)

    @property
    def bytes(self) -> Any:
        """Bytes of all values computed here."""
        return sum(_bytes(n) * self.times.get(n, 1) for n in self.nodes if not shares_memory(n))

    def words(self, level: int) -> str:
        """The operations of a level with the specs and the numbers of their results."""
        counts = Counter(f"{n.op.name} {shown(n.spec)}" for n in self.at_level(level))
        return ", ".join(
            operation + (f" x {k}" if k > 1 else "") for operation, k in counts.items()
        )


class Explanation:
    """What a function does, line by line, with notes.

    Attributes
    ----------
    graph : Graph
        The graph.
    traced : bool
        Whether it was traced, and so is valid for all values; otherwise one run was recorded.
    reason : str
        Why it could not be traced.
    lines : tuple of RecordedLine
        In the order in which they were recorded.
    notes : tuple of Finding
        The cost of loops, the bytes that they store for backward passes, the time that long ones
        take without compilation; nodes that are opaque, broadcast, cast, widened, stopped, guarded,
        unused, held or slow; captured objects whose changes are not noticed.
    kinds : dict from int to Counter
        The number of nodes of each kind of operation, by level.
    scopes : Counter
        The number of nodes of each scope.
    flops, bytes
        For all nodes: numbers, or expressions in sizes.
    constants : int
        Bytes of the constants.
    program : optional
        How a backend runs it: loops, calls, host callbacks and buffers; None if not requested.
    """

    def __init__(
        self,
        graph: BaseGraph,
        notes: Sequence[Finding],
        reason: str = "",
        program: Summary | None = None,
    ) -> None:
        self.graph = graph
        self.program = program
        self.notes = tuple(notes)
        self.reason = reason
        self.traced = not reason
        groups: dict[str | None, list[Node]] = defaultdict(list)
        times: dict[Node, Any] = {}
        for node, count in _with_bodies(graph.nodes, 1):
            groups[node.where].append(node)
            times[node] = count
        lines = [RecordedLine(where, nodes, times) for where, nodes in groups.items()]
        self.lines = tuple(sorted(lines, key=_program_order))
        self.kinds: dict[int, Counter[str]] = defaultdict(Counter)
        for node in self.operations:
            self.kinds[node.level][node.op.kind] += 1
        self.scopes = Counter(n.scope for n in self.operations if n.scope)

    @property
    def operations(self) -> list[Node]:
        """The nodes with an operation, those of loop and branch bodies included."""
        return [node for node, _ in _with_bodies(self.graph.nodes, 1)]

    @property
    def inputs(self) -> list[Node]:
        """The inputs of the graph."""
        return list(self.graph.inputs)

    @property
    def flops(self) -> Any:
        """Known floating-point operations of all nodes."""
        return sum(line.flops for line in self.lines)

    @property
    def bytes(self) -> Any:
        """Bytes of the results of all operations."""
        return sum(line.bytes for line in self.lines)

    @property
    def constants(self) -> int:
        """Bytes of the constants."""
        leaves = [
            n for n in self.graph.nodes if isinstance(n, ConstantLeaf) and isinstance(n.op, LeafOp)
        ]
        used = {a for n in self.operations for a in n.inputs}
        return sum(bytes_of(n.spec) for n in leaves if n in used and n.value is not None)

    def largest(self, count: int = 3) -> list[Node]:
        """The nodes whose values take the most memory; symbolic sizes are taken as 100."""
        nodes = [n for n in self.operations if not shares_memory(n)]
        return sorted(nodes, key=lambda n: -_number(_bytes(n)))[:count]

    def note(self, kind: str) -> list[Finding]:
        """The notes of a kind."""
        return [f for f in self.notes if f.kind == kind]

    # ---- text ----------------------------------------------------------------------------------

    def summary(self) -> list[str]:
        """A few sentences about the whole function."""
        inputs = ", ".join(f"{n.name or ''} {shown(n.spec)}".strip() for n in self.inputs)
        outputs = ", ".join(shown(n.spec) for n in self.graph.outputs)
        sentences = [f"{self.graph.name}({inputs}) -> {outputs}"]
        if not self.traced:
            sentences.append(f"A record of one run; the function cannot be traced: {self.reason}")
        for level in sorted(self.kinds):
            counted = ", ".join(f"{k} {kind}" for kind, k in self.kinds[level].most_common())
            what = "value" if level == 0 else f"derivative of order {level}"
            sentences.append(f"{what}: {sum(self.kinds[level].values())} operations ({counted})")
        sentences.append(
            f"about {_amount(self.flops)} floating-point operations, {_amount(self.bytes)} bytes "
            f"of values, {_amount(self.constants)} bytes of constants"
        )
        largest = [f"{n.op.name} {shown(n.spec)}" for n in self.largest()]
        if largest:
            sentences.append(f"largest values: {', '.join(largest)}")
        if self.scopes:
            sentences.append(f"scopes: {', '.join(f'{s} {k}' for s, k in self.scopes.items())}")
        if self.graph.updates:
            sentences.append(f"{len(self.graph.updates)} variables are updated by each run")
        return sentences

    def __str__(self) -> str:
        parts = list(self.summary())
        for line in self.lines:
            parts += ["", f"{line.place}  {line.text}".rstrip()]
            for level in line.levels:
                parts.append(f"    {'value' if level == 0 else f'd{level}':<6} {line.words(level)}")
            parts.append(
                f"    {'cost':<6} {_amount(line.flops)} operations, {_amount(line.bytes)} bytes"
            )
        if self.notes:
            parts += ["", "Notes"]
            parts += [f"  {f.kind}: {f.message}{_at(f)}" for f in self.notes]
        if self.program is not None:
            parts += ["", "Program", str(self.program)]
        return "\n".join(parts)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        head = "".join(f"<p>{html.escape(s)}</p>" for s in self.summary())
        names = ("line", "program", "value", "derivatives", "operations", "bytes")
        rows = ["<tr>" + "".join(f"<th>{name}</th>" for name in names) + "</tr>"]
        for line in self.lines:
            derivatives = "; ".join(f"d{k}: {line.words(k)}" for k in line.levels if k)
            cells = [
                html.escape(line.place),
                f"<code>{html.escape(line.text)}</code>",
                html.escape(line.words(0)),
                html.escape(derivatives),
                html.escape(_amount(line.flops)),
                html.escape(_amount(line.bytes)),
            ]
            rows.append("<tr>" + "".join(f"<td>{c}</td>" for c in cells) + "</tr>")
        notes = "".join(
            f"<li><b>{f.kind}</b>: {html.escape(f.message + _at(f))}</li>" for f in self.notes
        )
        program = "" if self.program is None else f"<pre>{html.escape(str(self.program))}</pre>"
        return f"<div>{head}<table>{''.join(rows)}</table><ul>{notes}</ul>{program}</div>"


def _with_bodies(nodes: Sequence[Node], times: int) -> Iterator[tuple[Node, Any]]:
    """Nodes, including those of bodies, and how often each runs (once if unknown)."""
    for node in nodes:
        if isinstance(node.op, LeafOp) or node.op.aliasing.transparent:
            continue
        yield node, times
        if node.params:
            steps = 1 if "branches" in node.params else steps_of(node) or 1
            for body in bodies_of(node):
                yield from _with_bodies(body.nodes, times * steps)


def _program_order(line: RecordedLine) -> tuple[bool, int]:
    """The sort key of lines: in program order; lines without a value of the function come last."""
    nodes = line.at_level(0)
    return not nodes, min(n.serial for n in nodes or line.nodes)


def _at(f: Finding) -> str:
    location = place_of(f.where)
    return "" if location is None else f" ({location.short})"


def _flops(node: Node) -> Any:
    """The floating-point operations of a node: an integer, or an expression in sizes."""
    if node.params and bodies_of(node):
        return 0  # counted at the nodes of its bodies
    flops = flops_of(node, [a.spec for a in node.inputs], node.spec)
    if flops is None:  # unknown
        return 0
    return round(flops) if isinstance(flops, float) else flops


def _bytes(node: Node) -> Any:
    """The bytes of a value, without outputs whose length is known only after the loop."""
    parts = node.spec if isinstance(node.spec, tuple) else (node.spec,)
    return sum(bytes_of(s) for s in parts if not any(map(is_open, s.shape)))


def _amount(n: Size) -> str:
    return f"{n:,}" if isinstance(n, int) else str(n)


def _number(n: Any) -> int:
    if isinstance(n, int):
        return n
    return int(n(dict.fromkeys(n.names, TYPICAL_SIZE)))
