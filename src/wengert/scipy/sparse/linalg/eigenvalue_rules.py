"""Derivatives of eigenvalues and eigenvectors (eigenvalues.py).

EigenMethod        eigsh or eigs of SciPy
Pattern            the structure of a sparse matrix, and that of the bordered one
HermitianValues    the rule of eigenvalues
HermitianVectors   the rule of eigenvectors
EigenPairs         the rule for matrices that are not Hermitian
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse.linalg

from wengert._engine.core.handle import value_of
from wengert._engine.core.op import lookup
from wengert._engine.core.spec import Spec
from wengert._engine.implicit.solver_calls import SolverRule, solver_call
from wengert._engine.ops import casts
from wengert._engine.ops.linalg.condition import accepted

from ...optimize.solver_operation import SolverOptions
from .iterative_systems import IterativeMethod, gmres, minres
from .matrix_functions import MatrixFunction
from .operands import LinearOperator, Plain
from .solve_operation import sparse_solve

_GAP = 100.0  # of the spacing of numbers: eigenvalues that are nearer are equal
_EQUAL = (
    "eigenvalues are equal, and have no derivative. Differentiate a function of all of them, such "
    "as the trace"
)


class EigenMethod(IterativeMethod):
    """eigsh or eigs of SciPy, with a start vector that is the same in each call."""

    def __init__(self, name: str, k: int, options: SolverOptions) -> None:
        self.name, self.k, self.options = name, k, options
        self._key = name, k, options

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EigenMethod) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def specs(self, matrices: Sequence[MatrixFunction]) -> tuple[Spec, ...]:
        """Of eigenvalues and eigenvectors."""
        dtype, n = matrices[0].dtype, matrices[0].shape[0]
        if self.name == "eigs":
            kind = np.result_type(dtype, np.complex64)
            return Spec((self.k,), kind), Spec((n, self.k), kind)
        return Spec((self.k,), dtype.type(0).real.dtype), Spec((n, self.k), dtype)

    def __call__(self, matrices: Sequence[Any], starts: Sequence[Any]) -> tuple[Any, ...]:
        """Call SciPy; the second matrix is that of a generalized problem."""
        (a, *mass), options = matrices, dict(self.options.value)
        if mass:
            options["M"] = _columns(mass[0])
        if options["v0"] is None:
            options["v0"] = np.random.default_rng(0).uniform(0.5, 1.5, a.shape[0])
        start = np.asarray(value_of(options["v0"])).astype(a.dtype)
        a = _columns(a) if mass else a
        options["v0"] = start
        w, v = getattr(scipy.sparse.linalg, self.name)(a, **options)
        if self.name == "eigsh":
            order = np.argsort(w)
            w, v = w[order], v[:, order]
        phases = start @ v
        phases = np.where(phases == 0, 1.0, phases / np.where(phases == 0, 1.0, np.abs(phases)))
        return w, v / phases


def _columns(a: Any) -> Any:
    """A matrix in the format that SuperLU factorizes, if it is no operator."""
    return a.tocsc() if hasattr(a, "tocsc") else a


class Pattern:
    """The structure of a square matrix in CSR format, compared by content."""

    def __init__(self, indices: Plain, indptr: Plain) -> None:
        self.indices, self.indptr = indices, indptr
        self._key = indices.tobytes(), indptr.tobytes()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pattern) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @functools.cached_property
    def bordered(self) -> tuple[Plain, Plain, Plain]:
        """The order of entries, diagonal, column and row in the bordered matrix; its structure."""
        n = len(self.indptr) - 1
        own = np.arange(n)
        rows = [np.repeat(own, np.diff(self.indptr)), own, own, np.full(n, n)]
        columns = np.concatenate([self.indices, own, np.full(n, n), own])
        lines = np.concatenate(rows)
        order = np.argsort(lines, kind="stable")
        return order, columns[order], np.searchsorted(lines[order], np.arange(n + 2))

    def solve_bordered(self, data: Any, w: Any, v: Any, right: Any, adjoint: bool = False) -> Any:
        """The solution with [[A - w I, v], [v^H, 0]], or its adjoint, for a vector."""
        n = len(self.indptr) - 1
        order, indices, indptr = self.bordered
        dtype = np.result_type(data.dtype, v.dtype)
        diagonal = lookup("broadcast_to")(casts.astype(-w, dtype), shape=(n,))
        parts = [casts.astype(x, dtype) for x in (data, diagonal, v, _conjugate(v))]
        entries = lookup("concatenate")(*parts, axis=0)[order]
        right = lookup("expand_dims")(casts.astype(right, dtype), axis=1)
        trans = 2 if adjoint else 0
        return sparse_solve(entries, indices, indptr, right, trans=trans, checked=True)[:, 0]


def _conjugate(x: Any) -> Any:
    return np.conjugate(x) if x.dtype.kind == "c" else x


def _dot(x: Any, y: Any) -> Any:
    """The inner product."""
    return np.sum(_conjugate(x) * y)


def _stacked(columns: Sequence[Any]) -> Any:
    return lookup("stack")(*columns, axis=1)


def _if_distinct(w: Any, v: Any) -> Any:
    """Eigenvectors, with an error if eigenvalues are equal."""
    k = w.shape[0]
    if k == 1:
        return v
    limit = _GAP * float(np.finfo(w.dtype).eps)
    largest = np.max(np.abs(w))
    gaps = np.abs(w[:, None] - w[None, :]) + np.eye(k, dtype=np.abs(w[:1]).dtype) * largest
    return accepted(v, np.min(gaps) > limit * largest, why=_EQUAL)


def _added(total: list[Any] | None, bars: Sequence[Any]) -> list[Any]:
    if total is None:
        return list(bars)
    return [y if x is None else x if y is None else x + y for x, y in zip(total, bars, strict=True)]


class _Rule(SolverRule):
    """Operands are captured values, eigenvalues and eigenvectors as constants."""

    def __init__(self, matrix: MatrixFunction, pattern: Pattern | None) -> None:
        self.matrix, self.pattern = matrix, pattern

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and (self.matrix, self.pattern) == (
            other.matrix,
            other.pattern,
        )

    def __hash__(self) -> int:
        return hash((type(self), self.matrix, self.pattern))


class HermitianVectors(_Rule):
    """Eigenvectors of a Hermitian matrix."""

    name = "eigsh"

    def solution(self, operands: Sequence[Any]) -> list[Any]:
        """The eigenvectors."""
        return [operands[-1]]

    def _solved(self, consts: Sequence[Any], w: Any, v: Any, right: Any) -> Any:
        """The x orthogonal to v for which (A - w I) x is the part of `right` orthogonal to v."""
        right = right - v * _dot(v, right)
        if self.pattern is not None:
            padded = lookup("concatenate")(right, np.zeros(1, right.dtype), axis=0)
            return self.pattern.solve_bordered(consts[0], w, v, padded)[:-1]
        size = np.abs(w) + 1.0

        def product(x: Any) -> Any:
            return self.matrix(consts, x) - w * x + v * (size * _dot(v, x))

        dtype = self.matrix.dtype
        operator = LinearOperator(self.matrix.shape, product, product, dtype=dtype)
        method = minres if dtype.kind != "c" else gmres
        tolerance = 10.0 * float(np.finfo(dtype).eps)
        x, _ = method(operator, right, rtol=tolerance)
        return x - v * _dot(v, x)

    def _pairs(self, operands: Sequence[Any]) -> tuple[Sequence[Any], Any, Any]:
        """Captured values, eigenvalues and eigenvectors, which are differentiated."""
        *consts, _, _ = operands
        (w,) = solver_call(HermitianValues(self), list(operands))
        (v,) = solver_call(self, list(operands))
        return consts, w, _if_distinct(w, v)

    def bars(
        self, operands: Sequence[Any], outs: Sequence[Any], ts: Sequence[Any], saved: Any = None
    ) -> list[Any]:
        """The cotangents: one bordered system for each vector."""
        consts, w, v = self._pairs(operands)
        total = None
        for k in range(w.shape[0]):
            x = self._solved(consts, w[k], v[:, k], ts[0][:, k])
            total = _added(total, self.matrix.cotangents(consts, v[:, k], -x))
        assert total is not None
        return [*total, None, None]

    def dots(self, operands: Sequence[Any], outs: Sequence[Any], dots: Sequence[Any]) -> list[Any]:
        """The tangents: one bordered system for each vector."""
        consts, w, v = self._pairs(operands)
        columns = []
        for k in range(w.shape[0]):
            change = self.matrix.tangent(consts, v[:, k], dots[: len(consts)])
            if change is None:
                return [None]
            columns.append(self._solved(consts, w[k], v[:, k], -change))
        return [_stacked(columns)]


class HermitianValues(SolverRule):
    """Eigenvalues of a Hermitian matrix; the same operands."""

    name = "eigsh"

    def __init__(self, vectors: HermitianVectors) -> None:
        self.vectors = vectors

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HermitianValues) and self.vectors == other.vectors

    def __hash__(self) -> int:
        return hash((HermitianValues, self.vectors))

    def solution(self, operands: Sequence[Any]) -> list[Any]:
        """The eigenvalues."""
        return [operands[-2]]

    def _vectors(self, operands: Sequence[Any]) -> Any:
        """The eigenvectors, which are differentiated; an error if eigenvalues are equal."""
        (v,) = solver_call(self.vectors, list(operands))
        return _if_distinct(operands[-2], v)

    def bars(
        self, operands: Sequence[Any], outs: Sequence[Any], ts: Sequence[Any], saved: Any = None
    ) -> list[Any]:
        """The cotangents: elements of outer products of vectors."""
        *consts, _, _ = operands
        v, total = self._vectors(operands), None
        for k in range(v.shape[1]):
            x = v[:, k]
            total = _added(total, self.vectors.matrix.cotangents(consts, x, ts[0][k] * x))
        assert total is not None
        return [*total, None, None]

    def dots(self, operands: Sequence[Any], outs: Sequence[Any], dots: Sequence[Any]) -> list[Any]:
        """The tangents: inner products."""
        *consts, _, _ = operands
        v, numbers = self._vectors(operands), []
        for k in range(v.shape[1]):
            change = self.vectors.matrix.tangent(consts, v[:, k], dots[: len(consts)])
            if change is None:
                return [None]
            numbers.append(_dot(v[:, k], change).real)
        return [lookup("stack")(*numbers, axis=0)]


class EigenPairs(_Rule):
    """Eigenvalues and eigenvectors of a matrix that need not be Hermitian, of complex data."""

    name = "eigs"

    def solution(self, operands: Sequence[Any]) -> list[Any]:
        """Eigenvalues and eigenvectors."""
        return list(operands[-2:])

    def _pairs(self, operands: Sequence[Any]) -> tuple[Any, Any, Any, Any]:
        w, v = solver_call(self, list(operands))
        assert self.pattern is not None
        return operands[0], self.pattern, w, _if_distinct(w, v)

    def bars(
        self, operands: Sequence[Any], outs: Sequence[Any], ts: Sequence[Any], saved: Any = None
    ) -> list[Any]:
        """The cotangents: one system with the adjoint of the bordered matrix for each pair."""
        from wengert._engine.ops.sparse_products import csr_sampled_matmul

        data, pattern, w, v = self._pairs(operands)
        total = None
        for k in range(w.shape[0]):
            right = lookup("concatenate")(ts[1][:, k], -ts[0][k : k + 1], axis=0)
            x = pattern.solve_bordered(data, w[k], v[:, k], right, adjoint=True)[:-1]
            bar = csr_sampled_matmul(x, np.conjugate(v[:, k]), *operands[1:3])
            total = bar if total is None else total + bar
        return [-total, None, None, None, None]  # type: ignore[operator]

    def dots(self, operands: Sequence[Any], outs: Sequence[Any], dots: Sequence[Any]) -> list[Any]:
        """The tangents: one system with the bordered matrix for each pair."""
        from wengert._engine.ops.sparse_products import csr_matmul

        if dots[0] is None:
            return [None, None]
        data, pattern, w, v = self._pairs(operands)
        numbers, columns = [], []
        for k in range(w.shape[0]):
            change = csr_matmul(dots[0], v[:, k], *operands[1:3])
            right = lookup("concatenate")(-change, np.zeros(1, change.dtype), axis=0)
            x = pattern.solve_bordered(data, w[k], v[:, k], right)
            columns.append(x[:-1])
            numbers.append(-x[-1])
        return [lookup("stack")(*numbers, axis=0), _stacked(columns)]
