"""Replace ``break``, ``continue`` and early ``return`` by flags.

A loop body or branch that becomes a function (statements.py) cannot contain these statements.

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

from wengert._engine.frontend.syntax import children, load, located, traverse

from ..names import function_scope

RESULT, RETURNED = "__wg_result__", "__wg_returned__"


class Unsupported(Exception):
    """The function has a construct that cannot be rewritten."""


class _FlaggedBlock(NamedTuple):
    """Rewritten statements.

    Attributes
    ----------
    body : list of ast.stmt
    flags : frozenset of str
        The flags that may be set after the last statement.
    ends : bool
        Whether one of these is always set, so that statements after the block are unreachable.
    """

    body: list[ast.stmt]
    flags: frozenset[str]
    ends: bool


class _LoopFlags(NamedTuple):
    """The flags for ``break`` and ``continue`` in the innermost loop around a statement."""

    stop: str
    skip: str


def without_exits(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The body of a function with one ``return``, at its end, and no ``break`` or ``continue``.

    Loops get an attribute `stops`, the names of the flags that end them.

    Raises
    ------
    Unsupported
        One of the statements is in a ``finally`` clause or a ``match`` statement.
    """
    rewriter = _ExitRewriter()
    if not rewriter.leaves_early(body):
        return list(body)
    last = body[-1]
    block = rewriter.block(body, None)
    rewritten = block.body
    if not block.ends:
        rewritten = [
            *rewritten,
            *rewriter.unless_flagged([_assign(RESULT, ast.Constant(None), last)], block.flags),
        ]
    used_flags = _loads(rewritten) | rewriter.stops
    initial = [_assign(f, ast.Constant(False), body[0]) for f in (RETURNED,) if f in used_flags]
    final_return = located(last, ast.Return(load(RESULT)))
    return [*initial, *_without_unused_flags(rewritten, used_flags | {RESULT}), final_return]


def _loads(body: Sequence[ast.stmt]) -> set[str]:
    """The names that statements read."""
    nodes = [n for s in body for n in traverse(s)]
    return {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


class _ExitRewriter:
    def __init__(self) -> None:
        self._count = 0
        self.stops: set[str] = set()

    def leaves_early(self, body: Sequence[ast.stmt]) -> bool:
        """Whether there is an exit other than ``return`` as the last statement."""
        if any(isinstance(n, ast.Break | ast.Continue) for n in function_scope(body)):
            return True
        for k, statement in enumerate(body):
            if isinstance(statement, ast.Return):
                return k < len(body) - 1
            if _leaves_block(statement):
                return True
        return False

    def block(self, body: Sequence[ast.stmt], loop: _LoopFlags | None) -> _FlaggedBlock:
        """Rewrite statements; those after a possible exit are guarded by its flags."""
        done: list[ast.stmt] = []
        for k, statement in enumerate(body):
            rest = body[k + 1 :]
            if isinstance(statement, ast.If) and _contains_exits(statement):
                return self._if(done, statement, rest, loop)
            block = self._statement(statement, loop)
            done += block.body
            if block.ends:
                return _FlaggedBlock(done, block.flags, True)
            if block.flags:
                after = self.block(rest, loop)
                done += self.unless_flagged(after.body, block.flags)
                return _FlaggedBlock(
                    done, block.flags | after.flags, False if not rest else after.ends
                )
        return _FlaggedBlock(done, frozenset(), False)

    def _if(
        self,
        before: list[ast.stmt],
        node: ast.If,
        rest: Sequence[ast.stmt],
        loop: _LoopFlags | None,
    ) -> _FlaggedBlock:
        then, other = self.block(node.body, loop), self.block(node.orelse, loop)
        one_ends = then.ends or other.ends
        if then.ends and rest:
            other = self.block([*node.orelse, *rest], loop)
        elif other.ends and rest:
            then = self.block([*node.body, *rest], loop)
        branch = ast.If(node.test, then.body or [_pass(node)], other.body)
        before = [*before, ast.copy_location(branch, node)]
        flags = then.flags | other.flags
        if one_ends or not rest:
            return _FlaggedBlock(before, flags, then.ends and other.ends)
        after = self.block(rest, loop)
        return _FlaggedBlock(
            [*before, *self.unless_flagged(after.body, flags)], flags | after.flags, after.ends
        )

    def unless_flagged(self, body: Sequence[ast.stmt], flags: frozenset[str]) -> list[ast.stmt]:
        """Statements that run only if none of the flags is set."""
        if not body or not flags:
            return list(body)
        where = body[0]
        names: list[ast.expr] = [load(f) for f in sorted(flags)]
        any_flag = names[0] if len(names) == 1 else ast.BoolOp(ast.Or(), names)
        guarded = ast.If(ast.UnaryOp(ast.Not(), any_flag), list(body), [])
        return [located(where, guarded)]

    def _statement(self, node: ast.stmt, loop: _LoopFlags | None) -> _FlaggedBlock:
        if isinstance(node, ast.Return):
            value = node.value or ast.Constant(None)
            assignments = [
                _assign(RESULT, value, node),
                _assign(RETURNED, ast.Constant(True), node),
            ]
            return _FlaggedBlock(assignments, frozenset((RETURNED,)), True)
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
            body = self.block(node.body, loop)
            rewritten = type(node)(node.items, body.body or [_pass(node)], node.type_comment)
            return _FlaggedBlock([ast.copy_location(rewritten, node)], body.flags, body.ends)
        if isinstance(node, ast.Try):
            return self._try(node, loop)
        raise Unsupported(f"an exit in a {type(node).__name__.lower()} statement")

    def _loop(
        self, node: ast.For | ast.While | ast.AsyncFor, outer: _LoopFlags | None
    ) -> _FlaggedBlock:
        if not _contains_exits(node):
            return _FlaggedBlock([node], frozenset(), False)
        self._count += 1
        flags_of_loop = _LoopFlags(f"__wg_stop{self._count}__", f"__wg_skip{self._count}__")
        body_block = self.block(node.body, flags_of_loop)
        body = body_block.body
        loads = _loads(body)
        if flags_of_loop.skip in loads:
            body = [_assign(flags_of_loop.skip, ast.Constant(False), node), *body]
        stops = [f for f in (flags_of_loop.stop, RETURNED) if f in body_block.flags]
        self.stops |= set(stops)
        before = []
        if flags_of_loop.stop in stops:
            before = [_assign(flags_of_loop.stop, ast.Constant(False), node)]
        loop_node = _with_body(node, body)
        loop_node.stops = tuple(stops)  # type: ignore[attr-defined]
        statements: list[ast.stmt] = [*before, loop_node]
        returned = body_block.flags & {RETURNED}
        if returned and flags_of_loop.stop not in stops and _is_endless(node):
            return _FlaggedBlock(statements, returned, True)
        after = self.block(node.orelse, outer)
        statements += self.unless_flagged(after.body, frozenset(stops))
        return _FlaggedBlock(statements, returned | after.flags, False)

    def _try(self, node: ast.Try, loop: _LoopFlags | None) -> _FlaggedBlock:
        if any(_leaves_block(s) for s in node.finalbody):
            raise Unsupported("an exit in a finally clause")
        body = self.block(node.body, loop)
        else_block = self.block(node.orelse, loop)
        flags = body.flags | else_block.flags
        handlers = []
        for handler in node.handlers:
            handler_body = self.block(handler.body, loop)
            flags |= handler_body.flags
            rewritten = ast.ExceptHandler(
                handler.type, handler.name, handler_body.body or [_pass(handler)]
            )
            handlers.append(ast.copy_location(rewritten, handler))
        statement = ast.Try(
            body.body or [_pass(node)],
            handlers,
            self.unless_flagged(else_block.body, body.flags),
            node.finalbody,
        )
        return _FlaggedBlock([ast.copy_location(statement, node)], flags, False)


def _is_endless(node: ast.stmt) -> bool:
    """Whether it is ``while True``, or another constant that is true."""
    return (
        isinstance(node, ast.While)
        and isinstance(node.test, ast.Constant)
        and bool(node.test.value)
    )


def _leaves_block(node: ast.AST) -> bool:
    """Whether a statement may exit from the enclosing block."""
    if isinstance(node, ast.Return | ast.Break | ast.Continue):
        return True
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
        return False
    if isinstance(node, ast.For | ast.While | ast.AsyncFor):
        inside = any(_returns(s) for s in node.body)
        return inside or any(_leaves_block(s) for s in node.orelse)
    return any(
        _leaves_block(n)
        for n in children(node)
        if isinstance(n, ast.stmt | ast.ExceptHandler | ast.match_case)
    )


def _contains_exits(node: ast.stmt) -> bool:
    """Whether there are exits in a statement, including those of loops inside it."""
    return any(isinstance(n, ast.Return | ast.Break | ast.Continue) for n in function_scope([node]))


def _returns(node: ast.AST) -> bool:
    if isinstance(node, ast.Return):
        return True
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
        return False
    return any(_returns(n) for n in children(node))


def _without_unused_flags(body: Sequence[ast.stmt], used: set[str]) -> list[ast.stmt]:
    """Statements without assignments to flags that are never read."""
    kept_statements: list[ast.stmt] = []
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
                remaining = _without_unused_flags(inner, used)
                setattr(node, field, remaining or ([_pass(node)] if field == "body" else []))
        for handler in getattr(node, "handlers", ()):
            handler.body = _without_unused_flags(handler.body, used) or [_pass(node)]
        kept_statements.append(node)
    return kept_statements


def _with_body(node: ast.For | ast.While | ast.AsyncFor, body: list[ast.stmt]) -> ast.stmt:
    body = body or [_pass(node)]
    copy: ast.stmt
    if isinstance(node, ast.While):
        copy = ast.While(node.test, body, [])
    else:
        copy = type(node)(node.target, node.iter, body, [], node.type_comment)
    return ast.copy_location(copy, node)


def _assign(name: str, value: ast.expr, where: ast.AST) -> ast.stmt:
    return located(where, ast.Assign([ast.Name(name, ast.Store())], value))


def _pass(where: ast.AST) -> ast.stmt:
    return located(where, ast.Pass())
