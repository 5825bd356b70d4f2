"""NodeInfo: optional properties of a node in one record; `Node.info` is None if it has none.

Traced nodes have one (spec, source line, scope), and so do variables, named values and values with
hooks.  A node of an eager operation on arrays has none, so that the cost per operation is that of
storing None.

Source locations: the line of the user's program that a node was recorded at.

`errors.user_line` returns it as text, ``file.py:12, in f``, which is cheap to make, to store and to
append to a message.  This module parses it.

    SourceLocation  file, line and function; the source text is read on demand
    place_of        the parsed text
    spot_of         file and line, without the function
    short           file and line without folders, ``file.py:12``
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

_new = object.__new__


@dataclass(slots=True, eq=False, repr=False)
class NodeInfo:
    """Facts about one node beyond operation, operands, parameters and value.

    Attributes
    ----------
    spec : Spec or tuple of Spec, optional
        Shape and dtype of a traced node, whose value is not known.
    name : str, optional
        Given by the user.
    where : str, optional
        The user's source line, ``file.py:12, in f``.
    scope : str
        The path of the `wengert.scope` blocks that it was traced in, ``"encoder/layer1"``.
    metadata : dict, optional
        The keyword arguments of those blocks.
    level : int
        The order of the derivative that it belongs to; 0 in the function itself.
    linear : tuple of int
        The operands that are tangents or cotangents which may be zero because a branch or an
        element was not selected (autodiff/strong_zeros.py).
    requires : list of Requirement, optional
        What its shape rule requires of sizes (core/symbolic/constraints.py).
    probed : bool
        Its shape was inferred by running examples, and is checked at each run.
    unchecked : bool
        It was read from a file, and its shape was not checked then; such a node is also `probed`.
    step : str
        The step of the eager loop that it was recorded in (core/tracing.py).
    held : bool
        It is the value of its operand with the gradient stopped (core/handle.py).
    owner : weak reference, optional
        Of a variable, to the tensor whose value it is.
    holder : Tensor, optional
        Keeps that tensor alive if nothing else does (a graph read from a file).
    symbolic : bool
        Made by `wengert.variable`: graphs are built for all its values.
    by_hand : bool
        An input of a graph that is built without tracing a function.
    hooks : dict, optional
        Functions registered by `register_hook`, by number.
    source : Node, optional
        The outer node that a captured input replaces.
    trace : tuple of str and int, optional
        Of an input of a trace that has ended: the traced function, and the serial number then.
    written : Written, optional
        Of a result of a recorded pass, the nodes that the pass recorded (autodiff/strong_zeros.py).
    saved : pytree, optional
        Residuals of a function with a custom rule that ran with values (control_flow/custom.py).
    lowered_from : Node, optional
        Of a node made during lowering, the node of the graph that it is a part of.
    interval : tuple of int or None, optional
        Of a counter, its minimum and maximum.
    """

    spec: Any = None
    name: str | None = None
    where: str | None = None
    scope: str = ""
    metadata: dict[str, Any] | None = None
    level: int = 0
    linear: tuple[int, ...] = ()
    requires: list[Any] | None = None
    probed: bool = False
    unchecked: bool = False
    step: str = ""
    held: bool = False
    owner: Callable[[], Any] | None = None
    holder: Any = None
    symbolic: bool = False
    by_hand: bool = False
    hooks: dict[int, Callable[[Any], Any]] | None = None
    source: Any = None
    trace: tuple[str, int] | None = None
    written: Any = None
    saved: Any = None
    lowered_from: Any = None
    interval: tuple[int | None, int | None] | None = None

    def copy(self) -> NodeInfo:
        """Another record with the same facts."""
        # Not `dataclasses.replace`, for speed: each run of a compiled function copies the record
        # of every variable that it updates.
        new = _new(NodeInfo)
        new.spec, new.name, new.where, new.scope = self.spec, self.name, self.where, self.scope
        new.metadata, new.level, new.linear = self.metadata, self.level, self.linear
        new.requires, new.probed, new.unchecked = self.requires, self.probed, self.unchecked
        new.step, new.held, new.owner, new.holder = self.step, self.held, self.owner, self.holder
        new.symbolic, new.by_hand, new.hooks = self.symbolic, self.by_hand, self.hooks
        new.source, new.trace, new.written = self.source, self.trace, self.written
        new.saved, new.lowered_from = self.saved, self.lowered_from
        new.interval = self.interval
        return new

    def facts(self) -> dict[str, Any]:
        """The fields that differ from their defaults, by name."""
        values = {name: getattr(self, name) for name in FIELDS}
        return {k: v for k, v in values.items() if v is not FIELDS[k] and v != FIELDS[k]}

    def __repr__(self) -> str:
        return f"NodeInfo({', '.join(f'{k}={v!r}' for k, v in self.facts().items())})"


FIELDS: dict[str, Any] = {f.name: f.default for f in fields(NodeInfo)}

_WHERE = r"(?s)(?P<file>.*):(?P<line>\d+)(?:, in (?P<function>.*))?"
_FOLDERS = r"(?s).*[\\/]"  # of any operating system: a graph may come from another


class SourceLocation(NamedTuple):
    """A line of the user's program."""

    file: str
    line: int
    function: str

    @property
    def text(self) -> str:
        """The source text without indentation; empty if it cannot be read."""
        return linecache.getline(self.file, self.line).strip()

    @property
    def short(self) -> str:
        """File and line without folders: ``model.py:12``."""
        name = self.file if self.file.startswith("<") else re.sub(_FOLDERS, "", self.file)
        return f"{name}:{self.line}"


def place_of(where: str | None) -> SourceLocation | None:
    """The parsed ``file.py:12, in f``; None if not known."""
    match = re.fullmatch(_WHERE, where) if where else None
    return (
        SourceLocation(match["file"], int(match["line"]), match["function"] or "")
        if match
        else None
    )


def spot_of(where: str) -> str:
    """File and line, without the function."""
    location = place_of(where)
    return where if location is None else f"{location.file}:{location.line}"


def short(where: str | None) -> str:
    """File and line without folders; empty if not known."""
    location = place_of(where)
    return (where or "") if location is None else location.short
