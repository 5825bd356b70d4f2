"""SparseParts: what the mixins of sparse arrays use of each other.

A sparse array is a structure and the data; `like` makes an array of the same family (arrays or
matrices) in the format of another structure.
"""

from __future__ import annotations

from typing import Any, Self

from wengert._engine.core.handle import Handle, dtype_of

from .structure import Structure

# The classes of arrays that are made element by element (assembled.py), by format and family.
ASSEMBLED: dict[tuple[str, bool], Any] = {}


def with_tensors(x: Any) -> Any:
    """The array with tensors that a lil or dok array has (lil_dok.py); other objects as given."""
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
