"""Checks of derivatives and operations.

grad_checks         check_grads: derivatives of a function, both modes, any order; numerical
                    derivatives with extrapolation
op_checks           check_op: all laws of one operation; check_traced: a function and its graph
pairs               check_pairs: compositions of two elementwise operations
mpmath_oracle       mpmath as the reference of elementwise values
array_api           the array API standard over tensors, for its public test suite
laws/               the properties that every operation must have, one function each
"""

from wengert._engine.core.lazy_import import public_dir

from . import laws as _laws  # registers the laws  # noqa: F401
from .grad_checks import check_grads
from .op_checks import OpReport, check_op, check_traced
from .pairs import PairReport, check_pairs

__all__ = ["OpReport", "PairReport", "check_grads", "check_op", "check_pairs", "check_traced"]

__dir__ = public_dir(__name__)
