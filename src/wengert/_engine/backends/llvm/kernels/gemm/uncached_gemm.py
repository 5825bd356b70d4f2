"""Products of few steps whose result is too large for all caches.

    run    c = alpha * a @ b, on one thread; threads share out blocks of rows (write_product.py)

The result is written past the caches: other stores read each cache line first, and a library that
clears the result before it adds to it writes and reads it twice.  Row after row, since a panel of
columns would be on another page in each row.

30,000 x 8 times 8 x 2,000 elements in single precision, the derivative of a layer with respect to
its weights: a third of the time of the microkernel, a sixth of that of OpenBLAS on one thread.
"""

from __future__ import annotations

from typing import Any

from ...ir import execution_engine
from ...ir.ir_builder import Section
from ..kernel_call import KernelCall
from .gemm_microkernel import GemmTile, packed, write_rows
from .operands import Product


def run(call: KernelCall, s: Section, product: Product) -> None:
    """Write a product for which `choose.is_uncached` holds."""
    a, b, c, dtype, scale = product[:5]
    b = packed(call, s, b, dtype)
    alpha = float(scale.number.real)
    of_a: tuple[Any, Any] = a.rows.stride, a.columns.stride
    others: tuple[Any, Any] = b.rows.stride, c.rows.stride
    tile = GemmTile(dtype, 0, 0, of_a[0], of_a[1], others[0], others[1], alpha, 0.0, True)
    if scale.pointer is not None:
        tile = tile._replace(alpha=1.0, scale=scale.value(call, s, dtype).name)
    k = call.number(a.columns.length)
    number = s.value(f"ptrtoint ptr {c.pointer} to i64")
    rest = s.value(f"and i64 {number}, {execution_engine.vector_bytes() - 1}")
    is_aligned = s.value(f"icmp eq i64 {rest}, 0")
    with s.when(is_aligned) as t:
        write_rows(call, t, tile._replace(bypasses=True), (a, b, c), c.pointer, k)
        # Such stores are not ordered with others, by which threads tell that they have finished.
        t.write(f"call void {call.module.declare('llvm.x86.sse.sfence', 'void', [])}()")
    with s.unless(is_aligned) as t:
        write_rows(call, t, tile, (a, b, c), c.pointer, k)
