"""Comprehensions, as functions with loops.

    [f(i) for i in xs if c]           def made(source):
                                          out = []
                                          for i in source:
                                              if c:
                                                  out.append(f(i))
                                          return out
                                      made(xs)

    sum(f(i) for i in xs)             def made(source, total):
                                          for i in source:
                                              total = total + f(i)
                                          return total
                                      consumed(sum, "sum", lambda: made(xs, 0), lambda: sum(...))

The functions share the variables of the one around them.  `any` and `all` return from the loop; for
`min`, `max`, `list`, `tuple` and ``np.fromiter`` a list is made.

    Comprehensions    the rewriting, which collects the functions to define before a statement
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable

from ..names import loaded_in
from .syntax import at, call, name, runtime, text, thunk

_OUT, _SOURCE = "_wg_out", "_wg_source"
_LATE = (ast.Lambda, ast.GeneratorExp, ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)
_LISTS = ("min", "max", "list", "tuple", "fromiter")


class Comprehensions:
    """Rewrite the comprehensions of a function.

    Parameters
    ----------
    nested : callable
        Rewrites a definition inside the function.
    unbound : frozenset of str
        Names that may have no value where they are read.
    """

    def __init__(self, nested: Callable[[ast.stmt], ast.stmt], unbound: frozenset[str]) -> None:
        self._nested, self._unbound = nested, unbound
        self._count = 0
        self._waiting: list[ast.stmt] = []

    def taken(self) -> list[ast.stmt]:
        """The functions that have to be defined before the current statement."""
        waiting, self._waiting = self._waiting, []
        return waiting

    def list_of(self, node: ast.ListComp | ast.GeneratorExp) -> ast.expr | None:
        """A call in place of a list comprehension; None if it stays as it is."""
        if not self._is_plain(node):
            return None
        append = ast.Attribute(name(_OUT), "append", ast.Load())
        inner: ast.stmt = ast.Expr(ast.Call(append, [copy.deepcopy(node.elt)], []))
        first: ast.stmt = ast.Assign([ast.Name(_OUT, ast.Store())], ast.List([], ast.Load()))
        return self._defined(node, [_SOURCE], [first, *_loops(node, inner)], name(_OUT))

    def consumed(self, node: ast.Call) -> tuple[str, ast.expr] | None:
        """The kind of function that is given a generator expression, and a call in its place."""
        if not node.args or node.keywords:
            return None
        generator, *rest = node.args
        if not isinstance(generator, ast.GeneratorExp):
            return None
        word = node.func.id if isinstance(node.func, ast.Name) else ""
        if isinstance(node.func, ast.Attribute) and node.func.attr == "fromiter":
            word = "fromiter"
        if not self._is_plain(generator) or any(isinstance(r, ast.Starred) for r in rest):
            return None
        element = copy.deepcopy(generator.elt)
        if word == "sum" and len(rest) <= 1:
            total = ast.BinOp(name(_OUT), ast.Add(), element)
            add: ast.stmt = ast.Assign([ast.Name(_OUT, ast.Store())], total)
            made = self._defined(generator, [_SOURCE, _OUT], _loops(generator, add), name(_OUT))
            made.args.append(copy.deepcopy(rest[0]) if rest else ast.Constant(0))
            return word, made
        if word in ("any", "all") and not rest:
            found = word == "any"
            test = element if found else ast.UnaryOp(ast.Not(), element)
            leave: ast.stmt = ast.If(test, [ast.Return(ast.Constant(found))], [])
            body = _loops(generator, leave)
            return word, self._defined(generator, [_SOURCE], body, ast.Constant(not found))
        if word in _LISTS:
            listed = self.list_of(generator)
            assert listed is not None
            function = copy.deepcopy(node.func)
            return word, ast.Call(function, [listed, *map(copy.deepcopy, rest)], [])
        return None

    def _is_plain(self, node: ast.ListComp | ast.GeneratorExp) -> bool:
        """Whether it may be a function: nothing in it is evaluated later, or bound around it."""
        if any(g.is_async for g in node.generators):
            return False
        parts = [n for child in ast.iter_child_nodes(node) for n in ast.walk(child)]
        if any(isinstance(n, _LATE) for n in parts):
            return False
        names = loaded_in(node) - {
            n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)
        }
        return not (names & self._unbound or names & {"super", "__class__"})

    def _defined(
        self,
        node: ast.ListComp | ast.GeneratorExp,
        parameters: list[str],
        body: list[ast.stmt],
        result: ast.expr,
    ) -> ast.Call:
        self._count += 1
        word = runtime(f"comprehension{self._count}")
        arguments = ast.arguments([], [ast.arg(p) for p in parameters], None, [], [], None, [])
        made = ast.FunctionDef(word, arguments, [*body, ast.Return(result)], [])
        self._waiting.append(self._nested(at(node, made)))
        return at(node, ast.Call(name(word), [node.generators[0].iter], []))


def _loops(node: ast.ListComp | ast.GeneratorExp, inner: ast.stmt) -> list[ast.stmt]:
    """The loops of a comprehension around a statement."""
    for k, generator in reversed(list(enumerate(node.generators))):
        for test in reversed(generator.ifs):
            inner = ast.If(copy.deepcopy(test), [inner], [])
        source = copy.deepcopy(generator.iter) if k else name(_SOURCE)
        inner = ast.For(copy.deepcopy(generator.target), source, [inner], [])
    return [inner]


def selected(node: ast.Call, word: str, quick: ast.expr, slow: ast.expr) -> ast.expr:
    """The call `quick`, if the function is the one that Python has under a name, or else `slow`."""
    return at(
        node, call("consumed", copy.deepcopy(node.func), text(word), thunk(quick), thunk(slow))
    )
