"""Operations on matrices: products, linear systems, factorizations, eigenvalues.

check                   a value, if something holds; an error in its place otherwise
degenerate_eigenvalues  Quotients by differences of eigenvalues or singular values, which may be
                        equal
determinants            Determinants, and their derivatives of every order
eigen_svd               Eigenvalues and singular values, and the exponential of a matrix
factorizations          Factorizations with triangles: Cholesky, QR, and solving with a triangle
linear_solve            solving, inverse, pseudoinverse
matmul                  matmul in all ranks, dot, and the general contraction einsum
packed_storage          solving with a matrix in two lines, of which a loop repeats the second only
polar_decomposition     The unitary factor of a matrix, and the sum of its singular values
results                 Named tuples that functions of `numpy.linalg` return, with NumPy's names
                        and fields
"""

from . import (
    check,
    determinants,
    eigen_svd,
    factorizations,
    linear_solve,
    matmul,
    packed_storage,
    polar_decomposition,
)

__all__ = [
    "check",
    "determinants",
    "eigen_svd",
    "factorizations",
    "linear_solve",
    "matmul",
    "packed_storage",
    "polar_decomposition",
]
