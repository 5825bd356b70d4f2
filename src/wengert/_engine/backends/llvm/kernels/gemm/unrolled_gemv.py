"""Products of a small matrix and a vector, unrolled.

run    c = alpha * a @ b + beta * c, b and c with one column

Up to a size (choose.py), the overhead of a BLAS call is longer than the product.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wengert._engine.core.symbolic.dim import Length

from ...ir.ir_builder import Name, Section
from ...ir.llvm_types import Dtype
from ..kernel_call import KernelCall
from ..loop_helpers import offset, read, write
from .operands import Product


def run(call: KernelCall, s: Section, product: Product) -> None:
    """Write the product; b and c have one column."""
    a, b, c, dtype, alpha, beta, addend = product
    language = call.language
    m, k = a.rows.length, a.columns.length
    assert type(m) is int and type(k) is int

    def element(pointer: Name, *indices: tuple[int, Length]) -> Any:
        return read(language, s, _element_address(call, s, pointer, indices, dtype), dtype)

    factors = [element(b.pointer, (j, b.rows.stride)) for j in range(k)]
    results = []
    for i in range(m):
        total: Any = None
        for j, factor in enumerate(factors):
            element_of_a = element(a.pointer, (i, a.rows.stride), (j, a.columns.stride))
            total = (
                element_of_a * factor
                if total is None
                else language.fma(element_of_a, factor, total)
            )
        total = alpha.applied(call, s, total)
        if beta != 0:
            old = element(addend or c.pointer, (i, c.rows.stride))
            total = total + (old if beta == 1 else old * language.constant(beta, dtype))
        results.append(total)
    for i, value in enumerate(results):
        write(s, _element_address(call, s, c.pointer, [(i, c.rows.stride)], dtype), value)


def _element_address(
    call: KernelCall, s: Section, pointer: Name, indices: Sequence[Any], dtype: Dtype
) -> Name:
    distance = "0"
    for i, stride in indices:
        distance = s.plus(distance, s.times(str(i), call.number(stride)))
    return offset(s, pointer, distance, dtype)
