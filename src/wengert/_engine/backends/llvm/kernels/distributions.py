"""Random numbers of wengert's streams, bit for bit those that NumPy generates.

    random_uniform     scaled bits of the generator in philox.py, one block per SIMD lane
    random_bits, random_tail    the bits themselves, and scaled with a sign
    random_normal, random_integers    NumPy's C functions, called with that generator: their
                       algorithms may change between versions of NumPy, and a second implementation
                       would then differ

NumPy exports these functions (numpy/random/distributions.h); if a build of it does not, the
operation is a host callback.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from wengert._engine.core.node import DiscreteLeaf
from wengert._engine.core.symbolic.dim import Length

from ..ir.ir_builder import Name, Section
from ..ir.llvm_types import F32, F64, U32, U64, Dtype
from ..runtime import library_symbols
from .kernel_call import KernelCall, kernel
from .loop_helpers import address, nest, offset
from .philox import Bits, group, lanes_of_group, schedule, spread

_FRACTION, _SINGLE = "0x3CA0000000000000", "0x3E70000000000000"  # 2**-53, 2**-24
_TAIL, _SINGLE_TAIL = "0x3BF0000000000000", "0x3DF0000000000000"  # 2**-64, 2**-32
_NORMAL = {F64: "random_standard_normal_fill", F32: "random_standard_normal_fill_f"}


@contextmanager
def _states(call: KernelCall) -> Iterator[tuple[Section, Name, list[Name], Name, Name]]:
    """Loop over states: the section, the position, the key, address and count of the numbers."""
    (states,), (y,) = call.operands, call.results
    outer = states.shape[:-1]
    count: Length = 1
    for n in y.shape[len(outer) :]:
        count = count * n
    size = call.number(count)
    with nest(call.section, [call.number(n) for n in outer]) as (s, indices):
        words = []
        for k in range(int(states.shape[-1])):
            words.append(s.value(f"load i64, ptr {address(call, s, states, [*indices, str(k)])}"))
        *key, position = words if len(words) == 3 else [*words, "0"]
        position = s.value(f"add i64 {position}, {call.params['number']}")
        total = "0"
        for i, n in zip(indices, outer, strict=True):
            total = s.plus(s.times(total, call.number(n)), i)
        yield s, position, key, offset(s, y.pointer, s.times(total, size), y.dtype), size


# ---- uniform -----------------------------------------------------------------------------------


@kernel("random_uniform", serves=lambda node: node.spec.dtype in (F32, F64))
def random_uniform(call: KernelCall) -> None:
    """Numbers in [0, 1), all of whose bits are random."""
    _fill(call)


@kernel("random_tail", serves=lambda node: node.spec.dtype in (F32, F64))
def random_tail(call: KernelCall) -> None:
    """Numbers in (-1/2, 1/2), without 0."""
    _fill(call, signed=True)


@kernel("random_bits", serves=lambda node: node.spec.dtype in (U32, U64))
def random_bits(call: KernelCall) -> None:
    """The 64-bit words, or their 32-bit halves."""
    _fill(call)


def _fill(call: KernelCall, signed: bool = False) -> None:
    """Fill the result with numbers of groups of blocks."""
    dtype = call.results[0].dtype
    lanes = lanes_of_group()
    numbers_per_group = lanes * 4 * (8 // dtype.itemsize)
    overflow = call.function.slot(f"[{numbers_per_group * dtype.itemsize} x i8]", 64)
    with _states(call) as (s, position, key, target, size):
        blocks = _Blocks(s, position, key, lanes, dtype, signed)
        full_groups = s.value(f"sdiv i64 {size}, {numbers_per_group}")
        full_numbers = s.times(full_groups, str(numbers_per_group))
        remainder = s.value(f"sub i64 {size}, {full_numbers}")
        has_remainder = s.value(f"zext i1 {s.value(f'icmp ne i64 {remainder}, 0')} to i64")
        # The last group may be longer than the remainder of the result.
        with s.loop("0", s.plus(full_groups, has_remainder)) as (t, n):
            fits = t.value(f"icmp slt i64 {n}, {full_groups}")
            group_address = offset(t, target, t.times(n, str(numbers_per_group)), dtype)
            blocks.write(t, n, t.value(f"select i1 {fits}, ptr {group_address}, ptr {overflow}"))
        length = s.times(remainder, str(dtype.itemsize))
        s.copy_bytes(offset(s, target, full_numbers, dtype), overflow, length)


class _Blocks:
    """The numbers of the blocks of one position, one block per SIMD lane."""

    def __init__(
        self,
        s: Section,
        position: Name,
        key: Sequence[Name],
        lanes: int,
        dtype: Dtype,
        signed: bool,
    ) -> None:
        self.lanes, self.dtype, self.signed = lanes, dtype, signed
        self.keys, self.position = schedule(s, key, lanes), spread(s, position, lanes)

    def write(self, s: Section, number: Name, target: Name) -> None:
        """Write the numbers of a group of blocks; group 0 begins with block 1 of the generator."""
        for part, words in enumerate(group(s, number, self.position, self.keys)):
            self._store(s, words, offset(s, target, str(part * self.lanes), F64))

    def _store(self, s: Section, words: Name, target: Name) -> None:
        """Store words as numbers: one number per word, or two, the lower half first."""
        if self.dtype.kind == "u":  # the bits themselves
            s.write(f"store <{self.lanes} x i64> {words}, ptr {target}, align 4")
            return
        count, int_kind, shift, kind = self.lanes, "i64", 11, "double"
        scale = _TAIL if self.signed else _FRACTION
        integers = words
        if self.dtype == F32:
            count, int_kind, shift, kind = 2 * self.lanes, "i32", 8, "float"
            scale = _SINGLE_TAIL if self.signed else _SINGLE
            integers = s.value(f"bitcast <{self.lanes} x i64> {words} to <{count} x i32>")
        instruction = f"or <{count} x {int_kind}> {integers}, splat ({int_kind} 1)"
        if not self.signed:
            instruction = f"lshr <{count} x {int_kind}> {integers}, splat ({int_kind} {shift})"
        shifted = s.value(instruction)
        floats = s.value(f"sitofp <{count} x {int_kind}> {shifted} to <{count} x {kind}>")
        numbers = s.value(f"fmul <{count} x {kind}> {floats}, splat ({kind} {scale})")
        s.write(f"store <{count} x {kind}> {numbers}, ptr {target}, align {self.dtype.itemsize}")


# ---- NumPy's functions -------------------------------------------------------------------------


def _numpy_function(call: KernelCall, symbol: str, kinds: Sequence[str]) -> str:
    name = f"random.{symbol}"
    return call.external(name, library_symbols.address_of(name), "void", kinds)


def _is_exported(symbol: str) -> bool:
    try:
        return bool(library_symbols.address_of(f"random.{symbol}"))
    except KeyError:
        return False


def _is_normal(node: DiscreteLeaf) -> bool:
    return node.spec.dtype in _NORMAL and _is_exported(_NORMAL[node.spec.dtype])


@kernel("random_normal", serves=_is_normal)
def random_normal(call: KernelCall) -> None:
    """Numbers of the normal distribution."""
    fill = _numpy_function(call, _NORMAL[call.results[0].dtype], ["ptr", "i64", "ptr"])
    bits = Bits(call)
    with _states(call) as (s, position, key, target, size):
        bits.begin(s, position, key)
        s.write(f"call void {fill}(ptr {bits.pointer}, i64 {size}, ptr {target})")


def _bounded(dtype: Dtype) -> str:
    return f"random_bounded_uint{8 * dtype.itemsize}_fill"


@kernel(
    "random_integers",
    serves=lambda node: node.spec.dtype.kind in "iu" and _is_exported(_bounded(node.spec.dtype)),
)
def random_integers(call: KernelCall) -> None:
    """Integers from `low` to `high`, without `high`."""
    dtype = call.results[0].dtype
    kind = f"i{8 * dtype.itemsize} zeroext"
    fill = _numpy_function(call, _bounded(dtype), ["ptr", kind, kind, "i64", "i1 zeroext", "ptr"])
    low, high = call.params["low"], call.params["high"]
    ends = [_signed(n, 8 * dtype.itemsize) for n in (low, high - 1 - low)]
    bits = Bits(call)
    with _states(call) as (s, position, key, target, size):
        bits.begin(s, position, key)
        limits = ", ".join(f"{kind} {n}" for n in ends)
        s.write(
            f"call void {fill}(ptr {bits.pointer}, {limits}, i64 {size}, i1 zeroext false, "
            f"ptr {target})"
        )


def _signed(n: int, bits: int) -> int:
    """The signed integer with the same bits, as LLVM prints constants."""
    n %= 1 << bits
    return n - (1 << bits) if n >> (bits - 1) else n
