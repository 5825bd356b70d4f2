"""Linear systems of stages in derivatives: with factors of their own, or by iterative refinement.

    StageSystem       a system that is factorized
    DenseNearSystem   a dense system that is solved by products and the factors of a matrix near
    near_factors      the factors of the matrix near, and its norm

A correction is a solution with the factors of the matrix near; it is repeated until the residual is
that of a stable method [1]_, so that the solution has the accuracy of a factorization, which takes
over if the residual decreases slowly, and in batches.  The solution does not depend on the matrix
near, whose cotangent is zero.

Nearly singular matrices are not refused: Newton's iteration does not converge with them, so that
they are those of rejected steps, whose derivatives are zero (reverse mode) or not used.

References
----------
.. [1] N. J. Higham, Accuracy and Stability of Numerical Algorithms (2002), chapters 7 and 12.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert._engine.autodiff.vmap import vmap
from wengert._engine.control_flow import cond, while_loop
from wengert._engine.core import pytree
from wengert._engine.core.handle import shape_of
from wengert._engine.core.spec import Spec
from wengert._engine.core.subgraph import Body
from wengert._engine.core.trace_notes import note
from wengert._engine.implicit.functions import GraphFunction
from wengert._engine.implicit.linear_systems import LinearSystem, matrix
from wengert._engine.implicit.matrix_structure import MatrixStructure, Singular, solve_structured
from wengert._engine.ops.linalg.packed_storage import solve_packed
from wengert._engine.ops.linalg.solve_or_nan import lu_or_nan

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
