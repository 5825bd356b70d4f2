"""Iteration spaces: which axes of a loop group are collapsed, the inner loop, the vector width.

Axes that can be traversed as one in every array that is read or written are collapsed.  The axis
along which most arrays are contiguous becomes the inner loop, which is vectorized.

Interiors: ranges of axes in which the conditions of selections have one result.

`x[1:-1] = v` as a loop over x chooses v or x in each step.  From 1 to n - 1 it is always v.

    interiors_of    such a range for each axis that has one
    always          whether a condition holds everywhere in such ranges
    is_at_least     whether an index is never below a bound, wherever it is
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

from ..ir.execution_engine import foreign
from ..ir.index_analysis import (
    ZERO,
    Affine,
    FlatIndex,
    Index,
    Length,
    counter,
    is_one,
    offset_of,
    size_of,
    strides_of,
)
from ..ir.llvm_types import part_of
from ..lowering.loop_ir import Condition, Expr, Reduce, ScalarConstant, memory_strides
from ..lowering.scatter_chains import SliceUpdate
from ..tuning import thresholds
from .fusion import LoopGroup, role_of, space_of


class Axis(NamedTuple):
    """A loop: its counter, its length, and whether its elements are reduced."""

    counter: int
    length: Length
    is_reduced: bool


@dataclass(frozen=True)
class Space:
    """The loops of a loop group.

    axes : from the outermost to the innermost, including the vectorized axis.
    index : the index expression of each axis of the loop group's space.
    vector : the position in `axes` of the vectorized axis; None if there is no axis.
    width : the number of vector lanes.
    strips : whether the vectorized axis is strip-mined, with the strips as the outermost loop: an
        array is read across it, and its cache lines are reused before they are evicted.
    register : the number of lanes that a vector register has.
    interior : for some counters the range in which all comparisons of the index have one result.
    """

    axes: tuple[Axis, ...]
    index: tuple[Affine, ...]
    vector: int | None
    width: int
    strips: bool = False
    register: int = 1
    interior: Mapping[int, tuple[int, int]] = field(default_factory=dict)

    @property
    def across(self) -> bool:
        """Whether the vectorized axis is reduced."""
        return self.vector is not None and self.axes[self.vector].is_reduced


class _SpaceFacts:
    """The accesses of roots, and their uses of the index itself."""

    def __init__(self, group: LoopGroup, rows: int) -> None:
        self._rows = rows
        self.offsets: list[Affine] = []
        self.pinned: set[int] = set()
        self.conditions: dict[Condition, None] = {}
        self.itemsizes: set[int] = set()
        for root in group.roots:
            self._look(root)

    def _look(self, root: Expr) -> None:
        here = tuple(counter(k) if not is_one(n) else ZERO for k, n in enumerate(space_of(root)))
        first = root.operands[0] if isinstance(root.rule, Reduce | SliceUpdate) else root
        if not isinstance(root.rule, Reduce):
            index = root.rule.place(here) if isinstance(root.rule, SliceUpdate) else here
            self.offsets.append(offset_of(index, strides_of(root.shape)))
        self.itemsizes.add(part_of(root.dtype).itemsize)
        if first is not root and first.is_root:
            self._read(first, here)
            return
        seen: set[Any] = set()
        pending: list[tuple[Expr, Index]] = [(first, here)]
        while pending:
            expr, index = pending.pop()
            if not isinstance(expr.rule, ScalarConstant):  # which has the dtype of its operand
                self._count(expr, index)
            if expr.rule.asks_index and not isinstance(index, FlatIndex):
                for form in index:
                    self._pin(form)
            for read in expr.reads(index):
                for condition in read.conditions:
                    self._pin(condition.form)
                    self.conditions[condition] = None
                if read.form is not None:
                    self.offsets.append(read.form)
                    self.itemsizes.add(part_of(read.operand.dtype).itemsize)
                    continue
                if read.index is None:
                    for form in (index.form,) if isinstance(index, FlatIndex) else index:
                        self._pin(form)
                    continue
                if read.operand.is_root:
                    self._read(read.operand, read.index)
                elif (read.operand, read.index) not in seen:
                    seen.add((read.operand, read.index))
                    pending.append((read.operand, read.index))

    def _read(self, expr: Expr, index: Index) -> None:
        self.offsets.append(offset_of(index, memory_strides(expr)))
        self._count(expr, index)

    def _count(self, expr: Expr, index: Index) -> None:
        """Record the size of an element; values of one per row are not vectorized."""
        forms = (index.form,) if isinstance(index, FlatIndex) else index
        if any(c >= self._rows for form in forms for c, _ in form.terms):
            self.itemsizes.add(part_of(expr.dtype).itemsize)

    def _pin(self, form: Affine) -> None:
        self.pinned.update(c for c, _ in form.terms)


def space_for(group: LoopGroup, register_bytes: int, rows: int = 0) -> Space:
    """The loops of a loop group.

    Parameters
    ----------
    register_bytes : int
        The size of the processor's vector registers; 0 for loops without vectors.
    rows : int
        The number of leading axes that the fused loop iterates over.
    """
    if all([is_one(n) for n in group.space[rows:]]):  # nothing to ask its accesses for
        forms = [
            counter(k) if k < rows and not is_one(n) else ZERO for k, n in enumerate(group.space)
        ]
        return Space((), tuple(forms), None, 1)
    facts = _SpaceFacts(group, rows)
    has_positions = any(
        isinstance(r.rule, Reduce) and r.rule.monoid.startswith("arg") for r in group.roots
    )
    axes, index = _collapsed(group, facts, rows)
    inner = _inner(axes, facts.offsets)
    width = _width(axes[inner].length, max(facts.itemsizes), group.weight, register_bytes)
    lanes = max(register_bytes // max(facts.itemsizes), 1)
    if has_positions:
        width = min(width, 8)
    vector = axes[inner]
    kept = [a for a in axes if not a.is_reduced and a is not vector]
    reduced = [a for a in axes if a.is_reduced and a is not vector]
    order = [*kept, *reduced, vector] if vector.is_reduced else [*kept, vector, *reduced]
    strips = not rows and not reduced and not vector.is_reduced and _crosses(axes, vector, facts)
    interior = (
        {}
        if rows or strips
        else interiors_of(
            {a.counter: a.length for a in order if not a.is_reduced}, facts.conditions, group.weight
        )
    )
    return Space(tuple(order), index, order.index(vector), width, strips, lanes, interior)


def _crosses(axes: Sequence[Axis], vector: Axis, facts: _SpaceFacts) -> bool:
    """Whether an array is contiguous along another axis than the vectorized one."""
    return any(
        form.factor(vector.counter) not in (0, 1)
        and any(is_one(form.factor(a.counter)) for a in axes if a is not vector)
        for form in facts.offsets
    )


def column_rows(group: LoopGroup) -> int:
    """The number of leading axes of a loop group that is better run row by row; else 0.

    That is a reduction over rows which are long: they are added to a row in the L1 cache, while
    each step down a column would touch another cache line.  A few rows that are in a cache are
    combined in registers, column by column.
    """
    rows = len(group.reduced or ())
    if not rows or rows == len(group.space) or role_of(group, rows) != "columns":
        return 0
    length = size_of(group.space[rows:])
    if is_one(group.space[0]) or (type(length) is int and length < thresholds.inner_loop_elements):
        return 0
    count = size_of(group.space[:rows])
    if type(count) is int and type(length) is int and count <= thresholds.row_block:
        itemsize = max(x.operands[0].dtype.itemsize for x in group.roots if x.operands)
        if count * length * itemsize <= thresholds.row_block_bytes:
            return 0
    space = space_for(group, 64)
    return 0 if space.vector is None or space.across else rows


def is_by_columns(group: LoopGroup) -> bool:
    """Whether a group that reduces its last axes is better vectorized along one that it keeps.

    A vector times a matrix is: the rows of the matrix lie one behind the other.
    """
    if not group.reduced or len(group.reduced) == len(group.space):
        return False
    if 0 in group.reduced:
        return False
    space = space_for(group, 64)
    if space.vector is None or space.across:
        return False
    length = space.axes[space.vector].length
    return type(length) is not int or length >= thresholds.inner_loop_elements


def _collapsed(
    group: LoopGroup, facts: _SpaceFacts, rows: int
) -> tuple[list[Axis], tuple[Affine, ...]]:
    reduced = group.reduced or ()
    space = group.space
    axes: list[Axis] = []
    forms: list[Affine] = [ZERO] * len(space)
    for k, n in enumerate(space):
        if is_one(n):
            continue
        if k < rows:
            forms[k] = counter(k)
            continue
        axis = Axis(k, n, k in reduced)
        if axes and _can_collapse(axes[-1], axis, facts):
            before = axes.pop()
            forms[before.counter] = ZERO
            axis = Axis(k, before.length * n, axis.is_reduced)
        axes.append(axis)
        forms[k] = counter(k)
    return axes, tuple(forms)


def _can_collapse(before: Axis, axis: Axis, facts: _SpaceFacts) -> bool:
    if before.is_reduced != axis.is_reduced or {before.counter, axis.counter} & facts.pinned:
        return False
    return all(
        form.factor(before.counter) == form.factor(axis.counter) * axis.length
        for form in facts.offsets
    )


def _inner(axes: Sequence[Axis], offsets: Sequence[Affine]) -> int:
    """The axis along which most arrays are contiguous."""

    def score(k: int) -> tuple[int, int, int]:
        axis = axes[k]
        unit = scattered = 0
        for form in dict.fromkeys(offsets):
            factor = form.factor(axis.counter)
            if is_one(factor):
                unit += 1
            elif not (type(factor) is int and factor == 0):
                scattered += 1
        is_long = 1 if type(axis.length) is not int or axis.length >= 4 else 0
        return is_long, unit - scattered, k

    return max(range(len(axes)), key=score)


def _width(length: Length, itemsize: int, weight: int, register_bytes: int) -> int:
    if not register_bytes:
        return 1
    width = register_bytes // itemsize
    processor = foreign()
    if processor is not None and not processor.widens:
        pass
    elif weight <= 12:
        width *= 4
    elif weight <= 30:
        width *= 2
    width = min(width, thresholds.vector_lanes)
    if type(length) is int:
        while width > 1 and width // 2 >= length:
            width //= 2
    return width


Range = tuple[int, int]


def interiors_of(
    axes: Mapping[int, Length], conditions: Iterable[Condition], weight: int
) -> dict[int, Range]:
    """The longest range of each axis in which all conditions have one result.

    Parameters
    ----------
    axes : mapping from int to Length
        The length of each axis, by its counter.
    conditions : iterable of Condition
    weight : int
        The work of one step, and so the size of its code.

    Returns
    -------
    dict
        Of axes that are longer than this range, which is more than half of them.

    Examples
    --------
    >>> from wengert._engine.backends.llvm.ir.index_analysis import counter
    >>> from wengert._engine.backends.llvm.lowering.loop_ir import Condition
    >>> from wengert._engine.backends.llvm.schedule.iteration_space import interiors_of
    >>> interiors_of({0: 5000}, [Condition(counter(0).plus(-1), 0, 4998)], weight=4)
    {0: (1, 4999)}
    """
    size = size_of(tuple(axes.values()))
    if type(size) is not int or size < thresholds.interior_elements:
        return {}
    if weight > thresholds.interior_work:
        return {}
    cuts: dict[int, set[int]] = {}
    for condition in conditions:
        for axis, place in _cuts(condition):
            cuts.setdefault(axis, set()).add(place)
    found: dict[int, Range] = {}
    for axis, places in cuts.items():
        if axis not in axes:
            continue
        n = axes[axis]
        ends = sorted({0, n, *[p for p in places if 0 < p < n]})
        low, high = max(pairwise(ends), key=lambda r: r[1] - r[0])
        if high - low < n and 2 * (high - low) > n:
            found[axis] = low, high
    return found


def _cuts(condition: Condition) -> list[tuple[int, int]]:
    """The counter of a condition, and where its result changes; nothing if that is not known."""
    form, low, high = condition
    if len(form.terms) != 1:
        return []
    ((axis, factor),) = form.terms
    if any(type(n) is not int for n in (form.offset, factor, low, high)):
        return []
    if factor > 0:
        return [(axis, -((form.offset - end) // factor)) for end in (low, high)]
    return [(axis, (form.offset - end) // -factor + 1) for end in (low, high)]


def always(condition: Condition, bounds: Mapping[int, Range]) -> bool | None:
    """Whether a condition holds for all counters within bounds, or for none; None if for some.

    Examples
    --------
    >>> from wengert._engine.backends.llvm.ir.index_analysis import counter
    >>> from wengert._engine.backends.llvm.lowering.loop_ir import Condition
    >>> from wengert._engine.backends.llvm.schedule.iteration_space import always
    >>> condition = Condition(counter(0).plus(-1), 0, 97)
    >>> [always(condition, {0: r}) for r in [(1, 98), (98, 100), (0, 98)]]
    [True, False, None]
    """
    form, low, high = condition
    least = most = form.offset
    if any(type(n) is not int for n in (least, low, high)):
        return None
    for axis, factor in form.terms:
        if axis not in bounds or type(factor) is not int:
            return None
        first, end = bounds[axis]
        ends = factor * first, factor * (end - 1)
        least, most = least + min(ends), most + max(ends)
    if low <= least and most < high:
        return True
    return False if most < low or least >= high else None


def is_at_least(form: Affine, low: Length) -> bool:
    """Whether an affine expression is provably never below a bound, as counters are not below 0."""
    numbers = [form.offset, low, *[f for _, f in form.terms]]
    if any(type(n) is not int for n in numbers):
        return False
    return form.offset >= low and all(f >= 0 for _, f in form.terms)
