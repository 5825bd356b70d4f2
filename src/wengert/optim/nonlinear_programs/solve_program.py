"""A solve with plain values: by either method, and what its result means.

The outcome of a method is checked against the limits, and its multipliers are those of active
limits only.

    solve_program   the outcome for captured values, limits and an initial guess
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from wengert.errors import ArgumentError, at, user_line

from . import ipopt, trust_constr
from .compiled_functions import ProgramFunctions, compiled_functions, entries_of, plain_operands
from .newton_steps import Limited, Violations, active_multipliers, refined, slope_of
from .problem_data import ProblemData, SolverSettings
from .result import ProgramOutcome


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
    method = ipopt if settings.method == "ipopt" else trust_constr
    outcome = method.solve(compiled, data, settings)
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
