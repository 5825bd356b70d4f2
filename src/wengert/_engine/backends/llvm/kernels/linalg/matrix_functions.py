"""Square roots, logarithms and signs of matrices.

    linalg.square_root    of the triangle of a complex Schur form (A. Bjorck and S. Hammarling,
                          "A Schur method for the square root of a matrix", Linear Algebra Appl.
                          52/53 (1983), 127-140)
    linalg.logarithm      inverse scaling and squaring, with Gauss' rule for the integral of
                          (1 + t x)**-1 x (A. H. Al-Mohy and N. J. Higham, "Improved inverse scaling
                          and squaring algorithms for the matrix logarithm", SIAM J. Sci. Comput. 34
                          (2012), C153-C169)
    linalg.matrix_sign    Newton's iteration, scaled (N. J. Higham, Functions of Matrices, 2008,
                          section 5.5)

The kernel fails if an eigenvalue is zero, or on the negative real axis up to rounding, or if the
sign does not exist: the interpreter then calls SciPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wengert._engine.core.symbolic.dim import Length

from ...ir.ir_builder import Name, Section
from ...ir.llvm_types import C128, F64
from ...ir.simd_value import ComplexLane
from .. import fortran_calls
from ..kernel_call import ArrayPointer, KernelCall, kernel
from ..loop_helpers import copy, held, nest, place, read, write
from .lapack import (
    batches,
    by_columns,
    distance,
    element,
    fails_unless_finite,
    into_range,
    is_for_lapack,
    length,
    memory,
    one,
    working,
)
from .lu_solve import Inverse, one_norm
from .schur import Schur, absolute, product

_NEAR_ONE = 0.25  # the norm up to which Gauss' rule with these nodes has all digits
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(7)
_ROOTS = 60  # maximum; more roots leave no digits of a double
_STEPS = 60
_CLOSE = 1e-8  # a change after which one more step has all digits


def _is_small(limit: int) -> Callable[[Any], bool]:
    """Matrices of up to `limit` rows: SciPy is faster for larger ones (benchmarks/callbacks.py)."""

    def serves(node: Any) -> bool:
        n = node.spec.shape[-1]
        return type(n) is int and n <= limit and is_for_lapack(node)

    return serves


class _Triangle:
    """Complex Schur forms, and functions of their triangles."""

    def __init__(self, call: KernelCall, n: Length) -> None:
        self.call, self.n = call, n
        self.schur = Schur(call, n, C128)
        call.works(n * n * n * 8)
        self.form = self.schur.form
        self.other, self.root = (
            by_columns(memory(call, n * n, C128), n, n, C128) for _ in range(2)
        )
        self.sum, self.size = held(call, C128), held(call, F64)

    def read(self, s: Section, a: ArrayPointer) -> None:
        """The form of a matrix; fail where an eigenvalue is zero or on the negative axis."""
        call, language = self.call, self.call.language
        self.schur.write(s, a)
        write(s, self.size, one_norm(call, s, self.form))
        with s.loop("0", call.number(self.n)) as (t, i):
            x = element(call, t, self.form, i, i)
            limit = read(language, t, self.size, F64) * (1e3 * float(np.finfo(float).eps))
            beside = language.binary("less_equal", language.unary("absolute", x.imag), limit)
            left = language.binary("less_equal", x.real, limit)
            call.fail_if(language.binary("logical_and", beside, left).name, 1, t)

    def take_root(self, s: Section, of: ArrayPointer, to: ArrayPointer) -> None:
        """The square root of an upper triangle; the elements below are unchanged."""
        call, language, n = self.call, self.call.language, self.call.number(self.n)
        with s.loop("0", n) as (t, j):
            own = language.unary("sqrt", element(call, t, of, j, j))
            write(t, place(call, t, to, [j, j]), own)
            with t.loop("0", j) as (u, k):
                i = u.minus(u.minus(j, "1"), k)
                write(u, self.sum, element(call, u, of, i, j))
                with u.loop(u.plus(i, "1"), j) as (v, m):
                    term = element(call, v, to, i, m) * element(call, v, to, m, j)
                    old = read(language, v, self.sum, C128)
                    write(v, self.sum, old - term)
                below = element(call, u, to, i, i) + element(call, u, to, j, j)
                total = read(language, u, self.sum, C128)
                write(u, place(call, u, to, [i, j]), total / below)

    def clear_below(self, s: Section, x: ArrayPointer) -> None:
        """Zeros below the diagonal."""
        zero = self.call.language.constant(0, C128)
        n = self.call.number(self.n)
        with s.loop("0", n) as (t, j), t.loop(t.plus(j, "1"), n) as (u, i):
            write(u, place(self.call, u, x, [i, j]), zero)

    def give(self, s: Section, x: ArrayPointer, to: ArrayPointer) -> None:
        """The matrix with a triangle; `to` gets its real part if it is real."""
        call, n, z = self.call, self.n, self.schur.vectors
        product(call, s, (n, n, n), (z, "N"), (x, "N"), self.form)
        product(call, s, (n, n, n), (self.form, "N"), (z, "C"), x)
        fails_unless_finite(call, s, x)
        if to.dtype.kind == "c":
            copy(call, s, to, x)
            return
        with nest(s, [call.number(n)] * 2) as (t, (j, i)):
            real = element(call, t, x, i, j).real
            write(t, place(call, t, to, [i, j]), call.language.cast(real, to.dtype))


@kernel("linalg.square_root", strided=True, serves=_is_small(12))
def square_root(call: KernelCall) -> None:
    """The principal square root."""
    (a,), (x,) = call.operands, call.results
    triangle = _Triangle(call, x.shape[-1])
    with batches(call, x, 2) as (s, at):
        triangle.read(s, one(call, s, a, at, 2))
        triangle.clear_below(s, triangle.root)
        triangle.take_root(s, triangle.form, triangle.root)
        triangle.give(s, triangle.root, one(call, s, x, at, 2))


@kernel("linalg.logarithm", strided=True, serves=_is_small(40))
def logarithm(call: KernelCall) -> None:
    """The principal logarithm."""
    (a,), (x,) = call.operands, call.results
    n = x.shape[-1]
    triangle = _Triangle(call, n)
    logs = ArrayPointer(memory(call, n, C128), (n,), (1,), C128)
    count = call.function.slot("i64")
    with batches(call, x, 2) as (s, at):
        triangle.read(s, one(call, s, a, at, 2))
        with s.loop("0", call.number(n)) as (t, i):
            own = call.language.unary("log", element(call, t, triangle.form, i, i))
            write(t, place(call, t, logs, [i]), own)
        _bring_near_one(triangle, s, count)
        power = s.value(f"load i64, ptr {count}")
        small = s.value(f"shl i64 {s.value(f'sub i64 1023, {power}')}, 52")
        large = s.value(f"shl i64 {s.value(f'add i64 1023, {power}')}, 52")
        scales = held(call, F64), held(call, F64)
        for bits, cell in zip((small, large), scales, strict=True):
            s.write(f"store i64 {bits}, ptr {cell}")
        _set_diagonal(triangle, s, logs, scales[0], near_one=True)
        _integral(triangle, s)
        _multiply(triangle, s, scales[1])
        _set_diagonal(triangle, s, logs, "", near_one=False)
        triangle.give(s, triangle.root, one(call, s, x, at, 2))


def _bring_near_one(triangle: _Triangle, s: Section, count: Name) -> None:
    """Take roots of `form` until it is near one; in `other` is that less one, but its diagonal."""
    call, language, n = triangle.call, triangle.call.language, triangle.call.number(triangle.n)
    s.write(f"store i64 0, ptr {count}")
    triangle.clear_below(s, triangle.other)
    done = call.function.slot("i1")
    s.write(f"store i1 false, ptr {done}")
    with s.loop("0", str(_ROOTS)) as (t, _), t.when(_still(t, done)) as u:
        copy(call, u, triangle.root, triangle.form)
        with u.loop("0", n) as (v, i):
            cell = place(call, v, triangle.root, [i, i])
            less = read(language, v, cell, C128) - 1.0
            write(v, cell, less)
        near = language.binary(
            "less_equal", one_norm(call, u, triangle.root), language.constant(_NEAR_ONE, F64)
        )
        u.write(f"store i1 {near.name}, ptr {done}")
        with u.unless(near.name) as v:
            triangle.take_root(v, triangle.form, triangle.other)
            copy(call, v, triangle.form, triangle.other)
            more = v.value(f"add i64 {v.value(f'load i64, ptr {count}')}, 1")
            v.write(f"store i64 {more}, ptr {count}")
    call.fail_if(_still(s, done), 1, s)
    copy(call, s, triangle.other, triangle.root)


def _still(s: Section, done: Name) -> Name:
    return s.value(f"xor i1 {s.value(f'load i1, ptr {done}')}, true")


def _set_diagonal(
    triangle: _Triangle, s: Section, logs: ArrayPointer, scale: Name, near_one: bool
) -> None:
    """Logarithms on the diagonal of `root`; or exp(scale log) - 1 on that of `other`."""
    call, language = triangle.call, triangle.call.language
    with s.loop("0", call.number(triangle.n)) as (t, i):
        x = read(language, t, place(call, t, logs, [i]), C128)
        if near_one:
            by = read(language, t, scale, F64)
            x = language.unary("expm1", ComplexLane(language, x.real * by, x.imag * by, C128))
        to = triangle.other if near_one else triangle.root
        write(t, place(call, t, to, [i, i]), x)


def _integral(triangle: _Triangle, s: Section) -> None:
    """The sum of inv(1 + t x) x over the nodes: of `other`, in `root`."""
    call, language, n = triangle.call, triangle.call.language, triangle.n
    x, total = triangle.other, triangle.root
    size = [call.number(n)] * 2
    with nest(s, size) as (t, (j, i)):
        write(t, place(call, t, total, [i, j]), language.constant(0, C128))
    left, right = triangle.form, by_columns(memory(call, n * n, C128), n, n, C128)
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        with nest(s, size) as (t, (j, i)):
            value = element(call, t, x, i, j)
            by = 0.5 + 0.5 * float(node)
            write(t, place(call, t, left, [i, j]), value * by)
            write(t, place(call, t, right, [i, j]), value * (0.5 * float(weight)))
        with s.loop("0", call.number(n)) as (t, i):
            cell = place(call, t, left, [i, i])
            write(t, cell, read(language, t, cell, C128) + 1.0)
        near = distance(call, s, n)
        sizes = length(call, n), length(call, n)
        given = (
            *sizes,
            fortran_calls.number(call, 1, C128),
            left.pointer,
            near,
            right.pointer,
            near,
        )
        fortran_calls.run(call, s, "trsm", C128, "L", "U", "N", "N", *given)
        with nest(s, size) as (t, (j, i)):
            cell = place(call, t, total, [i, j])
            more = read(language, t, cell, C128) + element(call, t, right, i, j)
            write(t, cell, more)


def _multiply(triangle: _Triangle, s: Section, scale: Name) -> None:
    call, language = triangle.call, triangle.call.language
    with nest(s, [call.number(triangle.n)] * 2) as (t, (j, i)):
        cell, by = place(call, t, triangle.root, [i, j]), read(language, t, scale, F64)
        x = read(language, t, cell, C128)
        write(t, cell, ComplexLane(language, x.real * by, x.imag * by, C128))


# ---- signs -------------------------------------------------------------------------------------


@kernel("linalg.matrix_sign", strided=True, serves=is_for_lapack)
def matrix_sign(call: KernelCall) -> None:
    """1 for eigenvalues in the right half plane, -1 in the left one."""
    (a,), (y,) = call.operands, call.results
    language, n, dtype = call.language, y.shape[-1], working(y.dtype)
    fortran_calls.check_lengths(call, call.number(n))
    call.works(n * n * n * 20)
    x, inverse = by_columns(memory(call, n * n, dtype), n, n, dtype), Inverse(call, n, dtype)
    left, change = call.function.slot("i64"), held(call, F64)
    with batches(call, y, 2) as (s, at):
        copy(call, s, x, one(call, s, a, at, 2))
        fails_unless_finite(call, s, x)
        into_range(call, s, x)
        s.write(f"store i64 2, ptr {left}")  # 2: continue; 1: a last step; 0: done
        with s.loop("0", str(_STEPS)) as (t, _):
            state = t.value(f"load i64, ptr {left}")
            with t.when(t.value(f"icmp ne i64 {state}, 0")) as u:
                inverse.write(u, x)
                sizes = [one_norm(call, u, m) for m in (x, inverse.right)]
                free = language.unary("sqrt", sizes[1] / sizes[0])
                last = u.value(f"icmp eq i64 {state}, 1")
                scale = u.value(f"select i1 {last}, double 1.0, double {free.name}")
                _newton(call, u, x, inverse.right, scale, change)
                big = one_norm(call, u, x)
                moved = language.binary("greater", read(language, u, change, F64), big * _CLOSE)
                after = u.value(f"select i1 {last}, i64 0, i64 1")
                after = u.value(f"select i1 {moved.name}, i64 2, i64 {after}")
                u.write(f"store i64 {after}, ptr {left}")
        state = s.value(f"load i64, ptr {left}")
        call.fail_if(s.value(f"icmp ne i64 {state}, 0"), 1, s)
        fails_unless_finite(call, s, x)
        copy(call, s, one(call, s, y, at, 2), x)


def _newton(
    call: KernelCall, s: Section, x: ArrayPointer, inverse: ArrayPointer, scale: Name, change: Name
) -> None:
    """x = (scale x + inverse / scale) / 2; returns the largest change of an element."""
    language = call.language
    cell = held(call, F64)
    s.write(f"store double {scale}, ptr {cell}")
    write(s, change, language.constant(0, F64))
    with nest(s, [call.number(k) for k in x.shape[::-1]]) as (t, (j, i)):
        by = read(language, t, cell, F64)
        old, other = element(call, t, x, i, j), element(call, t, inverse, i, j)
        new = old * (by * 0.5) + other / (by * 2.0)
        write(t, place(call, t, x, [i, j]), new)
        size = absolute(new - old)
        most = language.binary("maximum", read(language, t, change, F64), size)
        write(t, change, most)
