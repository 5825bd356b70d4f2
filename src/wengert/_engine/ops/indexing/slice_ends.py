"""Start and stop of slices with traced bounds, and what is known of them as linear forms.

    SliceRange       start and stop of a slice, clipped to the axis
    forward_range    the range of a slice with step 1
    StridedRange     first element, step and number of elements of a slice with another step
    strided_range    those of a slice
    range_within     the range of a slice of a slice
    position_in      the position in the axis for an index into a slice
    is_same          whether two integers are known to be equal
    Linear           a linear combination of traced integers, plus a size
    linear           an integer, a size or a traced integer as such a form
    note_range       records the range of a loop counter
    note_length      records what a length is computed from

Bounds are clipped as in NumPy, unless the ranges of the loop counters show that this is
unnecessary; two lengths are equal if their forms are.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wengert._engine.core.handle import Handle, is_traced, shape_of, value_of, wrap
from wengert._engine.core.node import CONSTANT, LeafOp, Node, constant
from wengert._engine.core.node_properties import frozen
from wengert._engine.core.op import lookup
from wengert._engine.core.runtime_checks import RuntimeChecks
from wengert._engine.core.symbolic.dim import Dim, bounds, is_open
from wengert._engine.core.traced_inputs import interval
from wengert._engine.core.tracing import SIZE, size_value
from wengert.errors import at, user_line

from ..elementwise.selection import where

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Operand, Size


_NODES_COMPARED = 12  # maximum depth of expressions that are compared


class SliceRange(NamedTuple):
    """Start and stop of a window along its axis.

    start, stop : int, Dim or Tensor, in the range from 0 to the length of the axis.
    """

    start: Any
    stop: Any


def forward_range(part: slice, n: Size) -> SliceRange:
    """The range of a slice with step 1 of an axis of length `n`."""
    start = 0 if part.start is None else end_of(part.start, n)
    stop = n if part.stop is None else end_of(part.stop, n)
    return SliceRange(start, stop)


class StridedRange(NamedTuple):
    """The elements of a slice with a step: ``first + k * step`` for ``k < count``."""

    first: Any
    step: Any
    count: Any

    def after(self, start: object) -> StridedRange:
        """The same elements, counted from an earlier position."""
        return self._replace(first=as_value(start) + as_value(self.first))


def strided_range(part: slice, n: Size | Array) -> StridedRange:
    """The elements of a slice of an axis of length `n`; the step may be traced."""
    step, length = part.step, as_value(n)
    if is_traced(step):
        RuntimeChecks.add(step == 0, ValueError(f"slice step cannot be zero{at(user_line())}"))
    elif int(step) == 0:
        raise ValueError(f"slice step cannot be zero{at(user_line())}")
    else:
        step = int(step)
    forward = step > 0
    low, high = _either(forward, 0, -1), _either(forward, length, length - 1)
    first = _either(forward, 0, length - 1) if part.start is None else _clipped_end(
        part.start, length, low, high
    )  # fmt: skip
    after = _either(forward, length, -1) if part.stop is None else _clipped_end(
        part.stop, length, low, high
    )  # fmt: skip
    sign = _either(forward, 1, -1)
    span = (after - first) * sign + step * sign - 1
    count = lookup("maximum")(lookup("floor_divide")(span, step * sign), 0)
    return StridedRange(first, step, count)


def _either(condition: object, a: Operand, b: Operand) -> Any:
    """One of two integers."""
    if isinstance(condition, Handle):
        return where(condition, a, b)
    return a if condition else b


def _clipped_end(bound: object, length: Any, low: object, high: object) -> Any:
    """A bound of a slice, counted from the start and clipped."""
    end = as_value(bound)
    if isinstance(end, Handle) or isinstance(length, Handle):
        end = where(end < 0, end + length, end)
    elif end < 0:
        end += length
    return clipped(end, low, high)


def end_of(end: Any, n: Size) -> Any:
    """A bound of a slice, counted from the start and clipped to the axis."""
    if isinstance(end, Handle) and not is_traced(end):
        end = value_of(end).item()
    low, high = interval(end)
    if low is None or low < 0:
        if high is not None and high < 0:
            end = as_value(end) + as_value(n)
        else:
            end = where(as_value(end) < 0, as_value(end) + as_value(n), as_value(end))
        end = lookup("maximum")(end, 0)
        high = None
    if high is None or type(n) is not int or high > n:
        end = end if is_same(end, n) else lookup("minimum")(as_value(end), as_value(n))
    return end


def range_within(r: SliceRange, part: slice, length: Operand) -> SliceRange:
    """The range of a slice of a window."""
    start = r.start if part.start is None else as_value(r.start) + clamped(part.start, length)
    stop = r.stop if part.stop is None else as_value(r.start) + clamped(part.stop, length)
    return SliceRange(start, stop)


def clamped(end: Any, length: Operand) -> Any:
    """A bound of a slice of a window, counted from the start of the window and clipped."""
    low = interval(end)[0]
    if low is None or low < 0:
        end = lookup("maximum")(where(as_value(end) < 0, as_value(end) + length, as_value(end)), 0)
    return lookup("minimum")(as_value(end), length)


def position_in(index: Any, r: SliceRange, length: Operand, used: Any = None) -> Any:
    """The position along the whole axis that an index into a slice refers to.

    With `used`, only these elements of an index array are checked.
    """
    low, high = interval(index)
    if low is not None and low >= 0:
        position = as_value(r.start) + as_value(index)
    elif high is not None and high < 0:
        position = as_value(r.stop) + as_value(index)
    else:
        position = where(index < 0, as_value(r.stop) + index, as_value(r.start) + index)
    is_out_of_bounds = lookup("logical_or")(
        position < as_value(r.start), position >= as_value(r.stop)
    )
    if used is not None:
        is_out_of_bounds = lookup("logical_and")(used, is_out_of_bounds)
    if shape_of(is_out_of_bounds):
        is_out_of_bounds = lookup("any")(is_out_of_bounds, axis=None)
    RuntimeChecks.add(
        is_out_of_bounds, IndexError(f"index is out of bounds of a slice{at(user_line())}")
    )
    return lookup("maximum")(position, 0)


def span_of(r: SliceRange) -> Any:
    """The length of a slice."""
    span = as_value(r.stop) if is_same(r.start, 0) else as_value(r.stop) - as_value(r.start)
    low = interval(span)[0]
    return span if low is not None and low >= 0 else lookup("maximum")(span, 0)


def taken(x: Any, indices: Any, axis: int) -> Any:
    """The elements of an array at positions along an axis."""
    x = x if isinstance(x, Handle) else wrap(constant(np.asarray(x)))
    return x[(slice(None),) * (axis % len(shape_of(x))) + (indices,)]


def clipped(x: object, low: Any, high: Any) -> Any:
    return lookup("minimum")(lookup("maximum")(x, low), high)


def as_value(x: object) -> Any:
    return size_value(x) if isinstance(x, Dim) else x


def is_number(x: object, number: int) -> bool:
    return isinstance(x, int | np.integer) and int(x) == number


def is_same(a: object, b: object) -> bool:
    """Whether two integers are known to be equal: equal numbers, or the same expressions."""
    if a is b:
        return True
    if not isinstance(a, Handle) and not isinstance(b, Handle):
        return bool(a == b) if type(a) is type(b) else False
    if isinstance(a, Handle) and isinstance(b, Handle):
        return is_same_node(a.node, b.node)
    handle, other = (a, b) if isinstance(a, Handle) else (b, a)
    low, high = interval(handle)
    return isinstance(other, int) and low is not None and low == high == other


def is_same_node(a: object, b: object, depth: int = _NODES_COMPARED) -> bool:
    """Whether two nodes compute the same from the same values."""
    if a is b:
        return True
    if not (isinstance(a, Node) and isinstance(b, Node)):
        return (
            not isinstance(a, Node)
            and not isinstance(b, Node)
            and type(a) is type(b)
            and bool(np.all(a == b))
        )
    if a.value is not None or b.value is not None:
        return (
            a.value is not None and b.value is not None and bool(np.array_equal(a.value, b.value))
        )
    if a.op is not b.op or not a.args or depth == 0 or len(a.args) != len(b.args):
        return False
    if a.params != b.params:
        return False
    return all(is_same_node(p, q, depth - 1) for p, q in zip(a.args, b.args, strict=True))


_ranges: weakref.WeakKeyDictionary[Node, tuple[Any, Any]] = weakref.WeakKeyDictionary()
_sized: weakref.WeakValueDictionary[Any, Node] = weakref.WeakValueDictionary()


def note_length(name: str, node: Node) -> None:
    """Record the integer that a length is computed from: the length plus one."""
    _sized[name] = node


def note_range(counter: Any, lower: object, upper: object) -> None:
    """Record that a counter runs from `lower` up to, not including, `upper`."""
    _ranges[counter.node] = (lower, upper)


class Linear:
    """A linear combination of traced integers, plus a size.

    Attributes
    ----------
    terms : dict
        The coefficient of each traced integer, by a key that is equal for equal expressions.
    rest : int or Dim
        The constant term.
    nodes : dict
        The node of each key.
    """

    __slots__ = ("nodes", "rest", "terms")

    def __init__(self, terms: dict[Any, int], rest: Any, nodes: dict[Any, Node]) -> None:
        self.terms = {k: c for k, c in terms.items() if c}
        self.rest, self.nodes = rest, nodes

    def plus(self, other: Linear, factor: int = 1) -> Linear:
        """The sum of this form and `factor` times another."""
        terms = dict(self.terms)
        for k, c in other.terms.items():
            terms[k] = terms.get(k, 0) + factor * c
        return Linear(terms, self.rest + factor * other.rest, {**self.nodes, **other.nodes})

    @property
    def key(self) -> Any:
        """A key that is equal for equal linear forms."""
        return frozenset(self.terms.items()), self.rest

    def is_at_least_zero(self) -> bool:
        """Whether it is nonnegative for all values of its counters."""
        form = self
        while form.terms:
            key = max(form.terms, key=lambda k: form.nodes[k].serial)
            node, factor = form.nodes[key], form.terms[key]
            counter_range = _ranges.get(node)
            if counter_range is None:
                number = interval(node)[0 if factor > 0 else 1]
                if number is None:
                    return False
                extreme = linear(number)
            elif factor > 0:
                extreme = linear(counter_range[0])
            else:
                extreme = linear(counter_range[1]).plus(linear(-1))
            form = Linear({**form.terms, key: 0}, form.rest, form.nodes).plus(extreme, factor)
        low, _ = bounds(form.rest)
        return low is not None and low >= 0


def linear(x: Any) -> Linear:
    """An integer, a size or a traced integer as a linear form."""
    return _linear(x, {})


def _linear(x: Any, known: dict[Node, Linear]) -> Linear:
    """The same; `known` are the forms of nodes."""
    if isinstance(x, Linear):
        return x
    if is_open(x):
        return _of_local(x, known)
    if isinstance(x, int | Dim | np.integer):
        return Linear({}, x if isinstance(x, Dim) else int(x), {})
    node: Node = x.node if isinstance(x, Handle) else x
    if node not in known:
        known[node] = _linear_of_node(node, known)
    return known[node]


def _linear_of_node(node: Node, known: dict[Node, Linear]) -> Linear:
    if not isinstance(node.op, LeafOp):
        args = node.inputs
        name = node.op.name
        if name in ("add", "subtract"):
            return _linear(args[0], known).plus(_linear(args[1], known), 1 if name == "add" else -1)
        if name == "negative":
            return linear(0).plus(_linear(args[0], known), -1)
        if name in ("cast", "discretise") and args[0].spec.dtype.kind in "iu":
            return _linear(args[0], known)
        if name == "multiply":
            a, b = _linear(args[0], known), _linear(args[1], known)
            for one, other in ((a, b), (b, a)):
                if not one.terms and isinstance(one.rest, int):
                    return linear(0).plus(other, one.rest)
    elif node.op is SIZE:
        return Linear({}, node.params["size"], {})
    elif node.value is not None:
        return Linear({}, int(value_of(wrap(node))), {})
    key = _key(node)
    return Linear({key: 1}, 0, {key: node})


def _of_local(length: Dim, known: dict[Node, Linear]) -> Linear:
    """The length of a slice, in terms of the values that it was computed from."""
    form = linear(0)
    for product, factor in length._terms.items():
        node = _sized.get(product[0][0]) if len(product) == 1 and product[0][1] == 1 else None
        term = (
            Linear({}, Dim({product: 1}) if product else 1, {})
            if node is None
            else _linear(node, known)
        )
        form = form.plus(term, factor)
    return form


class _Computation:
    """What a node computes: one object for all nodes that compute the same value.

    Keys made of the keys of operands would be exponentially large for shared operands.
    """

    __slots__ = ("__weakref__", "parts")

    def __init__(self, parts: tuple[Any, ...]) -> None:
        self.parts = parts


_computations: weakref.WeakValueDictionary[Any, _Computation] = weakref.WeakValueDictionary()
_computation_of: weakref.WeakKeyDictionary[Node, _Computation] = weakref.WeakKeyDictionary()


def _key(node: Node) -> Any:
    """A key that is equal for nodes that compute the same value."""
    if node.op is SIZE:
        return ("size", node.params["size"])
    if isinstance(node.op, LeafOp):
        return ("value", frozen(node.value)) if node.op is CONSTANT else node
    if node.op.effects.side_effect or not node.inputs:
        return node
    found = _computation_of.get(node)
    if found is None:
        parts = (node.op, frozen(node.params), *map(_key, node.inputs))
        found = _computations.setdefault(parts, _Computation(parts))
        _computation_of[node] = found
    return found
