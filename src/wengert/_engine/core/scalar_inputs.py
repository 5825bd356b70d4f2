"""Scalar inputs: inputs of a graph without axes, which are numbers or arrays.

NumPy's numbers are immutable (``b = a; a += 1`` leaves `b` as it is), its arrays without axes are
not.  While a function is traced, an input without axes is a number.  Where an in-place operator
shows that this matters, it is noted, and the program is not used for arrays.

note_scalar_inputs    note the inputs of a graph that are numbers
is_array              whether a tensor is modified by an in-place operator, rather than replaced
modified_in_place     the same, asked because such an operator is applied
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

import numpy as np

from .handle import Handle
from .node import INPUT, Node

# For each scalar input the set to which it is added if an in-place operator is applied to it.
_updated: weakref.WeakKeyDictionary[Node, set[Node]] = weakref.WeakKeyDictionary()


def note_scalar_inputs(nodes: Iterable[Node]) -> set[Node]:
    """Note the inputs without axes among nodes; returns the set of those updated in place."""
    updated: set[Node] = set()
    for node in nodes:
        if node.spec.shape == () and not node.spec.weak:
            _updated[node] = updated
    return updated


def is_array(x: Handle) -> bool:
    """Whether in-place operators modify a tensor; those of numbers make new values."""
    node = x.node
    if not node.is_traced:
        return type(node.value) is np.ndarray
    if node.spec.shape or hasattr(x, "_link"):  # a view without axes shares memory
        return True
    return node.op is INPUT and not node.spec.weak and node not in _updated


def modified_in_place(x: Handle) -> bool:
    """Whether the in-place operator that is applied to a tensor modifies it."""
    node: Any = x.node
    while node.args and node.op.aliasing.transparent:  # a variable of a derivative
        node = node.args[0]
    if node.op is INPUT and (updated := _updated.get(node)) is not None:
        updated.add(node)
    return is_array(x)
