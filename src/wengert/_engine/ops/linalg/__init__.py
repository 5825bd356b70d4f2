"""Operations on matrices: products, linear systems, factorizations, eigenvalues.

matmul                  matmul, dot, einsum
linear_solve            solve, inv, pinv
solve_or_nan            solutions and factors of matrices that may be singular, or definite
factorizations          Cholesky, QR, triangular solves
packed_storage          packed LU factors, and solving with them
condition               condition numbers, and the refusal of nearly singular matrices
determinants            determinants and their derivatives of any order
eigen_svd               eigenvalues, singular values
degenerate_eigenvalues  divided differences for equal eigenvalues or singular values
polar_decomposition     the unitary polar factor, the nuclear norm
check                   the identity, with an error unless a condition holds
matrix_exponential      the exponential of a matrix
forward_mode            forward mode for rules, registered by autodiff, a higher layer
results                 named tuples that functions of `numpy.linalg` return
"""

from . import (
    check,
    condition,
    determinants,
    eigen_svd,
    factorizations,
    linear_solve,
    matmul,
    matrix_exponential,
    packed_storage,
    polar_decomposition,
    solve_or_nan,
)

__all__ = [
    "check",
    "condition",
    "determinants",
    "eigen_svd",
    "factorizations",
    "linear_solve",
    "matmul",
    "matrix_exponential",
    "packed_storage",
    "polar_decomposition",
    "solve_or_nan",
]
