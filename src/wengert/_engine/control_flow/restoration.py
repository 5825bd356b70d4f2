"""Restoration: carried values that the backward loop recomputes from those after the step.

A step that writes to elements of a carried array, adds to an integer, or passes an array to an
inner loop is undone without storing the array: the backward loop carries the array too, and writes
the overwritten elements back, which the forward loop stored (an undo log).  So every version of the
array is available in the backward pass, for the bytes of the elements written.  An integer sum is
undone exactly by a subtraction, also if it overflows; a floating-point sum is not, and is not
undone.

    Chain       the versions of a carried value in one step
    chains_of   those of a body
    Undo        the second part of a pullback, built while the versions are restored
    step_of     the increment of an induction variable per step
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from wengert._engine.core.copy_graph import with_args
from wengert._engine.core.dispatch import PART, part
from wengert._engine.core.handle import wrap
from wengert._engine.core.node import CONSTANT, LeafOp, Node
from wengert._engine.core.op import lookup
from wengert._engine.core.op_facts import LOOP, REPLAY
from wengert._engine.core.spec import Spec
from wengert._engine.core.subgraph import Body
from wengert._engine.core.symbolic.dim import is_open
from wengert._engine.core.tracing import placeholder
from wengert._engine.ops.indexing.traced_slices import split_local

from . import versions

Write = tuple[Any, Sequence[Node]]  # an index template and its operands

_MOST_WRITES = 64  # to one carried value, in one step
_LATEST = 1 << 60  # a time


class BackwardBody(Body):
    """The body of a backward loop.

    Attributes
    ----------
    restores : range
        The carried values that are versions of primal values: the result is that before the loop
        if the operand is that after it.
    """

    restores = range(0)


class Chain(NamedTuple):
    """The versions of a carried value in one step.

    number : the body's input.
    versions : the input, and the value after each write.
    """

    number: int
    versions: tuple[Node, ...]

    @property
    def pairs(self) -> list[tuple[Node, Node]]:
        """Each version with the one before."""
        return list(zip(self.versions[1:], self.versions, strict=False))


def chains_of(inputs: Sequence[Node], outputs: Sequence[Node], first: int) -> list[Chain]:
    """The carried values whose versions can be restored; `first` is the first carried input."""
    found = []
    for k, end in enumerate(outputs, first):
        versions = [end]
        while versions[-1] is not inputs[k] and len(versions) <= _MOST_WRITES:
            before = _before(versions[-1])
            if before is None:
                break
            versions.append(before)
        if versions[-1] is inputs[k]:
            found.append(Chain(k, tuple(versions[::-1])))
    return found


def _before(version: Node) -> Node | None:
    """The version that a write changed; None if it cannot be restored."""
    if version.op is lookup("add") and _is_integer(version):
        before = version.inputs[version.inputs[0].op is CONSTANT]
        return before if before.spec == version.spec else None
    return versions.before(version)


def _is_integer(node: Node) -> bool:
    return type(node.spec) is Spec and node.spec.dtype.kind in "iu"


def step_of(chain: Chain, fixed: Collection[Node]) -> Node | None:
    """The increment of an induction variable per step: a constant or a loop-invariant input."""
    if len(chain.versions) != 2:
        return None
    before, after = chain.versions
    if after.op is not lookup("add") or before.spec.shape:
        return None
    step = _added(after, before)
    return step if step in fixed or step.op is CONSTANT else None


def _added(after: Node, before: Node) -> Node:
    """The other operand of a sum."""
    a, b = after.inputs
    return b if a is before else a


class Undo:
    """Restores the versions of some chains, last write first.

    Parameters
    ----------
    chains : sequence of Chain
    nodes : sequence of Node
        Those of the pullback.
    late : collection of Node
        The nodes that are known in the backward pass only.

    Attributes
    ----------
    possible : bool
    free : dict
        The versions, and when they were made.
    logs : dict
        The overwritten elements of each write.
    needs : list of (Node, Node)
        Nodes that are needed to undo a write, with the version that it made.
    """

    def __init__(self, chains: Sequence[Chain], nodes: Sequence[Node], late: Any) -> None:
        self.chains = chains
        self.free = {v: t for c in chains for v, t in zip(c.versions, _times(c), strict=True)}
        self.same: dict[Node, list[Node]] = {}
        parts = {(v.inputs[0], v.params["index"]): v for v in self.free if v.op is PART}
        for node in nodes:
            if node.op is PART and node not in self.free:
                version = parts.get((node.inputs[0], node.params["index"]))
                if version is not None:
                    self.same.setdefault(version, []).append(node)
        self.free.update({n: self.free[v] for v, nodes in self.same.items() for n in nodes})
        self.logs: dict[Node, Node] = {}
        self.writes: dict[Node, Write] = {}
        self.loops: dict[Node, tuple[Node, int]] = {}
        self.needs: list[tuple[Node, Node]] = []
        self.possible = all([self._planned(*p, nodes, late) for c in chains for p in c.pairs])

    def _planned(self, after: Node, before: Node, nodes: Sequence[Node], late: Any) -> bool:
        if _is_loop(after):
            found = _backward_loop(after, nodes)
            if found is None:
                return False
            self.loops[after] = found
            border = _border_of(found[0], late)
            self.needs += [(n, after) for n in border]
        elif after.op is lookup("add"):
            self.needs.append((_added(after, before), after))
        else:
            write = _write_of(after)
            if write is None:
                return False
            template, places = self.writes[after] = write
            log = lookup("getitem")(wrap(before), *map(wrap, places), index=template).node
            if type(log.spec) is not Spec or any(is_open(n) for n in log.spec.shape):
                return False
            self.logs[after] = log
            self.needs += [(x, after) for x in places]
        return True

    def stored(self, is_stored: Any) -> set[Node] | None:
        """The nodes that must be stored because they depend on versions restored later."""
        found: set[Node] = set()
        for node, after in self.needs:
            time = self.free[after]
            if node in self.free:
                if self.free[node] < time:
                    return None
            elif self._earliest(node, is_stored) < time:
                found.add(node)
        return found

    def _earliest(self, node: Node, is_stored: Any) -> float:
        """When the earliest version was made that a node is computed from."""
        found, stack, seen = float("inf"), [node], {node}
        while stack:
            n = stack.pop()
            if n in self.free:
                found = min(found, self.free[n])
            elif not is_stored(n):
                stack += [a for a in n.inputs if a not in seen]
                seen.update(n.inputs)
        return found

    def built(
        self, results: Sequence[Node], place: dict[Node, Node]
    ) -> tuple[list[Node], list[Node], list[Node]] | None:
        """The second part; None if a write cannot be undone in time.

        Parameters
        ----------
        place : dict
            The known values: the placeholders of the residuals.

        Returns
        -------
        results : list of Node
        ends, starts : list of Node
            The versions after the step, which are placeholders, and those before it.
        """
        ends = []
        for chain in self.chains:
            end = placeholder(chain.versions[-1].spec, chain.versions[0].name)
            self._place(place, chain.versions[-1], end)
            ends.append(end)
        needed = [*results, *[n for n, _ in self.needs], *[b for b, _ in self.loops.values()]]
        pending = _demanded(needed, {**self.free, **place})
        pairs = [p for c in self.chains for p in c.pairs]
        for after, before in sorted(pairs, key=lambda p: -self.free[p[0]]):
            pending = _swept(pending, place)
            if after not in place or not self._undone(after, before, place):
                return None
        if _swept(pending, place):
            return None
        starts = [place[c.versions[0]] for c in self.chains]
        return [place[n] for n in results], ends, starts

    def _undone(self, after: Node, before: Node, place: dict[Node, Node]) -> bool:
        if after in self.loops:
            loop, output = self.loops[after]
            if loop not in place:
                return False
            self._place(place, before, part(place[loop], output))
            return True
        missing = [n for n, of in self.needs if of is after and n not in place]
        if missing:
            return False
        now = wrap(place[after])
        if after.op is lookup("add"):
            made = lookup("subtract")(now, wrap(place[_added(after, before)]))
        else:
            template, operands = self.writes[after]
            places = [wrap(place[x]) for x in operands]
            old = wrap(place[self.logs[after]])
            made = lookup("setitem")(now, old, *places, index=template)
        self._place(place, before, made.node)
        return True

    def _place(self, place: dict[Node, Node], version: Node, restored: Node) -> None:
        """A version is known from now on."""
        place[version] = restored
        for node in self.same.get(version, ()):
            place[node] = restored


def _is_loop(version: Node) -> bool:
    """Whether a version is the result of an inner loop."""
    if version.op is not PART:
        return False
    op: Any = version.inputs[0].op
    return not isinstance(op, LeafOp) and op.control_flow == LOOP


def _write_of(version: Node) -> Write | None:
    """The elements by which a version may differ from the one before; None if not known.

    They are indexed by values that are known outside of a node with computed lengths: if it writes
    to ``A[i, :j]``, they are those of ``A[i]``.
    """
    if version.op is lookup("setitem"):
        return version.params["index"], version.inputs[2:]
    node = version.inputs[0]
    (body,) = node.params["branches"]
    last = body.outputs[version.params["index"]]
    found: Write | None = None
    while last not in body.inputs:
        if last.op is not lookup("setitem"):
            return None
        places = last.inputs[2:]
        if any(x not in body.inputs for x in places):
            return None
        template, _ = split_local(last.params["index"], [wrap(x) for x in places])
        operands = tuple([node.inputs[1 + body.inputs.index(x)] for x in places])
        write = (Ellipsis if template is None else template), operands
        if found is not None and found != write:
            return None
        found, last = write, last.inputs[0]
    return found


def _times(chain: Chain) -> list[int]:
    """The order in which versions are made: the last is restored first."""
    made = [(v.inputs[0] if v.op is PART else v).serial for v in chain.versions[1:]]
    if all([v.op is lookup("add") for v in chain.versions[1:]]):
        # Counters are restored before all arrays, whose indices depend on them.
        return [_LATEST, *[_LATEST + t for t in made]]
    return [-1, *made]


def _backward_loop(after: Node, nodes: Sequence[Node]) -> tuple[Node, int] | None:
    """The backward loop of an inner loop that restores one of its carried values."""
    loop, index = after.inputs[0], after.params["index"]
    for node in nodes:
        params = node.params
        if isinstance(node.op, LeafOp) or node.op is PART:
            continue
        if node.op is lookup("scan"):
            body = params["body"]
            first = len(node.args) - params["carried"] - params["stacked"]
        elif node.op.control_flow == REPLAY:
            body = params["back"]
            first = len(node.args) - params["pulled"] - _rows(node)
        else:
            continue
        if not isinstance(body, BackwardBody):
            continue
        for k in body.restores:
            a = node.inputs[first + k]
            if a is after or (a.op is PART and a.inputs[0] is loop and a.params["index"] == index):
                return node, k
    return None


def _rows(node: Node) -> int:
    """The number of cotangents of ys that a replay takes."""
    params = node.params
    fixed = len(params["step"].inputs) + 1 + int(params["counted"])
    return len(node.args) - fixed - int(params["more"]) - int(params["pulled"])


def _border_of(node: Node, late: Any) -> list[Node]:
    """The nodes that are known early and that a late one is computed from directly."""
    found: dict[Node, None] = {}
    stack, seen = [node], {node}
    while stack:
        for a in stack.pop().inputs:
            if a not in late:
                found[a] = None
            elif a not in seen:
                seen.add(a)
                stack.append(a)
    return list(found)


def _demanded(needed: Iterable[Node], known: Any) -> list[Node]:
    """The nodes to compute for some nodes, operands first."""
    seen: set[Node] = set()
    stack = [n for n in needed if n not in known]
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            stack += [a for a in node.inputs if a not in known]
    return sorted(seen, key=lambda n: n.serial)


def _swept(pending: Sequence[Node], place: dict[Node, Node]) -> list[Node]:
    """Compute the values that can be computed already; returns the others."""
    left = []
    for node in pending:
        if all([a in place for a in node.inputs]):
            args = tuple([place[a] for a in node.inputs])
            same = all([a is b for a, b in zip(args, node.inputs, strict=True)])
            place[node] = node if same else with_args(node, args)
        else:
            left.append(node)
    return left
