"""Linear systems with triangular matrices.

    solve_triangular    trsm, on the right-hand side in C order; small systems: small_matrices.py

The kernel fails for a zero on the diagonal; the interpreter then raises the error.
"""

from __future__ import annotations

from wengert._engine.ops.linalg.factorizations import TRANS

from .. import fortran_calls
from ..kernel_call import ArrayPointer, KernelCall, kernel
from ..loop_helpers import copy, is_c_contiguous
from . import small_matrices as small
from .lapack import batch_item, batches, leading_dimension, length, memory
from .packed_factors import fail_at_zero


@kernel("solve_triangular", strided=True, in_lanes=True)
def solve_triangular(call: KernelCall) -> None:
    """x with op(a) @ x = b, a triangular.

    BLAS sees x.T and a.T, so x.T @ op(a).T = b.T is solved, with the triangle on the right.
    """
    if small.is_small(call):
        small.solve_triangular(call)
        return
    a, b = call.operands
    (x,) = call.results
    b, x = small.as_columns(b, x)
    n, columns, dtype = x.shape[-2], x.shape[-1], x.dtype
    fortran_calls.check_lengths(call, call.number(n), call.number(columns))
    call.record_flops(n * n * columns)
    lower, unit = bool(call.params.get("lower", False)), bool(call.params.get("unit_diagonal"))
    trans = TRANS[call.params.get("trans", 0)]
    in_place = a.dtype == dtype and is_c_contiguous(
        a._replace(shape=a.shape[-2:], strides=a.strides[-2:])
    )
    matrix_memory = "" if in_place else memory(call, n * n, dtype)
    with batches(call, x, 2) as (s, index):
        matrix, target = batch_item(call, s, a, index, 2), batch_item(call, s, x, index, 2)
        if not in_place:
            ordered = ArrayPointer(matrix_memory, (n, n), (n, 1), dtype)
            copy(call, s, ordered, matrix)
            matrix = ordered
        if not unit:
            fail_at_zero(call, s, matrix)
        copy(call, s, target, batch_item(call, s, b, index, 2))
        fortran_calls.run(
            call,
            s,
            "trsm",
            dtype,
            "R",
            "U" if lower else "L",
            "NTC"[trans],
            "U" if unit else "N",
            length(call, columns),
            length(call, n),
            fortran_calls.number(call, 1, dtype),
            matrix.pointer,
            leading_dimension(call, s, n),
            target.pointer,
            leading_dimension(call, s, columns),
        )
