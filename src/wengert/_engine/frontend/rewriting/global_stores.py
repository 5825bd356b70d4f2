"""Global variables that a function assigns, as entries of the globals of its module.

    global count                  store_global(module, "count")["count"] = count + 1
    count = count + 1      ->

So functions that it calls see them at once, and a loop or branch carries them as it does entries of
dicts.  A name that is bound in other ways (``import``, ``def``, ``:=``) stays as it is.

with_global_stores    the statements of a function, rewritten
stores_global         whether a target is such a store
"""

from __future__ import annotations

import ast
from typing import Any

from ..names import declared
from .syntax import call, load, located, runtime_name, string

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def with_global_stores(body: list[ast.stmt]) -> list[ast.stmt]:
    """Statements in which assignments of global variables are stores to the globals.

    So are those in functions inside.
    """
    for node in ast.walk(ast.Module(body, [])):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = _rewritten(node.body)
    return _rewritten(body)


def _rewritten(body: list[ast.stmt]) -> list[ast.stmt]:
    names = {n for n in declared(body)[0] if not n.startswith("__")}
    if names:
        names -= _otherwise_bound(body)
    if not names:
        return body
    rewriting = _GlobalStores(names)
    return [rewriting.visit(s) for s in body]


def _otherwise_bound(body: list[ast.stmt]) -> set[str]:
    """Names that are bound other than as targets of assignments and loops."""
    found: set[str] = set()
    for node in ast.walk(ast.Module(body, [])):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
            found |= {node.name} if node.name else set()
        elif isinstance(node, ast.alias):
            found.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.NamedExpr):
            found.add(node.target.id)
        elif isinstance(node, ast.MatchMapping):
            found |= {node.rest} if node.rest else set()
        elif isinstance(node, ast.Delete):
            found |= {t.id for t in node.targets if isinstance(t, ast.Name)}
    return found


def stores_global(target: ast.AST) -> bool:
    """Whether a target is a global variable, rewritten."""
    owner = target.value if isinstance(target, ast.Subscript) else None
    name = owner.func if isinstance(owner, ast.Call) else None
    return isinstance(name, ast.Name) and name.id == runtime_name("store_global")


class _GlobalStores(ast.NodeTransformer):
    def __init__(self, names: set[str]) -> None:
        self._names = names

    def visit(self, node: ast.AST) -> Any:
        """Leave what has variables of its own."""
        if isinstance(node, (*_SCOPES, *_COMPREHENSIONS)):
            return node
        return super().visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """A target."""
        return node if isinstance(node.ctx, ast.Load) else self._target(node, node.ctx, False)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        """An augmented assignment."""
        if isinstance(node.target, ast.Name) and node.target.id in self._names:
            target = self._target(node.target, node.target.ctx, True)
            assert isinstance(target, ast.Subscript)
            node.target = target
        else:
            node.target = self.visit(node.target)
        node.value = self.visit(node.value)
        return node

    def _target(self, node: ast.Name, ctx: ast.expr_context, augmented: bool) -> ast.expr:
        if node.id not in self._names:
            return node
        facts = [load(runtime_name("module")), string(node.id), ast.Constant(augmented)]
        owner = call("store_global", *facts)
        return located(node, ast.Subscript(owner, string(node.id), ctx))
