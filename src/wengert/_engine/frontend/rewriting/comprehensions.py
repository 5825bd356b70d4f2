"""Rewrite list comprehensions, and generator expressions passed to built-in functions, as loops.

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
from collections.abc import Callable

from ..names import loaded_in
from ..tree_traversal import children, copied, traverse
from .syntax import call, load, located, parameter_list, runtime_name, string, thunk

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
