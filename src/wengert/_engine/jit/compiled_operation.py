"""Compiled operation: a compiled graph as one node of a tape, with compiled derivatives.

If a compiled function is called with a recorded tensor, the call is a single node of the tape.  The
rules of its operation are graphs that are derived from its graph, and compiled when needed; calls
of these are nodes of such operations too, so there are derivatives of any order.

    GraphOperation      the operation
    closed              a graph whose captured leaves are inputs, and so operands of the node
    extras_of           the captured leaves of a graph
    with_inlined_calls  the graph to run
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.autodiff import jvp_vjp
from wengert._engine.backends import Backend, Executable
from wengert._engine.core.copy_graph import CAPTURED, rebuilt
from wengert._engine.core.device_arrays import host_values
from wengert._engine.core.dispatch import Operation, apply
from wengert._engine.core.fork_safe_locks import lock
from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.handle import Handle, is_traced
from wengert._engine.core.node import Node
from wengert._engine.core.op import RuleContext
from wengert._engine.core.op_facts import Differentiation, Effects
from wengert._engine.core.recording import current_trace
from wengert._engine.core.replay import inline_graph
from wengert._engine.core.spec import Spec, at_sizes
from wengert._engine.core.symbolic.constraints import solve
from wengert._engine.core.tracing import placeholder
from wengert._engine.graphs import Graph
from wengert._engine.graphs.tracing_session import built
from wengert._engine.rewrite import without_calls

from .native_call import Run, run_of

if TYPE_CHECKING:
    from wengert._engine.core.types import Array


def extras_of(graph: BaseGraph) -> tuple[Node, ...]:
    """The captured leaves of a graph: variables, and recorded nodes from outside."""
    return (*graph.variables, *(n for n in graph.nodes if n.op is CAPTURED))


def closed(graph: Graph, count: int) -> Graph:
    """The graph of the first `count` outputs, with all captured leaves as additional inputs."""
    placeholders = {n: placeholder(n.spec, n.name) for n in extras_of(graph)}
    copies = rebuilt(graph.nodes, placeholders)
    return Graph(
        *[copies[n] for n in graph.outputs[:count]],
        inputs=[*[copies[n] for n in graph.inputs], *placeholders.values()],
        name=graph.name,
    )


def with_inlined_calls(graph: Graph, simplify: bool) -> Graph:
    """The graph to run, in which custom calls are inlined."""
    inlined = without_calls(graph)
    return inlined.simplify() if simplify and inlined is not graph else inlined


class GraphOperation(Operation):
    """A closed graph as an operation.

    Parameters
    ----------
    graph : Graph
        It has no variables, updates or effects, and at least one output.
    backend : Backend
    simplify : bool
        Whether the graphs of its derivatives are simplified.
    """

    kind = "opaque"
    effects = Effects(serializable=False)
    differentiation = Differentiation(singular=True)

    def __init__(self, graph: Graph, backend: Backend, simplify: bool) -> None:
        super().__init__(f"jit_{graph.name}", f"The compiled function {graph.name}.")
        self.graph, self.backend, self.simplify = graph, backend, simplify
        self.several = len(graph.outputs) > 1
        self.finds_operands = type(backend).argument is not Backend.argument
        self._derived: dict[Any, GraphOperation] = {}
        self._lock = lock()

    @functools.cached_property
    def _run(self) -> Run:
        graph = with_inlined_calls(self.graph, self.simplify)
        return run_of(Executable(graph, self.backend), single=False)

    def run(self, *values: Any) -> Any:
        """The value, or a tuple of them."""
        outputs = [host_values(x) for x in self._run(values)]
        return tuple(outputs) if self.several else outputs[0]

    def __call__(self, *args: Any, **params: Any) -> Any:
        """Run with plain values; with tensors, record one node; while tracing, inline the graph."""
        handles = [a for a in args if isinstance(a, Handle)]
        if not handles:
            return self.run(*args)
        if current_trace() is not None or any(map(is_traced, handles)):
            outputs = inline_graph(self.graph, args)
            return tuple(outputs) if self.several else outputs[0]
        return apply(self, args)

    def infer(self, specs: Sequence[Any], params: dict[str, Any]) -> Any:
        """The specs of the outputs."""
        pairs = [
            (length, number, f"axis {k} of {n.name or 'an input'}")
            for n, s in zip(self.graph.inputs, specs, strict=True)
            for k, (length, number) in enumerate(zip(n.spec.shape, s.shape, strict=True))
        ]
        sizes = solve(pairs)
        output_specs = tuple([at_sizes(n.spec, sizes) for n in self.graph.outputs])
        return output_specs if self.several else output_specs[0]

    def operands_of(self, node: Node) -> list[Any]:
        """The values of operands, those on a device as its arrays; `saved` has copies there."""
        saved = () if node.info is None or node.info.saved is None else node.info.saved
        known = [*saved, *[None] * (len(node.args) - len(saved))]
        argument = self.backend.argument
        return [
            x if x is not None else argument(a) if isinstance(a, Node) else a
            for a, x in zip(node.args, known, strict=True)
        ]

    def vjp(self, node: Node, t: Any, out: Any, inputs: Sequence[Any], ctx: RuleContext) -> Any:
        """Cotangents of the operands, computed by a compiled graph."""
        wanted = tuple([ctx.wants(a) for a in node.args])
        seeds = list(t) if self.several else [t]
        seeds = [s for s, n in zip(seeds, self.graph.outputs, strict=True) if _is_inexact(n)]
        pullback = self._rule("vjp", wanted, ctx.guarded)
        cotangents = iter(pullback.as_list(pullback(*inputs, *seeds)))
        return [next(cotangents) if is_wanted else None for is_wanted in wanted]

    def jvp(
        self, node: Node, dots: Sequence[Any], out: Array, inputs: list[Array], ctx: RuleContext
    ) -> Any:
        """The tangent of the value, computed by a compiled graph."""
        active = tuple([d is not None for d in dots])
        pushforward = self._rule("jvp", active, ctx.guarded)
        results = iter(
            pushforward.as_list(pushforward(*inputs, *[d for d in dots if d is not None]))
        )
        tangents = [next(results) if _is_inexact(n) else None for n in self.graph.outputs]
        return tangents if self.several else tangents[0]

    def as_list(self, outputs: Any) -> list[Any]:
        """The outputs, one or several, as a list."""
        return list(outputs) if self.several else [outputs]

    def _rule(self, mode: str, is_active: tuple[bool, ...], guarded: bool) -> GraphOperation:
        """The operation of a derivative with respect to some operands."""
        key = mode, is_active, guarded
        with self._lock:
            operation = self._derived.get(key)
            if operation is None:
                graph = _vjp_graph(self.graph, is_active, guarded) if mode == "vjp" else None
                graph = _jvp_graph(self.graph, is_active) if graph is None else graph
                graph = graph.simplify() if self.simplify else graph
                operation = GraphOperation(graph, self.backend, self.simplify)
                self._derived[key] = operation
        return operation

    def __reduce__(self) -> Any:
        return GraphOperation, (self.graph, self.backend, self.simplify)


def _is_inexact(node: Node) -> bool:
    return node.spec.dtype.kind in "fc"


def _restricted_to_active(graph: Graph, xs: Sequence[Any], is_active: Sequence[bool]) -> Any:
    """The inexact outputs as a function of the active inputs, and the values of these."""

    def outputs(*active: Any) -> list[Any]:
        remaining = iter(active)
        inputs = [next(remaining) if c else x for x, c in zip(xs, is_active, strict=True)]
        results = inline_graph(graph, inputs)
        return [x for x, n in zip(results, graph.outputs, strict=True) if _is_inexact(n)]

    return outputs, [x for x, c in zip(xs, is_active, strict=True) if c]


def _vjp_graph(graph: Graph, is_active: tuple[bool, ...], guarded: bool) -> Graph:
    """The graph from inputs and cotangents of outputs to the cotangents of the active inputs.

    If `guarded`, zero cotangents are strong zeros: the backward pass of a graph has them after a
    selection, so the outputs are selected where the cotangents are not zero.
    """

    def cotangents(xs: list[Array], ts: Any) -> Any:
        function, point = _restricted_to_active(graph, xs, is_active)

        def masked(*active: Any) -> list[Any]:
            return [np.where(t != 0, x, 0) for x, t in zip(function(*active), ts, strict=True)]

        return jvp_vjp.vjp(masked if guarded else function, *point)[1](ts)

    outs = [Spec(n.spec.shape, n.spec.dtype) for n in graph.outputs if _is_inexact(n)]
    return _rule_graph(cotangents, graph, outs, "vjp")


def _jvp_graph(graph: Graph, is_active: tuple[bool, ...]) -> Graph:
    """The graph from inputs and tangents of the active inputs to the tangents of the outputs."""

    def tangents(xs: list[Array], dots: list[Array]) -> Any:
        function, point = _restricted_to_active(graph, xs, is_active)
        return jvp_vjp.jvp(function, point, dots)[1]

    pairs = zip(graph.inputs, is_active, strict=True)
    dots = [Spec(n.spec.shape, n.spec.dtype) for n, c in pairs if c]
    return _rule_graph(tangents, graph, dots, "jvp")


def _rule_graph(fun: Callable[..., Any], graph: Graph, extra_specs: list[Spec], what: str) -> Graph:
    specs = [n.spec for n in graph.inputs]
    traced = built(Graph, fun, (specs, extra_specs), {}, name=f"{what}_{graph.name}")
    return Graph(*traced.outputs, inputs=traced.inputs, name=traced.name)
