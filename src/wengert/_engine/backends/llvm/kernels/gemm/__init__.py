"""Matrix products: einsum lowering, BLAS calls and register-blocked loops.

matmul              matmul, dot and einsum
einsum_lowering     from the subscripts of a contraction to matrix products
operands            Matrix, Product, Subscripts
choose              which routine computes a product: all decisions
write_product       the code of a product; gemm, gemv and syrk of BLAS
blocked_gemm        products of large matrices in double precision; of few steps, with a result
                    that is too large for a cache
gemm_microkernel    register-blocked products of matrices that fit into a cache
streamed_gemm       products of a few rows with a matrix that is too large for a cache, or its
                    transpose
vector_code         helpers to write functions of vectors; copies of parts of large matrices
loop_products       products of small matrices, unrolled, and batches of them, one per SIMD lane;
                    products of integers, booleans and float16
"""
