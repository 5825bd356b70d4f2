"""Range reduction: an argument of sine, cosine or tangent, minus a multiple of pi or of pi/2.

    less_pi        r from -pi/2 to pi/2 with sin(r) = sin(a), or = cos(a); for sine and cosine
    less_quarter   r + low from -pi/4 to pi/4 and the number of quarters; for the tangent

Ordinary arguments: Cody and Waite, "Software Manual for the Elementary Functions" (1980), in the
form for fused multiply-add (Muller, "Elementary Functions", 3rd edition, 11.2): pi in three parts
of full length.  The subtraction of the first product is exact, because the remainder has no more
bits than a floating-point number; so near multiples of pi no accuracy is lost.

Huge arguments: backends/llvm/vector_math/payne_hanek.py, one lane after the other, and only if some
lane of the vector is huge or not finite.  So a lane of ordinary size costs one comparison and a
branch, and its result does not depend on its neighbors: results of the slow path are selected lane
by lane.
"""

from __future__ import annotations

from collections.abc import Callable

from ..ir.llvm_types import BOOL
from ..ir.scalar_language import Language
from ..ir.simd_value import Lane
from .float_parts import any_of, flipped, nearest_whole, rounding, sign_of, to_top
from .payne_hanek import exact_quarters

# From here on the fast path would lose accuracy.
_PAYNE_HANEK_FROM = {8: 2.0**30, 4: 2.0**17}
# pi in parts, each the rounded remainder of the previous ones; halved, those of pi/2.
_PI = {
    8: (3.141592653589793, 1.2246467991473532e-16, -2.9947698097183397e-33),
    4: (3.1415927410125732, -8.742277657347586e-08, -3.4302490200117637e-15),
}
_OVER_PI = {8: 0.3183098861837907, 4: 0.31830987334251404}


def less_pi(s: Language, a: Lane, cosine: bool) -> Lane:
    """The r from -pi/2 to pi/2 with sin(r) = sin(a), or sin(r) = cos(a).

    Parameters
    ----------
    a : Lane
        Not negative.
    """
    size = a.dtype.itemsize
    over = _OVER_PI[size]
    turns = s.fma(a, over, -0.5) + rounding(a) if cosine else s.fma(a, over, rounding(a))
    n, bits = nearest_whole(s, turns)
    if cosine:  # cos(a) = sin(a + pi/2): the zeros are at odd multiples of pi/2
        n, bits = n + 0.5, ~bits
    r = a
    for part in _PI[size]:
        r = s.fma(n, -part, r)
    r = flipped(s, r, to_top(a, bits))

    def slow(moved: Lane) -> list[Lane]:
        exact, low, quarters = exact_quarters(s, moved)
        k = quarters + 1 if cosine else quarters
        odd = s.compare("not_equal", k & 1, s.constant(0, k.dtype))
        # cos(r) = sin(pi/2 - |r|)
        half, half_low = [part / 2 for part in _PI[size][:2]]
        near, more = s.abs(exact), flipped(s, low, sign_of(s, exact))
        far = half - near
        far = far + (((half - far) - near) + (half_low - more))
        return [flipped(s, s.where(odd, far, exact), to_top(a, k >> 1))]

    return _unless_huge(s, a, [r], slow)[0]


def less_quarter(s: Language, a: Lane) -> tuple[Lane, Lane, Lane]:
    """a minus a multiple k of pi/2, as the sum of two lanes, and k in the low bits of a third.

    Parameters
    ----------
    a : Lane
        Not negative.
    """
    size = a.dtype.itemsize
    first, second, third = [part / 2 for part in _PI[size]]
    n, bits = nearest_whole(s, s.fma(a, 2 * _OVER_PI[size], rounding(a)))
    high = s.fma(n, -first, a)
    product = n * second
    r = high - product
    beyond = s.fma(n, third, s.fma(n, second, -product))
    low = ((high - r) - product) - beyond
    found = _unless_huge(s, a, [r, low, bits], lambda moved: list(exact_quarters(s, moved)))
    return found[0], found[1], found[2]


def _unless_huge(
    s: Language, a: Lane, quick: list[Lane], slow: Callable[[Lane], list[Lane]]
) -> list[Lane]:
    """The lanes of the fast path, replaced by the slow path where `a` is huge."""
    section = a.section
    assert section is not None
    huge = s.emit("fcmp uge", BOOL, a, s.constant(_PAYNE_HANEK_FROM[a.dtype.itemsize], a.dtype))
    slots = [section.function.slot(lane.kind) for lane in quick]
    for lane, slot in zip(quick, slots, strict=True):
        section.write(f"store {lane.kind} {lane.name}, ptr {slot}")
    with section.when(any_of(huge)) as body:
        moved = Lane(s, body, a.name, a.dtype, a.width)
        for lane, exact, slot in zip(quick, slow(moved), slots, strict=True):
            chosen = s.select(huge, exact, lane)
            body.write(f"store {lane.kind} {chosen.name}, ptr {slot}")
    return [
        s.lane(section, f"load {lane.kind}, ptr {slot}", lane.dtype, lane.width)
        for lane, slot in zip(quick, slots, strict=True)
    ]
