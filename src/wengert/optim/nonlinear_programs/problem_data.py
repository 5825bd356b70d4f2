"""The data of one solve, as plain arrays, and the settings of the solver.

ProblemData      limits, initial guess, captured values, names
SolverSettings   method and options, compared by content
Stopwatch        the time of a solve
as_progress      the state after an iteration
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from wengert.scipy.optimize.solver_operation import SolverOptions

from .compiled_functions import CompiledFunctions, entries_of
from .result import NLPProgress

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class SolverSettings:
    """How a program is solved.

    method : "ipopt" or "trust-constr".
    tol, callback, options : as in `nlp`.
    scaling : "gradient", None, or a dict of numbers and tuples.
    warm : whether multipliers of a solution are given.
    x_names, g_names : of the elements of the unknowns and constraints.
    """

    method: str
    tol: float | None
    options: SolverOptions
    scaling_options: SolverOptions
    callback: Any
    warm: bool
    x_names: tuple[str, ...]
    g_names: tuple[str, ...]

    @property
    def scaling(self) -> Any:
        """The scaling that was given."""
        return self.scaling_options.value


@dataclass
class ProblemData:
    """The values of one solve.

    consts : captured values.
    lower_x, upper_x, lower_g, upper_g : limits.
    x0, multipliers0, bounds0 : where the solver begins.
    """

    compiled: CompiledFunctions
    settings: SolverSettings
    consts: list[Any]
    lower_x: Array
    upper_x: Array
    lower_g: Array
    upper_g: Array
    x0: Array
    multipliers0: Array
    bounds0: Array

    @property
    def x_scaling(self) -> Array | None:
        """Factors of the unknowns."""
        return self._scaling("x", len(self.x0))

    @property
    def g_scaling(self) -> Array | None:
        """Factors of the constraints."""
        return self._scaling("constraints", len(self.lower_g))

    def _scaling(self, name: str, size: int) -> Array | None:
        given = self.settings.scaling
        if not isinstance(given, dict) or name not in given:
            return None
        return np.array(np.broadcast_to(np.asarray(given[name], float), (size,)))

    def named_failure(self, function: str, element: int) -> str:
        """What is not finite, from a function and the index of the element of its result."""
        x_names, g_names = self.settings.x_names, self.settings.g_names
        if element < 0:
            return f"the evaluation of {function} failed"
        if function == "f":
            return "the objective"
        if function == "grad_f":
            return f"the derivative of the objective with respect to {x_names[element]}"
        if function == "g":
            return f"the constraint {g_names[element]}"
        if function == "jac_g":
            rows, columns = entries_of(self.compiled.jacobian)
            of, by = g_names[rows[element]], x_names[columns[element]]
            return f"the derivative of the constraint {of} with respect to {by}"
        rows, columns = entries_of(self.compiled.hessian)
        pair = f"{x_names[rows[element]]} and {x_names[columns[element]]}"
        return f"the second derivative of the Lagrange function with respect to {pair}"


class Stopwatch:
    """The time since it was made."""

    def __init__(self) -> None:
        self._wall, self._processor = time.perf_counter(), time.process_time()

    def seconds(self) -> dict[str, float]:
        """The time of a solve, and that of the processor."""
        wall, processor = time.perf_counter(), time.process_time()
        return {"solve": wall - self._wall, "processor": processor - self._processor}


def as_progress(
    nit: int, fun: float, violation: float, optimality: float, barrier: float, step: float
) -> NLPProgress:
    """The state after an iteration."""
    return NLPProgress(
        int(nit), float(fun), float(violation), float(optimality), float(barrier), float(step)
    )
