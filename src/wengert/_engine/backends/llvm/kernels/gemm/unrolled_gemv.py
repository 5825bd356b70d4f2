"""Vectors: a small matrix by a vector, unrolled: one multiplication after the other.

    serves      whether a matrix is small enough
    multiply    y = alpha * a @ x + beta * y

A call of BLAS takes as long as some fifty multiplications.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wengert._engine.backends.llvm.ir.ir_builder import Name, Section
from wengert._engine.backends.llvm.ir.llvm_types import Dtype
from wengert._engine.core.symbolic.dim import Length

from ..kernel_call import Call
from ..loop_helpers import offset, plus, read, times, write

if TYPE_CHECKING:
    from .gemm import Axis, Matrix

_MOST = 64  # elements of the matrix


def serves(a: Matrix, dtype: Dtype) -> bool:
    """Whether a matrix is real, of known size, and small."""
    m, k = a.rows.length, a.columns.length
    return dtype.kind == "f" and type(m) is int and type(k) is int and 0 < m * k <= _MOST


def multiply(
    call: Call,
    s: Section,
    a: Matrix,
    x_axis: Axis,
    x: Name,
    y_axis: Axis,
    y: Name,
    dtype: Dtype,
    alpha: Any,
    beta: Any,
    before: Name | None,
) -> None:
    """y = alpha * a @ x + beta * y; `before` is an address of what stands for y on the right."""
    language = call.language
    m, k = a.rows.length, a.columns.length
    assert type(m) is int and type(k) is int

    def element(pointer: Name, *places: tuple[int, Length]) -> Any:
        return read(language, s, _moved(call, s, pointer, places, dtype), dtype)

    factors = [element(x, (j, x_axis.stride)) for j in range(k)]
    results = []
    for i in range(m):
        total: Any = None
        for j, factor in enumerate(factors):
            one = element(a.pointer, (i, a.rows.stride), (j, a.columns.stride))
            total = one * factor if total is None else language.fma(one, factor, total)
        if alpha != 1:
            total = total * language.constant(alpha, dtype)
        if beta != 0:
            own = element(before or y, (i, y_axis.stride))
            total = total + (own if beta == 1 else own * language.constant(beta, dtype))
        results.append(total)
    for i, value in enumerate(results):
        write(s, _moved(call, s, y, [(i, y_axis.stride)], dtype), value)


def _moved(call: Call, s: Section, pointer: Name, places: Any, dtype: Dtype) -> Name:
    total = "0"
    for i, stride in places:
        total = plus(s, total, times(s, str(i), call.number(stride)))
    return offset(s, pointer, total, dtype)
