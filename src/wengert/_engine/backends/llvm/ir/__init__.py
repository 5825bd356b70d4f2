"""LLVM IR: the builder, types, SIMD values and the scalar language written in them.

ir_builder        modules, functions and nested sections of LLVM IR text; parts of kernels
llvm_types        LLVM types and constants of NumPy's dtypes, tables; LLVM text in files beside
                  modules
simd_value        Lane: one value or a SIMD vector of values; masked vector loads and stores
scalar_language   the scalar language as LLVM instructions
memory_access     loads and stores of elements
index_analysis    from an index to the axes of the result; index expressions that are affine in
                  loop counters
execution_engine  compiles LLVM IR in memory; the only module that imports llvmlite; float16
                  conversions for processors without instructions for them; whether the system has
                  the memory that LLVM will ask for; the processor that code is generated for
object_symbols    symbols that an object file defines and imports, and its machine code; machine
                  code that names a register which its instruction cannot address
"""
