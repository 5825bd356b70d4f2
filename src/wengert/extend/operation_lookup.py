"""as_operation: an operation of any style as an operation on tensors.

Converts a behavior, a class of operators, a class of ops, a primitive or a decorated method to an
operation, for use on tensors and with `wengert.testing.check_op`.
"""

from __future__ import annotations

from typing import Any

from wengert._engine.core.dispatch import Operation
from wengert._engine.core.op import register
from wengert.errors import OperandError, at, user_line

from .behaviors.behavior import Behavior
from .op_classes.op import Op
from .op_classes.transformers import OpOperation
from .operator_classes.as_operation import OperatorOperation
from .operator_classes.operator import AbstractOperator

_made: dict[type, Any] = {}


def as_operation(thing: Any, name: str | None = None, oracle: Any = None) -> Any:
    """The operation on tensors, arrays and numbers of an object written in any style.

    Parameters
    ----------
    thing : Behavior, class of AbstractOperator or Op, decorated method, or operation
        The object to convert.
    name : str, optional
        Name under which the operation is registered.
    oracle : callable, optional
        An independent implementation of the value, for `wengert.testing.check_op`.

    Returns
    -------
    Operation
        The same operation for repeated calls with the same object.

    Raises
    ------
    OperandError
        `thing` is none of these.

    Examples
    --------
    >>> from wengert.extend import UnaryOperator, as_operation
    >>> class Square(UnaryOperator):
    ...     def compute(self, x):
    ...         return x * x
    ...
    ...     def get_parent_grad(self, my_grad, index):
    ...         return my_grad * (2.0 * self.parent)
    >>> square = as_operation(Square)
    >>> float(wg.grad(square)(3.0)), float(wg.grad(wg.grad(square))(3.0))
    (6.0, 2.0)
    """
    op = _operation_of(thing)
    if oracle is not None:
        op.oracle = oracle
    if name is not None:
        op.name = name
        register(op)
    return op


def _operation_of(thing: Any) -> Any:
    if isinstance(thing, Operation):
        return thing
    if isinstance(thing, Behavior):
        return thing.as_operation()
    if isinstance(thing, type):
        if issubclass(thing, Behavior):
            thing_ = _made.get(thing) or _made.setdefault(thing, thing())
            return thing_.as_operation()
        if issubclass(thing, AbstractOperator):
            return _made.get(thing) or _made.setdefault(thing, OperatorOperation(thing))
        if issubclass(thing, Op):
            return _made.get(thing) or _made.setdefault(thing, OpOperation(thing))
    if isinstance(getattr(thing, "operation", None), Operation):
        return thing.operation
    raise OperandError(
        f"{thing!r} is not an operation in any of the five styles. Pass a Behavior, a class "
        "derived from AbstractOperator or Op, a primitive, a method decorated with @backward, or "
        f"an operation of the native kinds{at(user_line())}."
    )
