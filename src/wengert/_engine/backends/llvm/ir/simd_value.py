"""SIMD values: one value in a register, or several; masked loads and stores of vectors.

A lane records the section in which it was computed, its dtype and the number of its values.
Python's operators emit instructions, by NumPy's rules: dtypes are promoted, integers wrap around, a
Python number takes the dtype of the other operand (ir/scalar_language.py).

    Lane           one real value, or `width` of them
    ComplexLane    complex values: two lanes

A constant is a lane of width 0, which can be combined with any width.

    masked_load, masked_store        neighboring elements
    masked_gather, masked_scatter    elements at the addresses of a vector

The alignment is an argument in LLVM 20 and 21, and an attribute of the pointer since LLVM 22, which
still accepts the argument.  LLVM 20 takes the attribute form for another overload and aborts the
process, so only the form that all versions accept is emitted, and only in this module.

With AVX-512, LLVM 22 makes a masked load an operand of the instruction that uses it if that one has
the same mask (llvm/llvm-project#161074).  If it makes two instructions of these again, the load has
no mask, and reads beyond the end of an array; if the instruction permutes lanes, the result is
wrong (#178888); and a selection by the mask reads the memory later, maybe after a store (#216730).
So what is loaded is not known to the instructions that use it: it passes `llvm.arithmetic.fence`,
which is not an instruction.
"""

from __future__ import annotations

from typing import Any, Protocol

from wengert._engine.core.types import Scalar

from . import execution_engine
from .ir_builder import ModuleBuilder, Name, Section
from .llvm_types import Dtype, in_register, of_width, suffix


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


# ---- masked loads and stores ---------------------------------------------------------------------


def masked_load(
    module: ModuleBuilder,
    section: Section,
    element: str,
    width: int,
    address: Name,
    align: int,
    mask: Name,
    others: str = "zeroinitializer",
) -> Name:
    """Load neighboring elements of LLVM type `element`; masked lanes get `others`."""
    kind, flags = of_width(element, width), of_width("i1", width)
    callee = module.declare(
        f"llvm.masked.load{suffix(element, width)}.p0", kind, ["ptr", "i32", flags, kind]
    )
    loaded = section.value(
        f"call {kind} {callee}(ptr {address}, i32 {align}, {flags} {mask}, {kind} {others})"
    )
    return _fenced(module, section, element, width, loaded)


def _fenced(
    module: ModuleBuilder, section: Section, element: str, width: int, loaded: Name
) -> Name:
    """The same vector, of which LLVM does not know where it is from."""
    if execution_engine.vector_bytes() < 64:  # there are no flags as masks
        return loaded
    kind, count = of_width(element, width), width
    if is_floating := element in ("float", "double"):
        other = kind
    else:
        count = width * int(element.removeprefix("i").replace("half", "16")) // 32
        element, other = "float", of_width("float", count)
        if not count:  # less than 32 bits
            return loaded
        loaded = section.value(f"bitcast {kind} {loaded} to {other}")
    fence = module.declare(f"llvm.arithmetic.fence{suffix(element, count)}", other, [other])
    loaded = section.value(f"call {other} {fence}({other} {loaded})")
    return loaded if is_floating else section.value(f"bitcast {other} {loaded} to {kind}")


def masked_store(
    module: ModuleBuilder,
    section: Section,
    element: str,
    width: int,
    value: Name,
    address: Name,
    align: int,
    mask: Name,
) -> None:
    """Store the neighboring elements selected by the mask."""
    kind, flags = of_width(element, width), of_width("i1", width)
    callee = module.declare(
        f"llvm.masked.store{suffix(element, width)}.p0", "void", [kind, "ptr", "i32", flags]
    )
    section.write(f"call void {callee}({kind} {value}, ptr {address}, i32 {align}, {flags} {mask})")


def masked_gather(
    module: ModuleBuilder,
    section: Section,
    element: str,
    width: int,
    addresses: Name,
    align: int,
    mask: Name = "splat (i1 true)",
    others: str = "zeroinitializer",
) -> Name:
    """Load elements from a vector of addresses; masked lanes get `others`."""
    kind, flags, pointers = (of_width(x, width) for x in (element, "i1", "ptr"))
    callee = module.declare(
        f"llvm.masked.gather{suffix(element, width)}.v{width}p0",
        kind,
        [pointers, "i32", flags, kind],
    )
    given = f"{pointers} {addresses}, i32 {align}, {flags} {mask}, {kind} {others}"
    return section.value(f"call {kind} {callee}({given})")


def masked_scatter(
    module: ModuleBuilder,
    section: Section,
    element: str,
    width: int,
    value: Name,
    addresses: Name,
    align: int,
    mask: Name = "splat (i1 true)",
) -> None:
    """Store elements to a vector of addresses, in the order of the lanes."""
    kind, flags, pointers = (of_width(x, width) for x in (element, "i1", "ptr"))
    callee = module.declare(
        f"llvm.masked.scatter{suffix(element, width)}.v{width}p0",
        "void",
        [kind, pointers, "i32", flags],
    )
    section.write(
        f"call void {callee}({kind} {value}, {pointers} {addresses}, i32 {align}, {flags} {mask})"
    )
