"""Inverses and determinants of one matrix from one factorization.

    slogdet and inv, det and det_derivative

A determinant and its gradient need the same LU factorization.  If a graph has both nodes for a
matrix that is not small, the first of them is lowered to a call that computes both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from wengert._engine.core.lazy_import import LazyModule
from wengert._engine.core.node import Node
from wengert._engine.kinds.opaque import Opaque

from ..kernels import is_served
from .loop_ir import Expr
from .registry import Lowering, lowers, opaque_call, set_origin

if TYPE_CHECKING:
    from ..kernels.linalg import small_matrices
else:
    small_matrices = LazyModule("wengert._engine.backends.llvm.kernels.linalg.small_matrices")


def _never(*args: Any) -> Any:
    raise AssertionError("this operation only exists in native code")


# The results of the joint call: the matrix, then those of the determinant.
_JOINT = {
    frozenset(("inv", "slogdet")): Opaque(_never, name="inverse_slogdet", trusted=True),
    frozenset(("det_derivative", "det")): Opaque(_never, name="cofactors_det", trusted=True),
}
_OTHER = {"inv": "slogdet", "slogdet": "inv", "det": "det_derivative", "det_derivative": "det"}


def joined(lowering: Lowering, node: Node, operands: Sequence[Expr]) -> Any:
    """The result of a node that has a partner; NotImplemented for others."""
    if len(node.inputs) != 1:
        return NotImplemented
    partner = _partner(lowering, node)
    if partner is None:
        return NotImplemented
    matrix, number = (
        (node, partner) if node.op.name in ("inv", "det_derivative") else (partner, node)
    )
    key = "joined", matrix
    parts = lowering.rules.get(key)
    if parts is None:
        several = number.spec if isinstance(number.spec, tuple) else (number.spec,)
        op = _JOINT[frozenset((matrix.op.name, number.op.name))]
        info = node.info_with(spec=(matrix.spec, *several))
        joint = Node(op, node.inputs, {}, None, info)
        set_origin(joint, node)
        assert is_served(joint)
        parts = lowering.rules[key] = opaque_call(joint, operands)
    if node is matrix:
        return parts[0]
    return parts[1:] if isinstance(node.spec, tuple) else parts[1]


def _partner(lowering: Lowering, node: Node) -> Node | None:
    (x,) = node.inputs
    n = x.spec.shape[-1]
    if (type(n) is int and n <= small_matrices.MAX_ROWS) or 0 in x.spec.shape:
        return None
    candidates = lowering.rules.get("factorizations")
    if candidates is None:
        candidates = lowering.rules["factorizations"] = {
            (line.op.name, line.inputs[0]): line
            for line in lowering.graph.nodes
            if line.op.name in _OTHER and len(line.inputs) == 1
        }
    found: Node | None = candidates.get((_OTHER[node.op.name], x))
    return found if found is not None and is_served(found) and is_served(node) else None


@lowers("inv", "slogdet")
def _inverse(lowering: Lowering, node: Node, operands: Sequence[Expr]) -> Any:
    return joined(lowering, node, operands)
