"""Kernels: operations that are compiled as a whole instead of being fused into loops.

kernel_call       KernelCall, through which a kernel emits its code; the registry of kernels
index             the module of the kernel of each operation
fortran_calls     calls of BLAS and LAPACK
loop_helpers      index arithmetic, loads, stores, loops and copies
strided_vectors   contiguous and strided elements as vectors
simd_matrix       batches of small matrices in vectors, for loops over their elements
batched_matrices  loops over batches of small matrices
parallel_tasks    parts of a kernel, run by the thread pool
check             a value that is copied if a condition holds; whether an array contains NaN
concatenate       concatenate, stack and roll
cumulative        cumulative sums and products, linear recurrences
fft               Fourier transforms
messages          calls of MPI
scatter           stores and additions at indices
sparse_products   products with sparse matrices
store_chain       several stores into one array
transpose         transposed copies of matrices
conv/             convolution, pooling and recursive filters
gemm/             matrix products: einsum lowering, BLAS calls, register-blocked loops
linalg/           linear algebra: LAPACK calls, and loops for small matrices
quadpack/         integrals: adaptive bisection with extrapolation
random/           Philox bits, distributions, keys
sort/             sorting and searching

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
