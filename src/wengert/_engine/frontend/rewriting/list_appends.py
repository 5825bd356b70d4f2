"""Appends: lists that loops fill, and that nothing else reads meanwhile.

    out = []
    for i in range(n):           # `out` is filled by this loop
        out.append(x[i] ** 2)
    return np.array(out)

Such a loop can be traced once: its trips append rows of one array.  A list qualifies if it is made
in the function, and between that and the end of the loop is used for appending and for reading its
last elements only (``out[-1]``, `last_elements`), so that no other name can refer to it.

Appends       the statements that append to such lists, and for each loop and branch the lists
appends_in    those of a function
appended      the list and the value of a statement that appends
last_read     the list and the position of ``out[-1]``
with_calls    statements with ``out.append(value)`` for ``out += [value]``
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NamedTuple

from ..names import captured_in, declared
from .syntax import at

_BLOCKS = (ast.For, ast.While, ast.If)
_SCOPES = (
    ast.Lambda,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
)
_LAST_ELEMENTS = 8  # elements from the end of a list that a loop may read
_Path = tuple[ast.stmt, ...]


class Appends(NamedTuple):
    """Statements that append to lists.

    statements : of lists that qualify.
    filled : for each loop and branch the lists made before it to which it appends.
    lengths : for each outermost loop the lists that it fills, and how many elements they have at
        least when it starts.
    """

    statements: frozenset[ast.stmt]
    filled: dict[ast.stmt, frozenset[str]]
    lengths: dict[ast.stmt, dict[str, int]]


class _Event(NamedTuple):
    """A use of a list by a statement in blocks.

    kind : "made", "appended", "bound", "used", or "last" for the read of a last element.
    path : the blocks around the statement.
    statement : ast.stmt
    elements : how many a list has that is made.
    """

    kind: str
    path: _Path
    statement: ast.stmt
    elements: int = 0


def appends_in(body: Sequence[ast.stmt], parameters: set[str], last_reads: bool = False) -> Appends:
    """The statements of a function that append to lists that qualify.

    Parameters
    ----------
    body : sequence of ast.stmt
    parameters : set of str
        Of the function.
    last_reads : bool
        Whether the loops may read the last elements (before `last_elements` has replaced that).
    """
    events: dict[str, list[_Event]] = {}
    _collect(body, (), events)
    shared, outer = declared(body)
    excluded = parameters | shared | outer | captured_in(body)
    statements: set[ast.stmt] = set()
    filled: dict[ast.stmt, set[str]] = {}
    lengths: dict[ast.stmt, dict[str, int]] = {}
    for name, found in events.items():
        kinds = {e.kind for e in found}
        if name in excluded or not {"made", "appended"} <= kinds or "bound" in kinds:
            continue
        blocks = [
            _blocks(k, found, last_reads) for k, e in enumerate(found) if e.kind == "appended"
        ]
        if any(b is None for b in blocks):
            continue
        statements |= {e.statement for e in found if e.kind == "appended"}
        for block in {b for those in blocks for b in those or ()}:
            filled.setdefault(block, set()).add(name)
        for around in blocks:
            loop = next((b for b in around or () if not isinstance(b, ast.If)), None)
            if loop is not None:
                lengths.setdefault(loop, {})[name] = _length_before(loop, found)
    return Appends(
        frozenset(statements), {b: frozenset(names) for b, names in filled.items()}, lengths
    )


def _length_before(loop: ast.stmt, events: Sequence[_Event]) -> int:
    """The number of elements that a list has at least where a loop that fills it starts."""
    length = 0
    made: _Event | None = None
    for event in events:
        if loop in event.path or event.statement is loop:
            break
        if event.kind == "made":
            made, length = event, event.elements
        elif event.kind == "appended" and made is not None and event.path == made.path:
            length += 1
    return length


def _blocks(k: int, events: Sequence[_Event], last_reads: bool) -> _Path | None:
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
            if other.kind == "last" and inside and not last_reads:
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
        for name, kind in _names(found[1]):
            note(name.id, kind)
        note(found[0], "appended")
        return
    if isinstance(node, _BLOCKS):
        head = (
            node.test
            if isinstance(node, ast.If | ast.While)
            else ast.Tuple([node.target, node.iter])
        )
        inside = (*path, node)
        for name, kind in _names(head):
            events.setdefault(name.id, []).append(
                _Event(kind, inside if isinstance(node, ast.While) else path, node)
            )
        _collect(node.body, inside, events)
        _collect(node.orelse, inside if isinstance(node, ast.If) else path, events)
        return
    target = _single_target(node)
    value = getattr(node, "value", None)
    if target is not None and isinstance(value, ast.List):
        for name, kind in _names(value):
            note(name.id, kind)
        count = sum(not isinstance(x, ast.Starred) for x in value.elts)
        events.setdefault(target, []).append(_Event("made", path, node, count))
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
                for name, kind in _names(part, statements=False):
                    note(name.id, kind)
            elif isinstance(part, ast.AST):
                for name, kind in _names(part):
                    note(name.id, kind)
    _collect(nested, path, events)


def _names(node: ast.AST, statements: bool = True) -> list[tuple[ast.Name, str]]:
    """The names in an expression or statement, and how each is used."""
    last = last_read(node)
    if last is not None:
        return [(last[0], "last")]
    if isinstance(node, ast.Name):
        return [(node, "used" if isinstance(node.ctx, ast.Load) else "bound")]
    if isinstance(node, _SCOPES):
        names = [n for n in ast.walk(node) if isinstance(n, ast.Name)]
        return [(n, "used" if isinstance(n.ctx, ast.Load) else "bound") for n in names]
    found: list[tuple[ast.Name, str]] = []
    for child in ast.iter_child_nodes(node):
        if statements or not isinstance(child, ast.stmt):
            found += _names(child, statements)
    return found


def last_read(node: ast.AST) -> tuple[ast.Name, int] | None:
    """The list and 1 for ``out[-1]``, 2 for ``out[-2]`` and so on; None for other expressions."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.ctx, ast.Load):
        return None
    index = node.slice
    if not isinstance(index, ast.UnaryOp) or not isinstance(index.op, ast.USub):
        return None
    number = getattr(index.operand, "value", None)
    if type(number) is not int or not 0 < number <= _LAST_ELEMENTS:
        return None
    return (node.value, number) if isinstance(node.value, ast.Name) else None


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
    statements = appends_in(body, parameters, last_reads=True).statements

    class Rewriting(ast.NodeTransformer):
        def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
            found = appended(node)
            if node not in statements or found is None:
                return node
            append = ast.Attribute(ast.Name(found[0], ast.Load()), "append", ast.Load())
            return at(node, ast.Expr(ast.Call(append, [found[1]], [])))

    return [Rewriting().visit(s) for s in body]
