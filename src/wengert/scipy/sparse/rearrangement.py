"""Operations that move elements of sparse arrays: planned once for each structure.

SciPy's function is called once, for arrays whose elements are their positions (`numbered`); its
result shows from where each element comes.  For data, plain or traced, the operation is then a
gather, a scatter, or nothing.

    Rearrangement    where the elements of a result come from
    rearranged       the sparse array, dense array or number that a function of SciPy makes
    summed           an array without duplicates
    planned          a value computed once for each combination of structures and parameters
"""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from wengert._engine.core.handle import dtype_of
from wengert._engine.core.op import lookup
from wengert._engine.core.thread_state import lock
from wengert._engine.ops import casts
from wengert._engine.ops.indexing.getitem import IndexSlot

from .structure import COMPRESSED, Structure, structure_of

_MAX_PLANS = 1024
_lock = lock()
_plans: OrderedDict[Hashable, Any] = OrderedDict()
Positions = np.ndarray[Any, Any]


class Rearrangement(NamedTuple):
    """Where the elements of a result come from.

    structure : of a sparse result; the shape of a dense one.
    source : the positions of the elements in the flattened data; None for all in order.
    target : their positions in the flattened data of the result; None for all in order.
    """

    structure: Structure | tuple[int, ...]
    source: Positions | None
    target: Positions | None

    def moved(self, data: Any) -> Any:
        """The data of the result."""
        values = flat(data)
        if self.source is not None:
            values = gathered(values, self.source)
        shape = self.structure
        if isinstance(shape, Structure):
            shape = shape.data_shape
        if self.target is not None:
            values = scattered(values, self.target, int(np.prod(shape)))
        return values if len(shape) == 1 else reshaped(values, shape)


def planned(key: Hashable, make: Callable[[], Any]) -> Any:
    """The value for a key, made at the first use; the last ones are kept."""
    with _lock:
        found = _plans.get(key)
        if found is not None:
            _plans.move_to_end(key)
            return found
    made = make()
    with _lock:
        _plans[key] = made
        while len(_plans) > _MAX_PLANS:
            _plans.popitem(last=False)
    return made


# ---- elements ------------------------------------------------------------------------------------


def reshaped(x: Any, shape: Any) -> Any:
    """`x` with another shape."""
    return lookup("reshape")(x, shape=tuple(shape))


def flat(x: Any) -> Any:
    """The elements as a vector."""
    return x if x.ndim == 1 else reshaped(x, (-1,))


def gathered(x: Any, positions: Positions) -> Any:
    """Elements of a vector."""
    return lookup("getitem")(x, positions, index=IndexSlot(0))


def scattered(x: Any, positions: Positions, size: int) -> Any:
    """A vector of zeros, to which the elements of a vector are added."""
    return lookup("scatter")(x, positions, index=IndexSlot(0), shape=(size,))


def as_dtype(x: Any, dtype: Any) -> Any:
    """`x` with a dtype."""
    return x if dtype_of(x) == dtype else casts.astype(x, dtype)


def joined(parts: Sequence[Any]) -> Any:
    """The elements of several arrays in one vector, of their common dtype."""
    if len(parts) == 1:
        return flat(parts[0])
    dtype = np.result_type(*[dtype_of(x) for x in parts])
    return lookup("concatenate")(*[as_dtype(flat(x), dtype) for x in parts], axis=0)


# ---- plans ---------------------------------------------------------------------------------------


def rearranged(name: Hashable, function: Callable[..., Any], *arrays: Any) -> Any:
    """``function(*arrays)`` for a function of SciPy that moves elements, and may drop some.

    Parameters
    ----------
    name : hashable
        The function with its parameters.
    function : callable
        It computes nothing with the elements, and returns a sparse array, a dense one or a number.
    *arrays
        Sparse arrays of wengert without duplicates, where the function would add them.

    Returns
    -------
    tuple of (Structure or tuple of int, array or tensor)
        The structure of a sparse result or the shape of a dense one, and the data.
    """
    structures = [a.structure for a in arrays]
    plan = planned(("move", name, *structures), lambda: _plan(function, structures))
    return plan.structure, plan.moved(joined([a.data for a in arrays]))


def _plan(function: Callable[..., Any], structures: Sequence[Structure]) -> Rearrangement:
    numbered, begin = [], 0
    for s in structures:
        positions = np.arange(begin + 1, begin + s.size + 1).reshape(s.data_shape)
        numbered.append(s.filled(positions) if begin else s.numbered.copy())
        begin += s.size
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sp.SparseEfficiencyWarning)  # it is called once
        result = function(*numbered)
    if not sp.issparse(result):
        numbers = np.asarray(result)
        return _moves(numbers.shape, numbers, begin)
    structure = structure_of(result)
    if result.format not in (*COMPRESSED, "coo", "dia"):
        result = result.tocsr()
    return _moves(structure, result.data, begin)


def _moves(structure: Any, numbers: Any, count: int) -> Rearrangement:
    """The rearrangement that an array of positions, counted from 1, shows; 0 is no element."""
    numbers = np.ravel(numbers)
    target = None
    if not numbers.all():
        target = np.flatnonzero(numbers)
        numbers = numbers[target]
    source = None if _is_range(numbers, count) else numbers.astype(np.intp) - 1
    return Rearrangement(structure, source, target)


def _is_range(numbers: Any, count: int) -> bool:
    return len(numbers) == count and bool((numbers == np.arange(1, count + 1)).all())


# ---- duplicates ----------------------------------------------------------------------------------


def summed(structure: Structure, data: Any) -> tuple[Structure, Any]:
    """The structure without duplicates, with sorted elements, and the data: sums in their order."""
    if structure.is_canonical:
        return structure, data
    plan = planned(("sum", structure), lambda: _sums(structure))
    return plan.structure, plan.moved(data)


def _sums(structure: Structure) -> Rearrangement:
    """The sums of duplicates, as a scatter that repeats positions."""
    if structure.format == "bsr":
        return _sums_of_blocks(structure)
    coords = structure.numbered.tocoo(copy=False).coords if structure.format != "coo" else None
    axes = structure.arrays if coords is None else coords
    if structure.format == "csc":
        axes = axes[::-1]
    order, positions = _groups(axes)
    first = order[np.flatnonzero(np.diff(positions[order], prepend=-1))]
    axes = tuple([a[first] for a in axes])
    if structure.format == "csc":
        axes = axes[::-1]
    pattern: Any = sp.coo_array((np.ones(len(first), np.int8), axes), shape=structure.shape)
    if structure.format != "coo":
        pattern = pattern.asformat(structure.format)
    if len(first) == len(order):  # sorted only
        return Rearrangement(structure_of(pattern), order, None)
    return Rearrangement(structure_of(pattern), None, positions)


def _groups(axes: Sequence[Positions]) -> tuple[Positions, Positions]:
    """The stable order of positions, and the index of each among the distinct ones."""
    order = np.lexsort(tuple(reversed(axes)))
    starts = np.zeros(len(order), bool)
    for a in axes:
        step = np.diff(a[order])
        starts[1:] |= step != 0
    positions = np.empty(len(order), np.intp)
    positions[order] = np.cumsum(starts)
    return order, positions


def _sums_of_blocks(structure: Structure) -> Rearrangement:
    """The same for blocks."""
    count, *block = structure.data_shape
    indices, indptr = structure.arrays
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    order, positions = _groups((rows, indices))
    first = order[np.flatnonzero(np.diff(positions[order], prepend=-1))]
    counts = np.bincount(rows[first], minlength=len(indptr) - 1)
    starts = np.concatenate([[0], np.cumsum(counts)])
    pattern = sp.bsr_array(
        (np.ones((len(first), *block), np.int8), indices[first], starts), shape=structure.shape
    )
    inside = np.arange(int(np.prod(block)))
    places = (positions[:, None] * len(inside) + inside).ravel()
    return Rearrangement(structure_of(pattern), None, places if count else None)
