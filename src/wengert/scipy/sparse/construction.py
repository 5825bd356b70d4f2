"""Functions of scipy.sparse that make sparse arrays of others, and of dense arrays.

    diags, diags_array                       of diagonals
    hstack, vstack, bmat, block_array        of blocks; block_diag
    kron, kronsum                            Kronecker products and sums
    tril, triu, find                         parts
    issparse, isspmatrix, isspmatrix_csr ... what an object is

Without tensors, SciPy's functions are called.  Elements of dense tensors are all stored; those of
plain arrays that are zero are not, as in SciPy.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from wengert._engine.core.handle import Handle, shape_of
from wengert._engine.core.node_properties import frozen
from wengert._engine.core.op import lookup

from .arrays import CLASSES, SparseArray, as_sparse, coo_array
from .indexing_reductions import DenseElements
from .rearrangement import as_dtype, coordinates, planned, rearranged, reshaped
from .structure import structure_of, with_tensors

Function = Callable[..., Any]


def _is_sparse(x: Any) -> bool:
    return type.__instancecheck__(SparseArray, x)


def _holds_tensors(x: Any) -> bool:
    """Whether a tensor, or a sparse array of tensors, is among the elements of lists."""
    if isinstance(x, list | tuple):
        return any(map(_holds_tensors, x))
    if isinstance(x, np.ndarray) and x.dtype == object:
        return any(map(_holds_tensors, x.ravel()))
    return isinstance(x, Handle) or _is_sparse(x)


def _replaced(x: Any) -> Any:
    """Arguments with the arrays of tensors of lil and dok arrays."""
    if isinstance(x, list | tuple):
        return type(x)(map(_replaced, x)) if type(x) in (list, tuple) else x
    return with_tensors(x)


def _counterpart(theirs: Function) -> Callable[[Function], Function]:
    """Decorator: SciPy's function if no argument has a tensor, else the decorated one."""

    def decorate(ours: Function) -> Function:
        @functools.wraps(theirs)
        def public(*args: Any, **kwargs: Any) -> Any:
            args, kwargs = _replaced(args), {k: _replaced(x) for k, x in kwargs.items()}
            if any(map(_holds_tensors, (*args, *kwargs.values()))):
                return ours(*args, **kwargs)
            return theirs(*args, **kwargs)

        public.__module__ = __name__
        return public

    return decorate


def _part(x: Any) -> Any:
    """A sparse array of wengert, or the elements of a dense tensor."""
    array = as_sparse(x)
    if array is None and not _holds_tensors(x):
        array = as_sparse(sp.coo_array(np.atleast_2d(x)))
    return DenseElements(x) if array is None else array.canonical()


def _moved(name: Any, function: Function, parts: Sequence[Any], is_matrix: bool) -> Any:
    """The sparse array that a function of SciPy makes of arrays."""
    structure, data = rearranged(name, function, *parts)
    return CLASSES[structure.format, is_matrix].made(structure, data)


def _are_matrices(parts: Sequence[Any]) -> bool:
    """Whether no part is a sparse array that is not a matrix."""
    return all(p.is_matrix for p in parts if _is_sparse(p))


# ---- diagonals -----------------------------------------------------------------------------------


def _diagonals(
    diagonals: Any, offsets: Any, shape: Any, format: Any, dtype: Any, is_matrix: bool
) -> Any:
    if np.ndim(offsets) == 0:
        if isinstance(diagonals, Handle) and len(shape_of(diagonals)) == 1:
            diagonals = [diagonals]
        elif not isinstance(diagonals, Handle) and not np.ndim(diagonals[0]):
            diagonals = [lookup("stack")(*diagonals, axis=0)]
        offsets = [offsets]
    parts = [DenseElements(d if isinstance(d, Handle) else np.asarray(d)) for d in diagonals]
    key = ("diags", frozen(np.asarray(offsets)), shape, format)

    def made(*numbered: Any) -> Any:
        options = {"shape": shape, "format": format, "dtype": np.int64}
        return sp.diags_array(list(numbered), offsets=offsets, **options)

    result = _moved(key, made, parts, is_matrix)
    return result if dtype is None else result.astype(dtype)


@_counterpart(sp.diags_array)
def diags_array(
    diagonals: Any, /, *, offsets: Any = 0, shape: Any = None, format: Any = None, dtype: Any = None
) -> Any:
    """An array of diagonals."""
    return _diagonals(diagonals, offsets, shape, format, dtype, False)


@_counterpart(sp.diags)
def diags(
    diagonals: Any, offsets: Any = 0, shape: Any = None, format: Any = None, dtype: Any = None
) -> Any:
    """A matrix of diagonals."""
    return _diagonals(diagonals, offsets, shape, format, dtype, True)


# ---- blocks --------------------------------------------------------------------------------------


def _of_blocks(
    name: str, theirs: Function, blocks: Any, format: Any, dtype: Any, **options: Any
) -> Any:
    """A function of nested lists of blocks, some of which may be None."""
    places: list[Any] = []
    rows = [list(row) if isinstance(row, list | tuple) else row for row in blocks]
    parts: list[Any] = []

    def note(x: Any) -> Any:
        if x is None:
            return None
        parts.append(_part(x))
        return len(parts) - 1

    for row in rows:
        places.append([note(x) for x in row] if isinstance(row, list) else note(row))

    def made(*numbered: Any) -> Any:
        def block(place: Any) -> Any:
            if isinstance(place, list):
                return [block(p) for p in place]
            if place is None or sp.issparse(numbered[place]):
                return None if place is None else numbered[place]
            return sp.coo_array(np.atleast_2d(numbered[place]))

        return theirs([block(p) for p in places], format=format, **options)

    is_matrix = _are_matrices(parts) and any(map(_is_sparse, parts))
    result = _moved((name, frozen(places), format), made, parts, is_matrix)
    return result if dtype is None else result.astype(dtype)


@_counterpart(sp.block_array)
def block_array(blocks: Any, *, format: Any = None, dtype: Any = None) -> Any:
    """An array of blocks."""
    return _of_blocks("block_array", sp.block_array, blocks, format, dtype)


@_counterpart(sp.bmat)
def bmat(blocks: Any, format: Any = None, dtype: Any = None) -> Any:
    """An array of blocks."""
    return _of_blocks("block_array", sp.block_array, blocks, format, dtype)


@_counterpart(sp.hstack)
def hstack(blocks: Any, format: Any = None, dtype: Any = None) -> Any:
    """Blocks side by side."""
    return _of_blocks("hstack", sp.hstack, blocks, format, dtype)


@_counterpart(sp.vstack)
def vstack(blocks: Any, format: Any = None, dtype: Any = None) -> Any:
    """Blocks one above the other."""
    return _of_blocks("vstack", sp.vstack, blocks, format, dtype)


@_counterpart(sp.block_diag)
def block_diag(mats: Any, format: Any = None, dtype: Any = None) -> Any:
    """Blocks along the diagonal."""
    return _of_blocks("block_diag", sp.block_diag, mats, format, dtype)


# ---- Kronecker products --------------------------------------------------------------------------


@_counterpart(sp.kron)
def kron(A: Any, B: Any, format: Any = None) -> Any:
    """The Kronecker product."""
    a, b = (x if _is_sparse(x) else _sparse(x) for x in (A, B))
    is_matrix = a.is_matrix and b.is_matrix
    a, b = a.tocoo().canonical(), b.tocoo().canonical()
    key = ("kron", a.structure, b.structure, format)
    structure, form, blocksize = planned(key, lambda: _kron_structure(a, b, format))
    dtype = np.result_type(a.dtype, b.dtype)
    left, right = as_dtype(a.data, dtype), as_dtype(b.data, dtype)
    column = reshaped(left, (a.structure.size, 1))
    products = lookup("multiply")(column, reshaped(right, (1, b.structure.size)))
    product = CLASSES["coo", is_matrix].made(structure, reshaped(products, (-1,)))
    return product.tobsr(blocksize) if form == "bsr" else product.asformat(form)


def _kron_structure(a: Any, b: Any, format: Any) -> Any:
    """The structure of all products as coo, and the format and block size that SciPy chooses."""
    shape = tuple([n * m for n, m in zip(a.shape, b.shape, strict=True)])
    coords = [
        (np.asarray(i, np.int64)[:, None] * m + j).ravel()
        for i, j, m in zip(a.coords, b.coords, b.shape, strict=True)
    ]
    ones = [x.structure.filled(np.ones(x.structure.size)) for x in (a, b)]
    theirs: Any = sp.kron(*ones, format=format)
    pattern = sp.coo_array((np.ones(len(coords[0]), np.int8), tuple(coords)), shape=shape)
    blocksize = theirs.blocksize if theirs.format == "bsr" else None
    return structure_of(pattern), theirs.format, blocksize


def _sparse(x: Any) -> Any:
    """A sparse array of wengert of a sparse or dense array or tensor."""
    if isinstance(x, Handle):
        make: Any = coo_array
        return make(x)
    found = as_sparse(x)
    return as_sparse(sp.coo_array(x)) if found is None else found


@_counterpart(sp.kronsum)
def kronsum(A: Any, B: Any, format: Any = None) -> Any:
    """The Kronecker sum, ``kron(I, A) + kron(B, I)``."""
    a, b = (x if _is_sparse(x) else _sparse(x) for x in (A, B))
    if a.shape[0] != a.shape[1] or b.shape[0] != b.shape[1]:
        raise ValueError(f"kronsum of shapes {a.shape} and {b.shape}: both must be square")
    left = kron(sp.eye_array(b.shape[0], dtype=a.dtype), a)
    right = kron(b, sp.eye_array(a.shape[0], dtype=b.dtype))
    return (left + right).asformat(format)


# ---- parts ---------------------------------------------------------------------------------------


@_counterpart(sp.tril)
def tril(A: Any, k: int = 0, format: Any = None) -> Any:
    """The lower triangle."""
    return _sparse(A).moved(("tril", k, format), lambda a: sp.tril(a, k, format))


@_counterpart(sp.triu)
def triu(A: Any, k: int = 0, format: Any = None) -> Any:
    """The upper triangle."""
    return _sparse(A).moved(("triu", k, format), lambda a: sp.triu(a, k, format))


@_counterpart(sp.find)
def find(A: Any) -> Any:
    """Rows, columns and values of the stored elements, also of those that are zero."""
    array = _sparse(A).tocoo().canonical()
    return (*coordinates(array), array.data)


# ---- classes -------------------------------------------------------------------------------------


def issparse(x: Any) -> bool:
    """Whether `x` is a sparse array or matrix."""
    return _is_sparse(x) or bool(sp.issparse(x))


def isspmatrix(x: Any) -> bool:
    """Whether `x` is a sparse matrix."""
    return (_is_sparse(x) and x.is_matrix) or bool(sp.isspmatrix(x))


def _is_matrix_of(form: str) -> Function:
    def check(x: Any) -> bool:
        return isspmatrix(x) and x.format == form

    check.__name__ = check.__qualname__ = f"isspmatrix_{form}"
    check.__doc__ = f"Whether `x` is a {form}_matrix."
    return check


isspmatrix_csr = _is_matrix_of("csr")
isspmatrix_csc = _is_matrix_of("csc")
isspmatrix_coo = _is_matrix_of("coo")
isspmatrix_dia = _is_matrix_of("dia")
isspmatrix_bsr = _is_matrix_of("bsr")
