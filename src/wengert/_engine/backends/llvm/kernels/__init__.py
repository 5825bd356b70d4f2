"""Kernels: operations that are compiled as a whole instead of being fused into loops.

kernel_call       KernelCall, through which a kernel emits its code; the registry of kernels
index             the module of the kernel of each operation, and of each function that all
                  programs share
fortran_calls     calls of BLAS and LAPACK
loop_helpers      index arithmetic, loads, stores, loops, copies, transposed copies
strided_vectors   contiguous and strided elements as vectors
batched_matrices  batches of small matrices in vectors, and loops over batches
cumulative        cumulative sums and products, linear recurrences, recursive (IIR) filters
distributions     random numbers of distributions
fft               Fourier transforms
joined_arrays     concatenate, stack and roll; several stores into one array
messages          calls of MPI
philox            random bits as a function of a key and a position; keys derived from keys
scatter           stores and additions at indices
sorting           indices that sort an array, searches in sorted arrays, histograms
sparse_products   products with sparse matrices
conv/             convolution and pooling
gemm/             matrix products: einsum lowering, BLAS calls, register-blocked loops
linalg/           linear algebra: LAPACK calls, and loops for small matrices
quadpack/         integrals: adaptive bisection with extrapolation

A kernel is registered under the name of its operation, and emits the body of one function of the
LLVM module; calls with the same parameters, shapes and dtypes share the function.
"""

from .. import vector_math as vector_math  # the scalar language's rules
from .kernel_call import (
    KERNELS,
    ArrayPointer,
    KernelCall,
    KernelCalls,
    contiguous,
    is_served,
    kernel,
)

__all__ = [
    "KERNELS",
    "ArrayPointer",
    "KernelCall",
    "KernelCalls",
    "contiguous",
    "is_served",
    "kernel",
]
