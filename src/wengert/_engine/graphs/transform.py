"""Transformations of graphs: a graph is a function, so tracing its derivative gives a graph.

traced           the graph of a function of the same arguments
built            the graph of a function of arguments with given specs
batched          `Graph.vmap`
argument_specs   the specs of arguments; output_specs of results
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from wengert._engine.autodiff.vmap import axes_of_arguments, vmap
from wengert._engine.core import pytree
from wengert._engine.core.node import Node
from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic.dim import Dim, names_in
from wengert._engine.core.symbolic.parsing import dim
from wengert.errors import ShapeError, at, user_line

from . import tracing_session
from .pytree_signature import Signature, restored

if TYPE_CHECKING:
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
