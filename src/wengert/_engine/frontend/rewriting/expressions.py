"""Conditions and stores, as calls that decide when they run.

    a and b, a or b          and_(a, lambda: b), or_(a, lambda: b)
    not a                    not_(a)
    a if c else b            if_expression(c, lambda: a, lambda: b)
    a < b < c                chain(a, ("<", lambda: b), ("<", lambda: c))
    A[i] = x, A.b = x        stored(A)[i] = x, stored(A, "b").b = x
    [f(i) for i in xs]       a function with a loop (comprehensions.py)
    y                        bound(y, "y")       if y may be unbound (definite_assignment.py)

The functions are in the package `running`.

    Expressions    the rewriting
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator

from .calls import Calls
from .comprehensions import Comprehensions, selected
from .syntax import at, call, mangled, text, thunk

_OPERATORS = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
}
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class Expressions(Calls):
    """Rewrite the expressions of a statement; definitions inside it are left as they are.

    Parameters
    ----------
    first : str, optional
        The first parameter of the function, for ``super()``.
    unbound : frozenset of str
        Names that may have no value where they are read.
    comprehensions : Comprehensions
    private : str, optional
        The enclosing class, for the mangling of names like ``__name``.
    """

    def __init__(
        self,
        first: str | None,
        unbound: frozenset[str],
        comprehensions: Comprehensions,
        private: str | None,
    ) -> None:
        super().__init__(first)
        self._private = private
        self._unbound, self._comprehensions = unbound, comprehensions
        self._inside_lambda = 0

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        """A function without statements: its comprehensions read its parameters, and stay."""
        self._inside_lambda += 1
        self.generic_visit(node)
        self._inside_lambda -= 1
        return node

    def visit_ListComp(self, node: ast.ListComp) -> ast.AST:
        """A list comprehension."""
        made = None if self._inside_lambda else self._comprehensions.list_of(node)
        if made is None:
            return self._comprehension(node)
        return self.visit(made)  # type: ignore[no-any-return]

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.AST:
        """A generator, which stays as it is."""
        return self._comprehension(node)

    def visit_SetComp(self, node: ast.SetComp) -> ast.AST:
        """A set, which stays as it is."""
        return self._comprehension(node)

    def visit_DictComp(self, node: ast.DictComp) -> ast.AST:
        """A dict, which stays as it is."""
        return self._comprehension(node)

    def _comprehension(self, node: ast.AST) -> ast.AST:
        self._inside_lambda += 1  # comprehensions inside it read its variables
        self.generic_visit(node)
        self._inside_lambda -= 1
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """A call."""
        found = None if self._inside_lambda else self._comprehensions.consumed(node)
        if isinstance(node.func, ast.Name) and node.func.id.startswith("__wg_"):
            return self.generic_visit(node)
        if found is None:
            return super().visit_Call(node)
        word, quick = found
        quick = self.visit(quick)
        slow = super().visit_Call(copy.deepcopy(node))
        assert isinstance(slow, ast.expr)
        return selected(node, word, quick, slow)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """A variable."""
        if node.id not in self._unbound or not isinstance(node.ctx, ast.Load):
            return node
        return at(node, call("bound", node, text(node.id)))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Do not rewrite a definition, except its decorators and defaults."""
        return self._outside(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        """Leave a definition as it is."""
        return self._outside(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        """Leave a class as it is."""
        return node

    def _outside(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        node.decorator_list = [self.visit(d) for d in node.decorator_list]
        node.args.defaults = [self.visit(d) for d in node.args.defaults]
        node.args.kw_defaults = [d and self.visit(d) for d in node.args.kw_defaults]
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        """``and``, ``or``."""
        self.generic_visit(node)
        if _binds(node):
            return node
        word = "and" if isinstance(node.op, ast.And) else "or"
        made = node.values[0]
        for value in node.values[1:]:
            made = at(node, call(word, made, thunk(value)))
        return made

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        """``not``."""
        self.generic_visit(node)
        return at(node, call("not", node.operand)) if isinstance(node.op, ast.Not) else node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        """A conditional expression."""
        self.generic_visit(node)
        if _binds(node.body) or _binds(node.orelse):
            return node
        return at(node, call("if_expression", node.test, thunk(node.body), thunk(node.orelse)))

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """A chain of comparisons; a single one is left as it is."""
        self.generic_visit(node)
        if len(node.ops) == 1 or _binds(node):
            return node
        links = [
            ast.Tuple([text(_OPERATORS[type(op)]), thunk(value)], ast.Load())
            for op, value in zip(node.ops, node.comparators, strict=True)
        ]
        return at(node, call("chain", node.left, *links))

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """The target of a store to an element."""
        return self._target(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """The target of a store to an attribute."""
        return self._target(node)

    def _target(self, node: ast.Subscript | ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load):
            facts: list[ast.expr] = []
            if isinstance(node, ast.Attribute):
                facts = [text(mangled(node.attr, self._private))]
            node.value = at(node.value, call("before_store", node.value, *facts))
        return node


def _binds(node: ast.AST) -> bool:
    """Whether an expression binds a variable, which would be local to a lambda, or is suspended."""
    return any(
        isinstance(n, ast.NamedExpr | ast.Yield | ast.YieldFrom | ast.Await) for n in _inside(node)
    )


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (*_SCOPES, ast.Lambda)):
            yield from _inside(child)
