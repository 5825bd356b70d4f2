"""Functions: a definition rewritten, and compiled with the file name and lines of the user.

rewritten_code    the code of a function, and the names of its free variables
Unsupported       a function that stays as it is
"""

from __future__ import annotations

import ast
import copy
from types import CodeType

from ..definite_assignment import possibly_unbound
from ..liveness import live_names
from ..names import bound_in, declared, function_scope, parameters
from ..source import FunctionSource
from .calls import Calls
from .exits import Unsupported, without_exits
from .last_elements import with_last_elements
from .list_appends import appends_in, with_calls
from .statements import Statements
from .syntax import at, call, name, no_arguments, runtime, thunk

__all__ = ["Unsupported", "rewritten_code"]

# Functions that look at the variables or the frame of their caller.
_INTROSPECTION = frozenset(("locals", "vars", "eval", "exec", "dir", "_getframe", "currentframe"))
_FUNCTION = runtime("function")


def rewritten_code(definition: FunctionSource, code: CodeType, whole: bool = True) -> CodeType:
    """The code of a function with its loops, branches and calls rewritten.

    Parameters
    ----------
    definition : FunctionSource
    code : CodeType
        The code that Python runs.
    whole : bool
        Whether loops and branches are rewritten too, rather than calls alone.

    Raises
    ------
    Unsupported
        It is a generator or a coroutine, or it reads its own variables by name.
    """
    node = copy.deepcopy(definition.node)
    private = definition.classes[-1] if definition.classes else None
    made = _definition(node, private, whole)
    made.decorator_list, made.returns = [], None
    made.args.defaults, made.args.kw_defaults = [], [None] * len(made.args.kwonlyargs)
    made.name = _FUNCTION  # its name may be that of a global variable
    module = _module(made, code, private)
    ast.fix_missing_locations(module)
    compiled = compile(module, code.co_filename, "exec", flags=definition.flags, dont_inherit=True)
    found = _found(compiled)
    return _renamed(found, code.co_name, code.co_qualname)


def _definition(node: ast.AST, private: str | None, whole: bool) -> ast.FunctionDef:
    """A function definition with a rewritten body, for a function or a lambda."""
    if isinstance(node, ast.Lambda):
        body: list[ast.stmt] = [ast.copy_location(ast.Return(node.body), node.body)]
        made = ast.FunctionDef(_FUNCTION, node.args, body, [])
        made = ast.copy_location(made, node)
    elif isinstance(node, ast.FunctionDef):
        made = node
    else:
        raise Unsupported("it is a coroutine")
    _check(made, whole)
    for argument in (*made.args.posonlyargs, *made.args.args, *made.args.kwonlyargs):
        argument.annotation = None
    for extra in (made.args.vararg, made.args.kwarg):
        if extra is not None:
            extra.annotation = None
    made.body = _body(made, private) if whole else _calls(made, private)
    return made


def _calls(node: ast.FunctionDef, private: str | None) -> list[ast.stmt]:
    """The body with its calls rewritten."""
    first = parameters(node)
    return [Calls(first[0] if first else None).visit(s) for s in node.body]


def _check(node: ast.FunctionDef, whole: bool) -> None:
    for inner in function_scope(node.body):
        if whole and isinstance(
            inner, ast.Yield | ast.YieldFrom | ast.Await | ast.AsyncFor | ast.AsyncWith
        ):
            raise Unsupported("it is a generator or a coroutine")
        if isinstance(inner, ast.Call):
            called = inner.func
            word = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            if word in _INTROSPECTION and not (word == "vars" and inner.args):
                raise Unsupported(f"it calls {word}()")


def _body(node: ast.FunctionDef, private: str | None) -> list[ast.stmt]:
    first = parameters(node)
    docstring = node.body[:1] if ast.get_docstring(node, clean=False) is not None else []
    body = with_calls(without_exits(node.body[len(docstring) :]), set(first))
    body = with_last_elements(body, set(first))
    shared, outer = declared(body)
    local = (bound_in(body) | set(first)) - shared
    live = live_names(body, frozenset())
    statements = Statements(
        local,
        shared,
        live,
        first[0] if first else None,
        lambda n: _nested(n, private),
        appends_in(body, set(first)),
        private,
        frozenset(possibly_unbound(body, set(first) | outer, live)),
    )
    shared_by = _assigned_inside(body) & (local - outer)
    made = statements.block(body)
    unbound = sorted(local - outer - set(first))
    start = [*_bindings(unbound, node), *_noted(shared_by, node)]
    return [*docstring, *start, *made] or [at(node, ast.Pass())]


def _assigned_inside(body: list[ast.stmt]) -> set[str]:
    """Variables that functions inside declare nonlocal."""
    nodes = ast.walk(ast.Module(body, []))
    return {n for node in nodes if isinstance(node, ast.Nonlocal) for n in node.names}


def _noted(names: set[str], where: ast.stmt) -> list[ast.stmt]:
    """A statement that notes the variables of this call as new ones."""
    if not names:
        return []
    found = ast.Tuple([name(n) for n in sorted(names)], ast.Load())
    return [at(where, ast.Expr(call("new_variables", thunk(found))))]


def _bindings(names: list[str], where: ast.stmt) -> list[ast.stmt]:
    """Statements that never run, and make names variables of the function."""
    if not names:
        return []
    targets: list[ast.expr] = [ast.Name(n, ast.Store()) for n in names]
    made = ast.If(ast.Constant(False), [ast.Assign(targets, ast.Constant(None))], [])
    return [at(where, made)]


def _nested(node: ast.stmt, private: str | None) -> ast.stmt:
    """A definition inside a function; one that cannot be rewritten stays as it is."""
    if isinstance(node, ast.ClassDef):
        node.body = [_nested(s, node.name) for s in node.body]
        return node
    if not isinstance(node, ast.FunctionDef):
        return node
    whole = copy.deepcopy(node)
    try:
        return _definition(node, private, True)
    except Unsupported:
        return whole


def _module(node: ast.FunctionDef, code: CodeType, private: str | None) -> ast.Module:
    """The definition inside a function whose parameters are its free variables."""
    outer = ast.FunctionDef("__wg_outer__", no_arguments(*code.co_freevars), [node], [])
    body: list[ast.stmt] = [outer]
    if private is not None:
        body = [ast.ClassDef(private, [], [], body, [])]
    return ast.Module(body, [])


def _found(whole: CodeType) -> CodeType:
    waiting = [whole]
    while waiting:
        one = waiting.pop(0)
        if one.co_name == "__wg_outer__":
            inner = [c for c in one.co_consts if isinstance(c, CodeType)]
            return next(c for c in inner if c.co_name == _FUNCTION)
        waiting += [c for c in one.co_consts if isinstance(c, CodeType)]
    raise Unsupported("its compiled code was not found")


def _renamed(code: CodeType, name: str, qualified: str) -> CodeType:
    """The code with the user's names; functions made from blocks have that of the function."""
    constants = []
    for c in code.co_consts:
        if isinstance(c, CodeType):
            if c.co_name.startswith("__wg_"):
                c = _renamed(c, name, qualified)
            else:
                c = _renamed(c, c.co_name, f"{qualified}.<locals>.{c.co_name}")
        constants.append(c)
    return code.replace(co_consts=tuple(constants), co_name=name, co_qualname=qualified)
