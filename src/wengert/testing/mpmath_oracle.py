"""mpmath as the reference for values of elementwise operations.

An operation states its oracle as an expression of its operands with mpmath's functions.  mpmath is
not a dependency of the library; it is needed only for these checks (extra `dev`).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache
from typing import Any

from wengert.errors import CheckError

DIGITS = 40


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
