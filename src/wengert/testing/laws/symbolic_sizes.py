"""The law of symbolic sizes: a graph with symbolic sizes is correct for all sizes, or an error.

The lengths in the operands and parameters of an example become symbolic, equal lengths the same
symbol, as many as the operation permits.  Value and gradient are computed for the sizes of the
example and for sizes larger by one, and compared with eager execution; errors of eager execution
must be errors of the graph.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from wengert._engine.autodiff.grad import grad
from wengert._engine.core.handle import dtype_of, shape_of
from wengert._engine.core.spec import Spec, spec_of
from wengert._engine.core.symbolic.constraints import dim
from wengert._engine.graphs.graph import Graph
from wengert._engine.graphs.trace import trace
from wengert._engine.ops.creation import positions
from wengert._engine.ops.linalg.linear_solve import MatrixOperation
from wengert.errors import CheckError, ShapeError, WengertError

from .common import arguments_of, law
from .tracing import compare

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
