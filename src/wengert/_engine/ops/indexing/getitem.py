"""Indexing: x[index] and x[index] = v, for all indices of NumPy; their transposes.

`getitem` reads and `scatter` adds into zeros: each is the transpose of the other, so repeated
indices accumulate.  `setitem` returns the array with some elements replaced; where an index is
repeated, NumPy keeps one of the writes, and only that one has a derivative.

Indices are represented as in indexing/template.py; shapes of indexed arrays are in
indexing/shapes.py.

In a first-order backward pass they do not allocate an array of the size of `x` for each node but
update a buffer owned by the pass (`vjp_into`), so a loop that reads or writes x[i] for every i
takes linear time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core import array_states
from wengert._engine.core.array_states import ArrayState
from wengert._engine.core.dispatch import Operation, apply
from wengert._engine.core.handle import Handle, dtype_of, is_traced, link, shape_of, value_of
from wengert._engine.core.node import Node
from wengert._engine.core.op import RuleContext, lookup, register
from wengert._engine.core.op_facts import SELECTS, Differentiation, Effects, facts
from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic.constraints import require_equal
from wengert._engine.core.symbolic.dim import spelled
from wengert._engine.core.uniform_arrays import zeros
from wengert._engine.kinds.linear_map import LinearMap, linear

from ..creation import positions
from ..joining import holds_handles, stacked
from . import masks, window_access
from .selection import Selection, selection, written_where
from .shapes import chosen_shape, is_one, length_pairs, of_last_stores, with_lengths
from .slice_ends import is_same_node
from .template import IndexSlot as IndexSlot
from .template import add_at, detached, is_unique
from .template import join_index as join_index
from .template import split_index as split_index
from .traced_slices import DynamicSlice, has_local, is_backward, split_local
from .windows import Window

if TYPE_CHECKING:
    from wengert._engine.core.op import CotangentBuffers, TangentBuffers
    from wengert._engine.core.types import Array, Operand, Size

# ---- reading -----------------------------------------------------------------------------------


class GetItem(LinearMap):
    """`x[index]`; its transpose is `scatter`."""

    differentiation = Differentiation(masks=True)
    zero_slope = SELECTS
    effects = Effects(value_dependent_shape=True)

    def __call__(self, *args: Any, **params: Any) -> Any:
        """Read; while a graph is built, known masks are converted to positions."""
        x, *operands = args
        if operands and any(map(is_traced, args)) and masks.has_masks(operands):
            template, expanded = masks.expanded(x, params["index"], operands, IndexSlot)
            return super().__call__(x, *expanded, index=template)
        return super().__call__(*args, **params)

    def _link(self, out: Handle, args: Sequence[Any], params: dict[str, Any]) -> None:
        if any(map(shape_of, args[1:])):  # NumPy returns a copy for index arrays
            return
        if not shape_of(out) and not _has_ellipsis(params["index"]):  # a number, not a view
            return
        super()._link(out, args, params)

    def vjp_into(self, node: Node, t: Any, buffers: CotangentBuffers) -> None:
        """Add the cotangent at the index."""
        x, *operands = node.args
        if buffers.wants(x):
            index = join_index(node.params["index"], [value_of(o) for o in operands])
            add_at(buffers.writable(x), index, t)

    def jvp_into(self, node: Node, dots: list[Array], tangents: TangentBuffers) -> Any:
        """The tangent at the index, copied because the array may be written to."""
        index = join_index(node.params["index"], [value_of(o) for o in node.args[1:]])
        return np.array(dots[0][index])[()]


def _has_ellipsis(template: Any) -> bool:
    return template is Ellipsis or (type(template) is tuple and Ellipsis in template)


def _getitem_oracle(x: Any, *operands: Any, index: Any) -> Any:
    numbers = np.arange(x.size).reshape(x.shape)
    chosen = numbers[join_index(index, operands)]
    return np.array([x.flat[k] for k in chosen.flat]).reshape(chosen.shape)


def getitem_run(x: Array, *operands: Any, index: Any) -> Any:
    """x[index]."""
    return np.asarray(x)[join_index(index, operands)]


getitem_run.__name__ = "getitem"
getitem = register(GetItem(getitem_run, view=True, oracle=_getitem_oracle))


@getitem.transpose
def _getitem_back(t: Array, x: Array, *operands: Any, index: Any) -> Any:
    return scatter(t, *operands, index=index, shape=shape_of(x))


@getitem.spec
def _(x: Spec, *operands: Any, index: Any) -> Any:
    return Spec(_shape_of_index(x, operands, index), x.dtype)


def _shape_of_index(x: Spec, operands: Sequence[Spec], index: Any) -> tuple[Any, ...]:
    """The shape of x[index], from specs."""
    parts = join_index(index, operands)
    return chosen_shape(x.shape, parts if isinstance(parts, tuple) else (parts,))


@getitem.put
def _getitem_put(base: Any, view: Any, *operands: Any, index: Any) -> Any:
    return replaced(base, view, index, operands)


def _indices(rng: np.random.Generator) -> Iterator[tuple[tuple[int, ...], Any, tuple[Any, ...]]]:
    """Shape, template and operands of some indices."""
    yield (4,), 2, ()
    yield (4,), slice(None, None, -2), ()
    yield (2, 3), (Ellipsis, None, 1), ()
    yield (2, 3), (slice(0, 0),), ()
    yield (4,), IndexSlot(0), (np.array([3, 0, 0, -4]),)
    yield (3, 4), (IndexSlot(0), slice(1, 3)), (np.array([[0, 2], [2, 1]]),)
    yield (
        (3, 2, 4),
        (IndexSlot(0), slice(None), IndexSlot(1)),
        (np.array([0, 2]), np.array([1, -1])),
    )
    yield (2, 3), IndexSlot(0), (np.ones((2, 3), bool),)
    yield (), (), ()


@getitem.examples
def _(rng: np.random.Generator) -> Any:
    for shape, template, operands in _indices(rng):
        yield (rng.normal(size=shape), *operands), {"index": template}


def _scatter_oracle(t: Array, *operands: Any, index: Any, shape: Any) -> Any:
    z = np.zeros(shape)
    numbers = np.arange(z.size).reshape(shape)[join_index(index, operands)]
    for k, v in zip(np.ravel(numbers), np.ravel(t), strict=True):
        z.flat[k] += v
    return z


@facts(zero_slope=SELECTS)
@linear(oracle=_scatter_oracle)
def scatter(t: Array, *operands: Any, index: Any, shape: tuple[int, ...]) -> Any:
    """Zeros of shape `shape`, with t added at the index; repeated indices accumulate."""
    t = np.asarray(t)
    z = np.zeros(shape, t.dtype)
    index = join_index(index, operands)
    if is_unique(index):
        z[index] = t
    else:
        add_at(z, index, t)
    return z


@scatter.transpose
def _scatter_back(t: Array, x: Array, *operands: Any, index: Any, shape: tuple[Size, ...]) -> Any:
    return getitem(t, *operands, index=index)


@scatter.spec
def _(t: Spec, *operands: Any, index: Any, shape: tuple[Size, ...]) -> Any:
    return Spec(tuple(shape), t.dtype)


scatter.differentiation = Differentiation(masks=True)


@scatter.examples
def _(rng: np.random.Generator) -> Any:
    for shape, template, operands in _indices(rng):
        t = rng.normal(size=np.shape(np.zeros(shape)[join_index(template, operands)]))
        yield (t, *operands), {"index": template, "shape": shape}


# ---- writing -----------------------------------------------------------------------------------


class SetItem(Operation):
    """`x` with the elements at an index replaced by `v`; linear in both."""

    kind = "indexing"
    selectors = slice(2, None)
    differentiation = Differentiation(masks=True)

    def __call__(self, *args: Any, **params: Any) -> Any:
        """Write; while a graph is built, known masks are converted to positions."""
        x, v, *operands = args
        known = not any(map(is_traced, operands))
        if operands and known and any(map(is_traced, (x, v))) and masks.has_masks(operands):
            template, expanded = masks.expanded(x, params["index"], operands, IndexSlot)
            return super().__call__(x, v, *expanded, index=template)
        return super().__call__(*args, **params)

    def updated_operand(self, node: Node, output: int) -> int | None:
        """The array."""
        return 0

    def infer(self, specs: Sequence[Any], params: dict[str, Any]) -> Spec:
        """The spec of the array; the value must broadcast to the indexed shape."""
        x, v, *operands = specs
        if not any(o.dtype.kind == "b" for o in operands):
            indexed = _shape_of_index(x, operands, params["index"])
            reason = f"value of shape {spelled(v.shape)} assigned to shape {spelled(indexed)}"
            for n, m in length_pairs(v.shape, indexed):
                if not is_one(n):
                    require_equal(n, m, reason)
        return Spec(x.shape, x.dtype)

    def run(self, x: Array, v: Operand, *operands: Any, index: Any) -> Any:
        """A copy of x with x[index] = v."""
        out = np.array(x)
        out[join_index(index, operands)] = v
        return out

    @staticmethod
    def oracle(x: Array, v: Array, *operands: Any, index: Any) -> Any:
        """Element by element, in the order of the index."""
        out = np.array(x)
        chosen = np.arange(out.size).reshape(out.shape)[join_index(index, operands)]
        for k, value in zip(
            np.ravel(chosen), np.ravel(np.broadcast_to(v, np.shape(chosen))), strict=True
        ):
            out.flat[k] = value
        return out

    def vjp(self, node: Node, t: Any, out: Any, inputs: Any, ctx: RuleContext) -> Any:
        """For x, zero at the index; for v, the elements at the index whose writes took effect."""
        _, v, *operands = inputs
        index = node.params["index"]
        zero = np.zeros((), t.dtype)[()]
        x_bar = self(t, zero, *operands, index=index) if ctx.wants(node.args[0]) else None
        v_bar = None
        if ctx.wants(node.args[1]):
            depth = len(shape_of(v))
            if not _is_one_element(operands) and not depth and any(map(is_traced, (t, *operands))):
                none = zeros(Spec(node.spec.shape, np.dtype(bool)))
                is_replaced = self(none, np.True_, *operands, index=index)
                v_bar = lookup("sum")(lookup("where")(value_of(is_replaced), t, 0.0))
            else:
                v_bar = getitem(t, *operands, index=index)
                v_bar = self._of_last_stores(v_bar, node.spec.shape, operands, index)
                v_bar = _with_ndim(with_lengths(v_bar, shape_of(v)), depth)
        return [x_bar, v_bar, *([None] * len(operands))]

    def _of_last_stores(self, v_bar: Any, shape: Any, operands: Any, index: Any) -> Any:
        """`of_last_stores`; as nodes of a graph if the index is unknown."""
        if not any(map(is_traced, (v_bar, *operands))):
            return of_last_stores(v_bar, shape, join_index(index, [value_of(o) for o in operands]))
        if _is_one_element(operands) or not any(dtype_of(o).kind in "iu" for o in operands):
            return v_bar
        writes = positions(math.prod(v_bar.shape)).reshape(v_bar.shape)
        first = zeros(Spec(shape, np.dtype(np.intp)))
        last = self(first, writes, *map(value_of, operands), index=index)
        return lookup("where")(getitem(last, *operands, index=index) == writes, v_bar, 0.0)

    def vjp_into(self, node: Node, t: Any, buffers: CotangentBuffers) -> None:
        """The vjp in place: reuse the cotangent, and set the replaced elements to zero."""
        x, v, *operands = node.args
        index = join_index(node.params["index"], [value_of(o) for o in operands])
        if buffers.wants(v):
            buffers.add(
                v, _with_ndim(of_last_stores(np.array(t[index]), t.shape, index), len(v.spec.shape))
            )
        if buffers.wants(x):
            t = buffers.take(node, t)
            t[index] = 0
            buffers.donate(x, t)

    def jvp(self, node: Node, dots: Any, out: Any, inputs: Any, ctx: RuleContext) -> Any:
        """The same replacement of the tangents."""
        spec = node.spec
        x_dot, v_dot = dots[0], dots[1]
        if x_dot is None:
            x_dot = zeros(spec)
        if v_dot is None:
            v_dot = np.zeros((), spec.dtype)[()]
        return self(x_dot, _real_part(v_dot, spec), *inputs[2:], index=node.params["index"])

    def jvp_into(self, node: Node, dots: list[Array | None], tangents: TangentBuffers) -> Any:
        """The jvp, in the memory of the operand's tangent if that is no longer needed."""
        x, _, *operands = node.args
        spec = node.spec
        index = join_index(node.params["index"], [value_of(o) for o in operands])
        v_dot = 0 if dots[1] is None else _real_part(dots[1], spec)
        if dots[0] is None:
            x_dot = np.zeros(spec.shape, spec.dtype)
        else:
            dots.clear()
            x_dot = tangents.take(x, node)
        x_dot[index] = v_dot
        return x_dot


def _real_part(v_dot: Array, spec: Spec) -> Any:
    """`v_dot`, without its imaginary part if it is written to a real array."""
    return v_dot.real if spec.dtype.kind != "c" and v_dot.dtype.kind == "c" else v_dot


setitem = register(SetItem("setitem", "x with the elements at an index replaced by v."))


@setitem.examples
def _(rng: np.random.Generator) -> Any:
    for shape, template, operands in _indices(rng):
        part = np.zeros(shape)[join_index(template, operands)]
        yield (rng.normal(size=shape), rng.normal(size=part.shape), *operands), {"index": template}
        yield (rng.normal(size=shape), rng.normal(size=()), *operands), {"index": template}


def _with_ndim(v_bar: Array, ndim: int) -> Any:
    """`v_bar` with `ndim` axes: assignment drops leading axes of length one."""
    missing = ndim - v_bar.ndim
    return v_bar if missing <= 0 else v_bar.reshape((1,) * missing + v_bar.shape)


def _is_one_element(operands: Sequence[Any]) -> bool:
    """Whether all index operands are integers, so that no element is written twice."""
    return all(shape_of(o) == () and dtype_of(o).kind in "iu" for o in operands)


def read(x: Any, index: Any) -> Any:
    """x[index] for any index of NumPy, with or without handles."""
    try:
        template, operands = split_index(index, x)
    except DynamicSlice:
        return window_access.read_window(x, index)
    if type(template) is not int and has_local(template):
        fixed, slices = split_local(template, operands)
        if is_backward(template):
            return read(getitem(x, *operands, index=fixed) if operands else read(x, fixed), slices)
    if operands and any(map(window_access.is_unknown_mask, operands)):
        selected = selection(x, template, operands)
        return window_access.read_window(x, index) if selected is None else selected
    if operands or not isinstance(x, Handle):
        return getitem(x, *operands, index=template)
    params = {"index": template}
    out = _read_unlinked(x, params)
    if type(out.node.value) is np.ndarray or (is_traced(out) and _is_array(out, template)):
        link(
            out,
            x,
            lambda base: _read_unlinked(base, params),
            lambda base, view: replaced(base, view, template, ()),
            shares=True,
        )
    return out


def _is_array(part: Handle, template: int | slice | tuple[Any, ...] | None) -> bool:
    """Whether NumPy returns an array that shares memory, rather than a number."""
    parts = template if isinstance(template, tuple) else (template,)
    return bool(shape_of(part)) or any(p is Ellipsis for p in parts)


def _read_unlinked(x: Handle, params: dict[str, Any]) -> Any:
    """A basic index of a handle, not linked as a view."""
    out = apply(getitem, (x,), params)
    part = out.node.value
    whole = x.node.value
    if type(part) is not np.ndarray or type(whole) is not np.ndarray:
        return out
    if whole.nbytes > array_states.LIMIT and part.nbytes * 4 <= whole.nbytes:
        out.node.value = detached(part)
    return out


def is_already_stored(x: Handle, index: Any, v: Handle) -> bool:
    """Whether `v` is the view x[index], already modified: `x[i] += 1` assigns it to itself."""
    if getattr(v, "_link", (None,))[0] is not x:
        return False
    node = v.node
    if node.op is not getitem or node.args[0] is not x.node:
        return False
    template, operands = split_index(index, x)
    nodes = [o.node if isinstance(o, Handle) else None for o in operands]
    same = len(nodes) + 1 == len(node.args) and all(map(is_same_node, nodes, node.args[1:]))
    return same and node.params["index"] == template


def written(x: Any, index: Any, v: Any) -> Any:
    """`x` after x[index] = v, as a new value."""
    try:
        template, operands = split_index(index, x)
    except DynamicSlice:
        return window_access.write_window(x, index, v)
    if operands and any(map(window_access.is_unknown_mask, operands)):
        return written_where(x, index, v, template, operands)
    if isinstance(v, Selection):
        v = v.compacted()
    if isinstance(v, Window):
        v = window_access.write_into(x, index, v)
    if type(template) is not int and has_local(template):
        fixed, slices = split_local(template, operands)
        if fixed is not None and is_backward(template):
            row = written(getitem(x, *operands, index=fixed), slices, v)
            return replaced(x, row, fixed, operands)
    if type(v) is not float and isinstance(v, list | tuple):
        v = stacked(v) if holds_handles(v) else np.asarray(v)
    if operands and masks.has_masks(operands) and any(map(is_traced, (x, v, *operands))):
        template, operands = masks.expanded(x, template, operands, IndexSlot)
    return replaced(x, v, template, operands)


def replaced(x: Any, v: Any, template: Any, operands: Any) -> Any:
    """`setitem`, in the memory of `x` if it has no other use (core/array_states.py)."""
    args, params = (x, v, *operands), {"index": template}
    node = x.node
    if not array_states.overwritable(node):
        return apply(setitem, args, params)
    states: list[ArrayState] = []

    def overwrite(array: Any, v: Any, *operands: Any, index: Any) -> Any:
        position = join_index(index, [np.array(o) for o in operands])
        old = np.array(array[position])
        states.append(array_states.release_value(node, array, position, old))
        try:
            array[position] = v
        except Exception:
            array[position] = old
            array_states.restore_value(node, array)
            raise
        return array

    out = apply(setitem, args, params, overwrite)
    if states:  # empty while a graph is built
        out.node.version = states[0]
    return out
