"""Refuse what autograd refuses, for programs that must also run with autograd.

    enable        refuse, in this process
    disable       allow it again
    is_strict     whether it is refused
    NoItemError   the error of an assignment to elements, which is also a TypeError

In a function that is being differentiated ``x[i] = v`` of an array that depends on the variables
raises a TypeError, and a real FFT of odd length (numpy/fft.py) a NotImplementedError.  Integers of
NumPy are no instances of ``autograd.numpy.int64`` and its siblings (numpy/numpy_wrapper.py).

``python -m wengert.compat.autograd --strict`` and ``import_hook.install(strict=True)`` enable it.
Without it these have derivatives, and `isinstance` is NumPy's.
"""

from __future__ import annotations

import sys
from typing import Any

from wengert._engine.core.handle import Handle
from wengert._engine.core.implicit_conversions import is_differentiated
from wengert._engine.tensor.tensor import Tensor

from ...errors import NotDifferentiableError, at, user_line

__all__ = ["NoItemError", "disable", "enable", "is_strict"]

_ASSIGN = Tensor.__setitem__


class NoItemError(NotDifferentiableError, TypeError):
    """An assignment to elements in strict mode, for which autograd has no derivative."""


def depends_on_variables(x: Any) -> bool:
    """Whether it is a tensor that depends on what a running function is differentiated by."""
    return isinstance(x, Handle) and is_differentiated(x.node)


def _refuse(self: Any, index: Any, v: Any) -> None:
    caller = sys._getframe(1).f_globals.get("__name__", "")
    if not caller.startswith("wengert.") and (
        depends_on_variables(self) or depends_on_variables(v)
    ):
        raise NoItemError(
            "an assignment to elements of an array that is being differentiated, in strict mode: "
            "autograd has no derivative of it. Build the array by np.concatenate, np.where or "
            f"np.array of a list, or run the program without --strict{at(user_line())}."
        )
    _ASSIGN(self, index, v)


def is_strict() -> bool:
    """Whether what autograd refuses is refused."""
    return Tensor.__setitem__ is _refuse


def enable() -> None:
    """Refuse what autograd refuses, in this process.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.compat.autograd import grad, strict
    >>> def f(x):
    ...     y = 2.0 * x
    ...     y[0] = 0.0
    ...     return np.sum(y)
    >>> grad(f)(np.ones(2))
    array([0., 2.])
    >>> strict.enable()
    >>> grad(f)(np.ones(2))
    Traceback (most recent call last):
        ...
    wengert.compat.autograd.strict.NoItemError: an assignment to elements of an array that is ...
    >>> strict.disable()
    """
    Tensor.__setitem__ = _refuse  # type: ignore[method-assign]


def disable() -> None:
    """Allow again what autograd refuses."""
    Tensor.__setitem__ = _ASSIGN  # type: ignore[method-assign]
