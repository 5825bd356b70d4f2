"""Products for a batch whose axis is not the first one, with their axes in another order.

    np.einsum("kij,nkj->nki", L, x)   as   np.einsum("kij,knj->kni", L, x.transpose(1, 0, 2))

An operand that is computed for the product is computed in that order, so that the loops before the
product run for one item of the batch after the other (schedule/batch_loops.py); the result is read
as a transposed view.

    batch_first    the result of such a product
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from wengert._engine.core.node import Node
from wengert._engine.core.op import lookup
from wengert._engine.core.spec import Spec

from ..ir.processors import is_for_device
from ..tuning import thresholds
from .loop_ir import Expr
from .registry import opaque_call, set_origin
from .views import transposed

if TYPE_CHECKING:
    from .registry import Lowering

_ROW_BYTES = 64  # that are read one after the other at least, a cache line


def batch_first(lowering: Lowering, node: Node, operands: Sequence[Expr]) -> Any:
    """The result with axes in its own order; NotImplemented if the product stays as it is."""
    *words, result = node.params["subscripts"]
    letter = _batch(lowering, node, words, result, operands)
    if not letter or is_for_device():  # a device runs all items of a batch at once
        return NotImplemented
    args, exprs = [], []
    for a, x, word in zip(node.inputs, operands, words, strict=True):
        moved, y = _moved(a, x, word.index(letter))
        args.append(moved)
        exprs.append(y)
    k = result.index(letter)
    order = [k, *[i for i in range(len(result)) if i != k]]
    spec = Spec(tuple([node.spec.shape[i] for i in order]), node.spec.dtype)
    subscripts = (*[_first(w, letter) for w in words], _first(result, letter))
    product = Node(
        node.op, tuple(args), {"subscripts": subscripts}, None, node.info_with(spec=spec)
    )
    set_origin(product, node)
    found = opaque_call(product, exprs)
    back = [order.index(i) for i in range(len(order))]
    return found if k == 0 else transposed(found, back, node)


def _first(word: str, letter: str) -> str:
    return letter + word.replace(letter, "")


def _moved(a: Node, x: Expr, axis: int) -> tuple[Node, Expr]:
    """An operand with an axis moved to the front."""
    if axis == 0:
        return a, x
    axes = (axis, *[i for i in range(len(x.shape)) if i != axis])
    spec = Spec(tuple([x.shape[i] for i in axes]), x.dtype)
    moved = Node(lookup("transpose"), (a,), {"axes": axes}, None, a.info_with(spec=spec))
    return moved, transposed(x, axes, moved)


def _batch(
    lowering: Lowering,
    node: Node,
    words: Sequence[str],
    result: str,
    operands: Sequence[Expr],
) -> str:
    """The subscript of the batch that is to be first; empty if none is."""
    is_output = node in lowering.graph.outputs
    if len(words) != 2 or is_output or any([len({*w}) < len(w) for w in words]):
        return ""
    shapes = [node.spec.shape, *[x.shape for x in operands]]
    if not all([type(n) is int for shape in shapes for n in shape]):
        return ""
    lengths = dict(zip("".join(words), [n for s in shapes[1:] for n in s], strict=True))
    batch = [c for c in result if all([c in w for w in words])]
    if not batch:
        return ""
    letter = result[0] if result[0] in batch else batch[0]
    count = lengths[letter]
    every = (result, *words)
    if all([w[0] == letter for w in every]) or any([w[-1] == letter for w in every]):
        return ""
    if any([shape[w.index(letter)] != count for shape, w in zip(shapes, every, strict=True)]):
        return ""
    rows = min([shape[-1] for shape in shapes]) * node.spec.dtype.itemsize
    size = sum([prod(shape) for shape in shapes]) * node.spec.dtype.itemsize
    is_large = size >= thresholds.batch_loop_bytes and count >= thresholds.batch_loop_items
    flops = 2 * prod(lengths.values()) // max(count, 1)
    is_worth = is_large and rows >= _ROW_BYTES and flops >= thresholds.batch_item_flops
    return letter if is_worth else ""
