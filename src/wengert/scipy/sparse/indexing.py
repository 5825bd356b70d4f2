"""Indexing of sparse arrays, and changes in place.

    Indexing       the mixin: A[i, j], A[i, j] = x, setdiag, sum_duplicates, sort_indices, resize
    DenseElements  a dense array, all of whose elements are moved into a sparse one

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

from .rearrangement import rearranged
from .reductions import Reductions
from .structure import Structure, structure_of


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
