"""Operations on matrices: products, linear systems, factorizations, eigenvalues.

matmul                  matmul, dot, einsum
linear_solve            solve, inv, pinv; forward mode for rules, registered by autodiff, a higher
                        layer
packed_factors          packed LU factors, and solving with them; solutions and factors of matrices
                        that may be singular, or definite
factorizations          Cholesky, QR, triangular solves
condition               condition numbers, and the refusal of nearly singular matrices; the
                        identity, with an error unless a condition holds
determinants            determinants and their derivatives of any order
eigen_svd               eigenvalues, singular values
degenerate_eigenvalues  divided differences for equal eigenvalues or singular values
matrix_functions        the exponential of a matrix; the unitary polar factor, the nuclear norm
results                 named tuples that functions of `numpy.linalg` return
"""

from . import (
    condition,
    determinants,
    eigen_svd,
    factorizations,
    linear_solve,
    matmul,
    matrix_functions,
    packed_factors,
)

__all__ = [
    "condition",
    "determinants",
    "eigen_svd",
    "factorizations",
    "linear_solve",
    "matmul",
    "matrix_functions",
    "packed_factors",
]
