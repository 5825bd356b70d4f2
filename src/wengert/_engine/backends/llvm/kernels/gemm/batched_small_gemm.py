"""Together: products of many small matrices, a lane for each product.

    serves      whether a contraction is one of those
    multiply    result = alpha * product + beta * addend

What is small is unrolled; the other letters, all of the result's, count matrices, of which as many
are multiplied at once as a register has lanes (batched_matrices.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any

from wengert._engine.backends.llvm.ir.llvm_types import F16, F32
from wengert._engine.core.symbolic.dim import Length, bounds

from ..batched_matrices import Block, blocks
from ..kernel_call import Call
from .einsum_lowering import Word, arranged

_SIDE, _MOST = 4, 64  # the longest axis of a small matrix; multiplications that are unrolled
_FEWEST = 8  # matrices


def serves(operands: Sequence[Word], result: Word) -> bool:
    """Whether it multiplies many pairs of small matrices, or one with many.

    Many with one are one product of a long matrix, which is done faster as that.
    """
    if len(operands) != 2 or any(w.array.dtype.kind not in "fiu" for w in operands):
        return False
    a, b = operands
    letters = dict.fromkeys(result.letters + a.letters + b.letters)
    many = _many(operands, result)
    small = [_length(operands, c) for c in letters if c not in many]
    least = [bounds(_length(operands, c))[0] or 0 for c in many]
    if any(c not in a.letters for c in many) and any(c not in b.letters for c in many):
        return False  # long rows and long columns: a product of matrices that are not small
    return (
        bool(many)
        and any(c in b.letters for c in many)
        and result.letters.startswith(many)
        and all(type(n) is int for n in small)
        and 1 <= prod(n for n in small if type(n) is int) <= _MOST
        and (prod(least) >= _FEWEST or any(type(_length(operands, c)) is not int for c in many))
    )


def _many(operands: Sequence[Word], result: Word) -> str:
    """The letters that count matrices: those of the result that are in both, or long."""
    a, b = operands
    return "".join(
        c
        for c in result.letters
        if (c in a.letters and c in b.letters) or not _is_short(_length(operands, c))
    )


def _is_short(n: Length) -> bool:
    return type(n) is int and n <= _SIDE


def _length(operands: Sequence[Word], letter: str) -> Length:
    return next(w.axis(letter).length for w in operands if letter in w.letters)


def multiply(
    call: Call,
    operands: Sequence[Word],
    result: Word,
    alpha: Any = 1.0,
    beta: Any = 0.0,
    addend: Word | None = None,
) -> None:
    """Write the products; what is added to them lies apart from the result."""
    many = _many(operands, result)
    dtype = F32 if result.array.dtype == F16 else result.array.dtype
    own = [[c for c in w.letters if c not in many] for w in (*operands, result)]
    gone = list(dict.fromkeys(c for letters in own[:2] for c in letters if c not in own[2]))
    lengths: dict[str, Any] = {c: _length(operands, c) for c in [*own[2], *gone]}
    words, cores = [*operands, result], own
    if addend is not None:
        words, cores = [*operands, addend, result], [own[0], own[1], own[2], own[2]]
    given = [(arranged(w, [*many, *core]), len(core)) for w, core in zip(words, cores, strict=True)]
    last = len(given) - 1

    def write(block: Block) -> None:
        language = call.language
        factors: list[dict[tuple[int, ...], Any]] = [
            {
                index: language.cast(block.read(k, *index), dtype)
                for index in product(*(range(lengths[c]) for c in own[k]))
            }
            for k in (0, 1)
        ]
        values = {}
        for index in product(*(range(lengths[c]) for c in own[2])):
            total: Any = None
            for summed in product(*(range(lengths[c]) for c in gone)):
                at = dict(zip([*own[2], *gone], [*index, *summed], strict=True))
                one, two = (factors[k][tuple(at[c] for c in own[k])] for k in (0, 1))
                if total is None:
                    total = one * two
                elif dtype.kind == "f":
                    total = language.fma(one, two, total)
                else:
                    total = total + one * two
            if alpha != 1:
                total = total * language.constant(alpha, dtype)
            if beta != 0:
                before = language.cast(block.read(2, *index), dtype)
                total = total + (before if beta == 1 else before * language.constant(beta, dtype))
            values[index] = total
        for index, value in values.items():
            block.write(last, value, *index)

    blocks(call, given, dtype, write)
