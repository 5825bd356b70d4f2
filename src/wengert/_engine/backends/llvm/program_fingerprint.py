"""Fingerprints of graphs: bytes that are the same in every process.

    fingerprint_of    a graph as bytes; None if something in it cannot be encoded

They are a part of the key of cached programs (program_cache.py), so graphs with different programs
must not have the same fingerprint.  Only these are encoded: operations defined in modules of
wengert (whose sources are part of the key), numbers, strings, dtypes, arrays, bodies of loops.
Graphs with anything else, such as a user's operation, a function or a symbolic size, are not
cached.
"""

from __future__ import annotations

import hashlib
import marshal
import sys
from typing import Any

import numpy as np

from wengert._engine.core.dispatch import PART, Operation
from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.graph_fingerprint import canonical
from wengert._engine.core.node import CONSTANT, INPUT, LeafOp, Node
from wengert._engine.core.op import REGISTRY
from wengert._engine.core.spec import Spec
from wengert._engine.core.subgraph import Body
from wengert._engine.ops.indexing.template import IndexSlot

from .tuning import thresholds

_PACKAGE = __name__.partition(".")[0] + "."
_VERSION = 2  # of marshal: the last whose bytes depend on the value only, not on its references
_PLAIN = frozenset({int, bool, float, complex, str, bytes, type(None), type(Ellipsis)})
_ours: dict[int, Any] = {}  # operations of wengert, by their id


class _NotEncodableError(Exception):
    """The graph contains something that cannot be encoded."""


def fingerprint_of(graph: BaseGraph) -> bytes | None:
    """The properties of a graph that its program depends on, as bytes."""
    if graph.requirements:
        return None
    encoder = _GraphEncoder()
    try:
        return marshal.dumps((encoder.graph(graph), _containers(graph)), _VERSION)
    except (_NotEncodableError, ValueError):  # ValueError: marshal cannot encode something
        return None


def _containers(graph: BaseGraph) -> tuple[str, ...]:
    """The containers of the results: the entry point makes nested tuples."""
    results = graph.structure[1]
    return str(getattr(results, "structure", results)), repr(getattr(results, "live", None))


class _GraphEncoder:
    """Encodes one graph, and the bodies in it."""

    def __init__(self) -> None:
        self._bytes = 0
        self._bodies: dict[Body, tuple[int, Any]] = {}

    def graph(self, graph: BaseGraph) -> tuple[Any, ...]:
        """The inputs, the other nodes with the numbers of their operands, and the results."""
        rows, number = canonical(graph, self._node)
        results = graph.outputs, graph.updates.keys(), graph.updates.values(), graph.effects
        leaves = tuple([self._node(n) for n in graph.inputs])
        references = [tuple([number[n] for n in nodes]) for nodes in (graph.variables, *results)]
        return leaves, tuple(rows), *references

    def _node(self, node: Node) -> tuple[Any, ...]:
        op, several = node.op, isinstance(node.spec, tuple)
        specs = tuple([self._spec(s) for s in (node.spec if several else (node.spec,))])
        head = type(node).__name__, several, specs
        if isinstance(op, LeafOp):
            if op is CONSTANT:
                return *head, op.name, self._plain(node.value)
            if op is not INPUT:
                raise _NotEncodableError(op.name)
            return *head, op.name
        if op is not PART and not _is_ours(op):
            raise _NotEncodableError(op.name)
        params = [(name, self._plain(x)) for name, x in sorted(node.params.items())]
        return *head, op.name, tuple(params)

    def _spec(self, spec: Spec) -> tuple[Any, ...]:
        if type(spec) is not Spec or not all(type(n) is int for n in spec.shape):
            raise _NotEncodableError(spec)
        return spec.shape, self._plain(spec.dtype), spec.weak

    def _plain(self, x: Any) -> Any:
        """A value or a parameter, with its type, as numbers, strings and tuples."""
        kind = type(x)
        if kind in _PLAIN:
            return kind.__name__, x
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
            self._bytes += x.nbytes
            if self._bytes > thresholds.cached_constant_bytes:
                raise _NotEncodableError("large")
            own = hashlib.sha256(np.ascontiguousarray(x).tobytes()).digest()
            return f"{kind.__module__}.{kind.__qualname__}", x.dtype.str, x.shape, own
        if isinstance(x, Body):
            found = self._bodies.get(x)
            if found is None:
                found = self._bodies[x] = len(self._bodies), self.graph(x)
                return "Body", *found
            return "Body", found[0]
        raise _NotEncodableError(kind)


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
