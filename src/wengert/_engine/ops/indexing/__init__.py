"""Indexing: reading and writing array elements by slices, masks and index arrays.

getitem   x[index] and x[index] = v for all indices of NumPy, and their transposes
masks     masks in an index while tracing
shapes    shapes of indexed arrays, exact for symbolic sizes
template  an index as a static template and arrays
traced_slices  slices with bounds that are computed in the step of a loop
"""

from . import getitem

__all__ = [
    "getitem",
]
