"""Stores to elements in a branch, moved behind it.

    if c:                            v, i = cond(c, lambda: (v, i), lambda: (0, 0))
        A[i] = v           ->        A[i] = where(c, v, A[i])

Otherwise the whole array would be a result of the conditional, and be copied.  Stores of both
branches to the same elements are one store:

    if c: A[i] = u                   v = cond(c, lambda: u, lambda: w)
    else: A[i] = w         ->        A[i] = v

    stores_of       the stores by which a branch modified an array, if there are few
    store_outs      the results of a branch that represent its stores
    apply_stores    the array after the stores of the branch that was taken
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.core.graph_classes import local_sizes
from wengert._engine.core.handle import wrap
from wengert._engine.core.node import Node, constant
from wengert._engine.core.op import lookup
from wengert._engine.core.spec import Spec
from wengert._engine.ops.casts import astype

from .values import placeholder_value

_MAX_STORES = 4


class BranchStore(NamedTuple):
    """A store to elements of an array.

    Attributes
    ----------
    branch : int
        0 for the else branch, 1 for the if branch.
    template : object
        The index, with placeholders for its operands.
    operands : tuple of Node
        The integers in the index.
    value : Tensor
        The stored value, with the dtype of the array.
    """

    branch: int
    template: Any
    operands: tuple[Node, ...]
    value: Any


def stores_of(branch: int, after: Node, before: Node) -> list[BranchStore] | None:
    """The stores that transform an array into its value after a branch; None if not suitable."""
    stores: list[BranchStore] = []
    setitem, node = lookup("setitem"), after
    while node is not before:
        if node.op is not setitem or len(stores) == _MAX_STORES:
            return None
        array, value, *operands = node.args
        specs = [x.spec if isinstance(x, Node) else None for x in operands]
        if any(s is None or s.shape or s.dtype.kind not in "iu" for s in specs):
            return None
        if local_sizes(node) or (isinstance(value, Node) and local_sizes(value)):
            return None  # a length that is known in the branch only
        value = wrap(value if isinstance(value, Node) else constant(np.asarray(value)[()]))
        stored_value = (
            astype(value, before.spec.dtype) if value.dtype != before.spec.dtype else value
        )
        stores.append(BranchStore(branch, node.params["index"], tuple(operands), stored_value))
        node = array
    return stores[::-1]


def _in_both(stores: Sequence[BranchStore]) -> list[BranchStore]:
    """The stores of the first branch, if those of the other are to the same elements; or none."""
    own = [[s for s in stores if s.branch == k] for k in range(2)]
    places = [[(s.template, s.operands) for s in part] for part in own]
    return own[0] if places[0] == places[1] else []


def store_outs(stores: Sequence[BranchStore], branch: int) -> list[Any]:
    """The value and the index of each store; zeros for the stores of the other branch.

    Only the values if both branches store to the same elements: their indices are those of before
    the branch.
    """
    if _in_both(stores):
        return [s.value for s in stores if s.branch == branch]
    values: list[Any] = []
    for store in stores:
        spec = store.value.node.spec
        if store.branch == branch:
            values += [store.value, *store.operands]
            continue
        values.append(placeholder_value(Spec(spec.shape, spec.dtype)))
        values += [np.zeros((), x.spec.dtype)[()] for x in store.operands]
    return values


def apply_stores(
    array: Node, stores: Sequence[BranchStore], outs: Iterator[Any], test: Any
) -> Node:
    """An array after the stores of the branch that was taken.

    Parameters
    ----------
    array : Node
    stores : sequence of BranchStore
    outs : iterator
        The results of the conditional, for `store_outs`.
    test : Tensor
        Whether branch 1 is taken.
    """
    current = wrap(array)
    shared = _in_both(stores)
    for store in shared:
        current = lookup("setitem")(current, next(outs), *store.operands, index=store.template)
    for store in () if shared else stores:
        value = next(outs)
        operands = [next(outs) for _ in store.operands]
        is_taken = test if store.branch == 1 else lookup("logical_not")(test)
        current_value = lookup("getitem")(current, *operands, index=store.template)
        value = lookup("where")(is_taken, value, current_value)
        current = lookup("setitem")(current, value, *operands, index=store.template)
    result: Node = current.node
    return result
