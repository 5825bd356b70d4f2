"""Comparisons of complex numbers, and functions that use them.

NumPy's order is lexicographic: by the real parts, and if these are equal by the imaginary parts.  A
number with a NaN part is neither less nor greater.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...ir.scalar_language import Language
from ...ir.simd_value import ComplexLane, Lane

Rule = Callable[..., Any]


def _before(word: str, swapped: bool = False) -> Rule:
    """x < y or x <= y (`word` compares the imaginary parts); of (y, x) if swapped."""

    def rule(s: Language, x: ComplexLane, y: ComplexLane) -> Lane:
        if swapped:
            x, y = y, x
        known = s.logical_not(s.logical_or(s.isnan(x.imag), s.isnan(y.imag)))
        real = s.logical_and(s.less(x.real, y.real), known)
        imag = s.logical_and(s.equal(x.real, y.real), s.binary(word, x.imag, y.imag))
        found: Lane = s.logical_or(real, imag)
        return found

    return rule


def _extreme(word: str) -> Rule:
    wins = _before("less_equal", swapped=word == "greater")

    def rule(s: Language, x: ComplexLane, y: ComplexLane) -> Any:
        return s.where(s.logical_or(_isnan(s, x), wins(s, x, y)), x, y)

    return rule


def _isnan(s: Language, x: ComplexLane) -> Any:
    return s.logical_or(s.isnan(x.real), s.isnan(x.imag))


RULES: dict[str, Rule] = {
    "equal": lambda s, x, y: s.logical_and(s.equal(x.real, y.real), s.equal(x.imag, y.imag)),
    "not_equal": lambda s, x, y: s.logical_or(
        s.not_equal(x.real, y.real), s.not_equal(x.imag, y.imag)
    ),
    "less": _before("less"),
    "less_equal": _before("less_equal"),
    "greater": _before("less", swapped=True),
    "greater_equal": _before("less_equal", swapped=True),
    "maximum": _extreme("greater"),
    "minimum": _extreme("less"),
    "isnan": _isnan,
    "isinf": lambda s, x: s.logical_or(s.isinf(x.real), s.isinf(x.imag)),
    "isfinite": lambda s, x: s.logical_and(s.isfinite(x.real), s.isfinite(x.imag)),
}
