"""Trace: the graph of a Python function.

The function runs once, with tensors that have a spec and no value, and its operations are recorded.
It may use any Python control flow that does not depend on values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from wengert._engine.autodiff.arguments import derived
from wengert._engine.core.validation import integers, words

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
