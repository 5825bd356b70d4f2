"""The order of messages and computation: messages start early, and waits come late.

A message between two processes is two stages (lowering/split_messages.py).  What it sends is
computed first; what does not need the received array is computed before the wait.

    computed_apart    what is stored before a wait, instead of being computed with what needs it
    overlapped        the expressions in such an order
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from ..ir.index_analysis import size_of
from ..lowering.loop_ir import Expr, Map, SelectExpr
from ..lowering.split_messages import is_start, is_wait
from ..tuning import thresholds

_NEEDED_BY_MESSAGES, _OTHER, _WAIT = range(3)


def computed_apart(exprs: Sequence[Expr]) -> list[Expr]:
    """Expressions to be stored, so that they are computed while messages travel.

    They are used together with what has been received: as one of the pieces of an array, or in
    arithmetic, if they are expensive.

    Parameters
    ----------
    exprs : sequence of Expr
        Operands first, with their weights.
    """
    late: set[Expr] = set()
    for x in exprs:
        if is_wait(x) or any(y in late for y in x.operands):
            late.add(x)
    found: dict[Expr, None] = {}
    for x in exprs if late else ():
        if x not in late or not isinstance(x.rule, SelectExpr | Map):
            continue
        least = 0 if isinstance(x.rule, SelectExpr) else thresholds.inline_work
        for y in x.operands:
            if not y.is_root and y not in late and y.weight > least and _is_array(y):
                found[y] = None
    return list(found)


def _is_array(x: Expr) -> bool:
    size = size_of(x.shape)
    return type(size) is not int or size > thresholds.unrolled_elements


def overlapped(exprs: Sequence[Expr]) -> list[Expr]:
    """The expressions, operands first, with starts early and waits late.

    All messages keep their order, because each depends on the token of the one before.

    Parameters
    ----------
    exprs : sequence of Expr
        Operands first.
    """
    starts = [x for x in exprs if is_start(x)]
    if not starts:
        return list(exprs)
    needed: set[Expr] = set()
    pending = starts
    while pending:
        x = pending.pop()
        if x not in needed:
            needed.add(x)
            pending.extend(x.operands)
    place = {x: k for k, x in enumerate(exprs)}

    def key(x: Expr) -> tuple[int, int]:
        """What is ready and has the least key comes next."""
        if is_wait(x):
            return _WAIT, place[x]
        return (_NEEDED_BY_MESSAGES if x in needed else _OTHER), place[x]

    users: dict[Expr, list[Expr]] = {}
    left = {x: len(set(x.operands)) for x in exprs}
    for x in exprs:
        for y in set(x.operands):
            users.setdefault(y, []).append(x)
    ready = [(key(x), x.number, x) for x in exprs if not left[x]]
    heapq.heapify(ready)
    found = []
    while ready:
        *_, x = heapq.heappop(ready)
        found.append(x)
        for user in users.get(x, ()):
            left[user] -= 1
            if not left[user]:
                heapq.heappush(ready, (key(user), user.number, user))
    return found
