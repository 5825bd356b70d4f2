"""Indexing: x[index] and x[index] = v, for every index that NumPy knows; their transposes.

`getitem` reads, `scatter` adds into zeros: each is the transpose of the other, so duplicate
indices accumulate.  `setitem` gives the array with some elements replaced; where an index repeats,
NumPy keeps one of the writes, and only that one has a derivative.

The parts of an index that are arrays are operands (without derivative); ints, slices, ellipsis and
None are the static template.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.apply import Operation, apply
from ..core.handle import Handle, value_of
from ..core.node import Node
from ..core.op import register
from ..errors import DtypeError, at, user_line
from ..kinds.linear import linear


class Hole:
    """Stands in an index template where operand number `k` belongs."""

    __slots__ = ("k",)

    def __init__(self, k: int) -> None:
        self.k = k

    def __repr__(self) -> str:
        return f"#{self.k}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Hole) and other.k == self.k

    def __hash__(self) -> int:
        return hash((Hole, self.k))


def split_index(index: Any) -> tuple[Any, tuple[Any, ...]]:
    """An index as (template, operands)."""
    if isinstance(index, int | slice) or index is None or index is Ellipsis:
        return index, ()
    parts = index if isinstance(index, tuple) else (index,)
    template, operands = [], []
    for part in parts:
        if isinstance(part, slice):
            part = slice(*(_plain_int(b) for b in (part.start, part.stop, part.step)))
        elif isinstance(part, Handle):
            template.append(Hole(len(operands)))
            operands.append(_whole(part))
            continue
        elif isinstance(part, list | np.ndarray):
            template.append(Hole(len(operands)))
            operands.append(_whole(np.asarray(part)))
            continue
        elif isinstance(part, np.generic):
            part = part.item()
        template.append(part)
    return (tuple(template) if isinstance(index, tuple) else template[0]), tuple(operands)


def _plain_int(bound: Any) -> Any:
    return value_of(bound).item() if isinstance(bound, Handle) else bound


def _whole(part: Any) -> Any:
    dtype = np.asarray(value_of(part)).dtype
    if dtype.kind not in "biu":
        if np.asarray(value_of(part)).size == 0 and not isinstance(part, Handle):
            return part.astype(np.intp)
        raise DtypeError(
            f"an index of dtype {dtype}: positions are whole numbers, or a boolean mask. Cast it, "
            f"index.astype(int){at(user_line())}."
        )
    return part


def join_index(template: Any, operands: Any) -> Any:
    """The index that NumPy understands."""
    if isinstance(template, tuple):
        return tuple(operands[p.k] if isinstance(p, Hole) else p for p in template)
    return operands[template.k] if isinstance(template, Hole) else template


def is_unique(index: Any) -> bool:
    """Whether no element can be chosen twice: no integer arrays in the index."""
    parts = index if isinstance(index, tuple) else (index,)
    return not any(isinstance(p, np.ndarray) and p.dtype != bool for p in parts)


@linear(view=True)
def getitem(x, *operands, index):
    """x[index]."""
    return np.asarray(x)[join_index(index, operands)]


@getitem.transpose
def _getitem_back(t, x, *operands, index):
    return scatter(t, *operands, index=index, shape=tuple(x.shape))


@getitem.put
def _getitem_put(base, view, *operands, index):
    return setitem(base, view, *operands, index=index)


@linear
def scatter(t, *operands, index, shape):
    """Zeros of that shape, with t added at the index; what meets there is summed."""
    t = np.asarray(t)
    z = np.zeros(shape, t.dtype)
    index = join_index(index, operands)
    if is_unique(index):
        z[index] = t
    else:
        np.add.at(z, index, t)
    return z


@scatter.transpose
def _scatter_back(t, x, *operands, index, shape):
    return getitem(t, *operands, index=index)


class SetItem(Operation):
    """`x` with the elements at an index replaced by `v`; linear in both."""

    kind = "indexing"

    def run(self, x: Any, v: Any, *operands: Any, index: Any) -> Any:  # type: ignore[override]
        """A copy of x with x[index] = v."""
        out = np.array(x)
        out[join_index(index, operands)] = v
        return out

    def vjp(self, node: Node, t: Any, out: Any, inputs: Any, sweep: Any) -> Any:
        """Zero at the index for x; what stands at the index, if it was kept, for v."""
        x, v, *operands = inputs
        index = node.params["index"]
        zero = np.zeros((), t.dtype)[()]
        x_bar = self(t, zero, *operands, index=index) if sweep.wants(node.args[0]) else None
        v_bar = None
        if sweep.wants(node.args[1]):
            v_bar = getitem(t, *operands, index=index)
            kept = _kept(np.shape(value_of(x)), join_index(index, [value_of(o) for o in operands]))
            if kept is not None:
                v_bar = v_bar * kept
        return [x_bar, v_bar, *([None] * len(operands))]

    def jvp(self, node: Node, dots: Any, out: Any, inputs: Any, sweep: Any) -> Any:
        """The same replacement among the tangents."""
        _, v, *operands = inputs
        x_dot, v_dot = dots[0], dots[1]
        if x_dot is None:
            x_dot = np.zeros(np.shape(value_of(out)), value_of(out).dtype)
        if v_dot is None:
            v_dot = np.zeros((), value_of(out).dtype)[()]
        return self(x_dot, v_dot, *operands, index=node.params["index"])


setitem = register(SetItem("setitem", "x with the elements at an index replaced by v."))


def _kept(shape: tuple[int, ...], index: Any) -> Any:
    """Which writes survive where an index repeats; None when none can repeat."""
    if is_unique(index):
        return None
    number = np.full(shape, -1, np.intp)
    writes = np.arange(number[index].size).reshape(number[index].shape)
    number[index] = writes
    return number[index] == writes


def read(x: Any, index: Any) -> Any:
    """x[index] for any index of NumPy's, with handles in it or not."""
    template, operands = split_index(index)
    return getitem(x, *operands, index=template)


def written(x: Any, index: Any, v: Any) -> Any:
    """`x` after x[index] = v, as a new value."""
    template, operands = split_index(index)
    if isinstance(v, list | tuple):
        v = np.asarray(v)
    return apply(setitem, (x, v, *operands), {"index": template})
