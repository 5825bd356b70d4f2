"""Captures: what a compiled function reads that is not an argument, and how a change is noticed.

A function reads globals, closure cells, defaults, attributes and elements of containers.  A trace
sees the values of one moment; a later call must see those of its own.  So arrays that are captured
are inputs of the program, fed at each call, and everything else is guarded: compared, at each call,
with what it was when the function was traced.

code.py          the names that a code object reads
library.py       which code, classes and modules are the user's, and which values are immutable
sources.py       how a captured value is read again: a cell, an entry of a dict, of a list
guards.py        one comparison of a captured value with what it was
discovery.py     from a function to all that it captures
objects.py       what the class of an object says of its attributes
records.py       guards and fed arrays as native code goes through them
substitution.py  the function with other arrays in the place of captured ones
captured.py      guards and fed arrays of one trace, checked together at each call
"""

from .captured import Captured
from .discovery import captured_by

__all__ = ["Captured", "captured_by"]
