"""Adding elements at an index: `x` with `t` added, in the memory of `x` where a loop permits it.

A backward loop that reads ``x[cols]`` in each step, for an index array that may repeat positions,
adds to the cotangent of `x` at these positions.  As ``x_bar + scatter(t, cols)`` each step would
make, read and add an array as large as `x` (control_flow/sparse_cotangents.py).

    scatter_add    x with t added at an index; repeated indices accumulate
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.dispatch import Operation
from wengert._engine.core.handle import shape_of
from wengert._engine.core.node import Node
from wengert._engine.core.op import RuleContext, register
from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic.constraints import require_equal
from wengert._engine.core.symbolic.dim import spelled

from .getitem import IndexSlot, getitem, scatter
from .shapes import chosen_shape, length_pairs
from .template import add_at, join_index

if TYPE_CHECKING:
    from wengert._engine.core.types import Array


class ScatterAdd(Operation):
    """`x` with `t` added at an index; linear in both."""

    kind = "indexing"
    selectors = slice(2, None)

    def updated_operand(self, node: Node, output: int) -> int | None:
        """The array."""
        return 0

    def infer(self, specs: Sequence[Any], params: dict[str, Any]) -> Spec:
        """The spec of the array; `t` must have the shape of the indexed elements."""
        x, t, *operands = specs
        parts = join_index(params["index"], operands)
        indexed = chosen_shape(x.shape, parts if isinstance(parts, tuple) else (parts,))
        reason = f"value of shape {spelled(t.shape)} added at shape {spelled(indexed)}"
        for n, m in length_pairs(t.shape, indexed):
            require_equal(n, m, reason)
        return Spec(x.shape, x.dtype)

    def run(self, x: Array, t: Array, *operands: Any, index: Any) -> Any:
        """A copy of x with t added."""
        out = np.array(x)
        add_at(out, join_index(index, operands), t)
        return out

    @staticmethod
    def oracle(x: Array, t: Array, *operands: Any, index: Any) -> Any:
        """Element by element."""
        out = np.array(x)
        chosen = np.arange(out.size).reshape(out.shape)[join_index(index, operands)]
        for k, value in zip(np.ravel(chosen), np.ravel(t), strict=True):
            out.flat[k] += value
        return out

    def vjp(self, node: Node, t: Any, out: Any, inputs: Any, ctx: RuleContext) -> Any:
        """The cotangent, and its elements at the index."""
        operands = inputs[2:]
        wanted = ctx.wants(node.args[1])
        bar = getitem(t, *operands, index=node.params["index"]) if wanted else None
        return [t, bar, *([None] * len(operands))]

    def jvp(self, node: Node, dots: Any, out: Any, inputs: Any, ctx: RuleContext) -> Any:
        """The same for the tangents."""
        x_dot, t_dot, index = dots[0], dots[1], node.params["index"]
        if t_dot is None:
            return x_dot
        if x_dot is None:
            return scatter(t_dot, *inputs[2:], index=index, shape=shape_of(inputs[0]))
        return self(x_dot, t_dot, *inputs[2:], index=index)


scatter_add = register(ScatterAdd("scatter_add", "x with t added at an index."))


@scatter_add.examples
def _(rng: np.random.Generator) -> Any:
    yield (
        (rng.normal(size=4), rng.normal(size=5), np.array([3, 0, 0, -4, 3])),
        {"index": IndexSlot(0)},
    )
    x, rows = rng.normal(size=(3, 4)), np.array([[0, 2], [2, 1]])
    yield (x, rng.normal(size=(2, 2, 2)), rows), {"index": (IndexSlot(0), slice(1, 3))}
    yield (x, rng.normal(size=4), np.array(1)), {"index": IndexSlot(0)}
    yield (x, rng.normal(size=(3, 2))), {"index": (slice(None), slice(1, 3))}
