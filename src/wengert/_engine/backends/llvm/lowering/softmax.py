"""Softmax and its logarithm, and their gradients.

A maximum, a sum of exponentials, and an expression of both: three passes over a row, which the plan
fuses along the rows, so that each row is read from memory once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wengert._engine.core.node import Node

from ..ir.llvm_types import F16, F32
from .elementwise import elementwise
from .loop_ir import Expr, Map
from .reductions import Combined
from .registry import Lowering, lowers


class _LogSoftmax(Map):
    """The logarithm of a softmax, with the exponentials of which it was computed."""

    def __init__(self, exponentials: Expr, total: Expr) -> None:
        super().__init__("log_softmax", lambda s, v, r: v - r)
        self.exponentials, self.total = exponentials, total


@lowers("exp")
def _exp(lowering: Lowering, node: Node, operands: Sequence[Expr]) -> Any:
    rule = operands[0].rule
    if not isinstance(rule, _LogSoftmax):
        return elementwise(lowering, node, operands)
    # The exponentials are computed already; their sum is at least one, as the largest is exp(0).
    shape, dtype, total = node.spec.shape, node.spec.dtype, rule.total
    inverse = Expr(Map("inverse", lambda s, t: 1.0 / t, 8), (total,), total.shape, dtype, node)
    product = Map("softmax", lambda s, v, r: v * r)
    return Expr(product, (rule.exponentials, inverse), shape, dtype, node)


def _shifted(
    node: Node, operands: Sequence[Expr], finite: bool = False
) -> tuple[Combined, Expr] | None:
    """The row minus its maximum, in the dtype of the computation.

    With `finite`, an infinite maximum is not subtracted: finite elements keep their values.
    """
    dtype = node.spec.dtype
    if dtype.kind != "f":
        return None
    c = Combined(node, operands[0])
    x = c.cast(c.x, F32 if dtype == F16 else dtype)
    top = c.reduce("max", x)
    if finite:
        top = c.map("finite", lambda s, m: s.where(s.isfinite(m), m, 0.0), top)
    return c, c.map("shifted", lambda s, v, m: v - m, x, top)


@lowers("log_softmax")
def _log_softmax(_: Lowering, node: Node, operands: Sequence[Expr]) -> Any:
    found = _shifted(node, operands, finite=True)
    if found is None:
        return NotImplemented
    c, x = found
    e = c.map("exp", lambda s, v: s.exp(v), x, weight=22)
    total = c.reduce("sum", e)
    rest = c.map("log", lambda s, v: s.log(v), total, weight=22)
    return c.done(Expr(_LogSoftmax(e, total), (x, rest), x.shape, x.dtype, node))


@lowers("softmax")
def _softmax(_: Lowering, node: Node, operands: Sequence[Expr]) -> Any:
    found = _shifted(node, operands)
    if found is None:
        return NotImplemented
    c, x = found
    e = c.map("exp", lambda s, v: s.exp(v), x, weight=22)
    return c.done(c.map("softmax", lambda s, v, t: v / t, e, c.reduce("sum", e), weight=4))
