"""Indexing: reading and writing array elements by slices, masks and index arrays.

getitem   x[index] and x[index] = v, for every index that NumPy knows; their transposes
masks     Masks in an index, while a graph is built
shapes    Shapes of what an index chooses, by rule, for lengths that are numbers or sizes with a
          name
template  Indices as data: a static template, and the arrays that belong in it
"""

from . import getitem

__all__ = [
    "getitem",
]
