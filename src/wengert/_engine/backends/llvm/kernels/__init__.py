"""Kernels: steps of a graph that are no loops of the plan, as native code.

    call.py          what a kernel is given, the functions of a program's steps, the registry
    sharing.py       parts of a step, as the team of threads calls them
    homes.py         in which file the kernel of an operation is
    pointers.py      addresses of BLAS, LAPACK, special functions, NumPy's sorting
    transposing.py   rows and columns exchanged, in vectors
    fortran.py       calls of BLAS and LAPACK
    loops.py         sums of indices, elements, copies
    matrices.py      one product of matrices: BLAS, or vectors of our own
    tiles.py         products of matrices that stay in a near cache, in registers
    vectors.py       products of small matrices with vectors, unrolled
    together.py      products of many small matrices, a lane for each
    letters.py       from index letters to products of matrices
    products.py      matmul, dot, einsum
    undefined.py     whether there is a NaN in an array
    lapack.py        what the kernels of matrices share
    solving.py       linear systems, inverses, determinants
    factoring.py     Cholesky, QR, LU
    packed.py        LU and what is solved with it, one after the other
    structured.py    systems with banded and positive definite matrices
    levinson.py      equations with constant diagonals; orders of rows
    roots.py         square roots, logarithms and signs of matrices
    schur.py         Schur's forms, and how their unitary factors turn
    sylvester.py     equations with the unknown matrix between two others
    cotangents.py    the derivative of Cholesky's factorization backwards
    batched.py       many small matrices at a time, a lane for each
    small.py         systems, inverses, triangles, Cholesky of up to four rows, unrolled
    determinants.py  determinants of up to four rows, their logarithms and cofactors
    elimination.py   systems, inverses, determinants and triangles of up to eight rows, in loops
    panels.py        matrices of a block side by side in memory, for loops over elements
    tridiagonal.py   small symmetric matrices brought to that form
    eigenvalues.py   eigenvalues and eigenvectors of small symmetric matrices
    spectra.py       eigenvalues, singular values
    banded.py        systems with a banded matrix
    exponentials.py  the exponential of a matrix
    sequences.py     running sums and products, recurrences
    convolutions.py  products of sequences
    stencils.py      the same of arrays of several axes
    spaced.py        neighbouring elements, and elements that are steps apart, in vectors
    patches.py       windows of images as columns of matrices, and added up again
    convolving.py    convolutions of channels, by products of matrices
    channelwise.py   those of each channel by itself
    pooling.py       sums and largest elements of windows
    fourier.py       Fourier transforms
    filters.py       recursive filters
    accepting.py     values that are refused under a condition
    sorting.py       positions that sort
    searching.py     places among sorted numbers, counts
    indexing.py      writing through index arrays and in steps
    writes.py        many writes into one array
    joining.py       many arrays copied into one; elements moved around an axis
    philox.py        random bits as a function of key and position
    draws.py         random numbers of them
    keys.py          keys of other keys

A kernel is entered under the name of its operation, and writes the inside of one function of the
module; steps that are alike share that function.
"""

from .call import KERNELS, Array, Call, Steps, contiguous, is_served, kernel

__all__ = ["KERNELS", "Array", "Call", "Steps", "contiguous", "is_served", "kernel"]
