"""Families: special functions that whole numbers tell apart, as native functions.

scopes     where the text of a value goes, among branches and loops
element    a number that NumPy's functions take for an array
writer     what elements are computed with: ufuncs, choices, loops, Gauss' rule
members    one member of a family as a function of a module, and its calls

A family of scipy/special/family.py states its values with NumPy.  That function is read with
elements, once for each member and kind of operands, and becomes a function of one number, which is
called for one lane after the other; inside, the points of an integral are lanes.
"""

from .members import called, is_served

__all__ = ["called", "is_served"]
