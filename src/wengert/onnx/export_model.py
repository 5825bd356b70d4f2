"""Export of a graph, a function or a module to an ONNX file.

export     write the file
exported   the operations with an exporter
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

from .exporter import GraphWriter, Outside, exported, value_info
from .onnx_library import code_of, onnx

__all__ = ["export", "exported"]

_OPSETS = range(21, 25)
# The version of the file format of each opset; older programs reject later versions.
_FORMATS = {21: 10, 22: 10, 23: 11, 24: 12}


def export(
    what: Graph | Module | Callable[..., Any],
    file: Any,
    *specs: Any,
    opset: int = 21,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
) -> None:
    """Write a graph, a function or a module to an ONNX file.

    Parameters
    ----------
    what : Graph, Module or callable
        A module is exported in evaluation mode: dropout does nothing, batch normalization uses its
        running statistics. Parameters and variables become initializers with their names.
    file : path or binary file object
        A file at this path is replaced atomically.
    *specs : spec or array
        The arguments: `wengert.spec` with shape and dtype, or example arrays. Symbolic sizes, as
        in ``wg.spec(("batch", 784))``, become dynamic axes. None for a graph.
    opset : int, default 21
        The version of the ONNX operators, 21 to 24.
    inputs, outputs : sequence of str, optional
        Names of inputs and results in the file; by default those of the graph, and ``output``,
        or ``output_0``, ``output_1``, ...

    Raises
    ------
    BackendError
        An operation has no counterpart in ONNX; the message names it and the line of your program.
    ArgumentError
        `opset`, or the number of names, is invalid.
    GraphError
        The graph updates variables or has side effects, which ONNX does not have.
    ImportError
        The package onnx is not installed.

    Notes
    -----
    *Cost.* One pass over the nodes, and memory for two copies of the parameters. An ONNX file has
    at most 2 GB.

    *Precision.* The dtypes are those of the graph. float64 is part of the standard, but onnxruntime
    has no float64 kernels for some operators, such as Conv.

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
            "onnx.export: the graph updates variables or has side effects, which ONNX does not "
            "have. Export a graph without them (a module in evaluation mode: module.eval())"
            f"{at(user_line())}."
        )
    model = _model(without_calls(graph), opset, inputs, outputs)
    try:
        data = model.SerializeToString()
    except ValueError as error:
        raise BackendError(
            f"onnx.export: the file would exceed the limit of ONNX files, 2 GB ({error})"
            f"{at(user_line())}."
        ) from error
    write(file, [data])


def _graph_of(what: Any, specs: Sequence[Any]) -> BaseGraph:
    if isinstance(what, BaseGraph):
        if specs:
            raise ArgumentError(
                "onnx.export: specs were passed for a graph, which has its own. Omit them, or "
                "export the function"
                f"{at(user_line())}."
            )
        return what
    if not callable(what):
        raise ArgumentError(
            f"onnx.export: {type(what).__name__} is not a graph, function or module"
            f"{at(user_line())}."
        )
    if isinstance(what, Module):
        with _evaluation_mode(what):
            return trace(what)(*specs)
    return trace(what)(*specs)


@contextmanager
def _evaluation_mode(module: Module) -> Iterator[None]:
    """Context manager: a module and its submodules in evaluation mode."""
    modes = [(m, m.training) for m in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for m, mode in modes:
            m.training = mode


def _model(graph: BaseGraph, opset: int, inputs: Any, outputs: Any) -> Any:
    helper = onnx().helper
    _check_real(graph)
    outside = Outside(opset)
    writer = GraphWriter(outside)
    given = _names(inputs, [n.name for n in graph.inputs], "input", outside)
    results = _names(outputs, [None] * len(graph.outputs), "output", outside)
    heads = []
    for node, name in zip(graph.inputs, given, strict=True):
        writer.names[node] = name
        code_of(node.spec.dtype)
        heads.append(value_info(name, node.spec, outside))
        for axis, length in enumerate(node.spec.shape):
            _record_size(length, name, axis, outside)
    for node in graph.variables:
        name = outside.fresh(node.name or "parameter")
        outside.initializers[name] = _value_of(node)
        writer.names[node] = name
    writer.write(graph)
    tails = []
    for node, name in zip(graph.outputs, results, strict=True):
        made = helper.make_node("Identity", [writer.names[node]], [name])
        writer.nodes.append(made)
        tails.append(value_info(name, node.spec, outside))
    kept = _used(writer.nodes, outside.initializers)
    tensors = [(onnx().numpy_helper.from_array(a, n), n) for n, a in kept.items()]
    numbers = set(outside.constants.values())
    # Constants become nodes, so that the initializers of the file are the parameters.
    first = [helper.make_node("Constant", [], [n], value=t) for t, n in tensors if n in numbers]
    nodes, tensors = [*first, *writer.nodes], [t for t, n in tensors if n not in numbers]
    body = helper.make_graph(nodes, graph.name or "graph", heads, tails, tensors)
    return helper.make_model(
        body,
        producer_name="wengert",
        opset_imports=[helper.make_opsetid("", opset)],
        ir_version=_FORMATS[opset],
    )


def _check_real(graph: BaseGraph) -> None:
    """Check that inputs, variables and results are not complex: other nodes become pairs."""
    for word, nodes in (
        ("an input", graph.inputs),
        ("a variable", graph.variables),
        ("a result", graph.outputs),
    ):
        for node in nodes:
            if node.spec.dtype.kind == "c":
                raise BackendError(
                    f"onnx.export: {word} has dtype {node.spec.dtype}, and ONNX operators do not "
                    f"take complex numbers. Pass and return real and imaginary parts"
                    f"{at(user_line())}."
                )


def _names(wanted: Any, own: Sequence[str | None], word: str, outside: Outside) -> list[str]:
    """Unique names of inputs or results."""
    count = len(own)
    if wanted is None:
        many = [f"{word}_{k}" for k in range(count)] if count > 1 else [word]
        return [outside.fresh(n or d) for n, d in zip(own, many, strict=False)]
    wanted = [wanted] if isinstance(wanted, str) else list(wanted)
    if len(wanted) != count or len(set(wanted)) != count or set(wanted) & outside.names:
        raise ArgumentError(
            f"onnx.export: {word}s={wanted}, but the graph has {count} {word}s. Pass one unique "
            f"name for each{at(user_line())}."
        )
    outside.names.update(wanted)
    return [str(n) for n in wanted]


def _record_size(length: Any, name: str, axis: int, outside: Outside) -> None:
    """Record the axis of an input from which a symbolic size can be computed."""
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
    """The initializers that a node uses, also nodes of bodies."""
    asked: set[str] = set()
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        asked.update(node.input)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                waiting += attribute.g.node
    return {name: a for name, a in initializers.items() if name in asked}
