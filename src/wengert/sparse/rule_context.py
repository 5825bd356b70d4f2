"""Dependency sets: the inputs that each element depends on; the context of sparsity rules.

    chosen                            every element has the set of one element, or none
    gathered                          the union of the sets of some elements
    through                           the union along an explicit relation of elements
    united                            several sets of the same elements
    stacked, repeated, turned, equal  of whole matrices
    NodeContext                       the node, with the sets of its operands
    everything                        the rule for opaque operations
    size_of                           the number of elements of a spec

Sets are boolean sparse matrices: a row for each element in C order, a column for each input
element; a stored entry means "may depend".  The effect of every node on such sets is one of the
first functions.  Memory and time are linear in the stored entries of each result.

A context has the operands that depend on anything, with sizes and known values.  The fallback of
all rules is here too: `everything`, by which each element of the result depends on all that any
element of any operand depends on.  That is always correct; other rules give smaller sets.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array, eye_array, kron, vstack

from wengert._engine.core.node import Node
from wengert._engine.core.spec import Spec
from wengert.errors import ShapeError, at, user_line

from .known_values import KnownValues

Sets = Any  # csr_array of bool; SciPy has no types
Numbers = np.ndarray[Any, np.dtype[np.int64]]
ENTRIES = 1 << 27  # of one node's pattern; nine bytes each


def nothing(rows: int, columns: int) -> Sets:
    """Elements that depend on nothing."""
    return csr_array((rows, columns), dtype=np.bool_)


def places(rows: int, columns: int, first: int) -> Sets:
    """Element k depends on input element `first` + k: the sets of an input."""
    return relation(np.arange(rows), np.arange(first, first + rows), (rows, columns))


def relation(rows: Any, columns: Any, shape: tuple[int, int]) -> Sets:
    """The matrix with entries at these positions, which may repeat."""
    return csr_array((np.ones(len(rows), np.bool_), (rows, columns)), shape=shape)


def refuse_full(count: int) -> None:
    """Raise an error if there are so many entries that the derivative is not sparse.

    Raises
    ------
    ShapeError
    """
    if count > ENTRIES:
        raise ShapeError(
            f"the pattern of a derivative has {count:,} entries at some node, more than "
            f"{ENTRIES:,}: the derivative is not sparse, or an opaque operation makes all results "
            "depend on all operands. Inspect it with wengert.sparsity for a small size; for a full "
            f"matrix use wengert.jacobian{at(user_line())}."
        )


def chosen(sets: Sets, numbers: Numbers) -> Sets:
    """For each number the set of that element, counted from 1; 0 is the empty set."""
    flat = numbers.ravel()
    counts = np.diff(sets.indptr, prepend=0)  # with that of number 0, which is empty, in front
    counts[0] = 0
    refuse_full(int(counts[flat].sum(dtype=np.int64)))
    if flat.size and flat.min() > 0:
        return sets[flat - 1]
    return vstack([nothing(1, sets.shape[1]), sets], format="csr")[flat]


def gathered(sets: Sets, groups: Numbers, count: int) -> Sets:
    """For each of `count` groups the union of its elements' sets; group -1 is ignored."""
    flat = groups.ravel()
    inside = np.flatnonzero(flat >= 0)
    return relation(flat[inside], inside, (count, sets.shape[0])) @ sets


def through(local: Sets, sets: Sets) -> Sets:
    """The sets of results; row k of `local` has the elements that result k depends on."""
    if local.shape[0] * sets.shape[1] > ENTRIES:
        refuse_full(int(np.diff(sets.indptr)[local.indices].sum(dtype=np.int64)))
    return local @ sets


def united(sets: Sequence[Sets]) -> Sets:
    """The union, element by element, of one or more matrices."""
    total = sets[0]
    for other in sets[1:]:
        if other is not total:
            total = total + other
    return total


def stacked(sets: Sequence[Sets], columns: int) -> Sets:
    """The sets of several arrays, concatenated."""
    if len(sets) == 1:
        return sets[0]
    return vstack(sets, format="csr") if sets else nothing(0, columns)


def repeated(local: Sets, times: int) -> Sets:
    """The block-diagonal relation of many concatenated arrays."""
    return csr_array(kron(eye_array(times, dtype=np.bool_), local, format="csr"))


def turned(sets: Sets) -> Sets:
    """The transpose: the elements that depend on each input element."""
    return csr_array(sets.T)


def equal(a: Sets, b: Sets) -> bool:
    """Whether two matrices have the same pattern."""
    if a.nnz != b.nnz:
        return False
    a.sort_indices()
    b.sort_indices()
    return np.array_equal(a.indptr, b.indptr) and np.array_equal(a.indices, b.indices)


class NodeContext:
    """One node.

    Parameters
    ----------
    node : Node
    sets : sequence
        For each operand the sets of its elements; None for one that depends on nothing.
    columns : int
        The number of scalars to differentiate with respect to.
    values : KnownValues, optional
        The known values of the graph.
    """

    def __init__(
        self,
        node: Node,
        sets: Sequence[Sets | None],
        columns: int,
        values: KnownValues | None = None,
    ) -> None:
        self.node, self.sets, self.columns = node, list(sets), columns
        self.values = values or KnownValues()
        self.op: Any = node.op
        self.params = node.params
        self.specs = [a.spec for a in node.inputs]
        self.moving = [k for k, s in enumerate(sets) if s is not None]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the result, if it is one array."""
        return self.node.spec.shape  # type: ignore[no-any-return]

    @property
    def size(self) -> int:
        """The size of the result, if it is one array."""
        return size_of(self.node.spec)

    def known(self, k: int) -> Any:
        """The value of an operand, if it does not depend on data; else None."""
        return self.values.of(self.node.inputs[k])

    def others_known(self) -> bool:
        """Whether the values of all operands that depend on nothing are known."""
        return all(self.known(k) is not None for k, s in enumerate(self.sets) if s is None)

    def numbers(self, k: int, first: int = 1) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The elements of an operand, counted in C order."""
        spec = self.specs[k]
        return np.arange(first, first + size_of(spec)).reshape(spec.shape)


def size_of(spec: Any) -> int:
    """The number of elements of an array of that spec.

    Raises
    ------
    ShapeError
        It is symbolic.
    """
    size = math.prod(spec.shape) if type(spec) is Spec else None
    if not isinstance(size, int):
        raise ShapeError(
            f"the sparsity pattern cannot be computed, because {spec} has an unknown length: the "
            "number of steps of a while_loop, or a symbolic size. Pass arrays, and "
            f"use a loop of known length (scan, fori_loop){at(user_line())}."
        )
    return size


def everything(ctx: NodeContext) -> Any:
    """Each element of each result depends on everything that any operand depends on."""
    all_of = united([one_of(ctx.sets[k]) for k in ctx.moving])
    spec = ctx.node.spec
    if isinstance(spec, tuple):
        return [spread(all_of, size_of(s)) if s.dtype.kind in "fc" else None for s in spec]
    return spread(all_of, ctx.size)


def one_of(sets: Sets) -> Sets:
    """The union over all elements."""
    return gathered(sets, np.zeros(sets.shape[0], np.int64), 1)


def spread(sets: Sets, count: int) -> Sets:
    """One set, repeated for many elements."""
    if not count:
        return nothing(0, sets.shape[1])
    return chosen(sets, np.ones(count, np.int64))
