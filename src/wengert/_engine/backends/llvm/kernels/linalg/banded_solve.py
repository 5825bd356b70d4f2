"""Systems with a banded matrix: interpolate.banded, by LAPACK's gbsv.

The diagonals are rows, ab[upper + i - j, j] = A[i, j]; LAPACK stores those of a column together,
with rows above for the fill-in of pivoting.  For a conjugate transpose the diagonals are exchanged
while they are copied.
"""

from __future__ import annotations

import numpy as np

from ...ir.simd_value import ComplexLane
from .. import fortran_calls
from ..kernel_call import KernelCall, kernel
from ..loop_helpers import clear, copy, offset, place, read, write
from .lapack import by_columns, distance, fail_if_refused, length, memory


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
    high = 2 * below + above + 1
    fortran_calls.check_lengths(call, call.number(n), call.number(columns))
    call.works(n * (below + 1) * (below + above + columns) * 2)
    bands = memory(call, n * high, dtype)
    right = by_columns(memory(call, n * columns, dtype), n, columns, dtype)
    pivots, info = memory(call, n, np.dtype(np.int32)), fortran_calls.whole_cell(call)
    clear(call, s, bands, n * high, dtype)
    copy(call, s, right, b)
    count = call.number(n)
    for r in range(lower + upper + 1):
        stop = s.minus(count, str(max(0, r - upper)))
        with s.loop(str(max(0, upper - r)), stop) as (t, j):
            i = t.plus(j, str(r - upper))
            value = language.cast(
                read(language, t, place(call, t, ab, [str(r), j]), ab.dtype), dtype
            )
            row, column = (j, i) if transposed else (i, j)
            if transposed and type(value) is ComplexLane:
                value = ComplexLane(language, value.real, -value.imag, dtype)
            down = t.plus(t.minus(row, column), str(below + above))
            at = t.plus(t.times(column, str(high)), down)
            write(t, offset(t, bands, at, dtype), value)
    near = distance(call, s, n)
    given = [length(call, n), below, above, length(call, columns), bands, high, pivots]
    fortran_calls.run(call, s, "gbsv", dtype, *given, right.pointer, near, info)
    fail_if_refused(call, s, info)
    copy(call, s, x, right)
