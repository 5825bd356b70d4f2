"""LLVM IR: the builder, types, SIMD values and the scalar language written in them.

ir_builder        modules, functions and nested sections of LLVM IR text
llvm_types        LLVM types and constants of NumPy's dtypes; LLVM text in files beside modules
simd_value        Lane: one value or a SIMD vector of values
scalar_language   the scalar language as LLVM instructions
memory_access     loads and stores of elements
masked_memory     masked vector loads and stores
constant_rows     tables of numbers as constants of a module
hidden_constants  constants that LLVM takes for variables, where it miscompiles masks
index_analysis    from an index to the axes of the result; index expressions that are affine in
                  loop counters
execution_engine  compiles LLVM IR in memory; the only module that imports llvmlite; float16
                  conversions for processors without instructions for them; whether the system has
                  the memory that LLVM will ask for
processors        the processor that code is generated for: this one, or another
object_symbols    symbols that an object file defines and imports, and its machine code; machine
                  code that names a register which its instruction cannot address
"""
