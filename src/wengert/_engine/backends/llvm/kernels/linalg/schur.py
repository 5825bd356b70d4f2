"""Schur forms by LAPACK's gees, and the derivative of their unitary factors.

    linalg.schur_form        gees
    linalg.schur_rotation    the equation for the rotation of the unitary factor, column by column:
                             gemm, trsyl
    Schur, product, divide   for other kernels

A block of the form has two rows if the element below its diagonal is not zero.  The kernel fails
for NaN and infinity, and for forms that have no derivative; the interpreter raises the error.

Sylvester's equation a @ x + x @ b = q, by LAPACK's Schur forms.

    sylvester    gees of a and of the adjoint of b, then trsyl (Bartels and Stewart, 1972)

The kernel fails for NaN and infinity, and if an eigenvalue of a is nearly equal to one of -b; the
interpreter then raises the error.
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
from ..fortran_calls import (
    Workspace,
    batch_item,
    batches,
    column_major,
    element,
    fail_on_error,
    fail_unless_finite,
    has_elements,
    is_for_lapack,
    leading_dimension,
    length,
    memory,
)
from ..kernel_call import ArrayPointer, KernelCall, kernel
from ..loop_helpers import address, clear, copy, nest, offset, read, stack_slot, write


def absolute(x: Any) -> Any:
    """The absolute value of a real number; the larger one of the two parts of a complex number."""
    language = x.language
    parts = [
        language.unary("absolute", p) for p in ([x.real, x.imag] if type(x) is ComplexLane else [x])
    ]
    return parts[0] if len(parts) == 1 else language.binary("maximum", *parts)


class Schur:
    """Schur forms of matrices, one after the other: `form`, and `vectors` with a = v form v.H."""

    def __init__(self, call: KernelCall, n: Length, dtype: Dtype) -> None:
        self.call, self.n, self.dtype = call, n, dtype
        fortran_calls.check_lengths(call, n)
        call.record_flops(n * n * n * 25)
        self.form, self.vectors = (
            column_major(memory(call, n * n, dtype), n, n, dtype) for _ in range(2)
        )
        self.info = fortran_calls.integer_slot(call)
        real = part_of(dtype)
        lda = leading_dimension(call, call.section, n)
        values = [memory(call, n, dtype)]
        last_arguments: list[Any] = []
        if dtype.kind == "c":
            last_arguments.append(memory(call, n, real))
        else:
            values.append(memory(call, n, dtype))
        last_arguments += [memory(call, n, I32), self.info]
        first_arguments = ["V", "N", "null", length(call, n), self.form.pointer, lda]
        first_arguments += [fortran_calls.integer_slot(call), *values, self.vectors.pointer, lda]
        workspace = Workspace(call, dtype)
        self._arguments = [
            *first_arguments,
            *workspace.query("gees", *first_arguments, workspace.cell, -1, *last_arguments),
            *last_arguments,
        ]

    def write(self, s: Section, a: ArrayPointer, adjoint: bool = False) -> None:
        """Factorize a matrix, or its adjoint."""
        if adjoint:
            a = a._replace(strides=a.strides[::-1])
        copy(self.call, s, self.form, a, conjugate=adjoint and self.dtype.kind == "c")
        fail_unless_finite(self.call, s, self.form)
        fortran_calls.run(self.call, s, "gees", self.dtype, *self._arguments)
        fail_on_error(self.call, s, self.info)


def product(call: KernelCall, s: Section, sizes: Any, a: Any, b: Any, c: ArrayPointer) -> None:
    """c = op(a) @ op(b), all column-major; a and b are pairs of an array and the letter of op."""
    one_, zero = (fortran_calls.number(call, v, c.dtype) for v in (1, 0))
    counts = [length(call, k) for k in sizes]
    arguments: list[Any] = [a[1], b[1], *counts, one_]
    for array in (a[0], b[0]):
        arguments += [array.pointer, leading_dimension(call, s, array.strides[1])]
    arguments += [zero, c.pointer, leading_dimension(call, s, c.strides[1])]
    fortran_calls.run(call, s, "gemm", c.dtype, *arguments)


def divide(call: KernelCall, s: Section, x: ArrayPointer, scale: Name) -> None:
    """Divide by the scale factor with which trsyl avoided overflow."""
    language, real = call.language, part_of(x.dtype)
    with nest(s, [call.number(k) for k in x.shape[::-1]]) as (t, (j, i)):
        factor = read(language, t, scale, real)
        pointer = address(call, t, x, [i, j])
        write(t, pointer, divided(read(language, t, pointer, x.dtype), factor))


def divided(x: Scalar, divisor: Scalar) -> Any:
    """A number divided by a real one."""
    return (
        ComplexLane(x.language, x.real / divisor, x.imag / divisor, x.dtype)
        if type(x) is ComplexLane
        else x / divisor
    )


# ---- the form ----------------------------------------------------------------------------------


def _has_form(node: Any) -> bool:
    return has_elements(node) and fortran_calls.is_of_blas(node.inputs[0].spec.dtype)


@kernel("linalg.schur_form", strided=True, serves=_has_form)
def schur_form(call: KernelCall) -> None:
    """t, upper triangular but for blocks of two rows, and unitary z."""
    (a,), (t, z) = call.operands, call.results
    schur = Schur(call, t.shape[-1], t.dtype)
    with batches(call, t, 2) as (s, index):
        schur.write(s, batch_item(call, s, a, index, 2))
        copy(call, s, batch_item(call, s, t, index, 2), schur.form)
        copy(call, s, batch_item(call, s, z, index, 2), schur.vectors)


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
    """Solve the equation for the rotation of the unitary factor, or its adjoint."""
    (t, c), (x,) = call.operands, call.results
    rotation = _Rotation(call, x.shape[-1], x.dtype)
    with batches(call, x, 2) as (s, index):
        rotation.prepare(s, batch_item(call, s, t, index, 2), batch_item(call, s, c, index, 2))
        (rotation.solve_adjoint if call.params["back"] else rotation.solve)(s)
        copy(call, s, batch_item(call, s, x, index, 2), rotation.x)


class _Rotation:
    """Equations for rotations, one after the other: form t, right-hand side c, solution x."""

    def __init__(self, call: KernelCall, n: Length, dtype: Dtype) -> None:
        self.call, self.n, self.dtype = call, n, dtype
        self.real = part_of(dtype)
        self.is_complex = dtype.kind == "c"
        fortran_calls.check_lengths(call, n)
        call.record_flops(n * n * n * 4)
        self.t, self.c, self.x = (
            column_major(memory(call, n * n, dtype), n, n, dtype) for _ in range(3)
        )
        # The absolute values of the imaginary parts of the eigenvalues.
        self.sizes = memory(call, n, self.real)
        self.scale, self.largest = stack_slot(call, self.real), stack_slot(call, self.real)
        self.info = fortran_calls.integer_slot(call)

    @contextmanager
    def _blocks(self, s: Section, backwards: bool = False) -> Iterator[tuple[Section, Any]]:
        """Loop over the blocks: first row, row after the last, and whether there are two rows."""
        n = self.call.number(self.n)
        last = s.minus(n, "1")
        with s.loop("0", n) as (u, k):
            i = u.minus(last, k) if backwards else k
            if self.is_complex:
                yield u, (i, u.plus(i, "1"), "false")
                return
            previous = u.larger(u.minus(i, "1"), "0")
            next_row = u.smaller(u.plus(i, "1"), last)
            is_second = self._linked(u, i, previous)
            with u.unless(is_second) as v:
                has_two = self._linked(v, next_row, i)
                count = v.value(f"zext i1 {has_two} to i64")
                yield v, (i, v.plus(v.plus(i, "1"), count), has_two)

    def _linked(self, s: Section, row: Name, column: Name) -> Name:
        """Whether two consecutive rows belong to one block."""
        x = element(self.call, s, self.t, row, column)
        linked = s.value(f"fcmp une {in_register(x.dtype)} {x.name}, 0.0")
        return s.value(f"and i1 {linked}, {s.value(f'icmp ne i64 {row}, {column}')}")

    def prepare(self, s: Section, t: ArrayPointer, c: ArrayPointer) -> None:
        """Copy a form and a right-hand side; fail for a form that has no derivative."""
        call, language, n = self.call, self.call.language, self.call.number(self.n)
        copy(call, s, self.t, t)
        copy(call, s, self.c, c)
        clear(call, s, self.x.pointer, self.n * self.n, self.dtype)
        clear(call, s, self.sizes, self.n, self.real)
        write(s, self.largest, language.constant(0, self.real))
        zero = language.constant(0, self.dtype)
        with s.loop("0", n) as (u, j):
            with u.loop(u.plus(j, "1" if self.is_complex else "2"), n) as (v, i):
                write(v, address(call, v, self.t, [i, j]), zero)
            with u.loop("0", n) as (v, i):
                size = absolute(element(call, v, self.t, i, j))
                largest = read(language, v, self.largest, self.real)
                write(v, self.largest, language.binary("maximum", largest, size))
        if not self.is_complex:
            with self._blocks(s) as (u, (i, _, has_two)), u.when(has_two) as v:
                self._check_pair(v, i)
        self._fail_if_equal(s)

    def _limit(self, s: Section) -> Any:
        """The threshold up to which elements of the form count as zero."""
        language = self.call.language
        count = s.value(f"sitofp i64 {self.call.number(self.n)} to {in_register(self.real)}")
        eps = language.constant(float(np.finfo(self.real).eps), self.real)
        size = read(language, s, self.largest, self.real)
        return Lane(language, s, count, self.real, 1) * eps * size

    def _pair(self, s: Section, i: Name) -> tuple[Any, Any]:
        """The off-diagonal elements of a block."""
        next_row = s.plus(i, "1")
        return tuple(element(self.call, s, self.t, *at) for at in ((i, next_row), (next_row, i)))

    def _check_pair(self, s: Section, i: Name) -> None:
        """Store the imaginary parts of a block; fail if it is a multiple of a rotation."""
        call, language = self.call, self.call.language
        q, r = self._pair(s, i)
        next_row = s.plus(i, "1")
        half = (element(call, s, self.t, i, i) - element(call, s, self.t, next_row, next_row)) * 0.5
        size = language.unary("sqrt", language.unary("absolute", half * half + q * r))
        for k in (i, next_row):
            write(s, offset(s, self.sizes, k, self.real), size)
        total = language.unary("absolute", q + r)
        call.fail_if(language.binary("less_equal", total, self._limit(s)).name, 1, s)

    def _fail_if_equal(self, s: Section) -> None:
        """Fail if two eigenvalues that do not belong to one block are equal."""
        call, language, n = self.call, self.call.language, self.call.number(self.n)
        with s.loop("0", n) as (u, j), u.loop(u.plus(j, "1"), n) as (v, i):
            x, y = (element(call, v, self.t, k, k) for k in (i, j))
            distance = absolute(x - y)
            is_same_block = "false"
            if not self.is_complex:
                cells = [offset(v, self.sizes, k, self.real) for k in (i, j)]
                imag_i, imag_j = (read(language, v, cell, self.real) for cell in cells)
                distance = language.binary(
                    "maximum", distance, language.unary("absolute", imag_i - imag_j)
                )
                is_next = v.value(f"icmp eq i64 {i}, {v.plus(j, '1')}")
                is_same_block = v.value(f"and i1 {is_next}, {self._linked(v, i, j)}")
            is_near = language.binary("less_equal", distance, self._limit(v)).name
            call.fail_if(
                v.value(f"and i1 {is_near}, {v.value(f'xor i1 {is_same_block}, true')}"), 1, v
            )

    def _submatrix(
        self, s: Section, array: ArrayPointer, row: Name, column: Name
    ) -> tuple[Name, Any]:
        return address(self.call, s, array, [row, column]), leading_dimension(self.call, s, self.n)

    def _add_product(
        self, s: Section, trans: str, sizes: Any, a: Any, b: Any, c: Any, sign: int = 1
    ) -> None:
        """c += sign op(a) @ op(b)."""
        factors = [fortran_calls.number(self.call, v, self.dtype) for v in (sign, 1)]
        counts = [("int", k) for k in sizes]
        fortran_calls.run(
            *(self.call, s, "gemm", self.dtype, *trans, *counts, factors[0], *a, *b),
            *(factors[1], *c),
        )

    def _solve_column(self, s: Section, trans: str, sizes: Any, i: Name, j: Name) -> None:
        """Solve for the elements below a block, in place of the right-hand side."""
        lower_right, block = self._submatrix(s, self.t, j, j), self._submatrix(s, self.t, i, i)
        target, counts = self._submatrix(s, self.x, j, i), [("int", k) for k in sizes]
        arguments = (
            trans,
            trans,
            -1,
            *counts,
            *lower_right,
            *block,
            *target,
            self.scale,
            self.info,
        )
        fortran_calls.run(self.call, s, "trsyl", self.dtype, *arguments)
        fail_on_error(self.call, s, self.info)
        with s.loop(i, j) as (u, column), u.loop(j, self.call.number(self.n)) as (v, row):
            pointer = address(self.call, v, self.x, [row, column])
            factor = read(self.call.language, v, self.scale, self.real)
            write(v, pointer, divided(read(self.call.language, v, pointer, self.dtype), factor))

    def _store_negated_rhs(
        self, s: Section, rows: tuple[Name, Name], columns: tuple[Name, Name]
    ) -> None:
        """Store the negated right-hand side in the solution."""
        call, language = self.call, self.call.language
        with s.loop(*columns) as (u, j), u.loop(*rows) as (v, i):
            x = language.unary("negative", element(call, v, self.c, i, j))
            write(v, address(call, v, self.x, [i, j]), x)

    def solve(self, s: Section) -> None:
        """Solve by columns of blocks from the left, then for the rotations within blocks."""
        call, n = self.call, self.call.number(self.n)
        with self._blocks(s) as (u, (i, j, _)):
            height, width = u.minus(n, j), u.minus(j, i)
            self._store_negated_rhs(u, (j, n), (i, j))
            target = self._submatrix(u, self.x, j, i)
            left, right = self._submatrix(u, self.x, j, "0"), self._submatrix(u, self.t, "0", i)
            self._add_product(u, "NN", (height, width, i), left, right, target)
            self._solve_column(u, "N", (height, width), i, j)
        if self.is_complex:
            return
        with self._blocks(s) as (u, (i, j, has_two)), u.when(has_two) as v:
            total = stack_slot(call, self.real)
            write(v, total, call.language.constant(0, self.real))
            for k, sign in ((i, 1.0), (v.plus(i, "1"), -1.0)):
                write(v, total, self._plus(v, total, element(call, v, self.c, k, k) * -sign))
                with v.loop("0", i) as (w, m):
                    x = element(call, w, self.x, k, m) * element(call, w, self.t, m, k) * sign
                    write(w, total, self._plus(w, total, x))
                with v.loop(j, n) as (w, m):
                    x = element(call, w, self.t, k, m) * element(call, w, self.x, m, k) * -sign
                    write(w, total, self._plus(w, total, x))
            q, r = self._pair(v, i)
            angle = read(call.language, v, total, self.real) / ((q + r) * 2.0)
            write(v, address(call, v, self.x, [v.plus(i, "1"), i]), angle)

    def _plus(self, s: Section, cell: Name, x: Any) -> Any:
        return read(self.call.language, s, cell, self.real) + x

    def solve_adjoint(self, s: Section) -> None:
        """Solve for the rotations within blocks, then by columns of blocks from the right."""
        call, n = self.call, self.call.number(self.n)
        if not self.is_complex:
            with self._blocks(s) as (u, (i, _, has_two)), u.when(has_two) as v:
                q, r = self._pair(v, i)
                next_row = v.plus(i, "1")
                angle = element(call, v, self.c, next_row, i) / ((q + r) * -2.0)
                write(v, address(call, v, self.x, [i, i]), angle)
                write(v, address(call, v, self.x, [next_row, next_row]), -angle)
        trans = "C" if self.is_complex else "T"
        with self._blocks(s, backwards=True) as (u, (i, j, _)):
            height, width = u.minus(n, j), u.minus(j, i)
            self._store_negated_rhs(u, (j, n), (i, j))
            target, right_of_block = (
                self._submatrix(u, self.x, j, i),
                self._submatrix(u, self.t, i, j),
            )
            lower_right, block = self._submatrix(u, self.x, j, j), self._submatrix(u, self.x, i, i)
            self._add_product(
                u, "N" + trans, (height, width, height), lower_right, right_of_block, target
            )
            self._add_product(
                u, trans + "N", (height, width, width), right_of_block, block, target, -1
            )
            self._solve_column(u, trans, (height, width), i, j)


@kernel("linalg.sylvester", strided=True, serves=is_for_lapack)
def sylvester(call: KernelCall) -> None:
    """x with a @ x + x @ b = q."""
    a, b, q = call.operands
    (x,) = call.results
    m, n, dtype = x.shape[-2], x.shape[-1], x.dtype
    left, right = Schur(call, m, dtype), Schur(call, n, dtype)
    rhs, other = (column_major(memory(call, m * n, dtype), m, n, dtype) for _ in range(2))
    scale = stack_slot(call, part_of(dtype))
    trans = "C" if dtype.kind == "c" else "T"
    with batches(call, x, 2) as (s, index):
        left.write(s, batch_item(call, s, a, index, 2))
        right.write(s, batch_item(call, s, b, index, 2), adjoint=True)
        copy(call, s, rhs, batch_item(call, s, q, index, 2))
        fail_unless_finite(call, s, rhs)
        product(call, s, (m, n, m), (left.vectors, trans), (rhs, "N"), other)
        product(call, s, (m, n, n), (other, "N"), (right.vectors, "N"), rhs)
        ld_m, ld_n = leading_dimension(call, s, m), leading_dimension(call, s, n)
        sizes = (length(call, m), length(call, n))
        forms = (left.form.pointer, ld_m, right.form.pointer, ld_n, rhs.pointer, ld_m)
        fortran_calls.run(call, s, "trsyl", dtype, "N", trans, 1, *sizes, *forms, scale, left.info)
        fail_on_error(call, s, left.info)
        divide(call, s, rhs, scale)
        product(call, s, (m, n, m), (left.vectors, "N"), (rhs, "N"), other)
        product(call, s, (m, n, n), (other, "N"), (right.vectors, trans), rhs)
        copy(call, s, batch_item(call, s, x, index, 2), rhs)
