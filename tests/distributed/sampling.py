"""Which programs the checks that compile most choose, and the ways in which they run them.

sampled    all programs, or every fourth
halved     all programs, or every second
ways       as they are and compiled, or one of the two by turns
by_turns   all of what is checked of a program, or every second
step       1: everything; run_checks.py sets another with --quick
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import wengert as wg

step = 1


def sampled(programs: Sequence[Any]) -> Sequence[Any]:
    """All programs, or every fourth (set by run_checks.py)."""
    return programs[::step]


def halved(programs: Sequence[Any]) -> Sequence[Any]:
    """All programs, or every second."""
    return programs if step == 1 else programs[::2]


def ways(number: int) -> list[Callable[[Any], Any]]:
    """What is done to a function before it is called: nothing, and `jit`; one of them by turns.

    Parameters
    ----------
    number : int
        Of the function: 0, 1, 2 ...
    """
    both: list[Callable[[Any], Any]] = [wg.jit, lambda f: f]
    return both if step == 1 else [both[number % 2]]


def by_turns(number: int, checked: Sequence[Any]) -> Sequence[Any]:
    """All of what is checked of a program, or every second, of the next program the others.

    Parameters
    ----------
    number : int
        Of the program: 0, 1, 2 ...
    checked : sequence
        Such as derivatives by several orders of the modes.
    """
    return checked if step == 1 else checked[number % 2 :: 2]
