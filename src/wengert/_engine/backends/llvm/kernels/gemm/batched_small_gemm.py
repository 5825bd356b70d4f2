"""Batches of products of small matrices, one product per SIMD lane.

result = alpha * product + beta * addend.  The product of small matrices is unrolled; the other
subscripts, all of them of the result, are the batch, and so many products are computed at once
as a vector has lanes (batched_matrices.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from ...ir.llvm_types import F16, F32
from ..batched_matrices import Block, blocks
from ..kernel_call import KernelCall
from .choose import batch_subscripts, length_of
from .operands import PLAIN, Epilogue, Subscripts, arranged


def run(
    call: KernelCall,
    operands: Sequence[Subscripts],
    result: Subscripts,
    epilogue: Epilogue = PLAIN,
) -> None:
    """Write the products; the addend does not overlap the result."""
    alpha, beta, addend = epilogue
    batch = batch_subscripts(operands, result)
    dtype = F32 if result.array.dtype == F16 else result.array.dtype
    own = [[c for c in w.labels if c not in batch] for w in (*operands, result)]
    gone = list(dict.fromkeys(c for labels in own[:2] for c in labels if c not in own[2]))
    lengths: dict[str, Any] = {c: length_of(operands, c) for c in [*own[2], *gone]}
    words, cores = [*operands, result], own
    if addend is not None:
        words, cores = [*operands, addend, result], [own[0], own[1], own[2], own[2]]
    given = [
        (arranged(w, [*batch, *core]), len(core)) for w, core in zip(words, cores, strict=True)
    ]
    if alpha.pointer is not None:
        given.insert(0, (alpha.pointer, 0))
    first, last = len(given) - len(words), len(given) - 1

    def write(block: Block) -> None:
        language = call.language
        factors: list[dict[tuple[int, ...], Any]] = [
            {
                index: language.cast(block.read(first + k, *index), dtype)
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
            if alpha.pointer is not None:
                total = total * language.cast(block.read(0), dtype)
            if alpha.number != 1:
                total = total * language.constant(alpha.number, dtype)
            if beta != 0:
                before = language.cast(block.read(first + 2, *index), dtype)
                total = total + (before if beta == 1 else before * language.constant(beta, dtype))
            values[index] = total
        for index, value in values.items():
            block.write(last, value, *index)

    blocks(call, given, dtype, write)
