"""A function run as the graph of its first call.

const_graph    record the graph of the first call, and run it in later calls

autograd's `full_graph` returns its own nodes; `wengert.trace` gives the graph here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from wengert._engine.core import pytree
from wengert._engine.core.handle import Handle, value_of
from wengert._engine.graphs import computation
from wengert._engine.tensor import tensor

__all__ = ["const_graph"]


def const_graph(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., Any]:
    """`fun`, recorded at the first call; later calls run the graph and not the Python function.

    Branches keep the direction of the first call, as in autograd. `wengert.jit` traces again where
    that would be wrong, and compiles.

    Parameters
    ----------
    fun : callable
    *args, **kwargs
        First arguments and keyword arguments that stay the same.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.compat.autograd.misc import const_graph
    >>> def f(x):
    ...     print("traced")
    ...     return np.sin(x)
    >>> g = const_graph(f)
    >>> float(g(0.0)), float(g(0.0))
    traced
    (0.0, 0.0)
    """
    recorded: list[tuple[Any, Any]] = []

    @functools.wraps(fun)
    def of_arguments(*rest: Any) -> Any:
        leaves, _ = pytree.flatten(rest)
        if not recorded:
            value, graph, structure = _record(fun, args, rest, kwargs)
            recorded.append((graph, structure))
            if not any(isinstance(x, Handle) for x in leaves):
                return value
        graph, structure = recorded[0]
        return pytree.unflatten(structure, graph(*leaves))

    return of_arguments


def _record(fun: Callable[..., Any], args: Any, rest: Any, kwargs: Any) -> tuple[Any, Any, Any]:
    """The value of a call; the graph of its leaves; and the containers of its result."""
    leaves, structure = pytree.flatten(rest)
    inputs = [tensor(value_of(x), requires_grad=True) for x in leaves]
    out = fun(*args, *pytree.unflatten(structure, inputs), **kwargs)
    outs, of_outs = pytree.flatten(out)
    graph = computation([x if isinstance(x, Handle) else tensor(x) for x in outs], *inputs)
    return pytree.tree_map(value_of, out), graph, of_outs
