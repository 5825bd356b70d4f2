"""Families of special functions, computed elementwise where they are used.

    family    a node as an expression, whose work is that of the compiled function

special_functions/ compiles them.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from wengert._engine.core.node import Node

from .. import special_functions
from .loop_ir import Expr, Map
from .registry import Lowering, lowers_kind


@lowers_kind("opaque")
def family(lowering: Lowering, node: Node, operands: Sequence[Expr]) -> Any:
    """A special function that can be compiled; other opaque operations are opaque calls."""
    op: Any = node.op
    if not getattr(op, "native", False):
        return NotImplemented
    params, dtype = dict(node.params), node.spec.dtype
    work = special_functions.is_served(op, params, tuple(x.dtype for x in operands))
    if work is None:
        return NotImplemented
    combine = functools.partial(special_functions.called, op, params, dtype)
    return Expr(Map(op.name, combine, work), operands, node.spec.shape, dtype, node)
