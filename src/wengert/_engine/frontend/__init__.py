"""The front end: user functions converted so that plain NumPy and Python run in transformations.

convert.py      the function that a transformation runs instead of the user's
needs.py        which functions must be converted, determined from their compiled code
builtin_names.py    import, isinstance and globals() of converted code
overlay.py      globals in which numpy, scipy and math are the namespaces of tensors
namespaces.py   these namespaces
rewritten.py    functions with their loops, branches and calls rewritten
source.py       the syntax tree of a function that is running
names.py        the variables that statements bind and read
liveness.py     the variables that may be read after a statement
stores.py       the parameters whose elements a function assigns
definite.py     the variables that may have no value where they are read
rewriting/      the transformations of the syntax tree
running/        the functions called by rewritten code
"""

from .convert import convert
from .running.iterables import unroll
from .stores import written_parameters

__all__ = ["convert", "unroll", "written_parameters"]
