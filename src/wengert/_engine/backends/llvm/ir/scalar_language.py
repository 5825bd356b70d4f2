"""The scalar language as LLVM instructions.

The body of an elementwise operation is called with a `Language` and SIMD values; its operations are
emitted as instructions, for one value or for a vector, without branches.  Dtypes are promoted by
NumPy's ufuncs themselves.

    unary, binary, where       called by bodies, under the names of kinds/elementwise.py
    cast, bits, number, fma    used by vector functions (vector_math/)

+ - * / and sqrt are IEEE operations, rounded once, so they agree with NumPy to the last bit.  Only
vector functions and sums of products contract a multiplication and an addition, explicitly (`fma`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from wengert._engine.kinds.elementwise import ARRAYS, BINARY_LEAVES, UNARY_LEAVES

from . import execution_engine, llvm_types, simd_value
from .ir_builder import ModuleBuilder, Section
from .llvm_types import BOOL, F16, F32, Dtype, in_register, literal, of_width, part_of, suffix
from .simd_value import ComplexLane, Lane

if TYPE_CHECKING:
    from wengert._engine.ops.random.tail_functions import NumberRows

RuleKind = Literal["float", "integer", "complex", "to_half", "to_integer", "mixed_sign", "special"]
# Functions that emit ufuncs for a kind of operands: vector_math and special_functions register
# them when they are imported.
_RULES: dict[str, Callable[..., Any]] = {}

# NumPy's names of functions that have another name in the scalar language.
_UFUNC = {"abs": "absolute", "max": "maximum", "min": "minimum"}
_FLOAT = {"add": "fadd", "subtract": "fsub", "multiply": "fmul", "divide": "fdiv"}
_COMPARE = {
    "less": ("olt", "slt", "ult"),
    "less_equal": ("ole", "sle", "ule"),
    "greater": ("ogt", "sgt", "ugt"),
    "greater_equal": ("oge", "sge", "uge"),
    "equal": ("oeq", "eq", "eq"),
    "not_equal": ("une", "ne", "ne"),
}
# LLVM intrinsics of one or two floating-point numbers.
_INTRINSIC = {
    "sqrt": "sqrt",
    "floor": "floor",
    "ceil": "ceil",
    "trunc": "trunc",
    "rint": "roundeven",
    "absolute": "fabs",
    "fabs": "fabs",
    "copysign": "copysign",
    "maximum": "maximum",
    "minimum": "minimum",
}
# Functions that depend on the precision of the dtype, so float16 is not computed in float32.
_OF_FORMAT = ("nextafter", "spacing")
_PYTHON = (bool, int, float, complex)


def rule(kind: RuleKind) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function as the rule for a kind of operands (a decorator).

    ``float``, ``integer``, ``complex``: ``(language, ufunc, result dtype, operands)``;
    ``to_half``, ``to_integer``: conversions; ``mixed_sign``: comparisons of a signed with an
    unsigned integer of the same size; ``special``: functions of scipy.special.
    """
    return lambda function: _RULES.setdefault(kind, function)


@functools.lru_cache(maxsize=4096)
def loop_of(ufunc: str, operands: tuple[Any, ...]) -> tuple[Dtype, ...]:
    """The dtypes of operands and result in which a ufunc computes.

    Each operand is given by its dtype, or by the class of a Python number.
    """
    function = getattr(np, ufunc)
    found = function.resolve_dtypes((*operands, *[None] * function.nout))
    return tuple(found)


class Language:
    """Emits instructions into the sections of a module's functions.

    Attributes
    ----------
    home : Section or None
        The section in which values that depend on constants only are computed.
    reader : tuple or None
        The expression that is being read, and its mask (codegen/elements.py).
    """

    def __init__(self, module: ModuleBuilder) -> None:
        self.module = module
        self.home: Section | None = None
        self.reader: tuple[Any, Any] | None = None
        self.calls: dict[Any, str] = {}  # calls of functions with several results

    # ---- constants and conversions -------------------------------------------------------------

    def constant(self, value: Any, dtype: Dtype) -> Any:
        """A constant of a dtype."""
        if dtype.kind == "c":
            part = part_of(dtype)
            z = complex(value)
            return ComplexLane(
                self, self.constant(z.real, part), self.constant(z.imag, part), dtype
            )
        return Lane(self, None, literal(value, dtype), dtype, 0)

    def lane(self, section: Section, instruction: str, dtype: Dtype, width: int) -> Lane:
        """The value of an instruction."""
        return Lane(self, section, section.value(instruction), dtype, width)

    def widened(self, x: Lane, width: int) -> Lane:
        """A value broadcast to a number of lanes."""
        if x.width == width or x.width > 1:
            return x
        if width <= 1:
            return x
        kind = in_register(x.dtype)
        if x.section is None:
            return Lane(self, None, f"splat ({kind} {x.name})", x.dtype, width)
        whole = of_width(kind, width)
        first = x.section.value(f"insertelement {whole} poison, {kind} {x.name}, i64 0")
        lanes = f"<{width} x i32> zeroinitializer"
        name = x.section.value(f"shufflevector {whole} {first}, {whole} poison, {lanes}")
        return Lane(self, x.section, name, x.dtype, width)

    def together(self, *lanes: Lane) -> tuple[list[Lane], Section, int]:
        """Lanes broadcast to the same width, the section of results from them, and the width."""
        width = max(1, *[x.width for x in lanes])
        section = None
        for x in lanes:
            if x.section is not None and (section is None or x.section.rank > section.rank):
                section = x.section
        section = section or self.home
        assert section is not None, "there is no section to compute with constants in"
        return [self.widened(x, width) for x in lanes], section, width

    def emit(self, instruction: str, dtype: Dtype, *lanes: Lane) -> Lane:
        """Emit an instruction on lanes of one type: ``fadd`` gives ``fadd <8 x double> %a, %b``."""
        wide, section, width = self.together(*lanes)
        kind = of_width(in_register(lanes[0].dtype), width)
        names = ", ".join(x.name for x in wide)
        return self.lane(section, f"{instruction} {kind} {names}", dtype, width)

    def intrinsic(self, name: str, dtype: Dtype, *lanes: Lane, more: str = "") -> Lane:
        """Call the intrinsic ``llvm.name`` on lanes of one type."""
        wide, section, width = self.together(*lanes)
        operand = of_width(in_register(lanes[0].dtype), width)
        result = of_width(in_register(dtype), width)
        full = f"llvm.{name}" + suffix(in_register(lanes[0].dtype), width)
        types = [operand] * len(lanes) + ([more.split()[0]] if more else [])
        callee = self.module.declare(full, result, types)
        listed = ", ".join(f"{operand} {x.name}" for x in wide) + (f", {more}" if more else "")
        return self.lane(section, f"call {result} {callee}({listed})", dtype, width)

    def cast(self, x: Any, dtype: Dtype) -> Any:
        """The value in another dtype, as with NumPy's astype."""
        dtype = np.dtype(dtype)
        if type(x) in _PYTHON or isinstance(x, np.generic):
            return self.constant(x, dtype)
        if x.dtype == dtype:
            return x
        if dtype.kind == "c":
            part = part_of(dtype)
            if type(x) is ComplexLane:
                return ComplexLane(self, self.cast(x.real, part), self.cast(x.imag, part), dtype)
            return ComplexLane(self, self.cast(x, part), self.constant(0.0, part), dtype)
        if type(x) is ComplexLane:
            if dtype.kind == "b":
                return self.binary("logical_or", self.cast(x.real, BOOL), self.cast(x.imag, BOOL))
            return self.cast(x.real, dtype)
        if x.width == 0:
            return self.recast_constant(x, dtype)
        return self._converted(x, dtype)

    def recast_constant(self, x: Lane, dtype: Dtype) -> Lane:
        """A constant in another dtype."""
        with np.errstate(all="ignore"):
            converted: Lane = self.constant(np.asarray(constant_value(x)).astype(dtype)[()], dtype)
        return converted

    def _converted(self, x: Lane, dtype: Dtype) -> Lane:
        old, new = x.dtype, dtype
        if new == F16 and old.kind in "biu":
            x, old = self._converted(x, F32), F32  # rounds twice, as NumPy does
        if new.kind == "b":
            return self.compare("not_equal", x, self.constant(0, old))
        if new == F16 and old.itemsize == 8:
            return cast("Lane", _RULES["to_half"](self, x))
        if old.kind == "f" and new.kind == "f":
            instruction = "fpext" if new.itemsize > old.itemsize else "fptrunc"
        elif old.kind == "f":
            return cast("Lane", _RULES["to_integer"](self, x, new))
        elif new.kind == "f":
            instruction = "sitofp" if old.kind == "i" else "uitofp"
        elif new.itemsize == old.itemsize and old.kind != "b":
            return Lane(self, x.section, x.name, new, x.width)
        elif new.itemsize < old.itemsize:
            instruction = "trunc"
        else:
            instruction = "sext" if old.kind == "i" else "zext"
        return self.converted(instruction, x, dtype)

    def converted(self, instruction: str, x: Lane, dtype: Dtype) -> Lane:
        """Emit a conversion instruction: ``sitofp``, ``bitcast``, ..."""
        assert x.section is not None
        wide = max(1, x.width)
        new = of_width(in_register(dtype), wide)
        return self.lane(x.section, f"{instruction} {x.kind} {x.name} to {new}", dtype, wide)

    def bits(self, x: Lane) -> Lane:
        """The bits of floating-point numbers, as signed integers of the same size."""
        return self.converted("bitcast", x, np.dtype(f"i{x.dtype.itemsize}"))

    def number(self, x: Lane) -> Lane:
        """The floating-point numbers with these bits."""
        return self.converted("bitcast", x, np.dtype(f"f{x.dtype.itemsize}"))

    def fma(self, x: Any, y: Any, z: Any) -> Lane:
        """x * y + z, rounded once."""
        dtype = next(v.dtype for v in (x, y, z) if type(v) is Lane)
        x, y, z = [self.cast(v, dtype) for v in (x, y, z)]
        return self.intrinsic("fma", dtype, x, y, z)

    def times_power(self, x: Lane, n: Lane) -> Lane | None:
        """x * 2**n for integer-valued n, rounded once; None if no instruction does it."""
        size = x.dtype.itemsize
        (x, n), section, width = self.together(x, n)
        lanes = 64 // size
        if not execution_engine.has("avx512f") or width % lanes:
            return None
        kind = of_width(in_register(x.dtype), lanes)
        packed = "pd" if size == 8 else "ps"
        callee = self.module.declare(
            f"llvm.x86.avx512.mask.scalef.{packed}.512", kind, [kind] * 3 + [f"i{lanes}", "i32"]
        )

        def piece(v: Lane, k: int) -> str:
            if width == lanes:
                return v.name
            picked = ", ".join(f"i32 {lanes * k + j}" for j in range(lanes))
            return section.value(
                f"shufflevector {v.kind} {v.name}, {v.kind} poison, <{lanes} x i32> <{picked}>"
            )

        pieces = [
            section.value(
                f"call {kind} {callee}({kind} {piece(x, k)}, {kind} {piece(n, k)}, "
                f"{kind} zeroinitializer, i{lanes} -1, i32 4)"
            )
            for k in range(width // lanes)
        ]
        lanes_each = lanes
        while len(pieces) > 1:  # concatenate pairs
            order = ", ".join(f"i32 {j}" for j in range(2 * lanes_each))
            old = of_width(in_register(x.dtype), lanes_each)
            shuffle = f"<{2 * lanes_each} x i32> <{order}>"
            pieces = [
                section.value(f"shufflevector {old} {a}, {old} {b}, {shuffle}")
                for a, b in zip(pieces[::2], pieces[1::2], strict=True)
            ]
            lanes_each *= 2
        return Lane(self, section, pieces[0], x.dtype, width)

    def shifted(self, instruction: str, x: Lane, by: Lane) -> Lane:
        """Shifted bits: ``shl``, ``ashr`` or ``lshr``; `by` is less than the number of bits."""
        return self.emit(instruction, x.dtype, x, self.cast(by, x.dtype))

    def rows(self, table: NumberRows, row: Lane) -> list[Lane]:
        """The numbers of rows of a table, a lane for each column; `row` is within bounds."""
        count, dtype = len(table.columns), table.columns.dtype
        kind = in_register(dtype)
        if table.name not in self.module.parts:
            as_bytes = not execution_engine.is_exported()
            rows = llvm_types.constant_rows(table.columns, as_bytes)
            self.module.constant(table.name, *rows)
        (start,), section, width = self.together(row * count)
        where = f"{of_width(in_register(start.dtype), width)} {start.name}"
        found = []
        for k in range(count):
            column = section.value(f"getelementptr {kind}, ptr @{table.name}, i64 {k}")
            address = section.value(f"getelementptr {kind}, ptr {column}, {where}")
            if width == 1:
                found.append(self.lane(section, f"load {kind}, ptr {address}", dtype, 1))
                continue
            name = simd_value.masked_gather(
                self.module, section, kind, width, address, dtype.itemsize, others="poison"
            )
            found.append(Lane(self, section, name, dtype, width))
        return found

    # ---- the scalar language -------------------------------------------------------------------

    def __getattr__(self, leaf: str) -> Callable[..., Any]:
        if leaf in UNARY_LEAVES:
            return functools.partial(self.unary, _UFUNC.get(leaf, leaf))
        if leaf in BINARY_LEAVES:
            return functools.partial(self.binary, _UFUNC.get(leaf, leaf))
        raise AttributeError(f"the scalar language has no function {leaf!r}")

    def special(self, name: str, *operands: Any) -> Any:
        """A function of scipy.special."""
        return _RULES["special"](self, name, operands)

    def where(self, condition: Any, x: Any, y: Any) -> Any:
        """x where the condition holds, else y."""
        if type(condition) in _PYTHON or isinstance(condition, np.generic):
            chosen = x if condition else y
            common = loop_of("maximum", tuple(map(_operand, (x, y))))[-1]
            return self.cast(chosen, common) if isinstance(chosen, Lane | ComplexLane) else chosen
        dtype = _common(x, y)
        condition, x, y = self.cast(condition, BOOL), self.cast(x, dtype), self.cast(y, dtype)
        if type(x) is ComplexLane:
            real = self.select(condition, x.real, y.real)
            return ComplexLane(self, real, self.select(condition, x.imag, y.imag), dtype)
        return self.select(condition, x, y)

    def select(self, condition: Lane, x: Lane, y: Lane) -> Lane:
        """LLVM's select on lanes of one dtype."""
        (c, a, b), section, width = self.together(condition, x, y)
        kind = of_width(in_register(x.dtype), width)
        which = of_width("i1", width)
        text = f"select {which} {c.name}, {kind} {a.name}, {kind} {b.name}"
        return self.lane(section, text, x.dtype, width)

    def unary(self, ufunc: str, x: Any) -> Any:
        """A function of one operand."""
        if not isinstance(x, Lane | ComplexLane):
            return getattr(ARRAYS, {"absolute": "abs"}.get(ufunc, ufunc))(x)
        inner, *_, outer = loop_of(ufunc, (x.dtype,))
        return self.computed(ufunc, outer, self.cast(x, inner))

    def binary(self, ufunc: str, x: Any, y: Any) -> Any:
        """A function of two operands."""
        if not isinstance(x, Lane | ComplexLane) and not isinstance(y, Lane | ComplexLane):
            return getattr(np, ufunc)(x, y)
        one, two, *_, outer = loop_of(ufunc, (_operand(x), _operand(y)))
        return self.computed(ufunc, outer, self.cast(x, one), self.cast(y, two))

    def computed(self, ufunc: str, outer: Dtype, *operands: Any) -> Any:
        """A function of operands that have the dtypes of its ufunc loop."""
        if all(x.width == 0 for x in operands):
            return self.folded(ufunc, outer, operands)
        if any(type(x) is ComplexLane for x in operands):
            return _RULES["complex"](self, ufunc, outer, operands)
        dtype = operands[0].dtype
        if dtype == F16 and ufunc not in _OF_FORMAT:  # computed in float32, rounded once
            wide = [self.cast(x, F32) if x.dtype == F16 else x for x in operands]
            found = self.computed(ufunc, F32 if outer == F16 else outer, *wide)
            return self.cast(found, outer)
        if ufunc in _COMPARE:
            return self.compare(ufunc, *operands)
        if dtype.kind == "f":
            return self._of_floats(ufunc, outer, operands)
        return _RULES["integer"](self, ufunc, outer, operands)

    def folded(self, ufunc: str, outer: Dtype, operands: tuple[Any, ...]) -> Any:
        """A function of constants, evaluated by NumPy."""
        values = [np.asarray(constant_value(x)) for x in operands]
        with np.errstate(all="ignore"):
            return self.constant(getattr(np, ufunc)(*values)[()], outer)

    def rectangular(self, x: Any, y: Any) -> ComplexLane:
        """A complex number from its parts."""
        part = part_of(np.result_type(_operand(x), _operand(y), np.complex64))
        dtype = np.result_type(part, np.complex64)
        return ComplexLane(self, self.cast(x, part), self.cast(y, part), dtype)

    def compare(self, ufunc: str, x: Lane, y: Lane) -> Lane:
        """Compare values of one dtype."""
        floating, signed, unsigned = _COMPARE[ufunc]
        if x.dtype != y.dtype and x.dtype.kind != y.dtype.kind:  # int64 beside uint64
            return cast("Lane", _RULES["mixed_sign"](self, ufunc, x, y))
        if x.dtype.kind == "f":
            return self.emit(f"fcmp {floating}", BOOL, x, y)
        return self.emit(f"icmp {signed if x.dtype.kind == 'i' else unsigned}", BOOL, x, y)

    def _of_floats(self, ufunc: str, outer: Dtype, operands: Any) -> Any:
        x = operands[0]
        if ufunc in _FLOAT:
            return self.emit(_FLOAT[ufunc], outer, *operands)
        if ufunc in ("maximum", "minimum"):
            return self._extreme(ufunc, *operands)
        if ufunc in _INTRINSIC:
            return self.intrinsic(_INTRINSIC[ufunc], outer, *operands)
        if ufunc == "negative":
            return self.emit("fneg", outer, x)
        if ufunc in ("positive", "conj", "conjugate"):
            return x
        if ufunc == "isnan":
            return self.emit("fcmp uno", BOOL, x, x)
        if ufunc in ("isinf", "isfinite"):
            word = "equal" if ufunc == "isinf" else "less"
            return self.compare(word, self.unary("absolute", x), self.cast(np.inf, x.dtype))
        if ufunc == "signbit":
            bits = self.bits(x)
            return self.compare("less", bits, self.constant(0, bits.dtype))
        if ufunc.startswith("logical"):
            flags = [self.cast(v, BOOL) for v in operands]
            return _RULES["integer"](self, ufunc, BOOL, flags)
        return _RULES["float"](self, ufunc, outer, operands)

    def _extreme(self, ufunc: str, x: Lane, y: Lane) -> Lane:
        """The maximum or minimum; NaN if either is NaN, and x if they are equal."""
        relation = "oge" if ufunc == "maximum" else "ole"
        wins = self.emit(f"fcmp {relation}", BOOL, x, y)
        first = self.emit("or", BOOL, wins, self.emit("fcmp uno", BOOL, x, x))
        return self.select(first, x, y)


def constant_value(x: Any) -> Any:
    """The value of a constant."""
    if type(x) is ComplexLane:
        return x.dtype.type(complex(constant_value(x.real), constant_value(x.imag)))
    text = x.name
    if text.startswith("0xH"):
        return np.uint16(int(text[3:], 16)).view(np.float16)
    if text.startswith("0x"):
        return x.dtype.type(np.uint64(int(text, 16)).view(np.float64))
    words = {"true": 1, "false": 0}
    return x.dtype.type(words[text] if text in words else int(text))


def _operand(x: Any) -> Any:
    """The argument for `ufunc.resolve_dtypes`: a dtype, or the class of a Python number."""
    if type(x) in _PYTHON:
        return BOOL if type(x) is bool else type(x)
    return x.dtype


def _common(x: Any, y: Any) -> Dtype:
    """The dtype of a selection between two values."""
    if type(x) in _PYTHON and type(y) in _PYTHON:
        return np.result_type(x, y)
    return loop_of("maximum", (_operand(x), _operand(y)))[-1]
