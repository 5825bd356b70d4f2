"""Functions of unsigned integers that loop over their bits.

    gcd            halving and subtracting: no division, which processors do one lane at a time
    whole_power    repeated squaring

The greatest common divisor is J. Stein's algorithm (J. Comput. Phys. 1, 1967): halve even numbers,
subtract the smaller of two odd numbers from the larger.
"""

from __future__ import annotations

from typing import Any

from wengert._engine.core.types import Scalar

from .lane_loops import repeat
from .registry import leaf


@leaf("gcd")
def gcd(s: Any, x: Any, y: Any) -> Any:
    """The greatest common divisor; that of 0 and y is y."""
    most = 8 * x.dtype.itemsize - 1

    def halvings(v: Any) -> Any:
        # For 0 the count of trailing zeros is the number of bits; a shift by that is undefined.
        return s.intrinsic("cttz", v.dtype, v, more="i1 false") & s.constant(most, v.dtype)

    zero = s.constant(0, x.dtype)
    empty = s.equal(x, zero)
    x, y = s.where(empty, y, x), s.where(empty, zero, y)
    common = halvings(x | y)

    def step(a: Scalar, b: Scalar) -> list[Any]:
        done = s.equal(b, zero)
        b = b >> halvings(b)
        less = s.less(a, b)
        apart = s.where(less, b - a, a - b)
        return [s.where(done, a, s.where(less, a, b)), s.where(done, zero, apart)]

    found, _ = repeat(s, [x >> halvings(x), y], lambda a, b: s.not_equal(b, zero), step)
    return found << common


@leaf("whole_power")
def whole_power(s: Any, x: Any, y: Any) -> Any:
    """x**y, which wraps around."""
    one, zero = s.constant(1, x.dtype), s.constant(0, x.dtype)

    def step(out: Any, power: Any, left: Any) -> list[Any]:
        odd = s.not_equal(left & one, zero)
        return [s.where(odd, out * power, out), power * power, left >> 1]

    found = repeat(s, [one, x, y], lambda out, power, left: s.not_equal(left, zero), step)
    return found[0]
