"""SciPy's functions for equations and least squares that are `root` and `least_squares` by name.

    broyden1, broyden2, anderson, linearmixing, diagbroyden, excitingmixing, newton_krylov
                root with a method, in SciPy's older signature
    leastsq     least_squares by Levenberg and Marquardt

Without tensors, SciPy's functions are called.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.optimize

from wengert._engine.core.handle import is_traced, value_of

from ..dispatch import converted_when_called
from .covariances import covariance_of, has_full_rank, minpack_factors
from .equations import uses_tensors
from .least_squares_problems import least_squares
from .roots import root

__all__ = [
    "anderson", "broyden1", "broyden2", "diagbroyden", "excitingmixing", "leastsq",
    "linearmixing", "newton_krylov",
]  # fmt: skip

_OPTIONS = {
    "iter": "nit", "verbose": "disp", "maxiter": "maxiter", "f_tol": "fatol", "f_rtol": "ftol",
    "x_tol": "xatol", "x_rtol": "xtol", "tol_norm": "tol_norm", "line_search": "line_search",
}  # fmt: skip
_LEAST_TOLERANCE = 1.01 * np.finfo(float).eps  # of least_squares


def _solver(name: str) -> Callable[..., Any]:
    """The function of a name."""
    theirs, method = getattr(scipy.optimize, name), name.replace("newton_", "")
    signature = inspect.signature(theirs)

    def solver(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = dict(bound.arguments)
        fun, x0, callback = given.pop("F"), given.pop("xin"), given.pop("callback")
        if not uses_tensors(x0, lambda: converted_when_called(fun)(np.asarray(x0, float))):
            return theirs(*args, **kwargs)
        options = {o: given.pop(k) for k, o in _OPTIONS.items()}
        options = {k: v for k, v in options.items() if v is not None}
        more = {**given.pop("kw", {}), **given}
        options["jac_options"] = {k: v for k, v in more.items() if v is not None}
        found = root(fun, x0, (), method, callback=callback, options=options)
        if not is_traced(found.success) and not bool(value_of(found.success)):
            raise scipy.optimize.NoConvergence(np.asarray(value_of(found.x)))
        return found.x

    solver.__name__ = solver.__qualname__ = name
    solver.__signature__ = signature  # type: ignore[attr-defined]
    solver.__doc__ = _DOC.format(name=name, method=method)
    return solver


_DOC = """A root of a vector function, as ``scipy.optimize.{name}``.

    The parameters are those of SciPy; the derivative is that of ``root(..., method={method!r})``.

    Raises
    ------
    NoConvergence
        The method has not converged. In a graph it is not known: derivatives raise
        ConvergenceError.

    See Also
    --------
    root : the general function.
    """

broyden1 = _solver("broyden1")
broyden2 = _solver("broyden2")
anderson = _solver("anderson")
linearmixing = _solver("linearmixing")
diagbroyden = _solver("diagbroyden")
excitingmixing = _solver("excitingmixing")
newton_krylov = _solver("newton_krylov")


def leastsq(
    func: Callable[..., Any],
    x0: Any,
    args: Any = (),
    Dfun: Any = None,
    full_output: bool = False,
    col_deriv: bool = False,
    ftol: float = 1.49012e-08,
    xtol: float = 1.49012e-08,
    gtol: float = 0.0,
    maxfev: int = 0,
    epsfcn: Any = None,
    factor: float = 100,
    diag: Any = None,
) -> Any:
    """A minimum of a sum of squares, as ``scipy.optimize.leastsq``.

    The parameters and results are those of SciPy; `epsfcn` and `factor` have no effect, and in a
    graph the factors of the Jacobian are not in `infodict`. The derivative is that of
    `least_squares`, also that of the covariance, which is None if the Jacobian has not full rank.

    See Also
    --------
    least_squares : the general function.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy import optimize
    >>> t = np.linspace(0.0, 1.0, 5)
    >>> def rate(y):
    ...     return optimize.leastsq(lambda p: p[0] * np.exp(-p[1] * t) - y, np.ones(2))[0][1]
    >>> wg.grad(rate)(2.0 * np.exp(-3.0 * t)).round(3)
    array([ 1.243, -1.477, -1.672, -1.25 , -0.808])
    """
    args = args if isinstance(args, tuple) else (args,)
    called = converted_when_called(func)
    if not uses_tensors((x0, args), lambda: called(np.atleast_1d(np.asarray(x0, float)), *args)):
        return scipy.optimize.leastsq(
            func, x0, args, Dfun, full_output, col_deriv, ftol, xtol, gtol, maxfev, epsfcn, factor,
            diag,
        )  # fmt: skip
    slopes: Any = "2-point"
    if Dfun is not None:
        given = converted_when_called(Dfun)
        slopes = (lambda x, *args: given(x, *args).T) if col_deriv else given
    tolerances = [max(tol, _LEAST_TOLERANCE) for tol in (ftol, xtol, gtol)]
    scale: Any = "jac" if diag is None else 1.0 / np.asarray(diag, float)
    found = least_squares(
        func, x0, slopes, method="lm", ftol=tolerances[0], xtol=tolerances[1], gtol=tolerances[2],
        x_scale=scale, max_nfev=maxfev or None, args=args,
    )  # fmt: skip
    code = np.where(found.status < 2, 5 - found.status, found.status - 1)  # MINPACK's
    if not full_output:
        return found.x, code
    full = has_full_rank(found.jac)
    covariance = covariance_of(found.jac) if full else None
    details = {"nfev": found.nfev, "fvec": found.fun, **minpack_factors(found.jac, found.fun)}
    return found.x, covariance, details, found.get("message", ""), code
