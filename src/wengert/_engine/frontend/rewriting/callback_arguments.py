"""A function without the functions that it passes to be called when the program runs.

    wg.debug.callback(record, x)                wg.debug.callback(None, x)
    wg.debug.callback(history.record, x)        wg.debug.callback(None, x)
    wg.debug.callback(make().record, x)         wg.debug.callback(make(), x)
    wg.debug.callback(lambda v: g(v), x)   ->   wg.debug.callback(lambda v: None, x)

    def report(v): ...                          def report(v): pass
    wg.debug.callback(report, x)                wg.debug.callback(None, x)

Its code has the names that the function may read while it is traced: a variable that is used in
another place as well is still there.

WithoutCallbacks    this code, and the variables and attributes that were passed
without_callbacks   that of a function
called_paths        the functions that a function calls by name: ``wg.debug.callback``
"""

from __future__ import annotations

import ast
import functools
from types import CodeType
from typing import NamedTuple

from ..code_facts import nested_code
from ..names import loaded_in
from ..source import FunctionSource, definition_of
from ..tree_traversal import copied, traverse
from .functions import INTROSPECTION, Unsupported, as_function_definition, compiled_definition

_OPTIMIZED = 1  # the flag of code whose local variables are known; a class body does not have it
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


class WithoutCallbacks(NamedTuple):
    """The code of a function without the functions that it passes as callbacks.

    code : CodeType
    variables : frozenset of (str, str)
        The variables that are passed as callbacks, each with the attribute of it that is passed,
        or an empty string.
    attributes : frozenset of str
        The attributes of any objects that are passed.
    """

    code: CodeType
    variables: frozenset[tuple[str, str]]
    attributes: frozenset[str]


@functools.lru_cache(maxsize=1024)
def called_paths(code: CodeType, file: str) -> frozenset[str]:
    """The paths of names, global or free, that a function calls; empty if that is not known."""
    definition = _definition(code)
    if definition is None:
        return frozenset()
    calls = [n.func for n in traverse(definition.node) if isinstance(n, ast.Call)]
    codes = list(nested_code(code))
    local = {n for c in codes for n in (*c.co_varnames, *c.co_cellvars)}
    paths = {p for p in map(_path, calls) if p and p.partition(".")[0] not in local}
    is_known = all(c.co_flags & _OPTIMIZED for c in codes)
    return frozenset(paths) if is_known else frozenset()


@functools.lru_cache(maxsize=1024)
def without_callbacks(
    code: CodeType, file: str, parameters: frozenset[tuple[str, str]], partials: frozenset[str]
) -> WithoutCallbacks | None:
    """A function without its callbacks; None if there are none, or its source is not supported.

    Parameters
    ----------
    code : CodeType
    file : str
        Its file: code objects of different files may be equal.
    parameters : frozenset of (str, str)
        Paths of functions that are called, each with the name of the parameter that is a callback.
    partials : frozenset of str
        Paths of `functools.partial`.
    """
    definition = _definition(code)
    if definition is None:
        return None
    removal = _Removal(dict(parameters), partials)
    try:
        function = as_function_definition(copied(definition.node))
        function.body = [removal.visit(s) for s in function.body]
        _empty_unused(function)
        made = compiled_definition(function, definition, code)
    except Unsupported:
        return None
    return WithoutCallbacks(made, frozenset(removal.variables), frozenset(removal.attributes))


def _definition(code: CodeType) -> FunctionSource | None:
    """The definition of a function, unless it may read its own variables by name."""
    definition = definition_of(code)
    if definition is None or not INTROSPECTION.isdisjoint(loaded_in(definition.node)):
        return None
    attributes = {n.attr for n in traverse(definition.node) if isinstance(n, ast.Attribute)}
    return definition if INTROSPECTION.isdisjoint(attributes) else None


def _path(node: ast.AST) -> str | None:
    """The dotted name that an expression is, or None."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(names)]) if isinstance(node, ast.Name) else None


class _Removal(ast.NodeTransformer):
    """Removes the callbacks from calls."""

    def __init__(self, parameters: dict[str, str], partials: frozenset[str]) -> None:
        self._parameters, self._partials = parameters, partials
        self.variables: set[tuple[str, str]] = set()
        self.attributes: set[str] = set()

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """A call, which may have a callback."""
        parameter = self._parameters.get(_path(node.func) or "")
        if parameter is not None and node.args:
            node.args[0] = self._removed(node.args[0])
        elif parameter is not None:
            for keyword in node.keywords:
                if keyword.arg == parameter:
                    keyword.value = self._removed(keyword.value)
        return self.generic_visit(node)

    def _removed(self, x: ast.expr) -> ast.expr:
        """A callback without what is called: what the function evaluates to find it."""
        if isinstance(x, ast.Name):
            self.variables.add((x.id, ""))
            return ast.copy_location(ast.Constant(None), x)
        if isinstance(x, ast.Attribute) and not x.attr.startswith("__"):
            self.attributes.add(x.attr)
            if not isinstance(x.value, ast.Name):
                return x.value
            self.variables.add((x.value.id, x.attr))
            return ast.copy_location(ast.Constant(None), x)
        if isinstance(x, ast.Lambda):
            x.body = ast.copy_location(ast.Constant(None), x.body)
        elif isinstance(x, ast.IfExp):
            x.body, x.orelse = self._removed(x.body), self._removed(x.orelse)
        elif isinstance(x, ast.Call) and x.args and _path(x.func) in self._partials:
            x.args[0] = self._removed(x.args[0])
        return x


def _empty_unused(function: ast.FunctionDef) -> None:
    """Remove the bodies of functions inside that are no longer used."""
    in_classes = {id(s) for n in traverse(function) if isinstance(n, ast.ClassDef) for s in n.body}
    while True:
        used = loaded_in(function)
        for node in traverse(function):
            if isinstance(node, ast.Global | ast.Nonlocal):
                used |= set(node.names)
            elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                used.add(node.target.id)
        unused = [
            n
            for n in traverse(function)
            if isinstance(n, ast.FunctionDef)
            and n is not function
            and n.name not in used
            and not n.decorator_list
            and id(n) not in in_classes
            and not isinstance(n.body[0], ast.Pass)
        ]
        if not unused:
            return
        for n in unused:
            n.body = [ast.copy_location(ast.Pass(), n.body[0])]
