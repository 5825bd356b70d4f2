"""Matrix products: einsum lowering, BLAS calls and register-blocked loops.

matmul              matmul, dot and einsum
einsum_lowering     from the subscripts of a contraction to matrix products
operands            Matrix, Product, Subscripts
choose              which routine computes a product: all decisions
write_product       the code of a product
blas_calls          gemm, gemv and syrk
blocked_gemm        products of large matrices in double precision
gemm_microkernel    register-blocked products of matrices that fit into a cache
streamed_gemm       products of a few rows with a matrix that is too large for a cache
streamed_dots       products of a few rows with the transpose of such a matrix
uncached_gemm       products of few steps with a result that is too large for a cache
vector_code         helpers to write functions of vectors; copies of parts of large matrices
simd_loops          products of integers, booleans and float16
unrolled_gemv       unrolled products of small matrices and vectors
batched_small_gemm  batches of products of small matrices, one per SIMD lane
"""
