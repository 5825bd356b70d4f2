"""Differential operators with autograd's names, signatures and conventions.

    grad, value_and_grad, grad_and_aux, grad_named, multigrad_dict    of real scalar functions
    elementwise_grad (egrad), deriv, holomorphic_grad                 of elementwise functions
    jacobian, hessian                                                 matrices
    make_vjp, make_jvp, make_hvp, make_ggnvp                          linear maps at a point
    hessian_tensor_product, tensor_jacobian_product                   products with a tensor
    checkpoint                                                        recompute to save memory

Each takes a function and the index of an argument (or a list of indices), and returns a function of
the same arguments.  Arguments may be nested containers of arrays.

Complex numbers: autograd's cotangents are the conjugates of wengert's, so they are conjugated on
input and output.
"""

from __future__ import annotations

import inspect
import warnings
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert._engine.autodiff import jacobians, jvp_vjp
from wengert._engine.autodiff.checkpoint import checkpoint as _checkpoint
from wengert._engine.core.user_functions import signature_of

from ...errors import NotDifferentiableError, at, user_line
from .errors import NotRealError
from .vspace import conjugated, fitted, vspace
from .wrap_util import get_name, unary_to_nary

__all__ = [
    "checkpoint",
    "deriv",
    "egrad",
    "elementwise_grad",
    "grad",
    "grad_and_aux",
    "grad_named",
    "hessian",
    "hessian_tensor_product",
    "hessian_vector_product",
    "holomorphic_grad",
    "hvp",
    "jacobian",
    "make_ggnvp",
    "make_hvp",
    "make_jvp",
    "make_jvp_reversemode",
    "make_vjp",
    "multigrad_dict",
    "tensor_jacobian_product",
    "value_and_grad",
    "vector_jacobian_product",
]

# ---- linear maps at a point ----------------------------------------------------------------------


@unary_to_nary
def make_vjp(fun: Callable[..., Any], x: Any) -> tuple[Callable[[Any], Any], Any]:
    """``make_vjp(fun, argnum=0)(*args)`` is a pair: the pullback g -> g J, and the value.

    Examples
    --------
    >>> from wengert.compat.autograd import make_vjp
    >>> vjp, value = make_vjp(lambda z: z**2)(1.0 + 2.0j)
    >>> vjp(1.0)
    np.complex128(2+4j)
    """
    value, pull = jvp_vjp.vjp(fun, x)

    def vjp(g: Any) -> Any:
        return conjugated(pull(conjugated(fitted(g, value)))[0])

    return vjp, value


@unary_to_nary
def make_jvp(fun: Callable[..., Any], x: Any) -> Callable[[Any], tuple[Any, Any]]:
    """``make_jvp(fun, argnum=0)(*args)`` is a function v -> (value, J v), by forward mode."""

    def jvp(v: Any) -> tuple[Any, Any]:
        return jvp_vjp.jvp(fun, (x,), (fitted(v, x),))

    return jvp


@unary_to_nary
def make_jvp_reversemode(fun: Callable[..., Any], x: Any) -> Callable[[Any], Any]:
    """``make_jvp_reversemode(fun, argnum=0)(*args)`` is a function v -> J v."""
    return lambda v: jvp_vjp.jvp(fun, (x,), (fitted(v, x),))[1]


# ---- gradients -----------------------------------------------------------------------------------


def _seed(value: Any, what: str) -> Any:
    """The seed 1, for a value that is a real number."""
    space = vspace(value)
    if space.size != 1 or space.iscomplex or space.is_discrete:
        raise NotRealError(
            f"{what} of a function that returned {space}, not a real number. Use jacobian, "
            f"elementwise_grad or holomorphic_grad{at(user_line())}."
        )
    return space.ones()


@unary_to_nary
def grad(fun: Callable[..., Any], x: Any) -> Any:
    """
    Returns a function which has the arguments of a real scalar function, and gives its gradient.

    ``grad(fun, argnum=0)(*args)`` is the gradient with respect to the argument of that index.

    Examples
    --------
    >>> import wengert.compat.autograd.numpy as np
    >>> from wengert.compat.autograd import grad
    >>> float(grad(np.tanh)(0.0))
    1.0
    >>> grad(lambda z: np.real(z**2))(1.0 + 2.0j)
    np.complex128(2+4j)
    """
    vjp, value = make_vjp(fun)(x)
    return vjp(_seed(value, "grad"))


@unary_to_nary
def value_and_grad(fun: Callable[..., Any], x: Any) -> tuple[Any, Any]:
    """``value_and_grad(fun, argnum=0)(*args)`` is the value and the gradient."""
    vjp, value = make_vjp(fun)(x)
    return value, vjp(_seed(value, "value_and_grad"))


@unary_to_nary
def grad_and_aux(fun: Callable[..., Any], x: Any) -> tuple[Any, Any]:
    """``grad_and_aux(fun, argnum=0)(*args)``, of a function that returns (value, anything)."""
    value, pull, aux = jvp_vjp.vjp(fun, x, has_aux=True)
    return conjugated(pull(_seed(value, "grad_and_aux"))[0]), aux


def grad_named(fun: Callable[..., Any], argname: str) -> Callable[..., Any]:
    """The gradient with respect to the argument of that name."""
    return grad(fun, list(signature_of(fun).parameters).index(argname))


def multigrad_dict(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Gradients with respect to all arguments, including defaults, as a dict by name."""
    signature = signature_of(fun)

    def of_bound(arguments: dict[str, Any]) -> Any:
        bound = inspect.BoundArguments(signature, OrderedDict(arguments))
        return fun(*bound.args, **bound.kwargs)

    def of_arguments(*args: Any, **kwargs: Any) -> dict[str, Any]:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        found = grad(of_bound)(dict(bound.arguments))
        return OrderedDict((name, found[name]) for name in bound.arguments)

    of_arguments.__name__ = f"multigrad_dict_of_{get_name(fun)}"
    return of_arguments


@unary_to_nary
def elementwise_grad(fun: Callable[..., Any], x: Any) -> Any:
    """``elementwise_grad(fun, argnum=0)(*args)``: the sum of each column of the Jacobian.

    For an elementwise function this is its derivative.

    Examples
    --------
    >>> import wengert.compat.autograd.numpy as np
    >>> from wengert.compat.autograd import elementwise_grad
    >>> elementwise_grad(np.square)(np.array([1.0, 2.0]))
    array([2., 4.])
    """
    vjp, value = make_vjp(fun)(x)
    space = vspace(value)
    if space.iscomplex:
        raise NotDifferentiableError(
            f"elementwise_grad of a function that returned {space}: it is for real values. Use "
            f"holomorphic_grad{at(user_line())}."
        )
    return vjp(space.ones())


egrad = elementwise_grad


@unary_to_nary
def deriv(fun: Callable[..., Any], x: Any) -> Any:
    """``deriv(fun, argnum=0)(*args)``: the derivative along a tangent of ones, by forward mode."""
    return make_jvp(fun)(x)(vspace(x).ones())[1]


@unary_to_nary
def holomorphic_grad(fun: Callable[..., Any], x: Any) -> Any:
    """``holomorphic_grad(fun, argnum=0)(*args)``: f'(z) of a holomorphic function."""
    if not vspace(x).iscomplex:
        warnings.warn("Input to holomorphic_grad is not complex", stacklevel=4)
    return grad(lambda z: np.real(fun(z)))(x)


# ---- matrices ------------------------------------------------------------------------------------


@unary_to_nary
def jacobian(fun: Callable[..., Any], x: Any) -> Any:
    """``jacobian(fun, argnum=0)(*args)``, of shape value.shape + x.shape.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.compat.autograd import jacobian
    >>> jacobian(lambda x: x**2)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    """
    if not vspace(x).iscomplex:
        try:
            return jacobians.jacobian(fun)(x)
        except NotDifferentiableError:  # a primitive has no forward mode, which autograd never uses
            return jacobians.jacobian(fun, mode="rev")(x)
    vjp, value = make_vjp(fun)(x)
    space = vspace(value)
    if space.iscomplex or space.shape is None:
        raise NotDifferentiableError(
            f"jacobian with respect to complex numbers of a function that returned {space}. "
            f"Differentiate its real and imaginary parts separately{at(user_line())}."
        )
    rows = [vjp(unit) for unit in space.standard_basis()]
    shape = (*space.shape, *vspace(x).shape)  # type: ignore[misc]
    return np.reshape(np.stack(rows), shape) if rows else np.zeros(shape, vspace(x).dtype)


@unary_to_nary
def hessian(fun: Callable[..., Any], x: Any) -> Any:
    """``hessian(fun, argnum=0)(*args)``, of shape value.shape + x.shape + x.shape."""
    return jacobian(jacobian(fun))(x)


@unary_to_nary
def make_hvp(fun: Callable[..., Any], x: Any) -> Any:
    """``make_hvp(fun, argnum=0)(*args)`` is a pair: v -> H v at the point, and the gradient."""
    return make_vjp(grad(fun))(x)


def hessian_tensor_product(fun: Callable[..., Any], argnum: int = 0) -> Callable[..., Any]:
    """H v, as a function of the arguments of `fun` followed by a tensor v.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.compat.autograd import hessian_vector_product
    >>> f = lambda x: np.sum(x**3)
    >>> hessian_vector_product(f)(np.array([1.0, 2.0]), np.array([1.0, 0.0]))
    array([6., 0.])
    """
    gradient = grad(fun, argnum)

    def product(*args: Any, **kwargs: Any) -> Any:
        *given, v = args
        try:
            return make_jvp(gradient, argnum)(*given, **kwargs)(v)[1]
        except NotDifferentiableError:  # a primitive has no forward mode: reverse over reverse
            return grad(lambda *xs, **kw: np.tensordot(gradient(*xs, **kw), v, np.ndim(v)), argnum)(
                *given, **kwargs
            )

    return product


hessian_vector_product = hessian_tensor_product
hvp = hessian_tensor_product


def tensor_jacobian_product(fun: Callable[..., Any], argnum: int = 0) -> Callable[..., Any]:
    """v J, as a function of the arguments of `fun` followed by a tensor v.

    `v` may have fewer axes than the value; then the last axes of the value remain.
    """

    def product(*args: Any, **kwargs: Any) -> Any:
        v = args[-1]
        return np.tensordot(v, fun(*args[:-1], **kwargs), np.ndim(v))

    return jacobian(product, argnum)


vector_jacobian_product = tensor_jacobian_product


def _half_square(x: Any) -> Any:
    return 0.5 * np.sum(x**2, axis=-1)


def make_ggnvp(
    f: Callable[..., Any], g: Callable[..., Any] = _half_square, f_argnum: int = 0
) -> Callable[..., Any]:
    """``make_ggnvp(f, g, f_argnum=0)(*args)`` is v -> J' H J v: J of `f`, H the Hessian of `g`.

    The product of a vector with the generalized Gauss-Newton matrix of g(f(x)).
    """

    @unary_to_nary
    def at_point(fun: Callable[..., Any], x: Any) -> Callable[[Any], Any]:
        pull, value = make_vjp(fun)(x)
        curvature = make_hvp(g)(value)[0]
        push = make_jvp(fun)(x)
        return lambda v: pull(curvature(push(v)[1]))

    return at_point(f, f_argnum)


def checkpoint(fun: Callable[..., Any]) -> Callable[..., Any]:
    """`fun`, with intermediate values recomputed in the backward pass instead of stored."""
    return _checkpoint(fun)
