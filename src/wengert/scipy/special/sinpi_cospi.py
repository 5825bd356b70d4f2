"""sin and cos of multiples of pi, and conversion of integer arguments.

sinpi, cospi    of pi x, with all digits for large x and next to zeros: x less 2 round(x / 2) is
                exact, what pi x is not
whole_numbers   orders and degrees, checked
"""

from __future__ import annotations

from math import pi
from typing import Any

import numpy as np

from wengert._engine.core.handle import Handle, value_of
from wengert._engine.kinds.elementwise import elementwise
from wengert.errors import ArgumentError, at, user_line

from .register import PREFIX

__all__: list[str] = []


@elementwise(name=f"{PREFIX}sinpi", oracle="sinpi(x)", complex_ok=True)
def sinpi(s: Any, x: Any) -> Any:
    """sin(pi x)."""
    return s.sin(pi * _within(s, x))


@elementwise(name=f"{PREFIX}cospi", oracle="cospi(x)", complex_ok=True)
def cospi(s: Any, x: Any) -> Any:
    """cos(pi x)."""
    r = x - 2.0 * s.rint(0.5 * (x + s.conj(x)) * 0.5)
    turned = s.where(s.less(s.conj(r) + r, 0.0), r + 0.5, 0.5 - r)
    return s.sin(pi * turned)


def _within(s: Any, x: Any) -> Any:
    """x less a multiple of 2, or 1 less that: its real part from -1/2 to 1/2."""
    r = x - 2.0 * s.rint(0.5 * (x + s.conj(x)) * 0.5)
    real = 0.5 * (r + s.conj(r))
    return s.where(s.less(0.5, real), 1.0 - r, s.where(s.less(real, -0.5), -1.0 - r, r))


sinpi.partials(lambda t, out, x: t * (pi * cospi(x)))
cospi.partials(lambda t, out, x: t * (-pi * sinpi(x)))


def whole_numbers(n: Any, what: str, least: int) -> Any:
    """`n` as Python's int, or an array of integers.

    Raises
    ------
    ArgumentError
        It is smaller than `least`, no integer, or not known yet.
    """
    values = np.asarray(value_of(n) if isinstance(n, Handle) else n)
    kind = values.dtype.kind
    if kind not in "biuf" or np.any(values < least) or (kind == "f" and np.any(values % 1)):
        raise ArgumentError(
            f"{what} has to be an integer of at least {least}, and is {n}{at(user_line())}."
        )
    whole = values.astype(np.int64)
    return int(whole) if whole.ndim == 0 else whole
