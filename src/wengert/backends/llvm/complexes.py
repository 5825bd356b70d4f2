"""Complex numbers: leaves of pairs, as NumPy's ufuncs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .dtypes import Dtype, part_of
from .lane import Pair

if TYPE_CHECKING:
    from .language import Language


def computed(s: Language, ufunc: str, outer: Dtype, operands: Sequence[Any]) -> Any:
    """A leaf of which an operand is complex, in the dtype of NumPy's loop."""
    if ufunc == "add":
        x, y = operands
        return Pair(s, x.real + y.real, x.imag + y.imag, outer)
    if ufunc == "multiply":
        x, y = operands
        real = x.real * y.real - x.imag * y.imag
        return Pair(s, real, x.real * y.imag + x.imag * y.real, outer)
    raise NotImplementedError(f"{ufunc} of {part_of(outer)} pairs")
