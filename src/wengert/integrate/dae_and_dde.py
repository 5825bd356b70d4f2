"""Differential-algebraic equations by SUNDIALS, and delay equations by fixed steps.

    solve_dae  the solution
    solve_dde  y'(t) = rhs(t, y(t), (y(t - lag), ...), *args)

Arguments are checked and converted here.  The solver of differential-algebraic equations and its
derivatives are in `sundials`.  Delay equations are solved by the method of steps: the classical
method of order 4, with delayed states from the cubic Hermite interpolants of earlier steps (Bellen,
Zennaro, Numerical Methods for Delay Differential Equations, 2003, chapter 3).  Lags are not below
the step, so that each step is explicit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.control_flow import cond, fori_loop
from wengert._engine.core import display, pytree
from wengert._engine.core.conversion_hook import converted
from wengert._engine.core.handle import is_traced, value_of
from wengert._engine.core.validation import function
from wengert._engine.tensor.numpy_dispatch import as_array
from wengert._engine.visualization.progress import TqdmBar
from wengert.errors import ArgumentError, ShapeError, at, user_line
from wengert.scipy.integrate.ivp.initial_value import IvpOptions
from wengert.scipy.integrate.ivp.observers import bar_of_loop, loop_progress

from .solution import Solution, StateLeaves, as_state
from .solve import finished, times_of

_SOLVE_DAE = "solve_dae"


def solve_dae(
    residual: Callable[..., Any],
    t: Sequence[Any] | Any,
    y0: Any,
    ydot0: Any = None,
    args: tuple[Any, ...] = (),
    *,
    algebraic: Any = None,
    rtol: Any = 1e-6,
    atol: Any = 1e-9,
    saveat: Any = None,
    first_step: Any = None,
    max_step: Any = np.inf,
    max_steps: int = 100_000,
    check: bool = True,
) -> Solution:
    """Solve residual(t, y, ydot, *args) = 0, with ydot the derivative of y, by SUNDIALS' IDA.

    Parameters
    ----------
    residual : callable
        ``residual(t, y, ydot, *args)``, like `y`; captured tensors are differentiated.
    t : sequence of float or Tensor
        As in `solve`.
    y0, ydot0 : array or container of arrays
        The initial state and its derivative, by default zero. The algebraic part of `y0`, and
        `ydot0`, are first guesses, of which consistent values are found by Newton's method.
    args : tuple
        Further arguments of `residual`, which are differentiated.
    algebraic : container of bool like `y0`, optional
        Which components have no derivative in the residual. By default found from its graph.
    rtol, atol, saveat, first_step, max_step, max_steps, check
        As in `solve`; `rtol` is a number.

    Returns
    -------
    Solution
        Numbers that SUNDIALS does not report are -1.

    Raises
    ------
    BackendError
        SUNDIALS is not installed: ``pip install 'wengert[sundials]'``.
    ConvergenceError
        The end is not reached, or no consistent initial values are found, with `check`.
    ArgumentError, ShapeError, DtypeError, StructureError
        An argument cannot be.

    See Also
    --------
    solve : equations that are solved for the derivative, also with a mass matrix.

    Notes
    -----
    The index of the equations must be 1: the derivatives of the differential components, and the
    algebraic components, follow from the equations. The derivative of the solution, in both modes
    and at any order, is that of the sensitivity equations and of the adjoint equation, integrated
    by IDA and CVODE to the same tolerances. With respect to the initial state it is zero for
    algebraic components. In compiled functions each solution is a host callback, in batches one for
    each row.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.integrate import solve_dae
    >>> def circuit(t, y, ydot, resistance):  # a capacitor is charged through a resistor
    ...     voltage, current = y
    ...     return np.array([ydot[0] - current, resistance * current + voltage - 1.0])
    >>> def charged(resistance):
    ...     return solve_dae(circuit, (0.0, 1.0), np.zeros(2), args=(resistance,)).y[0]
    >>> [round(float(x), 4) for x in wg.value_and_grad(charged)(2.0)]  # doctest: +SKIP
    [0.3935, -0.1516]
    """
    from .sundials.vector_problems import solve_residual

    function(residual, _SOLVE_DAE)
    times, t0, t1 = times_of(t, saveat, _SOLVE_DAE)
    y0 = as_state(y0)
    leaves = StateLeaves(y0, f"{_SOLVE_DAE}: the state")
    result = StateLeaves(y0, f"{_SOLVE_DAE}: the result of the function")
    start = leaves.vector(leaves.leaves.values)
    slope = np.zeros(sum(leaves.sizes))
    if ydot0 is not None:
        slope = StateLeaves(y0, f"{_SOLVE_DAE}: ydot0").vector_like(as_state(ydot0))

    def vector_residual(time: Any, y: Any, ydot: Any) -> Any:
        found = converted(residual)(time, leaves.container(y), leaves.container(ydot), *args)
        return result.vector_like(found)

    outcome = solve_residual(
        vector_residual,
        t0,
        t1,
        start,
        slope,
        None if algebraic is None else _flags(algebraic, leaves),
        IvpOptions("IDA", rtol, atol, first_step, max_step, max_steps),
        _SOLVE_DAE,
        times,
    )
    return finished(
        None, outcome, "end" if times is None else "times", times, leaves, check, _SOLVE_DAE
    )


def _flags(algebraic: Any, leaves: StateLeaves) -> np.ndarray[Any, Any]:
    """Which components of the vector are algebraic."""
    parts, structure = pytree.flatten(as_state(algebraic))
    shapes = [tuple(s.shape) for s in leaves.leaves.specs]
    if structure != leaves.leaves.structure or [np.shape(x) for x in parts] != shapes:
        raise ShapeError(
            f"{_SOLVE_DAE}: `algebraic` must have the structure and the shapes of y0, {shapes}"
            f"{at(user_line())}."
        )
    return np.concatenate([np.asarray(x, bool).ravel() for x in parts])


# ---- delay equations ---------------------------------------------------------------------------


_SOLVE_DDE = "solve_dde"
_ROUNDING = 1e-9  # of a lag relative to a step


@display.shown_fields
class DdeSolution(NamedTuple):
    """The solution of a delay differential equation at the ends of all steps.

    t : array, shape (steps + 1,)
    y : the states, with the times as the first axis.
    """

    t: Any
    y: Any


def solve_dde(
    rhs: Callable[..., Any],
    t: Sequence[Any],
    history: Callable[..., Any],
    lags: Any,
    args: tuple[Any, ...] = (),
    *,
    steps: int,
    memory: int | str | None = None,
    progress: bool | Callable[..., TqdmBar] = False,
) -> DdeSolution:
    """Solve y'(t) = rhs(t, y(t), delayed, *args) by steps of equal size.

    Parameters
    ----------
    rhs : callable
        ``rhs(t, y, delayed, *args)``, where `delayed` is a tuple with the state at ``t - lag`` for
        each lag.
    t : two floats or Tensors
        The ends of the interval, in increasing order.
    history : callable
        ``history(t, *args)``, the state up to the initial time.
    lags : float, Tensor, or sequence of them
        Constant delays, not below the step size; they are differentiated.
    args : tuple
        Further arguments, which are differentiated.
    steps : int
        The number of steps.
    memory : int or str, optional
        The memory limit of the backward pass, as in `wengert.fori_loop`.
    progress : bool or callable
        Whether to show a progress bar, as in `solve`.

    Returns
    -------
    DdeSolution

    Raises
    ------
    ArgumentError
        A lag is below the step size, or the interval is not increasing.

    Notes
    -----
    The order is 4 if the solution is smooth. Its derivatives are discontinuous at multiples of the
    lags: choose `steps` so that lags are multiples of the step. The derivative is that of the steps
    taken.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.integrate import solve_dde
    >>> def last(lag):
    ...     return solve_dde(lambda t, y, delayed: -delayed[0], (0.0, 2.0), lambda t: np.ones(1),
    ...                      lag, steps=20).y[-1, 0]
    >>> [round(float(x), 6) for x in wg.value_and_grad(last)(1.0)]
    [-0.5, -1.0]
    """
    function(rhs, _SOLVE_DDE)
    function(history, _SOLVE_DDE)
    listed = list(lags) if isinstance(lags, list | tuple) else [lags]
    start, end = as_array(t[0]) * 1.0, as_array(t[1]) * 1.0
    h = (end - start) / steps
    _check(listed, start, end, steps)
    first = converted(history)(start, *args)
    leaves = StateLeaves(first, f"{_SOLVE_DDE}: the state")
    result = StateLeaves(first, f"{_SOLVE_DDE}: the result of the function")
    past = StateLeaves(first, f"{_SOLVE_DDE}: the history")
    y0 = leaves.vector(leaves.leaves.values)

    def before(time: Any) -> Any:
        return past.vector_like(converted(history)(time, *args))

    def derivative(time: Any, y: Any, buffers: Any, after: bool) -> Any:
        delayed = [
            leaves.container(_state_at(time - lag, start, h, buffers, before, after))
            for lag in listed
        ]
        return result.vector_like(converted(rhs)(time, leaves.container(y), tuple(delayed), *args))

    bar = loop_progress(progress, _SOLVE_DDE)

    def step(i: Any, buffers: Any) -> Any:
        ys, ends, starts = buffers
        time, y = start + i * h, ys[i]
        k1 = starts[i]
        k2 = derivative(time + h / 2, y + h / 2 * k1, buffers, False)
        k3 = derivative(time + h / 2, y + h / 2 * k2, buffers, False)
        k4 = derivative(time + h, y + h * k3, buffers, False)
        ys = ys.copy()
        ys[i + 1] = new = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        buffers = (ys, ends, starts)
        ends, starts = ends.copy(), starts.copy()
        ends[i + 1] = derivative(time + h, new, buffers, False)
        starts[i + 1] = derivative(time + h, new, buffers, True)
        if bar is not None:
            bar.advance_step(i, steps, time + h)
        return ys, ends, starts

    buffer = np.zeros((steps + 1, *y0.shape)) + 0 * y0
    ys, ends, starts = buffer.copy(), buffer.copy(), buffer.copy()
    ys[0] = y0
    starts[0] = derivative(start, y0, (ys, ends, starts), False)
    with bar_of_loop(bar, (ys, h)):
        ys, _, _ = fori_loop(0, steps, step, (ys, ends, starts), memory)
    times = start + h * np.arange(steps + 1)
    return DdeSolution(times, leaves.container(ys, (steps + 1,)))


def _check(lags: Sequence[Any], start: Any, end: Any, steps: object) -> None:
    if is_traced(steps) or int(value_of(steps)) != value_of(steps) or int(value_of(steps)) < 1:
        raise ArgumentError(
            f"{_SOLVE_DDE}: steps must be a positive integer, and is {steps!r}{at(user_line())}."
        )
    if is_traced(start) or is_traced(end):
        return
    length = float(value_of(end)) - float(value_of(start))
    if not length > 0:
        raise ArgumentError(
            f"{_SOLVE_DDE}: the interval must be increasing, and has length {length}"
            f"{at(user_line())}."
        )
    size = length / int(value_of(steps))
    for lag in lags:
        if not is_traced(lag) and not float(value_of(lag)) >= size * (1 - _ROUNDING):
            raise ArgumentError(
                f"{_SOLVE_DDE}: the lag {float(value_of(lag))} is below the step size {size}. "
                f"Take more steps{at(user_line())}."
            )


def _state_at(
    time: Any, start: Any, h: Any, buffers: Any, before: Callable[[Any], Any], after: bool
) -> Any:
    """The state at a time that has been passed, by interpolation; or the history.

    buffers : the states, and their derivatives at the end and at the start of steps: with respect
        to a lag, derivatives differ on both sides of the initial time plus the lag.
    after : whether the initial time belongs to the solution, and not to the history.
    """
    ys, ends, starts = buffers

    def interpolated(time: Any) -> Any:
        position = (time - start) / h
        last = ys.shape[0] - 2
        index = np.minimum(np.maximum(np.floor(position + _ROUNDING), 0), last).astype(int)
        x = position - index
        y, f, f_new = ys[index], starts[index], ends[index + 1]
        slope = ys[index + 1] - y
        square, cube = 3 * slope - h * (2 * f + f_new), h * (f + f_new) - 2 * slope
        return y + x * (h * f + x * (square + x * cube))

    limit = -_ROUNDING if after else _ROUNDING
    return cond((time - start) / h <= limit, before, interpolated, time)
