"""SciPy's minimize as a solver, with the multipliers of constraints, which have several forms.

Constraints     as two functions: equalities and inequalities
known_values    the sides of a constraint, as far as they are known
plain_start     an initial guess as a plain vector
bounds_of       bounds as two vectors
MinimizeSolver  the solver
WITHOUT_DERIVATIVES, WITH_HESSIANS, WITH_CONSTRAINTS, METHODS  which methods need what
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.optimize

from wengert._engine.core.handle import is_traced, value_of
from wengert._engine.ops import casts
from wengert._engine.ops.joining import stacked
from wengert._engine.tensor.numpy_dispatch import as_array
from wengert.errors import ArgumentError, ShapeError, at, user_line

from ..dispatch import converted_when_called, floating, holds_tensors
from .solver_operation import Function, Outcome, SolverOptions


class Constraints:
    """Constraints as two functions: equalities that are zero, inequalities that are not negative.

    Parameters
    ----------
    given : dict, LinearConstraint, NonlinearConstraint, or sequence of them
    x0 : array
        Where the functions are called once, for their shapes.
    """

    def __init__(self, given: Any, x0: Any) -> None:
        self.equalities: list[Function] = []
        self.inequalities: list[Function] = []
        items = [given] if isinstance(given, dict) or hasattr(given, "lb") else list(given or ())
        for c in items:
            if isinstance(c, dict):
                self._add_dict(c)
            elif isinstance(c, scipy.optimize.LinearConstraint):
                a = c.A.toarray() if hasattr(c.A, "toarray") else as_array(c.A)
                self._add_interval(functools.partial(np.matmul, a), c.lb, c.ub, x0)
            elif isinstance(c, scipy.optimize.NonlinearConstraint):
                self._add_interval(converted_when_called(c.fun), c.lb, c.ub, x0)
            else:
                raise ArgumentError(
                    f"minimize: a constraint is a {type(c).__name__}. Give a dict, a "
                    f"LinearConstraint or a NonlinearConstraint{at(user_line())}."
                )

    def _add_dict(self, c: dict[str, Any]) -> None:
        kind, args = str(c.get("type", "")).lower(), tuple(c.get("args", ()))
        if kind not in ("eq", "ineq"):
            raise ArgumentError(
                f"minimize: a constraint has the type {c.get('type')!r}. It is 'eq' for an "
                f"equality or 'ineq' for an inequality{at(user_line())}."
            )
        fun = converted_when_called(c["fun"])
        target = self.equalities if kind == "eq" else self.inequalities
        target.append(lambda x: fun(x, *args))

    def _add_interval(self, fun: Function, lower: Any, upper: Any, x0: Any) -> None:
        size = int(np.size(value_of(floating(fun(np.asarray(value_of(x0)))))))
        low, high = (
            np.broadcast_to(casts.astype(floating(_joined(end)), float).reshape(-1), (size,))
            for end in (lower, upper)
        )
        plain_low, plain_high = known_values(low), known_values(high)
        same = plain_low == plain_high
        equal = np.flatnonzero(same)
        below = np.flatnonzero(~same & ~np.isinf(plain_low))
        above = np.flatnonzero(~same & ~np.isinf(plain_high))

        def values(x: Any) -> Any:
            return np.reshape(floating(fun(x)), (-1,))

        if equal.size:
            self.equalities.append(lambda x: values(x)[equal] - low[equal])
        if below.size:
            self.inequalities.append(lambda x: values(x)[below] - low[below])
        if above.size:
            self.inequalities.append(lambda x: high[above] - values(x)[above])

    def values(self, x: Any) -> list[Any]:
        """The results of all functions."""
        return [f(x) for f in (*self.equalities, *self.inequalities)]

    @staticmethod
    def joined(functions: Sequence[Function]) -> Function:
        """The functions as one, of vectors."""
        return lambda x: np.concatenate([np.reshape(floating(f(x)), (-1,)) for f in functions])


def plain_start(x0: Any) -> np.ndarray[Any, Any]:
    """An initial guess as a plain vector, for shapes; in a graph, where it is not known, 0.5."""
    value = value_of(_joined(x0))
    if is_traced(value):
        return np.full(int(np.size(floating(value))), 0.5)
    return np.atleast_1d(np.asarray(value, float)).reshape(-1)


class Ends:
    """Lower and upper bounds, which may be tensors."""

    def __init__(self, ends: Sequence[Any]) -> None:
        self.lb, self.ub = ends


def known_values(side: Any) -> Any:
    """The values of a vector; NaN, which equals nothing, in a graph.

    So in a graph equal sides of a constraint are two inequalities. Only one of them has a
    multiplier that is not zero, so the derivative is the same.
    """
    value = value_of(side)
    return np.full(value.shape, np.nan) if is_traced(value) else np.asarray(value)


def _joined(end: Any) -> Any:
    """A list that contains tensors as one tensor."""
    return stacked(list(end)) if isinstance(end, list | tuple) and holds_tensors(end) else end


def _end(given: Any, otherwise: float) -> Any:
    end = as_array(otherwise if given is None else given)
    return end.reshape(()) if end.size == 1 else end


def bounds_of(bounds: Any, size: int) -> tuple[Any, Any]:
    """Lower and upper bounds as vectors.

    Raises
    ------
    ShapeError
        Their number is not that of the unknowns, nor one.
    """
    if hasattr(bounds, "lb"):
        low, high = bounds.lb, bounds.ub
    else:
        pairs = list(bounds)
        low = np.stack([_end(a, -np.inf) for a, _ in pairs])
        high = np.stack([_end(b, np.inf) for _, b in pairs])
    ends = [casts.astype(floating(_joined(end)), float).reshape(-1) for end in (low, high)]
    for end in ends:
        if int(end.size) not in (1, size):
            raise ShapeError(
                f"{int(end.size)} bounds for {size} unknowns: the number of bounds is not "
                f"compatible with the length of `x0`{at(user_line())}."
            )
    return np.broadcast_to(ends[0], (size,)), np.broadcast_to(ends[1], (size,))


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
_RELATIVE_RESIDUAL = 1e-6  # of the conditions, at which a result is a minimum in spite of a failure
_START = 1e-3  # weight of the conditions at the initial guess, for minima where all terms are zero


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
        z = np.concatenate([x, multipliers])
        begin = np.concatenate([np.asarray(starts[0], float), multipliers])
        balance = dict(zip(self.names, functions, strict=True)).get("balance")
        # The derivative may exist where the value does not, as that of a logarithm.
        balanced = balanced and not np.isnan(found.fun)
        if not found.success and balanced and balance is not None:
            feasible = all([_is_feasible(k, x, by_name) for k in ("ineq", "bound") if k in by_name])
            balanced = feasible and _are_satisfied(balance, z, begin, self.size)
            found = scipy.optimize.OptimizeResult(found, success=balanced)
        return Outcome(
            z,
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


def _are_satisfied(balance: Function, z: Any, begin: Any, size: int) -> bool:
    """Whether the conditions of a minimum hold up to the accuracy that the function allows.

    Methods that compare values of the function stop where these do not change, at a relative error
    of the gradient of about the square root of the precision, and report a failure if the tolerance
    is smaller.  So the gradient, and the constraints, are compared with their terms.
    """
    values, terms = np.split(np.array(balance(z), float), 2)
    first = np.split(np.array(balance(begin), float), 2)[0]
    parts = slice(0, size), slice(size, None)
    sizes = [(_largest(values[k]), _largest(terms[k]) + _START * _largest(first[k])) for k in parts]
    return all([bool(size <= _RELATIVE_RESIDUAL * scale) for size, scale in sizes])


def _is_feasible(kind: str, x: Any, by_name: dict[str, Function]) -> bool:
    """Whether inequalities hold, up to a small part of their terms.

    Those with a multiplier of zero are not part of the conditions of a minimum.
    """
    values = np.reshape(by_name[kind](x), (-1,))
    terms = np.reshape(by_name[f"{kind}_jac"](x), (-1, len(x))) @ x
    with np.errstate(invalid="ignore"):  # of bounds that are infinite
        scale = np.abs(terms) + np.abs(values - terms)
    return bool(np.all((values >= 0.0) | (-values <= _RELATIVE_RESIDUAL * scale)))


def _largest(x: Any) -> float:
    return float(np.max(np.abs(x), initial=0.0))


def _of_unknowns(f: Function, padding: Any) -> Function:
    return lambda x: np.array(f(np.concatenate([x, padding])), float)
