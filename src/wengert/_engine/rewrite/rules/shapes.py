"""Shape rules: fewer rearrangements of elements, and broadcasts as late as possible.

    merged     transpose of transpose, transpose of stack, reshape of reshape, broadcast of
               broadcast, cast of cast
    removed    operations that change neither the shape nor the order of elements
    absorbed   a broadcast by an operation that broadcasts implicitly; a transpose by the subscripts
               of a contraction
    moved      broadcasts and transposes to after elementwise operations, which then compute less;
               there they can be merged with others
    counted    the sum of n equal numbers is n times the number

All rules except those for sums are exact: elements are rearranged, not computed differently.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.node import Node
from wengert._engine.core.symbolic.constraints import broadcast, repeated_axes
from wengert._engine.core.tracing import size_node
from wengert._engine.kinds.reduction import axes_of
from wengert._engine.ops.casts import sum_to

from ..driver import can_represent
from ..rule import NodeBuilder, rule

if TYPE_CHECKING:
    from wengert._engine.core.types import Size

_A = np.arange(6.0).reshape(2, 3)
SAME_ORDER = ("reshape", "expand_dims", "squeeze")


# ---- removed and merged ------------------------------------------------------------------------


@rule(
    "moves nothing",
    (*SAME_ORDER, "broadcast_to", "sum_to", "transpose"),
    reason="the shape and the order of the elements do not change",
    exact=True,
    example=(lambda x: np.broadcast_to(np.reshape(x, (2, 3)).sum(0), (3,)), _A),
)
def nothing(node: Node, new: NodeBuilder) -> Node | None:
    """The operand itself."""
    x = node.inputs[0]
    if (
        new.context.spec(x).shape != new.context.spec(node).shape
        or node.params.get("order", "C") != "C"
    ):
        return None
    if node.op.name == "transpose" and not _is_identity(_axes(node, new)):
        return None
    return x


def _axes(node: Node, new: NodeBuilder) -> tuple[int, ...]:
    ndim = len(new.context.spec(node).shape)
    axes = node.params.get("axes")
    return tuple(range(ndim))[::-1] if axes is None else tuple(a % ndim for a in axes)


def _is_identity(axes: tuple[int, ...]) -> bool:
    return axes == tuple(range(len(axes)))


@rule(
    "transpose of transpose",
    "transpose",
    "transpose",
    reason="the composition of two permutations is one",
    exact=True,
    example=(lambda x: np.transpose(x[None], (2, 0, 1)).transpose(1, 0, 2), _A),
)
def transposes(node: Node, new: NodeBuilder) -> Node | None:
    """One transpose, or the operand."""
    inner = node.args[0]
    first, second = _axes(inner, new), _axes(node, new)
    return _transposed(inner.args[0], tuple(first[a] for a in second), new)


def _transposed(x: Node, axes: tuple[int, ...], new: NodeBuilder) -> Node:
    if _is_identity(axes):
        return x
    is_reversal = axes == tuple(range(len(axes)))[::-1]
    return new("transpose", x, axes=None if is_reversal else axes)


@rule(
    "transpose of stack",
    "transpose",
    "stack",
    reason="only the new axis moves, so that the operands are joined along another one",
    exact=True,
    example=(lambda x: np.stack((x, 2.0 * x), axis=2).transpose(0, 2, 1), _A),
)
def transpose_of_stack(node: Node, new: NodeBuilder) -> Node | None:
    """The operands stacked where the transpose has the new axis."""
    inner, axes = node.args[0], _axes(node, new)
    stacked = inner.params["axis"] % len(axes)
    others = [a for a in axes if a != stacked]
    if others != sorted(others):
        return None
    return new("stack", *inner.args, axis=axes.index(stacked))


@rule(
    "reshape of reshape",
    SAME_ORDER,
    SAME_ORDER,
    reason="the order of the elements does not change",
    exact=True,
    example=(lambda x: np.squeeze(np.expand_dims(np.reshape(x, (3, 2)), 1)), _A),
)
def reshapes(node: Node, new: NodeBuilder) -> Node | None:
    """One reshape, or the operand."""
    inner = node.args[0]
    if any(n.params.get("order", "C") != "C" for n in (node, inner)):
        return None
    x, shape = inner.args[0], new.context.spec(node).shape
    return x if new.context.spec(x).shape == shape else new("reshape", x, shape=shape, order="C")


@rule(
    "broadcast of broadcast",
    "broadcast_to",
    "broadcast_to",
    reason="one broadcast to the last shape",
    exact=True,
    example=(lambda x: np.broadcast_to(np.broadcast_to(x, (1, 2, 3)), (4, 2, 3)), _A),
)
def broadcasts(node: Node, new: NodeBuilder) -> Node | None:
    """One broadcast."""
    return new("broadcast_to", node.args[0].args[0], **node.params)


@rule(
    "broadcast of new axes",
    "broadcast_to",
    SAME_ORDER,
    reason="broadcasting prepends axes of length one implicitly",
    exact=True,
    example=(lambda x: np.broadcast_to(np.reshape(x, (1, 1, 2, 3)), (5, 4, 2, 3)), _A),
)
def broadcast_of_new_axes(node: Node, new: NodeBuilder) -> Node | None:
    """The broadcast of the operand with fewer axes."""
    inner = node.args[0]
    x = inner.args[0]
    shape, padded_shape = new.context.spec(x).shape, new.context.spec(inner).shape
    extra = len(padded_shape) - len(shape)
    if extra <= 0 or padded_shape != (1,) * extra + shape:
        return None
    return new("broadcast_to", x, **node.params)


@rule(
    "cast of cast",
    "cast",
    "cast",
    reason="the first dtype represents every number of the operand",
    exact=True,
    example=(lambda x: x.astype("float32").astype("float64").astype("float32"), _A),
)
def casts(node: Node, new: NodeBuilder) -> Node | None:
    """One cast, or the operand."""
    inner = node.inputs[0]
    x = inner.inputs[0]
    operand_spec, inner_dtype = new.context.spec(x), new.context.spec(inner).dtype
    if (
        operand_spec.weak
        or new.context.spec(node).weak
        or not can_represent(inner_dtype, operand_spec.dtype)
    ):
        return None
    if operand_spec.dtype == node.params["dtype"]:
        return x
    return None if operand_spec.dtype.kind == "c" else new("cast", x, **node.params)


@rule(
    "cast to the same",
    "cast",
    reason="the dtype, and whether it is weak, do not change",
    exact=True,
    example=(lambda x: x.astype("float32").astype("float32"), _A),
)
def same_cast(node: Node, new: NodeBuilder) -> Node | None:
    """The operand itself."""
    operand_spec, result_spec = new.context.spec(node.args[0]), new.context.spec(node)
    is_same = operand_spec.dtype == result_spec.dtype and node.args[0].spec.weak == node.spec.weak
    return node.args[0] if is_same else None


# ---- absorbed and moved ------------------------------------------------------------------------


@rule(
    "broadcast in elementwise",
    "elementwise",
    ("broadcast_to", "full"),
    reason="the operation broadcasts implicitly, and computes less if all operands are broadcast",
    exact=True,
    example=(lambda x: np.exp(np.broadcast_to(x, (4, 2, 3))) + _A, _A),
)
def elementwise_broadcasts(node: Node, new: NodeBuilder) -> Node | None:
    """The operation on the operands before broadcasting, broadcast afterwards if necessary."""
    context = new.context
    operands = [_without_broadcast(a, context) for a in node.args]
    if all(a is b for a, b in zip(operands, node.args, strict=True)):
        return None
    shape = broadcast(*[context.spec(a).shape for a in operands])
    result_shape = context.spec(node).shape
    if shape != result_shape and not _broadcasts_to(shape, result_shape):
        return None
    return new(node.op, *operands, **node.params)


def _without_broadcast(a: Node, context: Any) -> Node:
    if a.op.name == "broadcast_to":
        return a.args[0]  # type: ignore[no-any-return]
    spec = context.spec(a)
    if a.op.name == "full" and spec.shape != ():
        return context.constant(spec.dtype.type(a.params["value"]))  # type: ignore[no-any-return]
    return a


def _broadcasts_to(shape: tuple[Any, ...], target: tuple[Any, ...]) -> bool:
    """Whether a shape can be broadcast to another."""
    trailing = target[len(target) - len(shape) :]
    return len(shape) <= len(target) and all(
        n == m or n == 1 for n, m in zip(shape, trailing, strict=True)
    )


@rule(
    "transposes before elementwise",
    "elementwise",
    "transpose",
    reason="the result is transposed once, which may be merged with another transpose",
    exact=True,
    example=(lambda x, y: np.exp(x.T) * y.T + 1.0, _A, _A),
)
def elementwise_transposes(node: Node, new: NodeBuilder) -> Node | None:
    """The transpose of the operation."""
    context, axes = new.context, None
    operands = []
    for a in node.args:
        if a.op.name == "transpose":
            operand_axes = _axes(a, new)
            if axes is not None and operand_axes != axes:
                return None
            axes, a = operand_axes, a.args[0]
        elif context.spec(a).shape != ():
            return None
        operands.append(a)
    if axes is None:
        return None
    return _transposed(new(node.op, *operands, **node.params), axes, new)


@rule(
    "transpose in einsum",
    ("einsum", "strong_einsum"),
    "transpose",
    reason="the subscripts determine the order in which axes are read",
    example=(lambda x, y: np.einsum("ij,jk->ik", x.T, y), _A, _A),
)
def einsum_transposes(node: Node, new: NodeBuilder) -> Node | None:
    """The contraction with the subscripts of the untransposed operand."""
    *subscripts, result = node.params["subscripts"]
    operands = []
    for i, a in enumerate(node.args):
        if a.op.name == "transpose":
            labels = [""] * len(subscripts[i])
            for k, axis in enumerate(_axes(a, new)):
                labels[axis] = subscripts[i][k]
            subscripts[i], a = "".join(labels), a.args[0]
        operands.append(a)
    return new(node.op, *operands, subscripts=(*subscripts, result))


@rule(
    "transpose of einsum",
    "transpose",
    ("einsum", "strong_einsum"),
    reason="the subscripts determine the order in which axes are written",
    example=(lambda x, y: np.einsum("ij,kj->ik", x, y).T, _A, _A),
)
def einsum_transposed(node: Node, new: NodeBuilder) -> Node | None:
    """The contraction with the transposed subscripts of the result."""
    inner = node.args[0]
    *subscripts, result = inner.params["subscripts"]
    transposed = "".join(result[a] for a in _axes(node, new))
    return new(inner.op, *inner.args, subscripts=(*subscripts, transposed))


# ---- sums of broadcasts ------------------------------------------------------------------------


@rule(
    "sum of a broadcast",
    ("sum_to", "sum"),
    ("broadcast_to", "full"),
    reason="n equal numbers sum to n times the number, with one rounding",
    example=(lambda x: np.sum(np.broadcast_to(x, (4, 2, 3)), axis=0), _A),
)
def sum_of_broadcast(node: Node, new: NodeBuilder) -> Node | None:
    """The number of repetitions times the operand, if only broadcast axes are summed."""
    context, inner = new.context, node.args[0]
    operand_spec, result_spec = context.spec(inner), context.spec(node)
    if (
        operand_spec.dtype != result_spec.dtype
        or result_spec.dtype.kind not in "fc"
        or node.params.get("dtype")
    ):
        return None
    source = inner.args[0] if inner.args else None
    source_shape = context.spec(source).shape if source is not None else ()
    source_shape = (1,) * (len(operand_spec.shape) - len(source_shape)) + source_shape
    summed = _summed_axes(node, operand_spec.shape, result_spec.shape)
    if summed is None or any(source_shape[k] != 1 for k in summed):
        return None
    count: Any = 1
    for k in summed:
        count = count * operand_spec.shape[k]
    if isinstance(count, int):
        if count == 0 or count > 2 ** (np.finfo(result_spec.dtype).nmant + 1):
            return None
    elif source is None or result_spec.dtype.itemsize < 4:
        return None
    else:
        count = size_node(count)
    if source is None:
        number = operand_spec.dtype.type(inner.params["value"])
        with np.errstate(all="ignore"):
            value = number * operand_spec.dtype.type(count)
        return new("full", shape=result_spec.shape, value=value.item(), dtype=result_spec.dtype)
    if node.op.name == "sum_to":
        source_shape = source_shape[len(operand_spec.shape) - len(result_spec.shape) :]
    elif not node.params.get("keepdims"):
        source_shape = tuple(n for k, n in enumerate(source_shape) if k not in summed)
    reshaped = new("reshape", source, shape=source_shape, order="C")
    return new("broadcast_to", new("multiply", reshaped, count), shape=result_spec.shape)


def _summed_axes(
    node: Node, shape: tuple[Size, ...], result_shape: tuple[int, ...]
) -> tuple[int, ...] | None:
    """The axes that a node sums over."""
    if node.op.name == "sum":
        return axes_of(node.params.get("axis"), len(shape))
    return repeated_axes(shape, result_shape)


@rule(
    "sum_to of sum_to",
    "sum_to",
    "sum_to",
    reason="one sum over all axes",
    example=(lambda x: sum_to(sum_to(x, shape=(1, 3)), shape=()), _A),
)
def sums(node: Node, new: NodeBuilder) -> Node | None:
    """One sum."""
    return new("sum_to", node.args[0].args[0], **node.params)


RULES = (
    nothing,
    transposes,
    transpose_of_stack,
    reshapes,
    broadcasts,
    broadcast_of_new_axes,
    same_cast,
    casts,
    elementwise_broadcasts,
    elementwise_transposes,
    einsum_transposes,
    einsum_transposed,
    sum_of_broadcast,
    sums,
)
