"""Checks anyone can use: derivatives of a function, all laws of an operation.

differences.py  numerical derivatives of the forward function, by extrapolation
grads.py        check_grads: both modes, any order, of any function
ops.py          check_op: all laws of one operation
traced.py       check_traced: a function and its graph
oracles.py      mpmath as an outside witness of elementwise values
array_api.py    the array API standard over tensors, for its public test suite
coverage           what there is of NumPy and SciPy: facts found by calling it, and their page

The laws, one function for each that an operation must keep:

laws.py           values, specs, both modes of derivative, special values
whole_range.py    of elementwise operations: tails, complex numbers, dtypes
memory_laws.py    strides, order, alignment, byte order do not matter
batching_laws.py  many rows at once are what a loop gives
traced_laws.py    of graphs: values, both modes of derivative, levels
symbolic_laws.py  of graphs for sizes with names
native_laws.py    of native code: values, derivatives, sizes with names
singular_laws.py  of singular points, and what was not chosen
"""

from wengert._engine.core.lazy_import import public_dir

from . import batching_laws as _batching_laws  # enters its law  # noqa: F401
from . import memory_laws as _memory_laws  # enters its law  # noqa: F401
from . import native_laws as _native_laws  # enters its laws  # noqa: F401
from . import singular_laws as _singular_laws  # enters its laws  # noqa: F401
from . import symbolic_laws as _symbolic_laws  # enters its law  # noqa: F401
from . import traced_laws as _traced_laws  # enters its laws  # noqa: F401
from . import whole_range as _whole_range  # enters its laws  # noqa: F401
from .grads import check_grads
from .ops import OpReport, check_op
from .traced import check_traced

__all__ = ["OpReport", "check_grads", "check_op", "check_traced"]

__dir__ = public_dir(__name__)
