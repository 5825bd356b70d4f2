"""A solve as an operation of graphs, and with plain values, by trust-constr or Ipopt (ipopt.py).

    solve_program      the outcome for captured values, limits and an initial guess
    nonlinear_program  the operation; it has no derivative (program.py has)
    leaves_of          its results
    by_trust_constr    one solve by SciPy
    CountedCalls       the functions, with counts and times

Fixed unknowns are not passed to trust-constr, and unknowns and functions are scaled here, since
SciPy does neither.

The outcome of a method is checked against the limits, and its multipliers are those of active
limits only.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.optimize
from scipy.sparse import coo_array, csr_array

from wengert._engine.core.graph_classes import Body
from wengert._engine.core.handle import wrap
from wengert._engine.core.op_facts import BY_SCIPY
from wengert._engine.core.recording import tracing_body
from wengert._engine.core.spec import Spec
from wengert._engine.core.tracing import placeholder
from wengert._engine.kinds.opaque import opaque
from wengert.errors import ArgumentError, at, user_line
from wengert.scipy.optimize.solver_operation import SolverOptions

from . import ipopt
from .newton_steps import Limited, Violations, active_multipliers, refined, slope_of
from .problem_data import (
    CompiledFunctions,
    ProblemData,
    ProgramFunctions,
    ProgramOutcome,
    SolverSettings,
    Stopwatch,
    as_progress,
    compiled_functions,
    entries_of,
    plain_operands,
)

Array = np.ndarray[Any, Any]
_MESSAGES = {
    0: "The maximum number of iterations was reached",
    1: "Solved",
    2: "The trust region became too small before the tolerance was reached",
    3: "Stopped",
    4: "Unexpected conditions: the method failed",
}
_FEASIBLE = 1e-6
_OPTIMAL = 1e-4  # relative optimality up to which a result with status 2 is taken for a minimum
_WARM = {
    "initial_tr_radius": 1e-2,
    "initial_barrier_parameter": 1e-6,
    "initial_barrier_tolerance": 1e-6,
}


class CountedCalls:
    """The compiled functions of a program for given captured values, with counts and times.

    The unknowns are those that are not fixed, times their scales.
    """

    def __init__(self, compiled: CompiledFunctions, data: ProblemData) -> None:
        self._compiled, self._data = compiled, data
        self._consts = plain_operands(compiled.captured_specs, data.consts)
        self.free = np.flatnonzero(data.lower_x != data.upper_x)
        scales = data.x_scaling
        self.x_scale = np.ones(len(self.free)) if scales is None else scales[self.free]
        scales = data.g_scaling
        self.g_scale = np.ones(len(data.lower_g)) if scales is None else scales
        given = data.settings.scaling
        self.f_scale = float(given.get("fun", 1.0)) if isinstance(given, dict) else 1.0
        self.counts: dict[str, int] = dict.fromkeys(("f", "grad_f", "g", "jac_g", "h"), 0)
        self.seconds: dict[str, float] = dict.fromkeys(self.counts, 0.0)
        self.not_finite, self.point = "", np.array(data.x0)
        self.is_running = False  # so that errors of the functions are not taken for SciPy's

    def full(self, z: Array) -> Array:
        """All unknowns."""
        x = np.array(self._data.lower_x)
        x[self.free] = z / self.x_scale
        return x

    def __call__(self, name: str, x: Array, *more: Any) -> Array:
        """The values of a function at all unknowns."""
        begin = time.perf_counter()
        self.point, self.is_running = x, True
        value = np.asarray(self._compiled.by_name[name](x, *more, *self._consts), float)
        self.is_running = False
        self.counts[name] += 1
        self.seconds[name] += time.perf_counter() - begin
        if not np.all(np.isfinite(value)):
            bad = int(np.flatnonzero(~np.isfinite(np.ravel(value)))[0])
            self.not_finite = self._data.named_failure(name, bad)
        return value

    def value(self, z: Array) -> float:
        """The scaled objective."""
        return float(self("f", self.full(z))) * self.f_scale

    def gradient(self, z: Array) -> Array:
        """Its gradient."""
        return self("grad_f", self.full(z))[self.free] * self.f_scale / self.x_scale

    def constrained(self, z: Array) -> Array:
        """The scaled constraints."""
        return self("g", self.full(z)) * self.g_scale

    def jacobian(self, z: Array) -> Any:
        """Their Jacobian."""
        entries = self("jac_g", self.full(z))
        rows, columns = entries_of(self._compiled.jacobian)
        shape = self._compiled.jacobian.shape
        matrix = csr_array(coo_array((entries * self.g_scale[rows], (rows, columns)), shape))
        return matrix[:, self.free].multiply(1.0 / self.x_scale).tocsr()

    def hessian(self, z: Array, factor: float, multipliers: Array) -> Any:
        """The Hessian of the Lagrange function."""
        given = np.float64(factor * self.f_scale), multipliers * self.g_scale
        entries = self("h", self.full(z), *given)
        rows, columns = entries_of(self._compiled.hessian)
        lower = csr_array(coo_array((entries, (rows, columns)), self._compiled.hessian.shape))
        off = csr_array(
            lower
            - csr_array(
                coo_array((lower.diagonal(), (np.arange(len(lower.diagonal())),) * 2), lower.shape)
            )
        )
        both = (lower + off.T).tocsr()[self.free][:, self.free]
        outer = 1.0 / self.x_scale
        return both.multiply(outer[:, None]).multiply(outer[None, :]).tocsr()


def by_trust_constr(
    compiled: CompiledFunctions, data: ProblemData, settings: SolverSettings
) -> ProgramOutcome:
    """Solve a program with trust-constr."""
    calls = CountedCalls(compiled, data)
    count, free = len(data.lower_g), calls.free
    begin = Stopwatch()
    if not free.size:
        return _all_fixed(calls, data, begin)
    none = np.zeros(count)
    constraints = []
    if count:
        constraints.append(
            scipy.optimize.NonlinearConstraint(
                calls.constrained,
                data.lower_g * calls.g_scale,
                data.upper_g * calls.g_scale,
                calls.jacobian,
                lambda z, v: calls.hessian(z, 0.0, v),
            )
        )
    ends = [end[free] * calls.x_scale for end in (data.lower_x, data.upper_x)]
    bounded = np.any(np.isfinite(ends))
    options: dict[str, Any] = {"maxiter": 1000, "sparse_jacobian": True if count else None}
    if settings.tol is None:
        options |= {"gtol": 1e-8, "xtol": 1e-10}
    options |= (_WARM if settings.warm else {}) | dict(settings.options.value)
    try:
        with warnings.catch_warnings():
            # of singular Jacobians and too small steps; the status has it
            warnings.filterwarnings("ignore", module=r"scipy\.")
            found = scipy.optimize.minimize(
                calls.value,
                np.clip(data.x0[free] * calls.x_scale, *ends),
                method="trust-constr",
                jac=calls.gradient,
                hess=lambda z: calls.hessian(z, 1.0, none),
                bounds=scipy.optimize.Bounds(*ends) if bounded else None,
                constraints=constraints,
                tol=settings.tol,
                callback=_callback(settings, calls),
                options=options,
            )
    except TypeError as error:
        if calls.is_running or "keyword argument" not in str(error):
            raise
        raise ArgumentError(f"nlp: trust-constr: {error}{at(user_line())}.") from None
    except (ValueError, ArithmeticError) as error:
        if calls.is_running:
            raise
        return _failed(str(error), calls, data, begin)
    return _outcome(found, calls, data, begin, count, bool(bounded))


def _callback(settings: SolverSettings, calls: CountedCalls) -> Any:
    if settings.callback is None:
        return None

    def called(z: Array, state: Any) -> bool:
        barrier = state.get("barrier_parameter", 0.0)
        given = state.constr_violation, state.optimality, barrier, state.tr_radius
        calls.is_running = True
        try:
            settings.callback(as_progress(state.nit, state.fun, *given))
        except StopIteration:
            return True
        calls.is_running = False
        return False

    return called


def _outcome(
    found: Any, calls: CountedCalls, data: ProblemData, begin: Stopwatch, count: int, bounded: bool
) -> ProgramOutcome:
    x = calls.full(found.x)
    v = [np.asarray(part, float).reshape(-1) for part in found.v]
    multipliers = v[0] * calls.g_scale / calls.f_scale if count else np.zeros(0)
    bounds = np.zeros(len(x))
    if bounded:
        bounds[calls.free] = v[-1] * calls.x_scale / calls.f_scale
    feasible = float(found.constr_violation) <= _FEASIBLE * (1.0 + float(np.max(np.abs(x))))
    slope = float(np.max(np.abs(found.grad), initial=0.0))
    optimal = float(found.optimality) <= _OPTIMAL * max(1.0, slope)
    success = feasible and (found.status == 1 or (found.status == 2 and optimal))
    message = _MESSAGES.get(found.status, "The method failed")
    if success:
        message = "Solved"
    elif not feasible and found.status in (1, 2):
        message = "The problem is locally infeasible"
    total = sum(calls.seconds.values())
    return ProgramOutcome(
        x,
        multipliers,
        bounds,
        float(found.fun) / calls.f_scale,
        success,
        int(found.status),
        message,
        int(found.nit),
        calls.counts,
        {**calls.seconds, "functions": total, **begin.seconds()},
        calls.not_finite,
    )


def _failed(
    reason: str, calls: CountedCalls, data: ProblemData, begin: Stopwatch
) -> ProgramOutcome:
    """The outcome if SciPy raised an error, for values that are not finite or a matrix."""
    return _without_multipliers(
        calls, data, begin, calls.point, False, f"The method failed: {reason}"
    )


def _all_fixed(calls: CountedCalls, data: ProblemData, begin: Stopwatch) -> ProgramOutcome:
    """The only point, if all unknowns are fixed."""
    x = np.array(data.lower_x)
    found = Violations.of(calls("g", x), data.lower_g, data.upper_g, data.settings.g_names)
    message = "All unknowns are fixed"
    return _without_multipliers(calls, data, begin, x, found.described is None, message)


def _without_multipliers(
    calls: CountedCalls, data: ProblemData, begin: Stopwatch, x: Array, success: bool, message: str
) -> ProgramOutcome:
    value = float(calls("f", x))
    total = sum(calls.seconds.values())
    return ProgramOutcome(
        x,
        np.zeros(len(data.lower_g)),
        np.zeros(len(x)),
        value,
        success,
        1 if success else 4,
        message,
        0,
        calls.counts,
        {**calls.seconds, "functions": total, **begin.seconds()},
        calls.not_finite,
    )


def solve_program(
    functions: ProgramFunctions, settings: SolverSettings, operands: Sequence[Any]
) -> ProgramOutcome:
    """Solve a program.

    Parameters
    ----------
    functions : ProgramFunctions
    settings : SolverSettings
    operands : sequence of arrays
        Captured values, limits of the unknowns, limits of the constraints, then the initial guess
        of unknowns, multipliers, and multipliers of bounds.
    """
    consts, rest = list(operands[: functions.captured]), operands[functions.captured :]
    compiled = compiled_functions(functions)
    before = compiled.build_seconds
    data = ProblemData(compiled, settings, consts, *[np.array(x, float) for x in rest])
    _check(data)
    run = ipopt.solve if settings.method == "ipopt" else by_trust_constr
    outcome = run(compiled, data, settings)
    outcome.seconds["build"] = compiled.build_seconds - before
    return _described(outcome, data)


def _check(data: ProblemData) -> None:
    names = data.settings.x_names, data.settings.g_names
    limits = (data.lower_x, data.upper_x), (data.lower_g, data.upper_g)
    for (lower, upper), own in zip(limits, names, strict=True):
        wrong = ~(lower <= upper) | (lower == np.inf) | (upper == -np.inf)
        if np.any(wrong):
            k = int(np.flatnonzero(wrong)[0])
            raise ArgumentError(
                f"nlp: the limits of {own[k]} are {lower[k]} and {upper[k]}. The lower limit must "
                f"not be above the upper one{at(user_line())}."
            )
    if not np.all(np.isfinite(data.x0)):
        k = int(np.flatnonzero(~np.isfinite(data.x0))[0])
        raise ArgumentError(
            f"nlp: the initial guess of {names[0][k]} is {data.x0[k]}. Give a finite number"
            f"{at(user_line())}."
        )


def _described(outcome: ProgramOutcome, data: ProblemData) -> ProgramOutcome:
    """The outcome with multipliers of active limits only, and with messages."""
    compiled, settings = data.compiled, data.settings
    consts = plain_operands(compiled.captured_specs, data.consts)
    if outcome.success and settings.method == "trust-constr":
        outcome = refined(outcome, data, consts)
    x = outcome.x
    run = compiled.by_name
    values = np.asarray(run["g"](x, *consts), float)
    found = Violations.of(
        np.concatenate([values, x]),
        np.concatenate([data.lower_g, data.lower_x]),
        np.concatenate([data.upper_g, data.upper_x]),
        [*settings.g_names, *settings.x_names],
    )
    message = outcome.message
    if not outcome.success and outcome.not_finite:
        message += f"; the last evaluation that was not finite: {outcome.not_finite}"
    outcome = replace(outcome, message=message, violation=found.largest)
    if not outcome.success:
        return replace(outcome, violated=found.described)
    slope = slope_of(data, consts, x)
    entries = np.asarray(run["jac_g"](x, *consts), float)
    rows, _ = entries_of(compiled.jacobian)
    lengths = np.sqrt(np.bincount(rows, entries**2, minlength=len(values)))
    size = float(np.max(np.abs(x), initial=0.0))
    y, weak_g = active_multipliers(
        Limited(values, data.lower_g, data.upper_g, outcome.multipliers, lengths), slope, size
    )
    nu, weak_x = active_multipliers(
        Limited(x, data.lower_x, data.upper_x, outcome.bound_multipliers, np.ones(len(x))),
        slope,
        size,
    )
    weak = [settings.g_names[k] for k in np.flatnonzero(weak_g)]
    weak += [settings.x_names[k] for k in np.flatnonzero(weak_x)]
    return replace(outcome, multipliers=y, bound_multipliers=nu, degenerate=tuple(weak))


_NUMBER = Spec((), np.dtype(float))
_COUNT = Spec((), np.dtype(np.int64))


def leaves_of(outcome: Any) -> tuple[Any, ...]:
    """Solution, success, objective, status and number of iterations of an outcome.

    The solution is one vector: unknowns, multipliers of constraints, multipliers of bounds.
    """
    z = np.concatenate([outcome.x, outcome.multipliers, outcome.bound_multipliers])
    more = np.float64(outcome.fun), np.int64(outcome.status), np.int64(outcome.nit)
    return z, np.bool_(outcome.success), *more


def _nearest_on_a_line(*operands: Any, **params: Any) -> Any:
    """The outcome of the examples (the oracle)."""
    p, x = operands[0], np.asarray(operands[0]) - (np.sum(operands[0]) - 1.0) / 2.0
    multiplier = np.sum(p) - 1.0
    z = np.concatenate([x, [multiplier], np.zeros(2)])
    return z, np.bool_(True), np.sum((x - p) ** 2), np.int64(1), np.int64(3)


@opaque(name="nonlinear_program", trusted=True, oracle=_nearest_on_a_line)
def nonlinear_program(*operands: Any, functions: Any, settings: Any) -> Any:
    """The solution of a nonlinear program, whether it was found, the objective, and counts."""
    return leaves_of(solve_program(functions, settings, operands))


nonlinear_program.host_callback = BY_SCIPY


@nonlinear_program.spec
def _(*operands: Spec, functions: Any, settings: Any) -> Any:
    size = 2 * functions.size + functions.constraint_count
    return Spec((size,), np.dtype(float)), Spec((), np.dtype(bool)), _NUMBER, _COUNT, _COUNT


@nonlinear_program.examples
def _(rng: np.random.Generator) -> Any:
    with tracing_body():
        vector = Spec((2,), np.dtype(float))
        p, x = placeholder(vector), placeholder(vector)
        distance = wrap(x) - wrap(p)
        value = np.sum(distance * distance)
        total = np.sum(wrap(x)).reshape((1,))
    objective = Body(value.node, inputs=[p, x], name="the distance from p")
    constraint = Body(total.node, inputs=[p, x], name="the sum of x")
    none = SolverOptions({})
    names = ("x[0]", "x[1]"), ("total[0]",)
    settings = SolverSettings("trust-constr", None, none, SolverOptions(None), None, False, *names)
    params = {"functions": ProgramFunctions(objective, constraint, 1), "settings": settings}
    end = np.full(2, np.inf)
    one, zeros = np.ones(1), np.zeros(2)
    yield (rng.normal(size=2), -end, end, one, one, zeros, np.zeros(1), zeros), params
