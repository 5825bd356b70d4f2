"""Checks: the identity, with an error unless a condition holds.

    accepted          a condition on operands of an operation
    refuse_residual   the residual of an equation is small

`accepted`: decompositions of operations (`Op.compose`) use it where the original operation raises
an error: for two singular values that are zero, or a rank-deficient matrix.  A compiled function
then falls back to the original operation, whose error message describes the problem.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.linalg import LinAlgError

from wengert._engine.kinds.opaque import opaque
from wengert.errors import ConvergenceError, at, user_line

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


@opaque(name="refuse_residual", trusted=True, oracle=lambda y, size, limit, what="": y)
def refuse_residual(y: Array, size: Array, limit: Array, *, what: Any = "the solver") -> Any:
    """y, if the size of a residual is at most the limit."""
    if not np.all(np.real(size) <= np.real(limit)):
        raise ConvergenceError(
            f"{what}: the residual at the solution is {np.max(size):.3g}, and must be at most "
            f"{np.min(limit):.3g}. Either the solver has not converged, or it solves another "
            f"equation{at(user_line())}."
        )
    return np.array(y)


@refuse_residual.spec
def _(y: Spec, size: Spec, limit: Spec, **_: Any) -> Any:
    return y


@refuse_residual.define_vjp
def _(t: Array, out: Array, y: Array, size: Array, limit: Array, *, what: Any = "") -> Any:
    return t, None, None


@refuse_residual.define_jvp
def _(dots: Any, out: Array, y: Array, size: Array, limit: Array, *, what: Any = "") -> Any:
    return dots[0]


@refuse_residual.batch
def _(args: Any, batched: Any, size: Size, **params: Any) -> Any:
    return refuse_residual(*args, **params) if batched[0] else NotImplemented


@refuse_residual.examples
def _(rng: np.random.Generator) -> Any:
    yield (rng.normal(size=(2, 3)), np.float64(0.5), np.float64(1.5)), {}
    yield (rng.normal(size=2), np.array([0.1, 0.2]), np.array([1.0, 3.0])), {}
