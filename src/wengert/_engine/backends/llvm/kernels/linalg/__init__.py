"""Linear algebra kernels: LAPACK calls and loops for small matrices.

banded_solve             systems with a banded matrix
cholesky_qr              Cholesky, QR, LU
cholesky_vjp             the derivative of Cholesky's factorization backwards
determinants             determinants of up to four rows, their logarithms and cofactors
eigen_svd                eigenvalues, singular values
expm                     the exponential of a matrix
lapack                   what the kernels of matrices share
looped_small_matrices    systems, inverses, determinants and triangles of up to eight rows, in
                         loops
lu_solve                 linear systems, inverses, determinants
matrix_functions         square roots, logarithms and signs of matrices
packed_factors           LU and what is solved with it, one after the other
schur                    Schur's forms, and how their unitary factors turn
structured_solve         systems with banded and positive definite matrices
sylvester                equations with the unknown matrix between two others
symmetric_eigenvalues    eigenvalues and eigenvectors of small symmetric matrices
toeplitz_solve           equations with constant diagonals; orders of rows
tridiagonalization       small symmetric matrices brought to that form
unrolled_small_matrices  systems, inverses, triangles, Cholesky of up to four rows, unrolled
"""
