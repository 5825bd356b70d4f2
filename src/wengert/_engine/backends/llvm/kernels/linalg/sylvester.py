"""Sylvester's equation a @ x + x @ b = q, by LAPACK's Schur forms.

    sylvester    gees of a and of the adjoint of b, trsyl between them (Bartels and Stewart, 1972)

The kernel fails for NaN and infinity, and if eigenvalues of a and -b are equal or nearly so; the
interpreter raises the error.
"""

from __future__ import annotations

from ...ir.llvm_types import part_of
from .. import fortran_calls
from ..kernel_call import KernelCall, kernel
from ..loop_helpers import copy, held
from .lapack import (
    batches,
    by_columns,
    distance,
    fail_if_refused,
    fails_unless_finite,
    is_for_lapack,
    length,
    memory,
    one,
)
from .schur import Schur, divide, product


@kernel("linalg.sylvester", strided=True, serves=is_for_lapack)
def sylvester(call: KernelCall) -> None:
    """x with a @ x + x @ b = q."""
    a, b, q = call.operands
    (x,) = call.results
    m, n, dtype = x.shape[-2], x.shape[-1], x.dtype
    left, right = Schur(call, m, dtype), Schur(call, n, dtype)
    inner, other = (by_columns(memory(call, m * n, dtype), m, n, dtype) for _ in range(2))
    scale = held(call, part_of(dtype))
    turn = "C" if dtype.kind == "c" else "T"
    with batches(call, x, 2) as (s, at):
        left.write(s, one(call, s, a, at, 2))
        right.write(s, one(call, s, b, at, 2), adjoint=True)
        copy(call, s, inner, one(call, s, q, at, 2))
        fails_unless_finite(call, s, inner)
        product(call, s, (m, n, m), (left.vectors, turn), (inner, "N"), other)
        product(call, s, (m, n, n), (other, "N"), (right.vectors, "N"), inner)
        far, near = distance(call, s, m), distance(call, s, n)
        sizes = (length(call, m), length(call, n))
        forms = (left.form.pointer, far, right.form.pointer, near, inner.pointer, far)
        fortran_calls.run(call, s, "trsyl", dtype, "N", turn, 1, *sizes, *forms, scale, left.info)
        fail_if_refused(call, s, left.info)
        divide(call, s, inner, scale)
        product(call, s, (m, n, m), (left.vectors, "N"), (inner, "N"), other)
        product(call, s, (m, n, n), (other, "N"), (right.vectors, turn), inner)
        copy(call, s, one(call, s, x, at, 2), inner)
