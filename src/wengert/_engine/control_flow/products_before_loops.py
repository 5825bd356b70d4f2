"""Products of loop-invariant arrays, for all steps of a loop, before the loop.

    for i in range(n):                       P = A.T @ B
        y[i, i:] = A[:, i] @ B[:, i:]        for i in range(n):
                                                 y[i, i:] = P[i, i:]

A step takes a row or a column of an array that the loop does not change, and multiplies it by such
an array.  The products of all steps are one product of matrices, which reads each array a few times
instead of once in each step; so are its derivatives.  This is done where a loop is made, before it
is differentiated.

    with_products_before    the nodes of a step that reads such products

Elements that the loop does not use are computed, too: at most `_MOST_UNUSED` times as many as the
steps would, if they used whole axes.  The product is at most `_MOST_MEMORY` times as large as its
factors.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from string import ascii_letters
from typing import Any, NamedTuple

from wengert._engine.core.copy_graph import rebuilt
from wengert._engine.core.handle import wrap
from wengert._engine.core.node import Node
from wengert._engine.core.op import lookup
from wengert._engine.core.spec import Spec
from wengert._engine.ops.indexing.template import IndexSlot

_PRODUCTS = ("matmul", "dot", "einsum")
_MOST_UNUSED = 2
_MOST_MEMORY = 4
_MIN_WORK = 1 << 14  # multiplications of a step; fewer are as fast in the loop
_MIN_TERMS = 16  # of each sum; products with fewer are larger than what they are computed from
_WHOLE = slice(None)


class Factor(NamedTuple):
    """A factor of a product: a part of a loop-invariant array.

    base : the array.
    parts : the index, a part for each axis.
    operands : the integers in it.
    """

    base: Node
    parts: tuple[Any, ...]
    operands: tuple[Node, ...]


def with_products_before(order: Sequence[Node], inside: set[Node], length: int) -> dict[Node, Node]:
    """The nodes of a step, with products that are parts of products computed before the loop.

    Parameters
    ----------
    order : sequence of Node
        The nodes of the step, in evaluation order.
    inside : set of Node
        Its inputs, and the nodes that are computed in the loop.
    length : int
        The number of steps.

    Returns
    -------
    dict
        For each node of `order` the node that replaces it; empty if there are no such products.
    """
    replacements: dict[Node, Node] = {}
    products = [lookup(name) for name in _PRODUCTS]
    for node in order:
        if node in inside and node.op in products and len(node.inputs) == 2:
            part = _part(node, inside, length)
            if part is not None:
                replacements[node] = part
    return (
        rebuilt([n for n in order if n not in replacements], replacements) if replacements else {}
    )


def _part(node: Node, inside: set[Node], length: int) -> Node | None:
    """A product as a part of the product of whole arrays; None if it is not, or not worth it."""
    factors = [_factor(a, inside) for a in node.inputs]
    if None in factors:
        return None
    ranks = [len(a.spec.shape) for a in node.inputs]
    op: Any = node.op
    *subscripts, result = op.subscripts(*ranks, **node.params)
    unused = iter([c for c in ascii_letters if not any(c in w for w in subscripts)])
    sizes: dict[str, Any] = {}
    selected: dict[str, Any] = {}  # of each letter that the step selects from, the part
    steps: list[str] = []
    words: list[str] = []
    for factor, word in zip(factors, subscripts, strict=True):
        assert factor is not None
        letters = iter(word)
        own = ""
        for part, n in zip(factor.parts, factor.base.spec.shape, strict=True):
            letter = next(unused) if isinstance(part, IndexSlot) else next(letters)
            own += letter
            if type(n) is not int or sizes.setdefault(letter, n) != n:
                return None
            if isinstance(part, IndexSlot):
                steps.append(letter)
                selected[letter] = factor.operands[part.k]
            elif part != _WHOLE:
                if letter not in result or sum(letter in w for w in subscripts) > 1:
                    return None
                selected[letter] = part
        words.append(own)
    terms = prod([n for c, n in sizes.items() if c not in steps and c not in result])
    work = prod([n for c, n in sizes.items() if c not in steps])
    all_steps = prod([sizes[c] for c in steps])
    if not steps or all_steps > _MOST_UNUSED * length or work < _MIN_WORK or terms < _MIN_TERMS:
        return None
    whole = "".join(steps) + result
    size = sum([prod([sizes[c] for c in w]) for w in words])
    if prod([sizes[c] for c in whole]) > _MOST_MEMORY * size:
        return None
    bases = [wrap(f.base) for f in factors if f is not None]
    product = lookup("einsum")(*bases, subscripts=(*words, whole))
    operands = [wrap(selected[c]) for c in steps]
    slots = [IndexSlot(k) for k in range(len(steps))]
    index = (*slots, *[selected.get(c, _WHOLE) for c in result])
    part_of_product = lookup("getitem")(product, *operands, index=index).node
    same = (part_of_product.spec.shape, part_of_product.spec.dtype) == (
        node.spec.shape,
        node.spec.dtype,
    )
    return part_of_product if same else None


def _factor(node: Node, inside: set[Node]) -> Factor | None:
    """A factor as a part of a loop-invariant array; None if it is not such a part."""
    if type(node.spec) is not Spec or node.spec.dtype.kind not in "fc":
        return None
    if node not in inside:
        return Factor(node, (_WHOLE,) * len(node.spec.shape), ())
    if node.op is not lookup("getitem"):
        return None
    base, *operands = node.inputs
    if base in inside or any([x.spec.shape or x.spec.dtype.kind not in "iu" for x in operands]):
        return None
    template = node.params["index"]
    parts = list(template) if isinstance(template, tuple) else [template]
    missing = len(base.spec.shape) - sum(p is not Ellipsis for p in parts)
    place = parts.index(Ellipsis) if Ellipsis in parts else len(parts)
    parts[place : place + 1] = [_WHOLE] * missing
    if any([not isinstance(p, slice | IndexSlot) for p in parts]):
        return None
    return Factor(base, tuple(parts), tuple(operands))
