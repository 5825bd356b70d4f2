"""Parameters of curves that fit data.

Without tensors SciPy is called; otherwise `leastsq` or `least_squares` of the residuals.

curve_fit    parameters and their covariance
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.optimize

from wengert._engine.core.handle import Handle, is_traced, value_of
from wengert._engine.core.user_functions import known_signature
from wengert.errors import ArgumentError, ShapeError, at, user_line

from ..dispatch import array_of, converted_when_called, floating, holds_tensors
from ..linalg import solve_triangular
from .equations import uses_tensors
from .least_squares_problems import covariance_of, has_full_rank, least_squares
from .minimize_solver import Ends, bounds_of, known_values
from .other_functions import leastsq
from .solver_operation import Function

__all__ = ["curve_fit"]


def curve_fit(
    f: Callable[..., Any],
    xdata: Any,
    ydata: Any,
    p0: Any = None,
    sigma: Any = None,
    absolute_sigma: bool = False,
    check_finite: bool | None = None,
    bounds: Any = (-np.inf, np.inf),
    method: str | None = None,
    jac: Any = None,
    *,
    full_output: bool = False,
    nan_policy: str | None = None,
    **kwargs: Any,
) -> Any:
    """Parameters of a curve that fits data, as ``scipy.optimize.curve_fit``.

    Parameters
    ----------
    f : callable
        ``f(xdata, *parameters)``; captured tensors are differentiated.
    xdata, ydata : array
        The data; differentiated.
    p0 : array, optional
        The initial guess, within the bounds by default; its derivative is zero.
    sigma : array, optional
        Standard deviations, or a covariance matrix, of `ydata`; differentiated.
    absolute_sigma, bounds, method, full_output, **kwargs
        As in SciPy; ends of `bounds` may be tensors, which are differentiated.
    check_finite, nan_policy
        As in SciPy, where values are known: not in a graph.
    jac
        Without effect if tensors are given: derivatives are exact.

    Returns
    -------
    popt, pcov : array
        The parameters and their covariance; tensors. If a Jacobian without full rank leaves the
        covariance undetermined, it is infinite, and a warning says so, as in SciPy.
    infodict, mesg, ier
        Only with ``full_output=True``. In a graph the factors of the Jacobian are left out.

    Raises
    ------
    ValueError
        Data that are not finite, `nan_policy` says so, or a covariance matrix of the data that is
        not positive definite.
    ArgumentError
        Data are to be omitted in a graph.
    RuntimeError
        The method did not converge. In a graph it is not known: derivatives raise
        ConvergenceError.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy import optimize
    >>> x = np.linspace(0.0, 4.0, 9)
    >>> def decay(x, a, b):
    ...     return a * np.exp(-b * x)
    >>> def error_of_rate(y):
    ...     popt, pcov = optimize.curve_fit(decay, x, y)
    ...     return np.sqrt(pcov[1, 1])
    >>> y = decay(x, 2.5, 1.3) + 0.1 * np.cos(7.0 * x)
    >>> wg.grad(error_of_rate)(y).round(3)[:4]
    array([ 0.052, -0.214,  0.137, -0.082])
    """
    if "args" in kwargs:
        raise ValueError("'args' is not a supported keyword argument.")
    if not uses_tensors((xdata, ydata, p0, sigma, bounds), lambda: _first(f, xdata, p0)):
        return scipy.optimize.curve_fit(
            f, xdata, ydata, p0, sigma, absolute_sigma, check_finite, bounds, method, jac,
            full_output=full_output, nan_policy=nan_policy, **kwargs,
        )  # fmt: skip
    called = converted_when_called(f)
    x, y, sigma = _checked(_abscissas(xdata), floating(ydata).reshape(-1), sigma, check_finite,
                           nan_policy)  # fmt: skip
    size = _parameters_of(f) if p0 is None else int(np.atleast_1d(array_of(p0)).size)
    ends = [bounds.lb, bounds.ub] if hasattr(bounds, "lb") else list(bounds)
    is_bounded = any([holds_tensors(e) or bool(np.any(np.isfinite(e))) for e in ends])
    start = _feasible(ends, size) if p0 is None else np.atleast_1d(array_of(p0)).reshape(-1)
    whiten = _whitening(sigma, y)

    def residuals(p: Any) -> Any:
        return whiten(floating(called(x, *[p[k] for k in range(size)])).reshape(-1) - y)

    name = method or ("trf" if is_bounded else "lm")
    if name == "lm":
        if is_bounded:
            raise ArgumentError(
                "curve_fit: the method 'lm' does not take bounds. Use 'trf' or 'dogbox'"
                f"{at(user_line())}."
            )
        if y.size != 1 and size > y.size:
            raise TypeError(
                f"The number of func parameters={size} must not exceed the number of data "
                f"points={y.size}"
            )
        found = leastsq(residuals, start, full_output=True, **kwargs)
        if not is_traced(found[4]) and value_of(found[4]) not in (1, 2, 3, 4):
            raise RuntimeError(f"Optimal parameters not found: {found[3]}")
    else:
        found = _by_least_squares(residuals, start, ends, name, kwargs)
    popt, pcov, details, message, code = found
    pcov = _scaled(pcov, details["fvec"], size, absolute_sigma)
    return (popt, pcov, details, message, code) if full_output else (popt, pcov)


def _by_least_squares(
    residuals: Function, start: Any, ends: Any, method: str, kwargs: dict[str, Any]
) -> tuple[Any, ...]:
    """Parameters, covariance, details, message and code, as `leastsq` returns them."""
    if "max_nfev" not in kwargs:
        kwargs["max_nfev"] = kwargs.pop("maxfev", None)
    found = least_squares(residuals, start, bounds=Ends(ends), method=method, **kwargs)
    if not is_traced(found.success) and not found.success:
        raise RuntimeError(f"Optimal parameters not found: {found.get('message', '')}")
    slopes = found.jac
    if has_full_rank(slopes):
        covariance = covariance_of(slopes)
    else:  # as in SciPy: without the directions that do not change the curve
        inverse = np.linalg.pinv(slopes, rcond=np.finfo(float).eps * max(slopes.shape))
        covariance = inverse @ inverse.T
    details = {"nfev": found.nfev, "fvec": found.fun}
    return found.x, covariance, details, found.get("message", ""), found.status


def _scaled(pcov: Any, residuals: Any, size: int, absolute_sigma: bool) -> Any:
    """The covariance, by the variance of the residuals; infinite if it is not determined."""
    free = int(residuals.shape[0]) - size
    if pcov is not None and (absolute_sigma or free > 0):
        return pcov if absolute_sigma else pcov * (residuals @ residuals / free)
    warnings.warn(
        "Covariance of the parameters could not be estimated",
        category=scipy.optimize.OptimizeWarning,
        stacklevel=3,
    )
    return np.full((size, size), np.inf)


def _abscissas(xdata: Any) -> Any:
    """The first argument of the curve: an array, or anything else as it is."""
    if isinstance(xdata, list | tuple | np.ndarray):
        xdata = floating(xdata)
    return xdata


def _checked(
    x: Any, y: Any, sigma: Any, check_finite: bool | None, nan_policy: str | None
) -> tuple[Any, Any, Any]:
    """Data and their errors without the data that are to be omitted.

    Raises
    ------
    ValueError
        Data are missing or not finite.
    ArgumentError
        The policy is unknown, or data are to be omitted in a graph.
    """
    if y.size == 0:
        raise ValueError("`ydata` must not be empty!")
    is_array = isinstance(x, np.ndarray | Handle)
    values = [known_values(v) for v in ([x, y] if is_array else [y]) if not is_traced(value_of(v))]
    if nan_policy is None if check_finite is None else check_finite:
        if not all([np.isfinite(v).all() for v in values]):
            raise ValueError("array must not contain infs or NaNs")
        return x, y, sigma
    if nan_policy is None:
        return x, y, sigma
    if nan_policy == "propagate":
        raise ArgumentError("`nan_policy='propagate'` is not supported by this function.")
    if nan_policy not in ("raise", "omit"):
        raise ArgumentError("nan_policy must be one of {None, 'raise', 'omit'}")
    if nan_policy == "raise":
        if any([np.isnan(v).any() for v in values]):
            raise ValueError("The input contains nan values")
        return x, y, sigma
    return _without_nan(x if is_array else None, y, sigma, values, x)


def _without_nan(x: Any, y: Any, sigma: Any, values: list[Any], given: Any) -> tuple[Any, Any, Any]:
    if len(values) < (1 if x is None else 2):
        raise ArgumentError(
            "curve_fit: nan_policy='omit' in a graph, where it is not known which data are NaN. "
            f"Select the data before the function is traced{at(user_line())}."
        )
    missing = np.isnan(values[-1])
    if x is not None:
        missing = missing | np.isnan(values[0]).any(axis=tuple(range(values[0].ndim - 1)))
    if not missing.any():
        return given, y, sigma
    places = np.flatnonzero(~missing)
    if sigma is not None:
        sigma = array_of(sigma)
        sigma = sigma[places] if sigma.ndim == 1 and sigma.size > 1 else sigma
        sigma = sigma[places][:, places] if sigma.ndim == 2 else sigma
    return given if x is None else x[..., places], y[places], sigma


def _first(f: Callable[..., Any], xdata: Any, p0: Any) -> Any:
    start = np.ones(_parameters_of(f)) if p0 is None else np.atleast_1d(np.asarray(p0, float))
    return converted_when_called(f)(_abscissas(xdata), *start)


def _parameters_of(f: Callable[..., Any]) -> int:
    """The number of parameters of a curve, from its signature."""
    signature = known_signature(f)
    parameters = [] if signature is None else signature.parameters.values()
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    count = len([p for p in parameters if p.kind in kinds]) - 1
    if count < 1:
        raise ValueError("Unable to determine number of fit parameters.")
    return count


def _feasible(ends: Any, size: int) -> Any:
    """SciPy's initial guess: the middle of the bounds, one from a single bound, or one."""
    low, high = bounds_of(Ends(ends), size)
    with np.errstate(invalid="ignore"):
        middle = 0.5 * (low + high)
    above, below = np.isfinite(low), np.isfinite(high)
    single = np.where(above, low + 1.0, np.where(below, high - 1.0, 1.0))
    return np.where(above & below, middle, single)


def _whitening(sigma: Any, y: Any) -> Function:
    """The function that divides residuals by their standard deviations.

    Raises
    ------
    ShapeError
        `sigma` does not match the data.
    ArgumentError
        It is a matrix that is not positive definite.
    """
    if sigma is None:
        return lambda r: r
    sigma = floating(sigma)
    if sigma.size == 1 or sigma.shape == y.shape:
        return lambda r: r / sigma
    if sigma.shape == (y.shape[0], y.shape[0]):
        try:
            factor = np.linalg.cholesky(sigma)
        except np.linalg.LinAlgError as error:
            raise ArgumentError(f"curve_fit: `sigma` must be positive definite. {error}") from error
        return lambda r: solve_triangular(factor, r, lower=True)
    raise ShapeError(
        f"curve_fit: sigma has shape {sigma.shape} for {y.shape[0]} data. Give a standard "
        f"deviation for each, or a covariance matrix{at(user_line())}."
    )
