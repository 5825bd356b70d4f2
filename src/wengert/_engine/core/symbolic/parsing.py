"""Parsing of sizes written as text, ``"n"`` or ``"2*n + 1"``.

    dim    the size for a text

The text may come from an untrusted file, so it is parsed and not evaluated, and exponents are
limited, so that no polynomial takes long to expand.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from wengert.errors import ShapeError, at, user_line

from .dim import Dim


def dim(text: str) -> Any:
    """The size for a name or an expression such as ``"2*n + 1"``.

    Parameters
    ----------
    text : str
        Names, integers, ``+ - * // **`` and parentheses.

    Returns
    -------
    Dim or int

    Raises
    ------
    ShapeError
        The text is something else.

    Examples
    --------
    >>> from wengert._engine.core.symbolic.parsing import dim
    >>> n = dim("n")
    >>> (n + 1) * (n - 1) == dim("n**2 - 1")
    True
    """
    try:
        tree = ast.parse(text, mode="eval").body
        return _read(tree)
    except _UNREADABLE as error:
        raise ShapeError(
            f"{text!r} is not a size. Write an expression of names, integers, + - * // and **, "
            f"such as 'n' or '2*n + 1'{at(user_line())}."
        ) from error


_UNREADABLE = (SyntaxError, TypeError, ValueError, ArithmeticError, RuntimeError, MemoryError)
_SIGNS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow,
}
_MAX_POWER = 16


def _read(tree: ast.expr) -> Any:
    if isinstance(tree, ast.Name):
        return Dim({((tree.id, 1),): 1})
    if isinstance(tree, ast.Constant) and type(tree.value) is int:
        return tree.value
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub):
        return -_read(tree.operand)
    if isinstance(tree, ast.BinOp) and type(tree.op) in _SIGNS:
        left, right = _read(tree.left), _read(tree.right)
        if isinstance(tree.op, ast.Pow) and not (type(right) is int and 0 <= right <= _MAX_POWER):
            raise ValueError("power")
        return _SIGNS[type(tree.op)](left, right)
    raise ValueError(ast.dump(tree))
