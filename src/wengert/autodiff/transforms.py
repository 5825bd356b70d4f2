r"""The transformations users call: grad, value_and_grad, vjp, jvp, linearize, stop_gradient.

Each makes fresh nodes of the chosen arguments, runs the function, and sweeps the tape that this
left behind (reverse.py, forward.py).  A derivative is taken by a *node*, so nesting them in any
order is safe, and the result is differentiable again.

Matrices of derivatives (jacobian, hessian, hvp) are in matrices.py.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core import tree
from ..core.apply import Operation
from ..core.handle import Handle, wrap
from ..core.node import Node, constant
from ..core.op import register
from ..core.spec import spec_of
from ..errors import (
    NotScalarError,
    ShapeError,
    StructureError,
    UnconnectedError,
    UnconnectedWarning,
    at,
    user_line,
)
from .arguments import Argnums, Call, Variables, name_of, zeros_like
from .forward import pushforward
from .project import cast
from .reverse import pullback
from .tape import Tape, tape_between

POLICIES = ("zero", "warn", "raise")


def grad(
    fun: Callable[..., Any],
    argnums: Argnums = 0,
    *,
    argnames: str | Sequence[str] | None = None,
    has_aux: bool = False,
    unconnected: str = "zero",
) -> Callable[..., Any]:
    r"""Return a function that computes the gradient of a scalar function.

    If ``fun`` maps arrays to one real number J, then ``grad(fun)(x)[i, j, ...]`` is the partial
    derivative of J by ``x[i, j, ...]``, exact up to rounding.

    Parameters
    ----------
    fun : callable
        Returns one real number: a float or an array of shape ``()``. May use any Python control
        flow; the branch actually taken is the one differentiated.
    argnums : int or sequence of int, default 0
        Which positional arguments to differentiate by. The others are constants. An argument may
        be a nested container of arrays.
    argnames : str or sequence of str, optional
        Arguments to differentiate by, chosen by name.
    has_aux : bool, default False
        ``fun`` returns ``(J, aux)``; then the gradient function returns ``(gradient, aux)``.
    unconnected : {"zero", "warn", "raise"}
        What to do when J does not depend on a chosen argument.

    Returns
    -------
    callable
        Takes the arguments of ``fun``. Returns, for an int ``argnums``, a gradient with the
        structure, shapes and dtypes of that argument; for a sequence, a tuple of them.

    Raises
    ------
    NotScalarError
        ``fun`` returned something else than one real number. Sum it, or use `jacobian`.
    NotDifferentiableError
        A chosen argument is not of floating dtype (cast it: ``x.astype(float)``), or J depends
        on it through an operation registered without a rule.
    UnconnectedError
        J does not depend on a chosen argument and ``unconnected="raise"``.

    See Also
    --------
    value_and_grad : J and its gradient for the price of the gradient.
    jvp : one directional derivative, forward.
    jacobian : for functions of array value.

    Notes
    -----
    *Units.* The gradient carries the unit of J per unit of x.

    *Cost.* A small constant times one evaluation of ``fun``, whatever the size of x (the cheap
    gradient principle [2]_), and memory for every intermediate value.

    *Where no derivative exists* the value follows docs/conventions.md: 0 for \|x\| at 0, half to
    each side for a tie in ``maximum``. Steps and conditions pass nothing back.

    *Complex arguments.* The gradient of a real J is dJ/dRe x + i dJ/dIm x, the direction of
    steepest ascent.

    References
    ----------
    .. [1] R. E. Wengert, "A simple automatic derivative evaluation program", Comm. ACM 7(8),
       463-464, 1964.
    .. [2] A. Griewank and A. Walther, "Evaluating Derivatives", 2nd ed., SIAM, 2008.

    Examples
    --------
    The energy of a spring of stiffness 3 N/m stretched by 0.5 m, and the force:

    >>> import numpy as np, wengert as wg
    >>> energy = lambda u: 0.5 * 3.0 * u * u
    >>> float(wg.grad(energy)(0.5))
    1.5
    >>> wg.grad(lambda x: np.sum(np.sin(x)))(np.zeros((2, 3)))
    array([[1., 1., 1.],
           [1., 1., 1.]])
    """
    both = value_and_grad(
        fun, argnums, argnames=argnames, has_aux=has_aux, unconnected=unconnected, _what="grad"
    )

    @functools.wraps(fun, updated=())
    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, bars = both(*args, **kwargs)
        return (bars, value[1]) if has_aux else bars

    return gradient


def value_and_grad(
    fun: Callable[..., Any],
    argnums: Argnums = 0,
    *,
    argnames: str | Sequence[str] | None = None,
    has_aux: bool = False,
    unconnected: str = "zero",
    _what: str = "value_and_grad",
) -> Callable[..., Any]:
    """Return a function that computes the value and the gradient of a scalar function.

    Parameters and errors are those of `grad`.

    Returns
    -------
    callable
        Returns ``(J, gradient)``, or ``((J, aux), gradient)`` with ``has_aux=True``.

    Examples
    --------
    >>> import wengert as wg
    >>> value, slope = wg.value_and_grad(lambda x: x**2)(3.0)
    >>> float(value), float(slope)
    (9.0, 6.0)
    """
    check_policy(unconnected)

    @functools.wraps(fun, updated=())
    def both(*args: Any, **kwargs: Any) -> Any:
        what = f"{_what} of {name_of(fun)}"
        call = Call(fun, args, kwargs, argnums, argnames, what)
        out = call()
        out, aux = _split_aux(out, has_aux, what)
        check_scalar(out, what)
        result = Result([out], call.nodes, call.variables)
        bars = [None] * len(call.nodes)
        if result.connected:
            seed = np.ones_like(out.node.value)[()]
            bars = result.pull({out.node: seed})
        bars = fill(bars, call.variables, unconnected, what)
        value = result.plain(out)
        if has_aux:
            value = (value, tree.tree_map(result.plain, aux))
        return value, call.results(bars)

    return both


class Result:
    """What a call of the function left behind: its outputs, and the tape back to the variables."""

    def __init__(self, outs: Sequence[Any], nodes: Sequence[Node], variables: Variables) -> None:
        self.targets = list(nodes)
        self.out_nodes = [o.node if isinstance(o, Handle) else None for o in outs]
        live = [n for n in self.out_nodes if type(n) is Node]
        self.connected = bool(live)
        self.tape: Tape = tape_between(live, set(nodes))
        self.recorded = self.tape.foreign or any(_stands_for_recorded(n) for n in nodes)
        self.tensors = any(isinstance(x, Handle) for x in variables.leaves)

    def pull(self, seeds: dict[Node, Any]) -> list[Any]:
        """Cotangents of the variables."""
        live = {n: t for n, t in seeds.items() if type(n) is Node}
        return pullback(live, self.targets, self.recorded or _any_recorded(seeds), self.tape)

    def push(self, tangents: Sequence[Any]) -> list[Any]:
        """Tangents of the outputs, None for one that depends on no variable."""
        dots = dict(zip(self.targets, tangents, strict=True))
        recorded = self.recorded or _any_recorded(dots)
        live = [n for n in self.out_nodes if type(n) is Node]
        found = iter(pushforward(live, dots, recorded, self.tape))
        return [next(found) if type(n) is Node else None for n in self.out_nodes]

    def plain(self, x: Any) -> Any:
        """An output as the caller gets it."""
        if not isinstance(x, Handle) or self.recorded:
            return x
        return wrap(constant(x.node.value)) if self.tensors else x.node.value


def _stands_for_recorded(node: Node) -> bool:
    return type(node.args[0]) is Node


def _any_recorded(items: dict[Node, Any]) -> bool:
    return any(isinstance(t, Handle) and type(t.node) is Node for t in items.values())


def check_policy(unconnected: str) -> None:
    """Refuse an unknown policy."""
    if unconnected not in POLICIES:
        raise ValueError(f"unconnected={unconnected!r} is not one of {POLICIES}")


def check_scalar(out: Any, what: str) -> None:
    """Refuse an output that is not one real number."""
    spec = spec_of(out.node.value if isinstance(out, Handle) else out)
    if spec is None or isinstance(spec, tuple):
        given = f"a {type(out).__name__}"
    elif spec.shape == () and spec.dtype.kind == "f":
        return
    else:
        given = str(spec)
    remedy = "Sum the result, or use wengert.jacobian"
    if isinstance(out, tuple):
        remedy = "Return one number, or pass has_aux=True to return (value, aux)"
    elif spec is not None and not isinstance(spec, tuple) and spec.dtype.kind == "c":
        remedy = "Take its real part, abs, or another real function of it"
    elif spec is not None and not isinstance(spec, tuple) and spec.shape == ():
        remedy = "An integer has no derivative: compute it in floating point"
    raise NotScalarError(f"{what}: it returned {given}, not one real number. {remedy}"
                         f"{at(user_line())}.")


def _split_aux(out: Any, has_aux: bool, what: str) -> tuple[Any, Any]:
    if not has_aux:
        return out, None
    if not isinstance(out, tuple) or len(out) != 2:
        raise StructureError(
            f"{what}: has_aux=True, but it returned a {type(out).__name__} and not a pair. "
            f"Return (value, aux){at(user_line())}."
        )
    return out


def fill(bars: list[Any], variables: Variables, unconnected: str, what: str) -> list[Any]:
    """Zeros for variables that nothing depends on, or the caller's choice of complaint."""
    for k, bar in enumerate(bars):
        if bar is not None:
            continue
        if unconnected != "zero":
            place = tree.paths(variables.restore(range(len(variables.nodes))))[variables.slots[k]]
            message = (
                f"{what}: the output does not depend on the argument at {place}. Its derivative "
                "is zero; if that is a surprise, look for a conversion to plain numbers, an "
                f"integer cast, a comparison or stop_gradient on the way{at(user_line())}."
            )
            if unconnected == "raise":
                raise UnconnectedError(message)
            warnings.warn(message, UnconnectedWarning, stacklevel=3)
        bars[k] = zeros_like(variables.nodes[k])
    return bars


def match(given: Any, leaves: Sequence[Any], structure: Any, what: str, noun: str) -> list[Any]:
    """Seeds or tangents for the leaves: the same structure and shapes, cast to their dtypes."""
    items, other = tree.flatten(given)
    if other != structure:
        raise StructureError(
            f"{what}: the {noun} have structure {other}, but {structure} is needed"
            f"{at(user_line())}."
        )
    fitted = []
    for item, leaf in zip(items, leaves, strict=True):
        spec = spec_of(leaf)
        if spec is None or spec.dtype.kind not in "fc":
            fitted.append(None)
            continue
        if item is None:
            fitted.append(np.zeros(spec.shape, spec.dtype)[()])
            continue
        value = item if isinstance(item, Handle) else np.asarray(item)
        shape = spec_of(value.node.value).shape if isinstance(item, Handle) else value.shape
        if shape != spec.shape:
            raise ShapeError(
                f"{what}: a {noun[:-1]} has shape {shape}, but what it belongs to has shape "
                f"{spec.shape}. Give them the same shape{at(user_line())}."
            )
        fitted.append(cast(value, spec.dtype)[()])
    return fitted


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
    what = f"vjp of {name_of(fun)}"
    variables = Variables(primals, what)
    out, aux = _split_aux(fun(*variables.handles()), has_aux, what)
    outs, structure = tree.flatten(out)
    result = Result(outs, variables.nodes, variables)
    values = [o.node.value if isinstance(o, Handle) else o for o in outs]

    def pull(cotangents: Any) -> Any:
        """Cotangents of the primals, given cotangents of the outputs."""
        seeds: dict[Node, Any] = {}
        fitted = match(cotangents, values, structure, what, "cotangents")
        for node, t in zip(result.out_nodes, fitted, strict=True):
            if node is not None and t is not None:
                seeds[node] = seeds[node] + t if node in seeds else t
        bars = result.pull(seeds) if result.connected else [None] * len(variables.nodes)
        return variables.restore(variables.like(fill(bars, variables, "zero", what)))

    outputs = tree.unflatten(structure, [result.plain(o) for o in outs])
    return (outputs, pull, tree.tree_map(result.plain, aux)) if has_aux else (outputs, pull)


def linearize(fun: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
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
    return _linearize(fun, primals, f"linearize of {name_of(fun)}")


def _linearize(fun: Callable[..., Any], primals: tuple[Any, ...], what: str) -> Any:
    variables = Variables(primals, what)
    outs, structure = tree.flatten(fun(*variables.handles()))
    result = Result(outs, variables.nodes, variables)

    def push(*tangents: Any) -> Any:
        """Tangents of the outputs, given tangents of the primals."""
        values = [
            x.node.value if isinstance(x, Handle) else x for x in variables.leaves
        ]
        fitted = match(tangents, values, variables.structure, what, "tangents")
        dots = result.push([fitted[i] for i in variables.slots])
        return tree.unflatten(
            structure, [_tangent(d, o, result) for d, o in zip(dots, outs, strict=True)]
        )

    return tree.unflatten(structure, [result.plain(o) for o in outs]), push


def _tangent(dot: Any, out: Any, result: Result) -> Any:
    if dot is None:
        value = out.node.value if isinstance(out, Handle) else out
        spec = spec_of(value)
        dot = None if spec is None else np.zeros(spec.shape, spec.dtype)[()]
    return wrap(constant(dot)) if result.tensors and not isinstance(dot, Handle) else dot


def jvp(
    fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[Any, Any]:
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
    out, push = _linearize(fun, tuple(primals), f"jvp of {name_of(fun)}")
    return out, push(*tangents)


class _Stop(Operation):
    """The identity, with a derivative that is zero by decree."""

    kind = "view"
    discrete = True

    def run(self, x: Any) -> Any:  # type: ignore[override]
        """The operand."""
        return x


_stop = register(_Stop("stop_gradient", "The identity, with a derivative of zero."))


def stop_gradient(x: Any) -> Any:
    """The same value, as a constant: derivatives do not pass.

    Parameters
    ----------
    x : array, Tensor or nested container of them

    Examples
    --------
    >>> import wengert as wg
    >>> float(wg.grad(lambda x: x * wg.stop_gradient(x))(3.0))
    3.0
    """
    return tree.tree_map(lambda leaf: _stop(leaf) if isinstance(leaf, Handle) else leaf, x)  # type: ignore[operator]
