"""Programs as files for other languages: C, object files, shared libraries, LLVM IR.

Read from the top; docs/design/0024-export.md has the reasons:

files.py             `rendered(path, functions, ...)`: the files of some functions, in a format;
                     object files as shared libraries and WebAssembly modules; processors that code
                     is generated for
c_source.py          functions as one file of C99; its printer, from the top:
c_functions.py       a function: declarations, and branches between blocks
c_calls.py           calls of functions and of intrinsics; other instructions
c_values.py          values as variables, or as expressions for later
c_expressions.py     instructions without effects as expressions
c_types.py           types and constants; functions that printed C calls
c_vectors.py         vectors as vector types of GCC and Clang
casadi_names.py      functions by which CasADi finds and calls one, in C
object_code.py       LLVM IR as an object file for a processor; functions of the C library, for
                     targets without one
header.py            the C header
exported.py          one graph as LLVM functions that need no Python
entry_points.py      the C functions: checks of arguments, the frame, the bound of the workspace
memory_context.py    the allocator's state as an argument of all functions that allocate
workspace_bound.py   how many bytes of workspace a run needs at most
externals.py         functions of other libraries: which are included or called, under which names
linear_algebra.py    routines of BLAS and LAPACK, on strided_linear_algebra.py
sorting.py           sorting
routine_builder.py   the builder of these routines
c_names.py           names of inputs, outputs and sizes as identifiers of C; lines of LLVM IR,
                     taken apart

Nothing is imported here.
"""
