"""Schur forms by LAPACK's gees, and the derivative of their unitary factors.

    linalg.schur_form        gees
    linalg.schur_rotation    an equation with the form, one column of blocks at a time: gemm, trsyl
    Schur, product, divide   for other kernels

A block of the form has two rows if the element below its diagonal is not zero.  The kernel fails
for NaN and infinity, and for forms that have no derivative; the interpreter raises the error.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from wengert._engine.core.symbolic.dim import Length
from wengert._engine.core.types import Scalar

from ...ir.ir_builder import Name, Section
from ...ir.llvm_types import I32, Dtype, in_register, part_of
from ...ir.simd_value import ComplexLane, Lane
from .. import fortran_calls
from ..kernel_call import ArrayPointer, KernelCall, kernel
from ..loop_helpers import clear, copy, held, nest, offset, place, read, write
from .lapack import (
    Workspace,
    batches,
    by_columns,
    distance,
    element,
    fail_if_refused,
    fails_unless_finite,
    has_elements,
    length,
    memory,
    one,
)


def absolute(x: Any) -> Any:
    """The absolute value of a real number; of a complex one, that of the larger part."""
    language = x.language
    parts = [
        language.unary("absolute", p) for p in ([x.real, x.imag] if type(x) is ComplexLane else [x])
    ]
    return parts[0] if len(parts) == 1 else language.binary("maximum", *parts)


class Schur:
    """Schur forms of matrices, one after the other: `form`, and `vectors` with a = v form v.H."""

    def __init__(self, call: KernelCall, n: Length, dtype: Dtype) -> None:
        self.call, self.n, self.dtype = call, n, dtype
        fortran_calls.check_lengths(call, call.number(n))
        call.works(n * n * n * 25)
        self.form, self.vectors = (
            by_columns(memory(call, n * n, dtype), n, n, dtype) for _ in range(2)
        )
        self.info = fortran_calls.whole_cell(call)
        real = part_of(dtype)
        near = distance(call, call.section, n)
        values = [memory(call, n, dtype)]
        after: list[Any] = []
        if dtype.kind == "c":
            after.append(memory(call, n, real))
        else:
            values.append(memory(call, n, dtype))
        after += [memory(call, n, I32), self.info]
        start = ["V", "N", "null", length(call, n), self.form.pointer, near]
        start += [fortran_calls.whole_cell(call), *values, self.vectors.pointer, near]
        space = Workspace(call, dtype)
        self._given = [*start, *space.asked("gees", *start, space.cell, -1, *after), *after]

    def write(self, s: Section, a: ArrayPointer, adjoint: bool = False) -> None:
        """Factorize a matrix, or its adjoint."""
        if adjoint:
            a = a._replace(strides=a.strides[::-1])
        copy(self.call, s, self.form, a, conjugate=adjoint and self.dtype.kind == "c")
        fails_unless_finite(self.call, s, self.form)
        fortran_calls.run(self.call, s, "gees", self.dtype, *self._given)
        fail_if_refused(self.call, s, self.info)


def product(call: KernelCall, s: Section, sizes: Any, a: Any, b: Any, c: ArrayPointer) -> None:
    """c = op(a) @ op(b), all by columns."""
    one_, zero = (fortran_calls.number(call, v, c.dtype) for v in (1, 0))
    counts = [length(call, k) for k in sizes]
    given: list[Any] = [a[1], b[1], *counts, one_]
    for array in (a[0], b[0]):
        given += [array.pointer, distance(call, s, array.strides[1])]
    given += [zero, c.pointer, distance(call, s, c.strides[1])]
    fortran_calls.run(call, s, "gemm", c.dtype, *given)


def divide(call: KernelCall, s: Section, x: ArrayPointer, scale: Name) -> None:
    """Divide by the scale factor with which trsyl avoided overflow."""
    language, real = call.language, part_of(x.dtype)
    with nest(s, [call.number(k) for k in x.shape[::-1]]) as (t, (j, i)):
        by = read(language, t, scale, real)
        pointer = place(call, t, x, [i, j])
        write(t, pointer, divided(read(language, t, pointer, x.dtype), by))


def divided(x: Scalar, by: Scalar) -> Any:
    """A number divided by a real one."""
    return (
        ComplexLane(x.language, x.real / by, x.imag / by, x.dtype)
        if type(x) is ComplexLane
        else x / by
    )


# ---- the form ----------------------------------------------------------------------------------


def _has_form(node: Any) -> bool:
    return has_elements(node) and fortran_calls.is_of_blas(node.inputs[0].spec.dtype)


@kernel("linalg.schur_form", strided=True, serves=_has_form)
def schur_form(call: KernelCall) -> None:
    """t, upper triangular but for blocks of two rows, and unitary z."""
    (a,), (t, z) = call.operands, call.results
    schur = Schur(call, t.shape[-1], t.dtype)
    with batches(call, t, 2) as (s, at):
        schur.write(s, one(call, s, a, at, 2))
        copy(call, s, one(call, s, t, at, 2), schur.form)
        copy(call, s, one(call, s, z, at, 2), schur.vectors)


# ---- the rotation ------------------------------------------------------------------------------


def _is_rotated(node: Any) -> bool:
    return has_elements(node) and all(
        [
            n.spec.dtype == node.spec.dtype and fortran_calls.is_of_blas(n.spec.dtype)
            for n in node.inputs
        ]
    )


@kernel("linalg.schur_rotation", strided=True, serves=_is_rotated)
def schur_rotation(call: KernelCall) -> None:
    """The equation for the rotation of the unitary factor, or its adjoint."""
    (t, c), (x,) = call.operands, call.results
    rotation = _Rotation(call, x.shape[-1], x.dtype)
    with batches(call, x, 2) as (s, at):
        rotation.prepare(s, one(call, s, t, at, 2), one(call, s, c, at, 2))
        (rotation.back if call.params["back"] else rotation.forth)(s)
        copy(call, s, one(call, s, x, at, 2), rotation.x)


class _Rotation:
    """Equations of rotation, one after the other: form t, right side c, solution x."""

    def __init__(self, call: KernelCall, n: Length, dtype: Dtype) -> None:
        self.call, self.n, self.dtype = call, n, dtype
        self.real = part_of(dtype)
        self.is_complex = dtype.kind == "c"
        fortran_calls.check_lengths(call, call.number(n))
        call.works(n * n * n * 4)
        self.t, self.c, self.x = (
            by_columns(memory(call, n * n, dtype), n, n, dtype) for _ in range(3)
        )
        self.sizes = memory(call, n, self.real)  # of the imaginary parts of eigenvalues
        self.scale, self.largest = held(call, self.real), held(call, self.real)
        self.info = fortran_calls.whole_cell(call)

    @contextmanager
    def _blocks(self, s: Section, backwards: bool = False) -> Iterator[tuple[Section, Any]]:
        """Loop over the blocks: first row, row after the last, and whether there are two."""
        n = self.call.number(self.n)
        last = s.minus(n, "1")
        with s.loop("0", n) as (u, k):
            i = u.minus(last, k) if backwards else k
            if self.is_complex:
                yield u, (i, u.plus(i, "1"), "false")
                return
            before = u.larger(u.minus(i, "1"), "0")
            behind = u.smaller(u.plus(i, "1"), last)
            second = self._linked(u, i, before)
            with u.unless(second) as v:
                two = self._linked(v, behind, i)
                count = v.value(f"zext i1 {two} to i64")
                yield v, (i, v.plus(v.plus(i, "1"), count), two)

    def _linked(self, s: Section, row: Name, column: Name) -> Name:
        """Whether two consecutive rows belong to one block."""
        x = element(self.call, s, self.t, row, column)
        linked = s.value(f"fcmp une {in_register(x.dtype)} {x.name}, 0.0")
        return s.value(f"and i1 {linked}, {s.value(f'icmp ne i64 {row}, {column}')}")

    def prepare(self, s: Section, t: ArrayPointer, c: ArrayPointer) -> None:
        """Copy a form and a right side, and fail for a form without derivative."""
        call, language, n = self.call, self.call.language, self.call.number(self.n)
        copy(call, s, self.t, t)
        copy(call, s, self.c, c)
        clear(call, s, self.x.pointer, self.n * self.n, self.dtype)
        clear(call, s, self.sizes, self.n, self.real)
        write(s, self.largest, language.constant(0, self.real))
        zero = language.constant(0, self.dtype)
        with s.loop("0", n) as (u, j):
            with u.loop(u.plus(j, "1" if self.is_complex else "2"), n) as (v, i):
                write(v, place(call, v, self.t, [i, j]), zero)
            with u.loop("0", n) as (v, i):
                size = absolute(element(call, v, self.t, i, j))
                most = read(language, v, self.largest, self.real)
                write(v, self.largest, language.binary("maximum", most, size))
        if not self.is_complex:
            with self._blocks(s) as (u, (i, _, two)), u.when(two) as v:
                self._note_pair(v, i)
        self._refuse_equal(s)

    def _limit(self, s: Section) -> Any:
        """The threshold for elements of the form to count as zero."""
        language = self.call.language
        count = s.value(f"sitofp i64 {self.call.number(self.n)} to {in_register(self.real)}")
        eps = language.constant(float(np.finfo(self.real).eps), self.real)
        size = read(language, s, self.largest, self.real)
        return Lane(language, s, count, self.real, 1) * eps * size

    def _pair(self, s: Section, i: Name) -> tuple[Any, Any]:
        """The off-diagonal elements of a block."""
        behind = s.plus(i, "1")
        return tuple(element(self.call, s, self.t, *at) for at in ((i, behind), (behind, i)))

    def _note_pair(self, s: Section, i: Name) -> None:
        """Store the imaginary parts of a block, and fail if it is a rotation."""
        call, language = self.call, self.call.language
        q, r = self._pair(s, i)
        behind = s.plus(i, "1")
        half = (element(call, s, self.t, i, i) - element(call, s, self.t, behind, behind)) * 0.5
        size = language.unary("sqrt", language.unary("absolute", half * half + q * r))
        for k in (i, behind):
            write(s, offset(s, self.sizes, k, self.real), size)
        total = language.unary("absolute", q + r)
        call.fail_if(language.binary("less_equal", total, self._limit(s)).name, 1, s)

    def _refuse_equal(self, s: Section) -> None:
        """Refuse a form that has equal eigenvalues, but for those of one block."""
        call, language, n = self.call, self.call.language, self.call.number(self.n)
        with s.loop("0", n) as (u, j), u.loop(u.plus(j, "1"), n) as (v, i):
            x, y = (element(call, v, self.t, k, k) for k in (i, j))
            gap = absolute(x - y)
            inside = "false"
            if not self.is_complex:
                cells = [offset(v, self.sizes, k, self.real) for k in (i, j)]
                high, low = (read(language, v, cell, self.real) for cell in cells)
                gap = language.binary("maximum", gap, language.unary("absolute", high - low))
                beside = v.value(f"icmp eq i64 {i}, {v.plus(j, '1')}")
                inside = v.value(f"and i1 {beside}, {self._linked(v, i, j)}")
            near = language.binary("less_equal", gap, self._limit(v)).name
            call.fail_if(v.value(f"and i1 {near}, {v.value(f'xor i1 {inside}, true')}"), 1, v)

    def _from(self, s: Section, array: ArrayPointer, row: Name, column: Name) -> tuple[Name, Any]:
        """The part of a matrix that starts at an element, for BLAS."""
        return place(self.call, s, array, [row, column]), distance(self.call, s, self.n)

    def _add_product(
        self, s: Section, turns: str, sizes: Any, a: Any, b: Any, c: Any, sign: int = 1
    ) -> None:
        """c += sign op(a) @ op(b)."""
        factors = [fortran_calls.number(self.call, v, self.dtype) for v in (sign, 1)]
        counts = [("int", k) for k in sizes]
        fortran_calls.run(
            *(self.call, s, "gemm", self.dtype, *turns, *counts, factors[0], *a, *b),
            *(factors[1], *c),
        )

    def _solve_column(self, s: Section, turn: str, sizes: Any, i: Name, j: Name) -> None:
        """Solve for the elements below a block, which are the right side now."""
        rest, own = self._from(s, self.t, j, j), self._from(s, self.t, i, i)
        target, counts = self._from(s, self.x, j, i), [("int", k) for k in sizes]
        given = (turn, turn, -1, *counts, *rest, *own, *target, self.scale, self.info)
        fortran_calls.run(self.call, s, "trsyl", self.dtype, *given)
        fail_if_refused(self.call, s, self.info)
        with s.loop(i, j) as (u, column), u.loop(j, self.call.number(self.n)) as (v, row):
            pointer = place(self.call, v, self.x, [row, column])
            by = read(self.call.language, v, self.scale, self.real)
            write(v, pointer, divided(read(self.call.language, v, pointer, self.dtype), by))

    def _negated(self, s: Section, rows: tuple[Name, Name], columns: tuple[Name, Name]) -> None:
        """Put the right side into the solution, negated."""
        call, language = self.call, self.call.language
        with s.loop(*columns) as (u, j), u.loop(*rows) as (v, i):
            x = language.unary("negative", element(call, v, self.c, i, j))
            write(v, place(call, v, self.x, [i, j]), x)

    def forth(self, s: Section) -> None:
        """Column after column from the left, then the rotations within blocks."""
        call, n = self.call, self.call.number(self.n)
        with self._blocks(s) as (u, (i, j, _)):
            rest, width = u.minus(n, j), u.minus(j, i)
            self._negated(u, (j, n), (i, j))
            target = self._from(u, self.x, j, i)
            left, right = self._from(u, self.x, j, "0"), self._from(u, self.t, "0", i)
            self._add_product(u, "NN", (rest, width, i), left, right, target)
            self._solve_column(u, "N", (rest, width), i, j)
        if self.is_complex:
            return
        with self._blocks(s) as (u, (i, j, two)), u.when(two) as v:
            total = held(call, self.real)
            write(v, total, call.language.constant(0, self.real))
            for k, sign in ((i, 1.0), (v.plus(i, "1"), -1.0)):
                write(v, total, self._sum(v, total, element(call, v, self.c, k, k) * -sign))
                with v.loop("0", i) as (w, m):
                    x = element(call, w, self.x, k, m) * element(call, w, self.t, m, k) * sign
                    write(w, total, self._sum(w, total, x))
                with v.loop(j, n) as (w, m):
                    x = element(call, w, self.t, k, m) * element(call, w, self.x, m, k) * -sign
                    write(w, total, self._sum(w, total, x))
            q, r = self._pair(v, i)
            angle = read(call.language, v, total, self.real) / ((q + r) * 2.0)
            write(v, place(call, v, self.x, [v.plus(i, "1"), i]), angle)

    def _sum(self, s: Section, cell: Name, x: Any) -> Any:
        return read(self.call.language, s, cell, self.real) + x

    def back(self, s: Section) -> None:
        """The rotations within blocks, then column after column from the right."""
        call, n = self.call, self.call.number(self.n)
        if not self.is_complex:
            with self._blocks(s) as (u, (i, _, two)), u.when(two) as v:
                q, r = self._pair(v, i)
                behind = v.plus(i, "1")
                angle = element(call, v, self.c, behind, i) / ((q + r) * -2.0)
                write(v, place(call, v, self.x, [i, i]), angle)
                write(v, place(call, v, self.x, [behind, behind]), -angle)
        turn = "C" if self.is_complex else "T"
        with self._blocks(s, backwards=True) as (u, (i, j, _)):
            rest, width = u.minus(n, j), u.minus(j, i)
            self._negated(u, (j, n), (i, j))
            target, beside = self._from(u, self.x, j, i), self._from(u, self.t, i, j)
            inner, own = self._from(u, self.x, j, j), self._from(u, self.x, i, i)
            self._add_product(u, "N" + turn, (rest, width, rest), inner, beside, target)
            self._add_product(u, turn + "N", (rest, width, width), beside, own, target, -1)
            self._solve_column(u, turn, (rest, width), i, j)
