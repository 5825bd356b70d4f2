"""Sparse cotangents: sums with cotangents that have few nonzero elements, as writes.

The cotangent that x[i] contributes to x is zero except at i.  Adding it to a sum is a write to one
element, which a loop does in place.  An index array may repeat positions: its cotangent is added to
the elements one by one (`scatter_add`).  The cotangent that x[:j] contributes is the result of a
node with computed lengths (`sized`), and that of x[i] in a branch the result of a conditional; the
sum becomes an operand of that node, whose bodies write to its elements.

    added_in_place    the same results, with writes instead of sums
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from graphlib import TopologicalSorter
from typing import Any

from wengert._engine.core.dispatch import PART, part
from wengert._engine.core.graph_classes import Body
from wengert._engine.core.graph_copies import inline_graph, rebuilt, with_args
from wengert._engine.core.graph_nodes import ancestors
from wengert._engine.core.handle import wrap
from wengert._engine.core.node import LeafOp, Node
from wengert._engine.core.node_properties import frozen
from wengert._engine.core.op import lookup
from wengert._engine.core.op_facts import BRANCH
from wengert._engine.core.recording import tracing_body
from wengert._engine.core.tracing import placeholder
from wengert._engine.ops.indexing.template import IndexSlot

_SMALL_SUM = 64  # elements of a sum that is added as a whole


def added_in_place(
    results: Sequence[Node], nodes: Sequence[Node], keeps_sums: bool = False
) -> list[Node]:
    """The same results, with writes of few elements instead of sums of arrays.

    The terms of a sum of sparse cotangents are written to a total one by one, so that the cost is
    proportional to the number of their nonzero elements.  Terms at the same index are added first.

    Parameters
    ----------
    results, nodes : sequence of Node
    keeps_sums : bool
        Whether results that are sums of only sparse cotangents stay sums.
    """
    add = lookup("add")
    sums: dict[Node, tuple[Node, ...]] = {}  # new nodes that are sums of sparse cotangents
    totals: dict[Node, tuple[Node, tuple[Node, ...]]] = {}  # those of an array and such cotangents
    uses = Counter([*results, *[a for n in nodes for a in n.inputs]])

    def sparse(node: Node) -> tuple[Node, ...]:
        return (node,) if _is_sparse(node) else sums.get(node, ())

    def filled(node: Node) -> Node:
        """A sum of sparse cotangents as an array."""
        parts: Sequence[Node]
        if node in totals:
            result, parts = totals[node]
        elif node in sums:
            result, *parts = _grouped(sums[node])
        else:
            return node
        for term in _grouped(parts):
            result = _add_sparse(result, term)
        return result

    def change(node: Node, args: tuple[Node, ...]) -> Node | None:
        if node.op is add and sparse(args[0]) and sparse(args[1]) and args[0].spec == args[1].spec:
            combined = with_args(node, args)
            sums[combined] = (*sparse(args[0]), *sparse(args[1]))
            return combined
        for total, other in _orders(args, sparse) if node.op is add else ():
            parts = sparse(other)
            if parts and total.spec == node.spec:
                array, before = totals.get(total, (total, ()))
                combined = with_args(node, args)
                totals[combined] = array, (*before, *parts)
                return combined if uses[node] == 1 else filled(combined)
        if node.op is lookup("setitem") and _overwrites(node, args, sparse(args[0])):
            return _scattered(node, args)
        full = tuple([filled(a) if isinstance(a, Node) else a for a in args])
        same = all(a is b for a, b in zip(args, full, strict=True))
        return None if same else with_args(node, full)

    copies = rebuilt(nodes, None, change)
    new_results = [copies.get(n, n) for n in results]
    return _with_sums_in_branches(
        [n if keeps_sums and n in sums else filled(n) for n in new_results]
    )


def _overwrites(write: Node, args: tuple[Any, ...], parts: Sequence[Node]) -> bool:
    """Whether a write replaces all nonzero elements of a sum of sparse cotangents."""
    value, *places = args[1:]
    return (
        bool(parts)
        and isinstance(value, Node)
        and all(x.op is not PART and _writes_each_element_once(x) for x in parts)
        and all(list(x.args[1:]) == places and x.args[0].spec == value.spec for x in parts)
        and all(frozen(x.params["index"]) == frozen(write.params["index"]) for x in parts)
    )


def _scattered(write: Node, args: tuple[Any, ...]) -> Node:
    """A write to an array that is zero elsewhere, as a sparse cotangent."""
    operands = [wrap(x) if isinstance(x, Node) else x for x in args[1:]]
    params = {"index": write.params["index"], "shape": write.spec.shape}
    return lookup("scatter")(*operands, **params).node  # type: ignore[no-any-return]


def _orders(
    args: tuple[Node, ...], sparse: Callable[[Node], Sequence[Node]]
) -> Sequence[tuple[Node, ...]]:
    """The operands of a sum in both orders, first that in which the second one is sparse."""
    return (args[::-1], args) if sparse(args[0]) else (args, args[::-1])


def _grouped(terms: Sequence[Node]) -> list[Node]:
    """The terms, with those at the same index added."""
    found: dict[object, Node] = {}
    for term in terms:
        key: object = term
        if term.op is not PART and _writes_each_element_once(term):
            key = frozen(term.params), term.args[1:], term.args[0].spec
        before = found.get(key)
        if before is not None:
            value = (wrap(before.args[0]) + wrap(term.args[0])).node
            term = with_args(term, (value, *term.args[1:]))
        found[key] = term
    return list(found.values())


def _is_sparse(node: Node) -> bool:
    if node.op is PART:
        return _is_choice(node.inputs[0]) and _is_sparse_result(
            node.inputs[0], node.params["index"]
        )
    return node.op is lookup("scatter") and _is_added(node)


def _is_choice(node: Node) -> bool:
    """Whether a node is a conditional, or a body with computed lengths.

    A function that is only called is not: it stays one function for all calls.
    """
    return bool(node.op.control_flow == BRANCH and node.params.get("names") != ())


def _is_sparse_result(choice: Node, k: int) -> bool:
    """Whether a result is a sum of sparse cotangents in each branch, and not zero in all."""
    terms = [_terms(body, body.outputs[k]) for body in choice.params["branches"]]
    return None not in terms and any(terms)


def _terms(body: Body, output: Node) -> list[Node] | None:
    """The sparse cotangents whose sum an output of a body is; None if it is not such a sum."""
    if output in body.inputs or isinstance(output.op, LeafOp):
        return None
    if output.op is lookup("full") and output.params["value"] == 0:
        return []
    if output.op is lookup("add"):
        operand_terms = [_terms(body, a) for a in output.inputs]
        terms = [p for f in operand_terms if f is not None for p in f]
        return terms if None not in operand_terms and len(operand_terms) == 2 else None
    return [output] if _is_sparse(output) else None


def _add_sparse(total: Node, part: Node) -> Node:
    """total + part, by reading and writing the elements where `part` is not zero."""
    if part.op is PART:
        return (wrap(total) + wrap(part)).node  # type: ignore[no-any-return]
    t, *indices = [wrap(x) if isinstance(x, Node) else x for x in part.args]
    return _with_added(wrap(total), t, indices, part).node  # type: ignore[no-any-return]


def _with_added(total: Any, t: Any, indices: Sequence[Any], term: Node) -> Any:
    """`total` with `t` added where a term writes."""
    index = term.params["index"]
    if not _writes_each_element_once(term):
        return lookup("scatter_add")(total, t, *indices, index=index)
    old = lookup("getitem")(total, *indices, index=index)
    return lookup("setitem")(total, old + t, *indices, index=index)


def _is_added(part: Node) -> bool:
    """Whether a sum with this scatter is a write to its elements.

    Small arrays are added as a whole: a step keeps their elements in registers.
    """
    if _writes_each_element_once(part):
        return True
    is_small = all([type(n) is int for n in part.spec.shape])
    is_small = is_small and math.prod(part.spec.shape) <= _SMALL_SUM
    return not is_small and all([x.spec.dtype.kind in "iu" for x in part.inputs[1:]])


def _writes_each_element_once(part: Node) -> bool:
    """Whether no element is written twice: all indices are slices or single integers."""
    template = part.params["index"]
    parts = template if isinstance(template, tuple) else (template,)
    slots = [p.k for p in parts if isinstance(p, IndexSlot)]
    operands = part.inputs[1:]
    return len(slots) == len(operands) and all(
        x.spec.shape == () and x.spec.dtype.kind in "iu" for x in operands
    )


# ---- sums as operands of branches and nodes with computed lengths -------------------------------


def _with_sums_in_branches(results: Sequence[Node]) -> list[Node]:
    """The same results, with sums of sparse results of conditionals computed in their branches."""
    nodes = ancestors(results)
    sums = _sums_of(results, nodes)
    if not sums:
        return list(results)
    dependencies: dict[Node, list[Node]] = {n: list(n.inputs) for n in nodes}
    fused: dict[Node, dict[int, Node]] = {}
    separate: set[Node] = set()
    for node, (term, total) in sums.items():
        call = term.inputs[0]
        if call in _with_ancestors(total, dependencies):
            # The total depends on other results of the node, so this one gets a node of its own.
            separate.add(node)
            dependencies[node] = [*call.inputs, total]
        else:
            dependencies[node] = [call]
            dependencies[call].append(total)
            fused.setdefault(call, {})[term.params["index"]] = total
    values: dict[Node, Node] = {}
    for node in TopologicalSorter(dependencies).static_order():
        if node in sums:
            term, total = sums[node]
            call, k = term.inputs[0], term.params["index"]
            if node in separate:
                operands = [values[a] for a in call.inputs]
                values[node] = part(_with_totals(call, operands, {k: values[total]}, [k]), 0)
            else:
                values[node] = part(values[call], k)
        elif node in fused:
            totals = {k: values[x] for k, x in fused[node].items()}
            values[node] = _with_totals(node, [values[a] for a in node.inputs], totals)
        else:
            args = tuple([values[a] if isinstance(a, Node) else a for a in node.args])
            same = all(a is b for a, b in zip(args, node.args, strict=True))
            values[node] = node if same else with_args(node, args)
    return [values[n] for n in results]


def _with_ancestors(node: Node, dependencies: Mapping[Node, Sequence[Node]]) -> set[Node]:
    """The nodes that a node depends on, and itself."""
    seen: set[Node] = set()
    stack = [node]
    while stack:
        n = stack.pop()
        if n not in seen:
            seen.add(n)
            stack += dependencies.get(n, ())
    return seen


def _sums_of(results: Sequence[Node], nodes: Sequence[Node]) -> dict[Node, tuple[Node, Node]]:
    """The sums of a sparse result of a conditional and a total: {sum: (result, total)}.

    The result has no other use, and the total does not depend on the node.
    """
    uses: dict[Node, int] = {}
    for n in (*results, *[a for node in nodes for a in node.inputs]):
        uses[n] = uses.get(n, 0) + 1
    calls_before: dict[Node, frozenset[Node]] = {}
    sums: dict[Node, tuple[Node, Node]] = {}
    for node in nodes:
        call_ancestors = frozenset[Node]().union(*[calls_before.get(a, ()) for a in node.inputs])
        calls_before[node] = call_ancestors | {node} if _is_choice(node) else call_ancestors
        if node.op is not lookup("add"):
            continue
        for term, total in (node.inputs, node.inputs[::-1]):
            if (
                term.op is PART
                and _is_sparse(term)
                and uses[term] == 1
                and term.inputs[0] not in calls_before.get(total, ())
                and total.spec == node.spec
            ):
                sums[node] = term, total
                break
    return sums


def _with_totals(
    node: Node,
    operands: Sequence[Node],
    totals: Mapping[int, Node],
    only: Sequence[int] | None = None,
) -> Node:
    """A conditional with totals as operands, to which some results are added.

    Parameters
    ----------
    only : sequence of int, optional
        Its results; by default all.
    """
    branches: tuple[Body, ...] = node.params["branches"]
    outputs = tuple(range(len(branches[0].outputs))) if only is None else tuple(only)
    results = lookup(node.op.name)(
        *[wrap(x) for x in (*operands, *[totals[k] for k in sorted(totals)])],
        **{
            **node.params,
            "branches": tuple([_body_with_totals(b, frozenset(totals), outputs) for b in branches]),
        },
    )
    call: Node = results[0].node.inputs[0]
    return call


def _body_with_totals(body: Body, with_totals: Collection[int], outputs: Sequence[int]) -> Body:
    """A body with some of its outputs, some of which are added to further inputs."""
    with tracing_body():
        inputs = [placeholder(n.spec, n.name, type(n) is Node) for n in body.inputs]
        sums = {k: placeholder(body.outputs[k].spec) for k in sorted(with_totals)}
        terms = {k: _terms(body, body.outputs[k]) or [] for k in sums}
        others = [k for k in outputs if k not in sums]
        parts = Body(
            *[body.outputs[k] for k in others],
            *[a for k in sums for n in terms[k] for a in _values(n)],
            inputs=body.inputs,
            name=body.name,
        )
        outs = iter(inline_graph(parts, [wrap(n) for n in inputs]))
        results: dict[int, Any] = {k: next(outs) for k in others}
        for k, total in sums.items():
            updated: Any = wrap(total)
            for term in terms[k]:
                t, *indices = [next(outs) for _ in _values(term)]
                updated = updated + t if term.op is PART else _with_added(updated, t, indices, term)
            results[k] = updated
        ordered = _with_sums_in_branches([results[k].node for k in outputs])
    return Body(*ordered, inputs=[*inputs, *sums.values()], name=body.name)


def _values(term: Node) -> Sequence[Node]:
    """What a term is added from: the operands of a scatter, or a result of a conditional."""
    return (term,) if term.op is PART else term.inputs
