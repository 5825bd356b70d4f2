"""SciPy's minimize as a solver, with the multipliers of constraints.

MinimizeSolver           the solver
WITHOUT_DERIVATIVES, WITH_HESSIANS, WITH_CONSTRAINTS, METHODS   which methods need what
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.optimize

from .solver_operation import Function, Outcome, SolverOptions

WITHOUT_DERIVATIVES = frozenset(("nelder-mead", "powell", "cobyla", "cobyqa"))
WITH_HESSIANS = frozenset(
    "newton-cg dogleg trust-ncg trust-krylov trust-exact trust-constr".split()
)
WITH_CONSTRAINTS = frozenset(("slsqp", "trust-constr", "cobyla", "cobyqa"))
METHODS = (
    "nelder-mead powell cg bfgs newton-cg l-bfgs-b tnc cobyla cobyqa slsqp trust-constr dogleg "
    "trust-ncg trust-exact trust-krylov"
).split()
_BOUND_DISTANCE = 1e-6  # a relative distance at which a solver is at a bound
_INTERIOR_DISTANCE = 1e-3  # a relative distance at which an interior method may end
_IMBALANCE_LIMIT = (
    1e-2  # relative error of the conditions at which a result is not taken for a minimum
)


@dataclass(frozen=True)
class MinimizeSolver:
    """`scipy.optimize.minimize` with its options.

    Its functions take the unknowns, followed by multipliers that they do not read.

    size : the number of unknowns.
    names : what the functions are.
    bounded : whether lower and upper bounds are the second and third of the starts.
    equalities, inequalities : the numbers of constraints.
    """

    method: str
    tol: float | None
    callback: Any
    options: SolverOptions | None
    size: int
    names: tuple[str, ...]
    bounded: bool
    equalities: int
    inequalities: int

    def __call__(self, functions: Sequence[Function], starts: Sequence[Any]) -> Outcome:
        """Call SciPy, and determine the multipliers."""
        padding = np.zeros(self.equalities + self.inequalities)  # functions ignore multipliers
        by_name: dict[str, Function] = {
            name: _of_unknowns(f, padding) for name, f in zip(self.names, functions, strict=True)
        }
        more: dict[str, Any] = {k: by_name[k] for k in ("jac", "hess") if k in by_name}
        if self.method in WITHOUT_DERIVATIVES:
            more = {}
        if self.bounded:
            more["bounds"] = scipy.optimize.Bounds(starts[1], starts[2])
        constraints = [self._constraint(k, by_name) for k in ("eq", "ineq") if k in by_name]
        if constraints:
            more["constraints"] = constraints
        found = scipy.optimize.minimize(
            lambda x: float(by_name["fun"](x)),
            np.asarray(starts[0], float),
            method=self.method,
            tol=self.tol,
            callback=self.callback,
            options=None if self.options is None else dict(self.options.value),
            **more,
        )
        x = np.asarray(found.x, float).reshape(self.size)
        multipliers, balanced = self._multipliers(x, by_name, starts)
        status = found.get("status", -1)
        return Outcome(
            np.concatenate([x, multipliers]),
            bool(found.success) and balanced,
            status,
            found.get("nfev", -1),
            found.get("nit", -1),
            found,
        )

    def _constraint(self, kind: str, by_name: dict[str, Function]) -> Any:
        fun, jac = by_name[kind], by_name[f"{kind}_jac"]
        if self.method != "trust-constr":
            return {"type": kind, "fun": fun, "jac": jac}
        second = by_name[f"{kind}_hess"]
        upper = 0.0 if kind == "eq" else np.inf
        return scipy.optimize.NonlinearConstraint(
            fun, 0.0, upper, jac, lambda x, v: np.tensordot(v, second(x), 1)
        )

    def _multipliers(
        self, x: Any, by_name: dict[str, Function], starts: Sequence[Any]
    ) -> tuple[np.ndarray[Any, Any], bool]:
        """The multipliers, zero for inactive constraints, and whether the gradients balance.

        Interior methods stop at some distance from active constraints.  So the multipliers are
        first estimated by least squares with a penalty for distance; those that are positive are
        then estimated without it.
        """
        kinds = [k for k in ("eq", "ineq", "bound") if k in by_name]
        if not kinds:
            return np.zeros(0), True
        rows = [np.reshape(by_name[f"{k}_jac"](x), (-1, self.size)) for k in kinds]
        matrix, count = np.concatenate(rows).T, self.equalities + self.inequalities
        lengths = np.linalg.norm(matrix, axis=0)
        slope = np.reshape(by_name["jac"](x), (-1,))
        free = np.ones(self.size, bool)
        if self.bounded and "bound" not in kinds:
            room = np.minimum(x - starts[1], starts[2] - x)
            free = room > _BOUND_DISTANCE * (1.0 + np.abs(x))
        distances = np.zeros(count)
        if self.inequalities:
            values = [np.reshape(by_name[k](x), (-1,)) for k in kinds if k != "eq"]
            scale = lengths[self.equalities :] * (1.0 + np.linalg.norm(x)) + np.finfo(float).tiny
            distances[self.equalities :] = np.concatenate(values) / scale
        penalty = np.clip(distances, 0.0, 1e6) / _INTERIOR_DISTANCE
        lower = np.where(np.arange(count) < self.equalities, -np.inf, 0.0)
        penalized = np.concatenate([matrix[free], np.diag(penalty * lengths)])
        target = np.concatenate([slope[free], np.zeros(count)])
        first = scipy.optimize.lsq_linear(penalized, target, (lower, np.inf), tol=1e-14).x
        relative = first * lengths / (np.linalg.norm(slope) + np.finfo(float).tiny)
        active = (np.arange(count) < self.equalities) | (
            (relative > np.maximum(distances, _BOUND_DISTANCE))
            & (distances < 10.0 * _INTERIOR_DISTANCE)
        )
        multipliers = np.zeros(count)
        if active.any() and free.any():
            multipliers[active] = scipy.optimize.lsq_linear(
                matrix[free][:, active], slope[free], (lower[active], np.inf), tol=1e-14
            ).x
        remaining = np.linalg.norm(slope[free] - matrix[free] @ multipliers)
        start = np.reshape(by_name["jac"](np.asarray(starts[0], float)), (-1,))
        scale = max(
            _IMBALANCE_LIMIT * np.linalg.norm(slope), 0.1 * _IMBALANCE_LIMIT * np.linalg.norm(start)
        )
        return multipliers, bool(remaining <= scale)


def _of_unknowns(f: Function, padding: Any) -> Function:
    return lambda x: np.array(f(np.concatenate([x, padding])), float)
