"""Elimination: systems, inverses, determinants and triangles of five to eight rows, in loops.

The formulas of linalg/unrolled_small_matrices.py for matrices whose unrolled text would be long:
elements are in panels (simd_matrix.py), and a loop over them serves as many matrices as a block
has.

    eliminate, substitute    Gaussian elimination with partial pivoting, and the way back
    solve, inv, det, slogdet, det_derivative, solve_triangular, cholesky

A pivot that is zero, or far below the terms that it is a sum of, makes the step fail: LAPACK is
asked.  The sizes of these terms are those of L and U, which stand beside the pivot.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wengert._engine.backends.llvm.ir.ir_builder import Section
from wengert._engine.backends.llvm.ir.llvm_types import F64, I64
from wengert._engine.ops.linalg.factorizations import TRANS

from ..batched_matrices import Block, blocks
from ..kernel_call import Array, Call
from ..loop_helpers import moved
from ..simd_matrix import Panel, any_of, each, load, save, whole

_LEAST = float(np.finfo(np.float64).tiny)  # smaller numbers have no reciprocal
_ROUNDING = 32.0 * float(np.finfo(np.float64).eps)  # what a few operations lose


class Eliminated:
    """Gaussian elimination of the matrices of a block.

    Parameters
    ----------
    block : Block
    a : Panel
        The matrices; afterwards U, and L below the diagonal.
    b : Panel, optional
        Right-hand sides.

    Attributes
    ----------
    doubt, odd : Panel
        Whether a pivot is zero or nothing but rounding, and the number of exchanges.
    """

    def __init__(self, block: Block, a: Panel, b: Panel | None = None) -> None:
        self.block, self.a, self.b, self.n = block, a, b, a.rows
        self.doubt, self.odd = Panel(block, 1, dtype=I64), Panel(block, 1, dtype=I64)
        self._size = Panel(block, 1)
        s = block.section
        self.doubt.put(s, 0)
        self.odd.put(s, 0)
        for t, k in each(s, 0, self.n):
            after = t.value(f"add nsw i64 {k}, 1")
            for u, i in each(t, after, self.n):
                self._exchange(u, k, i)
            self._look(t, k)
            inverse = 1.0 / a.get(t, k, k)
            for u, i in each(t, after, self.n):
                self._subtract(u, k, i, after, moved(u, inverse))

    def _rows(self) -> list[tuple[Panel, int]]:
        return [(p, j) for p in (self.a, self.b) if p is not None for j in range(p.columns)]

    def _exchange(self, s: Section, k: Any, i: Any) -> None:
        """Exchange two rows in the lanes in which the lower one is larger."""
        language, a = self.block.call.language, self.a
        sizes = [language.unary("absolute", a.get(s, row, k)) for row in (i, k)]
        swap = language.compare("greater", *sizes)
        self.odd.put(s, self.odd.get(s) + language.cast(swap, I64))
        for panel, j in self._rows():
            x, y = panel.get(s, k, j), panel.get(s, i, j)
            panel.put(s, language.select(swap, y, x), k, j)
            panel.put(s, language.select(swap, x, y), i, j)

    def _look(self, s: Section, k: Any) -> None:
        """Note whether a pivot is to be doubted."""
        language, a = self.block.call.language, self.a
        self._size.put(s, _LEAST / _ROUNDING)
        for t, m in each(s, 0, k):
            left, above = (language.unary("absolute", a.get(t, *at)) for at in ((k, m), (m, k)))
            self._size.put(t, language.fma(left, above, self._size.get(t)))
        size = language.unary("absolute", a.get(s, k, k))
        flag = language.compare("less_equal", size, self._size.get(s) * _ROUNDING)
        self.doubt.put_where(s, flag, 1)

    def _subtract(self, s: Section, k: Any, i: Any, after: Any, inverse: Any) -> None:
        language, a, b = self.block.call.language, self.a, self.b
        factor = a.get(s, i, k) * inverse
        a.put(s, factor, i, k)
        for t, j in each(s, after, self.n):
            a.put(t, language.fma(-moved(t, factor), a.get(t, k, j), a.get(t, i, j)), i, j)
        for j in range(0 if b is None else b.columns):
            assert b is not None
            b.put(s, language.fma(-factor, b.get(s, k, j), b.get(s, i, j)), i, j)

    def fail_in_doubt(self, flag: Any = None) -> None:
        """Leave the step if there is doubt in a lane, and this flag."""
        s = self.block.section
        language = self.block.call.language
        doubt = language.compare("equal", self.doubt.get(s), language.constant(1, I64))
        if flag is not None:
            doubt = language.binary("logical_and", doubt, flag)
        self.block.call.fail_if(any_of(self.block.call, s, doubt), 1, s)

    def substitute(self) -> Panel:
        """The solutions, in the place of the right-hand sides."""
        assert self.b is not None
        back(self.block, self.a, self.b, lower=False, unit=False)
        return self.b

    def diagonal(self) -> tuple[list[Any], Any]:
        """The pivots, and whether the number of exchanges is odd."""
        s, language = self.block.section, self.block.call.language
        one = language.constant(1, I64)
        odd = language.compare("equal", self.odd.get(s) & one, one)
        return [self.a.get(s, k, k) for k in range(self.n)], odd


def back(block: Block, a: Panel, b: Panel, lower: bool, unit: bool) -> None:
    """Solve with a triangle, row by row; the solution takes the place of the right-hand side."""
    language, n = block.call.language, a.rows
    for t, i in each(block.section, 0, n, down=not lower):
        first, last = ("0", i) if lower else (t.value(f"add nsw i64 {i}, 1"), n)
        for u, j in each(t, first, last):
            factor = -a.get(u, i, j)
            for k in range(b.columns):
                b.put(u, language.fma(factor, b.get(u, j, k), b.get(u, i, k)), i, k)
        if not unit:
            pivot = a.get(t, i, i)
            for k in range(b.columns):
                b.put(t, b.get(t, i, k) / pivot, i, k)


def loaded(block: Block, k: int, n: int, columns: int, dtype: Any = F64) -> Panel:
    """A panel with the matrices of array k of a block."""
    panel = Panel(block, n, columns, dtype)
    load(block, k, panel, block.section)
    return panel


def _identity(block: Block, n: int) -> Panel:
    panel, s = Panel(block, n, n), block.section
    for t, i in each(s, 0, n):
        for j in range(n):
            panel.put(t, 0.0, i, j)
        panel.put(t, 1.0, i, i)
    return panel


# ---- operations --------------------------------------------------------------------------------


def solve(call: Call, a: Array, b: Array, x: Array) -> None:
    """x with a @ x = b, all of them matrices."""
    n: Any = x.shape[-2]
    columns: Any = x.shape[-1]

    def write(block: Block) -> None:
        found = Eliminated(block, loaded(block, 0, n, n), loaded(block, 1, n, columns))
        found.fail_in_doubt()
        save(block, 2, found.substitute(), block.section)

    blocks(call, [(a, 2), (b, 2), (x, 2)], F64, write)


def inv(call: Call) -> None:
    """The inverse."""
    (a,), (x,) = call.operands, call.results
    n: Any = x.shape[-1]

    def write(block: Block) -> None:
        found = Eliminated(block, loaded(block, 0, n, n), _identity(block, n))
        found.fail_in_doubt()
        save(block, 1, found.substitute(), block.section)

    blocks(call, [(a, 2), (x, 2)], F64, write)


Determinant = Callable[[Block, list[Any], Any], Any]  # of pivots, and whether exchanges are odd


def det(call: Call, determinant: Determinant) -> None:
    """The determinant."""
    (a,), (x,) = call.operands, call.results
    n: Any = a.shape[-1]

    def write(block: Block) -> None:
        found = Eliminated(block, loaded(block, 0, n, n))
        block.write(1, determinant(block, *found.diagonal()))

    blocks(call, [(a, 2), (x, 0)], F64, write)


def slogdet(call: Call, logarithm: Determinant) -> None:
    """Sign and logarithm of the determinant."""
    (a,), (sign, log) = call.operands, call.results
    n: Any = a.shape[-1]

    def write(block: Block) -> None:
        language = call.language
        found = Eliminated(block, loaded(block, 0, n, n))
        direction, size = logarithm(block, *found.diagonal())
        found.fail_in_doubt(language.compare("not_equal", direction, language.constant(0.0, F64)))
        block.write(1, direction)
        block.write(2, size)

    blocks(call, [(a, 2), (sign, 0), (log, 0)], F64, write)


def det_derivative(call: Call, determinant: Determinant, limit: float) -> None:
    """The cofactors of regular matrices: det(a) inv(a).T."""
    (a,), (x,) = call.operands, call.results
    n: Any = x.shape[-1]

    def write(block: Block) -> None:
        language, s = call.language, block.section
        given = loaded(block, 0, n, n)
        before = _one_norm(block, given)
        found = Eliminated(block, given, _identity(block, n))
        found.fail_in_doubt()
        inverse = found.substitute()
        sound = language.compare(
            "less", before * _one_norm(block, inverse), language.constant(limit, F64)
        )
        call.fail_if(any_of(call, s, language.unary("logical_not", sound)), 1, s)
        scale = determinant(block, *found.diagonal())
        for t, i in each(s, 0, n):
            for u, j in each(t, 0, n):
                block.set_element(1, u, moved(u, scale) * inverse.get(u, j, i), (i, j))

    blocks(call, [(a, 2), (x, 2)], F64, write)


def _one_norm(block: Block, a: Panel) -> Any:
    """The largest sum of sizes in a column; NaN if there is one."""
    s, language = block.section, block.call.language
    most, total = Panel(block, 1), Panel(block, 1)
    most.put(s, 0.0)
    for t, j in each(s, 0, a.columns):
        total.put(t, 0.0)
        for u, i in each(t, 0, a.rows):
            total.put(u, total.get(u) + language.unary("absolute", a.get(u, i, j)))
        most.put(t, language.binary("maximum", most.get(t), total.get(t)))
    return most.get(s)


def solve_triangular(call: Call, a: Array, b: Array, x: Array) -> None:
    """x with op(a) @ x = b, a triangular; in the precision of the result."""
    n: Any = x.shape[-2]
    columns: Any = x.shape[-1]
    lower, unit = bool(call.params.get("lower", False)), bool(call.params.get("unit_diagonal"))
    turned = TRANS[call.params.get("trans", 0)] > 0

    def write(block: Block) -> None:
        language, s = call.language, block.section
        left = Panel(block, n, n, x.dtype)
        zero = language.constant(0, x.dtype)
        for t, i in each(s, 0, n):
            first, last = ("0", t.value(f"add nsw i64 {i}, 1")) if lower else (i, n)
            for u, j in each(t, first, last):
                value = language.cast(block.element(0, u, (i, j)), x.dtype)
                left.put(u, value, *((j, i) if turned else (i, j)))
            if not unit:
                flat = language.compare("equal", left.get(t, i, i), zero)
                call.fail_if(any_of(call, t, flat), 1, t)
        right = loaded(block, 1, n, columns, x.dtype)
        back(block, left, right, lower != turned, unit)
        save(block, 2, right, s)

    blocks(call, [(a, 2), (b, 2), (x, 2)], x.dtype, write)


def cholesky(call: Call) -> None:
    """The triangular factor of positive definite matrices, from one triangle of each."""
    (a,), (x,) = call.operands, call.results
    n: Any = x.shape[-1]
    upper = bool(call.params.get("upper", False))

    def write(block: Block) -> None:
        language, s = call.language, block.section
        low = Panel(block, n, n)
        zero = language.constant(0.0, F64)
        for t, i in each(s, 0, n):
            for u, j in each(t, 0, n):
                low.put(u, zero, i, j)
            for u, j in each(t, 0, t.value(f"add nsw i64 {i}, 1")):
                low.put(u, block.element(0, u, (j, i) if upper else (i, j)), i, j)
        for t, j in each(s, 0, n):
            for u, k in each(t, 0, j):
                factor = -low.get(u, j, k)
                for v, i in each(u, j, n):
                    low.put(v, language.fma(moved(v, factor), low.get(v, i, k), low.get(v, i, j)),
                            i, j)  # fmt: skip
            square = low.get(t, j, j)
            call.fail_if(any_of(call, t, language.compare("less_equal", square, zero)), 1, t)
            root = language.unary("sqrt", square)
            inverse = 1.0 / root
            for u, i in each(t, j, n):
                own = language.compare("equal", whole(block, u, i), whole(block, u, j))
                value = low.get(u, i, j) * moved(u, inverse)
                low.put(u, language.select(own, moved(u, root), value), i, j)
        for t, i in each(s, 0, n):
            for u, j in each(t, 0, n):
                block.set_element(1, u, low.get(u, i, j), (j, i) if upper else (i, j))

    blocks(call, [(a, 2), (x, 2)], F64, write)
