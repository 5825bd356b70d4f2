"""LU factors of a matrix that may be positive definite, by Cholesky's method if it is.

    definite_packed   as lu_packed; without exchanges of rows for a positive definite matrix

If a = C C^T with a lower triangle C and its diagonal d, then a = (C / d) (d C^T) are LU factors: in
half of the time of getrf, and in the same format, so that the solution and the condition number are
those of packed factors.  A matrix that is not symmetric up to rounding, or not positive definite,
has the factors of `lu_packed`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.spec import Spec
from wengert._engine.kinds.batching import on_last_axes

from .linear_solve import matrices
from .packed_storage import lu_packed, routine

if TYPE_CHECKING:
    from wengert._engine.core.types import Array

ROUNDING = 32.0  # in units of eps: differences of elements that should be equal
_HINT = "Use lstsq, or add a multiple of the identity, if it may be singular"


@matrices(_HINT, oracle=lambda a: _oracle(a))
def definite_packed(a: Array) -> Any:
    """The LU factors of square matrices, transposed, and LAPACK's pivots, counted from 1."""
    packed, pivots = np.empty(a.shape, a.dtype), np.empty(a.shape[:-1], np.int32)
    for i in np.ndindex(*a.shape[:-2]):
        factor = _cholesky(a[i])
        if factor is None:
            packed[i], pivots[i] = lu_packed.run(a[i])
        else:
            diagonal = np.diagonal(factor)
            packed[i] = (np.tril(factor / diagonal, -1) + diagonal[:, None] * factor.T).T
            pivots[i] = np.arange(1, len(diagonal) + 1)
    return packed, pivots


def _cholesky(a: Array) -> Any:
    """The factor; None for a matrix that is not symmetric or not positive definite."""
    diagonal = np.diagonal(a)
    if a.dtype.char not in "fd" or not np.all(diagonal > 0.0):
        return None
    sizes = np.abs(a)
    limit = ROUNDING * np.finfo(a.dtype).eps * (sizes + sizes.T + np.min(diagonal, initial=np.inf))
    if not np.all(np.abs(a - a.T) <= limit):
        return None
    factor, info = routine("potrf", a)(a, lower=1, clean=1)
    return factor if info == 0 else None


@definite_packed.spec
def _(a: Spec) -> Any:
    return Spec(a.shape, a.dtype), Spec(a.shape[:-1], np.dtype(np.int32))


def _oracle(a: Any) -> Any:
    packed, pivots = lu_packed.oracle(a)
    if np.array_equal(a, a.mT) and np.all(np.linalg.eigvalsh(a) > 0):
        factors = a.copy()
        for k in range(a.shape[-1]):
            factors[..., k + 1 :, k] /= factors[..., k, k, None]
            row, column = factors[..., k, None, k + 1 :], factors[..., k + 1 :, k, None]
            factors[..., k + 1 :, k + 1 :] -= column * row
        packed = factors.mT
        pivots = np.broadcast_to(np.arange(1, a.shape[-1] + 1, dtype=np.int32), pivots.shape)
    return packed, pivots


# The rules are those of any LU factors.
definite_packed.effects = lu_packed.effects
definite_packed.vjp_rule = lu_packed.vjp_rule
definite_packed.jvp_rule = lu_packed.jvp_rule
on_last_axes(definite_packed, 2)


@definite_packed.examples
def _(rng: np.random.Generator) -> Any:
    a = rng.normal(size=(3, 3)) * 0.3
    yield (a + np.diag([3.0, 2.0, 3.0]),), {}
    yield (a @ a.T + np.diag([3.0, 2.0, 3.0]),), {}
    yield (np.stack([a @ a.T + 2.0 * np.eye(3), np.eye(3) - a @ a.T / 5.0]),), {}
