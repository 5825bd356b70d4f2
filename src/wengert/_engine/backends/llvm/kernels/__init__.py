"""Kernels: operations that are compiled as a whole instead of being fused into loops.

batched_matrices  many small matrices at a time, a lane for each
check             values that are refused under a condition
concatenate       many arrays copied into one; elements moved around an axis
cumulative        running sums and products, recurrences
fft               Fourier transforms
fortran_calls     calls of BLAS and LAPACK
index             in which file the kernel of an operation is
kernel_call       what a kernel is given, the functions of a program's steps, the registry
loop_helpers      sums of indices, elements, copies
nan_scan          whether there is a NaN in an array
parallel_tasks    parts of a step, as the team of threads calls them
scatter           writing through index arrays and in steps
simd_matrix       matrices of a block side by side in memory, for loops over elements
store_chain       many writes into one array
strided_vectors   neighbouring elements, and elements that are steps apart, in vectors
transpose         rows and columns exchanged, in vectors
conv/             Convolution, pooling and recursive filters
gemm/             einsum lowering, BLAS calls and register-blocked loops
linalg/           Linear algebra kernels: LAPACK calls and loops for small matrices
random/           Philox bits, distributions, keys
sort/             Sorting and searching

backends/llvm/runtime/library_symbols.py      addresses of BLAS, LAPACK, special functions, NumPy's
                                              sorting
    gemm/gemm.py      one product of matrices: BLAS, or vectors of our own
    gemm/gemm_microkernel.py         products of matrices that stay in a near cache, in registers
    gemm/unrolled_gemv.py       products of small matrices with vectors, unrolled
    gemm/batched_small_gemm.py      products of many small matrices, a lane for each
    gemm/einsum_lowering.py       from index letters to products of matrices
    gemm/matmul.py      matmul, dot, einsum
    linalg/lapack.py        what the kernels of matrices share
    linalg/lu_solve.py       linear systems, inverses, determinants
    linalg/cholesky_qr.py     Cholesky, QR, LU
    linalg/packed_factors.py        LU and what is solved with it, one after the other
    linalg/structured_solve.py    systems with banded and positive definite matrices
    linalg/toeplitz_solve.py      equations with constant diagonals; orders of rows
    linalg/matrix_functions.py         square roots, logarithms and signs of matrices
    linalg/schur.py         Schur's forms, and how their unitary factors turn
    linalg/sylvester.py     equations with the unknown matrix between two others
    linalg/cholesky_vjp.py    the derivative of Cholesky's factorization backwards
    linalg/unrolled_small_matrices.py         systems, inverses, triangles, Cholesky of up to four
                                              rows, unrolled
    linalg/determinants.py  determinants of up to four rows, their logarithms and cofactors
    linalg/looped_small_matrices.py   systems, inverses, determinants and triangles of up to eight
                                      rows, in loops
    linalg/tridiagonalization.py   small symmetric matrices brought to that form
    linalg/symmetric_eigenvalues.py   eigenvalues and eigenvectors of small symmetric matrices
    linalg/eigen_svd.py       eigenvalues, singular values
    linalg/banded_solve.py        systems with a banded matrix
    linalg/expm.py  the exponential of a matrix
    conv/conv1d_full.py  products of sequences
    conv/conv_nd.py      the same of arrays of several axes
    conv/im2col.py       windows of images as columns of matrices, and added up again
    conv/conv_im2col.py    convolutions of channels, by products of matrices
    conv/depthwise_conv.py   those of each channel by itself
    conv/pooling.py       sums and largest elements of windows
    conv/recursive_filter.py       recursive filters
    sort/argsort.py       positions that sort
    sort/searchsorted.py     places among sorted numbers, counts
    random/philox.py        random bits as a function of key and position
    random/distributions.py         random numbers of them
    random/keys.py          keys of other keys

A kernel is entered under the name of its operation, and writes the inside of one function of the
module; steps that are alike share that function.
"""

from .kernel_call import KERNELS, Array, Call, Steps, contiguous, is_served, kernel

__all__ = ["KERNELS", "Array", "Call", "Steps", "contiguous", "is_served", "kernel"]
