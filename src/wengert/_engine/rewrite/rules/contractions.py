"""Contractions: sums over an axis of only one factor of a product, and sums of two products.

The gradient with respect to a value that is broadcast before a product, such as the mean that is
subtracted from points, ends with the sum of a matrix product.  If the factor with the summed axis
is summed first, the product is one with a vector; for a mixture of Gaussians this saves a third of
all multiplications.

The sum of a factor may overflow where the sum of products does not, if the other factor is small.
This is accepted, because a sum of products may overflow in intermediate sums too.

A factor that is broadcast, such as the cotangent of a sum, is the same along some axes.  The other
factor is summed over those of them that are contracted, and the product is broadcast along the
others.  The gradient of ``sum(a @ b)`` with respect to a is then a sum of b along its rows.
A factor that is an identity matrix, such as the unit vectors of a Jacobian, only renames an axis.

The gradient of a product of an array with itself is the sum of two products with that array; their
other factors are added first.  Twice a product, as in the gradient of its square, remains that.

Rules for matrices with structure (inferred by value_properties.py).

A matrix is known to be symmetric or triangular if a constant or an assumption of the user says so.
The triangular solver raises for a singular matrix like the general one, so errors are preserved.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

import numpy as np

from wengert._engine.core.node import CONSTANT, Node
from wengert._engine.core.symbolic.constraints import repeated_axes
from wengert._engine.kinds.reduction import axes_of
from wengert._engine.ops.casts import sum_to
from wengert._engine.rewrite.rule import NodeBuilder, rule
from wengert._engine.rewrite.value_properties import assume

_A = np.arange(6.0).reshape(2, 3)
_SUMS = ("sum_to", "sum")
_MIN_WORK = 4096  # multiplications; fewer are not worth an addition before
_CONTRACTIONS = ("einsum", "strong_einsum")


@rule(
    "sum of negatives",
    _SUMS,
    "negative",
    reason="as accurate, and fewer numbers are negated",
    example=(lambda x: sum_to(-x, shape=(3,)), _A),
)
def sum_of_negatives(node: Node, new: NodeBuilder) -> Node | None:
    """The negative of the sum."""
    x = node.args[0].args[0]
    operand_spec, result_spec = new.context.spec(x), new.context.spec(node)
    if (
        operand_spec.dtype != result_spec.dtype
        or result_spec.dtype.kind not in "fc"
        or node.params.get("dtype")
    ):
        return None
    return new("negative", new(node.op, x, **node.params))


@rule(
    "sum of a contraction",
    _SUMS,
    _CONTRACTIONS,
    reason="the product distributes over the sum; fewer multiplications",
    example=(
        lambda x, y: sum_to(np.einsum("ij,kj->ik", x, y), shape=(1, 2)),
        _A,
        _A,
    ),
)
def sum_of_contraction(node: Node, new: NodeBuilder) -> Node | None:
    """The contraction of factors that are first summed over the axes that only one of them has."""
    context, inner = new.context, node.args[0]
    inner_spec, result_spec = context.spec(inner), context.spec(node)
    if (
        inner_spec.dtype != result_spec.dtype
        or result_spec.dtype.kind not in "fc"
        or node.params.get("dtype")
    ):
        return None
    *subscripts, result = inner.params["subscripts"]
    axes = _summed_axes(node, inner_spec.shape, result_spec.shape)
    if not axes or len(subscripts) != 2 or any(len({*w}) < len(w) for w in subscripts):
        return None
    summed = [result[k] for k in axes]
    if any(sum(c in w for w in subscripts) != 1 for c in summed):
        return None
    operands = []
    for i, a in enumerate(inner.args):
        own_axes = tuple(k for k, c in enumerate(subscripts[i]) if c in summed)
        if own_axes:
            a = new("sum", a, axis=own_axes if len(own_axes) > 1 else own_axes[0], keepdims=False)
            subscripts[i] = "".join(c for c in subscripts[i] if c not in summed)
        operands.append(a)
    result_labels = "".join(c for c in result if c not in summed)
    contraction = new(inner.op, *operands, subscripts=(*subscripts, result_labels))
    if context.spec(contraction).shape == result_spec.shape:
        return contraction
    return new("reshape", contraction, shape=result_spec.shape, order="C")


def _summed_axes(
    node: Node, shape: tuple[int, ...], result_shape: tuple[int, ...]
) -> tuple[int, ...] | None:
    """The axes that a node sums over; None if that depends on sizes."""
    if node.op.name == "sum":
        return axes_of(node.params.get("axis"), len(shape))
    return repeated_axes(shape, result_shape)


@rule(
    "sum of two contractions",
    "add",
    ("einsum", "strong_einsum"),
    reason="the product distributes over the sum; half of the multiplications",
    example=(
        lambda t, x: np.einsum("ij,kj->ki", t, x) + np.einsum("ij,ki->kj", t, x),
        np.arange(256.0).reshape(16, 16),
        np.arange(256.0).reshape(16, 16) / 7.0,
    ),
)
def sum_of_two_contractions(node: Node, new: NodeBuilder) -> Node | None:
    """The contraction of a sum, if the second factors are the same; also in (c + x) + y."""
    for one, y in (node.args, node.args[::-1]):
        if y.op.name not in _CONTRACTIONS:
            continue
        merged = _merged(one, y, node, new)
        if merged is not None:
            return merged
        if one.op.name == "add" and new.context.spec(one) == new.context.spec(node):
            for c, x in (one.args, one.args[::-1]):
                merged = _merged(x, y, node, new)
                if merged is not None:
                    return new("add", c, merged)
    return None


def _merged(x: Node, y: Node, node: Node, new: NodeBuilder) -> Node | None:
    """The sum of two contractions as one; None if that is not possible."""
    spec = new.context.spec
    if x is y or x.op is not y.op or x.op.name not in _CONTRACTIONS:
        return None  # twice a product, which is needed elsewhere too, is no second product
    if len(x.args) != 2 or len(y.args) != 2:
        return None
    (t, a), (u, b) = x.args, y.args
    if a is not b or not spec(x) == spec(y) == spec(node) or spec(t).dtype != spec(u).dtype:
        return None
    word, factor, result = x.params["subscripts"]
    other, *others = y.params["subscripts"]
    names = dict(zip("".join(others), factor + result, strict=True))
    if len(set(names.values())) < len(names) or any(
        [names[c] != d for c, d in zip("".join(others), factor + result, strict=True)]
    ):
        return None
    renamed = [names.get(c) for c in other]
    if len(set(word)) < len(word) or sorted(map(str, renamed)) != sorted(word):
        return None
    lengths = dict(zip(word + factor, spec(t).shape + spec(a).shape, strict=True)).values()
    if not all([type(n) is int for n in lengths]) or prod(lengths) < _MIN_WORK:
        return None
    axes = tuple([renamed.index(c) for c in word])
    if [spec(u).shape[k] for k in axes] != list(spec(t).shape):
        return None
    u = u if axes == tuple(range(len(axes))) else new("transpose", u, axes=axes)
    return new(x.op, new("add", t, u), a, **x.params)


@rule(
    "contraction of a broadcast",
    _CONTRACTIONS,
    ("broadcast_to", "full"),
    reason="the product distributes over the sum, and equal rows are computed once",
    example=(
        lambda x, y: np.einsum("ij,kj->ik", np.broadcast_to(x[:, :1], (2, 3)), y),
        _A,
        _A,
    ),
)
def contraction_of_broadcast(node: Node, new: NodeBuilder) -> Node | None:
    """The contraction without the axes along which a factor is the same."""
    spec, dtype = new.context.spec, new.context.spec(node).dtype
    *words, result = node.params["subscripts"]
    if len(words) != 2 or dtype.kind not in "fc" or any([len({*w}) < len(w) for w in words]):
        return None
    if any([spec(a).dtype != dtype for a in node.args]):
        return None
    lengths = dict(
        zip("".join(words), (*spec(node.args[0]).shape, *spec(node.args[1]).shape), strict=True)
    )
    if any(
        [
            spec(a).shape != tuple([lengths[c] for c in w])
            for a, w in zip(node.args, words, strict=True)
        ]
    ):
        return None  # a length of one is broadcast by the contraction
    for i, x in enumerate(node.args):
        source = _source(x, words[i], new)
        if source is None:
            continue
        equal = source.equal
        other = words[1 - i]
        summed = [c for c in other if c in equal and c not in result]
        repeated = [c for c in result if c in equal and c not in other]
        if not set(equal) <= {*other, *result} or not (summed or repeated):
            continue
        if any([lengths[c] == 0 for c in summed]):
            continue  # an infinite factor of an empty sum
        if not source.word and node.op.name != "einsum":
            continue
        y = node.args[1 - i]
        axes = tuple([other.index(c) for c in summed])
        if not source.word:
            axes = tuple([k for k, c in enumerate(other) if c not in result])
        if axes:
            y = new("sum", y, axis=axes if len(axes) > 1 else axes[0], keepdims=False)
            other = "".join([c for k, c in enumerate(other) if k not in axes])
        short = "".join([c for c in result if c not in repeated])
        if source.word:
            pairs = [(source.node, source.word), (y, other)][:: 1 if i == 0 else -1]
            product = new(
                node.op, *[a for a, _ in pairs], subscripts=(*[w for _, w in pairs], short)
            )
        else:
            if short != other:
                y = new("transpose", y, axes=tuple([other.index(c) for c in short]))
            product = new("multiply", source.node, y)
        if not repeated:
            return product
        shape = tuple([1 if c in repeated else lengths[c] for c in result])
        product = new("reshape", product, shape=shape, order="C")
        return new("broadcast_to", product, shape=spec(node).shape)
    return None


@rule(
    "product with an identity matrix",
    ("einsum",),
    reason="products with one and sums of zeros are not computed",
    example=(lambda x: np.einsum("ij,kj->ik", x, np.eye(3)), _A),
)
def product_with_identity(node: Node, new: NodeBuilder) -> Node | None:
    """The other factor, transposed; a Jacobian of a linear function is computed without product."""
    *words, result = node.params["subscripts"]
    if len(words) != 2:
        return None
    for k in (0, 1):
        unit, other = words[k], words[1 - k]
        if len(unit) != 2 or not _is_identity(node.args[k]):
            continue
        for summed, kept in (unit, unit[::-1]):
            if summed in result or kept not in result or summed not in other or kept in other:
                continue
            renamed = other.replace(summed, kept)
            y: Node = node.args[1 - k]
            spec = new.context.spec
            if len({*renamed}) < len(renamed) or sorted(renamed) != sorted(result):
                continue
            if spec(y).dtype != spec(node).dtype or sorted(spec(y).shape) != sorted(
                spec(node).shape
            ):
                continue
            if renamed == result:
                return y
            return new("transpose", y, axes=tuple([renamed.index(c) for c in result]))
    return None


def _is_identity(node: Node) -> bool:
    value = node.value if node.op is CONSTANT else None
    if type(value) is not np.ndarray or value.ndim != 2 or value.dtype.kind not in "fc":
        return False
    n = len(value)
    if value.shape != (n, n) or n < 2 or value[0, 0] != 1 or np.count_nonzero(value[0]) != 1:
        return False
    return np.count_nonzero(value) == n and bool(np.all(np.diagonal(value) == 1))


class _Source(NamedTuple):
    """A factor without the axes along which it is the same.

    node : the smaller factor, with the labels `word`.
    equal : the labels of the other axes.
    """

    node: Node
    word: str
    equal: str


def _source(x: Node, word: str, new: NodeBuilder) -> _Source | None:
    """The smaller factor of a broadcast; None if it is none."""
    shape = new.context.spec(x).shape
    if x.op.name == "full":
        dtype = new.context.spec(x).dtype
        return _Source(new("full", shape=(), value=x.params["value"], dtype=dtype), "", word)
    if x.op.name != "broadcast_to":
        return None
    axes = repeated_axes(shape, new.context.spec(x.args[0]).shape)
    kept = [k for k in range(len(shape)) if k not in axes]
    small = tuple([shape[k] for k in kept])
    source = new("reshape", x.args[0], shape=small, order="C")
    return _Source(source, "".join([word[k] for k in kept]), "".join([word[k] for k in axes]))


_S = np.array([[2.0, 1.0], [1.0, 3.0]])
_L = np.array([[2.0, 0.0], [1.0, 3.0]])
_B = np.array([[1.0, 2.0], [0.5, -1.0]])


@rule(
    "transpose of symmetric",
    "transpose",
    reason="a symmetric matrix is its own transpose",
    exact=True,
    example=(lambda x: assume(x, symmetric=True).T + 1.0, _S),
)
def symmetric(node: Node, new: NodeBuilder) -> Node | None:
    """The matrix itself."""
    x, context = node.args[0], new.context
    ndim = len(context.spec(node).shape)
    if ndim < 2 or not context.has(x, "symmetric"):
        return None
    axes = node.params.get("axes")
    order = tuple(range(ndim))[::-1] if axes is None else tuple(a % ndim for a in axes)
    return x if order == (*range(ndim - 2), ndim - 1, ndim - 2) else None


@rule(
    "solve with a triangle",
    "solve",
    reason="a triangular system is solved by substitution, without a factorization",
    example=(lambda x, y: np.linalg.solve(assume(x, lower=True), y), _L, _B),
)
def triangle(node: Node, new: NodeBuilder) -> Node | None:
    """The triangular solver."""
    a, b = node.args
    is_lower = new.context.has(a, "lower")
    if not is_lower and not new.context.has(a, "upper"):
        return None
    return new("solve_triangular", a, b, lower=is_lower, trans=0, unit_diagonal=False)


@rule(
    "inverse times",
    "matmul",
    "inv",
    operand=0,
    reason="solving is more accurate and cheaper than inverting",
    example=(lambda x, y: np.linalg.inv(x) @ y, _S, _B),
)
def inverse_times(node: Node, new: NodeBuilder) -> Node | None:
    """solve(a, b) in place of inv(a) @ b."""
    left, b = node.args
    return new("solve", left.args[0], b)


@rule(
    "determinant of a triangle",
    "det",
    reason="the determinant of a triangular matrix is the product of its diagonal",
    example=(lambda x: np.linalg.det(assume(x, lower=True)), _L),
)
def determinant(node: Node, new: NodeBuilder) -> Node | None:
    """The product of the diagonal."""
    a = node.args[0]
    if not (new.context.has(a, "lower") or new.context.has(a, "upper")):
        return None
    return new("prod", new("diagonal", a, offset=0, axis1=-2, axis2=-1), axis=-1)


RULES = (
    symmetric,
    triangle,
    inverse_times,
    determinant,
    sum_of_negatives,
    sum_of_contraction,
    sum_of_two_contractions,
    contraction_of_broadcast,
    product_with_identity,
)
