"""Functions whose operations have their name in graphs.

JAX has it by the same name; pictures, profiles and messages show the name.

    named_call   a decorator: a `scope` (tracing.py) around each call
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from .tracing import scope
from .validation import function as check_function

__all__ = ["named_call"]
P = ParamSpec("P")
R = TypeVar("R")


def named_call(fun: Callable[P, R], *, name: str | None = None) -> Callable[P, R]:
    """`fun`, with a name for the nodes that its calls record; a decorator.

    The name is seen in pictures, profiles and messages, and ``graph.select(scope=name)`` finds the
    nodes.

    Parameters
    ----------
    fun : callable
    name : str, optional
        By default that of `fun`.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> @wg.named_call
    ... def encoder(x):
    ...     return np.sin(x)
    >>> [n.scope for n in wg.trace(lambda x: encoder(x) + 1.0)(wg.spec(2))][1]
    'encoder'
    """
    check_function(fun, "named_call")
    title = getattr(fun, "__name__", "function") if name is None else name

    @functools.wraps(fun)
    def named(*args: P.args, **kwargs: P.kwargs) -> R:
        with scope(title):
            return fun(*args, **kwargs)

    return named
