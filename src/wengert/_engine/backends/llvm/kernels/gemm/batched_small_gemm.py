"""Batches of products of small matrices, one product per SIMD lane.

result = alpha * product + beta * addend.  The product of small matrices is unrolled.  The other
subscripts, all of which the result has, are the batch, and one product per lane is computed at a
time (batched_matrices.py).
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
    axes = [[c for c in w.labels if c not in batch] for w in (*operands, result)]
    contracted = list(dict.fromkeys(c for labels in axes[:2] for c in labels if c not in axes[2]))
    lengths: dict[str, Any] = {c: length_of(operands, c) for c in [*axes[2], *contracted]}
    arrays, cores = [*operands, result], axes
    if addend is not None:
        arrays, cores = [*operands, addend, result], [axes[0], axes[1], axes[2], axes[2]]
    batches = [
        (arranged(w, [*batch, *core]), len(core)) for w, core in zip(arrays, cores, strict=True)
    ]
    if alpha.pointer is not None:
        batches.insert(0, (alpha.pointer, 0))
    first, last = len(batches) - len(arrays), len(batches) - 1

    def write(block: Block) -> None:
        language = call.language
        factors: list[dict[tuple[int, ...], Any]] = [
            {
                index: language.cast(block.read(first + k, *index), dtype)
                for index in product(*(range(lengths[c]) for c in axes[k]))
            }
            for k in (0, 1)
        ]
        values = {}
        for index in product(*(range(lengths[c]) for c in axes[2])):
            total: Any = None
            for summed in product(*(range(lengths[c]) for c in contracted)):
                indices = dict(zip([*axes[2], *contracted], [*index, *summed], strict=True))
                x, y = (factors[k][tuple(indices[c] for c in axes[k])] for k in (0, 1))
                if total is None:
                    total = x * y
                elif dtype.kind == "f":
                    total = language.fma(x, y, total)
                else:
                    total = total + x * y
            if alpha.pointer is not None:
                total = total * language.cast(block.read(0), dtype)
            if alpha.number != 1:
                total = total * language.constant(alpha.number, dtype)
            if beta != 0:
                old = language.cast(block.read(first + 2, *index), dtype)
                total = total + (old if beta == 1 else old * language.constant(beta, dtype))
            values[index] = total
        for index, value in values.items():
            block.write(last, value, *index)

    blocks(call, batches, dtype, write)
