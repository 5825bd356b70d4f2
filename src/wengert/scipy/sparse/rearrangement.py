"""Operations that move elements: planned once for each structure; formats, shapes, dtypes.

    Rearrangement  where the elements of a result come from
    rearranged     the sparse array, dense array or number that a function of SciPy makes
    summed         an array without duplicates
    planned        a value computed once for each combination of structures and parameters
    Conversion     the mixin: tocsr ..., toarray, transpose, reshape, astype, copy, diagonal

SciPy's function is called once, for arrays whose elements are their positions (`numbered`); its
result shows from where each element comes.  For data, plain or traced, the operation is then a
gather, a scatter, or nothing.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp

from wengert._engine.core.handle import dtype_of, shape_of
from wengert._engine.core.node_properties import frozen
from wengert._engine.core.op import lookup
from wengert._engine.core.thread_state import lock
from wengert._engine.ops import casts
from wengert._engine.ops.indexing.getitem import IndexSlot
from wengert._engine.tensor.numpy_dispatch import as_tensor
from wengert.errors import ConversionError, ShapeError, at, user_line

from .structure import ASSEMBLED, COMPRESSED, SparseParts, Structure, structure_of

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
