"""Graphs with a role: bodies of operations, and graphs whose nodes are made later.

Body: a closed graph that is a parameter of an operation, such as the body of a loop.

It has no variables: all captured values are inputs.  Bodies are compared by structure, so nodes
with equal bodies are equal, and transformations of a body are cached.

    Body       the graph
    bodies_of  the bodies of a node
    sizes_from  its symbolic sizes for values of its inputs
    evaluated  a function that computes its outputs for plain values, node by node
    located    the error of a loop that exceeded its limit, with the source line of the node

DeferredGraph: a graph whose nodes are made when they are needed.

If a program for a traced graph is on disk, the first call needs neither the simplified graph nor
the rewrite rules: only errors, derivatives and inspection need its nodes.  Until then, the graph
has inputs, specs of results and structure, which are those of the traced graph; when anything else
is read, the nodes are made, and the object becomes an ordinary graph.

    DeferredGraph   the graph
    completed       the graph itself, with its nodes
    result_specs    the specs of the outputs of any graph
"""

from __future__ import annotations

import contextvars
import functools
import weakref
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert.errors import GuardError, TraceError, at, user_line

from .dispatch import PART
from .graph import BaseGraph
from .graph_copies import rebuilt
from .graph_fingerprint import OpenNames, canonical, inner, leaf_key, node_key
from .node import CONSTANT, INPUT, ConstantLeaf, LeafOp, Node, constant
from .node_properties import sizes_of, substituted
from .spec import Spec, at_sizes
from .symbolic.constraints import Requirement, solve
from .symbolic.dim import LOCAL, OPEN
from .thread_state import lock
from .tracing import SIZE

if TYPE_CHECKING:
    from wengert._engine.core.types import Operand

Values = Sequence[Any]


def _has_index(node: Node) -> bool:
    """Whether a node reads or stores elements at an index that is an operand."""
    return "index" in node.params and any(
        isinstance(x, Node) and type(x.spec) is Spec and x.spec.dtype.kind in "iu"
        for x in node.args[1:]
    )


class Body(BaseGraph):
    """A closed graph: inputs, constants, and nodes computed from them.

    Two bodies are equal if their inputs, nodes and outputs are, operands of commutative operations
    in either order.  Names, including those of lengths that are known only after a loop inside,
    scopes and levels are ignored, and source lines, except those of elements at computed indices:
    an index that is out of bounds raises an error with the line.
    """

    def __init__(self, *outputs: Any, **options: Any) -> None:
        super().__init__(*outputs, **options)
        inputs = set(self.inputs)
        for node in self.nodes:
            if node.op is INPUT and node not in inputs and node.is_traced:
                raise TraceError(
                    f"{self.name}: a value that is traced outside of it ({node.spec}) is used "
                    "inside without being an operand. A rule (wengert.custom_vjp, custom_jvp, "
                    "extend.primitive) in a loop or branch cannot capture such a value: "
                    "pass it as an argument of the function, with None as its cotangent"
                    f"{at(user_line())}."
                )

    @functools.cached_property
    def key(self) -> Hashable:
        """A key that is the same for equal bodies."""
        names = OpenNames(inner, self.open_names)
        inputs = tuple([(names.spec(n.spec), type(n) is Node) for n in self.inputs])

        def encode(node: Node) -> tuple[bool, Hashable]:
            if isinstance(node.op, LeafOp):
                return False, leaf_key(node)
            line = node.where if _has_index(node) else None
            return node.op.commutative, (node_key(node, names), line)

        rows, number = canonical(self, encode)
        keys = [(key, *(sorted(of) if commutes else of)) for (commutes, key), of in rows]
        return inputs, *keys, tuple([number[n] for n in self.outputs])

    @functools.cached_property
    def _hash(self) -> int:
        return hash(self.key)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Body) and self._hash == other._hash and self.key == other.key

    def __reduce__(self) -> Any:
        # A flat list: pickling nodes with their operands would exceed the recursion limit.
        rows = [
            (type(n), _LEAVES.get(n.op, n.op), self.operands(i), n.params, _leaf_value(n), n.info)
            for i, n in enumerate(self.nodes)
        ]
        ends = [[self.index(n) for n in nodes] for nodes in (self.inputs, self.outputs)]
        return _restored, (rows, *ends, self.name)

    @functools.cached_property
    def reads(self) -> list[frozenset[int]]:
        """The inputs that each output depends on."""
        mask = {n: 1 << k for k, n in enumerate(self.inputs)}
        for node in self.nodes:
            if node not in mask:
                reached = 0
                for a in node.inputs:
                    reached |= mask[a]
                mask[node] = reached
        count = len(self.inputs)
        return [frozenset(k for k in range(count) if mask[n] >> k & 1) for n in self.outputs]

    @functools.cached_property
    def size_names(self) -> frozenset[str]:
        """The names of symbolic sizes in it, except lengths known only after or in loops inside."""
        names: set[str] = set()
        for node in self.nodes:
            names |= sizes_of(node.params)
            specs = node.spec if type(node.spec) is tuple else (node.spec,)
            names |= sizes_of(tuple([s.shape for s in specs]))
        return frozenset(n for n in names if not n.startswith((OPEN, LOCAL)))

    @functools.cached_property
    def open_names(self) -> frozenset[str]:
        """The sizes in its inputs that are known only after loops outside of it."""
        names = frozenset[str]().union(*[sizes_of(n.spec.shape) for n in self.inputs])
        return frozenset(n for n in names if n.startswith(OPEN))

    @functools.cached_property
    def local_names(self) -> frozenset[str]:
        """The sizes that are known only in a step of a loop that contains it."""
        return frozenset().union(*map(local_sizes, self.nodes))

    def at_sizes(self, sizes: Mapping[str, Any]) -> Body:
        """The same graph with numbers, or other sizes, substituted for symbolic sizes."""
        names = (self.size_names, self.open_names, self.local_names)
        if all(own.isdisjoint(sizes) for own in names):
            return self

        def change(node: Node, args: tuple[Node, ...]) -> Node:
            info = node.info_with(spec=at_sizes(node.spec, sizes))
            value = node.value if isinstance(node.op, LeafOp) else None
            if node.op is CONSTANT and isinstance(node, ConstantLeaf):
                return node
            params = substituted(node.params, sizes)
            if node.op is SIZE and type(params["size"]) is int:
                return constant(params["size"])
            return type(node)(node.op, args, params, value, info)

        nodes = rebuilt(self.nodes, None, change)
        return self.with_nodes({old: new for old, new in nodes.items() if old is not new})


_LEAVES: dict[Any, str] = {INPUT: "input", CONSTANT: "constant", SIZE: "size"}


def _leaf_value(node: Node) -> Any:
    return node.value if node.is_leaf else None


def _restored(rows: Sequence[Any], inputs: list[int], outputs: list[int], name: str) -> Body:
    """Restore a pickled body."""
    nodes: list[Node] = []
    leaves = {word: op for op, word in _LEAVES.items()}
    for cls, op, operands, params, value, info in rows:
        op = leaves[op] if type(op) is str else op
        nodes.append(cls(op, tuple([nodes[k] for k in operands]), params, value, info))
    return Body(*[nodes[k] for k in outputs], inputs=[nodes[k] for k in inputs], name=name)


def bodies_of(node: Node) -> list[Body]:
    """The bodies among the parameters of a node."""
    bodies: list[Body] = []
    for x in node.params.values():
        if isinstance(x, Body):
            bodies.append(x)
        elif type(x) is tuple:
            bodies += [b for b in x if isinstance(b, Body)]
    return bodies


def local_sizes(node: Node) -> frozenset[str]:
    """The sizes in the result and parameters of a node that are known only in a loop step."""
    specs = node.spec if type(node.spec) is tuple else (node.spec,)
    names = set(sizes_of(tuple([s.shape for s in specs])) | sizes_of(node.params))
    for body in bodies_of(node):
        names |= body.local_names.difference(node.params.get("names", ()))
    return frozenset(n for n in names if n.startswith(LOCAL))


Run = Callable[[Values], list[Any]]
_runs: weakref.WeakKeyDictionary[Body, Run] = weakref.WeakKeyDictionary()


def evaluated(body: Body) -> Run:
    """A function from the values of the inputs to those of the outputs."""
    if body.size_names:
        return lambda values: evaluated(body.at_sizes(sizes_from(body, values)))(values)
    run = _runs.get(body)
    if run is None:
        run = _runs[body] = _stepwise(body)
    return run


def sizes_from(body: Body, values: Values) -> dict[str, int]:
    """The symbolic sizes of a body for the values of its inputs."""
    return solve(
        (length, number, f"axis {k} of input {i}")
        for i, (node, value) in enumerate(zip(body.inputs, values, strict=True))
        for k, (length, number) in enumerate(zip(node.spec.shape, np.shape(value), strict=True))
    )


def _stepwise(body: Body) -> Run:
    slot: dict[Node, int] = {n: k for k, n in enumerate(body.inputs)}
    initial: list[Any] = [None] * len(slot)
    steps: list[tuple[Callable[..., Any], tuple[int, ...], int]] = []
    for node in body.nodes:
        if node in slot:
            continue
        slot[node] = len(slot)
        if isinstance(node.op, LeafOp):
            initial.append(node.value)
            continue
        run = _run_of(node)
        steps.append((run, tuple([slot[a] for a in node.inputs]), slot[node]))
        initial.append(None)
    outputs = [slot[n] for n in body.outputs]

    def run_all(values: Values) -> list[Any]:
        slots = initial.copy()
        slots[: len(values)] = values
        with np.errstate(all="ignore"):
            for run, args, k in steps:
                slots[k] = run(*[slots[a] for a in args])
        return [slots[k] for k in outputs]

    return run_all


def located(error: Exception, node: Node) -> Exception:
    """The error of a loop that exceeded its limit, with the source line if it has none."""
    text = str(error)
    if not isinstance(error, GuardError) or not node.where or " (at " in text:
        return error
    return GuardError(f"{text.removesuffix('.')}{at(node.where)}.")


def _with_location(run: Callable[..., Any], node: Node) -> Callable[..., Any]:
    def run_located(*values: Any) -> Any:
        try:
            return run(*values)
        except GuardError as error:
            raise located(error, node) from None

    return run_located


def _run_of(node: Node) -> Callable[..., Any]:
    op: Any = node.op
    if op is PART:
        index = node.params["index"]
        return lambda value: value[index]
    run: Callable[..., Any] = functools.partial(op.run, **node.params) if node.params else op.run
    if op.kind == "control":
        return _with_location(run, node)
    if type(node.spec) is Spec and node.spec.weak:
        return lambda *xs: _as_number(run(*xs))
    return run


def _as_number(out: Operand) -> Any:
    return out.item() if isinstance(out, np.generic | np.ndarray) else out


class DeferredGraph(BaseGraph):
    """A graph without variables and updates, whose nodes are made when they are needed.

    Parameters
    ----------
    traced : Graph
        A graph with the same inputs, structure, name and effects, and results of the same specs.
    make : callable
        Returns the graph, of any class.
    cache_key : bytes
        See `BaseGraph.cache_key`.

    Attributes
    ----------
    result_specs : list of Spec
    """

    is_deferred = True  # until it becomes an object of another class

    def __init__(
        self, traced: BaseGraph, make: Callable[[], BaseGraph], cache_key: bytes | None = None
    ) -> None:
        self.inputs, self.structure, self.name = traced.inputs, traced.structure, traced.name
        self.updates, self.effects = {}, traced.effects
        self.cache_key = cache_key
        self.result_specs = result_specs(traced)
        self._make: Callable[[], BaseGraph] | None = make
        self._lock = lock()

    def __getattr__(self, name: str) -> Any:
        # Called only if an attribute is missing: `nodes`, `outputs`, or one of another class.
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(completed(self), name)

    @property
    def variables(self) -> tuple[Node, ...]:
        """There are none."""
        return ()

    @property
    def requirements(self) -> list[Requirement]:
        """There are none, since all sizes are numbers."""
        return []

    def with_nodes(self, new: Mapping[Node, Node], name: str | None = None) -> Any:
        """The same graph with some nodes replaced by others."""
        return completed(self).with_nodes(new, name)


def completed(graph: Any) -> Any:
    """The graph itself, whose nodes have been made."""
    if type(graph) is not DeferredGraph:
        return graph
    with graph._lock:
        make = graph.__dict__.get("_make")
        if make is not None:
            # In an empty context: its nodes belong to no trace that happens to be active now.
            made = completed(contextvars.Context().run(make))
            own = {k: v for k, v in vars(made).items() if k not in ("cache_key", "_lock", "_make")}
            graph.__dict__.update(own, _make=None)
            graph.__class__ = type(made)
    return graph


def result_specs(graph: BaseGraph) -> list[Any]:
    """The specs of the outputs of a graph; a tuple for an output of several values."""
    if type(graph) is DeferredGraph:
        return graph.result_specs
    return [n.spec for n in graph.outputs]
