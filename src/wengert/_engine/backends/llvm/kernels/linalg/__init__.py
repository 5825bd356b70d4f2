"""Linear algebra kernels: LAPACK calls and loops for small matrices.

lapack                 helpers shared by kernels that call LAPACK
lu_solve               linear systems, inverses, determinants
complex_solve          complex systems with several right-hand sides, parts separated
complex_tiles          the loops over parts of rows that it consists of
cholesky_qr            Cholesky, QR and LU factorizations
definite_factors       Cholesky factors of definite matrices, LU factors of others; condition
                       numbers from LU factors, refusal of nearly singular matrices
packed_factors         LU factors as a value, solving with them, row permutations
lu_in_cache            LU factorization of real matrices that fit into a first-level cache
substitution_in_cache  solving with such factors; the function for several
vector_substitution    the functions for one right-hand side
solve_or_nan           systems and factors with NaN for singular matrices
cholesky_vjp           the cotangent of the Cholesky factorization
eigen_svd              eigenvalues and singular values
structured_solve       systems with banded or positive definite matrices (linalg); systems with
                       banded matrices (interpolate); systems with triangular matrices
toeplitz_solve         Toeplitz systems (Levinson's recursion)
schur                  Schur decompositions, and the derivative of their unitary factors;
                       Sylvester's equation
expm                   the matrix exponential
matrix_functions       square roots, logarithms and signs of matrices
small_matrices         systems, inverses, factorizations of batches of up to eight rows
determinants           determinants of up to eight rows, their logarithms and cofactors
symmetric_eigenvalues  eigenvalues and eigenvectors of batches of small symmetric matrices
tridiagonalization     Householder tridiagonalization of small symmetric matrices
"""
