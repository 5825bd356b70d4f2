"""Matrix products: einsum lowering, BLAS calls and register-blocked loops.

matmul              matmul, dot and einsum
einsum_lowering     from the subscripts of a contraction to matrix products
gemm                one matrix product, by BLAS or by loops
gemm_microkernel    register-blocked products of matrices that fit into a cache
unrolled_gemv       unrolled products of small matrices and vectors
batched_small_gemm  batches of products of small matrices, one per SIMD lane
"""
