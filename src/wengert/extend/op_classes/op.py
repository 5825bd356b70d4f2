"""Style 004: classes of ops with adjoints, and transformers that run them (Nervana Graph).

    class Multiply(Op):
        def __init__(self, x, y):
            super().__init__(x, y)                             a call becomes a node

        def transform(self, transformer, x, y):
            return transformer.multiply(x, y)                  a method of the transformer

        def generate_adjoints(self, adjoints, delta, x, y):    df = y dx + x dy
            x.generate_add_delta(adjoints, y * delta)
            y.generate_add_delta(adjoints, x * delta)

    x, y = placeholder(), placeholder()
    f = Multiply(x, y)
    f_x = deriv(f, x)                                          nodes again
    compute = make_transformer("numpy").computation([f, f_x], x, y)

`transform` gets the transformer and the values of the op's arguments; if it takes only the
transformer, it returns a method, which is called with the values.  `delta` is complete when
`generate_adjoints` is called: the engine has accumulated the contributions of all consumers.  An op
without `generate_adjoints` can be evaluated, but not differentiated.

Predefined ops are in library.py, transformers in transformers.py.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from wengert._engine.core.handle import value_of
from wengert.errors import (
    CycleError,
    GraphError,
    NotDifferentiableError,
    OperandError,
    RuleError,
    ShapeError,
    UnconnectedError,
    UnconnectedWarning,
    WengertError,
    at,
    rule_failed,
    user_line,
)

from ..style_adapter import accumulate, forgotten, total

OPERATORS: dict[str, Callable[..., Op]] = {}  # filled by library.py


def _operator(name: str, reflected: bool = False) -> Any:
    """A method that creates an op of the given name."""

    def build(self: Op, *others: Any) -> Op:
        operands = [self, *others]
        return OPERATORS[name](*(reversed(operands) if reflected else operands))

    return build


class Op:
    """A node: an operation on other ops.

    Parameters
    ----------
    *args : Op, Tensor, array or number
        The arguments; other values than ops become constants.
    name : str, optional
        Name in messages.

    Attributes
    ----------
    args : tuple of Op
    discrete : bool
        The derivative is zero (a comparison), so there are no adjoints.
    """

    discrete = False
    __array_ufunc__ = None  # array * op calls op.__rmul__
    __add__, __radd__ = _operator("add"), _operator("add", reflected=True)
    __sub__, __rsub__ = _operator("sub"), _operator("sub", reflected=True)
    __mul__, __rmul__ = _operator("mul"), _operator("mul", reflected=True)
    __truediv__, __rtruediv__ = _operator("truediv"), _operator("truediv", reflected=True)
    __pow__, __rpow__ = _operator("pow"), _operator("pow", reflected=True)
    __matmul__, __rmatmul__ = _operator("matmul"), _operator("matmul", reflected=True)
    __neg__, __lt__, __gt__ = _operator("neg"), _operator("lt"), _operator("gt")

    def __init__(self, *args: Any, name: str | None = None) -> None:
        self.args: tuple[Op, ...] = tuple(as_op(a) for a in args)
        self.name = name
        self.where = user_line()

    def transform(self, transformer: Any, *args: Any) -> Any:
        """The value, computed by a method of the transformer."""
        raise OperandError(
            f"{type(self).__name__} has no transform method, so it cannot run. Define "
            f"transform(self, transformer, *args), which calls a method of the transformer"
            f"{at(self.where)}."
        )

    def generate_adjoints(self, adjoints: Adjoints, delta: Op, *args: Op) -> None:
        """Contribute to the adjoint of each argument, given the complete adjoint of this op."""
        raise NotDifferentiableError(
            f"The derivative of {self!r} is needed, but {type(self).__name__} has no "
            "generate_adjoints method. Define one, or set discrete = True if the derivative is "
            f"zero{at(self.where)}."
        )

    def generate_add_delta(self, adjoints: Adjoints, delta: Any) -> None:
        """Add a contribution to the adjoint of this op; None for no contribution."""
        adjoints.add(self, None if delta is None else as_op(delta))

    def __repr__(self) -> str:
        name = f" {self.name}" if self.name else ""
        return f"<{type(self).__name__}{name}>"


# ---- leaves -------------------------------------------------------------------------------------


class Placeholder(Op):
    """An argument of a computation."""

    def transform(self, transformer: Any) -> Any:
        """Raise OperandError, because no value was passed."""
        raise OperandError(
            f"{self!r} has no value. Pass it as a placeholder to "
            f"transformer.computation(outputs, *placeholders){at(self.where)}."
        )


class Constant(Op):
    """A constant."""

    def __init__(self, value: Any, name: str | None = None) -> None:
        super().__init__(name=name)
        self.value = value

    def transform(self, transformer: Any) -> Any:
        """The value."""
        return lambda: self.value

    def __repr__(self) -> str:
        return f"<Constant {self.value!r}>"


class Variable(Op):
    """A value that persists between computations and can be trained."""

    def __init__(self, initial_value: Any, name: str | None = None) -> None:
        super().__init__(name=name)
        self.value = initial_value() if callable(initial_value) else initial_value

    def transform(self, transformer: Any) -> Any:
        """The current value."""
        return lambda: self.value

    def set_value(self, value: Any) -> None:
        """Set the value; the shape must not change."""
        if np.shape(value_of(value)) != np.shape(value_of(self.value)):
            raise ShapeError(
                f"set_value of {self!r}, of shape {np.shape(value_of(self.value))}, was given "
                f"shape {np.shape(value_of(value))}. Pass a value of the same shape"
                f"{at(user_line())}."
            )
        self.value = value


def placeholder(name: str | None = None) -> Placeholder:
    """An argument of a computation."""
    return Placeholder(name=name)


def constant(value: Any, name: str | None = None) -> Constant:
    """A constant."""
    return Constant(value, name)


def variable(initial_value: Any, name: str | None = None) -> Variable:
    """A variable with an initial value, or a function that returns it."""
    return Variable(initial_value, name)


def as_op(x: Any) -> Op:
    """`x` as a node of the graph."""
    if isinstance(x, Op):
        return x
    if isinstance(x, str | bytes | dict | list | tuple | set) or x is None:
        raise OperandError(
            f"A {type(x).__name__} cannot be an argument of an op. Pass an op, an array or a "
            f"number; make options separate parameters of __init__{at(user_line())}."
        )
    return Constant(x)


def ordered_ops(roots: Iterable[Op]) -> list[Op]:
    """All ops that the roots depend on, each after its arguments.

    Raises
    ------
    CycleError
        An op depends on itself.
    """
    order: list[Op] = []
    state: dict[Op, int] = {}  # 1: its arguments are being visited, 2: done
    stack = list(roots)[::-1]
    while stack:
        op = stack[-1]
        if state.get(op) == 2:
            stack.pop()
        elif state.get(op) == 1:
            state[op] = 2
            order.append(stack.pop())
        else:
            state[op] = 1
            for a in reversed(op.args):
                if state.get(a) == 1:
                    raise CycleError(
                        f"{op!r} depends on {a!r}, which depends on it: the graph has a cycle. An "
                        f"op may only use ops created before it{at(op.where)}."
                    )
                if a not in state:
                    stack.append(a)
    return order


# ---- derivatives --------------------------------------------------------------------------------


class Adjoints(Mapping[Op, Op]):
    """Adjoints of ops; reading one gives the sum of the contributions so far."""

    def __init__(self) -> None:
        self._given: dict[Op, list[Op]] = {}
        self._turn: list[tuple[Op, Op | None]] = []

    def add(self, op: Op, contribution: Op | None) -> None:
        """Add a contribution to the adjoint of an op."""
        self._turn.append((op, contribution))
        if contribution is not None:
            self._given.setdefault(op, []).append(contribution)

    def contributions_of(self, op: Op, delta: Op) -> list[tuple[Op, Op | None]]:
        """The contributions of an op to its arguments."""
        self._turn = []
        try:
            op.generate_adjoints(self, delta, *op.args)
        except WengertError:
            raise
        except Exception as error:
            name = f"generate_adjoints of {type(op).__name__}"
            raise rule_failed(name, error, op.where) from error
        for target, _ in self._turn:
            if target not in op.args:
                raise RuleError(
                    f"generate_adjoints of {op!r} contributed to {target!r}, which is not one of "
                    f"its arguments. These are {list(op.args)}{at(op.where)}."
                )
        return self._turn

    def __getitem__(self, op: Op) -> Op:
        return total(self._given[op])

    def __iter__(self) -> Iterator[Op]:
        return iter(self._given)

    def __len__(self) -> int:
        return len(self._given)


class Fit(Op):
    """A contribution in the shape and dtype of its value, with broadcasting undone."""

    elementary = True

    def __init__(self, contribution: Any, like: Op, of: str = "a rule") -> None:
        super().__init__(contribution, like)
        self.of = of

    def transform(self, transformer: Any, contribution: Any, like: Any) -> Any:
        """Sum over broadcast axes, and cast."""
        return transformer.fit(contribution, like, self.of)

    def generate_adjoints(self, adjoints: Adjoints, delta: Op, *args: Op) -> None:
        """Broadcast the adjoint."""
        contribution, like = args
        contribution.generate_add_delta(adjoints, Expand(delta, contribution))
        like.generate_add_delta(adjoints, None)


class Expand(Op):
    """A value broadcast to the shape of another."""

    elementary = True

    def __init__(self, value: Any, like: Op) -> None:
        super().__init__(value, like)

    def transform(self, transformer: Any, value: Any, like: Any) -> Any:
        """Repeated."""
        return transformer.expand(value, like)

    def generate_adjoints(self, adjoints: Adjoints, delta: Op, *args: Op) -> None:
        """Pass the adjoint on; the engine sums it, as every contribution."""
        value, like = args
        value.generate_add_delta(adjoints, delta)
        like.generate_add_delta(adjoints, None)


class OneLike(Op):
    """The seed 1 of a derivative, for a value that is a single number."""

    discrete = True

    def __init__(self, value: Op) -> None:
        super().__init__(value)
        self.of = f"the op {value!r}"

    def transform(self, transformer: Any, value: Any) -> Any:
        """1 in the type of the value."""
        return transformer.one_like(value, self.of)


def deriv(dependent: Op, independent: Any, error: Any = None, unconnected: str = "raise") -> Any:
    """The derivative of an op with respect to others, as an op.

    Parameters
    ----------
    dependent : Op
        The op to differentiate.
    independent : Op or sequence of Op
        The ops to differentiate with respect to.
    error : Op, array or number, optional
        Initial adjoint, of the shape of `dependent`; by default 1, if that is a single number.
    unconnected : {"raise", "warn", "zero"}
        What to do if `dependent` does not depend on `independent`.

    Returns
    -------
    Op, or list of Op for a sequence
        Differentiate them again for higher orders.

    Raises
    ------
    NotDifferentiableError
        An op between them has no `generate_adjoints`.
    UnconnectedError
        `dependent` does not depend on `independent`.

    Examples
    --------
    >>> from wengert.extend import deriv, make_transformer, placeholder
    >>> x, y = placeholder(), placeholder()
    >>> f = x * x * y
    >>> fx, fy = deriv(f, [x, y])
    >>> compute = make_transformer("numpy").computation([f, fx, fy, deriv(fx, y)], x, y)
    >>> [float(v) for v in compute(3.0, 5.0)]
    [45.0, 30.0, 9.0, 6.0]
    """
    several = isinstance(independent, list | tuple)
    targets = list(independent) if several else [independent]
    for op in (dependent, *targets):
        if not isinstance(op, Op):
            raise GraphError(
                f"deriv was given a {type(op).__name__}, which is not an op of the graph"
                f"{at(user_line())}."
            )
    seed = OneLike(dependent) if error is None else as_op(error)
    steps = [(op, op.args) for op in ordered_ops([dependent]) if op in targets or _passes(op)]
    adjoints = Adjoints()
    found = accumulate(
        steps, dependent, seed, targets, lambda op, t, wanted: _contribute(op, t, wanted, adjoints)
    )
    for op in targets:
        if op not in found:
            _report_unconnected(dependent, op, unconnected)
            found[op] = Expand(0.0, op)
    results = [found[op] for op in targets]
    return results if several else results[0]


def _passes(op: Op) -> bool:
    return not op.discrete and not isinstance(op, Constant)


def _contribute(op: Op, delta: Op, wanted: Sequence[Op], adjoints: Adjoints) -> Any:
    given = adjoints.contributions_of(op, delta)
    written = {target for target, _ in given}
    for i, a in enumerate(op.args):
        if a in wanted and a not in written:
            raise forgotten(type(op).__name__, i, op.where)
    label = f"generate_adjoints of {type(op).__name__}"
    return [(a, Fit(c, a, label)) for a, c in given if c is not None]


def _report_unconnected(dependent: Op, independent: Op, unconnected: str) -> None:
    message = (
        f"{dependent!r} does not depend on {independent!r}, or only through discrete operations, "
        "so its derivative is zero. If this is intended, pass unconnected='zero'"
        f"{at(user_line())}."
    )
    if unconnected == "raise":
        raise UnconnectedError(message)
    if unconnected == "warn":
        warnings.warn(message, UnconnectedWarning, stacklevel=3)


def twin_of(op: Op) -> tuple[Op, list[Placeholder]]:
    """The same op on placeholders."""
    places = [Placeholder(name=f"argument {i}") for i in range(len(op.args))]
    twin = copy.copy(op)
    twin.args = tuple(places)
    return twin, places


def adjoints_of(op: Op, delta: Op) -> list[Op | None]:
    """The contributions of an op to its arguments, in order."""
    given = Adjoints().contributions_of(op, delta)
    label = f"generate_adjoints of {type(op).__name__}"
    bars: list[Op | None] = []
    for i, a in enumerate(op.args):
        if a not in [target for target, _ in given]:
            raise forgotten(type(op).__name__, i, op.where)
        bar = total(c for target, c in given if target is a)
        bars.append(None if bar is None else Fit(bar, a, label))
    return bars


__all__ = [
    "Adjoints",
    "Constant",
    "Op",
    "Placeholder",
    "Variable",
    "constant",
    "deriv",
    "ordered_ops",
    "placeholder",
    "variable",
]
