"""Trace: the graph of a Python function.

The function runs once, with tensors that have a spec and no value; what it does with them is
written down.  It may use any Python control flow that does not depend on values.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..autodiff.arguments import name_of
from ..core import tree
from ..core.handle import Handle, describe, wrap
from ..core.node import Node, next_serial
from ..core.rebuild import settled
from ..core.recording import enable_grad, tracing
from ..core.spec import Spec
from ..core.tracing import placeholder
from ..errors import StructureError, at, user_line
from .graph import Graph


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
        Arguments to pass on as they are. What is neither a number nor an array nor a `spec` is
        passed on as it is anyway.

    Returns
    -------
    callable
        ``trace(fun)(*args)`` takes arrays, of which only shape and dtype are used, or specs
        (`wengert.spec`), and returns a `Graph`.

    Raises
    ------
    TracedBranchError
        The function was about to branch on a value; the message names the line and the remedy.
    TraceError
        It needed a value in another way.
    ShapeError, DtypeError
        Operands do not fit together.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> graph = wg.trace(lambda x: np.sum(x * x))(wg.spec("n"))
    >>> graph.inputs[0].spec.shape, float(graph(np.ones(4)))
    ((Dim('n'),), 4.0)
    """
    numbers = {static_argnums} if isinstance(static_argnums, int) else set(static_argnums)
    names = {static_argnames} if isinstance(static_argnames, str) else set(static_argnames)

    def build(*args: Any, **kwargs: Any) -> Graph:
        """The graph of the function for these arguments."""
        return _traced(fun, args, kwargs, {n % len(args) for n in numbers if args}, names)

    return build


def _traced(fun: Any, args: Any, kwargs: Any, numbers: set[int], names: set[str]) -> Graph:
    since = next_serial()
    words = _words(fun, len(args))
    inputs: list[Node] = []
    full = [a if i in numbers else _replaced(a, words[i], inputs) for i, a in enumerate(args)]
    more = {k: v if k in names else _replaced(v, k, inputs) for k, v in kwargs.items()}
    fixed = _fixed(args, kwargs, numbers, names)
    with tracing() as session, enable_grad():
        out = fun(*full, **more)
        updates = {old: handle.node for handle, old in session.written.items()}
        effects = list(session.effects)
    leaves, out_tree = tree.flatten(out)
    outputs = [x for x in leaves if describe(x) is not None]
    if len(outputs) != len(leaves):
        odd = next(x for x in leaves if describe(x) is None)
        raise StructureError(
            f"{name_of(fun)} returned a {type(odd).__name__}, which cannot be the output of a "
            f"graph. Return arrays, numbers and containers of them{at(user_line())}."
        )
    graph = Graph(
        *leaves,
        inputs=inputs,
        updates=updates,
        effects=effects,
        structure=(fixed, out_tree),
        name=name_of(fun),
    )
    return settled(graph, since)


def _fixed(args: Any, kwargs: Any, numbers: set[int], names: set[str]) -> Any:
    """The structure of what is to be fed: None at what is passed on as it is."""
    dynamic = (
        tuple(None if i in numbers else a for i, a in enumerate(args)),
        {k: v for k, v in kwargs.items() if k not in names},
    )
    leaves, structure = tree.flatten(dynamic)
    return structure, [describe(_as_spec(x)) is not None for x in leaves]


def _as_spec(x: Any) -> Any:
    return np.empty((0,)) if isinstance(x, Spec) else x


def _words(fun: Any, count: int) -> list[str]:
    try:
        parameters = inspect.signature(fun).parameters.values()
    except (TypeError, ValueError):
        return [f"x{i}" for i in range(count)] if count > 1 else ["x"]
    names: list[str] = []
    for p in parameters:
        if p.kind is p.VAR_POSITIONAL:
            names += [f"{p.name}{i}" for i in range(count - len(names))]
        elif p.kind is not p.KEYWORD_ONLY:
            names.append(p.name)
    return names + [f"x{i}" for i in range(len(names), count)]


def _replaced(argument: Any, name: str, inputs: list[Node]) -> Any:
    """An argument with tensors to be fed in the place of arrays and specs."""
    leaves, structure = tree.flatten(argument)
    paths: Iterable[str] = [""] if len(leaves) == 1 and leaves[0] is argument else _paths(argument)
    made = []
    for x, path in zip(leaves, paths, strict=True):
        known = x if isinstance(x, Spec) else describe(x)
        if not isinstance(known, Spec) or (isinstance(x, Handle) and x.node.is_traced):
            made.append(x)
            continue
        node = placeholder(known, name + path)
        inputs.append(node)
        made.append(wrap(node))
    return tree.unflatten(structure, made)


def _paths(argument: Any) -> list[str]:
    return tree.paths(argument)
