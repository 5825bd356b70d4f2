"""Sets: NumPy's set operations on arrays of distinct elements.

union1d, intersect1d, setdiff1d, setxor1d   sorted elements; derivatives go to the first
                                            occurrence
isin                                        membership
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.handle import is_traced, wrap
from wengert._engine.core.node import constant
from wengert._engine.ops.indexing import getitem
from wengert._engine.tensor.numpy_dispatch import as_array, counterpart, plain, values
from wengert._engine.tensor.operand_conversion import needed

from .joining import concatenate
from .shape_manipulation import ravel

__all__ = ["union1d", "intersect1d", "setdiff1d", "setxor1d", "isin"]


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
