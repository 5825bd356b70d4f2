"""Linear systems whose matrix has a known structure, by LAPACK's routines for it.

    linalg.banded_solve             gbsv
    linalg.definite_banded_solve    pbsv
    linalg.structured_solve         positive definite: potrf, potrs; pocon estimates the condition

The kernel fails for NaN, infinity and matrices that are singular or nearly so; the interpreter then
raises or warns as SciPy does.  Other structures are host callbacks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.ir_builder import Section
from ...ir.llvm_types import F64, I32, part_of
from .. import fortran_calls
from ..kernel_call import ArrayPointer, KernelCall, kernel
from ..loop_helpers import clear, copy, held, offset, place, read, write
from .lapack import (
    batches,
    by_columns,
    distance,
    element,
    fail_if_refused,
    fails_unless_finite,
    is_for_lapack,
    length,
    memory,
    one,
)
from .lu_solve import one_norm


@kernel("linalg.banded_solve", strided=True, serves=is_for_lapack)
def banded_solve(call: KernelCall) -> None:
    """x with a @ x = b, a in banded form."""
    ab, b = call.operands
    (x,) = call.results
    below, above = int(call.params["below"]), int(call.params["above"])
    n, columns, dtype = x.shape[-2], x.shape[-1], x.dtype
    high = 2 * below + above + 1
    fortran_calls.check_lengths(call, call.number(n), call.number(columns))
    call.works(n * (high * high + columns * high))
    # gbsv needs rows above the band for the fill-in of elimination
    matrix = by_columns(memory(call, n * high, dtype), high, n, dtype)
    right = by_columns(memory(call, n * columns, dtype), n, columns, dtype)
    pivots, info = memory(call, n, I32), fortran_calls.whole_cell(call)
    with batches(call, x, 2) as (s, at):
        clear(call, s, matrix.pointer, n * high, dtype)
        band = matrix._replace(
            pointer=offset(s, matrix.pointer, str(below), dtype), shape=(below + above + 1, n)
        )
        copy(call, s, band, one(call, s, ab, at, 2))
        copy(call, s, right, one(call, s, b, at, 2))
        fails_unless_finite(call, s, matrix)
        fails_unless_finite(call, s, right)
        sizes = (length(call, n), below, above, length(call, columns))
        near = distance(call, s, n)
        given = (*sizes, matrix.pointer, high, pivots, right.pointer, near, info)
        fortran_calls.run(call, s, "gbsv", dtype, *given)
        fail_if_refused(call, s, info)
        copy(call, s, one(call, s, x, at, 2), right)


@kernel("linalg.definite_banded_solve", strided=True, serves=is_for_lapack)
def definite_banded_solve(call: KernelCall) -> None:
    """x with a @ x = b, for a positive definite a given by one half in banded form."""
    ab, b = call.operands
    (x,) = call.results
    high, n, columns, dtype = ab.shape[-2], x.shape[-2], x.shape[-1], x.dtype
    fortran_calls.check_lengths(call, *map(call.number, (high, n, columns)))
    call.works(n * (high * high + columns * high))
    matrix = by_columns(memory(call, n * high, dtype), high, n, dtype)
    right = by_columns(memory(call, n * columns, dtype), n, columns, dtype)
    info, which = fortran_calls.whole_cell(call), "L" if call.params["lower"] else "U"
    with batches(call, x, 2) as (s, at):
        copy(call, s, matrix, one(call, s, ab, at, 2))
        copy(call, s, right, one(call, s, b, at, 2))
        fails_unless_finite(call, s, matrix)
        fails_unless_finite(call, s, right)
        width = ("int", s.plus(call.number(high), "-1"))
        sizes = (length(call, n), width, length(call, columns))
        given = (matrix.pointer, distance(call, s, high), right.pointer, distance(call, s, n))
        fortran_calls.run(call, s, "pbsv", dtype, which, *sizes, *given, info)
        fail_if_refused(call, s, info)
        copy(call, s, one(call, s, x, at, 2), right)


@kernel(
    "linalg.structured_solve",
    strided=True,
    serves=lambda node: is_for_lapack(node) and node.params["structure"] == "positive definite",
)
def structured_solve(call: KernelCall) -> None:
    """x with a @ x = b, for a positive definite a given by one triangle."""
    a, b = call.operands
    (x,) = call.results
    n, columns, dtype = x.shape[-2], x.shape[-1], x.dtype
    lower = bool(call.params["lower"])
    fortran_calls.check_lengths(call, call.number(n), call.number(columns))
    call.works(n * n * (n + columns * 2))
    matrix = by_columns(memory(call, n * n, dtype), n, n, dtype)
    right = by_columns(memory(call, n * columns, dtype), n, columns, dtype)
    info, which = fortran_calls.whole_cell(call), "L" if lower else "U"
    condition = _Condition(call, n, matrix)
    with batches(call, x, 2) as (s, at):
        copy(call, s, matrix, one(call, s, a, at, 2))
        copy(call, s, right, one(call, s, b, at, 2))
        fails_unless_finite(call, s, matrix)
        fails_unless_finite(call, s, right)
        condition.prepare(s, lower)
        near = distance(call, s, n)
        factor = (matrix.pointer, near)
        fortran_calls.run(call, s, "potrf", dtype, which, length(call, n), *factor, info)
        fail_if_refused(call, s, info)
        condition.fail_if_poor(s, which)
        sizes = (length(call, n), length(call, columns))
        fortran_calls.run(
            call, s, "potrs", dtype, which, *sizes, *factor, right.pointer, near, info
        )
        copy(call, s, one(call, s, x, at, 2), right)


class _Condition:
    """The reciprocal condition number of a positive definite matrix: SciPy warns if it is small."""

    def __init__(self, call: KernelCall, n: Any, matrix: ArrayPointer) -> None:
        self.call, self.n, self.matrix = call, n, matrix
        self.real = part_of(matrix.dtype)
        self.norm, self.found = (held(call, self.real) for _ in range(2))
        self.info = fortran_calls.whole_cell(call)
        complex_ = matrix.dtype.kind == "c"
        self.work = memory(call, n * (2 if complex_ else 3), matrix.dtype)
        self.more = memory(call, n, self.real if complex_ else I32)

    def prepare(self, s: Section, lower: bool) -> None:
        """Mirror the given triangle, and store the norm."""
        call, matrix, language = self.call, self.matrix, self.call.language
        with s.loop("0", call.number(self.n)) as (t, j), t.loop("0", j) as (u, i):
            places = [[j, i], [i, j]] if lower else [[i, j], [j, i]]
            x = element(call, u, matrix, *places[0])
            value = language.unary("conjugate", x) if matrix.dtype.kind == "c" else x
            write(u, place(call, u, matrix, places[1]), value)
        write(s, self.norm, one_norm(call, s, matrix))

    def fail_if_poor(self, s: Section, which: str) -> None:
        """Fail where a solution has no digit."""
        call, language = self.call, self.call.language
        near = distance(call, s, self.n)
        given = (which, length(call, self.n), self.matrix.pointer, near, self.norm, self.found)
        fortran_calls.run(
            call, s, "pocon", self.matrix.dtype, *given, self.work, self.more, self.info
        )
        limit = 2.0 * float(np.finfo(self.real).eps)
        found = language.cast(read(language, s, self.found, self.real), F64)
        poor = language.compare("less_equal", found, language.constant(limit, F64))
        call.fail_if(poor.name, 1, s)
