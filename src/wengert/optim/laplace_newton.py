"""The mode of the random effects: Newton's method with a sparse Hessian.

The derivative of the mode u(theta), where the gradient g(u, theta) is zero, is that of the implicit
function theorem: one linear system with the Hessian, whose factors are those of the last step.

    JointFunction   the negative log joint density of a vector, and its derivatives
    Newton          the iteration, as a solver
    ModeRule        the mode as a node with its derivative
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from wengert._engine.autodiff.grad import grad
from wengert._engine.autodiff.jvp_vjp import jvp
from wengert._engine.core import pytree
from wengert._engine.core.handle import describe, value_of
from wengert._engine.core.op import lookup
from wengert._engine.core.spec import Spec
from wengert._engine.core.uniform_arrays import zeros
from wengert._engine.implicit.functions import GraphFunction
from wengert._engine.implicit.solver_calls import SolverRule, solver_call
from wengert._engine.jit import jit
from wengert.errors import ConvergenceError, at, user_line
from wengert.scipy.optimize.solver_operation import Outcome
from wengert.scipy.sparse.linalg.factors import factorized
from wengert.scipy.sparse.linalg.matrix_patterns import MatrixPattern, pattern_of
from wengert.scipy.sparse.linalg.solve_operation import sparse_solve
from wengert.sparse import sparse_hessian

_STEP = 1e-6  # relative size of a full step after which the error is that of rounding
_SHIFTS = 30  # attempts to make a Hessian positive definite
_HALVINGS = 40
_SUFFICIENT = 1e-4  # of the decrease that the gradient promises (Armijo)


class JointFunction:
    """The negative log joint density as a function of a vector and of parameters.

    Parameters
    ----------
    fun : callable
        ``fun(u, params)``, with a vector `u`.

    Attributes
    ----------
    value, gradient : callable
        Of ``(u, params)``, compiled.
    hessian : SparseDerivative
        With respect to `u`.
    cross_pull : callable
        ``cross_pull(params, u, w)``: the gradient of ``w @ gradient`` with respect to the
        parameters.
    cross_push : callable
        ``cross_push(params, u, dots)``: the change of the gradient for a change of the parameters.
    """

    def __init__(self, fun: Callable[[Any, Any], Any]) -> None:
        self.fun = fun
        self.value, self.gradient = jit(fun), jit(grad(fun))
        self.hessian = sparse_hessian(fun)
        self.cross_pull = jit(grad(lambda p, u, w: np.sum(grad(fun)(u, p) * w)))
        self.cross_push = jit(lambda p, u, d: jvp(lambda q: grad(fun)(u, q), (p,), (d,))[1])


class Newton:
    """Newton's method with line search, for a positive definite sparse Hessian.

    Parameters
    ----------
    indices, indptr : ndarray
        The pattern of the Hessian, in the CSR format.
    max_steps : int
    """

    def __init__(self, indices: Any, indptr: Any, max_steps: int) -> None:
        self.indices, self.indptr, self.max_steps = indices, indptr, max_steps
        self._key = indices.tobytes(), indptr.tobytes(), max_steps

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Newton) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __call__(self, functions: Sequence[Callable[[Any], Any]], starts: Sequence[Any]) -> Outcome:
        """Find the minimum of ``functions[0]``, given its gradient and Hessian."""
        value, gradient, entries = functions
        u = np.array(starts[0], float)
        current = float(value(u))
        for k in range(self.max_steps):
            slope = np.asarray(gradient(u))
            if not (np.isfinite(current) and np.all(np.isfinite(slope))):
                return Outcome(u, False, 1, k, k)
            if not np.any(slope):
                return Outcome(u, True, 0, k, k)
            step = self._step(np.asarray(entries(u)), slope)
            if step is None:
                return Outcome(u, False, 2, k, k)
            size = float(np.max(np.abs(step)) / (1.0 + np.max(np.abs(u))))
            if size <= _STEP:
                return Outcome(u + step, True, 0, k + 1, k + 1)
            found = _searched(value, u, current, step, float(slope @ step))
            if found is None:
                return Outcome(u, False, 3, k, k)
            u, current = found
        return Outcome(u, False, 4, self.max_steps, self.max_steps)

    def _step(self, data: Any, slope: Any) -> Any:
        """The step; the diagonal is increased as far as necessary for it to be a descent.

        The factors are not kept: the Hessian at the mode is that after the last step.
        """
        shift, shifted = 0.0, data
        for _ in range(_SHIFTS):
            try:
                factor = factorized(self._pattern, shifted, "pos")
                step = -factor.solve(slope[:, None])[:, 0]
                if np.all(np.isfinite(step)) and slope @ step < 0:
                    return step
            except LinAlgError:
                pass
            shift = max(10.0 * shift, 1e-3 * float(np.max(np.abs(data), initial=1e-8)))
            shifted = data + shift * self._diagonal
        return None

    @functools.cached_property
    def _pattern(self) -> MatrixPattern:
        return pattern_of(self.indices, self.indptr)

    @functools.cached_property
    def _diagonal(self) -> Any:
        """Which entries are in the diagonal."""
        rows = np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))
        return rows == self.indices


def _searched(
    value: Callable[[Any], Any], u: Any, current: float, step: Any, slope: float
) -> tuple[Any, float] | None:
    """The next point and value: a step that decreases the value sufficiently."""
    length, rounding = 1.0, 1e-12 * (1.0 + abs(current))
    for _ in range(_HALVINGS):
        new = float(value(u + length * step))
        if new <= current + _SUFFICIENT * length * slope + rounding:
            return u + length * step, new
        length *= 0.5
    return None


class ModeRule(SolverRule):
    """The mode; operands are the leaves of the parameters, and the initial vector."""

    name = "laplace: the mode of the random effects"

    def __init__(self, joint: JointFunction, structure: Any, max_steps: int) -> None:
        self.joint, self.structure, self.max_steps = joint, structure, max_steps
        self._key = joint, structure, max_steps

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ModeRule) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def params(self, leaves: Sequence[Any]) -> Any:
        """The parameters with these leaves."""
        return pytree.unflatten(self.structure, list(leaves))

    def _newton(self, u: Any, params: Any) -> Newton:
        plan = self.joint.hessian.plan(u, params)
        return Newton(plan.indices, plan.indptr, self.max_steps)

    def values(self, operands: Sequence[Any]) -> tuple[Any, ...]:
        """The mode for plain operands.

        Raises
        ------
        ConvergenceError
            Newton's method did not converge.
        """
        *leaves, u = operands
        params, joint = self.params(leaves), self.joint
        plan = joint.hessian.plan(u, params)
        outcome = self._newton(u, params)(
            [
                lambda v: value_of(joint.value(v, params)),
                lambda v: value_of(joint.gradient(v, params)),
                lambda v: value_of(plan.values(v, params)),
            ],
            [u],
        )
        if not outcome.success:
            raise ConvergenceError(
                f"laplace: the mode of the random effects was not found in {outcome.nit} steps "
                f"({_REASONS[outcome.status]}). Check the model at these parameters, or give other "
                f"initial values of the random effects{at(user_line())}."
            )
        return (outcome.solution,)

    def solution(self, operands: Sequence[Any]) -> list[Any]:
        """The mode in a graph; NaN if it is not found."""
        *leaves, u = operands
        joint, entries = self.joint, self.joint.hessian.plan(u, self.params(leaves)).values
        specs = [Spec(s.shape, s.dtype) for s in map(describe, operands)]
        functions = [
            lambda *x: [joint.value(x[-1], self.params(x[:-1]))],
            lambda *x: [joint.gradient(x[-1], self.params(x[:-1]))],
            lambda *x: [entries(x[-1], self.params(x[:-1]))],
        ]
        graphs, captured = GraphFunction.traced_together(functions, specs, self.name)
        consts = [*captured, *leaves]
        found = lookup("scipy_solver")(
            *consts,
            u,
            functions=tuple([g.body for g in graphs]),
            captured=len(consts),
            solver=self._newton(u, self.params(leaves)),
        )
        return [lookup("where")(found[1], found[0], np.nan)]

    def _solved(self, leaves: Sequence[Any], u: Any, b: Any) -> Any:
        """The solution of the linear system with the Hessian at the mode."""
        params = self.params(leaves)
        plan = self.joint.hessian.plan(u, params)
        column = lookup("expand_dims")(b, axis=1)
        data = plan.values(u, params)
        x = sparse_solve(data, plan.indices, plan.indptr, column, assume="pos", checked=True)
        return lookup("reshape")(x, shape=(-1,))

    def bars(
        self, operands: Sequence[Any], outs: Sequence[Any], ts: Sequence[Any], saved: Any = None
    ) -> list[Any]:
        """The cotangents: one linear system."""
        *leaves, _ = operands
        multipliers = self._solved(leaves, outs[0], ts[0])
        pulled = self.joint.cross_pull(self.params(leaves), outs[0], multipliers)
        return [*[-x for x in pytree.flatten(pulled)[0]], None]

    def dots(self, operands: Sequence[Any], outs: Sequence[Any], dots: Sequence[Any]) -> list[Any]:
        """The tangents: one linear system."""
        *leaves, _ = operands
        filled = [
            zeros(describe(x)) if d is None else d for x, d in zip(leaves, dots[:-1], strict=True)
        ]
        change = self.joint.cross_push(self.params(leaves), outs[0], self.params(filled))
        return [-self._solved(leaves, outs[0], change)]


_REASONS = {
    1: "the density or its gradient is not finite",
    2: "the Hessian could not be made positive definite",
    3: "no step decreases the negative log density",
    4: "the limit of steps was reached",
}


def mode_of(joint: JointFunction, start: Any, params: Any, max_steps: int) -> Any:
    """The mode for these parameters, whose leaves may be tensors."""
    leaves, structure = pytree.flatten(params)
    (u,) = solver_call(ModeRule(joint, structure, max_steps), [*leaves, start])
    return u
