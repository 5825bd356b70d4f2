"""Programs as files for other languages: LLVM IR, object files, shared libraries, C.

Read from the top; docs/design/0024-export.md has the reasons:

files.py             `rendered(path, functions, ...)`: the files of some functions, in a format
linking.py           object files as shared libraries and WebAssembly modules
object_code.py       LLVM IR as an object file for a processor
header.py            the C header
exported.py          one graph as LLVM functions that need no Python
entry_points.py      the C functions: checks of arguments, the frame, the bound of the workspace
memory_context.py    the allocator's state as an argument of all functions that allocate
workspace_bound.py   how many bytes of workspace a run needs at most
externals.py         functions of other libraries: which are included or called, under which names
linear_algebra.py    routines of BLAS and LAPACK, on strided_linear_algebra.py
sorting.py           sorting
routine_builder.py   the builder of these routines
c_names.py           names of inputs, outputs and sizes as identifiers of C
freestanding.py      functions of the C library, for targets without one
targets.py           processors that code is generated for

Nothing is imported here.
"""
