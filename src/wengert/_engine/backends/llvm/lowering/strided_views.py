"""Strided: an item as a part of one that lies in memory, where that is so: no copy is needed.

A slice, a transposition, a diagonal of what is in memory is given by the offset of its first
element and the strides of its axes; kernels, and gathers, read it where it is.
"""

from __future__ import annotations

from wengert._engine.backends.llvm.ir.affine import Index, Length, counters, offset_of

from .loop_ir import Expr, View, memory_strides


def strided_view(item: Expr) -> tuple[Expr, Length, tuple[Length, ...]] | None:
    """An item as a part of one in memory: that, the offset of the first element, and strides.

    None if it is none. Offset and strides count elements.
    """
    index: Index = counters(item.shape)
    inner = item
    while not inner.is_root:
        if not isinstance(inner.rule, View):
            return None
        index = inner.rule.placed(inner, index)
        (inner,) = inner.operands
    form = offset_of(index, memory_strides(inner))
    return inner, form.offset, tuple(form.factor(k) for k in range(len(item.shape)))
