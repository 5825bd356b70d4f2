"""Results that are not stored: recomputed where they are used, or added to by a kernel.

    recomputed        the expressions that are not worth storing
    result_of         the expression that is stored as a result
    reachable_from    the given expressions and all that they depend on
    consumers_of      the number of uses of each expression

A difference of a Laplacian that is used at x[i] and x[i + 1] is computed twice if it is not stored,
but then the Laplacians that both need are computed once, and nothing is written and read again:

    lap = 4.0 * x[1:-1] - x[:-2] - x[2:]
    flux = lap[1:] - lap[:-1]
    out = x[2:-2] - c * (flux[1:] - flux[:-1])

is one loop, which computes three Laplacians for each element.

A product that is scaled and added to something is one kernel call:

    p - rate * (a @ b)    a step of gradient descent; the rate is a constant or known when it runs
    a @ b + c @ d         gradients of a value that is used twice

The product is then not written to memory and read again: the kernel accumulates in registers
(kernels/gemm/gemm_microkernel.py), and adds the other term when it writes the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any

from wengert._engine.core.spec import Spec

from ..ir.index_analysis import FlatIndex, Index, counters
from ..ir.llvm_types import F32, F64
from ..kernels import is_served
from ..lowering.loop_ir import (
    CallResult,
    Expr,
    Map,
    OpaqueCall,
    Reduce,
    ScalarConstant,
    Stored,
    View,
)
from ..lowering.scatter_chains import SliceUpdate
from ..tuning import thresholds
from .fusion import Access, space_of


def recomputed(
    shared: Container[Expr], exprs: Sequence[Expr], accesses: Callable[[Expr], Sequence[Access]]
) -> dict[Expr, int]:
    """The expressions that are not worth storing, and the work of those that use them.

    Parameters
    ----------
    shared : container of Expr
        Expressions that are stored only because they are used more than once.
    exprs : sequence of Expr
        All, operands first.
    accesses : callable
        The accesses of a root to stored expressions.

    Returns
    -------
    dict from Expr to int
        Those that are not to be stored have no work.
    """
    if not any(isinstance(x.rule, View) and not x.rule.keeps_order for x in exprs):
        return {}  # all is read at its own place
    readers: dict[Expr, dict[Expr, None]] = {}
    elsewhere: set[Expr] = set()
    for root in exprs:
        if isinstance(root.rule, OpaqueCall):
            for x in _roots_of(root.operands):
                readers.setdefault(x, {})[root] = None
        elif root.is_root and not isinstance(root.rule, Stored | CallResult):
            here = counters(space_of(root))
            for access in accesses(root):
                readers.setdefault(access.expr, {})[root] = None
                if access.index != here:
                    elsewhere.add(access.expr)
    users: dict[Expr, list[Expr]] = {}
    for x, roots in readers.items():
        if x in shared and x in elsewhere and len(roots) == 1:
            (root,) = roots
            if _is_pointwise(root) and root not in shared and _is_local(x):
                users.setdefault(root, []).append(x)
    found: dict[Expr, int] = {}
    for root, inner in users.items():
        work = _gain(root, inner)
        if work:
            found.update(dict.fromkeys(inner, 0))
            found[root] = work
    return found


def _roots_of(exprs: Sequence[Expr]) -> set[Expr]:
    """The roots that expressions are computed from."""
    found: set[Expr] = set()
    pending = list(exprs)
    while pending:
        x = pending.pop()
        if x.is_root:
            found.add(x)
        else:
            pending += x.operands
    return found


def _is_pointwise(root: Expr) -> bool:
    return isinstance(root.rule, SliceUpdate) or not root.rule.is_stored


def _is_local(x: Expr) -> bool:
    """Whether an element is computed by arithmetic from elements at known places."""
    pending = [x]
    while pending:
        y = pending.pop()
        if not isinstance(y.rule, Map | View | ScalarConstant):
            return False
        pending += [z for z in y.operands if not z.is_root]
    return True


def _gain(root: Expr, inner: Sequence[Expr]) -> int:
    """The work of an element of a root that computes some operands itself; 0 if it is not less."""
    shapes = [space_of(root), *[x.shape for x in inner]]
    if any(type(n) is not int for shape in shapes for n in shape):
        return 0
    sizes = [math.prod(shape) for shape in shapes]
    separate, together = _work(root, ()), _work(root, inner)
    if separate is None or together is None or not all(sizes):
        return 0
    total = separate[0]
    for x, size in zip(inner, sizes[1:], strict=True):
        own = _work(x, ())
        if own is None:
            return 0
        total += (own[0] + thresholds.element_overhead_work) * size / sizes[0]
    return together[1] if together[0] <= total and together[1] <= thresholds.expression_work else 0


def _work(root: Expr, inner: Container[Expr]) -> tuple[int, int] | None:
    """The work of an element with its reads, and without; None if it is read by position."""
    start: Index = counters(space_of(root))
    first = root.operands[0] if isinstance(root.rule, SliceUpdate) else root
    pending: list[tuple[Expr, Index]] = [(first, start)]
    seen: set[Any] = set(pending)
    reads = work = 0
    while pending:
        expr, index = pending.pop()
        if expr.is_root and expr is not first and expr not in inner:
            reads += 1
            continue
        work += expr.rule.weight
        for read in expr.reads(index):
            if read.index is None or isinstance(read.index, FlatIndex):
                return None
            if (read.operand, read.index) not in seen:
                seen.add((read.operand, read.index))
                pending.append((read.operand, read.index))
    return work + reads, work


def result_of(x: Expr, spec: Spec, taken: set[Expr]) -> Expr:
    """The expression that is stored as a result."""
    same = x
    while (
        isinstance(same.rule, View)
        and same.rule.keeps_order
        and isinstance(same.operands[0].rule, Reduce | CallResult | View)
    ):
        same = same.operands[0]
    if (
        isinstance(same.rule, Reduce | CallResult)
        and same not in taken
        and same.dtype == spec.dtype
    ):
        taken.add(same)
        return same
    if (
        isinstance(x.rule, Stored | Reduce | CallResult | ScalarConstant)
        or x in taken
        or x.dtype != spec.dtype
        or (x.shape != spec.shape)
    ):
        dtype = spec.dtype
        x = Expr(Map("copy", lambda s, v: s.cast(v, dtype)), (x,), spec.shape, dtype)
    taken.add(x)
    return x


def reachable_from(outputs: Sequence[Expr]) -> list[Expr]:
    """The given expressions and all that they depend on, in topological order."""
    seen = set(outputs)
    pending = list(outputs)
    while pending:
        for x in pending.pop().operands:
            if x not in seen:
                seen.add(x)
                pending.append(x)
    return sorted(seen, key=lambda x: x.number)


def consumers_of(exprs: Sequence[Expr], results: Sequence[Expr] = ()) -> dict[Expr, int]:
    """The number of uses of each expression, including results."""
    count: dict[Expr, int] = dict.fromkeys(results, 1)
    for expr in exprs:
        for x in dict.fromkeys(expr.operands):
            count[x] = count.get(x, 0) + 1
    return count


# ---- products with an addend ---------------------------------------------------------------------


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
