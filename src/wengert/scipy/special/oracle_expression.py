"""mpmath expressions as oracles of special functions and their derivatives.

The laws check an oracle that is a string at a grid of extreme points, with 800 digits for
derivatives (wengert.testing, whole_range).  For functions that take mpmath milliseconds per element
that would take hours.  An `OracleExpression` is evaluated only at the examples of the operation, by
wengert.testing.mpmath_oracle; extreme points have their own tests (tests/scipy).
"""

from __future__ import annotations

from typing import NamedTuple

__all__: list[str] = []


class OracleExpression(NamedTuple):
    """A function of arrays, given as an mpmath expression.

    operands : the names of the operands, separated by spaces.
    expression : a Python expression in functions of mpmath, operands and parameters.
    """

    operands: str
    expression: str
