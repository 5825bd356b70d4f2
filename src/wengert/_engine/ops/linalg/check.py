"""The operation `accepted`: the identity, with an error unless a condition holds.

Decompositions of operations (`Op.compose`) use it where the original operation raises an error: for
two singular values that are zero, or a rank-deficient matrix.  A compiled function then falls back
to the original operation, whose error message describes the problem.
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
    "Check the operands of the operation that this is part of",
    oracle=lambda x, holds, why="": x,
)
def accepted(x: Array, holds: Any, *, why: Any = "a condition does not hold") -> Any:
    """x if all elements of `holds` are true; else an error with the reason `why`."""
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
