"""Definite assignment: which variables may have no value where they are read.

A name that only one of two branches binds, or that only the body of a loop binds, has a value after
it for some inputs and none for others.

    possibly_unbound    the names of a function that a loop or branch may leave unbound
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from .liveness import Liveness
from .names import bound_in

Names = frozenset[str]


def possibly_unbound(body: Sequence[ast.stmt], bound: set[str], live: Liveness) -> set[str]:
    """The names that may be read after a loop or branch that may not have bound them.

    Parameters
    ----------
    body : sequence of statements
        Of a function.
    bound : set of str
        The parameters.
    live : Liveness
    """
    found: set[str] = set()
    _block(body, frozenset(bound), live, found)
    return {n for n in found if not n.startswith("__wg_")}


def _block(
    body: Sequence[ast.stmt], bound: Names | None, live: Liveness, found: set[str]
) -> Names | None:
    """The names that are bound after a list of statements; None where its end is not reached."""
    for statement in body:
        if bound is None:
            return None
        bound = _statement(statement, bound, live, found)
    return bound


def _statement(node: ast.stmt, bound: Names, live: Liveness, found: set[str]) -> Names | None:
    after = live.after.get(node, frozenset())
    if isinstance(node, ast.Return | ast.Raise):
        return None
    if isinstance(node, ast.If):
        then = _block(node.body, bound, live, found)
        other = _block(node.orelse, bound, live, found)
        both = other if then is None else then if other is None else then & other
        if both is not None:
            found |= bound_in([*node.body, *node.orelse]) & after - both
        return both
    if isinstance(node, ast.For | ast.While):
        inside = bound | (bound_in([node.target]) if isinstance(node, ast.For) else frozenset())
        _block(node.body, inside, live, found)
        parts = [node.target, *node.body] if isinstance(node, ast.For) else node.body
        found |= bound_in(parts) & after - bound
        return bound
    if isinstance(node, ast.With):
        items = frozenset(bound_in([i.optional_vars for i in node.items if i.optional_vars]))
        return _block(node.body, bound | items, live, found)
    if isinstance(node, ast.Try | ast.Match):
        return bound
    if isinstance(node, ast.Delete):
        return bound - bound_in([node])
    if isinstance(node, ast.AnnAssign) and node.value is None:
        return bound
    return bound | bound_in([node])
