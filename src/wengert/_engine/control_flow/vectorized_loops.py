"""Loops with independent steps, as operations on whole arrays.

    for j in range(m):                             B[i, :] += A[k:, i] @ B[k:, :]     # k > i
        B[i, j] += A[k:, i] @ B[k:, j]

    for k in range(m):                             C[i, :] += A[i, :] @ B
        C[i, :] += A[i, k] * B[k]

No step may read what another step writes (loop_accesses.py), except that steps may add to a number
or to the same elements of an array (loop_plan.py).  The body, which was traced for one step, is
evaluated for all of them by the batching rules of its operations; elements at the loop counter are
slices.  This is done where a loop is made, innermost loops first, so that the
derivatives are operations on whole arrays as well.

    vectorized    the results of a loop, or None if it remains a loop

The evaluation of a loop body for all steps at once, by the batching rules of its operations.

Reads and writes at positions that depend on the counter become reads and writes of slices.  An
array that the steps write to is not batched: it is the whole array, after the writes of all steps.

    AllSteps    the batched values of the nodes of a step, and the results of the loop
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from operator import attrgetter
from string import ascii_letters
from typing import Any

import numpy as np

from wengert._engine.autodiff.batch_graph import BatchedGraph, Pair
from wengert._engine.core.dispatch import apply
from wengert._engine.core.graph_classes import local_sizes
from wengert._engine.core.handle import Handle, dtype_of, shape_of, wrap
from wengert._engine.core.node import Node, constant
from wengert._engine.core.op import lookup
from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic.dim import Dim, bounds, is_open
from wengert._engine.core.tracing import SIZE, derivation, deriving_level
from wengert._engine.kinds.batching import deepened
from wengert._engine.ops.indexing.slice_ends import Linear
from wengert._engine.ops.indexing.template import IndexSlot
from wengert._engine.ops.indexing.traced_slices import (
    define_length,
    named_length,
    named_start,
    value_of_form,
)
from wengert.errors import WengertError

from .loop_accesses import Counter, ElementAccess
from .loop_plan import Dependent, LoopPlan
from .sums_of_steps import product_of_slices, sum_of_steps

_MOST_MEMORY = 4  # times the elements of the largest array that the loop uses
_FEW_ELEMENTS = 1 << 16  # intermediate results up to this size are always acceptable
_UNKNOWN_SIZE = 256  # assumed for symbolic sizes


class AllSteps(BatchedGraph):
    """The batched values of the nodes of a step, and the results of the loop."""

    def __init__(self, plan: LoopPlan, length: Any, since: int) -> None:
        self.plan, self.counter = plan, plan.counter
        self.runs = type(length) is int or (
            isinstance(length, Dim) and not is_open(length) and (bounds(length)[0] or 0) >= 1
        )
        size = length if self.runs else named_length(plan.counter.length)
        super().__init__({}, size, since)
        self._inside = set(plan.order)
        self.known.update(
            {p: (x, False) for p, x in zip(plan.inputs[1:], plan.start[1:], strict=False)}
        )
        self._initial = dict(self.known)
        self._refuse_waste()

    def _refuse_waste(self) -> None:
        """Refuse much memory, and reads that may be out of bounds in a loop without steps."""
        plan = self.plan
        largest, limit = 0, _FEW_ELEMENTS
        batched = {self.counter.node}
        for node in plan.order:
            for a in node.inputs:
                if type(a.spec) is Spec and (a in plan.inputs or a not in plan.varying):
                    limit = max(limit, _MOST_MEMORY * _elements(a.spec.shape))
            access = self._direct_access(node)
            is_batched = not batched.isdisjoint(node.inputs) if access is None else access.moving
            if (is_batched or node in plan.products) and node not in plan.arrays:
                batched.add(node)
                if type(node.spec) is Spec:
                    largest = max(largest, _elements((self.size, *node.spec.shape)))
            is_access = node.op in (lookup("getitem"), lookup("setitem"))
            if not self.runs and is_access and node not in plan.accesses:
                raise Dependent
        if largest > limit:
            raise Dependent

    def results(self) -> list[Any]:
        """The results of the loop."""
        plan = self.plan
        self._define_lengths()
        carry = [self._final(p, o) for p, o in zip(plan.inputs[1:], plan.outputs[1:], strict=False)]
        rows = [self._stacked(n) for n in plan.outputs[len(plan.inputs) :]]
        return [None, *map(as_handle, [*carry, *rows])]

    def _define_lengths(self) -> None:
        """Define the lengths of the step's slices in the enclosing step."""
        names = frozenset().union(*[local_sizes(n) for n in self.plan.order])
        for name in sorted(names & self.plan.lengths.keys() - self.plan.varying_names):
            x = self.value(self.plan.lengths[name])[0]
            define_length(name, x.node)

    def _final(self, p: Node, o: Node) -> Any:
        """A carried value after the last step."""
        plan = self.plan
        if o is p:
            return self._initial[p][0]
        if p in plan.sums:
            return self._total(p)
        if p in plan.steps_write:
            return self.value(o)[0]
        if not self.runs:
            raise Dependent
        x, batched = self.value(o)
        return lookup("getitem")(x, index=-1) if batched else x

    def _total(self, p: Node) -> Any:
        """A value to which all steps have added."""
        start = total = self._initial[p][0]
        target = self.plan.targets.get(p)
        template: Any = None
        operands: list[Any] = []
        if target is not None:
            template, operands, _ = self._index(target)
            total = apply(lookup("getitem"), (as_handle(start), *operands), {"index": template})
        for node, sign in self.plan.sums[p]:
            x = sum_of_steps(node, dtype_of(start), self.value, self.size if self.runs else None)
            total = lookup("add" if sign > 0 else "subtract")(total, x)
        if target is None:
            return total
        return apply(lookup("setitem"), (as_handle(start), total, *operands), {"index": template})

    def _stacked(self, node: Node) -> Any:
        x, batched = self.value(node)
        return x if batched else lookup("broadcast_to")(x, shape=(self.size, *node.spec.shape))

    # ---- values --------------------------------------------------------------------------------

    def value(self, node: Node) -> Pair:
        """A node for all steps, and whether it has an axis for them."""
        needed: set[Node] = set()
        stack = [node]
        while stack:
            n = stack.pop()
            if n in self._inside and n not in needed and n not in self.known:
                needed.add(n)
                stack += self._operands(n)
        level = deriving_level() or 0
        with derivation(level) as context:
            for n in sorted(needed, key=attrgetter("serial")):
                context.enter(n)
                context.level = max(level, n.level)
                context.stays_linear(n, [self.known.get(a, (a,))[0] for a in n.args])
                self.known[n] = self._value(n)
        return self._pair(node)

    def _operands(self, node: Node) -> list[Node]:
        """The operands that are needed; not the counter, if it only selects elements."""
        access = self._direct_access(node)
        if access is None:
            return list(node.inputs)
        operands = [a for a in access.operands if a not in self.plan.varying]
        if node in self.plan.from_start:
            return operands
        first = [access.base] if node.op is lookup("getitem") else list(node.inputs[:2])
        return [*first, *operands]

    def _direct_access(self, node: Node) -> ElementAccess | None:
        """The access of a node that becomes one to slices, or to elements before the loop."""
        access = self.plan.accesses.get(node)
        if access is None or access.base in self.plan.arrays:
            return access
        is_read = node.op is lookup("getitem") and access.base not in self.plan.varying
        return access if is_read and (access.moving or node in self.plan.parts) else None

    def _pair(self, a: Any) -> Pair:
        if isinstance(a, Node) and a not in self.known:
            if a is self.counter.node:
                self.known[a] = self._counters(), True
            elif a in self._inside:
                raise Dependent  # it was not expected to be needed
            else:
                self.known[a] = self._captured(a), False
        return super()._pair(a)

    def _counters(self) -> Any:
        """The counter in each step."""
        arange: Any = lookup("arange")
        positions = arange.record(start=0, stop=self.size, step=1, dtype=np.dtype(np.int64))
        return positions * self.counter.step + value_of_form(self.counter.start)

    def _product_of_parts(self, node: Node) -> Any:
        """A sum of products over a slice whose length differs between steps."""
        part, _ = self.plan.products[node]
        pairs = [self._pair(a) for a in node.inputs]
        forms = [self.counter.first(f) for f in (part.first, part.last)]
        known = not any([f.terms or type(f.rest) is not int for f in forms])
        lengths = (self.size, part.length, *node.spec.shape)
        if not known or any([type(n) is not int for n in lengths]):
            raise Dependent
        if all([batched for _, batched in pairs]) or node.spec.dtype.kind != "f":
            raise Dependent  # a sum for each step, which is as fast in the loop
        factors = [self.counter.factor(f) * self.counter.step for f in (part.first, part.last)]
        count: Any = self.size
        steps = np.arange(count)
        first, last = (f.rest + c * steps for f, c in zip(forms, factors, strict=True))
        op: Any = node.op
        *words, result = op.subscripts(*[len(a.spec.shape) for a in node.inputs], **node.params)
        letter = next(c for c in ascii_letters if not any([c in w for w in words]))
        words = [letter + w if f else w for w, (_, f) in zip(words, pairs, strict=True)]
        factors_of = [x for x, _ in pairs]
        summed = words[0][part.place + pairs[0][1]]
        return product_of_slices(
            factors_of, (*words, letter + result), (letter, summed), np.maximum(first, 0), last
        )

    def _value(self, node: Node) -> Pair:
        access = self._direct_access(node)
        if node in self.plan.products:
            x, batched = self._product_of_parts(node), True
        elif node.op is SIZE and not self.plan.varying_names.isdisjoint(local_sizes(node)):
            raise Dependent
        elif access is None:
            x, batched = super()._value(node)
        elif node.op is lookup("setitem"):
            x, batched = self._written(access), False
        else:
            pairs = self._initial if node in self.plan.from_start else self.known
            base = self.plan.arrays[access.base] if pairs is self._initial else access.base
            x, batched = self._read(
                self._pair(base)[0] if pairs is self.known else pairs[base][0], access
            )
        if type(node.spec) is Spec and dtype_of(x) != node.spec.dtype:
            raise Dependent
        return x, batched

    def _read(self, x: Any, access: ElementAccess) -> Pair:
        """The elements that each step reads."""
        template, operands, place = self._index(access)
        out = apply(lookup("getitem"), (as_handle(x), *operands), {"index": template})
        if place is None:
            return out, False
        out = _moved(out, place, 0)
        return (lookup("getitem")(out, index=_BACKWARD) if self._is_backward(access) else out), True

    def _written(self, access: ElementAccess) -> Any:
        """An array after the writes of all steps."""
        template, operands, place = self._index(access)
        assert place is not None
        x = self._pair(access.base)[0]
        v, batched = self._pair(access.node.inputs[1])
        depth = sum([p is None or isinstance(p, slice) for p in access.parts])
        shape = shape_of(v)
        if len(shape) - batched > depth:
            raise Dependent
        if batched:
            v = deepened(v, depth)
            v = lookup("getitem")(v, index=_BACKWARD) if self._is_backward(access) else v
            v = _moved(v, 0, place)
        elif shape:
            shape = (*[1] * (depth - len(shape)), *shape)
            v = lookup("reshape")(v, shape=(*shape[:place], 1, *shape[place:]))
        return apply(lookup("setitem"), (as_handle(x), v, *operands), {"index": template})

    def _is_backward(self, access: ElementAccess) -> bool:
        (axis,) = access.moving
        return self.counter.factor(access.forms[axis]) * self.counter.step < 0

    def _index(self, access: ElementAccess) -> tuple[tuple[Any, ...], list[Any], int | None]:
        """The index for all steps, its operands, and the axis of the steps in the result."""
        template: list[Any] = []
        operands: list[Any] = []
        place = None
        for part, axis in zip(access.parts, access.axes, strict=True):
            if part is not None and axis in access.moving:
                place = sum([p is None or isinstance(p, slice) for p in template])
                part = self._slice(access.forms[axis], access.base.spec.shape[axis])
            elif access.node in self.plan.parts and self.plan.parts[access.node].axis == axis:
                part = slice(None)
            elif isinstance(part, IndexSlot):
                operands.append(self._pair(access.operands[part.k])[0])
                part = IndexSlot(len(operands) - 1)
            template.append(part)
        return tuple(template), operands, place

    def _slice(self, form: Linear, length: Any) -> slice:
        """The positions of a form in all steps, in increasing order."""
        stride = abs(self.counter.factor(form) * self.counter.step)
        low, _ = self.counter.ends(form)
        first = named_start(low)
        if type(first) is int and first == 0 and stride == 1 and self.size == length:
            return slice(None)
        return slice(first, first + (self.size - 1) * stride + 1, stride)


_BACKWARD = (slice(None, None, -1),)


def as_handle(x: Any) -> Any:
    """A value as an operand of a node, even if it is known."""
    return x if isinstance(x, Handle) else wrap(constant(x))


def _moved(x: Any, source: int, destination: int) -> Any:
    """An array with one axis moved."""
    if source == destination:
        return x
    axes = list(range(len(shape_of(x))))
    axes.insert(destination, axes.pop(source))
    return lookup("transpose")(x, axes=tuple(axes))


def _elements(shape: Sequence[Any]) -> int:
    return prod([n if type(n) is int else _UNKNOWN_SIZE for n in shape])


def vectorized(
    outputs: Sequence[Node],
    inputs: Sequence[Node],
    start: Sequence[Any],
    counter: Counter,
    length: Any,
    order: Sequence[Node],
    since: int,
    lengths: Mapping[str, Node],
) -> list[Any] | None:
    """The results of a loop as operations on whole arrays.

    Parameters
    ----------
    outputs : sequence of Node
        The carry after a step, and the rows to be stacked; the first is the counter.
    inputs : sequence of Node
        The placeholders for the carry.
    start : sequence
        The carry before the first step.
    counter : Counter
    length : int, Dim or Tensor
        The number of steps; a loop whose number is negative has none.
    order : sequence of Node
        The nodes of a step, in evaluation order.
    since : int
        The serial number of the first node of the body; older nodes are captured.
    lengths : mapping from str to Node
        The lengths of slices that are known only in a step, by name.

    Returns
    -------
    list or None
        As those of the loop, except the counter, which is None.
    """
    try:
        plan = LoopPlan(outputs, inputs, start, counter, order, lengths)
        return AllSteps(plan, length, since).results()
    except (Dependent, WengertError):
        return None
