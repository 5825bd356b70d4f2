"""Newton's method with one matrix for all iterations, for the stages of implicit methods.

    IterationMatrix    M - h gamma J, whose factors are kept over steps
    newton             the iteration

Nothing here is differentiated: the derivative of a stage is that of the equation that it solves.
The iteration ends when the error that its rate of convergence predicts is a small part of the
tolerance; the rate is carried from stage to stage, so that one iteration is often enough [1]_.

References
----------
.. [1] E. Hairer, G. Wanner, Solving Ordinary Differential Equations II (1996), IV.8.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.control_flow import cond, while_loop
from wengert._engine.core.handle import shape_of
from wengert._engine.ops.linalg.packed_factors import lu_or_nan, solve_or_nan, solve_packed

from .method import IvpProblem, Tolerance, fixed, rms
from .stage_systems import UNROLLED, StructuredMatrix, identity, structured_jacobian

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
