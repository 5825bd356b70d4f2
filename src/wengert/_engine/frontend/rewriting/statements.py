"""Rewrite loops, branches and assertions as calls, with functions for their blocks.

    for i in xs:             def body(item):
        s = s + x[i]             nonlocal i, s
                                 i = item
                                 s = s + x[i]
                             for_(xs, body, assigned=("i", "s"), ...)

    while c:                 def test(): return c
        a                    def body(): a
                             while_(test, body, ...)

    if c:                    def then(): a
        a                    def other(): b
    else:                    if_(c, then, other, ...)
        b

    assert c, message        assert_(c, lambda: message)

The functions of blocks share the variables of the enclosing function, by ``nonlocal``, so that a
loop that is run by Python behaves as before.

    x += y                   before_augmented(x)     # records a change of a list in place
                             x += y

    x = [a, b]               x = new_container([a, b])

    Statements    the transformation
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Callable, Iterable, Sequence, Set

from wengert._engine.frontend.names import Liveness
from wengert._engine.frontend.syntax import (
    call,
    load,
    located,
    mangled,
    parameter_list,
    runtime_name,
    string,
    strings,
    thunk,
)

from ..names import bound_in, function_scope
from .expressions import Expressions, with_refusals
from .list_appends import Appends, append_of
from .simplified import Comprehensions
from .stores import stores_global

_ITEM = runtime_name("item")
_ASSUMED_ITERATIONS = 8  # of an inner loop whose number of iterations is not a constant
_DISPLAYS = (ast.List, ast.Dict, ast.ListComp, ast.DictComp)
_IN_PLACE = (ast.Add, ast.Mult, ast.BitOr)  # operators of lists and dicts


class Statements:
    """Rewrite the statements of a function.

    Parameters
    ----------
    local : set of str
        The local variables of the function, and names declared nonlocal.
    global_names : set of str
        The names declared global.
    live : Liveness
    first : str, optional
        The first parameter of the function, for ``super()``.
    nested : callable
        Rewrites a definition inside the function.
    appends : Appends
        Statements that append to lists.
    private : str, optional
        The enclosing class, for the mangling of names like ``__name``.
    unbound : frozenset of str
        Variables that may be unbound where they are read.
    rebound : set of str
        Variables that other functions may assign.
    """

    def __init__(
        self,
        local: set[str],
        global_names: set[str],
        live: Liveness,
        first: str | None,
        nested: Callable[[ast.stmt], ast.stmt],
        appends: Appends,
        private: str | None = None,
        unbound: frozenset[str] = frozenset(),
        rebound: Set[str] = frozenset(),
    ) -> None:
        self._rebound = rebound
        self._local, self._globals, self._live = local, global_names, live
        self._comprehensions = Comprehensions(nested, unbound)
        self._expressions = Expressions(first, unbound, self._comprehensions, private)
        self._unbound = unbound
        self._nested, self._private, self._appends = nested, private, appends
        self._count = 0

    def block(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Rewrite a list of statements."""
        rewritten: list[ast.stmt] = []
        for statement in body:
            statements = self._statement(statement)
            rewritten += [*self._comprehensions.take_definitions(), *statements]
        return rewritten

    def _statement(self, node: ast.stmt) -> list[ast.stmt]:
        if isinstance(node, ast.For):
            return self._for(node)
        if isinstance(node, ast.While):
            return self._while(node)
        if isinstance(node, ast.If):
            return self._if(node)
        if isinstance(node, ast.Assert):
            with self._expressions.message():
                return [self._assert(node)]
        if isinstance(node, ast.Raise):
            with self._expressions.message():
                self._rewrite_children(node)
            return [node]
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            self._expressions.visit(node)
            return [self._nested(node)]
        if isinstance(node, ast.Global | ast.Nonlocal):
            return [node]
        if node in self._appends.statements:
            return [self._append(node)]
        is_new = _is_display(getattr(node, "value", None))
        self._rewrite_children(node)
        if isinstance(node, ast.Try):
            with_refusals(node, traces=True)
        if isinstance(node, ast.AugAssign):
            return [*self._before_augmented(node), node]
        if isinstance(node, ast.Assign | ast.AnnAssign) and is_new:
            assert node.value is not None
            node.value = located(node.value, call("new_container", node.value))
        return [node]

    def _before_augmented(self, node: ast.AugAssign) -> list[ast.stmt]:
        """Statements that record an object before ``x += y`` may change it in place."""
        target, statements = node.target, list[ast.stmt]()
        if not isinstance(target, ast.Name):
            if stores_global(target):
                return statements
            store_call = target.value
            assert isinstance(store_call, ast.Call)
            store_call.args += [located(target, string(None))] * (2 - len(store_call.args))
            store_call.args.append(located(target, ast.Constant(True)))
            return statements
        variable = target.id
        if variable in self._unbound:
            read = call("bound", load(variable), string(variable))
            statements.append(ast.Assign([ast.Name(variable, ast.Store())], read))
        if isinstance(node.op, _IN_PLACE):
            statements.append(ast.Expr(call("before_augmented", load(variable))))
        return [located(node, s) for s in statements]

    def _append(self, node: ast.stmt) -> ast.stmt:
        append = append_of(node)
        assert append is not None
        list_name, value = append
        list_value = self._expressions.visit(located(node, load(list_name)))
        return located(node, ast.Expr(call("append", list_value, self._expressions.visit(value))))

    def _rewrite_children(self, node: ast.AST) -> None:
        """Rewrite the statements and expressions inside a statement of another type."""
        for field, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                setattr(node, field, self.block(value))
            elif isinstance(value, list):
                for k, x in enumerate(value):
                    if isinstance(x, ast.ExceptHandler | ast.match_case | ast.withitem):
                        self._rewrite_children(x)
                    elif isinstance(x, ast.expr):
                        value[k] = self._expressions.visit(x)
            elif isinstance(value, ast.expr):
                setattr(node, field, self._expressions.visit(value))

    def _for(self, node: ast.For) -> list[ast.stmt]:
        assigned = bound_in([node.target, *node.body]) & (self._local | self._globals)
        assign_item = ast.Assign([node.target], located(node.target, load(_ITEM)))
        facts = self._facts(node, assigned)
        body = self._function(
            "body", node, [located(node.target, assign_item), *node.body], assigned, _ITEM
        )
        for_call = call("for", self._expressions.visit(node.iter), load(body.name), *facts)
        return [body, located(node, ast.Expr(for_call))]

    def _while(self, node: ast.While) -> list[ast.stmt]:
        assigned = bound_in(node.body) & (self._local | self._globals)
        assigned_in_test = bound_in([node.test]) & (self._local | self._globals)
        facts = self._facts(node, assigned | assigned_in_test)
        return_test = located(node.test, ast.Return(node.test))
        test = self._function("test", node, [return_test], assigned_in_test)
        body = self._function("body", node, node.body, assigned)
        while_call = call("while", load(test.name), load(body.name), *facts)
        return [test, body, located(node, ast.Expr(while_call))]

    def _if(self, node: ast.If) -> list[ast.stmt]:
        local = self._local | self._globals
        assigned = bound_in([*node.body, *node.orelse]) & local
        live_after = assigned & self._live.after.get(node, frozenset())
        then = self._function("then", node, node.body, bound_in(node.body) & local)
        statements: list[ast.stmt] = [then]
        else_function: ast.expr = ast.Constant(None)
        if node.orelse:
            else_block = self._function("other", node, node.orelse, bound_in(node.orelse) & local)
            statements.append(else_block)
            else_function = load(else_block.name)
        test = self._expressions.visit(node.test)
        refusal = (
            "it assigns a global variable" if assigned & self._globals else _why_not_traceable(node)
        )
        filled = self._name_tuple(self._appends.filled.get(node, ()))
        shared = self._name_tuple(self._appends.shared.get(node, ()))
        facts = [
            self._name_tuple(assigned),
            self._name_tuple(live_after),
            string(refusal),
            filled,
            shared,
        ]
        return [
            *statements,
            located(node, ast.Expr(call("if", test, load(then.name), else_function, *facts))),
        ]

    def _assert(self, node: ast.Assert) -> ast.stmt:
        self._rewrite_children(node)
        message = thunk(node.msg) if node.msg is not None else ast.Constant(None)
        return located(node, ast.Expr(call("assert", node.test, message)))

    def _facts(self, node: ast.For | ast.While, assigned: set[str]) -> list[ast.expr]:
        """The fields of `LoopFacts` (running/builtin_operations.py), in order."""
        body = ast.Module(list(node.body), [])
        stops = getattr(node, "stops", ())
        head = self._live.head.get(node, frozenset())
        live = self._live.after.get(node, frozenset())
        return [
            self._name_tuple(assigned),
            self._name_tuple(assigned & head | set(stops)),
            self._name_tuple(assigned & live),
            self._name_tuple(_only_updated(node) - self._rebound),
            self._name_tuple(_stored(node)),
            self._name_tuple(stops),
            ast.Constant(_size(body)),
            string(
                "it assigns a global variable"
                if assigned & self._globals
                else _why_not_traceable(body)
            ),
            self._name_tuple(self._appends.filled.get(node, ())),
        ]

    def _name_tuple(self, names: Iterable[str]) -> ast.Tuple:
        return strings([mangled(n, self._private) for n in names])

    def _function(
        self,
        kind: str,
        where: ast.stmt,
        body: Sequence[ast.stmt],
        assigned: set[str],
        *parameters: str,
    ) -> ast.FunctionDef:
        self._count += 1
        statements: list[ast.stmt] = []
        if assigned & self._local:
            statements.append(ast.Nonlocal(sorted(assigned & self._local)))
        if assigned & self._globals:
            statements.append(ast.Global(sorted(assigned & self._globals)))
        statements += self.block([s for s in body if not isinstance(s, ast.Global | ast.Nonlocal)])
        signature = parameter_list(*parameters)
        function = ast.FunctionDef(
            runtime_name(f"{kind}{self._count}"), signature, statements or [ast.Pass()], []
        )
        return located(where, function)


def _size(node: ast.AST) -> int:
    """The number of statements; those of an inner loop are multiplied by its iterations."""
    size = int(isinstance(node, ast.stmt))
    inside = sum(_size(child) for child in ast.iter_child_nodes(node))
    if isinstance(node, ast.For | ast.While):
        inside *= _iterations(node)
    return size + inside


def _iterations(node: ast.For | ast.While) -> int:
    """The number of iterations, or an assumption if it is not a constant."""
    if isinstance(node, ast.For):
        items = node.iter
        if isinstance(items, ast.Tuple | ast.List):
            return len(items.elts)
        if isinstance(items, ast.Call) and getattr(items.func, "id", "") == "range":
            constants = [a.value for a in items.args if isinstance(a, ast.Constant)]
            if len(constants) == len(items.args) and all(type(c) is int for c in constants):
                with contextlib.suppress(TypeError, ValueError):
                    return len(range(*constants))  # type: ignore[arg-type]
    return _ASSUMED_ITERATIONS


def _only_updated(node: ast.For | ast.While) -> set[str]:
    """Variables that are assigned only by augmented assignments."""
    updated: set[str] = set()
    targets: list[ast.AST] = list(node.body)
    if isinstance(node, ast.For):
        targets.append(node.target)
    counts: dict[str, int] = {}
    for inner in function_scope(targets):
        if isinstance(inner, ast.AugAssign) and isinstance(inner.target, ast.Name):
            updated.add(inner.target.id)
            counts[inner.target.id] = counts.get(inner.target.id, 0) - 1
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store | ast.Del):
            counts[inner.id] = counts.get(inner.id, 0) + 1
    return {n for n in updated if counts[n] == 0}


def _is_display(node: ast.expr | None) -> bool:
    """Whether an expression makes a list or dict, as ``[0.0] * n`` does."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return isinstance(node.left, ast.List) or isinstance(node.right, ast.List)
    return isinstance(node, _DISPLAYS)


def _stored(node: ast.For | ast.While) -> set[str]:
    """Variables with elements that a loop assigns."""
    names: set[str] = set()
    for inner in function_scope(node.body):
        if isinstance(inner, ast.Subscript) and isinstance(inner.ctx, ast.Store):
            value = inner.value
            while isinstance(value, ast.Subscript | ast.Attribute | ast.Call):
                value = value.func if isinstance(value, ast.Call) else value.value
                if isinstance(value, ast.Name) and value.id.startswith("__wg_"):
                    break
            if isinstance(value, ast.Name):
                names.add(value.id)
    return names


def _why_not_traceable(node: ast.AST) -> str | None:
    """Why a block cannot be traced separately from the function; None if it can."""
    for inner in function_scope([node]):
        if isinstance(inner, ast.Try):
            return "it has a try statement"
        if isinstance(inner, ast.Import | ast.ImportFrom):
            return "it imports a module"
        if isinstance(inner, ast.ClassDef):
            return "it defines a class"
    return None
