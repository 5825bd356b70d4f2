"""Names: which variables statements bind and read.

bound_in        names that statements bind, in the scope of the function
loaded_in       names that a node reads, also in the functions defined inside it
captured_in     names that the functions defined inside a node read
declared        names declared global, and names declared nonlocal
function_scope  the statements and expressions of a function without those of inner functions
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def function_scope(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """All nodes in these, without the bodies of functions and classes defined inside."""
    waiting = list(nodes)[::-1]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, _SCOPES):
            waiting += _outside(node)
        else:
            waiting += list(ast.iter_child_nodes(node))[::-1]


def _outside(node: ast.AST) -> list[ast.AST]:
    """The parts of a definition that are evaluated outside of it: decorators, defaults, bases."""
    found: list[ast.AST] = list(getattr(node, "decorator_list", []))
    found += getattr(node, "bases", [])
    found += getattr(node, "keywords", [])
    arguments = getattr(node, "args", None)
    if isinstance(arguments, ast.arguments):
        found += arguments.defaults
        found += [d for d in arguments.kw_defaults if d is not None]
    return found


def bound_in(nodes: Iterable[ast.AST]) -> set[str]:
    """Names that statements bind: assigned, deleted, imported, defined, caught."""
    found: set[str] = set()
    for node in function_scope(nodes):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {(a.asname or a.name).partition(".")[0] for a in node.names}
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
            found |= {node.name} if node.name else set()
        elif isinstance(node, ast.MatchMapping) and node.rest:
            found.add(node.rest)
    return found - _comprehension_variables(nodes)


def _comprehension_variables(nodes: Iterable[ast.AST]) -> set[str]:
    """SharedVariables of comprehensions, which are bound in these only."""
    inner: set[str] = set()
    outer: set[str] = set()
    for node in function_scope(nodes):
        if isinstance(node, _COMPREHENSIONS):
            for generator in node.generators:
                inner |= {n.id for n in ast.walk(generator.target) if isinstance(n, ast.Name)}
    if not inner:
        return inner
    targets = {
        id(name)
        for node in function_scope(nodes)
        if isinstance(node, _COMPREHENSIONS)
        for generator in node.generators
        for name in ast.walk(generator.target)
    }
    for node in function_scope(nodes):
        if (
            isinstance(node, ast.Name)
            and not isinstance(node.ctx, ast.Load)
            and id(node) not in targets
        ):
            outer.add(node.id)
    return inner - outer


def loaded_in(node: ast.AST) -> set[str]:
    """Names that a node reads, also in functions and comprehensions inside it."""
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def captured_in(nodes: Iterable[ast.AST]) -> set[str]:
    """Names that functions and classes defined inside these nodes may read at any time."""
    found: set[str] = set()
    for node in function_scope(nodes):
        if isinstance(node, _SCOPES):
            found |= loaded_in(node)
            for inner in ast.walk(node):
                if isinstance(inner, ast.Nonlocal):
                    found |= set(inner.names)
        elif isinstance(node, ast.GeneratorExp):
            found |= _read_late(node)
    return found


def _read_late(node: ast.GeneratorExp) -> set[str]:
    """The outer names that a generator reads when its items are asked for.

    Its first iterable is evaluated where the generator is made.
    """
    first, *others = node.generators
    late = [node.elt, *first.ifs, *others]
    own = {n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}
    return {n for part in late for n in loaded_in(part)} - own


def declared(nodes: Iterable[ast.AST]) -> tuple[set[str], set[str]]:
    """Names declared global, and names declared nonlocal."""
    shared: set[str] = set()
    outer: set[str] = set()
    for node in function_scope(nodes):
        if isinstance(node, ast.Global):
            shared |= set(node.names)
        elif isinstance(node, ast.Nonlocal):
            outer |= set(node.names)
    return shared, outer


def parameters(node: Scope) -> list[str]:
    """The names of all parameters of a function."""
    a = node.args
    found = [*a.posonlyargs, *a.args, *a.kwonlyargs]
    found += [x for x in (a.vararg, a.kwarg) if x is not None]
    return [x.arg for x in found]
