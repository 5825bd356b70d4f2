"""Substitution with the LU factors of a small matrix, for one right-hand side, written out.

serves         whether a system is small enough
substitute     the solution in place; whether it is valid

LAPACK's getrs takes 110 ns for 8 rows, of which 20 are arithmetic.  Each size is one function of
the module; the unknowns are in registers.  Reciprocals of the pivots do not depend on the
right-hand side, so that no division is on the critical path; where one is not finite or nearly so,
the caller uses LAPACK.
"""

from __future__ import annotations

from collections.abc import Iterable

from wengert._engine.core.symbolic.dim import Length

from ...ir.ir_builder import Name, Section
from ...ir.llvm_types import F64, Dtype
from ..kernel_call import KernelCall

_MOST_ROWS = 12
_LARGEST_RECIPROCAL = "0x7E37E43C8800759C"  # 1e300


def serves(n: Length, dtype: Dtype) -> bool:
    """Whether a system of n equations is solved here."""
    return isinstance(n, int) and 2 <= n <= _MOST_ROWS and dtype == F64


def substitute(
    call: KernelCall, s: Section, n: int, factors: Name, pivots: Name, x: Name, is_transposed: bool
) -> Name:
    """Replace x by the solution; the result is false, and x unchanged, for nearly zero pivots.

    factors, pivots : as getrf returns them, column-major.
    """
    name = f"substitute_{'t' if is_transposed else 'n'}{n}"
    if name not in call.module:
        call.module.declare("llvm.fabs.f64", "double", ["double"])
        call.module.declare("llvm.fmuladd.f64", "double", ["double"] * 3)
        call.module.parts[name] = _Definition(n, is_transposed).text(name)
    return s.value(f"call i1 @{name}(ptr {factors}, ptr {pivots}, ptr {x})")


class _Definition:
    """The text of the function of one size."""

    def __init__(self, n: int, is_transposed: bool) -> None:
        self.n, self.is_transposed = n, is_transposed
        self.lines: list[str] = []

    def text(self, name: str) -> str:
        """The definition."""
        reciprocals = self._checked()
        self._write("solved:", indent="")
        if not self.is_transposed:
            self._exchange(range(self.n))
        xs = [self._value(f"load double, ptr {self._at('x', 'double', k)}") for k in range(self.n)]
        if self.is_transposed:
            self._upper(xs, reciprocals, range(self.n))
            self._lower(xs, reversed(range(self.n)))
        else:
            self._lower(xs, range(self.n))
            self._upper(xs, reciprocals, reversed(range(self.n)))
        for k, x in enumerate(xs):
            self._write(f"store double {x}, ptr {self._at('x', 'double', k)}")
        if self.is_transposed:
            self._exchange(reversed(range(self.n)))
        self._write("ret i1 true")
        body = "\n".join(self.lines)
        head = f"define internal i1 @{name}(ptr noalias %a, ptr noalias %p, ptr noalias %x)"
        return f"{head} noinline nounwind {{\n{body}\nfailed:\n  ret i1 false\n}}"

    def _write(self, line: str, indent: str = "  ") -> None:
        self.lines.append(indent + line)

    def _value(self, instruction: str) -> Name:
        name = f"%v{len(self.lines)}"
        self._write(f"{name} = {instruction}")
        return name

    def _at(self, array: str, kind: str, k: int) -> Name:
        return self._value(f"getelementptr {kind}, ptr %{array}, i64 {k}")

    def _factor(self, i: int, j: int) -> Name:
        return self._value(f"load double, ptr {self._at('a', 'double', i + j * self.n)}")

    def _checked(self) -> list[Name]:
        """The reciprocals of the pivots; the function ends if one is large, infinite or NaN."""
        reciprocals, valid = [], "true"
        for k in range(self.n):
            inverse = self._value(f"fdiv double 1.0, {self._factor(k, k)}")
            size = self._value(f"call double @llvm.fabs.f64(double {inverse})")
            flag = self._value(f"fcmp olt double {size}, {_LARGEST_RECIPROCAL}")
            valid = self._value(f"and i1 {valid}, {flag}")
            reciprocals.append(inverse)
        self._write(f"br i1 {valid}, label %solved, label %failed")
        return reciprocals

    def _exchange(self, rows: Iterable[int]) -> None:
        for k in rows:
            row = self._value(f"load i32, ptr {self._at('p', 'i32', k)}")
            wide = self._value(f"zext i32 {row} to i64")
            last = self._value(f"sub i64 {wide}, 1")
            other = self._value(f"getelementptr double, ptr %x, i64 {last}")
            own = self._at("x", "double", k)
            one = self._value(f"load double, ptr {own}")
            two = self._value(f"load double, ptr {other}")
            self._write(f"store double {two}, ptr {own}")
            self._write(f"store double {one}, ptr {other}")

    def _subtract(self, xs: list[Name], k: int, i: int, factor: Name) -> None:
        negative = self._value(f"fneg double {factor}")
        arguments = f"double {negative}, double {xs[k]}, double {xs[i]}"
        xs[i] = self._value(f"call double @llvm.fmuladd.f64({arguments})")

    def _lower(self, xs: list[Name], rows: Iterable[int]) -> None:
        """Substitution with L, whose diagonal is 1, or its transpose."""
        for k in rows:
            for i in range(k) if self.is_transposed else range(k + 1, self.n):
                self._subtract(xs, k, i, self._factor(*self._place(i, k)))

    def _upper(self, xs: list[Name], reciprocals: list[Name], rows: Iterable[int]) -> None:
        """Substitution with U or its transpose."""
        for k in rows:
            xs[k] = self._value(f"fmul double {xs[k]}, {reciprocals[k]}")
            for i in range(k + 1, self.n) if self.is_transposed else range(k):
                self._subtract(xs, k, i, self._factor(*self._place(i, k)))

    def _place(self, i: int, k: int) -> tuple[int, int]:
        return (k, i) if self.is_transposed else (i, k)
