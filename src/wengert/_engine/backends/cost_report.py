"""Cost report: operations, memory traffic and peak memory of a run, counted without running it.

report   operations, arithmetic, memory traffic, the peak of memory and its node
Report   the numbers; printed as a table
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.display import count, memory
from wengert._engine.core.graph import BaseGraph, check_graph
from wengert._engine.core.graph_classes import Body, bodies_of
from wengert._engine.core.node import LeafOp, is_variable
from wengert._engine.core.node_properties import short
from wengert._engine.core.op_facts import LOOPS
from wengert._engine.core.spec import lengths_of, shown
from wengert._engine.core.symbolic.dim import is_open, names_in, valued
from wengert._engine.core.validation import spelled
from wengert._engine.ops.cost_model import (
    bytes_of,
    flops_of,
    flops_of_body,
    shares_memory,
    steps_of,
)
from wengert.errors import ArgumentError, ShapeError, at, user_line

from .liveness import in_place, known_bytes, live_bytes, specs_at

if TYPE_CHECKING:
    from wengert._engine.core.node import Node

SHOWN = 10  # nodes in the table


@dataclass(frozen=True)
class LoopCost:
    """The cost of the steps of a loop, at the sizes of the report.

    Attributes
    ----------
    steps : int or None
        Number of steps; None if it depends on values.
    operations : int
        Operations of one step; those of nested loops counted once.
    flops : float
        Floating-point operations of one step, as far as known.
    read, written : int
        Bytes read and written by the nodes of one step.
    carried : int
        Bytes of the carry.
    taken : int
        Bytes that every step reads from outside.
    stacked : int
        Bytes that each step stores: results, and residuals of the backward pass.
    """

    steps: int | None
    operations: int
    flops: float
    read: int
    written: int
    carried: int
    taken: int
    stacked: int

    def __str__(self) -> str:
        steps = "a dynamic number of steps" if self.steps is None else f"{self.steps} steps"
        stacked = ""
        if self.stacked:
            whole = "" if self.steps is None else f", {memory(self.stacked * self.steps)} in all"
            stacked = f", {memory(self.stacked)} stacked by each step{whole}"
        return (
            f"{steps} of {self.operations} operations, {count(self.flops)} floating-point each; "
            f"{memory(self.carried)} carried, {memory(self.taken)} from outside{stacked}"
        )


@dataclass(frozen=True)
class NodeCost:
    """The cost of one node.

    Attributes
    ----------
    index : int
        The index of the node in the graph.
    name, kind : str
        The name and kind of its operation.
    spec : Spec
        The spec of its value, with numbers for sizes.
    flops : float or None
        Floating-point operations; None if unknown.
    read, written : int
        Bytes read and written.
    live : int
        Bytes of intermediate values in memory while it runs.
    where : str
        The user's file and line.
    into : int or None
        The node whose memory it can reuse.
    loop : LoopCost or None
        For a loop, the cost of its steps.
    """

    index: int
    name: str
    kind: str
    spec: Any
    flops: float | None
    read: int
    written: int
    live: int
    where: str
    into: int | None
    loop: LoopCost | None = None


@dataclass(frozen=True)
class Report:
    """The cost of running a graph; ``print`` it.

    Attributes
    ----------
    name : str
        The name of the graph.
    sizes : dict
        The value of each named size.
    nodes : tuple of NodeCost
        The operations, in order.
    inputs, variables, constants, outputs : int
        Their bytes.
    peak, peak_in_place : int
        Peak memory of intermediate values and results in bytes; the second if nodes reuse the
        memory of operands after their last use.
    peak_node : NodeCost or None
        The node at which the first of these occurs.
    """

    __module__ = "wengert.backends"

    name: str
    sizes: dict[str, int]
    nodes: tuple[NodeCost, ...]
    inputs: int
    variables: int
    constants: int
    outputs: int
    peak: int
    peak_in_place: int
    peak_node: NodeCost | None

    def __repr__(self) -> str:
        return f"<Report of {self.name}: {len(self.nodes)} operations, peak {memory(self.peak)}>"

    @property
    def operations(self) -> Counter[str]:
        """The number of nodes of each operation."""
        return Counter(node.name for node in self.nodes)

    @property
    def kinds(self) -> Counter[str]:
        """The number of nodes of each kind of operation."""
        return Counter(node.kind for node in self.nodes)

    @property
    def flops(self) -> float:
        """Floating-point operations of all nodes where they are known."""
        return sum(node.flops or 0.0 for node in self.nodes)

    @property
    def unknown(self) -> list[str]:
        """The operations whose number of floating-point operations is unknown."""
        return sorted({node.name for node in self.nodes if node.flops is None})

    @property
    def read(self) -> int:
        """Bytes read by all nodes."""
        return sum(node.read for node in self.nodes)

    @property
    def written(self) -> int:
        """Bytes written by all nodes."""
        return sum(node.written for node in self.nodes)

    @property
    def largest(self) -> list[NodeCost]:
        """The nodes that write most, the largest first."""
        return sorted(self.nodes, key=lambda node: -node.written)

    def __str__(self) -> str:
        sizes = ", ".join(f"{k} = {v}" for k, v in sorted(self.sizes.items()))
        unknown = f", not counting {', '.join(self.unknown)}" if self.unknown else ""
        rows = [
            f"{self.name}: {len(self.nodes)} operations{f' at {sizes}' if sizes else ''}",
            f"operations   {_counted(self.operations)}",
            f"kinds        {_counted(self.kinds)}",
            f"arithmetic   {count(self.flops)} floating-point operations{unknown}",
            f"traffic      {memory(self.read)} read, {memory(self.written)} written",
            f"given        {memory(self.inputs)} of inputs, {memory(self.variables)} of "
            f"variables, {memory(self.constants)} of constants",
            f"returned     {memory(self.outputs)}",
        ]
        if self.peak_node is not None:
            place = f"at %{self.peak_node.index} {self.peak_node.name}{_at(self.peak_node)}"
            rows.append(
                f"peak         {memory(self.peak)} held {place}; {memory(self.peak_in_place)} if "
                "written in place"
            )
        return "\n".join(rows + self._loops() + self._table())

    def _loops(self) -> list[str]:
        loops = [node for node in self.nodes if node.loop is not None]
        return [f"loop         %{c.index} {c.name}{_at(c)}: {c.loop}" for c in loops]

    def _table(self) -> list[str]:
        found = [node for node in self.largest[:SHOWN] if node.written]
        if not found:
            return []
        cells = [
            (f"%{c.index} {c.name}", shown(c.spec), memory(c.written), short(c.where), _into(c))
            for c in found
        ]
        widths = [max(len(row[k]) for row in cells) for k in range(4)]
        table = ["  ".join(map(str.ljust, row, (*widths, 0))).rstrip() for row in cells]
        return ["largest", *["  " + row for row in table]]


def _into(node: NodeCost) -> str:
    return "" if node.into is None else f"into the memory of %{node.into}"


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {n}" for name, n in counts.most_common())


def _at(node: NodeCost) -> str:
    return f" ({short(node.where)})" if node.where else ""


def report(graph: BaseGraph, sizes: Mapping[str, int] | None = None, **more: int) -> Report:
    """The cost of running a graph, counted without running it.

    Parameters
    ----------
    graph : Graph
    sizes : mapping, optional
        The value of each named size.
    **more
        Further sizes by keyword.

    Returns
    -------
    Report
        Counts of operations, arithmetic and memory are estimates from shapes and dtypes alone;
        internal costs of NumPy, BLAS or a user's operation are not included.

    Raises
    ------
    ArgumentError
        A size is missing, unknown, or not a positive integer.
    ShapeError
        The graph is not valid for these sizes.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> graph = wg.trace(lambda x, w: np.sum(np.tanh(x @ w)))(wg.spec(("n", 3)), wg.spec((3, 4)))
    >>> found = wg.backends.report(graph, n=1000)
    >>> found.operations["matmul"], found.flops, found.peak
    (1, 32000.0, 64000)
    >>> wg.backends.report(graph, n=10).peak_in_place
    328
    """
    check_graph(graph, "report")
    if sizes is not None and not isinstance(sizes, Mapping):
        raise ArgumentError(
            f"report: sizes is {spelled(sizes)}. Pass a number for each name, {{'n': 100}}"
            f"{at(user_line())}."
        )
    chosen = _sizes(graph, {**(sizes or {}), **more})
    specs = specs_at(graph, chosen)
    planned = in_place(graph, specs)
    live = live_bytes(graph, specs, {})
    inside = [_peak_inside(n, chosen) for n in graph.nodes]
    live = [held + more for held, more in zip(live, inside, strict=True)]
    nodes = tuple(_node_costs(graph, specs, planned, live, chosen))
    return Report(
        name=graph.name,
        sizes=chosen,
        nodes=nodes,
        inputs=_given(graph, specs, _is_input),
        variables=_given(graph, specs, is_variable),
        constants=_given(graph, specs, _is_constant),
        outputs=sum(known_bytes(specs[graph.index(n)]) for n in graph.outputs),
        peak=max(live, default=0),
        peak_in_place=max(
            map(sum, zip(live_bytes(graph, specs, planned), inside, strict=True)), default=0
        ),
        peak_node=max(nodes, key=lambda node: node.live, default=None),
    )


def _sizes(graph: BaseGraph, given: dict[str, Any]) -> dict[str, int]:
    lengths = [d for n in graph.nodes for d in lengths_of(n.spec)]
    names = names_in([d for d in lengths if not is_open(d)])
    for name in (*sorted(names - given.keys()), *sorted(given.keys() - names)):
        has = "has no number" if name in names else "is not in this graph"
        raise ArgumentError(
            f"the size {name} {has}. Give a number for each of ({', '.join(sorted(names))})"
            f"{at(user_line())}."
        )
    for name, number in given.items():
        if not isinstance(number, int | np.integer) or isinstance(number, bool) or number < 1:
            raise ArgumentError(
                f"the size {name} = {number!r} is not a positive integer{at(user_line())}."
            )
    chosen = {k: int(v) for k, v in given.items()}
    for requirement in graph.requirements:
        if not requirement.holds(chosen):
            raise ShapeError(
                f"the graph is not valid for these sizes: {requirement.reason}{at(user_line())}."
            )
    return chosen


def _is_input(node: Node) -> bool:
    return bool(node.is_leaf and node.is_traced and "size" not in node.params)


def _is_constant(node: Node) -> bool:
    return isinstance(node.op, LeafOp) and not node.is_traced and not is_variable(node)


def _given(graph: BaseGraph, specs: Sequence[Any], is_it: Callable[..., Any]) -> int:
    pairs = zip(graph.nodes, specs, strict=True)
    return sum(bytes_of(s) for n, s in pairs if isinstance(n.op, LeafOp) and is_it(n))


def _node_costs(
    graph: BaseGraph,
    specs: Sequence[Any],
    planned: dict[Any, Any],
    live: list[int],
    sizes: Mapping[str, int],
) -> Iterator[NodeCost]:
    for i, node in enumerate(graph.nodes):
        if isinstance(node.op, LeafOp):
            continue
        places = graph.operands(i)
        operands = [specs[k] for k in places]
        own = shares_memory(node)
        flops = valued(flops_of(node, operands, specs[i]), sizes)
        loop = _loop_cost(node, sizes)
        read = 0 if own else sum(known_bytes(specs[k]) for k in dict.fromkeys(places))
        written = 0 if own else known_bytes(specs[i])
        if loop is not None and loop.steps is not None:
            read, written = loop.steps * loop.read, loop.steps * loop.written
        yield NodeCost(
            i,
            node.op.name,
            node.op.kind,
            specs[i],
            None if flops is None else float(flops),
            read,
            written,
            live[i],
            node.where or "",
            planned.get(i),
            loop,
        )


def _loop_cost(node: Node, sizes: Mapping[str, int]) -> LoopCost | None:
    """The cost of the steps of a loop; None for other nodes."""
    if node.op.control_flow not in LOOPS:
        return None
    params = node.params
    body: Body = params["body"].at_sizes(sizes)
    carried, stacked = params["carried"], params.get("stacked", 0)
    inputs = [bytes_of(n.spec) for n in body.inputs]
    fixed = len(inputs) - carried - stacked
    steps = valued(steps_of(node), sizes)
    traffic = [*_node_costs(body, specs_at(body, sizes), {}, [0] * len(body), sizes)]
    return LoopCost(
        None if steps is None else int(steps),
        sum(not n.is_leaf for n in body.nodes),
        float(valued(flops_of_body(body), sizes)),
        sum(x.read for x in traffic),
        sum(x.written for x in traffic),
        sum(inputs[fixed : fixed + carried]),
        sum(inputs[:fixed]),
        sum(bytes_of(n.spec) for n in body.outputs[carried:]),
    )


def _peak_inside(node: Node, sizes: Mapping[str, int]) -> int:
    """The peak memory of a step of a loop, or of a branch."""
    peaks = [0]
    for body in bodies_of(node) if node.params else ():
        body = body.at_sizes(sizes)
        held = live_bytes(body, specs_at(body, sizes), {})
        peaks += [a + _peak_inside(n, sizes) for a, n in zip(held, body.nodes, strict=True)]
    return max(peaks)
