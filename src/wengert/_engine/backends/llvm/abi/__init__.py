"""Entry points: how Python and C call compiled programs.

address_table          the addresses that an entry needs, in a table beside its text
argument_guards        is this argument what the program was made for?
array_layouts          arrays that do not lie in C order are served where they lie, and not copied
c_pointers             C function pointers for other libraries   `pointer(program, code,
                       signature)`
capture_guard_codegen  the functions that go through records, compiled once for the process
capture_guards         entries that look at captured values first; guarded_text, their text
cpython_layout         where CPython and NumPy keep things; is it so in this process?
dispatch               one entry in front of several, chosen by types, dtypes, axes and layouts
entry_builder          the words that the text is made of
entry_codegen          the whole text of an entry            `entry_text(module, program)`
number_conversion      Python numbers as values of a port
ports                  a value that goes into a native function, or comes out, and where the frame
                       has it
python_function        the function object                   `make_entry(program, code, miss,
                       failed)`
result_objects         the objects that a call returns
result_structure       how a call of a graph returns its results
shared_routines        what all entries do alike, compiled once
size_arguments         named sizes, and expressions of them, as instructions

dispatching one entry in front of several

Begin with backends/llvm/abi/entry_codegen.py, which tells the way that a call goes.
"""

from typing import TYPE_CHECKING

from wengert._engine.core.lazy_import import late_names

from .entry_codegen import entry_text
from .python_function import is_available, make_entry

if TYPE_CHECKING:
    from .c_pointers import Pointer, pointer

__all__ = ["Pointer", "entry_text", "is_available", "make_entry", "pointer"]

__getattr__ = late_names(__name__, dict.fromkeys(("Pointer", "pointer"), ".c_pointers"))
