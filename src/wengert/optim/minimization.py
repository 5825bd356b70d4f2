"""minimize, least_squares: SciPy's methods with exact compiled derivatives, for containers.

    Raveled        conversion between containers of one structure and vectors; functions, bounds
    minimize       a scalar function: L-BFGS-B, BFGS, conjugate gradients, trust regions, ...
    least_squares  a sum of squares: Gauss-Newton with trust regions, Levenberg-Marquardt

SciPy's methods work on vectors.  A function that unpacks a vector itself compiles to one program
whose gradient is a vector and whose Hessian is a matrix.

`scipy.optimize` minimizes functions of one vector.  Here the variables may be any container of
arrays, and each method gets the derivatives that it can use: gradient, Hessian-vector product,
Hessian, or Jacobian of the residuals, each compiled to one function.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert._engine.autodiff.grad import grad, value_and_grad
from wengert._engine.autodiff.jacobians import hessian, jacobian
from wengert._engine.core import display, pytree
from wengert._engine.core.handle import Handle, value_of
from wengert._engine.core.lazy_import import LazyModule
from wengert._engine.jit import jit
from wengert.errors import ArgumentError, DtypeError, ShapeError, at, user_line

Vector = np.ndarray[Any, Any]


class Raveled:
    """Conversion between containers of one structure and vectors; dicts in insertion order.

    Parameters
    ----------
    x : container of arrays
        Real numbers, arbitrarily nested; integers become float64.
    what : str
        Name of the caller, for error messages.

    Raises
    ------
    DtypeError
        An array of complex numbers, strings or objects.
    ArgumentError
        No numbers at all.

    Examples
    --------
    >>> import numpy as np
    >>> shape = Raveled({"a": np.zeros((2, 2)), "b": 1.0}, "f")
    >>> shape.vector({"a": np.eye(2), "b": 5.0})
    array([1., 0., 0., 1., 5.])
    >>> shape.container(np.arange(5.0))["a"]
    array([[0., 1.],
           [2., 3.]])
    """

    def __init__(self, x: Any, what: str) -> None:
        leaves, self.structure = pytree.flatten(x)
        self._order = pytree.insertion_order(x)
        leaves = [leaves[k] for k in self._order]
        arrays = [np.asarray(value_of(leaf)) for leaf in leaves]
        for array in arrays:
            if array.dtype.kind not in "fiub":
                raise DtypeError(
                    f"{what}: x0 contains {array.dtype}, which is not real. Pass real arrays; "
                    f"split complex ones into real and imaginary parts{at(user_line())}."
                )
        self.shapes = [array.shape for array in arrays]
        self.dtypes = [a.dtype if a.dtype.kind == "f" else np.dtype(float) for a in arrays]
        self.sizes = [array.size for array in arrays]
        if not any(self.sizes):
            raise ArgumentError(
                f"{what}: x0 contains no numbers. Pass an initial guess of the variables"
                f"{at(user_line())}."
            )

    def _key(self) -> Any:
        return self.structure, tuple(self._order), tuple(self.shapes), tuple(self.dtypes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Raveled) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def vector(self, x: Any) -> Vector:
        """A container of this structure as a float64 vector."""
        leaves = pytree.flatten(x)[0]
        return np.concatenate([np.ravel(value_of(leaves[k])).astype(float) for k in self._order])

    def container(self, v: Any) -> Any:
        """A vector, which may be recorded or traced, as a container."""
        leaves: list[Any] = [None] * len(self._order)
        begin = 0
        for k, shape, dtype, size in zip(
            self._order, self.shapes, self.dtypes, self.sizes, strict=True
        ):
            leaf = np.reshape(v[begin : begin + size], shape) if shape else v[begin]
            leaves[k] = leaf if leaf.dtype == dtype else leaf.astype(dtype)
            begin += size
        return pytree.unflatten(self.structure, leaves)

    def with_vectors(self, fun: Callable[..., Any]) -> Callable[..., Any]:
        """A function of containers as a function of vectors."""

        def flat(v: Any, *args: Any) -> Any:
            return fun(self.container(v), *args)

        flat.__name__ = getattr(fun, "__name__", "fun")
        return flat

    def bounds(self, given: Any, what: str) -> tuple[Vector, Vector]:
        """Lower and upper bounds as vectors, from two containers or numbers, or tensors."""
        if not (isinstance(given, tuple | list) and len(given) == 2):
            raise ArgumentError(
                f"{what}: bounds was given a {type(given).__name__}. Pass a pair (lower, upper), "
                f"each a number or a container with the structure of x0{at(user_line())}."
            )
        low, high = (self._bound(b, side, what) for b, side in zip(given, (-1, 1), strict=True))
        is_known = not isinstance(low, Handle) and not isinstance(high, Handle)
        if is_known and np.any(low > high):
            raise ArgumentError(
                f"{what}: {np.sum(low > high)} lower bounds are above the upper bounds. Swap them"
                f"{at(user_line())}."
            )
        return low, high

    def _bound(self, bound: Any, side: int, what: str) -> Vector:
        if bound is None:
            bound = side * math.inf
        leaves, structure = pytree.flatten(bound)
        if len(leaves) == 1 and leaves[0] is bound and np.ndim(bound) == 0:
            leaves = leaves * len(self.shapes)
        elif structure == self.structure:
            leaves = [leaves[k] for k in self._order]
        else:
            raise ArgumentError(
                f"{what}: bounds have the structure {structure}, x0 has {self.structure}. Pass a "
                f"number or a container with the structure of x0{at(user_line())}."
            )
        try:
            wide = [
                np.broadcast_to(side * math.inf if leaf is None else _real(leaf), shape)
                for leaf, shape in zip(leaves, self.shapes, strict=True)
            ]
        except ValueError as error:
            raise ShapeError(
                f"{what}: a bound does not broadcast to x0: {error}{at(user_line())}."
            ) from None
        return np.concatenate([np.ravel(b) for b in wide])


def _real(x: Any) -> Any:
    return x if isinstance(x, Handle) else np.asarray(x, float)


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
