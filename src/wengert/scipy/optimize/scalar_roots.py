"""Roots of functions of one variable.

root_scalar                               all methods, by name
bisect, brentq, brenth, ridder, toms748   roots in an interval
newton                                    Newton, Halley and secant methods, also of arrays
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.optimize

from wengert._engine.autodiff.jvp_vjp import jvp
from wengert._engine.core import display
from wengert._engine.core.handle import Handle, describe
from wengert._engine.core.spec import Spec
from wengert._engine.ops import casts
from wengert.errors import ShapeError, at, user_line

from ..dispatch import converted_when_called, floating
from .bracketing import METHODS, RootLimits, root_in_graph
from .equations import DerivedFunction, Solved, raise_unconverged, solve, uses_tensors
from .solver_operation import Function, Outcome

__all__ = ["bisect", "brenth", "brentq", "newton", "ridder", "root_scalar", "toms748"]

_BRACKETING = ("bisect", "brentq", "brenth", "ridder", "toms748")
_XTOL, _MAXITER = 2e-12, 100  # SciPy's defaults
_RTOL = 4 * float(np.finfo(float).eps)
_SCALAR = Spec((), np.dtype(float))


@dataclass(frozen=True)
class ScalarSolver:
    """`scipy.optimize.root_scalar` with its options; further functions are derivatives."""

    method: str
    xtol: float | None
    rtol: float | None
    maxiter: int | None
    options: tuple[tuple[str, Any], ...] = ()

    def __call__(self, functions: Sequence[Callable[[Any], Any]], starts: Sequence[Any]) -> Outcome:
        """Call SciPy."""
        plain = [lambda x, f=f: float(f(np.float64(x))) for f in functions]
        values = [float(x) for x in starts]
        given: dict[str, Any] = dict(zip(("fprime", "fprime2"), plain[1:], strict=False))
        if self.method in _BRACKETING:
            given["bracket"] = values
        else:
            given.update(zip(("x0", "x1"), values, strict=False))
        found = scipy.optimize.root_scalar(
            plain[0],
            method=self.method,
            xtol=self.xtol,
            rtol=self.rtol,
            maxiter=self.maxiter,
            options=dict(self.options) or None,
            **given,
        )
        return Outcome(
            np.float64(found.root),
            found.converged,
            0 if found.converged else 1,
            found.function_calls,
            found.iterations,
            found,
        )

    def in_graph(self, functions: Sequence[Function], starts: Sequence[Any]) -> Any:
        """The same as a loop of the graph; None for methods that are not written as one."""
        if self.method not in METHODS or self.options:
            return None
        xtol = _XTOL if self.xtol is None else self.xtol
        rtol = _RTOL if self.rtol is None else self.rtol
        maxiter = _MAXITER if self.maxiter is None else self.maxiter
        theirs = getattr(scipy.optimize, self.method)
        theirs(lambda x: x, -1.0, 1.0, (), xtol, rtol, maxiter, disp=False)  # checks the options
        limits = RootLimits(float(xtol), float(rtol), int(maxiter))
        a, b = starts
        return root_in_graph(self.method, functions[0], a, b, limits)


def root_scalar(
    f: Callable[..., Any],
    args: Any = (),
    method: str | None = None,
    bracket: Any = None,
    fprime: Any = None,
    fprime2: Any = None,
    x0: Any = None,
    x1: Any = None,
    xtol: float | None = None,
    rtol: float | None = None,
    maxiter: int | None = None,
    options: dict[str, Any] | None = None,
) -> Any:
    """A root of a function of one variable, as ``scipy.optimize.root_scalar``.

    Parameters
    ----------
    f : callable
        ``f(x, *args)``, a number; captured tensors are differentiated.
    args : tuple
        Further arguments, which are differentiated.
    method : str, optional
        SciPy's names. Newton's and Halley's method use exact derivatives if none are given; the
        default is 'brentq' with a bracket, else 'newton'.
    bracket, x0, x1
        Where the search begins; the derivative with respect to them is zero.
    fprime, fprime2, xtol, rtol, maxiter, options
        As in SciPy.

    Returns
    -------
    RootResults
        `root` is a tensor. In a graph, `converged`, `iterations` and `function_calls` are, too.

    Raises
    ------
    ConvergenceError
        The derivative of the root is needed, and the method has not converged.

    Notes
    -----
    The derivative of the root is ``-df/dtheta / df/dx``, whatever the method.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy import optimize
    >>> def cube_root(a):
    ...     return optimize.root_scalar(lambda x: x**3 - a, bracket=[0, 10]).root
    >>> wg.grad(cube_root)(8.0).round(9), wg.jit(wg.grad(wg.grad(cube_root)))(8.0).round(9)
    (np.float64(0.083333333), np.float64(-0.006944444))
    """
    args = args if isinstance(args, tuple) else (args,)
    called = converted_when_called(f)
    first = x0 if bracket is None else bracket[0]
    starts = [x0, x1] if bracket is None else list(bracket)
    starts = [x for x in starts if x is not None]
    if first is None or not uses_tensors((starts, args), lambda: called(float(first), *args)):
        return scipy.optimize.root_scalar(
            f, args, method, bracket, fprime, fprime2, x0, x1, xtol, rtol, maxiter, options
        )
    if method is None:
        method = "brentq" if bracket is not None else "secant" if x1 is not None else "newton"
        method = "halley" if fprime2 is not None and bracket is None else method
    solver = ScalarSolver(
        method.lower(), xtol, rtol, maxiter, tuple(sorted((options or {}).items()))
    )
    found = _found(called, args, solver, starts, fprime, fprime2)
    return _root_results(found, solver.method)


def _found(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    solver: ScalarSolver,
    starts: Sequence[Any],
    fprime: Any = None,
    fprime2: Any = None,
) -> Solved:
    def number(value: Any, what: str) -> Any:
        value = floating(value)
        if value.shape != ():
            if value.size != 1:
                raise ShapeError(
                    f"{solver.method}: {what} has shape {value.shape}, and must be a number"
                    f"{at(user_line())}."
                )
            value = value.reshape(())
        return casts.astype(value, float)

    def function(x: Any) -> Any:
        value = f(x, *args)
        return number(value[0] if fprime is True else value, "the result of f")

    functions: list[Function | DerivedFunction] = [function]
    orders = {"newton": 1, "halley": 2}.get(solver.method, 0)
    for order, given in zip(range(orders), (fprime, fprime2), strict=False):
        if given is True:
            functions.append(lambda x: number(f(x, *args)[1], "the derivative"))
        elif callable(given):
            functions.append(_given(given, args, number))
        else:
            functions.append(DerivedFunction(order, _slope))
    values = [casts.astype(floating(x), float) for x in starts]
    return solve(solver.method, functions, 0, _SCALAR, solver, values)


def _given(fprime: Any, args: tuple[Any, ...], number: Callable[[Any, str], Any]) -> Function:
    derivative = converted_when_called(fprime)
    return lambda x: number(derivative(x, *args), "the result of fprime")


def _slope(f: Function) -> Function:
    return lambda x: jvp(f, (x,), (np.float64(1.0),))[1]


def _root_results(found: Solved, method: str) -> Any:
    known = found.result
    result = scipy.optimize.RootResults(
        root=found.solution, iterations=0, function_calls=0, flag=0, method=method
    )
    result.iterations, result.function_calls = found.nit, found.nfev
    result.converged = found.success
    if known is not None:
        result.flag = known.flag
    return display.shown_result(result)


_DOC = """A root of a function in an interval, as ``scipy.optimize.{name}``.

    Parameters
    ----------
    f : callable
        ``f(x, *args)``, a number of opposite signs at the ends; captured tensors are
        differentiated.
    a, b : float
        The ends of the interval; the derivative with respect to them is zero.
    args : tuple
        Further arguments, which are differentiated.
    xtol, rtol, maxiter, full_output, disp
        As in SciPy. In a graph `disp` has no effect.

    Returns
    -------
    root : float
    result : RootResults
        Only with ``full_output=True``.

    Raises
    ------
    ValueError
        The signs at the ends are equal.
    ConvergenceError
        The derivative of the root is needed, and the method has not converged.

    See Also
    --------
    root_scalar

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy import optimize
    >>> wg.grad(lambda a: optimize.{name}(lambda x: x * x - a, 0.0, 5.0))(4.0).round(9)
    np.float64(0.25)
    """


def _bracketing(name: str) -> Callable[..., Any]:
    theirs = getattr(scipy.optimize, name)

    def by_bracket(
        f: Callable[..., Any],
        a: Any,
        b: Any,
        args: Any = (),
        xtol: float = 2e-12,
        rtol: float = _RTOL,
        maxiter: int = 100,
        full_output: bool = False,
        disp: bool = True,
        **more: Any,
    ) -> Any:
        args = args if isinstance(args, tuple) else (args,)
        called = converted_when_called(f)
        start = 0.5 if isinstance(a, Handle) else float(a)
        if not uses_tensors((a, b, args), lambda: called(start, *args)):
            return theirs(
                f,
                a,
                b,
                args=args,
                xtol=xtol,
                rtol=rtol,
                maxiter=maxiter,
                full_output=full_output,
                disp=disp,
                **more,
            )
        solver = ScalarSolver(name, xtol, rtol, maxiter, tuple(sorted(more.items())))
        found = _found(called, args, solver, [a, b])
        if disp:
            raise_unconverged(found, name, maxiter)
        return (found.solution, _root_results(found, name)) if full_output else found.solution

    by_bracket.__name__ = by_bracket.__qualname__ = name
    by_bracket.__doc__ = _DOC.format(name=name)
    return by_bracket


bisect = _bracketing("bisect")
brenth = _bracketing("brenth")
brentq = _bracketing("brentq")
ridder = _bracketing("ridder")
toms748 = _bracketing("toms748")


@dataclass(frozen=True)
class NewtonSolver:
    """`scipy.optimize.newton` with its options; further functions are derivatives."""

    tol: float
    maxiter: int
    rtol: float

    def __call__(self, functions: Sequence[Callable[[Any], Any]], starts: Sequence[Any]) -> Outcome:
        """Call SciPy."""
        fprime = functions[1] if len(functions) > 1 else None
        fprime2 = functions[2] if len(functions) > 2 else None
        x1 = starts[1] if len(starts) > 1 else None
        found = scipy.optimize.newton(
            functions[0],
            starts[0],
            fprime,
            (),
            self.tol,
            self.maxiter,
            fprime2,
            x1,
            self.rtol,
            full_output=True,
            disp=False,
        )
        x = np.asarray(found[0]).reshape(np.shape(starts[0]))
        if np.ndim(starts[0]):
            return Outcome(x, bool(np.all(found[1])), 0, -1, -1, None)
        known = found[1]
        return Outcome(
            x[()],
            known.converged,
            0 if known.converged else 1,
            known.function_calls,
            known.iterations,
            known,
        )


def newton(
    func: Callable[..., Any],
    x0: Any,
    fprime: Any = None,
    args: Any = (),
    tol: float = 1.48e-08,
    maxiter: int = 50,
    fprime2: Any = None,
    x1: Any = None,
    rtol: float = 0.0,
    full_output: bool = False,
    disp: bool = True,
) -> Any:
    """A root by Newton's, Halley's or the secant method, as ``scipy.optimize.newton``.

    Parameters
    ----------
    func : callable
        ``func(x, *args)``; of an array it is computed element by element.
    x0 : float or array
        The initial guess, or one for each root.
    fprime, fprime2, x1
        As in SciPy. If neither `fprime` nor `x1` is given, the exact derivative is used.
    args, tol, maxiter, rtol, full_output, disp
        As in SciPy. In a graph `disp` has no effect.

    Returns
    -------
    root : as `x0`
    result : RootResults or tuple
        Only with ``full_output=True``; for an array, whether all have converged.

    Raises
    ------
    ConvergenceError
        The derivative of the root is needed, and the method has not converged.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy import optimize
    >>> a = np.array([4.0, 9.0])
    >>> wg.grad(lambda a: np.sum(optimize.newton(lambda x: x * x - a, np.ones(2))))(a).round(9)
    array([0.25      , 0.16666667])
    """
    args = args if isinstance(args, tuple) else (args,)
    called = converted_when_called(func)
    if not uses_tensors((x0, x1, args), lambda: called(np.asarray(x0, float)[()], *args)):
        return scipy.optimize.newton(
            func, x0, fprime, args, tol, maxiter, fprime2, x1, rtol, full_output, disp
        )
    start = casts.astype(floating(x0), float)
    starts = [start] if x1 is None else [start, casts.astype(floating(x1), float)]
    spec = Spec(describe(start).shape, np.dtype(float))
    functions: list[Function | DerivedFunction] = [
        lambda x: casts.astype(floating(called(x, *args)), float)
    ]
    if callable(fprime):
        given = converted_when_called(fprime)
        functions.append(lambda x: casts.astype(floating(given(x, *args)), float))
    elif x1 is None or callable(fprime2):
        functions.append(DerivedFunction(0, _elementwise_slope))
    if callable(fprime2):
        second = converted_when_called(fprime2)
        functions.append(lambda x: casts.astype(floating(second(x, *args)), float))
    solver = NewtonSolver(tol, maxiter, rtol)
    found = solve("newton", functions, 0, spec, solver, starts)
    if disp and not spec.shape:
        raise_unconverged(found, "newton", maxiter)
    if not full_output:
        return found.solution
    if spec.shape:
        return found.solution, found.success, found.success
    return found.solution, _root_results(found, "newton")


def _elementwise_slope(f: Function) -> Function:
    return lambda x: jvp(f, (x,), (np.ones_like(x),))[1]
