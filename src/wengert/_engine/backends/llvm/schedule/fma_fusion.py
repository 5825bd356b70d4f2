"""FMA fusion: a product that is scaled and added to something becomes one kernel call.

    p - rate * (a @ b)    a step of gradient descent; the rate is a constant or known when it runs
    a @ b + c @ d         gradients of a value that is used twice

The product is then not written to memory and read again: the kernel accumulates in registers
(kernels/gemm/gemm_microkernel.py), and adds the other term when it writes the result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..ir.llvm_types import F32, F64
from ..kernels import is_served
from ..lowering.loop_ir import CallResult, Expr, Map, OpaqueCall, ScalarConstant, View

_PRODUCTS = frozenset("matmul dot einsum strong_einsum".split())


def fold(exprs: Sequence[Expr], uses: Mapping[Expr, int]) -> bool:
    """Fuse sums into products; returns whether anything was fused.

    Parameters
    ----------
    exprs : sequence of Expr
        The expressions of a graph, operands first.  Fused sums become results of calls.
    uses : mapping
        How many expressions and results use each expression.
    """
    found = False
    for expr in exprs:
        if isinstance(expr.rule, Map) and expr.rule.name in ("add", "subtract"):
            one, other = expr.operands
            sign = -1.0 if expr.rule.name == "subtract" else 1.0
            found |= _folded(expr, other, one, sign, 1.0, uses) or _folded(
                expr, one, other, 1.0, sign, uses
            )
    return found


def _folded(
    expr: Expr, term: Expr, other: Expr, alpha: float, beta: float, uses: Mapping[Expr, int]
) -> bool:
    """Replace alpha * term + beta * other by the call that computes `term`, if possible."""
    same = (expr.shape, expr.dtype)
    if expr.dtype not in (F32, F64) or (term.shape, term.dtype) != same or uses[term] != 1:
        return False
    scale: tuple[Expr, ...] = ()
    after = 0
    if isinstance(term.rule, Map) and term.rule.name == "multiply":
        factor, product = term.operands
        if isinstance(product.rule, ScalarConstant) or product.shape != expr.shape:
            factor, product = product, factor
        if factor.shape != () or uses[product] != 1:
            return False
        if isinstance(factor.rule, ScalarConstant):
            alpha *= float(expr.dtype.type(factor.rule.number))
        elif factor.dtype in (F32, F64):
            scale = (factor,)
        else:
            return False
        term, after = product, term.number
    if not isinstance(term.rule, CallResult) or (term.shape, term.dtype) != same:
        return False
    (step,) = term.operands
    if (other.shape, other.dtype) != same or not _is_before(other, step):
        return False
    rule = step.rule
    if not isinstance(rule, OpaqueCall) or rule.options or len(step.operands) != 2:
        return False
    if rule.name not in _PRODUCTS or not is_served(step.node):
        return False
    if any(x.dtype != expr.dtype for x in step.operands):
        return False
    options = {"alpha": alpha, "beta": beta, **({"scaled": True} if scale else {})}
    step.rule = OpaqueCall(rule.name, rule.params, rule.is_callback, options)
    step.operands = (*step.operands, *scale, other)
    if any(x.number > step.number for x in scale):  # the factor is computed after the product
        step.number = after
    expr.rule, expr.operands = CallResult(0), (step,)
    expr.is_root = True
    return True


def _is_before(x: Expr, step: Expr) -> bool:
    """Whether an expression is in memory before a call."""
    while isinstance(x.rule, View) and x.rule.keeps_order:
        (x,) = x.operands
    return x.rule.is_stored and x.number < step.number
