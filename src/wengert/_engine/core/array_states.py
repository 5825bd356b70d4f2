"""The states of a large array that is written to in place.

ArrayState     replaces the value of an outdated node
ArrayHistory   the record that the states of one array share
is_unshared         whether the caller has the only reference to an array
is_unshared_view    the same of a view and of the array that it is a view of

Copy on write: stores to large arrays whose old value may still be needed.

A node never changes, so `x[i] = v` makes a new node; copying the array for it would make a loop
that fills x quadratic in time and memory.  Instead the new node takes over the array, written to in
place, and the old node stores the overwritten elements (H. Baker 1978, "Shallow binding in
LISP 1.5", Comm. ACM 21(7); the same for arrays: "Shallow binding makes functional arrays fast",
1991).  Reading the value of the old node reconstructs it.

This is done only if the node has the only reference to the array, by the reference count: if a
view, a variable of the user or another node refers to it, the array is copied.

    overwritable   whether the array of a node may be taken over
    release_value  store in a node the elements about to be overwritten; restore_value undoes it
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from .node import CONSTANT, NO_PARAMS, Node, reconstruct_values
from .spec import Spec

if TYPE_CHECKING:
    from wengert._engine.core.types import Array


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
    array = np.empty(1)  # a plain local variable: Python 3.14 passes these without a reference
    return _count_argument(array)


def _count_argument(array: Any) -> int:
    return sys.getrefcount(array)


def _count_base() -> int:
    view = np.empty(1)[:]
    base = view.base
    return sys.getrefcount(base)


_UNSHARED = _count_local()
_UNSHARED_BASE = _count_base()

LIMIT = 4096  # bytes; a smaller array is copied as fast as a state is stored


def _references(node: Node) -> int:
    """The reference count of the array of a node, without the reference of its own state."""
    array = node.value
    return sys.getrefcount(array) - (node.version is not None)


# The result of `getrefcount` for an unshared array depends on the interpreter, so it is measured.
_ALONE = _references(Node(CONSTANT, (), NO_PARAMS, np.empty(1)))


def overwritable(node: Node) -> bool:
    """Whether the array of a node is large, and not shared."""
    version = node.version
    if version is not None and version.newer is not None:
        return False
    array = node.value
    if type(array) is not np.ndarray or array.nbytes < LIMIT or array.base is not None:
        return False
    del array
    return node.value.flags.writeable and _references(node) <= _ALONE


def release_value(node: Node, array: Array, index: Any, overwritten: Any) -> ArrayState:
    """Store in the node the elements at `index`, before they are overwritten in its array.

    Returns the `version` of the node that takes over the array. The old node is valid from then on,
    even if an interrupt comes before the write.
    """
    state = node.version
    if state is None:
        state = ArrayState(array, ArrayHistory(), 0)
    newer = ArrayState(array, state.history, state.number + 1)
    state.index, state.old, state.newer = index, overwritten, newer
    state.array = None
    node.version = state
    reconstruct_values()
    del node.value  # from now on it is read from `version` (`reconstruct_values`)
    return newer


def restore_value(node: Node, array: Array) -> None:
    """Undo `release_value`, for a write that was rejected and undone."""
    node.value = array
    state = node.version
    assert state is not None
    state.array, state.newer, state.index, state.old = array, None, None, None
