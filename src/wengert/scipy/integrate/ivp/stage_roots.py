"""The derivative of the stages of a step: linear systems with the Jacobian at each stage.

    stage_root     the solution of the equation of a stage, which is known, with its derivative
    StageRoot      the rule of large sparse systems
    NearSystem     a system that is solved by the factors of another one of the same step

The matrices of the stages differ by the change of the Jacobian in one step.  Those of large sparse
systems are not factorized: one factorization for each step is the preconditioner of all of its
stages (wengert.scipy.sparse.linalg.near_solve_operation).  Small systems are dense.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert._engine.autodiff.vmap import vmap
from wengert._engine.core import pytree
from wengert._engine.core.handle import shape_of
from wengert._engine.core.linear_patterns import patterns
from wengert._engine.core.spec import Spec
from wengert._engine.core.trace_notes import note
from wengert._engine.implicit import custom_root
from wengert._engine.implicit.functions import GraphFunction
from wengert._engine.implicit.linear_systems import LinearSystem
from wengert._engine.implicit.matrix_structure import MatrixStructure, entries_of
from wengert._engine.implicit.roots import Root
from wengert._engine.implicit.solver_calls import solver_call
from wengert._engine.ops.linalg.linear_solve import solve

_DENSE = 64  # unknowns up to which derivatives of stages do not look for a pattern of zeros
_ONE = pytree.flatten(0.0)[1]


def stage_root(
    residual: Callable[[Any], Any], root: Any, structure: MatrixStructure | None, near: Any
) -> Any:
    """The root of a residual that is known, with its derivative.

    Parameters
    ----------
    residual : callable
    root : vector
    structure : MatrixStructure or None
        Of the Jacobian of the residual.
    near : vector
        The entries of a matrix of this structure that is near the Jacobian, if it is sparse.
    """
    if structure is None or structure.kind != "sparse":
        return custom_root(residual, root, unchanged, tangent_solve=stage_solver(root))
    spec = Spec((structure.size,), root.dtype)
    found, consts = GraphFunction.traced(lambda u: [residual(u)], [spec], "the stage")
    inputs = [Spec(tuple(near.shape), near.dtype), *[n.spec for n in found.body.inputs]]
    count = found.captured
    with_near = GraphFunction.traced_alone(
        lambda near, *xs: found(xs[:count], xs[count:]), inputs, "the stage"
    )
    equation = GraphFunction(with_near.body, count + 1)
    return solver_call(StageRoot(equation, spec, structure), [near, *consts, root])[0]


def unchanged(residual: Any, start: Any) -> Any:
    """The initial guess, for a root that is known already."""
    return start


def stage_solver(y: Any) -> Any:
    """The solver of derivatives of stages: dense for small systems; None: by the pattern."""
    n = shape_of(y)[0]
    return _dense if isinstance(n, int) and n <= _DENSE else None


def _dense(product: Any, b: Any) -> Any:
    return solve(vmap(product, out_axes=1)(np.eye(b.shape[0], dtype=b.dtype)), b)


class StageRoot(Root):
    """A root that is known; the first value that the residual captures is that of the matrix near.

    The residual does not depend on it, so that its cotangent is zero.
    """

    def __init__(self, residual: GraphFunction, spec: Spec, structure: MatrixStructure) -> None:
        super().__init__("the stage", residual, _ONE, [spec], unchanged, None)
        self.matrix_structure = structure

    def _key_of(self, *what: Any) -> Any:
        """As in `Root`; systems of one residual have one structure."""
        return ("near", what, self.residual)

    def _linearized(
        self, consts: Sequence[Any], ys: Sequence[Any]
    ) -> tuple[LinearSystem, list[Any]]:
        """The Jacobian at the root as a linear system, and the values that it captures."""
        system = NearSystem(self._jacobian, self.specs[0], self.matrix_structure)
        return system, [*consts, *ys]


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
