"""Directional derivatives and pullbacks: vjp, linearize, jvp.

`vjp` returns the transposed derivative at a point as a function, `linearize` the derivative itself;
both functions use the tape of one run and may be called any number of times.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from wengert._engine.core import pytree
from wengert._engine.core.conversion_hook import converted
from wengert._engine.core.handle import describe
from wengert._engine.core.other_libraries import Labelled, may_be_labelled
from wengert._engine.core.other_libraries import calls as labelled_calls
from wengert._engine.core.uniform_arrays import zeros
from wengert._engine.core.validation import function
from wengert._engine.ops.linalg.linear_solve import ForwardMode
from wengert.errors import StructureError, at, user_line

from .arguments import Variables, name_of, recorded
from .messages import Messages
from .pullback import Result, fill, match, split_aux
from .reverse import gathered

if TYPE_CHECKING:
    from wengert._engine.core.types import Array

R = TypeVar("R")


def vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Value of a function, and a function that pulls cotangents back through it.

    Parameters
    ----------
    fun : callable
        Takes and returns arrays or nested containers of them.
    *primals
        The point at which the derivative is taken.
    has_aux : bool, default False
        ``fun`` returns ``(outputs, aux)``.

    Returns
    -------
    outputs : as `fun` returns
        The value at the primals.
    pull : callable
        ``pull(cotangents)``, with the structure and shapes of the outputs, returns a tuple with
        one cotangent for each primal. May be called any number of times.
    aux
        Only with ``has_aux=True``.

    Notes
    -----
    One call of `pull` costs a small constant times one evaluation, for all inputs together. For
    complex values the pullback is the adjoint: ``real(<t, J v>) == real(<pull(t), v>)``.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> y, pull = wg.vjp(np.sin, np.array([0.0, np.pi]))
    >>> pull(np.array([1.0, 10.0]))
    (array([  1., -10.]),)
    """
    function(fun, "vjp")
    return vjp_of(fun, primals, has_aux, Messages.of_call())


def transposed(fun: Callable[..., Any], *primals: Any) -> Any:
    """`vjp` as the transpose of a map between the values of all processes together.

    The pullback of the library's own rules, whose cotangents are those of all processes: a result
    that is the same in all of them is not counted once (messages.py).
    """
    messages = Messages.of_call()
    if messages is not None:
        messages.counts_once = False
    return vjp_of(fun, primals, False, messages)


def vjp_of(
    fun: Callable[..., Any], primals: tuple[Any, ...], has_aux: bool, messages: Messages | None
) -> Any:
    """`vjp`, and for the library's own rules `transposed`."""
    what = f"vjp of {name_of(fun)}"
    try:
        variables = Variables(primals, what)
        out, aux = split_aux(
            recorded(variables.nodes, lambda: converted(fun)(*variables.handles()), messages),
            has_aux,
            what,
        )
        outs, structure = pytree.flatten(out)
        result = Result(outs, variables.nodes, variables, messages)
    except Labelled:
        if not may_be_labelled(fun):
            raise
        return labelled_calls().vjp(fun, primals, has_aux, messages)

    def pull(cotangents: Array | dict[Any, Any] | Sequence[Array | dict[Any, Any]]) -> Any:
        """Cotangents of the primals, given cotangents of the outputs."""
        fitted = match(cotangents, outs, structure, what, "cotangents")
        seeds = gathered(zip(result.out_nodes, fitted, strict=True))
        bars = result.pull(seeds) if result.connected else [None] * len(variables.nodes)
        return variables.restore(variables.like(fill(bars, variables, "zero", what)))

    outputs = pytree.unflatten(structure, [result.copied(o) for o in outs])
    return (outputs, pull, pytree.tree_map(result.copied, aux)) if has_aux else (outputs, pull)


def linearize(fun: Callable[..., R], *primals: Any) -> tuple[R, Callable[..., Any]]:
    """Value of a function, and its derivative at that point as a linear function.

    Returns
    -------
    outputs : as `fun` returns
    push : callable
        ``push(*tangents)``, one for each primal and of its structure, returns the tangents of
        the outputs. May be called any number of times; `fun` itself is not run again.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> y, push = wg.linearize(np.sin, 0.0)
    >>> float(push(2.0))
    2.0
    """
    function(fun, "linearize")
    pair: tuple[R, Callable[..., Any]] = linearize_of(fun, primals, f"linearize of {name_of(fun)}")
    return pair


def linearize_of(fun: Callable[..., Any], primals: tuple[Any, ...], what: str) -> Any:
    """`linearize`, and for one direction `jvp`."""
    messages = Messages.of_call()
    try:
        variables = Variables(primals, what)
        outs, structure = pytree.flatten(
            recorded(variables.nodes, lambda: converted(fun)(*variables.handles()), messages)
        )
        result = Result(outs, variables.nodes, variables, messages)
    except Labelled:
        if not may_be_labelled(fun):
            raise
        return labelled_calls().linearize(fun, primals, what)

    def push(*tangents: Any) -> Any:
        """Tangents of the outputs, given tangents of the primals."""
        fitted = match(tangents, variables.leaves, variables.structure, what, "tangents")
        dots = result.push([fitted[i] for i in variables.slots])
        return pytree.unflatten(
            structure, [_tangent(d, o, result) for d, o in zip(dots, outs, strict=True)]
        )

    return pytree.unflatten(structure, [result.copied(o) for o in outs]), push


def _tangent(dot: Array | None, out: Array, result: Result) -> Any:
    if dot is None:
        spec = describe(out)
        dot = None if spec is None else zeros(spec)
    return result.as_given(dot)


def jvp(fun: Callable[..., R], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[R, Any]:
    """Value and directional derivative of a function, in forward mode.

    Parameters
    ----------
    fun : callable
        Takes and returns arrays or nested containers of them.
    primals : sequence
        The arguments of `fun`.
    tangents : sequence
        The direction: for each primal a tangent of its structure and shapes.

    Returns
    -------
    outputs, tangents_out
        The value, and the derivative of `fun` at the primals applied to the direction.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> y, y_dot = wg.jvp(lambda x, y: x * y, (2.0, 3.0), (1.0, 0.0))
    >>> float(y), float(y_dot)
    (6.0, 3.0)
    """
    if not isinstance(primals, tuple | list) or not isinstance(tangents, tuple | list):
        raise StructureError(
            f"jvp of {name_of(fun)}: primals and tangents must be tuples, one entry for each "
            f"argument. For one argument write (x,), (v,){at(user_line())}."
        )
    function(fun, "jvp")
    out, push = linearize_of(fun, tuple(primals), f"jvp of {name_of(fun)}")
    return out, push(*tangents)


ForwardMode.jvp = staticmethod(jvp)
