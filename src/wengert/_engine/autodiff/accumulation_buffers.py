"""Accumulation buffers: cotangents and tangents that an eager pass owns and writes to in place.

An operation on a few elements of a large array (x[i], x[i] = v) defines `vjp_into`: instead of
returning a cotangent as large as the array, it adds to the buffer of its operand, or reuses the
buffer of its result.  A loop over all elements then takes time linear in their number.  `jvp_into`
does the same in forward mode.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.array_states import is_unshared
from wengert._engine.core.node import Node

from .cotangent_space import project

if TYPE_CHECKING:
    from wengert._engine.core.types import Array


class Buffers:
    """The cotangents of one backward pass, as seen by `vjp_into`.

    Attributes
    ----------
    bars : dict
        The sum of the contributions so far for each node.
    owned : set of Node
        The nodes whose cotangent is an array that nothing else refers to.
    wanted, targets
        The nodes that take part, and those whose cotangent is a result and must not change.
    """

    __slots__ = ("bars", "owned", "targets", "wanted")

    def __init__(
        self,
        bars: dict[Node, Any],
        owned: set[Node],
        wanted: set[Any] | None,
        targets: Container[Node],
    ) -> None:
        self.bars, self.owned, self.wanted, self.targets = bars, owned, wanted, targets

    def wants(self, a: Any) -> bool:
        """Whether this argument takes part in the derivative."""
        return type(a) is Node and (self.wanted is None or a in self.wanted)

    def writable(self, a: Node) -> Any:
        """The cotangent of `a` as an array to add into; zeros if it has no contributions yet."""
        if a in self.owned:
            return self.bars[a]
        current = self.bars.get(a)
        if current is None:
            spec = a.spec  # reading an outdated value would reconstruct it
            current = np.zeros(spec.shape, spec.dtype)
        else:
            current = np.array(current)
        self.bars[a] = current
        self.owned.add(a)
        return current

    def add(self, a: Node, bar: Array) -> None:
        """Add a contribution, which the caller must not write to afterwards."""
        bar = project(bar, a)
        current = self.bars.get(a)
        if current is None:
            self.bars[a] = bar
        elif a in self.owned:
            current += bar
        else:
            self.bars[a] = current + bar

    def take(self, node: Node, t: Array) -> Any:
        """The complete cotangent `t` of `node` as an array that the caller may write to."""
        is_shared = node in self.targets or (node.info is not None and node.info.hooks is not None)
        return t if node in self.owned and not is_shared else np.array(t)

    def donate(self, a: Node, t: Array) -> None:
        """Add a contribution whose memory the pass may use."""
        current = self.bars.get(a)
        if current is None:
            self.bars[a] = t
            self.owned.add(a)
        elif a in self.owned:
            current += t
        else:
            t += current
            self.bars[a] = t
            self.owned.add(a)


class Tangents:
    """The tangents of one forward pass, as seen by `jvp_into`.

    The last reader of a tangent may overwrite it, so that x[i] = v in a loop writes to one array.
    """

    __slots__ = ("_last", "known", "nodes", "outputs")

    def __init__(
        self, known: dict[Node, Any], nodes: Sequence[Node], outputs: Sequence[Node]
    ) -> None:
        self.known, self.nodes, self.outputs = known, nodes, outputs
        self._last: dict[Node, Node] | None = None

    def take(self, a: Node, reader: Node) -> Any:
        """The tangent of `a` as an array that its reader may write to."""
        if self._last is None:
            self._last = {a: n for n in self.nodes for a in n.args_as_nodes()}
            for node in self.outputs:
                self._last[node] = node
        if self._last[a] is not reader:
            return np.array(self.known[a])
        dot = self.known.pop(a)
        return dot if type(dot) is np.ndarray and is_unshared(dot) else np.array(dot)
