"""Constants of graphs as operands, so that repeated eager calls with other numbers trace nothing.

A number or small array that a function captures is a constant of its graph.  What is made from the
graph, derivatives and compiled functions, is kept for equal graphs, so a constant that changes
between calls would have them made again.  As an operand it does not.

    with_lifted_constants   bodies with the same inputs whose constants are further inputs

A constant is lifted if it is only added, subtracted, multiplied, a divisor or dividend, or part of
a matrix product: these operations have the same meaning, result and cost for operands.  Exponents,
bounds of loops and arguments of comparisons remain, since rules and rewriting depend on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert._engine.core.copy_graph import rebuilt
from wengert._engine.core.node import CONSTANT, ConstantLeaf, LeafOp, Node
from wengert._engine.core.spec import Spec
from wengert._engine.core.subgraph import Body
from wengert._engine.core.tracing import placeholder

_FLOAT = np.dtype(float)


def with_lifted_constants(bodies: Sequence[Body], captured: int) -> tuple[list[Body], list[Any]]:
    """Bodies with the same first inputs, whose constants are further inputs after these.

    Parameters
    ----------
    bodies : sequence of Body
    captured : int
        The number of the first inputs, which all bodies share.

    Returns
    -------
    bodies : list of Body
    values : list
        The values of the further inputs.
    """
    found = [_lifted(body) for body in bodies]
    values = [np.array(n.value)[()] for constants in found for n in constants]
    if not values:
        return list(bodies), []
    made, begin = [], 0
    for body, constants in zip(bodies, found, strict=True):
        inputs = [placeholder(Spec(np.shape(v), _FLOAT)) for v in values]
        own = inputs[begin : begin + len(constants)]
        begin += len(constants)
        new = dict(zip(constants, own, strict=True))
        copies = rebuilt([n for n in body.nodes if n not in new], new)
        given = [*body.inputs[:captured], *inputs, *body.inputs[captured:]]
        made.append(Body(*[copies[n] for n in body.outputs], inputs=given, name=body.name))
    return made, values


def _lifted(body: Body) -> list[Node]:
    """The constants of a body that may be operands."""
    outputs = set(body.outputs)
    candidates = {n for n in body.nodes if _is_number(n) and n not in outputs}
    for node in body.nodes:
        if isinstance(node.op, LeafOp):
            continue
        if not (_is_linear(node.op) and _is_strong(node)):
            candidates.difference_update(node.inputs)
    return sorted(candidates, key=lambda n: n.serial)


def _is_linear(op: Any) -> bool:
    """Whether an operation is a sum, a product, or what inverts one."""
    is_sum = op.kind == "elementwise" and op.constant_partials
    return bool(is_sum or op.multilinear or op.quotient is not None)


def _is_number(node: Node) -> bool:
    if not isinstance(node, ConstantLeaf) or node.op is not CONSTANT:
        return False
    return isinstance(node.value, np.ndarray | float) and node.spec.dtype == _FLOAT


def _is_strong(node: Node) -> bool:
    """Whether a result is float64 whatever the type of the constant: another operand is."""
    spec = node.spec
    return type(spec) is Spec and spec.dtype == _FLOAT and not spec.weak
