"""Memory of arrays on a device: which arrays share it, and which results are written over others.

The bias, activation or residual after a matrix product is one kernel, which is written over the
product: CuPy has no products of cuBLASLt, which would compute them in the product itself.

    is_apart     whether an array shares no memory with others
    reusable     the array over which the kernel of a loop group may be written
    renamed      the array whose elements are all that a loop group has, in its order
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import Any

from wengert._engine.core.symbolic.dim import Length

from ..llvm.ir.index_analysis import counters, is_one, offset_of, size_of
from ..llvm.lowering.loop_ir import Expr, Reduce, Stored, View, memory_strides
from ..llvm.lowering.scatter_chains import SliceUpdate
from ..llvm.schedule.fusion import FusedLoops, roots_of, space_of
from ..llvm.schedule.scheduling import Schedule


def is_apart(x: Any, others: Iterable[Any]) -> bool:
    """Whether an array shares no memory with others, all on a device."""
    start, stop = _extent(x)
    return all(stop <= a or b <= start for a, b in map(_extent, others))


def _extent(x: Any) -> tuple[int, int]:
    """The addresses before which and after which an array has no elements."""
    facts = x.__cuda_array_interface__
    low = high = facts["data"][0]
    if 0 in x.shape:
        return low, low
    for n, stride in zip(x.shape, x.strides, strict=True):
        low += min((n - 1) * stride, 0)
        high += max((n - 1) * stride, 0)
    return low, high + x.dtype.itemsize


def renamed(fused: FusedLoops, stored: Container[Expr], gone: Sequence[Expr]) -> Expr | None:
    """The array that a loop group would copy as it is, for example `x[..., 0]`, or None.

    Parameters
    ----------
    gone : sequence of Expr
        Arrays that no later kernel reads.
    """
    roots = roots_of(fused)
    if len(roots) != 1 or roots[0] not in stored:
        return None
    (root,) = roots
    x, index = root, counters(root.shape)
    while isinstance(x.rule, View) and (x is root or not x.is_root):
        index = x.rule.placed(x, index)
        (x,) = x.operands
    if x is root or x not in gone or isinstance(x.rule, Stored) or x.dtype != root.dtype:
        return None
    if size_of(x.shape) != size_of(root.shape):
        return None
    place = offset_of(index, memory_strides(x))
    step: Length = 1
    for k in range(len(root.shape) - 1, -1, -1):
        if not is_one(root.shape[k]) and place.factor(k) != step:
            return None
        step = step * root.shape[k]
    return x if place.offset == 0 else None


def reusable(
    plan: Schedule, fused: FusedLoops, stored: Container[Expr], gone: Sequence[Expr]
) -> Expr | None:
    """The array over which the kernel of a loop group may be written, or None.

    The group has one result, which depends on all that its thread has read before it is stored;
    so an array that is read at the place of the result only may have its memory.

    Parameters
    ----------
    stored : container of Expr
        What is in memory.
    gone : sequence of Expr
        Arrays that no later kernel reads.
    """
    roots = roots_of(fused)
    if len(roots) != 1 or roots[0] not in stored or isinstance(roots[0].rule, Reduce | SliceUpdate):
        return None
    (root,) = roots
    here = counters(space_of(root))
    for x in gone:
        if isinstance(x.rule, Stored) or (x.shape, x.dtype) != (root.shape, root.dtype):
            continue
        if all(a.index == here for a in plan.accesses(root) if a.expr is x):
            return x
    return None
