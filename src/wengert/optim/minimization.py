"""SciPy's minimization methods with exact compiled derivatives, for any container of arrays.

`scipy.optimize` minimizes functions of one vector.  Here the variables may be any container of
arrays, and each method gets the derivatives that it can use: gradient, Hessian-vector product,
Hessian, or Jacobian of the residuals, each compiled to one function.

    minimize        a scalar function: L-BFGS-B, BFGS, conjugate gradients, trust regions, ...
    least_squares   a sum of squares: Gauss-Newton with trust regions, Levenberg-Marquardt
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert._engine.autodiff.grad import grad, value_and_grad
from wengert._engine.autodiff.jacobians import hessian, jacobian
from wengert._engine.core import display, pytree
from wengert._engine.core.handle import value_of
from wengert._engine.core.lazy_import import LazyModule
from wengert._engine.jit import jit
from wengert.errors import ArgumentError, at, user_line

from .ravel import Raveled

optimize = LazyModule("scipy.optimize")

DERIVATIVE_FREE = frozenset(("nelder-mead", "powell", "cobyla", "cobyqa"))
WITH_HESSIAN_PRODUCTS = frozenset(("newton-cg", "trust-ncg", "trust-krylov", "trust-constr"))
WITH_HESSIANS = frozenset(("dogleg", "trust-exact"))


def minimize(
    fun: Callable[..., Any],
    x0: Any,
    args: tuple[Any, ...] = (),
    *,
    method: str = "L-BFGS-B",
    bounds: Any = None,
    tol: float | None = None,
    callback: Callable[..., Any] | None = None,
    options: dict[str, Any] | None = None,
    compile: bool = True,
) -> Any:
    """Minimize a scalar function with ``scipy.optimize.minimize``.

    Parameters
    ----------
    fun : callable
        ``fun(x, *args)``, a real number.
    x0 : container of arrays
        Initial guess: lists, tuples, dicts of real arrays, such as ``model.state_dict()``.
    args : tuple
        Further arguments of `fun`, which are held constant.
    method : str, default "L-BFGS-B"
        SciPy's names. Newton-CG, trust-ncg, trust-krylov and trust-constr get Hessian-vector
        products, dogleg and trust-exact the Hessian (n**2 numbers), the others the gradient.
    bounds : pair, optional
        ``(lower, upper)``: numbers, or containers like `x0`; None and infinity mean no bound.
    tol, callback, options
        As in SciPy; `callback` is called with a container.
    compile : bool, default True
        Compile `fun` and its derivatives.

    Returns
    -------
    scipy.optimize.OptimizeResult
        SciPy's result, in which `x` and the gradient (`jac`; `grad` for trust-constr) are
        containers like `x0`. Other vectors and matrices (`hess_inv`) are ordered as the leaves of
        `x0`, dicts in insertion order.

    Raises
    ------
    DtypeError, ArgumentError, ShapeError
        `x0` has no or not only real numbers, or the bounds do not match it.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import optim
    >>> def rosenbrock(x):
    ...     return (1 - x["a"]) ** 2 + 100 * (x["b"] - x["a"] ** 2) ** 2
    >>> found = optim.minimize(rosenbrock, {"a": -1.2, "b": 1.0})
    >>> found.success, found.x["a"].round(4)
    (True, np.float64(1.0))
    """
    shape = Raveled(x0, "minimize")
    derivatives = _derivatives_of(fun, shape, compile)
    name = method.lower()
    known: dict[str, Any] = {}
    if name not in DERIVATIVE_FREE:
        value_and_gradient = derivatives("value_and_gradient")
        known = {"jac": True}

        def objective(v: Any, *args: Any) -> Any:
            value, gradient = value_and_gradient(v, *args)
            return float(_number(value)), np.asarray(value_of(gradient))
    else:
        plain = derivatives("value")

        def objective(v: Any, *args: Any) -> Any:
            return float(_number(plain(v, *args)))

    if name in WITH_HESSIAN_PRODUCTS:
        product = derivatives("product")
        known["hessp"] = lambda v, p, *args: np.asarray(value_of(product(v, p, *args)))
    elif name in WITH_HESSIANS:
        full = derivatives("hessian")
        known["hess"] = lambda v, *args: np.asarray(value_of(full(v, *args)))
    if bounds is not None:
        known["bounds"] = optimize.Bounds(*shape.bounds(bounds, "minimize"))
    if callback is not None:
        known["callback"] = lambda v, *rest: callback(shape.container(v), *rest)
    found = optimize.minimize(
        objective, shape.vector(x0), args, method=method, tol=tol, options=options, **known
    )
    return _with_containers(found, shape)


def least_squares(
    fun: Callable[..., Any],
    x0: Any,
    args: tuple[Any, ...] = (),
    *,
    method: str = "trf",
    bounds: Any = None,
    loss: Any = "linear",
    compile: bool = True,
    **options: Any,
) -> Any:
    """Minimize a sum of squares with ``scipy.optimize.least_squares``.

    Parameters
    ----------
    fun : callable
        ``fun(x, *args)``, the residuals: an array of any shape, or a container of arrays.
    x0 : container of arrays
        Initial guess.
    args : tuple
        Further arguments of `fun`, which are held constant.
    method : {"trf", "dogbox", "lm"}, default "trf"
        Gauss-Newton with trust regions, or Levenberg-Marquardt (no bounds, loss "linear" only).
    bounds : pair, optional
        ``(lower, upper)``: numbers, or containers like `x0`.
    loss : str or callable, default "linear"
        SciPy's robust losses: "soft_l1", "huber", "cauchy", "arctan".
    compile : bool, default True
        Compile the residuals and their Jacobian (m * n numbers).
    **options
        SciPy's options: ftol, xtol, gtol, x_scale, f_scale, max_nfev, verbose, ...

    Returns
    -------
    scipy.optimize.OptimizeResult
        SciPy's result, in which `x` and `grad` are containers like `x0`. `fun` and the rows of
        `jac` are ordered as the residuals, the columns of `jac` as the leaves of `x0`, dicts in
        insertion order.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import optim
    >>> t = np.linspace(0, 1, 20)
    >>> y = 2 * np.exp(-3 * t)
    >>> def residuals(x):
    ...     return x["height"] * np.exp(-x["rate"] * t) - y
    >>> found = optim.least_squares(residuals, {"height": 1.0, "rate": 1.0})
    >>> found.x["rate"].round(6)
    np.float64(3.0)
    """
    shape = Raveled(x0, "least_squares")
    derivatives = _derivatives_of(fun, shape, compile)
    values, matrix = derivatives("residuals"), derivatives("jacobian")
    if bounds is not None:
        options["bounds"] = shape.bounds(bounds, "least_squares")
    found = optimize.least_squares(
        lambda v, *args: np.asarray(value_of(values(v, *args))),
        shape.vector(x0),
        lambda v, *args: np.asarray(value_of(matrix(v, *args))),
        args=args,
        method=method,
        loss=loss,
        **options,
    )
    found.grad = shape.container(found.grad)
    found.x = shape.container(found.x)
    return display.shown_result(found)


# ---- derivatives of functions of a vector ------------------------------------------------------


@functools.lru_cache(maxsize=64)  # so that minimizing a function again does not compile it again
def _cached_derivatives(fun: Any, shape: Raveled, compile: bool) -> Callable[[str], Any]:
    flat = shape.with_vectors(fun)

    def residuals(v: Any, *args: Any) -> Any:
        out = flat(v, *args)
        leaves = pytree.flatten(out)[0]
        return np.concatenate([np.ravel(leaves[k]) for k in pytree.insertion_order(out)])

    def product(v: Any, p: Any, *args: Any) -> Any:
        return grad(lambda w: np.sum(grad(flat)(w, *args) * p))(v)

    makers: dict[str, Callable[[], Any]] = {
        "value": lambda: flat,
        "value_and_gradient": lambda: value_and_grad(flat),
        "product": lambda: product,
        "hessian": lambda: hessian(flat),
        "residuals": lambda: residuals,
        "jacobian": lambda: jacobian(residuals),
    }

    @functools.cache
    def derivative(name: str) -> Any:
        return jit(makers[name]()) if compile else makers[name]()

    return derivative


def _derivatives_of(fun: Any, shape: Raveled, compile: bool) -> Callable[[str], Any]:
    try:
        return _cached_derivatives(fun, shape, compile)
    except TypeError:  # a function that cannot be hashed
        return _cached_derivatives.__wrapped__(fun, shape, compile)


def _number(value: Any) -> Any:
    value = value_of(value)
    if np.ndim(value) != 0:
        raise ArgumentError(
            f"minimize: the function returned an array of shape {np.shape(value)}. Return a "
            f"number, for example a sum of squares, or use least_squares{at(user_line())}."
        )
    return value


def _with_containers(found: Any, shape: Raveled) -> Any:
    gradient = "grad" if "grad" in found else "jac"  # trust-constr: `jac` is of the constraints
    for name in ("x", gradient):
        if name in found:
            found[name] = shape.container(np.asarray(found[name]))
    return display.shown_result(found)
