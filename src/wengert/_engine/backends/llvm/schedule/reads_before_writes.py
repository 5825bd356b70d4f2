"""Reads before writes: the order in which a step may write over the arrays that it updates.

A step that reads an element and then overwrites the array needs no copy of the array, if the read
is a stage before the write (loops/in_place.py).  Reads that can be come first, and elements and
rows that are used later are stored before the write.

    chained        two writes to the same elements of an array, one after the other
    updated_by     what the results of a call are versions of
    read_early     elements and rows that are read before a write and used after it
    in_order       expressions in an order in which arrays are read before they are written over
    sorted_after   expressions, each after those that it depends on
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence

from wengert._engine.core.node_properties import frozen
from wengert._engine.core.symbolic.dim import is_open

from ..ir.index_analysis import is_one
from ..lowering.loop_ir import CallResult, Expr, OpaqueCall, Stored, strided_view
from ..lowering.registry import specs_of
from ..lowering.scatter_chains import SliceUpdate

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
