"""Checks anyone can use: derivatives of a function, all laws of an operation.

array_api           the array API standard over tensors, for its public test suite
finite_differences  numerical derivatives of the forward function, by extrapolation
grad_checks         check_grads: both modes, any order, of any function
mpmath_oracle       mpmath as an outside witness of elementwise values
op_checks           check_op: all laws of one operation
traced_checks       check_traced: a function and its graph
coverage/           what there is of NumPy and SciPy: facts found by calling it, and their page
laws/               the properties that every operation must have, one function each
"""

from wengert._engine.core.lazy_import import public_dir

from . import laws as _laws  # registers the laws  # noqa: F401
from .grad_checks import check_grads
from .op_checks import OpReport, check_op
from .traced_checks import check_traced

__all__ = ["OpReport", "check_grads", "check_op", "check_traced"]

__dir__ = public_dir(__name__)
