"""How objects and numbers are shown: tables in notebooks, and figures with units.

HTML that notebooks show of an object (`_repr_html_`), a table of names and values:

    table          a caption, and a row for each name
    grid           a caption, a header, and rows of cells
    shown_fields   a decorator: named tuples and dataclasses are shown as a table of their fields
    shown_result   a result of SciPy, which is a dict, that is shown as a table

Text is escaped; arrays are shortened, as NumPy prints them.

Figures of bytes, seconds and counts, with one to three digits before the point:

    duration       seconds: ``1.86 ms``
    memory         bytes: ``2.4 MB``, in units of 10**6
    count          anything else: ``3.2 million``

Pretty-printing: a graph as text.

    %0 = input x             float64[3]
    %1 = scan %0             (float64[3], float64[10,3])     [body=<step>, carried=1, length=10]

One line for each node.  The bodies of loops and branches follow, indented, each once, under the
names by which the parameters of their nodes refer to them.

    printed   the text
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Mapping, Sequence
from math import log10
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from .node import CONSTANT, ConstantLeaf, Node
from .node_properties import listed, short
from .spec import shown

if TYPE_CHECKING:
    from wengert._engine.core.types import Operand

_CELL = '<td style="text-align:left;vertical-align:top">'
_PLAIN = '<pre style="margin:0;background:none">'
_SHOWN_ELEMENTS, _END_ELEMENTS = 40, 4  # of an array
_Class = TypeVar("_Class", bound=type[Any])


def table(caption: str, rows: Mapping[str, object]) -> str:
    """A caption and a row for each name; values are shown as `repr`, text as it is."""
    lines = [
        f'<tr><th style="text-align:left;vertical-align:top">{_escaped(name)}</th>'
        f"{_CELL}{_PLAIN}{_escaped(_text(value))}</pre></td></tr>"
        for name, value in rows.items()
    ]
    return f"<table><caption>{_escaped(caption)}</caption>{''.join(lines)}</table>"


def grid(caption: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A caption, a header, and rows of cells."""
    head = "".join([f"<th>{_escaped(name)}</th>" for name in header])
    body = [
        "<tr>" + "".join([f"{_CELL}{_escaped(cell)}</td>" for cell in row]) + "</tr>"
        for row in rows
    ]
    top = f"<caption>{_escaped(caption)}</caption><tr>{head}</tr>"
    return f"<table>{top}{''.join(body)}</table>"


def shown_fields(cls: _Class) -> _Class:
    """Show instances of a named tuple or dataclass as a table of their fields."""
    names = getattr(cls, "_fields", None) or [f.name for f in dataclasses.fields(cls)]

    def _repr_html_(self: Any) -> str:
        return table(cls.__name__, {name: getattr(self, name) for name in names})

    setattr(cls, "_repr_html_", _repr_html_)  # noqa: B010  mypy refuses the assignment
    return cls


def shown_result(result: Any) -> Any:
    """A result of SciPy as an instance of a subclass of its class that is shown as a table.

    Parameters
    ----------
    result : scipy.optimize.OptimizeResult
        Or of a subclass.
    """
    base: Any = type(result)
    return _filled(_shown_class(base), result)


@functools.cache
def _shown_class(base: Any) -> Any:
    """The subclass of a class of results; its instances are pickled as those of the class."""
    return type(
        base.__name__,
        (base,),
        {
            "__module__": base.__module__,
            "__doc__": base.__doc__,
            "__reduce__": lambda self: (shown_result, (_filled(base, self),)),
            "_repr_html_": lambda self: table(base.__name__, self),
        },
    )


def _filled(cls: Any, names: Mapping[str, object]) -> Any:
    """A dict of a class, without a call of its `__init__`, whose parameters differ."""
    made = cls.__new__(cls)
    made.update(names)
    return made


def _escaped(text: str) -> str:
    """Text between tags; importing Python's `html` with the package would take a millisecond."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    with np.printoptions(threshold=_SHOWN_ELEMENTS, edgeitems=_END_ELEMENTS):
        return str(value) if isinstance(value, np.generic) else repr(value)


_MEMORY = ("bytes", "kB", "MB", "GB", "TB")
_COUNTS = ("", "thousand", "million", "billion")


def duration(seconds: float) -> str:
    """A time.

    Examples
    --------
    >>> duration(0.00186), duration(2.5e-7)
    ('1.86 ms', '250 ns')
    """
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def memory(n: float) -> str:
    """A number of bytes.

    Examples
    --------
    >>> memory(2_400_000), memory(64)
    ('2.4 MB', '64 bytes')
    """
    return count(n, _MEMORY)


def count(n: float, units: Sequence[str] = _COUNTS) -> str:
    """A number in the unit in which it has one to three digits before the point.

    Examples
    --------
    >>> count(3.2e6), count(12)
    ('3.2 million', '12')
    """
    k = 0 if n < 1000 else min(int(log10(n) / 3 + 1e-9), len(units) - 1)
    number = f"{n:.0f}" if k == 0 else f"{n / 1000**k:.3g}"
    return f"{number} {units[k]}".strip()


class Printable(Protocol):
    """The attributes of a graph that are printed."""

    nodes: tuple[Node, ...]
    inputs: tuple[Node, ...]
    outputs: tuple[Node, ...]
    effects: tuple[Node, ...]
    updates: dict[Node, Node]

    def __len__(self) -> int: ...

    def index(self, item: Any) -> int:
        """The index of a node."""

    def operands(self, index: int) -> Sequence[int]:
        """The indices of the operands of a node."""


INDENT = "    "


class GraphName:
    """The name of a graph in the parameters of a node, in angle brackets."""

    __slots__ = ("__name__",)

    def __init__(self, name: str) -> None:
        self.__name__ = f"<{name}>"


class _Names:
    """Names of the subgraphs of a graph, in the order in which they occur."""

    def __init__(self) -> None:
        self.of: dict[Any, GraphName] = {}
        self._counts: dict[str, int] = {}

    def params(self, params: dict[str, Any]) -> dict[str, Any]:
        """Parameters with subgraphs replaced by names."""
        return {k: self._named(x) for k, x in params.items()}

    def _named(self, x: Any) -> Any:
        if type(x) is tuple:
            return tuple(map(self._named, x))
        if not hasattr(x, "nodes"):
            return x
        if x not in self.of:
            count = self._counts[x.name] = self._counts.get(x.name, 0) + 1
            self.of[x] = GraphName(x.name if count == 1 else f"{x.name} #{count}")
        return self.of[x]


def printed(graph: Printable) -> str:
    """The graph as text."""
    names = _Names()
    text = [_section(graph, names)]
    done = 0
    while done < len(names.of):
        body, name = list(names.of.items())[done]
        done += 1
        section = _section(body, names).replace("\n", f"\n{INDENT}")
        inputs = " ".join(f"%{body.index(n)}" for n in body.inputs)
        takes = f" takes {inputs}" if inputs else ""
        text.append(f"{name.__name__}{takes}\n{INDENT}{section}")
    return "\n".join(text)


def _section(graph: Printable, names: _Names) -> str:
    rows = [_row(graph, i, names) for i in range(len(graph))]
    widths = [max((len(row[k]) for row in rows), default=0) for k in range(3)]
    lines = ["   ".join(map(str.ljust, row, (*widths, 0))).rstrip() for row in rows]
    for variable, new in graph.updates.items():
        lines.append(f"update %{graph.index(variable)} to %{graph.index(new)}")
    for node in graph.effects:
        lines.append(f"run %{graph.index(node)}")
    results = " ".join(f"%{graph.index(n)}" for n in graph.outputs)
    return "\n".join([*lines, f"return {results}".rstrip()])


def _row(graph: Printable, i: int, names: _Names) -> tuple[str, str, str, str]:
    node = graph.nodes[i]
    words = [f"%{i} = {node.op.name}"]
    if node.name:
        words.append(node.name)
    elif node.op is CONSTANT and isinstance(node, ConstantLeaf):
        words.append(_brief(node.value))
    words += [f"%{k}" for k in graph.operands(i)]
    options = listed(names.params(node.params)) if node.params else ""
    if options:
        words.append(f" [{options}]")
    level = f"d{node.level}" if node.level else ""
    return " ".join(words), shown(node.spec), level, _location(node)


def _location(node: Node) -> str:
    return f"# {short(node.where)}" if node.where else ""


def _brief(value: Operand) -> str:
    if np.size(value) > 4 or not isinstance(value, np.ndarray | np.generic | int | float):
        return type(value).__name__ if np.size(value) <= 4 else "..."
    return np.array2string(np.asarray(value), separator=",").replace("\n", "")
