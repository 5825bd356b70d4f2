"""Programs as files for other languages: C, object files, shared libraries, LLVM IR.

Read from the top; docs/design/0024-export.md has the reasons:

files.py             `rendered(path, functions, ...)`: the files of some functions, in a format;
                     object files as shared libraries and WebAssembly modules; processors that code
                     is generated for
c_source.py          functions as one file of C99; one function: declarations, branches
c_calls.py           calls of functions and of intrinsics; other instructions
c_values.py          values as variables, or as expressions for later
c_types.py           types and constants; functions that printed C calls
c_vectors.py         vectors as vector types of GCC and Clang
casadi_names.py      functions by which CasADi finds and calls one, in C
object_code.py       LLVM IR as an object file for a processor; functions of the C library, for
                     targets without one
exported.py          one graph as LLVM functions that need no Python
entry_points.py      the C functions: checks of arguments, the frame, the bound of the workspace;
                     the C header
workspace.py         the allocator's state as an argument of all functions that allocate; how many
                     bytes a run needs at most
externals.py         functions of other libraries: which are included or called, under which names;
                     sorting; routines of BLAS and LAPACK
strided_linear_algebra.py    the loops of these routines, and their builder
c_names.py           names of inputs, outputs and sizes as identifiers of C; lines of LLVM IR,
                     taken apart

Nothing is imported here.
"""
