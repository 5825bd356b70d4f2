"""Sparse systems whose matrix is near one that is factorized already.

    near_solve       x with op(a) @ x = b, by the factors of another matrix with the same pattern
    SparseProducts   products with a matrix in CSR format and with its adjoint
    gmres            the iteration

The stages of implicit Runge-Kutta methods have such systems: their Jacobians are at different
points of one step.  The solution has the accuracy of a factorization, which takes over if the
iteration has not converged after a few products; it does not depend on the other matrix, whose
cotangent is zero.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from wengert._engine.core.op_facts import BY_SCIPY
from wengert._engine.core.spec import Spec
from wengert._engine.ops.linalg.linear_solve import matrices

from .factors import factor_of
from .matrix_factors import MatrixFactors
from .solve_operation import dense, entry_products, example_matrix, pattern_product, sparse_solve
from .structure import Plain, check_lengths

_MAX_PRODUCTS = 20  # of one iteration; a factorization takes the time of about as many
_ACCURACY = 64  # of the residual, in units of rounding
_ADJOINT = (2, 2, 0)


def _oracle(data: Any, near: Any, indices: Any, indptr: Any, b: Any, *, trans: int = 0) -> Any:
    a = dense(data, indices, indptr)
    return np.linalg.solve([a, a.mT, np.conj(a.mT)][trans], b)


@matrices(
    "Its factors are computed if it is not near the other matrix",
    name="sparse.near_solve",
    oracle=_oracle,
)
def near_solve(
    data: Plain, near: Plain, indices: Plain, indptr: Plain, b: Plain, *, trans: int = 0
) -> Any:
    """x with op(a) @ x = b for a matrix b; op: identity, transpose, adjoint (0, 1, 2).

    near : the entries of the matrix that is factorized.
    """
    check_lengths(data, indices, indptr, b)
    x = np.zeros(b.shape, np.result_type(data, b))
    if not np.any(b):
        return x
    products = SparseProducts(data, indices, indptr, trans)
    factor = factor_of(near, indices, indptr)
    for k in range(b.shape[1]):
        found = gmres(products, factor, np.ascontiguousarray(b[:, k]))
        if found is None:
            return np.ascontiguousarray(factor_of(data, indices, indptr).solve(b, trans))
        x[:, k] = found
    return x


near_solve.host_callback = BY_SCIPY


class SparseProducts:
    """Products with op(a) for a matrix in CSR format.

    trans : 0, 1 or 2, the identity, the transpose and the adjoint.
    """

    def __init__(self, data: Plain, indices: Plain, indptr: Plain, trans: int) -> None:
        from scipy.sparse import csr_array

        n = len(indptr) - 1
        data, indices, indptr = [
            np.ascontiguousarray(x, x.dtype.newbyteorder("=")) for x in (data, indices, indptr)
        ]
        a = csr_array((data, indices, indptr), shape=(n, n))
        self.trans, self.norm = trans, _norm(data)  # of Frobenius
        self.matrix = a if not trans else a.T if trans == 1 else a.conj().T

    def __call__(self, x: Plain) -> Plain:
        """The product with a vector."""
        return self.matrix @ x  # type: ignore[no-any-return]


def gmres(products: SparseProducts, factor: MatrixFactors, b: Plain) -> Plain | None:
    """The solution, whose residual is that of a stable method; None if that is not reached.

    The preconditioner is on the right, so that residuals are those of the system itself.  After a
    cycle the residual is computed anew: rounding errors of the recurrences are corrected.
    """

    def solved(v: Plain) -> Plain:
        return factor.solve(v[:, None], products.trans)[:, 0]

    unit = _ACCURACY * float(np.finfo(np.result_type(factor.dtype, b)).eps)
    target = unit * _norm(b)
    x, residual, left = np.zeros_like(b), b, _MAX_PRODUCTS
    size, last = _norm(b), np.inf
    while size > target and size < last / 2 and left > 1:
        change, used = _cycle(products, solved, residual, size, target / 2, left - 1)
        x, left = x + change, left - used - 1
        residual = b - products(x)
        size, last = _norm(residual), size
    # The residual of a stable solution; where it is small, that above is not reached.
    stable = target + unit * products.norm * _norm(x)
    return x if size <= stable else None


def _cycle(
    products: SparseProducts, solved: Any, start: Plain, size: float, target: float, most: int
) -> tuple[Plain, int]:
    """The change of the solution for a residual, and the number of products."""
    basis, preconditioned = [start / size], []
    columns: list[list[Any]] = []  # of the triangular factor of the Hessenberg matrix
    rotations: list[tuple[Any, Any]] = []
    right: list[Any] = [size]
    while len(columns) < most:
        preconditioned.append(solved(basis[-1]))
        w = products(preconditioned[-1])
        column: list[Any] = []
        for v in basis:
            share = np.vdot(v, w)
            column.append(share)
            w = w - share * v
        norm = _norm(w)
        for i, (c, s) in enumerate(rotations):
            upper, lower = column[i], column[i + 1]
            column[i], column[i + 1] = c * upper + s * lower, c * lower - np.conj(s) * upper
        radius = np.hypot(abs(column[-1]), norm)
        if radius == 0:
            preconditioned.pop()
            break
        c, s = _rotation(column[-1], norm, radius)
        rotations.append((c, s))
        right.append(-np.conj(s) * right[-1])
        right[-2] = c * right[-2]
        column[-1] = c * column[-1] + s * norm
        columns.append(column)
        if abs(right[-1]) <= target or norm == 0:
            break
        basis.append(w / norm)
    count = len(columns)
    triangle = np.zeros((count, count), start.dtype)
    for k, column in enumerate(columns):
        triangle[: k + 1, k] = column
    weights = np.linalg.solve(triangle, np.array(right[:count], start.dtype))
    total = np.zeros_like(start)
    for weight, v in zip(weights, preconditioned, strict=True):
        total = total + weight * v
    return total, count


def _norm(x: Plain) -> float:
    """The Euclidean norm; that of NumPy starts threads for long vectors."""
    return math.sqrt(float(np.sum((x * np.conj(x)).real)))


def _rotation(a: Any, b: float, radius: Any) -> tuple[Any, Any]:
    """c and s with c * a + s * b of size `radius`, and c * b - conj(s) * a zero."""
    size = abs(a)
    if size == 0:
        return 0.0, 1.0
    return size / radius, a / size * b / radius


@near_solve.spec
def _(data: Spec, near: Spec, indices: Spec, indptr: Spec, b: Spec, **options: Any) -> Any:
    return sparse_solve.infer([data, indices, indptr, b], {})


@near_solve.define_vjp
def _near_vjp(
    t: Plain,
    out: Plain,
    data: Plain,
    near: Plain,
    indices: Plain,
    indptr: Plain,
    b: Plain,
    *,
    trans: int = 0,
) -> Any:
    if trans == 1:
        b_bar = np.conjugate(near_solve(data, near, indices, indptr, np.conjugate(t), trans=0))
    else:
        b_bar = near_solve(data, near, indices, indptr, t, trans=_ADJOINT[trans])
    left, right = ((b_bar, out), (np.conjugate(out), np.conjugate(b_bar)), (out, b_bar))[trans]
    bar = entry_products(left, np.conjugate(right), indices, indptr)
    return -bar, None, None, None, b_bar


@near_solve.define_jvp
def _near_jvp(
    dots: Any,
    out: Plain,
    data: Any,
    near: Any,
    indices: Any,
    indptr: Any,
    b: Plain,
    *,
    trans: int = 0,
) -> Any:
    data_dot, right = dots[0], dots[4]
    if data_dot is not None:
        if trans == 2:
            data_dot = np.conjugate(data_dot)
        product = pattern_product(data_dot, indices, indptr, out, trans != 0)
        right = -product if right is None else right - product
    return near_solve(data, near, indices, indptr, right, trans=trans)


@near_solve.examples
def _(rng: np.random.Generator) -> Any:
    data, indices, indptr = example_matrix(rng)
    b, near = rng.normal(size=(4, 2)), data + 0.01 * rng.normal(size=9)
    for trans in (0, 1):
        yield (data, near, indices, indptr, b), {"trans": trans}
    complex_data = data + 1j * rng.normal(size=9)
    for trans in (0, 1, 2):
        yield (complex_data, near + 0j, indices, indptr, b + 1j * b[::-1]), {"trans": trans}
    yield (data, rng.normal(size=9), indices, indptr, b), {}
