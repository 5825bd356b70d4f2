"""Loops for arrays that native code can trace with scalars.

    repeat            a loop with carried values, and a condition for each element
    fail_where        raises an error where a value cannot be computed
    is_traced_scalar  whether a value is a traced scalar of native code, which has no value yet

Python loops are unrolled while tracing.  `repeat` is for loops with many iterations, or with a
number of iterations that depends on values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

__all__: list[str] = []


def is_traced_scalar(x: Any) -> bool:
    """Whether x is a scalar with which native code traces a function."""
    return hasattr(x, "writer")


def fail_where(condition: Any, message: Callable[[], str]) -> None:
    """Raise an error if a condition holds for any element.

    In native code such elements are computed again by the interpreter, which raises the error.

    Raises
    ------
    OverflowError
        The condition holds for an element.
    """
    if is_traced_scalar(condition):
        condition.writer.refuse(condition)
    elif np.any(condition):
        raise OverflowError(message())


def repeat(
    step: Callable[..., Any],
    state: Sequence[Any],
    times: int,
    continues: Callable[..., Any] | None = None,
) -> tuple[Any, ...]:
    """Apply a step repeatedly to carried values.

    Parameters
    ----------
    step : callable
        ``step(k, *state)`` returns the next state, with the same dtypes; k counts from 0.
    state : sequence of ndarray
        The initial values.
    times : int
        The maximum number of steps.
    continues : callable, optional
        ``continues(*state)`` is a mask of the elements that need another step; the others do not
        change.

    Returns
    -------
    tuple of ndarray
    """
    writer = next((x.writer for x in state if is_traced_scalar(x)), None)
    if writer is not None:
        return writer.repeat(step, state, times, continues)  # type: ignore[no-any-return]
    for k in range(times):
        if continues is None:
            state = step(k, *state)
            continue
        active = continues(*state)
        if not np.any(active):
            break
        pairs = zip(step(k, *state), state, strict=True)
        state = [np.where(active, new, old) for new, old in pairs]
    return tuple(state)
