"""Indexing: reading and writing array elements by slices, masks and index arrays.

getitem   x[index] and x[index] = v for all indices of NumPy, and their transposes
masks     masks in an index while tracing
shapes    shapes of indexed arrays, exact for symbolic sizes
template  an index as a static template and arrays
"""

from . import getitem

__all__ = [
    "getitem",
]
