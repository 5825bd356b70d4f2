"""The two parts of a sparse array: where the elements are, which never changes, and the data.

    Structure     format, shape and index arrays, which never change; compared by content
    structure_of  the structure of a sparse array, of wengert or SciPy
    SparseParts   what the mixins of sparse arrays use of each other

A structure is the static part of a sparse array (arrays.py), whose other part, `data`, is an array
or a tensor; `like` makes an array of the same family (arrays or
matrices) in the format of another structure.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Hashable
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from wengert._engine.core.handle import Handle, dtype_of
from wengert._engine.core.thread_state import lock

_MAX_KEPT = 256
_MAX_OF_KEY = 8
_SAMPLE = 32  # elements
COMPRESSED = ("csr", "csc", "bsr")
FORMATS = (*COMPRESSED, "coo", "dia")
CLASSES: dict[str, Any] = {name: getattr(sp, f"{name}_array") for name in FORMATS}

_lock = lock()
_kept: OrderedDict[Hashable, list[Structure]] = OrderedDict()


class Structure:
    """The positions of the elements of a sparse array; created by `structure_of`.

    Attributes
    ----------
    format : str
        csr, csc, coo, dia or bsr.
    shape : tuple of int
        Of the array.
    arrays : tuple of numpy.ndarray
        Read-only: indices and indptr (csr, csc, bsr), one array for each axis (coo), or the offsets
        (dia).
    data_shape : tuple of int
        Of the array of the elements.
    """

    def __init__(
        self,
        form: str,
        shape: tuple[int, ...],
        arrays: tuple[np.ndarray[Any, Any], ...],
        data_shape: tuple[int, ...],
        hash_value: int,
    ) -> None:
        self.format, self.shape, self.arrays, self.data_shape = form, shape, arrays, data_shape
        self._hash = hash_value

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, Structure)
            and self._hash == other._hash
            and (self.format, self.shape) == (other.format, other.shape)
            and self.data_shape == other.data_shape
            and self.has_arrays(other.arrays)
        )

    def __hash__(self) -> int:
        return self._hash

    def has_arrays(self, arrays: tuple[np.ndarray[Any, Any], ...]) -> bool:
        """Whether the index arrays are equal to these."""
        pairs = zip(self.arrays, arrays, strict=True)
        return all(a is b or (a.dtype == b.dtype and np.array_equal(a, b)) for a, b in pairs)

    def __repr__(self) -> str:
        return f"<structure of a {self.format} array of shape {self.shape}, {self.nnz} elements>"

    def __reduce__(self) -> Any:
        return _interned, (self.format, self.shape, self.arrays, self.data_shape)

    @property
    def size(self) -> int:
        """The number of elements of `data`."""
        return math.prod(self.data_shape)

    @cached_property
    def nnz(self) -> int:
        """The number of stored elements."""
        return int(self.numbered.nnz)

    def filled(self, data: np.ndarray[Any, Any]) -> Any:
        """SciPy's array with this structure, and plain elements."""
        make: Any = CLASSES[self.format]
        if self.format in COMPRESSED:
            indices, indptr = self.arrays
            return make((data, indices, indptr), shape=self.shape)
        if self.format == "coo":
            return make((data, self.arrays), shape=self.shape)
        return make((data, self.arrays[0]), shape=self.shape)

    @cached_property
    def numbered(self) -> Any:
        """SciPy's array whose elements are their positions in `data`, counted from 1.

        What SciPy's functions do with it shows where they move each element (rearrangement.py).
        """
        return self.filled(np.arange(1, self.size + 1).reshape(self.data_shape))

    @cached_property
    def is_canonical(self) -> bool:
        """Whether elements are sorted, and none is stored twice."""
        if self.format == "dia":
            return True
        if self.format != "coo":
            return bool(self.numbered.has_canonical_format)
        return _are_sorted(self.arrays)

    @property
    def is_padded(self) -> bool:
        """Whether some elements of `data` may be outside of the array."""
        return self.format == "dia"


def _are_sorted(coords: tuple[np.ndarray[Any, Any], ...]) -> bool:
    """Whether positions are in C order, and none occurs twice."""
    if len(coords[0]) < 2:
        return True
    later = np.zeros(len(coords[0]) - 1, bool)
    for axis in reversed(coords):
        step = np.diff(axis)
        later = (step > 0) | ((step == 0) & later)
    return bool(later.all())


def _interned(
    form: str,
    shape: tuple[int, ...],
    arrays: tuple[np.ndarray[Any, Any], ...],
    data_shape: tuple[int, ...],
) -> Structure:
    """The structure with this content; the last ones are kept, with what is planned for them."""
    key = (form, shape, data_shape, *[(a.dtype.str, a.shape, _sample(a)) for a in arrays])
    with _lock:
        found = [s for s in _kept.get(key, ()) if s.has_arrays(arrays)]
        if found:
            _kept.move_to_end(key)
            return found[0]
    copies = tuple([np.array(a) for a in arrays])
    for a in copies:
        a.flags.writeable = False
    made = Structure(form, shape, copies, data_shape, hash(key))
    with _lock:
        _kept[key] = [made, *_kept.get(key, [])[: _MAX_OF_KEY - 1]]
        _kept.move_to_end(key)
        while len(_kept) > _MAX_KEPT:
            _kept.popitem(last=False)
    return made


def _sample(array: np.ndarray[Any, Any]) -> bytes:
    """Some elements of an index array, by which structures are found; all are compared then."""
    return array[:: max(1, len(array) // _SAMPLE)].tobytes() if array.ndim else b""


def structure_of(array: Any) -> Structure:
    """The structure of a sparse array; that of one of SciPy as it is now."""
    found = getattr(array, "structure", None)
    if isinstance(found, Structure):
        return found
    if array.format not in FORMATS:
        array = array.tocsr()
    if array.format in COMPRESSED:
        arrays: tuple[Any, ...] = (array.indices, array.indptr)
    else:
        arrays = tuple(array.coords) if array.format == "coo" else (array.offsets,)
    shape = tuple([int(n) for n in array.shape])
    return _interned(array.format, shape, arrays, tuple(array.data.shape))


# The classes of arrays that are made element by element (assembled.py), by format and family.
ASSEMBLED: dict[tuple[str, bool], Any] = {}


def with_tensors(x: Any) -> Any:
    """The array with tensors that a lil or dok array has; other objects as given."""
    return getattr(x, "__dict__", {}).get("assembled", x)


class SparseParts:
    """The two parts of a sparse array.

    Attributes
    ----------
    structure : Structure
        The positions of the elements.
    data : array or tensor
        The elements, of the shape ``structure.data_shape``.
    """

    __slots__ = ("data", "structure")

    structure: Structure
    data: Any
    is_matrix = False
    captured_parts = ("data", "structure")  # what a compiled function that captures one reads

    def like(self, structure: Structure, data: Any) -> Any:
        """An array of the same family, with another structure."""
        raise NotImplementedError

    @staticmethod
    def as_sparse(x: Any) -> Any:
        """A sparse array of wengert or SciPy as one of wengert; None for other objects."""
        raise NotImplementedError

    def made_dense(self, x: Any) -> Any:
        """A dense vector as a sparse array with all elements, as SciPy returns it."""
        raise NotImplementedError

    def as_matrix(self, plain: Any) -> Any:
        """SciPy's matrix of this format."""
        raise NotImplementedError

    def scipy_array(self, data: Any) -> Any:
        """SciPy's array with this structure, and plain elements."""
        filled = self.structure.filled(data)
        return self.as_matrix(filled) if self.is_matrix else filled

    @property
    def format(self) -> str:
        """The format: csr, csc, coo, dia or bsr."""
        return self.structure.format

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape."""
        return self.structure.shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.structure.shape)

    @property
    def dtype(self) -> Any:
        """The dtype of the elements."""
        return dtype_of(self.data)

    @property
    def nnz(self) -> int:
        """The number of stored elements."""
        return self.structure.nnz

    @property
    def size(self) -> int:
        """The number of stored elements."""
        return self.structure.nnz

    @property
    def indices(self) -> Any:
        """The column of each element (row, in csc; of blocks, in bsr), read-only."""
        return self._index_array("indices", 0, "csr", "csc", "bsr")

    @property
    def indptr(self) -> Any:
        """Where the rows (columns, in csc) begin in `indices`, read-only."""
        return self._index_array("indptr", 1, "csr", "csc", "bsr")

    @property
    def coords(self) -> Any:
        """The index arrays of a coo array, one for each axis."""
        self._index_array("coords", 0, "coo")
        return self.structure.arrays

    @property
    def row(self) -> Any:
        """The row of each element of a coo array."""
        return self._index_array("row", -2, "coo") if self.ndim > 1 else self.col * 0

    @property
    def col(self) -> Any:
        """The column of each element of a coo array."""
        return self._index_array("col", -1, "coo")

    @property
    def offsets(self) -> Any:
        """The diagonals of a dia array."""
        return self._index_array("offsets", 0, "dia")

    @property
    def blocksize(self) -> tuple[int, int]:
        """The shape of the blocks of a bsr array."""
        self._index_array("blocksize", 0, "bsr")
        _, rows, columns = self.structure.data_shape
        return rows, columns

    def _index_array(self, name: str, position: int, *formats: str) -> Any:
        if self.format not in formats:
            raise AttributeError(f"a {self.format} array has no attribute {name!r}")
        return self.structure.arrays[position]

    @property
    def has_sorted_indices(self) -> bool:
        """Whether the elements of each row (column) are sorted."""
        return bool(self.structure.numbered.has_sorted_indices)

    @property
    def has_canonical_format(self) -> bool:
        """Whether elements are sorted, and none is stored twice."""
        return self.structure.is_canonical

    def getformat(self) -> str:
        """The format."""
        return self.format

    def get_shape(self) -> tuple[int, ...]:
        """The shape."""
        return self.shape

    def getnnz(self, axis: int | None = None) -> Any:
        """The number of stored elements, in all or along an axis."""
        return self.structure.numbered._getnnz(axis) if axis is not None else self.nnz

    @property
    def is_plain(self) -> bool:
        """Whether the elements are a plain array, not a tensor."""
        return not isinstance(self.data, Handle)

    def __len__(self) -> int:
        raise TypeError("the length of a sparse array is ambiguous: use A.nnz or A.shape[0]")

    def __bool__(self) -> bool:
        if self.shape == (1, 1):
            return bool(self.data.sum())
        raise ValueError("a sparse array is neither true nor false: use A.nnz, or reduce it")

    def __reduce__(self) -> Any:
        return _restored, (type(self), self.structure, self.data)

    def unchanged(self) -> Self:
        """The array itself, for SciPy's functions that return it."""
        return self


def _restored(cls: Any, structure: Structure, data: Any) -> Any:
    """A pickled array."""
    return cls.made(structure, data)
