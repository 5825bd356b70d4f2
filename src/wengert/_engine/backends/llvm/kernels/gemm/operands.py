"""Operands of matrix products.

MatrixAxis    a length and a stride
Matrix        an address and two axes
Scale         a factor of a product
Product       c = alpha * a @ b + beta * c, or + beta * addend
Subscripts    an array and its einsum subscripts
leading       how BLAS reads a matrix: transposed or not, and the leading dimension
is_readable   whether BLAS reads a matrix without a copy
Epilogue      scaling and accumulation of the product of two arrays
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from wengert._engine.core.symbolic.dim import Length, bounds, names_in

from ...ir.index_analysis import is_stride
from ...ir.ir_builder import Name, Section
from ...ir.llvm_types import Dtype
from ..kernel_call import ArrayPointer, KernelCall
from ..loop_helpers import read


class MatrixAxis(NamedTuple):
    """The length of an axis and its stride, in elements."""

    length: Length
    stride: Length


class Matrix(NamedTuple):
    """The address of the first element, the axis of rows and the axis of columns."""

    pointer: Name
    rows: MatrixAxis
    columns: MatrixAxis

    @property
    def transposed(self) -> Matrix:
        """The transpose, of the same memory."""
        return Matrix(self.pointer, self.columns, self.rows)


class Scale(NamedTuple):
    """A factor of a product: a constant, times a number that is read from memory at run time.

    Parameters
    ----------
    number : number
    pointer : ArrayPointer, optional
        The number in memory, of shape ().
    """

    number: complex = 1.0
    pointer: ArrayPointer | None = None

    def applied(self, call: KernelCall, s: Section, total: Any) -> Any:
        """A lane multiplied by the factor."""
        if self.pointer is not None:
            return total * self.value(call, s, total.dtype)
        if self.number != 1:
            return total * call.language.constant(self.number, total.dtype)
        return total

    def value(self, call: KernelCall, s: Section, dtype: Dtype) -> Any:
        """The factor as a lane, if there is a number in memory."""
        assert self.pointer is not None
        language = call.language
        factor = read(language, s, self.pointer.pointer, self.pointer.dtype)
        factor = language.cast(factor, dtype)
        return factor if self.number == 1 else factor * language.constant(self.number, dtype)


ONE = Scale()


class Product(NamedTuple):
    """c = alpha * a @ b + beta * c.

    Parameters
    ----------
    a, b, c : Matrix
        Of shapes (m, k), (k, n), (m, n); each must be `is_readable` if BLAS has the dtype.
    dtype : numpy.dtype
        Of all three.
    alpha : Scale
    beta : number
        If it is 0, c is not read. For dtypes unknown to BLAS alpha is 1 and beta 0 or 1.
    addend : str, optional
        The address of a matrix with the strides of c, which is added instead of c. Calls of BLAS
        take none (`write_product` copies it to c).
    """

    a: Matrix
    b: Matrix
    c: Matrix
    dtype: Dtype
    alpha: Scale = ONE
    beta: complex = 0.0
    addend: Name | None = None

    @property
    def transposed(self) -> Product:
        """The same product as c.T = b.T @ a.T."""
        a, b, c = self.b.transposed, self.a.transposed, self.c.transposed
        return self._replace(a=a, b=b, c=c)

    @property
    def sizes(self) -> tuple[Length, Length, Length]:
        """Rows and columns of c, and columns of a."""
        return self.c.rows.length, self.c.columns.length, self.a.columns.length

    @property
    def operations(self) -> Length:
        """Multiplications and additions."""
        m, n, k = self.sizes
        return 2 * m * n * k


def at_least(x: Length, y: Length) -> bool:
    """Whether x >= y is known for all sizes."""
    difference = x - y
    if any(is_stride(name) for name in names_in([difference])):
        return False  # strides may be negative, and are zero where an array is broadcast
    low = bounds(difference)[0]
    return low is not None and low >= 0


def leading(matrix: Matrix) -> tuple[str, Length] | None:
    """The BLAS arguments for a row-major matrix: ("N", stride of rows) or ("T", stride of columns).

    None if BLAS cannot read the matrix.
    """
    rows, columns = matrix.rows, matrix.columns
    if columns.stride == 1 or columns.length == 1:
        if rows.length == 1:
            return "N", columns.length
        if at_least(rows.stride, columns.length):
            return "N", rows.stride
    if rows.stride == 1 or rows.length == 1:
        if columns.length == 1:
            return "T", rows.length
        if at_least(columns.stride, rows.length):
            return "T", columns.stride
    return None


def is_readable(matrix: Matrix) -> bool:
    """Whether BLAS reads a matrix, or a vector, without a copy."""
    if leading(matrix) is not None:
        return True
    rows, columns = matrix.rows, matrix.columns
    vector = rows if columns.length == 1 else columns if rows.length == 1 else None
    return vector is not None and at_least(vector.stride, 1)


class Subscripts(NamedTuple):
    """An array and the einsum subscripts of its axes; axes of length one are left out."""

    array: ArrayPointer
    labels: str

    def axis(self, label: str) -> MatrixAxis:
        """The axis of a subscript; an axis of length one if the array does not have it."""
        k = self.labels.find(label)
        return (
            MatrixAxis(self.array.shape[k], self.array.strides[k]) if k >= 0 else MatrixAxis(1, 0)
        )

    def merged(self, labels: Sequence[str]) -> MatrixAxis | None:
        """Several axes as one, the last varying fastest; None if their strides do not allow it."""
        length: Length = 1
        stride: Length = 0
        for label in reversed(labels):
            axis = self.axis(label)
            if length == 1:
                stride = axis.stride
            elif axis.stride != stride * length:
                return None
            length = axis.length * length
        return MatrixAxis(length, stride)


def subscripts(array: ArrayPointer, labels: str) -> Subscripts:
    """An array and its subscripts without those of axes of length one."""
    axes = [k for k, n in enumerate(array.shape) if n != 1]
    shape, strides = (tuple(x[k] for k in axes) for x in (array.shape, array.strides))
    return Subscripts(
        array._replace(shape=shape, strides=strides), "".join(labels[k] for k in axes)
    )


def arranged(w: Subscripts, labels: Sequence[str]) -> ArrayPointer:
    """The array with its axes in the order of some subscripts, of length one for others."""
    axes = [w.axis(c) for c in labels]
    return w.array._replace(
        shape=tuple(x.length for x in axes), strides=tuple(x.stride for x in axes)
    )


class Epilogue(NamedTuple):
    """Scaling and accumulation of a product before it is written: alpha * product + beta * addend.

    Without an addend, the previous content of the result is added.
    """

    alpha: Scale = ONE
    beta: complex = 0.0
    addend: Subscripts | None = None


PLAIN = Epilogue()
