"""Linear forms of traced integers: what is known of bounds of slices in a loop step.

Bounds are clipped as in NumPy, unless the ranges of the loop counters show that this is
unnecessary; two lengths are equal if their forms are.

    Linear        a linear combination of traced integers, plus a size
    linear        an integer, a size or a traced integer as such a form
    note_range    records the range of a loop counter
    note_length   records what a length is computed from
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from wengert._engine.core.handle import Handle, value_of, wrap
from wengert._engine.core.intervals import interval
from wengert._engine.core.node import CONSTANT, LeafOp, Node
from wengert._engine.core.static_params import frozen
from wengert._engine.core.symbolic.dim import Dim, bounds, is_open
from wengert._engine.core.tracing import SIZE

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
