"""Strided views: an expression as a part of an array in memory, without a copy.

A slice, a transposition, a diagonal of an array in memory is given by the offset of its first
element and the strides of its axes; kernels, and gathers, read it in place.
"""

from __future__ import annotations

from wengert._engine.backends.llvm.ir.affine import Index, Length, counters, offset_of

from .loop_ir import Expr, View, memory_strides


def strided_view(expr: Expr) -> tuple[Expr, Length, tuple[Length, ...]] | None:
    """An expression as a part of one in memory: that, the offset of the first element, and strides.

    None if it is none. Offset and strides count elements.
    """
    index: Index = counters(expr.shape)
    inner = expr
    while not inner.is_root:
        if not isinstance(inner.rule, View):
            return None
        index = inner.rule.placed(inner, index)
        (inner,) = inner.operands
    form = offset_of(index, memory_strides(inner))
    return inner, form.offset, tuple(form.factor(k) for k in range(len(expr.shape)))
