"""Accumulators: the state of a reduction while its loop runs.

    SumAccumulator       floating point: blocks are summed lane by lane, and block sums are added
                         with compensation (T. J. Dekker, 1971; D. E. Knuth, TAOCP 4.2.2), so the
                         error does not grow with the length: at most that of a block of 8
    MonoidAccumulator    combined by one instruction: sums of integers, products, extremes
    ArgExtremum          the position of the first largest or smallest element
    ComplexSum           a complex sum: one of the real parts, one of the imaginary parts

Their state is in stack slots, which LLVM turns into registers.  Two of them with disjoint elements
are merged (threads of a graphics card that reduce together): `states` are the slots to exchange,
once all blocks are flushed, and `merge` takes the values of another one's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert._engine.core.types import Scalar

from ..ir.ir_builder import Section
from ..ir.llvm_types import F32, F64, I64, Dtype, in_register, of_width, part_of, suffix
from ..ir.scalar_language import Language
from ..ir.simd_value import ComplexLane, Lane

BLOCK = 8  # terms that are added without compensation


class MutableValue:
    """A mutable value, in a stack slot."""

    def __init__(self, language: Language, section: Section, dtype: Dtype, width: int) -> None:
        self.language, self.dtype, self.width = language, dtype, width
        self.kind = of_width(in_register(dtype), width)
        self.name = section.function.slot(self.kind)

    def get(self, section: Section) -> Lane:
        """Load the value."""
        return self.language.lane(
            section, f"load {self.kind}, ptr {self.name}", self.dtype, self.width
        )

    def put(self, section: Section, value: Scalar) -> None:
        """Store a value."""
        lane = self.language.widened(self.language.cast(value, self.dtype), self.width)
        section.write(f"store {self.kind} {lane.name}, ptr {self.name}")


class SumAccumulator:
    """A sum of floating-point numbers.

    Parameters
    ----------
    section : Section
        Where it is initialized to zero.
    blocked : bool
        Whether terms are summed in blocks.
    """

    def __init__(
        self, language: Language, section: Section, dtype: Dtype, width: int, blocked: bool
    ) -> None:
        self.language, self.dtype, self.width, self.blocked = language, dtype, width, blocked
        self._block = MutableValue(language, section, dtype, width)
        self._block.put(section, 0.0)
        if blocked:
            self._total = MutableValue(language, section, dtype, width)
            self._error = MutableValue(language, section, dtype, width)
            self._total.put(section, 0.0)
            self._error.put(section, 0.0)

    def step(self, section: Section, value: Scalar, mask: Lane | None) -> None:
        """Add a term; masked lanes are unchanged."""
        old = self._block.get(section)
        new = old + value
        self._block.put(
            section,
            new if mask is None else self.language.select(*_wide(self.language, mask, new, old)),
        )

    def step_product(
        self, section: Section, factors: Sequence[Scalar], is_strong: bool, mask: Lane | None
    ) -> None:
        """Add the product of two numbers, rounded once; a strong product by zero adds nothing."""
        x, y = factors
        old = self._block.get(section)
        new = self.language.fma(x, y, old)
        if is_strong:
            is_term = self.language.not_equal(x, 0)
            mask = is_term if mask is None else self.language.logical_and(mask, is_term)
        self._block.put(
            section,
            new if mask is None else self.language.select(*_wide(self.language, mask, new, old)),
        )

    def flush(self, section: Section) -> None:
        """Add the sum of a block to the total; the last block need not be."""
        if not self.blocked:
            return
        total, block = self._total.get(section), self._block.get(section)
        new = total + block
        part = new - total
        error = (total - (new - part)) + (block - part)
        self._error.put(section, self._error.get(section) + error)
        self._total.put(section, new)
        self._block.put(section, 0.0)

    @property
    def states(self) -> list[MutableValue]:
        """The slots of its state, with all blocks flushed."""
        return [self._total, self._error] if self.blocked else [self._block]

    def merge(self, section: Section, others: Sequence[Any]) -> None:
        """Add another sum, with its error."""
        if not self.blocked:
            self._block.put(section, self._block.get(section) + others[0])
            return
        self._block.put(section, others[0])
        self.flush(section)
        self._error.put(section, self._error.get(section) + others[1])

    def result(self, section: Section, across: bool) -> Any:
        """The sum, the block that was not flushed included; also over lanes if they are summed."""
        if not self.blocked:
            block = self._block.get(section)
            return horizontal(self.language, "fadd", block) if across else block
        if not across or self.width == 1:
            total, rest, error = self._parts(section)
            # If the sum is infinite, the error is NaN.
            found = total + self.language.where(self.language.isnan(error), rest, rest + error)
            return self.language.cast(found, self.dtype)
        total, rest, error = self._wide_parts(section)
        found = horizontal(self.language, "fadd", total + (rest + error))
        kept = MutableValue(self.language, section, found.dtype, 1)
        kept.put(section, found)
        with section.when(self.language.isnan(found).name) as rare:
            total, rest, _ = self._wide_parts(rare)
            kept.put(rare, horizontal(self.language, "fadd", total + rest))
        return self.language.cast(kept.get(section), self.dtype)

    def _parts(self, section: Section) -> list[Any]:
        """The total, the sum of the last block, and the error of the total."""
        return [slot.get(section) for slot in (self._total, self._block, self._error)]

    def _wide_parts(self, section: Section) -> list[Any]:
        """The same, for float32 in float64, so that adding lanes rounds no more."""
        parts = self._parts(section)
        return [self.language.cast(x, F64) for x in parts] if self.dtype == F32 else parts


def _wide(language: Language, mask: Lane, new: Lane, old: Lane) -> tuple[Lane, Lane, Lane]:
    return language.widened(mask, old.width), new, old


class ComplexSum:
    """A sum of complex numbers."""

    def __init__(
        self, language: Language, section: Section, dtype: Dtype, width: int, blocked: bool
    ) -> None:
        part = part_of(dtype)
        self.language, self.dtype = language, dtype
        self._parts = [SumAccumulator(language, section, part, width, blocked) for _ in range(2)]

    def step(self, section: Section, value: ComplexLane, mask: Lane | None) -> None:
        """Add a term."""
        self._parts[0].step(section, value.real, mask)
        self._parts[1].step(section, value.imag, mask)

    def flush(self, section: Section) -> None:
        """Add the sum of a block to the total."""
        for one in self._parts:
            one.flush(section)

    @property
    def states(self) -> list[MutableValue]:
        """The slots of its state, with all blocks flushed."""
        return [slot for one in self._parts for slot in one.states]

    def merge(self, section: Section, others: Sequence[Any]) -> None:
        """Add another sum."""
        half = len(others) // 2
        self._parts[0].merge(section, others[:half])
        self._parts[1].merge(section, others[half:])

    def result(self, section: Section, across: bool) -> Any:
        """The sum."""
        real, imag = [one.result(section, across) for one in self._parts]
        return ComplexLane(self.language, real, imag, self.dtype)


UFUNC = {"sum": "add", "prod": "multiply", "max": "maximum", "min": "minimum"}


class MonoidAccumulator:
    """Elements combined by one operation."""

    def __init__(
        self, language: Language, section: Section, monoid: str, dtype: Dtype, width: int
    ) -> None:
        self.language, self.monoid, self.dtype, self.width = language, monoid, dtype, width
        start = identity(monoid, dtype)
        part = part_of(dtype)
        self._slots = [MutableValue(language, section, part, width)]
        self._slots[0].put(section, start)
        if dtype.kind == "c":
            self._slots.append(MutableValue(language, section, part, width))
            self._slots[1].put(section, 0.0)

    def _get(self, section: Section) -> Any:
        lanes = [slot.get(section) for slot in self._slots]
        if len(lanes) == 1:
            return lanes[0]
        return ComplexLane(self.language, lanes[0], lanes[1], self.dtype)

    def step(self, section: Section, value: Scalar, mask: Lane | None) -> None:
        """Combine with one more element."""
        old = self._get(section)
        new = self.language.binary(UFUNC[self.monoid], value, old)
        if type(new) is ComplexLane:
            pairs = [(new.real, old.real), (new.imag, old.imag)]
        else:
            pairs = [(self.language.cast(new, self.dtype), old)]
        for slot, (one, before) in zip(self._slots, pairs, strict=True):
            slot.put(
                section,
                one
                if mask is None
                else self.language.select(*_wide(self.language, mask, one, before)),
            )

    def flush(self, section: Section) -> None:
        """Nothing to do: there are no blocks."""

    @property
    def states(self) -> list[MutableValue]:
        """The slots of its state."""
        return self._slots

    def merge(self, section: Section, others: Sequence[Any]) -> None:
        """Combine with another combination."""
        whole = others[0]
        if len(others) > 1:
            whole = ComplexLane(self.language, others[0], others[1], self.dtype)
        self.step(section, whole, None)

    def result(self, section: Section, across: bool) -> Any:
        """The combination of all elements."""
        found = self._get(section)
        if not across or self.width == 1:
            return found
        if type(found) is ComplexLane:
            total = _lane(found, 0)
            for k in range(1, self.width):
                total = total * _lane(found, k)
            return total
        return horizontal(self.language, _intrinsic(self.monoid, self.dtype), found)


def identity(monoid: str, dtype: Dtype) -> Any:
    """The identity element of a monoid."""
    if monoid in ("sum", "prod"):
        return 0 if monoid == "sum" else 1
    if dtype.kind == "b":
        return monoid == "min"
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return int(limits.min if monoid == "max" else limits.max)
    return -np.inf if monoid == "max" else np.inf


def _intrinsic(monoid: str, dtype: Dtype) -> str:
    if dtype.kind == "b":
        return {"sum": "or", "prod": "and", "max": "or", "min": "and"}[monoid]
    if dtype.kind == "f":
        return {"prod": "fmul", "max": "fmaximum", "min": "fminimum", "sum": "fadd"}[monoid]
    sign = "s" if dtype.kind == "i" else "u"
    return {"sum": "add", "prod": "mul", "max": f"{sign}max", "min": f"{sign}min"}[monoid]


def horizontal(language: Language, operation: str, x: Lane) -> Lane:
    """Combine all lanes into one."""
    if x.width <= 1:
        return x
    assert x.section is not None
    kind = in_register(x.dtype)
    identities = {"fadd": "-0.0", "fmul": "1.0"}
    first = f"{kind} {identities[operation]}, " if operation in identities else ""
    flags = "reassoc " if operation in identities else ""
    callee = language.module.declare(
        f"llvm.vector.reduce.{operation}{suffix(kind, x.width)}",
        kind,
        [*([kind] if first else []), x.kind],
    )
    return language.lane(
        x.section, f"call {flags}{kind} {callee}({first}{x.kind} {x.name})", x.dtype, 1
    )


def _lane(x: Any, k: int) -> Any:
    """One of the lanes."""
    if type(x) is ComplexLane:
        return ComplexLane(x.language, _lane(x.real, k), _lane(x.imag, k), x.dtype)
    if x.width <= 1:
        return x
    return x.language.lane(x.section, f"extractelement {x.kind} {x.name}, i64 {k}", x.dtype, 1)


class ArgExtremum:
    """The position of the first largest (smallest) element, or of the first NaN."""

    def __init__(
        self, language: Language, section: Section, monoid: str, dtype: Dtype, width: int
    ) -> None:
        self.language, self.monoid, self.dtype, self.width = language, monoid, dtype, width
        self._best = MutableValue(language, section, dtype, width)
        self._position = MutableValue(language, section, I64, width)
        self._position.put(section, -1)
        self._best.put(section, 0)

    def step(self, section: Section, value: tuple[Scalar, ...], mask: Lane | None) -> None:
        """Compare one more element, given as a pair of the element and its position."""
        x, position = value
        best, place = self._best.get(section), self._position.get(section)
        wins = self._beats(x, position, best, place)
        if mask is not None:
            wins = self.language.binary("logical_and", wins, mask)
        wins = self.language.widened(wins, self.width)
        self._best.put(section, self.language.where(wins, x, best))
        self._position.put(section, self.language.where(wins, position, place))

    def _beats(self, x: Scalar, position: Scalar, best: Scalar, place: Scalar) -> Any:
        s = self.language
        better = s.less(best, x) if self.monoid == "argmax" else s.less(x, best)
        equal = s.equal(x, best)
        if self.dtype.kind == "f":
            first_nan = s.logical_and(s.isnan(x), s.logical_not(s.isnan(best)))
            better = s.logical_or(better, first_nan)
            equal = s.logical_or(equal, s.logical_and(s.isnan(x), s.isnan(best)))
        earlier = s.logical_and(equal, s.less(position, place))
        return s.logical_or(s.less(place, 0), s.logical_or(better, earlier))

    def flush(self, section: Section) -> None:
        """Nothing to do: there are no blocks."""

    @property
    def states(self) -> list[MutableValue]:
        """The slots of its state."""
        return [self._best, self._position]

    def merge(self, section: Section, others: Sequence[Any]) -> None:
        """Compare with another extremum; one of no elements has a negative position."""
        exists = self.language.less_equal(0, others[1])
        self.step(section, tuple(others), exists)

    def result(self, section: Section, across: bool) -> Any:
        """The position."""
        best, place = self._best.get(section), self._position.get(section)
        if not across or self.width == 1:
            return place
        s = self.language
        x, position = _lane(best, 0), _lane(place, 0)
        for k in range(1, self.width):
            one, other = _lane(best, k), _lane(place, k)
            wins = s.logical_and(s.less_equal(0, other), self._beats(one, other, x, position))
            x, position = s.where(wins, one, x), s.where(wins, other, position)
        return position


def accumulator(
    language: Language, section: Section, monoid: str, dtype: Dtype, width: int, blocked: bool
) -> Any:
    """The accumulator of a reduction; `dtype` is that of the elements."""
    if monoid in ("argmax", "argmin"):
        return ArgExtremum(language, section, monoid, dtype, width)
    if monoid == "sum" and dtype.kind == "f":
        return SumAccumulator(language, section, dtype, width, blocked)
    if monoid == "sum" and dtype.kind == "c":
        return ComplexSum(language, section, dtype, width, blocked)
    return MonoidAccumulator(language, section, monoid, dtype, width)


__all__ = [
    "BLOCK",
    "UFUNC",
    "MonoidAccumulator",
    "ComplexSum",
    "ArgExtremum",
    "MutableValue",
    "SumAccumulator",
    "accumulator",
    "horizontal",
    "identity",
]
