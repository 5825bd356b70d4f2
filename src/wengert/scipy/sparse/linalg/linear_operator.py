"""Linear operators: matrices that are given by their products.

LinearOperator     by functions, which may capture tensors
aslinearoperator   of a sparse or dense array
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse.linalg

from wengert._engine.autodiff.jvp_vjp import vjp
from wengert._engine.core.conversion_hook import converted
from wengert._engine.core.handle import Handle, dtype_of, shape_of
from wengert._engine.core.op import lookup
from wengert._engine.core.validation import function
from wengert.errors import ArgumentError, ShapeError, at, user_line

from .operands import is_sparse

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
