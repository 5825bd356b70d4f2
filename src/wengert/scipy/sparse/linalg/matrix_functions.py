"""Matrices as iterative methods use them: by their products, which are differentiated.

MatrixFunction    the interface: products, their derivatives, SciPy's object
CompressedMatrix     of the arrays of the CSR format
GraphProduct      of a linear operator, as graphs
matrix_function   of a sparse or dense array or a linear operator, with its captured values
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse.linalg

from wengert._engine.control_flow.closure_conversion import closed, together
from wengert._engine.core.graph_classes import evaluated
from wengert._engine.core.op import lookup
from wengert._engine.core.spec import Spec
from wengert._engine.implicit.functions import GraphFunction
from wengert._engine.ops import casts
from wengert._engine.ops.sparse_products import (
    csr_matmul,
    csr_sampled_matmul,
    csr_transposed_matmul,
)

from ...optimize.solver_operation import bound, of_last
from .operands import LinearOperator, aslinearoperator, compressed_rows, is_sparse


def _conjugate(x: Any) -> Any:
    return lookup("conjugate")(x) if x.dtype.kind == "c" else x


class MatrixFunction:
    """A matrix whose elements depend on captured values; hashable.

    Attributes
    ----------
    shape : pair of int
    dtype : dtype
    captured : int
        The number of captured values.
    """

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    captured: int

    @property
    def adjoint(self) -> MatrixFunction:
        """The adjoint matrix, which depends on the same values."""
        raise NotImplementedError

    def scipy_matrix(self, consts: Sequence[Any], compiled: bool) -> Any:
        """SciPy's array or linear operator for plain values."""
        raise NotImplementedError

    def __call__(self, consts: Sequence[Any], x: Any) -> Any:
        """The product with a vector."""
        raise NotImplementedError

    def cotangents(self, consts: Sequence[Any], x: Any, t: Any) -> list[Any]:
        """The cotangents of the captured values for that of the product; None for integers."""
        raise NotImplementedError

    def tangent(self, consts: Sequence[Any], x: Any, dots: Sequence[Any]) -> Any:
        """The tangent of the product for tangents of the captured values; None if it is zero."""
        raise NotImplementedError


class CompressedMatrix(MatrixFunction):
    """A matrix in CSR format, or its adjoint; captured are data, indices, indptr."""

    captured = 3

    def __init__(self, shape: tuple[int, int], dtype: Any, is_adjoint: bool = False) -> None:
        self.shape, self.dtype, self.is_adjoint = shape, np.dtype(dtype), is_adjoint
        self._key = shape, self.dtype, is_adjoint

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CompressedMatrix) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def adjoint(self) -> CompressedMatrix:
        """The adjoint matrix."""
        return CompressedMatrix(self.shape[::-1], self.dtype, not self.is_adjoint)

    def scipy_matrix(self, consts: Sequence[Any], compiled: bool) -> Any:
        """SciPy's array."""
        data, indices, indptr = map(np.asarray, consts)
        shape = self.shape[::-1] if self.is_adjoint else self.shape
        a = scipy.sparse.csr_array((data, indices, indptr), shape=shape)
        return a.conj().T if self.is_adjoint else a

    def __call__(self, consts: Sequence[Any], x: Any) -> Any:
        """The product with a vector."""
        return self._with(consts[0], consts, x)

    def _with(self, data: Any, consts: Sequence[Any], x: Any) -> Any:
        if self.is_adjoint:
            columns = self.shape[0]
            return csr_transposed_matmul(_conjugate(data), x, *consts[1:], columns=columns)
        return csr_matmul(data, x, *consts[1:])

    def cotangents(self, consts: Sequence[Any], x: Any, t: Any) -> list[Any]:
        """The cotangent of the data."""
        left, right = (x, t) if self.is_adjoint else (t, x)
        return [csr_sampled_matmul(left, _conjugate(right), *consts[1:]), None, None]

    def tangent(self, consts: Sequence[Any], x: Any, dots: Sequence[Any]) -> Any:
        """The product with the tangent of the data."""
        return None if dots[0] is None else self._with(dots[0], consts, x)


class GraphProduct(MatrixFunction):
    """A linear operator, whose products are graphs with the same captured values."""

    def __init__(
        self, product: GraphFunction, other: GraphFunction, shape: tuple[int, int], dtype: Any
    ) -> None:
        self._product, self._other = product, other
        self.shape, self.dtype, self.captured = shape, np.dtype(dtype), product.captured
        self._key = product, other, shape, self.dtype

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GraphProduct) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def adjoint(self) -> GraphProduct:
        """The adjoint matrix."""
        return GraphProduct(self._other, self._product, self.shape[::-1], self.dtype)

    def scipy_matrix(self, consts: Sequence[Any], compiled: bool) -> Any:
        """SciPy's linear operator, which calls the graphs."""

        def product(function: GraphFunction) -> Any:
            body, dtype = function.body, self.dtype
            run = bound(body, consts) if compiled else of_last(evaluated(body), consts)

            def times(x: Any) -> Any:
                x = np.asarray(x).reshape(-1)
                if x.dtype.kind == "c" != dtype.kind:
                    return times(x.real) + 1j * times(x.imag)
                return np.array(run(x.astype(dtype)))  # SciPy writes into it

            return times

        return scipy.sparse.linalg.LinearOperator(
            self.shape, product(self._product), product(self._other), dtype=self.dtype
        )

    def __call__(self, consts: Sequence[Any], x: Any) -> Any:
        """The product with a vector."""
        return self._product(consts, [x])[0]

    def cotangents(self, consts: Sequence[Any], x: Any, t: Any) -> list[Any]:
        """The cotangents of the captured values."""
        return self._product.cotangents_of_captured(consts, [x], [t])

    def tangent(self, consts: Sequence[Any], x: Any, dots: Sequence[Any]) -> Any:
        """The tangent for tangents of the captured values."""
        found = self._product.tangent_of_captured(consts, [x], dots)
        return None if found is None else found[0]


def matrix_function(a: Any, dtype: Any, what: str) -> tuple[MatrixFunction, list[Any]]:
    """A matrix as a function of the values that it depends on, and these.

    Parameters
    ----------
    a : array, sparse array or LinearOperator
    dtype : dtype
        Of the operands of its products.
    what : str
        The function that is called, for messages.
    """
    if is_sparse(a):
        rows = compressed_rows(a, what)
        data = rows.data if rows.data.dtype == dtype else casts.astype(rows.data, dtype)
        return CompressedMatrix(rows.shape, dtype), [data, rows.indices, rows.indptr]
    return of_operator(aslinearoperator(a), dtype, what)


def of_operator(a: LinearOperator, dtype: Any, what: str) -> tuple[MatrixFunction, list[Any]]:
    """A linear operator as graphs, and the values that it captures."""

    def traced(product: Any, length: int) -> Any:
        def of_leaves(x: Any) -> list[Any]:
            y = product(x)
            return [y if y.dtype == dtype else casts.astype(y, dtype)]

        return closed(of_leaves, [Spec((length,), np.dtype(dtype))], what, hoist=False)

    closures = [traced(a.matvec, a.shape[1]), traced(a.rmatvec, a.shape[0])]
    bodies, captured = together(closures)
    functions = [GraphFunction(body, len(captured)) for body in bodies]
    return GraphProduct(functions[0], functions[1], a.shape, dtype), list(captured)
