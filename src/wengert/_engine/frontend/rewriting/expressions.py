"""Rewrite conditions, stores and calls inside of statements, and handlers of exceptions.

Handlers of exceptions, which must not catch the refusals of a trace.

    try:                         try:
        a                            with handling(lambda: (E,)):
    except E:            ->              a
        b                        except refused():    # what wengert refuses, while it traces
                                     raise
                                 except E:
                                     b

with_refusals    the transformation

Rewrite conditions, stores and calls inside of statements as calls of functions in `running`.

a and b, a or b          and_(a, lambda: b), or_(a, lambda: b)
not a                    not_(a)
a if c else b            if_expression(c, lambda: a, lambda: b)
a < b < c                chain(a, ("<", lambda: b), ("<", lambda: c))
a in b                   contained(a, b)
A[i] = x, A.b = x        before_store(A)[i] = x, before_store(A, "b").b = x
[f(i) for i in xs]       a function with a loop (simplified.py)
y                        bound(y, "y")       if y may be unbound (frontend/names.py)
f(x)                     callee(f)(x)        (calls.py)

Expressions    the transformation

Rewrite the calls of a function.

    f(x)          callee(f)(x)
    super()       super(__class__, self)

Calls    the transformation, including nested functions
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from wengert._engine.frontend.syntax import (
    call,
    children,
    copied,
    load,
    located,
    mangled,
    string,
    thunk,
    traverse,
)

from .simplified import Comprehensions, choose_call
from .stores import stores_global

_OURS = frozenset(("TraceError", "TracedBranchError", "ConversionError", "WengertError"))


def with_refusals(node: ast.Try, traces: bool) -> None:
    """Insert the handler of refusals, unless the user's handlers name exceptions of wengert.

    Parameters
    ----------
    node : ast.Try
        Is modified.
    traces : bool
        Whether a trace of it is built, so that exceptions that depend on values are refused.
    """
    if not node.handlers or _names_ours(node.handlers):
        return
    handler = ast.ExceptHandler(call("refused"), None, [ast.Raise()])
    handler = ast.copy_location(handler, node.handlers[0])
    if traces:
        with_handling = ast.With([ast.withitem(call("handling", _types(node.handlers)))], node.body)
        node.body = [located(node.body[0], with_handling)]
    node.handlers.insert(0, located(node.handlers[0], handler))


def _types(handlers: Sequence[ast.ExceptHandler]) -> ast.expr:
    """A function that gives the exceptions of handlers, None for all."""
    types = [copied(h.type) for h in handlers if h.type is not None]
    if len(types) < len(handlers):
        return thunk(string(None))
    parts: list[ast.expr] = []
    for t in types:
        parts += t.elts if isinstance(t, ast.Tuple) else [t]
    return thunk(ast.Tuple(parts, ast.Load()))


def _names_ours(handlers: Sequence[ast.ExceptHandler]) -> bool:
    names = [n for h in handlers if h.type is not None for n in traverse(h.type)]
    return any(
        (isinstance(n, ast.Attribute) and n.attr in _OURS)
        or (isinstance(n, ast.Name) and n.id in _OURS)
        for n in names
    )


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
_LOGGING = frozenset("debug info warning warn error exception critical log write print".split())
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class Expressions(Calls):
    """Rewrite the expressions of a statement; nested definitions are left unchanged.

    Parameters
    ----------
    first : str, optional
        The first parameter of the function, for ``super()``.
    unbound : frozenset of str
        Variables that may be unbound where they are read.
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
        self.in_message = False

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        """A lambda; comprehensions inside it are left, since they may read its parameters."""
        self._inside_lambda += 1
        self.generic_visit(node)
        self._inside_lambda -= 1
        return node

    def visit_ListComp(self, node: ast.ListComp) -> ast.AST:
        """A list comprehension."""
        rewritten = None if self._inside_lambda else self._comprehensions.list_of(node)
        if rewritten is None:
            return self._leave_comprehension(node)
        return self.visit(rewritten)  # type: ignore[no-any-return]

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.AST:
        """A generator expression, which is left unless it is the argument of ``sum`` or others."""
        return self._leave_comprehension(node)

    def visit_SetComp(self, node: ast.SetComp) -> ast.AST:
        """A set comprehension, which is left."""
        return self._leave_comprehension(node)

    def visit_DictComp(self, node: ast.DictComp) -> ast.AST:
        """A dict comprehension, which is left."""
        return self._leave_comprehension(node)

    def _leave_comprehension(self, node: ast.AST) -> ast.AST:
        self._inside_lambda += 1  # comprehensions inside it may read its variables
        self.generic_visit(node)
        self._inside_lambda -= 1
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """A call."""
        if _is_message(node) and not self.in_message:
            with self.message():
                return self.visit_Call(node)
        if self.in_message and _makes_text(node):
            return self.generic_visit(node)
        consumer = None if self._inside_lambda else self._comprehensions.consumer_call(node)
        if isinstance(node.func, ast.Name) and node.func.id.startswith("__wg_"):
            return self.generic_visit(node)
        if consumer is None:
            return super().visit_Call(node)
        name, loop_call = consumer
        loop_call = self.visit(loop_call)
        original = super().visit_Call(copied(node))
        assert isinstance(original, ast.expr)
        return choose_call(node, name, loop_call, original)

    @contextmanager
    def message(self) -> Iterator[None]:
        """A context for expressions in messages, which may show traced values."""
        before, self.in_message = self.in_message, True
        try:
            yield
        finally:
            self.in_message = before

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        """An f-string: its values are checked, unless it is a part of a message."""
        for value in node.values:
            if isinstance(value, ast.FormattedValue):
                value.value = self._formatted(self.visit(value.value))
                if value.format_spec is not None:
                    value.format_spec = self.visit(value.format_spec)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """An operator; the values that ``"text" % values`` formats are checked."""
        self.generic_visit(node)
        if isinstance(node.op, ast.Mod) and _is_text(node.left):
            if isinstance(node.right, ast.Tuple):
                node.right.elts = [self._formatted(x) for x in node.right.elts]
            else:
                node.right = self._formatted(node.right)
        return node

    def _formatted(self, node: ast.expr) -> ast.expr:
        is_starred = isinstance(node, ast.Starred)
        return node if self.in_message or is_starred else located(node, call("formatted", node))

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """A variable."""
        if node.id not in self._unbound or not isinstance(node.ctx, ast.Load):
            return node
        return located(node, call("bound", node, string(node.id)))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """A nested function: only its decorators and defaults are rewritten."""
        return self._visit_signature(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        """A nested coroutine: only its decorators and defaults are rewritten."""
        return self._visit_signature(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        """A nested class, which is left unchanged."""
        return node

    def _visit_signature(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        node.decorator_list = [self.visit(d) for d in node.decorator_list]
        node.args.defaults = [self.visit(d) for d in node.args.defaults]
        node.args.kw_defaults = [d and self.visit(d) for d in node.args.kw_defaults]
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        """``and``, ``or``."""
        self.generic_visit(node)
        if any(map(_cannot_be_lambda, node.values[1:])):
            return node
        function = "and" if isinstance(node.op, ast.And) else "or"
        result = node.values[0]
        for value in node.values[1:]:
            result = located(node, call(function, result, thunk(value)))
        return result

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        """``not``."""
        self.generic_visit(node)
        return located(node, call("not", node.operand)) if isinstance(node.op, ast.Not) else node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        """A conditional expression."""
        self.generic_visit(node)
        if _cannot_be_lambda(node.body) or _cannot_be_lambda(node.orelse):
            return node
        return located(node, call("if_expression", node.test, thunk(node.body), thunk(node.orelse)))

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """A chained comparison, and ``in``; another single one is left unchanged."""
        self.generic_visit(node)
        if len(node.ops) == 1:
            if not isinstance(node.ops[0], ast.In | ast.NotIn):
                return node
            contained = call("contained", node.left, node.comparators[0])
            is_in = isinstance(node.ops[0], ast.In)
            return located(node, contained if is_in else call("not", contained))
        if any(map(_cannot_be_lambda, node.comparators)):
            return node
        links = [
            ast.Tuple([string(_OPERATORS[type(op)]), thunk(value)], ast.Load())
            for op, value in zip(node.ops, node.comparators, strict=True)
        ]
        return located(node, call("chain", node.left, *links))

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """An element; if it is assigned or deleted, its object is recorded before."""
        self._store_target(node)
        if isinstance(node.ctx, ast.Load) and _may_be_of_list(node.slice):
            node.value = located(node.value, call("before_load", node.value))
        elif isinstance(node.ctx, ast.Load) and _may_be_of_array(node.slice):
            node.value = located(node.value, call("before_array_load", node.value))
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """An attribute; if it is assigned or deleted, its object is recorded before."""
        return self._store_target(node)

    def _store_target(self, node: ast.Subscript | ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load) and not stores_global(node):
            attribute: list[ast.expr] = []
            if isinstance(node, ast.Attribute):
                attribute = [string(mangled(node.attr, self._private))]
            node.value = located(node.value, call("before_store", node.value, *attribute))
        return node


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _makes_text(node: ast.Call) -> bool:
    """Whether a call may be one of ``str``, ``repr``, ``format``, or of a method ``format``."""
    called = node.func
    if isinstance(called, ast.Attribute):
        return called.attr == "format"
    return isinstance(called, ast.Name) and called.id in ("str", "repr", "format")


def _is_message(node: ast.Call) -> bool:
    """Whether a call prints or logs its arguments."""
    called = node.func
    if isinstance(called, ast.Attribute):
        return called.attr in _LOGGING
    return isinstance(called, ast.Name) and called.id in ("print", "warn")


def _may_be_of_list(index: ast.expr) -> bool:
    """Whether an index may be a number: a list that is used at a traced index is stacked."""
    if isinstance(index, ast.Constant):
        return type(index.value) is int
    return not isinstance(index, ast.Slice | ast.Tuple | ast.JoinedStr)


def _may_be_of_array(index: ast.expr) -> bool:
    """Whether an index has several parts, one of which may be a traced number."""
    known = ast.Constant | ast.Slice | ast.Starred
    return isinstance(index, ast.Tuple) and not all(isinstance(x, known) for x in index.elts)


def _cannot_be_lambda(node: ast.AST) -> bool:
    """Whether an expression has ``:=``, ``yield`` or ``await``, which a lambda would change."""
    return any(
        isinstance(n, ast.NamedExpr | ast.Yield | ast.YieldFrom | ast.Await)
        for n in _walk_scope(node)
    )


def _walk_scope(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    for child in children(node):
        if not isinstance(child, (*_SCOPES, ast.Lambda)):
            yield from _walk_scope(child)
