"""Special functions traced from NumPy code to native scalar functions.

scipy_symbols     SciPy's compiled functions: ``s.special("jv", order, x)`` in a body
scalar_builder    one member of a family as a function of a module: ufuncs, selections, loops and
                  quadrature of traced scalars
traced_scalar     a native scalar that NumPy's functions accept as an array

The functions of a family (scipy/special/register.py) are NumPy code.  It is traced with
scalars, once for each member and combination of operand types, and becomes a function of one number
that is called for each lane.  Inside it, the points of a quadrature are lanes.
"""

from .scalar_builder import called, is_served

__all__ = ["called", "is_served"]
