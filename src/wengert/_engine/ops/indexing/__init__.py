"""Indexing: reading and writing array elements by slices, masks and index arrays.

getitem           x[index] and x[index] = v for all indices of NumPy, and their transposes
masks             masks in an index while tracing; the positions at which an unknown mask is true
scatter_add       x with elements added at an index
selection         the elements that a traced mask selects
shapes            shapes of indexed arrays, exact for symbolic sizes; lengths of new arrays that are
                  computed in a loop step; lengths of stored values, and their cotangents
slice_ends        start and stop of slices with traced bounds; linear forms of traced integers:
                  bounds and lengths in a loop step
template          an index as a static template and arrays; indices that may be out of bounds in a
                  try statement
traced_slices     slices with bounds computed in a loop step, as symbolic sizes
windows           slices with traced bounds
window_access     reading and writing windows
window_operators  operators of windows
window_functions, window_sorting, window_joining   NumPy's functions of windows
"""

from . import getitem, scatter_add, window_joining, window_sorting

__all__ = [
    "getitem",
    "scatter_add",
    "window_joining",
    "window_sorting",
]
