"""Folding: a product that is scaled and added to something is one step.

    p - rate * (a @ b)    a step of gradient descent
    a @ b + c @ d         gradients of something that was used twice

The product is then neither written nor read for itself: where it is summed in registers (kernels/
tiles.py), what it is added to is read as the result is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wengert._engine.backends.llvm.ir.llvm_types import F32, F64
from wengert._engine.backends.llvm.kernels import is_served
from wengert._engine.backends.llvm.lowering.loop_ir import Expr, Map, Number, Part, Step, View

_PRODUCTS = frozenset("matmul dot einsum strong_einsum".split())


def fold(items: Sequence[Expr], uses: Mapping[Expr, int]) -> bool:
    """Fold what can be folded; whether anything was.

    Parameters
    ----------
    items : sequence of Expr
        Of a whole graph, operands first. Sums become parts of the steps.
    uses : mapping
        How many items, and results, use each.
    """
    found = False
    for item in items:
        if isinstance(item.rule, Map) and item.rule.name in ("add", "subtract"):
            one, other = item.operands
            sign = -1.0 if item.rule.name == "subtract" else 1.0
            found |= _folded(item, other, one, sign, 1.0, uses) or _folded(
                item, one, other, 1.0, sign, uses
            )
    return found


def _folded(
    item: Expr, term: Expr, other: Expr, alpha: float, beta: float, uses: Mapping[Expr, int]
) -> bool:
    """Make an item of the form alpha * term + beta * other a part of the term's step."""
    same = (item.shape, item.dtype)
    if item.dtype not in (F32, F64) or (term.shape, term.dtype) != same or uses[term] != 1:
        return False
    if isinstance(term.rule, Map) and term.rule.name == "multiply":
        factor, product = term.operands
        if isinstance(product.rule, Number):
            factor, product = product, factor
        if not isinstance(factor.rule, Number) or factor.shape != () or uses[product] != 1:
            return False
        alpha *= float(item.dtype.type(factor.rule.number))
        term = product
    if not isinstance(term.rule, Part) or (term.shape, term.dtype) != same:
        return False
    (step,) = term.operands
    if (other.shape, other.dtype) != same or not _is_before(other, step):
        return False
    rule = step.rule
    if not isinstance(rule, Step) or rule.options or len(step.operands) != 2:
        return False
    if rule.name not in _PRODUCTS or not is_served(step.node):
        return False
    if any(x.dtype != item.dtype for x in step.operands):
        return False
    step.rule = Step(rule.name, rule.params, rule.is_callback, {"alpha": alpha, "beta": beta})
    step.operands = (*step.operands, other)
    item.rule, item.operands = Part(0), (step,)
    item.is_root = True
    return True


def _is_before(x: Expr, step: Expr) -> bool:
    """Whether an item lies in memory before a step is taken."""
    while isinstance(x.rule, View) and x.rule.keeps_order:
        (x,) = x.operands
    return x.rule.is_stored and x.number < step.number
