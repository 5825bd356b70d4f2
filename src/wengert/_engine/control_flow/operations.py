"""Operations: loops and branches as single nodes, whose parameters are bodies.

    scan     args: [count] consts, carry, xs -> carry, ys      a loop of known length
    while    args: consts, carry -> carry, count, ys           a loop with a condition
    cond     args: which, operands -> results                  one of two bodies
    switch   the same, one of several

A body takes the consts, the carry and one row of each of the xs, and returns the next carry and one
row of each of the ys.  The rules transform the bodies: vjp.py, jvp.py, batching.py.

Lengths that differ between the steps of a loop: a body with sizes as operands.

    sized    args: lengths (an int64 for each name: the length plus one), operands -> results

Inside the body the names are symbolic sizes; its operands and results have fixed shapes.  The rules
are those of a conditional with one branch.  Such nodes are made from the nodes of a step that use
slices with computed bounds (loop_bodies.py).

Without names it is a call of a function: equal bodies are differentiated, simplified and compiled
once for all nodes that have them.

    Sized    the operation
    call_body    a call of a body
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.autodiff.series_terms import SeriesCall
from wengert._engine.core.dispatch import Operation
from wengert._engine.core.graph_classes import Body, evaluated
from wengert._engine.core.handle import wrap
from wengert._engine.core.node import Node
from wengert._engine.core.op import RuleContext, lookup, register
from wengert._engine.core.op_facts import BRANCH, LOOP, Differentiation
from wengert._engine.core.spec import Spec, bare, shown
from wengert._engine.core.tracing import placeholder
from wengert.errors import GuardError, OperandError, ShapeError, at, user_line

from . import batching
from . import jvp as forward
from . import vjp as reverse
from .branch_vjp import pull_conditional
from .loop_accesses import updated_in_all
from .loop_bodies import is_local
from .verify import check_conditional, check_scan, check_while

if TYPE_CHECKING:
    from wengert._engine.core.types import Array

Run = Callable[[Sequence[Any]], list[Any]]
Compile = Callable[[Body], Run]
Visit = Callable[[int, Sequence[Any]], None]


class Control(Operation):
    """A node whose parameters are bodies."""

    kind = "control"
    differentiation = Differentiation(takes_parts=True)
    notes_where = True

    def run(self, *values: Any, **params: Any) -> Any:
        """The values, with interpreted bodies."""
        return self.run_by(evaluated, *values, **params)

    def run_by(self, compile: Compile, *values: Any, **params: Any) -> Any:
        """The values, with bodies that are run by `compile(body)`."""
        raise NotImplementedError

    def check(self, body: Body, specs: Sequence[Spec], what: str) -> None:
        """Refuse operands whose specs are not those of the body's inputs."""
        for node, spec in zip(body.inputs, specs, strict=True):
            if bare(node.spec) != bare(spec):
                raise ShapeError(
                    f"{self.name}: {what} takes {shown(node.spec)}, but was given "
                    f"{shown(spec)}{at(node.where)}."
                )


class _Loop(Control):
    """A loop, whose first results are its carry after the last step."""

    control_flow = LOOP

    def updated_operand(self, node: Node, output: int) -> int | None:
        """The carry before the first step."""
        params = node.params
        if output >= params["carried"]:
            return None
        first = len(node.args) - params["carried"] - params.get("stacked", 0)
        return int(first + output)


class Scan(_Loop):
    """A loop whose length is known before it starts."""

    def infer(self, specs: Sequence[Any], params: dict[str, Any]) -> tuple[Spec, ...]:
        """The specs of the carry, and of the ys stacked along a first axis."""
        check_scan(specs, params)
        body, carried, length = params["body"], params["carried"], params["length"]
        stacked = params["stacked"]
        row_specs = list(specs[params["counted"] :])
        row_specs[len(row_specs) - stacked :] = [
            Spec(s.shape[1:], s.dtype) for s in row_specs[len(row_specs) - stacked :]
        ]
        self.check(body, row_specs, "its body")
        outs = [n.spec for n in body.outputs]
        ys = [Spec((length, *s.shape), s.dtype) for s in outs[carried:]]
        return (*[Spec(s.shape, s.dtype) for s in outs[:carried]], *ys)

    def run_by(self, compile: Compile, *values: Any, **params: Any) -> tuple[Any, ...]:
        """Run the steps."""
        return self.walked(compile, values, params)

    def walked(
        self,
        compile: Compile,
        values: Sequence[Any],
        params: dict[Any, Any],
        visit: Visit | None = None,
    ) -> tuple[Any, ...]:
        """Run the steps; `visit` is called before each with its number and the carry."""
        body, carried, stacked = params["body"], params["carried"], params["stacked"]
        count, operands = _count_and_operands(values, params)
        fixed = len(operands) - carried - stacked
        consts, carry = list(operands[:fixed]), list(operands[fixed : fixed + carried])
        xs = operands[fixed + carried :]
        step = compile(body)
        ys = [_Stack(n.spec, count) for n in body.outputs[carried:]]
        for i in range(count):
            k = count - 1 - i if params["reverse"] else i
            if visit is not None:
                visit(i, carry)
            out = step([*consts, *carry, *[x[k] for x in xs]])
            carry = out[:carried]
            for y, value in zip(ys, out[carried:], strict=True):
                y.array[k] = value
        return (*carry, *[y.array for y in ys])

    def vjp(
        self, node: Node, t: Any, out: tuple[Array, ...], inputs: Sequence[Any], ctx: RuleContext
    ) -> Any:
        """The backward loop."""
        return reverse.pull_scan(node, t, out, inputs, ctx)

    def jvp(
        self,
        node: Node,
        dots: Sequence[Any],
        out: tuple[Array, ...],
        inputs: list[Array],
        ctx: RuleContext,
    ) -> Any:
        """The same loop, with tangents next to the carry."""
        return forward.push_scan(node, dots, inputs, ctx)

    def series(self, call: SeriesCall) -> forward.Results:
        """The same loop, with Taylor coefficients next to the carry."""
        return forward.scan_series(call)

    def batched(self, args: Any, batched: Any, size: Any, params: dict[str, Any]) -> Any:
        """The same loop, with a body for a batch."""
        return batching.scan(args, batched, size, params)


class _Stack:
    """Memory for the outputs of the steps."""

    def __init__(self, spec: Spec, count: int) -> None:
        self.array = np.empty((count, *spec.shape), spec.dtype)


def _count_and_operands(values: Sequence[Any], params: dict[str, Any]) -> tuple[int, Sequence[Any]]:
    if params["counted"]:
        return max(int(values[0]), 0), values[1:]
    return params["length"], values


class While(_Loop):
    """A loop that ends when its condition is false."""

    def infer(self, specs: Sequence[Any], params: dict[str, Any]) -> tuple[Spec, ...]:
        """The specs of the carry, of the number of steps, and of the ys."""
        check_while(specs, params)
        body, condition, carried = params["body"], params["condition"], params["carried"]
        self.check(body, specs, "its body")
        self.check(condition, specs, "its condition")
        outs = [n.spec for n in body.outputs]
        ys = [Spec((params["length"], *s.shape), s.dtype) for s in outs[carried:]]
        return (
            *[Spec(s.shape, s.dtype) for s in outs[:carried]],
            Spec((), np.dtype(np.int64)),
            *ys,
        )

    def run_by(self, compile: Compile, *values: Any, **params: Any) -> tuple[Any, ...]:
        """Run the steps."""
        return self.walked(compile, values, params)

    def walked(
        self,
        compile: Compile,
        values: Sequence[Any],
        params: dict[Any, Any],
        visit: Visit | None = None,
    ) -> tuple[Any, ...]:
        """Run the steps; `visit` is called before each with its number and the carry."""
        body, carried, limit = params["body"], params["carried"], params["limit"]
        fixed = len(values) - carried
        consts, carry = list(values[:fixed]), list(values[fixed:])
        goes_on, step = compile(params["condition"]), compile(body)
        ys: list[list[Any]] = [[] for _ in body.outputs[carried:]]
        count = 0
        while goes_on([*consts, *carry])[0]:
            if limit is not None and count >= limit:
                raise GuardError(
                    f"a while_loop did not end within max_steps={limit} steps. Allow more steps, "
                    "or check why its condition stays true."
                )
            if visit is not None:
                visit(count, carry)
            out = step([*consts, *carry])
            carry = out[:carried]
            for y, value in zip(ys, out[carried:], strict=True):
                y.append(value)
            count += 1
        stacks = [
            np.array(y, n.spec.dtype).reshape(count, *n.spec.shape)
            for y, n in zip(ys, body.outputs[carried:], strict=True)
        ]
        return (*carry, np.int64(count), *stacks)

    def vjp(
        self, node: Node, t: Any, out: tuple[Array, ...], inputs: Sequence[Any], ctx: RuleContext
    ) -> Any:
        """The backward loop over the steps that were taken."""
        return reverse.pull_while(node, t, out, inputs, ctx)

    def jvp(
        self,
        node: Node,
        dots: Sequence[Any],
        out: tuple[Array, ...],
        inputs: list[Array],
        ctx: RuleContext,
    ) -> Any:
        """The same loop, with tangents next to the carry."""
        return forward.push_while(node, dots, inputs, ctx)

    def series(self, call: SeriesCall) -> forward.Results:
        """The same loop, with Taylor coefficients next to the carry."""
        return forward.while_series(call)

    def batched(self, args: Any, batched: Any, size: Any, params: dict[str, Any]) -> Any:
        """The same loop for a batch, until the last batch element has finished."""
        return batching.while_(args, batched, size, params)


class Choice(Control):
    """One of several bodies."""

    control_flow = BRANCH
    differentiation = Differentiation(masks=True, takes_parts=True)

    def infer(self, specs: Sequence[Any], params: dict[str, Any]) -> tuple[Spec, ...]:
        """The specs of the results, which are the same for all branches."""
        check_conditional(self.name, specs, params)
        branches = params["branches"]
        for k, branch in enumerate(branches):
            self.check(branch, specs[1:], f"branch {k}")
        return tuple([Spec(n.spec.shape, n.spec.dtype) for n in branches[0].outputs])

    def updated_operand(self, node: Node, output: int) -> int | None:
        """The operand that an output is, with some elements written by branches."""
        index = updated_in_all(node.params["branches"], output)
        return None if index is None else index + 1

    def run_by(self, compile: Compile, *values: Any, **params: Any) -> tuple[Any, ...]:
        """Run the selected branch; an index out of range selects the first or last."""
        which, *operands = values
        branches = params["branches"]
        return tuple(compile(branches[min(max(int(which), 0), len(branches) - 1)])(operands))

    def vjp(
        self, node: Node, t: Any, out: tuple[Array, ...], inputs: Sequence[Any], ctx: RuleContext
    ) -> Any:
        """The conditional of the branches' pullbacks."""
        return pull_conditional(node, t, inputs, ctx)

    def jvp(
        self,
        node: Node,
        dots: Sequence[Any],
        out: tuple[Array, ...],
        inputs: list[Array],
        ctx: RuleContext,
    ) -> Any:
        """The conditional of the branches' JVPs."""
        return forward.push_conditional(node, dots, inputs, ctx)

    def series(self, call: SeriesCall) -> forward.Results:
        """The conditional of the Taylor coefficients of the branches."""
        return forward.choice_series(self.name, call)

    def batched(self, args: Any, batched: Any, size: Any, params: dict[str, Any]) -> Any:
        """The same conditional for a batch; all branches run if the selector is batched."""
        return batching.choice(args, batched, size, params)


scan_op = register(Scan("scan", "A loop whose length is known before it starts."))
while_op = register(While("while", "A loop that ends when its condition is false."))
cond_op = register(Choice("cond", "One of two bodies: the second if the first operand is true."))
switch_op = register(Choice("switch", "One of several bodies, by index."))


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


def call_body(body: Body, operands: Sequence[Any]) -> tuple[Any, ...]:
    """The results of a body, whose code stays a function of its own."""
    no_lengths = np.zeros(0, dtype=np.int64)
    return tuple(lookup("sized")(no_lengths, *operands, branches=(body,), names=()))
