"""Registry: which function lowers which operation; messages as two calls.

    lowers, lowers_kind    decorators
    Deferred, settled      expressions that are made on demand (scatter_chains.py)
    Lowering               the lowering of one graph: the expressions of the nodes so far
    lowered                the expressions of all nodes
    composed               the graph of operations that define another one

A lowering is a function ``lower(lowering, node, operands) -> Expr`` (or a tuple of expressions, for
an operation with several results), registered for an operation by name, or for a kind.  It may
return NotImplemented.  An operation without lowering is an opaque call: of a kernel, if there is
one (kernels/); else of the operations that define it; else a host callback.

Operations without a LAPACK routine can often be computed by one or two routines and arithmetic: the
polar factor is a singular value decomposition and a product.  Such an operation is defined by other
operations (`Op.compose`), which are traced here for the shapes of the node.

    split          two calls of a message between two processes: a start and a wait
    is_start, is_wait    whether a call starts a message, or waits for one
    requests_of    the requests of MPI that a call has started

The graph has one operation for a message, so derivatives and batches know nothing of this.  What
does not need the received array is computed between the calls (schedule/stage_order.py).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.dispatch import PART
from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.graph_classes import Body, bodies_of
from wengert._engine.core.graph_copies import rebuilt
from wengert._engine.core.handle import Handle
from wengert._engine.core.lazy_import import LazyModule
from wengert._engine.core.node import LeafOp, Node, constant
from wengert._engine.core.op import lookup
from wengert._engine.core.op_facts import Effects
from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic.constraints import requirements_of
from wengert._engine.core.symbolic.dim import Dim, is_open, names_in
from wengert._engine.kinds.collective import number_of
from wengert._engine.ops.messages import first_token
from wengert.errors import DtypeError, TracedBranchError, user_line

from ..ir.llvm_types import is_supported
from ..kernels import is_served
from .loop_ir import CallResult, Expr, OpaqueCall

# ---- messages ------------------------------------------------------------------------------------


# A request to receive, one to send, and a number whose bits tell which of them are pending.
REQUESTS = Spec((3,), np.dtype(np.uint64))
_START, _WAIT = "mpi.start", "mpi.wait"


class _MessageOperand:
    """The spec of an operand that is not in the graph."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec


class _MessageCall:
    """One of the two calls, in the place of a node of the graph."""

    def __init__(self, name: str, node: Node, operands: Sequence[Spec], results: Any) -> None:
        self.op = _MessageOperation(name)
        self.params, self.spec, self.inputs = (
            node.params,
            results,
            tuple(map(_MessageOperand, operands)),
        )
        self.where, self.name = node.where, node.name
        origin = None if node.info is None else node.info.lowered_from
        self.info = node.info_with(lowered_from=origin or node)


class _MessageOperation:
    """The operation of a call."""

    kind, effects, cost, control_flow = "collective", Effects(), None, ""

    def __init__(self, name: str) -> None:
        self.name = name

    @staticmethod
    def updated_operand(node: _MessageCall, output: int) -> int | None:
        """None: no operand is written to."""
        return None


def split(node: Node, x: Expr, token: Expr) -> tuple[Expr, Expr]:
    """The received array, after the wait, and the token, after the start.

    Parameters
    ----------
    node : Node
        Of an operation whose messages are not collective.
    x, token : Expr
        Its operands.
    """
    received, next_token = node.spec
    sent = Spec(x.shape, x.dtype)
    started = _calls(_START, node, [x, token], (received, next_token, REQUESTS), (sent, next_token))
    pending, after, requests = started
    # The wait reads what is sent, so that its memory is not used for anything else before.
    (array,) = _calls(_WAIT, node, [pending, requests, x], (received,), (received, REQUESTS, sent))
    return array, after


def _calls(
    name: str, node: Node, operands: Sequence[Expr], results: Sequence[Spec], given: Sequence[Spec]
) -> tuple[Expr, ...]:
    """The results of a call."""
    call: Any = _MessageCall(name, node, given, tuple(results))
    whole = Expr(OpaqueCall(name, dict(node.params)), operands, (), results[0].dtype, call)
    parts = enumerate(results)
    return tuple([Expr(CallResult(k), (whole,), s.shape, s.dtype, node) for k, s in parts])


def is_start(stage: Any) -> bool:
    """Whether a stage starts a message."""
    return isinstance(stage, Expr) and _name_of(stage) == _START


def is_wait(stage: Any) -> bool:
    """Whether a stage waits for a message."""
    return isinstance(stage, Expr) and _name_of(stage) == _WAIT


def _name_of(expr: Expr) -> str:
    return expr.rule.name if isinstance(expr.rule, OpaqueCall) else ""


def requests_of(parts: Sequence[Expr]) -> Expr:
    """The requests among the results of a call that starts a message."""
    return parts[2]


# ---- registry ------------------------------------------------------------------------------------


Lower = Callable[..., Any]
_BY_NAME: dict[str, Lower] = {}
_BY_KIND: dict[str, Lower] = {}
ACCEPT_DEFERRED: set[str] = set()  # operations that accept deferred operands


class Deferred:
    """An expression that is made on demand."""

    __slots__ = ()

    def settled(self) -> Expr:
        """The expression."""
        raise NotImplementedError


def settled(x: Any) -> Any:
    """Make a deferred expression; anything else is returned unchanged."""
    return x.settled() if isinstance(x, Deferred) else x


def lowers(*names: str) -> Callable[[Lower], Lower]:
    """Register a function for operations of these names (a decorator)."""

    def register(function: Lower) -> Lower:
        _BY_NAME.update(dict.fromkeys(names, function))
        return function

    return register


def lowers_kind(kind: str) -> Callable[[Lower], Lower]:
    """Register a function for the operations of a kind that have none of their own."""

    def register(function: Lower) -> Lower:
        _BY_KIND[kind] = function
        return function

    return register


class Lowering:
    """The lowering of a graph to expressions.

    Parameters
    ----------
    layouts : str
        The memory layout of each input and variable (leaves_and_views.py).
    opaque : container of str
        Operations that are opaque calls, though there is a lowering.

    Attributes
    ----------
    exprs : dict from Node to Expr, or to a tuple of them
    layouts : dict from Node to str
    held : dict from Node to Expr
        The expressions in memory of inputs and variables.
    waits : list of Expr
        What is received from other processes, which is waited for also if it is not used.
    rules : dict
        Cached rules: nodes of the same operation and dtypes share one.
    """

    def __init__(self, graph: BaseGraph, layouts: str = "", opaque: Container[str] = ()) -> None:
        self.graph, self._opaque = graph, opaque
        self.layouts = dict(zip((*graph.inputs, *graph.variables), layouts, strict=False))
        self.held: dict[Node, Expr] = {}
        self.exprs: dict[Node, Any] = {}
        self.rules: dict[Any, Any] = {}
        self._supported: dict[Node, bool] = {}
        self.waits: list[Expr] = []
        for node in graph.nodes:
            self.exprs[node] = self._lowered(node)

    def _lowered(self, node: Node) -> Any:
        if node.op is PART:
            return self.exprs[node.inputs[0]][node.params["index"]]
        # Operands in a graph are nodes: it has asked for their `inputs`.
        operands = [self.exprs[a] for a in node.args]
        if node.op.name not in ACCEPT_DEFERRED:
            operands = [settled(x) for x in operands]
        if isinstance(node.op, LeafOp):
            return _BY_NAME[f"leaf {node.op.name}"](self, node, operands)
        if node.op.name not in self._opaque and self._has_lanes(node):
            function = _BY_NAME.get(node.op.name)
            if function is None or lookup(node.op.name) is not node.op:
                function = _BY_KIND.get(node.op.kind)
            if function is not None:
                found = function(self, node, operands)
                if found is not NotImplemented:
                    return found
        operands = [settled(x) for x in operands]
        if node.op.kind == "collective":
            return self._message(node, operands)
        if node.op is first_token:
            return self._first_message(node, operands)
        if node.op.composition is not None and not is_served(node):
            inside = composed(node)
            if inside is not None:
                return self._inlined(inside, node, operands)
        return opaque_call(node, operands)

    def _message(self, node: Node, operands: Sequence[Expr]) -> tuple[Expr, ...]:
        """A collective operation; what is received from one process may be waited for later."""
        if not (node.op.pairwise and self._has_lanes(node)):
            return tuple(opaque_call(node, operands))
        parts: Any = split(node, *operands)
        self.waits.append(parts[0])
        return tuple(parts)

    def _first_message(self, node: Node, operands: Sequence[Expr]) -> Expr:
        """The comparison of the programs of all processes, before the first message."""
        call: Expr = opaque_call(node, operands)
        rule: Any = call.operands[0].rule
        rule.options["programs"] = tuple(programs_of(self.graph).items())
        return call

    def _inlined(self, inside: BaseGraph, defined: Node, operands: Sequence[Expr]) -> Any:
        """The results of a graph, with its inputs replaced by operands."""
        self.exprs.update(zip(inside.inputs, operands, strict=True))
        for node in inside.nodes:
            if node not in self.exprs:
                set_origin(node, defined)
                self.exprs[node] = self._lowered(node)
        results = tuple([settled(self.exprs[n]) for n in inside.outputs])
        return results if isinstance(defined.spec, tuple) else results[0]

    def _has_lanes(self, node: Node) -> bool:
        known = self._supported
        for x in (node, *node.args):
            found = known.get(x)
            if found is None:
                found = known[x] = all([is_supported(s.dtype) for s in specs_of(x)])
            if not found:
                return False
        return True


def programs_of(graph: BaseGraph) -> dict[Any, tuple[int, tuple[Any, ...]]]:
    """For each communicator, what stands for the messages of a graph.

    A number for the operations, and the lengths of arrays and loops that depend on sizes of the
    program, which are hashed when it runs. Those that are known in a step of a loop only are left
    out.
    """
    known = names_in(n for node in graph.inputs for s in specs_of(node) for n in s.shape)
    programs = {}
    for comm, signatures in _signatures(graph).items():
        if not signatures:  # messages between two processes: the others may do something else
            continue
        lengths = [n for signature in signatures for n in signature[1] if names_in([n]) <= known]
        texts = [(name, len(shape), *others) for name, shape, *others in signatures]
        fixed = next((k for k, n in enumerate(lengths) if names_in([n])), len(lengths))
        programs[comm] = number_of(repr(texts), lengths[:fixed]), tuple(lengths[fixed:])
    return programs


def _signatures(graph: BaseGraph) -> dict[Any, list[Any]]:
    """For each communicator, what its processes must agree on: the name, a shape, and the rest.

    Loops and branches with collective messages are listed, with their numbers of steps. Steps that
    are computed again repeat their messages, so the number of states that a loop keeps must be the
    same, too, also if the messages are between two processes.
    """
    messages: dict[Any, list[Any]] = {}
    for node in graph.nodes:
        if node.op.kind == "collective" and node.params["comm"].checked:
            signature = node.op.signature(node.spec[0], node.params)
            known = messages.setdefault(node.params["comm"], [])
            known += [] if signature is None else [signature]
        states = [node.params[name] for name in ("slots", "block") if name in node.params]
        steps = node.params.get("length")
        for body in bodies_of(node):
            for comm, inner in _signatures(body).items():
                known = messages.setdefault(comm, [])
                if states:
                    known.append((f"states of {node.op.name}", states))
                if inner:
                    # Only where a loop stores residuals has it an open length.
                    count = [] if steps is None or is_open(steps) else [steps]
                    known += [(node.op.name, count), *inner, ("end", ())]
    return messages


def set_origin(node: Node, graph_node: Node) -> None:
    """Record the graph node that a derived node is part of."""
    if not isinstance(node.op, LeafOp):
        node.info = node.info_with(lowered_from=origin_of(graph_node))


def origin_of(node: Node) -> Node:
    """The graph node that a node is, or is part of."""
    return node if node.info is None or node.info.lowered_from is None else node.info.lowered_from


def specs_of(node: Node) -> tuple[Any, ...]:
    """The specs of all results of a node."""
    spec = node.spec
    return spec if isinstance(spec, tuple) else (spec,)


def opaque_call(node: Node, operands: Sequence[Expr]) -> Any:
    """A node as an opaque call, which is computed as a whole."""
    has_parts = isinstance(node.spec, tuple)
    whole = Expr(
        OpaqueCall(node.op.name, dict(node.params)), operands, (), specs_of(node)[0].dtype, node
    )
    parts = tuple(
        Expr(CallResult(k), (whole,), s.shape, s.dtype, node) for k, s in enumerate(specs_of(node))
    )
    return parts if has_parts else parts[0]


def lowered(graph: BaseGraph, layouts: str = "", opaque: Container[str] = ()) -> Lowering:
    """The expressions of all nodes of a graph."""
    lowering = Lowering(graph, layouts, opaque)
    exprs = lowering.exprs
    for node in (*graph.outputs, *graph.updates.values(), *graph.effects):
        exprs[node] = settled(exprs[node])
    return lowering


if TYPE_CHECKING:
    from wengert._engine.control_flow import closure_conversion
else:
    closure_conversion = LazyModule("wengert._engine.control_flow.closure_conversion")


class _NotDecomposable(Exception):
    """The operation has no decomposition for these operands."""


def composed(node: Node) -> BaseGraph | None:
    """The graph that defines a node; None if its operation has no definition for these operands.

    None also if the graph would have other shapes or dtypes than the operation, or is valid for
    fewer sizes: nobody would check them.

    Parameters
    ----------
    node : Node
        Of an operation with a `composition`.
    """
    assert not isinstance(node.op, LeafOp)
    made = node.op.composition
    assert made is not None, node.op.name

    def fun(*operands: Any) -> Any:
        found = made(*operands, **node.params)
        if found is NotImplemented:
            raise _NotDecomposable
        return found

    try:
        specs = [a.spec for a in node.inputs]
        inside = closure_conversion.closed(fun, specs, node.op.name, hoist=False)
    except (_NotDecomposable, TracedBranchError, DtypeError):  # or a symbolic size, or float16
        return None
    if not _conditions([node]) >= _conditions(inside.body.nodes):
        return None
    _place(inside.body.nodes, user_line(), node.where)
    body = _with_constants(inside.body, inside.captured)
    wanted = node.spec if isinstance(node.spec, tuple) else (node.spec,)
    found = [(n.spec.shape, n.spec.dtype) for n in body.outputs]
    return body if found == [(s.shape, s.dtype) for s in wanted] else None


def _place(nodes: Iterable[Node], caller: str, where: str | None) -> None:
    """Give nodes the line of the operation, where they have that of the call that compiles."""
    for node in nodes:
        if node.where == caller:
            node.note(where=where)
        for body in bodies_of(node):
            _place(body.nodes, caller, where)


def _conditions(nodes: Iterable[Node]) -> set[tuple[Dim, bool]]:
    """What nodes require of the sizes: lengths that are at least zero, or equal to zero."""
    return {(r.length, r.equal) for r in requirements_of(nodes)}


def _with_constants(body: Body, captured: list[Any]) -> BaseGraph:
    """The graph with captured arrays as constants."""
    if not captured:
        return body
    count = len(captured)
    values = [x.node if isinstance(x, Handle) else constant(x) for x in captured]
    place = dict(zip(body.inputs[:count], values, strict=True))
    new = rebuilt(body.nodes, place, lambda node, args: None)
    return BaseGraph(*[new.get(n, n) for n in body.outputs], inputs=body.inputs[count:])
