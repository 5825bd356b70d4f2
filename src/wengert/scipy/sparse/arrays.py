"""The classes csr_array, csc_array, coo_array, dia_array, bsr_array; csr_matrix and so on.

    SparseArray     the base class
    csr_array ...   with the elements in a tensor; for plain arrays they make SciPy's arrays
    as_sparse       a sparse array of wengert or SciPy as one of wengert; None for other objects
    issparse ...    as in scipy.sparse

A sparse array is a node of containers with one leaf, `data`, and so are SciPy's
(lil_dok_pytrees.py).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp

from wengert._engine.core.handle import Handle
from wengert._engine.ops import joining
from wengert._engine.tensor.operand_conversion import not_an_array
from wengert.errors import ConversionError, at, user_line

from ..dispatch import holds_tensors
from .indexing_reductions import Indexing, plain_index
from .rearrangement import reshaped
from .structure import COMPRESSED, Structure, structure_of, with_tensors

_FORMAT_NAMES = {
    "csr": "Compressed Sparse Row",
    "csc": "Compressed Sparse Column",
    "coo": "COOrdinate",
    "dia": "DIAgonal",
    "bsr": "Block Sparse Row",
    "lil": "List of Lists",
    "dok": "Dictionary Of Keys",
}


class SparseType(type):
    """The class of the classes: SciPy's arrays are instances too, and plain data make them."""

    scipy_name: str
    is_matrix: bool

    @property
    def scipy_class(cls) -> Any:
        """SciPy's class of this name."""
        return getattr(sp, cls.scipy_name)

    def __instancecheck__(cls, x: object) -> bool:
        if type.__instancecheck__(SparseArray, x):
            is_family: bool = cls.is_matrix == type(x).is_matrix  # type: ignore[attr-defined]
            return is_family and type.__instancecheck__(cls, x)
        return isinstance(x, cls.scipy_class)

    def __call__(cls, arg1: Any, *args: Any, **kwargs: Any) -> Any:
        """A sparse array; SciPy's if no argument is a tensor."""
        arg1 = with_tensors(arg1)
        if not _has_tensors(arg1):
            if type.__instancecheck__(SparseArray, arg1):
                arg1 = arg1.numpy()
            return cls.scipy_class(arg1, *args, **kwargs)
        return _created(cls, arg1, *args, **kwargs)


def _has_tensors(x: Any) -> bool:
    if type.__instancecheck__(SparseArray, x):
        return not x.is_plain
    return holds_tensors(x)


class SparseArray(Indexing, metaclass=SparseType):
    """A sparse array whose elements are a tensor.

    Parameters
    ----------
    arg1 : tuple, sparse array or dense array
        As in SciPy: ``(data, (row, col))``, ``(data, indices, indptr)``, ``(data, offsets)``, a
        sparse array, or a dense array.
    shape : tuple of int, optional
    dtype : dtype, optional
    copy : bool
        Index arrays are always copied.

    Notes
    -----
    All elements of a dense tensor are stored, zeros too: which are zero depends on values.
    """

    __module__ = "wengert.scipy.sparse"
    __slots__ = ()
    __array_priority__ = 1010.0
    scipy_name = "sparray"

    @classmethod
    def made(cls, structure: Structure, data: Any) -> Any:
        """An array with these parts."""
        array = object.__new__(cls)
        array.structure, array.data = structure, data
        return array

    def like(self, structure: Structure, data: Any) -> Any:
        """An array of the same family, with another structure."""
        return CLASSES[structure.format, self.is_matrix].made(structure, data)

    @staticmethod
    def as_sparse(x: Any) -> Any:
        """`as_sparse`."""
        return as_sparse(x)

    def as_matrix(self, plain: Any) -> Any:
        """SciPy's matrix of this format."""
        return type(self).scipy_class(plain)

    def made_dense(self, x: Any) -> Any:
        """A dense vector as a sparse array with all elements, as SciPy returns it."""
        return _of_dense(csr_array, x)

    def __repr__(self) -> str:
        kind = "matrix" if self.is_matrix else "array"
        name = _FORMAT_NAMES[self.format]
        return (
            f"<{name} sparse {kind} of dtype '{self.dtype}'\n\twith {self.nnz} stored elements "
            f"and shape {self.shape}, data={type(self.data).__name__}>"
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        found = not_an_array(self)
        if found is not None:
            return found
        if not self.is_plain:
            raise ConversionError(
                "a sparse array of a tensor is converted to a plain array: use A.toarray(), or "
                f"A.numpy() where no derivative is wanted{at(user_line())}."
            )
        return self.numpy().toarray().astype(dtype or self.dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        """NumPy's functions of sparse arrays: the operators, and functions with f(0) = 0."""
        if method != "__call__" or kwargs:
            return NotImplemented
        name = ufunc.__name__
        if len(args) == 1:
            named = {"negative": "__neg__", "absolute": "__abs__", "conjugate": "conjugate"}
            found = getattr(self, named.get(name, name), None)
            return found() if callable(found) else NotImplemented
        return _of_ufunc(name, *args)


def _of_ufunc(name: str, x: Any, y: Any) -> Any:
    """A ufunc of two operands, one of which is a sparse array."""
    names = {
        "add": "add", "subtract": "sub", "multiply": "mul", "matmul": "matmul", "divide": "truediv",
    }  # fmt: skip
    if name not in names:
        return NotImplemented
    if type.__instancecheck__(SparseArray, x):
        return getattr(x, f"__{names[name]}__")(y)
    method = getattr(y, f"__r{names[name]}__", None)
    return NotImplemented if method is None else method(x)


# ---- creation ------------------------------------------------------------------------------------


def _created(cls: Any, arg1: Any, shape: Any = None, dtype: Any = None, copy: bool = False,
             **options: Any) -> Any:  # fmt: skip
    """An array of a class; a tensor is among the arguments."""
    if type.__instancecheck__(SparseArray, arg1):
        made = arg1
    elif isinstance(arg1, tuple):
        made = _of_parts(cls, arg1, shape, options)
    else:
        made = _of_dense(coo_array, arg1 if isinstance(arg1, Handle) else joining.stacked(arg1))
    if dtype is not None:
        made = made.astype(dtype)
    if made.format != cls.scipy_format or options.get("blocksize"):
        made = _in_format(made, cls.scipy_format, options)
    return cls.made(made.structure, made.data)


def _in_format(array: Any, form: str, options: Any) -> Any:
    return array.tobsr(options.get("blocksize")) if form == "bsr" else array.asformat(form)


def _of_parts(cls: Any, arg1: tuple[Any, ...], shape: Any, options: Any) -> Any:
    """An array of data and index arrays.

    Raises
    ------
    ValueError
        What SciPy raises for the index arrays.
    """
    data, *index = arg1
    if not isinstance(data, Handle):
        data = joining.stacked(data) if holds_tensors(data) else np.asarray(data)
    index = [_known(i) for i in index]
    form = cls.scipy_format
    if len(index) == 1 and form != "dia":
        form = "coo"
    if form == "dia" and data.ndim < 2:
        data = reshaped(data, (1, -1))
    make = getattr(sp, f"{form}_array")
    numbers = np.arange(1, data.size + 1).reshape(data.shape)
    options = {k: v for k, v in options.items() if form == "bsr"}
    pattern = make((numbers, *index), shape=shape, **options)
    structure = structure_of(pattern)
    return CLASSES[form, False].made(structure, data)


def _known(index: Any) -> Any:
    """Index arrays as plain arrays."""
    if isinstance(index, tuple | list) and any(np.ndim(i) for i in index):
        return tuple([_known(i) for i in index])
    return np.asarray(plain_index(index))


def _of_dense(cls: Any, x: Any) -> Any:
    """An array with all elements of a dense one."""
    shape = tuple(x.shape)
    coords = np.unravel_index(np.arange(math.prod(shape)), shape)
    pattern = sp.coo_array((np.ones(math.prod(shape), np.int8), coords), shape=shape)
    made = coo_array.made(structure_of(pattern), reshaped(x, (-1,)))
    return made.asformat(cls.scipy_format)


def from_structure(structure: Structure, data: Any) -> Any:
    """The sparse array of a structure (`structure_of`) with these elements."""
    return CLASSES[structure.format, False].made(structure, None).with_data(data)


def as_sparse(x: Any) -> Any:
    """A sparse array of wengert or SciPy as one of wengert; None for other objects."""
    x = with_tensors(x)
    if type.__instancecheck__(SparseArray, x):
        return x
    if not sp.issparse(x):
        return None
    if x.format not in (*COMPRESSED, "coo", "dia"):
        x = x.tocsr()
    is_matrix = isinstance(x, sp.spmatrix)
    return CLASSES[x.format, is_matrix].made(structure_of(x), x.data)


# ---- the classes ---------------------------------------------------------------------------------


class csr_array(SparseArray):
    """Compressed row format.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.sparse import csr_array
    >>> def product(data):
    ...     return np.sum(csr_array((data, ([0, 1], [1, 0]))) @ np.array([2.0, 3.0]))
    >>> wg.grad(product)(np.array([1.0, 1.0]))
    array([3., 2.])
    """

    __slots__ = ()
    scipy_name = "csr_array"
    scipy_format = "csr"


class csc_array(SparseArray):
    """Compressed column format."""

    __slots__ = ()
    scipy_name = "csc_array"
    scipy_format = "csc"


class coo_array(SparseArray):
    """Coordinate format."""

    __slots__ = ()
    scipy_name = "coo_array"
    scipy_format = "coo"


class dia_array(SparseArray):
    """Diagonal format."""

    __slots__ = ()
    scipy_name = "dia_array"
    scipy_format = "dia"


class bsr_array(SparseArray):
    """Block row format."""

    __slots__ = ()
    scipy_name = "bsr_array"
    scipy_format = "bsr"


class SparseMatrix(SparseArray):
    """The base class of matrices: ``*`` is the matrix product, and sums have two axes."""

    __slots__ = ()
    is_matrix = True
    scipy_name = "spmatrix"


class csr_matrix(SparseMatrix, csr_array):
    """Compressed row format, as a matrix."""

    __slots__ = ()
    scipy_name = "csr_matrix"


class csc_matrix(SparseMatrix, csc_array):
    """Compressed column format, as a matrix."""

    __slots__ = ()
    scipy_name = "csc_matrix"


class coo_matrix(SparseMatrix, coo_array):
    """Coordinate format, as a matrix."""

    __slots__ = ()
    scipy_name = "coo_matrix"


class dia_matrix(SparseMatrix, dia_array):
    """Diagonal format, as a matrix."""

    __slots__ = ()
    scipy_name = "dia_matrix"


class bsr_matrix(SparseMatrix, bsr_array):
    """Block row format, as a matrix."""

    __slots__ = ()
    scipy_name = "bsr_matrix"


CLASSES: dict[tuple[str, bool], Any] = {
    (c.scipy_format, c.is_matrix): c
    for c in (csr_array, csc_array, coo_array, dia_array, bsr_array,
              csr_matrix, csc_matrix, coo_matrix, dia_matrix, bsr_matrix)
}  # fmt: skip
