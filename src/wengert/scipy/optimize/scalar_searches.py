"""Minima of functions of one variable by the names of the methods: brent, golden, fminbound.

They are `minimize_scalar` with other arguments and results.

    brent, golden   from a bracket
    fminbound       in an interval
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import scipy.optimize

from ..dispatch import converted_when_called
from .equations import uses_tensors
from .scalar_minimization import minimize_scalar

__all__ = ["brent", "fminbound", "golden"]

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
