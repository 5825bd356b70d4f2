"""The scalar language: the functions available in the body of an elementwise operation.

A body is a function `body(s, x, ...)` of one element; `s` has the functions ("leaves") below, and
Python operators + - * / are the arithmetic.  Each target runs the body with its own `s`:

    Arrays    NumPy arrays: the reference semantics
    Formula   text, for the documentation and for `explain`
    ...       LLVM (backends/llvm/ir/scalar_language.py), ONNX (onnx/exporter/scalar_language.py)

`max` and `min` propagate NaN, as in NumPy (fmax in C drops it).  The functions of scipy.special are
called by name, `s.special("jv", order, x)`; scipy.special is imported at the first use.

Functions of random numbers, whose bits are the same in all targets, also use `bits` (of a float64
or float32, as an integer of its size), `number` (its inverse), the operators & | >> of integers and
`rows(table, row)`, the numbers of a row of a table (ops/random/number_rows.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy  # scipy.special is loaded when it is first used

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Operand, Scalar

UNARY_LEAVES = tuple(
    """abs sign floor ceil trunc rint sqrt cbrt exp exp2 expm1 log log2 log10 log1p
    sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh
    isnan isinf isfinite signbit logical_not conj""".split()
)
BINARY_LEAVES = tuple(
    """power arctan2 fmod copysign nextafter ldexp heaviside less less_equal equal not_equal
    logical_and logical_or logical_xor max min""".split()
)


_INTEGERS = {"d": np.int64, "f": np.int32}
_NUMBERS = {8: np.float64, 4: np.float32}
_GATHERED = 4096  # rows of a table read at once, which takes memory


class Arrays:
    """The scalar language on NumPy arrays."""

    max = staticmethod(np.maximum)
    min = staticmethod(np.minimum)

    @staticmethod
    def where(condition: Operand, x: Operand, y: Operand) -> Any:
        """np.where, but with a scalar result where a ufunc would return one."""
        out = np.where(condition, x, y)
        return out if out.ndim else out[()]

    @staticmethod
    def rectangular(x: Array, y: Array) -> Any:
        """The complex number of a real and an imaginary part: x + 1j * y, exact at infinities."""
        dtype = np.result_type(x, y, np.complex64)
        out = np.empty(np.broadcast_shapes(np.shape(x), np.shape(y)), dtype)
        out.real, out.imag = x, y
        return out[()]

    @staticmethod
    def special(name: str, *operands: Any) -> Any:
        """A function of scipy.special."""
        return getattr(scipy.special, name)(*operands)

    @staticmethod
    def bits(x: Any) -> Any:
        """The bits of numbers, as signed integers."""
        return x.view(_INTEGERS[x.dtype.char])

    @staticmethod
    def number(x: Any) -> Any:
        """The numbers with these bits."""
        return x.view(_NUMBERS[x.dtype.itemsize])

    @staticmethod
    def rows(table: Any, row: Any) -> Any:
        """The numbers of rows: an iterable with an array for each column of the table."""
        columns = table.columns
        if row.size <= _GATHERED:
            return columns.take(row, axis=1)
        return (column.take(row) for column in columns)

    def __getattr__(self, leaf: str) -> Any:
        raise AttributeError(f"the scalar language has no leaf {leaf!r}")


for _leaf in set(UNARY_LEAVES + BINARY_LEAVES) - {"max", "min"}:
    setattr(Arrays, _leaf, staticmethod(getattr(np, _leaf)))
ARRAYS = Arrays()


class Term:
    """A text with the precedence of its outermost operator."""

    def __init__(self, text: str, precedence: int = 3) -> None:
        self.text = text
        self.precedence = precedence

    def __str__(self) -> str:
        return self.text

    def __getitem__(self, k: int) -> Term:
        """One of several results."""
        return Term(f"{self}[{k}]")

    __iter__ = None  # the number of results is not known


def _term(x: Scalar) -> Term:
    return x if isinstance(x, Term) else Term(f"{x:g}" if isinstance(x, float) else str(x))


def _infix(symbol: str, precedence: int) -> tuple[Any, Any]:
    def join(a: Term, b: Term) -> Term:
        left = f"({a})" if a.precedence < precedence else str(a)
        right = f"({b})" if b.precedence <= precedence and b.precedence < 3 else str(b)
        return Term(f"{left} {symbol} {right}", precedence)

    return (
        lambda self, other: join(self, _term(other)),
        lambda self, other: join(_term(other), self),
    )


for _name, _symbol, _precedence in [
    ("add", "+", 1),
    ("sub", "-", 1),
    ("mul", "*", 2),
    ("truediv", "/", 2),
]:
    _plain, _reflected = _infix(_symbol, _precedence)
    setattr(Term, f"__{_name}__", _plain)
    setattr(Term, f"__r{_name}__", _reflected)
setattr(Term, "__neg__", lambda self: Term(f"-{self}" if self.precedence == 3 else f"-({self})", 2))  # noqa: B010


class Formula:
    """The scalar language as text."""

    @staticmethod
    def special(name: str, *operands: Any) -> Term:
        """The name and the operands."""
        term: Term = getattr(FORMULA, name)(*operands)
        return term

    def __getattr__(self, leaf: str) -> Any:
        def call(*args: Any) -> Term:
            return Term(f"{leaf}({', '.join(str(_term(a)) for a in args)})")

        return call


FORMULA = Formula()
