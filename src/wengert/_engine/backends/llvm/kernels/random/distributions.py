"""Random numbers of wengert's streams, bit for bit those that NumPy generates.

    random_uniform     bits of our own generator (random/philox.py), scaled; so many blocks at a
                       time as vectors hold
    random_bits, random_tail    the bits themselves, and scaled with a sign
    random_normal, random_integers    NumPy's own C functions, which request our bits one after the
                       other: their algorithm may change from version to version, and a second
                       implementation here would then differ

NumPy exports these functions (numpy/random/distributions.h); if a build of it does not, the
operation is a host callback.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from wengert._engine.core.node import DiscreteLeaf
from wengert._engine.core.symbolic.dim import Length

from ...ir.ir_builder import Name, Section
from ...ir.llvm_types import F32, F64, U32, U64, Dtype
from ...runtime import library_symbols
from ..kernel_call import KernelCall, kernel
from ..loop_helpers import nest, offset, place
from .philox import Bits, group, lanes_of_group, schedule, spread

_FRACTION, _SINGLE = "0x3CA0000000000000", "0x3E70000000000000"  # 2**-53, 2**-24
_TAIL, _SINGLE_TAIL = "0x3BF0000000000000", "0x3DF0000000000000"  # 2**-64, 2**-32
_NORMAL = {F64: "random_standard_normal_fill", F32: "random_standard_normal_fill_f"}


@contextmanager
def _states(call: KernelCall) -> Iterator[tuple[Section, Name, list[Name], Name, Name]]:
    """Loop over states: the section, the position, the key, the address and count of numbers."""
    (states,), (y,) = call.operands, call.results
    outer = states.shape[:-1]
    count: Length = 1
    for n in y.shape[len(outer) :]:
        count = count * n
    size = call.number(count)
    with nest(call.section, [call.number(n) for n in outer]) as (s, at):
        words = []
        for k in range(int(states.shape[-1])):
            words.append(s.value(f"load i64, ptr {place(call, s, states, [*at, str(k)])}"))
        *key, position = words if len(words) == 3 else [*words, "0"]
        position = s.value(f"add i64 {position}, {call.params['number']}")
        total = "0"
        for i, n in zip(at, outer, strict=True):
            total = s.plus(s.times(total, call.number(n)), i)
        yield s, position, key, offset(s, y.pointer, s.times(total, size), y.dtype), size


# ---- uniform -----------------------------------------------------------------------------------


@kernel("random_uniform", serves=lambda node: node.spec.dtype in (F32, F64))
def random_uniform(call: KernelCall) -> None:
    """Numbers from 0 to before 1, all of whose bits are random."""
    _filled(call)


@kernel("random_tail", serves=lambda node: node.spec.dtype in (F32, F64))
def random_tail(call: KernelCall) -> None:
    """Numbers between -1/2 and 1/2, none of which is 0."""
    _filled(call, signed=True)


@kernel("random_bits", serves=lambda node: node.spec.dtype in (U32, U64))
def random_bits(call: KernelCall) -> None:
    """The words, or halves of them."""
    _filled(call)


def _filled(call: KernelCall, signed: bool = False) -> None:
    """Fill the result with numbers of groups of blocks."""
    dtype = call.results[0].dtype
    lanes = lanes_of_group()
    each = lanes * 4 * (8 // dtype.itemsize)
    last = call.function.slot(f"[{each * dtype.itemsize} x i8]", 64)
    with _states(call) as (s, position, key, target, size):
        blocks = _Blocks(s, position, key, lanes, dtype, signed)
        whole = s.value(f"sdiv i64 {size}, {each}")
        done = s.times(whole, str(each))
        rest = s.value(f"sub i64 {size}, {done}")
        some = s.value(f"zext i1 {s.value(f'icmp ne i64 {rest}, 0')} to i64")
        with s.loop("0", s.plus(whole, some)) as (t, number):  # the last group may not fit
            fits = t.value(f"icmp slt i64 {number}, {whole}")
            place_of = offset(t, target, t.times(number, str(each)), dtype)
            blocks.write(t, number, t.value(f"select i1 {fits}, ptr {place_of}, ptr {last}"))
        length = s.times(rest, str(dtype.itemsize))
        s.copy_bytes(offset(s, target, done, dtype), last, length)


class _Blocks:
    """Blocks of one position as numbers, as many at a time as a vector has lanes."""

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
        """The numbers of one group of blocks; block 0 is number 1 of the generator."""
        for part, words in enumerate(group(s, number, self.position, self.keys)):
            self._store(s, words, offset(s, target, str(part * self.lanes), F64))

    def _store(self, s: Section, words: Name, target: Name) -> None:
        """Words in order as numbers: one each, or two, the lower half first."""
        if self.dtype.kind == "u":  # as in memory
            s.write(f"store <{self.lanes} x i64> {words}, ptr {target}, align 4")
            return
        many, bits, cut, kind = self.lanes, "i64", 11, "double"
        scale = _TAIL if self.signed else _FRACTION
        whole = words
        if self.dtype == F32:
            many, bits, cut, kind = 2 * self.lanes, "i32", 8, "float"
            scale = _SINGLE_TAIL if self.signed else _SINGLE
            whole = s.value(f"bitcast <{self.lanes} x i64> {words} to <{many} x i32>")
        change = f"or <{many} x {bits}> {whole}, splat ({bits} 1)"
        if not self.signed:
            change = f"lshr <{many} x {bits}> {whole}, splat ({bits} {cut})"
        kept = s.value(change)
        number = s.value(f"sitofp <{many} x {bits}> {kept} to <{many} x {kind}>")
        found = s.value(f"fmul <{many} x {kind}> {number}, splat ({kind} {scale})")
        s.write(f"store <{many} x {kind}> {found}, ptr {target}, align {self.dtype.itemsize}")


# ---- NumPy's functions -------------------------------------------------------------------------


def _filling(call: KernelCall, symbol: str, kinds: Sequence[str]) -> str:
    """A function of NumPy, as ``@name``."""
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
    fill = _filling(call, _NORMAL[call.results[0].dtype], ["ptr", "i64", "ptr"])
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
    """Integers between two."""
    dtype = call.results[0].dtype
    kind = f"i{8 * dtype.itemsize} zeroext"
    fill = _filling(call, _bounded(dtype), ["ptr", kind, kind, "i64", "i1 zeroext", "ptr"])
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
    """The number with the same bits as an LLVM constant."""
    n %= 1 << bits
    return n - (1 << bits) if n >> (bits - 1) else n
