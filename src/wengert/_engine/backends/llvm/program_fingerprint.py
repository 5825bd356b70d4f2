"""Fingerprints of graphs: bytes that are the same in every process.

    fingerprint_of          a graph as bytes; None if something in it cannot be encoded
    traced_fingerprint_of   the same before simplification, with what rewrite rules read in addition
    repeated_element        the element of which an array consists

They are a part of the key of cached programs (compiled_programs.py), so graphs with different
programs must not have the same fingerprint.  Only these are encoded: operations defined in modules
of wengert (whose sources are part of the key), numbers, strings, dtypes, arrays, bodies of loops,
lengths that are known only after or inside a loop.  Graphs with anything else, such as a user's
operation, a function or a symbolic size of an input, are not cached.

Names of lengths are counted in each process, so they are replaced by numbers, in the order in which
they occur; programs are the same for any names.
"""

from __future__ import annotations

import hashlib
import marshal
import re
import sys
from typing import Any

import numpy as np

from wengert._engine.core.dispatch import PART, Operation
from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.graph_classes import Body
from wengert._engine.core.graph_fingerprint import canonical
from wengert._engine.core.node import CONSTANT, INPUT, LeafOp, Node
from wengert._engine.core.op import REGISTRY
from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic.dim import LOCAL, OPEN, Dim, Quotient
from wengert._engine.ops.indexing.template import IndexSlot

from .tuning import thresholds

_PACKAGE = __name__.partition(".")[0] + "."
_LARGE_BYTES = 1 << 12  # an array of which the elements are compared
_FIRST_ELEMENTS = 16  # of an array, which are compared before the others
_VERSION = 2  # of marshal: the last whose bytes depend on the value only, not on its references
_PLAIN = frozenset({int, bool, float, complex, str, bytes, type(None), type(Ellipsis)})
_LENGTH = re.compile(f"({re.escape(OPEN)}|{re.escape(LOCAL)})[0-9]+")
_ours: dict[int, Any] = {}  # operations of wengert, by their id


class _NotEncodableError(Exception):
    """The graph contains something that cannot be encoded."""


def fingerprint_of(graph: BaseGraph, nodes: list[Node] | None = None) -> bytes | None:
    """The properties of a graph that its program depends on, as bytes.

    `nodes` receives the operations of the graph and the bodies in it, in an order that is the same
    for equal fingerprints.
    """
    if graph.requirements:
        return None
    encoder = _GraphEncoder([] if nodes is None else nodes)
    try:
        return marshal.dumps((encoder.graph(graph), _containers(graph)), _VERSION)
    except (_NotEncodableError, ValueError):  # ValueError: marshal cannot encode something
        return None


def traced_fingerprint_of(graph: BaseGraph) -> bytes | None:
    """The properties of a traced graph that its simplified form and its program depend on.

    None if something cannot be encoded, or if it depends on more than its inputs and constants:
    variables, updates, side effects, nodes of an outer graph.
    """
    if graph.updates or graph.effects or graph.requirements:
        return None
    try:
        encoded = _TracedEncoder([]).graph(graph)
        return marshal.dumps((encoded, _containers(graph)), _VERSION)
    except (_NotEncodableError, ValueError):
        return None


def _containers(graph: BaseGraph) -> tuple[str, ...]:
    """The containers of the results: the entry point makes nested tuples."""
    results = graph.structure[1]
    return str(getattr(results, "structure", results)), repr(getattr(results, "live", None))


class _GraphEncoder:
    """Encodes one graph, and the bodies in it."""

    def __init__(self, nodes: list[Node]) -> None:
        self._nodes = nodes
        self._bytes = 0
        self._bodies: dict[Body, tuple[int, Any]] = {}
        self._lengths: dict[str, int] = {}
        self._specs: dict[int, tuple[Spec, tuple[Any, ...]]] = {}  # by id, as nodes share them

    def graph(self, graph: BaseGraph) -> tuple[Any, ...]:
        """The inputs, the other nodes with the numbers of their operands, and the results."""
        rows, number = canonical(graph, self._node)
        results = graph.outputs, graph.updates.keys(), graph.updates.values(), graph.effects
        leaves = tuple([self._node(n) for n in graph.inputs])
        references = [tuple([number[n] for n in nodes]) for nodes in (graph.variables, *results)]
        return leaves, tuple(rows), *references

    def _node(self, node: Node) -> tuple[Any, ...]:
        op, spec = node.op, node.spec
        several = isinstance(spec, tuple)
        specs = tuple([self._spec(s) for s in spec]) if several else (self._spec(spec),)
        head = type(node).__name__, several, specs
        if isinstance(op, LeafOp):
            if op is CONSTANT:
                return *head, op.name, self._plain(node.value)
            if op is not INPUT:
                raise _NotEncodableError(op.name)
            return *head, op.name
        if op is not PART and not _is_ours(op):
            raise _NotEncodableError(op.name)
        self._nodes.append(node)
        params = [(name, self._plain(x)) for name, x in sorted(node.params.items())]
        return *head, op.name, tuple(params)

    def _spec(self, spec: Spec) -> tuple[Any, ...]:
        known = self._specs.get(id(spec))
        if known is not None:
            return known[1]
        if type(spec) is not Spec:
            raise _NotEncodableError(spec)
        shape = tuple([n if type(n) is int else self._length(n) for n in spec.shape])
        encoded = shape, self._plain(spec.dtype), spec.weak
        self._specs[id(spec)] = spec, encoded  # a reference, so that the id is not used again
        return encoded

    def _length(self, length: Any) -> Any:
        """A length: its terms, with numbers in place of names."""
        if type(length) is int:
            return length
        if type(length) is not Dim:
            raise _NotEncodableError(type(length))
        terms = [
            (factor, tuple([(self._atom(atom), power) for atom, power in product]))
            for product, factor in length.terms.items()
        ]
        return "Dim", tuple(terms)

    def _atom(self, atom: str | Quotient) -> Any:
        if isinstance(atom, Quotient):
            return "Quotient", self._length(atom.above), self._length(atom.below)
        kind = _LENGTH.fullmatch(atom)
        if kind is None:  # a size of an input
            raise _NotEncodableError(atom)
        return kind[1], self._lengths.setdefault(atom, len(self._lengths))

    def _plain(self, x: Any) -> Any:
        """A value or a parameter, with its type, as numbers, strings and tuples."""
        kind = type(x)
        if kind is str and _LENGTH.fullmatch(x):
            return "length", self._atom(x)
        if kind in _PLAIN:
            return kind.__name__, x
        if kind is Dim:
            return self._length(x)
        if kind is tuple or kind is list:
            return kind.__name__, tuple([self._plain(y) for y in x])
        if kind is dict:
            return "dict", tuple([(self._plain(k), self._plain(v)) for k, v in x.items()])
        if kind is slice:
            return "slice", self._plain(x.start), self._plain(x.stop), self._plain(x.step)
        if kind is IndexSlot:
            return "Hole", x.k
        if isinstance(x, np.dtype) and x.kind in "biufc":
            return "dtype", x.str
        if isinstance(x, np.ndarray | np.generic) and x.dtype.kind in "biufc":
            name = f"{kind.__module__}.{kind.__qualname__}"
            element = repeated_element(x)
            if element is not None:
                return name, x.dtype.str, x.shape, "repeated", element
            self._bytes += x.nbytes
            if self._bytes > thresholds.cached_constant_bytes:
                raise _NotEncodableError("large")
            own = hashlib.sha256(np.ascontiguousarray(x).tobytes()).digest()
            return name, x.dtype.str, x.shape, own
        if isinstance(x, Body):
            found = self._bodies.get(x)
            if found is None:
                found = self._bodies[x] = len(self._bodies), self.graph(x)
                return "Body", *found
            return "Body", found[0]
        if hasattr(kind, "cache_key"):
            return "keyed", self._plain(x.cache_key)
        raise _NotEncodableError(kind)


class _TracedEncoder(_GraphEncoder):
    """Encodes a graph before simplification: rewrite rules read more than native code needs."""

    def __init__(self, nodes: list[Node]) -> None:
        super().__init__(nodes)
        self._inputs: set[Node] = set()  # of the graph and the bodies in it

    def graph(self, graph: BaseGraph) -> tuple[Any, ...]:
        self._inputs.update(graph.inputs)
        return super().graph(graph)

    def _node(self, node: Node) -> tuple[Any, ...]:
        return *super()._node(node), self._facts(node)

    def _facts(self, node: Node) -> tuple[Any, ...] | None:
        """What is known of a node beside its operation, operands, parameters and spec."""
        info = node.info
        if isinstance(node.op, LeafOp):
            is_alone = node.op is INPUT and node not in self._inputs
            if is_alone or (node.op is CONSTANT) is node.is_traced:
                raise _NotEncodableError("a value from outside")
        elif not node.is_traced:
            raise _NotEncodableError("a value that was computed before")
        if info is None:
            return None
        unusual = info.owner, info.source, info.requires, info.hooks, info.saved, info.holder
        if any(x is not None for x in unusual) or info.unchecked or info.by_hand or info.symbolic:
            raise _NotEncodableError("a node with other properties")
        return info.level, info.linear, info.interval, info.held, info.probed


def repeated_element(x: Any) -> bytes | None:
    """The bytes of the element of which a large array consists; None if there is no such element.

    Zeros that a function makes may be as large as its arguments.
    """
    if x.nbytes < _LARGE_BYTES:
        return None
    elements = np.ascontiguousarray(x).reshape(-1).view(f"V{x.itemsize}")
    first: bytes = elements[:1].tobytes()
    if (
        elements[:_FIRST_ELEMENTS].tobytes() != first * _FIRST_ELEMENTS
        or elements[-1:].tobytes() != first
    ):
        return None
    return first if elements.tobytes() == first * elements.size else None


def _is_ours(op: Operation) -> bool:
    """Whether an operation is defined by the source of a module of wengert."""
    if id(op) in _ours:
        return True
    known: Any = REGISTRY.get(op.name)
    if known is not op:
        return False
    made = [known.composition, *known.implementations.values()]
    if not all(f is None or _is_home(getattr(f, "__module__", "")) for f in made):
        return False
    owners = dict.fromkeys([getattr(known, "run", None), getattr(known, "body", None), type(known)])
    is_attribute = any(_has(getattr(x, "__module__", None) or "", known) for x in owners)
    if is_attribute or any(_has(name, known) for name in list(sys.modules)):
        _ours[id(op)] = op
        return True
    return False


def _has(module: str, op: Operation) -> bool:
    """Whether an operation is an attribute of a module of wengert."""
    found = sys.modules.get(module) if _is_home(module) else None
    return found is not None and any(x is op for x in vars(found).values())


def _is_home(module: str) -> bool:
    return module.startswith(_PACKAGE)
