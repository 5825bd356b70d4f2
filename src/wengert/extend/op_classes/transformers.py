"""Transformers: backends for graphs of ops, by name; transformers as backends of graphs.

    transformer = make_transformer("numpy")
    compute = transformer.computation(outputs, *placeholders)
    compute(1.0, 2.0)

A transformer has a method for each operation that ops call in their `transform`; a missing method
is an error that names operation and transformer.  A subclass of `Transformer` with a
`transformer_name` is registered under this name.

    "numpy"     arrays and tensors; on tensors every op becomes a node of the tape
    "python"    Python's operators, for numbers of any type: fractions, decimals

So a transformer can run a graph node by node (`Transformed`); for nodes of op classes, their
`transform` is called.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np

from wengert._engine.backends.interpreter import Interpreter
from wengert._engine.core.handle import Handle, shape_of
from wengert._engine.core.op import Op as EngineOp
from wengert._engine.core.op import lookup
from wengert._engine.core.user_functions import signature_of
from wengert.errors import OperandError, RegistryError, at, user_line

from ..style_adapter import (
    UserOperation,
    fitted,
    has_derivative,
    is_written_out,
    name_in_module,
    one_like,
    params_key,
)
from .op import Op, Placeholder, adjoints_of, ordered_ops, twin_of

__all__ = ["Transformer", "TransformerComputation", "make_transformer", "transformer_choices"]

TRANSFORMERS: dict[str, type[Transformer]] = {}


class Transformer:
    """Base class of transformers."""

    transformer_name: str

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        name = cls.__dict__.get("transformer_name")
        if name is None:
            return
        known = TRANSFORMERS.get(name, cls)
        if name_in_module(known) != name_in_module(cls):
            raise RegistryError(
                f"A transformer named {name!r} is already registered, by {name_in_module(known)}. "
                f"Use another transformer_name{at(user_line())}."
            )
        TRANSFORMERS[name] = cls

    # ---- methods that derivatives use ----------------------------------------------------------

    def fit(self, contribution: Any, like: Any, what: str) -> Any:
        """A contribution in the shape and dtype of its value."""
        return fitted(contribution, like, what)

    def expand(self, value: Any, like: Any) -> Any:
        """A value broadcast to the shape of another."""
        shape = shape_of(like) if isinstance(like, np.ndarray | np.generic | Handle) else ()
        return value if shape_of(value) == shape else lookup("broadcast_to")(value, shape=shape)  # type: ignore[operator]

    def one_like(self, value: Any, what: str) -> Any:
        """1 in the type of a value."""
        return one_like(value, what)

    def sech_squared(self, x: Any) -> Any:
        """1 / cosh(x)**2, the derivative of tanh; subclasses may compute it more accurately."""
        out = self.tanh(x)  # type: ignore[attr-defined]
        return self.subtract(1.0, self.multiply(out, out))  # type: ignore[attr-defined]

    # ---- running -------------------------------------------------------------------------------

    def run(self, op: Op, values: Sequence[Any]) -> Any:
        """An op on the values of its arguments."""
        handles = any(isinstance(v, Handle) for v in values)
        plain = type(self) is NumPyTransformer and is_written_out(type(op), values)
        if handles and not plain:
            return node_of_op(op, self)(*values)
        return self.implementation(op, values)

    def implementation(self, op: Op, values: Sequence[Any]) -> Any:
        """The result of the op's `transform` on plain values.

        Raises
        ------
        RegistryError
            This transformer has no method that the op calls.
        """
        try:
            if _takes_transformer_only(type(op)):
                method: Any = op.transform(self)
                return method(*values)
            return op.transform(self, *values)
        except AttributeError as error:
            if error.obj is not self:
                raise
            own = [n for n in dir(self) if not n.startswith("_")]
            near = get_close_matches(str(error.name), own, 3)
            hint = f" Did you mean {', '.join(near)}?" if near else ""
            raise RegistryError(
                f"The transformer {self.transformer_name!r} has no implementation of "
                f"{error.name!r}, which {op!r} needs.{hint} Add a method of that name to the "
                f"transformer, or use another: {', '.join(transformer_choices())}{at(op.where)}."
            ) from error

    def evaluate(self, outputs: Sequence[Op], feeds: Mapping[Op, Any]) -> list[Any]:
        """Values of ops, from the values of others."""
        known = dict(feeds)
        for op in ordered_ops_until(outputs, known):
            known[op] = self.run(op, [known[a] for a in op.args])
        return [known[op] for op in outputs]

    def computation(self, outputs: Any, *placeholders: Op) -> TransformerComputation:
        """A callable that computes outputs from values of placeholders.

        Parameters
        ----------
        outputs : Op, or a list, tuple or dict of them
            The results, in this container.
        *placeholders : Op
            The arguments, in order; any op may be an argument.
        """
        return TransformerComputation(self, outputs, placeholders)


def _takes_transformer_only(cls: type[Op]) -> bool:
    if "_transform_arity" not in cls.__dict__:
        kinds = list(signature_of(cls.transform).parameters.values())[1:]
        several = any(p.kind is p.VAR_POSITIONAL for p in kinds)
        cls._transform_arity = 2 if several else len(kinds)  # type: ignore[attr-defined]
    return cls._transform_arity == 1  # type: ignore[attr-defined]


def ordered_ops_until(outputs: Sequence[Op], known: Mapping[Op, Any]) -> list[Op]:
    """The ops that have to run; an op with a known value is not traversed."""
    order = ordered_ops(outputs)
    needed = set(outputs) - set(known)
    for op in reversed(order):
        if op in needed:
            needed.update(a for a in op.args if a not in known)
    return [op for op in order if op in needed]


class TransformerComputation:
    """A graph as a function, called with values or with ``feed_dict={op: value}``."""

    def __init__(self, transformer: Transformer, outputs: Any, placeholders: Sequence[Op]) -> None:
        self.transformer = transformer
        self.outputs = outputs
        self.placeholders = placeholders
        values = outputs.values() if isinstance(outputs, dict) else outputs
        self.wanted: list[Op] = [outputs] if isinstance(outputs, Op) else list(values)
        for op in (*self.wanted, *placeholders):
            if not isinstance(op, Op):
                raise OperandError(
                    f"computation was given a {type(op).__name__}, which is not an "
                    f"op{at(user_line())}."
                )

    def __call__(self, *values: Any, feed_dict: Mapping[Op, Any] | None = None) -> Any:
        """The outputs, in the container that was passed to `computation`."""
        feeds = dict(feed_dict or {})
        if len(values) != len(self.placeholders) and not (feeds and not values):
            raise OperandError(
                f"{len(values)} values for {len(self.placeholders)} placeholders: "
                f"{', '.join(map(repr, self.placeholders)) or 'none'}{at(user_line())}."
            )
        feeds.update(zip(self.placeholders, values, strict=False))
        results = self.transformer.evaluate(self.wanted, feeds)
        if isinstance(self.outputs, Op):
            return results[0]
        if isinstance(self.outputs, dict):
            return dict(zip(self.outputs, results, strict=True))
        return tuple(results)


def make_transformer(name: str = "numpy") -> Transformer:
    """A transformer by name.

    Raises
    ------
    RegistryError
        No transformer has this name.
    """
    if name not in TRANSFORMERS:
        raise RegistryError(
            f"There is no transformer named {name!r}; there are {', '.join(transformer_choices())}."
        )
    return TRANSFORMERS[name]()


def transformer_choices() -> list[str]:
    """The names of all transformers."""
    return sorted(TRANSFORMERS)


# ---- predefined transformers --------------------------------------------------------------------


class NumPyTransformer(Transformer):
    """NumPy functions on arrays and tensors."""

    transformer_name = "numpy"


for _name in """add subtract multiply divide negative power exp log log1p sqrt sin cos tanh absolute
    maximum minimum matmul sum where less greater equal argmax reshape transpose""".split():
    setattr(NumPyTransformer, _name, staticmethod(getattr(np, _name)))
NumPyTransformer.sech_squared = staticmethod(lookup("sech_squared"))  # type: ignore[assignment]


class PythonTransformer(Transformer):
    """Python's operators on numbers of any type; functions are those of math."""

    transformer_name = "python"
    add = staticmethod(operator.add)
    subtract = staticmethod(operator.sub)
    multiply = staticmethod(operator.mul)
    divide = staticmethod(operator.truediv)
    negative = staticmethod(operator.neg)
    power = staticmethod(operator.pow)
    exp = staticmethod(math.exp)
    log = staticmethod(math.log)
    sin = staticmethod(math.sin)
    cos = staticmethod(math.cos)
    tanh = staticmethod(math.tanh)
    sech_squared = staticmethod(lambda x: float(lookup("sech_squared")(x)))  # type: ignore
    maximum = staticmethod(max)
    minimum = staticmethod(min)
    less = staticmethod(operator.lt)
    greater = staticmethod(operator.gt)
    equal = staticmethod(operator.eq)

    @staticmethod
    def where(condition: Any, x: Any, y: Any) -> Any:
        """x if the condition is true, else y."""
        return x if condition else y


# ---- ops as operations on tensors ---------------------------------------------------------------


class OpNode(UserOperation):
    """An op, run by a transformer, as an operation on values."""

    def __init__(self, op: Op, transformer: Transformer) -> None:
        self.op, self.transformer = op, transformer
        self.rule: Callable[..., Any] | None = None
        name = name_in_module(type(op))
        has_rule = type(op).generate_adjoints is not Op.generate_adjoints
        super().__init__(self._value, name, vjp=self.contributions if has_rule else None)
        self.discrete = type(op).discrete

    def _value(self, *values: Any) -> Any:
        return self.transformer.implementation(self.op, values)

    def contributions(self, t: Any, out: Any, *values: Any) -> Any:
        """Cotangents of the arguments, by a graph of the op's own adjoints."""
        if self.rule is None:
            self.rule = self._gradient_function()
        return self.rule(t, out, *values)

    def _gradient_function(self) -> Callable[..., Any]:
        twin, places = twin_of(self.op)
        delta = Placeholder(name="delta")
        bars = adjoints_of(twin, delta)

        def rule(t: Any, out: Any, *values: Any) -> list[Any]:
            feeds: dict[Op, Any] = dict(zip(places, values, strict=True))
            live = [b for b, v in zip(bars, values, strict=True) if b and has_derivative(v)]
            found = self.transformer.evaluate(live, {**feeds, twin: out, delta: t})
            known: dict[Op | None, Any] = dict(zip(live, found, strict=True))
            return [known.get(b) for b in bars]

        return rule


def node_of_op(op: Op, transformer: Transformer) -> OpNode:
    """An op as an operation, created once for each op and class of transformer."""
    lines = op.__dict__.setdefault("_lines", {})
    line = lines.get(type(transformer))
    if line is None or line.op is not op:  # a copy of an op has the operations of the original
        if line is not None:
            op.__dict__["_lines"] = lines = {}
        line = lines[type(transformer)] = OpNode(op, transformer)
    return line


class OpOperation(UserOperation):
    """A class of ops as an operation on tensors: ``op(x, ..., **options)``."""

    def __init__(self, cls: type[Op]) -> None:
        self.cls = cls
        self.transformer = make_transformer("numpy")
        has_rule = cls.generate_adjoints is not Op.generate_adjoints
        rule = self._contributions if has_rule else None
        super().__init__(self._value, name_in_module(cls), vjp=rule, discrete=cls.discrete)
        self.__doc__ = cls.__doc__
        self._lines: dict[Any, OpNode] = {}

    def __call__(self, *args: Any, **params: Any) -> Any:
        """Apply the op to values; predefined ops are traced as NumPy functions."""
        if is_written_out(self.cls, args):
            return self._value(*args, **params)
        return super().__call__(*args, **params)

    def line(self, count: int, params: Mapping[str, Any]) -> OpNode:
        """The op on `count` placeholders, as an operation."""
        key = (count, params_key(params))
        if key not in self._lines:
            op = self.cls(*[Placeholder(name=f"argument {i}") for i in range(count)], **params)
            self._lines[key] = OpNode(op, self.transformer)
        return self._lines[key]

    def _value(self, *values: Any, **params: Any) -> Any:
        return self.line(len(values), params)._value(*values)

    def _contributions(self, t: Any, out: Any, *values: Any, **params: Any) -> Any:
        return self.line(len(values), params).contributions(t, out, *values)


class Transformed(Interpreter):
    """Runs a graph by the methods of a transformer.

    Parameters
    ----------
    transformer : Transformer or str
        A transformer, or its name.

    Examples
    --------
    >>> import wengert as wg
    >>> x = wg.input("x")
    >>> f = wg.computation(x * x + 1.0, x, backend=wg.backends.Transformed("python"))
    >>> float(f(3.0))
    10.0
    """

    def __init__(self, transformer: Transformer | str) -> None:
        if isinstance(transformer, str):
            transformer = make_transformer(transformer)
        self.transformer = transformer
        self.name = f"transformer {transformer.transformer_name}"

    def function(self, op: EngineOp) -> Callable[..., Any] | None:
        """The method of the transformer with the name of the operation."""
        if isinstance(op, OpNode):
            return lambda *xs: self.transformer.implementation(op.op, xs)
        if isinstance(op, OpOperation):
            return lambda *xs, **params: self.transformer.implementation(
                op.line(len(xs), params).op, xs
            )
        return getattr(self.transformer, op.name, None)
