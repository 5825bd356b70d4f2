"""Equations of the stages of implicit methods: their solution and its derivative.

    IterationMatrix  M - h gamma J, whose factors are kept over steps
    newton           the iteration
    stage_root       the solution of the equation of a stage, which is known, with its derivative
    NearMatrix       a matrix that is near those of all stages of a step
    StageRoot        the rule of large systems
    NearSystem       a sparse system that is solved by the factors of the matrix near

Newton's iteration is not differentiated: the derivative of a stage is that of the equation that it
solves.  The iteration ends when the error that its rate of convergence predicts is a small part of
the tolerance; the rate is carried from stage to stage, so that one iteration is often enough [1]_.

The matrices of the stages differ by the change of the Jacobian in one step.  Those of large systems
are not factorized: one factorization for each step is the preconditioner of all of its stages, of
GMRES for sparse ones (wengert.scipy.sparse.linalg.near_solve_operation), of iterative refinement
for dense ones (stage_systems.py).  Small systems are eliminated.

References
----------
.. [1] E. Hairer, G. Wanner, Solving Ordinary Differential Equations II (1996), IV.8.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.autodiff.vmap import vmap
from wengert._engine.control_flow import cond, while_loop
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
from wengert._engine.ops.linalg.packed_factors import lu_or_nan, solve_or_nan, solve_packed

from .method import IvpProblem, Tolerance, fixed, rms
from .stage_systems import (
    LEAST_REFINED,
    UNROLLED,
    DenseNearSystem,
    StageSystem,
    StructuredJacobian,
    StructuredMatrix,
    identity,
    near_factors,
    structured_jacobian,
)

MAX_ITERATIONS = 8
_SLOW_RATE = 0.3  # of convergence: the next step computes the Jacobian anew
_SMALLEST_ETA = 1e-16
_STEP_CHANGE = 0.2  # relative change of the step size up to which factors are kept
_RUNNING, _CONVERGED, _FAILED = 0, 1, 2


class IterationMatrix(NamedTuple):
    """The matrix ``M - h gamma J`` of the iteration, and what is needed to keep it.

    jac : the Jacobian at the start of this step or of an earlier one; empty if it is banded or
        sparse: then it is that of this step.
    packed, pivots : factors of the matrix; empty for small systems, which are factorized anew, and
        for banded and sparse ones.
    step : the step size of the factors.
    is_current : whether `jac` is that at the start of this step.
    is_needed : whether the next step computes the Jacobian.
    """

    jac: Any
    packed: Any
    pivots: Any
    step: Any
    is_current: Any
    is_needed: Any

    @classmethod
    def empty(cls, problem: IvpProblem, t: Any, y: Any) -> IterationMatrix:
        """Before the first step, from the state `y`."""
        n = 0 if structured_jacobian(problem, t, y) is not None else shape_of(y)[0]
        size = 0 if is_small(y) else n
        return cls(
            np.zeros((n, n), y.dtype),
            np.zeros((size, size), y.dtype),
            np.zeros((size,), np.int32),
            np.float64(0.0),
            np.bool_(False),
            np.bool_(True),
        )

    def updated(
        self, problem: IvpProblem, t: Any, y: Any, h: Any, gamma: float
    ) -> tuple[IterationMatrix, Any, Any]:
        """The matrix for a step of size h from (t, y).

        Returns
        -------
        matrix : IterationMatrix
        jac, lu : numbers
            Of Jacobians and of factorizations that are computed.
        """
        if shape_of(self.jac)[0] == 0:
            return self._replace(step=h, is_current=np.bool_(True)), 1, 1
        if is_small(y):
            jac = fixed(problem.jacobian(t, y))
            return self._replace(jac=jac, step=h, is_current=np.bool_(True)), 1, 1
        jac = cond(
            self.is_needed,
            lambda t, y, old: fixed(problem.jacobian(t, y)),
            lambda t, y, old: old,
            t,
            y,
            self.jac,
        )
        changed = self.is_needed | (np.abs(h - self.step) > _STEP_CHANGE * np.abs(self.step))
        packed, pivots, step = cond(
            changed,
            lambda jac, h, *old: (*lu_or_nan(_matrix(problem, jac, h * gamma)), h),
            lambda jac, h, *old: old,
            jac,
            h,
            self.packed,
            self.pivots,
            self.step,
        )
        found = IterationMatrix(
            jac, packed, pivots, step, self.is_current | self.is_needed, np.bool_(False)
        )
        return found, np.where(self.is_needed, 1, 0), np.where(changed, 1, 0)

    def solution(self, problem: IvpProblem, t: Any, y: Any, scale: Any, b: Any) -> Any:
        """The solution for a vector; scale is h gamma, (t, y) the start of the step."""
        if shape_of(self.jac)[0] == 0:
            found = structured_jacobian(problem, t, y)
            assert found is not None
            return StructuredMatrix(lambda v: v - scale * found.products(v)).solve(b)
        if is_small(b):
            return solve_or_nan(_matrix(problem, self.jac, scale), b)
        return solve_packed(self.packed, self.pivots, b[:, None])[:, 0]

    def after(self, slowest: Any, converged: Any) -> tuple[IterationMatrix, IterationMatrix]:
        """For the next step, and for another attempt of this one.

        slowest : the largest rate of convergence.
        """
        again = (slowest > _SLOW_RATE) | ~converged
        accepted = self._replace(is_current=np.bool_(False), is_needed=again)
        return accepted, self._replace(is_needed=again & ~self.is_current)


def is_small(y: Any) -> bool:
    """Whether systems for `y` are factorized anew for each vector, in native code."""
    n = shape_of(y)[0]
    return isinstance(n, int) and n <= UNROLLED


def _matrix(problem: IvpProblem, jac: Any, scale: Any) -> Any:
    mass = identity(jac) if problem.mass is None else problem.mass
    return mass - scale * jac


class StageIterations(NamedTuple):
    """The result of the iteration.

    x : the solution.
    converged : whether it is one.
    eta : the factor from the size of a correction to that of the remaining error.
    rate : the rate of convergence.
    iterations : their number.
    """

    x: Any
    converged: Any
    eta: Any
    rate: Any
    iterations: Any


def newton_tolerance(tolerance: Tolerance) -> Any:
    """The size of corrections to neglect, relative to the tolerance of the step."""
    rtol = np.maximum(np.max(tolerance.rtol), np.finfo(np.float64).eps)
    return np.maximum(10 * np.finfo(np.float64).eps / rtol, np.minimum(0.03, np.sqrt(rtol)))


def newton(
    residual: Callable[[Any], Any],
    correction: Callable[[Any], Any],
    start: Any,
    scale: Any,
    small: Any,
    eta: Any,
    enabled: Any,
) -> StageIterations:
    """Solve ``residual(x) == 0``; ``correction`` solves a linear system with the matrix.

    Parameters
    ----------
    residual, correction : callable
    start : array
    scale : array
        The tolerated errors of the components.
    small : number
        As `newton_tolerance` returns it.
    eta : number
        Of the equation solved before.
    enabled : bool
        Whether to iterate at all.
    """

    def step(state: Any) -> Any:
        _, x, size, rate, eta, count = state
        change = correction(residual(x))
        new_size = rms(change / scale)
        is_first = count == 0
        rate = np.where(is_first, 0.0, new_size / np.where(size > 0, size, 1.0))
        below_1 = np.where(rate < 1, 1.0 - rate, 1.0)
        root = np.sqrt(np.maximum(eta, _SMALLEST_ETA))
        eta = np.where(is_first, root * np.sqrt(root), rate / below_1)
        is_done = (new_size == 0) | ((rate < 1) & (eta * new_size < small))
        fails = ~np.isfinite(new_size) | (rate >= 1) | (count >= MAX_ITERATIONS - 1)
        status = np.where(is_done, _CONVERGED, np.where(fails, _FAILED, _RUNNING))
        return status, x - change, new_size, rate, eta, count + 1

    state = (
        np.where(enabled, _RUNNING, _FAILED),
        start,
        np.float64(0.0),
        np.float64(0.0),
        eta,
        np.int64(0),
    )
    status, x, _, rate, eta, count = while_loop(lambda s: s[0] == _RUNNING, step, state)
    return StageIterations(*[fixed(v) for v in (x, status == _CONVERGED, eta, rate, count)])


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
