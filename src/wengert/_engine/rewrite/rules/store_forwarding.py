"""Store forwarding: stored elements are not read back, and dead stores are removed.

Loops write to positions of arrays that they carry, and their derivatives clear and add to the same
positions.  Each of these is a separate write; often one is enough.

    read back      x[i] after x[i] = v is v
    read beside    x[i + 1] after x[i] = v is x[i + 1] of the array before
    stored again   x after x[i] = x[i] is x
    written over   the second of two writes to the same positions replaces the first
    cleared        in derivatives, x[i] = 0 and then x[i] += t is x[i] = t
    whole          x[:] is x, and x[:] = v is v
    copied         a copy of a value is the value itself, because values of a graph never change
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.node import Node
from wengert._engine.core.tracing import derivation
from wengert._engine.ops.indexing.getitem import getitem, scatter, setitem
from wengert._engine.ops.indexing.template import IndexSlot

from ..rule import NodeBuilder, rule

_MAX_STORES = 16  # beside an element that is read from the array before them
_MAX_NODES = 100  # of the search for a node that reads the array
_A = np.arange(6.0).reshape(2, 3)


def _written(x: Any, i: Any, v: Any) -> Any:
    x = x.copy()
    x[i] = v
    return x


def _indices(node: Node) -> tuple[Node, ...]:
    """The operands that are indices."""
    return node.args[2 if node.op.name == "setitem" else 1 :]


def _is_same_index(node: Node, inner: Node) -> bool:
    return node.params["index"] == inner.params["index"] and _indices(node) == _indices(inner)


def _selects_each_once(node: Node, new: NodeBuilder) -> bool:
    """Whether no element is selected twice: all indices are integers or slices, not arrays."""
    template = node.params["index"]
    parts = template if isinstance(template, tuple) else (template,)
    slots = sum(isinstance(p, IndexSlot) for p in parts)
    specs = [new.context.spec(a) for a in _indices(node)]
    return slots == len(specs) and all(s.shape == () and s.dtype.kind in "iu" for s in specs)


@rule(
    "read back",
    "getitem",
    "setitem",
    operand=0,
    reason="the value that was stored there",
    exact=True,
    example=(lambda x, i, v: _written(x, i, v)[i], np.arange(3.0), 1, np.array(5.0)),
)
def read_back(node: Node, new: NodeBuilder) -> Node | None:
    """The stored value, if it has the shape and dtype of the result or is one known number."""
    inner = node.args[0]
    if not _is_same_index(node, inner) or not _selects_each_once(node, new):
        return None
    value = inner.args[1]
    stored_spec, result_spec = new.context.spec(value), new.context.spec(node)
    if stored_spec.dtype != result_spec.dtype:
        return None
    if stored_spec == result_spec:
        return value  # type: ignore[no-any-return]
    number = new.context.number(value)
    return None if number is None else new.context.filled(number, node)


@rule(
    "read beside",
    "getitem",
    "setitem",
    operand=0,
    reason="other elements were written",
    exact=True,
    example=(lambda x, i, v: _written(x, i, v)[i - 1], np.arange(3.0), 1, np.array(5.0)),
)
def read_beside(node: Node, new: NodeBuilder) -> Node | None:
    """The element or row of the array before, if it is beside what was written.

    Several such stores are skipped at once. Behind a long chain of stores, as of an unrolled loop,
    the element is read where it is: native code finds it by its position.
    """
    array, skipped = node.args[0], 0
    while array.op is node.args[0].op and _is_beside(node, array, new):
        array, skipped = array.args[0], skipped + 1
        if skipped > _MAX_STORES:
            return None
    if not skipped:
        return None
    beside: Node = new(node.op, array, *node.args[1:], **node.params)
    return beside


def _is_beside(node: Node, inner: Node, new: NodeBuilder) -> bool:
    """Whether two indices are different numbers along an axis, whatever the rest of them selects.

    The result has fewer axes than the array, so it can be read before the array is written over.
    """
    parts = [_parts(x.params["index"], _indices(x), new) for x in (node, inner)]
    for one, other, length in zip(*parts, new.context.spec(inner).shape, strict=False):
        if one is None or other is None:  # the parts that follow are of unknown axes
            return False
        if one == "axis" or other == "axis" or type(length) is not int:
            continue
        (base, offset), (other_base, other_offset) = one, other
        if base is other_base and length and (offset - other_offset) % length:
            return True
    return False


def _parts(template: Any, operands: tuple[Node, ...], new: NodeBuilder) -> list[Any]:
    """For each axis its number as a node and an offset, or "axis"; None behind unknown axes."""
    found: list[Any] = []
    for part in template if isinstance(template, tuple) else (template,):
        if type(part) is int:
            found.append((None, part))
        elif isinstance(part, slice):
            found.append("axis")
        elif isinstance(part, IndexSlot) and new.context.spec(operands[part.k]).dtype.kind in "iu":
            found.append(_sum_of(operands[part.k], new))
        else:  # an ellipsis, a new axis, or a mask of several axes
            break
    return [*found, None]


def _sum_of(node: Node, new: NodeBuilder) -> Any:
    """A number as the sum of a node and a known number; "axis" if it is an array.

    A sum in 64 bits that is beyond the largest number is no index, so it need not be considered.
    """
    context, offset = new.context, 0
    if not _is_number(node, new):
        return "axis"
    while True:
        number = context.number(node)
        if number is not None:
            return None, int(number) + offset
        if node.op.name not in ("add", "subtract"):
            return node, offset
        a, b = node.args
        if not (_is_number(a, new) and _is_number(b, new)):
            return node, offset
        number = context.number(b)
        if number is not None:
            node, offset = a, offset + int(number) * (1 if node.op.name == "add" else -1)
        elif node.op.name == "add" and (number := context.number(a)) is not None:
            node, offset = b, offset + int(number)
        else:
            return node, offset


def _is_number(node: Node, new: NodeBuilder) -> bool:
    spec = new.context.spec(node)
    return bool(spec.shape == () and spec.dtype == np.int64)


@rule(
    "stored again",
    "setitem",
    "getitem",
    operand=1,
    reason="the elements are there already",
    exact=True,
    example=(
        lambda x, i: setitem(x, getitem(x, i, index=IndexSlot(0)), i, index=IndexSlot(0)),
        np.arange(3.0),
        np.array([1, 1, 0]),
    ),
)
def stored_again(node: Node, new: NodeBuilder) -> Node | None:
    """The array, if the stored value was read from it at the same index."""
    array, value = node.args[:2]
    is_same = value.args[0] is array and _is_same_index(node, value)
    return array if is_same and isinstance(array, Node) else None


@rule(
    "read back from zeros",
    "getitem",
    "scatter",
    operand=0,
    reason="the value that was stored there",
    exact=True,
    example=(lambda v, i: scatter(v, i, index=IndexSlot(0), shape=(3,))[i], np.array(5.0), 1),
)
def read_from_zeros(node: Node, new: NodeBuilder) -> Node | None:
    """The stored value."""
    inner = node.args[0]
    return inner.args[0] if _is_same_index(node, inner) and _selects_each_once(node, new) else None


@rule(
    "written over",
    "setitem",
    "setitem",
    operand=0,
    reason="the second write replaces the first completely",
    exact=True,
    example=(lambda x, i, v: _written(_written(x, i, 7.0), i, v), np.arange(3.0), 1, 5.0),
)
def written_over(node: Node, new: NodeBuilder) -> Node | None:
    """The second write alone."""
    inner = node.args[0]
    if not _is_same_index(node, inner) or _reads(node.args[1], inner):
        return None
    second: Node = new(node.op, inner.args[0], *node.args[1:], **node.params)
    return second


def _reads(value: Node, array: Node) -> bool:
    """Whether a value is computed from an array, which then exists anyway.

    Two writes into one array are cheaper than two arrays with one write each.
    """
    pending, seen = [value], {value}
    while pending and len(seen) < _MAX_NODES:
        for a in pending.pop().inputs:
            if a is array:
                return True
            if a not in seen:
                seen.add(a)
                pending.append(a)
    return False


def _cleared(x: Any, t: Any, i: Any) -> Any:
    with derivation(1):
        index = {"index": IndexSlot(0)}
        return setitem(x, np.zeros(()), i, **index) + scatter(t, i, **index, shape=(3,))


@rule(
    "cleared",
    "add",
    "scatter",
    reason="one write; in derivatives the sign of a zero has no meaning",
    example=(_cleared, np.arange(3.0), np.array(5.0), 1),
)
def cleared(node: Node, new: NodeBuilder) -> Node | None:
    """The cotangent of an array of which some elements were overwritten, and used before."""
    for array, term in (node.args, node.args[::-1]):
        if (
            node.level
            and term.op is scatter
            and array.op is setitem
            and _is_same_index(array, term)
            and _selects_each_once(array, new)
            and new.context.number(array.args[1]) == 0
            and new.context.spec(array) == new.context.spec(node) == new.context.spec(term)
        ):
            stored: Node = new(array.op, array.args[0], *term.args, index=term.params["index"])
            return stored
    return None


@rule(
    "copied",
    "copy",
    reason="values of a graph are never written to",
    exact=True,
    example=(lambda x: x.copy() + 1.0, _A),
)
def copied(node: Node, new: NodeBuilder) -> Node | None:
    """The array itself."""
    operand: Node = node.args[0]
    return operand


def _is_whole(template: Any) -> bool:
    """Whether an index selects all elements in their order."""
    parts = template if isinstance(template, tuple) else (template,)
    return all(p is Ellipsis or (isinstance(p, slice) and p == slice(None)) for p in parts)


@rule(
    "whole read",
    "getitem",
    reason="x[:] has all elements of x",
    exact=True,
    example=(lambda x: x[:] + 1.0, _A),
)
def whole_read(node: Node, new: NodeBuilder) -> Node | None:
    """The array itself."""
    operand: Node = node.args[0]
    return operand if len(node.args) == 1 and _is_whole(node.params["index"]) else None


@rule(
    "whole store",
    "setitem",
    reason="x[:] = v replaces all elements",
    exact=True,
    example=(lambda x, v: _written(x, slice(None), v), _A, _A + 1.0),
)
def whole_store(node: Node, new: NodeBuilder) -> Node | None:
    """The value, if it has the shape and dtype of the array."""
    value = node.args[1]
    if len(node.args) != 2 or not isinstance(value, Node) or not _is_whole(node.params["index"]):
        return None
    stored_spec, result_spec = new.context.spec(value), new.context.spec(node)
    return (
        value
        if (stored_spec.shape, stored_spec.dtype) == (result_spec.shape, result_spec.dtype)
        else None
    )


RULES = (
    *(read_back, read_beside, read_from_zeros, stored_again, written_over, cleared, copied),
    *(whole_read, whole_store),
)
