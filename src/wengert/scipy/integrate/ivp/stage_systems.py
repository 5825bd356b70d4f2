"""Linear systems of stages: with factors for several right-hand sides, or by iterative refinement.

    stage_matrix           scale * M - J, by the structure of the Jacobian
    StageMatrix            a matrix that is factorized once
    FactoredRule           a solution with given factors, and its derivative of any order
    StructuredMatrix       a banded or sparse matrix, given by its products
    structured_jacobian    products with a Jacobian that is banded or sparse, and its pattern
    identity               the identity of the size of a Jacobian
    StageSystem            a system that is factorized
    DenseNearSystem        a dense system, solved by products and the factors of a matrix near
    near_factors           the factors of the matrix near, and its norm

The derivative of a solution of `StageMatrix` is a solution with the same factors: of the change of
the right-hand side and of the matrix in forward mode, with the adjoint in reverse mode.  The
derivative of the factorization itself is not taken.  Banded and sparse systems are `StageSystem`s.
Solutions with a singular matrix are not finite, so that the step is rejected.

A correction of `DenseNearSystem` is a solution with the factors of the matrix near; it is repeated
until the residual is that of a stable method [1]_, so that the solution has the accuracy of a
factorization, which takes over if the residual decreases slowly, and in batches.  The solution does
not depend on the matrix near, whose cotangent is zero.  Nearly singular matrices are not refused:
Newton's iteration does not converge with them, so that they are those of rejected steps, whose
derivatives are zero (reverse mode) or not used.

References
----------
.. [1] N. J. Higham, Accuracy and Stability of Numerical Algorithms (2002), chapters 7 and 12.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.autodiff.grad import stop_gradient
from wengert._engine.autodiff.jvp_vjp import jvp
from wengert._engine.autodiff.vmap import vmap
from wengert._engine.control_flow import cond, while_loop
from wengert._engine.core import pytree
from wengert._engine.core.graph_classes import Body
from wengert._engine.core.handle import shape_of
from wengert._engine.core.spec import Spec
from wengert._engine.core.trace_notes import note
from wengert._engine.implicit.functions import GraphFunction
from wengert._engine.implicit.linear_methods import (
    MatrixStructure,
    Singular,
    entries_of,
    solve_structured,
    structure_of,
)
from wengert._engine.implicit.linear_systems import LinearSystem, matrix
from wengert._engine.implicit.solver_calls import SolverRule, solver_call
from wengert._engine.ops.linalg.linear_solve import adjoint
from wengert._engine.ops.linalg.packed_factors import lu_or_nan, solve_or_nan, solve_packed

from .method import IvpProblem

LEAST_REFINED = 32  # unknowns; factors of smaller matrices take as long as the corrections
_MAX_CORRECTIONS = 16
_SLOW_RATE = 0.25  # of the residual: a factorization takes over
_ACCURACY = 64  # of the residual, in units of rounding
_ONE = pytree.flatten(0.0)[1]


class StageSystem(LinearSystem):
    """A linear system with the Jacobian of the equation of a stage.

    Parameters
    ----------
    product : GraphFunction
    spec : Spec
        Of the right-hand side.
    is_adjoint : bool
    """

    name = "stages"

    def __init__(self, product: GraphFunction, spec: Spec, is_adjoint: bool = False) -> None:
        super().__init__(product, _ONE, [spec], is_adjoint=is_adjoint)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._key == other._key

    def __hash__(self) -> int:
        return hash((type(self), self._key))

    def at_sizes(self, sizes: Any) -> LinearSystem:
        """The same system with numbers for symbolic sizes."""
        product = self.product.at_sizes(sizes)
        return type(self)(product, product.outputs[0].spec, self.is_adjoint)

    def _with(self, is_adjoint: bool, of_derivative: bool) -> LinearSystem:
        """The system with the same function, or its adjoint."""
        return type(self)(self.product, self.specs[0], is_adjoint)

    def _factorized(self, consts: Sequence[Any], b: Sequence[Any]) -> list[Any]:
        """The solution by the factors of the matrix, not finite if it is singular.

        For zeros it is zero, whatever the matrix.
        """
        size = shape_of(b[0])[0]
        structure = self._structure(size)
        note("linear system", f"{self.name}: {size} unknowns; the matrix is {structure}")
        if structure.kind != "dense":
            x = self._structured(structure, consts, b[0])
            return [np.where(np.all(b[0] == 0), 0.0, x)]
        x = self._solved(lu_or_nan(matrix(self.product, consts, self.specs)), b[0])
        return [np.where(np.all(b[0] == 0), 0.0, x)]

    def _structured(self, structure: MatrixStructure, consts: Sequence[Any], b: Any) -> Any:
        def products(vectors: Any) -> Any:
            return vmap(lambda x: self.product(consts, [x])[0])(vectors)

        dtype, singular = self.specs[0].dtype, Singular(or_nan=True)
        return solve_structured(structure, products, b, self.is_adjoint, dtype, singular)

    def _solved(self, factors: tuple[Any, Any], b: Any) -> Any:
        return solve_packed(*factors, b[:, None], trans=2 if self.is_adjoint else 0)[:, 0]


class DenseNearSystem(StageSystem):
    """A dense system; the first values that its product captures are those of `near_factors`."""

    def body_for_batch(self, body: Body, captured: int) -> Body:
        """Factors of its own: the elements of a batch need different numbers of corrections."""
        return GraphFunction.traced_alone(
            lambda *xs: super(DenseNearSystem, self)._factorized(xs[captured:-1], xs[-1:]),
            [n.spec for n in body.inputs],
            self.name,
        ).body

    def _factorized(self, consts: Sequence[Any], b: Sequence[Any]) -> list[Any]:
        """The solution by refinement, or by factors of its own."""
        (packed, pivots, norm), right = consts[:3], b[0]
        size = shape_of(right)[0]
        note("linear system", f"{self.name}: {size} unknowns; by the factors of the step")
        unit = _ACCURACY * float(np.finfo(self.specs[0].dtype).eps)
        allowed = unit * _norm(right)

        def correction(state: Any) -> Any:
            x, residual, size, _, count = state
            x = x + self._solved((packed, pivots), residual)
            residual = right - self.applied(consts, [x])[0]
            new = _norm(residual)
            is_done = new <= allowed + unit * norm * _norm(x)
            continues = ~is_done & (new < _SLOW_RATE * size) & (count < _MAX_CORRECTIONS)
            return x, residual, np.where(is_done, 0.0, new), continues, count + 1

        start = 0.0 * right, right, _norm(right), np.any(right != 0), np.int64(1)
        x, _, left, _, _ = while_loop(lambda s: s[3], correction, start)
        x = cond(
            left == 0,
            lambda x, *values: x,
            lambda x, *values: super(DenseNearSystem, self)._factorized(values[:-1], values[-1:])[
                0
            ],
            x,
            *consts,
            right,
        )
        return [x]


def near_factors(a: Any) -> tuple[Any, Any, Any]:
    """The factors of a matrix as `lu_or_nan` returns them, and its norm of Frobenius."""
    return *lu_or_nan(a), _norm(a)


def _norm(x: Any) -> Any:
    squares = (x * np.conj(x)).real if x.dtype.kind == "c" else x * x
    return np.sqrt(np.sum(squares))


UNROLLED = 4  # unknowns of systems that native code solves without a call of LAPACK
_LEAST_STRUCTURED = 32  # unknowns of systems whose pattern is looked for


def stage_matrix(problem: IvpProblem, t: Any, y: Any, scale: Any) -> StageMatrix | StructuredMatrix:
    """The matrix ``scale * M - J`` at a state, ready to solve systems."""
    found = structured_jacobian(problem, t, y)
    if found is not None:
        return StructuredMatrix(lambda v: scale * v - found.products(v))
    jac = problem.jacobian(t, y)
    mass = identity(jac) if problem.mass is None else problem.mass
    return StageMatrix(scale * mass - jac)


class StageMatrix:
    """A square matrix, factorized when it is made if it has more than a few rows.

    a : the matrix; it is differentiated.
    """

    def __init__(self, a: Any) -> None:
        self.a = a
        self._factors: Any = None
        if not (isinstance(size := shape_of(a)[0], int) and size <= UNROLLED):
            self._factors = lu_or_nan(stop_gradient(a))

    def solve(self, b: Any) -> Any:
        """The solution for a vector."""
        if self._factors is None:
            return solve_or_nan(self.a, b)
        return solver_call(FactoredRule(False), [self.a, *self._factors, b])[0]


class FactoredRule(SolverRule):
    """The solution of ``a x = b``, or of the adjoint system, with factors of a.

    Its operands are the matrix, its factors as `lu_or_nan` returns them, and the vector.
    """

    name = "stages"

    def __init__(self, is_adjoint: bool) -> None:
        self.is_adjoint = is_adjoint

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FactoredRule) and self.is_adjoint == other.is_adjoint

    def __hash__(self) -> int:
        return hash((FactoredRule, self.is_adjoint))

    def solution(self, operands: Sequence[Any]) -> list[Any]:
        """Substitution."""
        _, packed, pivots, b = operands
        x = solve_packed(packed, pivots, b[:, None], trans=2 if self.is_adjoint else 0)
        return [x[:, 0]]

    def bars(
        self, operands: Sequence[Any], outs: Sequence[Any], ts: Sequence[Any], saved: Any = None
    ) -> list[Any]:
        """The cotangents: one solution of the adjoint system."""
        a, packed, pivots, _ = operands
        other = FactoredRule(not self.is_adjoint)
        b_bar = solver_call(other, [a, packed, pivots, ts[0]])[0]
        left, right = (outs[0], b_bar) if self.is_adjoint else (b_bar, outs[0])
        # A solution that is not used has the cotangent zero, also if it is not finite.
        is_used = np.any(ts[0] != 0)
        b_bar = np.where(is_used, b_bar, 0.0)
        a_bar = np.where(is_used, -left[:, None] * np.conj(right)[None, :], 0.0)
        return [a_bar, None, None, b_bar]

    def dots(self, operands: Sequence[Any], outs: Sequence[Any], dots: Sequence[Any]) -> list[Any]:
        """The tangent: one more solution of the same system."""
        a, packed, pivots, _ = operands
        a_dot, _, _, right = dots
        if a_dot is not None:
            change = (adjoint(a_dot) if self.is_adjoint else a_dot) @ outs[0]
            right = -change if right is None else right - change
        return solver_call(self, [a, packed, pivots, right])


def identity(jacobian: Any) -> Any:
    """The mass matrix of a problem without one."""
    return np.eye(shape_of(jacobian)[0])


class StructuredMatrix:
    """A square matrix that is banded or sparse.

    products : the products with it.
    """

    def __init__(self, products: Callable[[Any], Any]) -> None:
        self.products = products

    def solve(self, b: Any) -> Any:
        """The solution for a vector."""
        spec = Spec(shape_of(b), b.dtype)
        product, consts = GraphFunction.traced(lambda v: [self.products(v)], [spec], "the stage")
        return StageSystem(product, spec)(consts, [b])[0]


class StructuredJacobian(NamedTuple):
    """A Jacobian that is banded or sparse.

    products : the product with a vector.
    structure : with the diagonal.
    """

    products: Callable[[Any], Any]
    structure: MatrixStructure

    def entries(self, scale: Any, dtype: Any) -> Any:
        """The entries of ``I - scale * J``, which is sparse."""
        rows = vmap(lambda v: v - scale * self.products(v))
        return entries_of(self.structure, rows, dtype)


def structured_jacobian(problem: IvpProblem, t: Any, y: Any) -> StructuredJacobian | None:
    """The Jacobian if it is banded or sparse; otherwise None.

    The pattern is that of the right-hand side as a graph; with a mass matrix, or a Jacobian that
    the caller gives, it is not looked for.
    """
    n = shape_of(y)[0]
    if problem.mass is not None or problem.jac is not None:
        return None
    if not isinstance(n, int) or n < _LEAST_STRUCTURED:
        return None

    def products(v: Any) -> Any:
        return jvp(lambda y: problem.f(t, y), (y,), (v,))[1]

    spec = Spec((n,), y.dtype)
    # With the diagonal, which the matrix of the stages has in any case.
    found, _ = GraphFunction.traced(
        lambda v: [v - products(v)], [spec], "products with the Jacobian"
    )
    structure = structure_of(found.body, found.captured, n)
    return StructuredJacobian(products, structure) if structure.kind != "dense" else None
