"""Operations along an axis on a device, and products in which zero times infinity is zero.

    scanned      the result of `running`, `recurrence` or `ndimage.decaying_sum`
    is_strong    whether an operation is such a product
    product      the product of the library, and the search for NaN

Many lines: a thread computes each, element by element.  A few long ones: all elements at once, in
a number of steps that grows with the logarithm of the length.

Nearly always no factor is infinite or NaN, and the product of the library is right.  To see that,
a kernel looks for NaN in the product, and sets the status: nothing waits for it.  If it was set the
program is run again, with the product as eager execution computes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from wengert._engine.core.node import Node
from wengert._engine.kinds.contraction_lowering import contract
from wengert._engine.ops.cumulative import solved_recurrence

from ..llvm.codegen.reductions import accumulator
from ..llvm.ir.ir_builder import Function, ModuleBuilder, Name, Section
from ..llvm.ir.llvm_types import Dtype, in_memory, part_of
from ..llvm.ir.memory_access import load, store
from ..llvm.ir.scalar_language import Language
from .checked_values import Sought
from .device import Device
from .kernel_codegen import DeviceKernel
from .loaded_kernels import element_kernel, launch_of
from .matrix_kernels import IN_DOUBT
from .run_status import look

_LONG_LINE = 4096  # elements of a line, beyond which a few lines are not left to a thread each
_FEW_LINES = 512
_UFUNCS = {"max": np.maximum, "min": np.minimum}


def scanned(name: str, device: Device, operands: Sequence[Any], params: dict[str, Any]) -> Any:
    """The result of an operation."""
    own, dtype = params["of_op"], params["dtype"]
    arrays = [device.contiguous(device.put(x)) for x in operands]
    reverse, factor = bool(own.get("reverse")), own.get("factor")
    monoid = {None: "", True: "max", False: "min"}[own.get("largest")]
    if factor is not None and dtype.kind not in "fc":
        return NotImplemented
    shape = arrays[0].shape
    axis = own["axis"] % len(shape)
    n, inner = shape[axis], prod(shape[axis + 1 :])
    lines = prod(shape) // n if n else 0
    if n > _LONG_LINE and lines < _FEW_LINES:
        return _together(arrays, axis, reverse, monoid, factor)
    arrays = [device.contiguous(x.astype(dtype, copy=False)) for x in arrays]
    out = device.empty(shape, dtype)
    if not lines:
        return out
    full = f"scan_{name.replace('.', '_')}_{dtype.str[1:]}_{monoid}{int(reverse)}"
    listed = [("ptr", f"x{k}") for k in range(len(arrays))]
    listed += [("ptr", "out"), ("i64", "n"), ("i64", "inner")]
    given = [*arrays, out, np.int64(n), np.int64(inner)]
    if factor is not None:
        listed.append(("double", "factor"))
        given.append(np.float64(factor))

    def make() -> DeviceKernel:
        write = partial(_line, monoid, dtype, reverse, len(arrays), factor is not None)
        return element_kernel(full, listed, write)

    launch_of(device, full, make)([*given, np.int64(lines)], lines)
    return out


def _together(
    arrays: Sequence[Any], axis: int, reverse: bool, monoid: str, factor: float | None
) -> Any:
    """All elements at once, with results for 1, 2, 4 ... elements."""
    order = slice(None, None, -1 if reverse else 1)
    xs = [np.moveaxis(x, axis, 0)[order] for x in arrays]
    if not monoid:
        a = xs[0] if factor is None else np.full_like(xs[0], factor)
        return np.moveaxis(solved_recurrence(a, xs[-1])[order], 0, axis)
    found, step = xs[0].copy(), 1
    while step < len(found):
        found[step:] = _UFUNCS[monoid](found[step:], found[:-step])
        step *= 2
    return np.moveaxis(found, 0, axis)


def _line(
    monoid: str,
    dtype: Dtype,
    reverse: bool,
    operands: int,
    has_factor: bool,
    module: ModuleBuilder,
    function: Function,
    s: Section,
    element: Name,
) -> None:
    """Compute one line."""
    language = Language(module)
    language.home = s
    outer = s.value(f"udiv i64 {element}, %inner")
    first = s.value(f"mul i64 {s.value(f'mul i64 {outer}, %n')}, %inner")
    first = s.value(f"add i64 {first}, {s.value(f'urem i64 {element}, %inner')}")
    state = accumulator(language, s, monoid or "sum", dtype, 1, blocked=False)
    last = s.value("sub i64 %n, 1")
    factor = None
    if has_factor:
        head = s.inside()  # where conversions of the factor go
        factor = language.lane(head, "fadd double %factor, 0.0", np.dtype(np.float64), 1)
        factor = language.cast(factor, part_of(dtype))
    with s.loop("0", "%n") as (t, k):
        index = t.value(f"sub i64 {last}, {k}") if reverse else k
        place = t.value(f"add i64 {first}, {t.value(f'mul i64 {index}, %inner')}")
        values = [_load(language, t, f"%x{j}", place, dtype) for j in range(operands)]
        if not monoid:
            _decay(language, t, state, values[0] if operands == 2 else factor)
        state.step(t, values[-1], None)
        after = t.inside()
        store(
            language, after, _at(after, "%out", place, dtype), state.result(after, False), 1, None
        )


def _decay(language: Language, s: Section, state: Any, factor: Any) -> None:
    """Multiply the state of a sum by a factor."""
    before = state.result(s, False)
    new = language.binary("multiply", before, factor)
    parts = [new.real, new.imag] if before.dtype.kind == "c" else [new]
    for slot, part in zip(state.states, parts, strict=True):
        slot.put(s, part)


def _load(language: Language, s: Section, array: Name, place: Name, dtype: Dtype) -> Any:
    return load(language, s, _at(s, array, place, dtype), dtype, 1, None)


def _at(s: Section, array: Name, place: Name, dtype: Dtype) -> Name:
    kind = in_memory(part_of(dtype))
    whole = f"[2 x {kind}]" if dtype.kind == "c" else kind
    return s.value(f"getelementptr {whole}, ptr {array}, i64 {place}")


_NAN = Sought(nan=True, inf=False)


def is_strong(node: Node) -> bool:
    """Whether a product has strong zeros, and may be infinite or NaN."""
    return getattr(node.op, "has_strong_zeros", False) and node.spec.dtype.kind in "fc"


def product(device: Device, operands: Sequence[Any], subscripts: Any, status: Any) -> Any:
    """The product; the status is set if an element is NaN."""
    made = contract(*operands, subscripts=subscripts)
    if not device.owns(made):
        made = device.put(made)
    made = device.contiguous(made)
    look(device, made, status, _NAN, IN_DOUBT)
    return made
