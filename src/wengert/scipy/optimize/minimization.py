"""Minimization of functions of a vector, local with bounds and constraints, and global.

    minimize             all methods of SciPy, with exact derivatives
    MinimizationProblem  objective and constraints of the user
    minimum              the result of a solver for it
    differential_evolution, dual_annealing, shgo, direct  in a box
    basinhopping         from an initial guess
    GlobalSolver         the solver

The conditions are equations of unknowns and multipliers (optimality.py); SciPy's methods
solve them (minimize_solver.py).

The minimum that was found satisfies the conditions of a local one (optimality.py), from which the
derivatives are taken; which minimum is found does not change them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.optimize

from wengert._engine.core.handle import value_of
from wengert._engine.core.spec import Spec
from wengert._engine.core.user_functions import original
from wengert._engine.ops import casts
from wengert.errors import ArgumentError, ShapeError, at, user_line

from ..dispatch import array_of, converted_when_called, floating
from .equations import Equation, TracedFunctions, solve_equation, uses_tensors
from .minimize_solver import (
    METHODS,
    WITH_CONSTRAINTS,
    WITH_HESSIANS,
    Constraints,
    MinimizeSolver,
    bounds_of,
    plain_start,
)
from .optimality import MinimumConditions, minimal_value_of
from .roots import result_of
from .solver_operation import Function, Outcome, Solver, SolverOptions

__all__ = ["basinhopping", "differential_evolution", "direct", "dual_annealing", "minimize", "shgo"]


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
    called = converted_when_called(fun)
    start_values = plain_start(x0)
    if not _needs_derivatives(method, jac, hess, hessp) and not _involves_tensors(
        called, x0, args, bounds, constraints, start_values
    ):
        return scipy.optimize.minimize(
            fun, x0, args, method, jac, hess, hessp, bounds, constraints, tol, callback, options
        )
    limits = Constraints(constraints, start_values)
    name, size = _method(method, bounds, limits), len(start_values)
    second = hess if name in WITH_HESSIANS else None
    problem = MinimizationProblem(called, args, jac, second, limits)
    if bounds is not None:
        problem.ends = bounds_of(bounds, size)
    traced, conditions = problem.traced(f"minimize by {name}", size, name == "trust-constr")
    names = conditions.names_for(name in WITH_HESSIANS, name == "trust-constr")
    solver = MinimizeSolver(
        name,
        tol,
        original(callback),
        None if options is None else SolverOptions(options),
        size,
        names,
        conditions.bounded,
        conditions.equal,
        conditions.unequal,
    )
    start = casts.astype(floating(x0), float).reshape(-1)
    return minimum(traced, conditions, names, solver, [start, *problem.ends])


class MinimizationProblem:
    """A minimization problem: the functions of the user, and bounds.

    Attributes
    ----------
    size : int
        The number of unknowns.
    ends : tuple
        Lower and upper bounds; empty if there are none.
    """

    def __init__(
        self, fun: Function, args: tuple[Any, ...], jac: Any, hess: Any, limits: Constraints
    ) -> None:
        self.fun, self.args, self.jac, self.hess, self.limits = fun, args, jac, hess, limits
        self.ends: tuple[Any, ...] = ()

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

    def _array_of(self, f: Function) -> Function:
        own = converted_when_called(f)
        return lambda x: array_of(own(x, *self.args))

    def given(self) -> dict[str, Function]:
        """The functions of the user, by name."""
        functions: dict[str, Function] = {"fun": self.objective}
        if self.jac is True:
            functions["jac"] = lambda x: array_of(self.fun(x, *self.args)[1])
        elif callable(self.jac):
            functions["jac"] = self._array_of(self.jac)
        if callable(self.hess):
            functions["hess"] = self._array_of(self.hess)
        if self.limits.equalities:
            functions["eq"] = Constraints.joined(self.limits.equalities)
        if self.limits.inequalities:
            functions["ineq"] = Constraints.joined(self.limits.inequalities)
        return functions

    def traced(
        self, what: str, size: int, is_interior: bool = False
    ) -> tuple[TracedFunctions, MinimumConditions]:
        """The functions as graphs, and what is made from them."""
        given = self.given()
        traced = TracedFunctions.of(
            list(given.values()), Spec((size,), np.dtype(float)), what, self.ends
        )
        graphs = dict(zip(given, traced.graphs, strict=True))
        equal, unequal = (
            int(graphs[k].outputs[0].spec.shape[0]) if k in graphs else 0 for k in ("eq", "ineq")
        )
        bounded = bool(self.ends)
        is_interior = is_interior and bounded
        unequal += 2 * size if is_interior else 0
        return traced, MinimumConditions(tuple(given), size, equal, unequal, bounded, is_interior)


def minimum(
    traced: TracedFunctions,
    conditions: MinimumConditions,
    names: Sequence[str],
    solver: Solver,
    starts: Sequence[Any],
) -> Any:
    """SciPy's result for a minimum, with tensors.

    Parameters
    ----------
    traced, conditions : TracedFunctions, MinimumConditions
    names : sequence of str
        The functions that the solver calls, beginning with "fun".
    solver : Solver
    starts : sequence
        The initial guess, then bounds if there are any.
    """
    graphs = {
        k: conditions.graph(traced, k) for k in dict.fromkeys((*names, "conditions", "envelope"))
    }
    functions = [*[graphs[k] for k in names], graphs["conditions"]]
    count, spec = len(names), conditions.spec
    rule = Equation(traced.name, functions, count, spec, solver, count)
    found = solve_equation(rule, traced.consts, starts)
    z, size = found.solution, conditions.size
    given = graphs["fun"], graphs["envelope"], traced.consts, z, found.success
    value = minimal_value_of(*given, rule.reason())
    more = {"multipliers": z[size:]} if conditions.equal or conditions.unequal else {}
    result = result_of(found._replace(solution=z[:size]), value, **more)
    slope = graphs["jac"] if "jac" in graphs else conditions.graph(traced, "jac")
    result["jac"] = slope(traced.consts, [z])[0]
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


# ---- global minima -----------------------------------------------------------------------------


_BOUND_DISTANCE = 1e-7  # relative to the interval; elements that are closer are at the bound


@dataclass(frozen=True)
class GlobalSolver:
    """A global minimizer of SciPy with its options; starts may be a guess, or bounds."""

    name: str
    options: SolverOptions

    def __call__(self, functions: Sequence[Function], starts: Sequence[Any]) -> Outcome:
        """Call SciPy."""
        theirs = getattr(scipy.optimize, self.name)
        options = dict(self.options.value)

        def fun(x: Any) -> float:
            return float(functions[0](np.array(x, float)))

        if len(starts) == 1:
            found = theirs(fun, np.asarray(starts[0], float), **options)
            x = np.asarray(found.x, float)
        else:
            low, high = (np.asarray(b, float) for b in starts[1:])
            found = theirs(fun, bounds=list(zip(low, high, strict=True)), **options)
            x = np.asarray(found.x, float)
            near = _BOUND_DISTANCE * (high - low)
            x = np.where(x - low <= near, low, np.where(high - x <= near, high, x))
        counts = found.get("nfev", -1), found.get("nit", -1)
        return Outcome(x, bool(found.get("success", True)), found.get("status", 0), *counts, found)


def _minimized(
    name: str, func: Callable[..., Any], args: Any, x0: Any, bounds: Any, options: dict[str, Any]
) -> Any:
    """The result of SciPy, or one with tensors."""
    args = args if isinstance(args, tuple) else (args,)
    called = converted_when_called(func)
    given = bounds if bounds is None or not hasattr(bounds, "lb") else [bounds.lb, bounds.ub]
    ends = None
    if bounds is not None:
        size = int(np.size(value_of(bounds.lb))) if hasattr(bounds, "lb") else len(bounds)
        ends = bounds_of(bounds, size)
        plain = [np.asarray(value_of(floating(e))) for e in ends]
        start: Any = (plain[0] + plain[1]) / 2.0
    else:
        start = plain_start(x0)
    if not uses_tensors((x0, args, given), lambda: called(start, *args)):
        first = {"x0": x0} if bounds is None else {"bounds": bounds}
        how = {"args": args} if name != "basinhopping" else {}
        if name == "basinhopping" and args:
            options = options | {"minimizer_kwargs": {"args": args}}
        return getattr(scipy.optimize, name)(func, **first, **how, **options)
    refused = [k for k in ("constraints", "integrality") if np.size(options.get(k, ())) > 0]
    if refused:
        raise ArgumentError(
            f"{name} of tensors with {', '.join(refused)}: it has derivatives in a box only. Use "
            f"minimize from the solution{at(user_line())}."
        )
    problem = MinimizationProblem(called, args, None, None, Constraints((), start))
    starts = [start] if ends is None else [start, *ends]
    if ends is None:
        starts = [casts.astype(floating(x0), float).reshape(-1)]
    else:
        problem.ends = ends
    traced, conditions = problem.traced(name, len(start))
    return minimum(traced, conditions, ["fun"], GlobalSolver(name, SolverOptions(options)), starts)


_DOC = """A global minimum, as ``scipy.optimize.{name}``.

    Parameters
    ----------
    func : callable
        ``func(x, *args)``, a number; captured tensors are differentiated.
    {what}
    args : tuple
        Further arguments, which are differentiated.
    **options
        SciPy's other arguments, plain.

    Returns
    -------
    OptimizeResult
        `x`, `fun` and `jac` are tensors.

    Raises
    ------
    ConvergenceError
        A derivative is needed, and SciPy reports no success.
    SingularError
        The derivative of `x` is needed, and the minimum is not strict.

    Notes
    -----
    The derivative is that of the minimum that was found, as a local one. It is as accurate as the
    minimum is.

    See Also
    --------
    minimize

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy import optimize
    >>> def best(a):
    ...     f = lambda x: (x[0] ** 2 - a) ** 2 + 0.1 * x[0]
    ...     return optimize.{name}(f, {example}).fun
    >>> wg.grad(best)(4.0).round(3)
    np.float64(-0.025)
    """


def _in_box(name: str, example: str) -> Callable[..., Any]:
    def minimized(func: Callable[..., Any], bounds: Any, args: Any = (), **options: Any) -> Any:
        return _minimized(name, func, args, None, bounds, options)

    minimized.__name__ = minimized.__qualname__ = name
    what = "bounds : Bounds, or sequence of pairs\n        They may be tensors."
    minimized.__doc__ = _DOC.format(name=name, what=what, example=example)
    return minimized


_SEEDED = "[(-3.0, 3.0)], rng=1"
differential_evolution = _in_box("differential_evolution", _SEEDED)
dual_annealing = _in_box("dual_annealing", _SEEDED)
shgo = _in_box("shgo", "[(-3.0, 3.0)]")
direct = _in_box("direct", "[(-3.0, 3.0)], vol_tol=1e-6, maxfun=9000, maxiter=9000")


def basinhopping(func: Callable[..., Any], x0: Any, **options: Any) -> Any:
    """Documented below."""
    return _minimized("basinhopping", func, (), x0, None, options)


basinhopping.__doc__ = _DOC.replace(
    """    args : tuple
        Further arguments, which are differentiated.
""",
    "",
).format(
    name="basinhopping",
    what="x0 : array\n        The initial guess; its derivative is zero.",
    example="np.array([-1.0]), niter=30, rng=1",
)
