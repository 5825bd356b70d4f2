"""Checks of derivatives and operations.

grad_checks         check_grads: derivatives of a function, both modes, any order; numerical
                    derivatives with extrapolation
op_checks           check_op: all laws of one operation; check_traced: a function and its graph
pairs               check_pairs: compositions of two elementwise operations
mpmath_oracle       mpmath as the reference of elementwise values
array_api           the array API standard over tensors, for its public test suite
laws/               the properties that every operation must have, one function each
"""

from typing import TYPE_CHECKING

from wengert._engine.core.lazy_import import lazy_names, public_dir

from .grad_checks import check_grads

if TYPE_CHECKING:
    from .op_checks import OpReport, check_op, check_traced
    from .pairs import PairReport, check_pairs

__all__ = ["OpReport", "PairReport", "check_grads", "check_op", "check_pairs", "check_traced"]

# In wengert-extras.
__getattr__ = lazy_names(
    __name__,
    {
        **dict.fromkeys("OpReport check_op check_traced".split(), ".op_checks"),
        **dict.fromkeys("PairReport check_pairs".split(), ".pairs"),
    },
)

__dir__ = public_dir(__name__)
