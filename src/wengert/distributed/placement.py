"""The processes that compute the nodes of a graph, and the messages between them.

A graph is divided at the borders of its scopes (`wengert.scope(device=rank)`):

* A node in a scope with a device is computed by the process of that rank.  A loop or branch is one
  node, and is placed as a whole.
* A node outside of such scopes is computed where its operands are: by the process of the operand
  that was placed last.  If no operand is placed, every process that uses the node computes it;
  inputs and constants are known everywhere.
* A value that another process uses is sent to it once.  Messages are in the order of the nodes,
  and for one node in the order of the receivers.  Each process exchanges its messages in this
  order, so the first message that is not complete has both its processes waiting for it.

Nothing of this file exchanges messages: it is the same in all processes.

    Placement    the processes of the nodes, and the messages
    Message      a value that is sent
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from wengert._engine.core.dispatch import PART
from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.graph_classes import bodies_of
from wengert._engine.core.graph_copies import rebuilt
from wengert._engine.core.handle import Handle
from wengert._engine.core.node import LeafOp, Node
from wengert._engine.core.node_properties import sizes_of
from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic.dim import LOCAL, OPEN
from wengert._engine.graphs import Graph
from wengert.errors import ArgumentError, DtypeError, ShapeError, TraceError, at, user_line


class Message(NamedTuple):
    """A value that is sent.

    node : the index of its node in the graph.
    source, dest : the ranks of the sender and the receiver.
    """

    node: int
    source: int
    dest: int


class Placement:
    """The processes that compute the nodes of a graph, and the messages between them.

    Returned by `wengert.distributed.placement`.

    Attributes
    ----------
    graph : BaseGraph
        The whole graph.
    size : int
        The number of processes.
    processes : tuple of frozenset of int
        For each node the ranks of the processes that compute it; empty if its value is not needed.
    users : tuple of frozenset of int
        For each node the ranks of the processes that use its value.
    messages : tuple of Message
        In the order in which they are exchanged.
    outputs : tuple of int
        For each output the rank of the process that has it in the end.
    """

    __module__ = "wengert.distributed"

    def __init__(self, graph: BaseGraph, size: int, at_rank: int | None = None) -> None:
        self.graph, self.size = graph, size
        homes = _homes(graph, size)
        places = [homes[graph.index(n)] for n in graph.outputs]
        self.outputs = tuple([(p or 0) if at_rank is None else at_rank for p in places])
        users: list[set[int]] = [set() for _ in graph.nodes]
        processes: list[set[int]] = [set() for _ in graph.nodes]
        for node, rank in zip(graph.outputs, self.outputs, strict=True):
            users[graph.index(node)].add(rank)
        messages: list[Message] = []
        for i in reversed(range(len(graph))):
            node, home = graph.nodes[i], homes[i]
            if isinstance(node.op, LeafOp) or not users[i]:
                continue
            if home is None or _is_number(node):
                processes[i] |= users[i]
            else:
                processes[i].add(home)
                messages += [Message(i, home, r) for r in sorted(users[i] - {home})]
            for k in graph.operands(i):
                users[k] |= processes[i]
        self.processes = tuple(map(frozenset, processes))
        self.users = tuple(map(frozenset, users))
        self.messages = tuple(sorted(messages))
        for message in self.messages:
            _check_sent(graph.nodes[message.node])

    def receivers(self, index: int) -> list[int]:
        """The ranks of the processes that a node is sent to."""
        return self._receivers.get(index, [])

    @property
    def _receivers(self) -> dict[int, list[int]]:
        if not hasattr(self, "_by_index"):
            self._by_index: dict[int, list[int]] = {}
            for m in self.messages:
                self._by_index.setdefault(m.node, []).append(m.dest)
        return self._by_index

    def nodes_of(self, rank: int) -> tuple[Node, ...]:
        """The nodes that a process computes, in order."""
        pairs = zip(self.graph.nodes, self.processes, strict=True)
        return tuple([n for n, ranks in pairs if rank in ranks])

    def messages_of(self, rank: int) -> tuple[Message, ...]:
        """The messages that a process sends or receives, in the order in which it does."""
        return tuple([m for m in self.messages if rank in (m.source, m.dest)])

    def bytes_sent(self, rank: int, dest: int | None = None) -> Any:
        """The size of the values that a process sends, to one process or to all."""
        sent = [m for m in self.messages if m.source == rank and dest in (None, m.dest)]
        return sum([_size(self.graph.nodes[m.node]) for m in sent])

    def by_process(self) -> Graph:
        """The whole graph, with the process as the outermost scope, for `wengert.show`."""

        def change(node: Node, args: tuple[Node, ...]) -> Node | None:
            ranks = sorted(self.processes[self.graph.index(node)])
            if not ranks:
                return None
            name = f"process{'es' * (len(ranks) > 1)} {', '.join(map(str, ranks))}"
            scope = f"{name}/{node.scope}" if node.scope else name
            return type(node)(node.op, args, node.params, None, node.info_with(scope=scope))

        new = rebuilt(self.graph.nodes, change=change)
        inputs = [new[n] for n in self.graph.inputs]
        return Graph(*[new[n] for n in self.graph.outputs], inputs=inputs, name=self.graph.name)

    def signature(self) -> list[Any]:
        """What all processes must agree on, for each node."""
        graph = self.graph
        return [
            (
                n.op.name,
                str(n.spec),
                graph.operands(i),
                sorted(n.params),
                sorted(self.processes[i]),
            )
            for i, n in enumerate(graph.nodes)
        ]

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def __repr__(self) -> str:
        return (
            f"<Placement of {self.graph.name}: {len(self.graph)} nodes, {self.size} processes, "
            f"{len(self.messages)} messages>"
        )

    def _lines(self) -> Iterator[str]:
        for rank in range(self.size):
            nodes = self.nodes_of(rank)
            names = Counter([n.op.name for n in nodes if n.op is not PART])
            listed = ", ".join(f"{name} {k}" if k > 1 else name for name, k in names.items())
            yield f"process {rank}: {len(nodes)} nodes" + (f" ({listed})" if listed else "")
            for dest in range(self.size):
                count = sum(m.source == rank and m.dest == dest for m in self.messages)
                if count:
                    yield (
                        f"    sends {count} message{'s' * (count > 1)} "
                        f"({self.bytes_sent(rank, dest)} bytes) to process {dest}"
                    )


def _homes(graph: BaseGraph, size: int) -> list[int | None]:
    """For each node the rank of its process; None for one that every process can compute."""
    homes: list[int | None] = []
    for i, node in enumerate(graph.nodes):
        operands = graph.operands(i)
        device = None
        if not isinstance(node.op, LeafOp) and node.op is not PART:
            device = _device(node, size)
        if device is None:
            placed = [k for k in operands if homes[k] is not None]
            device = homes[max(placed)] if placed else None
        homes.append(device)
    return homes


def _device(node: Node, size: int) -> int | None:
    """The rank that the scope of a node gives; of a loop or branch, also the scopes inside."""
    own = _own_device(node, size)
    inside = {d for d in _devices_inside(node, size) if d is not None}
    if own is not None:
        inside.add(own)
    if len(inside) > 1:
        ranks = " and ".join(map(str, sorted(inside)))
        raise TraceError(
            f"a compiled loop or branch ({node.op.name}) has nodes in scopes of processes {ranks}, "
            "and is computed by one process as a whole. Put it into one scope, or write it as a "
            "Python loop over a list or wengert.unroll(range(n)), which is not compiled to a loop"
            f"{at(node.where or user_line())}."
        )
    return next(iter(inside), None)


def _devices_inside(node: Node, size: int) -> Iterator[int | None]:
    for body in bodies_of(node):
        for inner in body.nodes:
            if not isinstance(inner.op, LeafOp):
                yield _own_device(inner, size)
                yield from _devices_inside(inner, size)


def _own_device(node: Node, size: int) -> int | None:
    device = None if node.info is None else (node.info.metadata or {}).get("device")
    if device is None:
        return None
    try:
        rank = -1 if isinstance(device, Handle | bool) else operator.index(device)
    except TypeError:
        rank = -1
    if not 0 <= rank < size:
        raise ArgumentError(
            f"device={device!r} of the scope {node.scope!r} is not a process: the communicator has "
            f"the ranks 0 to {size - 1}. Give one of these, or start more processes"
            f"{at(node.where or user_line())}."
        )
    return rank


def _is_number(node: Node) -> bool:
    """Whether the result is a Python number, which takes part in promotion as such.

    An array with this value would not, so it is not sent: each process computes it.
    """
    return node.op is not PART and type(node.spec) is Spec and node.spec.weak


def _check_sent(node: Node) -> None:
    """Raise an error if a value cannot be sent to another process."""
    spec = node.spec
    assert type(spec) is Spec, node
    if any(name.startswith((OPEN, LOCAL)) for name in sizes_of(spec.shape)):
        raise ShapeError(
            f"{node.op.name}: its length depends on values, so another process cannot know how "
            "much it receives. Use it in the scope of the same process"
            f"{at(node.where or user_line())}."
        )
    if spec.dtype.kind not in "biufc" or (spec.dtype.itemsize == 2 and spec.dtype.kind == "f"):
        raise DtypeError(
            f"{node.op.name}: {spec} is used by another process, and cannot be sent by MPI. "
            "Convert it in its scope, x.astype(np.float32), and back in the other"
            f"{at(node.where or user_line())}."
        )


def _size(node: Node) -> Any:
    return math.prod(node.spec.shape, start=node.spec.dtype.itemsize)
