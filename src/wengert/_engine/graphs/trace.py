"""Trace: the graph of a Python function.

The function runs once, with tensors that have a spec and no value, and its operations are recorded.
It may use any Python control flow that does not depend on values.

linear_transpose: the transpose of a linear function.

The cotangents of a linear function do not depend on its arguments, so they are taken at zero.
Whether the function is linear is seen in the graph of its pullback: the arguments must not be used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert._engine.autodiff.arguments import derived
from wengert._engine.autodiff.jvp_vjp import vjp
from wengert._engine.core import pytree
from wengert._engine.core.handle import describe
from wengert._engine.core.spec import Spec
from wengert._engine.core.validation import function as check_function
from wengert._engine.core.validation import integers, words
from wengert.errors import DtypeError, NotDifferentiableError, ShapeError, at, user_line

from .graph import Graph
from .tracing_session import built, parameter_names


def trace(
    fun: Callable[..., Any],
    *,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
) -> Callable[..., Graph]:
    """Return a function that builds the graph of `fun` for given arguments.

    Parameters
    ----------
    fun : callable
        Takes and returns arrays or nested containers of them.
    static_argnums, static_argnames
        Static arguments, which are passed unchanged. Arguments that are not numbers, arrays or
        specs are always static.

    Returns
    -------
    callable
        ``trace(fun)(*args)`` takes arrays, of which only shape and dtype are used, or specs
        (`wengert.spec`), and returns a `Graph`.

    Raises
    ------
    TracedBranchError
        The function branches on a value; the message has the node and a remedy.
    TraceError
        The function needs a value that is not known while tracing.
    ShapeError, DtypeError
        An operation does not accept its operands.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> graph = wg.trace(lambda x: np.sum(x * x))(wg.spec("n"))
    >>> graph.inputs[0].spec.shape, float(graph(np.ones(4)))
    ((Dim('n'),), 4.0)
    """
    numbers = integers(static_argnums, "static_argnums")
    names = words(static_argnames, "static_argnames")
    return derived(fun, _trace, fun, numbers, names)


def _trace(
    fun: Callable[..., Any], numbers: list[int], names: list[str], /, *args: Any, **kwargs: Any
) -> Graph:
    """The graph of the function for these arguments."""
    positions = {n % len(args) for n in numbers if -len(args) <= n < len(args)}
    parameters = parameter_names(fun, 0)
    by_keyword = [parameters[n] for n in numbers if len(args) <= n < len(parameters)]
    static = {*names, *by_keyword}
    return built(Graph, fun, args, kwargs, positions=positions, static=static)


__all__ = ["linear_transpose"]


def linear_transpose(fun: Callable[..., Any], *primals: Any) -> Callable[[Any], tuple[Any, ...]]:
    """The transpose of a linear function.

    Parameters
    ----------
    fun : callable
        Linear in all arguments together; a constant term is ignored, as in JAX.
    *primals : array, Spec or containers of them
        Examples of the arguments, of which only shapes and dtypes are used.

    Returns
    -------
    callable
        From a cotangent with the shape of the result to a tuple of cotangents, one for each
        argument. For complex numbers it is the transpose, not the adjoint: of z -> a z it is
        t -> a t.

    Raises
    ------
    NotDifferentiableError
        `fun` is not linear.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> a = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    >>> transposed = wg.linear_transpose(lambda x: a @ x, wg.spec(2))
    >>> transposed(np.array([1.0, 0.0, 1.0]))
    (array([6., 8.]),)
    """
    check_function(fun, "linear_transpose")
    leaves, structure = pytree.flatten(primals)
    specs = [_spec_of(x) for x in leaves]
    result = trace(fun)(*pytree.unflatten(structure, specs))
    _refuse_nonlinear(fun, result, specs, structure)
    zeros = pytree.unflatten(structure, [np.zeros(s.shape, s.dtype) for s in specs])

    def transposed(cotangent: Any) -> tuple[Any, ...]:
        """The cotangents of the arguments."""
        bars = vjp(fun, *zeros)[1](_conjugated(cotangent))
        return tuple(_conjugated(bars))

    return transposed


def _spec_of(x: Any) -> Spec:
    spec = describe(x) if not isinstance(x, Spec) else x
    if not isinstance(spec, Spec) or spec.dtype.kind not in "fc":
        raise DtypeError(
            f"linear_transpose: the argument {x!r} is not an array of floating-point or complex "
            f"numbers. Pass an example or wengert.spec, and constants by a closure"
            f"{at(user_line())}."
        )
    if not all(isinstance(n, int) for n in spec.shape):
        raise ShapeError(
            f"linear_transpose: the argument {spec} has a symbolic size. Pass its length"
            f"{at(user_line())}."
        )
    return spec


def _refuse_nonlinear(fun: Any, result: Any, specs: list[Spec], structure: Any) -> None:
    """Refuse a function whose cotangents depend on its arguments."""
    outs = [n.spec for n in result.outputs]

    def pulled(ts: Any, *xs: Any) -> Any:
        def of(*leaves: Any) -> Any:
            return tuple(pytree.flatten(fun(*pytree.unflatten(structure, list(leaves))))[0])

        return vjp(of, *xs)[1](tuple(ts))

    graph = trace(pulled)(tuple(outs), *specs)
    used = {a for n in graph for a in n.inputs} | set(graph.outputs)
    for node in graph.inputs[len(outs) :]:
        if node in used:
            raise NotDifferentiableError(
                f"linear_transpose: {getattr(fun, '__name__', 'the function')} is not linear, so "
                f"it has no transpose: its derivative depends on its argument, {node.spec}. Use "
                f"wengert.vjp, the transpose of the derivative at a point{at(user_line())}."
            )


def _conjugated(x: Any) -> Any:
    def one(leaf: Any) -> Any:
        spec = describe(leaf)
        is_complex = isinstance(spec, Spec) and spec.dtype.kind == "c"
        return np.conj(leaf) if is_complex else leaf

    return pytree.tree_map(one, x)
