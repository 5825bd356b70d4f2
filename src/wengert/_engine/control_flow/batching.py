"""Batching rules of loops and branches.

The body is evaluated for the batch (autodiff/batch_graph.py).  The result of a step is batched if
one of its operands is, so the batched parts of the carry are found by fixed-point iteration.  If
the batch elements of a while loop take different numbers of steps, all run as many as the longest,
and those that have finished keep their values.

    scan, while_, choice, custom  batching rules of the operations
    for_batch                     a body for a batch

Bodies that also run for batch elements which do not need their results.

Under `vmap` both branches of a conditional run for all elements, and a loop runs as long as its
longest element.  What an element computes in a branch that it does not take, or after its last
step, is discarded; but an index may be out of bounds there, and a loop inside may not end.  So
indices are 0 there, and loops inside take no steps.

    inline_guarded   the nodes of a body, for elements that may be inactive
    with_activity    the body with one more input: whether the element is active
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.autodiff.batch_graph import BatchedGraph
from wengert._engine.core.graph_classes import Body
from wengert._engine.core.graph_copies import inline_graph
from wengert._engine.core.handle import Handle, describe, shape_of, wrap
from wengert._engine.core.node import Node, constant
from wengert._engine.core.op import lookup
from wengert._engine.core.op_facts import BRANCH, LOOP
from wengert._engine.core.recording import enable_grad, tracing, tracing_body
from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic.dim import Dim, is_open
from wengert._engine.core.tracing import placeholder
from wengert._engine.ops.casts import astype

from .eager_loops import strong

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Size

Flags = tuple[bool, ...]


@functools.lru_cache(maxsize=512)
def for_batch(body: Body, flags: Flags, size: int, required: Flags) -> tuple[Body, Flags]:
    """A body for a batch, and which of its results are batched.

    Parameters
    ----------
    body : Body
    flags : tuple of bool
        Which inputs are batched.
    size : int or Dim
        The size of the batch.
    required : tuple of bool
        Which results must have a batch axis, even if all batch elements are equal.
    """
    with tracing_body():
        inputs = [
            _batched_placeholder(n, size if f else None)
            for n, f in zip(body.inputs, flags, strict=True)
        ]
        nodes = BatchedGraph({}, size, 0)
        nodes.known.update(
            {n: (wrap(x), f) for n, x, f in zip(body.inputs, inputs, flags, strict=True)}
        )
        results, batched_outputs = [], []
        for (x, is_batched), n, is_required in zip(
            nodes.values(body.outputs), body.outputs, required, strict=True
        ):
            if is_required and not is_batched:
                x = lookup("broadcast_to")(x, shape=(size, *n.spec.shape))
            results.append(strong(x))
            batched_outputs.append(is_batched or is_required)
    return Body(*results, inputs=inputs, name=body.name), tuple(batched_outputs)


def _batched_placeholder(node: Node, size: int | None) -> Node:
    spec = node.spec
    shape = spec.shape if size is None else (size, *spec.shape)
    return placeholder(Spec(shape, spec.dtype), node.name, type(node) is Node)


def _batched_loop_body(
    body: Body, flags: Flags, carried: range, size: int, length: Size | None
) -> tuple[Body, Flags, Flags]:
    """A body for a batch, the flags of its inputs, and those of its results.

    Results that are stacked along an unknown length always get a batch axis, because they cannot be
    broadcast after the loop.
    """
    while True:
        ys_count = len(body.outputs) - len(carried)
        required = [*[flags[k] for k in carried], *[is_open(length)] * ys_count]
        batched_body, batched_outputs = for_batch(body, flags, size, tuple(required))
        input_flags = list(flags)
        input_flags[carried.start : carried.stop] = batched_outputs[: len(carried)]
        if tuple(input_flags) == flags:
            return batched_body, flags, batched_outputs
        flags = tuple(input_flags)


def _repeated(x: Any, size: Any) -> Any:
    """A value repeated for the batch."""
    if not hasattr(x, "dtype"):
        x = np.asarray(x)
    if isinstance(size, Dim) and not isinstance(x, Handle):
        x = wrap(constant(x))  # an array cannot be broadcast to a symbolic size, a node can
    return lookup("broadcast_to")(x, shape=(size, *shape_of(x)))


def _swap_first_axes(x: Array) -> Any:
    """Swap the first two axes."""
    axes = list(range(len(shape_of(x))))
    axes[:2] = 1, 0
    return lookup("transpose")(x, axes=tuple(axes))


def scan(args: Sequence[Any], flags: Sequence[bool], size: int, params: dict[str, Any]) -> Any:
    """A scan for a batch."""
    body, carried, stacked = params["body"], params["carried"], params["stacked"]
    count = params["counted"]
    counts, args = list(args[:count]), list(args[count:])
    counts_differ = count and flags[0]
    flags = tuple(flags[count:])
    fixed = len(args) - carried - stacked
    if counts_differ:
        body = _idle_after_count(body, fixed, carried, params["reverse"])
        longest = lookup("max")(counts[0])
        first = longest - 1 if params["reverse"] else np.int64(0)
        args[fixed:fixed] = [counts[0], first]
        flags = (*flags[:fixed], True, False, *flags[fixed:])
        counts, fixed, carried = [longest], fixed + 1, carried + 1
    batched_body, input_flags, output_flags = _batched_loop_body(
        body, flags, range(fixed, fixed + carried), size, params["length"]
    )
    for k in range(fixed, fixed + carried):
        if input_flags[k] and not flags[k]:
            args[k] = _repeated(args[k], size)
    for k in range(fixed + carried, len(args)):
        if flags[k]:
            args[k] = _swap_first_axes(args[k])
    outs = lookup("scan")(*counts, *args, **{**params, "body": batched_body, "carried": carried})
    results = []
    for k, (x, is_batched) in enumerate(zip(outs, output_flags, strict=True)):
        x = x if is_batched else _repeated(x, size)
        results.append(_swap_first_axes(x) if is_batched and k >= carried else x)
    return tuple(results[1:] if counts_differ else results)


def _idle_after_count(body: Body, fixed: int, carried: int, reverse: bool) -> Body:
    """A body whose steps only have an effect if their number, which it carries, is below `end`."""
    with tracing_body():
        inputs = [placeholder(n.spec, n.name, type(n) is Node) for n in body.inputs]
        end, number = (wrap(placeholder(Spec((), np.dtype(np.int64)))) for _ in range(2))
        handles = [wrap(n) for n in inputs]
        active = number < end
        outs = [strong(x) for x in inline_guarded(body, handles, active)]
        carry = _select(active, outs[:carried], handles[fixed : fixed + carried])
        ys = [lookup("where")(active, y, _zero(y)) for y in outs[carried:]]
        results = [number - 1 if reverse else number + 1, *carry, *ys]
    full = [*inputs[:fixed], end.node, number.node, *inputs[fixed:]]
    return Body(*results, inputs=full, name=body.name)


def _zero(x: Any) -> Any:
    return np.zeros((), x.dtype)[()]


def _select(active: Any, new: Sequence[Any], old: Sequence[Any]) -> list[Any]:
    """The new values for batch elements that are still active, and the old ones for the others."""
    where: Any = lookup("where")
    return [where(active, a, b) for a, b in zip(new, old, strict=True)]


def while_(args: Sequence[Any], flags: Sequence[bool], size: int, params: dict[str, Any]) -> Any:
    """A while loop for a batch, which runs until the last batch element has finished."""
    body, condition, carried = params["body"], params["condition"], params["carried"]
    fixed = len(args) - carried
    args = list(args)
    batched_body, input_flags, output_flags = _batched_loop_body(
        body, tuple(flags), range(fixed, len(args)), size, params["length"]
    )
    batched_condition, [steps_differ] = for_batch(condition, input_flags, size, (False,))
    if steps_differ:
        body, condition = _idle_when_false(body, condition, fixed, carried)
        args.append(np.int64(0))
        all_flags = (*flags, True)
        batched_body, input_flags, output_flags = _batched_loop_body(
            body, all_flags, range(fixed, len(args)), size, params["length"]
        )
        batched_condition, _ = for_batch(condition, input_flags, size, (True,))
        batched_condition = _any(batched_condition)
        flags, carried = (*flags, False), carried + 1
    for k in range(fixed, len(args)):
        if input_flags[k] and not flags[k]:
            args[k] = _repeated(args[k], size)
    outs = lookup("while")(
        *args,
        **{**params, "body": batched_body, "condition": batched_condition, "carried": carried},
    )
    carry, count, ys = outs[:carried], outs[carried], outs[carried + 1 :]
    carry = [x if f else _repeated(x, size) for x, f in zip(carry, output_flags, strict=False)]
    ys = [
        _swap_first_axes(y) if f else _repeated(y, size)
        for y, f in zip(ys, output_flags[carried:], strict=True)
    ]
    if steps_differ:
        return (*carry, *ys)  # the last value of the carry is the number of steps per element
    return (*carry, _repeated(count, size), *ys)


def _idle_when_false(body: Body, condition: Body, fixed: int, carried: int) -> tuple[Body, Body]:
    """A body that keeps its carry once the condition is false, and counts the steps before that."""
    with tracing_body():
        inputs = [placeholder(n.spec, n.name, type(n) is Node) for n in body.inputs]
        steps = wrap(placeholder(Spec((), np.dtype(np.int64))))
        handles = [wrap(n) for n in inputs]
        (active,) = inline_graph(condition, handles)
        outs = [strong(x) for x in inline_guarded(body, handles, active)]
        carry = _select(active, outs[:carried], handles[fixed:])
        results = [*carry, steps + astype(active, np.int64)]
        results += outs[carried:]
    all_inputs = [*inputs, steps.node]
    condition_inputs = [*condition.inputs, placeholder(Spec((), np.dtype(np.int64)))]
    return Body(*results, inputs=all_inputs, name=body.name), Body(
        *condition.outputs, inputs=condition_inputs, name=condition.name
    )


def _any(condition: Body) -> Body:
    """A condition that holds if that of any batch element does."""
    with tracing_body():
        any_holds = lookup("any")(wrap(condition.outputs[0]))
    return Body(any_holds, inputs=condition.inputs, name=condition.name)


def custom(args: Sequence[Any], flags: Sequence[bool], size: int, params: dict[str, Any]) -> Any:
    """A custom call for a batch, whose rule is applied to each batch element."""
    captured = params["captured"]
    body = params["rule"].body_for_batch(params["body"], captured)
    batched_body, _ = for_batch(body, tuple(flags), size, (True,) * len(body.outputs))
    rule = params["rule"].for_batch(tuple(flags[captured:]))
    return lookup("custom_call")(*args, body=batched_body, rule=rule, captured=captured)


def choice(args: Sequence[Any], flags: Sequence[bool], size: int, params: dict[str, Any]) -> Any:
    """A conditional for a batch; if the selector is batched, all branches run."""
    which, *operands = args
    branches: Sequence[Body] = params["branches"]
    operand_flags = tuple(flags[1:])
    required = (True,) * len(branches[0].outputs)
    if not flags[0]:
        batched_branches = [for_batch(b, operand_flags, size, required)[0] for b in branches]
        name = "cond" if len(branches) == 2 and which.dtype.kind == "b" else "switch"
        return lookup(name)(which, *operands, branches=tuple(batched_branches))
    rows = []
    with np.errstate(all="ignore"):  # branches that are not selected may overflow or divide by zero
        for k, branch in enumerate(branches):
            guarded = with_activity(branch, guard=True)
            batched_branch, _ = for_batch(guarded, (*operand_flags, True), size, required)
            active = _is_selected(which, k, len(branches))
            rows.append(inline_graph(batched_branch, [*operands, active]))
    columns = list(zip(*rows, strict=True))
    return tuple([_select_branch(which, list(column)) for column in columns])


def _is_selected(which: Any, k: int, count: int) -> Any:
    """Whether a branch is selected, for each batch element."""
    if which.dtype.kind == "b":
        return which if k else lookup("logical_not")(which)
    if k == 0:
        return which <= 0
    return which >= k if k == count - 1 else which == k


def _select_branch(which: Array, column: list[Any]) -> Any:
    """The result of the selected branch for each batch element."""
    ndim = len(shape_of(column[0]))
    which = lookup("reshape")(which, shape=(*shape_of(which), *[1] * (ndim - 1)))
    if which.dtype.kind == "b":
        return lookup("where")(which, column[1], column[0])
    selected = column[-1]
    for k in range(len(column) - 2, -1, -1):
        selected = lookup("where")(which <= k, column[k], selected)
    return selected


_TRUTH = Spec((), np.dtype(bool))


def inline_guarded(body: Body, values: Sequence[Any], active: Any) -> list[Any]:
    """The outputs of a body for these values, if an element is active; else any values."""

    def instead(node: Node, args: Sequence[Any], params: dict[str, Any]) -> Any:
        op: Any = node.op
        if "index" in params:
            return _guarded_index(op, args, params, active)
        if op.control_flow == BRANCH and "branches" in params:
            branches = tuple([with_activity(b, guard=True) for b in params["branches"]])
            return op(*args, active, **{**params, "branches": branches})
        if op.control_flow == LOOP and "condition" in params:
            body, condition = params["body"], params["condition"]
            both = {
                "body": with_activity(body, guard=False, first=True),
                "condition": _and_active(condition),
            }
            return op(active, *args, **{**params, **both})
        if op.control_flow == LOOP and params.get("counted"):
            return op(lookup("where")(active, args[0], np.int64(0)), *args[1:], **params)
        if op.control_flow == LOOP and "counted" in params:
            body = with_activity(params["body"], guard=True, first=True)
            return op(active, *args, **{**params, "body": body})
        return None

    return inline_graph(body, values, instead)


def _guarded_index(op: Any, args: Sequence[Any], params: dict[str, Any], active: Any) -> Any:
    """An operation with an index, whose integers are 0 if the element is not active."""
    guarded = list(args)
    for k in range(len(args))[op.selectors]:
        spec = describe(args[k])
        if spec.dtype.kind in "iu":
            guarded[k] = lookup("where")(active, args[k], np.zeros((), spec.dtype)[()])
    return op(*guarded, **params)


@functools.lru_cache(maxsize=512)
def with_activity(body: Body, guard: bool, first: bool = False) -> Body:
    """The body with one more input, which is the last one or the first.

    Without `guard` it does not use it: the body of a ``while`` loop only runs for active elements.
    """
    with tracing() as opened, enable_grad():
        opened.isolated = opened.general = True
        inputs = [placeholder(n.spec, n.name, type(n) is Node) for n in body.inputs]
        active = placeholder(_TRUTH)
        values = [wrap(n) for n in inputs]
        outs = inline_guarded(body, values, wrap(active)) if guard else inline_graph(body, values)
        results = [strong(x) for x in outs]
    return Body(*results, inputs=[active, *inputs] if first else [*inputs, active], name=body.name)


@functools.lru_cache(maxsize=512)
def _and_active(condition: Body) -> Body:
    """The condition of a loop that takes no steps for elements that are not active."""
    with tracing() as opened:
        opened.isolated = opened.general = True
        inputs = [placeholder(n.spec, n.name, type(n) is Node) for n in condition.inputs]
        active = placeholder(_TRUTH)
        (goes_on,) = inline_guarded(condition, [wrap(n) for n in inputs], wrap(active))
        both = lookup("logical_and")(wrap(active), goes_on)
    return Body(both, inputs=[active, *inputs], name=condition.name)
