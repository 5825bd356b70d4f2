"""Predefined ops, and Python's operators on ops.

    Add Subtract Multiply Divide Negative Power MatMul      + - * / - ** @
    Exp Log Sin Cos Tanh SechSquared Sum Maximum Where
    Greater Less                                            discrete: without derivative
    Apply                  any differentiable function: an operation of another style, or of NumPy

Adjoints are the terms of df = a_1 dx_1 + a_2 dx_2 + ....  The engine undoes broadcasting.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wengert._engine.core.op import lookup
from wengert.errors import OperandError

from ..style_adapter import pull
from .op import OPERATORS, Adjoints, Expand, Op


def _op(
    name: str, method: str, adjoint: Callable[..., tuple[Any, ...]] | None, doc: str
) -> type[Op]:
    """A class of ops, from a method of transformers and ``adjoint(op, delta, *args) -> tuple``."""

    def transform(self: Op, transformer: Any, *args: Any) -> Any:
        return getattr(transformer, method)(*args)

    def generate_adjoints(self: Op, adjoints: Adjoints, delta: Op, *args: Op) -> None:
        assert adjoint is not None
        for x, contribution in zip(args, adjoint(self, delta, *args), strict=True):
            x.generate_add_delta(adjoints, contribution)

    body: dict[str, Any] = {"__doc__": doc, "__module__": __name__, "transform": transform}
    body["elementary"] = True
    if adjoint is None:
        body["discrete"] = True
    else:
        body["generate_adjoints"] = generate_adjoints
    return type(name, (Op,), body)


def _registered(operation: str) -> Callable[..., tuple[Any, ...]]:
    """The adjoint of a registered operation whose rules use arithmetic only."""
    rules = lookup(operation).rules  # type: ignore[attr-defined]
    return lambda op, t, *args: tuple([rule(t, op, *args) for rule in rules])


Greater = _op("Greater", "greater", None, "x > y.")
Less = _op("Less", "less", None, "x < y.")
Equal = _op("Equal", "equal", None, "x == y.")
Where: type[Op] = _op(
    "Where",
    "where",
    lambda op, t, c, x, y: (None, Where(c, t, 0.0), Where(c, 0.0, t)),
    "x where the condition is true, else y.",
)
Add = _op("Add", "add", _registered("add"), "x + y.")
Subtract = _op("Subtract", "subtract", _registered("subtract"), "x - y.")
Multiply = _op("Multiply", "multiply", _registered("multiply"), "x * y.")
Divide = _op("Divide", "divide", _registered("divide"), "x / y.")
Negative = _op("Negative", "negative", _registered("negative"), "-x.")
Exp = _op("Exp", "exp", _registered("exp"), "e to the x.")
Log = _op("Log", "log", _registered("log"), "The natural logarithm.")
Sin = _op("Sin", "sin", lambda op, t, x: (t * Cos(x),), "sin x.")
Cos: type[Op] = _op("Cos", "cos", lambda op, t, x: (-(t * Sin(x)),), "cos x.")
SechSquared = _op(
    "SechSquared",
    "sech_squared",
    lambda op, t, x: (-2.0 * (t * (op * Tanh(x))),),
    "1 / cosh(x)**2, accurate where tanh(x) is close to 1.",
)
Tanh: type[Op] = _op("Tanh", "tanh", lambda op, t, x: (t * SechSquared(x),), "tanh x.")
Sum = _op("Sum", "sum", lambda op, t, x: (Expand(t, x),), "The sum of all elements.")
Transpose: type[Op] = _op(
    "Transpose", "transpose", lambda op, t, x: (Transpose(t),), "Axes reversed."
)
MatMul = _op(
    "MatMul",
    "matmul",
    lambda op, t, x, y: (t @ Transpose(y), Transpose(x) @ t),
    "The product of two matrices.",
)


def _share(t: Op, mine: Op, other: Op) -> Op:
    return Where(mine > other, t, Where(mine < other, 0.0, 0.5 * t))


Maximum = _op(
    "Maximum",
    "maximum",
    lambda op, t, x, y: (_share(t, x, y), _share(t, y, x)),
    "The maximum of x and y; if they are equal, each gets half the derivative.",
)


def _power_adjoint(op: Op, t: Op, x: Op, y: Op) -> tuple[Op, Op]:
    by_zero = Equal(y, 0)
    of_zero = Equal(x, 0)
    by_x = Where(by_zero, 0, t * (y * x ** (Where(by_zero, 1, y) - 1)))
    return by_x, Where(of_zero, 0, t * (op * Log(Where(of_zero, 1, x))))


Power = _op(
    "Power", "power", _power_adjoint, "x ** y; dx is 0 where y is 0, and dy is 0 where x is 0."
)


class Apply(Op):
    """A differentiable function of arrays as an op, with derivatives of every order."""

    def __init__(self, function: Callable[..., Any], *args: Any, name: str | None = None) -> None:
        super().__init__(*args, name=name or getattr(function, "__name__", None))
        if not callable(function):
            raise OperandError(f"Apply was given a {type(function).__name__}, not a function.")
        self.function = function

    def transform(self, transformer: Any, *args: Any) -> Any:
        """The function itself, for any transformer."""
        return self.function(*args)

    def generate_adjoints(self, adjoints: Adjoints, delta: Op, *args: Op) -> None:
        """Contributions from the vjp of the function, an op for each argument."""
        for i, x in enumerate(args):
            x.generate_add_delta(adjoints, Apply(_pulled(self.function, i), delta, *args))


def _pulled(function: Callable[..., Any], index: int) -> Callable[..., Any]:
    def contribution(t: Any, *operands: Any) -> Any:
        bar = pull(function, operands, t)[index]
        return 0.0 if bar is None else bar  # an integer, without derivative

    return contribution


OPERATORS.update(
    add=Add,
    sub=Subtract,
    mul=Multiply,
    truediv=Divide,
    pow=Power,
    matmul=MatMul,
    neg=Negative,
    lt=Less,
    gt=Greater,
)

__all__ = [
    "Add",
    "Apply",
    "Cos",
    "Divide",
    "Equal",
    "Exp",
    "Greater",
    "Less",
    "Log",
    "MatMul",
    "Maximum",
    "Multiply",
    "Negative",
    "Power",
    "SechSquared",
    "Sin",
    "Subtract",
    "Sum",
    "Tanh",
    "Transpose",
    "Where",
]
