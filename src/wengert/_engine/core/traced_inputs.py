"""Inputs of traces: used after their trace has ended, without axes, and with bounds.

Leaked tracers: tensors of a trace that are used after it has ended.

A tensor of a trace, such as an argument of a traced function or the carry of a loop, has a value
only inside the graph while it runs.  If it is stored outside and used afterwards, it has no value;
in another graph it would be an input without an argument.

    mark_ended   mark the inputs of a trace that has ended, with the name of the traced function
    source       the input of an ended trace that a node is computed from
    refuse       raise GraphError for a graph that uses one
    refuse_metadata   raise TraceError for traced values in the metadata of a scope

Traced numbers: inputs without axes, and integers with bounds.

Scalar inputs: inputs of a graph without axes, which are numbers or arrays.

NumPy's numbers are immutable (``b = a; a += 1`` leaves `b` as it is), its arrays without axes are
not.  While a function is traced, an input without axes is a number.  Where an in-place operator
shows that this matters, it is noted, and the program is not used for arrays.

note_scalar_inputs    note the inputs of a graph that are numbers
is_array              whether a tensor is modified by an in-place operator, rather than replaced
modified_in_place     the same, asked because such an operator is applied

Intervals: bounds of traced integers that are computed from the counters of loops.

interval    the minimum and maximum of an integer; None if unbounded
Interval    the type of the pair

The counters of loops have bounds (`NodeInfo.interval`), from which those of expressions in them
follow.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from wengert.errors import GraphError, TraceError, at, user_line

from .handle import Handle
from .node import INPUT, Node, next_serial
from .spec import shown
from .symbolic.dim import Dim, bounds


def mark_ended(inputs: Iterable[Node], what: str) -> None:
    """Mark the inputs of a trace that has ended, with the name of the traced function."""
    now = next_serial()
    for node in inputs:
        node.note(trace=(what, now))


def source(node: Node) -> Node | None:
    """The input of an ended trace that a node is computed from, or None."""
    seen: set[Node] = set()
    stack = [node]
    while stack:
        current = stack.pop()
        if current in seen or not current.is_traced:
            continue
        seen.add(current)
        if is_ended(current):
            return current
        stack += [a for a in current.args if isinstance(a, Node)]
    return None


def is_ended(node: Node) -> bool:
    """Whether a node is an input of a trace that has ended."""
    return node.op is INPUT and node.info is not None and node.info.trace is not None


def _trace(node: Node) -> tuple[str, int]:
    assert node.info is not None and node.info.trace is not None
    return node.info.trace


def traced_function(node: Node) -> str:
    """The name of the function whose trace the input belongs to."""
    return _trace(node)[0]


def refuse(nodes: Sequence[Node], own: Iterable[Node], what: str) -> None:
    """Raise GraphError if a graph is computed from inputs of a trace that has ended.

    Parameters
    ----------
    nodes : sequence of Node
        Operands first.
    own : iterable of Node
        The inputs of the graph.
    what : str
        Its name in the message.
    """
    known = set(own)
    leaked = next((n for n in nodes if n not in known and is_ended(n)), None)
    if leaked is None:
        return
    since = _trace(leaked)[1]
    depending = {leaked}
    where = None
    for node in nodes:
        if not depending.isdisjoint(node.inputs):
            depending.add(node)
            where = where or (node.where if node.serial > since else None)
    name = f"{leaked.name}, {shown(leaked.spec)}" if leaked.name else f"a {shown(leaked.spec)}"
    raise GraphError(
        f"{what} uses a tensor that was stored while {traced_function(leaked)} was traced: it is "
        f"computed from {name}, which has a value only while that runs. Return it from the "
        f"traced function, in a loop as part of the carry or of the collected values"
        f"{at(where or user_line())}."
    )


def refuse_metadata(metadata: Mapping[str, Any]) -> None:
    """Raise TraceError for traced values, which metadata would keep after the trace.

    Raises
    ------
    TraceError
        A value is traced, such as the counter of a compiled loop.
    """
    for key, value in metadata.items():
        if isinstance(value, Handle) and value.node.is_traced:
            raise TraceError(
                f"scope({key}=...): the value is traced, and the metadata of a scope must be known "
                "when the function is traced. If it is the counter of a loop, write the loop over "
                f"a list or wengert.unroll(range(n)){at(user_line())}."
            )


# For each scalar input the set to which it is added if an in-place operator is applied to it.
_updated: weakref.WeakKeyDictionary[Node, set[Node]] = weakref.WeakKeyDictionary()


def note_scalar_inputs(nodes: Iterable[Node]) -> set[Node]:
    """Note the inputs without axes among nodes; returns the set of those updated in place."""
    updated: set[Node] = set()
    for node in nodes:
        if node.spec.shape == () and not node.spec.weak:
            _updated[node] = updated
    return updated


def is_array(x: Handle) -> bool:
    """Whether in-place operators modify a tensor; those of numbers make new values."""
    node = x.node
    if not node.is_traced:
        return type(node.value) is np.ndarray
    if node.spec.shape or hasattr(x, "_link"):  # a view without axes shares memory
        return True
    return node.op is INPUT and not node.spec.weak and node not in _updated


def modified_in_place(x: Handle) -> bool:
    """Whether the in-place operator that is applied to a tensor modifies it."""
    node: Any = x.node
    while node.args and node.op.aliasing.transparent:  # a variable of a derivative
        node = node.args[0]
    if node.op is INPUT and (updated := _updated.get(node)) is not None:
        updated.add(node)
    return is_array(x)


Interval = tuple[int | None, int | None]
_DEPTH = 16  # limits the search in long expressions


def interval(x: object) -> Interval:
    """The minimum and maximum of an integer, as far as they are known."""
    return _of(x.node if isinstance(x, Handle) else x, _DEPTH)


def _of(x: object, depth: int) -> Interval:
    if isinstance(x, Dim):
        low, high = bounds(x)
        return low, high
    if not isinstance(x, Node):
        return (int(x), int(x)) if isinstance(x, int | np.integer) else (None, None)
    if x.value is not None:
        value = x.value
        is_number = np.ndim(value) == 0 and np.asarray(value).dtype.kind in "biu"
        return (int(value), int(value)) if is_number else (None, None)
    if x.info is not None and x.info.interval is not None:
        return x.info.interval
    if "size" in x.params:
        return _of(x.params["size"], depth)
    if depth == 0 or not x.args:
        return None, None
    rule = _RULES.get(x.op.name)
    return (None, None) if rule is None else rule(*[_of(a, depth - 1) for a in x.args])


def _add(a: Interval, b: Interval) -> Interval:
    return _sum(a[0], b[0]), _sum(a[1], b[1])


def _sum(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


def _negative(a: Interval) -> Interval:
    return None if a[1] is None else -a[1], None if a[0] is None else -a[0]


def _multiply(a: Interval, b: Interval) -> Interval:
    if None not in (*a, *b):
        ends = [p * q for p in a for q in b if p is not None and q is not None]
        return min(ends), max(ends)
    if a[0] is not None and b[0] is not None and a[0] >= 0 and b[0] >= 0:
        return a[0] * b[0], None
    return None, None


def _union(a: Interval, b: Interval) -> Interval:
    low = None if a[0] is None or b[0] is None else min(a[0], b[0])
    return low, None if a[1] is None or b[1] is None else max(a[1], b[1])


def _maximum(a: Interval, b: Interval) -> Interval:
    lows = [x for x in (a[0], b[0]) if x is not None]
    high = None if a[1] is None or b[1] is None else max(a[1], b[1])
    return max(lows, default=None), high


def _minimum(a: Interval, b: Interval) -> Interval:
    return _negative(_maximum(_negative(a), _negative(b)))


def _remainder(a: Interval, b: Interval) -> Interval:
    """Of a positive divisor; the result has its sign."""
    if b[0] is None or b[0] <= 0:
        return None, None
    if None not in a and a[0] >= 0 and a[1] < b[0]:  # type: ignore[operator]
        return a
    return 0, None if b[1] is None else b[1] - 1


def _floor_divide(a: Interval, b: Interval) -> Interval:
    """Of a positive divisor."""
    if b[0] is None or b[0] <= 0:
        return None, None
    ends = [x // y for x in a for y in b if x is not None and y is not None]
    if None not in (*a, *b):
        return min(ends), max(ends)
    low = None if a[0] is None else min(0, a[0])
    return low, None if a[1] is None else max(0, a[1])


_RULES: dict[str, Any] = {
    "add": _add,
    "subtract": lambda a, b: _add(a, _negative(b)),
    "negative": _negative,
    "multiply": _multiply,
    "maximum": _maximum,
    "minimum": _minimum,
    "remainder": _remainder,
    "floor_divide": _floor_divide,
    "where": lambda _, a, b: _union(a, b),
    "cast": lambda a: a,
    "positive": lambda a: a,
    "stop_gradient": lambda a: a,
}
