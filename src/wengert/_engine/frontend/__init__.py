"""The front end: user functions converted so that plain NumPy and Python run in transformations.

convert.py      the function that a transformation runs instead of the user's
code_facts.py      which functions must be converted, determined from their compiled code
builtin_overrides.py  import, isinstance and globals() of converted code
overlay.py      globals in which numpy, scipy and math are the namespaces of tensors
namespaces.py   these namespaces
rewritten_functions.py  functions with their loops, branches and calls rewritten
source.py       the syntax tree of a function that is running
function_copies.py  copies of functions with other globals
state.py        variables and objects that a traced block shares with its function
assignment_targets.py       elements and attributes of Python objects that a block assigns
outer_assignments.py   variables around a function that it assigns
names.py        the variables that statements bind and read
liveness.py     the variables that may be read after a statement
written_parameters.py     the parameters whose elements a function assigns
definite_assignment.py     the variables that may have no value where they are read
rewriting/      the transformations of the syntax tree
running/        the functions called by rewritten code
"""

from typing import TYPE_CHECKING

from wengert._engine.core.lazy_import import lazy_names

from .convert import convert
from .state import is_noted, object_changes
from .written_parameters import written_parameters

if TYPE_CHECKING:
    from .running.iterables import unroll
else:
    __getattr__ = lazy_names(__name__, {"unroll": ".running.iterables"})

__all__ = ["convert", "is_noted", "object_changes", "unroll", "written_parameters"]
