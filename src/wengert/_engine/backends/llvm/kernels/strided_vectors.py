"""Strided vectors: contiguous or strided elements as SIMD vectors.

    Vectors    loads and stores of a whole vector or a part of it; sums; loops along a row

Elements with stride s are shuffled out of s whole vectors.  Memory beyond the last element is never
accessed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..ir import execution_engine, simd_value
from ..ir.ir_builder import Name, Section
from ..ir.llvm_types import Dtype, in_memory, of_width
from ..tuning import thresholds
from .kernel_call import KernelCall

_UNKNOWN_LENGTH, _MIN_VECTOR_BYTES = 1 << 30, 16  # elements; bytes of a vector
STRIDES = 4  # the largest stride for which elements are shuffled out of whole vectors


class Vectors:
    """Vectors of a dtype.

    Parameters
    ----------
    dtype : numpy.dtype
        float32 or float64.
    length : int, optional
        The length of the rows; for short rows the vectors are narrower.
    """

    def __init__(self, call: KernelCall, dtype: Dtype, length: int = _UNKNOWN_LENGTH) -> None:
        self.module, self.dtype = call.module, dtype
        self.width = execution_engine.vector_bytes() // dtype.itemsize
        while self.width >= 2 * length and self.width * dtype.itemsize > _MIN_VECTOR_BYTES:
            self.width //= 2
        self.scalar = in_memory(dtype)
        self.kind = of_width(self.scalar, self.width)
        self._suffix = f"v{self.width}f{8 * dtype.itemsize}"

    def _mask(self, lanes: Sequence[bool]) -> tuple[Name, Name]:
        """The type of a vector, and its mask."""
        mask = ", ".join(f"i1 {str(lane).lower()}" for lane in lanes)
        return of_width(self.scalar, len(lanes)), f"<{mask}>"

    def _read(self, s: Section, pointer: Name, lanes: Sequence[bool]) -> Name:
        kind, mask = self._mask(lanes)
        align = self.dtype.itemsize
        if all(lanes):
            return s.value(f"load {kind}, ptr {pointer}, align {align}")
        return simd_value.masked_load(self.module, s, self.scalar, len(lanes), pointer, align, mask)

    def _write(self, s: Section, pointer: Name, value: Name, lanes: Sequence[bool]) -> None:
        kind, mask = self._mask(lanes)
        align = self.dtype.itemsize
        if all(lanes):
            s.write(f"store {kind} {value}, ptr {pointer}, align {align}")
            return
        simd_value.masked_store(
            self.module, s, self.scalar, len(lanes), value, pointer, align, mask
        )

    def load(self, s: Section, pointer: Name, count: int) -> Name:
        """Load `count` elements; 0 in the rest of the vector."""
        return self._read(s, pointer, [k < count for k in range(self.width)])

    def store(self, s: Section, pointer: Name, value: Name, count: int) -> None:
        """Store the first `count` elements of a vector."""
        self._write(s, pointer, value, [k < count for k in range(self.width)])

    def _strided_mask(self, step: int, count: int) -> list[bool]:
        """The mask of `count` elements with stride `step` in contiguous memory."""
        return [k <= (count - 1) * step for k in range(self.width * step)]

    def load_strided(self, s: Section, pointer: Name, step: int, count: int) -> Name:
        """Load `count` elements with stride `step`; 0 in the rest of the vector."""
        if step == 1:
            return self.load(s, pointer, count)
        wide = of_width(self.scalar, self.width * step)
        name = self._read(s, pointer, self._strided_mask(step, count))
        lanes = ", ".join(f"i32 {k * step}" for k in range(self.width))
        return s.value(
            f"shufflevector {wide} {name}, {wide} poison, {of_width('i32', self.width)} <{lanes}>"
        )

    def add_strided(self, s: Section, pointer: Name, step: int, value: Name, count: int) -> None:
        """Add the lanes of a vector to elements with stride `step`."""
        if step == 1:
            total = s.value(f"fadd {self.kind} {self.load(s, pointer, count)}, {value}")
            self.store(s, pointer, total, count)
            return
        size = self.width * step
        wide, mask = of_width(self.scalar, size), self._strided_mask(step, count)
        lanes = ", ".join(
            f"i32 {k // step if k % step == 0 and k // step < count else self.width}"
            for k in range(size)
        )
        broadcast = s.value(
            f"shufflevector {self.kind} {value}, {self.kind} zeroinitializer, "
            f"{of_width('i32', size)} <{lanes}>"
        )
        total = s.value(f"fadd {wide} {self._read(s, pointer, mask)}, {broadcast}")
        self._write(s, pointer, total, mask)

    def load_windows(
        self, s: Section, pointer: Name, step: int, window: int, count: int
    ) -> list[Name]:
        """Load windows that do not overlap: a vector of their first elements, of second ones ..."""
        if step == 1:
            return [self.load(s, pointer, count)]
        size = self.width * step
        last = (count - 1) * step + window - 1
        wide = of_width(self.scalar, size)
        name = self._read(s, pointer, [k <= last for k in range(size)])
        vectors = []
        for j in range(window):
            lanes = ", ".join(f"i32 {k * step + j}" for k in range(self.width))
            kind = of_width("i32", self.width)
            vectors.append(s.value(f"shufflevector {wide} {name}, {wide} poison, {kind} <{lanes}>"))
        return vectors

    def store_windows(
        self, s: Section, pointer: Name, step: int, values: Sequence[Name], count: int, add: bool
    ) -> None:
        """Store, or add, windows that do not overlap, given by vectors as in `load_windows`."""
        size, width = self.width * step, self.width
        kind = of_width("i32", size)
        first, second = values[0], values[min(1, len(values) - 1)]
        lanes = ", ".join(f"i32 {k // step + width * (k % step == 1)}" for k in range(size))
        wide = of_width(self.scalar, size)
        combined = s.value(
            f"shufflevector {self.kind} {first}, {self.kind} {second}, {kind} <{lanes}>"
        )
        for j, value in enumerate(values[2:], 2):
            lanes = ", ".join(f"i32 {k // step}" for k in range(size))
            widened = s.value(
                f"shufflevector {self.kind} {value}, {self.kind} poison, {kind} <{lanes}>"
            )
            lanes = ", ".join(f"i32 {k + size * (k % step == j)}" for k in range(size))
            combined = s.value(
                f"shufflevector {wide} {combined}, {wide} {widened}, {kind} <{lanes}>"
            )
        mask = [k % step < len(values) and k // step < count for k in range(size)]
        if add:
            combined = s.value(f"fadd {wide} {self._read(s, pointer, mask)}, {combined}")
        self._write(s, pointer, combined, mask)

    def broadcast(self, s: Section, pointer: Name) -> Name:
        """Load one element into all lanes."""
        element = s.value(f"load {self.scalar}, ptr {pointer}")
        first = s.value(f"insertelement {self.kind} poison, {self.scalar} {element}, i64 0")
        zeros = of_width("i32", self.width)
        return s.value(
            f"shufflevector {self.kind} {first}, {self.kind} poison, {zeros} zeroinitializer"
        )

    def fma(self, s: Section, x: Name, y: Name, z: Name) -> Name:
        """x * y + z, rounded once."""
        kind = self.kind
        callee = self.module.declare(f"llvm.fma.{self._suffix}", kind, [kind] * 3)
        return s.value(f"call {kind} {callee}({kind} {x}, {kind} {y}, {kind} {z})")

    def total(self, s: Section, value: Name) -> Name:
        """The sum of the lanes, added pairwise."""
        callee = self.module.declare(
            f"llvm.vector.reduce.fadd.{self._suffix}", self.scalar, [self.scalar, self.kind]
        )
        return s.value(
            f"call reassoc {self.scalar} {callee}({self.scalar} 0.0, {self.kind} {value})"
        )

    def along(
        self, s: Section, length: int, write: Callable[[Section, Name, int], None], weight: int = 1
    ) -> None:
        """Call ``write(section, first, count)`` for each vector of a row, unrolled or in a loop.

        `weight` is the amount of code that one call emits; a lot of code is not unrolled.
        """
        full, rest = divmod(length, self.width)
        if full <= 1 or (
            full <= thresholds.unrolled_row_vectors
            and full * weight <= thresholds.unrolled_row_code
        ):
            for first in range(0, length, self.width):
                write(s, str(first), min(self.width, length - first))
            return
        stop = str(full * self.width)
        with s.loop("0", stop, str(self.width)) as (t, k):
            write(t, k, self.width)
        if rest:
            write(s, stop, rest)
