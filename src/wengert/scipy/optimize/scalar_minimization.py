"""Minimization of functions of one variable.

    minimize_scalar    all methods of SciPy
    ScalarMinimizer    the solver
    brent, golden      from a bracket
    fminbound          in an interval

They are `minimize_scalar` with other arguments and results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.optimize

from wengert._engine.autodiff.grad import grad
from wengert._engine.core.spec import Spec
from wengert._engine.ops import casts
from wengert.errors import ArgumentError, ShapeError, at, user_line

from ..dispatch import converted_when_called, floating
from .equations import Equation, Maker, TracedFunctions, solve_equation, uses_tensors
from .optimality import at_bounds, minimal_value_of, projected
from .roots import result_of
from .solver_operation import Function, Outcome, SolverOptions

__all__ = ["minimize_scalar", "brent", "fminbound", "golden"]


@dataclass(frozen=True)
class ScalarMinimizer:
    """`scipy.optimize.minimize_scalar` with its options; the starts are a bracket or bounds."""

    method: str
    tol: float | None
    options: SolverOptions | None

    def __call__(self, functions: Sequence[Function], starts: Sequence[Any]) -> Outcome:
        """Call SciPy."""
        values = tuple([float(x) for x in starts[1:]])
        given = {"bounds" if self.method == "bounded" else "bracket": values} if values else {}
        found = scipy.optimize.minimize_scalar(
            lambda x: float(functions[0](np.float64(x))),
            method=self.method,
            tol=self.tol,
            options=None if self.options is None else dict(self.options.value),
            **given,
        )
        return Outcome(
            np.float64(found.x),
            bool(found.success),
            0,
            found.get("nfev", -1),
            found.get("nit", -1),
            found,
        )


def minimize_scalar(
    fun: Callable[..., Any],
    bracket: Any = None,
    bounds: Any = None,
    args: Any = (),
    method: str | None = None,
    tol: float | None = None,
    options: dict[str, Any] | None = None,
) -> Any:
    """A minimum of a function of one variable, as ``scipy.optimize.minimize_scalar``.

    Parameters
    ----------
    fun : callable
        ``fun(x, *args)``, a number; captured tensors are differentiated.
    bracket : sequence of float, optional
        The derivative with respect to it is zero.
    bounds : pair of float, optional
        May be tensors, which are differentiated.
    args : tuple
        Further arguments, which are differentiated.
    method, tol, options
        As in SciPy.

    Returns
    -------
    OptimizeResult
        `x` and `fun` are tensors.

    Raises
    ------
    ArgumentError
        The method 'bounded' without bounds, or another one with bounds.
    ShapeError
        An end of an interval is not a number.

    Notes
    -----
    The solution is accurate to about the square root of the machine precision, and the derivative
    as well; one step of Newton's method makes both more accurate.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy import optimize
    >>> def lowest(a):
    ...     return optimize.minimize_scalar(lambda x: np.cosh(x - a) + 0.1 * x**2).x
    >>> wg.grad(lowest)(1.0).round(4)
    np.float64(0.8352)
    """
    args = args if isinstance(args, tuple) else (args,)
    called = converted_when_called(fun)
    if not uses_tensors((bracket, bounds, args), lambda: called(0.5, *args)):
        return scipy.optimize.minimize_scalar(fun, bracket, bounds, args, method, tol, options)
    name = (method or ("brent" if bounds is None else "bounded")).lower()
    if (name == "bounded") != (bounds is not None):
        needed = "needs bounds" if bounds is None else "does not take bounds; use 'bounded'"
        raise ArgumentError(f"minimize_scalar: method={name!r} {needed}{at(user_line())}.")
    ends = [] if bounds is None else [_end(b) for b in bounds]
    given = ends or [_end(b) for b in (bracket or ())]

    def objective(x: Any) -> Any:
        return casts.astype(floating(called(x, *args)).reshape(()), float)

    spec = Spec((), np.dtype(float))
    solver = ScalarMinimizer(name, tol, None if options is None else SolverOptions(options))
    what = f"minimize_scalar by {name}"
    traced = TracedFunctions.of([objective], spec, what, ends)
    graphs = {k: traced.made((what, k), make, spec) for k, make in _MADE.items()}
    rule = Equation(what, [graphs["objective"], graphs["condition"]], 1, spec, solver, 1)
    found = solve_equation(rule, traced.consts, [np.float64(0.0), *given])
    of_value = graphs["objective"], graphs["envelope"], traced.consts
    value = minimal_value_of(*of_value, found.solution, found.success, rule.reason())
    return result_of(found, value)


def _end(given: Any) -> Any:
    """The end of an interval as a number.

    Raises
    ------
    ShapeError
        It has more than one element.
    """
    end = casts.astype(floating(given), float)
    if end.size != 1:
        raise ShapeError(
            f"minimize_scalar: an end of the interval has shape {end.shape}; ends must be finite "
            f"scalars{at(user_line())}."
        )
    return end.reshape(())


def _condition(functions: Sequence[Function], ends: Sequence[Any]) -> Function:
    return lambda x: projected(x, grad(functions[0])(x), *ends)


def _envelope(functions: Sequence[Function], ends: Sequence[Any]) -> Function:
    f = functions[0]
    return lambda x: f(at_bounds(x, grad(f)(x), *ends) if ends else x)


_MADE: dict[str, Maker] = {
    "objective": lambda functions, ends: functions[0],
    "condition": _condition,
    "envelope": _envelope,
}


_GOLDEN_TOLERANCE = 1.4901161193847656e-08  # SciPy's default, the square root of the precision


def brent(
    func: Callable[..., Any],
    args: Any = (),
    brack: Any = None,
    tol: float = 1.48e-8,
    full_output: bool = False,
    maxiter: int = 500,
) -> Any:
    """The minimum of a function of one variable, as ``scipy.optimize.brent``.

    The parameters are those of SciPy; the derivative is that of `minimize_scalar`.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy import optimize
    >>> wg.grad(lambda a: optimize.brent(lambda x: np.cosh(x - a)))(1.0).round(6)
    np.float64(1.0)
    """
    return _searched("brent", func, args, brack, tol, full_output, maxiter)


def golden(
    func: Callable[..., Any],
    args: Any = (),
    brack: Any = None,
    tol: float = _GOLDEN_TOLERANCE,
    full_output: bool = False,
    maxiter: int = 5000,
) -> Any:
    """The minimum of a function of one variable, as ``scipy.optimize.golden``.

    The parameters are those of SciPy; the derivative is that of `minimize_scalar`.
    """
    return _searched("golden", func, args, brack, tol, full_output, maxiter)


def _searched(
    name: str,
    func: Callable[..., Any],
    args: Any,
    brack: Any,
    tol: float,
    full_output: bool,
    maxiter: int,
) -> Any:
    args = args if isinstance(args, tuple) else (args,)
    called = converted_when_called(func)
    if not uses_tensors((brack, args), lambda: called(0.5, *args)):
        theirs = getattr(scipy.optimize, name)
        return theirs(func, args, brack, tol, full_output, maxiter)
    options = {"xtol": tol, "maxiter": maxiter}
    found = minimize_scalar(func, brack, None, args, name, options=options)
    if not full_output:
        return found.x
    counts = (found.nit, found.nfev) if name == "brent" else (found.nfev,)
    return found.x, found.fun, *counts


def fminbound(
    func: Callable[..., Any],
    x1: Any,
    x2: Any,
    args: Any = (),
    xtol: float = 1e-5,
    maxfun: int = 500,
    full_output: bool = False,
    disp: int = 1,
) -> Any:
    """The minimum of a function in an interval, as ``scipy.optimize.fminbound``.

    The parameters are those of SciPy; the derivative is that of `minimize_scalar`, also with
    respect to the ends of the interval.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy import optimize
    >>> lowest = lambda a: optimize.fminbound(lambda x: np.cosh(x - a), 0.0, 3.0, xtol=1e-10)
    >>> wg.grad(lowest)(1.0).round(6)
    np.float64(1.0)
    """
    args = args if isinstance(args, tuple) else (args,)
    called = converted_when_called(func)
    if not uses_tensors((x1, x2, args), lambda: called(0.5, *args)):
        return scipy.optimize.fminbound(func, x1, x2, args, xtol, maxfun, full_output, disp)
    options = {"xatol": xtol, "maxiter": maxfun, "disp": disp}
    found = minimize_scalar(func, None, (x1, x2), args, "bounded", options=options)
    if not full_output:
        return found.x
    return found.x, found.fun, found.status, found.nfev
