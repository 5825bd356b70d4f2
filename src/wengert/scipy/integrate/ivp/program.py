"""A whole solution as a function of arrays, compiled once; long right-hand sides.

    CalledFunction  a right-hand side with its Jacobian
    is_long         whether a function is long
    EventPlan       an event whose functions are graphs
    IvpPlan         everything that is static
    IvpValues       everything else
    IvpOutcome      the results
    solved          the results for a plan and values
    traced          a user's function as a graph

A step evaluates the right-hand side once for each stage.  A short one becomes part of each stage:
its values stay in registers.  A long one, such as the reactions of twenty species written one by
one, is a node that calls a function (control_flow: `sized`), and so is its Jacobian: functions are
differentiated, simplified and compiled once for all stages.

User functions become graphs, whose captured values are operands.  The program of equal graphs,
methods and options is compiled in the first eager call and kept; within a trace it is inlined.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from wengert._engine.autodiff.jacobians import jacfwd
from wengert._engine.control_flow.eager_loops import becomes_node
from wengert._engine.control_flow.operations import call_body
from wengert._engine.core import pytree
from wengert._engine.core.handle import describe
from wengert._engine.core.spec import Spec
from wengert._engine.implicit.functions import GraphFunction
from wengert._engine.implicit.kept_graphs import KeptGraphs
from wengert._engine.jit import jit
from wengert._engine.ops import casts
from wengert._engine.rewrite import simplify

from .continuous_adjoint import AdjointProblem, Record, continuous
from .events import Event, Events
from .loop import Observer, Settings, integrate
from .method import IvpProblem, Method, Tolerance
from .observers import AtTimes, IvpProgress, LoopProgress, StepBuffers, bar_of_loop, with_end
from .step_control import StepControl

_LEAST_LONG_OPERATIONS = 64  # operations; a call costs about as much as ten of them
_MOVES = ("indexing", "view")  # kinds of operations that only move numbers


class CalledFunction:
    """A function of time and state that is called, not inlined.

    f : of time and state.
    consts : the values that it captures.
    """

    def __init__(self, f: GraphFunction, consts: Sequence[Any]) -> None:
        self._f, self._consts = f, list(consts)
        self._jacobian: GraphFunction | None = None

    def __call__(self, t: Any, y: Any) -> Any:
        """The derivative of the state."""
        return self._called(self._f, t, y)

    def jacobian(self, t: Any, y: Any) -> Any:
        """Its derivative with respect to the state, of shape (n, n)."""
        if self._jacobian is None:
            f, count = self._f, len(self._consts)
            specs = [Spec(n.spec.shape, n.spec.dtype) for n in f.body.inputs]

            def matrix(*xs: Any) -> list[Any]:
                return [jacfwd(lambda y: f(xs[:count], [xs[count], y])[0])(xs[-1])]

            found = GraphFunction.traced_alone(matrix, specs, "Jacobian")
            # Before it is differentiated: the unit vectors of the columns are gone then.
            self._jacobian = GraphFunction(simplify(found.body), found.captured)
        return self._called(self._jacobian, t, y)

    def _called(self, f: GraphFunction, t: Any, y: Any) -> Any:
        """The value; if it was traced for a state of another dtype, it is inlined."""
        t = casts.astype(t, float)
        if describe(y).dtype != f.body.inputs[-1].spec.dtype:
            return f(self._consts, [t, y])[0]
        return call_body(f.body, [*self._consts, t, y])[0]


def is_long(f: GraphFunction) -> bool:
    """Whether a function is long, for arrays of known lengths."""
    body = f.body
    if f.sends or body.size_names or body.open_names or body.local_names:
        return False
    return (
        sum([not n.is_leaf and n.op.kind not in _MOVES for n in body.nodes])
        > _LEAST_LONG_OPERATIONS
    )


@dataclass(frozen=True)
class EventPlan:
    """An event whose functions are graphs; see `Event`."""

    function: GraphFunction
    direction: float
    count: int
    reset: GraphFunction | None = None


@dataclass(frozen=True)
class IvpPlan:
    """Everything about a solution that is static.

    rhs, jac : the right-hand side and its Jacobian, functions of t and y.
    events : the events, and `event_capacity` how many occurrences of each are kept; with
        `keeps_all` the integration ends if there are more.
    save : "end", "times", "steps" or "dense"; `capacity` is the number of steps that are kept.
    memory : the memory limit of the backward pass.
    moving : whether the ends of the interval, and the times of jumps, have derivatives.
    keeps_steps : with "times", whether sizes and numbers of steps are kept as in `AtTimes`.
    adjoint : one of `ADJOINTS`; `capacity` is the number of steps that a continuous one keeps.
    progress : the bar that shows how much of the interval is integrated.
    """

    method: Method
    control: StepControl
    rhs: GraphFunction
    jac: GraphFunction | None = None
    events: tuple[EventPlan, ...] = ()
    event_capacity: int = 0
    keeps_all: bool = False
    save: str = "end"
    capacity: int = 0
    memory: int | str | None = None
    moving: tuple[bool, bool, bool] = (False, False, False)
    adjoint: str = "discrete"
    keeps_steps: bool = False
    progress: LoopProgress | None = None


class IvpValues(NamedTuple):
    """What may be a tensor.

    captured : by the functions: the right-hand side, its Jacobian, each event and its reset.
    first_step, mass, times, jumps, min_step : or None.
    """

    captured: tuple[tuple[Any, ...], ...]
    t0: Any
    t1: Any
    y0: Any
    rtol: Any
    atol: Any
    max_step: Any
    max_steps: Any
    first_step: Any = None
    mass: Any = None
    times: Any = None
    jumps: Any = None
    min_step: Any = None


class IvpOutcome(NamedTuple):
    """The results of a program.

    t, y, status : at the end.
    steps, attempts : the numbers of accepted and of all steps.
    counts : evaluations of the right-hand side and the Jacobian, and factorizations.
    saved : the state of the saver.
    events : for each event the number of occurrences, their times and states.
    """

    t: Any
    y: Any
    status: Any
    steps: Any
    attempts: Any
    counts: tuple[Any, ...]
    saved: Any
    events: tuple[Any, ...]


def _run(plan: IvpPlan, values: IvpValues) -> IvpOutcome:
    """The results, for traced values."""
    if plan.adjoint == "discrete":
        return _steps(plan, values)[0]

    def recorded(values: IvpValues) -> tuple[IvpOutcome, Record]:
        outcome, (count, ts, ys, *parts) = _steps(plan, values, keeps_all=True)
        return outcome, Record(count, ts, ys, tuple(parts))

    def adjoint_problem(values: IvpValues) -> AdjointProblem:
        return AdjointProblem(
            lambda consts, t, y: plan.rhs(consts, [t, y])[0],
            plan.method,
            plan.control,
            values.rtol,
            values.atol,
            values.max_steps,
            plan.adjoint == "continuous",
        )

    return continuous(lambda values: _steps(plan, values)[0], recorded, adjoint_problem, values)


def _steps(plan: IvpPlan, values: IvpValues, keeps_all: bool = False) -> tuple[IvpOutcome, Any]:
    """The results; with `keeps_all` also the buffers with all steps."""
    captured = iter(values.captured)

    def called(f: GraphFunction) -> Callable[[Any, Any], Any]:
        consts = next(captured)
        if is_long(f):
            return CalledFunction(f, consts)
        return lambda t, y: f(consts, [t, y])[0]

    rhs = called(plan.rhs)
    jac = None if plan.jac is None else called(plan.jac)
    own = rhs.jacobian if isinstance(rhs, CalledFunction) else None
    problem = IvpProblem(rhs, values.mass, jac, own)
    events = []
    for event in plan.events:
        function = called(event.function)
        reset = None if event.reset is None else called(event.reset)
        events.append(Event(function, event.direction, event.count, reset))
    observed = None
    if events:
        observed = Events(problem, plan.method, events, plan.event_capacity, plan.keeps_all)
    observers = _observers(plan, values, problem, keeps_all)
    settings = Settings(
        Tolerance(values.rtol, values.atol),
        plan.control,
        values.first_step,
        values.max_step,
        values.max_steps,
        plan.memory,
        plan.moving,
        values.jumps,
        values.min_step,
    )
    ends = values.t0, values.t1, values.y0
    with bar_of_loop(plan.progress, values):
        last = integrate(problem, plan.method, settings, *ends, observers, observed)
    happened: tuple[Any, ...] = ()
    if observed is not None:
        _, counts, ts, ys = last.events
        happened = tuple(zip(counts, ts, ys, strict=True))
    saved = None if plan.save == "end" else last.observers[0]
    if saved is not None and plan.save != "times":
        saved = with_end(saved, last.t, last.y)
    outcome = IvpOutcome(
        last.t,
        last.y,
        last.status,
        last.accepted,
        last.attempts,
        tuple(last.counts),
        saved,
        happened,
    )
    return outcome, last.observers[-1] if keeps_all else None


def _observers(
    plan: IvpPlan, values: IvpValues, problem: IvpProblem, keeps_all: bool
) -> list[Observer]:
    """The saver of the result, the progress bar, and the buffers with all steps."""
    found: list[Observer] = []
    buffers = StepBuffers(problem, plan.method, plan.capacity, plan.save == "dense" or keeps_all)
    if plan.save == "times":
        found.append(AtTimes(problem, plan.method, values.times, plan.keeps_steps))
    elif plan.save != "end":
        found.append(buffers)
    if plan.progress is not None:
        found.append(IvpProgress(plan.progress, values.t0, values.t1))
    if keeps_all:
        found.append(buffers)
    return found


_programs: KeptGraphs[Callable[[IvpValues], IvpOutcome]] = KeptGraphs()


def solved(plan: IvpPlan, values: IvpValues) -> IvpOutcome:
    """The results for a plan and values.

    Within a trace the program is part of the graph; else it is compiled, and kept for equal plans.
    """
    leaves, structure = pytree.flatten(values)
    if becomes_node(leaves):
        return _run(plan, values)

    def make() -> Callable[[IvpValues], IvpOutcome]:
        def program(*leaves: Any) -> Any:
            return _run(plan, pytree.unflatten(structure, list(leaves)))

        compiled = jit(program, source=False)
        return lambda values: compiled(*pytree.flatten(values)[0])

    try:
        return _programs.get((plan, str(structure)), make)(values)
    finally:
        if plan.progress is not None:  # the run may have been interrupted
            plan.progress.close_now()


def traced(
    f: Callable[..., Any], specs: Sequence[Any], what: str
) -> tuple[GraphFunction, tuple[Any, ...]]:
    """A user's function as a graph, and the values that it captures."""
    found, captured = GraphFunction.traced(lambda *xs: [f(*xs)], specs, what)
    return found, tuple(captured)
