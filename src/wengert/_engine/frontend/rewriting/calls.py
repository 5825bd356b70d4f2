"""Rewrite the calls of a function.

    f(x)          callee(f)(x)
    super()       super(__class__, self)

Calls    the transformation, including nested functions
"""

from __future__ import annotations

import ast

from .exception_handlers import with_refusals
from .syntax import call, load, located


class Calls(ast.NodeTransformer):
    """Rewrite the calls of a function.

    Parameters
    ----------
    first : str, optional
        The first parameter of the function, for ``super()``.
    """

    def __init__(self, first: str | None) -> None:
        self._first = first

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """A nested function."""
        arguments = [*node.args.posonlyargs, *node.args.args]
        inner = Calls(arguments[0].arg if arguments else None)
        node.body = [inner.visit(s) for s in node.body]
        node.decorator_list = [self.visit(d) for d in node.decorator_list]
        node.args = self.visit(node.args)
        return node

    def visit_Try(self, node: ast.Try) -> ast.AST:
        """A ``try`` statement."""
        self.generic_visit(node)
        with_refusals(node, traces=False)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """A call."""
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id.startswith("__wg_"):
            return node
        if isinstance(node.func, ast.Name) and node.func.id == "super":
            if not node.args and not node.keywords and self._first is not None:
                node.args = [located(node, load("__class__")), located(node, load(self._first))]
            return node
        node.func = located(node.func, call("callee", node.func))
        return node
