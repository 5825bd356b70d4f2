"""The parameters whose elements a function assigns, from its source.

A plain array that is passed for one of them is replaced by a tensor.

written_parameters    their names
"""

from __future__ import annotations

import ast
import functools
from types import CodeType, FunctionType, MethodType

from wengert._engine.core.conversion_hook import is_library_function

from .names import function_scope, parameters
from .source import definition_of

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
