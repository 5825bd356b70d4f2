"""Liveness: the variables that may be read after a statement.

A variable that a loop assigns and nothing reads afterwards need not be a result of the loop.

    Liveness      the names that may be read after statements, and at the start of a trip
    live_names    the liveness of a function
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NamedTuple

from .names import bound_in, captured_in, loaded_in

Live = frozenset[str]
_EXITS = (ast.Return, ast.Raise)


class Liveness(NamedTuple):
    """Names that may be read.

    after : the names read after each statement.
    head : the names read from the start of an iteration of each loop.
    """

    after: dict[ast.stmt, Live]
    head: dict[ast.stmt, Live]


def live_names(body: Sequence[ast.stmt], results: Live = frozenset()) -> Liveness:
    """The names that may be read after each statement of a function, nested ones too.

    Names that inner functions read, or that are declared global or nonlocal, are always live.

    Parameters
    ----------
    body : sequence of statements
    results : frozenset of str
        Names that are read after the last statement.
    """
    always = captured_in(body)
    for node in ast.walk(ast.Module(list(body), [])):
        if isinstance(node, ast.Global | ast.Nonlocal):
            always |= set(node.names)
    found = Liveness({}, {})
    _block(body, results | frozenset(always), frozenset(always), found)
    return found


def _block(body: Sequence[ast.stmt], after: Live, always: Live, found: Liveness) -> Live:
    """The names live before a list of statements."""
    live = after
    for statement in reversed(body):
        live = _statement(statement, live, always, found) | always
    return live


def _statement(node: ast.stmt, after: Live, always: Live, found: Liveness) -> Live:
    found.after[node] = found.after.get(node, frozenset()) | after
    if isinstance(node, _EXITS):
        return always | loaded_in(node)
    if isinstance(node, ast.If):
        then = _block(node.body, after, always, found)
        other = _block(node.orelse, after, always, found)
        return then | other | loaded_in(node.test)
    if isinstance(node, ast.While):
        end = _block(node.orelse, after | _stops(node), always, found)
        around = end | loaded_in(node.test)
        for _ in range(2):  # the second time with the names that the body reads at its start
            around |= _block(node.body, around, always, found)
        found.head[node] = around
        return around
    if isinstance(node, ast.For | ast.AsyncFor):
        end = _block(node.orelse, after | _stops(node), always, found)
        targets = bound_in([node.target])
        around = end
        for _ in range(2):
            around |= _block(node.body, around, always, found) - targets
        found.head[node] = around
        return around | loaded_in(node.iter) | loaded_in(node.target)
    if isinstance(node, ast.Try | ast.With | ast.AsyncWith | ast.Match | ast.ClassDef):
        return _compound(node, after, always, found)
    return _simple(node, after)


def _stops(node: ast.stmt) -> Live:
    """The flags that end a loop (rewriting/exits.py)."""
    return frozenset(getattr(node, "stops", ()))


def _compound(node: ast.stmt, after: Live, always: Live, found: Liveness) -> Live:
    """A statement that may run in part: nothing is known to be assigned."""
    live = after | loaded_in(node)
    for _, value in ast.iter_fields(node):
        for inner in value if isinstance(value, list) else ():
            if isinstance(inner, ast.stmt):
                _statement(inner, live, always, found)
            elif isinstance(inner, ast.ExceptHandler | ast.match_case):
                for statement in inner.body:
                    _statement(statement, live, always, found)
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
