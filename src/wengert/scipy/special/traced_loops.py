"""Loops over changing values, for arrays and for elements in native code.

    repeat     steps, a number of times, or as long as an element needs them
    refuse     what has no value, as it would take too long
    is_element whether something is an element of native code, whose number cannot be looked at

Python's own loops are written out where native code is made: what takes many turns, or as many as
the numbers say, is said with `repeat`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

__all__: list[str] = []


def is_element(x: Any) -> bool:
    """Whether native code is made of what is done with x."""
    return hasattr(x, "writer")


def refuse(condition: Any, why: Callable[[], str]) -> None:
    """Say that there is no value where a condition holds.

    Raises
    ------
    OverflowError
        It holds for an element of an array; what is given says why.  Native code leaves it to the
        interpreter to say so.
    """
    if is_element(condition):
        condition.writer.refuse(condition)
    elif np.any(condition):
        raise OverflowError(why())


def repeat(
    step: Callable[..., Any],
    state: Sequence[Any],
    times: int,
    going: Callable[..., Any] | None = None,
) -> tuple[Any, ...]:
    """What values become by steps.

    Parameters
    ----------
    step : callable
        ``step(k, *state)`` gives the next state, of the same dtypes; k counts from 0.
    state : sequence of ndarray
    times : int
        How many steps at most.
    going : callable, optional
        ``going(*state)`` says which elements need another step; the others stay as they are.

    Returns
    -------
    tuple of ndarray
    """
    writer = next((x.writer for x in state if is_element(x)), None)
    if writer is not None:
        return writer.repeat(step, state, times, going)  # type: ignore[no-any-return]
    for k in range(times):
        if going is None:
            state = step(k, *state)
            continue
        now = going(*state)
        if not np.any(now):
            break
        pairs = zip(step(k, *state), state, strict=True)
        state = [np.where(now, new, old) for new, old in pairs]
    return tuple(state)
