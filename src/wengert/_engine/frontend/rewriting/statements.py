"""Loops, branches and assertions, as calls with functions for their blocks.

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

The blocks share the variables of the function, by ``nonlocal``, so that a loop run by
Python behaves as before.

    x += y                   augmented(x)            # a list or the like is changed in place
                             x += y

    Statements    the rewriting
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence

from ..liveness import Liveness
from ..names import bound_in, function_scope
from .comprehensions import Comprehensions
from .expressions import Expressions
from .list_appends import Appends, appended
from .syntax import at, call, mangled, name, no_arguments, runtime, text, texts, thunk

_ITEM = runtime("item")
_DISPLAYS = (ast.List, ast.Dict, ast.ListComp, ast.DictComp)
_IN_PLACE = (ast.Add, ast.Mult, ast.BitOr)  # operators of lists and dicts


class Statements:
    """Rewrite the statements of a function.

    Parameters
    ----------
    local : set of str
        The variables of the function, and those declared nonlocal.
    shared : set of str
        The names declared global.
    live : Liveness
    first : str, optional
        The first parameter.
    nested : callable
        Rewrites a definition inside the function.
    appends : Appends
        Statements that append to lists.
    unbound : frozenset of str
        Names that may have no value where they are read.
    private : str, optional
        The enclosing class, for the mangling of names like ``__name``.
    """

    def __init__(
        self,
        local: set[str],
        shared: set[str],
        live: Liveness,
        first: str | None,
        nested: Callable[[ast.stmt], ast.stmt],
        appends: Appends,
        private: str | None = None,
        unbound: frozenset[str] = frozenset(),
    ) -> None:
        self._local, self._shared, self._live = local, shared, live
        self._comprehensions = Comprehensions(nested, unbound)
        self._expressions = Expressions(first, unbound, self._comprehensions, private)
        self._unbound = unbound
        self._nested, self._private, self._appends = nested, private, appends
        self._count = 0

    def block(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Rewrite a list of statements."""
        found: list[ast.stmt] = []
        for statement in body:
            made = self._statement(statement)
            found += [*self._comprehensions.taken(), *made]
        return found

    def _statement(self, node: ast.stmt) -> list[ast.stmt]:
        if isinstance(node, ast.For):
            return self._for(node)
        if isinstance(node, ast.While):
            return self._while(node)
        if isinstance(node, ast.If):
            return self._if(node)
        if isinstance(node, ast.Assert):
            return [self._assert(node)]
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            self._expressions.visit(node)
            return [self._nested(node)]
        if isinstance(node, ast.Global | ast.Nonlocal):
            return [node]
        if node in self._appends.statements:
            return [self._append(node)]
        is_new = isinstance(getattr(node, "value", None), _DISPLAYS)
        self._parts(node)
        if isinstance(node, ast.AugAssign):
            return [*self._before_augmented(node), node]
        if isinstance(node, ast.Assign | ast.AnnAssign) and is_new:
            assert node.value is not None
            node.value = at(node.value, call("new_container", node.value))
        return [node]

    def _before_augmented(self, node: ast.AugAssign) -> list[ast.stmt]:
        """Statements before ``x += y``, which may change an object in place."""
        target, made = node.target, list[ast.stmt]()
        if not isinstance(target, ast.Name):
            stored = target.value
            assert isinstance(stored, ast.Call)
            stored.args += [at(target, text(None))] * (2 - len(stored.args))
            stored.args.append(at(target, ast.Constant(True)))
            return made
        word = target.id
        if word in self._unbound:
            read = call("bound", name(word), text(word))
            made.append(ast.Assign([ast.Name(word, ast.Store())], read))
        if isinstance(node.op, _IN_PLACE):
            made.append(ast.Expr(call("before_augmented", name(word))))
        return [at(node, s) for s in made]

    def _append(self, node: ast.stmt) -> ast.stmt:
        found = appended(node)
        assert found is not None
        word, value = found
        to = self._expressions.visit(at(node, name(word)))
        return at(node, ast.Expr(call("append", to, self._expressions.visit(value))))

    def _parts(self, node: ast.AST) -> None:
        """Rewrite the statements and expressions inside a statement that stays as it is."""
        for field, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                setattr(node, field, self.block(value))
            elif isinstance(value, list):
                for k, x in enumerate(value):
                    if isinstance(x, ast.ExceptHandler | ast.match_case | ast.withitem):
                        self._parts(x)
                    elif isinstance(x, ast.expr):
                        value[k] = self._expressions.visit(x)
            elif isinstance(value, ast.expr):
                setattr(node, field, self._expressions.visit(value))

    def _for(self, node: ast.For) -> list[ast.stmt]:
        assigned = bound_in([node.target, *node.body]) & (self._local | self._shared)
        target = ast.Assign([node.target], at(node.target, name(_ITEM)))
        facts = self._facts(node, assigned)
        body = self._function("body", node, [at(node.target, target), *node.body], assigned, _ITEM)
        made = call("for", self._expressions.visit(node.iter), name(body.name), *facts)
        return [body, at(node, ast.Expr(made))]

    def _while(self, node: ast.While) -> list[ast.stmt]:
        assigned = bound_in(node.body) & (self._local | self._shared)
        tested = bound_in([node.test]) & (self._local | self._shared)
        facts = self._facts(node, assigned | tested)
        returned = at(node.test, ast.Return(node.test))
        test = self._function("test", node, [returned], tested)
        body = self._function("body", node, node.body, assigned)
        made = call("while", name(test.name), name(body.name), *facts)
        return [test, body, at(node, ast.Expr(made))]

    def _if(self, node: ast.If) -> list[ast.stmt]:
        local = self._local | self._shared
        both = bound_in([*node.body, *node.orelse]) & local
        live = both & self._live.after.get(node, frozenset())
        then = self._function("then", node, node.body, bound_in(node.body) & local)
        made: list[ast.stmt] = [then]
        other: ast.expr = ast.Constant(None)
        if node.orelse:
            second = self._function("other", node, node.orelse, bound_in(node.orelse) & local)
            made.append(second)
            other = name(second.name)
        test = self._expressions.visit(node.test)
        refusal = "it assigns a global variable" if both & self._shared else _refusal(node)
        filled = self._texts(self._appends.filled.get(node, ()))
        facts = [self._texts(both), self._texts(live), text(refusal), filled]
        return [*made, at(node, ast.Expr(call("if", test, name(then.name), other, *facts)))]

    def _assert(self, node: ast.Assert) -> ast.stmt:
        self._parts(node)
        message = thunk(node.msg) if node.msg is not None else ast.Constant(None)
        return at(node, ast.Expr(call("assert", node.test, message)))

    def _facts(self, node: ast.For | ast.While, assigned: set[str]) -> list[ast.expr]:
        """The facts about a loop that `running` needs: the fields of `LoopFacts`, in order."""
        body = ast.Module(list(node.body), [])
        stops = getattr(node, "stops", ())
        head = self._live.head.get(node, frozenset())
        live = self._live.after.get(node, frozenset())
        return [
            self._texts(assigned),
            self._texts(assigned & head | set(stops)),
            self._texts(assigned & live),
            self._texts(_only_updated(node)),
            self._texts(_stored(node)),
            self._texts(stops),
            ast.Constant(sum(isinstance(n, ast.stmt) for n in ast.walk(body))),
            text("it assigns a global variable" if assigned & self._shared else _refusal(body)),
            self._texts(self._appends.filled.get(node, ())),
        ]

    def _texts(self, names: Iterable[str]) -> ast.Tuple:
        return texts([mangled(n, self._private) for n in names])

    def _function(
        self,
        kind: str,
        where: ast.stmt,
        body: Sequence[ast.stmt],
        assigned: set[str],
        *parameters: str,
    ) -> ast.FunctionDef:
        self._count += 1
        made: list[ast.stmt] = []
        if assigned & self._local:
            made.append(ast.Nonlocal(sorted(assigned & self._local)))
        if assigned & self._shared:
            made.append(ast.Global(sorted(assigned & self._shared)))
        made += self.block([s for s in body if not isinstance(s, ast.Global | ast.Nonlocal)])
        arguments = no_arguments(*parameters)
        done = ast.FunctionDef(runtime(f"{kind}{self._count}"), arguments, made or [ast.Pass()], [])
        return at(where, done)


def _only_updated(node: ast.For | ast.While) -> set[str]:
    """Names that are assigned by augmented assignments only."""
    found: set[str] = set()
    targets: list[ast.AST] = list(node.body)
    if isinstance(node, ast.For):
        targets.append(node.target)
    counts: dict[str, int] = {}
    for inner in function_scope(targets):
        if isinstance(inner, ast.AugAssign) and isinstance(inner.target, ast.Name):
            found.add(inner.target.id)
            counts[inner.target.id] = counts.get(inner.target.id, 0) - 1
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store | ast.Del):
            counts[inner.id] = counts.get(inner.id, 0) + 1
    return {n for n in found if counts[n] == 0}


def _stored(node: ast.For | ast.While) -> set[str]:
    """Names of arrays with elements that a loop assigns."""
    found: set[str] = set()
    for inner in function_scope(node.body):
        if isinstance(inner, ast.Subscript) and isinstance(inner.ctx, ast.Store):
            value = inner.value
            while isinstance(value, ast.Subscript | ast.Attribute | ast.Call):
                value = value.func if isinstance(value, ast.Call) else value.value
                if isinstance(value, ast.Name) and value.id.startswith("__wg_"):
                    break
            if isinstance(value, ast.Name):
                found.add(value.id)
    return found


def _refusal(node: ast.AST) -> str | None:
    """Why a block cannot be traced separately from its function; None if it can."""
    for inner in function_scope([node]):
        if isinstance(inner, ast.Try):
            return "it has a try statement"
        if isinstance(inner, ast.Import | ast.ImportFrom):
            return "it imports a module"
        if isinstance(inner, ast.ClassDef):
            return "it defines a class"
    return None
