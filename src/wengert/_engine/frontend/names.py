"""Which variables statements bind and read.

bound_in        names that statements bind in the scope of their function
loaded_in       names that a node reads, including the functions defined inside it
captured_in     names that functions and classes defined inside nodes read
declared        names declared global, and names declared nonlocal
parameters      names of the parameters of a function
function_scope  nodes that belong to the scope of a function, without inner functions

Global and nonlocal variables that a function assigns.

A traced block carries them like its own variables, and a compiled function assigns them after it
has run; so their values are recorded before the function is called.

note_outer_assignments    record the values of the variables that a function assigns

The parameters whose elements a function assigns, from its source.

A plain array that is passed for one of them is replaced by a tensor.

written_parameters    their names

Data flow: variables that may be read later, and those that may be unbound.

Liveness analysis: the variables that may be read after a statement.

A variable that a loop assigns, and that nothing reads afterwards, need not be a result of the loop.

    Liveness      the names that may be read after statements, and from the start of an iteration
    live_names    the liveness of a function

Definite assignment analysis: which variables may be unbound where they are read.

A variable that is assigned in only one of two branches, or only in the body of a loop, has a value
afterwards for some inputs, and none for others.

    possibly_unbound    the variables that a loop or branch of a function may leave unbound
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Collection, Iterable, Iterator, Sequence
from types import CodeType, FunctionType, MethodType
from typing import NamedTuple

from wengert._engine.core.conversion_hook import is_library_function
from wengert._engine.core.user_functions import reads_of

from .source import definition_of
from .state import Speculation
from .syntax import children, traverse

Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def function_scope(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The nodes and their descendants, without the bodies of functions and classes."""
    stack = list(nodes)[::-1]
    while stack:
        node = stack.pop()
        yield node
        stack += _evaluated_outside(node) if isinstance(node, _SCOPES) else children(node)[::-1]


def _evaluated_outside(node: ast.AST) -> list[ast.AST]:
    """The parts of a definition that the enclosing scope evaluates: decorators, defaults, bases."""
    parts: list[ast.AST] = list(getattr(node, "decorator_list", []))
    parts += getattr(node, "bases", [])
    parts += getattr(node, "keywords", [])
    parameters = getattr(node, "args", None)
    if isinstance(parameters, ast.arguments):
        parts += parameters.defaults
        parts += [d for d in parameters.kw_defaults if d is not None]
    return parts


def bound_in(nodes: Collection[ast.AST]) -> set[str]:
    """Names that statements bind by assignment, ``del``, ``import``, ``def``, ``except`` ..."""
    names: set[str] = set()
    has_comprehensions = False
    for node in function_scope(nodes):
        if isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Load):
                names.add(node.id)
        elif isinstance(node, _COMPREHENSIONS):
            has_comprehensions = True
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(a.asname or a.name).partition(".")[0] for a in node.names}
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
            names |= {node.name} if node.name else set()
        elif isinstance(node, ast.MatchMapping) and node.rest:
            names.add(node.rest)
    return names - _comprehension_variables(nodes) if has_comprehensions else names


def _comprehension_variables(nodes: Collection[ast.AST]) -> set[str]:
    """The variables of comprehensions, unless they are also bound outside of these."""
    comprehension_names: set[str] = set()
    other_names: set[str] = set()
    for node in function_scope(nodes):
        if isinstance(node, _COMPREHENSIONS):
            for generator in node.generators:
                comprehension_names |= {
                    n.id for n in traverse(generator.target) if isinstance(n, ast.Name)
                }
    if not comprehension_names:
        return comprehension_names
    targets = {
        id(name)
        for node in function_scope(nodes)
        if isinstance(node, _COMPREHENSIONS)
        for generator in node.generators
        for name in traverse(generator.target)
    }
    for node in function_scope(nodes):
        if (
            isinstance(node, ast.Name)
            and not isinstance(node.ctx, ast.Load)
            and id(node) not in targets
        ):
            other_names.add(node.id)
    return comprehension_names - other_names


def loaded_in(node: ast.AST) -> set[str]:
    """Names that a node reads, including functions and comprehensions inside it."""
    return {n.id for n in traverse(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def captured_in(nodes: Iterable[ast.AST]) -> set[str]:
    """Names that functions, classes and generators defined inside these nodes may read later."""
    names: set[str] = set()
    for node in function_scope(nodes):
        if isinstance(node, _SCOPES):
            names |= loaded_in(node)
            for inner in traverse(node):
                if isinstance(inner, ast.Nonlocal):
                    names |= set(inner.names)
        elif isinstance(node, ast.GeneratorExp):
            names |= _read_lazily(node)
    return names


def _read_lazily(node: ast.GeneratorExp) -> set[str]:
    """The outer names that a generator expression reads when it is iterated.

    Its first iterable is evaluated where the generator is created.
    """
    first, *others = node.generators
    lazy = [node.elt, *first.ifs, *others]
    own = {n.id for g in node.generators for n in traverse(g.target) if isinstance(n, ast.Name)}
    return {n for part in lazy for n in loaded_in(part)} - own


def declared(nodes: Iterable[ast.AST]) -> tuple[set[str], set[str]]:
    """Names declared global, and names declared nonlocal."""
    global_names: set[str] = set()
    nonlocal_names: set[str] = set()
    for node in function_scope(nodes):
        if isinstance(node, ast.Global):
            global_names |= set(node.names)
        elif isinstance(node, ast.Nonlocal):
            nonlocal_names |= set(node.names)
    return global_names, nonlocal_names


def parameters(node: Scope) -> list[str]:
    """The names of all parameters of a function."""
    arguments = node.args
    all_parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    all_parameters += [x for x in (arguments.vararg, arguments.kwarg) if x is not None]
    return [x.arg for x in all_parameters]


def note_outer_assignments(fun: FunctionType) -> None:
    """Record the values of the global and nonlocal variables that a function assigns.

    Raises
    ------
    NotTraceable
        It assigns a global variable, and its globals are not those of a module.
    """
    assigned = reads_of(fun.__code__)
    if assigned.written_globals and type(fun.__globals__) is not dict:
        Speculation.refuse(f"it calls {fun.__qualname__}, which assigns a global variable")
    for name in sorted(assigned.written_globals):
        Speculation.note_change(fun.__globals__, name)
    if assigned.written_cells:
        cells = dict(zip(fun.__code__.co_freevars, fun.__closure__ or (), strict=True))
        for name in sorted(assigned.written_cells):
            Speculation.note_change(cells[name], name)


_NONE: frozenset[str] = frozenset()


def written_parameters(fun: object) -> frozenset[str]:
    """The parameters whose elements a function assigns; none if its source is unavailable.

    Only assignments to a parameter itself are found: ``p[i] = x`` and ``p += x``.
    """
    if type(fun) is MethodType:
        fun = fun.__func__
    if type(fun) is not FunctionType or is_library_function(fun):
        return _NONE
    return _written(fun.__code__)


@functools.lru_cache(maxsize=4096)
def _written(code: CodeType) -> frozenset[str]:
    if not code.co_argcount + code.co_kwonlyargcount:
        return _NONE
    definition = definition_of(code)
    if definition is None or isinstance(definition.node, ast.Lambda):
        return _NONE
    stored: set[str] = set()
    rebound: set[str] = set()
    for node in function_scope(definition.node.body):
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                base = target
                while isinstance(base, ast.Subscript):
                    base = base.value
                if isinstance(base, ast.Name):
                    stores = base is not target or isinstance(node, ast.AugAssign)
                    (stored if stores else rebound).add(base.id)
    return frozenset(stored - rebound) & frozenset(parameters(definition.node))


Live = frozenset[str]
_EXITS = (ast.Return, ast.Raise)


class Liveness(NamedTuple):
    """Names that may be read before they are assigned again.

    Attributes
    ----------
    after : dict
        The names that may be read after each statement.
    head : dict
        The names that may be read from the start of an iteration of each loop.
    """

    after: dict[ast.stmt, Live]
    head: dict[ast.stmt, Live]


def live_names(body: Sequence[ast.stmt], results: Live = frozenset()) -> Liveness:
    """The names that may be read after each statement of a function, including nested statements.

    Names that inner functions read, or that are declared global or nonlocal, are always live.

    Parameters
    ----------
    body : sequence of ast.stmt
    results : frozenset of str
        Names that are read after the last statement.
    """
    always = captured_in(body)
    for node in traverse(ast.Module(list(body), [])):
        if isinstance(node, ast.Global | ast.Nonlocal):
            always |= set(node.names)
    liveness = Liveness({}, {})
    _block(body, results | frozenset(always), frozenset(always), liveness)
    return liveness


def _block(body: Sequence[ast.stmt], after: Live, always: Live, liveness: Liveness) -> Live:
    """The names that are live before a list of statements."""
    live = after
    for statement in reversed(body):
        live = _statement(statement, live, always, liveness) | always
    return live


def _statement(node: ast.stmt, after: Live, always: Live, liveness: Liveness) -> Live:
    liveness.after[node] = liveness.after.get(node, frozenset()) | after
    if isinstance(node, _EXITS):
        return always | loaded_in(node)
    if isinstance(node, ast.If):
        then = _block(node.body, after, always, liveness)
        other = _block(node.orelse, after, always, liveness)
        return then | other | loaded_in(node.test)
    if isinstance(node, ast.While):
        after_loop = _block(node.orelse, after | _loop_flags(node), always, liveness)
        head = after_loop | loaded_in(node.test)
        for _ in range(2):  # the second time with the names that are live at the start of the body
            head |= _block(node.body, head, always, liveness)
        liveness.head[node] = head
        return head
    if isinstance(node, ast.For | ast.AsyncFor):
        after_loop = _block(node.orelse, after | _loop_flags(node), always, liveness)
        targets = bound_in([node.target])
        head = after_loop
        for _ in range(2):
            head |= _block(node.body, head, always, liveness) - targets
        liveness.head[node] = head
        return head | loaded_in(node.iter) | loaded_in(node.target)
    if isinstance(node, ast.Try | ast.With | ast.AsyncWith | ast.Match | ast.ClassDef):
        return _compound(node, after, always, liveness)
    return _simple(node, after)


def _loop_flags(node: ast.stmt) -> Live:
    """The flags that end a loop (rewriting/exits.py)."""
    return frozenset(getattr(node, "stops", ()))


def _compound(node: ast.stmt, after: Live, always: Live, liveness: Liveness) -> Live:
    """A statement that may run in part: no assignment in it is certain."""
    live = after | loaded_in(node)
    for _, value in ast.iter_fields(node):
        for inner in value if isinstance(value, list) else ():
            if isinstance(inner, ast.stmt):
                _statement(inner, live, always, liveness)
            elif isinstance(inner, ast.ExceptHandler | ast.match_case):
                for statement in inner.body:
                    _statement(statement, live, always, liveness)
    return live


def _simple(node: ast.stmt, after: Live) -> Live:
    bound: set[str] = set()
    if isinstance(node, ast.Assign):
        bound = bound_in(node.targets)
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        bound = bound_in([node.target])
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Import | ast.ImportFrom):
        bound = bound_in([node])
    live = (after - bound) | loaded_in(node)
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        live |= {node.target.id}
    return live


Names = frozenset[str]


def possibly_unbound(body: Sequence[ast.stmt], bound: set[str], live: Liveness) -> set[str]:
    """The variables that may be read after a loop or branch that has not bound them.

    Parameters
    ----------
    body : sequence of ast.stmt
        The body of a function.
    bound : set of str
        The variables that are bound at its start: parameters and nonlocal variables.
    live : Liveness
    """
    unbound: set[str] = set()
    _bound_after(body, frozenset(bound), live, unbound)
    return {n for n in unbound if not n.startswith("__wg_")}


def _bound_after(
    body: Sequence[ast.stmt], bound: Names | None, live: Liveness, unbound: set[str]
) -> Names | None:
    """The variables that are bound after a list of statements; None if its end is not reached."""
    for statement in body:
        if bound is None:
            return None
        bound = _bound_after_statement(statement, bound, live, unbound)
    return bound


def _bound_after_statement(
    node: ast.stmt, bound: Names, live: Liveness, unbound: set[str]
) -> Names | None:
    after = live.after.get(node, frozenset())
    if isinstance(node, ast.Return | ast.Raise):
        return None
    if isinstance(node, ast.If):
        then = _bound_after(node.body, bound, live, unbound)
        other = _bound_after(node.orelse, bound, live, unbound)
        common = other if then is None else then if other is None else then & other
        if common is not None:
            unbound |= bound_in([*node.body, *node.orelse]) & after - common
        return common
    if isinstance(node, ast.For | ast.While):
        inside = bound | (bound_in([node.target]) if isinstance(node, ast.For) else frozenset())
        _bound_after(node.body, inside, live, unbound)
        bodies = [node.target, *node.body] if isinstance(node, ast.For) else node.body
        unbound |= bound_in(bodies) & after - bound
        return bound
    if isinstance(node, ast.With):
        targets = frozenset(bound_in([i.optional_vars for i in node.items if i.optional_vars]))
        return _bound_after(node.body, bound | targets, live, unbound)
    if isinstance(node, ast.Try | ast.Match):
        return bound
    if isinstance(node, ast.Delete):
        return bound - bound_in([node])
    if isinstance(node, ast.AnnAssign) and node.value is None:
        return bound
    return bound | bound_in([node])
