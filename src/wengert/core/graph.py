"""Graph: the ordered Wengert list of chosen outputs.

A closed list: every operand of a line is an earlier line.  It gives each line an index, its inputs
and its consumers; it can be verified and read aloud.  Building one does not change anything: the
nodes are the tape's own.

    %0 = input x             float64[3]
    %1 = sin %0              float64[3]
    %2 = multiply %1 %0      float64[3]
    %3 = sum %2  [axis=0]    float64[]
    return %3
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ..errors import CycleError, GraphError, at
from . import tree
from .handle import Handle
from .node import Constant, Leaf, Node, constant


class Graph:
    """The Wengert list of some outputs.

    Parameters
    ----------
    *outputs : Tensor, Node, or nested containers of them
        What the list is to compute; plain values become constants.

    Attributes
    ----------
    nodes : tuple of Node
        The lines, in an order in which they can be computed.
    outputs : tuple of Node
        The chosen outputs.

    Raises
    ------
    CycleError
        A line depends on itself (only possible in lists built by hand).

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> x = wg.tensor([0.0, 1.0], requires_grad=True)
    >>> print(wg.Graph(np.sum(x * 2.0)))
    %0 = input            float64[2]
    %1 = constant 2.      float64[]
    %2 = multiply %0 %1   float64[2]
    %3 = sum %2           float64[]
    return %3
    """

    def __init__(self, *outputs: Any) -> None:
        leaves = tree.flatten(outputs)[0]
        self.outputs = tuple(_node(x) for x in leaves)
        self.nodes = tuple(_in_order(self.outputs))
        self._index = {n: i for i, n in enumerate(self.nodes)}
        self._consumers: list[list[int]] = [[] for _ in self.nodes]
        for i, node in enumerate(self.nodes):
            for a in dict.fromkeys(node.inputs):
                self._consumers[self._index[a]].append(i)

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def __getitem__(self, index: int) -> Node:
        return self.nodes[index]

    def __contains__(self, item: object) -> bool:
        return (item.node if isinstance(item, Handle) else item) in self._index

    def index(self, item: Any) -> int:
        """The index of a node, or of the node of a tensor.

        Raises
        ------
        GraphError
            It is not in this list.
        """
        node = item.node if isinstance(item, Handle) else item
        try:
            return self._index[node]
        except KeyError:
            raise GraphError(f"{node!r} is not a line of this graph.") from None

    def inputs(self, index: int) -> tuple[int, ...]:
        """The lines that a line uses, in the order of its operands."""
        return tuple(self._index[a] for a in self.nodes[index].inputs)

    def consumers(self, index: int) -> tuple[int, ...]:
        """The lines that use a line."""
        return tuple(self._consumers[index])

    def parents(self, index: int) -> tuple[int, ...]:
        """The operands of a line with a derivative."""
        return tuple(self._index[a] for a in self.nodes[index].inputs if type(a) is Node)

    def arguments(self, index: int) -> tuple[int, ...]:
        """The operands of a line without derivative."""
        return tuple(self._index[a] for a in self.nodes[index].inputs if type(a) is not Node)

    @property
    def leaves(self) -> tuple[Node, ...]:
        """The lines that no operation made: inputs and constants."""
        return tuple(n for n in self.nodes if n.is_leaf)

    def verify(self) -> Graph:
        """Check that this is a valid Wengert list, and return it.

        Every operand comes before its use, no line comes twice, every spec is what the operation
        infers from the specs of its operands.

        Raises
        ------
        GraphError
            It is not; the message names the line.
        """
        seen: set[Node] = set()
        for i, node in enumerate(self.nodes):
            if node in seen:
                raise GraphError(f"line %{i} ({node.op.name}) comes twice.")
            for a in node.inputs:
                if a not in seen:
                    raise GraphError(f"line %{i} ({node.op.name}) uses a line that comes later.")
            seen.add(node)
            if isinstance(node.op, Leaf) or not node.args:
                continue
            inferred = node.op.infer([a.spec for a in node.inputs], node.params)
            if _bare(inferred) != _bare(node.spec):
                raise GraphError(
                    f"line %{i} ({node.op.name}) holds {_show(node.spec)}, but its operands "
                    f"{', '.join(_show(a.spec) for a in node.inputs)} give {_show(inferred)}"
                    f"{at(node.where)}."
                )
        return self

    def __str__(self) -> str:
        rows = [self._row(i) for i in range(len(self))]
        width = max((len(left) for left, _ in rows), default=0)
        lines = [f"{left.ljust(width)}   {right}" for left, right in rows]
        names = " ".join(f"%{self._index[n]}" for n in self.outputs)
        return "\n".join([*lines, f"return {names}"])

    def __repr__(self) -> str:
        return f"<Graph of {len(self)} lines, {len(self.outputs)} outputs>"

    def _row(self, i: int) -> tuple[str, str]:
        node = self.nodes[i]
        words = [f"%{i} = {node.op.name}"]
        if node.name:
            words.append(node.name)
        elif node.is_leaf and isinstance(node, Constant):
            words.append(_brief(node.value))
        words += [f"%{k}" for k in self.inputs(i)]
        # None and False are what nobody chose: left out, so that a choice is seen.
        chosen = {k: v for k, v in node.params.items() if v is not None and v is not False}
        if chosen:
            words.append(f" [{', '.join(f'{k}={v!r}' for k, v in chosen.items())}]")
        return " ".join(words), _show(node.spec)


def _node(x: Any) -> Node:
    if isinstance(x, Handle):
        return x.node
    return x if isinstance(x, Node) else constant(x)


def _in_order(outputs: Iterable[Node]) -> list[Node]:
    seen = set(outputs)
    stack = list(seen)
    while stack:
        node = stack.pop()
        for a in node.inputs:
            # A constant may have been given its line only now, when somebody looked.
            if a.serial >= node.serial and not (isinstance(a, Constant) and a.is_leaf):
                raise CycleError(
                    f"{node!r} uses {a!r}, which was made later or is the same: the graph has a "
                    "cycle. A line may only use earlier lines."
                )
            if a not in seen:
                seen.add(a)
                stack.append(a)
    ordered: dict[Node, None] = {}
    for node in sorted(seen, key=lambda n: n.serial):
        if not (isinstance(node, Constant) and node.is_leaf):
            ordered.update(dict.fromkeys(a for a in node.inputs if a not in ordered))
            ordered[node] = None
    ordered.update(dict.fromkeys(n for n in seen if n not in ordered))
    return list(ordered)


def _bare(spec: Any) -> Any:
    if isinstance(spec, tuple):
        return tuple(map(_bare, spec))
    return None if spec is None else (spec.shape, spec.dtype)


def _show(spec: Any) -> str:
    return f"({', '.join(map(_show, spec))})" if isinstance(spec, tuple) else str(spec or "?")


def _brief(value: Any) -> str:
    if np.size(value) > 4 or not isinstance(value, np.ndarray | np.generic | int | float):
        return type(value).__name__ if np.size(value) <= 4 else "..."
    return np.array2string(np.asarray(value), separator=",").replace("\n", "")
