"""Runs of a graph by native code, alone and as one operation with derivatives.

Native calls: runs of a graph by the native entry point of a backend that makes one.

The entry point takes values of inputs and variables, and returns outputs and updates.  Arguments
that it does not support (a list instead of an array, a dtype that must be cast) and failed runs are
passed to the `Executable`, which checks the arguments and raises the error.

    entry_of          the native entry point of a graph
    writing_entry_of  that of a graph whose last outputs are new values of inputs
    run_of            a function that runs a graph, and writes updates

Compiled operation: a compiled graph as one node of a tape, with compiled derivatives.

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
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wengert._engine.autodiff import jvp_vjp
from wengert._engine.backends import Backend, Executable
from wengert._engine.backends.variable_updates import (
    Lending,
    VariableWriter,
    exclusively,
    locks_of,
    values_of,
)
from wengert._engine.core.device_arrays import host_values
from wengert._engine.core.dispatch import Operation, apply
from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.graph_classes import result_specs
from wengert._engine.core.graph_copies import CAPTURED, inline_graph, rebuilt
from wengert._engine.core.handle import Handle, is_traced
from wengert._engine.core.implicit_conversions import gate
from wengert._engine.core.node import Node
from wengert._engine.core.op import RuleContext
from wengert._engine.core.op_facts import Differentiation, Effects
from wengert._engine.core.recording import current_trace
from wengert._engine.core.spec import Spec, at_sizes
from wengert._engine.core.symbolic.constraints import solve
from wengert._engine.core.thread_state import lock
from wengert._engine.core.tracing import placeholder
from wengert._engine.graphs import Graph
from wengert._engine.graphs.tracing_session import built
from wengert._engine.rewrite import without_calls

if TYPE_CHECKING:
    from wengert._engine.core.types import Array

Run = Callable[[Sequence[Any]], list[Any]]
_MISSED = object()


def entry_of(
    executable: Executable,
    single: bool,
    otherwise: Callable[..., Any],
    nested: bool = False,
    overwrites: bool = False,
    fed: Sequence[Any] = (),
) -> Callable[..., Any] | None:
    """The native entry point of a graph, or None if its backend makes none.

    Parameters
    ----------
    executable : Executable
    single : bool
        Whether it returns its only output instead of a tuple.
    otherwise : callable
        Called with arguments that it does not support.
    nested : bool
        Whether it returns nested tuples, as the graph does.
    overwrites : bool
        Whether it may write updates into the arrays that are the values of variables.
    fed : sequence
        Examples of the arguments, for their memory layouts.
    """
    make = getattr(executable.backend, "entry", None)
    if make is None:
        return None
    options = {"single": single, "otherwise": otherwise, "gate": gate.cell, "nested": nested}
    if overwrites:
        options["overwrites"] = True
    if fed:
        options["fed"] = fed
    return make(executable.graph, **options)  # type: ignore[no-any-return]


class Written(NamedTuple):
    """The arguments that a function modifies in place.

    positions : their positions in the inputs; their new values are the last outputs of the graph.
    results : the number of outputs before these.
    is_tuple : whether the results are returned as a tuple; otherwise the only one, or None.
    """

    positions: tuple[int, ...]
    results: int
    is_tuple: bool


def writing_entry_of(
    executable: Executable, otherwise: Callable[..., Any], written: Written, fed: Sequence[Any]
) -> Callable[..., Any] | None:
    """The native entry point of a graph whose last outputs are new values of some of its inputs.

    Returns
    -------
    callable or None
        None if the backend makes no entry points, or a modified input is not a C-contiguous array.
    """
    graph, make = executable.graph, getattr(executable.backend, "writing_entry", None)
    if make is None:
        return None
    new_specs = result_specs(graph)[written.results :]
    for k, new in zip(written.positions, new_specs, strict=True):
        old = graph.inputs[k].spec
        if not old.shape or (old.shape, old.dtype) != (new.shape, new.dtype):
            return None
        if fed and not (type(fed[k]) is np.ndarray and fed[k].flags.carray):
            return None
    target = entry_of(executable, False, _missed, fed=fed)
    if target is None:
        return None
    itemsizes = [n.spec.dtype.itemsize if n.spec.shape else 0 for n in graph.inputs]
    entry: Callable[..., Any] = make(target, otherwise, _MISSED, itemsizes, *written)
    return entry


def run_of(executable: Executable, single: bool, overwrites: bool = False) -> Run:
    """A function from the values of inputs to a list of outputs, which also writes updates.

    Parameters
    ----------
    executable : Executable
    single : bool
        Whether the graph has one output and no updates.
    overwrites : bool
        Whether updates may be written in place, because the old values are not needed.
    """
    graph, owners = executable.graph, executable.owners
    overwritten: Any = getattr(executable.backend, "overwritten", None)
    overwrites = overwrites and overwritten is not None and bool(graph.updates)
    entry = entry_of(executable, single, _missed, overwrites=overwrites)
    if entry is None:
        return executable
    positions = {v: k for k, v in enumerate(graph.variables)}
    written = [owners[positions[v]] for v in graph.updates]
    locks, write, count = locks_of(written), VariableWriter(written), len(result_specs(graph))

    def run(fed: Sequence[Any]) -> list[Any]:
        out = entry(*fed, *values_of(owners))
        if out is _MISSED:
            return executable(fed)
        if written:
            write(out[count:])
            return list(out[:count])
        return [out] if single else list(out)

    overwritable = overwritten(graph) if overwrites else ()
    lending = Lending(owners, overwritable, lambda out: write(out[count:]))

    def run_overwriting(fed: Sequence[Any]) -> list[Any]:
        out = lending.run(entry, fed, _MISSED)
        return executable(fed) if out is _MISSED else list(out[:count])

    run_once = run_overwriting if overwritable else run

    def locked(fed: Sequence[Any]) -> list[Any]:
        return exclusively(locks, functools.partial(run_once, fed))

    return locked if written else run


def _missed(*_: Any) -> Any:
    return _MISSED


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
