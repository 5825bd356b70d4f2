"""Systems of equations.

root           all methods of SciPy, with exact Jacobians
fsolve         the same, with MINPACK's options
fixed_point    fixed points, by Steffensen's method or iteration
result_of      SciPy's result object, with tensors
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.optimize

from wengert._engine.autodiff.jacobians import jacobian
from wengert._engine.core import display
from wengert._engine.core.handle import describe
from wengert._engine.core.spec import Spec
from wengert._engine.core.user_functions import original
from wengert._engine.ops import casts
from wengert.errors import ArgumentError, ShapeError, at, user_line

from ..dispatch import array_of, converted_when_called, floating
from .equations import DerivedFunction, Solved, raise_unconverged, solve, uses_tensors
from .solver_operation import Function, Outcome, SolverOptions

__all__ = ["fixed_point", "fsolve", "root"]

_FLAT = ("hybr", "lm", "df-sane")  # methods that flatten the unknowns
_WITH_JACOBIAN = ("hybr", "lm")
_NONLINEAR = "broyden1 broyden2 anderson linearmixing diagbroyden excitingmixing krylov".split()
_METHODS = (*_FLAT, *_NONLINEAR)
_SMALL_RESIDUAL = 1e-8  # relative to that at the initial guess
_ROUNDED_RESIDUAL = 1e-11  # relative to the terms of the equations
_SMALL_STEP = 1e-3  # relative to the solution and its distance from the initial guess


@dataclass(frozen=True)
class RootSolver:
    """`scipy.optimize.root` with its options; the second function, if any, is the Jacobian."""

    method: str
    tol: float | None
    callback: Any
    options: SolverOptions | None

    def __call__(self, functions: Sequence[Callable[[Any], Any]], starts: Sequence[Any]) -> Outcome:
        """Call SciPy."""
        extra = {"jac": functions[1]} if len(functions) > 1 else {}
        found = scipy.optimize.root(
            functions[0],
            starts[0],
            method=self.method,
            tol=self.tol,
            callback=self.callback,
            options=None if self.options is None else dict(self.options.value),
            **extra,
        )
        x = np.asarray(found.x).reshape(np.shape(starts[0]))
        success = bool(found.success)
        if success and self.method == "lm":
            success = _is_root(x, functions, starts[0])
        elif not success and len(functions) > 1:
            success = _is_rounded_root(x, functions)
            found.success = success
        return Outcome(
            x,
            success,
            found.get("status", -1),
            found.get("nfev", -1),
            found.get("nit", -1),
            found,
        )


def _is_root(x: Any, functions: Sequence[Callable[[Any], Any]], start: Any) -> bool:
    """Whether a point with the least sum of squares is a root.

    The residual is small beside that of the guess, or a step of Newton's method would be small.
    MINPACK's lm reports success at minima of the residual, where the Jacobian is nearly singular.
    """
    value = np.reshape(functions[0](x), (-1,))
    size = np.linalg.norm(value)
    if size <= _SMALL_RESIDUAL * np.linalg.norm(np.reshape(functions[0](start), (-1,))):
        return True
    matrix = np.reshape(functions[1](x), (value.size, -1))
    step = np.linalg.lstsq(matrix, value, rcond=None)[0]
    moved = np.linalg.norm(x) + np.linalg.norm(np.subtract(x, start))
    is_small = np.linalg.norm(step) <= _SMALL_STEP * moved
    return bool(is_small and np.linalg.norm(value - matrix @ step) <= 0.5 * size)


def _is_rounded_root(x: Any, functions: Sequence[Callable[[Any], Any]]) -> bool:
    """Whether the terms of all equations balance up to rounding.

    MINPACK's hybr reports a failure if no step improves the root, as for a tolerance of zero.
    """
    value = np.reshape(functions[0](x), (-1,))
    terms = np.reshape(functions[1](x), (value.size, -1)) @ np.reshape(x, (-1,))
    scale = np.max(np.abs(terms) + np.abs(value - terms), initial=0.0)
    return bool(np.max(np.abs(value), initial=0.0) <= _ROUNDED_RESIDUAL * scale)


def root(
    fun: Callable[..., Any],
    x0: Any,
    args: Any = (),
    method: str = "hybr",
    jac: Any = None,
    tol: float | None = None,
    callback: Any = None,
    options: dict[str, Any] | None = None,
) -> Any:
    """A root of a vector function, as ``scipy.optimize.root``.

    Parameters
    ----------
    fun : callable
        ``fun(x, *args)``, of the shape of `x`; captured tensors are differentiated.
    x0 : array
        The initial guess; its derivative is zero.
    args : tuple
        Further arguments, which are differentiated.
    method : str
        All of SciPy's: 'hybr', 'lm', 'broyden1', 'krylov', ...
    jac : bool or callable, optional
        By default the exact Jacobian is used by methods that need one; otherwise as in SciPy.
    tol, callback, options
        As in SciPy.

    Returns
    -------
    OptimizeResult
        `x` and `fun` are tensors. In a graph it has `x`, `fun`, `success`, `status`, `nfev` and
        `nit` only.

    Raises
    ------
    ConvergenceError
        The derivative of a solution is needed, and the method did not converge.
    MatrixError
        The derivative is needed, and the Jacobian is singular.

    Notes
    -----
    The derivative costs one linear system with the Jacobian at the solution.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy import optimize
    >>> def crossing(a):
    ...     f = lambda x: np.array([x[0] ** 2 + x[1] ** 2 - a, x[0] - x[1]])
    ...     return optimize.root(f, np.ones(2)).x[0]
    >>> crossing(8.0).round(9), wg.grad(crossing)(8.0).round(9)
    (np.float64(2.0), np.float64(0.125))
    """
    args = args if isinstance(args, tuple) else (args,)
    called = converted_when_called(fun)
    if not uses_tensors((x0, args), lambda: called(np.asarray(x0, float), *args)):
        return scipy.optimize.root(fun, x0, args, method, jac, tol, callback, options)
    name = method.lower()
    if name not in _METHODS:
        raise ArgumentError(
            f"root: the method {method!r} does not exist. Use one of {', '.join(_METHODS)}"
            f"{at(user_line())}."
        )
    start = floating(x0)
    if name in _FLAT:
        start = start.reshape(-1)
    spec = Spec(describe(start).shape, describe(start).dtype)

    def residual(y: Any) -> Any:
        value = called(y, *args)
        return _like(value[0] if jac is True else value, spec, "root: the result of fun")

    functions: list[Function | DerivedFunction] = [residual]
    if name in _WITH_JACOBIAN:
        functions.append(_jacobian(called, jac, args))
    given = None if options is None else SolverOptions(options)
    solver = RootSolver(name, tol, original(callback), given)
    found = solve(f"root by {name}", functions, 0, spec, solver, [start])
    return result_of(found, residual(found.solution))


def _jacobian(
    fun: Callable[..., Any], jac: Any, args: tuple[Any, ...]
) -> Function | DerivedFunction:
    if jac is True:
        return lambda y: array_of(fun(y, *args)[1])
    if callable(jac):
        given = converted_when_called(jac)
        return lambda y: array_of(given(y, *args))
    return DerivedFunction(0, jacobian)


def _like(value: Any, spec: Spec, what: str) -> Any:
    """The value of a function, with the shape and dtype of the unknowns."""
    value = floating(value)
    if value.shape != spec.shape:
        if value.size != spec.size:
            raise ShapeError(
                f"{what} has shape {value.shape}, and the unknowns have shape {spec.shape}. Their "
                "numbers must be equal; use least_squares for more equations than unknowns"
                f"{at(user_line())}."
            )
        value = value.reshape(spec.shape)
    return value if value.dtype == spec.dtype else casts.astype(value, spec.dtype)


def result_of(found: Solved, fun: Any, **more: Any) -> Any:
    """SciPy's result object, with tensors."""
    result = scipy.optimize.OptimizeResult(found.result or {})
    result.update(x=found.solution, fun=fun, success=found.success, status=found.status, **more)
    for name, value in (("nfev", found.nfev), ("nit", found.nit)):
        if found.result is None or name in found.result:
            result[name] = value
    return display.shown_result(result)


def fsolve(
    func: Callable[..., Any],
    x0: Any,
    args: Any = (),
    fprime: Any = None,
    full_output: bool = False,
    col_deriv: bool = False,
    xtol: float = 1.49012e-08,
    maxfev: int = 0,
    band: Any = None,
    epsfcn: Any = None,
    factor: float = 100,
    diag: Any = None,
) -> Any:
    """A root of a vector function, as ``scipy.optimize.fsolve``.

    The parameters are those of SciPy; the derivative is that of `root`, and the exact Jacobian is
    used if `fprime` is not given.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy import optimize
    >>> wg.grad(lambda a: optimize.fsolve(lambda x: x**3 - a, np.ones(1))[0])(8.0).round(9)
    np.float64(0.083333333)
    """
    args = args if isinstance(args, tuple) else (args,)
    called = converted_when_called(func)
    if not uses_tensors((x0, args), lambda: called(np.atleast_1d(np.asarray(x0, float)), *args)):
        return scipy.optimize.fsolve(
            func, x0, args, fprime, full_output, col_deriv, xtol, maxfev, band, epsfcn, factor, diag
        )
    given = None if fprime is None else converted_when_called(fprime)
    jac = given if given is None or not col_deriv else lambda y, *args: array_of(given(y, *args)).T
    options = {"xtol": xtol, "maxfev": maxfev, "band": band, "factor": factor, "diag": diag}
    if epsfcn is not None:
        options["eps"] = epsfcn
    found = root(func, np.atleast_1d(array_of(x0)), args, "hybr", jac, options=options)
    if not full_output:
        return found.x
    return found.x, dict(found, fvec=found.fun), found.status, found.get("message", "")


@dataclass(frozen=True)
class FixedPointSolver:
    """`scipy.optimize.fixed_point` with its options; the function is the last."""

    xtol: float
    maxiter: int
    method: str

    def __call__(self, functions: Sequence[Callable[[Any], Any]], starts: Sequence[Any]) -> Outcome:
        """Call SciPy."""
        try:
            x = scipy.optimize.fixed_point(
                functions[0], starts[0], (), self.xtol, self.maxiter, self.method
            )
        except RuntimeError as error:  # it has not converged
            if "converge" not in str(error):
                raise
            return Outcome(np.full(np.shape(starts[0]), np.nan), False)
        return Outcome(np.asarray(x).reshape(np.shape(starts[0])), True)


def fixed_point(
    func: Callable[..., Any],
    x0: Any,
    args: Any = (),
    xtol: float = 1e-08,
    maxiter: int = 500,
    method: str = "del2",
) -> Any:
    """A fixed point of a function, as ``scipy.optimize.fixed_point``.

    The parameters are those of SciPy. In a graph, the result is NaN if it has not converged.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy import optimize
    >>> wg.grad(lambda a: optimize.fixed_point(lambda x: (x + a / x) / 2, 1.0))(4.0)
    np.float64(0.25)
    """
    args = args if isinstance(args, tuple) else (args,)
    called = converted_when_called(func)
    if not uses_tensors((x0, args), lambda: called(np.asarray(x0, float), *args)):
        return scipy.optimize.fixed_point(func, x0, args, xtol, maxiter, method)
    start = floating(x0)
    spec = Spec(describe(start).shape, describe(start).dtype)

    def step(y: Any) -> Any:
        return _like(called(y, *args), spec, "fixed_point: the result of func")

    solver = FixedPointSolver(xtol, maxiter, method)
    functions = [step, lambda y: y - step(y)]
    found = solve("fixed_point", functions, 1, spec, solver, [start], count=1)
    raise_unconverged(found, "fixed_point", maxiter)
    return found.solution
