"""Stores: arrays in which elements are assigned later, and global variables.

Buffers: arrays computed by any expression, in which elements are assigned later.

    b = a.copy()             b = buffer(a.copy())
    b[i] = x * b[j]          b[i] = x * b[j]

An array that the expression has made, and that nothing else refers to, becomes a tensor, which
takes the values of tensors (running/object_changes.py).  An array that something else refers to
stays as it is.

fills_computed_arrays    whether a function has such assignments
with_buffers             the function with them rewritten

Global variables that a function assigns, as entries of the globals of its module.

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

from wengert._engine.frontend.names import declared
from wengert._engine.frontend.syntax import call, load, located, runtime_name, string, traverse

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
