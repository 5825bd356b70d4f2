"""Copy on write: stores to large arrays whose old value may still be needed.

A node never changes, so `x[i] = v` makes a new node; copying the array for it would make a loop
that fills x quadratic in time and memory.  Instead the new node takes the array over, written to in
place, and the old node remembers what stood at the index (H. Baker 1978, "Shallow binding in
LISP 1.5", Comm. ACM 21(7); the same for arrays: "Shallow binding makes functional arrays fast",
1991).  Whoever asks the old node for its value gets it put together again.

This is done only when nothing but its node refers to the array, counted by the interpreter itself:
a view, a user's variable, a value held by another node each count, and then the array is copied.

    overwritable    may the array of this node be taken over?
    hand_over       make a node remember what is about to be overwritten; take_back undoes it
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from .array_states import ArrayHistory, ArrayState
from .node import CONSTANT, NO_PARAMS, Node

if TYPE_CHECKING:
    from wengert._engine.core.types import Array

LIMIT = 4096  # bytes; a smaller array is copied as fast as a state is noted


def _references(node: Node) -> int:
    """How many references there are to the array of a node, its own state's not counted."""
    array = node.value
    return sys.getrefcount(array) - (node.version is not None)


# What `getrefcount` gives for an unshared array depends on the interpreter, so it is measured.
_ALONE = _references(Node(CONSTANT, (), NO_PARAMS, np.empty(1)))


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


def hand_over(node: Node, array: Array, index: Any, overwritten: Any) -> ArrayState:
    """Make the node remember what stands at `index`, before it is overwritten in its array.

    Returns the state that the node which takes the array over is to have as its `version`. From
    here on the old node is right whether the write happens or an interrupt comes between.
    """
    state = node.version
    if state is None:
        state = ArrayState(array, ArrayHistory(), 0)
    newer = ArrayState(array, state.family, state.number + 1)
    state.index, state.old, state.newer = index, overwritten, newer
    state.array = None
    node.version = state
    del node.value  # from now on `version` answers (Node.__getattr__)
    return newer


def take_back(node: Node, array: Array) -> None:
    """Undo `hand_over`, for a write that was refused and has been restored."""
    node.value = array
    state = node.version
    assert state is not None
    state.array, state.newer, state.index, state.old = array, None, None, None
