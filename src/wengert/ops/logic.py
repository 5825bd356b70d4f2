"""Comparisons, logic, bits, and tests of single numbers: their derivative is zero.

The results are truth values or whole numbers; what depends on them only has no derivative.
"""

from __future__ import annotations

import numpy as np

from ..core.apply import Operation
from ..core.op import register
from ..kinds.elementwise import elementwise


@elementwise(ufunc=np.less, oracle="x < y", discrete=True)
def less(s, x, y):
    """x < y."""
    return s.less(x, y)


@elementwise(ufunc=np.less_equal, oracle="x <= y", discrete=True)
def less_equal(s, x, y):
    """x <= y."""
    return s.less_equal(x, y)


@elementwise(ufunc=np.greater, oracle="x > y", discrete=True)
def greater(s, x, y):
    """x > y."""
    return s.less(y, x)


@elementwise(ufunc=np.greater_equal, oracle="x >= y", discrete=True)
def greater_equal(s, x, y):
    """x >= y."""
    return s.less_equal(y, x)


@elementwise(ufunc=np.equal, oracle="x == y", discrete=True, complex_ok=True)
def equal(s, x, y):
    """x == y."""
    return s.equal(x, y)


@elementwise(ufunc=np.not_equal, oracle="x != y", discrete=True, complex_ok=True)
def not_equal(s, x, y):
    """x != y."""
    return s.not_equal(x, y)


class Bits(Operation):
    """An operation on whole numbers and truth values only."""

    kind = "elementwise"
    discrete = True

    def __init__(self, ufunc: np.ufunc) -> None:
        super().__init__(ufunc.__name__, f"numpy.{ufunc.__name__}; whole numbers only.")
        self.ufunc = ufunc
        self.run = ufunc


for _ufunc in (
    np.bitwise_and,
    np.bitwise_or,
    np.bitwise_xor,
    np.invert,
    np.left_shift,
    np.right_shift,
    np.gcd,
    np.lcm,
    np.bitwise_count,
):
    register(Bits(_ufunc))
