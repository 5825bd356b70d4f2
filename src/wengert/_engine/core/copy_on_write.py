"""Versions: a large array that is written to keeps one memory, and every state it has had.

A node never changes, so `x[i] = v` makes a new node; copying the array for it would make a loop
that fills x quadratic in time and memory.  Instead the new node takes the array over, written to in
place, and the old node remembers what stood at the index (H. Baker 1978, "Shallow binding in
LISP 1.5", Comm. ACM 21(7); the same for arrays: "Shallow binding makes functional arrays fast",
1991).  Whoever asks the old node for its value gets it put together again.

This is done only when nothing but its node refers to the array, counted by the interpreter itself:
a view, a user's variable, a value held by another line each count, and then the array is copied.

    overwritable    may the array of this node be taken over?
    is_unshared     has the caller the only reference to an array?
    hand_over       make a node remember what is about to be overwritten; take_back undoes it
    State           what an outdated node has in place of a value
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from .node import CONSTANT, NO_PARAMS, Node
from .spec import Spec

LIMIT = 4096  # bytes; a smaller array is copied as fast as a state is noted


class Family:
    """The states of one array, and the outdated one that was put together last."""

    __slots__ = ("array", "number")

    def __init__(self) -> None:
        self.number = -1
        self.array: Any = None


class State:
    """One state of an array; a newer one knows how to come back to it.

    Attributes
    ----------
    number : int
        Which state of its family it is.
    array : ndarray or None
        The array itself, for the newest state.
    newer : State or None
        The next state; None for the newest.
    index, old
        What the next state has overwritten, and what stood there.
    spec : Spec
        Shape and dtype.
    """

    __slots__ = ("array", "family", "index", "newer", "number", "old", "spec")

    def __init__(self, array: Any, family: Family, number: int) -> None:
        self.array, self.family, self.number = array, family, number
        self.newer: State | None = None
        self.index = self.old = None
        self.spec = Spec(array.shape, array.dtype)

    def read(self) -> Any:
        """The array in this state; put together again if it is outdated."""
        family = self.family
        if self.array is not None:
            return self.array
        if family.number == self.number:
            return family.array
        later = [self]
        state = self.newer
        while state is not None and state.array is None and state.number != family.number:
            later.append(state)
            state = state.newer
        if state.array is not None:  # type: ignore[union-attr]
            array = state.array.copy()  # type: ignore[union-attr]
        else:
            array = family.array
            family.array, family.number = None, -1
            if not is_unshared(array):  # somebody still looks at that state
                array = array.copy()
        for state in reversed(later):
            array[state.index] = state.old
        family.array, family.number = array, self.number
        return array


def _references(node: Node) -> int:
    """How many references there are to the array of a node, its own state's not counted."""
    array = node.value
    return sys.getrefcount(array) - (node.version is not None)


# What `getrefcount` says of an array that nobody else refers to is the interpreter's affair, so it
# is asked once.
_ALONE = _references(Node(CONSTANT, (), NO_PARAMS, np.empty(1)))
_UNSHARED = sys.maxsize


def is_unshared(array: np.ndarray[Any, Any]) -> bool:
    """Whether a local variable of the caller is the only reference to an array of its own."""
    return sys.getrefcount(array) <= _UNSHARED and array.base is None


def _count_local() -> int:
    array = np.empty(1)
    return next(n for n in range(1, 20) if _is_at_most(array, n))


def _is_at_most(array: Any, n: int) -> bool:
    return sys.getrefcount(array) <= n


_UNSHARED = _count_local()


def overwritable(node: Node) -> bool:
    """Whether the array of a node is large, and nobody else's."""
    version = node.version
    if version is not None and version.newer is not None:
        return False
    array = node.value
    if type(array) is not np.ndarray or array.nbytes < LIMIT or array.base is not None:
        return False
    del array
    return node.value.flags.writeable and _references(node) <= _ALONE


def hand_over(node: Node, array: Any, index: Any, overwritten: Any) -> State:
    """Make the node remember what stands at `index`, before it is overwritten in its array.

    Returns the state that the node which takes the array over is to have as its `version`. From
    here on the old node is right whether the write happens or an interrupt comes between.
    """
    state = node.version
    if state is None:
        state = State(array, Family(), 0)
    newer = State(array, state.family, state.number + 1)
    state.index, state.old, state.newer = index, overwritten, newer
    state.array = None
    node.version = state
    del node.value  # from now on `version` answers (Node.__getattr__)
    return newer


def take_back(node: Node, array: Any) -> None:
    """Undo `hand_over`, for a write that was refused and has been restored."""
    node.value = array
    state = node.version
    assert state is not None
    state.array, state.newer, state.index, state.old = array, None, None, None
