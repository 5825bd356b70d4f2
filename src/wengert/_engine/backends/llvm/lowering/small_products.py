"""Products as expressions: outer products, products of vectors, and of small matrices.

They are fused with their neighbors; larger products are calls of a kernel.  Which are which is
decided in kernels/gemm/choose.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from wengert._engine.core.lazy_import import LazyModule
from wengert._engine.core.node import Node

from ..ir.affine import ZERO, Length, is_one
from ..ir.llvm_types import F16, F32, Dtype
from .loop_ir import Expr, Map, Reduce, View
from .registry import lowers
from .views import reshaped

if TYPE_CHECKING:
    from wengert._engine.core.types import ScalarLanguage

    from ..ir.affine import Affine
    from ..kernels.gemm import choose
    from .registry import Lowering
else:
    choose = LazyModule("wengert._engine.backends.llvm.kernels.gemm.choose")


@lowers("matmul", "dot", "einsum")
def _contraction(_: Lowering, node: Node, operands: Sequence[Expr]) -> Any:
    op: Any = node.op
    *words, result = op.letters(*[len(x.shape) for x in operands], **node.params)
    lengths: dict[str, Length] = {}
    for word, x in zip(words, operands, strict=True):
        for letter, n in zip(word, x.shape, strict=True):
            if is_one(lengths.get(letter, 1)):
                lengths[letter] = n
    summed = [c for c in lengths if c not in result]
    if summed and not choose.is_fused_loop(lengths, words):
        return NotImplemented
    letters = result + "".join(summed)
    space = tuple(lengths[c] for c in letters)
    dtype = node.spec.dtype
    wide = F32 if dtype == F16 else dtype
    spread = [_spread(x, word, letters, space) for x, word in zip(operands, words, strict=True)]
    product = Expr(Map("product", _product(wide), len(words)), spread, space, wide, node)
    if not summed:
        return product if wide == dtype else _cast(product, dtype, node)
    axes = range(len(result), len(letters))
    kept = (*space[: len(result)], *[1] * len(summed))
    out = Expr(Reduce("sum", axes), (product,), kept, wide, node)
    out = reshaped(out, node.spec.shape, node)
    return out if wide == dtype else _cast(out, dtype, node)


def _cast(x: Expr, dtype: Dtype, node: Node) -> Expr:
    return Expr(Map("cast", lambda s, v: s.cast(v, dtype)), (x,), x.shape, dtype, node)


def _product(dtype: Dtype) -> Any:
    def combine(s: ScalarLanguage, *lanes: Any) -> Any:
        total = s.cast(lanes[0], dtype)
        for x in lanes[1:]:
            total = total * s.cast(x, dtype)
        return total

    return combine


def _spread(x: Expr, word: str, letters: str, space: tuple[Length, ...]) -> Expr:
    """An operand broadcast over all subscripts."""
    places = [letters.index(c) for c in word]
    ones = [is_one(n) for n in x.shape]

    def place(index: tuple[Affine, ...]) -> Any:
        return tuple(ZERO if one else index[k] for k, one in zip(places, ones, strict=True))

    return Expr(View("spread", place), (x,), space, x.dtype, x.node)
