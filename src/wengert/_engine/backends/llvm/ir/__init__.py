"""LLVM IR: the builder, types, SIMD values and the scalar language written in them.

affine            where something is read, as sums over the counters of loops
execution_engine  text made into machine code in memory; nothing else imports llvmlite
half_precision    conversions of half precision, for processors that have no instructions for them
index_analysis    what an index says of each axis
ir_builder        LLVM's text: modules, functions, sections that nest as loops do
llvm_types        how LLVM names NumPy's dtypes
masked_memory     LLVM's loads and stores of vectors of which a mask says which lanes take part
memory_access     elements from memory and into it; masked where only some lanes take part
object_symbols    what an object file calls outside; halves the conversions that LLVM calls
scalar_language   the scalar language read as instructions; lane is one value of it, or several
simd_value        a value in a register, or several side by side that go the same way
"""
