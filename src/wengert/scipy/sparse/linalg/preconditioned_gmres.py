"""GMRES for a sparse matrix that is near another one, whose factors are the preconditioner.

    SparseProducts     products with a matrix in CSR format and with its adjoint
    gmres              the solution with the accuracy of a factorization
    may_be_singular    whether a matrix may be nearly singular

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

from .matrix_factors import MatrixFactors
from .structure import Plain

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
