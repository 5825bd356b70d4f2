"""Batches of small matrices, one matrix per SIMD lane.

    Block          the matrices of each operand and result that are computed together
    blocks         loops over the leading axes of a result, in blocks
    SimdMatrix     stack memory for the vectors of a block's matrices
    each           a loop over indices, or its unrolled body
    until          a loop with an exit condition
    integer_lane   an integer as a value of all lanes
    load, save     copy matrices of a block to a SimdMatrix and back

Each lane holds the same element of a different matrix, so formulas without branches compute many
matrices at once.  The elements of one matrix are adjacent in memory, those of a register are not:
they are loaded one by one and inserted, which takes less time than LLVM's gathers.

On a device a thread computes one matrix after the other instead (`KernelCall.thread`).

The last block overlaps the previous one if the batch is not a multiple of the width, so some
matrices are computed twice.  A batch smaller than a block is computed one matrix at a time.  An
operand that is broadcast along the batch is read before the loop.

For matrices of up to `KernelCall.unrolled_rows` rows loops are unrolled: all indices are constants,
and LLVM keeps the elements in registers.  The unrolled code of an elimination, and LLVM's compile
time, grow with the third power of the number of rows, so larger matrices are computed by loops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from math import prod
from typing import Any

from wengert._engine.core.symbolic.dim import Length, bounds
from wengert._engine.core.types import Scalar

from ..ir import execution_engine
from ..ir.ir_builder import Name, Section
from ..ir.llvm_types import BOOL, F64, I64, Dtype, in_memory, in_register, of_width
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
        The address of the first matrix of each array, and the section in which it is computed.
    arrays : list of ArrayPointer
        One matrix of each array: its shape and strides.
    steps : list of Length
        The distance between matrices of each array; 0 if it is broadcast.
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

        Elements with constant indices of an array that is broadcast are read before the loop.
        """
        if all(str(i).isdigit() for i in index) and self._is_broadcast(k):
            section = self._bases[k][0]
        language, array = self.call.language, self._arrays[k]
        kind = in_memory(array.dtype)
        addresses = self._addresses(k, section, index)
        name = section.value(f"load {kind}, ptr {addresses[0]}")
        width = len(addresses)
        vector = of_width(kind, width)
        if width > 1:
            for lane, address in enumerate(addresses):
                scalar = name if lane == 0 else section.value(f"load {kind}, ptr {address}")
                before = "poison" if lane == 0 else name
                name = section.value(
                    f"insertelement {vector} {before}, {kind} {scalar}, i64 {lane}"
                )
        if array.dtype == BOOL:
            name = section.value(f"trunc {vector} {name} to {of_width('i1', width)}")
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
        for lane, address in enumerate(self._addresses(k, section, index)):
            name = value.name
            if self.width > 1:
                name = section.value(f"extractelement {value.kind} {name}, i64 {lane}")
            section.write(f"store {in_memory(dtype)} {name}, ptr {address}")

    def fail_if(self, flag: Lane, section: Section | None = None) -> None:
        """Fail if a flag is true in any lane."""
        s = section or self.section
        self.call.fail_if(self.any_of(s, flag), 1, s)

    def any_of(self, s: Section, flag: Lane) -> Name:
        """Whether a flag is true in any lane, an i1."""
        return s.any_lane(flag.name, flag.width)

    def _is_broadcast(self, k: int) -> bool:
        """Whether all lanes use the same matrix of array k."""
        step = self._steps[k]
        return type(step) is int and step == 0

    def _addresses(self, k: int, section: Section, index: Sequence[int | Name]) -> list[Name]:
        base = self._bases[k][1]
        array, step = self._arrays[k], self._steps[k]
        matrix_offset = "0"
        for i, stride in zip(index, array.strides, strict=True):
            matrix_offset = section.plus(
                matrix_offset, section.times(str(i), self.call.number(stride))
            )
        addresses = []
        for lane in range(1 if self._is_broadcast(k) else self.width):
            lane_offset = section.times(str(lane), self.call.number(step))
            addresses.append(
                offset(section, base, section.plus(lane_offset, matrix_offset), array.dtype)
            )
        return addresses


def blocks(
    call: KernelCall,
    operands: Sequence[tuple[ArrayPointer, int]],
    dtype: Dtype,
    write: Callable[[Block], None],
) -> None:
    """Loops over all matrices of a result.

    Parameters
    ----------
    operands : sequence of (ArrayPointer, int)
        Operands and results, and the number of axes of a matrix of each. The last one has all
        leading axes, to which those of the others are broadcast.
    dtype : numpy.dtype
        The dtype of the computation, whose size determines the number of matrices at a time.
    write : callable
        Emits the work of a `Block`.
    """
    result, core = operands[-1]
    axes = _axes(result.shape[: len(result.shape) - core], operands)
    arrays = [
        a._replace(shape=a.shape[len(a.shape) - c :], strides=a.strides[len(a.strides) - c :])
        for a, c in operands
    ]
    if call.thread is not None:
        _loop_of_thread(call, call.thread, axes, arrays, write)
        return
    lanes = execution_engine.vector_bytes() // dtype.itemsize
    grain = _grain(arrays)
    if len(axes) == 1 and _size(axes[0][0]) >= 2 * grain:

        def write_part(inner: KernelCall, start: Name, stop: Name) -> None:
            first_matrices = [(inner.section, a.pointer) for a in arrays]
            _loop_over_axis(
                inner, inner.section, axes[0], first_matrices, arrays, lanes, write, (start, stop)
            )

        call.in_parts(axes[0][0], grain, write_part)
        return
    longest = max(range(len(axes)), key=lambda k: _size(axes[k][0]), default=None)
    outer = [axis for k, axis in enumerate(axes) if k != longest]
    s = call.section
    bases = [(s, a.pointer) for a in arrays]
    with ExitStack() as stack:
        for length, strides in outer:
            inner, i = stack.enter_context(s.loop("0", call.number(length)))
            bases = _advanced(call, inner, bases, arrays, strides, i)
            s = inner
        if longest is None:
            write(Block(call, s, 1, bases, arrays, [0] * len(arrays)))
        else:
            _loop_over_axis(call, s, axes[longest], bases, arrays, lanes, write)


def _loop_of_thread(
    call: KernelCall,
    thread: tuple[Name, Name],
    axes: Sequence[_Axis],
    arrays: Sequence[ArrayPointer],
    write: Callable[[Block], None],
) -> None:
    """The matrices of a thread; the flat number of one is split into its indices."""
    s = call.section
    lengths = [call.number(length) for length, _ in axes]
    matrices: Length = 1
    for length, _ in axes:
        matrices = matrices * length
    call.batches.append(matrices)
    count = call.number(matrices)
    preheader = s.inside()
    bases = [(preheader, a.pointer) for a in arrays]
    with s.loop(thread[0], count, thread[1]) as (inner, place):
        for k in range(len(axes) - 1, -1, -1):
            i = place
            if k:
                i = inner.value(f"urem i64 {place}, {lengths[k]}")
                place = inner.value(f"udiv i64 {place}, {lengths[k]}")
            bases = _advanced(call, inner, bases, arrays, axes[k][1], i)
        steps: list[Length] = [int(section is not preheader) for section, _ in bases]
        write(Block(call, inner, 1, bases, arrays, steps))


_Axis = tuple[Length, tuple[Length, ...]]  # a length, and the stride of each array


def _axes(lead: Sequence[Length], operands: Sequence[tuple[ArrayPointer, int]]) -> list[_Axis]:
    """The leading axes; those that can be merged in all arrays are merged."""
    axes: list[_Axis] = []
    for k, n in enumerate(lead):
        if type(n) is int and n == 1:
            continue
        strides: list[Length] = []
        for array, core in operands:
            axis = k - len(lead) + len(array.shape) - core
            broadcast = axis < 0 or (array.shape[axis] == 1 and n != 1)
            strides.append(0 if broadcast else array.strides[axis])
        if axes and all(a == b * n for a, b in zip(axes[-1][1], strides, strict=True)):
            axes[-1] = (axes[-1][0] * n, tuple(strides))
        else:
            axes.append((n, tuple(strides)))
    return axes


def _grain(arrays: Sequence[ArrayPointer]) -> int:
    """The minimum number of matrices for a thread: some tens of microseconds of work."""
    elements = sum(prod(n for n in a.shape if type(n) is int) for a in arrays)
    return thresholds.parallel_batch_elements // elements


def _size(length: Length) -> int:
    """A length, or a large number if it is known only at run time."""
    return length if type(length) is int else _UNKNOWN_LENGTH


def _advanced(
    call: KernelCall,
    s: Section,
    bases: Sequence[tuple[Section, Name]],
    arrays: Sequence[ArrayPointer],
    strides: Sequence[Length],
    i: Name,
) -> list[tuple[Section, Name]]:
    """The addresses of the matrices at index i of an axis."""
    advanced = []
    for (section, base), array, stride in zip(bases, arrays, strides, strict=True):
        if type(stride) is int and stride == 0:
            advanced.append((section, base))
            continue
        distance = s.times(i, call.number(stride))
        advanced.append((s, offset(s, base, distance, array.dtype)))
    return advanced


def _loop_over_axis(
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
    minimum = bounds(length)[0] if span is None else None
    if type(length) is int and span is None:
        while width > max(length, 1):
            width //= 2
        minimum = max(length, 1)
    start, stop = span or ("0", call.number(length))

    def write_loop(t: Section, lanes: int) -> None:
        preheader = t.inside()  # elements of broadcast arrays are read here
        first_matrices = [(preheader, base) for _, base in bases]
        with t.loop(start, stop, str(lanes)) as (inner, i):
            if lanes > 1:
                i = inner.smaller(i, inner.plus(stop, str(-lanes)))
            current = _advanced(call, inner, first_matrices, arrays, strides, i)
            write(Block(call, inner, lanes, current, arrays, strides))

    if minimum is not None and minimum >= width:
        write_loop(s, width)
        return
    is_wide = s.value(f"icmp sge i64 {s.minus(stop, start)}, {width}")
    is_narrow = s.value(f"xor i1 {is_wide}, true")
    with s.when(is_wide) as t:
        write_loop(t, width)
    with s.when(is_narrow) as t:
        write_loop(t, 1)


# ---- matrices in registers -----------------------------------------------------------------------


Index = int | Name


class SimdMatrix:
    """Stack memory for the matrices of a block, in row-major order.

    Parameters
    ----------
    block : Block
        Its width is the number of lanes.
    dtype : numpy.dtype
        float64; int64 for counters.

    Attributes
    ----------
    unrolled : bool
        Whether loops over its elements are unrolled.
    """

    def __init__(self, block: Block, rows: int, columns: int = 1, dtype: Dtype = F64) -> None:
        self.language, self.width = block.call.language, max(block.width, 1)
        self.rows, self.columns, self.dtype = rows, columns, dtype
        self.unrolled = rows <= block.call.unrolled_rows
        self._kind = of_width(in_register(dtype), self.width)
        self._align = self.width * dtype.itemsize
        count = rows * columns
        self.pointer = block.call.function.slot(f"[{count} x {self._kind}]", max(self._align, 8))

    def address(self, s: Section, i: Index, j: Index = 0) -> Name:
        """The address of an element."""
        count = s.plus(s.times(str(i), str(self.columns)), str(j))
        return s.value(f"getelementptr {self._kind}, ptr {self.pointer}, i64 {count}")

    def get(self, s: Section, i: Index = 0, j: Index = 0) -> Lane:
        """An element, as a lane of this section."""
        name = s.value(f"load {self._kind}, ptr {self.address(s, i, j)}, align {self._align}")
        return Lane(self.language, s, name, self.dtype, self.width)

    def put(self, s: Section, value: Scalar, i: Index = 0, j: Index = 0) -> None:
        """Store an element."""
        wide = self.language.widened(self.language.cast(value, self.dtype), self.width)
        address = self.address(s, i, j)
        s.write(f"store {self._kind} {wide.name}, ptr {address}, align {self._align}")

    def put_where(self, s: Section, flag: Any, value: Any, i: Index = 0, j: Index = 0) -> None:
        """Store an element in the lanes where a flag is true."""
        old = self.get(s, i, j)
        self.put(s, self.language.select(flag, self.language.cast(value, self.dtype), old), i, j)


def each(
    s: Section, start: Index, stop: Index, unrolled: bool = False, down: bool = False
) -> Iterator[tuple[Section, Any]]:
    """Section and index of each iteration from start to stop - 1, or down from the last one."""
    if unrolled:
        numbers = range(int(start), int(stop))
        for number in reversed(numbers) if down else numbers:
            yield s, str(number)
        return
    with s.loop(str(start), str(stop)) as (t, i):
        if down:
            last = t.plus(t.plus(str(start), str(stop)), "-1")
            i = t.value(f"sub nsw i64 {last}, {i}")
        yield t, i


@contextmanager
def until(s: Section, limit: int) -> Iterator[tuple[Section, Any]]:
    """A loop of at most `limit` iterations, and a function that exits it if a condition holds.

    There may be only one exit; code emitted into the section later comes after it.
    """
    n = s.function.number()

    def leave(t: Section, done: Name) -> None:
        t.write(f"br i1 {done}, label %left{n}, label %on{n}")
        t.label(f"on{n}")

    with s.loop("0", str(limit)) as (t, _):
        yield t, leave
    s.block(f"left{n}")


def integer_lane(block: Block, s: Section, i: Index) -> Lane:
    """An integer as a value of all lanes."""
    language = block.call.language
    if str(i).lstrip("-").isdigit():
        lane: Lane = language.constant(int(i), I64)
        return lane
    return Lane(language, s, str(i), I64, 1)


def load(block: Block, k: int, matrix: SimdMatrix, s: Section) -> None:
    """Read the matrices of array k of a block."""
    for t, i in each(s, 0, matrix.rows, matrix.unrolled):
        for u, j in each(t, 0, matrix.columns, matrix.unrolled):
            matrix.put(u, block.element(k, u, (i, j)[: block.axes(k)]), i, j)


def save(block: Block, k: int, matrix: SimdMatrix, s: Section) -> None:
    """Write the matrices of array k of a block."""
    for t, i in each(s, 0, matrix.rows, matrix.unrolled):
        for u, j in each(t, 0, matrix.columns, matrix.unrolled):
            block.set_element(k, u, matrix.get(u, i, j), (i, j)[: block.axes(k)])
