"""Lengths that differ between the steps of a loop: a body with sizes as operands.

    sized    args: lengths (an int64 for each name: the length plus one), operands -> results

Inside the body the names are symbolic sizes; its operands and results have fixed shapes.  The rules
are those of a conditional with one branch.  Such nodes are made from the nodes of a step that use
slices with computed bounds (loop_bodies.py).

Without names it is a call of a function: equal bodies are differentiated, simplified and compiled
once for all nodes that have them.

    Sized    the operation
    call     a call of a body
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert._engine.core.graph_classes import Body
from wengert._engine.core.handle import wrap
from wengert._engine.core.op import lookup, register
from wengert._engine.core.spec import Spec
from wengert._engine.core.tracing import placeholder
from wengert.errors import OperandError, at, user_line

from . import batching
from .loop_bodies import is_local
from .operations import Choice, Compile


class Sized(Choice):
    """A body with lengths that are computed."""

    def infer(self, specs: Sequence[Any], params: dict[str, Any]) -> tuple[Spec, ...]:
        """The specs of the body's results."""
        branches, names = params.get("branches"), params.get("names")
        valid = type(branches) is tuple and len(branches) == 1 and isinstance(branches[0], Body)
        valid = valid and type(names) is tuple and all(is_local(n) for n in names)
        valid = valid and params.keys() == {"branches", "names"}
        lengths = specs[0]
        valid = valid and type(lengths) is Spec and lengths.shape == (len(names or ()),)
        valid = valid and lengths.dtype == np.dtype(np.int64)
        valid = valid and len(specs) == 1 + len(branches[0].inputs)  # type: ignore[index]
        if not valid:
            raise OperandError(
                "sized: the operands or parameters do not fit its body. Trace a loop with slices "
                f"instead of building such nodes by hand{at(user_line())}."
            )
        (body,) = params["branches"]
        self.check(body, specs[1:], "its body")
        return tuple([Spec(n.spec.shape, n.spec.dtype) for n in body.outputs])

    def run_by(self, compile: Compile, *values: Any, **params: Any) -> tuple[Any, ...]:
        """Run the body at these lengths."""
        lengths, *operands = values
        sizes = {n: int(k) for n, k in zip(params["names"], lengths, strict=True)}
        return tuple(compile(params["branches"][0].at_sizes(sizes))(operands))

    def batched(self, args: Any, batched: Any, size: Any, params: dict[str, Any]) -> Any:
        """The body for a batch; if its elements have different lengths, a loop over them."""
        (body,) = params["branches"]
        if batched[0]:
            return _one_by_one(args, batched, size, params)
        required = (True,) * len(body.outputs)
        batched_body, _ = batching.for_batch(body, tuple(batched[1:]), size, required)
        return lookup("sized")(*args, **{**params, "branches": (batched_body,)})


def _one_by_one(args: Any, batched: Any, size: Any, params: dict[str, Any]) -> Any:
    """A scan over the batch."""
    inputs = [
        placeholder(Spec(x.shape[1:] if f else x.shape, x.dtype))
        for x, f in zip(args, batched, strict=True)
    ]
    outs = lookup("sized")(*map(wrap, inputs), **params)
    fixed = [k for k, f in enumerate(batched) if not f]
    rows = [k for k, f in enumerate(batched) if f]
    body = Body(*[x.node for x in outs], inputs=[inputs[k] for k in (*fixed, *rows)], name="sized")
    return lookup("scan")(
        *[args[k] for k in (*fixed, *rows)],
        body=body, carried=0, stacked=len(rows), length=size, reverse=False, counted=False,
    )  # fmt: skip


sized = register(Sized("sized", "A body with lengths that are computed."))


def call(body: Body, operands: Sequence[Any]) -> tuple[Any, ...]:
    """The results of a body, whose code stays a function of its own."""
    no_lengths = np.zeros(0, dtype=np.int64)
    return tuple(lookup("sized")(no_lengths, *operands, branches=(body,), names=()))
