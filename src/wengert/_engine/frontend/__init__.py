"""The front end: user functions converted so that plain NumPy and Python run in transformations.

convert.py      the function that a transformation runs in place of the user's
needs.py        which functions have to be converted, found in their compiled code
builtin_names.py    import, isinstance and globals() of converted code
overlay.py      globals in which numpy, scipy and math are the namespaces of tensors
namespaces.py   these namespaces
rewritten.py    functions with their loops, branches and calls rewritten
source.py       the syntax tree of a function that is running
names.py        the variables that statements bind and read
liveness.py     the variables that may be read after a statement
stores.py       the parameters of which a function assigns elements
definite.py     the variables that may have no value where they are read
rewriting/      the rewritings of the syntax tree
running/        what the rewritten code calls
"""

from .convert import convert
from .running.iterables import unroll
from .stores import written_parameters

__all__ = ["convert", "unroll", "written_parameters"]
