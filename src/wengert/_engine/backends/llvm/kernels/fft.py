"""Fourier transforms: NumPy's C++ implementation (pocketfft), called without Python.

    fft, rfft, irfft    the inner loops of the ufuncs of numpy.fft

NumPy's transforms are generalized ufuncs.  The inner loop of a ufunc is a C function,
``void loop(char **args, intp *dims, intp *steps, void *data)``, that needs neither Python nor the
GIL; it crops its operand or pads it with zeros, and multiplies by a factor.  Kernels do the rest:
operands of another dtype, and those with weighted frequencies, are copied first, and a result of
another length afterwards.  If nothing is copied, all sequences along an axis are transformed by one
call: the loop computes several at a time in vectors (so the last bits may differ from NumPy's,
which may group sequences differently).

The ufuncs are not public.  If a future NumPy changes them, the operation becomes a host callback:
`_serves` inspects each of them.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
from typing import Any

import numpy as np

from wengert._engine.core.symbolic.dim import Length

from ..ir.ir_builder import Name, Section
from ..ir.llvm_types import C64, C128, F32, F64, Dtype, in_memory, part_of
from ..ir.simd_value import ComplexLane
from .kernel_call import ArrayPointer, KernelCall, kernel
from .loop_helpers import address, nest, offset, read, stack_slot, write

SERVED = (F32, F64, C64, C128)


@functools.cache
def _loop(name: str, signature: str) -> tuple[int, int] | None:
    """The address of the inner loop of one of NumPy's FFT ufuncs, and that of its data, or 0."""
    try:
        ufunc = getattr(importlib.import_module("numpy.fft._pocketfft_umath"), name)
        names = [t.replace("->", "") for t in ufunc.types]
        counts = tuple((ctypes.c_int * 3).from_address(id(ufunc) + 16))
    except (ImportError, AttributeError):
        return None
    if signature not in names or counts != (2, 1, 3) or ufunc.signature is None:
        return None
    functions, data = (ctypes.c_void_p * 2).from_address(id(ufunc) + 32)
    if not functions:
        return None
    step = 8 * names.index(signature)
    function = ctypes.c_void_p.from_address(functions + step).value
    data_address = ctypes.c_void_p.from_address(data + step).value if data else 0
    return (function, data_address or 0) if function else None


def _loops(op: str, inverse: bool, real: Dtype) -> dict[str, tuple[int, int] | None]:
    """The loops that an operation may need, by symbol, in a precision."""
    r, c = real.char, np.result_type(real, np.complex64).char
    names = {"fft": ["ifft" if inverse else "fft"], "irfft": ["irfft"]}
    names["rfft"] = ["rfft_n_odd", "rfft_n_even"]
    signature = {"fft": c + r + c, "rfft": r + r + c, "irfft": c + r + r}[op]
    return {f"ufunc.{name}.{signature}": _loop(name, signature) for name in names[op]}


def _serves(node: Any) -> bool:
    spec, result = node.inputs[0].spec, node.spec.dtype
    if spec.dtype not in SERVED or result not in SERVED:
        return False
    if spec.shape[node.params["axis"]] == 0:  # for empty sequences the loop reads out of bounds
        return False
    loops = _loops(node.op.name, node.params.get("inverse", False), part_of(result))
    return all(loop is not None for loop in loops.values())


@kernel("fft", strided=True, serves=_serves)
def fft(call: KernelCall) -> None:
    """The transform along an axis, or its inverse."""
    n = call.params["n"]
    _Transform(call, "fft", call.results[0].dtype, n, n).write()


@kernel("rfft", strided=True, serves=_serves)
def rfft(call: KernelCall) -> None:
    """The first frequencies of real sequences, interior ones times a factor."""
    n = call.params["n"]
    _Transform(call, "rfft", part_of(call.results[0].dtype), n, n // 2 + 1).write()


@kernel("irfft", strided=True, serves=_serves)
def irfft(call: KernelCall) -> None:
    """The real sequences with these first frequencies, interior ones times a factor."""
    n = call.params["n"]
    result = call.results[0].dtype
    _Transform(call, "irfft", np.result_type(result, np.complex64), n // 2 + 1, n).write()


class _Transform:
    """One transform of all sequences along an axis of an array.

    Parameters
    ----------
    inner : dtype
        The dtype of the operand of the loop.
    read_length, written_length : Length
        The maximum number of elements of a sequence that the loop reads, and the number it writes.
    """

    def __init__(
        self, call: KernelCall, op: str, inner: Dtype, read_length: Length, written_length: Length
    ) -> None:
        self.call, self.op, self.inner = call, op, inner
        (self.x,), (self.y,) = call.operands, call.results
        self.axis = call.params["axis"] % len(self.x.shape)
        self.n = call.params["n"]
        self.written_length = written_length
        self.weight = call.params.get("interior", 1.0)
        self.real = part_of(self.y.dtype)
        weights_operand = op == "irfft" and self.weight != 1.0
        copied = self.x.dtype != inner or weights_operand
        self.operand_copy = call.scratch(read_length * inner.itemsize) if copied else ""
        self.read = call.section.smaller(*map(call.number, (self.x.shape[self.axis], read_length)))
        resizes = self.y.shape[self.axis] != written_length
        self.result_copy = call.scratch(written_length * self.y.dtype.itemsize) if resizes else ""
        axes = [k for k in range(len(self.x.shape)) if k != self.axis]
        self.batch_axis = (
            axes[-1] if axes and not self.operand_copy and not self.result_copy else -1
        )
        self._prepare_arguments(call.section)

    def _prepare_arguments(self, s: Section) -> None:
        """The arguments of the loop that are equal in all calls: lengths, strides, the factor."""
        call, slot = self.call, self.call.function.slot
        self.pointers, self.lengths = slot("[3 x ptr]", 8), slot("[3 x i64]", 8)
        self.steps = slot("[5 x i64]", 8)
        self.factor = stack_slot(call, self.real)
        s.write(f"store {in_memory(self.real)} {self._scale(s)}, ptr {self.factor}")
        self._store_argument(s, self.pointers, 1, "ptr", self.factor)
        count, batch_strides = "1", ["0", "0"]
        if self.batch_axis >= 0:
            count = call.number(self.y.shape[self.batch_axis])
            batch_strides = [self._bytes(s, x, self.batch_axis) for x in (self.x, self.y)]
        for k, length in enumerate((count, self.read, call.number(self.written_length))):
            self._store_argument(s, self.lengths, k, "i64", length)
        steps = [str(self.inner.itemsize), str(self.y.dtype.itemsize)]
        if not self.operand_copy:
            steps[0] = self._bytes(s, self.x, self.axis)
        if not self.result_copy:
            steps[1] = self._bytes(s, self.y, self.axis)
        for k, step in enumerate((batch_strides[0], "0", batch_strides[1], *steps)):
            self._store_argument(s, self.steps, k, "i64", step)
        self.loop, self.data = self._select_loop(s)

    def _bytes(self, s: Section, x: ArrayPointer, axis: int) -> Name:
        return s.times(self.call.number(x.strides[axis]), str(x.dtype.itemsize))

    def _store_argument(self, s: Section, array: Name, k: int, kind: str, value: Name) -> None:
        s.write(f"store {kind} {value}, ptr {s.value(f'getelementptr i64, ptr {array}, i64 {k}')}")

    def _scale(self, s: Section) -> Name:
        """The factor of a norm, as NumPy computes it."""
        kind = in_memory(self.real)
        inverse = self.op == "irfft" or self.call.params.get("inverse", False)
        norm = self.call.params["norm"]
        if norm == ("forward" if inverse else "backward"):
            return "1.0"
        n = s.value(f"sitofp i64 {self.call.number(self.n)} to {kind}")
        if norm == "ortho":
            name = f"llvm.sqrt.{'f64' if self.real == F64 else 'f32'}"
            n = s.value(f"call {kind} {self.call.module.declare(name, kind, [kind])}({kind} {n})")
        return s.value(f"fdiv {kind} 1.0, {n}")

    def _select_loop(self, s: Section) -> tuple[Name, Name]:
        """The loop and its data; for real numbers it depends on whether n is even."""
        loops = []
        inverse = self.call.params.get("inverse", False)
        for symbol, loop in _loops(self.op, inverse, self.real).items():
            assert loop is not None
            function, data = loop
            name = self.call.external(symbol, function, "void", ["ptr"] * 4)
            data_name = "null"
            if data:
                data_name = self.call.external(f"{symbol}.data", data, "void", [])
            loops.append((name, data_name))
        if len(loops) == 1:
            return loops[0]
        odd = s.value(f"trunc i64 {self.call.number(self.n)} to i1")
        (first, data_name), (second, other_data) = loops
        return (
            s.value(f"select i1 {odd}, ptr {first}, ptr {second}"),
            s.value(f"select i1 {odd}, ptr {data_name}, ptr {other_data}"),
        )

    def write(self) -> None:
        """Write the calls for all sequences."""
        call = self.call
        weights_result = self.op == "rfft" and self.weight != 1.0
        lengths = [call.number(n) for n in self.y.shape]
        lengths[self.axis] = "1"
        batch_lengths = ["1" if k == self.batch_axis else n for k, n in enumerate(lengths)]
        with nest(call.section, batch_lengths) as (s, indices):
            source = address(call, s, self.x, indices)
            target = address(call, s, self.y, indices)
            if self.operand_copy:
                self._copy_operand(s, source)
            self._store_argument(s, self.pointers, 0, "ptr", self.operand_copy or source)
            self._store_argument(s, self.pointers, 2, "ptr", self.result_copy or target)
            listed = f"ptr {self.pointers}, ptr {self.lengths}, ptr {self.steps}, ptr {self.data}"
            s.write(f"call void {self.loop}({listed})")
            if self.result_copy:
                if weights_result:
                    self._weight(
                        s, self.result_copy, "1", self.y.dtype, call.number(self.written_length)
                    )
                self._resize_result(s, target)
        if weights_result and not self.result_copy:
            step, count = call.number(self.y.strides[self.axis]), call.number(self.written_length)
            with nest(call.section, lengths) as (s, indices):
                self._weight(s, address(call, s, self.y, indices), step, self.y.dtype, count)

    def _copy_operand(self, s: Section, source: Name) -> None:
        """Copy a sequence of the operand in the dtype of the loop, with weighted frequencies."""
        call, language, step = self.call, self.call.language, self.x.strides[self.axis]
        with s.loop("0", self.read) as (t, k):
            start = offset(t, source, t.times(k, call.number(step)), self.x.dtype)
            value = language.cast(read(language, t, start, self.x.dtype), self.inner)
            write(t, offset(t, self.operand_copy, k, self.inner), value)
        if self.op == "irfft" and self.weight != 1.0:
            self._weight(s, self.operand_copy, "1", self.inner, self.read)

    def _weight(self, s: Section, start: Name, step: Name, dtype: Dtype, count: Name) -> None:
        """Multiply the frequencies between the first and the middle one."""
        language = self.call.language
        half = s.value(f"sdiv i64 {s.value(f'add i64 {self.call.number(self.n)}, 1')}, 2")
        with s.loop("1", s.smaller(count, half)) as (t, k):
            pointer = offset(t, start, t.times(k, step), dtype)
            value = read(language, t, pointer, dtype)
            factor = language.constant(self.weight, part_of(dtype))
            parts = [p * factor for p in (value.real, value.imag)]
            write(t, pointer, ComplexLane(language, parts[0], parts[1], dtype))

    def _resize_result(self, s: Section, target: Name) -> None:
        """Copy the result of the loop, cropped or padded with zeros."""
        call, language, y = self.call, self.call.language, self.y
        step = call.number(y.strides[self.axis])
        length, written = call.number(y.shape[self.axis]), call.number(self.written_length)
        common = s.smaller(length, written)
        with s.loop("0", common) as (t, k):
            value = read(language, t, offset(t, self.result_copy, k, y.dtype), y.dtype)
            write(t, offset(t, target, t.times(k, step), y.dtype), value)
        with s.loop(common, length) as (t, k):
            zero = language.constant(0, y.dtype)
            write(t, offset(t, target, t.times(k, step), y.dtype), zero)
