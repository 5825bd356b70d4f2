"""Unrolled loops: the loops of a graph run and recorded step by step, for diagnosis.

The node of a loop has operands and results, but not the values in its steps.  To find where a NaN
first appears in a loop, its steps are recorded as nodes, each with the number of its step.

    step_by_step   the results of a loop or branch, for `inline_graph`
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.handle import Handle
from wengert._engine.core.node import Node
from wengert._engine.core.op import lookup
from wengert._engine.core.replay import inline_graph
from wengert._engine.core.tracing import stepping
from wengert.errors import GuardError, at

if TYPE_CHECKING:
    from wengert._engine.core.types import Array


def step_by_step(node: Node, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """The results of a loop or branch, with its nodes recorded as they run; None for other nodes.

    Parameters
    ----------
    node : Node
    args : sequence
        Tensors with values, arrays and numbers.
    params : dict
    """
    name = node.op.name
    if name == "scan":
        return _scan(args, params)
    if name == "while":
        return _while(node, args, params)
    if name in ("cond", "switch"):
        branches = params["branches"]
        index = min(max(int(_plain(args[0])), 0), len(branches) - 1)
        return tuple(inline_graph(branches[index], args[1:], step_by_step))
    return None


def _scan(args: Sequence[Any], params: dict[str, Any]) -> tuple[Any, ...]:
    body, carried, stacked = params["body"], params["carried"], params["stacked"]
    count = params["length"]
    if params["counted"]:
        count, args = max(int(_plain(args[0])), 0), args[1:]
    fixed = len(args) - carried - stacked
    consts, carry, rows = args[:fixed], args[fixed : fixed + carried], args[fixed + carried :]
    columns: list[list[Any]] = [[] for _ in body.outputs[carried:]]
    numbers = range(count)
    for k in stepping(body.name, reversed(numbers) if params["reverse"] else numbers):
        outs = inline_graph(body, [*consts, *carry, *[x[k] for x in rows]], step_by_step)
        carry = outs[:carried]
        for column, y in zip(columns, outs[carried:], strict=True):
            column.append(y)
    if params["reverse"]:
        columns = [c[::-1] for c in columns]
    return (*carry, *_stacked(columns, body.outputs[carried:]))


def _while(node: Node, args: Sequence[Any], params: dict[str, Any]) -> tuple[Any, ...]:
    body, condition, carried = params["body"], params["condition"], params["carried"]
    consts, carry = list(args[: len(args) - carried]), list(args[len(args) - carried :])
    columns: list[list[Any]] = [[] for _ in body.outputs[carried:]]
    count = 0
    for count in stepping(body.name, itertools.count()):
        if not _plain(inline_graph(condition, [*consts, *carry], step_by_step)[0]):
            break
        limit = params["limit"]
        if limit is not None and count >= limit:
            raise GuardError(
                f"a while_loop did not end within max_steps={limit} steps{at(node.where)}."
            )
        outs = inline_graph(body, [*consts, *carry], step_by_step)
        carry = outs[:carried]
        for column, y in zip(columns, outs[carried:], strict=True):
            column.append(y)
    return (*carry, np.int64(count), *_stacked(columns, body.outputs[carried:]))


def _stacked(columns: Sequence[list[Any]], outputs: Sequence[Node]) -> list[Any]:
    arrays: list[Any] = []
    for column, out in zip(columns, outputs, strict=True):
        if any(isinstance(y, Handle) for y in column):
            arrays.append(lookup("stack")(*column, axis=0))
        else:
            arrays.append(np.array(column, out.spec.dtype).reshape(len(column), *out.spec.shape))
    return arrays


def _plain(x: Array) -> Any:
    return x.node.value if isinstance(x, Handle) else x
