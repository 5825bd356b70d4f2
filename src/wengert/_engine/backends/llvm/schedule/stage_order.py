"""The order of stages: reads before writes, messages early, waits late.

A step that reads an element and then overwrites the array needs no copy of the array, if the read
is a stage before the write (loops/in_place.py).  Reads that can be come first, and elements and
rows that are used later are stored before the write.

    chained        two writes to the same elements of an array, one after the other
    updated_by     what the results of a call are versions of
    read_early     elements and rows that are read before a write and used after it
    in_order       expressions in an order in which arrays are read before they are written over
    sorted_after   expressions, each after those that it depends on

A message between two processes is two stages (lowering/registry.py).  What it sends is computed
first; what does not need the received array is computed before the wait.

    computed_apart    what is stored before a wait, instead of being computed with what needs it
    overlapped        the expressions in such an order
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence

from wengert._engine.core.node_properties import frozen
from wengert._engine.core.symbolic.dim import is_open

from ..ir.index_analysis import is_one, size_of
from ..lowering.loop_ir import CallResult, Expr, Map, OpaqueCall, SelectExpr, Stored, strided_view
from ..lowering.registry import is_start, is_wait, specs_of
from ..lowering.scatter_chains import SliceUpdate
from ..tuning import thresholds

Uses = Callable[[Expr], Sequence[Expr]]


def updated_by(stage: Expr) -> list[Expr]:
    """The arrays of which the results of a call are versions with some elements written."""
    if isinstance(stage.rule, SliceUpdate):
        return [_owner(stage.operands[1])]
    node = stage.node
    places = [node.op.updated_operand(node, k) for k in range(len(specs_of(node)))]
    return [_owner(stage.operands[p]) for p in places if p is not None]


def _owner(x: Expr) -> Expr:
    view = strided_view(x)
    return x if view is None else view[0]


def _writes_of(exprs: Sequence[Expr]) -> dict[Expr, list[Expr]]:
    """For each array the calls that update it."""
    found: dict[Expr, list[Expr]] = {}
    for expr in exprs:
        if isinstance(expr.rule, OpaqueCall | SliceUpdate):
            for x in updated_by(expr):
                found.setdefault(x, []).append(expr)
    return found


def chained(exprs: Sequence[Expr]) -> None:
    """Let the later of two writes to the same elements of one array write over the earlier one.

    It replaces what the earlier one wrote, so that the result is the same; but both can be in the
    memory of the array.
    """
    for writes in _writes_of(exprs).values():
        same: dict[object, Expr] = {}
        for write in writes:
            if write.node.op.name != "setitem":
                continue
            is_slice = isinstance(write.rule, SliceUpdate)
            array = write.operands[1 if is_slice else 0]  # or a view of a part of it
            index = () if is_slice else write.operands[2:]
            key = (is_slice, array, frozen(write.node.params), index)
            before = same.get(key)
            same[key] = write
            if is_slice:
                if before is not None and not _uses(before, write):
                    write.operands = (write.operands[0], before)
                continue
            results = [x for x in exprs if before in x.operands]
            if before is not None and results and not _uses(before, write):
                write.operands = (results[0], *write.operands[1:])


def _uses(expr: Expr, other: Expr) -> bool:
    return _depends(expr, other, {})


def read_early(exprs: Sequence[Expr]) -> list[Expr]:
    """Elements and rows of arrays that are used after the array has been updated.

    Parameters
    ----------
    exprs : sequence of Expr
        All, operands first.
    """
    writes = _writes_of(exprs)
    if not writes:
        return []
    after: dict[Expr, set[Expr]] = {}  # for each expression the calls that it depends on
    updates = {w for ws in writes.values() for w in ws}
    found: dict[Expr, None] = {}
    for expr in exprs:
        mine = set().union(*[after[x] for x in expr.operands])
        after[expr] = mine | {expr} if expr in updates else mine
        if not mine:
            continue
        for x in _inlined(expr):
            for y in x.operands:
                whole = _owner(y)
                if _is_small(x, whole) and any(w in mine for w in writes.get(whole, ())):
                    found[x] = None
    return list(found)


def _is_small(part: Expr, whole: Expr) -> bool:
    """Whether what is read of an array is a small part of it."""
    rank = [sum(not is_one(n) for n in x.shape) for x in (part, whole)]
    return rank[0] < rank[1] or rank[0] == 0 or any(map(is_open, part.shape))


def _inlined(expr: Expr) -> list[Expr]:
    """The expressions that are computed where an expression is, without itself."""
    found: dict[Expr, None] = {}
    pending = [x for x in expr.operands if not x.is_root]
    while pending:
        x = pending.pop()
        if x not in found:
            found[x] = None
            pending += [y for y in x.operands if not y.is_root]
    return list(found)


def in_order(exprs: Sequence[Expr]) -> list[Expr]:
    """The expressions, operands first, with the reads of arrays before the calls that update them.

    Parameters
    ----------
    exprs : sequence of Expr
        In the order that is kept where nothing speaks against it.
    """
    writes = _writes_of(exprs)
    if not writes:
        return list(exprs)
    on: dict[Expr, set[Expr]] = {x: set(x.operands) for x in exprs}
    for reader in exprs:
        if not reader.is_root or isinstance(reader.rule, Stored | CallResult):
            continue
        for x in _read_by(reader):
            for write in writes.get(x, ()):
                if write is not reader and not _depends(reader, write, on):
                    on[write].add(reader)
    return sorted_after(exprs, on)


def _read_by(root: Expr) -> set[Expr]:
    """The arrays that a root reads from memory."""
    inside = [root, *_inlined(root)]
    return {_owner(y) for x in inside for y in x.operands}


def _depends(expr: Expr, other: Expr, on: Mapping[Expr, set[Expr]]) -> bool:
    """Whether an expression has to come after another one; by default after its operands."""
    seen: set[Expr] = set()
    pending = [expr]
    while pending:
        x = pending.pop()
        if x is other:
            return True
        if x not in seen:
            seen.add(x)
            pending += on.get(x, x.operands)
    return False


def sorted_after(exprs: Sequence[Expr], on: Mapping[Expr, set[Expr]]) -> list[Expr]:
    """The expressions, each after those that it depends on, otherwise in their order."""
    place = {x: k for k, x in enumerate(exprs)}
    users: dict[Expr, list[Expr]] = {}
    left = {x: len(on[x]) for x in exprs}
    for x in exprs:
        for y in on[x]:
            users.setdefault(y, []).append(x)
    ready = [k for k, x in enumerate(exprs) if not left[x]]
    heapq.heapify(ready)
    found = []
    while ready:
        x = exprs[heapq.heappop(ready)]
        found.append(x)
        for user in users.get(x, ()):
            left[user] -= 1
            if not left[user]:
                heapq.heappush(ready, place[user])
    return found


# ---- messages ------------------------------------------------------------------------------------


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
