"""The front end: conversion of user functions, so that plain Python and NumPy can be transformed.

A transformation calls `convert(f)` and runs the result instead of `f`.  In it, numpy, scipy and
math are replaced by namespaces that accept tensors; in a trace, its loops, branches and calls are
rewritten too, from the source.

Conversion
    convert.py               decides how a function is converted
    source.py                what a function uses, from its bytecode; the syntax tree of a function;
                             rewritten code on disk, for other processes
    overlay.py               a view of a module's globals, with replaced modules; the same code
                             with other globals; import, isinstance, globals, eval and exec of
                             converted functions
    namespaces.py            the replacements of numpy, scipy and math
    rewritten_functions.py   functions compiled from a rewritten syntax tree; cached

Static analysis
    syntax.py                the nodes of a syntax tree, and constructors of them
    names.py                 variables that statements bind and read; global and nonlocal variables
                             that a function assigns; parameters whose elements a function assigns;
                             variables that may be read after a statement, or may be unbound

State while a block is traced
    state.py                 variables and objects that a block shares with the function
    assignment_targets.py    elements, attributes and variables that a block assigns

rewriting/   transformations of the syntax tree
running/     functions that the rewritten code calls
"""

from typing import TYPE_CHECKING

from wengert._engine.core.lazy_import import lazy_names

from .convert import convert
from .names import written_parameters
from .state import is_noted, object_changes

if TYPE_CHECKING:
    from .running.iterables import unroll
else:
    __getattr__ = lazy_names(__name__, {"unroll": ".running.iterables"})

__all__ = ["convert", "is_noted", "object_changes", "unroll", "written_parameters"]
