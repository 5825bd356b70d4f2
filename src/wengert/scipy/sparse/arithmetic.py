"""Products, operators and elementwise functions of sparse arrays.

    dense_product   A @ x
    sparse_product  A @ B: the pattern is planned once, the elements are sums of products
    Arithmetic      the mixin: + - * / @ **, multiply, dot, power, maximum, sqrt ...

Products with dense arrays are the operations of _engine/ops/sparse_products.py.

The structure of a result never depends on values: a sum has the elements of both operands, a
product those that both have, also where the value is zero (SciPy drops zeros).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from wengert._engine.core.handle import Handle, dtype_of, shape_of
from wengert._engine.core.op import lookup
from wengert._engine.ops.sparse_products import csr_matmul, csr_transposed_matmul
from wengert._engine.tensor.operand_conversion import operand
from wengert.errors import ConversionError, ShapeError, at, user_line

from .rearrangement import (
    Conversion,
    as_dtype,
    at_coordinates,
    gathered,
    planned,
    reshaped,
    scattered,
)
from .structure import Structure, structure_of


def compressed(array: Any) -> Any:
    """The array in row or column format."""
    return array if array.format in ("csr", "csc") else array.tocsr()


def dense_product(array: Any, x: Any) -> Any:
    """A @ x for a vector or matrix x."""
    shape = shape_of(x)
    if len(shape) not in (1, 2) or shape[0] != array.shape[-1]:
        raise ShapeError(
            f"A @ x of a sparse array of shape {array.shape} and an array of shape {shape}: the "
            "last length of A must be the first of x, which is a vector or a matrix"
            f"{at(user_line())}."
        )
    array = compressed(array)
    dtype = np.result_type(array.dtype, dtype_of(x))
    if dtype.kind == "b":
        dtype = np.dtype(np.int8)
    data, x = as_dtype(array.data, dtype), as_dtype(x, dtype)
    indices, indptr = array.structure.arrays
    if array.format == "csr":
        product = csr_matmul(data, x, indices, indptr)
    else:
        product = csr_transposed_matmul(data, x, indices, indptr, columns=array.shape[0])
    return reshaped(product, shape[1:]) if len(array.shape) == 1 else product


class _Pairs(NamedTuple):
    """The products that an element of A @ B is the sum of.

    structure : of A @ B, in row format.
    left, right : the positions of the factors, in the order of the elements of the result.
    indptr : where the products of each element begin.
    """

    structure: Structure
    left: Any
    right: Any
    indptr: Any


def sparse_product(a: Any, b: Any) -> tuple[Structure, Any]:
    """A @ B for arrays in row format: the structure of the product, and its data."""
    plan = planned(("pairs", a.structure, b.structure), lambda: _pairs(a.structure, b.structure))
    dtype = np.result_type(a.dtype, b.dtype)
    left = as_dtype(gathered(a.data, plan.left), dtype)
    return plan.structure, csr_matmul(left, as_dtype(b.data, dtype), plan.right, plan.indptr)


def _pairs(a: Structure, b: Structure) -> _Pairs:
    """All pairs of an element of column j of A and one of row j of B, sorted by row and column."""
    (a_columns, a_starts), (b_columns, b_starts) = a.arrays, b.arrays
    counts = np.diff(b_starts)[a_columns]
    left = np.repeat(np.arange(len(a_columns)), counts)
    before = np.cumsum(counts) - counts
    right = np.arange(len(left)) + np.repeat(b_starts[:-1][a_columns] - before, counts)
    rows = np.repeat(np.arange(len(a_starts) - 1), np.diff(a_starts))[left]
    columns = b_columns[right]
    order = np.lexsort((columns, rows))
    rows, columns = rows[order], columns[order]
    is_first = np.ones(len(order), bool)
    is_first[1:] = (np.diff(rows) != 0) | (np.diff(columns) != 0)
    starts = np.flatnonzero(is_first)
    pattern = sp.coo_array(
        (np.ones(len(starts), np.int8), (rows[starts], columns[starts])),
        shape=(a.shape[0], b.shape[1]),
    ).tocsr()
    indptr = np.append(starts, len(order))
    return _Pairs(structure_of(pattern), left[order], right[order], indptr)


# Functions with f(0) = 0, which are applied to the stored elements.
UNARY = (
    "sin tan arcsin arctan sinh tanh arcsinh arctanh rint sign expm1 log1p deg2rad rad2deg floor "
    "ceil trunc sqrt"
).split()


class _Union:
    """The positions of the elements of two arrays in the structure of their sum."""

    def __init__(self, a: Structure, b: Structure) -> None:
        ones = [s.filled(np.ones(s.data_shape, np.int8)) for s in (a, b)]
        pattern: Any = ones[0] + ones[1]
        pattern.sort_indices()
        self.structure = structure_of(pattern)
        numbered = self.structure.numbered
        self.positions = [numbered.multiply(x).tocsr().data.astype(np.intp) - 1 for x in ones]


class _Intersection:
    """The positions in two arrays of the elements that both have."""

    def __init__(self, a: Structure, b: Structure) -> None:
        ones = [s.filled(np.ones(s.data_shape, np.int8)) for s in (a, b)]
        left: Any = a.numbered.multiply(ones[1]).tocsr()
        right: Any = b.numbered.multiply(ones[0]).tocsr()
        self.structure = structure_of(left)
        self.positions = [x.data.astype(np.intp) - 1 for x in (left, right)]


class Arithmetic(Conversion):
    """Mixin: operators and elementwise functions."""

    __slots__ = ()

    # ---- sums --------------------------------------------------------------------------------

    def _combined(self, other: Any, function: Callable[[Any, Any], Any]) -> Any:
        """A function of two sparse arrays with f(0, 0) = 0, on the elements of both."""
        if other.shape != self.shape:
            raise ShapeError(
                f"sparse arrays of shapes {self.shape} and {other.shape}: they must be equal"
                f"{at(user_line())}."
            )
        if self.structure == other.structure and self.structure.is_canonical:
            return self.with_data(function(self.data, other.data))
        form = self.format if self.format == other.format and self.format != "coo" else "csr"
        if form == "csc":
            return self.T._combined(other.T, function).T
        a, b = self.tocsr().canonical(), other.tocsr().canonical()
        key = ("union", a.structure, b.structure)
        union = planned(key, lambda: _Union(a.structure, b.structure))
        dtype = np.result_type(a.dtype, b.dtype)
        parts = [
            scattered(as_dtype(x.data, dtype), positions, union.structure.size)
            for x, positions in zip((a, b), union.positions, strict=True)
        ]
        return self.like(union.structure, function(*parts)).asformat(form)

    def _added(self, other: Any, sign: int) -> Any:
        """self + sign * other."""
        add = lookup("add" if sign > 0 else "subtract")
        array = self.as_sparse(other)
        if array is not None:
            return self._combined(array, add)
        other = operand(other)
        if other is NotImplemented:
            return NotImplemented
        if not shape_of(other):
            if not isinstance(other, Handle) and other == 0:
                return self.copy()
            raise NotImplementedError(
                "the sum of a sparse array and a number is dense: use A.toarray() + x"
                f"{at(user_line())}."
            )
        return add(self.toarray(), other)

    def __add__(self, other: Any) -> Any:
        return self._added(other, 1)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._added(other, -1)

    def __rsub__(self, other: Any) -> Any:
        return (-self)._added(other, 1)

    def __neg__(self) -> Any:
        return self.with_data(lookup("negative")(self.data))

    def __pos__(self) -> Any:
        return self

    # ---- products ----------------------------------------------------------------------------

    def multiply(self, other: Any) -> Any:
        """The elementwise product with a number, an array that broadcasts, or a sparse array."""
        array = self.as_sparse(other)
        if array is not None:
            return self._multiplied_by_sparse(array)
        other = operand(other)
        if other is NotImplemented:
            return NotImplemented
        return self._scaled(lookup("multiply"), other)

    def _scaled(self, op: Any, other: Any) -> Any:
        """``op(elements, x)`` for a number, or for the elements of an array."""
        if not shape_of(other):
            return self.with_data(op(self.data, other))
        array = self if self.format in ("csr", "csc", "coo") else self.tocsr()
        return array.with_data(op(array.data, at_coordinates(array, other)))

    def _multiplied_by_sparse(self, other: Any) -> Any:
        if other.shape != self.shape:
            raise ShapeError(
                f"the elementwise product of sparse arrays of shapes {self.shape} and "
                f"{other.shape}: they must be equal; use a dense array to broadcast"
                f"{at(user_line())}."
            )
        multiply = lookup("multiply")
        if self.structure == other.structure and self.structure.is_canonical:
            return self.with_data(multiply(self.data, other.data))
        if self.format == other.format == "csc":
            return self.T._multiplied_by_sparse(other.T).T
        a, b = self.tocsr().canonical(), other.tocsr().canonical()
        key = ("intersection", a.structure, b.structure)
        both = planned(key, lambda: _Intersection(a.structure, b.structure))
        parts = [gathered(x.data, p) for x, p in zip((a, b), both.positions, strict=True)]
        return self.like(both.structure, multiply(*parts))

    def __mul__(self, other: Any) -> Any:
        return self @ other if self.is_matrix and shape_of_any(other) else self.multiply(other)

    def __rmul__(self, other: Any) -> Any:
        if self.is_matrix and shape_of_any(other):
            return self.__rmatmul__(other)
        return self.multiply(other)

    def __truediv__(self, other: Any) -> Any:
        return self._divided(other)

    def _divided(self, other: Any) -> Any:
        if self.as_sparse(other) is not None:
            raise ConversionError(
                "the quotient of sparse arrays is 0/0 where both have no elements: divide the "
                f"elements, A.with_data(A.data / B.data), or dense arrays{at(user_line())}."
            )
        other = operand(other)
        return NotImplemented if other is NotImplemented else self._scaled(lookup("divide"), other)

    def __matmul__(self, other: Any) -> Any:
        array = self.as_sparse(other)
        if array is None:
            other = operand(other)
            if other is NotImplemented:
                return NotImplemented
            if not shape_of(other):
                raise ValueError("A @ x with a number: use A * x")
            return dense_product(self, other)
        if self.shape[-1] != array.shape[0]:
            raise ShapeError(
                f"A @ B of sparse arrays of shapes {self.shape} and {array.shape}: the last length "
                f"of A must be the first of B{at(user_line())}."
            )
        if self.ndim == 1 or array.ndim == 1:
            product = dense_product(self, array.toarray())
            return product if not shape_of(product) else self.made_dense(product)
        if self.format == array.format == "csc":
            return (array.T @ self.T).T
        return self.like(*sparse_product(self.tocsr(), array.tocsr()))

    def __rmatmul__(self, other: Any) -> Any:
        array = self.as_sparse(other)
        if array is not None:
            return array @ self
        other = operand(other)
        if other is NotImplemented:
            return NotImplemented
        if not shape_of(other):
            raise ValueError("x @ A with a number: use x * A")
        if self.ndim == 1:
            return lookup("matmul")(other, self.toarray())
        product = dense_product(self.T, transposed(other))
        return transposed(product)

    def dot(self, other: Any) -> Any:
        """The matrix product; the product with a number."""
        return self @ other if shape_of_any(other) else self * other

    # ---- elementwise functions ---------------------------------------------------------------

    def applied(self, op: Any, *operands: Any) -> Any:
        """A function with f(0) = 0 of the elements."""
        array = self.canonical()
        return array.with_data(op(array.data, *operands))

    def power(self, n: Any, dtype: Any = None) -> Any:
        """The elements to a power, which must be positive."""
        if not isinstance(n, Handle) and not np.all(np.asarray(n) > 0):
            raise NotImplementedError(
                f"the elements of a sparse array to the power {n}: zeros would not stay zero. Use "
                f"A.toarray() ** {n}, or A.with_data(A.data ** {n}){at(user_line())}."
            )
        array = self if dtype is None else self.astype(dtype)
        return array.applied(lookup("power"), n)

    def __pow__(self, n: Any) -> Any:
        if not self.is_matrix:
            return self.power(n)
        n = operator.index(n)
        if n < 1 or self.shape[0] != self.shape[1]:
            raise ValueError(f"the power {n} of a sparse matrix of shape {self.shape}")
        half = self ** (n // 2) if n > 1 else None
        if half is None:
            return self
        return half @ half @ self if n % 2 else half @ half

    def __abs__(self) -> Any:
        return self.applied(lookup("absolute"))

    def conjugate(self, copy: bool = True) -> Any:
        """The complex conjugate."""
        if self.dtype.kind != "c":
            return self.copy() if copy else self
        return self.with_data(lookup("conjugate")(self.data))

    conj = conjugate

    @property
    def real(self) -> Any:
        """The real part."""
        return self.with_data(self.data.real)

    @property
    def imag(self) -> Any:
        """The imaginary part."""
        return self.with_data(self.data.imag)

    def maximum(self, other: Any) -> Any:
        """The larger elements of two sparse arrays; of one and a number that is not positive."""
        return self._extreme("maximum", other, 1)

    def minimum(self, other: Any) -> Any:
        """The smaller elements of two sparse arrays; of one and a number that is not negative."""
        return self._extreme("minimum", other, -1)

    def _extreme(self, name: str, other: Any, sign: int) -> Any:
        array = self.as_sparse(other)
        if array is not None:
            return self._combined(array, lookup(name))
        if shape_of_any(other) or isinstance(other, Handle) or sign * other > 0:
            raise ConversionError(
                f"{name} of a sparse array and {other!r} would be dense: use A.toarray()"
                f"{at(user_line())}."
            )
        return self.applied(lookup(name), other)

    # ---- comparisons -------------------------------------------------------------------------

    def _compared(self, name: str, other: Any) -> Any:
        array = self.as_sparse(other)
        if not self.is_plain or (array is not None and not array.is_plain):
            raise ConversionError(
                f"A {name} B of sparse arrays of tensors: which elements the result has depends on "
                "values. Compare the elements, A.data, or dense arrays, A.toarray()"
                f"{at(user_line())}."
            )
        compare = getattr(operator, name)
        return compare(self.numpy(), other if array is None else array.numpy())

    def __lt__(self, other: Any) -> Any:
        return self._compared("lt", other)

    def __le__(self, other: Any) -> Any:
        return self._compared("le", other)

    def __gt__(self, other: Any) -> Any:
        return self._compared("gt", other)

    def __ge__(self, other: Any) -> Any:
        return self._compared("ge", other)

    def __eq__(self, other: object) -> Any:
        return self._compared("eq", other)

    def __ne__(self, other: object) -> Any:
        return self._compared("ne", other)

    __hash__ = None  # type: ignore[assignment]


def _unary(name: str) -> Callable[[Any], Any]:
    def method(self: Any) -> Any:
        return self.applied(lookup(name))

    method.__name__ = name
    method.__doc__ = f"{name} of each element."
    return method


for _name in UNARY:
    setattr(Arithmetic, _name, _unary(_name))


def shape_of_any(x: Any) -> tuple[Any, ...]:
    """The shape of an array, sparse array, tensor, list or number."""
    if isinstance(x, Conversion) or sp.issparse(x):
        return x.shape
    return shape_of(x) if isinstance(x, Handle) else np.shape(x)


def transposed(x: Any) -> Any:
    """The transpose of a matrix; a vector as it is."""
    return x if len(shape_of(x)) < 2 else lookup("transpose")(x, axes=(1, 0))


def common_dtype(*arrays: Any) -> Any:
    """The dtype of the elements of a result."""
    return np.result_type(*[dtype_of(a.data) for a in arrays])
