"""sin and cos of multiples of pi, and validation of integer arguments.

sinpi, cospi      sin(pi x) and cos(pi x), accurate for large x and near zeros: x - 2 round(x / 2)
                  is exact, unlike pi x
check_integers    validates orders and degrees
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
    return s.sin(pi * _reduce(s, x))


@elementwise(name=f"{PREFIX}cospi", oracle="cospi(x)", complex_ok=True)
def cospi(s: Any, x: Any) -> Any:
    """cos(pi x)."""
    r = x - 2.0 * s.rint(0.5 * (x + s.conj(x)) * 0.5)
    shifted = s.where(s.less(s.conj(r) + r, 0.0), r + 0.5, 0.5 - r)
    return s.sin(pi * shifted)


def _reduce(s: Any, x: Any) -> Any:
    """r with sin(pi r) = sin(pi x) and real part in [-1/2, 1/2]."""
    r = x - 2.0 * s.rint(0.5 * (x + s.conj(x)) * 0.5)
    real = 0.5 * (r + s.conj(r))
    return s.where(s.less(0.5, real), 1.0 - r, s.where(s.less(real, -0.5), -1.0 - r, r))


sinpi.partials(lambda t, out, x: t * (pi * cospi(x)))
cospi.partials(lambda t, out, x: t * (-pi * sinpi(x)))


def check_integers(n: Any, function: str, parameter: str, minimum: int) -> Any:
    """`n` as an int or an array of int64.

    Raises
    ------
    ArgumentError
        It is not an integer, less than `minimum`, or not known while tracing.
    """
    values = np.asarray(value_of(n) if isinstance(n, Handle) else n)
    kind = values.dtype.kind
    if kind not in "biuf" or np.any(values < minimum) or (kind == "f" and np.any(values % 1)):
        raise ArgumentError(
            f"{function} with {parameter}={n}: {parameter} must be an integer of at least "
            f"{minimum}{at(user_line())}."
        )
    integers = values.astype(np.int64)
    return int(integers) if integers.ndim == 0 else integers
