"""Eager passes: the visits of nodes, and the buffers in which cotangents are added up.

Accumulation buffers: cotangents and tangents that an eager pass owns and writes to in place.

An operation on a few elements of a large array (x[i], x[i] = v) defines `vjp_into`: instead of
returning a cotangent as large as the array, it adds to the buffer of its operand, or reuses the
buffer of its result.  A loop over all elements then takes time linear in their number.  `jvp_into`
does the same in forward mode.

Ownership: the arrays that an eager pass returns share memory with nothing else.

    owned    the results, with copies of those that something else may refer to

Whether something else refers to an array is decided by its reference count: an array that two
results, a node of the tape or a constant refer to has more references than one that only a list
refers to.  Views are always copied.  A result without axes is returned as NumPy's scalar, as by
NumPy's functions and by compiled functions.

Cotangents of large arrays, by kernels of the operations (core/device_arrays.py).

    accumulate     add the contributions of an elementwise operation to the cotangents so far
    contributions  the contributions of any operation, as its rule returns them

A kernel computes the partial derivatives, multiplies them by the cotangent and adds the sum of
earlier contributions in one pass.  Only passes that are neither recorded nor guarded use them.

The visits of nodes in an eager backward pass that is neither recorded nor guarded.

    visit_nodes   visit all nodes; elementwise operations are visited here
    plus          the sum of two contributions to a cotangent

Plain arrays that a backward pass compares with their fingerprints (core/node.py: Watched).

A matrix that is used in several products is compared once, if nothing but rules of this package
runs in between: no hooks, no rules and no elementwise functions of users.

    UnchangedArrays    the arrays that a pass has compared
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Container, Hashable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from wengert._engine.core.array_states import is_unshared
from wengert._engine.core.device_arrays import KERNELS, LEAST_ELEMENTS, kernels
from wengert._engine.core.node import LeafOp, Node, Watched

from .infinities import project
from .tape import VARIABLE

if TYPE_CHECKING:
    from wengert._engine.core.op import RuleContext
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


def owned(results: list[Any]) -> list[Any]:
    """Results that share memory with nothing else and may be written to."""
    for i in range(len(results)):
        if not _is_returnable(results, i):
            results[i] = results[i].copy() if results[i].ndim else results[i][()]
    return results


def _is_returnable(results: list[Any], i: int) -> bool:
    bar = results[i]
    if type(bar) is not np.ndarray:
        return True
    owns_memory = bar.base is None and bar.flags.writeable
    return owns_memory and bar.ndim > 0 and sys.getrefcount(bar) <= _UNSHARED


def _count_unshared() -> int:
    """The reference count, inside `_is_returnable`, of an array that only a list refers to.

    It depends on the interpreter, so it is measured.
    """
    global _UNSHARED
    for _UNSHARED in range(1, 20):
        if _is_returnable([np.empty(1)], 0):
            break
    return _UNSHARED


_UNSHARED = sys.maxsize
_UNSHARED = _count_unshared()


def accumulate(node: Node, t: Any, bars: dict[Node, Any], owned: set[Node]) -> bool:
    """Add the contributions of a node to the cotangents of its operands.

    Parameters
    ----------
    node : Node
        Of an elementwise operation of one or two operands.
    t : numpy.ndarray
        Its cotangent.
    bars : dict
        The sums so far.
    owned : set of Node
        The nodes whose cotangent is an array that nothing else refers to; operands are added.

    Returns
    -------
    bool
        False if NumPy is to run the rule; then nothing has been changed.
    """
    if not KERNELS:
        return False
    args = node.args
    op: Any = node.op
    if op.constant_partials:  # a plain array is not read, which would check it for changes
        _accumulate(node, t, None, (None,) * len(args), bars, owned)
        return True
    if Watched in map(type, args) and _of_watched(node, t, bars, owned):
        return True
    wanted = [type(a) is Node for a in args]
    targets = list(dict.fromkeys([a for a in args if type(a) is Node]))
    is_repeated = sum(wanted) > len(targets)  # x * x
    values = [a.value if isinstance(a, Node) else a for a in args]
    out = node.value
    sums = [bars.get(a) for a in targets]
    new = kernels().cotangents(op, node.params, t, out, values, wanted, is_repeated, sums)
    if new is None:
        _accumulate(node, t, out, values, bars, owned)
        return True
    bars.update(zip(targets, new, strict=True))
    owned.update(targets)
    return True


def _of_watched(node: Node, t: Any, bars: dict[Node, Any], owned: set[Node]) -> bool:
    """Add the contribution of a product with a plain array, which is checked in the same pass."""
    op: Any = node.op
    if op.ufunc is not np.multiply or not op.is_built_in:
        return False
    a, factor = node.args if type(node.args[1]) is Watched else reversed(node.args)
    if type(a) is not Node or a.value.shape != t.shape or a.value.dtype != t.dtype:
        return False
    bar = kernels().product_with(t, factor)
    if bar is None:
        return False
    if a in bars:
        bar += bars[a]
    bars[a] = bar
    owned.add(a)
    return True


def _accumulate(
    node: Node, t: Any, out: Any, values: Sequence[Any], bars: dict[Node, Any], owned: set[Node]
) -> None:
    """Add the contributions, computed by NumPy."""
    op: Any = node.op
    for pull, a in zip(op.pulls, node.args, strict=True):
        if type(a) is not Node:
            continue
        bar = project(pull(t, out, *values), a)
        current = bars.get(a)
        if current is None:
            bars[a] = bar
        elif a in owned:
            current += bar
        else:
            bars[a] = current + bar
            owned.add(a)


def contributions(
    node: Node, t: Any, out: Any, values: Sequence[Any], ctx: RuleContext
) -> list[Any] | None:
    """The cotangents of the operands, None if not wanted; None if NumPy is to run the rule."""
    if not KERNELS:
        return None
    wanted = [ctx.wants(a) for a in node.args]
    op: Any = node.op
    bars = kernels().cotangents(op, node.params, t, out, values, wanted)
    if bars is None:
        return None
    remaining = iter(bars)
    return [next(remaining) if is_wanted else None for is_wanted in wanted]


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
        if size >= LEAST_ELEMENTS and accumulate(node, t, bars, state.owned):
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
