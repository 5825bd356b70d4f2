"""Joining several arrays into one.

    concatenate   along an existing axis
    stack         along a new axis
    stacked       converts nested lists of tensors, in one operation

Both operations are jointly linear in their operands; the cotangent is split into pieces.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core import loop_rows
from wengert._engine.core.dispatch import Operation, apply
from wengert._engine.core.handle import Handle, dtype_of, shape_of
from wengert._engine.core.node import Node
from wengert._engine.core.op import RuleContext, register
from wengert._engine.core.op_facts import SELECTS
from wengert._engine.core.spec import Spec
from wengert._engine.core.uniform_arrays import zeros
from wengert._engine.kinds.batching import along, fronted, ndim_of, row_axis

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Operand

NESTED = (list, tuple)


class Join(Operation):
    """An operation that joins its operands along an axis."""

    kind = "indexing"
    promotes = True
    zero_slope = SELECTS
    oracle = "numpy"
    pieces: Callable[..., list[Any]]  # for each operand, the index of its piece of the result

    def vjp(self, node: Node, t: Array, out: Array, inputs: Sequence[Any], ctx: RuleContext) -> Any:
        """The piece of the cotangent for each operand."""
        pieces = self.pieces([shape_of(x) for x in inputs], **node.params)
        return [
            t[index] if ctx.wants(a) else None for a, index in zip(node.args, pieces, strict=True)
        ]

    def jvp(
        self, node: Node, dots: Sequence[Any], out: Array, inputs: list[Operand], ctx: RuleContext
    ) -> Any:
        """The joined tangents, with zeros for operands without a tangent."""
        full = [
            zeros(Spec(shape_of(x), dtype_of(x))) if dot is None else dot
            for dot, x in zip(dots, inputs, strict=True)
        ]
        return self(*full, **node.params)


class Concatenate(Join):
    """Arrays joined along an existing axis."""

    def run(self, *arrays: Any, axis: int) -> Any:
        """numpy.concatenate."""
        return np.concatenate(arrays, axis)

    def pieces(self, shapes: list[Any], *, axis: int) -> list[Any]:
        """Consecutive slices."""
        before = (slice(None),) * (axis % len(shapes[0]))
        ends = list(itertools.accumulate(s[axis] for s in shapes))
        return [(*before, slice(start, end)) for start, end in zip([0, *ends], ends, strict=False)]


class Stack(Join):
    """Arrays of one shape joined along a new axis."""

    def run(self, *arrays: Any, axis: int) -> Any:
        """numpy.stack."""
        return np.stack(arrays, axis)

    def pieces(self, shapes: list[Any], *, axis: int) -> list[Any]:
        """Consecutive positions."""
        before = (slice(None),) * (axis % (len(shapes[0]) + 1))
        return [(*before, i) for i in range(len(shapes))]


concatenate = register(Concatenate("concatenate", "Arrays joined along an existing axis."))
stack = register(Stack("stack", "Arrays of one shape joined along a new axis."))


along(concatenate)


@stack.batch
def _stack_batch(args: list[Array], batched: list[bool], size: int, *, axis: int) -> Any:
    batched_args = [fronted(x, b, size) for x, b in zip(args, batched, strict=True)]
    return stack(*batched_args, axis=row_axis(axis, ndim_of(batched_args[0])))


@concatenate.examples
def _(rng: np.random.Generator) -> Any:
    yield (rng.normal(size=(2, 3)), rng.normal(size=(1, 3))), {"axis": 0}
    yield (rng.normal(size=(2, 1)), rng.normal(size=(2, 0)), rng.normal(size=(2, 2))), {"axis": -1}


@stack.examples
def _(rng: np.random.Generator) -> Any:
    yield (rng.normal(size=(2, 3)), rng.normal(size=(2, 3))), {"axis": 1}
    yield (rng.normal(size=()), rng.normal(size=())), {"axis": 0}
    yield (rng.normal(size=(2,)), rng.normal(size=(2,))), {"axis": -1}


def holds_handles(x: Operand | Sequence[Any]) -> bool:
    """Whether a nested list or tuple contains a handle."""
    if not isinstance(x, NESTED):
        return isinstance(x, Handle)
    # Check distinct types, which are few, rather than items, which may be many.
    types = set(map(type, x))
    for t in types:
        if issubclass(t, Handle):
            return True
    for t in types:
        if issubclass(t, NESTED):
            return any(map(holds_handles, x))
    return False


def stacked(x: Operand | Sequence[Any]) -> Any:
    """A nested list that contains handles as one handle; anything else unchanged.

    Raises
    ------
    ValueError
        The nesting is ragged (NumPy's error).
    """
    if not isinstance(x, list | tuple) or not holds_handles(x):
        return x
    rows = loop_rows.whole(x)
    if rows is not None:
        return rows
    leaves: list[Any] = []
    nesting_shape = _flatten(x, leaves)
    shapes = {shape_of(a) for a in leaves}
    if nesting_shape is None or len(shapes) > 1:
        # Leaves are at different depths: convert each entry to an array first.
        return apply(stack, [_array(a) for a in x], {"axis": 0})
    result = apply(stack, leaves, {"axis": 0})
    if len(nesting_shape) == 1:
        return result
    return result.reshape((*nesting_shape, *shapes.pop()))


def _array(x: Array | list[Operand]) -> Any:
    x = stacked(x)
    return x if isinstance(x, Handle) else np.asarray(x)


def _flatten(x: Any, leaves: list[Any]) -> tuple[int, ...] | None:
    """Append the leaves to `leaves` and return the shape of the nesting; None if it is ragged."""
    if not isinstance(x, list | tuple):
        leaves.append(x)
        return ()
    inner = [_flatten(item, leaves) for item in x]
    if not inner:
        return (0,)
    if any(shape != inner[0] for shape in inner) or inner[0] is None:
        return None
    return (len(x), *inner[0])
