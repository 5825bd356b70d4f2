"""Products of vectors and small matrices, and determinants, as expressions.

Products are fused with their neighbors; larger ones are kernel calls.  kernels/gemm/choose.py
decides between them.

    batch_first       the product for a batch whose axis is not the first one, in another order:

    np.einsum("kij,nkj->nki", L, x)   as   np.einsum("kij,knj->kni", L, x.transpose(1, 0, 2))

An operand that is computed for the product is computed in that order, so that the loops before the
product run for one item of the batch after the other (schedule/batch_loops.py); the result is read
as a transposed view.

    det               of 2x2 matrices, also of 3x3 matrices in single precision
    det_derivative    the cofactors of 2x2 matrices
    joined            inverse or cofactors and determinant of one matrix

For small matrices memory accesses take all the time.  The results of a kernel call, and the
cofactors in a gradient, are stored and read again; expressions are computed where they are used.
Larger determinants are kernels (kernels/linalg/determinants.py).  A determinant and its gradient
need the same LU factorization: if a graph has both nodes for a matrix that is not small, the first
of them is lowered to a call that computes both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.lazy_import import LazyModule
from wengert._engine.core.node import Node
from wengert._engine.core.op import lookup
from wengert._engine.core.spec import Spec
from wengert._engine.kinds.opaque import Opaque

from ..ir.execution_engine import is_for_device
from ..ir.index_analysis import ZERO, Affine, Length, is_one
from ..ir.llvm_types import F16, F32, F64, Dtype
from ..kernels import is_served
from ..tuning import thresholds
from .leaves_and_views import reshaped, transposed
from .loop_ir import ContractionTerm, Expr, Map, Reduce, Stored, View, strided_view
from .registry import Lowering, lowers, opaque_call, set_origin

if TYPE_CHECKING:
    from wengert._engine.core.types import ScalarLanguage

    from ..kernels.gemm import choose
    from ..kernels.linalg import small_matrices
else:
    choose = LazyModule("wengert._engine.backends.llvm.kernels.gemm.choose")
    small_matrices = LazyModule("wengert._engine.backends.llvm.kernels.linalg.small_matrices")

# ---- products ------------------------------------------------------------------------------------


@lowers("strong_einsum")
def _strong(_: Lowering, node: Node, operands: Sequence[Expr]) -> Any:
    """A product that is a loop: terms are zero where the first factor is zero."""
    *words, _ = node.params["subscripts"]
    if len(words) != 2 or node.spec.dtype.kind != "f" or node.spec.dtype == F16:
        return NotImplemented
    return _product_of(node, operands, True)


@lowers("matmul", "dot", "einsum")
def _contraction(lowering: Lowering, node: Node, operands: Sequence[Expr]) -> Any:
    found = _product_of(node, operands)
    if found is NotImplemented and node.op.name == "einsum":
        return batch_first(lowering, node, operands)
    return found


def _product_of(node: Node, operands: Sequence[Expr], is_strong: bool = False) -> Any:
    op: Any = node.op
    *operand_labels, result = op.subscripts(*[len(x.shape) for x in operands], **node.params)
    lengths: dict[str, Length] = {}
    for labels, x in zip(operand_labels, operands, strict=True):
        for label, n in zip(labels, x.shape, strict=True):
            if is_one(lengths.get(label, 1)):
                lengths[label] = n
    summed = [c for c in lengths if c not in result]
    if summed and choose.is_short_sum(lengths, summed):
        indices = product(*[range(int(lengths[c])) for c in summed])
        chosen = [dict(zip(summed, index, strict=True)) for index in indices]
        return _written_out(node, operands, operand_labels, result, chosen, is_strong)
    if summed and not choose.is_fused_loop(lengths, operand_labels):
        return NotImplemented
    subscripts = _ordered(result, summed, operand_labels, operands, lengths)
    space = tuple(lengths[c] for c in subscripts)
    dtype = node.spec.dtype
    wide = F32 if dtype == F16 else dtype
    spread = [
        _spread(x, labels, subscripts, space)
        for x, labels in zip(operands, operand_labels, strict=True)
    ]
    combine = _strong_product(wide) if is_strong else _product(wide)
    rule = ContractionTerm(combine, len(operand_labels), is_strong)
    terms = Expr(rule, spread, space, wide, node)
    if not summed:
        return terms if wide == dtype else _cast(terms, dtype, node)
    axes = [k for k, c in enumerate(subscripts) if c in summed]
    kept = [1 if c in summed else n for c, n in zip(subscripts, space, strict=True)]
    out = Expr(Reduce("sum", axes), (terms,), kept, wide, node)
    out = reshaped(out, node.spec.shape, node)
    return out if wide == dtype else _cast(out, dtype, node)


def _written_out(
    node: Node,
    operands: Sequence[Expr],
    words: Sequence[str],
    result: str,
    terms: Sequence[Mapping[str, int]],
    is_strong: bool,
) -> Expr:
    """A product whose terms are written out, one after the other: it is fused with what reads it.

    Parameters
    ----------
    terms : sequence of mapping
        The index of each summed subscript.
    """
    dtype, shape = node.spec.dtype, node.spec.shape
    wide = F32 if dtype == F16 else dtype
    elements = []
    for fixed in terms:
        for x, word in zip(operands, words, strict=True):
            places = [Affine(fixed[c], ()) if c in fixed else result.index(c) for c in word]
            ones = [is_one(n) for n in x.shape]
            elements.append(Expr(View("term", _placing(places, ones)), (x,), shape, x.dtype, node))
    each = len(words)
    combine = _strong_product(wide) if is_strong else _product(wide)

    def total(s: ScalarLanguage, *lanes: Any) -> Any:
        found = combine(s, *lanes[:each])
        for k in range(each, len(lanes), each):
            factors = lanes[k : k + each]
            if each == 2 and wide.kind == "f" and not is_strong:
                found = s.fma(*[s.cast(x, wide) for x in factors], found)
            else:
                found = found + combine(s, *factors)
        return found

    return Expr(Map("product", total, 2 * len(elements)), elements, shape, dtype, node)


def _placing(places: Sequence[int | Affine], ones: Sequence[bool]) -> Any:
    """The index of an operand, of which some parts are given."""

    def place(index: tuple[Affine, ...]) -> Any:
        return tuple(
            ZERO if one else index[k] if type(k) is int else k
            for k, one in zip(places, ones, strict=True)
        )

    return place


def _ordered(
    result: str,
    summed: Sequence[str],
    words: Sequence[str],
    operands: Sequence[Expr],
    lengths: Mapping[str, Length],
) -> str:
    """The subscripts as axes of the loops, the outermost first.

    A sum that reads each element of an operand once goes through it as it lies in memory: the
    product of a vector and a matrix in C order adds rows of the matrix.
    """
    for word, x in zip(words, operands, strict=True):
        if summed and sorted(word) == sorted(lengths):
            order = "".join(word[k] for k in _axes_in_memory(x))
            if [c for c in order if c in result] == list(result):
                return order
    return result + "".join(summed)


def _axes_in_memory(x: Expr) -> list[int]:
    """The axes of an array by their strides, the longest first; as they are where it computes."""
    axes = list(range(len(x.shape)))
    view = strided_view(x)
    if view is None:
        return axes
    strides = view[2]
    for k in axes[1:]:
        place = k
        while place and _is_longer(strides[k], strides[axes[place - 1]]):
            place -= 1
        axes.remove(k)
        axes.insert(place, k)
    return axes


def _is_longer(stride: Length, other: Length) -> bool:
    """Whether a stride is larger than another, as far as it is known."""
    if type(stride) is int and type(other) is int:
        return abs(stride) > abs(other)
    return is_one(other)


def _cast(x: Expr, dtype: Dtype, node: Node) -> Expr:
    return Expr(Map("cast", lambda s, v: s.cast(v, dtype)), (x,), x.shape, dtype, node)


def _product(dtype: Dtype) -> Any:
    def combine(s: ScalarLanguage, *lanes: Any) -> Any:
        total = s.cast(lanes[0], dtype)
        for x in lanes[1:]:
            total = total * s.cast(x, dtype)
        return total

    return combine


def _strong_product(dtype: Dtype) -> Any:
    plain = _product(dtype)

    def combine(s: ScalarLanguage, t: Any, x: Any) -> Any:
        return s.where(s.not_equal(t, 0), plain(s, t, x), 0)

    return combine


def _spread(x: Expr, labels: str, subscripts: str, space: tuple[Length, ...]) -> Expr:
    """An operand broadcast over all axes of the product."""
    places = [subscripts.index(c) for c in labels]
    ones = [is_one(n) for n in x.shape]

    def place(index: tuple[Affine, ...]) -> Any:
        return tuple(ZERO if one else index[k] for k, one in zip(places, ones, strict=True))

    return Expr(View("spread", place), (x,), space, x.dtype, x.node)


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
    info = node.info_with(spec=spec)
    ordered = Node(node.op, tuple(args), {"subscripts": subscripts}, None, info)
    set_origin(ordered, node)
    found = opaque_call(ordered, exprs)
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
    lowering: Lowering, node: Node, words: Sequence[str], result: str, operands: Sequence[Expr]
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


# ---- determinants --------------------------------------------------------------------------------


_DOWN, _UP = 2.0**-600, 2.0**600


def _has_two_rows(node: Node) -> bool:
    shape, dtype = node.inputs[0].spec.shape, node.inputs[0].spec.dtype
    return shape[-2:] == (2, 2) and dtype in (F32, F64)


def _minor(s: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """a d - b c with an error of at most 1.5 ulp (W. Kahan)."""
    product = b * c
    rounding_error = s.fma(b, c, -product)
    return s.fma(a, d, -product) - rounding_error


def _determinant(s: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    if a.dtype == F32:  # exact products, and no overflow, in double precision
        a, b, c, d = (s.cast(x, F64) for x in (a, b, c, d))
        return a * d - b * c
    value = _minor(s, a, b, c, d)
    # both products may overflow while their difference does not
    small = _minor(s, a * _DOWN, b * _DOWN, c * _DOWN, d * _DOWN)
    return s.where(s.isnan(value), small * _UP * _UP, value)


def _of_three(s: Any, *xs: Any) -> Any:
    a, b, c, d, e, f, g, h, i = (s.cast(x, F64) for x in xs)  # no overflow in double precision
    return a * (e * i - f * h) + b * (f * g - d * i) + c * (d * h - e * g)


@lowers("det")
def _det(lowering: Lowering, node: Node, operands: Sequence[Expr]) -> Any:
    if node.inputs[0].spec.dtype == F32 and node.inputs[0].spec.shape[-2:] == (3, 3):
        (x,) = operands
        elements = [_element(x, i, j, node) for i in range(3) for j in range(3)]
        return Expr(Map("det", _of_three, 14), elements, node.spec.shape, F32, node)
    if not _has_two_rows(node):
        return joined(lowering, node, operands)
    (x,) = operands
    shape, dtype = node.spec.shape, node.spec.dtype
    elements = [_element(x, i, j, node) for i in (0, 1) for j in (0, 1)]
    return Expr(Map("det", _determinant, 12), elements, shape, dtype, node)


def _element(x: Expr, i: int, j: int, node: Node) -> Expr:
    place = (Affine(i, ()), Affine(j, ()))
    view = View("element", lambda index: (*index, *place))
    return Expr(view, (x,), x.shape[:-2], x.dtype, node)


_SIGNS = np.array([[1.0, -1.0], [-1.0, 1.0]])


@lowers("det_derivative")
def _cofactors(lowering: Lowering, node: Node, operands: Sequence[Expr]) -> Any:
    if not _has_two_rows(node) or len(operands) != 1:
        return joined(lowering, node, operands)
    (x,) = operands

    def across(index: Any) -> Any:
        *lead, i, j = index
        return (*lead, i.times(-1).plus(1), j.times(-1).plus(1))

    turned = Expr(View("across", across), (x,), x.shape, x.dtype, node)
    held = Expr(Stored("constant", _SIGNS.astype(x.dtype)), (), (2, 2), x.dtype, node)
    signs = Expr(View("signs", lambda index: index[-2:]), (held,), x.shape, x.dtype, node)
    return Expr(Map("cofactors", lambda s, v, w: v * w), (turned, signs), x.shape, x.dtype, node)


def _never(*args: Any) -> Any:
    raise AssertionError("this operation only exists in native code")


# The results of the joint call: the matrix, then those of the determinant.
_JOINT = {
    frozenset(("inv", "slogdet")): Opaque(_never, name="inverse_slogdet", trusted=True),
    frozenset(("det_derivative", "det")): Opaque(_never, name="cofactors_det", trusted=True),
}
_OTHER = {"inv": "slogdet", "slogdet": "inv", "det": "det_derivative", "det_derivative": "det"}


def joined(lowering: Lowering, node: Node, operands: Sequence[Expr]) -> Any:
    """The result of a node that has a partner; NotImplemented for others."""
    if len(node.inputs) != 1:
        return NotImplemented
    partner = _partner(lowering, node)
    if partner is None:
        return NotImplemented
    is_matrix = node.op.name in ("inv", "det_derivative")
    matrix, number = (node, partner) if is_matrix else (partner, node)
    key = "joined", matrix
    parts = lowering.rules.get(key)
    if parts is None:
        several = number.spec if isinstance(number.spec, tuple) else (number.spec,)
        op = _JOINT[frozenset((matrix.op.name, number.op.name))]
        info = node.info_with(spec=(matrix.spec, *several))
        joint = Node(op, node.inputs, {}, None, info)
        set_origin(joint, node)
        assert is_served(joint)
        parts = lowering.rules[key] = opaque_call(joint, operands)
    if node is matrix:
        return parts[0]
    return parts[1:] if isinstance(node.spec, tuple) else parts[1]


def _partner(lowering: Lowering, node: Node) -> Node | None:
    (x,) = node.inputs
    n = x.spec.shape[-1]
    if (type(n) is int and n <= small_matrices.MAX_ROWS) or 0 in x.spec.shape:
        return None
    candidates = lowering.rules.get("factorizations")
    if candidates is None:
        candidates = lowering.rules["factorizations"] = {
            (line.op.name, line.inputs[0]): line
            for line in lowering.graph.nodes
            if line.op.name in _OTHER and len(line.inputs) == 1
        }
    found: Node | None = candidates.get((_OTHER[node.op.name], x))
    return found if found is not None and is_served(found) and is_served(node) else None


@lowers("inv", "slogdet")
def _inverse(lowering: Lowering, node: Node, operands: Sequence[Expr]) -> Any:
    return joined(lowering, node, operands)
