"""Elements that a step of a loop reads and the step before has written: they are carried.

    for j in range(1, n):                     a = A[0]
        A[j] = (A[j] + A[j - 1]) / 9    ->    for j in range(1, n):
                                                  A[j] = a = (A[j] + a) / 9

The store remains.  But what the next step depends on is in a register, and a load of what has just
been stored takes longer than an addition and a multiplication.  The same holds for `A[i, j]` in a
loop over k that updates it, which need not be proved different from what else the loop reads.

    CarriedElements    the elements of a loop, its body without these reads, their first values
    with_elements      the elements of a loop, if there are any
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.core.copy_graph import rebuilt
from wengert._engine.core.handle import value_of, wrap
from wengert._engine.core.node import CONSTANT, Node
from wengert._engine.core.subgraph import Body
from wengert._engine.core.tracing import placeholder
from wengert._engine.ops.indexing.template import IndexSlot

from ..codegen.function import FunctionCodegen
from ..ir.affine import strides_of
from ..ir.ir_builder import Section
from ..kernels import ArrayPointer
from ..kernels.loop_helpers import offset as element_address

_I64 = np.dtype(np.int64)


class Position(NamedTuple):
    """An integer: a number, or an input of the body plus a number."""

    base: int | None
    offset: int


class Element(NamedTuple):
    """An element that is read where the step before has written.

    array : the carried array, by the number of its input.
    place : its index in the first step.
    """

    array: int
    place: tuple[Position, ...]


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
        self, routine: FunctionCodegen, section: Section, given: Sequence[ArrayPointer], count: str
    ) -> list[str]:
        """Read the elements for the first step, if there is one; returns their addresses."""
        slots = []
        some = section.value(f"icmp sgt i64 {count}, 0")
        for element in self.elements:
            array = given[element.array]
            size = array.dtype.itemsize
            slot = routine.function.slot(f"[{size} x i8]", 16)
            section.write(f"store [{size} x i8] zeroinitializer, ptr {slot}")
            with section.when(some) as inner:
                total = "0"
                axes = zip(element.place, array.shape, strides_of(array.shape), strict=True)
                for position, n, stride in axes:
                    place = str(position.offset)
                    if position.base is not None:
                        base = inner.value(f"load i64, ptr {given[position.base].pointer}")
                        place = inner.value(f"add i64 {base}, {position.offset}")
                    length = routine.number(n)
                    is_negative = inner.value(f"icmp slt i64 {place}, 0")
                    wrapped = inner.value(f"add i64 {place}, {length}")
                    place = inner.value(f"select i1 {is_negative}, i64 {wrapped}, i64 {place}")
                    outside = inner.value(f"icmp uge i64 {place}, {length}")
                    routine.leave_if_not_zero(inner, inner.value(f"zext i1 {outside} to i64"))
                    total = inner.plus(total, inner.times(place, routine.number(stride)))
                address = element_address(inner, array.pointer, total, array.dtype)
                inner.copy_bytes(slot, address, str(size))
            slots.append(slot)
        return slots


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
        if not isinstance(value, Node) or value.spec.shape or written is None:
            continue
        if value.spec.dtype != array.spec.dtype or array.spec.dtype.kind == "c":
            continue
        for node in body.nodes:
            if node.op.name != "getitem" or node.args[0] is not array:
                continue
            read = places.of(node)
            if read is None or places.in_next_step(read) != written or type(node) is not Node:
                continue
            element = Element(fixed + k, read)
            if element not in elements:
                elements[element] = len(inputs)
                inputs.append(placeholder(node.spec))
                values.append(value)
            replaced[node] = inputs[elements[element]]
    if not replaced:
        return (), body
    new = rebuilt(body.nodes, replaced)
    middle = fixed + carried
    outputs = [*body.outputs[:carried], *values, *body.outputs[carried:]]
    changed = Body(
        *[new[n] for n in outputs],
        inputs=[*body.inputs[:middle], *inputs, *body.inputs[middle:]],
        name=body.name,
    )
    return tuple(elements), changed


class _Places:
    """Indices of single elements, in terms of the inputs of a body."""

    def __init__(self, body: Body, fixed: int, carried: int) -> None:
        self._inputs = {n: k for k, n in enumerate(body.inputs[: fixed + carried])}
        self._fixed, self._outputs = fixed, body.outputs

    def of(self, node: Node) -> tuple[Position, ...] | None:
        """The index at which a node reads or stores one element; None if it is not known."""
        template = node.params["index"]
        parts = template if isinstance(template, tuple) else (template,)
        arrays = node.args[2 if node.op.name == "setitem" else 1 :]
        if len(parts) != len(node.args[0].spec.shape):
            return None
        found: list[Position] = []
        for part in parts:
            place = Position(None, part) if type(part) is int else None
            if isinstance(part, IndexSlot) and isinstance(arrays[part.k], Node):
                place = self._position(arrays[part.k])
            if place is None:
                return None
            found.append(place)
        return tuple(found)

    def _position(self, node: Node) -> Position | None:
        if node.spec.shape or node.spec.dtype != _I64:
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

    def in_next_step(self, place: tuple[Position, ...]) -> tuple[Position, ...] | None:
        """What an index is in the next step, in terms of the inputs of this one."""
        found: list[Position] = []
        for p in place:
            carry = -1 if p.base is None else p.base - self._fixed
            if carry < 0:
                found.append(p)
                continue
            following = self._position(self._outputs[carry])
            if following is None or following.base is None:
                return None
            found.append(Position(following.base, following.offset + p.offset))
        return tuple(found)
