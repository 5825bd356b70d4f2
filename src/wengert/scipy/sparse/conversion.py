"""Methods of sparse arrays that change their format, their shape or the dtype of their elements.

    Conversion   the mixin: tocsr ..., toarray, transpose, reshape, astype, copy, diagonal

All of them move elements (rearrangement.py).
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from wengert._engine.core.handle import shape_of
from wengert._engine.core.node_properties import frozen
from wengert._engine.core.op import lookup
from wengert._engine.tensor.numpy_dispatch import as_tensor
from wengert.errors import ConversionError, ShapeError, at, user_line

from .parts import ASSEMBLED, SparseParts
from .rearrangement import as_dtype, gathered, planned, rearranged, reshaped, scattered, summed
from .structure import Structure


class Conversion(SparseParts):
    """Mixin: formats, shapes, dtypes."""

    __slots__ = ()

    # ---- formats -----------------------------------------------------------------------------

    def moved(self, name: Any, function: Any, canonical: bool = True) -> Any:
        """The result of a function of SciPy that moves elements: sparse, dense or a number.

        `canonical`: whether duplicates are summed before.
        """
        array = self.canonical() if canonical else self
        structure, data = rearranged(name, function, array)
        return self.like(structure, data) if isinstance(structure, Structure) else data

    def canonical(self) -> Self:
        """The same array, with sorted elements and no duplicates."""
        if self.structure.is_canonical:
            return self
        return self.like(*summed(self.structure, self.data))

    def asformat(self, format: str | None, copy: bool = False) -> Any:
        """The array in another format.

        Raises
        ------
        ValueError
            The format is unknown.
        """
        if format is None or format == self.format:
            return self.copy() if copy else self
        if format in ("lil", "dok"):
            return ASSEMBLED[format, self.is_matrix].of(self)
        if format not in ("csr", "csc", "coo", "dia", "bsr"):
            raise ValueError(
                f"format {format!r} for a sparse array of tensors: use csr, csc, coo, dia, "
                f"bsr, lil or dok"
                f"{at(user_line())}."
            )
        keeps = {self.format, format} <= {"csr", "csc"} or (self.format, format) in (
            ("csr", "coo"),
            ("csc", "coo"),
        )
        return self.moved(("format", format), lambda a: a.asformat(format), canonical=not keeps)

    def tocsr(self, copy: bool = False) -> Any:
        """The array in compressed row format."""
        return self.asformat("csr", copy)

    def tocsc(self, copy: bool = False) -> Any:
        """The array in compressed column format."""
        return self.asformat("csc", copy)

    def tocoo(self, copy: bool = True) -> Any:
        """The array in coordinate format."""
        return self.asformat("coo", copy)

    def todia(self, copy: bool = False) -> Any:
        """The array in diagonal format."""
        return self.asformat("dia", copy)

    def tobsr(self, blocksize: tuple[int, int] | None = None, copy: bool = False) -> Any:
        """The array in block row format."""
        if blocksize is None:
            return self.asformat("bsr", copy)
        array = self.asformat("csr")
        return array.moved(("bsr", blocksize), lambda a: a.tobsr(blocksize=blocksize))

    def tolil(self, copy: bool = False) -> Any:
        """The array in the format for assignments by rows."""
        return self.asformat("lil", copy)

    def todok(self, copy: bool = False) -> Any:
        """The array in the format for assignments by coordinates."""
        return self.asformat("dok", copy)

    def toarray(self, order: Any = None, out: Any = None) -> Any:
        """The dense array."""
        if out is not None:
            raise ConversionError(
                f"toarray(out=...) of a sparse array of tensors: use the result instead"
                f"{at(user_line())}."
            )
        array = self if self.format in ("csr", "csc", "coo") else self.tocsr()
        places = planned(("dense", array.structure), lambda: _places(array.structure))
        size = int(np.prod(self.shape))
        return reshaped(scattered(array.data, places, size), self.shape)

    def todense(self, order: Any = None, out: Any = None) -> Any:
        """The dense array."""
        return self.toarray(order, out)

    # ---- shapes ------------------------------------------------------------------------------

    @property
    def T(self) -> Any:
        """The transpose."""
        return self.transpose()

    def transpose(self, axes: Any = None, copy: bool = False) -> Any:
        """The transpose."""
        return self.moved(("transpose", axes), lambda a: a.transpose(axes), canonical=False)

    def reshape(self, *shape: Any, order: str = "C", copy: bool = False) -> Any:
        """The array with another shape."""
        key = ("reshape", frozen(shape), order)
        return self.moved(key, lambda a: a.reshape(*shape, order=order))

    def diagonal(self, k: int = 0) -> Any:
        """A diagonal, as a dense vector."""
        return self.moved(("diagonal", k), lambda a: a.diagonal(k))

    def trace(self, offset: int = 0) -> Any:
        """The sum of a diagonal."""
        return lookup("sum")(self.diagonal(offset))

    # ---- elements ----------------------------------------------------------------------------

    def astype(self, dtype: Any, casting: str = "unsafe", copy: bool = True) -> Self:
        """The array with another dtype."""
        return self.with_data(as_dtype(self.data, np.dtype(dtype)))

    def copy(self) -> Self:
        """A copy, whose elements can be assigned independently."""
        return self.with_data(lookup("copy")(self.data))

    __copy__ = copy

    def __deepcopy__(self, memo: Any) -> Self:
        return self.copy()

    def with_data(self, data: Any) -> Self:
        """An array of the same structure with other elements.

        Raises
        ------
        ShapeError
            The last axes of `data` are not those of the elements.
        """
        shape = self.structure.data_shape
        given = shape_of(data)
        if tuple(given[-len(shape) :]) != shape:
            raise ShapeError(
                f"elements of shape {given} for a sparse array with {shape} stored elements: give "
                f"one for each, in the order of A.data{at(user_line())}."
            )
        return self.like(self.structure, data)

    def numpy(self) -> Any:
        """SciPy's array with these values; derivatives end here, as with ``x.numpy()``."""
        data = self.data
        plain = data if isinstance(data, np.ndarray) else as_tensor(data).numpy()
        return self.scipy_array(np.array(plain))

    def detach(self) -> Self:
        """The array with elements that are constants."""
        return self.with_data(as_tensor(self.data).detach())


def _places(structure: Structure) -> Any:
    """The positions of the elements in the flattened dense array."""
    coo = structure.numbered.tocoo(copy=False)
    if structure.format == "coo":
        return np.ravel_multi_index(structure.arrays, structure.shape)
    return np.ravel_multi_index(coo.coords, structure.shape)


def coordinates(array: Any) -> Any:
    """The coordinates of the elements, for formats without padding."""
    structure = array.structure
    if structure.format == "coo":
        return structure.arrays
    return planned(("coords", structure), lambda: structure.numbered.tocoo(copy=False).coords)


def at_coordinates(array: Any, x: Any) -> Any:
    """The elements of a dense array at the positions of the elements; `x` is broadcast.

    Raises
    ------
    ShapeError
        It does not broadcast to the shape of the array.
    """
    shape, full = shape_of(x), array.shape
    lengths = (1,) * (len(full) - len(shape)) + tuple(shape)
    fits = len(lengths) == len(full) and all(
        n in (1, m) for n, m in zip(lengths, full, strict=True)
    )
    if not fits:
        raise ShapeError(
            f"a sparse array of shape {full} and an array of shape {shape}: the second must "
            f"broadcast to the shape of the first{at(user_line())}."
        )
    if all(n == 1 for n in lengths):
        return reshaped(x, ())
    key = ("gather", array.structure, lengths)
    positions = planned(key, lambda: _broadcast_positions(coordinates(array), lengths))
    return gathered(reshaped(x, (-1,)), positions)


def _broadcast_positions(coords: Any, lengths: tuple[int, ...]) -> Any:
    kept = [np.zeros_like(c) if n == 1 else c for c, n in zip(coords, lengths, strict=True)]
    return np.ravel_multi_index(kept, lengths)
