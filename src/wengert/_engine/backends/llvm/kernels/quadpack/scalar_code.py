"""A builder of functions with many variables and branches, for published algorithms.

    ScalarCode   builds one function: variables, arrays, branches, loops, calls
    Value        a number; Python's operators emit instructions
    Cell         a variable: its value is read where it is used
    ArrayCode     an array in memory, numbered from 1 as in publications

Variables are stack slots, which LLVM turns into registers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Union

from ...ir.ir_builder import Function, ModuleBuilder, Name
from ...ir.llvm_types import F64, literal

REAL, INT, FLAG, PTR = "double", "i64", "i1", "ptr"
_ARITHMETIC = {
    REAL: {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv"},
    INT: {"+": "add", "-": "sub", "*": "mul", "/": "sdiv"},
    FLAG: {"&": "and", "|": "or", "^": "xor"},
}
# Ordered comparisons of doubles are false for NaN, except "not equal", as in C.
_COMPARISONS = {
    REAL: {"<": "olt", "<=": "ole", ">": "ogt", ">=": "oge", "=": "oeq", "!=": "une"},
    INT: {"<": "slt", "<=": "sle", ">": "sgt", ">=": "sge", "=": "eq", "!=": "ne"},
}

Scalar = Union["Value", float, int]
Arguments = Sequence[tuple[str, Union["Value", float, int, Name]]]  # types and values of a call


class Value:
    """A number: its LLVM type and its name.

    `equals` and `differs` compare; `==` is Python's.
    """

    __slots__ = ("_name", "code", "kind")

    def __init__(self, code: ScalarCode, kind: str, name: Name) -> None:
        self.code, self.kind, self._name = code, kind, name

    @property
    def name(self) -> Name:
        """Its name in the text."""
        return self._name

    def __add__(self, other: Scalar) -> Value:
        return self.code.arithmetic("+", self, other)

    def __sub__(self, other: Scalar) -> Value:
        return self.code.arithmetic("-", self, other)

    def __mul__(self, other: Scalar) -> Value:
        return self.code.arithmetic("*", self, other)

    def __truediv__(self, other: Scalar) -> Value:
        return self.code.arithmetic("/", self, other)

    def __floordiv__(self, other: int) -> Value:
        return self.code.arithmetic("/", self, other)

    def __radd__(self, other: float) -> Value:
        return self.code.arithmetic("+", other, self)

    def __rsub__(self, other: float) -> Value:
        return self.code.arithmetic("-", other, self)

    def __rmul__(self, other: float) -> Value:
        return self.code.arithmetic("*", other, self)

    def __rtruediv__(self, other: float) -> Value:
        return self.code.arithmetic("/", other, self)

    def __and__(self, other: Value) -> Value:
        return self.code.arithmetic("&", self, other)

    def __or__(self, other: Value) -> Value:
        return self.code.arithmetic("|", self, other)

    def __invert__(self) -> Value:
        value = self.code.function.body.value(f"xor i1 {self.name}, true")
        return Value(self.code, FLAG, value)

    def __lt__(self, other: Scalar) -> Value:
        return self.code.comparison("<", self, other)

    def __le__(self, other: Scalar) -> Value:
        return self.code.comparison("<=", self, other)

    def __gt__(self, other: Scalar) -> Value:
        return self.code.comparison(">", self, other)

    def __ge__(self, other: Scalar) -> Value:
        return self.code.comparison(">=", self, other)

    def equals(self, other: Scalar) -> Value:
        """Whether two numbers are equal."""
        return self.code.comparison("=", self, other)

    def differs(self, other: Scalar) -> Value:
        """Whether two numbers differ, or one is NaN."""
        return self.code.comparison("!=", self, other)


class Cell(Value):
    """A variable."""

    __slots__ = ()

    @property
    def name(self) -> Name:
        """The name of its present value."""
        return self.code.function.body.value(f"load {self.kind}, ptr {self._name}")

    @property
    def address(self) -> Name:
        """Its address."""
        return self._name

    def set(self, value: Scalar) -> None:
        """Change it."""
        text = self.code.operand(value, self.kind)
        self.code.function.body.write(f"store {self.kind} {text}, ptr {self._name}")


class ArrayCode:
    """An array in memory, from an address.

    Parameters
    ----------
    first : int
        The number of its first element.
    """

    def __init__(self, code: ScalarCode, kind: str, address: Name, first: int = 1) -> None:
        self.code, self.kind, self.base, self._first = code, kind, address, first

    def address(self, k: Value | int) -> Name:
        """The address of an element."""
        text = self.code.operand(k - self._first if self._first else k, INT)
        return self.code.function.body.value(
            f"getelementptr {self.kind}, ptr {self.base}, i64 {text}"
        )

    def __getitem__(self, k: Value | int) -> Value:
        text = f"load {self.kind}, ptr {self.address(k)}"
        return Value(self.code, self.kind, self.code.function.body.value(text))

    def __setitem__(self, k: Value | int, value: Scalar) -> None:
        text = f"store {self.kind} {self.code.operand(value, self.kind)}, ptr {self.address(k)}"
        self.code.function.body.write(text)


class ScalarCode:
    """Builds one function that returns an i64, and is added to the module by `close`.

    Parameters
    ----------
    arguments : str
        Types and names: ``"ptr state, double a"``.
    """

    def __init__(
        self, module: ModuleBuilder, name: str, arguments: str, linkage: str = "internal "
    ) -> None:
        pairs = [tuple(x.split()) for x in arguments.split(",")]
        self.module = module
        self.function = Function(
            module, name, [(t, n) for t, n in pairs], INT, "nounwind", linkage=linkage
        )
        self._kinds = {n: t for t, n in pairs}

    def close(self, status: Scalar = 0) -> None:
        """Return a status, and add the function to the module."""
        self.leave(status)
        self.function.body.write("unreachable")
        self.module.add(self.function)

    # ---- values --------------------------------------------------------------------------------

    def argument(self, name: str) -> Value:
        """An argument."""
        return Value(self, self._kinds[name], f"%{name}")

    def operand(self, x: Scalar, kind: str) -> Name:
        """A number as an operand."""
        if isinstance(x, Value):
            return x.name
        return (
            literal(x, F64)
            if kind == REAL
            else ("true" if x else "false")
            if kind == FLAG
            else str(x)
        )

    def cell(self, kind: str, start: Scalar) -> Cell:
        """A new variable."""
        made = Cell(self, kind, self.function.slot(kind))
        made.set(start)
        return made

    def array(self, kind: str, count: int) -> ArrayCode:
        """A new array on the stack, numbered from 0."""
        return ArrayCode(self, kind, self.function.slot(f"[{count} x {kind}]", 64), 0)

    def arithmetic(self, operator: str, x: Scalar, y: Scalar) -> Value:
        """The value of an arithmetic operator."""
        kind = x.kind if isinstance(x, Value) else y.kind if isinstance(y, Value) else REAL
        a, b = self.operand(x, kind), self.operand(y, kind)
        text = f"{_ARITHMETIC[kind][operator]} {kind} {a}, {b}"
        return Value(self, kind, self.function.body.value(text))

    def comparison(self, operator: str, x: Value, y: Scalar) -> Value:
        """The value of a comparison."""
        instruction = "fcmp" if x.kind == REAL else "icmp"
        a, b = x.name, self.operand(y, x.kind)
        text = f"{instruction} {_COMPARISONS[x.kind][operator]} {x.kind} {a}, {b}"
        return Value(self, FLAG, self.function.body.value(text))

    def where(self, condition: Value, x: Scalar, y: Scalar) -> Value:
        """x if the condition holds, else y."""
        kind = x.kind if isinstance(x, Value) else y.kind if isinstance(y, Value) else INT
        a, b = self.operand(x, kind), self.operand(y, kind)
        text = f"select i1 {condition.name}, {kind} {a}, {kind} {b}"
        return Value(self, kind, self.function.body.value(text))

    def larger(self, x: Scalar, y: Scalar) -> Value:
        """The maximum of doubles; the other one if one is NaN, as C's fmax."""
        callee = self.module.declare("llvm.maxnum.f64", REAL, [REAL, REAL])
        text = (
            f"call double {callee}(double {self.operand(x, REAL)}, double {self.operand(y, REAL)})"
        )
        return Value(self, REAL, self.function.body.value(text))

    def abs(self, x: Value) -> Value:
        """The absolute value of a double."""
        return self._intrinsic("fabs", x)

    def sqrt(self, x: Value) -> Value:
        """The square root."""
        return self._intrinsic("sqrt", x)

    def _intrinsic(self, name: str, x: Value) -> Value:
        callee = self.module.declare(f"llvm.{name}.f64", REAL, [REAL])
        return Value(self, REAL, self.function.body.value(f"call double {callee}(double {x.name})"))

    # ---- control -------------------------------------------------------------------------------

    def label(self, name: str) -> None:
        """A place to jump to."""
        self.function.body.block(f"at.{name}")

    def jump(self, label: str) -> None:
        """Continue elsewhere."""
        n = self.function.number()
        self.function.body.write(f"br label %at.{label}")
        self.function.body.label(f"unreached{n}")

    def jump_if(self, condition: Value, label: str) -> None:
        """Continue elsewhere if a condition holds."""
        n = self.function.number()
        self.function.body.write(f"br i1 {condition.name}, label %at.{label}, label %on{n}")
        self.function.body.label(f"on{n}")

    @contextmanager
    def when(self, condition: Value) -> Iterator[None]:
        """Code that runs if a condition holds."""
        n = self.function.number()
        self.function.body.write(f"br i1 {condition.name}, label %then{n}, label %done{n}")
        self.function.body.label(f"then{n}")
        yield
        self.function.body.block(f"done{n}")

    @contextmanager
    def during(self, condition: Callable[[], Value]) -> Iterator[None]:
        """Code that runs while a condition holds."""
        n = self.function.number()
        self.function.body.block(f"head{n}")
        test = condition().name
        self.function.body.write(f"br i1 {test}, label %body{n}, label %done{n}")
        self.function.body.label(f"body{n}")
        yield
        self.function.body.write(f"br label %head{n}")
        self.function.body.label(f"done{n}")

    @contextmanager
    def count(self, start: Scalar, stop: Scalar) -> Iterator[Cell]:
        """Count up from start to stop, which is excluded and may change."""
        k = self.cell(INT, start)
        with self.during(lambda: k < stop):
            yield k
            k.set(k + 1)

    def call(self, callee: Name, arguments: Arguments) -> Value:
        """Call a function that returns a status."""
        listed = ", ".join(
            f"{t} {x if isinstance(x, str) else self.operand(x, t)}" for t, x in arguments
        )
        return Value(self, INT, self.function.body.value(f"call i64 {callee}({listed})"))

    def call_or_leave(self, callee: Name, arguments: Arguments) -> None:
        """Call a function, and return its status if that is not zero."""
        status = self.call(callee, arguments)
        with self.when(status.differs(0)):
            self.leave(status)

    def leave(self, status: Scalar = 0) -> None:
        """Return."""
        n = self.function.number()
        self.function.body.write(f"ret i64 {self.operand(status, INT)}")
        self.function.body.label(f"unreached{n}")
