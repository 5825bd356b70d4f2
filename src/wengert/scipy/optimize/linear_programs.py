"""Linear programs, and assignments.

linprog                 linear programs by HiGHS
linear_sum_assignment   the assignment of least cost
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.optimize

from wengert._engine.autodiff.grad import grad
from wengert._engine.core.op_facts import BY_SCIPY
from wengert._engine.core.spec import Spec
from wengert._engine.implicit.functions import GraphFunction
from wengert._engine.kinds.opaque import opaque
from wengert._engine.ops import casts
from wengert._engine.tensor.numpy_dispatch import as_array
from wengert.errors import ArgumentError, at, user_line

from ..dispatch import floating, holds_tensors
from .equations import Equation, TracedFunctions, solve_equation
from .minimize_solver import bounds_of
from .optimality import at_bounds, complementarity, minimal_value_of, projected
from .roots import result_of
from .solver_operation import Function, Outcome, Solver, SolverOptions

__all__ = ["linear_sum_assignment", "linprog"]


@dataclass(frozen=True)
class LinearProgramSolver:
    """`scipy.optimize.linprog`; the starts are cost, constraints and bounds."""

    method: str
    options: SolverOptions
    equal: int
    unequal: int

    def __call__(self, functions: Sequence[Function], starts: Sequence[Any]) -> Outcome:
        """Call SciPy; the solution is followed by the multipliers."""
        c, low, high, *rest = [np.asarray(x, float) for x in starts]
        given: dict[str, Any] = {}
        if self.unequal:
            given |= {"A_ub": rest.pop(0), "b_ub": rest.pop(0)}
        if self.equal:
            given |= {"A_eq": rest.pop(0), "b_eq": rest.pop(0)}
        found = scipy.optimize.linprog(
            c,
            bounds=np.stack([low, high], 1),
            method=self.method,
            options=self.options.value,
            **given,
        )
        if found.x is None:
            return Outcome(
                np.full(len(c) + self.equal + self.unequal, np.nan), False, found.status, -1,
                found.nit, found,
            )  # fmt: skip
        x = np.clip(found.x, low, high)
        multipliers = [found.eqlin.marginals, np.maximum(-found.ineqlin.marginals, 0.0)]
        z = np.concatenate([x, *multipliers])
        return Outcome(z, bool(found.success), found.status, -1, found.nit, found)


def linprog(
    c: Any,
    A_ub: Any = None,
    b_ub: Any = None,
    A_eq: Any = None,
    b_eq: Any = None,
    bounds: Any = (0, None),
    method: str = "highs",
    callback: Any = None,
    options: dict[str, Any] | None = None,
    x0: Any = None,
    integrality: Any = None,
) -> Any:
    """A linear program, as ``scipy.optimize.linprog``.

    Parameters
    ----------
    c : array
        The cost of each unknown; differentiated, as the constraints are.
    A_ub, b_ub, A_eq, b_eq : array, optional
        ``A_ub @ x <= b_ub`` and ``A_eq @ x == b_eq``; dense.
    bounds : pair, or sequence of pairs
        As in SciPy; the ends may be tensors.
    method : str
        'highs', 'highs-ds' or 'highs-ipm'.
    options
        As in SciPy.
    callback, x0, integrality
        Only without tensors.

    Returns
    -------
    OptimizeResult
        `x`, `fun`, `slack` and `con` are tensors; `multipliers` are those of equalities, then of
        inequalities.

    Raises
    ------
    ArgumentError
        `method` or `integrality` cannot be used with tensors.
    ConvergenceError
        A derivative is needed, and the program is infeasible or unbounded.
    MatrixError
        The derivative of `x` is needed, and the solution or the multipliers are not unique.

    Notes
    -----
    The derivative of `fun` is that of the Lagrange function; it needs no linear system, and exists
    where the multipliers are unique. The solution `x` does not depend on `c` between the costs at
    which another vertex becomes optimal.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy import optimize
    >>> def cost(demand):
    ...     bounds = [(0, 4), (0, None)]
    ...     return optimize.linprog([3.0, 5.0], -np.ones((1, 2)), -demand, bounds=bounds).fun
    >>> cost(np.array([6.0])), wg.grad(cost)(np.array([6.0]))
    (22.0, array([5.]))
    """
    if not holds_tensors([c, A_ub, b_ub, A_eq, b_eq, bounds]):
        return scipy.optimize.linprog(
            c, A_ub, b_ub, A_eq, b_eq, bounds, method, callback, options, x0, integrality
        )
    if not method.startswith("highs") or (integrality is not None and np.any(integrality)):
        raise ArgumentError(
            f"linprog of tensors with method={method!r} and integrality={integrality!r}: it has "
            f"derivatives with HiGHS and continuous unknowns only{at(user_line())}."
        )
    program = LinearProgram(LinearProgram.values_of(c, (A_ub, b_ub), (A_eq, b_eq), bounds))
    solver = LinearProgramSolver(
        method, SolverOptions(options or {}), program.equal, program.unequal
    )
    starts = [program.costs, *program.ends]
    starts += [program.a_ub, program.right_ub] if program.unequal else []
    starts += [program.a_eq, program.right_eq] if program.equal else []
    return program.solved("linprog", solver, starts)


class LinearProgram:
    """A linear program, as functions of unknowns and multipliers.

    Parameters
    ----------
    values : sequence of array
        Costs, lower and upper bounds, equalities ``A_eq, b_eq`` and inequalities ``A_ub, b_ub``.
    """

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = tuple(values)
        self.costs, *ends, self.a_eq, self.right_eq, self.a_ub, self.right_ub = self.values
        self.ends = tuple(ends)
        self.size = int(self.costs.shape[0])
        self.equal, self.unequal = len(self.right_eq), len(self.right_ub)
        self.begin = self.size + self.equal  # of the multipliers of inequalities
        self.spec = Spec((self.begin + self.unequal,), np.dtype(float))

    @staticmethod
    def values_of(c: Any, upper: Any, equal: Any, bounds: Any) -> tuple[Any, ...]:
        """The values of a program that is given in SciPy's forms."""
        costs = casts.astype(floating(c), float).reshape(-1)
        size = int(costs.shape[0])
        given = _constraint(equal, size), _constraint(upper, size)
        return costs, *_ends(bounds, size), *given[0], *given[1]

    def key(self) -> Hashable:
        """Of everything that the functions depend on except the values."""
        return type(self).__name__

    def with_values(self, values: Sequence[Any]) -> LinearProgram:
        """A program of the same kind."""
        return LinearProgram(values)

    def solved(self, name: str, solver: Solver, starts: Sequence[Any]) -> Any:
        """SciPy's result, with tensors; graphs are kept for equal shapes."""
        traced = TracedFunctions([], list(self.values), len(self.values), name)
        conditions, cost, envelope = (
            self._graph(traced, k) for k in ("conditions", "cost", "envelope")
        )
        rule = Equation(name, [conditions], 0, self.spec, solver, 1)
        found = solve_equation(rule, traced.consts, starts)
        z = found.solution
        value = minimal_value_of(cost, envelope, traced.consts, z, found.success, rule.reason())
        x = z[: self.size]
        more = {
            "multipliers": z[self.size :],
            "slack": self.right_ub - self.a_ub @ x,
            "con": self.right_eq - self.a_eq @ x,
        }
        return result_of(found._replace(solution=x), value, **more)

    def _graph(self, traced: TracedFunctions, name: str) -> GraphFunction:
        def make(_: Sequence[Function], values: Sequence[Any]) -> Function:
            function: Function = getattr(self.with_values(values), name)
            return function

        return traced.made((self.key(), name), make, self.spec)

    def cost(self, z: Any) -> Any:
        """The cost."""
        return self.costs @ z[: self.size]

    def lagrangian(self, z: Any) -> Any:
        """The Lagrange function."""
        x, value = z[: self.size], self.cost(z)
        if self.equal:
            value = value - z[self.size : self.begin] @ (self.a_eq @ x - self.right_eq)
        if self.unequal:
            value = value - z[self.begin :] @ (self.right_ub - self.a_ub @ x)
        return value

    def conditions(self, z: Any) -> Any:
        """The conditions of Karush, Kuhn and Tucker."""
        x = z[: self.size]
        parts = [projected(x, grad(self.lagrangian)(z)[: self.size], *self.ends)]
        if self.equal:
            parts.append(self.a_eq @ x - self.right_eq)
        if self.unequal:
            parts.append(complementarity(z[self.begin :], self.right_ub - self.a_ub @ x))
        return np.concatenate(parts) if len(parts) > 1 else parts[0]

    def envelope(self, z: Any) -> Any:
        """The Lagrange function, with elements at active bounds as functions of these."""
        x = at_bounds(z[: self.size], grad(self.lagrangian)(z)[: self.size], *self.ends)
        return self.lagrangian(np.concatenate([x, z[self.size :]]))


def _constraint(constraint: tuple[Any, Any], size: int) -> tuple[Any, Any]:
    a, b = constraint
    if a is None or b is None:
        return np.zeros((0, size)), np.zeros(0)
    a = casts.astype(floating(a), float).reshape(-1, size)
    return a, casts.astype(floating(b), float).reshape(-1)


def _ends(bounds: Any, size: int) -> tuple[Any, Any]:
    """Bounds in SciPy's forms: one pair, or one for each unknown."""
    if bounds is None:
        bounds = (0, None)
    pairs = list(bounds)
    if len(pairs) == 2 and not isinstance(pairs[0], tuple | list | np.ndarray):
        pairs = [tuple(pairs)] * size
    return bounds_of(pairs, size)


def _best_assignment(cost: Any, *, maximize: bool = False) -> Any:
    """The assignment of least cost, by comparing all of them (the oracle of the operation)."""
    n, m = cost.shape
    if n > m:
        columns, rows = _best_assignment(cost.T, maximize=maximize)
        order = np.argsort(rows)
        return rows[order], columns[order]
    choices = list(itertools.permutations(range(m), n))
    sums = [cost[np.arange(n), list(p)].sum() for p in choices]
    best = choices[int(np.argmax(sums) if maximize else np.argmin(sums))]
    return np.arange(n), np.array(best)


@opaque(name="linear_sum_assignment", discrete=True, trusted=True, oracle=_best_assignment)
def _assignment(cost: Any, *, maximize: bool = False) -> Any:
    """Rows and columns of the assignment of least cost."""
    rows, columns = scipy.optimize.linear_sum_assignment(cost, maximize)
    return np.asarray(rows, np.int64), np.asarray(columns, np.int64)


_assignment.host_callback = BY_SCIPY


@_assignment.spec
def _(cost: Spec, *, maximize: bool = False) -> Any:
    n, m = cost.shape
    count = Spec((n if n == m else min(n, m),), np.dtype(np.int64))
    return count, count


@_assignment.examples
def _(rng: np.random.Generator) -> Any:
    yield (rng.normal(size=(3, 3)),), {}
    yield (rng.normal(size=(3, 4)),), {}
    yield (rng.normal(size=(4, 3)),), {"maximize": True}


def linear_sum_assignment(cost_matrix: Any, maximize: bool = False) -> Any:
    """The assignment of rows to columns of least cost, as SciPy's function of this name.

    Parameters
    ----------
    cost_matrix : array
    maximize : bool, default False
        Whether the cost is to be maximal.

    Returns
    -------
    row_ind, col_ind : array of int
        ``cost_matrix[row_ind, col_ind].sum()`` is the cost, whose derivative is 1 at these places.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy import optimize
    >>> def least(c):
    ...     rows, columns = optimize.linear_sum_assignment(c)
    ...     return np.sum(c[rows, columns])
    >>> wg.grad(least)(np.array([[4.0, 1.0], [2.0, 3.0]]))
    array([[0., 1.],
           [1., 0.]])
    """
    if not holds_tensors(cost_matrix):
        return scipy.optimize.linear_sum_assignment(cost_matrix, maximize)
    return _assignment(as_array(cost_matrix), maximize=bool(maximize))
