"""The code of a loop's step that uses slices with computed bounds, as `sized` nodes (sized.py).

    grouped    the outputs of a step, with computations on arrays of one such length grouped

All computations on arrays of such a length, and all nodes between them, are one group; its inputs
and outputs have fixed shapes.  The rest of the step, and writes into the carry among it,
stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING, Any

from wengert._engine.core.copy_graph import rebuilt
from wengert._engine.core.dispatch import PART
from wengert._engine.core.handle import Handle, wrap
from wengert._engine.core.node import CONSTANT, Node
from wengert._engine.core.op import lookup
from wengert._engine.core.static_params import sizes_of
from wengert._engine.core.subgraph import Body, local_sizes
from wengert._engine.core.symbolic.dim import LOCAL
from wengert._engine.core.tracing import SIZE, placeholder
from wengert.errors import TraceError, at, user_line

if TYPE_CHECKING:
    from wengert._engine.core.types import Array

Group = list[Node]


def grouped(
    outputs: Sequence[Node], order: Sequence[Node], lengths: Mapping[str, Node], what: str
) -> list[Node]:
    """The outputs of a step, with computations on slices of computed lengths in `sized` nodes.

    Parameters
    ----------
    outputs : sequence of Node
    order : sequence of Node
        The nodes of the step and of the lengths, in order.
    lengths : mapping from str to Node
        The lengths by name, plus one.
    what : str
        The loop in messages.
    """
    local = frozenset(lengths)
    names = {n: local_sizes(n) & local for n in order}
    group: dict[Node, Group] = {}
    for node in order:
        inner = [
            a for a in node.inputs if a in group and (_shape_names(a) & local or _is_part(node))
        ]
        if not names[node] and not inner:
            continue
        mine: Group = [node]
        for a in inner:
            mine = _joined(group, group[a], mine)
        group[node] = mine
        for n in mine:
            group[n] = mine
    if not group:
        return list(outputs)
    for n in outputs:
        if _shape_names(n) & local:
            raise TraceError(
                f"{what}: a step returns an array of shape {n.spec.shape}, a length that differs "
                "between steps. Write it to a slice of an array of fixed size, or reduce it"
                f"{at(n.where or user_line())}."
            )
    on = {n: [*n.inputs, *[lengths[x] for x in sorted(names[n])]] for n in order}
    _made_convex(order, on, group)
    return _replaced(outputs, order, on, group, names, lengths, what)


def _shape_names(node: Node) -> frozenset[str]:
    specs = node.spec if type(node.spec) is tuple else (node.spec,)
    return frozenset().union(*[sizes_of(s.shape) for s in specs])


def is_local(name: object) -> bool:
    """Whether a name is that of a length known in a step of a loop."""
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


def _made_convex(order: Sequence[Node], on: Mapping[Node, list[Node]], group: Any) -> None:
    """Add to each group the nodes that both depend on it and are needed by it."""
    changed = True
    while changed:
        changed = False
        for mine in {id(g): g for g in group.values()}.values():
            inside = set(mine)
            after: set[Node] = set()
            for n in order:
                if n not in inside and any(a in inside or a in after for a in on[n]):
                    after.add(n)
            before: set[Node] = set()
            for n in reversed(order):
                if n in inside or n in before:
                    before.update(a for a in on[n] if a in on and a not in inside)
            between = after & before
            if between:
                for n in between:
                    _joined(group, mine, group.get(n, [n]))
                for n in mine:
                    group[n] = mine
                changed = True
                break


def _replaced(
    outputs: Sequence[Node],
    order: Sequence[Node],
    on: Mapping[Node, list[Node]],
    group: dict[Node, Group],
    names: Mapping[Node, frozenset[str]],
    lengths: Mapping[str, Node],
    what: str,
) -> list[Node]:
    position = {n: k for k, n in enumerate(order)}
    for mine in {id(g): g for g in group.values()}.values():
        mine.sort(key=position.__getitem__)
    unit = {n: group[n][0] if n in group else n for n in order}
    sorter: TopologicalSorter[Node] = TopologicalSorter()
    for n in order:
        sorter.add(unit[n], *[unit[a] for a in on[n] if a in unit and unit[a] is not unit[n]])
    used: set[Node] = set(outputs)
    for n in order:
        used.update(a for a in on[n] if unit.get(a) is not unit[n])
    place: dict[Node, Node] = {}
    for first in sorter.static_order():
        if first not in group:
            place.update(rebuilt([first], place))
            continue
        mine = group[first]
        mentioned = sorted(frozenset[str]().union(*[names[n] for n in mine]))
        if any(lengths[x] in mine for x in mentioned):
            raise TraceError(
                f"{what}: the length of a slice is computed from another slice of computed length "
                "that is combined with it. Compute it before the loop, or mask with np.where"
                f"{at(first.where or user_line())}."
            )
        _emit(mine, mentioned, [n for n in mine if n in used], lengths, place, what)
    return [place.get(n, n) for n in outputs]


def _emit(
    mine: Group,
    names: Sequence[str],
    outs: Sequence[Node],
    lengths: Mapping[str, Node],
    place: dict[Node, Node],
    what: str,
) -> None:
    """Record one `sized` node for a group, and store its results."""
    inside = set(mine)
    inputs = dict.fromkeys(_outer(mine, inside))
    stand = {n: placeholder(n.spec, n.name, type(n) is Node) for n in inputs}
    new = rebuilt(mine, stand)
    body = Body(*[new[n] for n in outs], inputs=list(stand.values()), name=what)
    sizes = [wrap(place.get(lengths[x], lengths[x])) for x in names]
    given = [wrap(place.get(n, n)) for n in inputs]
    found = lookup("sized")(_packed(sizes), *given, branches=(body,), names=tuple(names))
    for n, x in zip(outs, found, strict=True):
        place[n] = x.node


def _outer(mine: Group, inside: set[Node]) -> Iterable[Node]:
    for n in mine:
        for a in n.inputs:
            small = a.op is SIZE or (a.op is CONSTANT and not a.spec.shape)
            if a not in inside and not small:
                yield a


def _packed(sizes: list[Handle]) -> Array:
    if len(sizes) == 1:
        return lookup("reshape")(sizes[0], shape=(1,))  # type: ignore[no-any-return]
    return lookup("stack")(*sizes, axis=0)  # type: ignore[no-any-return]
