"""Products with sparse matrices in compressed row format (_engine/ops/sparse_products.py).

    csr_matmul             row by row: a sum in a register, or of rows of v
    csr_transposed_matmul  row by row: multiples of u[i] are added to elements or rows of the result
    csr_sampled_matmul     row by row: products of u[i] and v[j]

    csr_cotangents         row by row: both of the last two

The loops are serial, in the order of storage.  A kernel fails if a position is out of range; each
is checked before it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.core.node import Node

from ..ir.ir_builder import Name, Section
from ..ir.llvm_types import I64, Dtype, part_of
from ..ir.memory_access import load, store
from .kernel_call import ArrayPointer, KernelCall, kernel
from .loop_helpers import (
    address,
    clear,
    in_section,
    kind_of,
    nest,
    offset,
    read,
    size_of,
    stack_slot,
    write,
)

_VECTOR_BYTES = 64
_INTEGERS = (np.dtype(np.int32), np.dtype(np.int64))


def _is_supported(node: Node) -> bool:
    """Whether the numbers are of one dtype, and positions integers."""
    *numbers, indices, indptr = [a.spec for a in node.inputs]
    results = node.spec if isinstance(node.spec, tuple) else (node.spec,)
    dtype = results[0].dtype
    is_of_one = all(x.dtype == dtype for x in (*numbers, *results)) and dtype.kind in "fciu"
    return is_of_one and indices.dtype in _INTEGERS and indptr.dtype in _INTEGERS


class _Entry(NamedTuple):
    """The position of an entry, its row and its column."""

    k: Name
    i: Name
    j: Name


class _Pattern:
    """The pattern, and loops over its entries."""

    def __init__(self, call: KernelCall, columns: Any) -> None:
        self.call = call
        self.indices, self.indptr = call.operands[-2:]
        self.columns = call.number(columns)
        self.rows = call.section.minus(call.number(self.indptr.shape[0]), "1")
        self.count = call.number(self.indices.shape[0])
        s = call.section
        call.fail_if(s.value(f"icmp slt i64 {self.rows}, 0"))
        first, last = self._integer(s, self.indptr, "0"), self._integer(s, self.indptr, self.rows)
        call.fail_if(s.value(f"icmp ne i64 {first}, 0"))
        call.fail_if(s.value(f"icmp ne i64 {last}, {self.count}"))

    def _integer(self, s: Section, array: ArrayPointer, i: Name) -> Name:
        """An element of the pattern, as i64."""
        value = read(self.call.language, s, address(self.call, s, array, [i]), array.dtype)
        name: Name = self.call.language.cast(value, I64).name
        return name

    def bounds(self, s: Section, i: Name) -> tuple[Name, Name]:
        """The first entry of a row, and that of the next; checked."""
        start = self._integer(s, self.indptr, i)
        stop = self._integer(s, self.indptr, s.plus(i, "1"))
        self.call.fail_if(s.value(f"icmp sgt i64 {start}, {stop}"), 1, s)
        self.call.fail_if(s.value(f"icmp sgt i64 {stop}, {self.count}"), 1, s)
        return start, stop

    @contextmanager
    def entries(self, s: Section, i: Name, bounds: tuple[Name, Name]) -> Iterator[Any]:
        """A loop over the entries of a row."""
        with s.loop(*bounds) as (t, k):
            j = self._integer(t, self.indices, k)
            self.call.fail_if(t.value(f"icmp uge i64 {j}, {self.columns}"), 1, t)
            yield t, _Entry(k, i, j)


class _Operand(NamedTuple):
    """An operand or result of one example of the batch: its address, without the batch axis."""

    array: ArrayPointer

    def at(self, call: KernelCall, s: Section, *indices: Name) -> Name:
        """The address of an element; a vector is a matrix of one column."""
        return address(call, s, self.array, indices[: len(self.array.shape)])


@contextmanager
def _examples(call: KernelCall) -> Iterator[tuple[Section, list[_Operand]]]:
    """A loop over the batch: the first two operands and the result of each example."""
    arrays = (*call.operands[:-2], *call.results)
    batched = call.params.get("stacked", False)
    lengths = [call.number(call.results[0].shape[0])] if batched else []
    with nest(call.section, lengths) as (s, indices):
        operands = []
        for x in arrays:
            if batched:
                distance = s.times(indices[0], call.number(x.strides[0]))
                pointer = offset(s, x.pointer, distance, x.dtype)
                x = ArrayPointer(pointer, x.shape[1:], x.strides[1:], x.dtype)
            operands.append(_Operand(x))
        yield s, operands


def _columns_of(x: _Operand) -> Any:
    """The number of columns of a matrix; None for a vector, also as a column."""
    columns = x.array.shape[1] if len(x.array.shape) == 2 else 1
    return None if columns == 1 else columns


def _in_blocks(
    call: KernelCall, s: Section, operands: Sequence[_Operand], emit: Callable[..., None]
) -> None:
    """Emit the columns of dense operands in blocks that are vectors, from wide ones to single ones.

    ``emit(s, c, width)`` emits those from c on.  Columns that are not adjacent are single.
    """
    first, *_ = operands
    columns = call.number(first.array.shape[1])
    lanes = _VECTOR_BYTES // part_of(first.array.dtype).itemsize
    adjacent = all(x.array.strides[1] == 1 for x in operands)
    done = "0"
    for width in (4 * lanes, lanes, lanes // 2, 1) if adjacent else (1,):
        rest = s.minus(columns, done)
        whole = s.minus(rest, s.value(f"urem i64 {rest}, {width}")) if width > 1 else rest
        end = s.plus(done, whole)
        with s.loop(done, end, str(width)) as (t, c):
            emit(t, c, width)
        done = end


def _load(call: KernelCall, s: Section, x: _Operand, *indices: Name) -> Any:
    return read(call.language, s, x.at(call, s, *indices), x.array.dtype)


def _add_to(call: KernelCall, s: Section, pointer: Name, value: Any, dtype: Any) -> None:
    write(s, pointer, read(call.language, s, pointer, dtype) + value)


@kernel("csr_matmul", strided=True, serves=_is_supported)
def csr_matmul(call: KernelCall) -> None:
    """A @ v."""
    (z,) = call.results
    pattern = _Pattern(call, call.operands[1].shape[int(call.params.get("stacked", False))])
    with _examples(call) as (s, (data, v, out)), s.loop("0", pattern.rows) as (t, i):
        bounds = pattern.bounds(t, i)
        columns = _columns_of(v)
        if columns is None:
            total = stack_slot(call, z.dtype)
            write(t, total, call.language.constant(0, z.dtype))
            with pattern.entries(t, i, bounds) as (r, (k, _, j)):
                product = _load(call, r, data, k) * _load(call, r, v, j, "0")
                _add_to(call, r, total, product, z.dtype)
            write(t, out.at(call, t, i, "0"), read(call.language, t, total, z.dtype))
        else:
            _row_of_sums(pattern, t, i, (data, v, out), bounds)


def _row_of_sums(
    pattern: _Pattern, s: Section, i: Name, operands: Sequence[_Operand], bounds: tuple[Name, Name]
) -> None:
    """A row of A @ v."""
    call, (data, v, out) = pattern.call, operands
    language, dtype = call.language, out.array.dtype

    def emit(s: Section, c: Name, width: int) -> None:
        total = call.function.slot(f"[{width} x {kind_of(dtype)}]", 64)
        zero = language.constant(0, dtype)
        store(language, s, total, in_section(s, zero), width, None)
        with pattern.entries(s, i, bounds) as (t, (k, _, j)):
            element = load(language, t, v.at(call, t, j, c), dtype, width, None)
            sums = load(language, t, total, dtype, width, None)
            store(language, t, total, sums + _load(call, t, data, k) * element, width, None)
        sums = load(language, s, total, dtype, width, None)
        store(language, s, out.at(call, s, i, c), sums, width, None)

    _in_blocks(call, s, (v, out), emit)


@kernel("csr_transposed_matmul", strided=True, serves=_is_supported)
def csr_transposed_matmul(call: KernelCall) -> None:
    """A.T @ u."""
    (z,) = call.results
    clear(call, call.section, z.pointer, size_of(z), z.dtype)
    pattern = _Pattern(call, call.params["columns"])
    with _examples(call) as (s, (data, u, out)), s.loop("0", pattern.rows) as (t, i):
        bounds = pattern.bounds(t, i)
        columns = _columns_of(u)
        if columns is None:
            factor = _load(call, t, u, i, "0")
            with pattern.entries(t, i, bounds) as (r, (k, _, j)):
                product = in_section(r, factor) * _load(call, r, data, k)
                _add_to(call, r, out.at(call, r, j, "0"), product, z.dtype)
        else:
            _multiples_of_row(pattern, t, i, (data, u, out), bounds)


def _multiples_of_row(
    pattern: _Pattern, s: Section, i: Name, operands: Sequence[_Operand], bounds: tuple[Name, Name]
) -> None:
    """The multiples of a row of u, added to rows of A.T @ u."""
    call, (data, u, out) = pattern.call, operands
    language, dtype = call.language, out.array.dtype

    def emit(s: Section, c: Name, width: int) -> None:
        row = load(language, s, u.at(call, s, i, c), dtype, width, None)
        with pattern.entries(s, i, bounds) as (t, (k, _, j)):
            place = out.at(call, t, j, c)
            product = _load(call, t, data, k) * in_section(t, row)
            sums = load(language, t, place, dtype, width, None) + product
            store(language, t, place, sums, width, None)

    _in_blocks(call, s, (u, out), emit)


@kernel("csr_sampled_matmul", strided=True, serves=_is_supported)
def csr_sampled_matmul(call: KernelCall) -> None:
    """Elements of u @ v.T."""
    (z,) = call.results
    pattern = _Pattern(call, call.operands[1].shape[int(call.params.get("stacked", False))])
    with _examples(call) as (s, (u, v, out)), s.loop("0", pattern.rows) as (t, i):
        bounds = pattern.bounds(t, i)
        columns = _columns_of(v)
        if columns is None:
            factor = _load(call, t, u, i, "0")
            with pattern.entries(t, i, bounds) as (r, (k, _, j)):
                value = in_section(r, factor) * _load(call, r, v, j, "0")
                write(r, out.at(call, r, k), value)
        else:
            with pattern.entries(t, i, bounds) as (r, (k, _, j)):
                write(r, out.at(call, r, k), _dot(call, r, (u, i), (v, j), z.dtype))


def _dot(
    call: KernelCall, s: Section, x: tuple[_Operand, Name], y: tuple[_Operand, Name], dtype: Dtype
) -> Any:
    """The sum of the products of two rows: those of vectors by lanes, which are added in order."""
    language, ((u, i), (v, j)) = call.language, (x, y)
    columns = call.number(u.array.shape[1])
    zero, total = language.constant(0, dtype), stack_slot(call, dtype)
    write(s, total, zero)
    done = "0"
    if u.array.strides[1] == v.array.strides[1] == 1:
        lanes = _VECTOR_BYTES // part_of(dtype).itemsize
        whole = s.minus(columns, s.value(f"urem i64 {columns}, {lanes}"))
        is_long = s.value(f"icmp sge i64 {columns}, {2 * lanes}")
        done = s.value(f"select i1 {is_long}, i64 {whole}, i64 0")
        with s.when(s.value(f"icmp ne i64 {done}, 0")) as t:
            sums = call.function.slot(f"[{lanes} x {kind_of(dtype)}]", 64)
            store(language, t, sums, in_section(t, zero), lanes, None)
            with t.loop("0", done, str(lanes)) as (r, c):
                left = load(language, r, u.at(call, r, i, c), dtype, lanes, None)
                right = load(language, r, v.at(call, r, j, c), dtype, lanes, None)
                before = load(language, r, sums, dtype, lanes, None)
                store(language, r, sums, before + left * right, lanes, None)
            with t.loop("0", str(lanes)) as (r, c):
                place = offset(r, sums, c, dtype)
                _add_to(call, r, total, read(language, r, place, dtype), dtype)
    with s.loop(done, columns) as (r, c):
        _add_to(call, r, total, _load(call, r, u, i, c) * _load(call, r, v, j, c), dtype)
    return read(language, s, total, dtype)


@kernel("csr_cotangents", strided=True, serves=_is_supported)
def csr_cotangents(call: KernelCall) -> None:
    """Elements of the outer product of t and v, and A.T @ t."""
    _, z = call.results
    clear(call, call.section, z.pointer, size_of(z), z.dtype)
    pattern = _Pattern(call, z.shape[0])
    with _examples(call) as (s, (u, data, v, of_data, of_v)), s.loop("0", pattern.rows) as (t, i):
        factor = _load(call, t, u, i, "0")
        with pattern.entries(t, i, pattern.bounds(t, i)) as (r, (k, _, j)):
            factor = in_section(r, factor)
            entry = _load(call, r, data, k)
            write(r, of_data.at(call, r, k), factor * _load(call, r, v, j, "0"))
            _add_to(call, r, of_v.at(call, r, j), factor * entry, z.dtype)
