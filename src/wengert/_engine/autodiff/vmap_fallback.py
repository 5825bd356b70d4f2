"""The batching fallback: an operation without a batching rule, applied to a batch, as one node.

A host callback without a batching rule is called once per batch element.  As one node of a graph
the loop over the elements is inside the callback, so the size of the batch may be symbolic.  Its
derivative applies the derivative of the operation to each element.

    row_by_row    the operation; its parameters are the operation `of`, which operands are batched
                  (`flags`), and the parameters of that operation (`options`)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.dispatch import Operation, apply
from wengert._engine.core.handle import Handle, dtype_of, shape_of, wrap
from wengert._engine.core.node import Node, constant
from wengert._engine.core.op import REGISTRY, Op, RuleContext, lookup, register
from wengert._engine.core.op_facts import BY_NUMPY
from wengert._engine.core.spec import Spec, is_inexact
from wengert._engine.core.tracing import infer
from wengert.errors import ShapeError

from .batch_graph import map_over_batch, register_fallback
from .forward import jvp_from_vjp
from .reverse import vjp_from_jvp
from .tape import fresh

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Operand
    from wengert._engine.kinds.opaque import Opaque


class RowByRow(Operation):
    """An operation applied to each element of a batch."""

    notes_where = True
    host_callback = BY_NUMPY
    trusted = True

    def of_one(self, specs: Sequence[Any], params: dict[str, Any]) -> tuple[Op, Any, Any]:
        """The operation, the specs of its operands for one element, and its parameters."""
        op = _operation(params["of"])
        rows = [
            Spec(s.shape[1:], s.dtype) if f else s
            for s, f in zip(specs, params["flags"], strict=True)
        ]
        return op, tuple(rows), params["options"]

    def infer(self, specs: Sequence[Any], params: dict[str, Any]) -> Any:
        """The spec for one element, with the batch axis in front."""
        size = next(s.shape[0] for s, f in zip(specs, params["flags"], strict=True) if f)
        element, _ = infer(*self.of_one(specs, params))
        several = type(element) is tuple
        batched = [Spec((size, *s.shape), s.dtype) for s in (element if several else (element,))]
        return tuple(batched) if several else batched[0]

    def run(
        self, *values: Any, of: str | Opaque, flags: tuple[bool, ...], options: dict[str, Any]
    ) -> Any:
        """Apply the operation to one element after the other."""
        op = _operation(of)
        size = next(len(x) for x, f in zip(values, flags, strict=True) if f)
        rows = []
        for i in range(size):
            rows.append(
                op.run(*[x[i] if f else x for x, f in zip(values, flags, strict=True)], **options)
            )
            for a, b in zip(_several(rows[-1]), _several(rows[0]), strict=True):
                if np.shape(a) != np.shape(b):
                    raise ShapeError(
                        f"vmap: {op.name} gave shape {np.shape(a)} for batch element {i}, but "
                        f"{np.shape(b)} for element 0: the shape depends on the values, so the "
                        "results do not fit into one array."
                    )
        if not rows:
            specs = [Spec(np.shape(x), np.asarray(x).dtype) for x in values]
            spec = self.infer(specs, {"of": of, "flags": flags, "options": options})
            empty = [np.zeros(s.shape, s.dtype) for s in _several(spec)]
            return tuple(empty) if type(spec) is tuple else empty[0]
        if type(rows[0]) is tuple:
            return tuple([np.stack(column) for column in zip(*rows, strict=True)])
        return np.stack(rows)

    def vjp(
        self, node: Node, t: Array, out: Array, inputs: Sequence[Any], ctx: RuleContext
    ) -> list[Any]:
        """The cotangents for each element; for unbatched operands their sum."""
        flags: tuple[bool, ...] = node.params["flags"]
        wanted = [ctx.wants(a) for a in node.args]

        def rule(row_node: Node, ts: Array, outs: Array, operands: list[Any]) -> list[Any]:
            op: Any = row_node.op
            targets = {a for a, w in zip(row_node.args, wanted, strict=True) if w}
            inner = RuleContext(targets, True, ctx.guarded)
            pull = op.vjp if op.has_vjp else vjp_from_jvp
            results = pull(row_node, ts, outs, operands, inner)
            return [x if w else None for x, w in zip(results, wanted, strict=True)]

        results = self._mapped(rule, node, t, out, inputs, None)
        bars: list[Any] = []
        for x, is_batched in zip(results, flags, strict=True):
            bars.append(x if x is None or is_batched else lookup("sum")(x, axis=0))
        return bars

    def jvp(
        self, node: Node, dots: Sequence[Any], out: Array, inputs: list[Operand], ctx: RuleContext
    ) -> Any:
        """The tangents for each element."""

        def rule(
            row_node: Node, ds: list[Array | None], outs: Array, operands: list[Any]
        ) -> list[Any]:
            op: Any = row_node.op
            inner = RuleContext(None, True, ctx.guarded)
            push = op.jvp if op.has_jvp else jvp_from_vjp
            results = push(row_node, ds, outs, operands, inner)
            return list(results) if type(results) is tuple else [results]

        results = self._mapped(rule, node, dots, out, inputs, node.params["flags"])
        return tuple(results) if type(node.spec) is tuple else results[0]

    def _mapped(
        self, rule: Callable[..., Any], node: Node, ts: Any, out: Any, inputs: Any, flags: Any
    ) -> list[Any]:
        """Apply a rule for one element to the batch; `flags` are those of tangents, or None."""
        params = node.params
        several = type(node.spec) is tuple
        derivatives = list(ts) if several or flags is not None else [ts]
        groups = [list(inputs), list(_several(out)), derivatives]
        is_batched = [
            params["flags"],
            [True] * len(groups[1]),
            [True] * len(derivatives) if flags is None else flags,
        ]
        batched = [
            (g, k)
            for g, xs in enumerate(groups)
            for k, x in enumerate(xs)
            if x is not None and is_batched[g][k]
        ]
        columns = [groups[g][k] for g, k in batched]
        # Unbatched operands are variables too, so that they can have cotangents.
        groups[0] = [
            x if f or not is_inexact(dtype_of(x)) else wrap(fresh(getattr(x, "node", x)))
            for x, f in zip(inputs, params["flags"], strict=True)
        ]
        size = shape_of(columns[0])[0]
        live: list[bool] = []

        def row(*handles: Any) -> list[Any]:
            inner = [list(xs) for xs in groups]
            for (g, k), handle in zip(batched, handles, strict=True):
                inner[g][k] = handle
            operands, outs, ds = inner
            result = apply(_operation(params["of"]), operands, params["options"])
            element = result[0].node.args[0] if several else result.node
            derivative = ds if flags is not None else tuple(ds) if several else ds[0]
            results = rule(element, derivative, tuple(outs) if several else outs[0], operands)
            live[:] = [x is not None for x in results]
            return [x for x in results if x is not None]

        pairs = iter(map_over_batch(row, columns, size, self.name))
        results = [next(pairs) if is_live else None for is_live in live]
        return [None if p is None else _spread(p, size) for p in results]


def _spread(pair: tuple[Any, bool], size: Any) -> Any:
    x, is_batched = pair
    if is_batched:
        return x
    if not isinstance(size, int) and not isinstance(x, Handle):
        x = wrap(constant(x))
    return lookup("broadcast_to")(x, shape=(size, *shape_of(x)))


def _several(x: Any) -> tuple[Any, ...]:
    return x if type(x) is tuple else (x,)


def _operation(of: Any) -> Op:
    return lookup(of) if isinstance(of, str) else of  # type: ignore[no-any-return]


row_by_row = register(RowByRow("row_by_row", "An operation, applied to each element of a batch."))


@register_fallback
def applied(op: Op, args: Sequence[Any], flags: Sequence[bool], params: dict[str, Any]) -> Any:
    """Apply an operation to a batch as one node."""
    of = op.name if REGISTRY.get(op.name) is op else op
    return row_by_row(*args, of=of, flags=tuple(flags), options=dict(params))
