"""Cumulative operations: loops along one axis, in which each element depends on those before.

    scan             the loops: y_i = combine(y_{i-1}, x_i), from y_0 = begin(x_0)
    cumsum, cumprod  cumulative sums and products
    running          cumulative minimum and maximum
    recurrence       y_i = b_i + a_i y_{i-1}
    decaying_sum     y_i = x_i + c y_{i-1}

Along the last axis, the previous element is kept in a register.  Along another axis, elements of
other sequences are adjacent in memory: each step is computed for all sequences, in vectors.

    signal.lfilter   y_n = (sum_k b_k x_{n-k} - sum_{k>0} a_k y_{n-k}) / a_0

In transposed direct form II, as in SciPy: the state contains the contributions of earlier samples,
so each step reads one sample, writes one, and updates the state.  Coefficients are divided by a_0
first, and padded with zeros to a common length.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from wengert._engine.core.symbolic.dim import Length
from wengert._engine.core.types import Scalar

from ..ir import execution_engine
from ..ir.ir_builder import Name, Section
from ..ir.llvm_types import F16
from ..ir.memory_access import load, store
from .kernel_call import ArrayPointer, KernelCall, kernel
from .loop_helpers import (
    address,
    in_section,
    is_c_contiguous,
    nest,
    offset,
    read,
    stack_slot,
    write,
)

Begin = Callable[[Sequence[Any]], Any]
Combine = Callable[[Any, Sequence[Any]], Any]


class _Sequences:
    """Operands and result as sequences along an axis.

    Parameters
    ----------
    reverse : bool
        Whether sequences begin at the end of the axis.
    """

    def __init__(self, call: KernelCall, axis: int, reverse: bool) -> None:
        self.call, self.reverse = call, reverse
        (self.result,) = call.results
        self.arrays = (*call.operands, self.result)
        shape = self.result.shape
        self.axis = axis % len(shape)
        self.count = call.number(shape[self.axis])
        self.before, self.after = shape[: self.axis], shape[self.axis + 1 :]
        self.is_contiguous = all(is_c_contiguous(self.inner_axes(x)) for x in self.arrays)

    def block_addresses(self, s: Section, indices: Sequence[Name]) -> list[Name]:
        """The addresses at which a block of sequences begins in each array."""
        addresses = []
        for x in self.arrays:
            lead = x._replace(shape=self.before, strides=x.strides[: self.axis])
            addresses.append(address(self.call, s, lead, indices))
        return addresses

    def element_addresses(self, s: Section, block_addresses: Sequence[Name], i: Name) -> list[Name]:
        """The addresses of the elements of step i."""
        if self.reverse:
            i = s.minus(s.minus(self.count, "1"), i)
        addresses = []
        for x, start in zip(self.arrays, block_addresses, strict=True):
            distance = s.times(i, self.call.number(x.strides[self.axis]))
            addresses.append(offset(s, start, distance, x.dtype))
        return addresses

    def inner_axes(self, x: ArrayPointer) -> ArrayPointer:
        return ArrayPointer("", self.after, x.strides[self.axis + 1 :], x.dtype)


def scan(
    call: KernelCall, begin: Begin, combine: Combine, axis: int, reverse: bool = False
) -> None:
    """Write loops for y_i = combine(y_{i-1}, [x_i, ...]), y_0 = begin([x_0, ...]).

    Parameters
    ----------
    begin, combine : callable
        Operate on lanes; what they return is cast to the dtype of the result.
    reverse : bool
        Whether to start from the end.
    """
    sequences = _Sequences(call, axis, reverse)
    with nest(call.section, [call.number(n) for n in sequences.before]) as (s, outer):
        starts = sequences.block_addresses(s, outer)
        with s.when(s.value(f"icmp sgt i64 {sequences.count}, 0")) as t:
            if all(n == 1 for n in sequences.after):
                _single_sequence(sequences, t, starts, begin, combine)
            else:
                _adjacent_sequences(sequences, t, starts, begin, combine)


def _single_sequence(
    sequences: _Sequences, s: Section, starts: Sequence[Name], begin: Begin, combine: Combine
) -> None:
    """A single sequence."""
    call, dtype = sequences.call, sequences.result.dtype
    language = call.language
    cell = stack_slot(call, dtype)
    *inputs, target = sequences.element_addresses(s, starts, "0")
    values = [read(language, s, p, x.dtype) for p, x in zip(inputs, call.operands, strict=True)]
    first = language.cast(begin(values), dtype)
    write(s, cell, first)
    write(s, target, first)
    with s.loop("1", sequences.count) as (t, i):
        *inputs, target = sequences.element_addresses(t, starts, i)
        values = [read(language, t, p, x.dtype) for p, x in zip(inputs, call.operands, strict=True)]
        value = language.cast(combine(read(language, t, cell, dtype), values), dtype)
        write(t, cell, value)
        write(t, target, value)


def _adjacent_sequences(
    sequences: _Sequences, s: Section, starts: Sequence[Name], begin: Begin, combine: Combine
) -> None:
    """Sequences adjacent in memory: each step for all of them."""
    call = sequences.call
    length: Length = 1
    for n in sequences.after:
        length = length * n
    width = (
        execution_engine.vector_bytes() // sequences.result.dtype.itemsize
        if sequences.is_contiguous
        else 1
    )

    def step(t: Section, i: Name, previous: Sequence[Name] | None) -> None:
        addresses = sequences.element_addresses(t, starts, i)
        if not sequences.is_contiguous:
            with nest(t, [call.number(n) for n in sequences.after]) as (u, inner):
                _elements(sequences, u, addresses, previous, inner, begin, combine, 1)
            return
        full = t.times(t.value(f"sdiv i64 {call.number(length)}, {width}"), str(width))
        for low, high, lanes in (("0", full, width), (full, call.number(length), 1)):
            with t.loop(low, high, str(lanes)) as (u, j):
                _elements(sequences, u, addresses, previous, [j], begin, combine, lanes)

    step(s, "0", None)
    with s.loop("1", sequences.count) as (t, i):
        step(t, i, sequences.element_addresses(t, starts, t.minus(i, "1")))


def _elements(
    sequences: _Sequences,
    s: Section,
    addresses: Sequence[Name],
    previous: Sequence[Name] | None,
    indices: Sequence[Name],
    begin: Begin,
    combine: Combine,
    width: int,
) -> None:
    """One step of a vector of sequences."""
    call, dtype = sequences.call, sequences.result.dtype
    language = call.language

    def address_in(x: ArrayPointer, start: Name) -> Name:
        inner = sequences.inner_axes(x)
        if sequences.is_contiguous:
            return offset(s, start, indices[0], x.dtype)
        return address(call, s, inner._replace(pointer=start), indices)

    *inputs, target = [address_in(x, p) for x, p in zip(sequences.arrays, addresses, strict=True)]
    values = [
        load(language, s, p, x.dtype, width, None)
        for p, x in zip(inputs, call.operands, strict=True)
    ]
    if previous is None:
        value = begin(values)
    else:
        old = load(language, s, address_in(sequences.result, previous[-1]), dtype, width, None)
        value = combine(old, values)
    store(language, s, target, language.cast(value, dtype), width, None)


# ---- the kernels -------------------------------------------------------------------------------


def _accumulated(call: KernelCall, ufunc: str, reverse: bool = False) -> None:
    language, dtype = call.language, call.results[0].dtype

    def combine(previous: Scalar, values: Sequence[Any]) -> Any:
        return language.binary(ufunc, previous, language.cast(values[0], dtype))

    scan(call, lambda values: values[0], combine, call.params["axis"], reverse)


@kernel("cumsum", strided=True)
def cumsum(call: KernelCall) -> None:
    """The cumulative sum."""
    _accumulated(call, "add", bool(call.params.get("reverse", False)))


@kernel("cumprod", strided=True)
def cumprod(call: KernelCall) -> None:
    """The cumulative product."""
    _accumulated(call, "multiply")


@kernel("running", strided=True, serves=lambda node: node.spec.dtype.kind != "c")
def running(call: KernelCall) -> None:
    """The largest or smallest element so far; NaN after the first NaN."""
    _accumulated(call, "maximum" if call.params["largest"] else "minimum")


@kernel("recurrence", strided=True)
def recurrence(call: KernelCall) -> None:
    """y_i = b_i + a_i y_{i-1}."""
    language, dtype = call.language, call.results[0].dtype

    def combine(previous: Scalar, values: Sequence[Any]) -> Any:
        a, b = (language.cast(x, dtype) for x in values)
        return b + a * previous

    reverse = bool(call.params.get("reverse", False))
    scan(call, lambda values: values[1], combine, call.params["axis"], reverse)


@kernel("ndimage.decaying_sum", strided=True)
def decaying_sum(call: KernelCall) -> None:
    """y_i = x_i + factor y_{i-1}."""
    language, dtype = call.language, call.results[0].dtype
    factor = call.params["factor"]

    def combine(previous: Scalar, values: Sequence[Any]) -> Any:
        return language.cast(values[0], dtype) + language.constant(factor, dtype) * previous

    reverse = bool(call.params.get("reverse", False))
    scan(call, lambda values: values[0], combine, call.params["axis"], reverse)


# ---- recursive filters ---------------------------------------------------------------------------


@kernel(
    "signal.lfilter",
    strided=True,
    serves=lambda node: node.spec.dtype.kind in "fc" and node.spec.dtype != F16,
)
def lfilter(call: KernelCall) -> None:
    """Filter along the last axis, from a state of zeros."""
    (b, a, x), (y,) = call.operands, call.results
    language, s, dtype = call.language, call.section, y.dtype
    count = s.larger(call.number(b.shape[0]), call.number(a.shape[0]))
    size = (b.shape[0] + a.shape[0]) * dtype.itemsize  # at least count + 1 elements
    first = language.cast(read(language, s, a.pointer, a.dtype), dtype)
    numerator, denominator = (
        _divided(call, s, c, call.scratch(size), count, first) for c in (b, a)
    )
    state = call.scratch(size)
    last = s.minus(count, "1")
    lengths = [call.number(n) for n in y.shape[:-1]]
    with nest(s, lengths) as (t, indices):
        source = address(call, t, x, [*indices, "0"])
        target = address(call, t, y, [*indices, "0"])
        with t.loop("0", count) as (u, k):
            write(u, offset(u, state, k, dtype), language.constant(0, dtype))
        with t.loop("0", call.number(y.shape[-1])) as (u, n):
            pointer = offset(u, source, u.times(n, call.number(x.strides[-1])), x.dtype)
            new = language.cast(read(language, u, pointer, x.dtype), dtype)
            out = _added(
                _scaled(call, u, numerator, "0", dtype, new), read(language, u, state, dtype)
            )
            write(u, offset(u, target, u.times(n, call.number(y.strides[-1])), dtype), out)
            with u.loop("0", last) as (v, k):
                next_index = v.plus(k, "1")
                next_state = read(language, v, offset(v, state, next_index, dtype), dtype)
                input_term = _scaled(call, v, numerator, next_index, dtype, new)
                output_term = _scaled(call, v, denominator, next_index, dtype, out)
                total = _added(input_term, next_state) - output_term
                write(v, offset(v, state, k, dtype), total)


def _added(x: Any, y: Any) -> Any:
    return x + y


def _scaled(call: KernelCall, s: Section, c: Name, k: Name, dtype: Any, x: Any) -> Any:
    language = call.language
    return read(language, s, offset(s, c, k, dtype), dtype) * in_section(s, x)


def _divided(
    call: KernelCall, s: Section, c: ArrayPointer, into: Name, count: Name, first: Any
) -> Name:
    """Coefficients in the dtype of the result, divided, and padded with zeros."""
    language, dtype = call.language, first.dtype
    length = call.number(c.shape[0])
    with s.loop("0", length) as (t, k):
        value = language.cast(read(language, t, address(call, t, c, [k]), c.dtype), dtype)
        write(t, offset(t, into, k, dtype), value / in_section(t, first))
    with s.loop(length, count) as (t, k):
        write(t, offset(t, into, k, dtype), language.constant(0, dtype))
    return into
