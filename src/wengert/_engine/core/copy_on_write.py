"""Copy on write: stores to large arrays whose old value may still be needed.

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

from .array_states import ArrayHistory, ArrayState
from .node import CONSTANT, NO_PARAMS, Node, reconstruct_values

if TYPE_CHECKING:
    from wengert._engine.core.types import Array

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
