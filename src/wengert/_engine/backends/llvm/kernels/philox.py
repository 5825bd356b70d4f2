"""Philox: random bits as a function of a key and a counter, and derived keys.

    Words           LLVM values with the operators of NumPy's uint64
    block           four words of one block, or of a vector of blocks
    group           the words of one block per lane, in order
    Bits            a generator for NumPy's C distributions: its state, and the table of functions
                    that advance it (bitgen_t, in the C header numpy/random/bitgen.h)
    random_split    the first two words of blocks 1, 2, ... in the counter space SPLIT
    random_fold     the first two words of the block of a number, in the counter space FOLD

The rounds are those of ops/random/bits.py, called with LLVM values in place of arrays.  The state
of a stream (ops/random/bits.py) is the key and the second word of the counter.  The first word
counts blocks, from 1 as in NumPy.

ops/random/bits.py and ops/random/bits.py define the operations, and the counter spaces, which are
disjoint.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partialmethod
from typing import Any

from wengert._engine.ops.random.bits import FOLD, SPLIT, products, round_keys, rounds

from ..ir import execution_engine
from ..ir.ir_builder import Function, ModuleBuilder, Name, Section
from ..ir.llvm_types import I64
from .kernel_call import ArrayPointer, KernelCall, kernel
from .loop_helpers import address, in_section, nest, read

# The layout of the memory of `Bits`, in words; the words of a group follow.
_USED, _COUNTER, _POSITION, _KEY, _SPARE, _HAS_SPARE, _WORDS = 0, 1, 2, 3, 5, 6, 8
_FRACTION = "0x3CA0000000000000"  # 2**-53


class Words:
    """An i64, or a vector of them, with the operators of NumPy's uint64 arrays.

    Parameters
    ----------
    section : Section
        Where the instructions are written.
    """

    def __init__(self, section: Section, name: Name, lanes: int = 1) -> None:
        self.section, self.name, self.lanes = section, name, lanes
        self.kind = "i64" if lanes == 1 else f"<{lanes} x i64>"

    def _apply(self, instruction: str, other: Any) -> Words:
        right = other.name if isinstance(other, Words) else _literal(int(other), self.lanes)
        name = self.section.value(f"{instruction} {self.kind} {self.name}, {right}")
        return Words(self.section, name, self.lanes)

    __add__ = partialmethod(_apply, "add")
    __mul__ = partialmethod(_apply, "mul")
    __and__ = partialmethod(_apply, "and")
    __xor__ = partialmethod(_apply, "xor")
    __rshift__ = partialmethod(_apply, "lshr")


def schedule(s: Section, key: Sequence[Name], lanes: int = 1) -> list[list[Name]]:
    """The keys of all rounds, broadcast to vectors."""
    keys = round_keys([Words(s, k) for k in key])
    return [[spread(s, k.name, lanes) for k in pair] for pair in keys]


def spread(s: Section, x: Name, lanes: int) -> Name:
    """An i64, broadcast to a vector."""
    if lanes == 1:
        return x
    kind = f"<{lanes} x i64>"
    first = s.value(f"insertelement {kind} poison, i64 {x}, i64 0")
    zeros = f"<{lanes} x i32> zeroinitializer"
    return s.value(f"shufflevector {kind} {first}, {kind} poison, {zeros}")


def block(
    s: Section,
    counter: Name,
    position: Name,
    keys: Sequence[Sequence[Name]],
    lanes: int = 1,
    space: int = 0,
) -> list[Name]:
    """The four words of a block, or of a vector of blocks.

    Parameters
    ----------
    counter, position : Name
        The first two words of the counter; the third is zero.
    keys : sequence
        Returned by `schedule`.
    space : int
        The fourth word of the counter: the purpose (ops/random/bits.py).
    """
    state = [counter, position, _literal(0, lanes), _literal(space, lanes)]
    words = rounds(
        [Words(s, name, lanes) for name in state],
        [[Words(s, k, lanes) for k in pair] for pair in keys],
        _wide_products if lanes == 1 else products,
    )
    return [word.name for word in words]


def _literal(number: int, lanes: int) -> Name:
    return str(number) if lanes == 1 else f"splat (i64 {number})"


def _wide_products(x: Words, factor: int) -> tuple[Words, Words]:
    """The high and the low word of a product of 128 bits, an instruction for scalars only."""
    s = x.section
    extended = s.value(f"zext i64 {x.name} to i128")
    product = s.value(f"mul i128 {extended}, {factor}")
    high = s.value(f"lshr i128 {product}, 64")
    return Words(s, s.value(f"trunc i128 {high} to i64")), Words(
        s, s.value(f"trunc i128 {product} to i64")
    )


def lanes_of_group() -> int:
    """The number of blocks computed in parallel; a group has four words of each."""
    return execution_engine.vector_bytes() // 8


def group(s: Section, number: Name, position: Name, keys: Sequence[Sequence[Name]]) -> list[Name]:
    """The words of a group of blocks in order, in four vectors.

    Parameters
    ----------
    number : Name
        The number of the group; group 0 begins with block 1.
    position, keys
        Broadcast to vectors (`spread`, `schedule`).
    """
    lanes = lanes_of_group()
    kind, wide = f"<{lanes} x i64>", f"<{2 * lanes} x i64>"
    first = s.plus(s.times(number, str(lanes)), "1")
    steps = ", ".join(f"i64 {k}" for k in range(lanes))
    counter = s.value(f"add {kind} {spread(s, first, lanes)}, <{steps}>")
    words = block(s, counter, position, keys, lanes)
    both = ", ".join(f"i32 {k}" for k in range(2 * lanes))
    pairs = [
        s.value(
            f"shufflevector {kind} {words[k]}, {kind} {words[k + 1]}, <{2 * lanes} x i32> <{both}>"
        )
        for k in (0, 2)
    ]
    vectors = []
    for part in range(4):
        sources = [divmod(part * lanes + k, 4) for k in range(lanes)]
        indices = ", ".join(f"i32 {word * lanes + b}" for b, word in sources)
        mask = f"<{lanes} x i32> <{indices}>"
        vectors.append(s.value(f"shufflevector {wide} {pairs[0]}, {wide} {pairs[1]}, {mask}"))
    return vectors


def fraction(s: Section, word: Name) -> Name:
    """A word as a double in [0, 1)."""
    number = s.value(f"sitofp i64 {s.value(f'lshr i64 {word}, 11')} to double")
    return s.value(f"fmul double {number}, {_FRACTION}")


class Bits:
    """A generator that returns the words of a state one after the other.

    Attributes
    ----------
    pointer : Name
        The table of functions that NumPy's distributions take (bitgen_t).
    """

    def __init__(self, call: KernelCall) -> None:
        self.module = call.module
        size = _WORDS + 4 * lanes_of_group()
        self._memory = call.function.slot(f"[{size} x i64]", 64)
        self.pointer = call.function.slot("[5 x ptr]", 8)
        names = _functions(self.module)
        for k, name in enumerate((self._memory, *names, names[0])):
            entry = call.section.value(f"getelementptr ptr, ptr {self.pointer}, i64 {k}")
            call.section.write(f"store ptr {name}, ptr {entry}")

    def begin(self, s: Section, position: Name, key: Sequence[Name]) -> None:
        """Start at the first word of a position."""
        for k, value in (
            (_USED, str(4 * lanes_of_group())),
            (_COUNTER, "0"),
            (_POSITION, position),
            (_KEY, key[0]),
            (_KEY + 1, key[1]),
            (_HAS_SPARE, "0"),
        ):
            s.write(f"store i64 {value}, ptr {_word_address(s, self._memory, k)}")


def _word_address(s: Section, memory: Name, k: int | Name) -> Name:
    return s.value(f"getelementptr i64, ptr {memory}, i64 {k}")


def _load(s: Section, memory: Name, k: int) -> Name:
    return s.value(f"load i64, ptr {_word_address(s, memory, k)}")


def _functions(module: ModuleBuilder) -> list[str]:
    """The functions that return the next 64 bits, 32 bits, and fraction."""
    symbols = ["philox.next64", "philox.next32", "philox.fraction"]
    if symbols[0] not in module:
        _add_next64(module)
        _add_next32(module)
        function = Function(module, symbols[2], [("ptr", "bits")], "double", "nounwind")
        word = function.body.value("call i64 @philox.next64(ptr %bits)")
        function.body.write(f"ret double {fraction(function.body, word)}")
        module.add(function)
    return [f"@{name}" for name in symbols]


def _add_next64(module: ModuleBuilder) -> None:
    """Add the function for the next word of the current group, or the first of the next one."""
    _add_fill(module)
    function = Function(module, "philox.next64", [("ptr", "bits")], "i64", "nounwind")
    s = function.body
    used = _load(s, "%bits", _USED)
    has_next = s.value(f"icmp ult i64 {used}, {4 * lanes_of_group()}")
    with s.unless(has_next) as t:
        t.write("call void @philox.fill(ptr %bits)")
    index = s.value(f"select i1 {has_next}, i64 {used}, i64 0")
    s.write(f"store i64 {s.value(f'add i64 {index}, 1')}, ptr {_word_address(s, '%bits', _USED)}")
    word_index = s.value(f"add i64 {index}, {_WORDS}")
    word = s.value(f"load i64, ptr {_word_address(s, '%bits', word_index)}")
    s.write(f"ret i64 {word}")
    module.add(function)


def _add_fill(module: ModuleBuilder) -> None:
    """Add the function that computes the words of the next group."""
    lanes = lanes_of_group()
    function = Function(module, "philox.fill", [("ptr", "bits")], "void", "noinline nounwind #1")
    s = function.body
    number = _load(s, "%bits", _COUNTER)
    position = spread(s, _load(s, "%bits", _POSITION), lanes)
    keys = schedule(s, [_load(s, "%bits", _KEY + k) for k in range(2)], lanes)
    for part, words in enumerate(group(s, number, position, keys)):
        pointer = _word_address(s, "%bits", _WORDS + part * lanes)
        s.write(f"store <{lanes} x i64> {words}, ptr {pointer}, align 8")
    s.write(
        f"store i64 {s.value(f'add i64 {number}, 1')}, ptr {_word_address(s, '%bits', _COUNTER)}"
    )
    s.write("ret void")
    module.add(function)


def _add_next32(module: ModuleBuilder) -> None:
    """Add the function that returns the lower half of the next word, then its upper half."""
    function = Function(module, "philox.next32", [("ptr", "bits")], "i32", "nounwind")
    s = function.body
    spare = _load(s, "%bits", _SPARE)
    has_spare = s.value(f"icmp ne i64 {_load(s, '%bits', _HAS_SPARE)}, 0")
    result = function.slot("i64")
    s.write(f"store i64 {spare}, ptr {result}")
    s.write(f"store i64 0, ptr {_word_address(s, '%bits', _HAS_SPARE)}")
    with s.unless(has_spare) as t:
        word = t.value("call i64 @philox.next64(ptr %bits)")
        t.write(f"store i64 {word}, ptr {result}")
        upper = t.value(f"lshr i64 {word}, 32")
        t.write(f"store i64 {upper}, ptr {_word_address(t, '%bits', _SPARE)}")
        t.write(f"store i64 1, ptr {_word_address(t, '%bits', _HAS_SPARE)}")
    value = s.value(f"load i64, ptr {result}")
    s.write(f"ret i32 {s.value(f'trunc i64 {value} to i32')}")
    module.add(function)


def _key(call: KernelCall, s: Section, keys: ArrayPointer, indices: Sequence[Name]) -> list[Name]:
    return [
        s.value(f"load i64, ptr {address(call, s, keys, [*indices, str(k)])}") for k in range(2)
    ]


def _store(call: KernelCall, s: Section, words: Sequence[Name], indices: Sequence[Name]) -> None:
    for k, word in enumerate(words[:2]):
        s.write(f"store i64 {word}, ptr {address(call, s, call.results[0], [*indices, str(k)])}")


@kernel("random_split", serves=lambda node: all(isinstance(n, int) for n in node.spec.shape[-1:]))
def random_split(call: KernelCall) -> None:
    """For each key an array of keys."""
    (keys,), (out,) = call.operands, call.results
    outer = len(keys.shape) - 1
    with nest(call.section, [call.number(n) for n in keys.shape[:-1]]) as (s, indices):
        scheduled = schedule(s, _key(call, s, keys, indices))
        with nest(s, [call.number(n) for n in out.shape[outer:-1]]) as (t, inner):
            number: Name = "0"
            for i, n in zip(inner, out.shape[outer:-1], strict=True):
                number = t.plus(t.times(number, call.number(n)), i)
            words = block(t, t.plus(number, "1"), "0", scheduled, space=SPLIT)
            _store(call, t, words, [*indices, *inner])


@kernel("random_fold", strided=True)
def random_fold(call: KernelCall) -> None:
    """A key for each key and number; leading axes broadcast."""
    (keys, data), (out,) = call.operands, call.results
    shape = out.shape[:-1]
    with nest(call.section, [call.number(n) for n in shape]) as (s, indices):
        key = _key(call, s, keys, _aligned(indices, keys.shape[:-1]))
        pointer = address(call, s, data, _aligned(indices, data.shape))
        number = call.language.cast(in_section(s, read(call.language, s, pointer, data.dtype)), I64)
        words = block(s, "1", number.name, schedule(s, key), space=FOLD)
        _store(call, s, words, indices)


def _aligned(indices: Sequence[Name], shape: Sequence[object]) -> list[Name]:
    """The indices of an operand that is broadcast: 0 along axes of length one."""
    aligned = indices[len(indices) - len(shape) :]
    return ["0" if n == 1 else i for i, n in zip(aligned, shape, strict=True)]
