"""Syntax: small constructors of tree nodes for the rewritings.

call, name, thunk     expressions
at                    an expression with the position of another node
text, texts           constants
mangled               the name of a private variable of a class
runtime               names of functions that the rewritten code calls
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T", bound=ast.AST)


def runtime(word: str) -> str:
    """The name under which rewritten code finds a function of `running`."""
    return f"__wg_{word}__"


def at(where: ast.AST, node: T) -> T:
    """The node, with the position of another one in all parts that have none."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.expr | ast.stmt | ast.arg) and not hasattr(inner, "lineno"):
            ast.copy_location(inner, where)
    return node


def name(word: str) -> ast.Name:
    """A variable that is read."""
    return ast.Name(word, ast.Load())


def call(word: str, *args: ast.expr) -> ast.Call:
    """A call of a function of `running`."""
    return ast.Call(name(runtime(word)), list(args), [])


def thunk(value: ast.expr) -> ast.Lambda:
    """A function without parameters that computes an expression."""
    return ast.Lambda(no_arguments(), value)


def no_arguments(*names: str) -> ast.arguments:
    """The parameters of a function."""
    return ast.arguments([], [ast.arg(n) for n in names], None, [], [], None, [])


def text(word: str | None) -> ast.Constant:
    """A constant string, or None."""
    return ast.Constant(word)


def texts(words: Iterable[str]) -> ast.Tuple:
    """A tuple of constant strings, in order of the alphabet."""
    return ast.Tuple([text(w) for w in sorted(words)], ast.Load())


def mangled(word: str, private: str | None) -> str:
    """The name of a variable inside a class: ``__x`` becomes ``_Class__x``."""
    if private is None or not word.startswith("__") or word.endswith("__"):
        return word
    owner = private.lstrip("_")
    return f"_{owner}{word}" if owner else word
