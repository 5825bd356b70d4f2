"""Random bits and uniform numbers on a device: the same bits as on the host.

Philox is a function of a key and a counter (ops/random/philox.py), so a thread computes the blocks
that it writes. Normal numbers (normal_kernels.py) and integers (integer_kernels.py), of which NumPy
rejects some words, are computed from them.

    drawn           the numbers of an operation
    store_number    the number that is made of a word
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ..llvm.ir.ir_builder import Function, ModuleBuilder, Name, Section
from ..llvm.kernels.random.philox import block, schedule
from .device import Device
from .kernel_codegen import DeviceKernel
from .loaded_kernels import element_kernel, launch_of

BLOCK_BYTES = 32  # of a block of Philox
# The shift of a word, or the bit that is set, and the scale: as kernels/random/distributions.py.
SCALES = {
    ("random_uniform", "f8"): (11, 2.0**-53),
    ("random_uniform", "f4"): (8, 2.0**-24),
    ("random_tail", "f8"): (None, 2.0**-64),
    ("random_tail", "f4"): (None, 2.0**-32),
    ("random_bits", "u8"): (0, None),
    ("random_bits", "u4"): (0, None),
}


def drawn(name: str, device: Device, operands: Sequence[Any], params: dict[str, Any]) -> Any:
    """The numbers of an operation; NotImplemented if it is not one of those above."""
    dtype = np.dtype(params["dtype"])
    if (name, dtype.str[1:]) not in SCALES:
        return NotImplemented
    states = device.contiguous(device.put(operands[0]))
    shape = tuple(params["shape"])
    count = math.prod(shape)
    each = BLOCK_BYTES // dtype.itemsize
    blocks = -(-count // each)
    states_count, words = math.prod(states.shape[:-1]), states.shape[-1]
    out = device.empty((*states.shape[:-1], *shape), dtype)
    full = f"{name}_{dtype.str[1:]}_{words}"
    launch = launch_of(device, full, partial(_kernel, full, name, dtype, words))
    total = states_count * blocks
    if total:
        number = np.uint64(params["number"] % (1 << 64)).astype(np.int64)
        launch([states, out, number, np.int64(count), np.int64(blocks), np.int64(total)], total)
    return out


def _kernel(full: str, name: str, dtype: np.dtype[Any], words: int) -> DeviceKernel:
    arguments = [("ptr", "states"), ("ptr", "out")]
    arguments += [("i64", n) for n in ("number", "count", "blocks")]
    return element_kernel(full, arguments, partial(_block, name, dtype, words))


def _block(
    name: str,
    dtype: np.dtype[Any],
    words: int,
    module: ModuleBuilder,
    function: Function,
    s: Section,
    element: Name,
) -> None:
    """Write the numbers of one block."""
    state, place = s.value(f"udiv i64 {element}, %blocks"), s.value(f"urem i64 {element}, %blocks")
    base = s.value(f"mul i64 {state}, {words}")
    loaded = []
    for k in range(words):
        index = s.value(f"add i64 {base}, {k}")
        address = s.value(f"getelementptr i64, ptr %states, i64 {index}")
        loaded.append(s.value(f"load i64, ptr {address}"))
    position = s.value(f"add i64 {loaded[2] if words == 3 else 0}, %number")
    counter = s.value(f"add i64 {place}, 1")
    made = block(s, counter, position, schedule(s, loaded[:2]))
    each = BLOCK_BYTES // dtype.itemsize
    first, start = s.value(f"mul i64 {place}, {each}"), s.value(f"mul i64 {state}, %count")
    for k in range(each):
        word = made[k * 4 // each]
        if each == 8:  # two numbers of each word, the lower half first
            half = word if k % 2 == 0 else s.value(f"lshr i64 {word}, 32")
            word = s.value(f"trunc i64 {half} to i32")
        at = s.value(f"add i64 {first}, {k}")
        with s.when(s.value(f"icmp ult i64 {at}, %count")) as inside:
            store_number(inside, name, dtype, word, inside.value(f"add i64 {start}, {at}"))


def store_number(
    s: Section, name: str, dtype: np.dtype[Any], word: Name, place: Name, out: Name = "%out"
) -> None:
    """Store the number that is made of a word."""
    bits = f"i{8 * dtype.itemsize}"
    shift, scale = SCALES[name, dtype.str[1:]]
    kind = bits
    if scale is not None:
        kind = "double" if dtype.itemsize == 8 else "float"
        whole = f"or {bits} {word}, 1" if shift is None else f"lshr {bits} {word}, {shift}"
        number = s.value(f"sitofp {bits} {s.value(whole)} to {kind}")
        word = s.value(f"fmul {kind} {number}, {scale!r}")
    address = s.value(f"getelementptr {kind}, ptr {out}, i64 {place}")
    s.write(f"store {kind} {word}, ptr {address}")
