"""Appends: lists that loops fill, and that nothing else reads meanwhile.

    out = []
    for i in range(n):           # `out` is filled by this loop
        out.append(x[i] ** 2)
    return np.array(out)

Such a loop can be traced once: its trips append rows of one array.  A list qualifies if it is made
in the function, and between that and the end of the loop is used for appending only, so that no
other name can refer to it.

Appends       the statements that append to such lists, and for each loop and branch the lists
appends_in    those of a function
appended      the list and the value of a statement that appends
with_calls    statements with ``out.append(value)`` for ``out += [value]``
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NamedTuple

from ..names import captured_in, declared
from .syntax import at

_BLOCKS = (ast.For, ast.While, ast.If)
_Path = tuple[ast.stmt, ...]


class Appends(NamedTuple):
    """Statements that append to lists.

    statements : of lists that qualify.
    filled : for each loop and branch the lists made before it to which it appends.
    """

    statements: frozenset[ast.stmt]
    filled: dict[ast.stmt, frozenset[str]]


class _Event(NamedTuple):
    """A use of a list: "made", "appended" or "used", by a statement in blocks."""

    kind: str
    path: _Path
    statement: ast.stmt


def appends_in(body: Sequence[ast.stmt], parameters: set[str]) -> Appends:
    """The statements of a function that append to lists that qualify."""
    events: dict[str, list[_Event]] = {}
    _collect(body, (), events)
    shared, outer = declared(body)
    excluded = parameters | shared | outer | captured_in(body)
    statements: set[ast.stmt] = set()
    filled: dict[ast.stmt, set[str]] = {}
    for name, found in events.items():
        kinds = {e.kind for e in found}
        if name in excluded or not {"made", "appended"} <= kinds or "bound" in kinds:
            continue
        blocks = [_blocks(k, found) for k, e in enumerate(found) if e.kind == "appended"]
        if any(b is None for b in blocks):
            continue
        statements |= {e.statement for e in found if e.kind == "appended"}
        for block in {b for those in blocks for b in those or ()}:
            filled.setdefault(block, set()).add(name)
    return Appends(frozenset(statements), {b: frozenset(names) for b, names in filled.items()})


def _blocks(k: int, events: Sequence[_Event]) -> _Path | None:
    """The loops and branches that fill a list at an event; None if it is used otherwise there."""
    event = events[k]
    made = None
    for other in events[:k][::-1]:
        if other.kind == "made" and event.path[: len(other.path)] == other.path:
            made = other
            break
    if made is None:
        return None
    depth = len(made.path)
    around = event.path[depth:]
    loops = [b for b in around if not isinstance(b, ast.If)]
    if loops:
        outermost = around.index(loops[0]) + depth
        region = event.path[: outermost + 1]
        first = events.index(made)
        for number, other in enumerate(events):
            inside = other.path[: outermost + 1] == region
            before = first < number < k and other.path[:depth] == made.path
            if other.kind in ("used", "made") and other is not made and (inside or before):
                return None
    return around


def _collect(body: Sequence[ast.stmt], path: _Path, events: dict[str, list[_Event]]) -> None:
    for statement in body:
        _uses(statement, path, events)


def _uses(node: ast.stmt, path: _Path, events: dict[str, list[_Event]]) -> None:
    def note(name: str, kind: str) -> None:
        events.setdefault(name, []).append(_Event(kind, path, node))

    found = appended(node)
    if found is not None:
        for inner in ast.walk(found[1]):
            if isinstance(inner, ast.Name):
                note(inner.id, "used")
        note(found[0], "appended")
        return
    if isinstance(node, _BLOCKS):
        head = (
            node.test
            if isinstance(node, ast.If | ast.While)
            else ast.Tuple([node.target, node.iter])
        )
        inside = (*path, node)
        for name in _names(head):
            events.setdefault(name.id, []).append(
                _Event(
                    "used" if isinstance(name.ctx, ast.Load) else "bound",
                    inside if isinstance(node, ast.While) else path,
                    node,
                )
            )
        _collect(node.body, inside, events)
        _collect(node.orelse, inside if isinstance(node, ast.If) else path, events)
        return
    target = _single_target(node)
    if target is not None and isinstance(getattr(node, "value", None), ast.List):
        for name in _names(node.value):  # type: ignore[attr-defined]
            note(name.id, "used")
        note(target, "made")
        return
    nested: list[ast.stmt] = []
    for field, value in ast.iter_fields(node):
        del field
        parts = value if isinstance(value, list) else [value]
        for part in parts:
            if isinstance(part, ast.stmt):
                nested.append(part)
            elif isinstance(part, ast.ExceptHandler | ast.match_case):
                nested += part.body
                for name in _names(part, statements=False):
                    note(name.id, "used" if isinstance(name.ctx, ast.Load) else "bound")
            elif isinstance(part, ast.AST):
                for name in _names(part):
                    note(name.id, "used" if isinstance(name.ctx, ast.Load) else "bound")
    _collect(nested, path, events)


def _names(node: ast.AST, statements: bool = True) -> list[ast.Name]:
    if statements:
        return [n for n in ast.walk(node) if isinstance(n, ast.Name)]
    found: list[ast.Name] = []
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.stmt):
            found += _names(child)
    return found


def _single_target(node: ast.stmt) -> str | None:
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        targets = [node.target]
    if len(targets) == 1 and isinstance(targets[0], ast.Name):
        return targets[0].id
    return None


def appended(node: ast.stmt) -> tuple[str, ast.expr] | None:
    """The list and the value of ``out.append(value)`` or ``out += [value]``; None for others."""
    if isinstance(node, ast.AugAssign):
        if isinstance(node.op, ast.Add) and isinstance(node.target, ast.Name):
            items = node.value.elts if isinstance(node.value, ast.List) else []
            if len(items) == 1 and not isinstance(items[0], ast.Starred):
                return node.target.id, items[0]
        return None
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
        return None
    called = node.value
    function = called.func
    if not isinstance(function, ast.Attribute) or function.attr != "append":
        return None
    if not isinstance(function.value, ast.Name) or len(called.args) != 1 or called.keywords:
        return None
    if isinstance(called.args[0], ast.Starred):
        return None
    return function.value.id, called.args[0]


def with_calls(body: list[ast.stmt], parameters: set[str]) -> list[ast.stmt]:
    """Statements with ``out.append(value)`` for ``out += [value]``, of lists that qualify."""
    if not any(isinstance(n, ast.AugAssign) for s in body for n in ast.walk(s)):
        return body
    statements = appends_in(body, parameters).statements

    class Rewriting(ast.NodeTransformer):
        def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
            found = appended(node)
            if node not in statements or found is None:
                return node
            append = ast.Attribute(ast.Name(found[0], ast.Load()), "append", ast.Load())
            return at(node, ast.Expr(ast.Call(append, [found[1]], [])))

    return [Rewriting().visit(s) for s in body]
