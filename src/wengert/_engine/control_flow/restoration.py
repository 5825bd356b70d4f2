"""Restoration: carried values that the backward loop recomputes from those after the step.

A step that writes to elements of a carried array, adds to an integer, or passes an array to an
inner loop is undone without storing the array: the backward loop carries the array too, and writes
back the overwritten elements, which the forward loop stored (an undo log).  So every version of the
array is available in the backward pass, for the memory of the elements written.  An integer sum is
undone exactly by subtraction, even if it overflows; floating-point sums are not exact, and are not
undone.

    Chain       the versions of a carried value in one step
    chains_of   those of a body
    Undo        the backward part of a pullback, built while the versions are restored
    step_of     the increment of an induction variable per step
    BackwardBody  the body of a loop that restores carried values
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from wengert._engine.core.dispatch import PART, part
from wengert._engine.core.graph_classes import Body
from wengert._engine.core.graph_copies import with_args
from wengert._engine.core.handle import wrap
from wengert._engine.core.node import CONSTANT, LeafOp, Node
from wengert._engine.core.op import lookup
from wengert._engine.core.op_facts import BRANCH, LOOP, REPLAY
from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic.dim import is_open
from wengert._engine.core.tracing import placeholder
from wengert._engine.ops.indexing.traced_slices import split_local

from . import loop_accesses

Write = tuple[Any, Sequence[Node]]  # an index template and its operands

_MAX_WRITES = 64  # to one carried value, in one step
_LATEST = 1 << 60  # later than the serial number of any node


class BackwardBody(Body):
    """The body of a backward loop.

    Attributes
    ----------
    restores : range
        The carried values that are versions of primal values: given the value after the forward
        loop, the result is the value before it.
    """

    restores = range(0)


class Chain(NamedTuple):
    """The versions of a carried value in one step.

    number : the position of the body's input.
    versions : the input, and the value after each write.
    """

    number: int
    versions: tuple[Node, ...]

    @property
    def pairs(self) -> list[tuple[Node, Node]]:
        """Each version with its predecessor."""
        return list(zip(self.versions[1:], self.versions, strict=False))


def chains_of(inputs: Sequence[Node], outputs: Sequence[Node], first: int) -> list[Chain]:
    """The carried values whose versions can be restored; `first` is the first carried input."""
    chains = []
    for k, last in enumerate(outputs, first):
        versions = [last]
        while versions[-1] is not inputs[k] and len(versions) <= _MAX_WRITES:
            before = _before(versions[-1])
            if before is None:
                break
            versions.append(before)
        if versions[-1] is inputs[k]:
            chains.append(Chain(k, tuple(versions[::-1])))
    return chains


def _before(version: Node) -> Node | None:
    """The version that was overwritten; None if it cannot be restored."""
    if version.op is lookup("add") and _is_integer(version):
        before = version.inputs[version.inputs[0].op is CONSTANT]
        return before if before.spec == version.spec else None
    if version.op is PART and version.inputs[0].op.control_flow == BRANCH:
        is_known = loop_accesses.before(version) is not None and _write_of(version) is not None
        return loop_accesses.before(version) if is_known else None
    return loop_accesses.before(version)


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
        The nodes of the pullback.
    backward_only : collection of Node
        The nodes that are known in the backward pass only.

    Attributes
    ----------
    possible : bool
        Whether all writes can be undone.
    free : dict
        The versions, with the order in which they are made.
    same : dict
        For each version, other nodes with the same value.
    logs : dict
        For each version made by a write, the elements that it overwrote.
    writes : dict
        For each of these versions, the index that was written.
    loops : dict
        For each version made by an inner loop, its backward loop and the output that restores it.
    needs : list of (Node, Node)
        Nodes that are needed to undo a write, with the version that it made.
    """

    def __init__(self, chains: Sequence[Chain], nodes: Sequence[Node], backward_only: Any) -> None:
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
        self.possible = all([self._plan(*p, nodes, backward_only) for c in chains for p in c.pairs])

    def _plan(self, after: Node, before: Node, nodes: Sequence[Node], backward_only: Any) -> bool:
        if _is_loop(after):
            inner_loop = _backward_loop(after, nodes)
            if inner_loop is None:
                return False
            self.loops[after] = inner_loop
            operands = _forward_operands(inner_loop[0], backward_only)
            self.needs += [(n, after) for n in operands]
        elif after.op is lookup("add"):
            self.needs.append((_added(after, before), after))
        else:
            write = _write_of(after)
            if write is None:
                return False
            template, indices = self.writes[after] = write
            log = lookup("getitem")(wrap(before), *map(wrap, indices), index=template).node
            if type(log.spec) is not Spec or any(is_open(n) for n in log.spec.shape):
                return False
            self.logs[after] = log
            self.needs += [(x, after) for x in indices]
        return True

    def stored(self, is_stored: Any) -> set[Node] | None:
        """The nodes that must be stored because they depend on versions that are restored later.

        None if such a node is itself a version.
        """
        stored: set[Node] = set()
        for node, after in self.needs:
            time = self.free[after]
            if node in self.free:
                if self.free[node] < time:
                    return None
            elif self._earliest(node, is_stored) < time:
                stored.add(node)
        return stored

    def _earliest(self, node: Node, is_stored: Any) -> float:
        """The order number of the earliest version that a node is computed from."""
        earliest, stack, seen = float("inf"), [node], {node}
        while stack:
            n = stack.pop()
            if n in self.free:
                earliest = min(earliest, self.free[n])
            elif not is_stored(n):
                stack += [a for a in n.inputs if a not in seen]
                seen.update(n.inputs)
        return earliest

    def built(
        self, results: Sequence[Node], values: dict[Node, Node]
    ) -> tuple[list[Node], list[Node], list[Node]] | None:
        """The backward part; None if a write can only be undone after its version is needed.

        Parameters
        ----------
        results : sequence of Node
        values : dict
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
            self._set_value(values, chain.versions[-1], end)
            ends.append(end)
        needed = [*results, *[n for n, _ in self.needs], *[b for b, _ in self.loops.values()]]
        pending = _nodes_to_compute(needed, {**self.free, **values})
        pairs = [p for c in self.chains for p in c.pairs]
        for after, before in sorted(pairs, key=lambda p: -self.free[p[0]]):
            pending = _compute_available(pending, values)
            if after not in values or not self._undo_write(after, before, values):
                return None
        if _compute_available(pending, values):
            return None
        starts = [values[c.versions[0]] for c in self.chains]
        return [values[n] for n in results], ends, starts

    def _undo_write(self, after: Node, before: Node, values: dict[Node, Node]) -> bool:
        if after in self.loops:
            loop, output = self.loops[after]
            if loop not in values:
                return False
            self._set_value(values, before, part(values[loop], output))
            return True
        missing = [n for n, of in self.needs if of is after and n not in values]
        if missing:
            return False
        value = wrap(values[after])
        if after.op is lookup("add"):
            restored = lookup("subtract")(value, wrap(values[_added(after, before)]))
        else:
            template, operands = self.writes[after]
            indices = [wrap(values[x]) for x in operands]
            overwritten = wrap(values[self.logs[after]])
            restored = lookup("setitem")(value, overwritten, *indices, index=template)
        self._set_value(values, before, restored.node)
        return True

    def _set_value(self, values: dict[Node, Node], version: Node, restored: Node) -> None:
        """Store the value of a version, and of nodes with the same value."""
        values[version] = restored
        for node in self.same.get(version, ()):
            values[node] = restored


def _is_loop(version: Node) -> bool:
    """Whether a version is the result of an inner loop."""
    if version.op is not PART:
        return False
    op: Any = version.inputs[0].op
    return not isinstance(op, LeafOp) and op.control_flow == LOOP


def _write_of(version: Node) -> Write | None:
    """The index of all elements that a version may have changed; None if not known.

    For a `sized` node it only uses values that are known outside of the node: if its body writes to
    ``A[i, :j]``, the index is that of ``A[i]``.  For a conditional it is known if all branches
    write there: where one does not, the index may be out of bounds.
    """
    if _is_write(version):
        return version.params["index"], version.inputs[2:]
    node, k = version.inputs[0], version.params["index"]
    if node.op.control_flow != BRANCH:
        return None
    found = [_write_in(body, k, node.inputs[1:]) for body in node.params["branches"]]
    return found[0] if all(x == found[0] for x in found) else None


def _write_in(body: Body, k: int, given: Sequence[Node]) -> Write | None:
    """The index of all elements that an output of a body may have changed, for these operands."""
    current = body.outputs[k]
    common_write: Write | None = None
    while current not in body.inputs:
        is_known = _is_write(current) or current.op is PART
        write = _write_of(current) if is_known else None
        if write is None or any(x not in body.inputs for x in write[1]):
            return None
        template, _ = split_local(write[0], [wrap(x) for x in write[1]])
        operands = tuple([given[body.inputs.index(x)] for x in write[1]])
        write = _without_whole_axes(template), operands
        if common_write is not None and common_write != write:
            return None
        previous = loop_accesses.before(current)
        if previous is None:
            return None
        common_write, current = write, previous
    return common_write


def _without_whole_axes(template: Any) -> Any:
    """An index without slices of whole axes at its end."""
    parts = list(template) if isinstance(template, tuple) else [template]
    while parts and (parts[-1] is None or parts[-1] == slice(None)):
        parts.pop()
    return parts[0] if len(parts) == 1 else tuple(parts) or Ellipsis


def _is_write(version: Node) -> bool:
    """Whether a version is its first operand with the elements at an index changed."""
    return version.op is lookup("setitem") or version.op is lookup("scatter_add")


def _times(chain: Chain) -> list[int]:
    """Numbers in the order in which the versions are made; the last is restored first."""
    serials = [(v.inputs[0] if v.op is PART else v).serial for v in chain.versions[1:]]
    if all([v.op is lookup("add") for v in chain.versions[1:]]):
        # Counters are restored before all arrays, whose indices depend on them.
        return [_LATEST, *[_LATEST + t for t in serials]]
    return [-1, *serials]


def _backward_loop(after: Node, nodes: Sequence[Node]) -> tuple[Node, int] | None:
    """The backward loop of an inner loop, and its output that restores the value `after`."""
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


def _forward_operands(node: Node, backward_only: Any) -> list[Node]:
    """The nodes of the forward pass that a node of the backward pass is computed from."""
    operands: dict[Node, None] = {}
    stack, seen = [node], {node}
    while stack:
        for a in stack.pop().inputs:
            if a not in backward_only:
                operands[a] = None
            elif a not in seen:
                seen.add(a)
                stack.append(a)
    return list(operands)


def _nodes_to_compute(needed: Iterable[Node], known: Any) -> list[Node]:
    """The nodes that are needed to compute some nodes from known ones, operands first."""
    seen: set[Node] = set()
    stack = [n for n in needed if n not in known]
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            stack += [a for a in node.inputs if a not in known]
    return sorted(seen, key=lambda n: n.serial)


def _compute_available(pending: Sequence[Node], values: dict[Node, Node]) -> list[Node]:
    """Compute the pending nodes whose operands have values; returns the other nodes."""
    remaining = []
    for node in pending:
        if all([a in values for a in node.inputs]):
            args = tuple([values[a] for a in node.inputs])
            same = all([a is b for a, b in zip(args, node.inputs, strict=True)])
            values[node] = node if same else with_args(node, args)
        else:
            remaining.append(node)
    return remaining
