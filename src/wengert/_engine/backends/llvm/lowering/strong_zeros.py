"""Strong zeros, which backward passes use where 0 * inf must be 0.

`strong_zero(t, g)` is g, and 0 where t is exactly 0 and g is not finite.  If the graph shows that g
is a multiple of t, g is 0 or not finite wherever t is 0, so one comparison of t decides, and does
not wait for g: this matters inside loops with loop-carried dependences.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wengert._engine.core.node import Node
from wengert._engine.core.types import Scalar, ScalarLanguage

from ..tuning import thresholds
from .elementwise import elementwise
from .loop_ir import Expr, Map
from .registry import Lowering, lowers

_SIGNS = ("negative", "positive")


@lowers("strong_zero")
def _strong_zero(lowering: Lowering, node: Node, operands: Sequence[Expr]) -> Any:
    t, g = node.inputs
    same = all(x.dtype == node.spec.dtype and x.dtype.kind == "f" for x in operands)
    if same and is_multiple(g, t, thresholds.strong_zero_depth):
        return Expr(_SELECTED, operands, node.spec.shape, node.spec.dtype, node)
    return elementwise(lowering, node, operands)


def _selected(s: ScalarLanguage, t: Scalar, g: Scalar) -> Any:
    return s.where(s.not_equal(t, 0), g, 0)


_SELECTED = Map("strong_zero", _selected)


def is_multiple(g: Node, t: Node, depth: int) -> bool:
    """Whether g is t times something, or a sum of such products.

    Examples
    --------
    >>> import wengert as wg
    >>> from wengert._engine.backends.llvm.lowering.strong_zeros import is_multiple
    >>> graph = wg.trace(lambda t, x: (-t * x / 2.0, x + t))(1.0, 2.0)
    >>> [is_multiple(g, graph.inputs[0], 6) for g in graph.outputs]
    [True, False]
    """
    t, g = _without_sign(t), _without_sign(g)
    if g is t:
        return True
    if depth == 0:
        return False
    depth -= 1
    name = g.op.name
    if name == "multiply":
        return any(is_multiple(a, t, depth) for a in g.inputs)
    if name in ("divide", "cast", "broadcast_to"):
        return is_multiple(g.inputs[0], t, depth)
    if name == "strong_zero":
        return is_multiple(g.inputs[1], t, depth)
    return name in ("add", "subtract") and all(is_multiple(a, t, depth) for a in g.inputs)


def _without_sign(x: Node) -> Node:
    while x.op.name in _SIGNS:
        (x,) = x.inputs
    return x
