"""Complex arithmetic and functions, as NumPy's ufuncs.

arithmetic     + - * /, sign, absolute value, integer powers
comparisons    comparisons (lexicographic), logic, maximum and minimum
exponential    exp, log, power, sqrt and related functions
trigonometric  sin, sinh, ... and their inverses

Arithmetic is done in the dtype of the parts, in NumPy's order of operations.  Functions of
complex64 are computed in float64 and rounded once, so their special cases are those of complex128.
Branch cuts, signed zeros and infinities follow Annex G of C99, as NumPy does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...ir.llvm_types import BOOL, C128, Dtype, part_of
from ...ir.scalar_language import Language
from ...ir.simd_value import ComplexLane, Lane
from . import arithmetic, comparisons, exponential, trigonometric

_FUNCTIONS: dict[str, Callable[..., Any]] = {**exponential.FUNCTIONS, **trigonometric.FUNCTIONS}


def computed(s: Language, ufunc: str, outer: Dtype, operands: Sequence[Any]) -> Any:
    """A ufunc with complex operands, in the dtype of NumPy's loop."""
    if ufunc in arithmetic.RULES:
        return arithmetic.RULES[ufunc](s, *operands)
    if ufunc in comparisons.RULES:
        return comparisons.RULES[ufunc](s, *operands)
    if ufunc.startswith("logical"):
        return s.computed(ufunc, BOOL, *[s.cast(x, BOOL) for x in operands])
    if ufunc == "power":
        exponent = arithmetic.whole_exponent(operands[1])
        if exponent is not None:
            return arithmetic.whole_power(s, operands[0], exponent)
    if ufunc not in _FUNCTIONS:
        raise NotImplementedError(f"{ufunc} of {part_of(outer)} pairs")
    parts = [part for x in operands for part in _parts(s, x)]
    real, imag = _FUNCTIONS[ufunc](s, *parts)
    return s.cast(ComplexLane(s, real, imag, C128), outer)


def has_rule(ufunc: str) -> bool:
    """Whether a ufunc of complex numbers can be computed."""
    known = arithmetic.RULES, comparisons.RULES, _FUNCTIONS, ("power",)
    return ufunc.startswith("logical") or any(ufunc in some for some in known)


def _parts(s: Language, x: ComplexLane) -> list[Lane]:
    """Both parts as float64; constant parts are computed too, so that they can be fused."""
    wide = s.cast(x, C128)
    section = wide.section
    if section is None:
        return [wide.real, wide.imag]
    return [
        s.lane(section, f"freeze double {part.name}", part.dtype, 1) if part.width == 0 else part
        for part in (wide.real, wide.imag)
    ]
