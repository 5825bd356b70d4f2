"""Minimization of functions of a vector, with bounds and constraints.

    minimize              all methods of SciPy, with exact derivatives
    MinimizationProblem   objective, constraints and conditions of a minimum

The conditions are equations of unknowns and multipliers (optimality.py); SciPy's methods solve them
(minimize_solver.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.optimize

from wengert._engine.autodiff.grad import grad
from wengert._engine.autodiff.jacobians import hessian, jacobian
from wengert._engine.core.conversion_hook import converted
from wengert._engine.core.spec import Spec
from wengert._engine.ops import casts
from wengert._engine.tensor.numpy_dispatch import as_array
from wengert.errors import ArgumentError, ShapeError, at, user_line

from ..dispatch import floating
from .constraints import Constraints, bounds_of, number_of_values, plain_start
from .equations import DerivedFunction, Solved, solve, uses_tensors
from .minimize_solver import METHODS, WITH_CONSTRAINTS, WITH_HESSIANS, MinimizeSolver
from .optimality import at_bounds, complementarity, minimal_value, projected
from .roots import result_of
from .solver_operation import Function, SolverOptions

__all__ = ["minimize"]


def minimize(
    fun: Callable[..., Any],
    x0: Any,
    args: Any = (),
    method: str | None = None,
    jac: Any = None,
    hess: Any = None,
    hessp: Any = None,
    bounds: Any = None,
    constraints: Any = (),
    tol: float | None = None,
    callback: Any = None,
    options: dict[str, Any] | None = None,
) -> Any:
    """A minimum of a scalar function, as ``scipy.optimize.minimize``.

    Parameters
    ----------
    fun : callable
        ``fun(x, *args)``, a number; captured tensors are differentiated.
    x0 : array
        The initial guess, as a vector; its derivative is zero.
    args : tuple
        Further arguments, which are differentiated.
    method : str, optional
        All of SciPy's.
    jac, hess : callable, bool, optional
        By default exact derivatives are used by methods that need them; otherwise as in SciPy.
    hessp : callable, optional
        It has no effect: the exact Hessian is used.
    bounds : Bounds, or sequence of pairs, optional
        The ends may be tensors, which are differentiated.
    constraints : dict, LinearConstraint, NonlinearConstraint, or sequence of them
        Captured tensors of their functions are differentiated. Derivatives that they have are not
        used: exact ones are.
    tol, callback, options
        As in SciPy.

    Returns
    -------
    OptimizeResult
        `x`, `fun` and `jac` are tensors; `multipliers` are those of equalities, then of
        inequalities, if there are constraints. In a graph it has these, `success`, `status`, `nfev`
        and `nit` only.

    Raises
    ------
    ConvergenceError
        The derivative of a solution is needed, and the method did not converge.
    MatrixError
        The derivative is needed, and the minimum is not unique.

    Notes
    -----
    The derivative of `x` costs one linear system with the Hessian of the Lagrange function,
    bordered by the active constraints; that of `fun` costs none (envelope theorem). If a bound or
    constraint is active with a multiplier of zero, the derivative is one-sided.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy import optimize
    >>> def nearest(p):  # the point of the unit circle that is nearest to p
    ...     circle = {"type": "eq", "fun": lambda x: x @ x - 1.0}
    ...     return optimize.minimize(
    ...         lambda x: np.sum((x - p) ** 2), np.ones(2), constraints=circle, tol=1e-12
    ...     ).x
    >>> nearest(np.array([3.0, 4.0])).round(6)
    array([0.6, 0.8])
    >>> wg.jacobian(nearest)(np.array([3.0, 4.0])).round(6)
    array([[ 0.128, -0.096],
           [-0.096,  0.072]])
    """
    args = args if isinstance(args, tuple) else (args,)
    called = converted(fun)
    start_values = plain_start(x0)
    if not _needs_derivatives(method, jac, hess, hessp) and not _involves_tensors(
        called, x0, args, bounds, constraints, start_values
    ):
        return scipy.optimize.minimize(
            fun, x0, args, method, jac, hess, hessp, bounds, constraints, tol, callback, options
        )
    problem = MinimizationProblem(
        called, args, jac, Constraints(constraints, start_values), start_values
    )
    name = _method(method, bounds, problem.limits)
    if bounds is not None:
        problem.set_bounds(bounds_of(bounds, problem.size), name)
    functions = problem.functions(name, hess)
    solver = MinimizeSolver(
        name,
        tol,
        callback,
        None if options is None else SolverOptions(options),
        problem.size,
        tuple(functions),
        problem.ends is not None,
        problem.equal,
        problem.unequal,
    )
    start = casts.astype(floating(x0), float).reshape(-1)
    found = solve(
        f"minimize by {name}",
        [*problem.shared(functions, hess), problem.shared_conditions()],
        len(functions),
        problem.spec,
        solver,
        [start, *(problem.ends or ())],
        count=len(functions),
    )
    return problem.result(found)


class MinimizationProblem:
    """A minimization problem, as functions of unknowns, or of unknowns and multipliers.

    Attributes
    ----------
    size, equal, unequal : int
        The numbers of unknowns, equalities and inequalities.
    ends : tuple or None
        The bounds. Interior methods do not reach active ones, so for them bounds are among the
        inequalities, whose multipliers tell which are active.
    """

    def __init__(
        self, fun: Function, args: tuple[Any, ...], jac: Any, limits: Constraints, start: Any
    ) -> None:
        self.fun, self.args, self.jac, self.limits = fun, args, jac, limits
        self.size = len(start)
        self.equal = number_of_values(limits.equalities, start)
        self.unequal = number_of_values(limits.inequalities, start)
        self.equalities = Constraints.joined(limits.equalities)
        self.ends: tuple[Any, Any] | None = None
        self.is_interior = False

    def set_bounds(self, ends: tuple[Any, Any], method: str) -> None:
        """Add the bounds."""
        self.ends, self.is_interior = ends, method == "trust-constr"
        if self.is_interior:
            self.unequal += 2 * self.size

    @property
    def spec(self) -> Spec:
        """The spec of unknowns and multipliers."""
        return Spec((self.size + self.equal + self.unequal,), np.dtype(float))

    def of_unknowns(self, f: Function) -> Function:
        """A function of the unknowns as one of unknowns and multipliers."""
        return lambda z: as_array(f(z[: self.size]))

    def objective(self, x: Any) -> Any:
        """The function to be minimized."""
        value = self.fun(x, *self.args)
        value = floating(value[0] if self.jac is True else value)
        if value.size != 1:
            raise ShapeError(
                f"minimize: the result of fun has shape {value.shape}, and must be a number"
                f"{at(user_line())}."
            )
        return casts.astype(value.reshape(()), float)

    def slope(self, x: Any) -> Any:
        """Its gradient, from the user or exact."""
        if self.jac is True:
            return as_array(self.fun(x, *self.args)[1])
        if callable(self.jac):
            return as_array(converted(self.jac)(x, *self.args))
        return grad(self.objective)(x)

    def given_inequalities(self, x: Any) -> Any:
        """The inequalities that are not bounds."""
        return Constraints.joined(self.limits.inequalities)(x)

    def from_bounds(self, x: Any) -> Any:
        """The distances from the bounds."""
        assert self.ends is not None
        return np.concatenate([x - self.ends[0], self.ends[1] - x])

    def inequalities(self, x: Any) -> Any:
        """All inequalities."""
        parts = [self.given_inequalities(x)] if self.limits.inequalities else []
        return np.concatenate([*parts, self.from_bounds(x)]) if self.is_interior else parts[0]

    def lagrangian(self, z: Any) -> Any:
        """The Lagrange function."""
        x, value = z[: self.size], self.objective(z[: self.size])
        if self.equal:
            value = value - z[self.size : self.size + self.equal] @ self.equalities(x)
        if self.unequal:
            multipliers = z[self.size + self.equal :]
            # The distance to a bound that does not exist is infinite.
            active = np.where(multipliers > 0.0, self.inequalities(x), 0.0)
            value = value - multipliers @ active
        return value

    def conditions(self, z: Any) -> Any:
        """The conditions of Karush, Kuhn and Tucker."""
        x = z[: self.size]
        ends = () if self.ends is None or self.is_interior else self.ends
        parts = [projected(x, grad(self.lagrangian)(z)[: self.size], *ends)]
        if self.equal:
            parts.append(self.equalities(x))
        if self.unequal:
            parts.append(complementarity(z[self.size + self.equal :], self.inequalities(x)))
        return np.concatenate(parts) if len(parts) > 1 else parts[0]

    def envelope(self, z: Any) -> Any:
        """The Lagrange function, with elements at active bounds as functions of these."""
        if self.ends is None or self.is_interior:
            return self.lagrangian(z)
        x = at_bounds(z[: self.size], grad(self.lagrangian)(z)[: self.size], *self.ends)
        return self.lagrangian(np.concatenate([x, z[self.size :]]))

    @property
    def is_plain(self) -> bool:
        """Whether there are no bounds and constraints, and the gradient is not given."""
        limited = self.ends is not None or self.equal or self.unequal
        return not limited and not callable(self.jac) and self.jac is not True

    def shared(self, functions: dict[str, Function], hess: Any) -> list[Function | DerivedFunction]:
        """The functions of unknowns and multipliers.

        Without multipliers, exact derivatives are made from the graph of the objective, and kept
        for equal graphs, so that repeated calls trace the objective only.
        """
        made: list[Function | DerivedFunction] = []
        for name, f in functions.items():
            if self.is_plain and name == "jac":
                made.append(DerivedFunction(0, grad))
            elif self.is_plain and name == "hess" and not callable(hess):
                made.append(DerivedFunction(0, hessian))
            else:
                made.append(self.of_unknowns(f))
        return made

    def shared_conditions(self) -> Function | DerivedFunction:
        """The conditions: without bounds and constraints, the gradient."""
        return DerivedFunction(0, grad) if self.is_plain else self.conditions

    def functions(self, method: str, hess: Any) -> dict[str, Function]:
        """The functions that the solver calls, by name."""
        functions: dict[str, Function] = {"fun": self.objective, "jac": self.slope}
        if method in WITH_HESSIANS:
            given = converted(hess) if callable(hess) else None
            functions["hess"] = (
                (lambda x: given(x, *self.args)) if given else hessian(self.objective)
            )
        if self.is_interior:
            functions |= {"bound": self.from_bounds, "bound_jac": jacobian(self.from_bounds)}
        for kind, given_constraints, values in (
            ("eq", self.limits.equalities, self.equalities),
            ("ineq", self.limits.inequalities, self.given_inequalities),
        ):
            if given_constraints:
                functions |= {kind: values, f"{kind}_jac": jacobian(values)}
                if method == "trust-constr":
                    functions[f"{kind}_hess"] = jacobian(jacobian(values))
        return functions

    def result(self, found: Solved) -> Any:
        """SciPy's result, with tensors."""
        z, size = found.solution, self.size
        objective = found.functions[0]
        envelope = objective if self.is_plain else self.envelope
        value = minimal_value(objective, envelope, self.spec, z, found.success)
        more = {"multipliers": z[size:]} if self.equal or self.unequal else {}
        result = result_of(found._replace(solution=z[:size]), value, **more)
        result["jac"] = found.functions[1](z)
        return result


def _needs_derivatives(method: str | None, jac: Any, hess: Any, hessp: Any) -> bool:
    """Whether SciPy would raise because a derivative is not given."""
    name = method.lower() if isinstance(method, str) else ""
    if name not in WITH_HESSIANS or name == "trust-constr":
        return False
    return jac is None or (name != "newton-cg" and hess is None and hessp is None)


def _involves_tensors(
    fun: Function, x0: Any, args: Any, bounds: Any, constraints: Any, start: Any
) -> bool:
    ends = [bounds.lb, bounds.ub] if hasattr(bounds, "lb") else bounds

    def call() -> Any:
        return [fun(start, *args), Constraints(constraints, start).values(start)]

    return uses_tensors((x0, args, ends), call)


def _method(method: str | None, bounds: Any, limits: Constraints) -> str:
    constrained = bool(limits.equalities or limits.inequalities)
    if method is None:
        return "slsqp" if constrained else "bfgs" if bounds is None else "l-bfgs-b"
    name = method.lower() if isinstance(method, str) else ""
    if name not in METHODS:
        raise ArgumentError(
            f"minimize: the method {method!r} does not exist. Use one of {', '.join(METHODS)}"
            f"{at(user_line())}."
        )
    if constrained and name not in WITH_CONSTRAINTS:
        raise ArgumentError(
            f"minimize: the method {method!r} does not take constraints. Use one of "
            f"{', '.join(sorted(WITH_CONSTRAINTS))}{at(user_line())}."
        )
    return name
