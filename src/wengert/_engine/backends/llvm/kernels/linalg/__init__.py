"""Linear algebra kernels: LAPACK calls and loops for small matrices.

lu_solve               linear systems, inverses, determinants
complex_solve          complex systems with several right-hand sides, parts separated
complex_tiles          the loops over parts of rows that it consists of
factorizations         Cholesky, QR and LU factorizations; the cotangent of the first
packed_factors         LU factors as a value, solving with them, row permutations
checked_solve          Cholesky factors of definite matrices, LU factors of others; condition
                       numbers from LU factors, refusal of nearly singular matrices; systems and
                       factors with NaN for singular matrices
lu_in_cache            LU factorization of real matrices that fit into a first-level cache
substitution_in_cache  solving with such factors; the function for several
vector_substitution    the functions for one right-hand side
eigen_svd              eigenvalues and singular values
structured_solve       systems with banded or positive definite matrices (linalg), banded matrices
                       (interpolate), triangular and Toeplitz matrices
schur                  Schur decompositions, and the derivative of their unitary factors;
                       Sylvester's equation
matrix_functions       exponentials, square roots, logarithms and signs of matrices
small_matrices         systems, inverses, factorizations of batches of up to eight rows;
                       Householder tridiagonalization of small symmetric matrices
determinants           determinants of up to eight rows, their logarithms and cofactors
symmetric_eigenvalues  eigenvalues and eigenvectors of batches of small symmetric matrices
"""
