r"""The transformations of scalar functions: grad, value_and_grad; and stop_gradient.

Each makes new nodes for the chosen arguments, runs the function, and runs the backward pass on its
tape (reverse.py).  A derivative is taken with respect to a *node*, so transformations can be nested
in any order, and the result can be differentiated again.

Directional derivatives and pullbacks (jvp, linearize, vjp) are in jvp_vjp.py, matrices of
derivatives (jacobian, hessian, hvp) in jacobians.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

import numpy as np

from wengert._engine.core import pytree
from wengert._engine.core.dispatch import Example, Operation
from wengert._engine.core.handle import Handle
from wengert._engine.core.op import register
from wengert._engine.core.op_facts import Aliasing
from wengert._engine.core.other_libraries import Labelled, may_be_labelled
from wengert._engine.core.other_libraries import calls as labelled_calls
from wengert._engine.core.validation import function
from wengert._engine.kinds.batching import elementwise_batching

from .arguments import Argnums, DifferentiatedCall, check_argnums, derived, name_of
from .pullback import Result, check_policy, check_scalar, fill, split_aux

if TYPE_CHECKING:
    from wengert._engine.core.types import Operand

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


@overload
def grad(
    fun: np.ufunc,
    argnums: Argnums = ...,
    *,
    argnames: str | Sequence[str] | None = ...,
    has_aux: bool = ...,
    unconnected: str = ...,
) -> Callable[..., Any]: ...


@overload
def grad(
    fun: Callable[P, Any],
    argnums: Argnums = ...,
    *,
    argnames: str | Sequence[str] | None = ...,
    has_aux: bool = ...,
    unconnected: str = ...,
) -> Callable[P, Any]: ...


def grad(
    fun: Callable[P, Any],
    argnums: Argnums = 0,
    *,
    argnames: str | Sequence[str] | None = None,
    has_aux: bool = False,
    unconnected: str = "zero",
) -> Callable[P, Any]:
    r"""Return a function that computes the gradient of a scalar function.

    If ``fun`` maps arrays to one real number J, then ``grad(fun)(x)[i, j, ...]`` is the partial
    derivative of J with respect to ``x[i, j, ...]``, exact up to rounding.

    Parameters
    ----------
    fun : callable
        Returns one real number: a float or an array of shape ``()``. May use any Python control
        flow; the branch that is taken is differentiated.
    argnums : int or sequence of int, default 0
        Positional arguments to differentiate with respect to. The others are constants. An argument
        may be a nested container of arrays.
    argnames : str or sequence of str, optional
        Arguments to differentiate with respect to, by name.
    has_aux : bool, default False
        ``fun`` returns ``(J, aux)``; then the gradient function returns ``(gradient, aux)``.
    unconnected : {"zero", "warn", "raise"}
        What to do when J does not depend on a chosen argument.

    Returns
    -------
    callable
        Takes the arguments of ``fun``. Returns, for an int ``argnums`` or one name, a gradient
        with the structure, shapes and dtypes of that argument; for a sequence, a tuple of them.

    Raises
    ------
    NotScalarError
        ``fun`` did not return one real number. Sum it, or use `jacobian`.
    NotDifferentiableError
        A chosen argument is not of floating dtype (cast it: ``x.astype(float)``), or J depends
        on it through an operation registered without a rule.
    UnconnectedError
        J does not depend on a chosen argument and ``unconnected="raise"``.

    See Also
    --------
    value_and_grad : J and its gradient, at the cost of the gradient.
    jvp : one directional derivative, in forward mode.
    jacobian : for functions that return arrays.

    Notes
    -----
    *Units.* The gradient has the unit of J per unit of x.

    *Cost.* A small constant times one evaluation of ``fun``, whatever the size of x (the cheap
    gradient principle [2]_), and memory for every intermediate value.

    *Where no derivative exists* the value follows docs/conventions.md: 0 for \|x\| at 0, half for
    each operand at a tie in ``maximum``. Step functions and conditions have derivative zero.

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
    return derived(fun, _grad, both, has_aux)


def gradient_of(
    fun: Callable[P, Any], argnums: Argnums, argnames: str | Sequence[str] | None, what: str
) -> Callable[P, Any]:
    """`grad` as part of another transformation, which messages name instead."""
    both = value_and_grad(fun, argnums, argnames=argnames, _what=what)
    return derived(fun, _grad, both, False)


def _grad(both: Callable[..., Any], has_aux: bool, /, *args: Any, **kwargs: Any) -> Any:
    value, bars = both(*args, **kwargs)
    return (bars, value[1]) if has_aux else bars


@overload
def value_and_grad(
    fun: np.ufunc,
    argnums: Argnums = ...,
    *,
    argnames: str | Sequence[str] | None = ...,
    has_aux: bool = ...,
    unconnected: str = ...,
    _what: str = ...,
) -> Callable[..., tuple[Any, Any]]: ...


@overload
def value_and_grad(
    fun: Callable[P, R],
    argnums: Argnums = ...,
    *,
    argnames: str | Sequence[str] | None = ...,
    has_aux: bool = ...,
    unconnected: str = ...,
    _what: str = ...,
) -> Callable[P, tuple[R, Any]]: ...


def value_and_grad(
    fun: Callable[P, R],
    argnums: Argnums = 0,
    *,
    argnames: str | Sequence[str] | None = None,
    has_aux: bool = False,
    unconnected: str = "zero",
    _what: str = "value_and_grad",
) -> Callable[P, tuple[R, Any]]:
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
    function(fun, _what)
    check_policy(unconnected)
    what = f"{_what} of {name_of(fun)}"
    check_argnums(argnums, what)
    return derived(
        fun,
        value_and_gradient,
        fun,
        what,
        argnums,
        argnames,
        has_aux,
        unconnected,
        name="value_and_grad",
    )


def value_and_gradient(
    fun: Callable[..., Any],
    what: str,
    argnums: Argnums,
    argnames: str | Sequence[str] | None,
    has_aux: bool,
    unconnected: str,
    /,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """The value and the gradient for the given arguments: what `value_and_grad` returns runs it."""
    try:
        call = DifferentiatedCall(fun, args, kwargs, argnums, argnames, what)
        out = call()
        out, aux = split_aux(out, has_aux, what)
        dtype = check_scalar(out, what)
    except Labelled:
        if not may_be_labelled(fun):
            raise
        return labelled_calls().value_and_grad(
            fun, what, argnums, argnames, has_aux, unconnected, args, kwargs
        )
    result = Result([out], call.nodes, call.variables, call.messages)
    bars = [None] * len(call.nodes)
    if result.connected:
        bars = result.pull({out.node: dtype.type(1)})
    bars = fill(bars, call.variables, unconnected, what)
    value = result.plain(out)
    if has_aux:
        value = (value, pytree.tree_map(result.plain, aux))
    return value, call.results(bars)


class _Stop(Operation):
    """The identity, with a derivative that is defined to be zero."""

    kind = "view"
    aliasing = Aliasing(view=True)
    discrete = True
    oracle = staticmethod(lambda x: x)

    def run(self, x: Operand) -> Any:
        """The operand."""
        return x


_stop = register(_Stop("stop_gradient", "The identity, with a derivative of zero."))


elementwise_batching(_stop)


_stop.spec(lambda x: x)


@_stop.examples
def _stop_examples(rng: np.random.Generator) -> Iterator[Example]:
    yield (rng.normal(size=(2, 3)),), {}


def stop_gradient(x: T) -> T:
    """The same value, treated as a constant by differentiation.

    Parameters
    ----------
    x : array, Tensor or nested container of them

    Examples
    --------
    >>> import wengert as wg
    >>> float(wg.grad(lambda x: x * wg.stop_gradient(x))(3.0))
    3.0
    """
    stopped: T = pytree.tree_map(lambda leaf: _stop(leaf) if isinstance(leaf, Handle) else leaf, x)
    return stopped
