"""Slices that are written into arrays that a loop carries, in its steps or after it.

`A[1:-1] = f(B)` in the body of a loop is a loop over the slice that writes into A, if nothing that
is computed later needs the elements of A from before, and the new elements depend on elements of A
at their own places only.  Otherwise it is a selection for each element of a new array: A and that
array then alternate from step to step.

The results of a loop are written to in the same way outside of loops, `y[0] = v` after a loop that
made y, unless y is needed from before.

What is computed from the new elements later (the rewriter puts them in the place of `A[1:-1]`)
reads them in A, so they are not stored twice.

    InPlaceWrites    the writes that can be in place
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

from ..ir.index_analysis import Index, counters, size_of
from ..lowering.loop_ir import CallResult, Expr, OpaqueCall, Stored, View
from ..lowering.scatter_chains import SliceSelection, write_in_place
from ..tuning import thresholds
from .reads_before_writes import sorted_after

Updates = Sequence[tuple[int, int]]


class InPlaceWrites:
    """The writes of slices, all of which can be written over the array before at once.

    Parameters
    ----------
    inputs, outputs : sequence of Expr
        Of the body of a loop.
    exprs : sequence of Expr
        All that the outputs depend on, operands first.
    updates : sequence of (int, int)
        Inputs, and the results that may be written over them.
    after_loops : bool
        Whether the results of loops may be written over, outside of loops.

    Attributes
    ----------
    writes : dict of Expr
    """

    def __init__(
        self,
        inputs: Sequence[Expr],
        outputs: Sequence[Expr],
        exprs: Sequence[Expr],
        updates: Updates,
        after_loops: bool = False,
    ) -> None:
        self._exprs = exprs
        self._users: dict[Expr, list[Expr]] = {}
        self.writes: dict[Expr, None] = {}
        chains = [_chain(inputs[given], outputs[k]) for given, k in updates]
        chains = [chain for chain in chains if chain]
        if after_loops:
            chains += _after_loops(exprs, set(outputs))
        self._for_calls: set[Expr] = set()  # what calls need in memory
        for x in exprs if chains else ():
            for y in x.operands:
                self._users.setdefault(y, []).append(x)
            if isinstance(x.rule, OpaqueCall):
                self._for_calls.update(y for y in x.operands if not isinstance(y.rule, View))
        while chains:
            self.writes = dict.fromkeys(x for chain in chains for x in chain)
            self._written = self._read_back()
            self._ordered = self._in_order()
            if len(self._ordered) < len(exprs):  # they would depend on each other
                self._written = {}
                self._ordered = self._in_order()
            refused = self._needed_later()
            left = [
                chain
                for chain in chains
                if refused.isdisjoint(chain) and all(map(self._reads_own_places, chain))
            ]
            if len(left) == len(chains):
                return
            chains = left
        self.writes = {}

    def _read_back(self) -> dict[Expr, Expr]:
        """For new elements that are used beside their write, that write."""
        found: dict[Expr, Expr] = {}
        for write in self.writes:
            new = _new(write)
            if new.rule.is_stored or new.dtype != write.dtype or new in found:
                continue
            users = [x for x in self._users.get(new, ()) if x is not write]
            if users and _ancestors(write).isdisjoint(users):
                found[new] = write
        return found

    def _operands(self, x: Expr) -> list[Expr]:
        """The operands of an expression, if all writes are in place."""
        if x in self.writes:
            return [_new(x), x.operands[1]]
        return [self._written.get(y, y) for y in x.operands]

    def _in_order(self) -> list[Expr]:
        """All expressions, operands first; fewer if they depend on each other."""
        exprs = dict.fromkeys([*self._exprs, *map(_new, self.writes)])
        found = sorted_after(list(exprs), {x: set(self._operands(x)) for x in exprs})
        return found if len(found) == len(exprs) else []

    def _is_stored(self, x: Expr) -> bool:
        return x.rule.is_stored or x in self.writes or x in self._for_calls

    # ---- whether a write can be in place ---------------------------------------------------------

    def _needed_later(self) -> set[Expr]:
        """The writes over arrays that are read after them, element by element.

        The bits of an integer are the writes: those that an expression comes after, and those over
        arrays that its elements are computed from.
        """
        bits = {write: 1 << k for k, write in enumerate(self.writes)}
        over: dict[Expr, int] = {}
        for write, bit in bits.items():
            before = write.operands[1]
            over[before] = over.get(before, 0) | bit
        after: dict[Expr, int] = {}
        reads: dict[Expr, int] = {}
        found = 0
        for x in self._ordered:
            own = bits.get(x, 0)
            after[x], reads[x] = own, 0
            for y in self._operands(x):
                after[x] |= after.get(y, 0)
                reads[x] |= over.get(y, 0) | (0 if self._is_stored(y) else reads.get(y, 0))
            found |= after[x] & reads[x] & ~own
        return {write for write, bit in bits.items() if bit & found}

    def _reads_own_places(self, write: Expr) -> bool:
        """Whether new elements depend on those elements of an array only which they replace."""
        rule: Any = write.rule
        array = write.operands[1]
        start: Index = counters(rule.new.shape)
        here: Index = rule.place(start)
        if rule.new is array:
            return start == here
        pending: list[tuple[Expr, Index]] = [(rule.new, start)]
        seen: set[Any] = set()
        while pending:
            expr, index = pending.pop()
            if self._is_stored(expr) or (expr in self._written and expr is not rule.new):
                continue
            for read in expr.reads(index):
                if read.operand is array and read.index != here:
                    return False
                if read.index is None:  # at an index that is computed
                    if not self._is_stored(read.operand):
                        return False
                    continue
                if (read.operand, read.index) not in seen:
                    seen.add((read.operand, read.index))
                    pending.append((read.operand, read.index))
        return True

    # ---- the change ------------------------------------------------------------------------------

    def apply(self) -> None:
        """Write them in place."""
        reading = {}
        for new, write in self._written.items():
            view = View("getitem", write.rule.place)  # type: ignore[attr-defined]
            reading[new] = Expr(view, (write,), new.shape, new.dtype, new.node)
        for x in self._exprs:
            if x not in self.writes:
                x.operands = tuple([reading.get(y, y) for y in x.operands])
        for write in self.writes:
            write_in_place(write)
        exprs = dict.fromkeys([*self._ordered, *reading.values()])
        ordered = sorted_after(list(exprs), {x: set(x.operands) for x in exprs})
        for x, number in zip(ordered, sorted(x.number for x in exprs), strict=True):
            x.number = number


def _new(write: Expr) -> Expr:
    """The new elements of a write, in the shape of its slice."""
    new: Expr = write.rule.new  # type: ignore[attr-defined]
    return new


def _chain(given: Expr, result: Expr) -> list[Expr]:
    """The writes between an input and a result, the last first; none if there are others."""
    if _is_in_registers(given):
        return []
    found, first = _writes_down_from(result)
    is_same = first is given and isinstance(given.rule, Stored) and given.rule.strides is None
    return found if is_same else []


def _after_loops(exprs: Sequence[Expr], outputs: Container[Expr]) -> list[list[Expr]]:
    """The chains of writes to results of loops that nothing else keeps, the last write first."""
    found: list[list[Expr]] = []
    inner: set[Expr] = set()
    for x in reversed(exprs):
        if x in inner or x in outputs or not isinstance(x.rule, SliceSelection):
            continue
        chain, first = _writes_down_from(x)
        inner.update(chain)
        if (
            isinstance(first.rule, CallResult)
            and first.operands[0].node.op.kind == "control"
            and not _is_in_registers(first)
            and not any(y in outputs for y in (first, *chain))
        ):
            found.append(chain)
    return found


def _writes_down_from(result: Expr) -> tuple[list[Expr], Expr]:
    """The writes that give a result, the last first, and the array that they begin with."""
    found = []
    while isinstance(result.rule, SliceSelection):
        found.append(result)
        result = result.operands[1]
    return found, result


def _is_in_registers(x: Expr) -> bool:
    size = size_of(x.shape)
    return type(size) is int and size <= thresholds.unrolled_elements


def _ancestors(x: Expr) -> set[Expr]:
    """All that an expression depends on."""
    found: set[Expr] = set()
    pending = [x]
    while pending:
        for y in pending.pop().operands:
            if y not in found:
                found.add(y)
                pending.append(y)
    return found
