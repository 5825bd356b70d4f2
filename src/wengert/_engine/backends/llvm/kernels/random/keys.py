"""Random keys derived from other keys.

    random_split    the first two words of blocks 1, 2, ... of the counters for children
    random_fold     those of the block of a number, with counters of its own

ops/random/keys.py and ops/random/philox.py define them, and describe how counters are divided so
that none is used twice.
"""

from __future__ import annotations

from collections.abc import Sequence

from wengert._engine.ops.random.philox import FOLD, SPLIT

from ...ir.ir_builder import Name, Section
from ...ir.llvm_types import I64
from ..kernel_call import ArrayPointer, KernelCall, kernel
from ..loop_helpers import moved, nest, place, read
from .philox import block, schedule


def _key(call: KernelCall, s: Section, keys: ArrayPointer, at: Sequence[Name]) -> list[Name]:
    return [s.value(f"load i64, ptr {place(call, s, keys, [*at, str(k)])}") for k in range(2)]


def _store(call: KernelCall, s: Section, words: Sequence[Name], at: Sequence[Name]) -> None:
    for k, word in enumerate(words[:2]):
        s.write(f"store i64 {word}, ptr {place(call, s, call.results[0], [*at, str(k)])}")


@kernel("random_split", serves=lambda node: all(isinstance(n, int) for n in node.spec.shape[-1:]))
def random_split(call: KernelCall) -> None:
    """Keys for each key: as many as the shape has elements."""
    (keys,), (out,) = call.operands, call.results
    outer = len(keys.shape) - 1
    with nest(call.section, [call.number(n) for n in keys.shape[:-1]]) as (s, at):
        scheduled = schedule(s, _key(call, s, keys, at))
        with nest(s, [call.number(n) for n in out.shape[outer:-1]]) as (t, inner):
            number: Name = "0"
            for i, n in zip(inner, out.shape[outer:-1], strict=True):
                number = t.plus(t.times(number, call.number(n)), i)
            words = block(t, t.plus(number, "1"), "0", scheduled, space=SPLIT)
            _store(call, t, words, [*at, *inner])


@kernel("random_fold", strided=True)
def random_fold(call: KernelCall) -> None:
    """The key of each number and key; leading axes broadcast."""
    (keys, data), (out,) = call.operands, call.results
    shape = out.shape[:-1]
    with nest(call.section, [call.number(n) for n in shape]) as (s, at):
        key = _key(call, s, keys, _aligned(at, keys.shape[:-1]))
        pointer = place(call, s, data, _aligned(at, data.shape))
        number = call.language.cast(moved(s, read(call.language, s, pointer, data.dtype)), I64)
        words = block(s, "1", number.name, schedule(s, key), space=FOLD)
        _store(call, s, words, at)


def _aligned(at: Sequence[Name], shape: Sequence[object]) -> list[Name]:
    """The indices of an operand that is broadcast: 0 along axes of length one."""
    own = at[len(at) - len(shape) :]
    return ["0" if n == 1 else i for i, n in zip(own, shape, strict=True)]
