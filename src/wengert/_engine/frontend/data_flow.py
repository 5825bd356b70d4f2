"""Data flow: variables that may be read later, and those that may be unbound.

Liveness analysis: the variables that may be read after a statement.

A variable that a loop assigns, and that nothing reads afterwards, need not be a result of the loop.

    Liveness      the names that may be read after statements, and from the start of an iteration
    live_names    the liveness of a function

Definite assignment analysis: which variables may be unbound where they are read.

A variable that is assigned in only one of two branches, or only in the body of a loop, has a value
afterwards for some inputs, and none for others.

    possibly_unbound    the variables that a loop or branch of a function may leave unbound
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NamedTuple

from .names import bound_in, captured_in, loaded_in
from .syntax import traverse

Live = frozenset[str]
_EXITS = (ast.Return, ast.Raise)


class Liveness(NamedTuple):
    """Names that may be read before they are assigned again.

    Attributes
    ----------
    after : dict
        The names that may be read after each statement.
    head : dict
        The names that may be read from the start of an iteration of each loop.
    """

    after: dict[ast.stmt, Live]
    head: dict[ast.stmt, Live]


def live_names(body: Sequence[ast.stmt], results: Live = frozenset()) -> Liveness:
    """The names that may be read after each statement of a function, including nested statements.

    Names that inner functions read, or that are declared global or nonlocal, are always live.

    Parameters
    ----------
    body : sequence of ast.stmt
    results : frozenset of str
        Names that are read after the last statement.
    """
    always = captured_in(body)
    for node in traverse(ast.Module(list(body), [])):
        if isinstance(node, ast.Global | ast.Nonlocal):
            always |= set(node.names)
    liveness = Liveness({}, {})
    _block(body, results | frozenset(always), frozenset(always), liveness)
    return liveness


def _block(body: Sequence[ast.stmt], after: Live, always: Live, liveness: Liveness) -> Live:
    """The names that are live before a list of statements."""
    live = after
    for statement in reversed(body):
        live = _statement(statement, live, always, liveness) | always
    return live


def _statement(node: ast.stmt, after: Live, always: Live, liveness: Liveness) -> Live:
    liveness.after[node] = liveness.after.get(node, frozenset()) | after
    if isinstance(node, _EXITS):
        return always | loaded_in(node)
    if isinstance(node, ast.If):
        then = _block(node.body, after, always, liveness)
        other = _block(node.orelse, after, always, liveness)
        return then | other | loaded_in(node.test)
    if isinstance(node, ast.While):
        after_loop = _block(node.orelse, after | _loop_flags(node), always, liveness)
        head = after_loop | loaded_in(node.test)
        for _ in range(2):  # the second time with the names that are live at the start of the body
            head |= _block(node.body, head, always, liveness)
        liveness.head[node] = head
        return head
    if isinstance(node, ast.For | ast.AsyncFor):
        after_loop = _block(node.orelse, after | _loop_flags(node), always, liveness)
        targets = bound_in([node.target])
        head = after_loop
        for _ in range(2):
            head |= _block(node.body, head, always, liveness) - targets
        liveness.head[node] = head
        return head | loaded_in(node.iter) | loaded_in(node.target)
    if isinstance(node, ast.Try | ast.With | ast.AsyncWith | ast.Match | ast.ClassDef):
        return _compound(node, after, always, liveness)
    return _simple(node, after)


def _loop_flags(node: ast.stmt) -> Live:
    """The flags that end a loop (rewriting/exits.py)."""
    return frozenset(getattr(node, "stops", ()))


def _compound(node: ast.stmt, after: Live, always: Live, liveness: Liveness) -> Live:
    """A statement that may run in part: no assignment in it is certain."""
    live = after | loaded_in(node)
    for _, value in ast.iter_fields(node):
        for inner in value if isinstance(value, list) else ():
            if isinstance(inner, ast.stmt):
                _statement(inner, live, always, liveness)
            elif isinstance(inner, ast.ExceptHandler | ast.match_case):
                for statement in inner.body:
                    _statement(statement, live, always, liveness)
    return live


def _simple(node: ast.stmt, after: Live) -> Live:
    bound: set[str] = set()
    if isinstance(node, ast.Assign):
        bound = bound_in(node.targets)
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        bound = bound_in([node.target])
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Import | ast.ImportFrom):
        bound = bound_in([node])
    live = (after - bound) | loaded_in(node)
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        live |= {node.target.id}
    return live


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
    _bound_after(body, frozenset(bound), live, unbound)
    return {n for n in unbound if not n.startswith("__wg_")}


def _bound_after(
    body: Sequence[ast.stmt], bound: Names | None, live: Liveness, unbound: set[str]
) -> Names | None:
    """The variables that are bound after a list of statements; None if its end is not reached."""
    for statement in body:
        if bound is None:
            return None
        bound = _bound_after_statement(statement, bound, live, unbound)
    return bound


def _bound_after_statement(
    node: ast.stmt, bound: Names, live: Liveness, unbound: set[str]
) -> Names | None:
    after = live.after.get(node, frozenset())
    if isinstance(node, ast.Return | ast.Raise):
        return None
    if isinstance(node, ast.If):
        then = _bound_after(node.body, bound, live, unbound)
        other = _bound_after(node.orelse, bound, live, unbound)
        common = other if then is None else then if other is None else then & other
        if common is not None:
            unbound |= bound_in([*node.body, *node.orelse]) & after - common
        return common
    if isinstance(node, ast.For | ast.While):
        inside = bound | (bound_in([node.target]) if isinstance(node, ast.For) else frozenset())
        _bound_after(node.body, inside, live, unbound)
        bodies = [node.target, *node.body] if isinstance(node, ast.For) else node.body
        unbound |= bound_in(bodies) & after - bound
        return bound
    if isinstance(node, ast.With):
        targets = frozenset(bound_in([i.optional_vars for i in node.items if i.optional_vars]))
        return _bound_after(node.body, bound | targets, live, unbound)
    if isinstance(node, ast.Try | ast.Match):
        return bound
    if isinstance(node, ast.Delete):
        return bound - bound_in([node])
    if isinstance(node, ast.AnnAssign) and node.value is None:
        return bound
    return bound | bound_in([node])
