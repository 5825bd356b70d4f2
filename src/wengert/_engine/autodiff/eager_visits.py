"""The visits of nodes in an eager backward pass that is neither recorded nor guarded.

    visit_nodes   visit all nodes; elementwise operations are visited here
    plus          the sum of two contributions to a cotangent

Rules run on plain arrays, and large arrays are left to kernels (accumulation_buffers.py).

Plain arrays that a backward pass compares with their fingerprints (core/node.py: Watched).

A matrix that is used in several products is compared once, if nothing but rules of this package
runs in between: no hooks, no rules and no elementwise functions of users.

    UnchangedArrays    the arrays that a pass has compared
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from wengert._engine.core.large_arrays import LEAST_ELEMENTS
from wengert._engine.core.node import LeafOp, Node, Watched

from . import accumulation_buffers
from .strong_zeros import project
from .tape import VARIABLE

if TYPE_CHECKING:
    from wengert._engine.core.op import RuleContext

_SMALL_SIZE = 4096  # elements; up to it a new array costs no more than adding in place


class State(Protocol):
    """What visits read and change of the state of a pass (reverse.py)."""

    bars: dict[Node, Any]
    owned: set[Node]
    targets: set[Node]
    ctx: RuleContext


def visit_nodes(nodes: Sequence[Node], state: Any, visit: Callable[[Node, Any, Any], None]) -> None:
    """Visit those nodes that have a cotangent, in reverse order; ``visit(node, t, state)`` any."""
    bars = state.bars
    pop, get = bars.pop, bars.get
    # Elementwise operations whose cotangent is a result are visited as the others are.
    inner = {n for n in state.targets if n.op.pulls is not None}
    for node in reversed(nodes):
        t = pop(node, None)
        if t is None:
            continue
        pulls = node.op.pulls
        if pulls is None or node.info is not None or t.dtype.kind == "c" or node in inner:
            visit(node, t, state)
            continue
        size = t.size
        if size >= LEAST_ELEMENTS and accumulation_buffers.accumulate(node, t, bars, state.owned):
            continue
        # The steps of `_visit` for an elementwise operation of one or two real operands, inlined:
        # calls and loops would double the time of an eager backward pass.
        out, args = node.value, node.args
        a = args[0]
        if len(args) == 1:
            x = a.value
            bar = pulls[0](t, out, x)
            try:
                if bar.shape != x.shape or bar.dtype is not x.dtype:
                    bar = project(bar, a)
            except AttributeError:  # the rule gave a Python number
                bar = project(bar, a)
            if (current := get(a)) is not None:
                bar = current + bar if size <= _SMALL_SIZE else plus(current, bar, a, state)
            bars[a] = bar
            continue
        b = args[1]
        is_first, is_second = type(a) is Node, type(b) is Node
        x = a.value if is_first or isinstance(a, Node) else a
        y = b.value if is_second or isinstance(b, Node) else b
        if is_first:
            bar = pulls[0](t, out, x, y)
            try:
                if bar.shape != x.shape or bar.dtype is not x.dtype:
                    bar = project(bar, a)
            except AttributeError:  # the rule gave a Python number
                bar = project(bar, a)
            if (current := get(a)) is not None:
                bar = current + bar if size <= _SMALL_SIZE else plus(current, bar, a, state)
            bars[a] = bar
        if is_second:
            bar = pulls[1](t, out, x, y)
            try:
                if bar.shape != y.shape or bar.dtype is not y.dtype:
                    bar = project(bar, b)
            except AttributeError:  # the rule gave a Python number
                bar = project(bar, b)
            if (current := get(b)) is not None:
                bar = current + bar if size <= _SMALL_SIZE else plus(current, bar, b, state)
            bars[b] = bar


def plus(current: Any, bar: Any, a: Node, state: State) -> Any:
    """The sum of two contributions; in place, if the first is an array that this pass made."""
    if a in state.owned:
        current += bar
        return current
    total = current + bar
    if type(total) is np.ndarray and total.size > _SMALL_SIZE and not state.ctx.recorded:
        state.owned.add(a)
    return total


_PACKAGE = "wengert._engine."


class UnchangedArrays:
    """The arrays that a backward pass has compared.

    Parameters
    ----------
    nodes : sequence of Node
        The tape of the pass.
    """

    __slots__ = ("_taken",)

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._taken: dict[tuple[int, bool], Hashable] | None = (
            {} if all(map(_is_ours, nodes)) else None
        )

    def values(self, args: Sequence[Any]) -> list[Any]:
        """The values of operands.

        Raises
        ------
        MutatedError
            A plain array was overwritten after a recorded operation used it.
        """
        return [self._unchanged(a) if type(a) is Watched else _value(a) for a in args]

    def _unchanged(self, a: Watched) -> Any:
        if self._taken is None:
            return a.value
        key = id(a.array), a.is_native  # the array is alive as long as the tape
        if key not in self._taken:
            self._taken[key] = a.present_fingerprint()
        a.check(self._taken[key])
        return a.array


def _value(a: Any) -> Any:
    return a.value if isinstance(a, Node) else a


def _is_ours(node: Node) -> bool:
    """Whether only code of this package runs when a node is visited."""
    op = node.op
    if node.info is not None and node.info.hooks is not None:
        return False
    if isinstance(op, LeafOp) or op is VARIABLE:
        return True
    if op.kind == "elementwise":
        return bool(op.is_built_in)
    if not type(op).__module__.startswith(_PACKAGE):
        return False
    if op.kind == "contraction":
        return True
    return op.kind == "reduction" and str(op.partial_module).startswith(_PACKAGE)
