"""The states of a large array that is written to in place (copy_on_write.py).

ArrayState     replaces the value of an outdated node
ArrayHistory   the record that the states of one array share
is_unshared         whether the caller has the only reference to an array
is_unshared_view    the same of a view and of the array that it is a view of
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from .spec import Spec


class ArrayHistory:
    """The common record of all states of one array.

    It caches the outdated state that was reconstructed last (`array`), with its index (`number`).
    """

    __slots__ = ("array", "number")

    def __init__(self) -> None:
        self.number = -1
        self.array: Any = None


class ArrayState:
    """One state of an array, which can be reconstructed from a newer one.

    Attributes
    ----------
    number : int
        Its index in the history.
    array : ndarray or None
        The array itself, for the newest state.
    newer : ArrayState or None
        The next state; None for the newest.
    index, old
        The index at which the next state differs, and the values there in this state.
    history : ArrayHistory
    spec : Spec
        Shape and dtype.
    """

    __slots__ = ("array", "history", "index", "newer", "number", "old", "spec")

    def __init__(self, array: Any, history: ArrayHistory, number: int) -> None:
        self.array, self.history, self.number = array, history, number
        self.newer: ArrayState | None = None
        self.index = self.old = None
        self.spec = Spec(array.shape, array.dtype)

    def read(self) -> Any:
        """The array in this state, reconstructed if it is outdated."""
        history = self.history
        if self.array is not None:
            return self.array
        if history.number == self.number:
            return history.array
        chain = [self]
        state = self.newer
        while state is not None and state.array is None and state.number != history.number:
            chain.append(state)
            state = state.newer
        if state.array is not None:  # type: ignore[union-attr]
            array = state.array.copy()  # type: ignore[union-attr]
        else:
            array = history.array
            history.array, history.number = None, -1
            if not is_unshared(array):
                array = array.copy()
        for state in reversed(chain):
            array[state.index] = state.old
        history.array, history.number = array, self.number
        return array


_UNSHARED = sys.maxsize  # the count that `getrefcount` returns for one reference; measured below


def is_unshared(array: np.ndarray[Any, Any]) -> bool:
    """Whether a local variable of the caller is the only reference to an array without base."""
    return sys.getrefcount(array) <= _UNSHARED and array.base is None


_UNSHARED_BASE = sys.maxsize  # of the base of a view with one reference; measured below


def is_unshared_view(array: np.ndarray[Any, Any]) -> bool:
    """Whether the caller has the only reference to a view, and the view that to its base."""
    base = array.base
    if type(base) is not np.ndarray or sys.getrefcount(array) > _UNSHARED:
        return False
    return sys.getrefcount(base) <= _UNSHARED_BASE and base.base is None


def _count_local() -> int:
    array = np.empty(1)
    return next(n for n in range(1, 20) if _is_at_most(array, n))


def _count_base() -> int:
    view = np.empty(1)[:]
    base = view.base
    return sys.getrefcount(base)


def _is_at_most(array: Any, n: int) -> bool:
    return sys.getrefcount(array) <= n


_UNSHARED = _count_local()
_UNSHARED_BASE = _count_base()
