"""The derivative of the stages of a step: linear systems with the Jacobian at each stage.

    stage_root     the solution of the equation of a stage, which is known, with its derivative
    NearMatrix     a matrix that is near those of all stages of a step
    StageRoot      the rule of large systems
    NearSystem     a sparse system that is solved by the factors of the matrix near

The matrices of the stages differ by the change of the Jacobian in one step.  Those of large systems
are not factorized: one factorization for each step is the preconditioner of all of its stages, of
GMRES for sparse ones (wengert.scipy.sparse.linalg.near_solve_operation), of iterative refinement
for dense ones (stage_systems.py).  Small systems are eliminated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.autodiff.vmap import vmap
from wengert._engine.core import pytree
from wengert._engine.core.handle import describe, shape_of
from wengert._engine.core.loop_variants import patterns
from wengert._engine.core.spec import Spec
from wengert._engine.core.trace_notes import note
from wengert._engine.implicit import custom_root
from wengert._engine.implicit.functions import GraphFunction
from wengert._engine.implicit.linear_methods import MatrixStructure, entries_of
from wengert._engine.implicit.linear_systems import LinearSystem
from wengert._engine.implicit.roots import Root
from wengert._engine.implicit.solver_calls import solver_call
from wengert._engine.ops.linalg.packed_factors import solve_or_nan

from .method import IvpProblem, fixed
from .stage_systems import (
    LEAST_REFINED,
    UNROLLED,
    DenseNearSystem,
    StageSystem,
    StructuredJacobian,
    identity,
    near_factors,
    structured_jacobian,
)

_ONE = pytree.flatten(0.0)[1]


class NearMatrix(NamedTuple):
    """A matrix that is near those of all stages of a step.

    structure : sparse or dense.
    values : its entries, if it is sparse; its factors and what is known of them, if it is dense.
    """

    structure: MatrixStructure
    values: tuple[Any, ...]

    @classmethod
    def of_step(
        cls, problem: IvpProblem, start: tuple[Any, Any], end: tuple[Any, Any], scale: Any
    ) -> NearMatrix | None:
        """The matrix ``M - scale * J`` of a step; None for small and for banded systems.

        start, end : time and state at the start, where Newton's iteration has the factors of a
            sparse matrix, and at the end, where several stages are.
        """
        (t, y), n = start, shape_of(start[1])[0]
        if not isinstance(n, int) or n < LEAST_REFINED:
            return None
        found = structured_jacobian(problem, t, fixed(y))
        if found is None:
            jac = problem.jacobian(end[0], fixed(end[1]))
            mass = identity(jac) if problem.mass is None else problem.mass
            return cls(MatrixStructure("dense", n), near_factors(fixed(mass - scale * jac)))
        return cls.sparse(found, scale, y.dtype)

    @classmethod
    def sparse(cls, jacobian: StructuredJacobian, scale: Any, dtype: Any) -> NearMatrix | None:
        """The matrix ``I - scale * J``; None for a banded one."""
        if jacobian.structure.kind != "sparse":
            return None
        return cls(jacobian.structure, (fixed(jacobian.entries(scale, dtype)),))


def stage_root(residual: Callable[[Any], Any], root: Any, near: NearMatrix | None = None) -> Any:
    """The root of a residual that is known, with its derivative.

    Parameters
    ----------
    residual : callable
    root : vector
    near : NearMatrix or None
        Near the Jacobian of the residual.
    """
    n = shape_of(root)[0]
    if not isinstance(n, int) or n <= UNROLLED:
        return custom_root(residual, root, _unchanged, tangent_solve=_eliminated)
    spec, added = Spec((n,), root.dtype), () if near is None else near.values
    found, consts = GraphFunction.traced(lambda u: [residual(u)], [spec], "the stage")
    specs = [Spec(s.shape, s.dtype) for s in map(describe, added)]
    count, first = found.captured, len(specs)
    with_near = GraphFunction.traced_alone(
        lambda *xs: found(xs[first : first + count], xs[first + count :]),
        [*specs, *[n.spec for n in found.body.inputs]],
        "the stage",
    )
    equation = GraphFunction(with_near.body, count + first)
    rule = StageRoot(equation, spec, None if near is None else near.structure)
    return solver_call(rule, [*added, *consts, root])[0]


def _unchanged(residual: Any, start: Any) -> Any:
    """The initial guess, for a root that is known already."""
    return start


def _eliminated(product: Any, b: Any) -> Any:
    return solve_or_nan(vmap(product, out_axes=1)(np.eye(b.shape[0], dtype=b.dtype)), b)


class StageRoot(Root):
    """A root that is known; the residual captures the values of the matrix near first.

    The residual does not depend on them, so that their cotangents are zero.
    """

    def __init__(
        self, residual: GraphFunction, spec: Spec, structure: MatrixStructure | None
    ) -> None:
        super().__init__("the stage", residual, _ONE, [spec], _unchanged, None)
        self.matrix_structure = structure

    def _key_of(self, *what: Any) -> Any:
        """As in `Root`; systems of one residual have one structure."""
        return ("stage", what, self.residual, self.matrix_structure is None)

    def _linearized(
        self, consts: Sequence[Any], ys: Sequence[Any]
    ) -> tuple[LinearSystem, list[Any]]:
        """The Jacobian at the root as a linear system, and the values that it captures."""
        near, given, values = self.matrix_structure, (self._jacobian, self.specs[0]), [*consts, *ys]
        if near is None:
            return StageSystem(*given), values
        if near.kind == "dense":
            return DenseNearSystem(*given), values
        return NearSystem(*given, near), values


class NearSystem(LinearSystem):
    """A sparse system, and the entries of a matrix near: the first value that is captured.

    Parameters
    ----------
    product : GraphFunction
    spec : Spec
        Of the right-hand side.
    structure : MatrixStructure
        Of both matrices.
    is_adjoint : bool
    """

    name = "stages"

    def __init__(
        self,
        product: GraphFunction,
        spec: Spec,
        structure: MatrixStructure,
        is_adjoint: bool = False,
    ) -> None:
        super().__init__(product, _ONE, [spec], is_adjoint=is_adjoint, of_derivative=True)
        self.matrix_structure = structure
        assert structure.indices is not None and structure.indptr is not None
        pattern = structure.indices.tobytes(), structure.indptr.tobytes()
        self._pattern = pattern

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NearSystem) and (self._key, self._pattern) == (
            other._key,
            other._pattern,
        )

    def __hash__(self) -> int:
        return hash((self._key, self._pattern))

    def _with(self, is_adjoint: bool, of_derivative: bool) -> LinearSystem:
        """The system with the same function, or its adjoint."""
        return NearSystem(self.product, self.specs[0], self.matrix_structure, is_adjoint)

    def _factorized(self, consts: Sequence[Any], b: Sequence[Any]) -> list[Any]:
        """The solution by the factors of the matrix near."""
        structure, near = self.matrix_structure, consts[0]
        own = self._structure(structure.size)
        if own.kind != "sparse" or not _have_one_pattern(own, structure):
            return super()._factorized(consts, b)
        note("linear system", f"{self.name}: {structure.size} unknowns; by the factors of the step")

        def products(vectors: Any) -> Any:
            return vmap(lambda x: self.product(consts, [x])[0])(vectors)

        dtype = self.specs[0].dtype
        data = entries_of(structure, products, dtype)
        right = b[0]
        finite = np.all(np.isfinite(data)) & np.all(np.isfinite(right)) & np.all(np.isfinite(near))
        indices, indptr = structure.indices, structure.indptr
        assert indices is not None and indptr is not None
        diagonal = np.repeat(np.arange(structure.size), np.diff(indptr)) == indices
        data = np.where(finite, data, diagonal.astype(dtype))
        near = np.where(finite, near, diagonal.astype(dtype))
        x = patterns().operation("sparse.near_solve")(
            data,
            near,
            indices,
            indptr,
            np.where(finite, right, 0.0)[:, None],
            trans=2 if self.is_adjoint else 0,
        )
        return [np.where(finite, x[:, 0], np.nan)]


def _have_one_pattern(a: MatrixStructure, b: MatrixStructure) -> bool:
    return np.array_equal(a.indices, b.indices) and np.array_equal(a.indptr, b.indptr)  # type: ignore[arg-type]
