"""Rules for recorded graphs in which a value has overflowed.

    stabilised    the graph rewritten by the rules of rules/stabilize.py and of this file; the graph
                  itself if none applies

The replacements of this file are slower than the original nodes, so its rules are not part of
`simplify`: they are used for derivatives of tapes that are known to overflow
(autodiff/infinities.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wengert._engine.autodiff.grad import stop_gradient
from wengert._engine.core.graph import AnyGraph

from ..pass_manager import Pass, Passes
from ..rule import AnyRule, Match, Rule
from . import stabilize

_X = np.array([[-1.5, -0.25, 0.5], [2.0, -3.0, 0.125]])
_Y = np.array([[0.75, 1.5, -2.0], [1.0, 0.5, -0.5]])


def _largest(x: Any, axis: Any, keepdims: bool) -> Any:
    size = np.max(abs(x), axis=axis, keepdims=keepdims)
    return stop_gradient(np.where(size == 0, 1.0, size))


def _is_not_scaled(match: Match) -> bool:
    """Whether x has not yet been divided by its largest element."""
    x = match["x"]
    return bool(x.op.name != "divide" or x.args[1].op.name != "stop_gradient")


def _scaled(x: Any, *, axis: Any, keepdims: bool) -> Any:
    """The root of the sum of squares; x is divided by its largest element before squaring."""
    squares = np.square(x / _largest(x, axis, True))
    root = np.sqrt(np.sum(squares, axis=axis, keepdims=keepdims))
    return root * _largest(x, axis, keepdims)


_SQUARES: dict[str, Any] = {
    "square(x)": np.square,
    "x * x": lambda x: x * x,
    "x ** 2": lambda x: x**2,
}


def _roots(text: str, square: Callable[..., Any] | np.ufunc) -> list[AnyRule]:
    return [
        Rule(
            f"sqrt({text} + {text.replace('x', 'y')})",
            lambda x, y: np.sqrt(square(x) + square(y)),
            lambda x, y: np.hypot(x, y),
            reason="squares overflow and underflow",
            example=(_X, _Y),
        ),
        Rule(
            f"sqrt(sum({text}))",
            lambda x, *, axis, keepdims: np.sqrt(np.sum(square(x), axis=axis, keepdims=keepdims)),
            _scaled,
            reason="squares overflow and underflow",
            condition=_is_not_scaled,
            example=((_X,), {"axis": 1, "keepdims": False}),
        ),
    ]


RULES: tuple[AnyRule, ...] = (
    *[r for word, square in _SQUARES.items() for r in _roots(word, square)],
    Rule(
        "norm(x)",
        lambda x, *, axis, keepdims: np.linalg.vector_norm(x, axis=axis, keepdims=keepdims),
        _scaled,
        reason="squares overflow and underflow",
        condition=_is_not_scaled,
        example=((_X,), {"axis": 1, "keepdims": False}),
    ),
    Rule(
        "log(cosh(x))",
        lambda x: np.log(np.cosh(x)),
        lambda x: np.logaddexp(x, -x) - np.log(2.0),
        reason="cosh(x) overflows for x beyond 710",
        example=(_X,),
    ),
)
_PASS = Pass("overflows", [*stabilize.RULES, *RULES], merges=True, joins=True)


def stabilised(graph: AnyGraph) -> AnyGraph:
    """The same function without the overflows for which there is a rule."""
    return Passes(["algebra", _PASS])(graph, verify=False)
