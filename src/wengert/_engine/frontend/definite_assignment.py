"""Definite assignment analysis: which variables may be unbound where they are read.

A variable that is assigned in only one of two branches, or only in the body of a loop, has a value
afterwards for some inputs, and none for others.

    possibly_unbound    the variables that a loop or branch of a function may leave unbound
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from .liveness import Liveness
from .names import bound_in

Names = frozenset[str]


def possibly_unbound(body: Sequence[ast.stmt], bound: set[str], live: Liveness) -> set[str]:
    """The variables that may be read after a loop or branch that has not bound them.

    Parameters
    ----------
    body : sequence of ast.stmt
        The body of a function.
    bound : set of str
        The variables that are bound at its start: parameters and nonlocal variables.
    live : Liveness
    """
    unbound: set[str] = set()
    _block(body, frozenset(bound), live, unbound)
    return {n for n in unbound if not n.startswith("__wg_")}


def _block(
    body: Sequence[ast.stmt], bound: Names | None, live: Liveness, unbound: set[str]
) -> Names | None:
    """The variables that are bound after a list of statements; None if its end is not reached."""
    for statement in body:
        if bound is None:
            return None
        bound = _statement(statement, bound, live, unbound)
    return bound


def _statement(node: ast.stmt, bound: Names, live: Liveness, unbound: set[str]) -> Names | None:
    after = live.after.get(node, frozenset())
    if isinstance(node, ast.Return | ast.Raise):
        return None
    if isinstance(node, ast.If):
        then = _block(node.body, bound, live, unbound)
        other = _block(node.orelse, bound, live, unbound)
        common = other if then is None else then if other is None else then & other
        if common is not None:
            unbound |= bound_in([*node.body, *node.orelse]) & after - common
        return common
    if isinstance(node, ast.For | ast.While):
        inside = bound | (bound_in([node.target]) if isinstance(node, ast.For) else frozenset())
        _block(node.body, inside, live, unbound)
        bodies = [node.target, *node.body] if isinstance(node, ast.For) else node.body
        unbound |= bound_in(bodies) & after - bound
        return bound
    if isinstance(node, ast.With):
        targets = frozenset(bound_in([i.optional_vars for i in node.items if i.optional_vars]))
        return _block(node.body, bound | targets, live, unbound)
    if isinstance(node, ast.Try | ast.Match):
        return bound
    if isinstance(node, ast.Delete):
        return bound - bound_in([node])
    if isinstance(node, ast.AnnAssign) and node.value is None:
        return bound
    return bound | bound_in([node])
