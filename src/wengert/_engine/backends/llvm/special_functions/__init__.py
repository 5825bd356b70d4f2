"""Special functions traced from NumPy code to native scalar functions.

branch_scopes     where the text of a value goes, among branches and loops
compile_function  one member of a family as a function of a module, and its calls
scalar_builder    what elements are computed with: ufuncs, choices, loops, Gauss' rule
scipy_symbols     SciPy's special functions, natively: ``s.special("jv", order, x)`` in a body
traced_scalar     a number that NumPy's functions take for an array

A family of scipy/special/derivative_families.py states its values with NumPy.  That function is
read with elements, once for each member and kind of operands, and becomes a function of one number,
which is called for one lane after the other; inside, the points of an integral are lanes.
"""

from .compile_function import called, is_served

__all__ = ["called", "is_served"]
