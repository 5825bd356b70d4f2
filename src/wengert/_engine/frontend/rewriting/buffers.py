"""Buffers: arrays computed by any expression, in which elements are assigned later.

    b = a.copy()             b = buffer(a.copy())
    b[i] = x * b[j]          b[i] = x * b[j]

An array that the expression has made, and that nothing else refers to, becomes a tensor, which
takes the values of tensors (running/object_changes.py).  An array that something else refers to
stays as it is.

fills_computed_arrays    whether a function has such assignments
with_buffers             the function with them rewritten
"""

from __future__ import annotations

import ast

from ..tree_traversal import traverse
from .syntax import call, located

_COMPUTED = (ast.Call, ast.BinOp, ast.UnaryOp, ast.Subscript)


def fills_computed_arrays(function: ast.AST) -> bool:
    """Whether a function assigns computed arrays to variables, and elements of them later."""
    stored = _stored(function)
    return any(
        isinstance(n, ast.Assign | ast.AnnAssign) and bool(_computed(n, stored))
        for n in traverse(function)
    )


def with_buffers(function: ast.AST) -> ast.AST:
    """The function, with those arrays as buffers."""
    stored = _stored(function)
    for node in traverse(function) if stored else ():
        if not isinstance(node, ast.Assign | ast.AnnAssign):
            continue
        for value in _computed(node, stored):
            made = located(value, call("buffer", value))
            if value is node.value:
                node.value = made
            else:
                assert isinstance(node.value, ast.Tuple)
                node.value.elts[node.value.elts.index(value)] = made
    return function


def _stored(function: ast.AST) -> set[str]:
    """The variables with elements that are assigned, in the function or in functions inside."""
    found: set[str] = set()
    for node in traverse(function):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            value = node.value
            while isinstance(value, ast.Subscript):
                value = value.value
            if isinstance(value, ast.Name):
                found.add(value.id)
    return found


def _computed(node: ast.Assign | ast.AnnAssign, stored: set[str]) -> list[ast.expr]:
    """The expressions of an assignment to variables with elements that are assigned."""
    if node.value is None:
        return []
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    found: list[ast.expr] = []
    for target in targets:
        pairs = [(target, node.value)]
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            pairs = list(zip(target.elts, node.value.elts, strict=False))
            if len(target.elts) != len(node.value.elts) or any(
                isinstance(x, ast.Starred) for x in (*target.elts, *node.value.elts)
            ):
                continue
        found += [
            value
            for name, value in pairs
            if isinstance(name, ast.Name)
            and name.id in stored
            and isinstance(value, _COMPUTED)
            and value not in found
        ]
    return found
