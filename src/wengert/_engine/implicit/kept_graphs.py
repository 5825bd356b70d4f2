"""Graphs of derivatives that are kept for repeated eager calls, with their constants as operands.

    by_graph                 the results of a function of arrays, by its graph
    KeptGraphs               graphs by key; the last ones used
    with_lifted_constants    bodies with the same inputs whose constants are further inputs

The derivative of a solution is a function of values that depends only on the graph of the equation.
Graphs are compared by content, so the graph of the derivative, traced once, is evaluated in later
calls with equal equations; nothing of the user's is kept, and no value.

A number or small array that a function captures is a constant of its graph.  What is made from the
graph, derivatives and compiled functions, is kept for equal graphs, so a constant that changes
between calls would have them made again.  As an operand it does not.

A constant is lifted if it is only added, subtracted, multiplied, a divisor or dividend, or part of
a matrix product: these operations have the same meaning, result and cost for operands.  Exponents,
bounds of loops and arguments of comparisons remain, since rules and rewriting depend on them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from wengert._engine.control_flow.closure_conversion import closed
from wengert._engine.core.graph_classes import Body, evaluated
from wengert._engine.core.graph_copies import rebuilt
from wengert._engine.core.handle import Handle, describe, value_of
from wengert._engine.core.node import CONSTANT, ConstantLeaf, LeafOp, Node
from wengert._engine.core.recording import current_trace
from wengert._engine.core.spec import Spec
from wengert._engine.core.thread_state import lock
from wengert._engine.core.tracing import placeholder

from .functions import is_constant, with_constants

T = TypeVar("T")
_MAX_GRAPHS = 256
_MAX_CONSTANTS = 1 << 17  # elements of the constants of a graph that is kept


class KeptGraphs(Generic[T]):
    """Values by key; the last ones used are kept."""

    def __init__(self) -> None:
        self._lock = lock()
        self._values: OrderedDict[Hashable, T] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value of a key, made if there is none."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        value = make()
        with self._lock:
            self._values[key] = value
            while len(self._values) > _MAX_GRAPHS:
                self._values.popitem(last=False)
        return value


def _elements(x: Any) -> int:
    return int(np.size(value_of(x)))


_kept: KeptGraphs[tuple[Any, tuple[bool, ...]] | None] = KeptGraphs()


def by_graph(
    key: Hashable, fun: Callable[..., Sequence[Any]], operands: Sequence[Any]
) -> list[Any]:
    """The results of a function of arrays; the function is traced once for a key and specs.

    Parameters
    ----------
    key : hashable
        Of everything that the function depends on except its operands; None: it is not kept.
    fun : callable
        Returns arrays, or None.
    operands : sequence
        If one is a tensor, or within a trace, the function is called.
    """
    is_plain = current_trace() is None and not any([isinstance(x, Handle) for x in operands])
    specs = [describe(x) for x in operands] if key is not None and is_plain else []
    if not specs or not all([type(s) is Spec for s in specs]):
        return list(fun(*operands))

    def make() -> tuple[Any, tuple[bool, ...]] | None:
        closure = closed(lambda *xs: list(fun(*xs)), specs, "a derivative", hoist=False)
        # Arrays that the derivative makes, such as the unit vectors of a Jacobian.
        made = closure.captured
        if not all(map(is_constant, made)) or sum(map(_elements, made)) > _MAX_CONSTANTS:
            return None
        return evaluated(with_constants(closure.body, made)), closure.live

    kept = _kept.get((key, *specs), make)
    if kept is None:
        return list(fun(*operands))
    run, live = kept
    found = iter(run(operands))
    return [next(found) if is_live else None for is_live in live]


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
