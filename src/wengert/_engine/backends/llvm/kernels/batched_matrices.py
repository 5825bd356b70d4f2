"""Batches of small matrices, one matrix per SIMD lane.

    Block      the matrices of each operand and result that are computed at a time
    blocks     loops over the leading axes of a result, in blocks

A lane holds the same element of another matrix, so formulas without branches compute many matrices
at once.  The elements of one matrix are neighbors in memory, those of a register are not: they are
loaded one by one and inserted, which takes less time than LLVM's gathers.

The last block overlaps the one before if the batch is not a multiple of the width, so some matrices
are computed twice.  A batch smaller than a block is computed one matrix at a time.  What an operand
has only one of is read before the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from math import prod
from typing import Any

from wengert._engine.core.symbolic.dim import Length, bounds
from wengert._engine.core.types import Scalar

from ..ir import execution_engine
from ..ir.ir_builder import Name, Section
from ..ir.llvm_types import BOOL, Dtype, in_memory, of_width
from ..ir.simd_value import Lane
from ..tuning import thresholds
from .kernel_call import ArrayPointer, KernelCall
from .loop_helpers import offset

_UNKNOWN_LENGTH = 1 << 40  # assumed for an unknown length


class Block:
    """The matrices of a block, one per lane.

    Parameters
    ----------
    section : Section
        The section in which elements are read and written.
    width : int
        The number of matrices.
    bases : list of (Section, Name)
        The address of the first matrix of each array, and the section in which it is known.
    arrays : list of Array
        The last axes of each array: their strides.
    steps : list of Length
        The distance between matrices of each array; 0 if all use the same matrix.
    """

    def __init__(
        self,
        call: KernelCall,
        section: Section,
        width: int,
        bases: Sequence[tuple[Section, Name]],
        arrays: Sequence[ArrayPointer],
        steps: Sequence[Length],
    ) -> None:
        self.call, self.section, self.width = call, section, width
        self._bases, self._arrays, self._steps = bases, arrays, steps

    def read(self, k: int, *index: int) -> Lane:
        """An element of the matrices of array k."""
        return self.element(k, self.section, index)

    def axes(self, k: int) -> int:
        """The number of axes of a matrix of array k."""
        return len(self._arrays[k].shape)

    def element(self, k: int, section: Section, index: Sequence[int | Name]) -> Lane:
        """An element of the matrices of array k, read in a section.

        Elements with constant indices of a matrix used by all are read before the loop.
        """
        if all(str(i).isdigit() for i in index) and self._is_common(k):
            section = self._bases[k][0]
        language, array = self.call.language, self._arrays[k]
        kind = in_memory(array.dtype)
        places = self._places(k, section, index)
        name = section.value(f"load {kind}, ptr {places[0]}")
        width = len(places)
        whole = of_width(kind, width)
        if width > 1:
            for lane, place in enumerate(places):
                one = name if lane == 0 else section.value(f"load {kind}, ptr {place}")
                before = "poison" if lane == 0 else name
                name = section.value(f"insertelement {whole} {before}, {kind} {one}, i64 {lane}")
        if array.dtype == BOOL:
            name = section.value(f"trunc {whole} {name} to {of_width('i1', width)}")
        return Lane(language, section, name, array.dtype, width)

    def write(self, k: int, value: Any, *index: int) -> None:
        """Store an element of the matrices of array k."""
        self.set_element(k, self.section, value, index)

    def set_element(
        self, k: int, section: Section, value: Scalar, index: Sequence[int | Name]
    ) -> None:
        """Store an element of the matrices of array k in a section; the index may be computed."""
        language, dtype = self.call.language, self._arrays[k].dtype
        value = language.widened(language.cast(value, dtype), self.width)
        for lane, place in enumerate(self._places(k, section, index)):
            name = value.name
            if self.width > 1:
                name = section.value(f"extractelement {value.kind} {name}, i64 {lane}")
            section.write(f"store {in_memory(dtype)} {name}, ptr {place}")

    def fail_if(self, flag: Lane, section: Section | None = None) -> None:
        """Fail if a flag is true in any lane."""
        s = section or self.section
        self.call.fail_if(self.any_of(s, flag), 1, s)

    def any_of(self, s: Section, flag: Lane) -> Name:
        """Whether a flag is true in any lane, an i1."""
        if flag.width <= 1:
            return flag.name
        kind = f"<{flag.width} x i1>"
        callee = self.call.module.declare(f"llvm.vector.reduce.or.v{flag.width}i1", "i1", [kind])
        return s.value(f"call i1 {callee}({kind} {flag.name})")

    def _is_common(self, k: int) -> bool:
        """Whether all use the same matrix of array k."""
        step = self._steps[k]
        return type(step) is int and step == 0

    def _places(self, k: int, section: Section, index: Sequence[int | Name]) -> list[Name]:
        base = self._bases[k][1]
        array, step = self._arrays[k], self._steps[k]
        near = "0"
        for i, stride in zip(index, array.strides, strict=True):
            near = section.plus(near, section.times(str(i), self.call.number(stride)))
        found = []
        for lane in range(1 if self._is_common(k) else self.width):
            far = section.times(str(lane), self.call.number(step))
            found.append(offset(section, base, section.plus(far, near), array.dtype))
        return found


def blocks(
    call: KernelCall,
    given: Sequence[tuple[ArrayPointer, int]],
    dtype: Dtype,
    write: Callable[[Block], None],
) -> None:
    """Loops over all matrices of a result.

    Parameters
    ----------
    given : sequence of (Array, int)
        Operands and results, and the number of axes of a matrix of each; the last one has all
        leading axes, to which those of the others are broadcast.
    dtype : numpy.dtype
        The dtype of the computation, whose size determines the number of matrices at a time.
    write : callable
        Emits the work of a `Block`.
    """
    result, core = given[-1]
    axes = _axes(result.shape[: len(result.shape) - core], given)
    arrays = [
        a._replace(shape=a.shape[len(a.shape) - c :], strides=a.strides[len(a.strides) - c :])
        for a, c in given
    ]
    lanes = execution_engine.vector_bytes() // dtype.itemsize
    grain = _grain(arrays)
    if len(axes) == 1 and _size(axes[0][0]) >= 2 * grain:

        def part(inner: KernelCall, start: Name, stop: Name) -> None:
            here = [(inner.section, a.pointer) for a in arrays]
            _along(inner, inner.section, axes[0], here, arrays, lanes, write, (start, stop))

        call.in_parts(axes[0][0], grain, part)
        return
    wide = max(range(len(axes)), key=lambda k: _size(axes[k][0]), default=None)
    outer = [axis for k, axis in enumerate(axes) if k != wide]
    s = call.section
    bases = [(s, a.pointer) for a in arrays]
    with ExitStack() as stack:
        for length, strides in outer:
            inner, i = stack.enter_context(s.loop("0", call.number(length)))
            bases = _moved(call, inner, bases, arrays, strides, i)
            s = inner
        if wide is None:
            write(Block(call, s, 1, bases, arrays, [0] * len(arrays)))
        else:
            _along(call, s, axes[wide], bases, arrays, lanes, write)


_Axis = tuple[Length, tuple[Length, ...]]  # a length, and the stride of each array


def _axes(lead: Sequence[Length], given: Sequence[tuple[ArrayPointer, int]]) -> list[_Axis]:
    """The leading axes; those that can be merged in all arrays are merged."""
    found: list[_Axis] = []
    for k, n in enumerate(lead):
        if type(n) is int and n == 1:
            continue
        strides: list[Length] = []
        for array, core in given:
            own = k - len(lead) + len(array.shape) - core
            broadcast = own < 0 or (array.shape[own] == 1 and n != 1)
            strides.append(0 if broadcast else array.strides[own])
        if found and all(a == b * n for a, b in zip(found[-1][1], strides, strict=True)):
            found[-1] = (found[-1][0] * n, tuple(strides))
        else:
            found.append((n, tuple(strides)))
    return found


def _grain(arrays: Sequence[ArrayPointer]) -> int:
    """The minimum number of matrices for a thread: some tens of microseconds of work."""
    elements = sum(prod(n for n in a.shape if type(n) is int) for a in arrays)
    return thresholds.parallel_batch_elements // elements


def _size(length: Length) -> int:
    return length if type(length) is int else _UNKNOWN_LENGTH


def _moved(
    call: KernelCall,
    s: Section,
    bases: Sequence[tuple[Section, Name]],
    arrays: Sequence[ArrayPointer],
    strides: Sequence[Length],
    i: Name,
) -> list[tuple[Section, Name]]:
    """The arrays at an offset."""
    found = []
    for (section, base), array, stride in zip(bases, arrays, strides, strict=True):
        if type(stride) is int and stride == 0:
            found.append((section, base))
            continue
        by = s.times(i, call.number(stride))
        found.append((s, offset(s, base, by, array.dtype)))
    return found


def _along(
    call: KernelCall,
    s: Section,
    axis: _Axis,
    bases: Sequence[tuple[Section, Name]],
    arrays: Sequence[ArrayPointer],
    width: int,
    write: Callable[[Block], None],
    span: tuple[Name, Name] | None = None,
) -> None:
    """Blocks along one axis, or a part of it."""
    length, strides = axis
    least = bounds(length)[0] if span is None else None
    if type(length) is int and span is None:
        while width > max(length, 1):
            width //= 2
        least = max(length, 1)
    start, stop = span or ("0", call.number(length))

    def walk(t: Section, wide: int) -> None:
        before = t.inside()  # elements used by all are read here
        here = [(before, base) for _, base in bases]
        with t.loop(start, stop, str(wide)) as (inner, i):
            if wide > 1:
                i = inner.smaller(i, inner.plus(stop, str(-wide)))
            moved = _moved(call, inner, here, arrays, strides, i)
            write(Block(call, inner, wide, moved, arrays, strides))

    if least is not None and least >= width:
        walk(s, width)
        return
    many = s.value(f"icmp sge i64 {s.minus(stop, start)}, {width}")
    few = s.value(f"xor i1 {many}, true")
    with s.when(many) as t:
        walk(t, width)
    with s.when(few) as t:
        walk(t, 1)
