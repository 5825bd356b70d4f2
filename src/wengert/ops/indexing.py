"""Indexing: x[index] and x[index] = v, for every index that NumPy knows; their transposes.

`getitem` reads, `scatter` adds into zeros: each is the transpose of the other, so duplicate
indices accumulate.  `setitem` gives the array with some elements replaced; where an index repeats,
NumPy keeps one of the writes, and only that one has a derivative.

The parts of an index that are arrays are operands (without derivative); ints, slices, ellipsis and
None are the static template.

In a first-order reverse sweep none of them makes an array of the size of `x` for each line: they
add into, or zero out, a buffer that the sweep owns (`vjp_into`), so a loop that reads or writes
x[i] for every i is linear in its length.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..core import versions
from ..core.apply import Operation, apply
from ..core.handle import Handle, link, value_of
from ..core.node import Node
from ..core.op import register
from ..errors import DtypeError, at, user_line
from ..kinds.linear import Linear, linear
from .joining import holds_handles, stacked


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


# ---- indices -----------------------------------------------------------------------------------


def split_index(index: Any) -> tuple[Any, tuple[Any, ...]]:
    """An index as (template, operands)."""
    if type(index) is int or index is None or index is Ellipsis:
        return index, ()
    if type(index) is tuple and all(type(part) is int for part in index):
        return index, ()
    parts = index if isinstance(index, tuple) else (index,)
    template: list[Any] = []
    operands: list[Any] = []
    for part in parts:
        if isinstance(part, slice):
            part = slice(*(_plain_int(b) for b in (part.start, part.stop, part.step)))
        elif isinstance(part, Handle | list | np.ndarray | bool | np.bool_):
            template.append(Hole(len(operands)))
            operands.append(_whole(part))
            continue
        elif isinstance(part, np.generic):
            part = part.item()
        template.append(part)
    return (tuple(template) if isinstance(index, tuple) else template[0]), tuple(operands)


def _plain_int(bound: Any) -> Any:
    return value_of(bound).item() if isinstance(bound, Handle) else bound


def _whole(part: Any) -> Any:
    """An array of an index, if it has positions or truth values; True is one without axes."""
    if isinstance(part, list):
        part = stacked(part)
    if not isinstance(part, Handle):
        part = np.asarray(part)
    dtype = np.asarray(value_of(part)).dtype
    if dtype.kind not in "biu":
        if np.size(value_of(part)) == 0 and not isinstance(part, Handle):
            return part.astype(np.intp)
        raise DtypeError(
            f"an index of dtype {dtype}: positions are whole numbers, or a boolean mask. Cast it, "
            f"index.astype(int){at(user_line())}."
        )
    return part


def join_index(template: Any, operands: Any) -> Any:
    """The index that NumPy understands."""
    if not operands:
        return template
    if isinstance(template, tuple):
        return tuple(operands[p.k] if isinstance(p, Hole) else p for p in template)
    return operands[template.k]


def is_unique(index: Any) -> bool:
    """Whether no element can be chosen twice: no integer arrays in the index."""
    parts = index if isinstance(index, tuple) else (index,)
    return not any(isinstance(p, np.ndarray) and p.dtype != bool for p in parts)


def add_at(z: np.ndarray[Any, Any], index: Any, t: Any) -> None:
    """``z[index] += t``, where what meets at a repeated index is summed."""
    if type(index) is int or is_unique(index):
        z[index] += t
    elif z.ndim > 1 and z.flags.c_contiguous and np.size(t) * 8 > z.size:
        # NumPy's ufunc.at is several times faster along one axis than along more.
        positions = np.arange(z.size).reshape(z.shape)[index]
        np.add.at(z.reshape(-1), positions.ravel(), np.broadcast_to(t, positions.shape).ravel())
    else:
        np.add.at(z, index, t)


# ---- reading -----------------------------------------------------------------------------------


class GetItem(Linear):
    """`x[index]`; its transpose is `scatter`."""

    def vjp_into(self, node: Node, t: Any, buffers: Any) -> None:
        """Add the cotangent where it was read from."""
        x, *operands = node.args
        if buffers.wants(x):
            index = join_index(node.params["index"], [value_of(o) for o in operands])
            add_at(buffers.own(x), index, t)

    def jvp_into(self, node: Node, dots: Any, tangents: Any) -> Any:
        """The tangent where it is read, apart from the array, which may be written to."""
        index = join_index(node.params["index"], [value_of(o) for o in node.args[1:]])
        return np.array(dots[0][index])[()]


def _getitem_oracle(x, *operands, index):
    numbers = np.arange(x.size).reshape(x.shape)
    chosen = numbers[join_index(index, operands)]
    return np.array([x.flat[k] for k in chosen.flat]).reshape(chosen.shape)


def getitem_run(x, *operands, index):
    """x[index]."""
    return np.asarray(x)[join_index(index, operands)]


getitem_run.__name__ = "getitem"
getitem = register(GetItem(getitem_run, view=True, oracle=_getitem_oracle))


@getitem.transpose
def _getitem_back(t, x, *operands, index):
    return scatter(t, *operands, index=index, shape=np.shape(value_of(x)))


@getitem.put
def _getitem_put(base, view, *operands, index):
    return replaced(base, view, index, operands)


def _indices(rng: np.random.Generator) -> Iterator[tuple[tuple[int, ...], Any, tuple[Any, ...]]]:
    """Shape, template and operands of some indices."""
    yield (4,), 2, ()
    yield (4,), slice(None, None, -2), ()
    yield (2, 3), (Ellipsis, None, 1), ()
    yield (2, 3), (slice(0, 0),), ()
    yield (4,), Hole(0), (np.array([3, 0, 0, -4]),)
    yield (3, 4), (Hole(0), slice(1, 3)), (np.array([[0, 2], [2, 1]]),)
    yield (3, 2, 4), (Hole(0), slice(None), Hole(1)), (np.array([0, 2]), np.array([1, -1]))
    yield (2, 3), Hole(0), (np.ones((2, 3), bool),)
    yield (), (), ()


@getitem.examples
def _(rng):
    for shape, template, operands in _indices(rng):
        yield (rng.normal(size=shape), *operands), {"index": template}


def _scatter_oracle(t, *operands, index, shape):
    z = np.zeros(shape)
    numbers = np.arange(z.size).reshape(shape)[join_index(index, operands)]
    for k, v in zip(np.ravel(numbers), np.ravel(t), strict=True):
        z.flat[k] += v
    return z


@linear(oracle=_scatter_oracle)
def scatter(t, *operands, index, shape):
    """Zeros of that shape, with t added at the index; what meets there is summed."""
    t = np.asarray(t)
    z = np.zeros(shape, t.dtype)
    index = join_index(index, operands)
    if is_unique(index):
        z[index] = t
    else:
        add_at(z, index, t)
    return z


@scatter.transpose
def _scatter_back(t, x, *operands, index, shape):
    return getitem(t, *operands, index=index)


@scatter.examples
def _(rng):
    for shape, template, operands in _indices(rng):
        t = rng.normal(size=np.shape(np.zeros(shape)[join_index(template, operands)]))
        yield (t, *operands), {"index": template, "shape": shape}


# ---- writing -----------------------------------------------------------------------------------


class SetItem(Operation):
    """`x` with the elements at an index replaced by `v`; linear in both."""

    kind = "indexing"

    def run(self, x: Any, v: Any, *operands: Any, index: Any) -> Any:  # type: ignore[override]
        """A copy of x with x[index] = v."""
        out = np.array(x)
        out[join_index(index, operands)] = v
        return out

    @staticmethod
    def oracle(x: Any, v: Any, *operands: Any, index: Any) -> Any:
        """One element after the other, in the order of the index."""
        out = np.array(x)
        chosen = np.arange(out.size).reshape(out.shape)[join_index(index, operands)]
        for k, value in zip(
            np.ravel(chosen), np.ravel(np.broadcast_to(v, np.shape(chosen))), strict=True
        ):
            out.flat[k] = value
        return out

    def vjp(self, node: Node, t: Any, out: Any, inputs: Any, sweep: Any) -> Any:
        """Zero at the index for x; what stands at the index, if it was kept, for v."""
        _, v, *operands = inputs
        index = node.params["index"]
        zero = np.zeros((), t.dtype)[()]
        x_bar = self(t, zero, *operands, index=index) if sweep.wants(node.args[0]) else None
        v_bar = None
        if sweep.wants(node.args[1]):
            plain = join_index(index, [value_of(o) for o in operands])
            v_bar = _kept(getitem(t, *operands, index=index), node.spec.shape, plain)
            v_bar = _as_deep(v_bar, np.ndim(value_of(v)))
        return [x_bar, v_bar, *([None] * len(operands))]

    def vjp_into(self, node: Node, t: Any, buffers: Any) -> None:
        """The same, by taking the cotangent over and clearing what was replaced."""
        x, v, *operands = node.args
        index = join_index(node.params["index"], [value_of(o) for o in operands])
        if buffers.wants(v):
            buffers.add(v, _as_deep(_kept(np.array(t[index]), t.shape, index), len(v.spec.shape)))
        if buffers.wants(x):
            t = buffers.taken(node, t)
            t[index] = 0
            buffers.give(x, t)

    def jvp(self, node: Node, dots: Any, out: Any, inputs: Any, sweep: Any) -> Any:
        """The same replacement among the tangents."""
        spec = node.spec
        x_dot, v_dot = dots[0], dots[1]
        if x_dot is None:
            x_dot = np.zeros(spec.shape, spec.dtype)
        if v_dot is None:
            v_dot = np.zeros((), spec.dtype)[()]
        return self(x_dot, _real_if(v_dot, spec), *inputs[2:], index=node.params["index"])

    def jvp_into(self, node: Node, dots: Any, tangents: Any) -> Any:
        """The same, in the memory of the operand's tangent if nobody reads that any more."""
        x, _, *operands = node.args
        spec = node.spec
        index = join_index(node.params["index"], [value_of(o) for o in operands])
        v_dot = 0 if dots[1] is None else _real_if(dots[1], spec)
        if dots[0] is None:
            x_dot = np.zeros(spec.shape, spec.dtype)
        else:
            dots.clear()
            x_dot = tangents.taken(x, node)
        x_dot[index] = v_dot
        return x_dot


def _real_if(v_dot: Any, spec: Any) -> Any:
    """A complex value written into a real array leaves its real part."""
    return v_dot.real if spec.dtype.kind != "c" and v_dot.dtype.kind == "c" else v_dot


setitem = register(SetItem("setitem", "x with the elements at an index replaced by v."))


@setitem.examples  # type: ignore[attr-defined]
def _(rng):
    for shape, template, operands in _indices(rng):
        part = np.zeros(shape)[join_index(template, operands)]
        yield (rng.normal(size=shape), rng.normal(size=part.shape), *operands), {"index": template}
        yield (rng.normal(size=shape), rng.normal(size=()), *operands), {"index": template}


def _as_deep(v_bar: Any, ndim: int) -> Any:
    """With as many axes as the value had: NumPy drops leading ones when it assigns."""
    missing = ndim - v_bar.ndim
    return v_bar if missing <= 0 else v_bar.reshape((1,) * missing + v_bar.shape)


def _kept(v_bar: Any, shape: tuple[int, ...], index: Any) -> Any:
    """The cotangent of what was written, zero where an index repeats and another write won."""
    if is_unique(index):
        return v_bar
    number = np.full(shape, -1, np.intp)
    writes = np.arange(number[index].size).reshape(number[index].shape)
    number[index] = writes
    won = number[index] == writes
    return v_bar if won.all() else np.where(won, v_bar, 0.0)


def read(x: Any, index: Any) -> Any:
    """x[index] for any index of NumPy's, with handles in it or not."""
    template, operands = split_index(index)
    if operands or not isinstance(x, Handle):
        return getitem(x, *operands, index=template)
    params = {"index": template}
    out = _part(x, params)
    if type(out.node.value) is np.ndarray:
        link(
            out,
            x,
            lambda base: _part(base, params),
            lambda base, view: replaced(base, view, template, ()),
            shares=True,
        )
    return out


def _part(x: Handle, params: dict[str, Any]) -> Any:
    """A basic index of a handle, not linked."""
    out = apply(getitem, (x,), params)
    part = out.node.value
    if type(part) is np.ndarray and part.nbytes * 4 <= x.node.value.nbytes > versions.LIMIT:
        out.node.value = _detached(part)
    return out


def _detached(part: np.ndarray[Any, Any]) -> Any:
    """A copy of a small view, so that it does not hold on to the memory of the large array.

    On the strides depends what is a view of it in turn; those of more than one axis that are not
    contiguous stay as they are.
    """
    if part.flags.c_contiguous:
        return part.copy()
    if part.ndim != 1:
        return part
    gap = np.empty(2 * part.size, part.dtype)[:: 2 if part.strides[0] > 0 else -2]
    gap[...] = part
    return gap


def stands_already(x: Handle, index: Any, v: Handle) -> bool:
    """Whether `v` is the view x[index], which has been written to: x[i] += 1 assigns it again."""
    if getattr(v, "_link", (None,))[0] is not x:
        return False
    node = v.node
    at_home = node.op is getitem and len(node.args) == 1 and node.args[0] is x.node
    return at_home and node.params["index"] == split_index(index)[0]


def written(x: Any, index: Any, v: Any) -> Any:
    """`x` after x[index] = v, as a new value."""
    template, operands = split_index(index)
    if isinstance(v, list | tuple):
        v = stacked(v) if holds_handles(v) else np.asarray(v)
    return replaced(x, v, template, operands)


def replaced(x: Any, v: Any, template: Any, operands: Any) -> Any:
    """`setitem`, in the memory of `x` where nobody else needs it (core/versions.py)."""
    args, params = (x, v, *operands), {"index": template}
    node = x.node
    if not versions.overwritable(node):
        return apply(setitem, args, params)
    states: list[versions.State] = []

    def overwrite(array: Any, v: Any, *operands: Any, index: Any) -> Any:
        place = join_index(index, [np.array(o) for o in operands])
        old = np.array(array[place])
        states.append(versions.hand_over(node, array, place, old))
        try:
            array[place] = v
        except Exception:
            array[place] = old
            versions.take_back(node, array)
            raise
        return array

    out = apply(setitem, args, params, overwrite)
    out.node.version = states[0]
    return out
