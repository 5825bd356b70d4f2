"""Fourier transforms: NumPy's C++ implementation (pocketfft), called without Python.

    fft, rfft, irfft    the inner loops of the ufuncs of numpy.fft

NumPy's transforms are generalized ufuncs.  The loop of one is a C function of arrays,
``void loop(char **args, intp *dims, intp *steps, void *data)``, that needs neither Python nor the
GIL; it crops its operand or pads it with zeros, and multiplies by a factor.  The rest is done here:
operands of another dtype and weighted lines are copied first, and a result of another length
afterwards.  If nothing is copied, all lines of an axis are one call: the loop computes several at a
time in vectors (so the last bits may differ from NumPy's, which may group lines differently).

The ufuncs are not public, so if a future NumPy changes them, the operation becomes a host callback:
`serves` inspects each of them.
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
from .loop_helpers import held, nest, offset, place, read, write

SERVED = (F32, F64, C64, C128)


@functools.cache
def _loop(name: str, signature: str) -> tuple[int, int] | None:
    """The address of the inner loop of one of NumPy's FFT ufuncs, and of its data, or 0."""
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
    extra = ctypes.c_void_p.from_address(data + step).value if data else 0
    return (function, extra or 0) if function else None


def _loops(op: str, inverse: bool, real: Dtype) -> dict[str, tuple[int, int] | None]:
    """The loops that an operation may need, by symbol, in a precision."""
    r, c = real.char, np.result_type(real, np.complex64).char
    names = {"fft": ["ifft" if inverse else "fft"], "irfft": ["irfft"]}
    names["rfft"] = ["rfft_n_odd", "rfft_n_even"]
    letters = {"fft": c + r + c, "rfft": r + r + c, "irfft": c + r + r}[op]
    return {f"ufunc.{name}.{letters}": _loop(name, letters) for name in names[op]}


def _serves(node: Any) -> bool:
    spec, result = node.inputs[0].spec, node.spec.dtype
    if spec.dtype not in SERVED or result not in SERVED:
        return False
    if spec.shape[node.params["axis"]] == 0:  # of no lines the loop reads one that is not there
        return False
    loops = _loops(node.op.name, node.params.get("inverse", False), part_of(result))
    return all(found is not None for found in loops.values())


@kernel("fft", strided=True, serves=_serves)
def fft(call: KernelCall) -> None:
    """The transform along an axis, or its inverse."""
    n = call.params["n"]
    _Transform(call, "fft", call.results[0].dtype, n, n).write()


@kernel("rfft", strided=True, serves=_serves)
def rfft(call: KernelCall) -> None:
    """The first lines of the transform of real numbers, inner lines times a factor."""
    n = call.params["n"]
    _Transform(call, "rfft", part_of(call.results[0].dtype), n, n // 2 + 1).write()


@kernel("irfft", strided=True, serves=_serves)
def irfft(call: KernelCall) -> None:
    """The real numbers with these first lines, inner lines times a factor."""
    n = call.params["n"]
    result = call.results[0].dtype
    _Transform(call, "irfft", np.result_type(result, np.complex64), n // 2 + 1, n).write()


class _Transform:
    """One transform of all lines of an array.

    Parameters
    ----------
    inner : dtype
        The dtype of the operand of the loop.
    taken, given : Length
        The maximum number of elements of a line that the loop reads, and the number it writes.
    """

    def __init__(
        self, call: KernelCall, op: str, inner: Dtype, taken: Length, given: Length
    ) -> None:
        self.call, self.op, self.inner = call, op, inner
        (self.x,), (self.y,) = call.operands, call.results
        self.axis = call.params["axis"] % len(self.x.shape)
        self.n = call.params["n"]
        self.given = given
        self.weight = call.params.get("interior", 1.0)
        self.real = part_of(self.y.dtype)
        weighs_first = op == "irfft" and self.weight != 1.0
        copied = self.x.dtype != inner or weighs_first
        self.line = call.scratch(taken * inner.itemsize) if copied else ""
        self.read = call.section.smaller(*map(call.number, (self.x.shape[self.axis], taken)))
        other = self.y.shape[self.axis] != given
        self.out = call.scratch(given * self.y.dtype.itemsize) if other else ""
        axes = [k for k in range(len(self.x.shape)) if k != self.axis]
        self.together = axes[-1] if axes and not self.line and not self.out else -1
        self._frame(call.section)

    def _frame(self, s: Section) -> None:
        """The loop-invariant values: lengths, factor, the loop."""
        call, slot = self.call, self.call.function.slot
        self.places, self.lengths = slot("[3 x ptr]", 8), slot("[3 x i64]", 8)
        self.steps = slot("[5 x i64]", 8)
        self.factor = held(call, self.real)
        s.write(f"store {in_memory(self.real)} {self._scale(s)}, ptr {self.factor}")
        self._put(s, self.places, 1, "ptr", self.factor)
        count, apart = "1", ["0", "0"]
        if self.together >= 0:
            count = call.number(self.y.shape[self.together])
            apart = [self._bytes(s, x, self.together) for x in (self.x, self.y)]
        for k, length in enumerate((count, self.read, call.number(self.given))):
            self._put(s, self.lengths, k, "i64", length)
        steps = [str(self.inner.itemsize), str(self.y.dtype.itemsize)]
        if not self.line:
            steps[0] = self._bytes(s, self.x, self.axis)
        if not self.out:
            steps[1] = self._bytes(s, self.y, self.axis)
        for k, step in enumerate((apart[0], "0", apart[1], *steps)):
            self._put(s, self.steps, k, "i64", step)
        self.loop, self.data = self._which(s)

    def _bytes(self, s: Section, x: ArrayPointer, axis: int) -> Name:
        """The stride of an axis in bytes."""
        return s.times(self.call.number(x.strides[axis]), str(x.dtype.itemsize))

    def _put(self, s: Section, frame: Name, k: int, kind: str, value: Name) -> None:
        s.write(f"store {kind} {value}, ptr {s.value(f'getelementptr i64, ptr {frame}, i64 {k}')}")

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

    def _which(self, s: Section) -> tuple[Name, Name]:
        """The loop and its data; for real numbers it depends on whether n is even."""
        found = []
        inverse = self.call.params.get("inverse", False)
        for symbol, loop in _loops(self.op, inverse, self.real).items():
            assert loop is not None
            function, data = loop
            name = self.call.external(symbol, function, "void", ["ptr"] * 4)
            extra = "null"
            if data:
                extra = self.call.external(f"{symbol}.data", data, "void", [])
            found.append((name, extra))
        if len(found) == 1:
            return found[0]
        odd = s.value(f"trunc i64 {self.call.number(self.n)} to i1")
        (first, extra), (second, other) = found
        return (
            s.value(f"select i1 {odd}, ptr {first}, ptr {second}"),
            s.value(f"select i1 {odd}, ptr {extra}, ptr {other}"),
        )

    def write(self) -> None:
        """Write loops over all lines."""
        call = self.call
        weighs = self.op == "rfft" and self.weight != 1.0
        lengths = [call.number(n) for n in self.y.shape]
        lengths[self.axis] = "1"
        once = ["1" if k == self.together else n for k, n in enumerate(lengths)]
        with nest(call.section, once) as (s, indices):
            source = place(call, s, self.x, indices)
            target = place(call, s, self.y, indices)
            if self.line:
                self._copied(s, source)
            self._put(s, self.places, 0, "ptr", self.line or source)
            self._put(s, self.places, 2, "ptr", self.out or target)
            listed = f"ptr {self.places}, ptr {self.lengths}, ptr {self.steps}, ptr {self.data}"
            s.write(f"call void {self.loop}({listed})")
            if self.out:
                if weighs:
                    self._weighted(s, self.out, "1", self.y.dtype, call.number(self.given))
                self._resized(s, target)
        if weighs and not self.out:
            step, count = call.number(self.y.strides[self.axis]), call.number(self.given)
            with nest(call.section, lengths) as (s, indices):
                self._weighted(s, place(call, s, self.y, indices), step, self.y.dtype, count)

    def _copied(self, s: Section, source: Name) -> None:
        """A line of the operand in the dtype of the loop, weighted."""
        call, language, step = self.call, self.call.language, self.x.strides[self.axis]
        with s.loop("0", self.read) as (t, k):
            start = offset(t, source, t.times(k, call.number(step)), self.x.dtype)
            value = language.cast(read(language, t, start, self.x.dtype), self.inner)
            write(t, offset(t, self.line, k, self.inner), value)
        if self.op == "irfft" and self.weight != 1.0:
            self._weighted(s, self.line, "1", self.inner, self.read)

    def _weighted(self, s: Section, start: Name, step: Name, dtype: Dtype, count: Name) -> None:
        """Multiply the lines between the first and a middle one."""
        language = self.call.language
        half = s.value(f"sdiv i64 {s.value(f'add i64 {self.call.number(self.n)}, 1')}, 2")
        with s.loop("1", s.smaller(count, half)) as (t, k):
            at = offset(t, start, t.times(k, step), dtype)
            value = read(language, t, at, dtype)
            factor = language.constant(self.weight, part_of(dtype))
            parts = [p * factor for p in (value.real, value.imag)]
            write(t, at, ComplexLane(language, parts[0], parts[1], dtype))

    def _resized(self, s: Section, target: Name) -> None:
        """The result of the loop, cropped or padded with zeros."""
        call, language, y = self.call, self.call.language, self.y
        step = call.number(y.strides[self.axis])
        keep, given = call.number(y.shape[self.axis]), call.number(self.given)
        both = s.smaller(keep, given)
        with s.loop("0", both) as (t, k):
            value = read(language, t, offset(t, self.out, k, y.dtype), y.dtype)
            write(t, offset(t, target, t.times(k, step), y.dtype), value)
        with s.loop(both, keep) as (t, k):
            zero = language.constant(0, y.dtype)
            write(t, offset(t, target, t.times(k, step), y.dtype), zero)
