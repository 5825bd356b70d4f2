"""What a node has beside its operands: static parameters, and NodeInfo.

Static parameters of nodes, as hashable data.

Parameters (axis, shape, index, ...) are part of the identity of an operation.  They are numbers,
strings, dtypes, slices, sizes, tuples of these, small arrays, and for some operations a function.

    frozen       a hashable key that distinguishes 1 from True and 1.0: for equality and caches
    normalized   the same parameters with NumPy scalars replaced by Python numbers
    substituted  the same parameters with sizes substituted
    sizes_of     the names of symbolic sizes in them
    spelled      a parameter as text
    stated       the parameters of a node that are not None or False
    listed       the same as text: ``axis=0, keepdims=True``

NodeInfo: optional properties of a node in one record; `Node.info` is None if it has none.

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
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from .symbolic.dim import Dim, replaced

_PLAIN = (str, type(None), np.dtype, Dim, bytes)


def frozen(x: Any) -> Any:
    """A hashable key of a parameter; equal keys are equivalent parameters."""
    kind = type(x)
    if kind in _PLAIN:
        return x
    if kind is int or kind is float or kind is bool or kind is complex:
        # repr is equal for nan and nan, and distinguishes 0.0 from -0.0
        return (kind, x) if kind is int or kind is bool else (kind, repr(x))
    if kind is tuple or kind is list:  # mostly of integers
        return (kind, *[(int, y) if type(y) is int else frozen(y) for y in x])
    if kind is dict:
        if len(x) < 2:  # the usual case, without sorting
            return (dict, *[(k, frozen(v)) for k, v in x.items()])
        return (
            dict,
            *((k, frozen(v)) for k, v in sorted(x.items(), key=lambda item: str(item[0]))),
        )
    if kind is slice:
        parts = x.start, x.stop, x.step
        return (slice, *[(int, y) if type(y) is int else frozen(y) for y in parts])
    if isinstance(x, np.ndarray | np.generic):
        if x.dtype.kind == "O":
            return IncomparableKey(x)
        return (kind, x.shape, x.dtype.str, x.tobytes())
    try:
        hash(x)
    except TypeError:
        return IncomparableKey(x)
    return (kind, x)


class IncomparableKey:
    """The key of an object that is not comparable: equal to itself only.

    It keeps the object alive, so that its id is not reused.
    """

    __slots__ = ("thing",)

    def __init__(self, thing: Any) -> None:
        self.thing = thing

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IncomparableKey) and other.thing is self.thing

    def __hash__(self) -> int:
        return id(self.thing)


def normalized(x: Any) -> Any:
    """A parameter with NumPy integers and booleans replaced by Python ones."""
    kind = type(x)
    if kind is tuple or kind is list:
        return kind(map(normalized, x))
    if kind is dict:
        return {k: normalized(v) for k, v in x.items()}
    if kind is slice:
        return slice(*map(normalized, (x.start, x.stop, x.step)))
    return x.item() if isinstance(x, np.integer | np.bool_) else x


def substituted(x: Any, sizes: Mapping[str, Any]) -> Any:
    """A parameter with sizes substituted; the same object if there are none in it."""
    kind = type(x)
    if kind is Dim:
        return replaced(x, sizes)
    if kind is tuple or kind is list:
        return kind(substituted(part, sizes) for part in x)
    if kind is dict:
        return {k: substituted(v, sizes) for k, v in x.items()}
    if kind is slice:
        return slice(*(substituted(part, sizes) for part in (x.start, x.stop, x.step)))
    at_sizes = getattr(x, "at_sizes", None)  # a body (graph_classes.py) or a rule
    return x if at_sizes is None else at_sizes(sizes)


def sizes_of(x: Any) -> frozenset[str]:
    """The names of symbolic sizes in a parameter."""
    kind = type(x)
    if kind is Dim:
        return x.names  # type: ignore[no-any-return]
    if kind is tuple or kind is list:
        return frozenset().union(*map(sizes_of, x))
    if kind is dict:
        return frozenset().union(*map(sizes_of, x.values()))
    if kind is slice:
        return sizes_of((x.start, x.stop, x.step))
    names: frozenset[str] = getattr(x, "size_names", frozenset())
    return names


def spelled(x: Any) -> str:
    """A parameter as text: ``(n, 3)``, ``1:-1``, ``float64``."""
    kind = type(x)
    if kind is tuple:
        parts = [spelled(part) for part in x]
        return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"
    if kind is slice:
        bounds = ["" if b is None else spelled(b) for b in (x.start, x.stop, x.step)]
        return ":".join(bounds if x.step is not None else bounds[:2])
    if kind is Dim or isinstance(x, np.dtype):
        return str(x)
    if x is Ellipsis:
        return "..."
    if isinstance(x, np.ndarray | np.generic):
        return np.array2string(np.asarray(x), separator=", ", threshold=8).replace("\n", "")
    return getattr(x, "__name__", None) or repr(x)


def stated(params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that are not None or False, which are defaults."""
    return {k: v for k, v in params.items() if v is not None and v is not False}


def listed(params: Mapping[str, Any]) -> str:
    """These parameters as text: ``axis=0, keepdims=True``."""
    return ", ".join(f"{k}={spelled(v)}" for k, v in stated(params).items())


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
        element was not selected (autodiff/infinities.py).
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
        Of a result of a recorded pass, the nodes that the pass recorded (autodiff/infinities.py).
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
