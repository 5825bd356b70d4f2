"""Initial value problems with adaptive steps, for states that are containers of arrays.

    solve     the solution of y' = rhs(t, y, *args)
    times_of  the times of the result, and the ends of the interval
    finished  a solution with the state as users have it, checked

Arguments are checked and converted here; the loop is in `wengert.scipy.integrate.ivp`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from wengert._engine.core.conversion_hook import converted
from wengert._engine.core.handle import is_traced, value_of
from wengert._engine.core.validation import function
from wengert._engine.tensor.numpy_dispatch import as_array
from wengert._engine.visualization.progress import TqdmBar
from wengert.errors import ArgumentError, ShapeError, at, user_line
from wengert.scipy.integrate.ivp.events import Event
from wengert.scipy.integrate.ivp.initial_value import IvpOptions, IvpSolved
from wengert.scipy.integrate.ivp.initial_value import solve as solve_vector
from wengert.scipy.integrate.ivp.observers import Interpolant
from wengert.scipy.integrate.ivp.program import IvpOutcome

from .solution import Solution, StateLeaves, as_state, checked
from .sundials_names import is_of_sundials

_WHAT = "solve"


def solve(
    rhs: Callable[..., Any],
    t: Sequence[Any] | Any,
    y0: Any,
    args: tuple[Any, ...] = (),
    *,
    method: str = "tsit5",
    rtol: Any = 1e-6,
    atol: Any = 1e-9,
    saveat: Any = None,
    events: Event | Callable[..., Any] | Sequence[Event | Callable[..., Any]] = (),
    max_events: int | None = None,
    dense: bool = False,
    first_step: Any = None,
    max_step: Any = np.inf,
    max_steps: int = 100_000,
    jump_ts: Any = None,
    jac: Callable[..., Any] | None = None,
    mass: Any = None,
    memory: int | str | None = None,
    adjoint: str = "discrete",
    check: bool = True,
    progress: bool | Callable[..., TqdmBar] = False,
) -> Solution:
    """Solve an initial value problem y' = rhs(t, y, *args).

    Parameters
    ----------
    rhs : callable
        ``rhs(t, y, *args)`` returns the derivative, like `y`; captured tensors are differentiated.
    t : sequence of float or Tensor
        The first is the initial time, the last the end, which may be earlier. With more than two
        the solution is returned at these times.
    y0 : array or container of arrays
        The initial state, real or complex. A list of numbers is a vector.
    args : tuple
        Further arguments of `rhs`, `jac` and the events, which are differentiated.
    method : str
        'tsit5', 'RK45', 'RK23', 'vern7', 'DOP853': explicit methods of order 5, 5, 3, 7, 8. For
        stiff problems, and with `mass`: 'rodas4', 'rodas5p', Rosenbrock methods, the fastest for
        few components; 'kvaerno3', 'kvaerno4', 'kvaerno5', and 'Radau' of order 5, for real states,
        whose stages are solved by Newton's method with one factorization for several steps; 'BDF',
        backward differences of order 1 to 5, with the fewest evaluations in a step. With
        SUNDIALS (``pip install 'wengert[sundials]'``): 'CVODE', 'CVODE_Adams', and 'IDA' with a
        mass matrix of any rank, whose derivatives are those of the exact solution to the
        tolerances; they take no events, `dense`, `jump_ts`, `adjoint` or all steps.
    rtol, atol : float or vector
        Relative and absolute tolerance of the error in each step.
    saveat : array, or 'steps', optional
        The times of the result, in the order of the integration; 'steps': after each step, in eager
        calls only. By default the result is the state at the end.
    events : Event, callable, or sequence of them
        Functions ``g(t, y, *args)`` whose roots are found; see `Event`.
    max_events : int, optional
        How many occurrences of each event are kept. By default all in eager calls, and in compiled
        functions one more than the number at which the event ends the integration.
    dense : bool
        Whether `sol`, the solution as a function of time, is returned; in eager calls only.
    first_step, max_step : float
        Sizes of the first step, and of the largest.
    max_steps : int
        The largest number of attempted steps.
    jump_ts : vector, optional
        Times at which `rhs` is discontinuous, in any order: steps end and begin there. The
        derivative with respect to them is that of the exact solution, up to order 4.
    jac : callable, optional
        ``jac(t, y, *args)`` of shape (n, n); by default it is computed. Explicit methods do not
        use it.
    mass : array of shape (n, n), optional
        The constant matrix of M y' = rhs. Explicit methods refuse it.
    memory : int or str, optional
        The memory limit of the backward pass, as in `wengert.while_loop`.
    adjoint : str
        What reverse mode does: 'discrete', see the notes; 'continuous': integrate the adjoint
        equation and the integrals that are the cotangents of parameters, to the tolerances;
        'quadrature': the same, with the control of errors by the adjoint alone, for many
        parameters. The latter two keep the forward steps in buffers for `max_steps`, and for 4,096
        at most (with more the gradient is NaN). They have first derivatives in reverse mode only,
        and no events, mass matrix, `jump_ts` or complex numbers.
    check : bool
        Whether a solution that does not reach the end is an error. In loops and branches of
        compiled functions, which cannot raise, its state is NaN instead.
    progress : bool or callable
        Whether to show a progress bar (plain lines without a terminal) on standard error: how much
        of the interval is integrated, of a batch by the element that is last. A class with the
        interface of tqdm makes the bar: ``progress=tqdm.tqdm``. Not with SUNDIALS.

    Returns
    -------
    Solution

    Raises
    ------
    ConvergenceError
        The end is not reached, with `check`.
    ArgumentError, ShapeError, DtypeError, StructureError
        An argument cannot be.
    BackendError
        The method is one of SUNDIALS, and this is not installed.
    TraceError
        All steps are asked for in a graph.

    See Also
    --------
    solve_dae : equations that are not solved for the derivative.
    wengert.scipy.integrate.solve_ivp : with the interface of SciPy.

    Notes
    -----
    The derivative, in both modes and at any order, is that of the steps that were taken, whose
    sizes are constants: it is exact for the numbers that are computed (discrete adjoint). Steps
    that were rejected have no part in it. With respect to the ends of the interval the derivative
    is that of the exact solution. Cost of a gradient, measured: 1.9 to 3.0 solutions for most
    problems; of Kvaerno's methods 2.2 to 3.2 for large sparse systems, and 9 to 15 for dense ones
    of 50 to 250 unknowns, since the backward pass factorizes the Jacobian of each stage, and the
    solution only one for many steps. Forward mode costs one solution for each parameter, computed
    together. The tolerances hold for the solution, not for its derivatives.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.integrate import solve
    >>> def pendulum(t, y, damping):
    ...     return np.array([y[1], -np.sin(y[0]) - damping * y[1]])
    >>> def last(damping):
    ...     return solve(pendulum, (0.0, 10.0), np.array([1.0, 0.0]), (damping,)).y[0]
    >>> [round(float(x), 5) for x in wg.jit(wg.value_and_grad(last))(0.1)]
    [-0.59326, 3.05791]
    """
    function(rhs, _WHAT)
    times, t0, t1 = times_of(t, saveat, _WHAT)
    save = _kind_of_result(saveat, times, dense)
    y0 = as_state(y0)
    leaves = StateLeaves(y0, f"{_WHAT}: the state")
    derivative = StateLeaves(y0, f"{_WHAT}: the result of the function")

    def vector_rhs(time: Any, y: Any) -> Any:
        return derivative.vector_like(converted(rhs)(time, leaves.container(y), *args))

    def vector_jac(time: Any, y: Any) -> Any:
        return converted(jac)(time, leaves.container(y), *args)  # type: ignore[type-var,misc]

    given_jac = None if jac is None else vector_jac
    sizes = first_step, max_step, max_steps
    options = IvpOptions(method, rtol, atol, *sizes, memory, given_jac, mass, adjoint, jump_ts)
    options = replace(options, progress=progress)
    start, many = leaves.vector(leaves.leaves.values), _listed(events)
    if is_of_sundials(method):
        outcome = _by_sundials(vector_rhs, t0, t1, start, options, times, save, bool(many))
        return finished(None, outcome, save, times, leaves, check, _WHAT)
    found = solve_vector(
        vector_rhs,
        t0,
        t1,
        start,
        options,
        _WHAT,
        save,
        None if save != "times" else times,
        [_event(e, leaves, args) for e in many],
        max_events,
    )
    return finished(found.method, found.outcome, save, times, leaves, check, _WHAT)


def _by_sundials(
    f: Callable[[Any, Any], Any],
    t0: Any,
    t1: Any,
    start: Any,
    options: IvpOptions,
    times: Any,
    save: str,
    has_events: bool,
) -> IvpOutcome:
    """The solution by a solver of SUNDIALS, which does not take all options."""
    from .sundials.vector_problems import solve_vector

    refused = {
        "events": has_events,
        "jump_ts": options.jump_ts is not None,
        "dense": save == "dense",
        "saveat='steps'": save == "steps",
        f"adjoint={options.adjoint!r}": options.adjoint != "discrete",
        "progress": options.progress is not False,
    }
    return solve_vector(f, t0, t1, start, options, _WHAT, times, refused)


def finished(
    method: Any,
    outcome: IvpOutcome,
    save: str,
    times: Any,
    leaves: StateLeaves,
    check: bool,
    what: str,
) -> Solution:
    """The solution with the state as users have it; an error if it is checked and has failed.

    method : of the interpolant, if `save` is "dense".
    """
    if check:
        outcome = outcome._replace(y=checked(outcome.status, outcome.t, outcome.y, what))
    return _solution(IvpSolved(method, outcome), save, times, leaves)


def _kind_of_result(saveat: Any, times: Any, dense: bool) -> str:
    """What is kept, as in `IvpPlan`."""
    if isinstance(saveat, str) and saveat != "steps":
        raise ArgumentError(f"{_WHAT}: saveat={saveat!r}. Give times, or 'steps'{at(user_line())}.")
    if dense:
        return "dense"
    if isinstance(saveat, str):
        return "steps"
    return "end" if times is None else "times"


def times_of(t: Any, saveat: Any, what: str) -> tuple[Any, Any, Any]:
    """The times of the result, or None, and the ends of the interval."""
    if isinstance(t, list | tuple):
        many = [as_array(x) for x in t]
        t = None if len(many) < 2 else np.stack(many) if len(many) > 2 else many
    else:
        t = as_array(t)
        t = None if len(t.shape) != 1 or t.shape[0] < 2 else t
    if t is None:
        raise ArgumentError(
            f"{what}: t must be two times, or more, (start, ..., end){at(user_line())}."
        )
    t0, t1 = t[0], t[-1]
    if saveat is None:
        times = t if len(t) > 2 else None
    else:
        times = None if isinstance(saveat, str) else as_array(saveat)
    if times is not None:
        if len(times.shape) != 1:
            raise ShapeError(
                f"{what}: saveat has shape {tuple(times.shape)}, and must be a vector"
                f"{at(user_line())}."
            )
        _check_order(times, t0, t1, what)
        times = times * 1.0
    return times, t0, t1


def _check_order(times: Any, t0: Any, t1: Any, what: str) -> None:
    if any(map(is_traced, (times, t0, t1))):
        return
    plain = np.asarray(value_of(times), float)
    start, end = float(value_of(t0)), float(value_of(t1))
    sign = 1.0 if end >= start else -1.0
    if np.any(np.isnan(plain)) or np.any(sign * np.diff(plain) < 0):
        raise ArgumentError(
            f"{what}: the times must be in the order of the integration, from {start} to {end}"
            f"{at(user_line())}."
        )
    if plain.size and (sign * plain[0] < sign * start or sign * plain[-1] > sign * end):
        raise ArgumentError(
            f"{what}: the times must be within the interval from {start} to {end}{at(user_line())}."
        )


def _listed(events: Any) -> list[Any]:
    return [events] if isinstance(events, Event) or callable(events) else list(events)


def _event(event: Any, leaves: StateLeaves, args: tuple[Any, ...]) -> Event:
    """An event as a function of the vector."""
    if not isinstance(event, Event):
        event = Event(
            event, float(getattr(event, "direction", 0)), int(getattr(event, "terminal", 0) or 0)
        )
    g, reset = event.function, event.reset
    changed = None
    if reset is not None:
        like = StateLeaves(leaves.leaves.container(leaves.leaves.values), f"{_WHAT}: reset")
        changed = lambda t, y: like.vector_like(converted(reset)(t, leaves.container(y), *args))  # noqa: E731
    return Event(
        lambda t, y: converted(g)(t, leaves.container(y), *args),
        event.direction,
        event.count,
        changed,
    )


def _solution(found: Any, save: str, times: Any, leaves: StateLeaves) -> Solution:
    outcome = found.outcome
    sol = None
    is_plain = not is_traced(outcome.status)
    if save == "end":
        t, y = outcome.t, leaves.container(outcome.y)
    elif save == "times":
        count, ys = outcome.saved
        if is_plain:
            times, ys = times[: int(value_of(count))], ys[: int(value_of(count))]
        t, y = times, leaves.container(ys, (times.shape[0],))
    else:
        index, ts, ys, *parts = outcome.saved
        count = int(value_of(index))
        t, ys = ts[:count], ys[:count]
        y = leaves.container(ys, (count,))
        if save == "dense":
            inner = Interpolant(found.method, t, ys, [x[: count - 1] for x in parts])
            sol = _At(inner, leaves)
            if times is not None:
                t, y = times, sol(times)
    t_events, y_events, numbers = [], [], []
    for number, ets, eys in outcome.events:
        if is_plain:
            ets, eys = ets[: int(value_of(number))], eys[: int(value_of(number))]
        t_events.append(ets)
        y_events.append(leaves.container(eys, (eys.shape[0],)))
        numbers.append(number)
    return Solution(
        t,
        y,
        outcome.status,
        outcome.steps,
        outcome.attempts - outcome.steps,
        outcome.counts[0],
        outcome.counts[1],
        outcome.counts[2],
        tuple(t_events),
        tuple(y_events),
        tuple(numbers),
        sol,
    )


class _At:
    """`Solution.sol`: the state at a time, or at a vector of times."""

    def __init__(self, interpolant: Interpolant, leaves: StateLeaves) -> None:
        self.interpolant, self.leaves = interpolant, leaves

    def __call__(self, t: Any) -> Any:
        """The state at a time, or the states at times along the first axis."""
        t = as_array(t)
        if not t.shape:
            return self.leaves.container(self.interpolant.at(t))
        return self.leaves.container(self.interpolant.states(t), (t.shape[0],))

    def __repr__(self) -> str:
        return repr(self.interpolant)
