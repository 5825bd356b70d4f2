"""Linear programs with integer unknowns: `milp`, by HiGHS.

    milp                   a linear program, some unknowns of which are integers
    MixedIntegerSolver     the solver
    IntegersFixed          the conditions at the minimum for fixed integers

The integers do not change with small changes of the data, except where another choice becomes
optimal, where there is no derivative.  So the derivative is that of the linear program of the
continuous unknowns, whose multipliers are found by solving it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.optimize

from wengert._engine.autodiff.grad import grad
from wengert._engine.ops import casts
from wengert.errors import ArgumentError, at, user_line

from ..dispatch import floating, holds_tensors
from .linear_programs import LinearProgram
from .minimize_solver import known_values
from .optimality import at_bounds, complementarity, projected
from .solver_operation import Function, Outcome, SolverOptions

__all__ = ["milp"]


@dataclass(frozen=True)
class MixedIntegerSolver:
    """`scipy.optimize.milp`; the starts are cost, bounds, and the sides of the constraints."""

    integrality: tuple[int, ...]
    options: SolverOptions
    equal: int

    def __call__(self, functions: Sequence[Function], starts: Sequence[Any]) -> Outcome:
        """Call SciPy; the solution is followed by the multipliers for fixed integers."""
        c, low, high, a_eq, b_eq, a_ub, b_ub = [np.asarray(x, float) for x in starts]
        kinds, a = np.array(self.integrality), np.concatenate([a_eq, a_ub])
        lower, right = np.full(len(a), -np.inf), np.concatenate([b_eq, b_ub])
        lower[: self.equal] = b_eq
        found = scipy.optimize.milp(
            c,
            integrality=kinds,
            bounds=scipy.optimize.Bounds(low, high),
            constraints=scipy.optimize.LinearConstraint(a, lower, right) if len(a) else None,
            options=dict(self.options.value),
        )
        size = len(c)
        z = np.full(size + len(a), np.nan)
        if found.x is None:
            return Outcome(z, False, found.status, result=found)
        x = np.where(kinds % 2 == 1, np.round(found.x), found.x)
        x = np.where((kinds == 2) & (x < low), 0.0, x)  # semicontinuous
        free = (kinds == 0) | ((kinds == 2) & (x != 0.0))
        x = np.where(free, np.clip(x, low, high), x)
        z[:size], z[size:] = x, 0.0
        success = bool(found.success)
        if success and len(a) and free.any():
            remaining = right - a[:, ~free] @ x[~free]
            limited = np.isfinite(b_ub)  # linprog refuses sides that are infinite
            inner = scipy.optimize.linprog(
                c[free], a_ub[limited][:, free], remaining[self.equal :][limited], a_eq[:, free],
                remaining[: self.equal], np.stack([low, high], 1)[free],
            )  # fmt: skip
            success = bool(inner.success)
            if success:
                z[:size][free] = np.clip(inner.x, low[free], high[free])
                z[size : size + self.equal] = inner.eqlin.marginals
                z[size + self.equal :][limited] = np.maximum(-inner.ineqlin.marginals, 0.0)
        return Outcome(z, success, found.status, result=found)


class IntegersFixed(LinearProgram):
    """A linear program whose integers are fixed, as functions of unknowns and multipliers."""

    def __init__(self, values: Sequence[Any], integrality: tuple[int, ...]) -> None:
        super().__init__(values)
        self.integrality, self.kinds = integrality, np.array(integrality)

    def key(self) -> Hashable:
        """The kinds of the unknowns too."""
        return type(self).__name__, self.integrality

    def with_values(self, values: Sequence[Any]) -> IntegersFixed:
        """A program of the same kind."""
        return IntegersFixed(values, self.integrality)

    def free(self, x: Any) -> Any:
        """Which unknowns are continuous; a semicontinuous one that is zero stays zero."""
        return (self.kinds == 0) | ((self.kinds == 2) & (x != 0.0))

    def conditions(self, z: Any) -> Any:
        """The conditions of Karush, Kuhn and Tucker for the continuous unknowns.

        Integers, and multipliers of rows without continuous unknowns, are constants.
        """
        x = z[: self.size]
        free = self.free(x)
        inner = projected(x, grad(self.lagrangian)(z)[: self.size], *self.ends)
        parts = [np.where(free, inner, x - np.round(x))]
        sides = [(self.a_eq, z[self.size : self.begin], self.a_eq @ x - self.right_eq)]
        multipliers = z[self.begin :]
        values = complementarity(multipliers, self.right_ub - self.a_ub @ x)
        sides.append((self.a_ub, multipliers, values))
        for a, y, rows in sides:
            if a.shape[0]:
                parts.append(np.where(np.any((a != 0.0) & free, axis=1), rows, y))
        return np.concatenate(parts)

    def envelope(self, z: Any) -> Any:
        """The Lagrange function, with continuous unknowns at bounds as functions of these."""
        x = z[: self.size]
        moved = at_bounds(x, grad(self.lagrangian)(z)[: self.size], *self.ends)
        return self.lagrangian(np.concatenate([np.where(self.free(x), moved, x), z[self.size :]]))


def milp(
    c: Any,
    *,
    integrality: Any = None,
    bounds: Any = None,
    constraints: Any = None,
    options: dict[str, Any] | None = None,
) -> Any:
    """A linear program with integer unknowns, as ``scipy.optimize.milp``.

    Parameters
    ----------
    c : array
        The cost of each unknown; differentiated, as the constraints are.
    integrality : array of int, optional
        As in SciPy: 0 for continuous unknowns, 1 for integers, 2 and 3 for those that may be zero
        or within their bounds. Not a tensor.
    bounds : Bounds, optional
        By default from 0 to infinity; the ends may be tensors.
    constraints : LinearConstraint, (A, lb, ub), or sequence of them, optional
        Matrices and sides may be tensors.
    options : dict, optional
        As in SciPy.

    Returns
    -------
    OptimizeResult
        `x` and `fun` are tensors; `multipliers` are those of the continuous unknowns, for fixed
        integers: of equalities, then of upper and of lower sides.

    Raises
    ------
    ArgumentError
        A constraint is not linear, or `integrality` is a tensor.
    ConvergenceError
        A derivative is needed, and the program is infeasible or unbounded.
    MatrixError
        The derivative of `x` is needed, and the continuous unknowns or the multipliers are not
        unique for these integers.

    Notes
    -----
    Derivatives are those for fixed integers: of `fun`, by the Lagrange function of the continuous
    unknowns; of `x`, zero for integers, and as in `linprog` for the others. They are those of the
    program wherever the best integers are unique. At data where other integers become optimal,
    `fun` has a kink and `x` jumps; this is not detected.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy import optimize
    >>> def cost(demand):  # trucks for 3 units each, and units by post
    ...     return optimize.milp(
    ...         [5.0, 2.0], integrality=[1, 0], constraints=([[3.0, 1.0]], demand, np.inf)
    ...     ).fun
    >>> cost(7.0), float(wg.grad(cost)(7.0))
    (12.0, 2.0)
    """
    given = _rows(constraints)
    ends = [bounds.lb, bounds.ub] if hasattr(bounds, "lb") else bounds
    if not holds_tensors([c, ends, integrality, *given]):
        return scipy.optimize.milp(
            c, integrality=integrality, bounds=bounds, constraints=constraints, options=options
        )
    size = int(np.size(c)) if not hasattr(c, "shape") else int(np.prod(c.shape))
    kinds = _kinds(integrality, size)
    upper, equal = _sides(given, size)
    values = LinearProgram.values_of(c, upper, equal, _bounds(ends, size))
    program = IntegersFixed(values, kinds)
    solver = MixedIntegerSolver(kinds, SolverOptions(options or {}), program.equal)
    return program.solved("milp", solver, program.values)


def _kinds(integrality: Any, size: int) -> tuple[int, ...]:
    """What each unknown is, as numbers."""
    if holds_tensors(integrality):
        raise ArgumentError(
            f"milp: integrality is a tensor. It must be known before the program is solved: give "
            f"an array of integers{at(user_line())}."
        )
    kinds = np.broadcast_to(np.asarray(0 if integrality is None else integrality), (size,))
    if not np.isin(kinds, (0, 1, 2, 3)).all():
        raise ArgumentError(
            f"milp: integrality is {integrality!r}. Its elements must be 0, 1, 2 or 3"
            f"{at(user_line())}."
        )
    return tuple(kinds.astype(int).tolist())


def _bounds(ends: Any, size: int) -> Any:
    """Pairs of bounds; SciPy's default is (0, infinity), and a pair of vectors is Bounds."""
    if ends is None:
        return [(0.0, None)] * size
    low, high = [floating(np.asarray(e) if isinstance(e, list | tuple) else e) for e in ends]
    low, high = (np.broadcast_to(e, (size,)) for e in (low, high))
    return [(low[k], high[k]) for k in range(size)]


def _rows(constraints: Any) -> list[tuple[Any, Any, Any]]:
    """The constraints as triples."""
    if constraints is None:
        return []
    is_one = hasattr(constraints, "lb") or (
        isinstance(constraints, tuple)
        and len(constraints) in (2, 3)
        and not all([hasattr(c, "A") or isinstance(c, tuple) for c in constraints])
    )
    found = []
    for c in [constraints] if is_one else list(constraints):
        if isinstance(c, scipy.optimize.NonlinearConstraint):
            raise ArgumentError(
                f"milp: a constraint is a NonlinearConstraint. Constraints of milp are linear: "
                f"give LinearConstraint(A, lb, ub){at(user_line())}."
            )
        if hasattr(c, "A"):
            found.append((c.A, c.lb, c.ub))
        else:
            a, lower, upper = tuple(c) + (-np.inf, np.inf)[len(c) - 1 :]
            found.append((a, lower, upper))
    return found


def _sides(given: Sequence[tuple[Any, Any, Any]], size: int) -> tuple[Any, Any]:
    """Upper sides ``(A, b)`` and equalities; which rows are equalities is decided by values.

    In a graph, where values are not known, equal sides are two inequalities: only one of them has a
    multiplier that is not zero, so the derivative is the same.
    """
    upper: list[tuple[Any, Any]] = []
    equal: list[tuple[Any, Any]] = []
    for matrix, *sides in given:
        dense = matrix.toarray() if hasattr(matrix, "toarray") else matrix
        a = casts.astype(floating(np.asarray(dense) if isinstance(dense, list) else dense), float)
        a = a.reshape(-1, size)
        low, high = (
            np.broadcast_to(casts.astype(floating(s), float).reshape(-1), (int(a.shape[0]),))
            for s in sides
        )
        plain_low, plain_high = (known_values(s) for s in (low, high))
        same = plain_low == plain_high
        for rows, target, sign, side in (
            (same, equal, 1.0, low),
            (~same & (plain_high != np.inf), upper, 1.0, high),
            (~same & (plain_low != -np.inf), upper, -1.0, low),
        ):
            places = np.flatnonzero(rows)
            if places.size:
                target.append((sign * a[places], sign * side[places]))
    return _joined(upper), _joined(equal)


def _joined(parts: Sequence[tuple[Any, Any]]) -> tuple[Any, Any]:
    if not parts:
        return None, None
    return np.concatenate([a for a, _ in parts]), np.concatenate([b for _, b in parts])
