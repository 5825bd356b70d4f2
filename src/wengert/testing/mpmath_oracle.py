"""mpmath as the reference for values of elementwise operations.

An operation states its oracle as an expression of its operands with mpmath's functions.  mpmath is
not a dependency of the library; it is needed only for these checks (extra `dev`).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert.errors import CheckError

if TYPE_CHECKING:
    from wengert.scipy.special.register import OracleExpression

DIGITS = 40
EXPRESSION_DIGITS = 30  # of functions that take mpmath milliseconds


def mpmath() -> Any:
    """The module mpmath, set to 40 digits."""
    try:
        mp = importlib.import_module("mpmath")
    except ImportError as error:
        raise CheckError(
            "checking values against an oracle needs mpmath. Install it: pip install mpmath."
        ) from error
    mp.mp.dps = DIGITS
    return mp


@cache
def _names() -> dict[str, Any]:
    """The names that the expression of an oracle may use."""
    mp = mpmath()
    names = {k: getattr(mp, k) for k in dir(mp) if not k.startswith("_")}
    return names | {"max": max, "min": min, "abs": abs, "round": mp.nint}


def oracle_of(op: Any) -> Callable[..., Any]:
    """The oracle expression of an elementwise operation as a function of mpmath numbers."""
    mp, names = mpmath(), _names()
    code = compile(op.oracle, f"<oracle of {op.name}>", "eval")

    def oracle(*xs: Any) -> Any:
        return eval(code, names, dict(zip(op.arguments, map(_exact, xs), strict=True)))

    def _exact(x: Any) -> Any:
        if isinstance(x, bool):
            return x
        return mp.mpc(x) if isinstance(x, complex) else mp.mpf(x)

    return oracle


def evaluated(oracle: OracleExpression, *operands: Any, **params: Any) -> Any:
    """The values of an expression as floats, or as complex numbers if any is not real.

    Examples
    --------
    >>> from wengert.scipy.special.register import OracleExpression
    >>> value = evaluated(OracleExpression("v x", "besselj(v, x)"), 0.0, 1.0)
    >>> bool(abs(value - 0.7651976865579666) < 1e-15)
    True
    """
    mp = mpmath()
    known = {k: getattr(mp, k) for k in dir(mp) if not k.startswith("_")} | params
    arrays = np.broadcast_arrays(*operands)
    words = oracle.operands.split()

    def value(numbers: Any) -> Any:
        exact = {n: mp.mpmathify(v.item()) for n, v in zip(words, numbers, strict=True)}
        return mp.mpmathify(eval(oracle.expression, known | exact))

    with mp.workdps(EXPRESSION_DIGITS):
        results = [value(numbers) for numbers in zip(*map(np.ravel, arrays), strict=True)]
    is_complex = any(isinstance(x, mp.mpc) and x.imag != 0 for x in results)
    flat = [complex(x) if is_complex else float(mp.re(x)) for x in results]
    return np.array(flat, complex if is_complex else float).reshape(arrays[0].shape)[()]
