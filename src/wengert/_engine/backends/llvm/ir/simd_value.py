"""SIMD values: one value in a register, or several.

A lane records the section in which it was computed, its dtype and the number of its values.
Python's operators emit instructions, by NumPy's rules: dtypes are promoted, integers wrap around, a
Python number takes the dtype of the other operand (ir/scalar_language.py).

    Lane           one real value, or `width` of them
    ComplexLane    complex values: two lanes

A constant is a lane of width 0, which can be combined with any width.
"""

from __future__ import annotations

from typing import Any, Protocol

from wengert._engine.core.types import Scalar

from .ir_builder import Section
from .llvm_types import Dtype, in_register, of_width


class OperatorBuilder(Protocol):
    """Emits the instructions of Python's operators (ir/scalar_language.py)."""

    def unary(self, ufunc: str, x: Any) -> Any:
        """An operation of one operand."""

    def binary(self, ufunc: str, x: Any, y: Any) -> Any:
        """An operation of two operands."""

    def shifted(self, instruction: str, x: Any, by: Any) -> Any:
        """Shifted bits: ``shl``, ``ashr`` or ``lshr``."""


class Operators:
    """Python's operators, implemented by the language."""

    __slots__ = ()
    language: OperatorBuilder

    def __add__(self, other: Scalar) -> Any:
        return self.language.binary("add", self, other)

    def __radd__(self, other: float) -> Any:
        return self.language.binary("add", other, self)

    def __sub__(self, other: Scalar) -> Any:
        return self.language.binary("subtract", self, other)

    def __rsub__(self, other: float) -> Any:
        return self.language.binary("subtract", other, self)

    def __mul__(self, other: Scalar) -> Any:
        return self.language.binary("multiply", self, other)

    def __rmul__(self, other: float) -> Any:
        return self.language.binary("multiply", other, self)

    def __truediv__(self, other: Scalar) -> Any:
        return self.language.binary("divide", self, other)

    def __rtruediv__(self, other: float) -> Any:
        return self.language.binary("divide", other, self)

    def __floordiv__(self, other: int) -> Any:
        return self.language.binary("floor_divide", self, other)

    def __and__(self, other: Scalar) -> Any:
        return self.language.binary("bitwise_and", self, other)

    def __or__(self, other: Scalar) -> Any:
        return self.language.binary("bitwise_or", self, other)

    def __xor__(self, other: Scalar) -> Any:
        return self.language.binary("bitwise_xor", self, other)

    def __lshift__(self: Any, other: Scalar) -> Any:
        return self.language.shifted("shl", self, other)

    def __rshift__(self: Any, other: Scalar) -> Any:
        return self.language.shifted("ashr" if self.dtype.kind == "i" else "lshr", self, other)

    def __neg__(self) -> Any:
        return self.language.unary("negative", self)

    def __invert__(self) -> Any:
        return self.language.unary("invert", self)

    dtype: Dtype


class Lane(Operators):
    """One real value, or a vector of them.

    Attributes
    ----------
    language : OperatorBuilder
    section : Section or None
        The section in which it was computed; None for a constant.
    name : str
        Its name in the LLVM IR; of a constant, the literal.
    dtype : numpy.dtype
    width : int
        The number of values; 0 for a constant.
    """

    __slots__ = ("dtype", "language", "name", "section", "width")

    def __init__(
        self,
        language: OperatorBuilder,
        section: Section | None,
        name: str,
        dtype: Dtype,
        width: int,
    ) -> None:
        self.language, self.section, self.name = language, section, name
        self.dtype, self.width = dtype, width

    @property
    def kind(self) -> str:
        """The LLVM type."""
        return of_width(in_register(self.dtype), self.width)

    def __repr__(self) -> str:
        return f"<lane {self.name} of {self.width} {self.dtype}>"


class ComplexLane(Operators):
    """Complex values: their real and imaginary parts.

    Attributes
    ----------
    language : OperatorBuilder
    real, imag : Lane
    dtype : numpy.dtype
        complex64 or complex128.
    """

    __slots__ = ("dtype", "imag", "language", "real")

    def __init__(self, language: OperatorBuilder, real: Lane, imag: Lane, dtype: Dtype) -> None:
        self.language, self.real, self.imag, self.dtype = language, real, imag, dtype

    @property
    def width(self) -> int:
        """The number of values; 0 for a constant."""
        return max(self.real.width, self.imag.width)

    @property
    def section(self) -> Section | None:
        """The section in which the later of its parts was computed."""
        sections = [p.section for p in (self.real, self.imag) if p.section is not None]
        return max(sections, key=lambda s: s.rank) if sections else None

    def __repr__(self) -> str:
        return f"<pair {self.real} {self.imag}>"
