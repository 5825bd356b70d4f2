"""Constant folding: nodes that depend on constants only are computed when a graph is simplified.

Nodes with large results are not computed: `np.eye(10_000) * 2` should not make a saved graph large.
An array filled with one number (`full`) is replaced by another one if an operation treats all
elements equally, even if sizes are symbolic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.node import CONSTANT, Node
from wengert._engine.core.node_properties import sizes_of
from wengert._engine.core.op import Op
from wengert._engine.core.spec import Spec, spec_of
from wengert._engine.core.symbolic.dim import is_symbolic
from wengert.errors import WengertError

from ..rule import Descriptor, NodeBuilder, NodeRule, rule

if TYPE_CHECKING:
    from wengert._engine.core.types import Operand

MAX_BYTES = 1 << 16  # maximum bytes of a result stored as a constant
_REARRANGING = (
    "reshape transpose expand_dims squeeze flip roll copy diagonal broadcast_to getitem"
).split()


def _all_constant(op: Op, operands: tuple[Descriptor, ...]) -> bool:
    def is_constant(d: Descriptor) -> bool:
        return isinstance(d, str) or getattr(d, "kind", "") == "creation"

    return bool(operands) and all(map(is_constant, operands))


def _computed(node: Node, new: NodeBuilder) -> Node | None:
    """The value of a node, computed from the values of its operands."""
    spec = new.context.spec(node)
    if type(spec) is not Spec or is_symbolic(spec.shape) or sizes_of(node.params):
        return None
    operands = [new.context.spec(a) for a in node.args]
    if any(type(s) is not Spec or is_symbolic(s.shape) for s in operands):
        return None
    if max(map(_bytes, (spec, *operands))) > MAX_BYTES:
        return None
    values = [a.value if a.op is CONSTANT else a.op.run(**a.params) for a in node.args]
    value = _run(node, values, spec)
    return None if value is None else new.context.constant(value)


def _bytes(spec: Spec) -> int:
    return int(np.prod(spec.shape, dtype=float)) * spec.dtype.itemsize


def _run(node: Node, values: list[Any], spec: Spec) -> Any:
    """The result of an operation; None if it has another spec than inferred, or raises."""
    op: Any = node.op
    try:
        with np.errstate(all="ignore"):
            value = op.run(*values, **node.params)
    except (WengertError, TypeError, ValueError, IndexError, ArithmeticError):
        return None  # the error is raised when the graph runs, with the user's line
    if spec.weak and isinstance(value, np.generic):
        value = value.item()
    actual = spec_of(value)
    if actual != spec:
        return None
    # A copy, because a view would keep the whole array alive, and change with it.
    return np.array(value) if isinstance(value, np.ndarray) else value


computed = NodeRule(
    "compute",
    _computed,
    _all_constant,
    reason="the value is the same in each run of the graph",
    exact=True,
    example=(lambda x: x * np.sqrt(np.full_like(x, 2.0)), np.ones(3)),
)


def _all_uniform(op: Op, operands: tuple[Descriptor, ...]) -> bool:
    strings = all(isinstance(d, str) for d in operands)
    return op.kind == "elementwise" and strings and any(d[:4] == "full" for d in operands)


def _computed_element(node: Node, new: NodeBuilder) -> Node | None:
    """An elementwise operation on arrays filled with one number, computed for one element."""
    context = new.context
    spec = context.spec(node)
    if not is_symbolic(spec.shape) and _bytes(spec) <= 64:
        return None
    values: list[Any] = []
    for a in node.args:
        number, operand_spec = context.number(a), context.spec(a)
        if number is None:
            return None
        values.append(number if operand_spec.weak else operand_spec.dtype.type(number))
    element = _run(node, values, Spec((), spec.dtype))
    return None if element is None else _full(new, spec, element)


def _full(new: NodeBuilder, spec: Spec, value: Operand) -> Node:
    number = value.item() if isinstance(value, np.generic) else value
    return new("full", shape=spec.shape, value=number, dtype=spec.dtype)


uniform = NodeRule(
    "compute one number",
    _computed_element,
    _all_uniform,
    reason="all elements are equal, so one is computed",
    exact=True,
    example=(lambda x: x + np.exp(np.full_like(x, 2.0)) * 3.0, np.ones((4, 5))),
)


def _moved_uniform(node: Node, new: NodeBuilder) -> Node | None:
    spec = new.context.spec(node)
    value = new.context.number(node.args[0])
    is_number = new.context.spec(node.args[0]).shape == ()
    if value is None or len(node.args) > 1 or (node.args[0].op is CONSTANT and not is_number):
        return None
    if node.args[0].op is CONSTANT and (spec.shape == () or not _is_large(spec)):
        return None
    return _full(new, spec, value)


def _is_large(spec: Spec) -> bool:
    return is_symbolic(spec.shape) or _bytes(spec) > 64


uniform_moved = rule(
    "move one number",
    _REARRANGING,
    ("full", "number"),
    reason="all elements are equal in any order",
    exact=True,
    example=(lambda x: x + np.reshape(np.full_like(x, 2.0), (5, 4)).T, np.ones((4, 5))),
)(_moved_uniform)


@rule(
    "cast one number",
    "cast",
    "full",
    reason="all elements are equal, so one is cast",
    exact=True,
    example=(lambda x: x + np.full_like(x, 2.0).astype("float32"), np.ones((4, 5))),
)
def uniform_cast(node: Node, new: NodeBuilder) -> Node | None:
    """An array filled with the number after the cast."""
    spec = new.context.spec(node)
    with np.errstate(all="ignore"):
        number = np.asarray(new.context.number(node.args[0])).astype(spec.dtype)[()]
    return _full(new, spec, number)


RULES = (uniform, uniform_moved, uniform_cast, computed)
