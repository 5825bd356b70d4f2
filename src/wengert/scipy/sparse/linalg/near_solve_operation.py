"""Sparse systems whose matrix is near one that is factorized already: GMRES with its factors.

    near_solve         x with op(a) @ x = b, by the factors of another matrix with the same pattern
    SparseProducts     products with a matrix in CSR format and with its adjoint
    gmres              the solution with the accuracy of a factorization
    may_be_singular    whether a matrix may be nearly singular

The stages of implicit Runge-Kutta methods have such systems: their Jacobians are at different
points of one step.  The solution has the accuracy of a factorization, which takes over if the
iteration has not converged after a few products, or if the matrix may be
nearly singular: its factors decide that.  It does not depend on the other matrix, whose cotangent
is zero.

Y. Saad and M. H. Schultz, "GMRES: a generalized minimal residual algorithm for solving nonsymmetric
linear systems", 1986.  Residuals are relative to the terms of their rows (W. Oettli and W. Prager,
"Compatibility of approximate solution of linear equations", 1964), so that units do not matter.

A residual does not show that a matrix is nearly singular: the iteration finds a solution of small
size where a factorization finds one of arbitrary size.  So a random vector is solved for too (J. D.
Dixon, "Estimating extremal eigenvalues and condition numbers of matrices", 1983), to the accuracy
that shows how large its solution is.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.linalg import LinAlgError

from wengert._engine.core.op_facts import BY_SCIPY
from wengert._engine.core.spec import Spec
from wengert._engine.ops.linalg.linear_solve import matrices

from .factors import factor_of
from .matrix_factors import MatrixFactors
from .operands import Plain, check_lengths
from .solve_operation import dense, entry_products, example_matrix, pattern_product, sparse_solve

_MAX_PRODUCTS = 20  # of one iteration; a factorization takes the time of about as many
_ACCURACY = 64  # of the residual, in units of rounding
# Of the residual of a random vector, in the norm of the vector's elements, which are of size one.
_ACCURACY_OF_PROBES = 1e-3
_LEAST_TERMS = 1e-12  # of a row, relative to those of the row with the largest


class SparseProducts:
    """Products with op(a) for a matrix in CSR format.

    trans : 0, 1 or 2, the identity, the transpose and the adjoint.
    """

    def __init__(self, data: Plain, indices: Plain, indptr: Plain, trans: int = 0) -> None:
        from scipy.sparse import csr_array

        n = len(indptr) - 1
        data, indices, indptr = [
            np.ascontiguousarray(x, x.dtype.newbyteorder("=")) for x in (data, indices, indptr)
        ]

        def op(values: Plain) -> Any:
            a = csr_array((values, indices, indptr), shape=(n, n))
            return a if not trans else a.T if trans == 1 else a.conj().T

        self.trans, self._matrix, self._sizes = trans, op(data), op(np.abs(data))
        self.row_sums: Plain = self._sizes @ np.ones(n, self._sizes.dtype)  # of absolute values

    def __call__(self, x: Plain) -> Plain:
        """The product with a vector."""
        return self._matrix @ x  # type: ignore[no-any-return]

    def terms(self, x: Plain, b: Plain) -> Plain:
        """The sum of the sizes of the terms of each row of op(a) @ x - b."""
        total = self._sizes @ np.abs(x) + np.abs(b)
        return total + self.row_sums * (_LEAST_TERMS * np.max(total / self.row_sums))  # type: ignore[no-any-return]


def may_be_singular(products: SparseProducts, factor: MatrixFactors) -> bool:
    """Whether a matrix may be nearly singular: if not, its condition number is below the limit.

    Parameters
    ----------
    products : SparseProducts
        With the matrix itself (trans = 0).
    factor : MatrixFactors
        The factors of a matrix near.
    """
    probe = factor.probe
    with np.errstate(all="ignore"):  # what is not finite does not converge
        x, residual = probe.solution, (probe.right - products(probe.solution)) / probe.units
        left = _norm(residual)
        if left > _ACCURACY_OF_PROBES:
            system = _System(products, factor, probe.units)
            change, left, _ = system.cycle(residual, _ACCURACY_OF_PROBES, _MAX_PRODUCTS)
            x = x + change
        if not left <= _ACCURACY_OF_PROBES:
            return True
        size = _norm(x) * math.sqrt(len(x)) * np.max(products.row_sums / probe.units)
    return not size <= factor.limit


def gmres(products: SparseProducts, factor: MatrixFactors, b: Plain) -> Plain | None:
    """The solution, whose residual is that of a stable method; None if that is not reached."""
    unit = np.max(np.abs(b))
    if not unit:
        return np.zeros_like(b)
    if not np.isfinite(unit):
        return None
    with np.errstate(all="ignore"):
        b = b / unit
        start = factor.solve(b[:, None], products.trans)[:, 0]
        target = _ACCURACY * float(np.finfo(start.dtype).eps)
        x = _iterated(products, factor, b, start, target)
    return None if x is None else x * unit


def _iterated(
    products: SparseProducts, factor: MatrixFactors, b: Plain, x: Plain, target: float
) -> Plain | None:
    """The solution from an initial guess; None if the residual remains too large.

    The preconditioner is on the right, so that residuals are those of the system itself, in the
    units of its rows.  After a cycle the residual is computed anew: rounding errors of the
    recurrences are corrected.
    """
    units, scale = products.terms(x, b), math.sqrt(len(b))
    system = _System(products, factor, units)
    residual, left, last = (b - products(x)) / units, _MAX_PRODUCTS, math.inf
    size = _norm(residual) / scale
    while size > target and size < last / 2 and left > 1:
        change, _, used = system.cycle(residual, target * scale / 2, left - 1)
        x, left = x + change, left - used - 1
        residual = (b - products(x)) / units
        size, last = _norm(residual) / scale, size
    return x if size <= target else None


class _System(NamedTuple):
    """A system with rows in some units."""

    products: SparseProducts
    factor: MatrixFactors
    units: Plain

    def cycle(self, start: Plain, target: float, most: int) -> tuple[Plain, float, int]:
        """The change of the solution for a residual, what remains, and the number of products."""
        basis, preconditioned = [start / _norm(start)], []
        columns: list[list[Any]] = []  # of the triangular factor of the Hessenberg matrix
        rotations: list[tuple[Any, Any]] = []
        right: list[Any] = [_norm(start)]
        while len(columns) < most:
            z = self.factor.solve((basis[-1] * self.units)[:, None], self.products.trans)[:, 0]
            w = self.products(z) / self.units
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
            if not (radius > 0 and np.isfinite(radius)):
                break
            preconditioned.append(z)
            c, s = _rotation(column[-1], norm, radius)
            rotations.append((c, s))
            right.append(-np.conj(s) * right[-1])
            right[-2] = c * right[-2]
            column[-1] = c * column[-1] + s * norm
            columns.append(column)
            if abs(right[-1]) <= target or norm == 0:
                break
            basis.append(w / norm)
        return _combined(columns, right, preconditioned, start), abs(right[-1]), len(columns)


def _combined(
    columns: list[list[Any]], right: list[Any], vectors: list[Plain], start: Plain
) -> Plain:
    """The sum of vectors whose weights solve the triangular system."""
    count = len(columns)
    triangle = np.zeros((count, count), np.result_type(start, *vectors))
    for k, column in enumerate(columns):
        triangle[: k + 1, k] = column
    weights = np.linalg.solve(triangle, np.array(right[:count], triangle.dtype))
    total = np.zeros(start.shape, triangle.dtype)
    for weight, v in zip(weights, vectors, strict=True):
        total = total + weight * v
    return total


def _norm(x: Plain) -> float:
    """The Euclidean norm; that of NumPy starts threads for long vectors."""
    return math.sqrt(float(np.sum((x * np.conj(x)).real)))


def _rotation(a: Any, b: float, radius: Any) -> tuple[Any, Any]:
    """c and s with c * a + s * b of size `radius`, and c * b - conj(s) * a zero."""
    size = abs(a)
    if size == 0:
        return 0.0, 1.0
    return size / radius, a / size * b / radius


_ADJOINT = (2, 2, 0)


def _oracle(data: Any, near: Any, indices: Any, indptr: Any, b: Any, *, trans: int = 0) -> Any:
    a = dense(data, indices, indptr)
    return np.linalg.solve([a, a.mT, np.conj(a.mT)][trans], b)


@matrices(
    "A derivative of this step does not exist; that of smaller steps may",
    name="sparse.near_solve",
    oracle=_oracle,
)
def near_solve(
    data: Plain, near: Plain, indices: Plain, indptr: Plain, b: Plain, *, trans: int = 0
) -> Any:
    """x with op(a) @ x = b for a matrix b; op: identity, transpose, adjoint (0, 1, 2).

    near : the entries of the matrix that is factorized.

    A nearly singular matrix is an error, since the solution is a derivative; of one that is
    exactly singular or not finite, which only rejected steps have, it is NaN.
    """
    check_lengths(data, indices, indptr, b)
    if not np.any(b):
        return np.zeros(b.shape, np.result_type(data, b))
    found = _by_iteration(data, near, indices, indptr, b, trans)
    if found is None:
        try:
            factor = factor_of(data, indices, indptr)
        except LinAlgError:
            return np.full(b.shape, np.nan, np.result_type(data, b))
        factor.check_condition()
        found = factor.solve(b, trans)
    return np.ascontiguousarray(found)


def _by_iteration(
    data: Plain, near: Plain, indices: Plain, indptr: Plain, b: Plain, trans: int
) -> Plain | None:
    """The solution by the factors of the matrix near, or None."""
    try:
        factor: MatrixFactors = factor_of(near, indices, indptr)
    except LinAlgError:  # it is singular, which says nothing about the other one
        return None
    if may_be_singular(SparseProducts(data, indices, indptr, 0), factor):
        return None
    products = SparseProducts(data, indices, indptr, trans)
    x = np.zeros(b.shape, np.result_type(data, b))
    for k in range(b.shape[1]):
        found = gmres(products, factor, np.ascontiguousarray(b[:, k]))
        if found is None:
            return None
        x[:, k] = found
    return x


near_solve.host_callback = BY_SCIPY


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
    if right is None:  # the solution does not depend on the matrix near
        return np.zeros_like(out)
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
