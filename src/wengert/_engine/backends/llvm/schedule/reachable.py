"""The expressions that results are computed from.

result_of         the expression that is stored as a result
reachable_from    the given expressions and all that they depend on
consumers_of      the number of uses of each expression
"""

from __future__ import annotations

from collections.abc import Sequence

from wengert._engine.core.spec import Spec

from ..lowering.loop_ir import CallResult, Expr, Map, Reduce, ScalarConstant, Stored, View


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
