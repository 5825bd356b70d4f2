"""Laws of operations in graphs: a traced operation agrees with eager execution.

The reference is eager execution, which the laws in common.py compare with oracles and finite
differences.  Each law traces the operation, or a derivative of it, runs the graph with the
interpreter, and compares the results.

    traced_values_agree        values, and the spec of every node
    traced_derivatives_agree   both modes, first and second order, and the levels of nodes
    symbolic_sizes_agree       symbolic sizes, for two sets of concrete sizes
    strong_zeros_agree         branches that are not taken do not affect derivatives
    singular_is_declared       an operation declares that its partial derivative can be infinite
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert._engine.autodiff.grad import grad
from wengert._engine.autodiff.jvp_vjp import jvp, vjp
from wengert._engine.core.handle import value_of
from wengert._engine.core.node import ConstantLeaf, Node
from wengert._engine.core.spec import Spec, bare, spec_of
from wengert._engine.core.symbolic.dim import is_open
from wengert._engine.graphs.graph import Graph
from wengert._engine.graphs.trace import trace
from wengert.errors import CheckError, TraceError

from .common import (
    SPECIAL,
    arguments_of,
    floating,
    has_derivative,
    is_condition,
    is_elementwise,
    is_whole,
    law,
)

VALUE_RTOL = 0.0  # the interpreter runs the same operations
FIRST_RTOL, SECOND_RTOL = 1e-12, 1e-9  # eager execution has fast paths that graphs lack


# ---- values ------------------------------------------------------------------------------------


@law
def traced_values_agree(op: Any, rng: np.random.Generator) -> None:
    """A graph of the operation gives its value, also for special values; specs of nodes agree."""
    for args, params in [*arguments_of(op, rng), *special_operands(op)]:
        with np.errstate(all="ignore"):
            want = op.run(*args, **params)
        for f, point in _written(op, args, params):
            try:
                graph = trace(f)(*point)
            except TraceError:
                if op.effects.value_dependent_shape:
                    continue
                raise
            graph.verify()
            compare(op, graph(*point), want, "traced", VALUE_RTOL)
            _check_nodes(op, graph, point)


def _written(op: Any, args: Any, params: dict[str, Any]) -> list[tuple[Any, tuple[Any, ...]]]:
    """The operation as a function of all operands, and of the floating-point ones only."""
    slots = [i for i, a in enumerate(args) if np.asarray(a).dtype.kind in "fc"]

    def f(*xs: Any) -> Any:
        return op(*xs, **params) if xs else op.record(**params)

    def of_some(*xs: Any) -> Any:
        full = list(args)
        for i, x in zip(slots, xs, strict=True):
            full[i] = x
        return f(*full)

    if not slots or len(slots) == len(args):
        return [(f, tuple(args))]
    return [(f, tuple(args)), (of_some, tuple(args[i] for i in slots))]


def special_operands(op: Any) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Combinations of zeros, infinities, NaN and large numbers, for an elementwise operation."""
    if not is_elementwise(op):
        return []
    axes = [
        np.array([False, True]) if is_condition(d) else np.array([0, 1, -1, 5])
        if is_whole(d) else np.array(SPECIAL)
        for d in op.domain
    ]  # fmt: skip
    return [(tuple(g.ravel() for g in np.meshgrid(*axes)), {})]


def _check_nodes(op: Any, graph: Graph, args: Sequence[Any]) -> None:
    """The values of nodes match their specs, and levels do not decrease along the graph."""
    every = Graph(*graph.nodes, inputs=graph.inputs, structure=None)
    values = every(*args) if len(every.outputs) > 1 else (every(*args),)
    for node, value in zip(graph.nodes, values, strict=True):
        spec = spec_of(value)
        if bare(spec) not in (bare(node.spec), bare(_ended(node.spec, spec))):
            raise CheckError(
                f"{op.name}: a node {node.op.name} has the spec {node.spec}, but its value is "
                f"{spec_of(value)}."
            )
        below = [a for a in node.args if isinstance(a, Node) and a.level > node.level]
        if below:
            raise CheckError(
                f"{op.name}: a node {node.op.name} of level {node.level} uses one of level "
                f"{below[0].level}."
            )


def _ended(spec: Any, found: Any) -> Any:
    """The expected spec, with lengths that a loop determines replaced by those of the value."""
    if type(spec) is tuple:
        return tuple(map(_ended, spec, found))
    if len(spec.shape) != len(found.shape):
        return spec
    shape = [n if is_open(m) else m for m, n in zip(spec.shape, found.shape, strict=True)]
    return Spec(tuple(shape), spec.dtype)


def _flat(x: Any) -> list[Any]:
    """The results as a list; constant tensors as their values."""
    if isinstance(x, tuple | list):
        return [leaf for item in x for leaf in _flat(item)]
    return [value_of(x)]


def compare(op: Any, got: Any, want: Any, what: str, rtol: float, rounding: float = 0.0) -> None:
    """Raise if the results of a graph differ from those of eager execution, in value or spec.

    Parameters
    ----------
    rounding : float
        Absolute error of results that are zero by cancellation.
    """
    for g, w in zip(_flat(got), _flat(want), strict=True):
        same_spec = np.shape(g) == np.shape(w) and np.asarray(g).dtype == np.asarray(w).dtype
        if not same_spec:
            raise CheckError(
                f"{op.name}, {what}: {np.asarray(g).dtype}{np.shape(g)}, but eager execution gives "
                f"{np.asarray(w).dtype}{np.shape(w)}."
            )
        if np.asarray(w).dtype.kind not in "fc":
            agree = np.array_equal(g, w)
        else:
            finite = np.abs(w)[np.isfinite(w)] if np.size(w) else np.zeros(0)
            scale = float(np.max(finite, initial=0.0))
            agree = np.allclose(g, w, rtol=rtol, atol=rtol * scale + rounding, equal_nan=True)
        if not agree:
            raise CheckError(f"{op.name}, {what}: {g}, but eager execution gives {w}.")


# ---- derivatives -------------------------------------------------------------------------------


@law(applies=has_derivative)
def traced_derivatives_agree(op: Any, rng: np.random.Generator) -> None:
    """Graphs of derivatives in both modes, to second order, agree with eager execution."""
    for args, params in arguments_of(op, rng):
        f, point = _prepared(op, args, params)
        if not point:
            continue
        for order, name, derivative in derivatives(f, point, rng):
            want = derivative(*point)
            graph = trace(derivative)(*point)
            graph.verify()
            rtol = FIRST_RTOL if order == 1 else SECOND_RTOL
            compare(op, graph(*point), want, f"traced {name}", rtol)
            _check_nodes(op, graph, point)
            _check_levels(op, graph, order, name)


def _prepared(op: Any, args: Any, params: dict[str, Any]) -> tuple[Any, tuple[Any, ...]]:
    """The operation as a function of its floating-point operands, after `prepare`."""
    f, point = floating(op, args, params)
    prepare = getattr(op, "prepare", None)
    if prepare is None:
        return f, point
    return (lambda *xs: f(*prepare(*xs))), point


def derivatives(
    f: Any, point: tuple[Any, ...], rng: np.random.Generator
) -> list[tuple[int, str, Any]]:
    """Order, name and function of the derivatives to compare."""
    outs = f(*point)
    weights = [np.asarray(_like(y, rng)) for y in outs]
    direction = tuple(_like(x, rng) for x in point)
    slots = tuple(range(len(point)))

    def scalar(*xs: Any) -> Any:
        return _product(weights, f(*xs))

    def reverse(*xs: Any) -> Any:
        return vjp(f, *xs)[1](tuple(weights))

    def forward(*xs: Any) -> Any:
        return jvp(f, xs, direction)[1]

    def slope(*xs: Any) -> Any:
        return _product(direction, grad(scalar, slots)(*xs))

    def forward_over_reverse(*xs: Any) -> Any:
        return jvp(grad(scalar, slots), xs, direction)[1]

    def reverse_over_forward(*xs: Any) -> Any:
        return grad(lambda *ys: _product(weights, forward(*ys)), slots)(*xs)

    return [
        (1, "vjp", reverse),
        (1, "grad", grad(scalar, slots)),
        (1, "jvp", forward),
        (2, "grad of grad", grad(slope, slots)),
        (2, "jvp of grad", forward_over_reverse),
        (2, "grad of jvp", reverse_over_forward),
    ]


def _like(x: Any, rng: np.random.Generator) -> Any:
    x = np.asarray(value_of(x))
    v = rng.normal(size=x.shape)
    return (v + 1j * rng.normal(size=x.shape) if x.dtype.kind == "c" else v).astype(x.dtype)[()]


def _product(weights: Sequence[Any], ys: Sequence[Any]) -> Any:
    total: Any = 0.0
    for w, y in zip(weights, ys, strict=True):
        term = np.conj(w) * y
        total = total + np.sum(term.real if term.dtype.kind == "c" else term)
    return total


def _check_levels(op: Any, graph: Graph, order: int, name: str) -> None:
    highest = max(n.level for n in graph.nodes)
    if highest > order:
        raise CheckError(f"{op.name}, {name}: a node of level {highest} in order {order}.")
    if any(n.level < order and n.args for n in graph.outputs if not isinstance(n, ConstantLeaf)):
        raise CheckError(f"{op.name}, {name}: a derivative of order {order} on a lower level.")
