"""Ipopt, through ipyopt, with C functions: no Python runs in a solve, except for callbacks.

A. Waechter, L. T. Biegler, "On the implementation of an interior-point filter line-search algorithm
for large-scale nonlinear programming", Math. Program. 106 (2006).

    is_installed   whether ipyopt can be imported
    solve          one solve
"""

from __future__ import annotations

import ctypes
import importlib.util
from typing import Any

import numpy as np

from wengert._engine.backends.llvm.abi import ipopt_callbacks as words
from wengert.errors import ArgumentError, BackendError, at, user_line

from .problem_data import (
    CompiledFunctions,
    ProblemData,
    ProgramOutcome,
    SolverSettings,
    Stopwatch,
    as_progress,
    entries_of,
    plain_operands,
)

_NAMES = ("f", "grad_f", "g", "jac_g", "h")
_MESSAGES = {
    0: "Solved",
    1: "Solved to the acceptable tolerance only",
    2: "The problem is locally infeasible",
    3: "The steps became too short before the tolerance was reached",
    4: "The iterates diverge: the problem may be unbounded",
    5: "Stopped",
    6: "A feasible point was found (there are as many equalities as unknowns)",
    -1: "The maximum number of iterations was reached",
    -2: "The restoration of feasibility failed",
    -3: "No step could be computed",
    -4: "The maximum of processor time was reached",
    -5: "The maximum of time was reached",
    -10: "There are more equalities than unknowns that are not fixed",
    -11: "The problem is not defined correctly",
    -12: "Ipopt does not accept an option",
    -13: "A function or a derivative is not finite",
    -100: "Ipopt raised an exception",
    -102: "Ipopt has no memory",
    -199: "Ipopt has failed",
}
_SUCCESS = (0, 1, 6)
_WARM = {
    "warm_start_init_point": "yes",
    "warm_start_bound_push": 1e-9,
    "warm_start_bound_frac": 1e-9,
    "warm_start_slack_bound_push": 1e-9,
    "warm_start_slack_bound_frac": 1e-9,
    "warm_start_mult_bound_push": 1e-9,
    "mu_init": 1e-8,
}


def is_installed() -> bool:
    """Whether ipyopt can be imported."""
    return importlib.util.find_spec("ipyopt") is not None


class _Callbacks:
    """The C functions of one solve, and the memory with which they are called."""

    def __init__(self, compiled: CompiledFunctions, data: ProblemData) -> None:
        import scipy

        self.operands = plain_operands(compiled.captured_specs, data.consts)
        self.stop = np.zeros(1, np.int64)
        self.records: dict[str, Any] = {}
        self.pointers: dict[str, Any] = {}
        self.callables: dict[str, Any] = {}
        for name in _NAMES:
            record = np.zeros(words.FIRST_INPUT + len(self.operands), np.int64)
            record[words.STOP] = self.stop.ctypes.data
            record[words.FIRST_INPUT :] = [x.ctypes.data for x in self.operands]
            self.records[name], self.pointers[name] = record, compiled.pointer(name)
            memory = ctypes.c_void_p(record.ctypes.data)
            self.callables[name] = scipy.LowLevelCallable(self.pointers[name].function, memory)

    def intermediate(self) -> Any:
        """The C function that is called after each iteration."""
        import scipy

        kind = ctypes.CFUNCTYPE(
            ctypes.c_bool,
            *[ctypes.c_int] * 2,
            *[ctypes.c_double] * 8,
            ctypes.c_int,
            *[ctypes.c_void_p] * 3,
        )
        memory = ctypes.c_void_p(self.records["f"].ctypes.data)
        return scipy.LowLevelCallable(kind(words.intermediate()), memory)

    def raise_error(self) -> None:
        """Raise the error of a host callback that ended the solve."""
        for name in _NAMES:
            if self.stop[0] and self.records[name][words.STATUS] == words.RAISED:
                raise self.pointers[name].callbacks.take_error()

    def last_failure(self) -> tuple[str, int] | None:
        """The function and the element that was not finite."""
        failed = [n for n in _NAMES if self.records[n][words.FAILURES]]
        return (failed[-1], int(self.records[failed[-1]][words.ELEMENT])) if failed else None


def _options(settings: SolverSettings) -> dict[str, Any]:
    given = dict(settings.options.value)
    options: dict[str, Any] = {"print_level": 0, "sb": "yes", "honor_original_bounds": "yes"}
    if settings.warm:
        options |= _WARM
    if settings.tol is not None:
        options["tol"] = float(settings.tol)
    if settings.scaling is None:
        options["nlp_scaling_method"] = "none"
    elif settings.scaling != "gradient":
        options["nlp_scaling_method"] = "user-scaling"
    return options | given


def _after_iteration(callbacks: _Callbacks, settings: SolverSettings) -> tuple[Any, list[Any]]:
    """The callback after each iteration, and a list with the error that it raises."""
    errors: list[Any] = []
    if settings.callback is None:
        return callbacks.intermediate(), errors

    def called(mode: int, k: int, fun: float, *rest: float) -> bool:
        violation, optimality, barrier, step = rest[:4]
        progress = as_progress(k, fun, violation, optimality, barrier, step)
        try:
            settings.callback(progress)
        except BaseException as error:
            errors.append(error)
            return False
        return not callbacks.stop[0]

    return called, errors


def solve(
    compiled: CompiledFunctions, data: ProblemData, settings: SolverSettings
) -> ProgramOutcome:
    """Solve a program with Ipopt.

    Raises
    ------
    ArgumentError
        Ipopt does not accept an option.
    """
    if not is_installed():
        raise BackendError(
            "nlp: Ipopt needs the package ipyopt. Install it (pip install wengert[nlp]), or use "
            f"method='trust-constr'{at(user_line())}."
        )
    import ipyopt

    make: Any = ipyopt.Problem  # its stubs do not take the arguments that are unpacked here

    callbacks = _Callbacks(compiled, data)
    after, errors = _after_iteration(callbacks, settings)
    count = len(data.lower_g)
    begin = Stopwatch()
    scaling = settings.scaling if isinstance(settings.scaling, dict) else {}
    try:
        problem = make(
            len(data.x0),
            data.lower_x,
            data.upper_x,
            count,
            data.lower_g,
            data.upper_g,
            entries_of(compiled.jacobian),
            entries_of(compiled.hessian),
            *[callbacks.callables[name] for name in _NAMES],
            after,
            ipopt_options=_options(settings),
            obj_scaling=float(scaling.get("fun", 1.0)),
            x_scaling=data.x_scaling,
            g_scaling=data.g_scaling,
        )
    except (ValueError, TypeError) as error:
        raise ArgumentError(f"nlp: {error}{at(user_line())}.") from None
    x, multipliers = data.x0.copy(), data.multipliers0.copy()
    below, above = np.maximum(-data.bounds0, 0.0), np.maximum(data.bounds0, 0.0)
    x, fun, status = problem.solve(x, mult_g=multipliers, mult_x_L=below, mult_x_U=above)
    callbacks.raise_error()
    if errors and not isinstance(errors[0], StopIteration):
        raise errors[0]
    seconds = {n: callbacks.records[n][words.NANOSECONDS] * 1e-9 for n in _NAMES}
    failure = callbacks.last_failure()
    return ProgramOutcome(
        np.asarray(x),
        multipliers,
        above - below,
        float(fun),
        status in _SUCCESS,
        int(status),
        _MESSAGES.get(status, "Ipopt failed"),
        int(problem.stats.get("n_iter", -1)),
        {n: int(callbacks.records[n][words.CALLS]) for n in _NAMES},
        {**seconds, "functions": sum(seconds.values()), **begin.seconds()},
        data.named_failure(*failure) if failure else "",
    )
