"""Break, continue and early return, as flags.

A loop or branch that becomes a function (loops.py, branches.py) cannot be left by these statements.

    while c:                        stop = False
        a                           while c:                    # ends when `stop` is true
        if d:                           a
            break          ->           if d:
        b                                   stop = True
                                        else:
                                            b

    if c:                           if c:
        return x                        result = x
    b                      ->       else:
    return y                            b
                                        result = y
                                    return result

    for x in xs:                    returned = False
        if x > 0:                   for x in xs:                # ends when `returned` is true
            return x                    if x > 0:
    return 0               ->               result, returned = x, True
                                    if not returned:
                                        result = 0
                                    return result

    without_exits    the body of a function, rewritten
    Unsupported      a function that cannot be rewritten
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NamedTuple

from ..names import function_scope

RESULT, RETURNED = "__wg_result__", "__wg_returned__"


class Unsupported(Exception):
    """A construct that prevents rewriting of a function."""


class _FlaggedBlock(NamedTuple):
    """Rewritten statements.

    flags : flags that may have been set when they end.
    ends : whether one of these has been set in any case.
    """

    body: list[ast.stmt]
    flags: frozenset[str]
    ends: bool


class _LoopFlags(NamedTuple):
    """The flags of the loop that contains a statement."""

    stop: str
    skip: str


def without_exits(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The body of a function with ``return`` as the last statement, and no exits from loops.

    Loops get an attribute `stops`: the flags that end them.

    Raises
    ------
    Unsupported
        A ``finally`` clause is left.
    """
    rewriter = _ExitRewriter()
    if not rewriter.leaves_early(body):
        return list(body)
    last = body[-1]
    block = rewriter.block(body, None)
    made = block.body
    if not block.ends:
        made = [*made, *rewriter.rest([_assign(RESULT, ast.Constant(None), last)], block.flags)]
    used = _loads(made) | rewriter.stops
    first = [_assign(f, ast.Constant(False), body[0]) for f in (RETURNED,) if f in used]
    end = ast.copy_location(ast.Return(_name(RESULT, last)), last)
    return [*first, *_without_unused(made, used | {RESULT}), end]


def _loads(body: Sequence[ast.stmt]) -> set[str]:
    """The names that statements read."""
    nodes = [n for s in body for n in ast.walk(s)]
    return {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


class _ExitRewriter:
    def __init__(self) -> None:
        self._count = 0
        self.stops: set[str] = set()

    def leaves_early(self, body: Sequence[ast.stmt]) -> bool:
        """Whether a function has an exit other than a return as its last statement."""
        if any(isinstance(n, ast.Break | ast.Continue) for n in function_scope(body)):
            return True
        for k, statement in enumerate(body):
            if isinstance(statement, ast.Return):
                return k < len(body) - 1
            if _exits_of(statement):
                return True
        return False

    def block(self, body: Sequence[ast.stmt], loop: _LoopFlags | None) -> _FlaggedBlock:
        """Statements; those after a possible exit are guarded by its flags."""
        made: list[ast.stmt] = []
        for k, statement in enumerate(body):
            rest = body[k + 1 :]
            if isinstance(statement, ast.If) and _contains_exits(statement):
                return self._if(made, statement, rest, loop)
            one = self._statement(statement, loop)
            made += one.body
            if one.ends:
                return _FlaggedBlock(made, one.flags, True)
            if one.flags:
                after = self.block(rest, loop)
                made += self.rest(after.body, one.flags)
                return _FlaggedBlock(
                    made, one.flags | after.flags, False if not rest else after.ends
                )
        return _FlaggedBlock(made, frozenset(), False)

    def _if(
        self,
        before: list[ast.stmt],
        node: ast.If,
        rest: Sequence[ast.stmt],
        loop: _LoopFlags | None,
    ) -> _FlaggedBlock:
        then, other = self.block(node.body, loop), self.block(node.orelse, loop)
        if then.ends and rest:
            other = self.block([*node.orelse, *rest], loop)
        elif other.ends and rest:
            then = self.block([*node.body, *rest], loop)
        made = ast.If(node.test, then.body or [_pass(node)], other.body)
        before = [*before, ast.copy_location(made, node)]
        flags = then.flags | other.flags
        if not rest or self.block(node.body, loop).ends or self.block(node.orelse, loop).ends:
            return _FlaggedBlock(before, flags, then.ends and other.ends)
        after = self.block(rest, loop)
        return _FlaggedBlock(
            [*before, *self.rest(after.body, flags)], flags | after.flags, after.ends
        )

    def rest(self, body: Sequence[ast.stmt], flags: frozenset[str]) -> list[ast.stmt]:
        """Statements that run if none of the flags is set."""
        if not body or not flags:
            return list(body)
        where = body[0]
        names: list[ast.expr] = [_name(f, where) for f in sorted(flags)]
        test = names[0] if len(names) == 1 else ast.BoolOp(ast.Or(), names)
        test = ast.UnaryOp(ast.Not(), test)
        made = ast.copy_location(ast.If(test, list(body), []), where)
        return [_located(made, where)]

    def _statement(self, node: ast.stmt, loop: _LoopFlags | None) -> _FlaggedBlock:
        if isinstance(node, ast.Return):
            value = node.value or ast.Constant(None)
            made = [_assign(RESULT, value, node), _assign(RETURNED, ast.Constant(True), node)]
            return _FlaggedBlock(made, frozenset((RETURNED,)), True)
        if isinstance(node, ast.Break | ast.Continue):
            assert loop is not None
            flag = loop.stop if isinstance(node, ast.Break) else loop.skip
            return _FlaggedBlock(
                [_assign(flag, ast.Constant(True), node)], frozenset((flag,)), True
            )
        if isinstance(node, ast.For | ast.While | ast.AsyncFor):
            return self._loop(node, loop)
        if isinstance(node, ast.Raise):
            return _FlaggedBlock([node], frozenset(), False)
        if not _contains_exits(node):
            return _FlaggedBlock([node], frozenset(), False)
        if isinstance(node, ast.With | ast.AsyncWith):
            inside = self.block(node.body, loop)
            block = type(node)(node.items, inside.body or [_pass(node)], node.type_comment)
            return _FlaggedBlock([ast.copy_location(block, node)], inside.flags, inside.ends)
        if isinstance(node, ast.Try):
            return self._try(node, loop)
        raise Unsupported(f"an exit in a {type(node).__name__.lower()} statement")

    def _loop(
        self, node: ast.For | ast.While | ast.AsyncFor, outer: _LoopFlags | None
    ) -> _FlaggedBlock:
        if not _contains_exits(node):
            return _FlaggedBlock([node], frozenset(), False)
        self._count += 1
        loop = _LoopFlags(f"__wg_stop{self._count}__", f"__wg_skip{self._count}__")
        inside = self.block(node.body, loop)
        body = inside.body
        loads = _loads(body)
        if loop.skip in loads:
            body = [_assign(loop.skip, ast.Constant(False), node), *body]
        stops = [f for f in (loop.stop, RETURNED) if f in inside.flags]
        self.stops |= set(stops)
        before = []
        if loop.stop in stops:
            before = [_assign(loop.stop, ast.Constant(False), node)]
        made = _copy(node, body)
        made.stops = tuple(stops)  # type: ignore[attr-defined]
        result: list[ast.stmt] = [*before, made]
        left = inside.flags & {RETURNED}
        after = self.block(node.orelse, outer)
        result += self.rest(after.body, frozenset(stops))
        return _FlaggedBlock(result, left | after.flags, False)

    def _try(self, node: ast.Try, loop: _LoopFlags | None) -> _FlaggedBlock:
        if any(_exits_of(s) for s in node.finalbody):
            raise Unsupported("an exit in a finally clause")
        body = self.block(node.body, loop)
        after = self.block(node.orelse, loop)
        flags = body.flags | after.flags
        handlers = []
        for handler in node.handlers:
            inside = self.block(handler.body, loop)
            flags |= inside.flags
            made = ast.ExceptHandler(handler.type, handler.name, inside.body or [_pass(handler)])
            handlers.append(ast.copy_location(made, handler))
        new = ast.Try(
            body.body or [_pass(node)],
            handlers,
            self.rest(after.body, body.flags),
            node.finalbody,
        )
        return _FlaggedBlock([ast.copy_location(new, node)], flags, False)


def _exits_of(node: ast.AST) -> bool:
    """Whether a statement may leave the enclosing block."""
    if isinstance(node, ast.Return | ast.Break | ast.Continue):
        return True
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
        return False
    if isinstance(node, ast.For | ast.While | ast.AsyncFor):
        inside = any(_returns(s) for s in node.body)
        return inside or any(_exits_of(s) for s in node.orelse)
    return any(
        _exits_of(n)
        for n in ast.iter_child_nodes(node)
        if isinstance(n, ast.stmt | ast.ExceptHandler | ast.match_case)
    )


def _contains_exits(node: ast.stmt) -> bool:
    """Whether there are exits in a statement, also such that leave a loop inside it only."""
    return any(isinstance(n, ast.Return | ast.Break | ast.Continue) for n in function_scope([node]))


def _returns(node: ast.AST) -> bool:
    if isinstance(node, ast.Return):
        return True
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
        return False
    return any(_returns(n) for n in ast.iter_child_nodes(node))


def _without_unused(body: Sequence[ast.stmt], used: set[str]) -> list[ast.stmt]:
    """Statements without assignments of flags that nothing reads."""
    made: list[ast.stmt] = []
    for node in body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if name.startswith("__wg_") and name not in used:
                continue
        for field in ("body", "orelse", "finalbody"):
            inner = getattr(node, field, None)
            if isinstance(inner, list) and inner and isinstance(inner[0], ast.stmt):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                    continue
                kept = _without_unused(inner, used)
                setattr(node, field, kept or ([_pass(node)] if field == "body" else []))
        for handler in getattr(node, "handlers", ()):
            handler.body = _without_unused(handler.body, used) or [_pass(node)]
        made.append(node)
    return made


def _copy(node: ast.For | ast.While | ast.AsyncFor, body: list[ast.stmt]) -> ast.stmt:
    body = body or [_pass(node)]
    made: ast.stmt
    if isinstance(node, ast.While):
        made = ast.While(node.test, body, [])
    else:
        made = type(node)(node.target, node.iter, body, [], node.type_comment)
    return ast.copy_location(made, node)


def _name(name: str, where: ast.AST) -> ast.Name:
    return ast.copy_location(ast.Name(name, ast.Load()), where)


def _assign(name: str, value: ast.expr, where: ast.AST) -> ast.stmt:
    made = ast.Assign([ast.Name(name, ast.Store())], value)
    return _located(ast.copy_location(made, where), where)


def _located(node: ast.stmt, where: ast.AST) -> ast.stmt:
    """The statement with positions in all of its nodes that have none."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.expr | ast.stmt) and not hasattr(inner, "lineno"):
            ast.copy_location(inner, where)
    return node


def _pass(where: ast.AST) -> ast.stmt:
    return ast.copy_location(ast.Pass(), where)
