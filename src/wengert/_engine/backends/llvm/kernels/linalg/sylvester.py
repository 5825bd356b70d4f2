"""Sylvester's equation a @ x + x @ b = q, by LAPACK's Schur forms.

    sylvester    gees of a and of the adjoint of b, then trsyl (Bartels and Stewart, 1972)

The kernel fails for NaN and infinity, and if an eigenvalue of a is nearly equal to one of -b; the
interpreter then raises the error.
"""

from __future__ import annotations

from ...ir.llvm_types import part_of
from .. import fortran_calls
from ..kernel_call import KernelCall, kernel
from ..loop_helpers import copy, stack_slot
from .lapack import (
    batch_item,
    batches,
    column_major,
    fail_on_error,
    fail_unless_finite,
    is_for_lapack,
    leading_dimension,
    length,
    memory,
)
from .schur import Schur, divide, product


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
