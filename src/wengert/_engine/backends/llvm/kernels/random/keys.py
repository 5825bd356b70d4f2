"""Random keys derived from other keys.

    random_split    the first two words of blocks 1, 2, ... in the counter space SPLIT
    random_fold     the first two words of the block of a number, in the counter space FOLD

ops/random/keys.py and ops/random/philox.py define the operations, and the counter spaces, which are
disjoint.
"""

from __future__ import annotations

from collections.abc import Sequence

from wengert._engine.ops.random.philox import FOLD, SPLIT

from ...ir.ir_builder import Name, Section
from ...ir.llvm_types import I64
from ..kernel_call import ArrayPointer, KernelCall, kernel
from ..loop_helpers import address, in_section, nest, read
from .philox import block, schedule


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
