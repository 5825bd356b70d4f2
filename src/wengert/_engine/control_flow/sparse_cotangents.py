"""Sparse cotangents: sums with cotangents that are zero but for few elements, as writes.

The cotangent of x[i] is zero but at i.  Adding it to a sum is a write to one element, which a loop
does in place.  The cotangent of x[:j] is made by a node with computed lengths (sized.py); the sum
becomes an operand of that node, which writes to its elements.

    added_in_place    the same results, with writes instead of sums
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from graphlib import TopologicalSorter
from typing import Any

from wengert._engine.core.copy_graph import rebuilt, with_args
from wengert._engine.core.dispatch import PART, part
from wengert._engine.core.handle import wrap
from wengert._engine.core.node import LeafOp, Node
from wengert._engine.core.op import lookup
from wengert._engine.core.recording import enable_grad, tracing
from wengert._engine.core.replay import inline_graph
from wengert._engine.core.subgraph import Body
from wengert._engine.core.tracing import placeholder
from wengert._engine.ops.indexing.template import IndexSlot

from .residuals import ancestors


def added_in_place(
    results: Sequence[Node], nodes: Sequence[Node], keeps_sums: bool = False
) -> list[Node]:
    """The same results, with writes instead of sums with arrays of zeros.

    The terms of a sum of sparse cotangents are written to a total one by one, so that the cost is
    proportional to the number of their elements.

    Parameters
    ----------
    results, nodes : sequence of Node
    keeps_sums : bool
        Whether a result that is a sum of sparse cotangents alone stays one.
    """
    add = lookup("add")
    sums: dict[Node, tuple[Node, ...]] = {}  # of sparse cotangents, in new nodes

    def sparse(node: Node) -> tuple[Node, ...]:
        return (node,) if _is_sparse(node) else sums.get(node, ())

    def filled(node: Node) -> Node:
        """A sum of sparse cotangents as an array."""
        if node not in sums:
            return node
        made, *parts = sums[node]
        for term in parts:
            made = _written(made, term)
        return made

    def change(node: Node, args: tuple[Node, ...]) -> Node | None:
        if node.op is not add:
            full = tuple([filled(a) if isinstance(a, Node) else a for a in args])
            same = all(a is b for a, b in zip(args, full, strict=True))
            return None if same else with_args(node, full)
        if sparse(args[0]) and sparse(args[1]) and args[0].spec == args[1].spec:
            both = with_args(node, args)
            sums[both] = (*sparse(args[0]), *sparse(args[1]))
            return both
        for total, one in (args[::-1], args) if sparse(args[0]) else (args, args[::-1]):
            parts = sparse(one)
            if not parts or total.spec != node.spec:
                continue
            made = total
            for term in parts:
                made = _written(made, term)
            return made
        return None

    new = rebuilt(nodes, None, change)
    found = [new.get(n, n) for n in results]
    return _with_sums_inside(found if keeps_sums else [filled(n) for n in found])


def _is_sparse(node: Node) -> bool:
    if node.op is PART:
        return _is_sized(node.inputs[0]) and _terms(*_output(node)) is not None
    return node.op is lookup("scatter") and _is_alone(node)


def _is_sized(node: Node) -> bool:
    return node.op is lookup("sized")


def _output(node: Node) -> tuple[Body, Node]:
    """The body of a node with computed lengths, and the output of it that a result is."""
    body = node.inputs[0].params["branches"][0]
    return body, body.outputs[node.params["index"]]


def _terms(body: Body, output: Node) -> list[Node] | None:
    """The sparse cotangents that an output of a body is the sum of; None if it is not."""
    if output in body.inputs or isinstance(output.op, LeafOp):
        return None
    if output.op is lookup("add"):
        found = [_terms(body, a) for a in output.inputs]
        parts = [p for f in found if f is not None for p in f]
        return parts if None not in found and len(found) == 2 else None
    return [output] if output.op is lookup("scatter") and _is_alone(output) else None


def _written(total: Node, part: Node) -> Node:
    """total + part, by reading and writing the elements where `part` is not zero."""
    if part.op is PART:
        return (wrap(total) + wrap(part)).node  # type: ignore[no-any-return]
    t, *operands = part.args
    index = part.params["index"]
    places = [wrap(x) if isinstance(x, Node) else x for x in operands]
    now = lookup("getitem")(wrap(total), *places, index=index)
    made: Any = lookup("setitem")(wrap(total), now + wrap(t), *places, index=index)
    return made.node  # type: ignore[no-any-return]


def _is_alone(part: Node) -> bool:
    """Whether no element is written twice: indices are slices, or single numbers."""
    template = part.params["index"]
    parts = template if isinstance(template, tuple) else (template,)
    holes = [p.k for p in parts if isinstance(p, IndexSlot)]
    operands = part.inputs[1:]
    return len(holes) == len(operands) and all(
        x.spec.shape == () and x.spec.dtype.kind in "iu" for x in operands
    )


# ---- sums as operands of nodes with computed lengths -------------------------------------------


def _with_sums_inside(results: Sequence[Node]) -> list[Node]:
    """The same results, with sums of sparse results of `sized` nodes computed in these nodes."""
    nodes = ancestors(results)
    sums = _sums_of(results, nodes)
    if not sums:
        return list(results)
    on: dict[Node, list[Node]] = {n: list(n.inputs) for n in nodes}
    merged: dict[Node, dict[int, Node]] = {}
    alone: set[Node] = set()
    for node, (one, total) in sums.items():
        loop = one.inputs[0]
        if loop in _reached(total, on):
            # The total needs other results of the node, which are computed apart from this one.
            alone.add(node)
            on[node] = [*loop.inputs, total]
        else:
            on[node] = [loop]
            on[loop].append(total)
            merged.setdefault(loop, {})[one.params["index"]] = total
    place: dict[Node, Node] = {}
    for node in TopologicalSorter(on).static_order():
        if node in sums:
            one, total = sums[node]
            loop, k = one.inputs[0], one.params["index"]
            if node in alone:
                operands = [place[a] for a in loop.inputs]
                place[node] = part(_with_totals(loop, operands, {k: place[total]}, [k]), 0)
            else:
                place[node] = part(place[loop], k)
        elif node in merged:
            totals = {k: place[x] for k, x in merged[node].items()}
            place[node] = _with_totals(node, [place[a] for a in node.inputs], totals)
        else:
            args = tuple([place[a] if isinstance(a, Node) else a for a in node.args])
            same = all(a is b for a, b in zip(args, node.args, strict=True))
            place[node] = node if same else with_args(node, args)
    return [place[n] for n in results]


def _reached(node: Node, on: Mapping[Node, Sequence[Node]]) -> set[Node]:
    """The nodes that a node depends on, and itself."""
    seen: set[Node] = set()
    stack = [node]
    while stack:
        n = stack.pop()
        if n not in seen:
            seen.add(n)
            stack += on.get(n, ())
    return seen


def _sums_of(results: Sequence[Node], nodes: Sequence[Node]) -> dict[Node, tuple[Node, Node]]:
    """The sums of a sparse result of a `sized` node and a total, with these two.

    The result has no other use, and the total does not depend on the node.
    """
    uses: dict[Node, int] = {}
    for n in (*results, *[a for node in nodes for a in node.inputs]):
        uses[n] = uses.get(n, 0) + 1
    depends: dict[Node, frozenset[Node]] = {}
    found: dict[Node, tuple[Node, Node]] = {}
    for node in nodes:
        mine = frozenset[Node]().union(*[depends.get(a, ()) for a in node.inputs])
        depends[node] = mine | {node} if _is_sized(node) else mine
        if node.op is not lookup("add"):
            continue
        for one, total in (node.inputs, node.inputs[::-1]):
            if (
                one.op is PART
                and _is_sparse(one)
                and uses[one] == 1
                and one.inputs[0] not in depends.get(total, ())
                and total.spec == node.spec
            ):
                found[node] = one, total
                break
    return found


def _with_totals(
    node: Node,
    operands: Sequence[Node],
    totals: Mapping[int, Node],
    only: Sequence[int] | None = None,
) -> Node:
    """A `sized` node with totals as operands, to which some results are added.

    Parameters
    ----------
    only : sequence of int, optional
        The results that it has; by default all.
    """
    body: Body = node.params["branches"][0]
    kept = tuple(range(len(body.outputs))) if only is None else tuple(only)
    made = _summed(body, frozenset(totals), kept)
    found = lookup("sized")(
        *[wrap(x) for x in (*operands, *[totals[k] for k in sorted(totals)])],
        **{**node.params, "branches": (made,)},
    )
    whole: Node = found[0].node.inputs[0]
    return whole


def _summed(body: Body, chosen: Collection[int], kept: Sequence[int]) -> Body:
    """A body with some of its outputs, that adds some of these to further inputs."""
    with tracing() as opened, enable_grad():
        opened.isolated = opened.general = True
        inputs = [placeholder(n.spec, n.name, type(n) is Node) for n in body.inputs]
        sums = {k: placeholder(body.outputs[k].spec) for k in sorted(chosen)}
        terms = {k: _terms(body, body.outputs[k]) or [] for k in sums}
        others = [k for k in kept if k not in sums]
        parts = Body(
            *[body.outputs[k] for k in others],
            *[a for k in sums for n in terms[k] for a in n.inputs],
            inputs=body.inputs,
            name=body.name,
        )
        outs = iter(inline_graph(parts, [wrap(n) for n in inputs]))
        results: dict[int, Any] = {k: next(outs) for k in others}
        for k, total in sums.items():
            made: Any = wrap(total)
            for term in terms[k]:
                t, *places = [next(outs) for _ in term.inputs]
                index = term.params["index"]
                now = lookup("getitem")(made, *places, index=index)
                made = lookup("setitem")(made, now + t, *places, index=index)
            results[k] = made
    ordered = [results[k].node for k in kept]
    return Body(*ordered, inputs=[*inputs, *sums.values()], name=body.name)
