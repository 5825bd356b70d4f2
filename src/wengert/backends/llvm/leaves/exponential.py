"""Exponentials and logarithms: leaves without branches, for float32 and float64."""

from __future__ import annotations

from typing import Any

from . import leaf

_LOG2E = 1.4426950408889634
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10


def _scaled(s: Any, x: Any, n: Any) -> Any:
    """x * 2**n for a float n that is whole, in two steps, so that subnormals come out right."""
    size = 8 * x.dtype.itemsize
    mantissa, bias = (52, 1023) if size == 64 else (23, 127)
    whole = s.cast(n, f"i{x.dtype.itemsize}")
    half = whole >> 1
    for part in (half, whole - half):
        x = x * s.number((part + bias) << mantissa)
    return x


@leaf("exp")
def exp(s: Any, x: Any) -> Any:
    """A first version (see the issue): Cody and Waite's reduction, Taylor's polynomial."""
    n = s.rint(s.min(s.max(x * _LOG2E, -1100.0), 1100.0))
    r = s.fma(n, -_LN2_LOW, s.fma(n, -_LN2_HIGH, x))
    total: Any = 1.0 / 6227020800.0
    for k in range(12, -1, -1):
        factorial = 1.0
        for j in range(1, k + 1):
            factorial *= j
        total = s.fma(r, total, 1.0 / factorial)
    return s.where(s.isnan(x), x, _scaled(s, total, n))
