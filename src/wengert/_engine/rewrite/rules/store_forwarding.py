"""Store forwarding: stored elements are not read back, and dead stores are removed.

Loops write to positions of arrays that they carry, and their derivatives clear and add to the same
positions.  Each of these is a separate write; often one is enough.

    read back      x[i] after x[i] = v is v
    written over   the second of two writes to the same positions replaces the first
    whole          x[:] is x, and x[:] = v is v
    copied         a copy of a value is the value itself, because values of a graph never change
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.node import Node
from wengert._engine.ops.indexing.getitem import scatter
from wengert._engine.ops.indexing.template import IndexSlot

from ..rule import NodeBuilder, rule

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
    """The stored value, if it has the shape and dtype of the result."""
    inner = node.args[0]
    if not _is_same_index(node, inner) or not _selects_each_once(node, new):
        return None
    value = inner.args[1]
    stored_spec, result_spec = new.context.spec(value), new.context.spec(node)
    return (
        value
        if (stored_spec.shape, stored_spec.dtype) == (result_spec.shape, result_spec.dtype)
        else None
    )


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


RULES = (read_back, read_from_zeros, written_over, copied, whole_read, whole_store)
