"""Entry points: how Python and C call compiled programs.

entry_codegen          the text of an entry point: `entry_text(module, program)`; begin here
entry_builder          the builder of that text; symbolic sizes as 64-bit integers
arguments_and_results  checks of types, dtypes, shapes and strides of arguments; result arrays and
                       numbers, their containers, their release on errors
ports                  Port: an input or output of a native function, and its slots in the frame;
                       Python numbers as values of ports; table of addresses of this process,
                       which the text refers to
cpython_layout         offsets in CPython's and NumPy's objects, verified before use
guarded_entries        one entry point before several, chosen by types, dtypes, ranks and layouts;
                       programs for arrays that are not C-contiguous, without copies; entry points
                       that compare captured values and feed captured arrays
python_function        the function object: `make_entry(program, code, miss, failed)`; functions
                       that all entry points call, compiled once per process; entry points of
                       functions that modify their array arguments
array_fingerprint      fingerprints of arrays in one pass; sums and products in the same pass; a
                       search for NaN
c_pointers             C function pointers for other libraries: `pointer(program, code, signature)`
vector_callbacks       those with vectors: of samplers, solvers and filters
ipopt_callbacks        the callbacks of Ipopt among them; builders of C functions that fill a frame
                       and run the kernel
"""

from typing import TYPE_CHECKING

from wengert._engine.core.lazy_import import lazy_names

from .entry_codegen import entry_text
from .python_function import is_available, make_entry

if TYPE_CHECKING:
    from .c_pointers import Pointer, pointer

__all__ = ["Pointer", "entry_text", "is_available", "make_entry", "pointer"]

__getattr__ = lazy_names(__name__, dict.fromkeys(("Pointer", "pointer"), ".c_pointers"))
