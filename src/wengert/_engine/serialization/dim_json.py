"""Symbolic sizes as text, read within limits.

A size is stored as text, "2*n + 1" (core/symbolic/dim.py).  Expanding a polynomial can take much
more time and memory than the length of its text suggests: "(a + b)**16" has 17 terms, a product of
four of these 83521.  Therefore only the syntax that `spelled` writes is read (powers of names, but
not of sums), and neither a size nor the product of a shape may have more than MAX_TERMS terms.

spelled, read   a length as JSON, and the inverse
weight, fits    bounds of the number of terms
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from wengert._engine.core.symbolic.dim import Dim, Quotient
from wengert._engine.core.symbolic.parsing import dim
from wengert.errors import ShapeError

from .errors import Damage, brief, need

if TYPE_CHECKING:
    from wengert._engine.core.types import Size

MAX_TERMS = 2000
_MAX_CHARACTERS = 1000
_MAX_POWER = 16
# The names of lengths that are known after a loop, and within a step of a loop.
_OPEN = re.compile(r"\b(steps|trip)\.(f?\d{1,9})\b", re.ASCII)


def spelled(length: Any) -> Any:
    """The JSON of a length: an int or a string."""
    return str(length) if isinstance(length, Dim) else int(length)


def read(x: Any, signed: bool = False) -> Any:
    """The length from its JSON.

    Parameters
    ----------
    x : int or str
    signed : bool
        Whether it may be negative, as a parameter of an operation may.
    """
    if type(x) is int:
        need(-(2**62) < x < 2**62 and (signed or x >= 0), f"a length of {brief(x)}")
        return x
    need(type(x) is str and len(x) <= _MAX_CHARACTERS, f"the length {brief(x)}")
    try:
        text = _OPEN.sub(r"\1__\2", x)
        _check(ast.parse(text, mode="eval").body)
        length = dim(text)
    except (ShapeError, SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise Damage(f"{brief(x)} is not a size") from error
    need(isinstance(length, Dim), f"{brief(x)} is not a symbolic size")
    if text != x:
        need("steps__" not in x and "trip__" not in x, f"{brief(x)} is not a size")
        names = [n for n in length.names if n.startswith(("steps__", "trip__"))]
        length = length.replace({n: Dim({((n.replace("__", "."), 1),): 1}) for n in names})
    need(weight(length) <= MAX_TERMS, f"the size {brief(x)} has too many terms")
    return length


def _check(tree: ast.expr) -> None:
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub):
        return _check(tree.operand)
    if isinstance(tree, ast.BinOp):
        if isinstance(tree.op, ast.Pow):
            power = tree.right.value if isinstance(tree.right, ast.Constant) else None
            need(type(power) is int and 0 < power <= _MAX_POWER, "a power of a size")
            need(not isinstance(tree.left, ast.Constant), "a power of a number")
            atom = isinstance(tree.left, ast.Name) or _is_quotient(tree.left)
            need(atom, "a power of a sum or product")
            return _check(tree.left)
        if isinstance(tree.op, ast.Mult):
            for side in (tree.left, tree.right):
                is_sum = isinstance(side, ast.BinOp) and isinstance(side.op, ast.Add | ast.Sub)
                need(not is_sum, "a product of sums")
        _check(tree.left)
        return _check(tree.right)
    need(isinstance(tree, ast.Name | ast.Constant), "an expression that is not a size")
    if isinstance(tree, ast.Constant):
        need(type(tree.value) is int, "a number that is not an integer")
    return None


def _is_quotient(tree: ast.expr) -> bool:
    return isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.FloorDiv)


def weight(length: Size) -> int:
    """An upper bound of the number of terms of a size after substituting sums of two names."""
    if not isinstance(length, Dim):
        return 1
    total = 0
    for product in length._terms:
        terms = 1
        for atom, power in product:
            if isinstance(atom, Quotient):
                terms *= (1 + weight(atom.above) * weight(atom.below)) ** power
            else:
                terms *= power + 1
        total += terms
    return total


def fits(lengths: Iterable[Any]) -> bool:
    """Whether the product of some lengths has at most LIMIT terms."""
    total = 1
    for length in lengths:
        total *= weight(length)
        if total > MAX_TERMS:
            return False
    return True
