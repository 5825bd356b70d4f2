"""Handlers of exceptions, which must not catch the refusals of a trace.

    try:                         try:
        a                            with handling(lambda: (E,)):
    except E:            ->              a
        b                        except refused():    # what wengert refuses, while it traces
                                     raise
                                 except E:
                                     b

with_refusals    the transformation
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ..tree_traversal import copied, traverse
from .syntax import call, located, string, thunk

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
