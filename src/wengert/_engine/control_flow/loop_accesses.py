"""The elements of arrays that the steps of a loop read and write, and the versions of arrays.

    Counter            the counter of a loop: its first value, increment, and number of steps
    ElementAccess      the elements that one node reads or writes
    access_of          the access of a `getitem` or `setitem`
    written_by_step    the axis and position at which each step writes elements of its own
    never_written      whether an access reads none of the elements that the loop writes
    written_later      whether a step reads elements before the loop writes them
    before             the predecessor of a version
    updated_input      the input of a body that an output is a later version of
    updated_in_all     the same of several branches

    for j in range(n):
        B[i, j] += A[k, i] * B[k, j]      # k > i: no step reads what another one writes

Positions are linear forms of loop counters and sizes (ops/indexing/traced_slices.py).  The tests
are conservative: what is not shown by these forms counts as a dependence.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from wengert._engine.core.dispatch import PART
from wengert._engine.core.graph_classes import Body
from wengert._engine.core.node import LeafOp, Node
from wengert._engine.core.op import lookup
from wengert._engine.core.symbolic.dim import Dim, bounds
from wengert._engine.ops.indexing.slice_ends import Linear, linear
from wengert._engine.ops.indexing.template import IndexSlot

_WHOLE = slice(None)


class Counter(NamedTuple):
    """The counter of a loop.

    node : its placeholder.
    start, step, length : the first value, the increment, and the number of steps.
    """

    node: Node
    start: Linear
    step: int
    length: Linear

    def factor(self, form: Linear) -> int:
        """The coefficient of the counter in a form."""
        return form.terms.get(self.node, 0)

    def first(self, form: Linear) -> Linear:
        """The value of a form in the first step."""
        factor = self.factor(form)
        if not factor:
            return form
        rest = Linear({**form.terms, self.node: 0}, form.rest, form.nodes)
        return rest.plus(self.start, factor)

    def last(self, form: Linear) -> Linear:
        """The value of a form in the last step."""
        factor = self.factor(form) * self.step
        return self.first(form).plus(self.length.plus(linear(-1)), factor)

    def ends(self, form: Linear) -> tuple[Linear, Linear]:
        """The smallest and the largest value of a form."""
        ends = self.first(form), self.last(form)
        return ends if self.factor(form) * self.step >= 0 else ends[::-1]


class ElementAccess(NamedTuple):
    """The elements of an array that one node reads or writes.

    node : a `getitem` or `setitem`.
    base : the array.
    parts : the index, with a part for each axis, and None for each new one.
    axes : the axis of each part.
    operands : the integers in the index.
    forms : for each axis that is indexed by an integer, its position.
    moving : the axes whose position depends on the counter.
    """

    node: Node
    base: Node
    parts: tuple[Any, ...]
    axes: tuple[int, ...]
    operands: tuple[Node, ...]
    forms: dict[int, Linear]
    moving: tuple[int, ...]

    @property
    def key(self) -> Any:
        """A key that is equal for accesses to the same elements."""
        slices = [_slice_key(p) for p in self.parts]
        return tuple([(a, f.key) for a, f in sorted(self.forms.items())]), tuple(slices)

    def slice_on(self, axis: int) -> slice:
        """The slice of an axis."""
        pairs = zip(self.parts, self.axes, strict=True)
        return next(p for p, a in pairs if a == axis and isinstance(p, slice))

    def ends(self, axis: int, counter: Counter) -> tuple[Linear, Linear]:
        """The first and last position on an axis in any step."""
        length = self.base.spec.shape[axis]
        form = self.forms.get(axis)
        if form is not None:
            return counter.ends(form)
        part = self.slice_on(axis)
        start, stop = part.start, part.stop
        if (part.step or 1) < 0 or not (_is_position(start) and _is_position(stop)):
            start = stop = None
        first, last = linear(0 if start is None else start), linear(length).plus(linear(-1))
        if stop is not None:
            last = linear(stop).plus(linear(-1))
        return counter.ends(first)[0], counter.ends(last)[1]

    def positions(self, axis: int) -> tuple[Linear, Linear]:
        """The first and last position on an axis in one step; the slice counts upwards."""
        form = self.forms.get(axis)
        if form is not None:
            return form, form
        part = self.slice_on(axis)
        last = self.base.spec.shape[axis] if part.stop is None else part.stop
        return linear(0 if part.start is None else part.start), linear(last).plus(linear(-1))


def _is_position(bound: Any) -> bool:
    """Whether a bound of a slice does not count from the end of the axis."""
    low = bounds(bound)[0]
    return bound is None or (low is not None and low >= 0)


def _slice_key(part: Any) -> Any:
    return (part.start, part.stop, part.step or 1) if isinstance(part, slice) else part is None


def access_of(node: Node, counter: Counter, varying: Collection[Node]) -> ElementAccess | None:
    """The access of a `getitem` or `setitem`; None if its positions are not known.

    Parameters
    ----------
    node : Node
    counter : Counter
    varying : collection of Node
        The nodes whose values differ between steps.
    """
    base, *operands = node.inputs if node.op is lookup("getitem") else _without_value(node)
    template = node.params["index"]
    parts = list(template) if isinstance(template, tuple) else [template]
    if any([x.spec.shape or x.spec.dtype.kind not in "iu" for x in operands]):
        return None
    shape = base.spec.shape
    missing = len(shape) - sum([p is not Ellipsis and p is not None for p in parts])
    place = parts.index(Ellipsis) if Ellipsis in parts else len(parts)
    parts[place : place + 1] = [_WHOLE] * missing
    axes: list[int] = []
    forms: dict[int, Linear] = {}
    moving: list[int] = []
    axis = 0
    for part in parts:
        axes.append(axis)
        if part is None:
            continue
        if isinstance(part, IndexSlot):
            operand = operands[part.k]
            form = linear(operand)
            changing = [form.nodes[k] for k in form.terms if form.nodes[k] in varying]
            if any([n is not counter.node for n in changing]):
                return None
            if counter.factor(form):
                moving.append(axis)
            forms[axis] = form
        elif type(part) is int:
            forms[axis] = linear(part if part >= 0 else part + shape[axis])
        elif not isinstance(part, slice):
            return None
        axis += 1
    if not all([is_within(f, shape[a], counter) for a, f in forms.items()]):
        return None
    return ElementAccess(
        node, base, tuple(parts), tuple(axes), tuple(operands), forms, tuple(moving)
    )


def _without_value(node: Node) -> list[Node]:
    return [node.inputs[0], *node.inputs[2:]]


def is_within(form: Linear, length: int | Dim, counter: Counter) -> bool:
    """Whether a position is within an axis in all steps, without counting from its end."""
    low, high = counter.ends(form)
    return (
        low.is_at_least_zero() and linear(length).plus(linear(-1)).plus(high, -1).is_at_least_zero()
    )


def written_by_step(writes: Sequence[ElementAccess], counter: Counter) -> int | None:
    """The axis on which each step writes at a position of its own; None if there is none."""
    first = writes[0]
    if len(first.moving) != 1:
        return None
    (axis,) = first.moving
    same = [w.moving == (axis,) and w.forms[axis].key == first.forms[axis].key for w in writes]
    return axis if all(same) else None


def never_written(read: ElementAccess, writes: Sequence[ElementAccess], counter: Counter) -> bool:
    """Whether an access reads, in all steps, none of the elements that any step writes."""
    return all([_are_apart(read, write, counter) for write in writes])


def _are_apart(one: ElementAccess, other: ElementAccess, counter: Counter) -> bool:
    for axis in range(len(one.base.spec.shape)):
        (low, high), (other_low, other_high) = one.ends(axis, counter), other.ends(axis, counter)
        if low.plus(other_high, -1).plus(linear(-1)).is_at_least_zero():
            return True
        if other_low.plus(high, -1).plus(linear(-1)).is_at_least_zero():
            return True
    return False


def written_later(
    read: ElementAccess, write: ElementAccess, axis: int, counter: Counter, distance: int
) -> bool:
    """Whether a step reads elements that, if any, only later steps write.

    Parameters
    ----------
    read, write : ElementAccess
    axis : int
        The axis on which each step writes at a position of its own.
    counter : Counter
    distance : int
        The least distance from that position: 0 if the step reads before it writes, or 1.
    """
    if axis not in read.forms and not is_upward(read.slice_on(axis)):
        return False
    first, last = read.positions(axis)
    place = write.forms[axis]
    ahead = first.plus(place, -1)
    if counter.factor(place) * counter.step < 0:
        ahead = place.plus(last, -1)
    return counter.ends(ahead)[0].plus(linear(-distance)).is_at_least_zero()


def is_upward(part: slice) -> bool:
    """Whether a slice has step one and bounds that do not count from the end of the axis."""
    return part.step in (None, 1) and _is_position(part.start) and _is_position(part.stop)


def before(node: Node) -> Node | None:
    """The array that a node is equal to except for some written elements; None if there is none."""
    writer, output = node, 0
    if node.op is PART:
        writer, output = node.inputs[0], node.params["index"]
    if isinstance(writer.op, LeafOp):
        return None
    position = writer.op.updated_operand(writer, output)
    if position is None:
        return None
    previous = writer.args[position]
    return previous if isinstance(previous, Node) and previous.spec == node.spec else None


def updated_input(body: Body, output: int) -> int | None:
    """The position of the input that an output is a later version of; None if there is none."""
    node: Node | None = body.outputs[output]
    while node is not None and node not in body.inputs:
        node = before(node)
    return None if node is None or node is body.outputs[output] else body.inputs.index(node)


def updated_in_all(branches: Sequence[Body], output: int) -> int | None:
    """The input that an output is a later version of in some branches, and the same in the others.

    None if there is none.
    """
    places = {updated_input(b, output) for b in branches if b.outputs[output] not in b.inputs}
    if len(places) != 1:
        return None
    (place,) = places
    if place is None:
        return None
    is_same = all(
        b.outputs[output] is b.inputs[place] for b in branches if b.outputs[output] in b.inputs
    )
    return place if is_same else None
