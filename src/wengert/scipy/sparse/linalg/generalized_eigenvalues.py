"""Generalized eigenvalue problems A v = w M v, and those of linear operators.

    eigenpairs     eigenvalues, and eigenvectors with ``v^H M v = 1``
    EigenRoot      their equation

An eigenvalue and its vector are a root of ``A v - w M v`` and ``l^H v - 1`` for a constant vector
l, here M times the vector that is found.  The equation is holomorphic, and its Jacobian is regular
if the eigenvalue is simple: the bordered matrix

    [A - w M   -M v]
    [l^H         0 ]

which SuperLU factorizes once for each pair, so that both modes and all orders follow from the rule
of roots.  Then the vector is normalized.  For operators the systems are solved by GMRES; a random
right-hand side, which is solved for too, shows that the eigenvalue is simple.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wengert._engine.core.handle import Handle
from wengert._engine.core.op import lookup
from wengert._engine.implicit import custom_linear_solve
from wengert._engine.implicit.functions import GraphFunction, Leaves
from wengert._engine.implicit.linear_methods import probe_vector
from wengert._engine.implicit.linear_systems import LinearSystem
from wengert._engine.implicit.roots import Root
from wengert._engine.implicit.solver_calls import solver_call
from wengert._engine.ops import casts
from wengert.errors import ShapeError, at, user_line

from ...optimize.solver_operation import SolverOptions
from ..arrays import csr_array
from ..construction import block_array
from .eigenvalue_rules import EigenMethod
from .iterative_systems import results
from .matrix_functions import matrix_function
from .operands import LinearOperator, square
from .solve_operation import sparse_solve

_csr_array: Any = csr_array  # whose arguments type checkers do not see


class _Matrix:
    """A matrix of the problem: an array or an operator.

    Attributes
    ----------
    array : sparse array or None
        Its elements are differentiated; None for an operator.
    fixed : sparse array or None
        The same as constants.
    """

    def __init__(self, given: Any, what: str) -> None:
        self.given, self.array, self.fixed = given, None, None
        if isinstance(given, LinearOperator):
            self.shape, self.dtype = given.shape, given.dtype
            return
        rows = square(given, what)
        data = rows.data
        constant = lookup("stop_gradient")(data) if isinstance(data, Handle) else data
        self.array, self.fixed = [
            _csr_array((x, rows.indices, rows.indptr), shape=rows.shape) for x in (data, constant)
        ]
        self.shape, self.dtype = rows.shape, data.dtype

    def product(self, v: Any) -> Any:
        """The product with a vector, which is differentiated."""
        return self.given.matvec(v) if self.array is None else self.array @ v

    def function(self, dtype: Any, what: str) -> tuple[Any, list[Any]]:
        """The matrix for SciPy, and the values that it captures, as constants."""
        function, consts = matrix_function(
            self.given if self.fixed is None else self.fixed, dtype, what
        )
        constant = lookup("stop_gradient")
        return function, [constant(x) if isinstance(x, Handle) else x for x in consts]


def eigenpairs(what: str, A: Any, M: Any, options: dict[str, Any]) -> tuple[Any, Any]:
    """Eigenvalues and eigenvectors; those of Hermitian problems in ascending order.

    Parameters
    ----------
    what : str
        'eigsh' or 'eigs'.
    A, M : array, sparse array or LinearOperator
        M, or None for the identity, is Hermitian and positive definite, which is not checked.
    options : dict
        Of SciPy's function.

    Raises
    ------
    ShapeError
        Their shapes differ.
    """
    given = [_Matrix(x, what) for x in (A, M) if x is not None]
    if given[0].shape != given[-1].shape:
        raise ShapeError(
            f"{what}: A has shape {A.shape} and M {M.shape}; they must be equal{at(user_line())}."
        )
    dtype = np.result_type(*[x.dtype for x in given], np.float32)
    functions = [x.function(dtype, what) for x in given]
    method = EigenMethod(what, options["k"], SolverOptions(options))
    captured = [x for _, consts in functions for x in consts]
    values, vectors = results(captured, [function for function, _ in functions], method)
    pairs = [_pair(what, given, values[k], vectors[:, k]) for k in range(options["k"])]
    w = np.stack([w for w, _ in pairs])
    return w.real if what == "eigsh" else w, np.stack([v for _, v in pairs], axis=1)


def _pair(what: str, given: list[_Matrix], value: Any, vector: Any) -> tuple[Any, Any]:
    """A pair with its derivative.

    given : A, or A and M.
    value, vector : constants.
    """
    a, mass = given[0], given[1] if len(given) > 1 else None
    value = casts.astype(value, vector.dtype)

    def weighted(v: Any) -> Any:
        return v if mass is None else mass.product(v)

    left = lookup("stop_gradient")(_conjugate(weighted(vector)))

    def residual(y: Any) -> Any:
        v, w = y
        return a.product(v) - w * weighted(v), np.sum(left * (v - vector))

    solves: tuple[Solve, Solve] = (_by_products, _by_products)
    if a.fixed is not None and (mass is None or mass.fixed is not None):
        solves = _by_factors(a.fixed, mass.fixed if mass else None, value, vector, left)
    v, w = _root(what, residual, (vector, value), *solves)
    return w, v / np.sqrt(np.sum(_conjugate(v) * weighted(v)).real)


Solve = Callable[[Any, Any], Any]


def _by_factors(a: Any, mass: Any, value: Any, vector: Any, left: Any) -> tuple[Solve, Solve]:
    """Solutions with the Jacobian, whose matrix is known, and with its adjoint."""
    border = lookup("stop_gradient")(-vector if mass is None else -(mass @ vector))

    def solved(b: Any, trans: int) -> Any:
        shifted = a - value * (_identity(a.shape[0]) if mass is None else mass)
        matrix = block_array(
            [[shifted, _csr_array(border[:, None])], [_csr_array(left[None, :]), None]]
        ).tocsr()
        data = casts.astype(matrix.data, border.dtype)
        right = lookup("concatenate")(b[0], lookup("reshape")(b[1], shape=(1,)), axis=0)
        x = sparse_solve(
            data, matrix.indices, matrix.indptr, right[:, None], trans=trans, checked=True
        )[:, 0]
        return x[:-1], x[-1]

    return lambda _, b: solved(b, 0), lambda _, b: solved(b, 2)


def _identity(size: int) -> Any:
    rows = np.arange(size + 1)
    return _csr_array((np.ones(size), rows[:-1], rows), shape=(size, size))


def _by_products(product: Any, b: Any) -> Any:
    """The solution by GMRES; NaN or an error if the matrix is singular."""
    probe = probe_vector(b[0].shape[0]).astype(b[0].dtype), np.ones((), b[0].dtype)
    x = custom_linear_solve(product, b, "gmres")
    other = custom_linear_solve(product, probe, "gmres")
    is_regular = np.isfinite(np.sum(other[0]) + other[1])
    return tuple([np.where(is_regular, part, np.nan) for part in x])


def _root(what: str, residual: Any, start: Any, solve: Solve, adjoint_solve: Solve) -> Any:
    """The root of a function, which is known."""
    guess = Leaves.of(start, what)

    def of_leaves(*ys: Any) -> list[Any]:
        return guess.like(residual(guess.container(ys)), what)

    function, consts = GraphFunction.traced(of_leaves, guess.specs, what)
    rule = EigenRoot(what, function, guess, solve, adjoint_solve)
    return guess.container(solver_call(rule, [*consts, *guess.values]))


class EigenRoot(Root):
    """A root that is known, and solutions with its Jacobian and with the adjoint of that."""

    def __init__(
        self,
        what: str,
        residual: GraphFunction,
        guess: Leaves,
        solve: Solve,
        adjoint_solve: Solve,
    ) -> None:
        super().__init__(what, residual, guess.structure, guess.specs, lambda _, y: y, solve)
        self.adjoint_solve = adjoint_solve
        self._key = what, residual, solve, adjoint_solve

    def _linearized(self, consts: Any, ys: Any) -> tuple[LinearSystem, list[Any]]:
        """The Jacobian at the root as a linear system, and the values that it captures."""
        given = self._jacobian, self.structure, self.specs, self.tangent_solve, self.adjoint_solve
        return LinearSystem(*given).derivative, [*consts, *ys]


def _conjugate(x: Any) -> Any:
    return np.conjugate(x) if x.dtype.kind == "c" else x
