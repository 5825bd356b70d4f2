"""Initial value problems by the older interface of SciPy: scipy.integrate.odeint.

Without tensors SciPy's function is called.  With tensors, and in compiled functions, the steps are
those of `rodas5p`, a Rosenbrock method, as problems may be stiff and LSODA cannot say in advance.

    odeint    states at given times, and counts of the steps
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.integrate

from wengert._engine.core.conversion_hook import converted
from wengert._engine.core.handle import is_traced, value_of
from wengert._engine.ops import casts
from wengert._engine.tensor.numpy_dispatch import as_array
from wengert.errors import ArgumentError, ShapeError, at, user_line

from .ivp.initial_value import MESSAGES, IvpOptions, solve, with_nan_derivatives
from .ivp.loop import Status
from .ivp.method import fixed
from .solve_ivp import uses_tensors

__all__ = ["odeint"]

_TOLERANCE = 1.49012e-8  # SciPy's default of both
_SUCCESS = "Integration successful."
_FEWEST_STEPS = 100_000  # that are allowed; LSODA's limit is for methods of higher order


def odeint(
    func: Callable[..., Any],
    y0: Any,
    t: Any,
    args: tuple[Any, ...] = (),
    Dfun: Callable[..., Any] | None = None,
    col_deriv: bool = False,
    full_output: bool = False,
    ml: int | None = None,
    mu: int | None = None,
    rtol: Any = None,
    atol: Any = None,
    tcrit: Any = None,
    h0: float = 0.0,
    hmax: float = 0.0,
    hmin: float = 0.0,
    ixpr: bool = False,
    mxstep: int = 0,
    mxhnil: int = 0,
    mxordn: int = 12,
    mxords: int = 5,
    printmessg: bool = False,
    tfirst: bool = False,
) -> Any:
    """Solve an initial value problem, as ``scipy.integrate.odeint``.

    Parameters
    ----------
    func : callable
        ``func(y, t, *args)``, the derivative of the state; captured tensors are differentiated.
    y0 : array_like or Tensor, shape (n,)
        The initial state; one number is a state of length 1.
    t : array_like or Tensor, shape (m,)
        The times of the result, increasing or decreasing; the first is that of `y0`.
    args : tuple
        Further arguments of `func`, which are differentiated.
    Dfun : callable, optional
        ``Dfun(y, t, *args)``, the Jacobian of `func`, by default computed exactly.
    col_deriv : bool
        Whether `Dfun` returns the transpose.
    rtol, atol : float or array_like
        Tolerances, by default 1.49012e-8.
    h0, hmax, hmin : float
        The first, the largest and the smallest step; by default chosen. With `hmin` a step of this
        size whose error is too large is a failure. Steps to the last time, and to those of `tcrit`,
        may be smaller.
    mxstep : int
        The largest number of steps for each time; with tensors 100,000 are always allowed.
    tfirst : bool
        Whether `t` is the first argument of `func` and `Dfun`.
    tcrit : array_like or Tensor, optional
        Critical times: with tensors, steps end and begin there, as with the `jump_ts` of
        `wengert.integrate.solve`, and the derivative with respect to them is exact.
    full_output : bool
        Whether the numbers of steps are returned, too.
    ml, mu, ixpr, mxhnil, mxordn, mxords, printmessg
        Of no effect with tensors.

    Returns
    -------
    array or Tensor, shape (m, n)
        The states.
    infodict : dict
        With `full_output`: SciPy's dict. With tensors 'hu', 'tcur', 'nst', 'nfe' and 'nje', the
        size, the end and the number of the step that reached a time, and the numbers of evaluations
        until then, are those of `rodas5p` (NaN and 0 of times that are not reached); 'nqu' is its
        order, 5, and 'mused' 2, as of all methods for stiff problems. What only LSODA has is 0:
        'tolsf', 'tsw', 'lenrw' and 'leniw'; 'imxer' is -1. 'message' is empty in graphs.

    Raises
    ------
    ArgumentError, ShapeError
        An argument cannot be.

    Warns
    -----
    scipy.integrate.ODEintWarning
        The last time is not reached. With tensors the states from there on are NaN.

    See Also
    --------
    solve_ivp : with other methods, events and counts.

    Notes
    -----
    The derivative is that of the steps that were taken, as for `solve_ivp`, also with respect to
    the times. Each step factorizes a matrix of shape (n, n): for more than about a hundred states
    of a problem that is not stiff, ``solve_ivp(..., method='DOP853')`` is faster.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.integrate import odeint
    >>> def decayed(k):
    ...     return odeint(lambda y, t, k: -k * y, 2.0, np.array([0.0, 1.0]), (k,))[-1, 0]
    >>> [round(float(x), 6) for x in wg.value_and_grad(decayed)(0.5)]
    [1.213061, -1.213061]
    """
    if not isinstance(args, tuple):
        raise ArgumentError(
            f"odeint: `args` must be a tuple, and is {type(args).__name__}. For one argument write "
            f"args=(x,){at(user_line())}."
        )
    rhs = _by_time(func, args, tfirst)
    times, state = _times(t), as_array(y0)
    state = state if state.shape else state.reshape(1)
    # `rhs` has the arguments already.
    others = {"rtol": rtol, "atol": atol, "args": args, "tcrit": tcrit}
    if not uses_tensors(rhs, (times[0],), state, times, None, (), others):
        given = (args, Dfun, col_deriv, full_output, ml, mu, rtol, atol, tcrit, h0, hmax, hmin)
        more = (ixpr, mxstep, mxhnil, mxordn, mxords, printmessg, tfirst)
        return scipy.integrate.odeint(func, y0, t, *given, *more)
    _check_sizes(hmin, hmax)
    options = IvpOptions(
        "rodas5p",
        _TOLERANCE if rtol is None else rtol,
        _TOLERANCE if atol is None else atol,
        h0 or None,
        hmax or np.inf,
        max(_FEWEST_STEPS, mxstep * times.shape[0]),
        jac=None if Dfun is None else _jacobian(_by_time(Dfun, args, tfirst), col_deriv),
        jump_ts=_critical(tcrit),
        min_step=np.float64(hmin) if hmin else None,
        keeps_steps=bool(full_output),
    )
    return _states(rhs, times, state, options)


def _times(t: Any) -> Any:
    """The times as a vector; those that are known are checked to be in order."""
    times = as_array(t)
    if len(times.shape) != 1 or not times.shape[0]:
        raise ShapeError(
            f"odeint: `t` has shape {tuple(times.shape)}, and must be a vector of at least one "
            f"time{at(user_line())}."
        )
    if not is_traced(times) and not _in_order(np.asarray(value_of(times))):
        raise ArgumentError(
            f"odeint: `t` must be increasing or decreasing; times may be repeated{at(user_line())}."
        )
    return times * 1.0


def _critical(tcrit: Any) -> Any:
    """The critical times as a vector; None if there are none."""
    if tcrit is None:
        return None
    times = as_array(tcrit)
    times = times if times.shape else times.reshape(1)
    return times * 1.0 if times.shape[0] else None


def _in_order(times: Any) -> Any:
    steps = np.diff(times)
    return np.all(steps >= 0) | np.all(steps <= 0)


def _by_time(f: Callable[..., Any], args: tuple[Any, ...], tfirst: bool) -> Callable[..., Any]:
    """A function of time and state."""
    if tfirst:
        return lambda time, y: converted(f)(time, y, *args)
    return lambda time, y: converted(f)(y, time, *args)


def _jacobian(jac: Callable[..., Any], is_transposed: bool) -> Callable[..., Any]:
    def matrix(time: Any, y: Any) -> Any:
        out = as_array(jac(time, y))
        return out.T if is_transposed else out

    return matrix


def _check_sizes(hmin: Any, hmax: Any) -> None:
    """Check the limits of the steps, which are plain numbers."""
    for name, value in (("hmin", hmin), ("hmax", hmax)):
        if is_traced(value) or not float(value_of(value)) >= 0:
            raise ArgumentError(
                f"odeint: {name} is {value}, and must be a number that is known, and not "
                f"negative{at(user_line())}."
            )
    if 0 < float(value_of(hmax)) < float(value_of(hmin)):
        raise ArgumentError(f"odeint: hmin={hmin} is larger than hmax={hmax}{at(user_line())}.")


def _states(rhs: Callable[..., Any], times: Any, state: Any, options: IvpOptions) -> Any:
    """The states at the times, of shape (m, n), and with `full_output` the steps."""
    found = solve(rhs, times[0], times[-1], state, options, "odeint", "times", times)
    status, message = found.outcome.status, ""
    if not is_traced(status):
        message = _message(int(value_of(status)), options)
    if message != _SUCCESS and message:
        warnings.warn(
            f"odeint: {message} The states at later times are NaN{at(user_line())}.",
            scipy.integrate.ODEintWarning,
            stacklevel=3,
        )
    outcome = found.outcome
    if not is_traced(status):
        assert found.values is not None
        outcome = with_nan_derivatives(outcome, found.values)
    _, states, *steps = outcome.saved
    # No step is taken in an interval of length 0; its states move along the flow.
    flow = state + as_array(rhs(times[0], state)) * (times - times[0])[:, None]
    states = np.where(times[0] == times[-1], flow, states)
    states = np.where(_in_order(times), states, np.nan) if is_traced(times) else states
    return (states, _step_info(steps, message)) if options.keeps_steps else states


def _message(status: int, options: IvpOptions) -> str:
    """The result in words, those of SciPy if the last time is reached."""
    if status >= 0:
        return _SUCCESS
    if status == Status.TOO_SMALL and options.min_step is not None:
        return f"The tolerances need a step that is smaller than hmin={options.min_step}."
    return MESSAGES[status]


def _step_info(steps: Sequence[Any], message: str) -> dict[str, Any]:
    """SciPy's dict; see `odeint`."""
    known = [fixed(x) if is_traced(x) else np.asarray(value_of(x)) for x in steps]
    (sizes, ends), numbers = [known[0][1:, i] for i in range(2)], known[1][1:]
    count = numbers.shape[0]
    zeros, whole = np.zeros(count), np.ones(count, np.int32)
    nst, nfe, nje = [casts.astype(numbers[:, i], np.int32) for i in range(3)]
    return {
        "hu": sizes,
        "tcur": ends,
        "tolsf": zeros,
        "tsw": zeros.copy(),
        "nst": nst,
        "nfe": nfe,
        "nje": nje,
        "nqu": 5 * whole,
        "imxer": -1,
        "lenrw": 0,
        "leniw": 0,
        "mused": 2 * whole,
        "message": message,
    }
