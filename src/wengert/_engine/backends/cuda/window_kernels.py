"""Sliding windows on a device: their elements, sums, maxima, and the transposes of these.

A thread computes one element of a result.  It adds what is added to this element, in the order of
the taps, so nothing is added by several threads: a transpose looks for the windows that an element
is in.  Window, stride, padding and dilation are constants of a kernel, lengths are arguments.

    Windows      the windows of some arrays of one shape
    columns      their elements as columns of a matrix; pooling and convolutions.py read them
    added        the transpose: each tap of a window added to the element it was read from
    pooled       the operations of ops/neural/pooling.py
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.ops.neural.sliding_windows import WindowGeometry, counts_of

from ..llvm.codegen.reductions import ArgExtremum, MutableValue, accumulator
from ..llvm.ir.ir_builder import Function, ModuleBuilder, Name, Section
from ..llvm.ir.llvm_types import I64, Dtype, in_memory, part_of
from ..llvm.ir.memory_access import load, store
from ..llvm.ir.scalar_language import Language
from ..llvm.ir.simd_value import Lane
from .device import Device
from .kernel_codegen import DeviceKernel
from .loaded_kernels import element_kernel, launch_of


class Windows(NamedTuple):
    """The windows of arrays.

    geometry : WindowGeometry
    lengths : the lengths of the spatial axes.
    counts : the number of positions along each.
    """

    geometry: WindowGeometry
    lengths: tuple[int, ...]
    counts: tuple[int, ...]

    @classmethod
    def of(cls, lengths: Sequence[int], geometry: WindowGeometry) -> Windows:
        """The windows of arrays with spatial axes of these lengths."""
        return cls(geometry, tuple(lengths), counts_of(lengths, geometry, "input"))

    def numbers(self) -> list[Any]:
        """Lengths and counts as arguments of a kernel."""
        return [np.int64(n) for n in (*self.lengths, *self.counts)]

    def name(self, what: str, *more: Any) -> str:
        """The name of a kernel for such windows."""
        pairs = [x for pair in self.geometry.padding for x in pair]
        listed = (*self.geometry.window, *self.geometry.stride, *self.geometry.dilation, *pairs)
        spelled = "_".join(str(n).replace("-", "m") for n in (*more, len(self.lengths), *listed))
        return f"windows_{what}_{spelled}"


class _Code:
    """Emits code about the windows of a kernel, whose arguments are lengths n0... and counts m0...

    Parameters
    ----------
    section : Section
        That of one element.
    """

    def __init__(self, geometry: WindowGeometry, module: ModuleBuilder, section: Section) -> None:
        self.geometry, self.language = geometry, Language(module)
        self.language.home = section
        self.axes = range(len(geometry.window))
        self.lengths = [f"%n{k}" for k in self.axes]
        self.counts = [f"%m{k}" for k in self.axes]
        self.taps = str(math.prod(geometry.window))

    def digits(self, s: Section, flat: Name, sizes: Sequence[Name]) -> tuple[Name, list[Name]]:
        """What remains of a flat index, and the index in axes of these sizes."""
        found: list[Name] = []
        for n in reversed(sizes):
            found.insert(0, s.value(f"urem i64 {flat}, {n}"))
            flat = s.value(f"udiv i64 {flat}, {n}")
        return flat, found

    def flat(self, s: Section, first: Name, index: Sequence[Name], sizes: Sequence[Name]) -> Name:
        """The flat index of an index; `first` counts arrays of these sizes."""
        for i, n in zip(index, sizes, strict=True):
            first = s.plus(s.value(f"mul i64 {first}, {n}"), i)
        return first

    def tap(self, s: Section, number: Name) -> list[Name]:
        """The index of a tap in the window."""
        return self.digits(s, number, [str(n) for n in self.geometry.window])[1]

    def source(self, s: Section, position: Sequence[Name], number: Name) -> tuple[list[Name], Name]:
        """The index of the element at a tap of the window at a position; whether it exists."""
        index, exists = [], "true"
        for k, j in zip(self.axes, self.tap(s, number), strict=True):
            start = s.value(f"mul i64 {position[k]}, {self.geometry.stride[k]}")
            step = s.value(f"mul i64 {j}, {self.geometry.dilation[k]}")
            low = self.geometry.padding[k][0]
            index.append(s.value(f"sub i64 {s.value(f'add i64 {start}, {step}')}, {low}"))
            inside = s.value(f"icmp ult i64 {index[k]}, {self.lengths[k]}")  # negative: too large
            exists = s.value(f"and i1 {exists}, {inside}")
        return index, exists

    def position(self, s: Section, index: Sequence[Name], number: Name) -> tuple[list[Name], Name]:
        """The position of the window of which an element is this tap; whether there is one."""
        position, exists = [], "true"
        for k, j in zip(self.axes, self.tap(s, number), strict=True):
            step = s.value(f"mul i64 {j}, {self.geometry.dilation[k]}")
            moved = s.value(f"add i64 {index[k]}, {self.geometry.padding[k][0]}")
            start, stride = s.value(f"sub i64 {moved}, {step}"), self.geometry.stride[k]
            position.append(s.value(f"sdiv i64 {start}, {stride}"))
            rest = s.value(f"srem i64 {start}, {stride}")
            tests = (f"icmp sge i64 {start}, 0", f"icmp eq i64 {rest}, 0")
            for test in (*tests, f"icmp slt i64 {position[k]}, {self.counts[k]}"):
                exists = s.value(f"and i1 {exists}, {s.value(test)}")
        return position, exists

    def address(self, s: Section, array: Name, place: Name, dtype: Dtype) -> Name:
        """The address of an element."""
        kind = in_memory(part_of(dtype))
        whole = f"[2 x {kind}]" if dtype.kind == "c" else kind
        return s.value(f"getelementptr {whole}, ptr {array}, i64 {place}")

    def load(self, s: Section, array: Name, place: Name, dtype: Dtype) -> Any:
        """An element of an array."""
        return load(self.language, s, self.address(s, array, place, dtype), dtype, 1, None)

    def store(self, s: Section, place: Name, value: Any, dtype: Dtype) -> None:
        """Store an element of the result."""
        given = self.language.cast(value, dtype)
        store(self.language, s, self.address(s, "%out", place, dtype), given, 1, None)

    def total(self, s: Section, dtype: Dtype) -> Any:
        """The accumulator of a sum, in the order of its terms; of booleans, whether one is true."""
        return accumulator(
            self.language, s, "max" if dtype.kind == "b" else "sum", dtype, 1, blocked=False
        )


_Writes = Callable[[_Code, Function, Section, Name], None]


def _launch(
    device: Device,
    windows: Windows,
    name: str,
    arguments: Sequence[tuple[str, Any]],
    elements: int,
    write: _Writes,
) -> None:
    """Run a kernel: its arguments are these, then lengths and counts."""
    if not elements:
        return
    kinds = [("ptr" if device.owns(x) else "i64", n) for n, x in arguments]
    axes = range(len(windows.lengths))
    kinds += [("i64", f"{letter}{k}") for letter in "nm" for k in axes]

    def body(m: ModuleBuilder, f: Function, s: Section, element: Name) -> None:
        write(_Code(windows.geometry, m, s), f, s, element)

    def make() -> DeviceKernel:
        return element_kernel(name, kinds, body)

    given = [x for _, x in arguments]
    launch = launch_of(device, name, make)
    launch([*given, *windows.numbers(), np.int64(elements)], elements)


# ---- columns and their transpose -----------------------------------------------------------------


def columns(device: Device, x: Any, windows: Windows) -> Any:
    """The elements of all windows, of shape (channels, taps, samples, *counts).

    `x` has the shape (samples, channels, *lengths).  Elements of the padding are zero.
    """
    n, channels = x.shape[:2]
    taps = math.prod(windows.geometry.window)
    out = device.empty((channels, taps, n, *windows.counts), x.dtype)
    arguments = [("x", device.contiguous(x)), ("out", out)]
    arguments += [("samples", np.int64(n)), ("channels", np.int64(channels))]
    name = windows.name("columns", x.dtype.str[1:])
    elements = channels * n * math.prod(windows.counts)
    _launch(device, windows, name, arguments, elements, partial(_columns, x.dtype))
    return out


def _columns(dtype: Dtype, code: _Code, function: Function, s: Section, element: Name) -> None:
    rest, position = code.digits(s, element, code.counts)
    channel, (sample,) = code.digits(s, rest, ["%samples"])
    image = code.flat(s, sample, [channel], ["%channels"])
    first = s.value(f"mul i64 {channel}, {code.taps}")
    with s.loop("0", code.taps) as (t, number):
        index, exists = code.source(t, position, number)
        slot = MutableValue(code.language, t, part_of(dtype), 1)
        parts = (
            [slot] if dtype.kind != "c" else [slot, MutableValue(code.language, t, slot.dtype, 1)]
        )
        for part in parts:
            part.put(t, 0)
        with t.when(exists) as inside:
            value = code.load(inside, "%x", code.flat(inside, image, index, code.lengths), dtype)
            for part, one in zip(parts, _parts(value), strict=True):
                part.put(inside, one)
        after = t.inside()
        found = [part.get(after) for part in parts]
        value = found[0] if len(found) == 1 else code.language.rectangular(*found)
        row = after.value(f"add i64 {first}, {number}")
        place = code.flat(after, row, [sample, *position], ["%samples", *code.counts])
        code.store(after, place, value, dtype)


def _parts(value: Any) -> list[Any]:
    return [value.real, value.imag] if value.dtype.kind == "c" else [value]


def added(device: Device, y: Any, windows: Windows, lead: tuple[int, ...], what: str = "") -> Any:
    """Arrays of shape (*lead, *lengths), whose elements are sums of the taps read from them.

    Parameters
    ----------
    y : array
        Of the shape of `columns`, if `what` is "columns"; else of shape (*lead, *counts): the same
        for all taps of a window.
    """
    out = device.empty((*lead, *windows.lengths), y.dtype)
    arguments = [("y", device.contiguous(y)), ("out", out)]
    if what:
        arguments += [("samples", np.int64(lead[0])), ("channels", np.int64(lead[1]))]
    name = windows.name(f"added{what}", y.dtype.str[1:])
    write = partial(_added, y.dtype, bool(what))
    _launch(device, windows, name, arguments, math.prod(out.shape), write)
    return out


def _added(
    dtype: Dtype, of_columns: bool, code: _Code, function: Function, s: Section, element: Name
) -> None:
    image, index = code.digits(s, element, code.lengths)
    sample, channel = image, "0"
    if of_columns:
        sample, (channel,) = code.digits(s, image, ["%channels"])
    total = code.total(s, dtype)
    with s.loop("0", code.taps) as (t, number):
        position, exists = code.position(t, index, number)
        with t.when(exists) as inside:
            first, lead, sizes = image, [], []
            if of_columns:
                first = code.flat(inside, channel, [number], [code.taps])
                lead, sizes = [sample], ["%samples"]
            place = code.flat(inside, first, [*lead, *position], [*sizes, *code.counts])
            total.step(inside, code.load(inside, "%y", place, dtype), None)
    after = s.inside()
    code.store(after, element, total.result(after, False), dtype)


# ---- pooling -------------------------------------------------------------------------------------


def pooled(name: str, device: Device, operands: Sequence[Any], params: dict[str, Any]) -> Any:
    """The result of an operation of pooling."""
    arrays = [device.contiguous(device.put(x)) for x in operands]
    own = params["of_op"]
    x = arrays[-1]
    window = tuple(own["window"])
    k = len(window)
    dilation = tuple(own.get("dilation") or (1,) * k)
    geometry = WindowGeometry(window, tuple(own["stride"]), tuple(own["padding"]), dilation)
    windows = Windows.of(own.get("size", x.shape[x.ndim - k :]), geometry)
    lead = x.shape[: x.ndim - k]
    if name == "sum_pool_adjoint":
        return added(device, x, windows, lead)
    if name == "max_pool_adjoint":
        return _chosen(device, arrays[0], _largest(device, [x], windows, lead, "inside"), windows)
    of = {"sum_pool": "sum", "max_pool": "max", "max_pool_tangent": "tangent"}
    return _largest(device, arrays[::-1], windows, lead, of.get(name, "first"))


def _largest(
    device: Device, arrays: Sequence[Any], windows: Windows, lead: tuple[int, ...], what: str
) -> Any:
    """Of each window: a sum, the largest element, its position, or what another array has there.

    what : "sum", "max", "tangent", "first" or "inside"; the last is -1 for windows in the padding.
    """
    dtype = arrays[-1].dtype if what in ("sum", "max", "tangent") else I64
    out = device.empty((*lead, *windows.counts), dtype)
    arguments = [("x", arrays[0]), ("out", out)]
    if what == "tangent":
        arguments.append(("other", arrays[1]))
    name = windows.name(what, arrays[0].dtype.str[1:], arrays[-1].dtype.str[1:])
    write = partial(_window, what, arrays[0].dtype, dtype)
    _launch(device, windows, name, arguments, math.prod(out.shape), write)
    return out


def _window(
    what: str,
    dtype: Dtype,
    result: Dtype,
    code: _Code,
    function: Function,
    s: Section,
    element: Name,
) -> None:
    image, position = code.digits(s, element, code.counts)
    language = code.language
    is_place = what not in ("sum", "max")
    if is_place:
        state: Any = ArgExtremum(language, s, "argmax", dtype, 1)
    else:
        as_largest = accumulator(language, s, "max", dtype, 1, blocked=False)
        state = code.total(s, dtype) if what == "sum" else as_largest
    with s.loop("0", code.taps) as (t, number):
        index, exists = code.source(t, position, number)
        with t.when(exists) as inside:
            value = code.load(inside, "%x", code.flat(inside, image, index, code.lengths), dtype)
            if is_place:
                own = code.flat(inside, "0", index, code.lengths)
                state.step(inside, (value, Lane(language, inside, own, I64, 1)), None)
            else:
                state.step(inside, value, None)
    after = s.inside()
    found = state.result(after, False)
    if what == "tangent":
        place = code.flat(after, image, [found.name], [_size(after, code.lengths)])
        slot = function.slot("i64")  # a window in the padding has zero
        after.write(f"store i64 {place}, ptr {slot}")
        code.store(after, element, 0, result)
        with after.when(after.value(f"icmp sge i64 {found.name}, 0")) as inside:
            code.store(inside, element, code.load(inside, "%other", place, result), result)
        return
    code.store(after, element, found, result)


def _size(s: Section, lengths: Sequence[Name]) -> Name:
    total = "1"
    for n in lengths:
        total = n if total == "1" else s.value(f"mul i64 {total}, {n}")
    return total


def _chosen(device: Device, t: Any, places: Any, windows: Windows) -> Any:
    """The transpose of the choice: t added at the positions of the largest elements."""
    lead = t.shape[: t.ndim - len(windows.lengths)]
    out = device.empty((*lead, *windows.lengths), t.dtype)
    arguments = [("y", t), ("out", out), ("places", places)]
    name = windows.name("chosen", t.dtype.str[1:])
    elements = math.prod(out.shape)
    _launch(device, windows, name, arguments, elements, partial(_choose, t.dtype))
    return out


def _choose(dtype: Dtype, code: _Code, function: Function, s: Section, element: Name) -> None:
    image, index = code.digits(s, element, code.lengths)
    own = code.flat(s, "0", index, code.lengths)
    total = code.total(s, dtype)
    with s.loop("0", code.taps) as (t, number):
        position, exists = code.position(t, index, number)
        with t.when(exists) as inside:
            place = code.flat(inside, image, position, code.counts)
            address = inside.value(f"getelementptr i64, ptr %places, i64 {place}")
            chosen = inside.value(f"load i64, ptr {address}")
            with inside.when(inside.value(f"icmp eq i64 {chosen}, {own}")) as same:
                total.step(same, code.load(same, "%y", place, dtype), None)
    after = s.inside()
    code.store(after, element, total.result(after, False), dtype)
