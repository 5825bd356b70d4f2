"""Condition numbers of matrices, estimated from their factors, and the refusal of large ones.

    reciprocal_condition   the reciprocal condition number, 0 for a singular matrix
    refuse_singular        the identity, with an error for a small reciprocal condition number
    smallest_reciprocal    the number below which a solution would have no correct digits

The first estimate is the size of the solution for a random vector (J. D. Dixon, "Estimating
extremal eigenvalues and condition numbers of matrices", 1983).  If it is large, LAPACK's follows
(gecon; N. J. Higham, "FORTRAN codes for estimating the one-norm", 1988), which takes several times
as long.  The condition number depends on the units of rows and columns; if it is large, that of the
equilibrated matrix decides (the largest elements of rows and columns are about 1), times the growth
of the elements of rows in the factors of the given one.

Checks: the identity, with an error unless a condition holds.

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

from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic import constraints
from wengert._engine.kinds.batching import on_last_axes
from wengert._engine.kinds.opaque import opaque
from wengert.errors import ConvergenceError, SingularError, at, user_line

from .linear_solve import matrices, real_dtype
from .packed_factors import lu_packed, order_of_pivots, routine

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Size

SAFETY_FACTOR = 1e4  # condition numbers are large from 1 / SAFETY_FACTOR times the limit
# The random vector is a hash of the indices (splitmix64), which native code computes in its loop.
STEP = 0x9E3779B97F4A7C15
MIXING = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1))


def smallest_reciprocal(dtype: Any) -> float:
    """The reciprocal condition number below which a solution has less than about two digits."""
    return 100.0 * float(np.finfo(dtype).eps)


@matrices("Check the matrix", discrete=True, oracle=lambda a, packed: _oracle(a, packed))
def reciprocal_condition(a: Array, packed: Array) -> Any:
    """Estimates of 1 / (norm(a) norm(inv(a))) for matrices and their packed factors."""
    a, packed = np.broadcast_arrays(a, packed)
    result = np.empty(a.shape[:-2], real_dtype(a))
    for i in np.ndindex(*result.shape):
        result[i] = _by_probe(a[i], packed[i].T) if a.size else 1.0
        if not result[i] >= SAFETY_FACTOR * smallest_reciprocal(a.dtype):
            result[i] = _estimate(a[i], packed[i].T)
        if result[i] < smallest_reciprocal(a.dtype):
            scaled = equilibrated(a[i])
            growth = _growth(a[i], *lu_packed.run(a[i]))
            result[i] = _estimate(scaled, lu_packed.run(scaled)[0].T) / growth
    return result[()]


def probe(size: int) -> Array:
    """A random vector, between -0.5 and 1.5: constants are common null vectors."""
    with np.errstate(over="ignore"):
        z = np.arange(1, size + 1, dtype=np.uint64) * np.uint64(STEP)
        for shift, factor in MIXING:
            z = (z ^ (z >> np.uint64(shift))) * np.uint64(factor)
    return (z >> np.uint64(11)).astype(float) * 2.0**-52 - 0.5


def _by_probe(a: Array, factors: Array) -> Any:
    """The estimate by one solution, without the order of rows, which is that of the vector."""
    norm = np.max(np.sum(np.abs(a), axis=1))
    if not np.isfinite(norm):
        return np.nan
    solve = routine("trtrs", factors)
    with np.errstate(all="ignore"):
        x, _ = solve(factors, probe(a.shape[0]).astype(a.dtype), lower=1, unitdiag=1)
        x, info = solve(factors, x)
        return min(1.0 / (norm * np.max(np.abs(x))), 1.0) if info == 0 else 0.0


def _estimate(a: Array, factors: Array) -> Any:
    """The estimate of gecon; NaN for a matrix with NaN."""
    norm = np.max(np.sum(np.abs(a), axis=1))
    if not np.isfinite(norm):
        return np.nan
    return routine("gecon", factors)(factors, norm, norm="I")[0]


def _growth(a: Array, packed: Array, pivots: Array) -> Any:
    """The largest ratio of rows of ``abs(L) abs(U)`` and ``abs(a)``, which bounds the error.

    (N. J. Higham, "Accuracy and stability of numerical algorithms", 2002, section 9.3.)
    """
    factors, sums = np.abs(packed.T), np.sum(np.abs(a), axis=1)
    sizes = np.triu(factors) @ np.ones(a.shape[0])
    sizes = sizes + np.tril(factors, -1) @ sizes
    ratios = sizes[np.argsort(order_of_pivots.run(pivots))] / np.where(sums > 0.0, sums, 1.0)
    return max(1.0, np.max(ratios))


def equilibrated(a: Array) -> Any:
    """The matrix with rows and columns scaled by powers of two, so that the largest are about 1."""
    for axis in (1, 0):
        largest = np.max(np.abs(a), axis=axis, keepdims=True)
        exponents = -np.frexp(np.where(largest > 0.0, largest, 1.0))[1]
        half = exponents // 2  # the power itself may be out of range
        for part in (half, exponents - half):
            a = a * np.ldexp(1.0, part).astype(a.dtype)
    return a


@reciprocal_condition.spec
def _(a: Spec, packed: Spec) -> Any:
    return Spec(constraints.broadcast(a.shape[:-2], packed.shape[:-2]), np.finfo(a.dtype).dtype)


def _oracle(a: Any, packed: Any) -> Any:
    factors = packed.mT
    product = (np.tril(factors, -1) + np.eye(a.shape[-1])) @ np.triu(factors)
    x = np.linalg.solve(product, probe(a.shape[-1]))
    return 1.0 / (np.max(np.sum(np.abs(a), axis=-1), axis=-1) * np.max(np.abs(x), axis=-1))


on_last_axes(reciprocal_condition, 2)


@reciprocal_condition.examples
def _(rng: np.random.Generator) -> Any:
    for shape in ((3, 3), (2, 3, 3)):
        a = 4.0 * np.eye(3) - rng.uniform(size=shape)
        yield (a, lu_packed.run(a)[0]), {}


@matrices(
    "Check the matrix",
    oracle=lambda b, reciprocal, what="": b,
)
def refuse_singular(b: Array, reciprocal: Any, *, what: Any = "the matrix") -> Any:
    """b, unless a reciprocal condition number is too small."""
    smallest = np.min(np.real(reciprocal), initial=np.inf)  # NaN is passed on in the results
    if smallest < smallest_reciprocal(np.asarray(b).dtype):
        size = "infinite" if smallest == 0.0 else f"about {1.0 / smallest:.1e}"
        raise SingularError(
            f"{what} is singular, or nearly so: its condition number is {size}. The solution is "
            f"not unique, or hardly determined by the equations{at(user_line())}."
        )
    return np.array(b)


@refuse_singular.spec
def _(b: Spec, reciprocal: Spec, **_: Any) -> Any:
    return b


@refuse_singular.define_vjp
def _(t: Array, out: Array, b: Array, reciprocal: Any, **_: Any) -> Any:
    return t, None


@refuse_singular.define_jvp
def _(dots: Any, out: Array, b: Array, reciprocal: Any, **_: Any) -> Any:
    return dots[0]


@refuse_singular.batch
def _(args: Any, batched: Any, size: Size, **params: Any) -> Any:
    return refuse_singular(*args, **params) if batched[0] else NotImplemented


@refuse_singular.examples
def _(rng: np.random.Generator) -> Any:
    yield (rng.normal(size=3), np.float64(0.5)), {}
    yield (rng.normal(size=(2, 3)), np.array([0.5, 1e-3])), {}


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
