"""Sorting, searching, unique elements, and operations on sets.

    union1d, intersect1d, setdiff1d, setxor1d
                                          sorted elements; derivatives go to the first occurrence
    isin                                  membership

Values are sorted by a gather at integer positions, whose derivative is a scatter. Equal elements
are in the order of NumPy's algorithm.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.handle import is_traced, value_of, wrap
from wengert._engine.core.node import constant
from wengert._engine.ops import casts, sorting
from wengert._engine.ops.indexing import getitem
from wengert._engine.ops.indexing.masks import true_positions
from wengert._engine.ops.indexing.window_functions import applied, as_window
from wengert._engine.ops.shapes import reshape
from wengert._engine.tensor.numpy_dispatch import as_array, counterpart, plain, values
from wengert._engine.tensor.operand_conversion import needed, refuse_leaked
from wengert.errors import DtypeError, at, user_line

from .joining import concatenate
from .shape_manipulation import ravel

__all__ = """
    sort argsort partition argpartition lexsort sort_complex searchsorted digitize nonzero
    flatnonzero argwhere unique unique_values unique_counts unique_inverse unique_all union1d
    intersect1d setdiff1d setxor1d isin
""".split()


def _line(a: Any, axis: int | None) -> tuple[Any, int]:
    """The array and the axis to sort along; flattened if axis is None."""
    a = as_array(a)
    return (reshape(a, shape=(-1,)), 0) if axis is None else (a, axis)


def _kind(kind: Any, order: Any, stable: Any) -> Any:
    if order is not None:
        raise DtypeError(f"order={order!r}: tensors have no fields to sort by{at(user_line())}.")
    if stable is not None:
        if kind is not None:
            raise ValueError("`kind` and `stable` parameters can't be provided at the same time.")
        return "stable" if stable else None
    return kind


@counterpart(np.sort)
def sort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    """A sorted copy, as ``numpy.sort``.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> wg.grad(lambda x: np.sort(x)[0])(np.array([3.0, 1.0, 2.0]))
    array([0., 1., 0.])
    """
    a, axis = _line(a, axis)
    positions = np.argsort(value_of(a), axis=axis, kind=_kind(kind, order, stable))
    return sorting.gather_along(a, positions, axis=axis, unique=True)


@counterpart(np.argsort)
def argsort(
    a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> Any:
    """The positions that sort, as ``numpy.argsort``; integers, no derivative."""
    a, axis = _line(a, axis)
    return sorting.argsort(a, axis=axis, kind=_kind(kind, order, stable))


def _whole(kth: Any) -> Any:
    kth = value_of(kth)
    return tuple(kth) if isinstance(kth, list | np.ndarray) and np.ndim(kth) else kth


@counterpart(np.partition)
def partition(
    a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None
) -> Any:
    """A copy with the kth element in sorted position, as ``numpy.partition``."""
    _kind(None, order, None)
    a, axis = _line(a, axis)
    positions = np.argpartition(value_of(a), _whole(kth), axis=axis)
    return sorting.gather_along(a, positions, axis=axis, unique=True)


@counterpart(np.argpartition)
def argpartition(
    a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None
) -> Any:
    """Positions with the kth element in sorted position, as ``numpy.argpartition``."""
    _kind(None, order, None)
    a, axis = _line(a, axis)
    return sorting.argpartition(a, kth=_whole(kth), axis=axis)


@counterpart(np.lexsort)
def lexsort(keys: Any, axis: int = -1) -> Any:
    """The positions that sort by several keys, the last first, as ``numpy.lexsort``."""
    return sorting.lexsort(*[as_array(k) for k in keys], axis=axis)


@counterpart(np.sort_complex)
def sort_complex(a: Any) -> Any:
    """Complex numbers sorted by real part, then imaginary part, as ``numpy.sort_complex``."""
    a = sort(a, -1)
    if a.dtype.kind == "c":
        return a
    # As in NumPy, single precision for small integers only.
    return casts.astype(a, "F" if a.dtype.char in "bhBH" else "G" if a.dtype.char == "g" else "D")


# ---- searching ---------------------------------------------------------------------------------


@counterpart(np.searchsorted)
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    """The insertion indices of elements, as ``numpy.searchsorted``; no derivative."""
    operands = (as_array(a), as_array(v), *(() if sorter is None else (sorter,)))
    return sorting.searchsorted(*operands, side=side)


@counterpart(np.digitize)
def digitize(x: Any, bins: Any, right: bool = False) -> Any:
    """The number of the bin of each element, as ``numpy.digitize``; no derivative."""
    return sorting.digitize(as_array(x), as_array(bins), right=right)


@counterpart(np.nonzero)
def nonzero(a: Any) -> Any:
    """The indices of nonzero elements, as ``numpy.nonzero``; no derivative.

    Notes
    -----
    While a graph is built their number is not known: they can index arrays, be counted, reduced and
    looped over, but not be a result.
    """
    if is_traced(a):
        refuse_leaked(a, "np.nonzero")
        return tuple(true_positions(a))
    return sorting.nonzero(as_array(a))


@counterpart(np.flatnonzero)
def flatnonzero(a: Any) -> Any:
    """The indices of nonzero elements in the flattened array, as ``numpy.flatnonzero``."""
    return nonzero(reshape(as_array(a), shape=(-1,)))[0]


@counterpart(np.argwhere)
def argwhere(a: Any) -> Any:
    """The indices of nonzero elements, a row for each, as ``numpy.argwhere``."""
    return np.stack(nonzero(a), axis=1)


# ---- distinct elements -------------------------------------------------------------------------


@counterpart(np.unique)
def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    **_: Any,
) -> Any:
    """The distinct elements in order, as ``numpy.unique``.

    Notes
    -----
    The derivative of a distinct element goes to its first occurrence; positions and counts have
    none.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> wg.grad(lambda x: np.unique(x)[0])(np.array([2.0, 1.0, 1.0]))
    array([0., 1., 0.])
    """
    if is_traced(ar) and axis is None and equal_nan and not (return_index or return_inverse):
        return applied("unique", (as_window(ar),), {"return_counts": return_counts})
    needed(ar, "np.unique", "how many there are", "Sort them, np.sort(x), and compare neighbors")
    ar = as_array(ar)
    index, inverse, counts = sorting.unique_positions(ar, axis=axis, equal_nan=equal_nan)
    if axis is None:
        values = reshape(ar, shape=(-1,))[index]
    else:
        values = ar[tuple(index if k == axis % ar.ndim else slice(None) for k in range(ar.ndim))]
    wanted = zip(
        (return_index, return_inverse, return_counts), (index, inverse, counts), strict=True
    )
    more = [part for flag, part in wanted if flag]
    return (values, *more) if more else values


# NumPy's own named tuples, which have no public name.
Counts = type(np.unique_counts(np.empty(0)))
Inverse = type(np.unique_inverse(np.empty(0)))
All = type(np.unique_all(np.empty(0)))


@counterpart(np.unique_values)
def unique_values(x: Any) -> Any:
    """The distinct elements, as ``numpy.unique_values``; unsorted for some dtypes."""
    ordered = unique(x, equal_nan=False)
    places = np.argsort(np.argsort(np.unique_values(value_of(x)), kind="stable"))
    return ordered if np.array_equal(places, np.arange(places.size)) else ordered[places]


@counterpart(np.unique_counts)
def unique_counts(x: Any) -> Any:
    """The distinct elements and their counts, as a pair."""
    return Counts(*unique(x, return_counts=True, equal_nan=False))


@counterpart(np.unique_inverse)
def unique_inverse(x: Any) -> Any:
    """The distinct elements and the inverse indices, as a pair."""
    return Inverse(*unique(x, return_inverse=True, equal_nan=False))


@counterpart(np.unique_all)
def unique_all(x: Any) -> Any:
    """Distinct elements, first positions, inverse indices and counts."""
    return All(*unique(x, True, True, True, equal_nan=False))


def _check_known(what: str, *arrays: Any) -> None:
    remedy = "Test membership with np.isin, and select with np.where"
    for a in arrays:
        needed(a, what, "how many elements there are", remedy)


@counterpart(np.union1d)
def union1d(ar1: Any, ar2: Any) -> Any:
    """The union; see `numpy.union1d`."""
    _check_known("np.union1d", ar1, ar2)
    both = concatenate((as_array(ar1), as_array(ar2)), axis=None)
    return getitem.read(both, np.unique(plain(both), return_index=True)[1])


@counterpart(np.intersect1d)
def intersect1d(
    ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False
) -> Any:
    """The intersection, taken from the first array; see `numpy.intersect1d`."""
    _check_known("np.intersect1d", ar1, ar2)
    _, first, second = np.intersect1d(plain(ar1), plain(ar2), assume_unique, return_indices=True)
    common = getitem.read(ravel(as_array(ar1)), first)
    return (common, first, second) if return_indices else common


@counterpart(np.setdiff1d)
def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    """The elements of the first that are not in the second; see `numpy.setdiff1d`."""
    _check_known("np.setdiff1d", ar1, ar2)
    flat = ravel(as_array(ar1))
    values = plain(flat)
    order = np.arange(values.size) if assume_unique else np.unique(values, return_index=True)[1]
    return getitem.read(flat, order[~np.isin(values[order], plain(ar2))])


@counterpart(np.setxor1d)
def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    """The elements of exactly one of both; see `numpy.setxor1d`."""
    _check_known("np.setxor1d", ar1, ar2)
    both = concatenate((as_array(ar1), as_array(ar2)), axis=None)
    values, first = np.unique(plain(both), return_index=True)
    return getitem.read(both, first[np.isin(values, np.setxor1d(plain(ar1), plain(ar2)))])


@counterpart(np.isin)
def isin(
    element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *,
    kind: Any = None,
) -> Any:  # fmt: skip
    """Whether each element is among others, without derivative; see `numpy.isin`."""
    if is_traced(element) or is_traced(test_elements):
        return _traced_isin(values(element), values(test_elements), invert)
    found = np.isin(plain(element), plain(test_elements), assume_unique, invert, kind=kind)
    return wrap(constant(found))


def _traced_isin(element: Any, others: Any, invert: bool) -> Any:
    """`isin` by operations: sorting and searching."""
    line = np.sort(ravel(others))
    if line.size == 0:
        found = np.zeros_like(element, bool)
    else:
        places = np.minimum(np.searchsorted(line, element), line.size - 1)
        found = getitem.read(line, places) == element
    return ~found if invert else found
