"""Reductions of sparse arrays, indexing, and changes in place.

    Reductions     the mixin: sum, mean, max, min, count_nonzero
    Indexing       the mixin: A[i, j], A[i, j] = x, setdiag, sum_duplicates, sort_indices, resize
    DenseElements  a dense array, all of whose elements are moved into a sparse one

Elements that are not stored are zeros.

An index must be known: the structure of the result depends on it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from wengert._engine.core.handle import Handle, is_traced, shape_of
from wengert._engine.core.node_properties import frozen
from wengert._engine.core.op import lookup
from wengert._engine.tensor.operand_conversion import known
from wengert.errors import ConversionError, TraceError, at, user_line

from .arithmetic import Arithmetic
from .rearrangement import as_dtype, coordinates, rearranged, reshaped, scattered
from .structure import Structure, structure_of


class Reductions(Arithmetic):
    """Mixin: reductions."""

    __slots__ = ()

    def sum(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        """The sum of all elements, or along an axis: a dense vector (a row or column of a matrix).

        Sums are in the order of the stored elements.
        """
        if out is not None:
            raise ConversionError(
                f"A.sum(out=...) of a sparse array of tensors: use the result{at(user_line())}."
            )
        array = self.tocsr() if self.structure.is_padded else self
        data = array.data if dtype is None else as_dtype(array.data, np.dtype(dtype))
        if data.dtype.kind == "b":
            data = as_dtype(data, np.dtype(np.int_))
        axis = _axis(axis, self.ndim)
        if axis is None or self.ndim == 1:
            return lookup("sum")(data)
        if array.format == "bsr":
            array = array.tocsr()
            data = as_dtype(array.data, data.dtype)
        kept = 1 - axis
        positions = np.asarray(coordinates(array)[kept], np.intp)
        total = scattered(data, positions, self.shape[kept])
        if not self.is_matrix:
            return total
        count = self.shape[kept]
        return reshaped(total, (1, count) if axis == 0 else (count, 1))

    def mean(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        """The mean of all elements, zeros included, or along an axis."""
        if dtype is None and self.dtype.kind in "iub":
            dtype = float
        axis = _axis(axis, self.ndim)
        count = int(np.prod(self.shape)) if axis is None else self.shape[axis]
        return lookup("divide")(self.sum(axis, dtype, out), count)

    def max(self, axis: Any = None, out: Any = None, *, explicit: bool = False) -> Any:
        """The largest element of all, zeros included unless `explicit`; along an axis: dense."""
        return self._extreme_element("max", "maximum", axis, explicit)

    def min(self, axis: Any = None, out: Any = None, *, explicit: bool = False) -> Any:
        """The smallest element of all, zeros included unless `explicit`; along an axis: dense."""
        return self._extreme_element("min", "minimum", axis, explicit)

    def _extreme_element(self, name: str, pair: str, axis: Any, explicit: bool) -> Any:
        if axis is not None and self.ndim > 1:
            if explicit:
                raise NotImplementedError(f"A.{name}(axis, explicit=True){at(user_line())}.")
            return lookup(name)(self.toarray(), axis=axis)
        array = (self.tocsr() if self.structure.is_padded else self).canonical()
        count = int(np.prod(self.shape))
        if count == 0 or (explicit and not array.nnz):
            raise ValueError("zero-size array to reduction operation")
        zero = np.zeros((), array.dtype)[()]
        if not array.nnz:
            return zero
        found = lookup(name)(array.data)
        return found if explicit or array.nnz == count else lookup(pair)(found, zero)

    def count_nonzero(self, axis: int | None = None) -> Any:
        """The number of elements that are not zero, of all or along an axis."""
        return self.canonical().with_data(self.canonical().data != 0).sum(axis)


def _axis(axis: Any, ndim: int) -> int | None:
    """The axis, not negative; None for all."""
    if axis is None or (isinstance(axis, tuple) and len(set(axis)) == ndim):
        return None
    if isinstance(axis, tuple) and len(axis) == 1:
        axis = axis[0]
    if not -ndim <= axis < ndim:
        raise ValueError(f"axis {axis} of a sparse array with {ndim} axes{at(user_line())}.")
    return int(axis % ndim)


class Indexing(Reductions):
    """Mixin: elements, and changes in place."""

    __slots__ = ()

    def __getitem__(self, index: Any) -> Any:
        index = plain_index(index)
        return self.moved(("getitem", _key(index)), lambda a: a[index])

    def __setitem__(self, index: Any, value: Any) -> None:
        index = plain_index(index)

        def assigned(a: Any, b: Any) -> Any:
            a = a.copy()
            a[index] = b
            return a

        self._assign(("setitem", _key(index)), assigned, value)

    def _assign(self, name: Any, function: Any, value: Any) -> None:
        """Replace the parts by those after an assignment of a dense or sparse value."""
        array = self.as_sparse(value)
        if array is None:
            array = DenseElements(value)
        else:
            array = array.canonical().tocsr()
        key, given = (name, "value", shape_of(array.data)), array.structure
        structure, data = rearranged(key, function, self.canonical(), array)
        assert isinstance(structure, Structure), given
        self.structure, self.data = structure, data

    def setdiag(self, values: Any, k: int = 0) -> None:
        """Assign a diagonal, which is added to the structure where it is not in it."""

        def assigned(a: Any, b: Any) -> Any:
            a = a.tocsr()
            a.setdiag(b if np.ndim(b) else b[()], k)
            return a.asformat(self.format)

        self._assign(("setdiag", k, self.format), assigned, values)

    def sum_duplicates(self) -> None:
        """Sum the elements that are stored more than once, in place."""
        array = self.canonical()
        self.structure, self.data = array.structure, array.data

    def sort_indices(self) -> None:
        """Sort the elements of each row (column), in place."""
        array = self.sorted_indices()
        self.structure, self.data = array.structure, array.data

    def sorted_indices(self) -> Any:
        """The array with sorted elements in each row (column)."""
        return self.moved("sorted", lambda a: a.sorted_indices(), canonical=False)

    def eliminate_zeros(self) -> None:
        """Refused for tensors: which elements are zero depends on values."""
        if not self.is_plain:
            raise ConversionError(
                "A.eliminate_zeros() of a sparse array of tensors: which elements remain depends "
                "on values. Leave it out, since stored zeros do not change results, or remove "
                f"elements by their positions{at(user_line())}."
            )
        plain = self.numpy()
        plain.eliminate_zeros()
        self.structure, self.data = structure_of(plain), plain.data

    def prune(self) -> None:
        """Nothing: there is no memory after the elements."""

    def check_format(self, full_check: bool = True) -> None:
        """Check the index arrays."""
        check = getattr(self.structure.numbered, "check_format", None)
        if check is not None:
            check(full_check)

    def nonzero(self) -> Any:
        """The coordinates of the elements that are not zero; refused for tensors."""
        if not self.is_plain:
            raise ConversionError(
                "A.nonzero() of a sparse array of tensors depends on values: use the coordinates "
                f"of the stored elements, A.tocoo().coords{at(user_line())}."
            )
        return self.numpy().nonzero()

    def __iter__(self) -> Any:
        for i in range(self.shape[0]):
            yield self[i]


class DenseElements:
    """A dense array as an array whose structure has all elements."""

    is_matrix = True  # it does not decide whether a result is an array

    def __init__(self, value: Any) -> None:
        self.data: Any = value if isinstance(value, Handle) else np.asarray(value)
        self.structure: Any = DenseStructure(tuple(shape_of(self.data)))
        if not self.structure.shape:
            self.data = lookup("reshape")(self.data, shape=(1,))


class DenseStructure:
    """The structure of a dense value of a shape."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.data_shape = shape or (1,)
        self.size = int(np.prod(shape))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DenseStructure) and self.shape == other.shape

    def __hash__(self) -> int:
        return hash(self.shape)

    def filled(self, numbers: Any) -> Any:
        """The dense array of these elements."""
        return np.reshape(numbers, self.shape)

    @property
    def numbered(self) -> Any:
        """As of a structure."""
        return self.filled(np.arange(1, self.size + 1))


def _key(index: Any) -> Any:
    """A hashable key of an index."""
    parts = index if isinstance(index, tuple) else (index,)
    return (
        isinstance(index, tuple),
        *[structure_of(p) if sp.issparse(p) else frozen(p) for p in parts],
    )


def plain_index(index: Any) -> Any:
    """An index with plain arrays and numbers.

    Raises
    ------
    TraceError
        A part of it is not known while a graph is built.
    """
    if isinstance(index, tuple):
        return tuple([plain_index(p) for p in index])
    if isinstance(index, slice):
        return slice(*[plain_index(p) for p in (index.start, index.stop, index.step)])
    if not isinstance(index, Handle):
        return index
    if is_traced(index):
        raise TraceError(
            "a sparse array at an index that is not known while a graph is built: the structure of "
            "the result depends on it. Use the elements and their coordinates, A.data and "
            f"A.tocoo().coords, or a dense array{at(user_line())}."
        )
    return known(index, "the index of a sparse array")
