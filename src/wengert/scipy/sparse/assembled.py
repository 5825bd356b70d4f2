"""Sparse arrays of tensors that are made element by element, the formats lil and dok.

    AssembledArray       elements by their positions
    AssembledRows ...    of the formats, as arrays and matrices

`lil_array` and `dok_array` become these at the first assignment of a tensor (lil_dok_pytrees.py).

Assigned tensors are kept as they are, and each position knows which element of which one is its
value; the last assignment counts.  What an array is used for (products, conversions, equations) is
done by the CSR array with these elements, which is made by one concatenation and one gather.

As in SciPy, assigned numbers that are zero are removed; which elements of a tensor are zero depends
on values, so all of them are stored.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from wengert._engine.core.handle import Handle, dtype_of, shape_of
from wengert._engine.core.op import lookup
from wengert._engine.ops import joining
from wengert.errors import DtypeError, ShapeError, at, user_line

from ..dispatch import holds_tensors
from .arrays import SparseArray, SparseMatrix, as_sparse
from .indexing_reductions import plain_index
from .rearrangement import as_dtype, gathered, reshaped
from .structure import ASSEMBLED, Structure, structure_of


class AssembledArray(SparseArray):
    """A sparse array whose elements are assigned one by one; created by `of` and `empty`."""

    __slots__ = ("_csr", "_dtype", "_given", "_pieces", "_places", "_shape")
    _csr: Any  # the CSR array with these elements, if it was made
    _dtype: np.dtype[Any]
    _given: Structure | None
    _pieces: list[Any]  # assigned vectors
    _places: dict[int, tuple[int, int]]  # position in the flattened array: piece, element of it
    _shape: tuple[int, ...]

    @classmethod
    def empty(cls, shape: tuple[int, ...], dtype: Any) -> Self:
        """An array without elements."""
        array: Self = object.__new__(cls)
        array._shape, array._dtype, array._csr = tuple(map(int, shape)), np.dtype(dtype), None
        array._places, array._pieces, array._given = {}, [], None
        return array

    @classmethod
    def of(cls, array: Any, dtype: Any = None) -> Self:
        """An array with the elements of a sparse one."""
        coo = as_sparse(array).tocoo().canonical()
        made = cls.empty(coo.shape, dtype or coo.dtype)
        if coo.nnz:
            made._place(np.ravel_multi_index(coo.coords, made._shape), coo.data)
        return made

    @classmethod
    def made(cls, structure: Structure, data: Any) -> Any:
        """An array with these parts."""
        return cls.of(SparseArray.like(cls.empty(structure.shape, float), structure, data))

    # ---- parts -------------------------------------------------------------------------------

    @property
    def structure(self) -> Structure:  # type: ignore[override]
        """The structure of the CSR array."""
        return self._compressed().structure  # type: ignore[no-any-return]

    @structure.setter
    def structure(self, given: Structure) -> None:
        self._given = given

    @property
    def data(self) -> Any:  # type: ignore[override]
        """The elements of the CSR array, row by row."""
        return self._compressed().data

    @data.setter
    def data(self, given: Any) -> None:
        structure = self.structure if self._given is None else self._given
        other = type(self).made(structure, given)
        self._shape, self._places, self._pieces = other._shape, other._places, other._pieces
        self._csr, self._given = None, None

    @property
    def format(self) -> str:
        """The format: lil or dok."""
        return str(type(self).scipy_format)  # type: ignore[attr-defined]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape."""
        return self._shape

    @property
    def dtype(self) -> Any:
        """The dtype of the elements."""
        return self._dtype

    @property
    def nnz(self) -> int:
        """The number of stored elements."""
        return len(self._places)

    def _compressed(self) -> Any:
        """The CSR array with these elements; of a vector, the array of coordinates."""
        if self._csr is None:
            self._csr = self._assembled()
        return self._csr

    def _assembled(self) -> Any:
        flat = np.fromiter(self._places, np.int64, len(self._places))
        order = np.argsort(flat)
        coords = np.unravel_index(flat[order], self._shape)
        pattern = sp.coo_array((np.ones(len(flat), np.int8), coords), shape=self._shape)
        structure = structure_of(pattern.tocsr() if len(self._shape) == 2 else pattern)
        if not self._places:
            return self.like(structure, np.zeros(0, self._dtype))
        starts = np.cumsum([0, *[shape_of(x)[0] for x in self._pieces]])
        slots = np.array([starts[k] + i for k, i in self._places.values()])[order]
        pieces = [as_dtype(x, self._dtype) for x in self._pieces]
        data = lookup("concatenate")(*pieces, axis=0) if len(pieces) > 1 else pieces[0]
        return self.like(structure, gathered(data, slots))

    # ---- elements ----------------------------------------------------------------------------

    def __setitem__(self, index: Any, value: Any) -> None:
        places, other = self._positions(index), as_sparse(value)
        if other is not None:
            self._remove(places)
            other = type(self).of(other)
            coords = np.unravel_index(np.fromiter(other._places, np.int64), other._shape)
            if other._shape != places.shape:
                raise ShapeError(
                    f"a sparse array of shape {other._shape} is assigned to elements of shape "
                    f"{places.shape}; the shapes must be equal{at(user_line())}."
                )
            places, value = places[coords], gathered(other.data, _ranks(other._places))
        elif not isinstance(value, Handle):
            value = joining.stacked(value) if holds_tensors(value) else np.asarray(value)
        # As in SciPy, axes of length one do not matter.
        if _squeezed(shape_of(value)) != _squeezed(places.shape):
            value = lookup("broadcast_to")(value, shape=places.shape)
        self._place(places.reshape(-1), reshaped(value, (-1,)))

    def _place(self, places: Any, values: Any) -> None:
        """Store values at positions of the flattened array."""
        kind = dtype_of(values).kind
        if kind == "c" and self._dtype.kind != "c":
            raise DtypeError(
                f"complex elements are assigned to a {self.format} array of {self._dtype}: create "
                f"it with dtype=complex{at(user_line())}."
            )
        self._csr, number = None, len(self._pieces)
        self._pieces.append(values)
        for k, place in enumerate(places.tolist()):
            self._places[place] = (number, k)
        if not isinstance(values, Handle):
            for place, value in zip(places.tolist(), values.tolist(), strict=True):
                if value == 0 and self._places[place][0] == number:
                    del self._places[place]

    def _remove(self, places: Any) -> None:
        """Remove elements at positions of the flattened array."""
        self._csr = None
        for place in places.reshape(-1).tolist():
            self._places.pop(place, None)

    def __getitem__(self, index: Any) -> Any:
        given = plain_index(index)
        if not isinstance(given, tuple) or not all(isinstance(i, int | np.integer) for i in given):
            return self._compressed()[index]
        place = self._places.get(int(self._positions(given)))
        if place is None:
            return self._dtype.type(0)
        return as_dtype(self._pieces[place[0]][place[1]], self._dtype)

    def _positions(self, index: Any) -> Any:
        """The positions that an index selects in the flattened array.

        Raises
        ------
        IndexError
            It is outside of the array, or has too many parts.
        """
        given = plain_index(index)
        if sp.issparse(given):
            given = given.toarray()
        if isinstance(given, np.ndarray) and given.dtype == bool and given.shape == self._shape:
            given = given.nonzero()
        parts = list(given) if isinstance(given, tuple) else [given]
        if any(p is Ellipsis for p in parts):
            k = [p is Ellipsis for p in parts].index(True)
            parts[k : k + 1] = [slice(None)] * (len(self._shape) - len(parts) + 1)
        parts += [slice(None)] * (len(self._shape) - len(parts))
        if len(parts) > len(self._shape) or any(p is None for p in parts):
            raise IndexError(f"the index {index!r} of an array of shape {self._shape}")
        lines = [np.arange(n)[p] for n, p in zip(self._shape, parts, strict=True)]
        if len(lines) == 1:
            return lines[0]
        rows, columns = lines
        if isinstance(parts[0], slice) and np.ndim(columns):
            rows = rows.reshape(rows.shape + (1,) * np.ndim(columns))
        elif isinstance(parts[1], slice) and np.ndim(rows):
            rows = rows[..., None]
        return rows * self._shape[1] + columns

    def setdiag(self, values: Any, k: int = 0) -> None:
        """Assign a diagonal."""
        n, m = self._shape
        rows = np.arange(max(0, -k), min(n, m - k))
        if len(shape := np.shape(values) if not isinstance(values, Handle) else shape_of(values)):
            rows, values = rows[: shape[0]], values[: len(rows)]
        self[rows, rows + k] = values

    def sum_duplicates(self) -> None:
        """Nothing: no element is stored twice."""

    def sort_indices(self) -> None:
        """Nothing: elements have no order."""

    # ---- conversions -------------------------------------------------------------------------

    def asformat(self, format: str | None, copy: bool = False) -> Any:
        """The array in another format."""
        if format is None or format == self.format:
            return self.copy() if copy else self
        if format in ("lil", "dok"):
            return ASSEMBLED[format, self.is_matrix].of(self, self._dtype)
        return self._compressed().asformat(format)

    def tobsr(self, blocksize: tuple[int, int] | None = None, copy: bool = False) -> Any:
        """The array in block row format."""
        return self.tocsr().tobsr(blocksize=blocksize)

    def toarray(self, order: Any = None, out: Any = None) -> Any:
        """The dense array."""
        return self._compressed().toarray(order, out)

    def canonical(self) -> Any:
        """The CSR array."""
        return self._compressed()

    def numpy(self) -> Any:
        """SciPy's array in this format; derivatives end here."""
        return self._compressed().numpy().asformat(self.format)

    def astype(self, dtype: Any, casting: str = "unsafe", copy: bool = True) -> Any:
        """The array with another dtype."""
        return type(self).of(self._compressed().astype(dtype), dtype)

    def copy(self) -> Self:
        """A copy, whose elements can be assigned independently."""
        made = type(self).empty(self._shape, self._dtype)
        made._places, made._pieces = dict(self._places), list(self._pieces)
        return made

    __copy__ = copy


def _squeezed(shape: Any) -> tuple[int, ...]:
    return tuple([n for n in shape if n != 1])


def _ranks(places: dict[int, Any]) -> Any:
    """The rank of each position among all of them."""
    return np.argsort(np.argsort(np.fromiter(places, np.int64, len(places))))


class AssembledRows(AssembledArray):
    """The format lil."""

    __slots__ = ()
    scipy_name = "lil_array"
    scipy_format = "lil"


class AssembledKeys(AssembledArray):
    """The format dok: elements by their coordinates, as in a dict."""

    __slots__ = ()
    scipy_name = "dok_array"
    scipy_format = "dok"

    def keys(self) -> list[Any]:
        """The coordinates of the elements."""
        found = [np.unravel_index(place, self._shape) for place in self._places]
        return [tuple(map(int, c)) if len(c) > 1 else int(c[0]) for c in found]

    def values(self) -> list[Any]:
        """The elements, in the order of `keys`."""
        return [as_dtype(self._pieces[k][i], self._dtype) for k, i in self._places.values()]

    def items(self) -> list[Any]:
        """Pairs of coordinates and elements."""
        return list(zip(self.keys(), self.values(), strict=True))

    def get(self, key: Any, default: Any = 0.0) -> Any:
        """The element at coordinates, or the default."""
        return self[key] if self._positions(key) in self._places else default

    def setdefault(self, key: Any, default: Any = None) -> Any:
        """The element at coordinates, which is assigned if there is none."""
        if key not in self:
            self[key] = default
        return self[key]

    def __contains__(self, key: Any) -> bool:
        return self._positions(key) in self._places

    def __delitem__(self, key: Any) -> None:
        del self._places[int(self._positions(key))]
        self._csr = None

    def __len__(self) -> int:
        return len(self._places)


class AssembledRowsMatrix(SparseMatrix, AssembledRows):
    """The format lil, as a matrix."""

    __slots__ = ()
    scipy_name = "lil_matrix"


class AssembledKeysMatrix(SparseMatrix, AssembledKeys):
    """The format dok, as a matrix."""

    __slots__ = ()
    scipy_name = "dok_matrix"


for _cls in (AssembledRows, AssembledKeys, AssembledRowsMatrix, AssembledKeysMatrix):
    ASSEMBLED[_cls.scipy_format, _cls.is_matrix] = _cls
