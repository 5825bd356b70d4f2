"""Positions of elements: checks, and stores of single numbers in straight-line code.

A position that is known to be in bounds (schedule/integer_ranges.py) is not checked.

    PositionChecks    the part of `Elements` (elements.py) that checks positions, and fails

`A[i, j] = v` in a loop is a kernel call otherwise (kernels/scatter.py), which reads its index and
its value from memory; here they are in registers, and positions that were checked for a read are
not checked again.

    is_element_store    whether a stage can be part of straight-line code (codegen/straightline.py)
    index_of            the index at which one stores
    is_held             whether an array is in memory where straight-line code reads it
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from ..ir.index_analysis import AxisIndex, Length, chosen
from ..ir.ir_builder import Function, Section
from ..ir.llvm_types import BOOL, I64
from ..ir.scalar_language import Language
from ..ir.simd_value import Lane
from ..kernels import is_served
from ..lowering.loop_ir import CallResult, Expr, OpaqueCall, Stored
from ..schedule.fusion import FusedLoops
from ..schedule.integer_ranges import ANY, IntegerRange, is_inside, is_natural


class PositionChecks:
    """Positions of elements, which the function checks.

    Attributes
    ----------
    ranges : mapping from Expr to IntegerRange
        The ranges of integers.
    may_fail : bool
        Whether the function can set a status other than 0.
    """

    language: Language
    function: Function
    ranges: Mapping[Any, IntegerRange] = MappingProxyType({})
    _head: Section
    _mask: Lane | None
    _memo: dict[Any, Any]
    _scratch: list[str]

    def __init__(self) -> None:
        self.may_fail = False
        self._exits: list[tuple[Section, int | None]] = []

    def both(self, one: Lane | None, two: Lane | None) -> Lane | None:
        """The conjunction of two masks."""
        raise NotImplementedError

    def _number(self, length: Length) -> Any:
        """A length: an int, or a lane computed before the loops."""
        raise NotImplementedError

    def position(self, lane: Any, length: Length, mask: Lane | None, of: Expr | None = None) -> Any:
        """Integers as positions of an axis: negative ones count from its end; others fail.

        Parameters
        ----------
        of : Expr, optional
            The array that has the integers.
        """
        language = self.language
        lane = language.cast(lane, I64)
        known = self.ranges.get(of, ANY)
        if is_inside(known, length):
            return lane
        n = language.cast(self._number(length), I64)
        active = mask if lane.width <= 1 else self.both(mask, self._mask)
        key = "position", lane.name, n.name, None if active is None else active.name
        found = self._memo.get(key)
        if found is None:
            moved = lane
            if not is_natural(known):
                negative = language.compare("less", lane, language.constant(0, I64))
                moved = language.select(negative, language.emit("add", I64, lane, n), lane)
            outside = language.emit("icmp uge", BOOL, moved, n)
            if active is not None:
                outside = language.emit("and", BOOL, outside, active)
            section = outside.section
            assert section is not None
            self._leave_if(section, section.any_lane(outside.name, outside.width))
            # In the section of the check, so that its uses come after the check.
            found = self._memo[key] = Lane(language, section, moved.name, I64, moved.width)
        return found

    def _leave_if(self, section: Section, condition: str) -> None:
        """Return early, without a result, if a condition holds."""
        n = self.function.number()
        section.write(f"br i1 {condition}, label %outside{n}, label %inside{n}")
        section.label(f"outside{n}")
        self.fail(section)
        # Memory that is allocated later must not be freed here.
        known = len(self._scratch) if section is self._head else None
        self._exits.append((section.inside(), known))
        section.write("ret void")
        section.label(f"inside{n}")

    def refuse(self, lanes: Lane, mask: Lane | None) -> None:
        """Return early if a mask is true in any lane; the interpreter then raises the error."""
        active = mask if lanes.width <= 1 else self.both(mask, self._mask)
        if active is not None:
            lanes = self.language.emit("and", BOOL, lanes, active)
        assert lanes.section is not None
        self._leave_if(lanes.section, lanes.section.any_lane(lanes.name, lanes.width))

    def fail(self, section: Section, status: int = 1) -> None:
        """Set the status to failed."""
        self.may_fail = True
        section.write(f"store i64 {status}, ptr %table")


# ---- stores of single numbers --------------------------------------------------------------------


_STORES = ("setitem", "scatter_add")


def is_element_store(stage: FusedLoops | Expr) -> bool:
    """Whether a stage stores a number in an array in C order, at an index of numbers."""
    if not isinstance(stage, Expr) or not isinstance(stage.rule, OpaqueCall):
        return False
    node = stage.node
    if node.op.name not in _STORES or stage.rule.options or not is_served(node):
        return False
    x, v, *arrays = stage.operands
    if v.shape or any(a.shape for a in arrays) or "c" in (x.dtype.kind, v.dtype.kind):
        return False
    strided = isinstance(x.rule, Stored) and x.rule.strides is not None
    return is_held(x) and not strided and all(part.axis is None for part in index_of(stage))


def index_of(step: Expr) -> tuple[AxisIndex, ...]:
    """The index along each axis of the array that a number is stored in."""
    x, _, *arrays = step.operands
    found = chosen(step.node.params["index"], x.shape, [a.shape for a in arrays])
    assert found is not None  # the kernel serves it
    return found.parts


def is_held(x: Expr) -> bool:
    """Whether an array is in memory wherever straight-line code reads it.

    It is an input, or the result of a call before the code, or of a store in it, which its reads
    come after.
    """
    if isinstance(x.rule, CallResult):
        call = x.operands[0]
        return call.node.op.kind != "control" or bool(call.node.params.get("carried"))
    return isinstance(x.rule, Stored)
