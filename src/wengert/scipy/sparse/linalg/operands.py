"""Arguments: sparse arrays, the structure of their matrices, and linear operators.

uses_tensors      whether the elements of an array are a tensor
CompressedRows    the elements and the structure of an array in CSR format
compressed_rows   of a sparse or dense array
square            the same for a square matrix
right_side        a right-hand side as a matrix
check_structure   that the arrays are those of a square matrix
check_lengths     that operands have the lengths of a structure
LinearOperator    by functions, which may capture tensors
aslinearoperator  of a sparse or dense array
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse.linalg

from wengert._engine.autodiff.jvp_vjp import vjp
from wengert._engine.core.conversion_hook import converted
from wengert._engine.core.handle import Handle, dtype_of, shape_of
from wengert._engine.core.op import lookup
from wengert._engine.core.symbolic.constraints import require_equal
from wengert._engine.core.validation import function
from wengert._engine.tensor.numpy_dispatch import as_array
from wengert.errors import ArgumentError, MatrixError, ShapeError, at, user_line

from ...dispatch import floating, holds_tensors


def is_sparse(a: Any) -> bool:
    """Whether an argument is a sparse array of SciPy or of wengert."""
    return not isinstance(a, Handle) and hasattr(a, "tocsr")


def uses_tensors(*arguments: Any) -> bool:
    """Whether tensors, or sparse arrays of tensors, are among the arguments."""
    # SciPy's DOK arrays have no `data`, and hold no tensors.
    return any([holds_tensors(getattr(x, "data", None) if is_sparse(x) else x) for x in arguments])


class CompressedRows(NamedTuple):
    """A matrix in CSR format.

    data : array or tensor of floating or complex numbers.
    indices, indptr : plain arrays.
    shape : pair of int.
    """

    data: Any
    indices: Any
    indptr: Any
    shape: tuple[int, int]

    @property
    def arrays(self) -> tuple[Any, Any, Any]:
        """Data, indices and indptr."""
        return self.data, self.indices, self.indptr


def compressed_rows(a: Any, what: str) -> CompressedRows:
    """A sparse array, or a dense one of which all elements are stored, in CSR format.

    Raises
    ------
    ShapeError
        It does not have two axes.
    """
    if is_sparse(a):
        a = a.tocsr()
        if len(a.shape) != 2:
            raise ShapeError(
                f"{what}: A has shape {a.shape}, and must be a matrix{at(user_line())}."
            )
        return CompressedRows(floating(a.data), a.indices, a.indptr, tuple(a.shape))
    a = floating(a)
    shape = shape_of(a)
    if len(shape) != 2:
        raise ShapeError(f"{what}: A has shape {shape}, and must be a matrix{at(user_line())}.")
    rows, columns = shape
    indices, indptr = np.tile(np.arange(columns), rows), np.arange(rows + 1) * columns
    return CompressedRows(lookup("reshape")(a, shape=(-1,)), indices, indptr, (rows, columns))


def square(a: Any, what: str) -> CompressedRows:
    """A square matrix in CSR format.

    Raises
    ------
    MatrixError
        It is not square.
    """
    rows = compressed_rows(a, what)
    if rows.shape[0] != rows.shape[1]:
        raise MatrixError(
            f"{what}: A has shape {rows.shape}, and must be square. Use lsqr for other systems"
            f"{at(user_line())}."
        )
    return rows


def right_side(b: Any, rows: int, what: str) -> tuple[Any, Any]:
    """A right-hand side as a matrix of floating or complex numbers, and the shape of its solution.

    Raises
    ------
    ArgumentError
        It is sparse.
    ShapeError
        Its first length is not the number of rows, or it has more than two axes.
    """
    if is_sparse(b):
        raise ArgumentError(
            f"{what} of tensors with a sparse right-hand side: its solution is dense. Use "
            f"b.toarray(){at(user_line())}."
        )
    b = floating(as_array(b))
    shape = shape_of(b)
    if len(shape) not in (1, 2) or shape[0] != rows:
        raise ShapeError(
            f"{what}: b has shape {shape}, and must be a vector or a matrix with {rows} rows"
            f"{at(user_line())}."
        )
    return (lookup("expand_dims")(b, axis=1), shape) if len(shape) == 1 else (b, shape)


def choice(given: Any, allowed: tuple[str, ...], name: str, what: str) -> str:
    """An option that is one of some strings.

    Raises
    ------
    ArgumentError
        It is another.
    """
    if given not in allowed:
        listed = ", ".join(map(repr, allowed))
        raise ArgumentError(f"{what}: {name}={given!r} must be one of {listed}{at(user_line())}.")
    return str(given)


Plain = np.ndarray[Any, Any]


def check_structure(indices: Plain, indptr: Plain, columns: int | None = None) -> None:
    """Check the arrays of the CSR format of a matrix, by default a square one.

    Raises
    ------
    ShapeError
        `indptr` does not ascend from 0 to the number of entries, or a column does not exist.
    """
    if len(indptr) == 0 or indptr[0] != 0 or indptr[-1] != len(indices):
        ends = f"{indptr[0]} to {indptr[-1]}" if len(indptr) else "nothing"
        problem = f"indptr must ascend from 0 to {len(indices)}, and contains {ends}"
    elif np.any(indptr[1:] < indptr[:-1]):
        problem = "indptr must ascend"
    else:
        n = len(indptr) - 1 if columns is None else columns
        if not len(indices) or (indices.min() >= 0 and indices.max() < n):
            return
        problem = f"there are {n} columns, and indices has {indices.min()} to {indices.max()}"
    raise ShapeError(f"a sparse matrix in CSR format: {problem}{at(user_line())}.")


def check_lengths(data: Any, indices: Any, indptr: Any, b: Any = None) -> None:
    """Check that there is a value for each entry, and a row of `b` for each row.

    Raises
    ------
    ShapeError
        Lengths differ.
    """
    entries = f"{data.shape[-1]} values for {indices.shape[0]} entries of a sparse matrix"
    _require(data.shape[-1], indices.shape[0], entries)
    if b is not None:
        rows = f"a right-hand side of {b.shape[-2]} rows for a matrix of {indptr.shape[0] - 1} rows"
        _require(b.shape[-2], indptr.shape[0] - 1, rows)


def _require(length: Any, other: Any, reason: str) -> None:
    if isinstance(length, int) and isinstance(other, int):
        if length != other:
            raise ShapeError(f"{reason}. The numbers must be equal{at(user_line())}.")
        return
    require_equal(length, other, reason)


Product = Callable[[Any], Any]


class LinearOperator:
    """A matrix that is given by its products with vectors.

    Parameters
    ----------
    shape : pair of int
    matvec : callable
        The product with a vector; captured tensors are differentiated.
    rmatvec : callable, optional
        The product of the adjoint with a vector; by default it is derived from `matvec`.
    matmat, rmatmat : callable, optional
        Products with matrices; by default column by column.
    dtype : dtype, optional
        float64 by default.

    See Also
    --------
    aslinearoperator : of a sparse or dense array.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.sparse.linalg import LinearOperator, cg
    >>> def first(k):
    ...     forces = lambda u: k * np.stack([2 * u[0] - u[1], 2 * u[1] - u[0]])
    ...     return cg(LinearOperator((2, 2), forces), np.ones(2), rtol=1e-10)[0][0]
    >>> round(float(first(2.0)), 9), round(float(wg.grad(first)(2.0)), 9)
    (0.5, -0.25)
    """

    __module__ = "wengert.scipy.sparse.linalg"
    __array_ufunc__ = None
    ndim = 2

    def __init__(
        self,
        shape: tuple[int, int],
        matvec: Product,
        rmatvec: Product | None = None,
        matmat: Product | None = None,
        dtype: Any = None,
        rmatmat: Product | None = None,
    ) -> None:
        rows, columns = shape
        self.shape, self.dtype = (int(rows), int(columns)), np.dtype(dtype or float)
        for given in (matvec, rmatvec, matmat, rmatmat):
            if given is not None:
                function(given, "LinearOperator")
        self._products = matvec, rmatvec, matmat, rmatmat

    def matvec(self, x: Any) -> Any:
        """The product with a vector.

        Raises
        ------
        ShapeError
            A length is wrong.
        """
        return self._product(self._products[0], x, self.shape, "matvec")

    def rmatvec(self, x: Any) -> Any:
        """The product of the adjoint with a vector.

        Raises
        ------
        ShapeError
            A length is wrong.
        """
        given = self._products[1]
        return self._product(given or self._transposed, x, self.shape[::-1], "rmatvec")

    def _product(self, run: Product, x: Any, shape: tuple[int, int], what: str) -> Any:
        given = shape_of(x)
        if given not in ((shape[1],), (shape[1], 1)):
            raise ShapeError(
                f"{what} of a linear operator of shape {self.shape} and an array of shape {given}: "
                f"it must be a vector of length {shape[1]}{at(user_line())}."
            )
        y = converted(run)(lookup("reshape")(x, shape=(shape[1],)))
        if shape_of(y) not in ((shape[0],), (shape[0], 1)):
            raise ShapeError(
                f"{what} of a linear operator of shape {self.shape} returned shape {shape_of(y)}, "
                f"and must return a vector of length {shape[0]}{at(user_line())}."
            )
        return lookup("reshape")(y, shape=(shape[0], *given[1:]))

    def _transposed(self, x: Any) -> Any:
        zeros = np.zeros(self.shape[1], np.result_type(self.dtype, dtype_of(x)))
        return vjp(self.matvec, zeros)[1](x)[0]

    def matmat(self, x: Any) -> Any:
        """The product with a matrix."""
        return self._columns(self._products[2], self.matvec, x)

    def rmatmat(self, x: Any) -> Any:
        """The product of the adjoint with a matrix."""
        return self._columns(self._products[3], self.rmatvec, x)

    @staticmethod
    def _columns(given: Product | None, each: Product, x: Any) -> Any:
        if given is not None:
            return converted(given)(x)
        return lookup("stack")(*[each(x[:, k]) for k in range(shape_of(x)[1])], axis=1)

    def dot(self, x: Any) -> Any:
        """The product with a vector, a matrix, a linear operator, or a number."""
        if isinstance(x, LinearOperator):
            return _composed(self, x)
        if not shape_of(x):
            return _scaled(self, x)
        return self.matvec(x) if len(shape_of(x)) == 1 else self.matmat(x)

    def __matmul__(self, x: Any) -> Any:
        return self.dot(x)

    def __mul__(self, x: Any) -> Any:
        return self.dot(x)

    def __call__(self, x: Any) -> Any:
        """The same as `dot`."""
        return self.dot(x)

    def __rmul__(self, factor: Any) -> LinearOperator:
        return _scaled(self, factor)

    def __neg__(self) -> LinearOperator:
        return _scaled(self, -1.0)

    def __add__(self, other: Any) -> LinearOperator:
        return _sum(self, aslinearoperator(other))

    def __radd__(self, other: Any) -> LinearOperator:
        return _sum(aslinearoperator(other), self)

    def __sub__(self, other: Any) -> LinearOperator:
        return self + (-aslinearoperator(other))

    def adjoint(self) -> LinearOperator:
        """The adjoint operator."""
        return LinearOperator(
            self.shape[::-1], self.rmatvec, self.matvec, self.rmatmat, self.dtype, self.matmat
        )

    @property
    def H(self) -> LinearOperator:
        """The adjoint operator."""
        return self.adjoint()

    def transpose(self) -> LinearOperator:
        """The transposed operator."""
        if self.dtype.kind != "c":
            return self.adjoint()
        conj = np.conjugate
        return LinearOperator(
            self.shape[::-1],
            lambda x: conj(self.rmatvec(conj(x))),
            lambda x: conj(self.matvec(conj(x))),
            dtype=self.dtype,
        )

    @property
    def T(self) -> LinearOperator:
        """The transposed operator."""
        return self.transpose()

    def __repr__(self) -> str:
        rows, columns = self.shape
        return f"<{rows}x{columns} LinearOperator with dtype={self.dtype}>"


def _composed(a: LinearOperator, b: LinearOperator) -> LinearOperator:
    if a.shape[1] != b.shape[0]:
        raise ShapeError(
            f"a product of linear operators of shapes {a.shape} and {b.shape}: the columns of the "
            f"first must be as many as the rows of the second{at(user_line())}."
        )
    return LinearOperator(
        (a.shape[0], b.shape[1]),
        lambda x: a.matvec(b.matvec(x)),
        lambda x: b.rmatvec(a.rmatvec(x)),
        dtype=np.result_type(a.dtype, b.dtype),
    )


def _scaled(a: LinearOperator, factor: Any) -> LinearOperator:
    dtype = np.result_type(a.dtype, dtype_of(factor))
    adjoint_factor = np.conjugate(factor) if dtype.kind == "c" else factor
    return LinearOperator(
        a.shape,
        lambda x: factor * a.matvec(x),
        lambda x: adjoint_factor * a.rmatvec(x),
        dtype=dtype,
    )


def _sum(a: LinearOperator, b: LinearOperator) -> LinearOperator:
    if a.shape != b.shape:
        raise ShapeError(
            f"a sum of linear operators of shapes {a.shape} and {b.shape}: shapes must be equal"
            f"{at(user_line())}."
        )
    return LinearOperator(
        a.shape,
        lambda x: a.matvec(x) + b.matvec(x),
        lambda x: a.rmatvec(x) + b.rmatvec(x),
        dtype=np.result_type(a.dtype, b.dtype),
    )


def aslinearoperator(A: Any) -> LinearOperator:
    """A sparse or dense array as a linear operator.

    Parameters
    ----------
    A : array, sparse array or LinearOperator

    Returns
    -------
    LinearOperator

    Raises
    ------
    ArgumentError
        `A` is a linear operator of SciPy, whose products cannot be differentiated.
    ShapeError
        `A` is not a matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.scipy.sparse.linalg import aslinearoperator
    >>> aslinearoperator(np.array([[1.0, 2.0]])) @ np.array([3.0, 4.0])
    array([11.])
    """
    if isinstance(A, LinearOperator):
        return A
    if isinstance(A, scipy.sparse.linalg.LinearOperator):
        raise ArgumentError(
            "a LinearOperator of SciPy cannot be differentiated: make it by "
            f"wengert.scipy.sparse.linalg.LinearOperator, with the same arguments{at(user_line())}."
        )
    if not is_sparse(A) and not isinstance(A, Handle):
        A = np.asarray(A)
    if len(A.shape) != 2:
        raise ShapeError(
            f"aslinearoperator of an array of shape {A.shape}: it must be a matrix"
            f"{at(user_line())}."
        )
    is_complex = np.dtype(A.dtype).kind == "c"
    transposed = (
        A.T.conj() if is_complex and is_sparse(A) else np.conjugate(A.T) if is_complex else A.T
    )
    product, adjoint_product = (lambda x: A @ x), (lambda x: transposed @ x)
    return LinearOperator(A.shape, product, adjoint_product, product, A.dtype, adjoint_product)
