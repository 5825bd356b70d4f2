"""Style 003: a decorator for methods, and a table of gradients by name (che3le's Tensor).

    class Tensor(wengert.Tensor):
        @backward("MatMul")
        def __matmul__(self, other):
            return Tensor(self.data @ other.data)

    @gradients("MatMul")
    def _(grad, out, x, y):
        return grad @ y.T, x.T @ grad

The decorated method computes the value only.  The decorator records the parents, the gradient
function and its name (`grad_fn_name` is "MatMulBackward"), for tensors, activations and losses.
Operands are the positional arguments that are tensors, arrays or numbers, and `self` if it is a
tensor; keyword arguments, and a `self` that is not a tensor, are context.

The rule is looked up by its name when a derivative needs it: first in a method
``grad_compute(name, grad, out, *operands)`` of `self`, if it has one (of a tensor's class, a static
method), else in the table `gradients`.  A rule gets the complete gradient of the result and returns
one contribution for each operand; it never writes to `.grad` and never accumulates.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from wengert._engine.core.handle import Handle, wrap
from wengert._engine.core.node import constant
from wengert._engine.core.op import REGISTRY, register
from wengert._engine.core.spec import spec_of
from wengert._engine.kinds.opaque import Opaque
from wengert.errors import NotDifferentiableError, RegistryError, at, user_line

from .style_adapter import UserOperation, name_in_module

Rule = Callable[..., Any]


class Gradients:
    """A table of gradient rules by name: ``rule(grad, out, *operands) -> tuple``."""

    def __init__(self) -> None:
        self._rules: dict[str, Rule] = {}

    def __call__(self, name: str, replace: bool = False) -> Callable[[Rule], Rule]:
        """Register a rule under a name (a decorator); the same module may replace it."""

        def add(rule: Rule) -> Rule:
            known = self._rules.get(name, rule)
            if known.__module__ != rule.__module__ and not replace:
                raise RegistryError(
                    f"A gradient named {name!r} is already registered. Use another name, pass "
                    f"replace=True, or assign gradients[{name!r}]{at(user_line())}."
                )
            self._rules[name] = rule
            return rule

        return add

    def __setitem__(self, name: str, rule: Rule) -> None:
        self._rules[name] = rule

    def __getitem__(self, name: str) -> Rule:
        try:
            return self._rules[name]
        except KeyError:
            raise RegistryError(
                f"No gradient named {name!r} is registered; known are "
                f"{', '.join(sorted(self._rules)) or 'none'}. Register one with "
                f"@gradients({name!r}){at(user_line())}."
            ) from None

    def __delitem__(self, name: str) -> None:
        self[name]
        del self._rules[name]

    def __contains__(self, name: object) -> bool:
        return name in self._rules

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._rules))

    def __len__(self) -> int:
        return len(self._rules)


gradients = Gradients()


def grad_compute(op_type: str, grad: Any, out: Any, *operands: Any) -> Any:
    """The contributions of an operation, by its name.

    Examples
    --------
    >>> from wengert.extend import grad_compute
    >>> grad_compute("mul", 1.0, 6.0, 2.0, 3.0)
    (3.0, 2.0)
    """
    return gradients[op_type](grad, out, *operands)


_RULES: dict[str, Rule] = {
    "add": lambda grad, out, x, y: (grad, grad),
    "sub": lambda grad, out, x, y: (grad, -grad),
    "neg": lambda grad, out, x: (-grad,),
    "mul": lambda grad, out, x, y: (grad * y, grad * x),
    "truediv": lambda grad, out, x, y: (grad / y, -(grad / y) * out),
    "exp": lambda grad, out, x: (grad * out,),
    "relu": lambda grad, out, x: (grad * (x > 0),),
}
for _name, _rule in _RULES.items():
    gradients[_name] = _rule


class Decorated(UserOperation):
    """The operation of a decorated method."""

    def __init__(self, function: Callable[..., Any], label: str) -> None:
        super().__init__(self._value, name_in_module(function), f"{label}Backward")
        self.label = label
        self.method = function
        self.__doc__ = function.__doc__
        self.vjp_rule = self._rule

    def _value(self, *values: Any, owner: Any, cls: type | None, **context: Any) -> Any:
        operands = [_as_tensor(v, cls) for v in values]
        if owner is not None:
            operands.insert(0, owner)
        return self.method(*operands, **context)

    def _rule(
        self, grad: Any, out: Any, *operands: Any, owner: Any, cls: Any, **context: Any
    ) -> Any:
        own = getattr(owner if owner is not None else cls, "grad_compute", None)
        if own is not None:
            return own(self.label, grad, out, *operands, **context)
        if self.label not in gradients:
            raise NotDifferentiableError(
                f"The derivative of {self.name} was needed, but no gradient named {self.label!r} "
                f"is registered; known are {', '.join(gradients)}. Register one with "
                f"@gradients({self.label!r}){at(user_line())}."
            )
        return gradients[self.label](grad, out, *operands, **context)


def _as_tensor(value: Any, cls: type | None) -> Any:
    """A value as a tensor of the class, without history."""
    if spec_of(value) is None:
        return value
    handle = wrap(constant(value if isinstance(value, np.ndarray) else np.asarray(value)))
    return handle if cls is None else in_class(handle, cls)


def in_class(x: Any, cls: type) -> Any:
    """`x` as a tensor of a user's class, so that its decorated methods are used.

    Parameters
    ----------
    x : Tensor, array, number, or tuple of these
    cls : class derived from Tensor

    Returns
    -------
    cls
        A tensor that refers to the same node, so derivatives pass.
    """
    if isinstance(x, tuple):
        return tuple(in_class(h, cls) for h in x)
    if type(x) is cls:
        return x
    tensor: Any = object.__new__(cls)
    tensor.node = x.node if isinstance(x, Handle) else constant(np.array(x))
    return tensor


def backward(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a method an operation with the gradient of a given name (a decorator).

    Parameters
    ----------
    name : str
        The name of the rule; ``grad_fn_name`` of a result is the name and "Backward".

    Returns
    -------
    callable
        The method. If `self` is a tensor of a subclass, so is the result.

    Examples
    --------
    >>> from wengert.extend import backward, gradients
    >>> class Cube:
    ...     @backward("Cube")
    ...     def forward(self, x):
    ...         return x.data**3
    >>> @gradients("Cube")
    ... def _(grad, out, x):
    ...     return (3.0 * grad * x**2,)
    >>> x = wg.tensor(2.0, requires_grad=True)
    >>> y = Cube().forward(x)
    >>> y.grad_fn_name
    'CubeBackward'
    >>> y.backward()
    >>> x.grad
    Tensor(12., dtype=float64)
    """

    def decorate(method: Callable[..., Any]) -> Callable[..., Any]:
        op = Decorated(method, name)
        register(op, replace=isinstance(REGISTRY.get(op.name), Decorated))

        @functools.wraps(method)
        def wrapper(self: Any, *operands: Any, **context: Any) -> Any:
            owner, cls = self, None
            if isinstance(self, Handle):
                owner, cls, operands = None, type(self), (self, *operands)
            elif spec_of(self) is not None:
                owner, operands = None, (self, *operands)
            params = {"owner": owner, "cls": cls, **context}
            result = Opaque.__call__(op, *operands, **params)
            return result if cls is None else in_class(result, cls)

        wrapper.operation = op  # type: ignore[attr-defined]
        return wrapper

    return decorate


__all__ = ["backward", "grad_compute", "gradients", "in_class"]
