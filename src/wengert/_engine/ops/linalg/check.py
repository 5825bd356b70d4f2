"""Accepting: a value, if something holds; an error in its place otherwise.

    accepted    the operation

Compositions of operations (`Op.compose`) use it where what they stand for is refused: two singular
values that are zero, a matrix that has not full rank.  A compiled function then leaves the step,
and the operation itself says what was wrong.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from .linear_solve import matrices


@matrices(
    "Look at the operands of the operation that this is part of",
    oracle=lambda x, holds, why="": x,
)
def accepted(x, holds, *, why="a condition does not hold"):
    """x, where all of `holds` is true; else an error that says why not."""
    if not np.all(holds):
        raise LinAlgError(why)
    return np.array(x)


@accepted.spec
def _spec(x: Any, holds: Any, **_: Any) -> Any:
    return x


@accepted.define_vjp
def _vjp(t, out, x, holds, *, why=""):
    return t, None


@accepted.define_jvp
def _jvp(dots, out, x, holds, *, why=""):
    return dots[0]


@accepted.batch
def _rows(args, batched, size, **params):
    return accepted(*args, **params) if batched[0] else NotImplemented


@accepted.examples
def _(rng):
    yield (rng.normal(size=(2, 3)), np.array([True, True])), {}
