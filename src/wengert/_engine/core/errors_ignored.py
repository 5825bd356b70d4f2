"""Functions that run with NumPy's floating-point errors ignored, also if they are interrupted.

A keyboard interrupt inside ``np.errstate.__enter__`` or ``__exit__``, which are Python functions,
leaves the errors ignored for the rest of the program.  A function that runs in a copy of the
context (`contextvars.Context.run`, implemented in C) cannot change the state of its caller.

    errors_ignored         the decorator
    call_ignoring_errors   one such call
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import copy_context
from functools import wraps
from typing import ParamSpec, TypeVar

import numpy as np

P = ParamSpec("P")
T = TypeVar("T")


def call_ignoring_errors(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function in a copy of the context in which ``np.errstate(all="ignore")`` is active."""
    context = copy_context()
    context.run(np.errstate(all="ignore").__enter__)  # ends with the context
    return context.run(function, *args, **kwargs)


def errors_ignored(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function so that it is called by `call_ignoring_errors`.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert._engine.core.errors_ignored import errors_ignored
    >>> @errors_ignored
    ... def reciprocal(x):
    ...     return 1 / x
    >>> reciprocal(np.zeros(2)).tolist()
    [inf, inf]
    """

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        return call_ignoring_errors(function, *args, **kwargs)

    return run
