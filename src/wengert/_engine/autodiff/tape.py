"""The tape between chosen nodes: which nodes a pass visits, and in what order.

The nodes reachable from an output are its tape.  Nodes are numbered as they are created, so sorting
by serial number gives a topological order, and no node older than the oldest target can depend on a
target: the search stops there.  It is not recursive, so the length of chains is not limited.

A tape is *foreign* if the search reached a recorded node that is not a target: the variable of an
outer derivative, or a parameter.  Then the derivative itself must be recorded, because it may be
differentiated; nodes that do not depend on a target are left out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wengert._engine.core.dispatch import Operation
from wengert._engine.core.handle import is_traced
from wengert._engine.core.message_order import is_token, is_used
from wengert._engine.core.node import NO_PARAMS, RELEASED, Node, constant
from wengert._engine.core.node_properties import NodeInfo
from wengert._engine.core.op_facts import Aliasing
from wengert._engine.core.spec import weakened
from wengert.errors import CycleError, ReleasedError

if TYPE_CHECKING:
    from wengert._engine.core.types import Operand

_serial = attrgetter("serial")


class VariableOp(Operation):
    """The identity on an argument of a differentiated function, which gives it a new node.

    Its operand is the node of the argument, so an outer derivative passes through it; if that is a
    constant, the variable is a constant too after the derivative has been computed.
    """

    kind = "view"
    aliasing = Aliasing(transparent=True)

    def run(self, x: Operand) -> Any:
        """The operand."""
        return x

    def vjp(self, node: Node, t: Any, out: Any, inputs: Any, ctx: Any) -> Any:
        """The identity."""
        return [t]

    def jvp(self, node: Node, dots: Any, out: Any, inputs: Any, ctx: Any) -> Any:
        """The identity."""
        return dots[0]


VARIABLE = VariableOp("variable")


def fresh(x: Operand | Node) -> Node:
    """A new node to differentiate with respect to, for a node or a plain value."""
    if isinstance(x, Node):
        if is_traced(x):
            info = NodeInfo(x.spec, where=x.where, level=x.level)
            return Node(VARIABLE, (x,), NO_PARAMS, None, info)
        return Node(VARIABLE, (x,), NO_PARAMS, x.value)
    if isinstance(x, np.ndarray) and (x.flags.writeable or type(x) is not np.ndarray):
        x = np.array(x)
    return Node(VARIABLE, (constant(x),), NO_PARAMS, weakened(x))


class Tape(NamedTuple):
    """Nodes in order of creation, and their properties.

    wanted : the nodes that depend on a target, or None when all do.
    foreign : whether it reaches a recorded node that is not a target.
    ends : whether it ends at the targets, without nodes that a target was computed from.
    traced : whether values are not known, so that the pass is recorded in the graph.
    """

    nodes: list[Node]
    wanted: set[Node] | None
    foreign: bool
    ends: bool = False
    traced: bool = False


def passes_over(tape: Tape) -> tuple[bool, ...]:
    """Whether each pass over the tape is guarded; the second is needed if the first gives NaN.

    A pass with messages to other processes is guarded at once: each process would decide for
    itself whether to repeat it.
    """
    if is_used() and any(n.op.kind == "collective" or is_token(n.spec) for n in tape.nodes):
        return (True,)
    return (False, True)


def tape_between(outputs: Iterable[Node], targets: Collection[Node], ends: bool = False) -> Tape:
    """The nodes between the targets and the outputs."""
    outputs = list(outputs)
    traced = any([n.is_traced for n in outputs])
    oldest = min([n.serial for n in targets], default=0)
    all_outputs = {n for n in outputs if type(n) is Node}
    nodes = [n for n in all_outputs if n.serial >= oldest]
    foreign = len(nodes) < len(all_outputs)
    seen = set(nodes)
    add, append = seen.add, nodes.append
    for node in nodes:  # which grows
        args = node.args
        if ends and node in targets:
            continue
        if not args and node not in targets:
            foreign = True
            if node.op is RELEASED:
                raise _released()
        for a in args:
            if type(a) is Node and a not in seen:
                if a.serial < oldest:
                    foreign = True
                else:
                    add(a)
                    append(a)
    nodes.sort(key=_serial)
    wanted = _dependent(nodes, targets) if foreign else None
    return Tape(nodes, wanted, foreign, ends, traced)


def _dependent(nodes: Iterable[Node], targets: Collection[Node]) -> set[Node]:
    dependent = set(targets)
    for node in nodes:
        if node not in dependent and not dependent.isdisjoint(node.args_as_nodes()):
            dependent.add(node)
    return dependent


def older_than(start: int, outputs: Iterable[Node]) -> list[Node]:
    """The recorded nodes older than serial number `start` that the outputs directly depend on."""
    seen = {n for n in outputs if type(n) is Node}
    stack = list(seen)
    older = []
    while stack:
        node = stack.pop()
        if node.serial < start:
            older.append(node)
            continue
        for a in node.args:
            if type(a) is Node and a not in seen:
                seen.add(a)
                stack.append(a)
    older.sort(key=_serial)
    return older


def tape_to_owners(output: Node) -> tuple[Tape, list[Node]]:
    """The whole tape of one output, and the nodes on it whose gradient a tensor accumulates.

    Raises
    ------
    ReleasedError
        Part of the tape was released.
    """
    seen, nodes = {output}, [output]
    owners = []
    add, append = seen.add, nodes.append
    for node in nodes:  # which grows
        if node.info is not None and node.info.owner is not None:
            owners.append(node)
        elif node.op is RELEASED:
            raise _released()
        for a in node.args:
            if type(a) is Node and a not in seen:
                add(a)
                append(a)
    nodes.sort(key=_serial)
    owners.sort(key=_serial)
    return Tape(nodes, None, False, traced=output.is_traced), owners


def cycle(node: Node) -> CycleError:
    """The error for a node that depends on itself."""
    return CycleError(
        f"{node!r} uses a node that was created later, or itself: the graph has a cycle. A node "
        "may only use earlier nodes."
    )


def _released() -> ReleasedError:
    return ReleasedError(
        "The tape of this value was released by backward(retain_graph=False). Leave "
        "retain_graph at its default to differentiate more than once."
    )
