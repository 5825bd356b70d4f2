"""Minimization: SciPy's methods with exact compiled derivatives, for any container of arrays.

`scipy.optimize` has good methods and asks for derivatives of functions of one vector.  Here a
function takes its arguments as it likes to, and everything a method can use is given to it: the
gradient, the product with the Hessian, the Hessian, the Jacobian of the residuals; each is one
compiled function.

    minimize        one number: L-BFGS-B, BFGS, conjugate gradients, Newton and trust regions, ...
    least_squares   a sum of squares: Gauss-Newton in trust regions, Levenberg-Marquardt
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert._engine.autodiff.grad import grad, value_and_grad
from wengert._engine.autodiff.jacobians import hessian, jacobian
from wengert._engine.core import pytree
from wengert._engine.core.handle import value_of
from wengert._engine.core.lazy_import import LazyModule
from wengert._engine.jit import jit
from wengert.errors import ArgumentError, at, user_line

from .ravel import Raveled

optimize = LazyModule("scipy.optimize")

BY_VALUES = frozenset(("nelder-mead", "powell", "cobyla", "cobyqa"))
BY_PRODUCTS = frozenset(("newton-cg", "trust-ncg", "trust-krylov", "trust-constr"))
BY_HESSIANS = frozenset(("dogleg", "trust-exact"))


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
    """Look for a minimum of a function with ``scipy.optimize.minimize``.

    Parameters
    ----------
    fun : callable
        ``fun(x, *args)``, one real number.
    x0 : container of arrays
        Where to begin; lists, tuples, dicts of real arrays, as ``model.state_dict()``.
    args : tuple
        Passed on; not changed.
    method : str, default "L-BFGS-B"
        SciPy's names. Newton-CG, trust-ncg, trust-krylov and trust-constr get products with the
        Hessian, dogleg and trust-exact the Hessian (n**2 numbers), the others the gradient.
    bounds : pair, optional
        ``(lower, upper)``: numbers, or containers like `x0`; None and infinity mean no bound.
    tol, callback, options
        SciPy's; `callback` gets the container.
    compile : bool, default True
        Compile `fun` and what is derived from it.

    Returns
    -------
    scipy.optimize.OptimizeResult
        SciPy's, in which `x` and the gradient (`jac`; `grad` of trust-constr) are containers like
        `x0`; `success` and `message` say whether and why it ended. What stays a vector or a matrix
        (`hess_inv`) has the numbers in the order of `x0`, dicts in the order of their keys.

    Raises
    ------
    DtypeError, ArgumentError, ShapeError
        `x0` or the bounds are not what they have to be.

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
    parts = _parts_of(fun, shape, compile)
    name = method.lower()
    known: dict[str, Any] = {}
    if name not in BY_VALUES:
        slope = parts("slope")
        known = {"jac": True}

        def objective(v: Any, *args: Any) -> Any:
            value, bar = slope(v, *args)
            return float(_number(value)), np.asarray(value_of(bar))
    else:
        plain = parts("value")

        def objective(v: Any, *args: Any) -> Any:
            return float(_number(plain(v, *args)))

    if name in BY_PRODUCTS:
        product = parts("product")
        known["hessp"] = lambda v, p, *args: np.asarray(value_of(product(v, p, *args)))
    elif name in BY_HESSIANS:
        matrix = parts("matrix")
        known["hess"] = lambda v, *args: np.asarray(value_of(matrix(v, *args)))
    if bounds is not None:
        known["bounds"] = optimize.Bounds(*shape.bounds(bounds, "minimize"))
    if callback is not None:
        known["callback"] = lambda v, *rest: callback(shape.container(v), *rest)
    found = optimize.minimize(
        objective, shape.vector(x0), args, method=method, tol=tol, options=options, **known
    )
    return _opened(found, shape)


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
    """Look for a minimum of a sum of squares with ``scipy.optimize.least_squares``.

    Parameters
    ----------
    fun : callable
        ``fun(x, *args)``, the residuals: an array of any shape, or a container of arrays.
    x0 : container of arrays
        Where to begin.
    args : tuple
        Passed on; not changed.
    method : {"trf", "dogbox", "lm"}, default "trf"
        Gauss-Newton in trust regions, or Levenberg-Marquardt (no bounds, loss "linear" only).
    bounds : pair, optional
        ``(lower, upper)``: numbers, or containers like `x0`.
    loss : str or callable, default "linear"
        SciPy's, for outliers: "soft_l1", "huber", "cauchy", "arctan".
    compile : bool, default True
        Compile the residuals and their Jacobian (m * n numbers).
    **options
        SciPy's: ftol, xtol, gtol, x_scale, f_scale, max_nfev, verbose, ...

    Returns
    -------
    scipy.optimize.OptimizeResult
        SciPy's, in which `x` and `grad` are containers like `x0`; `fun` and the rows of `jac` are
        all residuals in one line, the columns of `jac` the numbers of `x0`, both in the order in
        which they are written, dicts in the order of their keys.

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
    parts = _parts_of(fun, shape, compile)
    values, matrix = parts("residuals"), parts("jacobian")
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
    return found


# ---- programs ----------------------------------------------------------------------------------


@functools.lru_cache(maxsize=64)  # a function that is minimized again is not compiled again
def _kept_parts(fun: Any, shape: Raveled, compile: bool) -> Callable[[str], Any]:
    flat = shape.of_vectors(fun)

    def residuals(v: Any, *args: Any) -> Any:
        out = flat(v, *args)
        leaves = pytree.flatten(out)[0]
        return np.concatenate([np.ravel(leaves[k]) for k in pytree.insertion_order(out)])

    def product(v: Any, p: Any, *args: Any) -> Any:
        return grad(lambda w: np.sum(grad(flat)(w, *args) * p))(v)

    makers: dict[str, Callable[[], Any]] = {
        "value": lambda: flat,
        "slope": lambda: value_and_grad(flat),
        "product": lambda: product,
        "matrix": lambda: hessian(flat),
        "residuals": lambda: residuals,
        "jacobian": lambda: jacobian(residuals),
    }

    @functools.cache
    def part(name: str) -> Any:
        return jit(makers[name]()) if compile else makers[name]()

    return part


def _parts_of(fun: Any, shape: Raveled, compile: bool) -> Callable[[str], Any]:
    try:
        return _kept_parts(fun, shape, compile)
    except TypeError:  # a function that cannot be hashed
        return _kept_parts.__wrapped__(fun, shape, compile)


def _number(value: Any) -> Any:
    value = value_of(value)
    if np.ndim(value) != 0:
        raise ArgumentError(
            f"minimize: the function returned an array of shape {np.shape(value)}. Return one "
            f"number, the sum of squares for instance; or use least_squares{at(user_line())}."
        )
    return value


def _opened(found: Any, shape: Raveled) -> Any:
    slope = "grad" if "grad" in found else "jac"  # of trust-constr, `jac` is of the constraints
    for name in ("x", slope):
        if name in found:
            found[name] = shape.container(np.asarray(found[name]))
    return found
