"""Dead code elimination in loops: carried, stacked and constant values that are not used.

The used results determine which values are live: a carried value is live if its final value is
used, if the condition reads it, or if the next value of a live one depends on it.  Other values are
removed.  A carried value that never changes becomes a loop-invariant input, an output that is the
same in every step is broadcast instead of stacked, and an operand that is a known number is
inlined.

    used           the results of each loop and conditional that are needed, and the operands
    trimmed        a loop without dead code
    narrowed       a conditional without dead code
    key_of_result  identifies one result of a loop or conditional
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.control_flow.message_carry import sends_messages
from wengert._engine.core.dispatch import PART
from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.graph_classes import Body
from wengert._engine.core.graph_copies import rebuilt
from wengert._engine.core.graph_fingerprint import key_of_value
from wengert._engine.core.message_order import is_token
from wengert._engine.core.node import CONSTANT, ConstantLeaf, DiscreteLeaf, Node, constant
from wengert._engine.core.node_properties import NodeInfo, frozen, sizes_of
from wengert._engine.core.op import lookup
from wengert._engine.core.op_facts import BRANCH, LOOP
from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic.dim import is_open
from wengert._engine.core.tracing import part_of

from ..driver import same_everywhere
from .loop_view import LoopView, held, like

_MAX_INLINE_CONSTANT = 64  # elements of a constant that may be a part of a body


class Need(NamedTuple):
    """The live results of a node with bodies, and the live inputs of the bodies, by position."""

    results: frozenset[int]
    inputs: frozenset[int]


def used(graph: BaseGraph) -> dict[Node, Need]:
    """The live parts of the loops and branches of a graph, except those used as a tuple."""
    needed: set[Node] = {*graph.outputs, *graph.updates, *graph.updates.values(), *graph.effects}
    needed.update(graph.inputs)
    parts: dict[Node, set[int]] = {}
    needs: dict[Node, Need] = {}
    for node in reversed(graph.nodes):
        if node.op is PART and node in needed:
            parts.setdefault(node.args[0], set()).add(node.params["index"])
            continue
        control_flow = node.op.control_flow
        if control_flow in (LOOP, BRANCH):
            if node in needed:  # its results are used as a tuple
                needed.update(node.inputs)
            elif node in parts:
                need = (_need_of_loop if control_flow == LOOP else _need_of_branches)(
                    node, parts[node]
                )
                needs[node] = need
                first = len(node.inputs) - _inputs(node)
                needed.update(node.inputs[:first])
                needed.update(node.inputs[first + k] for k in need.inputs)
        elif node in needed or node in parts:
            needed.update(node.inputs)
    return needs


def _inputs(node: Node) -> int:
    params = node.params
    return len((params["body"] if "body" in params else params["branches"][0]).inputs)


def _need_of_loop(node: Node, results: Iterable[int]) -> Need:
    loop = LoopView(node)
    first = loop.fixed
    dependencies = loop.body.reads
    inputs = set() if loop.condition is None else set(loop.condition.reads[0])
    outputs = [loop.of_body(k) for k in results]
    pending = [k for k in outputs if k is not None]
    pending += [k - first for k in inputs if first <= k < first + loop.carried]
    pending += _tokens(loop.body, loop.carried)
    visited: set[int] = set()
    while pending:
        k = pending.pop()
        if k in visited:
            continue
        visited.add(k)
        if k < loop.carried:
            inputs.add(first + k)
        inputs |= dependencies[k]
        pending += [i - first for i in dependencies[k] if first <= i < first + loop.carried]
    return Need(frozenset(results), frozenset(inputs))


def _tokens(body: Body, carried: int) -> list[int]:
    """The carried tokens of a loop with messages, which other processes may wait for."""
    found = [k for k, n in enumerate(body.outputs[:carried]) if is_token(n.spec)]
    return found if found and sends_messages(body) else []


def _need_of_branches(node: Node, results: Iterable[int]) -> Need:
    inputs: set[int] = set()
    for branch in node.params["branches"]:
        dependencies = branch.reads
        inputs.update(*[dependencies[k] for k in results])
    return Need(frozenset(results), frozenset(inputs))


# ---- loops -------------------------------------------------------------------------------------


class Trimmed(NamedTuple):
    """The new node, the replacement of each result by position, and the names of the rewrites."""

    node: Node
    results: dict[int, Node]
    rewrites: list[str]


def trimmed(node: Node, operands: Sequence[Node], need: Need) -> Trimmed | None:
    """A loop without dead code; None if there is none.

    Parameters
    ----------
    operands : sequence of Node
        The operands after earlier rewrites.
    """
    loop = LoopView(
        node if tuple(operands) == node.inputs else like(node, tuple(operands), node.params)
    )
    live_parts = _LiveParts(loop, need)
    return live_parts.build() if live_parts.rewrites else None


class _LiveParts:
    """The live parts of a loop.

    Attributes
    ----------
    rewrites : list of str
        The names of the rewrites that remove the other parts.
    unchanging : list of int
        The carried values that never change.
    constants : dict
        Constants that replace inputs of the body.
    consts, carry, rows : list of int
        The live inputs of the body, after unchanging carried values have become consts.
    ys : list of int
        The live ys; `invariant_ys` are those that are the same in every step.
    """

    def __init__(self, loop: LoopView, need: Need) -> None:
        self.loop, self.need = loop, need
        self.rewrites: list[str] = []
        inputs, first, stop = need.inputs, loop.fixed, loop.fixed + loop.carried
        self.unchanging = self._unchanging()
        self.constants: dict[int, Node] = {}
        for k, x in enumerate((*loop.consts, *loop.carry, *loop.rows)):
            is_const = k < first or (k < stop and k - first in self.unchanging)
            known = _known(x, loop.body.inputs[k], k >= stop) if is_const or k >= stop else None
            if k in inputs and known is not None:
                self.constants[k] = known
        moved = [first + i for i in self.unchanging if first + i in inputs]
        self.consts = [
            k for k in (*range(first), *moved) if k in inputs and k not in self.constants
        ]
        self.carry = [k for k in range(first, stop) if k in inputs and k not in moved]
        self.rows = [k for k in range(stop, len(loop.body.inputs)) if k in inputs]
        self.rows = [k for k in self.rows if k not in self.constants]
        ys = [loop.of_body(k) for k in sorted(need.results)]
        self.ys = [k for k in ys if k is not None and k >= loop.carried]
        self.invariant_ys = self._same_in_every_step()
        self._name_rewrites(moved)

    def _name_rewrites(self, moved: Sequence[int]) -> None:
        loop, inputs = self.loop, self.need.inputs
        first, stop = loop.fixed, loop.fixed + loop.carried
        if moved:
            self.rewrites.append("unchanged carry removed")
        if any(k not in inputs for k in range(first, stop)):
            self.rewrites.append("unused carry removed")
        if len(self.ys) < len(loop.body.outputs) - loop.carried:
            self.rewrites.append("unused output removed")
        if any(k not in inputs for k in (*range(first), *range(stop, len(loop.body.inputs)))):
            self.rewrites.append("unused input removed")
        if self.constants:
            self.rewrites.append("constant inlined")
        if self.invariant_ys:
            self.rewrites.append("invariant output hoisted")

    def _unchanging(self) -> list[int]:
        """The carried values that every step returns unchanged."""
        loop = self.loop
        positions = []
        for i, start in enumerate(loop.carry):
            body_input, out = loop.body.inputs[loop.fixed + i], loop.body.outputs[i]
            if out is body_input or _is_same_number(out, start):
                positions.append(i)
        return positions

    def _same_in_every_step(self) -> set[int]:
        """The ys that are the same operand or constant in every step, for loops of known length."""
        loop, length = self.loop, self.loop.length
        if loop.is_while or loop.count or length is None or is_open(length):
            return set()
        fixed = set(loop.body.inputs[: loop.fixed])
        fixed.update(loop.body.inputs[loop.fixed + i] for i in self.unchanging)
        outs = loop.body.outputs
        return {k for k in self.ys if outs[k] in fixed or _is_number(outs[k])}

    def build(self) -> Trimmed:
        """The loop with the live parts only."""
        loop = self.loop
        order = [*self.consts, *self.carry, *self.rows]
        operands = (*loop.consts, *loop.carry, *loop.rows)
        ends = [k - loop.fixed for k in self.carry]
        ys = [k for k in self.ys if k not in self.invariant_ys]
        body = _restricted(loop.body, order, [*ends, *ys], self.constants)
        condition = None
        if loop.condition is not None:
            condition = _restricted(loop.condition, order, [0], self.constants)
        ordered = [operands[k] for k in order]
        first, stop = len(self.consts), len(self.consts) + len(self.carry)
        node = loop.with_body(body, condition, ordered[:first], ordered[first:stop], ordered[stop:])
        new = LoopView(node)
        results: dict[int, Node] = {}
        for k in self.need.results:
            number = loop.of_body(k)
            if number is None:
                results[k] = part_of(node, len(self.carry))
            elif number in self.invariant_ys:
                results[k] = self._repeated(number)
            elif number < loop.carried and number in self.unchanging:
                x = loop.carry[number]
                stops = type(loop.body.inputs[loop.fixed + number]) is not Node
                results[k] = held(x) if stops and type(x) is Node else x
            else:
                position = ends.index(number) if number < loop.carried else ys.index(number)
                position += 0 if number < loop.carried else len(ends)
                results[k] = part_of(node, new.output(position))
        return Trimmed(node, results, self.rewrites)

    def _repeated(self, number: int) -> Node:
        """A y that is the same in every step, broadcast to all steps."""
        loop, out = self.loop, self.loop.body.outputs[number]
        x = out
        if out in loop.body.inputs:
            x = (*loop.consts, *loop.carry)[loop.body.inputs.index(out)]
            x = x if type(out) is Node or type(x) is not Node else held(x)
        return repeated(x, (loop.length, *out.spec.shape), loop.node)


def _restricted(
    body: Body, inputs: Sequence[int], outputs: Sequence[int], constants: Mapping[int, Node]
) -> Body:
    """A body with some of its outputs and inputs, and constants in place of other inputs."""
    nodes = rebuilt(body.nodes, {body.inputs[k]: x for k, x in constants.items()})
    return Body(
        *[nodes[body.outputs[k]] for k in outputs],
        inputs=[body.inputs[k] for k in inputs],
        name=body.name,
    )


@functools.lru_cache(maxsize=512)  # a function may be called many times
def _branch(body: Body, inputs: Any, outputs: Any, constants: tuple[Any, ...] = ()) -> Body:
    return _restricted(body, inputs, outputs, dict(constants))


def _is_number(node: Node) -> bool:
    """Whether a node is a small constant, or filled with one number, whatever the sizes."""
    if node.op is CONSTANT and isinstance(node, ConstantLeaf):
        return np.size(node.value) <= _MAX_INLINE_CONSTANT and key_of_value(node.value) is not None
    return node.op.name == "full" and not node.args and not sizes_of(node.params)


def _is_same_number(out: Node, start: Node) -> bool:
    if not (_is_number(out) and _is_number(start)) or out.op is not start.op:
        return False
    if out.op is CONSTANT:
        values = [np.asarray(x.value, out.spec.dtype) for x in (out, start)]
        return key_of_value(values[0]) == key_of_value(values[1])
    return bool(frozen(out.params) == frozen(start.params))


def _known(x: Node, inner: Node, is_row: bool) -> Node | None:
    """The constant that replaces an input of a body; None if its operand is not constant."""
    spec = inner.spec
    if is_row:
        number = _number_of_rows(x)
        if number is None or sizes_of(spec.shape):
            return None
        if spec.shape == ():
            return constant(np.asarray(number, spec.dtype)[()])
        params = {"shape": spec.shape, "value": number, "dtype": spec.dtype}
        info = NodeInfo(Spec(spec.shape, spec.dtype))
        return ConstantLeaf(lookup("full"), (), params, None, info)
    if not _is_number(x):
        return None
    return x if x.op is not CONSTANT else constant(np.asarray(x.value, spec.dtype)[()])


def _number_of_rows(x: Node) -> Any:
    """The number that all elements of a constant array equal, as a Python number, or None."""
    if x.op is CONSTANT and isinstance(x, ConstantLeaf):
        number = same_everywhere(x.value)
        return None if number is None else np.asarray(number).item()
    return x.params["value"] if x.op.name == "full" and not x.args else None


def repeated(x: Node, shape: tuple[Any, ...], near: Node) -> Node:
    """A value broadcast to all steps."""
    cls = type(x) if type(x) is not ConstantLeaf or not sizes_of(shape) else DiscreteLeaf
    info = near.provenance(Spec(shape, x.spec.dtype))
    return cls(lookup("broadcast_to"), (x,), {"shape": shape}, None, info)


# ---- one result --------------------------------------------------------------------------------


def key_of_result(node: Node, index: int) -> tuple[Hashable, tuple[Node, ...]]:
    """A key of one result of a loop or branch, and the operands that it depends on.

    The key is equal for nodes that differ in other results only.
    """
    params = node.params
    if node.op.control_flow != LOOP:
        inputs = tuple(sorted(_need_of_branches(node, [index]).inputs))
        branches = tuple([_branch(b, inputs, (index,)) for b in params["branches"]])
        operands = [node.inputs[0], *[node.inputs[k + 1] for k in inputs]]
        return (node.op, type(node), branches), tuple(operands)
    loop = LoopView(node)
    need = _need_of_loop(node, [index])
    first, stop = loop.fixed, loop.fixed + loop.carried
    visited = _order(loop, index)
    visited += [k for k in sorted(need.inputs) if k not in visited]
    groups = (range(first), range(first, stop), range(stop, len(loop.body.inputs)))
    order = [k for group in groups for k in visited if k in group]
    number = loop.of_body(index)
    ends = [k - first for k in order if first <= k < stop]
    body = _restricted(loop.body, order, [*ends, *([] if number is None else [number])], {})
    condition = None if loop.condition is None else _restricted(loop.condition, order, [0], {})
    kind = "count" if number is None else "last" if number < loop.carried else "all"
    # A trip count known after the loop is a size that differs between loops; it only matters for
    # stacked results, whose users have it in their shapes.
    length = None if (loop.is_while or loop.count) and kind != "all" else loop.length
    attributes = length, params.get("reverse"), params.get("limit"), len(ends), kind
    operands = [*loop.consts, *loop.carry, *loop.rows]
    key = node.op, type(node), body, condition, attributes, len(loop.count)
    return key, (*loop.count, *[operands[k] for k in order])


def _order(loop: LoopView, index: int) -> list[int]:
    """The inputs that a result depends on, in the order of a depth-first traversal from it."""
    positions = {n: k for k, n in enumerate(loop.body.inputs)}
    number = loop.of_body(index)
    pending = [] if number is None else [loop.body.outputs[number]]
    order: dict[int, None] = {}
    seen: set[Node] = set()
    while pending:
        node = pending.pop()
        if node in seen:
            continue
        seen.add(node)
        if node in positions:
            k = positions[node]
            order[k] = None
            if loop.fixed <= k < loop.fixed + loop.carried:
                pending.append(loop.body.outputs[k - loop.fixed])
        pending += node.inputs
    return list(order)


# ---- branches ----------------------------------------------------------------------------------


def narrowed(node: Node, operands: Sequence[Node], need: Need) -> Trimmed | None:
    """A conditional without dead code; None if there is none."""
    branches: tuple[Body, ...] = node.params["branches"]
    which, *values = operands
    constants: dict[int, Node] = {}
    for k, x in enumerate(values):
        known = _known(x, branches[0].inputs[k], False) if k in need.inputs else None
        if known is not None:
            constants[k] = known
    passed = _passed_through(node, values, need.results)
    outputs = [k for k in sorted(need.results) if k not in passed]
    done = ["constant inlined"] if constants else []
    done += ["result that is an operand removed"] if passed else []
    if passed:
        need = _need_of_branches(node, outputs)
    inputs = [k for k in range(len(values)) if k in need.inputs and k not in constants]
    if len(inputs) + len(constants) < len(values):
        done.append("unused input removed")
    if len(outputs) < len(branches[0].outputs):
        done.append("unused result removed")
    if not done:
        return None
    if not outputs:
        return Trimmed(node, passed, done)
    kept = tuple(inputs), tuple(outputs), tuple(constants.items())
    new_branches = tuple([_branch(b, *kept) for b in branches])
    conditional = like(
        node, (which, *[values[k] for k in inputs]), {**node.params, "branches": new_branches}
    )
    results = {k: part_of(conditional, i) for i, k in enumerate(outputs)}
    return Trimmed(conditional, {**passed, **results}, done)


def _passed_through(node: Node, values: Sequence[Node], results: Iterable[int]) -> dict[int, Node]:
    """The results that are the same operand in each branch."""
    passed = {}
    branches: tuple[Body, ...] = node.params["branches"]
    positions = {n: k for k, n in enumerate(branches[0].inputs)}
    for k in results:
        place = positions.get(branches[0].outputs[k])
        if place is None or any(b.outputs[k] is not b.inputs[place] for b in branches):
            continue
        value = values[place]
        is_stopped = type(value) is Node and any(
            type(b.inputs[place]) is not Node for b in branches
        )
        if value.spec == node.spec[k] and not is_stopped:
            passed[k] = value
    return passed
