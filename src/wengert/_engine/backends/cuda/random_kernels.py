"""Random bits, uniform numbers, integers and keys on a device, with the bits of the host.

    bounded_integers          NumPy's integers: a word for each, of which some are rejected
    integers_below            wengert's: for each element blocks of its own, until one is accepted
    split_keys, folded_key    keys from keys
    drawn                     the numbers of an operation
    store_number              the number that is made of a word

D. Lemire, "Fast random integer generation in an interval", ACM TOMACS 29 (2019): the upper half of
the product of a word and the number of integers; it is rejected if the lower half is too small.

Philox is a function of a key and a counter (ops/random/bits.py), so a thread computes the blocks
that it writes. Normal numbers (normal_kernels.py) and integers (random_kernels.py), of which NumPy
rejects some words, are computed from them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from wengert._engine.backends.llvm.kernels.philox import block, schedule
from wengert._engine.ops.random.bits import FOLD, SPLIT, TRIALS

from ..llvm.ir.ir_builder import Function, ModuleBuilder, Name, Section
from .device import Device
from .draw_chains import at, loaded
from .kernel_codegen import DeviceKernel
from .loaded_kernels import element_kernel, launch_of

BLOCK_BYTES = 32  # of a block of Philox
# The shift of a word, or the bit that is set, and the scale: as kernels/distributions.py.
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


_SPARE, _DEVIATIONS = 40, 12  # words beyond the expected number
_Write = Callable[[ModuleBuilder, Function, Section, Name], None]


def _launched(
    device: Device,
    name: str,
    write: _Write,
    arrays: Sequence[Any],
    sizes: Sequence[int],
    total: int,
) -> None:
    """Run the kernel of a name: `write` emits the code of an element."""
    names = [("ptr", f"array{k}") for k in range(len(arrays))]
    names += [("i64", f"size{k}") for k in range(len(sizes))]
    launch = launch_of(device, name, partial(element_kernel, name, names, write))
    if total:
        launch([*arrays, *[np.int64(n) for n in sizes], np.int64(total)], total)


# ---- NumPy's integers ----------------------------------------------------------------------------


def bounded_integers(
    name: str, device: Device, operands: Sequence[Any], params: dict[str, Any]
) -> Any:
    """Integers in [low, high), as numpy.random.Generator.integers draws them."""
    dtype, shape = np.dtype(params["dtype"]), tuple(params["shape"])
    low, last = int(params["low"]), int(params["high"]) - 1 - int(params["low"])
    count = math.prod(shape)
    if dtype.kind not in "iu" or not count:
        return NotImplemented
    states = device.contiguous(device.put(operands[0]))
    outer = states.shape[:-1]
    states = states.reshape(math.prod(outer), -1)
    bits = 8 * dtype.itemsize
    if bits == 64 and last < 1 << 32:
        bits = 32
    if last == 0:
        found = device.empty((*outer, *shape), dtype)
        found[...] = low
        return found
    threshold = 0 if last == (1 << bits) - 1 else (1 << bits) % (last + 1)
    refused = threshold / 2.0**bits
    length = count
    if threshold:
        expected = count / (1.0 - refused)
        length = int(expected + _DEVIATIONS * math.sqrt(expected) + _SPARE)
    words = _words(device, states, params["number"], length, bits)
    numbers = device.empty(words.shape, dtype)
    accepted = device.empty(words.shape, np.dtype(np.uint8))
    write = partial(_bounded, bits, 8 * dtype.itemsize)
    total = math.prod(words.shape)
    full = last + 1 if threshold or last != (1 << bits) - 1 else 0
    sizes = [_signed(n) for n in (full, threshold, low)]
    arrays = [words, numbers, accepted]
    _launched(device, f"bounded_{bits}_{8 * dtype.itemsize}", write, arrays, sizes, total)
    chosen = _first_accepted(device, numbers, accepted, count)
    return NotImplemented if chosen is None else chosen.reshape(*outer, *shape)


def _words(device: Device, states: Any, number: int, length: int, bits: int) -> Any:
    """Words of some bits; those of fewer than 32 are parts of these, the lowest first."""
    wide = np.dtype(f"u{max(bits, 32) // 8}")
    parts = wide.itemsize * 8 // bits
    given = {"number": number, "shape": (-(-length // parts),), "dtype": wide}
    words = drawn("random_bits", device, [states], given)
    return words.view(np.dtype(f"u{bits // 8}"))


def _first_accepted(device: Device, numbers: Any, accepted: Any, count: int) -> Any:
    """The first numbers of each stream that are accepted; None if there are too few."""
    if bool(np.all(accepted[:, :count])):
        return numbers[:, :count].copy()
    if int(device.get(np.min(np.sum(accepted, axis=1, dtype=np.int64)))) < count:
        return None
    order = np.argsort(np.int8(1) - accepted.astype(np.int8), axis=1, kind="stable")[:, :count]
    return np.take_along_axis(numbers, order, axis=1)


def _bounded(
    bits: int, own: int, _: ModuleBuilder, function: Function, s: Section, element: Name
) -> None:
    """The integer of a word, and whether it is accepted; with 0 as their number, any word is."""
    wide = f"i{2 * bits}"
    word = s.value(f"zext i{bits} {loaded(s, '%array0', element, f'i{bits}')} to {wide}")
    count = "%size0"
    if bits != 32:
        count = s.value(f"{'zext' if bits == 64 else 'trunc'} i64 %size0 to {wide}")
    product = s.value(f"mul {wide} {word}, {count}")
    low = s.value(f"trunc {wide} {product} to i{bits}")
    shifted = s.value(f"lshr {wide} {product}, {bits}")
    high = s.value(f"trunc {wide} {shifted} to i{bits}")
    is_all = s.value("icmp eq i64 %size0, 0")
    whole = s.value(f"trunc {wide} {word} to i{bits}")
    chosen = s.value(f"select i1 {is_all}, i{bits} {whole}, i{bits} {high}")
    threshold = "%size1" if bits == 64 else s.value(f"trunc i64 %size1 to i{bits}")
    accepted = s.value(f"icmp uge i{bits} {low}, {threshold}")
    accepted = s.value(f"or i1 {accepted}, {is_all}")
    flag = s.value(f"zext i1 {accepted} to i8")
    s.write(f"store i8 {flag}, ptr {at(s, '%array2', element, 'i8')}")
    if own > bits:
        chosen = s.value(f"zext i{bits} {chosen} to i{own}")
    first = "%size2" if own == 64 else s.value(f"trunc i64 %size2 to i{own}")
    result = s.value(f"add i{own} {chosen}, {first}")
    s.write(f"store i{own} {result}, ptr {at(s, '%array1', element, f'i{own}')}")


def _signed(n: int) -> int:
    """The signed integer with the same 64 bits."""
    n %= 1 << 64
    return n - (1 << 64) if n >> 63 else n


# ---- wengert's integers --------------------------------------------------------------------------


def integers_below(
    name: str, device: Device, operands: Sequence[Any], params: dict[str, Any]
) -> Any:
    """Integers in [low, low + span), of arrays; 0 where span is 0."""
    key, low, span = (device.put(x) for x in operands)
    key = device.contiguous(key)
    shape = low.shape
    axes = key.ndim - 1
    each = math.prod(shape[axes:])
    low, span = (device.contiguous(x.astype(np.int64, copy=False)) for x in (low, span))
    out = device.empty(shape, np.dtype(np.int64))
    arrays, total = [key, low, span, out], math.prod(shape)
    _launched(device, "integers_below", _below, arrays, [each], total)
    return out.astype(params["dtype"], copy=False)


def _below(_: ModuleBuilder, function: Function, s: Section, element: Name) -> None:
    """Trials of one element, until one is accepted."""
    stream = s.value(f"udiv i64 {element}, %size0")
    number = s.value(f"add i64 {s.value(f'urem i64 {element}, %size0')}, 1")
    low, width = loaded(s, "%array1", element), loaded(s, "%array2", element)
    result, trial, going = (function.slot("i64") for _ in range(3))
    is_valid = s.value(f"icmp ne i64 {width}, 0")
    nonzero = s.value(f"select i1 {is_valid}, i64 {width}, i64 1")
    threshold = s.value(f"urem i64 {s.value(f'sub i64 0, {nonzero}')}, {nonzero}")
    s.write(f"store i64 0, ptr {result}")
    s.write(f"store i64 0, ptr {trial}")
    s.write(f"store i64 {s.value(f'zext i1 {is_valid} to i64')}, ptr {going}")
    keys = schedule(s, _key(s, "%array0", stream))
    n = function.number()
    s.block(f"trial{n}")
    more = s.value(f"icmp ne i64 {s.value(f'load i64, ptr {going}')}, 0")
    s.write(f"br i1 {more}, label %draw{n}, label %end{n}")
    s.label(f"draw{n}")
    k = s.value(f"load i64, ptr {trial}")
    word = s.value(f"zext i64 {block(s, number, k, keys, space=TRIALS)[0]} to i128")
    product = s.value(f"mul i128 {word}, {s.value(f'zext i64 {width} to i128')}")
    high = s.value(f"trunc i128 {s.value(f'lshr i128 {product}, 64')} to i64")
    s.write(f"store i64 {s.value(f'add i64 {low}, {high}')}, ptr {result}")
    rest = s.value(f"trunc i128 {product} to i64")
    is_small = s.value(f"icmp ult i64 {rest}, {threshold}")
    s.write(f"store i64 {s.value(f'zext i1 {is_small} to i64')}, ptr {going}")
    s.write(f"store i64 {s.value(f'add i64 {k}, 1')}, ptr {trial}")
    s.write(f"br label %trial{n}")
    s.label(f"end{n}")
    s.write(f"store i64 {s.value(f'load i64, ptr {result}')}, ptr {at(s, '%array3', element)}")


# ---- keys ----------------------------------------------------------------------------------------


def _key(s: Section, keys: Name, number: Name) -> list[Name]:
    """The two words of a key."""
    first = s.value(f"mul i64 {number}, 2")
    return [loaded(s, keys, first), loaded(s, keys, s.value(f"add i64 {first}, 1"))]


def _store_key(s: Section, words: Sequence[Name], out: Name, number: Name) -> None:
    first = s.value(f"mul i64 {number}, 2")
    for k, word in enumerate(words[:2]):
        place = s.value(f"add i64 {first}, {k}")
        s.write(f"store i64 {word}, ptr {at(s, out, place)}")


def split_keys(name: str, device: Device, operands: Sequence[Any], params: dict[str, Any]) -> Any:
    """Keys of each key."""
    keys = device.contiguous(device.put(operands[0]))
    out = device.empty(tuple(params["shape"]), keys.dtype)
    total = math.prod(out.shape) // 2
    each = total // max(math.prod(keys.shape) // 2, 1)
    _launched(device, name, _split, [keys, out], [each], total)
    return out


def _split(_: ModuleBuilder, function: Function, s: Section, element: Name) -> None:
    key, number = s.value(f"udiv i64 {element}, %size0"), s.value(f"urem i64 {element}, %size0")
    counter = s.value(f"add i64 {number}, 1")
    words = block(s, counter, "0", schedule(s, _key(s, "%array0", key)), space=SPLIT)
    _store_key(s, words, "%array1", element)


def folded_key(name: str, device: Device, operands: Sequence[Any], params: dict[str, Any]) -> Any:
    """A key for each key and integer; leading axes broadcast."""
    key, data = (device.put(x) for x in operands)
    shape = tuple(params["shape"])
    keys = device.contiguous(np.broadcast_to(key, shape))
    numbers = np.broadcast_to(data.astype(np.int64, copy=False), shape[:-1])
    out = device.empty(shape, key.dtype)
    arrays = [keys, device.contiguous(numbers), out]
    _launched(device, name, _fold, arrays, [], math.prod(shape) // 2)
    return out


def _fold(_: ModuleBuilder, function: Function, s: Section, element: Name) -> None:
    keys = schedule(s, _key(s, "%array0", element))
    words = block(s, "1", loaded(s, "%array1", element), keys, space=FOLD)
    _store_key(s, words, "%array2", element)
