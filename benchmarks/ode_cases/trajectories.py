"""Last states for many choices of the parameters: one call, each with its own steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from native.case import Call, Case, generator

from . import by_diffrax, by_hand, by_lsoda, by_wengert, published
from .problem import Problem

TITLE = "Many trajectories"
TEXT = (
    "Parameters are varied by 20 %. *wengert* and *diffrax*: `vmap`. *numbalsoda* and *numba*: a "
    "compiled loop over trajectories, with the methods of the first table."
)
PEERS = ("diffrax", "numbalsoda")
TARGET = "at most the time of numbalsoda"


def cases(quick: bool) -> Iterator[Case]:
    """Two problems."""
    number = 20 if quick else 1000
    for problem in (published.lotka_volterra(), published.robertson()):
        factors = generator(94, number).uniform(0.8, 1.2, (number, len(problem.parameters)))
        varied = problem.parameters * factors
        yield Case(f"{problem.name}, {number}", contestants(problem, varied), within=3e-2)


def contestants(problem: Problem, varied: Any) -> dict[str, Callable[[], Call]]:
    """Who has a batch."""

    def numba() -> Call:
        from numba import njit

        n = len(problem.start)
        one = (by_hand.robertson if problem.stiff else by_hand.value)(problem, njit)

        @njit
        def run(ps: Any) -> Any:
            out = np.empty((ps.shape[0], n))
            for i in range(ps.shape[0]):
                out[i] = one(ps[i])
            return out

        return Call(run, (varied,))

    return {
        "wengert": lambda: by_wengert.trajectories(problem, varied),
        "diffrax": lambda: by_diffrax.trajectories(problem, varied),
        "numbalsoda": lambda: by_lsoda.trajectories(problem, varied),
        "numba": numba,
    }
