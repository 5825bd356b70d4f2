"""Export of a graph, a function or a module to an ONNX file.

export     write the file
exported   the operations that have an entry of their own
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.node import Node, owner_of
from wengert._engine.core.symbolic.dim import Dim
from wengert._engine.graphs import Graph, trace
from wengert._engine.rewrite import without_calls
from wengert._engine.serialization.atomic_files import write
from wengert.errors import ArgumentError, BackendError, GraphError, at, user_line
from wengert.nn import Module

from .exporter import GraphWriter, Outside, described, exported
from .onnx_library import code_of, onnx

__all__ = ["export", "exported"]

_OPSETS = range(21, 25)
# The version of the format that came with each opset; older programs refuse later ones.
_FORMATS = {21: 10, 22: 10, 23: 11, 24: 12}


def export(
    what: Graph | Module | Callable[..., Any],
    file: Any,
    *specs: Any,
    opset: int = 21,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
) -> None:
    """Write a graph, a function or a module as a file of ONNX.

    Parameters
    ----------
    what : Graph, Module or callable
        A module is written as it is in evaluation: dropout does nothing, batch normalization uses
        its running statistics. Parameters and variables become initializers with their names.
    file : path or binary file object
        Replaced as a whole or not at all.
    *specs : spec or array
        What it is called with: `wengert.spec` with shape and dtype, or example arrays. A length
        that is a name, as in ``wg.spec(("batch", 784))``, may be any size when the file runs. None
        for a graph.
    opset : int, default 21
        The version of ONNX's operators, 21 to 24.
    inputs, outputs : sequence of str, optional
        Names of inputs and results in the file; by default those of the graph, and ``output``,
        or ``output_0``, ``output_1``, ...

    Raises
    ------
    BackendError
        An operation has no counterpart in ONNX; the message names it and the line of your program.
    ArgumentError
        `opset`, or the number of names, cannot be.
    GraphError
        The graph updates variables or has effects; a file of ONNX only computes.
    ImportError
        The package onnx is not installed.

    Notes
    -----
    *What it costs.* One pass over the lines, and the bytes of the parameters twice in memory. A
    file of ONNX holds at most 2 GB.

    *Precision.* Values are computed in the dtypes of the graph. That of float64 is part of the
    standard, but onnxruntime has no kernels of float64 for some operators, such as Conv.

    Examples
    --------
    >>> import io
    >>> import numpy as np, wengert as wg
    >>> def wave(x, scale):
    ...     return scale * np.sin(x)
    >>> file = io.BytesIO()
    >>> wg.onnx.export(wave, file, wg.spec("n"), wg.spec(()))  # doctest: +SKIP
    """
    if opset not in _OPSETS:
        raise ArgumentError(
            f"onnx.export: opset={opset!r} is not one of {_OPSETS[0]} to {_OPSETS[-1]}"
            f"{at(user_line())}."
        )
    graph = _graph_of(what, specs)
    if graph.updates or graph.effects:
        raise GraphError(
            "onnx.export: the graph updates variables or has effects, and a file of ONNX only "
            "computes results. Export a graph without them (a module in evaluation: "
            f"module.eval()){at(user_line())}."
        )
    model = _model(without_calls(graph), opset, inputs, outputs)
    try:
        data = model.SerializeToString()
    except ValueError as error:
        raise BackendError(
            f"onnx.export: the file would be larger than the 2 GB that a file of ONNX can be "
            f"({error}){at(user_line())}."
        ) from error
    write(file, [data])


def _graph_of(what: Any, specs: Sequence[Any]) -> BaseGraph:
    if isinstance(what, BaseGraph):
        if specs:
            raise ArgumentError(
                "onnx.export: a graph has its own specs. Leave them out, or export the function"
                f"{at(user_line())}."
            )
        return what
    if not callable(what):
        raise ArgumentError(
            f"onnx.export: {type(what).__name__} is not a graph, function or module"
            f"{at(user_line())}."
        )
    if isinstance(what, Module):
        with _evaluating(what):
            return trace(what)(*specs)
    return trace(what)(*specs)


@contextmanager
def _evaluating(module: Module) -> Iterator[None]:
    """A block in which a module and all inside it are in evaluation."""
    before = [(m, m.training) for m in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for m, mode in before:
            m.training = mode


def _model(graph: BaseGraph, opset: int, inputs: Any, outputs: Any) -> Any:
    helper = onnx().helper
    outside = Outside(opset)
    writer = GraphWriter(outside)
    given = _names(inputs, [n.name for n in graph.inputs], "input", outside)
    results = _names(outputs, [None] * len(graph.outputs), "output", outside)
    heads = []
    for node, name in zip(graph.inputs, given, strict=True):
        writer.names[node] = name
        code_of(node.spec.dtype)
        heads.append(described(name, node.spec, outside))
        for axis, length in enumerate(node.spec.shape):
            _note_size(length, name, axis, outside)
    for node in graph.variables:
        name = outside.fresh(node.name or "parameter")
        outside.initializers[name] = _value_of(node)
        writer.names[node] = name
    writer.write(graph)
    tails = []
    for node, name in zip(graph.outputs, results, strict=True):
        made = helper.make_node("Identity", [writer.names[node]], [name])
        writer.nodes.append(made)
        tails.append(described(name, node.spec, outside))
    kept = _used(writer.nodes, outside.initializers)
    tensors = [(onnx().numpy_helper.from_array(a, n), n) for n, a in kept.items()]
    numbers = set(outside.constants.values())
    # Constants are nodes, so that the initializers of the file are its parameters.
    first = [helper.make_node("Constant", [], [n], value=t) for t, n in tensors if n in numbers]
    nodes, tensors = [*first, *writer.nodes], [t for t, n in tensors if n not in numbers]
    body = helper.make_graph(nodes, graph.name or "graph", heads, tails, tensors)
    return helper.make_model(
        body,
        producer_name="wengert",
        opset_imports=[helper.make_opsetid("", opset)],
        ir_version=_FORMATS[opset],
    )


def _names(wanted: Any, own: Sequence[str | None], word: str, outside: Outside) -> list[str]:
    """The names of inputs or results, each one once."""
    count = len(own)
    if wanted is None:
        many = [f"{word}_{k}" for k in range(count)] if count > 1 else [word]
        return [outside.fresh(n or d) for n, d in zip(own, many, strict=False)]
    wanted = [wanted] if isinstance(wanted, str) else list(wanted)
    if len(wanted) != count or len(set(wanted)) != count or set(wanted) & outside.names:
        raise ArgumentError(
            f"onnx.export: {word}s={wanted}, but the graph has {count} of them, and each needs a "
            f"name of its own{at(user_line())}."
        )
    outside.names.update(wanted)
    return [str(n) for n in wanted]


def _note_size(length: Any, name: str, axis: int, outside: Outside) -> None:
    """That the length of an axis is a size that others are computed from."""
    if not isinstance(length, Dim) or len(length.names) != 1:
        return
    (size,) = length.names
    terms = dict(length.terms)
    offset, factor = terms.pop((), 0), terms.pop(((size, 1),), 0)
    if factor and not terms and (factor == 1 or size not in outside.sizes):
        outside.sizes.setdefault(size, (name, axis, factor, offset))


def _value_of(node: Node) -> Any:
    owner = owner_of(node)
    value = node.value if owner is None else owner.numpy()
    return np.asarray(value)


def _used(nodes: Sequence[Any], initializers: Mapping[str, Any]) -> dict[str, Any]:
    """The initializers that some node needs, also one inside a body."""
    asked: set[str] = set()
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        asked.update(node.input)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                waiting += attribute.g.node
    return {name: a for name, a in initializers.items() if name in asked}
