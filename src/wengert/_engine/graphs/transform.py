"""Transformations of graphs: a graph is a function, so tracing its derivative gives a graph.

traced           the graph of a function of the same arguments
built            the graph of a function of arguments with given specs
batched          `Graph.vmap`
argument_specs   the specs of arguments; output_specs of results

Modified copies and parts of graphs.

    substituted       `Graph.substitute`
    with_operation    `Graph.with_operation`
    subgraph          `Graph.subgraph`
    copied            `Graph.copy`

Nodes that depend on a replaced node are recorded again, so that shapes, dtypes and kinds are
inferred and checked; all others are shared with the original graph, which is not changed.

Pickling of graphs and computations, for process pools, as the bytes that `wengert.save` writes.

A graph that cannot be saved cannot be pickled either, with the same error.  Variables are pickled
as tensors next to these bytes, so that a graph and a tensor that it reads are still connected if
they were pickled together.

    reduced    the result of ``__reduce__`` for a graph
"""

from __future__ import annotations

import contextlib
import io
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from wengert._engine import serialization
from wengert._engine.autodiff.vmap import axes_of_arguments, vmap
from wengert._engine.core import pytree
from wengert._engine.core.graph import AnyGraph, BaseGraph, Item, several
from wengert._engine.core.graph_copies import rebuilt
from wengert._engine.core.handle import Handle, describe, leaf, owners_of, wrap
from wengert._engine.core.node import CONSTANT, ConstantLeaf, LeafOp, Node, constant, is_variable
from wengert._engine.core.node_properties import stated
from wengert._engine.core.op import Op, lookup
from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic.constraints import dim
from wengert._engine.core.symbolic.dim import Dim, names_in
from wengert._engine.core.tracing import derivation, placeholder, record
from wengert._engine.core.user_functions import signature_of
from wengert._engine.core.validation import spelled
from wengert.errors import ArgumentError, GraphError, ShapeError, at, user_line

from . import tracing_session
from .pytree_signature import Signature, restored

if TYPE_CHECKING:
    from wengert._engine.core.tracing import Derivation
    from wengert._engine.core.types import Size


class FunctionGraph(Protocol):
    """The protocol of graphs that can be transformed."""

    name: str
    inputs: tuple[Node, ...]
    outputs: tuple[Node, ...]
    structure: tuple[Any, Any]

    @property
    def signature(self) -> Signature:
        """The signature of the graph."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The values of the outputs."""


G = TypeVar("G", bound=FunctionGraph)


def argument_specs(graph: FunctionGraph) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The specs of a graph's arguments."""
    return graph.signature.arguments([n.spec for n in graph.inputs])


def output_specs(graph: FunctionGraph) -> Any:
    """The specs of a graph's results."""
    return restored(graph.structure[1], [n.spec for n in graph.outputs])


def traced(graph: G, fun: Callable[..., Any], what: str) -> G:
    """The graph of a function that takes the arguments of another graph."""
    args, kwargs = argument_specs(graph)
    return built(graph, fun, args, kwargs, what, graph.signature.names)


def built(
    graph: G,
    fun: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[Any, Any],
    what: str,
    names: tuple[str, ...] | None = None,
) -> G:
    """The graph of a function of arguments with these specs, named after another graph."""
    name = f"{what} of {graph.name}"
    cls: Any = type(graph)
    result: G = tracing_session.built(cls, fun, args, kwargs, names=names, name=name)
    return result


def batched(graph: G, in_axes: Any, out_axes: Any, axis_size: Any) -> G:
    """The graph applied to each element of a batch."""
    what = f"vmap of {graph.name}"
    args, kwargs = argument_specs(graph)
    leaves, structure = pytree.flatten((args, kwargs))
    axes = axes_of_arguments(in_axes, args, kwargs, len(leaves), what)
    size = dim(_new_name(graph)) if axis_size is None else _batch_size(axis_size, what)
    batched_specs = [
        _batched_spec(s, axis, size, what) for s, axis in zip(leaves, axes, strict=True)
    ]
    args, kwargs = pytree.unflatten(structure, batched_specs)
    batched_function = vmap(graph, in_axes, out_axes)
    return built(graph, batched_function, args, kwargs, "vmap", graph.signature.names)


def _batch_size(size: Any, what: str) -> Any:
    if isinstance(size, str):
        return dim(size)
    if isinstance(size, Dim) or (isinstance(size, int | np.integer) and size >= 0):
        return size if isinstance(size, Dim) else int(size)
    raise ShapeError(
        f"{what}: axis_size must be a non-negative integer or the name of a size, not {size!r}"
        f"{at(user_line())}."
    )


def _new_name(graph: FunctionGraph) -> str:
    """A name for the batch size that is not a symbolic size of the graph."""
    used_names = names_in([d for n in graph.inputs for d in n.spec.shape])
    names = itertools.chain(["rows"], (f"rows_{k}" for k in itertools.count(2)))
    return next(name for name in names if name not in used_names)


def _batched_spec(spec: Any, axis: int | None, size: Size, what: str) -> Any:
    """The spec of a batch, from that of an element."""
    if axis is None or not isinstance(spec, Spec):
        return spec
    ndim = spec.ndim + 1
    if not -ndim <= axis < ndim:
        raise ShapeError(
            f"{what}: a batch of {spec} has no axis {axis}. Choose one of {-ndim} to {ndim - 1}"
            f"{at(user_line())}."
        )
    shape = list(spec.shape)
    shape.insert(axis % ndim, size)
    return Spec(tuple(shape), spec.dtype)


def substituted(graph: AnyGraph, replacements: Mapping[Item, Any]) -> AnyGraph:
    """The graph with some nodes replaced."""
    if not isinstance(replacements, Mapping):
        raise ArgumentError(
            f"substitute: {spelled(replacements)} is not a mapping of replacements. Give a "
            f"dictionary from nodes to their replacements{at(user_line())}."
        )
    new = {graph.node(item): _node(x) for item, x in replacements.items()}
    return _with_replaced(graph, new)


def with_operation(graph: AnyGraph, item: Item, op: str | Op, params: dict[str, Any]) -> AnyGraph:
    """The graph with another operation at a node, on the same operands."""
    node = graph.node(item)
    if not node.args:
        raise GraphError(
            f"{graph.name_of(node)} is not an operation ({node.op.name}). Replace it by "
            f"Graph.substitute{at(user_line())}."
        )
    operation = lookup(op) if isinstance(op, str) else op
    if not isinstance(operation, Op):
        raise ArgumentError(
            f"with_operation: {spelled(op)} is not an operation. Give an operation or its name"
            f"{at(user_line())}."
        )
    with derivation(node.level) as origin:
        origin.enter(node)
        args = [_handle(a) for a in node.inputs]
        result = record(operation, args, params or _accepted(operation, node.params))
    return _with_replaced(graph, {node: _node(result)})


def copied(graph: AnyGraph) -> AnyGraph:
    """A copy of the graph with new nodes and inputs."""
    placeholders = {n: placeholder(n.spec, n.name, type(n) is Node) for n in graph.inputs}
    return graph.with_nodes(rebuilt(graph.nodes, placeholders))


def subgraph(
    graph: AnyGraph, outputs: Item | Sequence[Item], inputs: Item | Sequence[Item] | None
) -> AnyGraph:
    """The part of the graph that computes some nodes, as a graph."""
    output_nodes = [graph.node(item) for item in several(outputs)]
    needed = graph.ancestors(*output_nodes)
    if inputs is None:
        input_nodes = [n for n in graph.inputs if n in set(needed)]
        return type(graph)(*output_nodes, inputs=input_nodes, name=f"part of {graph.name}")
    cut_nodes = [graph.node(item) for item in several(inputs)]
    placeholders = {n: placeholder(n.spec, graph.name_of(n), type(n) is Node) for n in cut_nodes}
    copies = rebuilt(graph.nodes, placeholders)
    part = type(graph)(
        *[copies[n] for n in output_nodes],
        inputs=list(placeholders.values()),
        name=f"part of {graph.name}",
    )
    missing = [n for n in part.nodes if n in set(graph.inputs)]
    if missing:
        raise GraphError(
            f"the output cannot be computed from {', '.join(map(graph.name_of, cut_nodes))} "
            f"alone: {', '.join(str(n.name) for n in missing)} is needed too. Choose it as an "
            f"input{at(user_line())}."
        )
    return part


def _with_replaced(graph: AnyGraph, new: dict[Node, Node]) -> AnyGraph:
    replacements: dict[Node, Node] = dict(new)
    with derivation(0) as origin:
        for node in graph.nodes:
            if node not in replacements:
                replacements[node] = _with_new_operands(node, replacements, origin)
    found_inputs = [n for replacement in new.values() for n in BaseGraph(replacement).inputs]
    inputs = [n for n in graph.inputs if n not in new]
    new_inputs = [n for n in dict.fromkeys(found_inputs) if n not in graph.inputs]
    changed = any(n in new for n in graph.inputs) or new_inputs
    return type(graph)(
        *[replacements[n] for n in graph.outputs],
        inputs=[*inputs, *new_inputs],
        updates={k: replacements[v] for k, v in graph.updates.items()},
        effects=[replacements[n] for n in graph.effects],
        structure=(None, graph.structure[1]) if changed else graph.structure,
        name=graph.name,
    )


def _accepted(op: Op, params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of another operation, if this operation accepts all that are set."""
    known: Mapping[str, Any] = {}
    with contextlib.suppress(TypeError, ValueError):  # a ufunc has none
        known = signature_of(op.run).parameters
    unknown = [k for k in stated(params) if k not in known]
    if unknown:
        raise ArgumentError(
            f"{op.name} has no parameter {unknown[0]}, which the replaced operation has. Give the "
            f"parameters of {op.name} as keywords{at(user_line())}."
        )
    return {k: v for k, v in params.items() if k in known}


def _with_new_operands(node: Node, replacements: Mapping[Node, Node], origin: Derivation) -> Node:
    """A node with the replaced operands; the node itself if they are unchanged."""
    if isinstance(node.op, LeafOp) or all(replacements[a] is a for a in node.inputs):
        return node
    origin.enter(node)
    origin.level = node.level
    weak = isinstance(node.spec, Spec) and node.spec.weak
    args = [_handle(replacements[a]) for a in node.inputs]
    origin.stays_linear(node, args)
    result = record(node.op, args, node.params, weak)
    if isinstance(result, tuple):
        return result[0].node.args[0]  # type: ignore[no-any-return]
    new_node: Node = result.node
    if node.name:
        new_node.note(name=node.name)
    return new_node


def _handle(node: Node) -> Any:
    """A node as an operand; constants as plain values, which shape rules may depend on."""
    return node.value if node.op is CONSTANT and isinstance(node, ConstantLeaf) else wrap(node)


def _node(x: Any) -> Node:
    if isinstance(x, Handle):
        return x.node
    if isinstance(x, Node):
        return x
    if not isinstance(describe(x), Spec):
        raise ArgumentError(
            f"{spelled(x)} cannot be part of a graph. Give a tensor, an array or a number"
            f"{at(user_line())}."
        )
    return constant(x)


def reduced(graph: BaseGraph) -> tuple[Any, ...]:
    """The result of ``__reduce__`` for a graph: a function and its arguments."""
    file = io.BytesIO()
    serialization.save(graph, file, where="full")
    return _restored, (type(graph), file.getvalue(), owners_of(graph.variables))


def _restored(cls: Any, data: bytes, owners: list[Any]) -> Any:
    graph: Any = serialization.load(io.BytesIO(data))
    replacements = {
        v: _node_of_variable(v, o) for v, o in zip(graph.variables, owners, strict=True)
    }
    graph = graph.with_nodes(rebuilt(graph.nodes, replacements)) if replacements else graph
    if type(graph) is cls:
        return graph
    return cls(
        *graph.outputs,
        inputs=graph.inputs,
        updates=graph.updates,
        effects=graph.effects,
        structure=graph.structure,
        name=graph.name,
    )


def _node_of_variable(variable: Node, owner: Any) -> Node:
    """The node of a variable; for a frozen parameter, which has none, a new one."""
    if is_variable(owner.node):
        return owner.node  # type: ignore[no-any-return]
    node = leaf(owner.node.value, owner, type(variable) is Node)
    if variable.name is not None:
        node.note(name=variable.name)
    return node
