"""Products with sparse matrices in compressed row format (_engine/ops/sparse_products.py).

    csr_matmul             row by row: a sum in a register, or of rows of v
    csr_transposed_matmul  row by row: multiples of u[i] are added to elements or rows of the result
    csr_sampled_matmul     row by row: products of u[i] and v[j]

    csr_cotangents         row by row: both of the last two

The loops are serial, in the order of storage.  A kernel fails if a position is out of range; each
is checked before it is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.core.node import Node

from ..ir.ir_builder import Name, Section
from ..ir.llvm_types import I64
from .kernel_call import ArrayPointer, KernelCall, kernel
from .loop_helpers import (
    address,
    clear,
    in_section,
    nest,
    offset,
    read,
    size_of,
    stack_slot,
    write,
)

_INTEGERS = (np.dtype(np.int32), np.dtype(np.int64))


def _is_supported(node: Node) -> bool:
    """Whether the numbers are floating-point or complex of one dtype, and positions integers."""
    *numbers, indices, indptr = [a.spec for a in node.inputs]
    results = node.spec if isinstance(node.spec, tuple) else (node.spec,)
    dtype = results[0].dtype
    is_of_one = all(x.dtype == dtype for x in (*numbers, *results)) and dtype.kind in "fc"
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
    """The number of columns of a matrix; None for a vector."""
    return x.array.shape[1] if len(x.array.shape) == 2 else None


def _load(call: KernelCall, s: Section, x: _Operand, *indices: Name) -> Any:
    return read(call.language, s, x.at(call, s, *indices), x.array.dtype)


def _add_to(call: KernelCall, s: Section, pointer: Name, value: Any, dtype: Any) -> None:
    """Add to the number at an address."""
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
                product = _load(call, r, data, k) * _load(call, r, v, j)
                _add_to(call, r, total, product, z.dtype)
            write(t, out.at(call, t, i), read(call.language, t, total, z.dtype))
        else:
            width = call.number(columns)
            with t.loop("0", width) as (r, c):
                write(r, out.at(call, r, i, c), call.language.constant(0, z.dtype))
            with pattern.entries(t, i, bounds) as (r, (k, _, j)):
                factor = _load(call, r, data, k)
                with r.loop("0", width) as (q, c):
                    product = in_section(q, factor) * _load(call, q, v, j, c)
                    _add_to(call, q, out.at(call, q, i, c), product, z.dtype)


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
            factor = _load(call, t, u, i)
            with pattern.entries(t, i, bounds) as (r, (k, _, j)):
                product = in_section(r, factor) * _load(call, r, data, k)
                _add_to(call, r, out.at(call, r, j), product, z.dtype)
        else:
            with pattern.entries(t, i, bounds) as (r, (k, _, j)):
                entry = _load(call, r, data, k)
                with r.loop("0", call.number(columns)) as (q, c):
                    product = in_section(q, entry) * _load(call, q, u, i, c)
                    _add_to(call, q, out.at(call, q, j, c), product, z.dtype)


@kernel("csr_sampled_matmul", strided=True, serves=_is_supported)
def csr_sampled_matmul(call: KernelCall) -> None:
    """Elements of u @ v.T."""
    (z,) = call.results
    pattern = _Pattern(call, call.operands[1].shape[int(call.params.get("stacked", False))])
    with _examples(call) as (s, (u, v, out)), s.loop("0", pattern.rows) as (t, i):
        bounds = pattern.bounds(t, i)
        columns = _columns_of(v)
        if columns is None:
            factor = _load(call, t, u, i)
            with pattern.entries(t, i, bounds) as (r, (k, _, j)):
                value = in_section(r, factor) * _load(call, r, v, j)
                write(r, out.at(call, r, k), value)
        else:
            with pattern.entries(t, i, bounds) as (r, (k, _, j)):
                total = stack_slot(call, z.dtype)
                write(r, total, call.language.constant(0, z.dtype))
                with r.loop("0", call.number(columns)) as (q, c):
                    product = _load(call, q, u, i, c) * _load(call, q, v, j, c)
                    _add_to(call, q, total, product, z.dtype)
                write(r, out.at(call, r, k), read(call.language, r, total, z.dtype))


@kernel("csr_cotangents", strided=True, serves=_is_supported)
def csr_cotangents(call: KernelCall) -> None:
    """Elements of the outer product of t and v, and A.T @ t."""
    _, z = call.results
    clear(call, call.section, z.pointer, size_of(z), z.dtype)
    pattern = _Pattern(call, z.shape[0])
    with _examples(call) as (s, (u, data, v, of_data, of_v)), s.loop("0", pattern.rows) as (t, i):
        factor = _load(call, t, u, i)
        with pattern.entries(t, i, pattern.bounds(t, i)) as (r, (k, _, j)):
            factor = in_section(r, factor)
            entry = _load(call, r, data, k)
            write(r, of_data.at(call, r, k), factor * _load(call, r, v, j))
            _add_to(call, r, of_v.at(call, r, j), factor * entry, z.dtype)
