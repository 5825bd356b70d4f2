"""Sylvester: the equation a @ x + x @ b = q, by LAPACK's Schur forms.

    sylvester    gees of a and of the adjoint of b, trsyl between them (Bartels and Stewart, 1972)

NaN and infinity, and eigenvalues of a and -b that are equal or nearly so, make the step fail; the
interpreter says so.
"""

from __future__ import annotations

from typing import Any

from ....core.dims import Length
from ..assembly import Name, Section
from ..dtypes import I32, Dtype, part_of
from ..lane import Pair
from . import fortran
from .call import Array, Call, kernel
from .lapack import (
    Workspace,
    batches,
    by_columns,
    distance,
    fail_if_refused,
    fails_unless_finite,
    length,
    may_be_empty,
    memory,
    one,
)
from .loops import copy, held, nest, place, read, write


class _Schur:
    """Schur forms of matrices, one after the other: `form`, and `vectors` with a = v form v.H."""

    def __init__(self, call: Call, n: Length, dtype: Dtype) -> None:
        self.call, self.n, self.dtype = call, n, dtype
        fortran.check_lengths(call, call.number(n))
        call.works(n * n * n * 25)
        self.form, self.vectors = (
            by_columns(memory(call, n * n, dtype), n, n, dtype) for _ in range(2)
        )
        self.info = fortran.whole_cell(call)
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
        start += [fortran.whole_cell(call), *values, self.vectors.pointer, near]
        space = Workspace(call, dtype)
        self._given = [*start, *space.asked("gees", *start, space.cell, -1, *after), *after]

    def write(self, s: Section, a: Array, adjoint: bool = False) -> None:
        """Factorize a matrix, or its adjoint."""
        if adjoint:
            a = a._replace(strides=a.strides[::-1])
        copy(self.call, s, self.form, a, conjugate=adjoint and self.dtype.kind == "c")
        fails_unless_finite(self.call, s, self.form)
        fortran.run(self.call, s, "gees", self.dtype, *self._given)
        fail_if_refused(self.call, s, self.info)


def _is_served(node: Any) -> bool:
    return not may_be_empty(node) and fortran.is_of_blas(node.spec.dtype)


@kernel("linalg.sylvester", strided=True, serves=_is_served)
def sylvester(call: Call) -> None:
    """x with a @ x + x @ b = q."""
    a, b, q = call.operands
    (x,) = call.results
    m, n, dtype = x.shape[-2], x.shape[-1], x.dtype
    left, right = _Schur(call, m, dtype), _Schur(call, n, dtype)
    inner, other = (by_columns(memory(call, m * n, dtype), m, n, dtype) for _ in range(2))
    scale = held(call, part_of(dtype))
    turn = "C" if dtype.kind == "c" else "T"
    with batches(call, x, 2) as (s, at):
        left.write(s, one(call, s, a, at, 2))
        right.write(s, one(call, s, b, at, 2), adjoint=True)
        copy(call, s, inner, one(call, s, q, at, 2))
        fails_unless_finite(call, s, inner)
        _product(call, s, (m, n, m), (left.vectors, turn), (inner, "N"), other)
        _product(call, s, (m, n, n), (other, "N"), (right.vectors, "N"), inner)
        far, near = distance(call, s, m), distance(call, s, n)
        sizes = (length(call, m), length(call, n))
        forms = (left.form.pointer, far, right.form.pointer, near, inner.pointer, far)
        fortran.run(call, s, "trsyl", dtype, "N", turn, 1, *sizes, *forms, scale, left.info)
        fail_if_refused(call, s, left.info)
        _divide(call, s, inner, scale)
        _product(call, s, (m, n, m), (left.vectors, "N"), (inner, "N"), other)
        _product(call, s, (m, n, n), (other, "N"), (right.vectors, turn), inner)
        copy(call, s, one(call, s, x, at, 2), inner)


def _product(call: Call, s: Section, sizes: Any, a: Any, b: Any, c: Array) -> None:
    """c = op(a) @ op(b), all by columns."""
    one_, zero = (fortran.number(call, v, c.dtype) for v in (1, 0))
    counts = [length(call, k) for k in sizes]
    given: list[Any] = [a[1], b[1], *counts, one_]
    for array in (a[0], b[0]):
        given += [array.pointer, distance(call, s, array.strides[1])]
    given += [zero, c.pointer, distance(call, s, c.strides[1])]
    fortran.run(call, s, "gemm", c.dtype, *given)


def _divide(call: Call, s: Section, x: Array, scale: Name) -> None:
    """Divide by the number with which trsyl kept the solution from overflowing."""
    language, real = call.language, part_of(x.dtype)
    with nest(s, [call.number(k) for k in x.shape[::-1]]) as (t, (j, i)):
        by = read(language, t, scale, real)
        pointer = place(call, t, x, [i, j])
        value = read(language, t, pointer, x.dtype)
        if type(value) is Pair:
            value = Pair(language, value.real / by, value.imag / by, x.dtype)
        else:
            value = value / by
        write(t, pointer, value)
