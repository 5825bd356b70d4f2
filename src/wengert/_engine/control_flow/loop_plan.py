"""Whether the steps of a loop are independent, and how each output is evaluated for all of them.

LoopPlan     the outputs, reads and writes of a step
Dependent    raised if the steps are not known to be independent
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.core.graph_classes import local_sizes
from wengert._engine.core.node import CONSTANT, LeafOp, Node
from wengert._engine.core.node_properties import sizes_of
from wengert._engine.core.op import lookup
from wengert._engine.core.spec import Spec
from wengert._engine.core.tracing import SIZE
from wengert._engine.ops.indexing.slice_ends import Linear

from .loop_accesses import (
    Counter,
    ElementAccess,
    access_of,
    is_upward,
    never_written,
    written_by_step,
    written_later,
)

_KINDS = frozenset(("elementwise", "reduction", "contraction", "view", "indexing", "creation"))


class Dependent(Exception):
    """The steps are not known to be independent, or the loop is not worth it."""


class Part(NamedTuple):
    """A slice whose length differs between steps.

    place : its axis of the result of the node.
    first_key, last_key : keys that are equal for equal positions.
    length : the length of the axis that it is a slice of.
    axis : that axis.
    first, last : the first and last position in a step.
    """

    place: int
    first_key: Any
    last_key: Any
    length: Any
    axis: int
    first: Linear
    last: Linear


class LoopPlan:
    """How each output and each access of a step is evaluated for all steps.

    Attributes
    ----------
    arrays : dict
        For each version of an array that the steps write to, the input that it is a version of.
    steps_write : dict
        For such an input, the axis on which each step writes at a position of its own.
    sums : dict
        For an input to which the steps add, the terms, and the signs with which they are added.
    targets : dict
        For an input of which the steps add to some elements, their access.
    accesses : dict
        Of the nodes that read or write at positions that are known.
    from_start : set of Node
        Those that read elements as they were before the loop.
    """

    def __init__(
        self,
        outputs: Sequence[Node],
        inputs: Sequence[Node],
        start: Sequence[Any],
        counter: Counter,
        order: Sequence[Node],
        lengths: Mapping[str, Node],
    ) -> None:
        self.outputs, self.inputs, self.start = list(outputs), list(inputs), list(start)
        self.counter, self.order, self.lengths = counter, list(order), lengths
        self.users: dict[Node, list[Node]] = {}
        for node in order:
            for a in node.inputs:
                self.users.setdefault(a, []).append(node)
        self.arrays: dict[Node, Node] = {}
        self.steps_write: dict[Node, int] = {}
        self.sums: dict[Node, list[tuple[Node, int]]] = {}
        self.targets: dict[Node, ElementAccess] = {}
        self.accesses: dict[Node, ElementAccess] = {}
        self.from_start: set[Node] = set()
        self.skipped: set[Node] = set()
        carried = list(zip(self.inputs[1:], self.outputs[1:], strict=False))
        self.same = {p for p, o in carried if o is p}
        self._find_varying()
        self._find_accesses()
        self._find_parts()
        for p, o in carried:
            if o is not p and not self._is_last_value(p) and not self._is_array(p, o):
                self._find_sum(p, o)
        self._check()

    def _find_varying(self) -> None:
        self.varying = set(self.inputs) - self.same
        self.varying_names: set[str] = set()
        names_of: dict[Node, list[str]] = {}
        for name, node in self.lengths.items():
            names_of.setdefault(node, []).append(name)
        for node in self.order:
            names = local_sizes(node)
            if not (self.varying.isdisjoint(node.inputs) and self.varying_names.isdisjoint(names)):
                self.varying.add(node)
                self.varying_names.update(names_of.get(node, ()))

    def _find_accesses(self) -> None:
        for node in self.order:
            if node.op in (lookup("getitem"), lookup("setitem")):
                access = access_of(node, self.counter, self.varying)
                if access is not None:
                    self.accesses[node] = access

    def _find_parts(self) -> None:
        """Find the slices whose length differs between steps, and the products of two of them."""
        self.parts: dict[Node, Part] = {}
        self.products: dict[Node, tuple[Part, Part]] = {}
        products = [lookup(name) for name in ("dot", "matmul", "einsum")]
        for node in self.order:
            parts = [self.parts[a] for a in node.inputs if a in self.parts]
            if not parts:
                if node.op is not SIZE and not self.varying_names.isdisjoint(local_sizes(node)):
                    self.parts[node] = self._part_of(node)
            elif node.op is lookup("transpose"):
                ndim = len(node.spec.shape)
                axes = [a % ndim for a in node.params.get("axes") or range(ndim)[::-1]]
                self.parts[node] = parts[0]._replace(place=axes.index(parts[0].place))
            elif node.op in products and len(parts) == len(node.inputs) == 2:
                one, two = parts
                if one[1:4] != two[1:4] or not self._is_summed(node, one, two):
                    raise Dependent
                self.products[node] = one, two
            else:
                raise Dependent

    def _part_of(self, node: Node) -> Part:
        """The slice of an axis that a node reads."""
        access = self.accesses.get(node)
        if access is None or node.op is not lookup("getitem"):
            raise Dependent
        places = [a for a, p in zip(access.axes, access.parts, strict=True) if isinstance(p, slice)]
        names = [sizes_of((access.slice_on(a).start, access.slice_on(a).stop)) for a in places]
        moving = [k for k, n in enumerate(names) if not self.varying_names.isdisjoint(n)]
        if len(moving) != 1 or None in access.parts:
            raise Dependent
        axis = places[moving[0]]
        if not is_upward(access.slice_on(axis)):
            raise Dependent
        first, last = access.positions(axis)
        return Part(moving[0], first.key, last.key, access.base.spec.shape[axis], axis, first, last)

    def _is_summed(self, node: Node, one: Part, two: Part) -> bool:
        """Whether a product sums over the slices, and only over them as one axis."""
        op: Any = node.op
        ranks = [len(a.spec.shape) for a in node.inputs]
        *words, result = op.subscripts(*ranks, **node.params)
        letter = words[0][one.place]
        return letter == words[1][two.place] and letter not in result

    def _is_last_value(self, p: Node) -> bool:
        return p not in self.users and p not in self.outputs

    # ---- arrays that the steps write to --------------------------------------------------------

    def _is_array(self, p: Node, o: Node) -> bool:
        """Whether an output is the input with some elements written, by independent steps."""
        versions = _versions(p, o)
        if not p.spec.shape or versions is None:
            return False
        writes: list[ElementAccess] = []
        reads: list[ElementAccess] = []
        for version in versions:
            for user in self.users.get(version, ()):
                access = self.accesses.get(user)
                if access is None or access.base is not version or version in user.inputs[1:]:
                    raise Dependent
                (writes if user in versions else reads).append(access)
                if user.op is lookup("setitem") and user not in versions:
                    raise Dependent
        axis = written_by_step(writes, self.counter)
        self.arrays.update(dict.fromkeys(versions, p))
        if axis is not None:
            self.steps_write[p] = axis
            self._check_reads(reads, writes, axis)
            return True
        self._add_target(p, versions, writes, reads)
        return True

    def _check_reads(
        self, reads: list[ElementAccess], writes: list[ElementAccess], axis: int
    ) -> None:
        for read in reads:
            if read.moving == (axis,) and read.forms[axis].key == writes[0].forms[axis].key:
                continue
            distance = 0 if read.base is self.arrays[read.base] else 1
            later = all([written_later(read, w, axis, self.counter, distance) for w in writes])
            if not later and not never_written(read, writes, self.counter):
                raise Dependent
            self.from_start.add(read.node)

    def _add_target(
        self, p: Node, versions: list[Node], writes: list[ElementAccess], reads: list[ElementAccess]
    ) -> None:
        """Note an array of which all steps add to the same elements."""
        target = writes[0]
        if target.moving or any([w.key != target.key for w in writes]):
            raise Dependent
        terms: list[tuple[Node, int]] = []
        own: set[Node] = set()
        for before, write in pairwise(versions):
            value = write.inputs[1]
            found = [
                r.node
                for r in reads
                if r.base is before and r.key == target.key and r.node in value.inputs
            ]
            if len(found) != 1:
                raise Dependent
            terms.append(self._term(value, found[0]))
            if len(self.users[value]) + self.outputs.count(value) != 1:
                raise Dependent
            own |= {found[0], value, write}
        others = [r for r in reads if r.node not in own]
        if not all([never_written(r, writes, self.counter) for r in others]):
            raise Dependent
        self.from_start.update([r.node for r in others])
        self.sums[p], self.targets[p] = terms, target
        self.skipped |= own

    # ---- sums ----------------------------------------------------------------------------------

    def _find_sum(self, p: Node, o: Node) -> None:
        """Note a number, or an array, to which the steps add."""
        terms: list[tuple[Node, int]] = []
        leading = self._leading_to(p)
        node = o
        while (node := self._uncast(node)) is not p:
            if len(self.users.get(node, ())) + self.outputs.count(node) != 1:
                raise Dependent
            before = [a for a in node.inputs if a in leading]
            if len(before) != 1:
                raise Dependent
            terms.append(self._term(node, before[0]))
            self.skipped.add(node)
            node = before[0]
        if not terms or len(self.users.get(p, ())) != 1:
            raise Dependent
        self.sums[p] = terms

    def _uncast(self, node: Node) -> Node:
        """The operand of casts that change nothing."""
        while node.op is lookup("cast") and node.inputs[0].spec.dtype == node.spec.dtype:
            self.skipped.add(node)
            if len(self.users.get(node, ())) + self.outputs.count(node) != 1:
                raise Dependent
            node = node.inputs[0]
        return node

    def _leading_to(self, p: Node) -> set[Node]:
        """An input, and the nodes that are sums of it and other values."""
        leading = {p}
        sums = [lookup(name) for name in ("add", "subtract", "cast")]
        for node in self.order:
            if node.op in sums and not leading.isdisjoint(node.inputs):
                leading.add(node)
        return leading

    def _term(self, node: Node, before: Node) -> tuple[Node, int]:
        """What a node adds to a value, and its sign."""
        is_sum = node.op is lookup("add") or (
            node.op is lookup("subtract") and node.inputs[0] is before
        )
        others = [a for a in node.inputs if a is not before]
        same = node.spec.shape == before.spec.shape and node.spec.dtype == before.spec.dtype
        if not is_sum or len(others) != 1 or not same or node.spec.dtype.kind not in "iufc":
            raise Dependent
        if len(self.users.get(before, ())) + self.outputs.count(before) != 1:
            raise Dependent
        return others[0], 1 if node.op is lookup("add") else -1

    # ---- what must hold for all nodes ----------------------------------------------------------

    def _check(self) -> None:
        for node in self.order:
            if node.op is SIZE:
                continue
            if (
                isinstance(node.op, LeafOp)
                or node.op.kind not in _KINDS
                or node.op.effects.side_effect
            ):
                raise Dependent
            if node in self.skipped or node not in self.varying:
                continue
            if node not in self.from_start and any([a in self.sums for a in node.inputs]):
                raise Dependent
            self._check_promotion(node)
            if node.op is lookup("getitem") and not self._is_slice(node):
                raise Dependent
        for node in self.parts:
            access = self.accesses.get(node)
            if access is not None and access.base in self.varying and node not in self.from_start:
                raise Dependent
        changing = {*self.arrays, *self.skipped, *self.inputs} - self.same
        for p, o in zip(self.inputs[1:], self.outputs[1:], strict=False):
            is_own = o is p or p in self.sums or (p in self.steps_write and self.arrays.get(o) is p)
            if o in changing and not is_own:
                raise Dependent
        if not changing.isdisjoint(self.outputs[len(self.inputs) :]):
            raise Dependent

    def _is_slice(self, node: Node) -> bool:
        """Whether all steps together read a slice, or all of them the same elements.

        The derivative of reading at index arrays takes an array of zeros.
        """
        access = self.accesses.get(node)
        if access is None:
            return all([a not in self.varying for a in node.inputs[1:]])
        return len(access.moving) < 2

    def _check_promotion(self, node: Node) -> None:
        """Refuse a Python number that is computed, if as an array it widens a result."""
        specs = [a.spec for a in node.inputs]
        if any([type(s) is not Spec for s in specs]):
            raise Dependent
        weak = [
            s.dtype
            for a, s in zip(node.inputs, specs, strict=True)
            if s.weak and a.op is not CONSTANT
        ]
        strong = [s.dtype for s in specs if not s.weak]
        if node.op.kind != "elementwise" or not weak or not strong:
            return
        if np.result_type(*strong, *weak) != np.result_type(
            *strong, *[np.dtype(d).type(1).item() for d in weak]
        ):
            raise Dependent


def _versions(p: Node, o: Node) -> list[Node] | None:
    """The input, and the arrays after each write to it, up to the output; None if it is not one."""
    versions = [o]
    while versions[-1] is not p:
        node = versions[-1]
        if node.op is not lookup("setitem"):
            return None
        versions.append(node.inputs[0])
    return versions[::-1]
