"""Stores of single numbers, in straight-line code.

`A[i, j] = v` in a loop is a kernel call otherwise (kernels/scatter.py), which reads its index and
its value from memory; here they are in registers, and positions that were checked for a read are
not checked again.

    is_element_store    whether a stage can be part of straight-line code (codegen/straightline.py)
    index_of            the index at which one stores
    is_held             whether an array is in memory where straight-line code reads it
"""

from __future__ import annotations

from ..ir.index_analysis import AxisIndex, chosen
from ..kernels import is_served
from ..lowering.loop_ir import CallResult, Expr, OpaqueCall, Stored
from ..schedule.fusion import FusedLoops

_STORES = ("setitem", "scatter_add")


def is_element_store(stage: FusedLoops | Expr) -> bool:
    """Whether a stage stores a number in an array in C order, at an index of numbers."""
    if not isinstance(stage, Expr) or not isinstance(stage.rule, OpaqueCall):
        return False
    node = stage.node
    if node.op.name not in _STORES or stage.rule.options or not is_served(node):
        return False
    x, v, *arrays = stage.operands
    if v.shape or any(a.shape for a in arrays) or "c" in (x.dtype.kind, v.dtype.kind):
        return False
    strided = isinstance(x.rule, Stored) and x.rule.strides is not None
    return is_held(x) and not strided and all(part.axis is None for part in index_of(stage))


def index_of(step: Expr) -> tuple[AxisIndex, ...]:
    """The index along each axis of the array that a number is stored in."""
    x, _, *arrays = step.operands
    found = chosen(step.node.params["index"], x.shape, [a.shape for a in arrays])
    assert found is not None  # the kernel serves it
    return found.parts


def is_held(x: Expr) -> bool:
    """Whether an array is in memory wherever straight-line code reads it.

    It is an input, or the result of a call before the code, or of a store in it, which its reads
    come after.
    """
    if isinstance(x.rule, CallResult):
        call = x.operands[0]
        return call.node.op.kind != "control" or bool(call.node.params.get("carried"))
    return isinstance(x.rule, Stored)
