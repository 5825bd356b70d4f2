"""Systems with a banded matrix: interpolate.banded, by LAPACK's gbsv.

The diagonals are rows, ab[upper + i - j, j] = A[i, j].  LAPACK's array is column-major, with extra
rows above for the fill-in of pivoting.  For a conjugate transpose, elements are moved to the
mirrored diagonals while they are copied.
"""

from __future__ import annotations

import numpy as np

from ...ir.simd_value import ComplexLane
from .. import fortran_calls
from ..kernel_call import KernelCall, kernel
from ..loop_helpers import address, clear, copy, offset, read, write
from .lapack import column_major, fail_on_error, leading_dimension, length, memory


@kernel(
    "interpolate.banded",
    strided=True,
    serves=lambda node: fortran_calls.is_of_blas(node.spec.dtype),
)
def banded(call: KernelCall) -> None:
    """The columns x with A x = b, or with the conjugate transpose of A."""
    (ab, b), (x,) = call.operands, call.results
    n, columns = x.shape
    dtype, s, language = x.dtype, call.section, call.language
    lower, upper = call.params["lower"], call.params["upper"]
    transposed = call.params.get("transposed", False)
    below, above = (upper, lower) if transposed else (lower, upper)
    band_rows = 2 * below + above + 1
    fortran_calls.check_lengths(call, call.number(n), call.number(columns))
    call.record_flops(n * (below + 1) * (below + above + columns) * 2)
    bands = memory(call, n * band_rows, dtype)
    rhs = column_major(memory(call, n * columns, dtype), n, columns, dtype)
    pivots, info = memory(call, n, np.dtype(np.int32)), fortran_calls.integer_slot(call)
    clear(call, s, bands, n * band_rows, dtype)
    copy(call, s, rhs, b)
    count = call.number(n)
    for r in range(lower + upper + 1):
        stop = s.minus(count, str(max(0, r - upper)))
        with s.loop(str(max(0, upper - r)), stop) as (t, j):
            i = t.plus(j, str(r - upper))
            value = language.cast(
                read(language, t, address(call, t, ab, [str(r), j]), ab.dtype), dtype
            )
            row, column = (j, i) if transposed else (i, j)
            if transposed and type(value) is ComplexLane:
                value = ComplexLane(language, value.real, -value.imag, dtype)
            band_row = t.plus(t.minus(row, column), str(below + above))
            distance = t.plus(t.times(column, str(band_rows)), band_row)
            write(t, offset(t, bands, distance, dtype), value)
    ldb = leading_dimension(call, s, n)
    arguments = [length(call, n), below, above, length(call, columns), bands, band_rows, pivots]
    fortran_calls.run(call, s, "gbsv", dtype, *arguments, rhs.pointer, ldb, info)
    fail_on_error(call, s, info)
    copy(call, s, x, rhs)
