"""Batching rules that kinds share.

`vmap` (autodiff/vmap.py) evaluates a graph that was traced for one example with operands whose
first axis is the batch.  An operation defines its batching rule with `@op.batch`, or its kind
defines one for all of its operations, `batched_as_kind`.  Such rules are made of:

    ndim_of, row_ranks, fronted, deepened  axes of operands
    aligned                                operands with the same number of axes, to be broadcast:
                                           elementwise operations
    reduced                                a reduction along axes of an example
    contracted                             a contraction with one more subscript
    elementwise_batching                   the rule of an operation on independent elements
    along                                  the rule of an operation along one axis
    on_last_axes                           the rule of an operation on the last axes (matrices);
                                           earlier axes broadcast

The rules are written in wengert operations: on plain arrays these run NumPy, on tensors they are
recorded, and can be differentiated and traced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from string import ascii_letters
from typing import TYPE_CHECKING, Any

from wengert._engine.core.handle import shape_of
from wengert._engine.core.op import lookup

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Size

Rule = Callable[..., Any]


def ndim_of(x: Any) -> int:
    """The number of axes of an operand."""
    try:
        return x.ndim  # type: ignore[no-any-return]
    except AttributeError:  # a Python number
        return len(shape_of(x))


def row_ranks(args: Sequence[Any], batched: Sequence[bool]) -> list[int]:
    """The number of axes of each operand without the batch axis."""
    return [ndim_of(x) - b for x, b in zip(args, batched, strict=True)]


def row_axis(axis: int, ndim: int) -> int:
    """The position of an axis in a batched array; an example has `ndim` axes."""
    return axis % ndim + 1 if ndim else axis


def fronted(x: Any, batched: bool, size: Any) -> Any:
    """`x` with the batch as first axis: broadcast, without a copy, if it is not batched."""
    return x if batched else lookup("broadcast_to")(x, shape=(size, *shape_of(x)))


def deepened(x: Any, ndim: int) -> Any:
    """A batch of examples with `ndim` axes: missing axes are added in front, with length one."""
    shape = shape_of(x)
    missing = ndim + 1 - len(shape)
    if missing <= 0:
        return x
    return lookup("reshape")(x, shape=(shape[0], *((1,) * missing), *shape[1:]))


def aligned(args: Sequence[Any], batched: Sequence[bool]) -> list[Any]:
    """Operands that broadcast for each example."""
    if len(args) == 1:
        return [args[0]]
    ranks = row_ranks(args, batched)
    ndim = max(ranks)
    if min(ranks) == ndim:
        return list(args)
    return [
        deepened(x, ndim) if b and rank < ndim else x
        for x, b, rank in zip(args, batched, ranks, strict=True)
    ]


def elementwise_batching(op: Any) -> Rule:
    """Define and return the rule of an operation on independent elements."""

    def rule(args: Any, batched: Any, size: Size, **params: Any) -> Any:
        return op(*aligned(args, batched), **params)

    return op.batch(rule)  # type: ignore[no-any-return]


def along(op: Any) -> Rule:
    """Define and return the rule of an operation along an axis of operands of the same shape.

    The default axis is the last one; None means all elements.
    """

    def rule(args: Any, batched: Any, size: Size, *, axis: Any = -1, **params: Any) -> Any:
        rows = [fronted(x, b, size) for x, b in zip(args, batched, strict=True)]
        if axis is None:
            return op(*[flattened(x) for x in rows], axis=1, **params)
        ndim = ndim_of(rows[0]) - 1
        if isinstance(axis, tuple):
            return op(*rows, axis=tuple([row_axis(a, ndim) for a in axis]), **params)
        return op(*rows, axis=row_axis(axis, ndim), **params)

    return op.batch(rule)  # type: ignore[no-any-return]


def flattened(x: Array) -> Any:
    """Each example as a vector."""
    first, *rest = shape_of(x)
    count: Any = 1
    for n in rest:
        count = count * n
    return lookup("reshape")(x, shape=(first, count))


def on_last_axes(op: Any, core: int) -> Rule:
    """Define and return the rule of an operation on the last `core` axes of its operands.

    The operands may have further axes in front, which are broadcast.
    """

    def rule(args: Any, batched: Any, size: Size, **params: Any) -> Any:
        ndim = max(row_ranks(args, batched))
        if ndim < core:
            return NotImplemented  # invalid operands, for which the operation raises
        rows = [deepened(x, ndim) if b else x for x, b in zip(args, batched, strict=True)]
        return op(*rows, **params)

    return op.batch(rule)  # type: ignore[no-any-return]


# ---- kinds -------------------------------------------------------------------------------------


def reduced(op: Any, x: Array, size: Size, **params: Any) -> Any:
    """A reduction of each example along axes; along all of them if the axis is None."""
    axis = params.pop("axis", None)
    ndim = ndim_of(x) - 1
    if ndim == 0:  # for a single number NumPy accepts an axis too
        return op(flattened(x), **{**params, "axis": 1, "keepdims": False})
    if isinstance(axis, tuple):
        axis = tuple([row_axis(a, ndim) for a in axis])
    elif axis is not None:
        axis = row_axis(axis, ndim)
    elif ndim == 1:
        axis = 1
    elif not op.discrete:
        axis = tuple(range(1, ndim + 1))
    else:  # argmax and argmin: an index into the flattened array
        out = op(flattened(x), **{**params, "axis": 1, "keepdims": False})
        shape = (size, *((1,) * ndim))
        return lookup("reshape")(out, shape=shape) if params.get("keepdims") else out
    return op(x, axis=axis, **params)


def contracted(op: Any, args: Sequence[Any], batched: Sequence[bool], **params: Any) -> Any:
    """A contraction with a subscript for the batch, first in the operands that are batched."""
    *inputs, output = op.subscripts(*row_ranks(args, batched), **params)
    new = next(c for c in ascii_letters if not any(c in word for word in (*inputs, output)))
    batched_inputs = [new + s if b else s for s, b in zip(inputs, batched, strict=True)]
    run = op if "subscripts" in params else lookup("einsum")
    return run(*args, subscripts=(*batched_inputs, new + output))
