"""Determinants of 2x2 matrices as expressions, fused with their neighbors.

    det               also of 3x3 matrices in single precision
    det_derivative    the cofactors of 2x2 matrices

For small matrices memory accesses take all the time.  The results of a kernel call, and the
cofactors in a gradient, are stored and read again; expressions are computed where they are used.
Larger determinants are kernels (kernels/linalg/determinants.py).

Inverses and determinants of one matrix from one factorization.

    slogdet and inv, det and det_derivative

A determinant and its gradient need the same LU factorization.  If a graph has both nodes for a
matrix that is not small, the first of them is lowered to a call that computes both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.lazy_import import LazyModule
from wengert._engine.core.node import Node
from wengert._engine.kinds.opaque import Opaque

from ..ir.index_analysis import Affine
from ..ir.llvm_types import F32, F64
from ..kernels import is_served
from .loop_ir import Expr, Map, Stored, View
from .registry import Lowering, lowers, opaque_call, set_origin

_DOWN, _UP = 2.0**-600, 2.0**600


def _has_two_rows(node: Node) -> bool:
    shape, dtype = node.inputs[0].spec.shape, node.inputs[0].spec.dtype
    return shape[-2:] == (2, 2) and dtype in (F32, F64)


def _minor(s: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """a d - b c with an error of at most 1.5 ulp (W. Kahan)."""
    product = b * c
    rounding_error = s.fma(b, c, -product)
    return s.fma(a, d, -product) - rounding_error


def _determinant(s: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    if a.dtype == F32:  # exact products, and no overflow, in double precision
        a, b, c, d = (s.cast(x, F64) for x in (a, b, c, d))
        return a * d - b * c
    value = _minor(s, a, b, c, d)
    # both products may overflow while their difference does not
    small = _minor(s, a * _DOWN, b * _DOWN, c * _DOWN, d * _DOWN)
    return s.where(s.isnan(value), small * _UP * _UP, value)


def _of_three(s: Any, *xs: Any) -> Any:
    a, b, c, d, e, f, g, h, i = (s.cast(x, F64) for x in xs)  # no overflow in double precision
    return a * (e * i - f * h) + b * (f * g - d * i) + c * (d * h - e * g)


@lowers("det")
def _det(lowering: Lowering, node: Node, operands: Sequence[Expr]) -> Any:
    if node.inputs[0].spec.dtype == F32 and node.inputs[0].spec.shape[-2:] == (3, 3):
        (x,) = operands
        elements = [_element(x, i, j, node) for i in range(3) for j in range(3)]
        return Expr(Map("det", _of_three, 14), elements, node.spec.shape, F32, node)
    if not _has_two_rows(node):
        return joined(lowering, node, operands)
    (x,) = operands
    shape, dtype = node.spec.shape, node.spec.dtype
    elements = [_element(x, i, j, node) for i in (0, 1) for j in (0, 1)]
    return Expr(Map("det", _determinant, 12), elements, shape, dtype, node)


def _element(x: Expr, i: int, j: int, node: Node) -> Expr:
    place = (Affine(i, ()), Affine(j, ()))
    view = View("element", lambda index: (*index, *place))
    return Expr(view, (x,), x.shape[:-2], x.dtype, node)


_SIGNS = np.array([[1.0, -1.0], [-1.0, 1.0]])


@lowers("det_derivative")
def _cofactors(lowering: Lowering, node: Node, operands: Sequence[Expr]) -> Any:
    if not _has_two_rows(node) or len(operands) != 1:
        return joined(lowering, node, operands)
    (x,) = operands

    def across(index: Any) -> Any:
        *lead, i, j = index
        return (*lead, i.times(-1).plus(1), j.times(-1).plus(1))

    turned = Expr(View("across", across), (x,), x.shape, x.dtype, node)
    held = Expr(Stored("constant", _SIGNS.astype(x.dtype)), (), (2, 2), x.dtype, node)
    signs = Expr(View("signs", lambda index: index[-2:]), (held,), x.shape, x.dtype, node)
    return Expr(Map("cofactors", lambda s, v, w: v * w), (turned, signs), x.shape, x.dtype, node)


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
