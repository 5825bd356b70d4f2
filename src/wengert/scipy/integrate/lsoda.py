"""solve_ivp with LSODA, which is SciPy's own loop with compiled functions.

ODEPACK's LSODA changes between methods of Adams and backward differences; its steps are not
programs of this library, so they have no derivative.  Values are those of SciPy, also in compiled
functions, where it is a host callback.

    by_lsoda      the result of solve_ivp
    LsodaRule     the solution as a node, whose derivative is refused with advice
    scipy_lsoda   the operation
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.integrate

from wengert._engine.control_flow.eager_loops import becomes_node
from wengert._engine.core.graph_classes import Body
from wengert._engine.core.handle import describe, is_traced, value_of, wrap
from wengert._engine.core.op_facts import BY_SCIPY
from wengert._engine.core.recording import tracing_body
from wengert._engine.core.spec import Spec
from wengert._engine.core.tracing import placeholder
from wengert._engine.implicit.functions import GraphFunction
from wengert._engine.implicit.solver_calls import SolverRule, solver_call
from wengert._engine.kinds.opaque import opaque
from wengert._engine.tensor.numpy_dispatch import as_array
from wengert.errors import DtypeError, TraceError, at, user_line

from ..optimize.solver_operation import bound
from .ivp.initial_value import IvpOptions, checked_rhs, checked_state
from .ivp.program import traced

STATIC_OPTIONS = ("min_step", "lband", "uband")
_NUMBER, _COUNT = Spec((), np.dtype(float)), Spec((), np.dtype(np.int64))
_OTHERS = 7  # operands after captured values: t0, t1, y0, rtol, atol, max_step, first_step
Static = tuple[tuple[str, Any], ...]


def by_lsoda(
    f: Callable[[Any, Any], Any],
    t0: Any,
    t1: Any,
    y0: Any,
    options: IvpOptions,
    static: dict[str, Any],
    times: Any,
) -> Any:
    """The result of ``solve_ivp(method="LSODA")`` with tensors.

    Parameters
    ----------
    f : callable
    t0, t1 : float or Tensor
    y0 : vector
    options : IvpOptions
    static : dict
        Other options, of `STATIC_OPTIONS`.
    times : vector or None
        Those of the result.

    Raises
    ------
    TraceError
        In a graph, without times.
    DtypeError
        The state is complex.
    """
    what = "solve_ivp"
    y0 = checked_state(y0, what)
    spec = Spec(tuple(describe(y0).shape), describe(y0).dtype)
    if spec.dtype.kind == "c":
        raise DtypeError(
            f"{what}: LSODA is for real states, and y0 is {spec.dtype}. Use method='BDF', 'RK45' "
            f"or 'DOP853'{at(user_line())}."
        )
    functions: list[Callable[[Any, Any], Any]] = [checked_rhs(f, spec, what)]
    if (jac := options.jac) is not None:
        functions.append(lambda t, y: as_array(jac(t, y)))
    graphs: list[GraphFunction] = []
    captured: list[Any] = []
    packed = Spec((spec.shape[0] + 1,), spec.dtype)
    for function in functions:
        graph, values = traced(lambda x, g=function: g(x[0], x[1:]), [packed], what)
        graphs.append(graph)
        captured.extend(values)
    first = np.nan if options.first_step is None else options.first_step
    others = [t0, t1, y0, options.rtol, options.atol, options.max_step, first]
    operands = [*captured, *[as_array(x) * 1.0 for x in others]]
    rule = LsodaRule(graphs, tuple(sorted(static.items())), times is not None)
    if times is not None:
        operands.append(as_array(times) * 1.0)
    elif becomes_node(operands):
        raise TraceError(
            f"{what}: in a graph the number of steps is not known. Give the times at which the "
            f"solution is wanted (t_eval){at(user_line())}."
        )
    return _result(solver_call(rule, operands), times)


def _result(found: Sequence[Any], times: Any) -> Any:
    """SciPy's result object."""
    ts, ys, *numbers = found
    if not is_traced(numbers[0]):
        reached, status, *counts = [int(value_of(x)) for x in numbers]
        ts, ys = ts[:reached], ys[:reached]
        message, success = _MESSAGES[status], status >= 0
    else:
        _, status, *counts = numbers
        message, success = "", status >= 0
    return scipy.integrate._ivp.ivp.OdeResult(
        t=ts,
        y=ys.T,
        sol=None,
        t_events=None,
        y_events=None,
        nfev=counts[0],
        njev=counts[1],
        nlu=counts[2],
        status=status,
        message=message,
        success=success,
    )


_MESSAGES = {
    0: "The solver successfully reached the end of the integration interval.",
    -1: "Unexpected istate in LSODA.",
}


class LsodaRule(SolverRule):
    """The solution by LSODA, which has no derivative.

    Parameters
    ----------
    functions : sequence of GraphFunction
        The right-hand side and, if it is given, its Jacobian, as functions of time and state in one
        vector.
    static : tuple of pairs
        Options that are no operands.
    has_times : bool
        Whether the last operand are the times of the result.
    """

    name = "solve_ivp(method='LSODA')"
    has_vjp = has_jvp = False

    def __init__(self, functions: Sequence[GraphFunction], static: Static, has_times: bool) -> None:
        self.functions, self.static, self.has_times = tuple(functions), static, has_times
        self._key = self.functions, static, has_times

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LsodaRule) and self._key == other._key

    def __hash__(self) -> int:
        return hash((LsodaRule, self._key))

    @property
    def _params(self) -> dict[str, Any]:
        return {
            "functions": tuple([f.body for f in self.functions]),
            "captured": tuple([f.captured for f in self.functions]),
            "options": self.static,
        }

    def solution(self, operands: Sequence[Any]) -> list[Any]:
        """Times, states and counts, as an operation."""
        return [operands[-1], *scipy_lsoda(*operands, **self._params)]

    def values(self, operands: Sequence[Any]) -> tuple[Any, ...]:
        """The same for plain operands, at the times that are reached or after each step."""
        others, times = list(operands), None
        if self.has_times:
            times = others.pop()
        found = _solved(others, times, **self._params)
        return (found.t, *_outputs(found, others[-_OTHERS + 2]))

    def missing(self) -> str:
        """The methods that have a derivative."""
        return (
            "LSODA is a loop of SciPy, of which only the values are known. Use method='BDF' or "
            "'Radau' for stiff problems, and 'RK45' or 'DOP853' for others"
        )


def _solved(
    operands: Sequence[Any],
    times: Any,
    functions: Sequence[Body],
    captured: Sequence[int],
    options: Static,
) -> Any:
    """SciPy's result for plain operands: captured values, then the others."""
    given = iter([np.asarray(x) for x in operands[:-_OTHERS]])
    made = []
    for body, count in zip(functions, captured, strict=True):
        made.append(bound(body, [next(given) for _ in range(count)]))
    t0, t1, y0, rtol, atol, most, first = [np.asarray(x) for x in operands[-_OTHERS:]]

    def of_packed(f: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
        packed = np.empty(y0.size + 1)

        def function(t: Any, y: Any) -> Any:
            packed[0], packed[1:] = t, y
            return f(packed)

        return function

    more = dict(options)
    if len(made) > 1:
        more["jac"] = of_packed(made[1])
    return scipy.integrate.solve_ivp(
        of_packed(made[0]),
        (float(t0), float(t1)),
        y0,
        "LSODA",
        None if times is None else np.asarray(times),
        rtol=rtol[()],
        atol=atol[()],
        max_step=float(most),
        first_step=None if np.isnan(first) else float(first),
        **more,
    )


def _outputs(found: Any, y0: Any) -> tuple[Any, ...]:
    """The states, one in a row, how many there are, the status, and counts."""
    reached = np.size(found.t)
    states = np.ascontiguousarray(np.asarray(found.y).T).reshape(reached, np.size(y0))
    numbers = [reached, found.status, found.nfev, found.njev, found.nlu]
    return (states, *[np.int64(n) for n in numbers])


def _decayed(c: Any, *others: Any, **params: Any) -> Any:
    """The results of the examples by SciPy alone, for ``-c * y`` (the oracle of the operation)."""
    t0, t1, y0, rtol, atol, most, _, times = others
    found = scipy.integrate.solve_ivp(
        lambda t, y: -c * y, (t0, t1), y0, "LSODA", times, rtol=rtol, atol=atol, max_step=most
    )
    return _outputs(found, y0)


@opaque(name="scipy_lsoda", trusted=True, oracle=_decayed)
def scipy_lsoda(
    *operands: Any, functions: tuple[Body, ...], captured: tuple[int, ...], options: Static
) -> Any:
    """States at given times by LSODA; NaN after those that are reached; and counts."""
    *others, times = operands
    y0 = others[-_OTHERS + 2]
    states, *numbers = _outputs(_solved(others, times, functions, captured, options), y0)
    all_states = np.full((np.size(times), np.size(y0)), np.nan)
    all_states[: int(numbers[0])] = states
    return (all_states, *numbers)


scipy_lsoda.host_callback = BY_SCIPY


@scipy_lsoda.spec
def _(*operands: Spec, functions: Any, captured: Any, options: Any) -> Any:
    y0, times = operands[-_OTHERS + 1], operands[-1]
    return (Spec((times.shape[0], y0.shape[0]), np.dtype(float)), *[_COUNT] * 5)


@scipy_lsoda.examples
def _(rng: np.random.Generator) -> Any:
    with tracing_body():
        c, x = placeholder(_NUMBER), placeholder(Spec((3,), np.dtype(float)))
        value = -wrap(c) * wrap(x)[1:]
    body = Body(value.node, inputs=[c, x], name="-c * y")
    y0, times = np.array([1.0, 0.5]), np.array([0.0, 0.5, 2.0])
    numbers = [np.float64(v) for v in (rng.uniform(1.0, 9.0), 0.0, 2.0, 1e-6, 1e-9, np.inf, np.nan)]
    params = {"functions": (body,), "captured": (1,), "options": ()}
    yield (*numbers[:3], y0, *numbers[3:], times), params
