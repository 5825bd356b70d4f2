"""Matrix products: einsum lowering, BLAS calls and register-blocked loops.

batched_small_gemm  products of many small matrices, a lane for each
einsum_lowering     from index letters to products of matrices
gemm                one product of matrices: BLAS, or vectors of our own
gemm_microkernel    products of matrices that stay in a near cache, in registers
matmul              matmul, dot, einsum
unrolled_gemv       products of small matrices with vectors, unrolled
"""
