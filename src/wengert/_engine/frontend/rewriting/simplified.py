"""Statements written as simpler ones, before all other transformations.

    match x:                       subject = x
        case 1 | 2:                if subject == 1 or subject == 2:
            a                          a
        case y if y > 0:    ->     else:
            b                          y = subject
        case _:                        if y > 0:
            c                              b
                                       else:
                                           c

    while (v := f()) > 0:          while True:
        b                   ->         if not (v := f()) > 0:
                                           break
                                       b

    if a and (v := f()) > 0:       test = a
        b                   ->     if test:
                                       test = (v := f()) > 0
                                   if test:
                                       b

    v: T = f()              ->     v = f()

A ``match`` statement with other patterns (sequences, classes ...) is left to Python.

with_simple_statements    the transformation

Rewrite list comprehensions, and generator expressions passed to built-in functions, as loops.

    [f(i) for i in xs if c]     def comprehension(source):
                                    out = []
                                    for i in source:
                                        if c:
                                            out.append(f(i))
                                    return out
                                comprehension(xs)

    sum(f(i) for i in xs)       def comprehension(source, out):
                                    for i in source:
                                        out = out + f(i)
                                    return out
                                consumed(sum, "sum", lambda: comprehension(xs, 0),
                                         lambda: sum(f(i) for i in xs))

The functions share the variables of the enclosing function.  For `any` and `all`, they return from
the loop; for `min`, `max`, `list`, `tuple` and ``np.fromiter``, they return a list.

    Comprehensions    the transformation; it collects the functions to define before a statement
    choose_call       the call that uses the loop, if the name still refers to the built-in function
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence, Set

from wengert._engine.frontend.names import loaded_in
from wengert._engine.frontend.syntax import (
    call,
    children,
    copied,
    load,
    located,
    parameter_list,
    runtime_name,
    string,
    thunk,
    traverse,
)


def with_simple_statements(body: list[ast.stmt]) -> list[ast.stmt]:
    """The statements of a function, written as simpler ones."""
    kinds = ast.Match | ast.NamedExpr | ast.AnnAssign
    if not any(isinstance(n, kinds) for s in body for n in traverse(s)):
        return body
    nodes = [n for s in body for n in traverse(s)]
    types_only = {n.target for n in nodes if isinstance(n, ast.AnnAssign) and n.value is None}
    names = [n for n in nodes if isinstance(n, ast.Name) and n not in types_only]
    assigned = {n.id for n in names if isinstance(n.ctx, ast.Store)}
    module = _Simplifier(assigned).visit(ast.Module(body, []))
    assert isinstance(module, ast.Module)
    return module.body


class _Simplifier(ast.NodeTransformer):
    """The transformation of one function; `assigned` are the variables that it assigns to."""

    def __init__(self, assigned: Set[str]) -> None:
        self._count, self._assigned = 0, assigned

    def _variable(self, word: str) -> str:
        self._count += 1
        return f"_wg_{word}{self._count}"

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """An inner function, which is rewritten on its own."""
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        """An inner coroutine, which is left."""
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        """An inner class."""
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        """A lambda."""
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """An assignment, or a variable, with a type, which is not evaluated in a function.

        A branch becomes a function that assigns to variables of the enclosing one, and these must
        not have types in it.
        """
        self.generic_visit(node)
        if not isinstance(node.target, ast.Name):
            return node
        if node.value is None:
            return located(node, ast.Pass()) if node.target.id in self._assigned else node
        return located(node, ast.Assign([node.target], node.value))

    # ---- match -----------------------------------------------------------------------------------

    def visit_Match(self, node: ast.Match) -> ast.AST | list[ast.stmt]:
        """A ``match`` statement."""
        self.generic_visit(node)
        if not all(_is_simple(case.pattern) for case in node.cases):
            return node
        subject = self._variable("subject")
        assign = located(node, ast.Assign([ast.Name(subject, ast.Store())], node.subject))
        return [assign, *_chain(subject, node.cases)]

    # ---- named expressions in conditions ---------------------------------------------------------

    def visit_While(self, node: ast.While) -> ast.AST | list[ast.stmt]:
        """A loop with ``:=`` in its condition, which assigns also when the loop ends."""
        self.generic_visit(node)
        if not any(isinstance(n, ast.NamedExpr) for n in traverse(node.test)):
            return node
        test, statements = self._evaluated(node.test)
        ends: list[ast.stmt] = node.orelse
        before: list[ast.stmt] = []
        after: list[ast.stmt] = []
        inside = [n for s in node.orelse for n in traverse(s)]
        if any(isinstance(n, ast.Break | ast.Continue) for n in inside):  # of an enclosing loop
            name = self._variable("ended")
            before = [ast.Assign([ast.Name(name, ast.Store())], ast.Constant(False))]
            ends = [ast.Assign([ast.Name(name, ast.Store())], ast.Constant(True))]
            after = [ast.If(load(name), node.orelse, [])]
        leave = ast.If(ast.UnaryOp(ast.Not(), test), [*ends, ast.Break()], [])
        body = [*statements, leave, *node.body]
        loop = ast.copy_location(ast.While(ast.Constant(True), body, []), node)
        return [located(node, s) for s in [*before, loop, *after]]

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        """A branch with ``:=`` after the first operand of its condition."""
        self.generic_visit(node)
        if not _names_later(node.test):
            return node
        node.test, statements = self._evaluated(node.test)
        located(node, node.test)
        return [*[located(node, s) for s in statements], node]

    def _evaluated(self, test: ast.expr) -> tuple[ast.expr, list[ast.stmt]]:
        """A variable with the value of ``a and b`` or ``a or b``, and the statements before."""
        if not isinstance(test, ast.BoolOp):
            return test, []
        name = self._variable("condition")
        statements: list[ast.stmt] = []
        for k, operand in enumerate(test.values):
            value, before = self._evaluated(operand)
            steps = [*before, located(operand, ast.Assign([ast.Name(name, ast.Store())], value))]
            if k:
                known: ast.expr = load(name)
                if isinstance(test.op, ast.Or):
                    known = ast.UnaryOp(ast.Not(), known)
                steps = [located(operand, ast.If(known, steps, []))]
            statements += steps
        return located(test, load(name)), statements


def _names_later(test: ast.expr) -> bool:
    """Whether an operand other than the first has ``:=``."""
    if not isinstance(test, ast.BoolOp):
        return False
    later = any(isinstance(n, ast.NamedExpr) for v in test.values[1:] for n in traverse(v))
    return later or _names_later(test.values[0])


def _is_simple(pattern: ast.pattern) -> bool:
    """Whether a pattern is a value, a constant, a variable, or one of these."""
    if isinstance(pattern, ast.MatchOr):
        return all(isinstance(p, ast.MatchValue | ast.MatchSingleton) for p in pattern.patterns)
    if isinstance(pattern, ast.MatchAs):
        return pattern.pattern is None or (pattern.name is not None and _is_value(pattern.pattern))
    return _is_value(pattern)


def _is_value(pattern: ast.pattern) -> bool:
    is_or = isinstance(pattern, ast.MatchOr)
    return isinstance(pattern, ast.MatchValue | ast.MatchSingleton) or (
        is_or and _is_simple(pattern)
    )


def _chain(subject: str, cases: Sequence[ast.match_case]) -> list[ast.stmt]:
    """The cases as branches."""
    if not cases:
        return []
    case = cases[0]
    rest, pattern = _chain(subject, cases[1:]), case.pattern
    body: list[ast.stmt] = case.body
    guard = case.guard
    bind: list[ast.stmt] = []
    if isinstance(pattern, ast.MatchAs) and pattern.name is not None:
        target: ast.expr = ast.Name(pattern.name, ast.Store())
        bind = [located(case.body[0], ast.Assign([target], load(subject)))]
    test = _test(subject, pattern)
    where = case.body[0]
    if test is None:
        if guard is None:
            return [*bind, *body]
        return [*bind, located(where, ast.If(guard, body, rest))]
    if guard is None:
        return [located(where, ast.If(test, [*bind, *body], rest))]
    if not bind:
        both = ast.BoolOp(ast.And(), [test, guard])
        return [located(where, ast.If(both, body, rest))]
    inner = located(where, ast.If(guard, body, [copied(s) for s in rest]))
    return [located(where, ast.If(test, [*bind, inner], rest))]


def _test(subject: str, pattern: ast.pattern) -> ast.expr | None:
    """The condition of a pattern; None if it always matches."""
    if isinstance(pattern, ast.MatchAs):
        return None if pattern.pattern is None else _test(subject, pattern.pattern)
    if isinstance(pattern, ast.MatchOr):
        tests = [t for p in pattern.patterns if (t := _test(subject, p)) is not None]
        return ast.BoolOp(ast.Or(), tests)
    if isinstance(pattern, ast.MatchValue):
        return ast.Compare(load(subject), [ast.Eq()], [pattern.value])
    assert isinstance(pattern, ast.MatchSingleton)
    return ast.Compare(load(subject), [ast.Is()], [ast.Constant(pattern.value)])


_OUT, _SOURCE = "_wg_out", "_wg_source"
_DEFERRED = (ast.Lambda, ast.GeneratorExp, ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)
_LIST_CONSUMERS = ("min", "max", "list", "tuple", "fromiter")


class Comprehensions:
    """Rewrite the comprehensions of a function.

    Parameters
    ----------
    nested : callable
        Rewrites a definition inside the function.
    unbound : frozenset of str
        Variables that may be unbound where they are read.
    """

    def __init__(self, nested: Callable[[ast.stmt], ast.stmt], unbound: frozenset[str]) -> None:
        self._nested, self._unbound = nested, unbound
        self._count = 0
        self._pending: list[ast.stmt] = []

    def take_definitions(self) -> list[ast.stmt]:
        """Remove and return the functions to be defined before the current statement."""
        pending, self._pending = self._pending, []
        return pending

    def list_of(self, node: ast.ListComp | ast.GeneratorExp) -> ast.expr | None:
        """A call in place of a list comprehension; None if it is not supported."""
        if not self._is_supported(node):
            return None
        append = ast.Attribute(load(_OUT), "append", ast.Load())
        append_element: ast.stmt = ast.Expr(ast.Call(append, [copied(node.elt)], []))
        create_list: ast.stmt = ast.Assign([ast.Name(_OUT, ast.Store())], ast.List([], ast.Load()))
        return self._define(
            node, [_SOURCE], [create_list, *_loops(node, append_element)], load(_OUT)
        )

    def consumer_call(self, node: ast.Call) -> tuple[str, ast.expr] | None:
        """For a call with a generator expression: the function's name, and a call in its place."""
        if not node.args or node.keywords:
            return None
        generator, *rest = node.args
        if not isinstance(generator, ast.GeneratorExp):
            return None
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if isinstance(node.func, ast.Attribute) and node.func.attr == "fromiter":
            name = "fromiter"
        if not self._is_supported(generator) or any(isinstance(r, ast.Starred) for r in rest):
            return None
        element = copied(generator.elt)
        if name == "sum" and len(rest) <= 1:
            total = ast.BinOp(load(_OUT), ast.Add(), element)
            add: ast.stmt = ast.Assign([ast.Name(_OUT, ast.Store())], total)
            sum_call = self._define(generator, [_SOURCE, _OUT], _loops(generator, add), load(_OUT))
            sum_call.args.append(copied(rest[0]) if rest else ast.Constant(0))
            return name, sum_call
        if name in ("any", "all") and not rest:
            is_any = name == "any"
            test = element if is_any else ast.UnaryOp(ast.Not(), element)
            return_early: ast.stmt = ast.If(test, [ast.Return(ast.Constant(is_any))], [])
            body = _loops(generator, return_early)
            return name, self._define(generator, [_SOURCE], body, ast.Constant(not is_any))
        if name in _LIST_CONSUMERS:
            as_list = self.list_of(generator)
            assert as_list is not None
            function = copied(node.func)
            return name, ast.Call(function, [as_list, *map(copied, rest)], [])
        return None

    def _is_supported(self, node: ast.ListComp | ast.GeneratorExp) -> bool:
        """Whether a function can replace it: nothing in it is deferred, or binds outer names."""
        if any(g.is_async for g in node.generators):
            return False
        parts = [n for child in children(node) for n in traverse(child)]
        if any(isinstance(n, _DEFERRED) for n in parts):
            return False
        names = loaded_in(node) - {
            n.id for g in node.generators for n in traverse(g.target) if isinstance(n, ast.Name)
        }
        return not (names & self._unbound or names & {"super", "__class__"})

    def _define(
        self,
        node: ast.ListComp | ast.GeneratorExp,
        parameters: list[str],
        body: list[ast.stmt],
        result: ast.expr,
    ) -> ast.Call:
        self._count += 1
        function_name = runtime_name(f"comprehension{self._count}")
        signature = parameter_list(*parameters)
        definition = ast.FunctionDef(function_name, signature, [*body, ast.Return(result)], [])
        self._pending.append(self._nested(located(node, definition)))
        return located(node, ast.Call(load(function_name), [node.generators[0].iter], []))


def _loops(node: ast.ListComp | ast.GeneratorExp, inner: ast.stmt) -> list[ast.stmt]:
    """The loops and conditions of a comprehension, around a statement."""
    for k, generator in reversed(list(enumerate(node.generators))):
        for test in reversed(generator.ifs):
            inner = ast.If(copied(test), [inner], [])
        source = copied(generator.iter) if k else load(_SOURCE)
        inner = ast.For(copied(generator.target), source, [inner], [])
    return [inner]


def choose_call(
    node: ast.Call, function_name: str, loop_call: ast.expr, original: ast.expr
) -> ast.expr:
    """`loop_call` if the called function is the built-in one of this name, or else `original`."""
    callee = copied(node.func)
    choice = call("consumed", callee, string(function_name), thunk(loop_call), thunk(original))
    return located(node, choice)
