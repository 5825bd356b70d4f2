"""Initial value problems of users: arguments checked, functions traced, buffers large enough.

IvpOptions    tolerances and limits of the steps
IvpSolved     a solution
solve         the solution of a problem for a vector
with_nan_derivatives   of the states that are not reached, instead of zero
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.control_flow.custom_calls import is_recorded
from wengert._engine.control_flow.eager_loops import becomes_node
from wengert._engine.core.conversion_hook import converted
from wengert._engine.core.handle import describe, is_traced, value_of
from wengert._engine.core.spec import Spec
from wengert._engine.ops import casts
from wengert._engine.tensor.numpy_dispatch import as_array
from wengert._engine.visualization.progress import TqdmBar
from wengert.errors import ArgumentError, DtypeError, ShapeError, TraceError, at, user_line

from .continuous_adjoint import checked_adjoint
from .events import Event
from .loop import Status
from .method import Method
from .methods import check_dtype, checked_jacobian, checked_mass, method_of
from .observers import loop_progress
from .program import EventPlan, IvpOutcome, IvpPlan, IvpValues, solved, traced
from .step_control import checked_jumps

_FIRST_CAPACITY = 128  # steps and events that are kept; it grows by the factor
_GROWTH = 4
_MAX_KEPT_STEPS = 4096  # by a continuous adjoint
_MIN_RTOL = 100 * np.finfo(float).eps  # as in SciPy
_NUMBER = Spec((), np.dtype(float))

MESSAGES = {
    Status.FINISHED: "The solver successfully reached the end of the integration interval.",
    Status.EVENT: "A termination event occurred.",
    Status.TOO_SMALL: "Required step size is less than spacing between numbers.",
    Status.TOO_MANY: "The largest number of steps was reached.",
    Status.NOT_FINITE: "The right-hand side is not finite.",
    Status.INCONSISTENT: "No consistent initial values were found.",
}


@dataclass(frozen=True)
class IvpOptions:
    """Tolerances and limits of the steps; see `wengert.integrate.solve`.

    min_step : the smallest step; see `Settings`.
    keeps_steps : see `IvpPlan`.
    progress : see `loop_progress`.
    ends_in_graphs : whether in a graph, instead of all steps, the end is the result.
    """

    method: object = "RK45"
    rtol: Any = 1e-3
    atol: Any = 1e-6
    first_step: Any = None
    max_step: Any = np.inf
    max_steps: int = 100_000
    memory: int | str | None = None
    jac: Callable[[Any, Any], Any] | None = None
    mass: Any = None
    adjoint: str = "discrete"
    jump_ts: Any = None
    min_step: Any = None
    keeps_steps: bool = False
    progress: bool | Callable[..., TqdmBar] = False
    ends_in_graphs: bool = False


class IvpSolved(NamedTuple):
    """A solution.

    method : of the steps.
    outcome : the results of the program.
    values : its operands.
    """

    method: Method
    outcome: IvpOutcome
    values: IvpValues | None = None


def solve(
    f: Callable[[Any, Any], Any],
    t0: Any,
    t1: Any,
    y0: Any,
    options: IvpOptions,
    what: str,
    save: str = "end",
    times: Any = None,
    events: Sequence[Event] = (),
    max_events: int | None = None,
) -> IvpSolved:
    """The solution of ``y' = f(t, y)`` for a vector y.

    Parameters
    ----------
    f : callable
    t0, t1 : float or Tensor
    y0 : vector
    options : IvpOptions
    what : str
        The caller, for messages.
    save, times
        As in `IvpPlan`.
    events : sequence of Event
    max_events : int, optional
        The number of occurrences that are kept; without it all, outside of graphs.

    Raises
    ------
    ArgumentError, ShapeError, DtypeError
        An argument cannot be.
    TraceError
        All steps, or all events, are asked for in a graph.
    """
    method, control = method_of(options.method, what)
    t0, t1 = _time(t0, what), _time(t1, what)
    y0 = checked_state(y0, what)
    spec = Spec(tuple(describe(y0).shape), describe(y0).dtype)
    check_dtype(method, spec, what)
    mass = checked_mass(options.mass, method, spec, what)
    jumps = checked_jumps(options.jump_ts, what)
    has = {"events": bool(events), "mass": mass is not None, "jump_ts": jumps is not None}
    specs = (_NUMBER, spec)
    rhs, captured = traced(checked_rhs(f, spec, what), specs, what)
    graphs = [captured]
    adjoint = checked_adjoint(options.adjoint, (y0, *captured), save, has, what)
    jac = None
    if options.jac is not None:
        jac, captured = traced(checked_jacobian(options.jac, spec, what), specs, f"{what}: jac")
        graphs.append(captured)
    plans, more = _traced_events(events, spec, what)
    graphs.extend(more)
    plan = IvpPlan(
        method,
        control,
        rhs,
        jac,
        tuple(plans),
        save=save,
        memory=options.memory,
        moving=(is_recorded(t0), is_recorded(t1), is_recorded(jumps)),
        adjoint=adjoint,
        capacity=0 if adjoint == "discrete" else min(int(options.max_steps), _MAX_KEPT_STEPS),
        keeps_steps=options.keeps_steps,
        progress=loop_progress(options.progress, what),
    )
    values = IvpValues(
        tuple(graphs),
        t0,
        t1,
        y0,
        *_tolerances(options, spec, what),
        _positive(options.max_step, "max_step", what),
        np.int64(options.max_steps),
        _first_step(options.first_step, t0, t1, what),
        mass,
        times,
        jumps,
        options.min_step,
    )
    ends = options.ends_in_graphs
    return IvpSolved(method, _in_buffers(plan, values, max_events, what, ends), values)


def _traced_events(
    events: Sequence[Event], spec: Spec, what: str
) -> tuple[list[EventPlan], list[tuple[Any, ...]]]:
    """The events as graphs, and the values that these capture."""
    specs = (_NUMBER, spec)
    plans, graphs = [], []
    for event in events:
        function, captured = traced(_event(event.function, what), specs, f"{what}: an event")
        graphs.append(captured)
        reset = None
        if event.reset is not None:
            reset, captured = traced(
                checked_rhs(event.reset, spec, f"{what}: reset"), specs, f"{what}: reset"
            )
            graphs.append(captured)
        plans.append(EventPlan(function, event.direction, event.count, reset))
    return plans, graphs


def _in_buffers(
    plan: IvpPlan, values: IvpValues, max_events: int | None, what: str, ends_in_graphs: bool
) -> IvpOutcome:
    """The results, with buffers that are large enough."""
    if ends_in_graphs and plan.save == "steps" and becomes_node(_leaves(values)):
        plan = replace(plan, save="end")
    keeps_steps = plan.save in ("steps", "dense")
    keeps_events = bool(plan.events) and max_events is None
    event_capacity = max_events or _FIRST_CAPACITY
    if becomes_node(_leaves(values)):
        if keeps_steps:
            raise TraceError(
                f"{what}: in a graph the number of steps is not known. Give the times at which the "
                f"solution is wanted (t_eval, or saveat){at(user_line())}."
            )
        if keeps_events:
            event_capacity = 1 + max([e.count for e in plan.events])
        found = solved(replace(plan, event_capacity=event_capacity), values)
        return with_nan_derivatives(found, values) if plan.save == "times" else found
    capacity = _FIRST_CAPACITY if keeps_steps else plan.capacity
    while True:
        full = replace(
            plan, event_capacity=event_capacity, capacity=capacity, keeps_all=keeps_events
        )
        found = solved(full, values)
        status, attempts = int(value_of(found.status)), int(value_of(found.attempts))
        if status != Status.TOO_MANY or attempts >= int(values.max_steps):
            return found
        if keeps_steps and int(value_of(found.saved[0])) > capacity:
            capacity *= _GROWTH
        else:
            event_capacity *= _GROWTH


def with_nan_derivatives(found: IvpOutcome, values: IvpValues) -> IvpOutcome:
    """The results with derivatives that are NaN of saved states that are not reached.

    With respect to all that the problem depends on: if the first step fails, the state at the end
    is the initial one, which does not depend on parameters.  That state is reached in any case.
    """
    index, ys, *steps = found.saved
    is_missing = (found.status < 0) & (np.arange(ys.shape[0]) >= index)
    is_first = is_missing & (values.times == values.t0)
    ys = np.where(is_first[:, None], values.y0, ys)
    operands = found.y + sum([_weighted(x) for x in _leaves(values) if _has_derivative(x)])
    missing = np.where((is_missing & ~is_first)[:, None], np.nan * operands, 0.0)
    return found._replace(saved=(index, ys + missing, *steps))


def _has_derivative(x: Any) -> bool:
    return is_recorded(x) and describe(x).dtype.kind in "fc"


def _weighted(x: Any) -> Any:
    """The real part of a sum with weights with which tangents hardly ever cancel."""
    flat = x.reshape(-1).real
    return np.sum(flat * np.sqrt(2.0 + np.arange(flat.shape[0])))


def _leaves(values: IvpValues) -> list[Any]:
    found = [x for x in values[1:] if x is not None]
    for captured in values.captured:
        found.extend(captured)
    return found


def checked_state(y0: Any, what: str) -> Any:
    """The initial state as a vector of floating or complex numbers.

    Raises
    ------
    ShapeError, DtypeError
        It is not a vector of numbers.
    """
    y0 = as_array(y0)
    if y0.dtype.kind not in "biufc":
        raise DtypeError(
            f"{what}: y0 is an array of {y0.dtype}, and must be one of numbers{at(user_line())}."
        )
    if len(y0.shape) != 1:
        raise ShapeError(
            f"{what}: y0 has shape {tuple(y0.shape)}, and must be a vector. For one number write "
            f"[y0]{at(user_line())}."
        )
    if not is_traced(y0) and not np.all(np.isfinite(value_of(y0))):
        raise ArgumentError(
            f"{what}: all components of the initial state `y0` must be finite{at(user_line())}."
        )
    return y0 if y0.dtype.kind in "fc" and y0.dtype.itemsize >= 8 else casts.astype(y0, float)


def _time(t: Any, what: str) -> Any:
    """An end of the interval as a number."""
    spec = describe(t)
    if not isinstance(spec, Spec) or spec.shape or spec.dtype.kind not in "biuf":
        raise ArgumentError(
            f"{what}: an end of the interval is {t!r}, and must be a real number{at(user_line())}."
        )
    return casts.astype(t, float) if is_traced(t) or spec.dtype != float else t * 1.0


def _vector(x: Any) -> Any:
    """A list of numbers as a vector; arrays unchanged."""
    if isinstance(x, list | tuple):
        return np.stack([as_array(part) for part in x]) if len(x) else np.zeros(0)
    return as_array(x)


def checked_rhs(f: Callable[..., Any], spec: Spec, what: str) -> Callable[..., Any]:
    """A function of time and state, whose result is checked to be like the state."""

    def checked(t: Any, y: Any) -> Any:
        out = _vector(converted(f)(t, y))
        if tuple(out.shape) != spec.shape:
            if out.size == int(np.prod(spec.shape)) and not out.shape:
                out = out.reshape(spec.shape)
            else:
                raise ShapeError(
                    f"{what}: the function returns shape {tuple(out.shape)}, and the state has "
                    f"shape {spec.shape}{at(user_line())}."
                )
        if out.dtype.kind == "c" and spec.dtype.kind != "c":
            raise DtypeError(
                f"{what}: the function returns complex numbers, and the initial state is real. "
                f"Give y0 a complex dtype{at(user_line())}."
            )
        return casts.astype(out, spec.dtype) if out.dtype != spec.dtype else out

    return checked


def _event(f: Callable[..., Any], what: str) -> Callable[..., Any]:
    """The function of an event, whose result is checked to be one real number."""

    def checked(t: Any, y: Any) -> Any:
        out = as_array(converted(f)(t, y))
        if out.size != 1 or out.dtype.kind not in "biuf":
            raise ShapeError(
                f"{what}: an event returns shape {tuple(out.shape)} of {out.dtype}, and must "
                f"return one real number{at(user_line())}."
            )
        if out.dtype.kind == "b":
            raise DtypeError(
                f"{what}: an event returns a boolean. Return a number that is zero at the event, "
                f"as y[0] - 1 instead of y[0] > 1{at(user_line())}."
            )
        return casts.astype(out.reshape(()), float)

    return checked


def _tolerances(options: IvpOptions, spec: Spec, what: str) -> tuple[Any, Any]:
    """The tolerances, checked; arrays for each component may be given."""
    rtol, atol = as_array(options.rtol), as_array(options.atol)
    for name, x in (("rtol", rtol), ("atol", atol)):
        if tuple(x.shape) not in ((), spec.shape):
            raise ShapeError(
                f"{what}: {name} has shape {tuple(x.shape)}, and must be a number or have shape "
                f"{spec.shape}{at(user_line())}."
            )
    if not is_traced(rtol) and not is_traced(atol):
        rtol, atol = np.asarray(value_of(rtol), float), np.asarray(value_of(atol), float)
        if np.any(atol < 0) or np.any(np.isnan(atol)):
            raise ArgumentError(f"{what}: atol must be positive{at(user_line())}.")
        if np.any(rtol < _MIN_RTOL):
            warnings.warn(
                f"{what}: rtol is too small. Setting to max(rtol, {_MIN_RTOL}).", stacklevel=4
            )
            rtol = np.maximum(rtol, _MIN_RTOL)
    return rtol[()] if not is_traced(rtol) else rtol, atol[()] if not is_traced(atol) else atol


def _positive(x: Any, name: str, what: str) -> Any:
    if not is_traced(x) and not float(value_of(x)) > 0:
        raise ArgumentError(f"{what}: {name} must be positive, and is {x}{at(user_line())}.")
    return x if is_traced(x) else np.float64(value_of(x))


def _first_step(x: Any, t0: Any, t1: Any, what: str) -> Any:
    if x is None:
        return None
    x = _positive(x, "first_step", what)
    if not any(map(is_traced, (x, t0, t1))) and float(x) > abs(float(value_of(t1 - t0))):
        raise ArgumentError(
            f"{what}: first_step={x} exceeds the interval, of length "
            f"{abs(float(value_of(t1 - t0)))}{at(user_line())}."
        )
    return x
