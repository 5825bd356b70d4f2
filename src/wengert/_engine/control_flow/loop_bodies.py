"""Bodies of loops: products moved before the loop, and slices with computed bounds grouped.

Products of loop-invariant arrays, for all steps of a loop, before the loop.

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

The nodes of a loop's step that use slices with computed bounds, as `sized` nodes (operations.py).

    grouped    the outputs of a step, with computations on such slices in `sized` nodes
    is_local   whether a name is that of a length computed in a step

Connected computations on arrays of such lengths, and all nodes between them, are one group, whose
inputs and outputs have fixed shapes.  The other nodes of the step, such as writes to the carry, are
not changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from graphlib import TopologicalSorter
from math import prod
from string import ascii_letters
from typing import TYPE_CHECKING, Any, NamedTuple

from wengert._engine.core.dispatch import PART
from wengert._engine.core.graph_classes import Body, local_sizes
from wengert._engine.core.graph_copies import rebuilt, with_replaced
from wengert._engine.core.handle import Handle, wrap
from wengert._engine.core.node import CONSTANT, Node
from wengert._engine.core.node_properties import sizes_of
from wengert._engine.core.op import lookup
from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic.dim import LOCAL
from wengert._engine.core.tracing import SIZE, placeholder
from wengert._engine.ops.indexing.template import IndexSlot
from wengert.errors import TraceError, at, user_line

if TYPE_CHECKING:
    from wengert._engine.core.types import Array

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


Group = list[Node]


def grouped(
    outputs: Sequence[Node], order: Sequence[Node], lengths: Mapping[str, Node], what: str
) -> list[Node]:
    """The outputs of a step, with computations on slices of computed lengths in `sized` nodes.

    Parameters
    ----------
    outputs : sequence of Node
    order : sequence of Node
        The nodes of the step and of the lengths, in evaluation order.
    lengths : mapping from str to Node
        The lengths by name, plus one.
    what : str
        The loop, for messages.
    """
    local = frozenset(lengths)
    names = {n: local_sizes(n) & local for n in order}
    group: dict[Node, Group] = {}
    for node in order:
        grouped_operands = [
            a for a in node.inputs if a in group and (_shape_names(a) & local or _is_part(node))
        ]
        if not names[node] and not grouped_operands:
            continue
        members: Group = [node]
        for a in grouped_operands:
            members = _joined(group, group[a], members)
        group[node] = members
        for n in members:
            group[n] = members
    if not group:
        return list(outputs)
    for n in outputs:
        if _shape_names(n) & local:
            raise TraceError(
                f"{what}: a step returns an array of shape {n.spec.shape}, whose length differs "
                "between steps. Write it to a slice of an array of fixed size, or reduce it"
                f"{at(n.where or user_line())}."
            )
    dependencies = {n: [*n.inputs, *[lengths[x] for x in sorted(names[n])]] for n in order}
    _make_convex(order, dependencies, group)
    return _with_sized_nodes(outputs, order, dependencies, group, names, lengths, what)


def _shape_names(node: Node) -> frozenset[str]:
    specs = node.spec if type(node.spec) is tuple else (node.spec,)
    return frozenset().union(*[sizes_of(s.shape) for s in specs])


def is_local(name: object) -> bool:
    """Whether a name is that of a length that is computed in a step of a loop."""
    return type(name) is str and name.startswith(LOCAL)


def _is_part(node: Node) -> bool:
    return node.op is PART


def _joined(group: dict[Node, Group], a: Group, b: Group) -> Group:
    if a is b:
        return a
    a += b
    for n in b:
        group[n] = a
    return a


def _make_convex(
    order: Sequence[Node], dependencies: Mapping[Node, list[Node]], group: Any
) -> None:
    """Add to each group the nodes that depend on some of its nodes and are needed by others."""
    changed = True
    while changed:
        changed = False
        for members in {id(g): g for g in group.values()}.values():
            inside = set(members)
            descendants: set[Node] = set()
            for n in order:
                if n not in inside and any(
                    a in inside or a in descendants for a in dependencies[n]
                ):
                    descendants.add(n)
            ancestors: set[Node] = set()
            for n in reversed(order):
                if n in inside or n in ancestors:
                    ancestors.update(
                        a for a in dependencies[n] if a in dependencies and a not in inside
                    )
            between = descendants & ancestors
            if between:
                for n in between:
                    _joined(group, members, group.get(n, [n]))
                for n in members:
                    group[n] = members
                changed = True
                break


def _with_sized_nodes(
    outputs: Sequence[Node],
    order: Sequence[Node],
    dependencies: Mapping[Node, list[Node]],
    group: dict[Node, Group],
    names: Mapping[Node, frozenset[str]],
    lengths: Mapping[str, Node],
    what: str,
) -> list[Node]:
    """The outputs, with a `sized` node for each group."""
    position = {n: k for k, n in enumerate(order)}
    for members in {id(g): g for g in group.values()}.values():
        members.sort(key=position.__getitem__)
    unit = {n: group[n][0] if n in group else n for n in order}
    sorter: TopologicalSorter[Node] = TopologicalSorter()
    for n in order:
        sorter.add(
            unit[n], *[unit[a] for a in dependencies[n] if a in unit and unit[a] is not unit[n]]
        )
    used: set[Node] = set(outputs)
    for n in order:
        used.update(a for a in dependencies[n] if unit.get(a) is not unit[n])
    values: dict[Node, Node] = {}
    for first in sorter.static_order():
        if first not in group:
            values.setdefault(first, with_replaced(first, values))
            continue
        members = group[first]
        mentioned = sorted(frozenset[str]().union(*[names[n] for n in members]))
        if any(lengths[x] in members for x in mentioned):
            raise TraceError(
                f"{what}: the length of a slice is computed from another slice of computed length "
                "that is combined with it. Compute it before the loop, or mask with np.where"
                f"{at(first.where or user_line())}."
            )
        _emit(members, mentioned, [n for n in members if n in used], lengths, values, what)
    return [values.get(n, n) for n in outputs]


def _emit(
    members: Group,
    names: Sequence[str],
    outs: Sequence[Node],
    lengths: Mapping[str, Node],
    values: dict[Node, Node],
    what: str,
) -> None:
    """Record one `sized` node for a group, and store its results."""
    inside = set(members)
    inputs = dict.fromkeys(_external_operands(members, inside))
    placeholders = {n: placeholder(n.spec, n.name, type(n) is Node) for n in inputs}
    copies = rebuilt(members, placeholders)
    body = Body(*[copies[n] for n in outs], inputs=list(placeholders.values()), name=what)
    sizes = [wrap(values.get(lengths[x], lengths[x])) for x in names]
    operands = [wrap(values.get(n, n)) for n in inputs]
    results = lookup("sized")(_packed(sizes), *operands, branches=(body,), names=tuple(names))
    for n, x in zip(outs, results, strict=True):
        values[n] = x.node


def _external_operands(members: Group, inside: set[Node]) -> Iterable[Node]:
    for n in members:
        for a in n.inputs:
            is_inline = a.op is SIZE or (a.op is CONSTANT and not a.spec.shape)
            if a not in inside and not is_inline:
                yield a


def _packed(sizes: list[Handle]) -> Array:
    if len(sizes) == 1:
        return lookup("reshape")(sizes[0], shape=(1,))  # type: ignore[no-any-return]
    return lookup("stack")(*sizes, axis=0)  # type: ignore[no-any-return]
