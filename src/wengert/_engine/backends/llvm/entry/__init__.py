"""Entry: a function of CPython's C interface that calls a native function at next to no cost.

    python      where CPython and NumPy keep things; is it so in this process?
    table       the addresses that an entry needs, in a table beside its text
    writer      the words that the text is made of
    lengths     named sizes, and expressions of them, as instructions
    guards      is this argument what the program was made for?
    numbers     Python numbers as values of a port
    support     what all entries do alike, compiled once
    results     the objects that a call returns
    text        the whole text of an entry            `entry_text(module, program)`
    make        the function object                   `make_entry(program, code, miss, failed)`
    guarded     entries that look at captured values first; guarded_text, their text
    dispatching one entry in front of several
    pointers    C function pointers for other libraries   `pointer(program, code, signature)`

Begin with text.py, which tells the way that a call goes.
"""

from typing import TYPE_CHECKING

from wengert._engine.core.lazy_import import late_names

from .make import is_available, make_entry
from .text import entry_text

if TYPE_CHECKING:
    from .pointers import Pointer, pointer

__all__ = ["Pointer", "entry_text", "is_available", "make_entry", "pointer"]

__getattr__ = late_names(__name__, dict.fromkeys(("Pointer", "pointer"), ".pointers"))
