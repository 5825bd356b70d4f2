"""The operation of sums over partitions, with derivatives of any order.

A node has the leaves of the parameters as operands, and the value and the gradient as outputs; one
pass over the data computes both.  Its derivatives are operations of the same kind, whose function
in each worker is the derivative of the function that was summed.

    partition_sum    operands -> outputs of a `SummedFunction`, added
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert import numpy as wnp
from wengert._engine.core.dispatch import Operation
from wengert._engine.core.node import Node
from wengert._engine.core.op import RuleContext, register
from wengert._engine.core.op_facts import Cost, Differentiation, Effects
from wengert._engine.core.spec import Spec

from .partition_programs import Step, SummedFunction

Steps = tuple[Step, ...]


class PartitionSum(Operation):
    """The sum over partitions of a function of the parameters, and its derivatives.

    Parameters of a node: `total`, the sum (sums.py); `template`, a `Template`; `steps`, as in
    `SummedFunction`.
    """

    kind = "opaque"
    effects = Effects(serializable=False)
    differentiation = Differentiation(takes_parts=True)
    cost = Cost(1e6)
    notes_where = True
    host_callback = "computed by other processes, or by compiled functions of its own"

    def run(self, *operands: Any, total: Any, template: Any, steps: Steps) -> tuple[Any, ...]:
        """The sums, from plain values."""
        values = [x if hasattr(x, "dtype") else np.asarray(x)[()] for x in operands]
        specs = [Spec(x.shape, x.dtype) for x in values]
        outs = self.infer(specs, {"total": total, "template": template, "steps": steps})
        sums = total.evaluate(template, steps, values)
        if sums is None:  # no partitions
            return tuple([np.zeros(s.shape, s.dtype)[()] for s in outs])
        return tuple(
            [np.asarray(x).astype(s.dtype, copy=False)[()] for x, s in zip(sums, outs, strict=True)]
        )

    def infer(self, specs: Sequence[Any], params: dict[str, Any]) -> tuple[Spec, ...]:
        """The specs of the outputs, from those of the operands."""
        operands = [Spec(s.shape, s.dtype) for s in specs]
        return tuple(_specs(params["template"], params["steps"], operands))

    def vjp(
        self, node: Node, t: Any, out: Any, inputs: Sequence[Any], ctx: RuleContext
    ) -> list[Any]:
        """The cotangents: multiples of the gradient, or sums over the partitions."""
        params, arity = node.params, len(inputs)
        wanted = tuple([k for k in range(arity) if ctx.wants(node.args[k])])
        bars: list[Any] = [None] * arity
        given = t.items() if isinstance(t, dict) else enumerate(t)
        parts = {k: x for k, x in given if x is not None}
        known = params["template"].wanted
        if not params["steps"] and known is not None and set(wanted) <= set(known):
            value = parts.pop(0, None)
            if value is not None:
                for k in wanted:
                    slope = out[1 + known.index(k)]
                    if ctx.guarded:  # a cotangent of zero is that of a branch not taken
                        slope = wnp.where(wnp.not_equal(value, 0), slope, 0)
                    bars[k] = value * slope
        if parts:
            outputs = tuple(sorted(parts))
            step = "vjp", outputs, wanted, ctx.guarded
            more = self(*inputs, *[parts[k] for k in outputs], **_with(params, step))
            for k, bar in zip(wanted, more, strict=True):
                bars[k] = bar if bars[k] is None else bars[k] + bar
        return bars

    def jvp(
        self, node: Node, dots: Sequence[Any], out: Any, inputs: Any, ctx: RuleContext
    ) -> tuple[Any, ...]:
        """The tangents, summed over the partitions."""
        active = tuple([k for k, dot in enumerate(dots) if dot is not None])
        step = "jvp", active
        return tuple(self(*inputs, *[dots[k] for k in active], **_with(node.params, step)))

    def batched_as_kind(
        self, args: Sequence[Any], batched: Sequence[bool], size: Any, params: dict[str, Any]
    ) -> Any:
        """One pass over the data for the whole batch."""
        return self(*args, **_with(params, ("vmap", tuple([bool(b) for b in batched]))))


def _with(params: dict[str, Any], step: Step) -> dict[str, Any]:
    return {**params, "steps": (*params["steps"], step)}


def _specs(template: Template, steps: Steps, operands: Sequence[Spec]) -> list[Spec]:
    """The specs of the outputs of a summed function."""
    if not steps:
        value = Spec((), _real(operands[: template.arity]))
        return [value, *[operands[k] for k in template.wanted or ()]]
    step, inner = steps[-1], steps[:-1]
    if step[0] == "vjp":
        return [operands[k] for k in step[2]]
    if step[0] == "jvp":
        return _specs(template, inner, operands[: len(operands) - len(step[1])])
    pairs = list(zip(operands, step[1], strict=True))
    size = next(s.shape[0] for s, batched in pairs if batched)
    of_one = [Spec(s.shape[1:], s.dtype) if batched else s for s, batched in pairs]
    return [Spec((size, *s.shape), s.dtype) for s in _specs(template, inner, of_one)]


def _real(specs: Sequence[Spec]) -> np.dtype[Any]:
    """The dtype of the value: that of the parameters, which may be complex; float64 by default."""
    dtypes = [s.dtype for s in specs if s.dtype.kind in "fc"]
    if not dtypes:
        return np.dtype(np.float64)
    return np.zeros((), np.result_type(*dtypes)).real.dtype


class Template:
    """The parameters as a static parameter of a node: hashable, with slots for operands."""

    __slots__ = ("_key", "arity", "tree", "wanted")

    def __init__(self, tree: Any, arity: int, wanted: tuple[int, ...] | None, key: Any) -> None:
        self.tree, self.arity, self.wanted = tree, arity, wanted
        self._key = key, arity, wanted

    def summed(self, steps: Steps) -> SummedFunction:
        """The function that is summed."""
        return SummedFunction(self.tree, self.arity, self.wanted, steps)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Template) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return "value" if self.wanted is None else "value and gradient"


partition_sum = register(
    PartitionSum("partition_sum", "The sum over partitions of a function, and its gradient.")
)
