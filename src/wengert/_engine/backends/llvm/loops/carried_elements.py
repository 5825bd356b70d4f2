"""Elements that a step of a loop reads and the step before has written: they are carried.

    for j in range(1, n):                     a = A[0]
        A[j] = (A[j] + A[j - 1]) / 9    ->    for j in range(1, n):
                                                  A[j] = a = (A[j] + a) / 9

The store remains.  But what the next step depends on is in a register, and a load of what has just
been stored takes longer than an addition and a multiplication.  The same holds for `A[i, j]` in a
loop over k that updates it, which need not be proved different from what else the loop reads.

So are columns, `A[:, j - 1]` and `A[:, j - 2]` in a loop that stores `A[:, j]`, if the array is
larger than a cache: each of their elements is in a cache line of its own, and what is carried is
contiguous.

    CarriedElements    the elements of a loop, its body without these reads, their first values
    with_elements      the elements of a loop, if there are any
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from wengert._engine.core.graph_classes import Body
from wengert._engine.core.graph_copies import rebuilt
from wengert._engine.core.handle import value_of, wrap
from wengert._engine.core.node import CONSTANT, Node
from wengert._engine.core.tracing import placeholder
from wengert._engine.ops.indexing.template import IndexSlot

from ..codegen.function import FunctionCodegen
from ..ir.index_analysis import size_of, strides_of
from ..ir.ir_builder import Section
from ..ir.llvm_types import I64
from ..kernels import ArrayPointer
from ..kernels.loop_helpers import nest
from ..kernels.loop_helpers import offset as element_address
from ..tuning import thresholds


class Position(NamedTuple):
    """An integer: a number, or an input of the body plus a number."""

    base: int | None
    offset: int


Place = tuple[Position | None, ...]


class Element(NamedTuple):
    """An element, or a column, that is read where a step before has written.

    array : the carried array, by the number of its input.
    place : its index in the first step; None for a whole axis.
    """

    array: int
    place: Place

    @property
    def is_column(self) -> bool:
        """Whether it has several elements."""
        return None in self.place


class CarriedElements:
    """The elements that a loop carries beside its values.

    Attributes
    ----------
    elements : sequence of Element
    params : dict
        The parameters of the loop, whose last carried values are these elements.
    """

    def __init__(self, params: Mapping[str, Any], elements: Sequence[Element], body: Body) -> None:
        self.elements = elements
        self.params = {**params, "body": body, "carried": params["carried"] + len(elements)}

    def begin(
        self,
        routine: FunctionCodegen,
        section: Section,
        given: Sequence[ArrayPointer],
        count: str,
        memory: Callable[[int], str],
    ) -> list[str]:
        """Read the elements for the first step, if there is one; returns their addresses.

        ``memory(k)`` is the address for element k if it is a column.
        """
        slots = []
        some = section.value(f"icmp sgt i64 {count}, 0")
        for k, element in enumerate(self.elements):
            array = given[element.array]
            size = array.dtype.itemsize
            if element.is_column:
                slot = memory(k)
            else:
                slot = routine.function.slot(f"[{size} x i8]", 16)
                section.write(f"store [{size} x i8] zeroinitializer, ptr {slot}")
            with section.when(some) as inner:
                total = "0"
                axes = list(zip(element.place, array.shape, strides_of(array.shape), strict=True))
                for position, n, stride in axes:
                    if position is not None:
                        place = _in_bounds(routine, inner, given, position, routine.number(n))
                        total = inner.plus(total, inner.times(place, routine.number(stride)))
                whole = [(routine.number(n), routine.number(s)) for p, n, s in axes if p is None]
                with nest(inner, [length for length, _ in whole]) as (copying, indices):
                    source, target = total, "0"
                    for i, (length, step) in zip(indices, whole, strict=True):
                        source = copying.plus(source, copying.times(i, step))
                        target = copying.plus(copying.times(target, length), i)
                    address = element_address(copying, array.pointer, source, array.dtype)
                    to = element_address(copying, slot, target, array.dtype)
                    copying.copy_bytes(to, address, str(size))
            slots.append(slot)
        return slots


def _in_bounds(
    routine: FunctionCodegen,
    section: Section,
    given: Sequence[ArrayPointer],
    position: Position,
    length: str,
) -> str:
    """An integer as an index from the start of an axis; the program ends if it is out of bounds."""
    place = str(position.offset)
    if position.base is not None:
        base = section.value(f"load i64, ptr {given[position.base].pointer}")
        place = section.value(f"add i64 {base}, {position.offset}")
    is_negative = section.value(f"icmp slt i64 {place}, 0")
    wrapped = section.value(f"add i64 {place}, {length}")
    place = section.value(f"select i1 {is_negative}, i64 {wrapped}, i64 {place}")
    outside = section.value(f"icmp uge i64 {place}, {length}")
    routine.leave_if_not_zero(section, section.value(f"zext i1 {outside} to i64"))
    return place


def with_elements(params: Mapping[str, Any]) -> CarriedElements | None:
    """The elements that a loop carries; None if there are none, or its body has loops inside."""
    found, body = _found(params["body"], params["carried"], params.get("stacked", 0))
    return CarriedElements(params, found, body) if found else None


@functools.lru_cache(maxsize=512)
def _found(body: Body, carried: int, stacked: int) -> tuple[tuple[Element, ...], Body]:
    fixed = len(body.inputs) - carried - stacked
    if any(n.op.kind == "control" and "carried" in n.params for n in body.nodes):
        return (), body
    places = _Places(body, fixed, carried)
    elements: dict[Element, int] = {}
    replaced: dict[Node, Node] = {}
    inputs: list[Node] = []
    values: list[Node] = []
    for k in range(carried):
        store, array = body.outputs[k], body.inputs[fixed + k]
        if store.op.name != "setitem" or store.args[0] is not array:
            continue
        value, written = store.args[1], places.of(store)
        if not isinstance(value, Node) or written is None:
            continue
        if value.spec.dtype != array.spec.dtype or array.spec.dtype.kind == "c":
            continue
        if None in written and not _is_large(array):
            continue
        reads = [n for n in body.nodes if n.op.name == "getitem" and n.args[0] is array]
        after: dict[Place, Node] = {written: value}  # what is where after this step
        while after:
            found: dict[Place, Node] = {}
            for node in reads:
                read = places.of(node)
                if read is None or type(node) is not Node or node.spec != value.spec:
                    continue
                following = places.in_next_step(read)
                if following is None or following not in after:
                    continue
                element = Element(fixed + k, read)
                if element not in elements:
                    elements[element] = len(inputs)
                    inputs.append(placeholder(node.spec))
                    values.append(after[following])
                replaced[node] = found[read] = inputs[elements[element]]
            # What this step has read and not written is there in the next one.
            after = {p: x for p, x in found.items() if _is_beside(p, written)}
    if not replaced:
        return (), body
    new = rebuilt(body.nodes, replaced)
    middle = fixed + carried
    outputs = [*body.outputs[:carried], *values, *body.outputs[carried:]]
    changed = Body(
        *[new.get(n, n) for n in outputs],
        inputs=[*body.inputs[:middle], *inputs, *body.inputs[middle:]],
        name=body.name,
    )
    return tuple(elements), changed


def _is_large(array: Node) -> bool:
    """Whether a first-level cache does not keep an array."""
    size = size_of(array.spec.shape)
    limit = thresholds.carried_columns_bytes
    return type(size) is not int or size * array.spec.dtype.itemsize >= limit


def _is_beside(place: Place, other: Place) -> bool:
    """Whether they are columns beside each other, which are different.

    On an axis of one position they would be the same, but then the column beyond, which the chain
    of reads goes on to, is out of bounds in each step.
    """
    one, two = place[-1], other[-1]
    return (
        None in place
        and place[:-1] == other[:-1]
        and one is not None
        and two is not None
        and one.base == two.base
        and abs(one.offset - two.offset) == 1
    )


class _Places:
    """Indices of single elements, in terms of the inputs of a body."""

    def __init__(self, body: Body, fixed: int, carried: int) -> None:
        self._inputs = {n: k for k, n in enumerate(body.inputs[: fixed + carried])}
        self._fixed, self._outputs = fixed, body.outputs

    def of(self, node: Node) -> Place | None:
        """The index at which a node reads or stores an element or column; None if not known."""
        template = node.params["index"]
        parts = template if isinstance(template, tuple) else (template,)
        arrays = node.args[2 if node.op.name == "setitem" else 1 :]
        if len(parts) != len(node.args[0].spec.shape):
            return None
        if isinstance(parts[-1], slice):
            return None  # rows are contiguous
        found: list[Position | None] = []
        for part in parts:
            if part == slice(None):
                found.append(None)
                continue
            place = Position(None, part) if type(part) is int else None
            if isinstance(part, IndexSlot) and isinstance(arrays[part.k], Node):
                place = self._position(arrays[part.k])
            if place is None:
                return None
            found.append(place)
        return tuple(found)

    def _position(self, node: Node) -> Position | None:
        if node.spec.shape or node.spec.dtype != I64:
            return None
        if node.op is CONSTANT:
            return Position(None, int(value_of(wrap(node))))
        if node in self._inputs:
            return Position(self._inputs[node], 0)
        if node.op.name == "discretise" and len(node.inputs) == 1:
            return self._position(node.inputs[0])
        if node.op.name not in ("add", "subtract"):
            return None
        a, b = [self._position(x) if isinstance(x, Node) else None for x in node.args]
        if a is None or b is None:
            return None
        if node.op.name == "add" and a.base is None:
            a, b = b, a
        sign = 1 if node.op.name == "add" else -1
        return Position(a.base, a.offset + sign * b.offset) if b.base is None else None

    def in_next_step(self, place: Place) -> Place | None:
        """What an index is in the next step, in terms of the inputs of this one."""
        found: list[Position | None] = []
        for p in place:
            carry = -1 if p is None or p.base is None else p.base - self._fixed
            if p is None or carry < 0:
                found.append(p)
                continue
            following = self._position(self._outputs[carry])
            if following is None or following.base is None:
                return None
            found.append(Position(following.base, following.offset + p.offset))
        return tuple(found)
