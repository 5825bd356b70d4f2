"""Compiled operation: a compiled graph as one node of a tape, with compiled derivatives.

If a compiled function is called with a recorded tensor, the call is a single node of the tape.  Its
rules are graphs derived from it, and compiled when needed: the pullback of a node is a
node of another compiled graph, and so are derivatives of any order.

    GraphOperation   the operation
    closed           a graph whose variables are inputs, so that they are operands of the node
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.autodiff import jvp_vjp
from wengert._engine.backends import Backend, Executable
from wengert._engine.core.copy_graph import CAPTURED, rebuilt
from wengert._engine.core.dispatch import Operation, apply
from wengert._engine.core.fork_safe_locks import lock
from wengert._engine.core.handle import Handle, is_traced
from wengert._engine.core.node import Node
from wengert._engine.core.op import RuleContext
from wengert._engine.core.op_traits import Differentiation, Effects
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


def extras_of(graph: Graph) -> tuple[Node, ...]:
    """The captured leaves: variables, and recorded nodes that the graph was built from."""
    return (*graph.variables, *(n for n in graph.nodes if n.op is CAPTURED))


def closed(graph: Graph, count: int) -> Graph:
    """A graph of the first outputs, whose inputs are followed by all captured leaves."""
    place = {n: placeholder(n.spec, n.name) for n in extras_of(graph)}
    nodes = rebuilt(graph.nodes, place)
    return Graph(
        *[nodes[n] for n in graph.outputs[:count]],
        inputs=[*[nodes[n] for n in graph.inputs], *place.values()],
        name=graph.name,
    )


def with_inlined_calls(graph: Graph, simplify: bool) -> Graph:
    """The graph to run, with functions with custom rules inlined."""
    made = without_calls(graph)
    return made.simplify() if simplify and made is not graph else made


class GraphOperation(Operation):
    """A closed graph as an operation.

    Parameters
    ----------
    graph : Graph
        Without variables, updates or effects; at least one output.
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
        self._derived: dict[Any, GraphOperation] = {}
        self._lock = lock()

    @functools.cached_property
    def _run(self) -> Run:
        graph = with_inlined_calls(self.graph, self.simplify)
        return run_of(Executable(graph, self.backend), single=False)

    def run(self, *values: Any) -> Any:
        """The value, or a tuple of them."""
        found = self._run(values)
        return tuple(found) if self.several else found[0]

    def __call__(self, *args: Any, **params: Any) -> Any:
        """Run on plain values, be recorded as one node on tensors, or be inlined in a graph."""
        handles = [a for a in args if isinstance(a, Handle)]
        if not handles:
            return self.run(*args)
        if current_trace() is not None or any(map(is_traced, handles)):
            found = inline_graph(self.graph, args)
            return tuple(found) if self.several else found[0]
        return apply(self, args)

    def infer(self, specs: Sequence[Any], params: dict[str, Any]) -> Any:
        """The specs of the outputs."""
        pairs = [
            (length, number, f"axis {k} of {n.name or 'an input'}")
            for n, s in zip(self.graph.inputs, specs, strict=True)
            for k, (length, number) in enumerate(zip(n.spec.shape, s.shape, strict=True))
        ]
        sizes = solve(pairs)
        found = tuple([at_sizes(n.spec, sizes) for n in self.graph.outputs])
        return found if self.several else found[0]

    def vjp(self, node: Node, t: Any, out: Any, inputs: Sequence[Any], ctx: RuleContext) -> Any:
        """Cotangents of the operands, computed by a compiled graph."""
        wanted = tuple([ctx.wants(a) for a in node.args])
        seeds = list(t) if self.several else [t]
        seeds = [s for s, n in zip(seeds, self.graph.outputs, strict=True) if _is_inexact(n)]
        pull = self._rule("vjp", wanted, ctx.guarded)
        bars = iter(pull.as_list(pull(*inputs, *seeds)))
        return [next(bars) if is_wanted else None for is_wanted in wanted]

    def jvp(
        self, node: Node, dots: Sequence[Any], out: Array, inputs: list[Array], ctx: RuleContext
    ) -> Any:
        """The tangent of the value, computed by a compiled graph."""
        active = tuple([d is not None for d in dots])
        push = self._rule("jvp", active, ctx.guarded)
        found = iter(push.as_list(push(*inputs, *[d for d in dots if d is not None])))
        tangents = [next(found) if _is_inexact(n) else None for n in self.graph.outputs]
        return tangents if self.several else tangents[0]

    def as_list(self, found: Any) -> list[Any]:
        """The outputs, one or several, as a list."""
        return list(found) if self.several else [found]

    def _rule(self, mode: str, chosen: tuple[bool, ...], guarded: bool) -> GraphOperation:
        """The operation of a derivative with respect to some operands."""
        key = mode, chosen, guarded
        with self._lock:
            made = self._derived.get(key)
            if made is None:
                graph = _pulled(self.graph, chosen, guarded) if mode == "vjp" else None
                graph = _pushed(self.graph, chosen) if graph is None else graph
                graph = graph.simplify() if self.simplify else graph
                made = GraphOperation(graph, self.backend, self.simplify)
                self._derived[key] = made
        return made

    def __reduce__(self) -> Any:
        return GraphOperation, (self.graph, self.backend, self.simplify)


def _is_inexact(node: Node) -> bool:
    return node.spec.dtype.kind in "fc"


def _of_chosen(graph: Graph, xs: Sequence[Any], chosen: Sequence[bool]) -> Any:
    """The floating outputs as a function of the selected inputs."""

    def outputs(*active: Any) -> list[Any]:
        rest = iter(active)
        full = [next(rest) if c else x for x, c in zip(xs, chosen, strict=True)]
        found = inline_graph(graph, full)
        return [x for x, n in zip(found, graph.outputs, strict=True) if _is_inexact(n)]

    return outputs, [x for x, c in zip(xs, chosen, strict=True) if c]


def _pulled(graph: Graph, chosen: tuple[bool, ...], guarded: bool) -> Graph:
    """From inputs and cotangents to the cotangents of the selected inputs.

    *Guarded*: an exactly zero cotangent times anything is zero.  This is
    needed after a selection, so a selection is inserted before the cotangent.
    """

    def pulled(xs: list[Array], ts: Any) -> Any:
        of, at = _of_chosen(graph, xs, chosen)

        def masked(*active: Any) -> list[Any]:
            return [np.where(t != 0, x, 0) for x, t in zip(of(*active), ts, strict=True)]

        return jvp_vjp.vjp(masked if guarded else of, *at)[1](ts)

    outs = [Spec(n.spec.shape, n.spec.dtype) for n in graph.outputs if _is_inexact(n)]
    return _made(pulled, graph, outs, "vjp")


def _pushed(graph: Graph, chosen: tuple[bool, ...]) -> Graph:
    """From inputs and tangents of the selected ones to the tangents of the outputs."""

    def pushed(xs: list[Array], dots: list[Array]) -> Any:
        of, at = _of_chosen(graph, xs, chosen)
        return jvp_vjp.jvp(of, at, dots)[1]

    pairs = zip(graph.inputs, chosen, strict=True)
    return _made(pushed, graph, [Spec(n.spec.shape, n.spec.dtype) for n, c in pairs if c], "jvp")


def _made(fun: Callable[..., Any], graph: Graph, more: list[Spec], what: str) -> Graph:
    specs = [n.spec for n in graph.inputs]
    made = built(Graph, fun, (specs, more), {}, name=f"{what}_{graph.name}")
    return Graph(*made.outputs, inputs=made.inputs, name=made.name)
