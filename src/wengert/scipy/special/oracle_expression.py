"""mpmath as the oracle of special functions and of their derivatives.

An oracle that is text is checked over a grid of hard points, with 800 digits for the derivatives
(wengert.testing, whole_range); for functions of mpmath's that take milliseconds an element that
would take hours.  A `Witness` is a callable oracle, asked at the operands that the laws draw; hard
points have tests of their own (tests/scipy).  mpmath is imported when one is asked, as it is no
dependency of the library.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

__all__: list[str] = []

DIGITS = 30


class Witness:
    """A function of arrays from an expression in mpmath's functions.

    Parameters
    ----------
    operands : str
        Their names, separated by spaces.
    expression : str
        In mpmath's functions, the operands, and the names of the parameters.

    Examples
    --------
    >>> bool(abs(Witness("v x", "besselj(v, x)")(0.0, 1.0) - 0.7651976865579666) < 1e-15)
    True
    """

    def __init__(self, operands: str, expression: str) -> None:
        self.operands = operands.split()
        self.expression = expression

    def __call__(self, *operands: Any, **params: Any) -> Any:
        """Its values as floats, or complex numbers where it has such."""
        mp: Any = importlib.import_module("mpmath")
        names = {k: getattr(mp, k) for k in dir(mp) if not k.startswith("_")} | params
        arrays = np.broadcast_arrays(*operands)

        def one(values: Any) -> Any:
            exact = {
                name: mp.mpmathify(v.item()) for name, v in zip(self.operands, values, strict=True)
            }
            return mp.mpmathify(eval(self.expression, names | exact))

        with mp.workdps(DIGITS):
            found = [one(values) for values in zip(*map(np.ravel, arrays), strict=True)]
        whole = any(isinstance(x, mp.mpc) and x.imag != 0 for x in found)
        flat = [complex(x) if whole else float(mp.re(x)) for x in found]
        return np.array(flat, complex if whole else float).reshape(arrays[0].shape)[()]

    def __reduce__(self) -> Any:
        return Witness, (" ".join(self.operands), self.expression)
