"""mpmath expressions as oracles of special functions and their derivatives.

The laws check an oracle that is a string at a grid of extreme points, with 800 digits for
derivatives (wengert.testing, whole_range).  For functions that take mpmath milliseconds per element
that would take hours.  An `OracleExpression` is a callable oracle, and is evaluated only at the
examples of the operation; extreme points have their own tests (tests/scipy).  mpmath is imported
when an oracle is called, as it is not a dependency of the library.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

__all__: list[str] = []

DIGITS = 30


class OracleExpression:
    """A function of arrays, given as an mpmath expression.

    Parameters
    ----------
    operands : str
        The names of the operands, separated by spaces.
    expression : str
        A Python expression in functions of mpmath, operands and parameters.

    Examples
    --------
    >>> bool(abs(OracleExpression("v x", "besselj(v, x)")(0.0, 1.0) - 0.7651976865579666) < 1e-15)
    True
    """

    def __init__(self, operands: str, expression: str) -> None:
        self.operands = operands.split()
        self.expression = expression

    def __call__(self, *operands: Any, **params: Any) -> Any:
        """The values as floats, or as complex numbers if any is not real."""
        mp: Any = importlib.import_module("mpmath")
        names = {k: getattr(mp, k) for k in dir(mp) if not k.startswith("_")} | params
        arrays = np.broadcast_arrays(*operands)

        def evaluate(values: Any) -> Any:
            exact = {
                name: mp.mpmathify(v.item()) for name, v in zip(self.operands, values, strict=True)
            }
            return mp.mpmathify(eval(self.expression, names | exact))

        with mp.workdps(DIGITS):
            results = [evaluate(values) for values in zip(*map(np.ravel, arrays), strict=True)]
        is_complex = any(isinstance(x, mp.mpc) and x.imag != 0 for x in results)
        flat = [complex(x) if is_complex else float(mp.re(x)) for x in results]
        return np.array(flat, complex if is_complex else float).reshape(arrays[0].shape)[()]

    def __reduce__(self) -> Any:
        return OracleExpression, (" ".join(self.operands), self.expression)
