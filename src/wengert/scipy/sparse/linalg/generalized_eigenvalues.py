"""Generalized eigenvalue problems A v = w M v of real symmetric sparse matrices.

    generalized_pairs   eigenvalues, and eigenvectors with ``v^T M v = 1``

An eigenvalue and its vector are a root of ``A v - w M v`` and ``(1 - v^T M v) / 2``, whose Jacobian
is symmetric, and regular if the eigenvalue is simple: the bordered matrix

    [A - w M   -M v]
    [-(M v)^T    0 ]

which SuperLU factorizes once for each pair, so that both modes and all orders follow from the rule
of roots.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.handle import Handle
from wengert._engine.core.op import lookup
from wengert._engine.implicit.roots import custom_root
from wengert.errors import ArgumentError, ShapeError, at, user_line

from ...optimize.solver_operation import SolverOptions
from ..arrays import csr_array
from ..construction import block_array
from .eigenvalue_rules import EigenMethod
from .iterative_operation import results
from .linear_operator import LinearOperator
from .matrix_functions import matrix_function
from .operands import CompressedRows, square
from .solve_operation import sparse_solve

_csr_array: Any = csr_array  # whose arguments type checkers do not see


def _matrix(rows: CompressedRows, constant: bool = False) -> Any:
    data = rows.data
    if constant and isinstance(data, Handle):
        data = lookup("stop_gradient")(data)
    return _csr_array((data, rows.indices, rows.indptr), shape=rows.shape)


def generalized_pairs(A: Any, M: Any, options: dict[str, Any]) -> tuple[Any, Any]:
    """Eigenvalues in ascending order, and eigenvectors.

    Parameters
    ----------
    A, M : array or sparse array
        Real and symmetric, M positive definite, which is not checked.
    options : dict
        Of SciPy's function.

    Raises
    ------
    ArgumentError
        One is a LinearOperator, or complex.
    ShapeError
        Their shapes differ.
    """
    if isinstance(A, LinearOperator) or isinstance(M, LinearOperator):
        raise ArgumentError(
            "eigsh of tensors with M, one of which is a LinearOperator: it has derivatives for "
            f"sparse or dense arrays. Build the matrix{at(user_line())}."
        )
    a, m = square(A, "eigsh"), square(M, "eigsh")
    if a.shape != m.shape:
        raise ShapeError(
            f"eigsh: A has shape {a.shape} and M {m.shape}; they must be equal{at(user_line())}."
        )
    dtype = np.result_type(a.data.dtype, m.data.dtype, np.float32)
    if dtype.kind == "c":
        raise ArgumentError(
            "eigsh of complex tensors with M has no derivative. Give real matrices: "
            f"[[Re, -Im], [Im, Re]] of twice the size{at(user_line())}."
        )
    left, mass = _matrix(a), _matrix(m)
    fixed = _matrix(a, constant=True), _matrix(m, constant=True)
    given = [matrix_function(x, dtype, "eigsh") for x in fixed]
    consts = [x for _, captured in given for x in captured]
    method = EigenMethod("eigsh", options["k"], SolverOptions(options))
    values, vectors = results(consts, [f for f, _ in given], method)

    def pair(k: int) -> Any:
        start = vectors[:, k], values[k]

        def residual(y: Any) -> Any:
            v, w = y
            weighted = mass @ v
            return left @ v - w * weighted, 0.5 * (1.0 - v @ weighted)

        def solve_bordered(_: Any, b: Any) -> Any:
            v, w = start
            border = _csr_array(-(fixed[1] @ v)[:, None])
            matrix = block_array([[fixed[0] - w * fixed[1], border], [border.T, None]]).tocsr()
            right = lookup("concatenate")(b[0], lookup("reshape")(b[1], shape=(1,)), axis=0)
            x = sparse_solve(
                matrix.data, matrix.indices, matrix.indptr, right[:, None], trans=0, checked=True
            )[:, 0]
            return x[:-1], x[-1]

        return custom_root(residual, start, lambda f, y: y, solve_bordered)

    pairs = [pair(k) for k in range(options["k"])]
    return np.stack([w for _, w in pairs]), np.stack([v for v, _ in pairs], axis=1)
