"""Captured values: what a compiled function reads besides its arguments, and checks for changes.

A function reads globals, closure cells, defaults, attributes and elements of containers.  A trace
records their values at one time, but a later call must use the current ones.  So captured arrays
are inputs of the program, passed at each call ("fed"), and everything else is guarded: at each call
it is compared with its value at tracing time.

guards.py        how a captured value is read again: from a cell, a dict, a list; properties of
                 classes that determine how attributes are read; comparisons of captured values with
                 those at tracing time
discovery.py     the search for the captured values of a function
traced_function.py the part of a function that runs while it is traced, without its callbacks; the
                   function with other arrays instead of captured ones
object_search.py attributes of objects and classes, as a part of the search; what a search has
                 found so far
records.py       guards and fed arrays in the form that native code reads
captured.py      guards and fed arrays of one trace, checked together at each call
"""

from .captured import Captured
from .discovery import captured_by

__all__ = ["Captured", "captured_by"]
