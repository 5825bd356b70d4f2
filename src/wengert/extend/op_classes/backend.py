"""Transformed: the transformers of style 004 (extend/op_classes/transformers.py) as backends.

A transformer has a method for each operation, with its name, so it can run a graph node by node.
For nodes of op classes, their `transform` is called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wengert._engine.backends.interpreter import Interpreter
from wengert._engine.core.op import Op

from .transformers import OpNode, OpOperation, Transformer, make_transformer


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

    def function(self, op: Op) -> Callable[..., Any] | None:
        """The method of the transformer with the name of the operation."""
        if isinstance(op, OpNode):
            return lambda *xs: self.transformer.implementation(op.op, xs)
        if isinstance(op, OpOperation):
            return lambda *xs, **params: self.transformer.implementation(
                op.line(len(xs), params).op, xs
            )
        return getattr(self.transformer, op.name, None)
