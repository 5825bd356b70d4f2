"""Rewrite and compile a function.

The code has the file name and line numbers of the user's source.

rewritten_code           the rewritten code of a function
compiled_definition      the code of a definition that was made from that of a function
as_function_definition   a definition; that of a lambda as ``def``
Unsupported              the function cannot be rewritten
INTROSPECTION            functions that inspect the variables or the frame of their caller

A function without the functions that it passes to be called when the program runs.

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

from wengert._engine.frontend.names import (
    bound_in,
    declared,
    function_scope,
    live_names,
    loaded_in,
    parameters,
    possibly_unbound,
)
from wengert._engine.frontend.source import (
    FunctionSource,
    definition_of,
    nested_code,
    without_syntax_warnings,
)
from wengert._engine.frontend.syntax import (
    call,
    copied,
    load,
    located,
    parameter_list,
    runtime_name,
    thunk,
    traverse,
)

from .exits import Unsupported, without_exits
from .expressions import Calls
from .list_appends import appends_in, as_append_calls, with_last_element_variables
from .simplified import with_simple_statements
from .statements import Statements
from .stores import with_buffers, with_global_stores

__all__ = [
    "INTROSPECTION",
    "Unsupported",
    "as_function_definition",
    "compiled_definition",
    "rewritten_code",
]

INTROSPECTION = frozenset(("locals", "vars", "eval", "exec", "dir", "_getframe", "currentframe"))
_FUNCTION = runtime_name("function")


def rewritten_code(definition: FunctionSource, code: CodeType, whole: bool = True) -> CodeType:
    """The code of a function with its loops, branches and calls rewritten.

    Parameters
    ----------
    definition : FunctionSource
    code : CodeType
        The original code.
    whole : bool
        Whether loops and branches are rewritten, or only calls.

    Raises
    ------
    Unsupported
        The function is a generator or a coroutine, or inspects its own variables.
    """
    node = with_buffers(copied(definition.node))
    private = definition.classes[-1] if definition.classes else None
    return compiled_definition(_rewrite_definition(node, private, whole), definition, code)


def compiled_definition(
    function: ast.FunctionDef, definition: FunctionSource, code: CodeType
) -> CodeType:
    """The code of a definition that was made from that of a function, whose code is `code`."""
    private = definition.classes[-1] if definition.classes else None
    function.decorator_list, function.returns = [], None
    function.args.defaults, function.args.kw_defaults = [], [None] * len(function.args.kwonlyargs)
    function.name = _FUNCTION  # its name may be that of a global variable
    module = _enclosing_module(function, code, private)
    ast.fix_missing_locations(module)
    with without_syntax_warnings():
        compiled = compile(
            module, code.co_filename, "exec", flags=definition.flags, dont_inherit=True
        )
    function_code = _function_code(compiled)
    return _with_names(function_code, code.co_name, code.co_qualname)


def _rewrite_definition(node: ast.AST, private: str | None, whole: bool) -> ast.FunctionDef:
    """The definition with a rewritten body; a lambda becomes a function definition."""
    function = as_function_definition(node)
    _check_supported(function, whole)
    function.body = (
        _rewrite_body(function, private) if whole else _with_rewritten_calls(function, private)
    )
    return function


def as_function_definition(node: ast.AST) -> ast.FunctionDef:
    """A definition without annotations; a lambda becomes a function definition."""
    if isinstance(node, ast.Lambda):
        body: list[ast.stmt] = [ast.copy_location(ast.Return(node.body), node.body)]
        function = ast.FunctionDef(_FUNCTION, node.args, body, [])
        function = ast.copy_location(function, node)
    elif isinstance(node, ast.FunctionDef):
        function = node
    else:
        raise Unsupported("it is a coroutine")
    for argument in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs):
        argument.annotation = None
    for extra in (function.args.vararg, function.args.kwarg):
        if extra is not None:
            extra.annotation = None
    return function


def _with_rewritten_calls(node: ast.FunctionDef, private: str | None) -> list[ast.stmt]:
    """The body with only its calls rewritten."""
    parameter_names = parameters(node)
    calls = Calls(parameter_names[0] if parameter_names else None)
    return with_global_stores([calls.visit(s) for s in node.body])


def _check_supported(node: ast.FunctionDef, whole: bool) -> None:
    for inner in function_scope(node.body):
        if whole and isinstance(
            inner, ast.Yield | ast.YieldFrom | ast.Await | ast.AsyncFor | ast.AsyncWith
        ):
            raise Unsupported("it is a generator or a coroutine")
        if isinstance(inner, ast.Call):
            callee = inner.func
            callee_name = (
                callee.attr if isinstance(callee, ast.Attribute) else getattr(callee, "id", "")
            )
            if callee_name in INTROSPECTION and not (callee_name == "vars" and inner.args):
                raise Unsupported(f"it calls {callee_name}()")


def _rewrite_body(node: ast.FunctionDef, private: str | None) -> list[ast.stmt]:
    parameter_names = parameters(node)
    docstring = node.body[:1] if ast.get_docstring(node, clean=False) is not None else []
    body = without_exits(with_simple_statements(node.body[len(docstring) :]))
    body = as_append_calls(body, set(parameter_names))
    body = with_global_stores(with_last_element_variables(body, set(parameter_names)))
    global_names, nonlocal_names = declared(body)
    local = (bound_in(body) | set(parameter_names)) - global_names
    live = live_names(body, frozenset())
    assigned_by_inner = _assigned_inside(body)
    statements = Statements(
        local,
        global_names,
        live,
        parameter_names[0] if parameter_names else None,
        lambda n: _rewrite_nested(n, private),
        appends_in(body, set(parameter_names)),
        private,
        frozenset(possibly_unbound(body, set(parameter_names) | nonlocal_names, live)),
        assigned_by_inner | nonlocal_names | global_names,
    )
    assigned_by_inner &= local - nonlocal_names
    rewritten = statements.block(body)
    unbound = sorted(local - nonlocal_names - set(parameter_names))
    prologue = [*_local_declarations(unbound, node), *_record_variables(assigned_by_inner, node)]
    return [*docstring, *prologue, *rewritten] or [located(node, ast.Pass())]


def _assigned_inside(body: list[ast.stmt]) -> set[str]:
    """Variables that inner functions declare nonlocal."""
    nodes = traverse(ast.Module(body, []))
    return {n for node in nodes if isinstance(node, ast.Nonlocal) for n in node.names}


def _record_variables(names: set[str], where: ast.stmt) -> list[ast.stmt]:
    """A statement that records these local variables as new objects."""
    if not names:
        return []
    variables = ast.Tuple([load(n) for n in sorted(names)], ast.Load())
    return [located(where, ast.Expr(call("new_variables", thunk(variables))))]


def _local_declarations(names: list[str], where: ast.stmt) -> list[ast.stmt]:
    """A statement that never runs, and makes names local variables of the function."""
    if not names:
        return []
    targets: list[ast.expr] = [ast.Name(n, ast.Store()) for n in names]
    never_run = ast.If(ast.Constant(False), [ast.Assign(targets, ast.Constant(None))], [])
    return [located(where, never_run)]


def _rewrite_nested(node: ast.stmt, private: str | None) -> ast.stmt:
    """Rewrite a definition inside a function; one that is not supported is left unchanged."""
    if isinstance(node, ast.ClassDef):
        node.body = [_rewrite_nested(s, node.name) for s in node.body]
        return node
    if not isinstance(node, ast.FunctionDef):
        return node
    original = copied(node)
    try:
        return _rewrite_definition(node, private, True)
    except Unsupported:
        return original


def _enclosing_module(node: ast.FunctionDef, code: CodeType, private: str | None) -> ast.Module:
    """A module in which the free variables of the function are parameters of an outer function."""
    outer = ast.FunctionDef("__wg_outer__", parameter_list(*code.co_freevars), [node], [])
    body: list[ast.stmt] = [outer]
    if private is not None:
        body = [ast.ClassDef(private, [], [], body, [])]
    return ast.Module(body, [])


def _function_code(module: CodeType) -> CodeType:
    queue = [module]
    while queue:
        current = queue.pop(0)
        if current.co_name == "__wg_outer__":
            inner = [c for c in current.co_consts if isinstance(c, CodeType)]
            return next(c for c in inner if c.co_name == _FUNCTION)
        queue += [c for c in current.co_consts if isinstance(c, CodeType)]
    raise Unsupported("its compiled code was not found")


def _with_names(code: CodeType, name: str, qualified: str) -> CodeType:
    """The code with the user's names; functions of blocks get the name of their function."""
    constants = []
    for c in code.co_consts:
        if isinstance(c, CodeType):
            if c.co_name.startswith("__wg_"):
                c = _with_names(c, name, qualified)
            else:
                c = _with_names(c, c.co_name, f"{qualified}.<locals>.{c.co_name}")
        constants.append(c)
    return code.replace(co_consts=tuple(constants), co_name=name, co_qualname=qualified)


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
