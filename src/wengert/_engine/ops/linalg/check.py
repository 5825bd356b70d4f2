"""Accepting: a value, if something holds; an error in its place otherwise.

    accepted    the operation

Compositions of operations (`Op.compose`) use it where what they stand for is refused: two singular
values that are zero, a matrix that has not full rank.  A compiled function then leaves the step,
and the operation itself says what was wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.linalg import LinAlgError

from .linear_solve import matrices

if TYPE_CHECKING:
    from wengert._engine.core.spec import Spec
    from wengert._engine.core.types import Array, Size


@matrices(
    "Look at the operands of the operation that this is part of",
    oracle=lambda x, holds, why="": x,
)
def accepted(x: Array, holds: Any, *, why: Any = "a condition does not hold") -> Any:
    """x, where all of `holds` is true; else an error that says why not."""
    if not np.all(holds):
        raise LinAlgError(why)
    return np.array(x)


@accepted.spec
def _spec(x: Spec, holds: Spec, **_: Any) -> Any:
    return x


@accepted.define_vjp
def _vjp(t: Array, out: Array, x: Array, holds: Any, *, why: Any = "") -> Any:
    return t, None


@accepted.define_jvp
def _jvp(dots: Any, out: Array, x: Array, holds: Any, *, why: Any = "") -> Any:
    return dots[0]


@accepted.batch
def _rows(args: Any, batched: Any, size: Size, **params: Any) -> Any:
    return accepted(*args, **params) if batched[0] else NotImplemented


@accepted.examples
def _(rng: np.random.Generator) -> Any:
    yield (rng.normal(size=(2, 3)), np.array([True, True])), {}
