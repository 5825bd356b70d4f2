"""Laws of operations in graphs: a traced operation agrees with eager execution, for all sizes.

    traced_values_agree       values, and the spec of every node
    traced_derivatives_agree  both modes, first and second order, and the levels of nodes
    symbolic_sizes_agree      symbolic sizes, for two sets of concrete sizes

The reference is eager execution, which the laws in common.py compare with oracles and finite
differences.  Each law traces the operation, or a derivative of it, runs the graph with the
interpreter, and compares the results.

The lengths in the operands and parameters of an example become symbolic, equal lengths the same
symbol, as many as the operation permits.  Value and gradient are computed for the sizes of the
example and for sizes larger by one, and compared with eager execution; errors of eager execution
must be errors of the graph.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from wengert._engine.autodiff.grad import grad
from wengert._engine.autodiff.jvp_vjp import jvp, vjp
from wengert._engine.core.handle import dtype_of, shape_of, value_of
from wengert._engine.core.node import ConstantLeaf, Node
from wengert._engine.core.spec import Spec, bare, spec_of
from wengert._engine.core.symbolic.constraints import dim
from wengert._engine.core.symbolic.dim import is_open
from wengert._engine.graphs.graph import Graph
from wengert._engine.graphs.trace import trace
from wengert._engine.ops.creation import positions
from wengert._engine.ops.linalg.linear_solve import MatrixOperation
from wengert.errors import CheckError, ShapeError, TraceError, WengertError

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


# ---- all sizes ---------------------------------------------------------------------------------


RTOL = 1e-10
NAMES = "nmpqrs"
Runner = Callable[[Graph, Any], Any]  # a function of a graph and its operands
FREE = ("elementwise", "reduction", "contraction")  # kinds whose lengths can all be symbolic


@law
def symbolic_sizes_agree(op: Any, rng: np.random.Generator) -> None:
    """A graph with symbolic sizes agrees with eager execution, for several sizes."""
    sizes_agree(op, rng, lambda graph, args: graph(*args), RTOL)


def sizes_agree(
    op: Any, rng: np.random.Generator, run: Runner, rtol: float, examples: int | None = None
) -> None:
    """The law for a function that runs graphs, for a number of examples or all."""
    tried = named = 0
    for args, params in arguments_of(op, rng):
        lengths = _lengths(args)
        if not lengths or tried == examples:
            continue
        tried += 1
        found = _most_symbolic(op, args, params, lengths)
        if found is None:
            continue
        named += 1
        names, graph, function = found
        if op.kind in FREE and len(names) < len(lengths):
            raise CheckError(
                f"{op.name}: of the lengths {lengths} only {list(names)} can be symbolic."
            )
        check = partial(_check_at, op, partial(run, graph), function, rtol)
        check(args, params, {n: n for n in lengths})
        larger = {n: n + 1 if n in names else n for n in lengths}
        operands = [_resized(op, a, larger, rng) for a in args]
        check(operands, _with(params, larger), larger)
    if tried and not named and examples is None and not op.effects.value_dependent_shape:
        raise CheckError(f"{op.name} permits no symbolic size in any of its examples.")


def _lengths(args: Any) -> list[int]:
    """The distinct lengths that can be symbolic: greater than 1, which broadcasts."""
    found = {n for a in args for n in np.shape(a)}
    return sorted(n for n in found if n > 1) if 0 not in found else []


_LENGTHS = {"shape", "length", "rows", "columns"}


def _with(params: dict[str, Any], lengths: Mapping[int, Any]) -> dict[str, Any]:
    """Parameters with lengths replaced."""
    return {k: _mapped(v, lengths) if k in _LENGTHS else v for k, v in params.items()}


def _mapped(x: Any, lengths: Mapping[int, Any]) -> Any:
    return tuple(lengths.get(n, n) for n in x) if isinstance(x, tuple) else lengths.get(x, x)


Function = Callable[[dict[str, Any]], Callable[..., Any]]


def _most_symbolic(
    op: Any, args: Any, params: dict[str, Any], lengths: list[int]
) -> tuple[dict[int, Any], Graph, Function] | None:
    """A graph with as many symbolic sizes as possible; None if none is possible."""
    function = _value_and_gradient(op, args)
    for count in range(len(lengths), 0, -1):
        for chosen in combinations(lengths, count):
            names = {n: dim(NAMES[k]) for k, n in enumerate(chosen)}
            specs = [_symbolic_spec(a, names) for a in args]
            try:
                graph = trace(function(_with(params, names)))(*specs)
            except WengertError:
                continue
            if _is_valid_for(graph, args):
                graph.verify()
                return names, graph, function
    return None


def _is_valid_for(graph: Graph, args: Any) -> bool:
    """Whether the graph is valid for the sizes of these operands."""
    try:
        graph(*args)
    except ShapeError as error:
        return "is not valid for" not in str(error)
    return True


def _symbolic_spec(a: Any, names: Mapping[int, Any]) -> Any:
    spec = spec_of(np.asarray(a))
    return Spec(tuple(names.get(n, n) for n in spec.shape), spec.dtype)


def _value_and_gradient(op: Any, args: Any) -> Function:
    slots = [i for i, a in enumerate(args) if np.asarray(a).dtype.kind in "fc"]
    prepare = getattr(op, "prepare", None)

    def of(params: dict[str, Any]) -> Callable[..., Any]:
        def value(*xs: Any) -> Any:
            if not xs:
                return op.record(**params)
            return op(*(xs if prepare is None else prepare(*xs)), **params)

        def loss(*xs: Any) -> Any:
            outs = value(*xs)
            return sum(map(_weighted, outs if isinstance(outs, tuple) else (outs,)))

        def both(*xs: Any) -> Any:
            if op.discrete or not op.differentiable or not slots:
                return value(*xs)
            return value(*xs), grad(loss, slots)(*xs)

        return both

    return of


def _weighted(y: Any) -> Any:
    """A sum with a different weight for each element."""
    if dtype_of(y).kind not in "fc":
        return 0.0
    shape = shape_of(y)
    weights = np.sin(1.0 + positions(math.prod(shape))).reshape(shape)
    total = np.sum(weights * y.real)
    return total + np.sum(weights * y.imag) if dtype_of(y).kind == "c" else total


def _resized(op: Any, x: Any, lengths: Mapping[int, int], rng: np.random.Generator) -> Any:
    """An operand of other lengths with elements like those of the example."""
    x = np.asarray(x)
    shape = tuple(lengths.get(n, n) for n in x.shape)
    if shape == x.shape:
        return x
    new = rng.choice(x.ravel(), shape) if x.size else np.zeros(shape, x.dtype)
    if x.dtype.kind in "fc":
        new = new * (1.0 + 0.05 * rng.uniform(size=shape))
    if isinstance(op, MatrixOperation) and x.ndim > 1 and shape[-1] == shape[-2]:
        new = new + 9.0 * np.diag(
            np.arange(1.0, shape[-1] + 1)
        )  # regular, with distinct eigenvalues
    return new


def _check_at(
    op: Any, run: Any, function: Function, rtol: float, args: Any, params: Any, sizes: Any
) -> None:
    with np.errstate(all="ignore"):
        try:
            want = function(params)(*args) if args else op.run(**params)
        except (WengertError, ValueError, IndexError):
            want = None
    try:
        got = run(args)
    except ShapeError as error:
        if want is None or "is not valid for" in str(error):
            return
        raise
    if want is None:
        raise CheckError(f"{op.name}: for the sizes {sizes} only the graph returns a value.")
    compare(op, got, want, f"for the sizes {sizes}", rtol, cancellation(op, args))


def cancellation(op: Any, args: Any) -> float:
    """The rounding error of derivatives that are zero by cancellation, as for small matrices."""
    if not isinstance(op, MatrixOperation):
        return 0.0
    largest = max((np.max(np.abs(a), initial=0.0) for a in args), default=0.0)
    return 8.0 * float(np.finfo(float).eps * largest)
