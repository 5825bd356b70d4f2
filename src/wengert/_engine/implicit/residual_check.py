"""The check that the solution of a solver satisfies the equation from which derivatives are taken.

tolerance   the relative tolerance that was requested
verified    the solution, or an error if the residual is not small
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert._engine.core.op import lookup
from wengert.errors import ArgumentError, at, user_line

from .functions import GraphFunction, raveled

_TOLERANCE = 1e-6  # by default
_TOLERANCE_SINGLE = 1e-3  # by default, in single precision


def tolerance(check: Any, what: str) -> float | None:
    """The relative tolerance; None if the residual is not checked, 0 for the default.

    Raises
    ------
    ArgumentError
        It is neither a bool nor a positive number.
    """
    if check is False or check is None:
        return None
    if check is True:
        return 0.0
    if not isinstance(check, int | float) or not 0.0 < check < 1.0:
        raise ArgumentError(
            f"{what}: check={check!r} is not a relative tolerance between 0 and 1. Use check=True "
            f"for the default{at(user_line())}."
        )
    return float(check)


def verified(
    residual: GraphFunction,
    consts: Sequence[Any],
    guess: Sequence[Any],
    ys: Sequence[Any],
    relative: float,
    what: str,
    results: Sequence[Any],
) -> list[Any]:
    """The results, if the residual at the solution is small.

    It is compared with the residual at the guess, and with the size of the terms of the equation:
    that of the product of the Jacobian and the solution, which for ``a @ y - b`` is ``a @ y``.

    Raises
    ------
    ConvergenceError
        The residual is not small, or NaN; in a compiled function, when it runs.
    """
    fixed, start, solution = [
        [lookup("stop_gradient")(x) for x in values] for values in (consts, guess, ys)
    ]
    size = _largest(residual(fixed, solution))
    terms = _largest(residual.tangent(fixed, solution, solution))
    scale = _largest(residual(fixed, start)) + terms
    default = _TOLERANCE_SINGLE if scale.dtype == np.float32 else _TOLERANCE
    relative = relative or default
    limit = relative * scale + float(np.finfo(scale.dtype).tiny)
    return [lookup("refuse_residual")(y, size, limit, what=what) for y in results]


def _largest(values: Sequence[Any]) -> Any:
    return np.max(np.abs(raveled(values)))
