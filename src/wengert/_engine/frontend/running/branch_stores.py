"""Stores in branches: elements that a branch assigns are stored after it.

    if c:                            v, i = cond(c, (new value, i), (0, 0))
        A[i] = v           ->        A[i] = where(c, v, A[i])

Otherwise the whole array would be a result of the conditional, and be copied.

    stores_of    the stores by which a branch modified an array, if there are few
    results      the results of a branch that represent stores
    applied      an array after the stores
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.core.handle import wrap
from wengert._engine.core.node import Node, constant
from wengert._engine.core.op import lookup
from wengert._engine.core.spec import Spec
from wengert._engine.ops.casts import astype

from .values import placeholder_value

_MOST_STORES = 4


class BranchStore(NamedTuple):
    """A store to elements of an array.

    branch : the number of its branch.
    template : the index without its operands.
    operands : integers of the index.
    value : the stored value, with the dtype of the array.
    """

    branch: int
    template: Any
    operands: tuple[Node, ...]
    value: Any


def stores_of(branch: int, after: Node, before: Node) -> list[BranchStore] | None:
    """The stores that turn an array into its value after a branch; None if not possible."""
    found: list[BranchStore] = []
    setitem, node = lookup("setitem"), after
    while node is not before:
        if node.op is not setitem or len(found) == _MOST_STORES:
            return None
        array, value, *operands = node.args
        specs = [x.spec if isinstance(x, Node) else None for x in operands]
        if any(s is None or s.shape or s.dtype.kind not in "iu" for s in specs):
            return None
        value = wrap(value if isinstance(value, Node) else constant(np.asarray(value)[()]))
        made = astype(value, before.spec.dtype) if value.dtype != before.spec.dtype else value
        found.append(BranchStore(branch, node.params["index"], tuple(operands), made))
        node = array
    return found[::-1]


def results(stores: Sequence[BranchStore], branch: int) -> list[Any]:
    """The value and index of each store; zeros in the branch without it."""
    found: list[Any] = []
    for store in stores:
        spec = store.value.node.spec
        if store.branch == branch:
            found += [store.value, *store.operands]
            continue
        found.append(placeholder_value(Spec(spec.shape, spec.dtype)))
        found += [np.zeros((), x.spec.dtype)[()] for x in store.operands]
    return found


def applied(array: Node, stores: Sequence[BranchStore], outs: Iterator[Any], test: Any) -> Node:
    """An array after the stores of the branch that was taken.

    Parameters
    ----------
    array : Node
    stores : sequence of BranchStore
    outs : iterator
        The results of the conditional, for `results`.
    test : Tensor
        Whether branch 1 is taken.
    """
    current = wrap(array)
    for store in stores:
        value = next(outs)
        operands = [next(outs) for _ in store.operands]
        taken = test if store.branch == 1 else lookup("logical_not")(test)
        now = lookup("getitem")(current, *operands, index=store.template)
        value = lookup("where")(taken, value, now)
        current = lookup("setitem")(current, value, *operands, index=store.template)
    made: Node = current.node
    return made
