"""The front end: user functions converted so that plain NumPy and Python run in transformations.

convert.py     the function that a transformation runs in place of the user's
overlay.py     globals in which numpy, scipy and math are the namespaces of tensors
"""

from .convert import convert

__all__ = ["convert"]
