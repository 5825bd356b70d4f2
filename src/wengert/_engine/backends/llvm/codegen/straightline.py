"""Small arrays in registers: the elements of fused loops are computed without loops.

For three numbers, storing and reloading them takes longer than the arithmetic.  So loops over a few
elements are unrolled completely; values that one loop passes to the next stay in registers, also
across branches.

    StraightlineCode    the function
    is_straight         whether a fused loop can be part of it
    unrolled_size       the elements and the work of a fused loop without loops
    BranchBlocks        the bodies of a conditional that can be part of it
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..ir.index_analysis import (
    ZERO,
    Affine,
    FlatIndex,
    Index,
    is_one,
    offset_of,
    size_of,
    strides_of,
)
from ..ir.ir_builder import Function, Section
from ..ir.llvm_types import BOOL, I64
from ..ir.memory_access import load, store
from ..ir.scalar_language import Language
from ..ir.simd_value import Lane
from ..lowering.gathers import Gather, OneHotRule
from ..lowering.loop_ir import (
    CallResult,
    Condition,
    Expr,
    IndexValue,
    Map,
    Reduce,
    ScalarConstant,
    SelectExpr,
    Stored,
    View,
)
from ..lowering.registry import specs_of
from ..lowering.scatter_chains import SliceSelection
from ..schedule.fusion import FusedLoops, roots_of, space_of
from ..schedule.integer_ranges import IntegerRange
from ..schedule.iteration_space import Space
from ..schedule.scheduling import Schedule, owner_of
from ..tuning import thresholds
from .element_access import index_of, is_element_store
from .elements import Elements
from .reductions import MutableValue, accumulator

_RULES = (
    Map,
    View,
    SelectExpr,
    SliceSelection,
    IndexValue,
    ScalarConstant,
    Stored,
    Reduce,
    CallResult,
    Gather,
    OneHotRule,
)


def is_straight(fused: FusedLoops) -> bool:
    """Whether a fused loop has few elements, and only rules that can be unrolled."""
    for root in roots_of(fused):
        space = space_of(root)
        if any(type(n) is not int for n in (*space, *root.shape)):
            return False
        count = int(np.prod(space))
        if count > (
            thresholds.unrolled_terms
            if isinstance(root.rule, Reduce)
            else thresholds.unrolled_elements
        ):
            return False
        if (
            root.weight > thresholds.expensive_element_work
            and count >= thresholds.expensive_elements
        ):
            return False
        if not _is_plain(root):
            return False
    return unrolled_size(fused)[1] <= thresholds.unrolled_work


def unrolled_size(fused: FusedLoops) -> tuple[int, int]:
    """The elements of the largest loop, and the work of all elements, of fused loops."""
    counts = [(int(np.prod(space_of(root))), root) for root in roots_of(fused)]
    return max(n for n, _ in counts), sum(n * (1 + root.weight) for n, root in counts)


class KnownIntegers(NamedTuple):
    """The ranges of integers, and the comparisons that are known."""

    ranges: dict[Any, IntegerRange]
    truths: dict[Any, bool]


class BranchBlocks:
    """The branches of a conditional, if all of them can be inlined as straight-line code.

    Attributes
    ----------
    plans : list of Schedule
    inner : dict from Expr to BranchBlocks
        Conditionals in the branches.
    read : set of int
        The operands that are read at run-time positions, so that they must be in memory.
    are_straight : bool
    """

    def __init__(self, step: Expr) -> None:
        self.plans = [Schedule(b) for b in step.node.params["branches"]]
        self.inner: dict[Expr, BranchBlocks] = {}
        self.read: set[int] = set()
        results = specs_of(step.node)
        small = all(s.dtype.kind != "c" and is_small(s.shape) for s in results)
        self.are_straight = small and all(map(self._is_straight, self.plans))

    def _is_straight(self, plan: Schedule) -> bool:
        if any(x.dtype.kind == "c" for x in plan.reachable):
            return False
        for stage in plan.stages:
            if isinstance(stage, FusedLoops):
                found = read_anywhere(plan, stage)
                if not is_straight(stage):
                    return False
            elif is_choice(stage):
                inner = self.inner[stage] = BranchBlocks(stage)
                found = inner.read_of(stage)
                if not inner.are_straight:
                    return False
            else:
                return False
            if not found <= set(plan.inputs):
                return False
            self.read.update(plan.inputs.index(x) for x in found)
        return True

    def read_of(self, step: Expr) -> set[Expr]:
        """The expressions that must be in memory for these branches."""
        return {owner_of(step.operands[k + 1]) for k in self.read}


def is_small(shape: Sequence[Any]) -> bool:
    """Whether there are few elements."""
    return (
        all(type(n) is int for n in shape) and int(np.prod(shape)) <= thresholds.unrolled_elements
    )


def read_anywhere(plan: Schedule, fused: FusedLoops) -> set[Expr]:
    """The expressions read at positions unknown at compile time, except constants."""
    accesses = [a for root in roots_of(fused) for a in plan.accesses(root) if a.index is None]
    return {a.expr for a in accesses if getattr(a.expr.rule, "array", None) is None}


def is_choice(stage: FusedLoops | Expr) -> bool:
    """Whether a stage is a conditional (cond or switch)."""
    if isinstance(stage, FusedLoops):
        return False
    return stage.node.op.kind == "control" and stage.node.op.name in ("cond", "switch")


def _is_plain(root: Expr) -> bool:
    seen = {root}
    pending = [root]
    while pending:
        x = pending.pop()
        if type(x.rule) not in _RULES:
            return False
        if x is not root and x.is_root:  # in memory, of any size
            continue
        if any(type(n) is not int for n in x.shape):
            return False
        if isinstance(x.rule, SelectExpr) and not _is_decided(x):
            return False
        for y in x.operands:
            if y not in seen:
                seen.add(y)
                pending.append(y)
    return True


def _is_decided(x: Expr) -> bool:
    """Whether the operand of a selection is known at each index: ends of slices may be computed."""
    numbers: list[Any] = []
    for read in x.reads((ZERO,) * len(x.shape)):
        index = read.index or ()
        numbers += [
            form.offset for form in ((index.form,) if isinstance(index, FlatIndex) else index)
        ]
        for condition in read.conditions:
            numbers += [condition.low, condition.high, condition.form.offset]
    return all(type(n) is int for n in numbers)


class StraightlineCode(Elements):
    """Fused loops, one after the other, as a function of a table.

    Parameters
    ----------
    stages : sequence of FusedLoops, or of Expr
        Fused loops, conditionals and stores of numbers (codegen/element_access.py).
    parts : mapping from Expr to list of Expr
        The results of each conditional and store.
    stored : container of Expr
        Expressions that must be in memory immediately.
    last : collection of Expr
        Expressions that must be in memory once everything has been read.
    known : KnownIntegers
    """

    def __init__(
        self,
        language: Language,
        stages: Sequence[FusedLoops | Expr],
        choices: Mapping[Expr, BranchBlocks],
        parts: Mapping[Expr, Sequence[Expr]],
        stored: Any,
        last: Collection[Expr],
        known: KnownIntegers,
    ) -> None:
        function = Function(
            language.module, "nest", [("ptr", "table")], "void", "alwaysinline nounwind #1"
        )
        groups = [s for w in stages if isinstance(w, FusedLoops) for s in w.groups]
        super().__init__(language, function, FusedLoops(groups), stored)
        self.space = Space((), (), None, 1)
        self.ranges, self._truths = known
        self._last = last
        self._delayed: list[tuple[Expr, Any, Index]] = []
        self._aliases: dict[Expr, Expr] = {}
        self._after: dict[Expr, Section] = {}  # for each array stored to, where it can be read
        # Values known from the beginning are computed at the head, those that depend on a branch
        # or a store after it.
        in_order = choices or any(map(is_element_store, stages))
        self._code = function.body.inside() if in_order else self._head
        self._run(stages, choices, parts)
        for root, value, index in self._delayed:
            self._put(self._code, root, value, index)
        self._free_rows()
        self.function.body.write("ret void")

    def _run(
        self,
        stages: Sequence[FusedLoops | Expr],
        choices: Mapping[Expr, BranchBlocks],
        parts: Mapping[Expr, Sequence[Expr]],
    ) -> None:
        for stage in stages:
            if not isinstance(stage, FusedLoops):
                if stage in choices:
                    self._choose(stage, choices[stage], parts[stage])
                else:
                    self._store_element(stage, parts[stage][0])
                continue
            for root in roots_of(stage):
                if isinstance(root.rule, Reduce):
                    self._combine(root)
                else:
                    for index in _indices(root.shape):
                        self._set(root, root.rule.value(self, root, index, None), index)

    def _choose(self, step: Expr, branches: BranchBlocks, parts: Sequence[Expr]) -> None:
        """Compute the results of the selected branch."""
        which, *operands = step.operands
        number = self.read(which, (), None)
        section, function = self._code, self.function
        slots = [
            [MutableValue(self.language, section, p.dtype, 1) for _ in _indices(p.shape)]
            for p in parts
        ]
        n = function.number()
        self._branch(section, number, n, len(branches.plans))
        for k, plan in enumerate(branches.plans):
            section.label(f"branch{n}.{k}")
            self._code = inner = section.inside()
            known = dict(self._memo), dict(self._numbers)
            self._memo = self._moved(self._memo, section)
            self._numbers = self._moved(self._numbers, section)
            for slot, values in zip(slots, self._inlined(plan, branches, operands), strict=True):
                for one, value in zip(slot, values, strict=True):
                    one.put(self._code, value)
            self._memo, self._numbers = known
            inner.write(f"br label %chosen{n}")
        section.label(f"chosen{n}")
        self._code = section
        for part, slot in zip(parts, slots, strict=True):
            for one, index in zip(slot, _indices(part.shape), strict=True):
                self._set(part, one.get(section), index)

    def _branch(self, section: Section, number: Any, n: int, count: int) -> None:
        """Jump to the branch with this number, clamped to those that exist."""
        if number.dtype.kind == "b":
            name = self.language.widened(number, 1).name
            section.write(f"br i1 {name}, label %branch{n}.1, label %branch{n}.0")
            return
        for k in range(count - 1):
            bound = self.language.constant(k, number.dtype)
            selected = self.language.compare("less_equal", number, bound)
            after = f"branch{n}.{k + 1}" if k == count - 2 else f"other{n}.{k + 1}"
            section.write(f"br i1 {selected.name}, label %branch{n}.{k}, label %{after}")
            if k < count - 2:
                section.label(after)

    def _inlined(
        self, plan: Schedule, branches: BranchBlocks, operands: Sequence[Expr]
    ) -> list[list[Any]]:
        """The elements of each result of a branch."""
        for expr, x in zip(plan.inputs, operands, strict=True):
            self._aliases[expr] = owner_of(x)
            if is_small(expr.shape):
                for index in _indices(expr.shape):
                    self._memo[expr, index, None] = self._in_section(self.read(x, index, None))
        parts: dict[Expr, list[Expr]] = {s: [] for s in branches.inner}
        for expr in plan.reachable:
            if isinstance(expr.rule, CallResult) and expr.operands[0] in parts:
                parts[expr.operands[0]].append(expr)
        for step, results in parts.items():
            known = {p.rule.position: p for p in results}  # type: ignore[attr-defined]
            specs = specs_of(step.node)
            parts[step] = [
                known.get(k) or Expr(CallResult(k), (step,), s.shape, s.dtype, step.node)
                for k, s in enumerate(specs)
            ]
        self._run(plan.stages, branches.inner, parts)
        return [
            [self._memo[out, index, None] for index in _indices(out.shape)] for out in plan.outputs
        ]

    def _entry(self, key: Any) -> Lane:
        """The entry of the table; for an operand of a branch, that of the outer expression."""
        while key in self._aliases:
            key = self._aliases[key]
        found = super()._entry(key)
        if key in self._after:
            return Lane(self.language, self._after[key], found.name, I64, 1)
        return found

    def _store_element(self, step: Expr, result: Expr) -> None:
        """Store a number, or add it to an element; what reads the array later comes after it."""
        x, v, *arrays = step.operands
        value = self.language.cast(self.read(v, (), None), result.dtype)
        offset = self.lane_of(ZERO)
        for part, n, stride in zip(index_of(step), x.shape, strides_of(x.shape), strict=True):
            place = self.lane_of(Affine(part.start, ()))
            if part.operand is not None:
                index = arrays[part.operand]
                place = self.position(self.read(index, (), None), n, None, index)
            offset = offset + place * self.lane_of(Affine(stride, ()))
        section, source, target = self._code, self._entry(x), self._entry(result)
        is_apart = section.value(f"icmp ne ptr {source.name}, {target.name}")
        with section.when(is_apart) as inner:
            size = self.lane_of(Affine(size_of(x.shape) * x.dtype.itemsize, ()))
            inner.copy_bytes(target.name, source.name, size.name)
        address = self._address(section, target, offset, result.dtype)
        if step.node.op.name == "scatter_add":
            before = load(self.language, section, address, result.dtype, 1, None)
            value = self.language.cast(before + value, result.dtype)
        store(self.language, section, address, value, 1, None)
        self._after[result] = self.function.body.inside()
        self._code = self.function.body.inside()

    def _in_section(self, lane: Any) -> Any:
        """A value as if computed in this section, so that its uses are not emitted before it."""
        if lane.section is None:
            return lane
        return Lane(self.language, self._code, lane.name, lane.dtype, lane.width)

    def _moved(self, lanes: dict[Any, Any], section: Section) -> dict[Any, Any]:
        """Values of the code around a branch: what depends on them is computed in the branch."""
        return {k: self._in_section(v) if _is_in(v, section) else v for k, v in lanes.items()}

    def _set(self, root: Expr, value: Lane, index: Index) -> None:
        value = self.language.cast(value, root.dtype)
        self._memo[root, index, None] = value
        if root in self._last:
            self._delayed.append((root, value, index))
        elif root in self._stored:
            self._put(self._code, root, value, index)

    def _combine(self, root: Expr) -> None:
        (x,) = root.operands
        rule: Any = root.rule
        kept = [1 if k in rule.axes else n for k, n in enumerate(x.shape)]
        inner = [n if k in rule.axes else 1 for k, n in enumerate(x.shape)]
        lengths = [x.shape[k] for k in rule.axes]
        for index in _indices(kept):
            one = accumulator(self.language, self._code, rule.monoid, x.dtype, 1, False)
            for offset in _indices(inner):
                element = tuple(
                    a if k not in rule.axes else b
                    for k, (a, b) in enumerate(zip(index, offset, strict=True))
                )
                value = self.read(x, element, None)
                if rule.monoid.startswith("arg"):
                    along = tuple(element[k] for k in rule.axes)
                    value = value, self.lane_of(offset_of(along, strides_of(lengths)))
                one.step(self._code, value, None)
            one.flush(self._code)
            self._set(root, one.result(self._code, False), index)

    def read(self, expr: Expr, index: Index, mask: Any) -> Any:
        """The element of an expression at a constant index."""
        if expr in self._truths:
            return self.language.constant(self._truths[expr], BOOL)
        if isinstance(index, FlatIndex):
            element = np.unravel_index(int(index.form.offset), expr.shape)
            index = tuple([Affine(int(k), ()) for k in element])
        return super().read(expr, index, mask)

    def all_of(self, conditions: Sequence[Condition]) -> Any:
        """Whether all conditions hold: None if they do, else False."""
        held = all(c.low <= c.form.offset < c.high for c in conditions)
        return None if held else False


def _is_in(value: Any, section: Section) -> bool:
    return isinstance(value, Lane) and value.section is section


def _indices(shape: Sequence[Any]) -> list[tuple[Affine, ...]]:
    ones = [is_one(n) for n in shape]
    return [
        tuple([ZERO if one else Affine(k, ()) for k, one in zip(element, ones, strict=True)])
        for element in np.ndindex(*shape)
    ]
