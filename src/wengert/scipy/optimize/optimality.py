"""Conditions that hold at a minimum, and the derivative of the minimal value.

With the Lagrange function ``L = f - lambda h - mu g`` of constraints ``h = 0`` and ``g >= 0`` and
bounds ``l <= x <= u``, the conditions of Karush, Kuhn and Tucker are equations:

    x - clip(x - L_x, l, u) = 0        h = 0        g = 0 where mu > 0, and mu = 0 elsewhere

Where a bound or constraint is active, its row of the Jacobian is that of the constraint, elsewhere
that of the gradient (or of mu = 0): no set of active constraints is needed.  The Jacobian is
singular if the minimum is not strict.  If a constraint is active and its multiplier is zero, the
derivative is not unique, and this is a one-sided one.

The minimal value has the derivative ``L_theta`` (envelope theorem), with elements of x at active
bounds as functions of these, so its gradient needs no linear system.

    projected           the first of the equations
    at_bounds           the solution as a function of the bounds
    complementarity     the last
    minimal_value_of    the value of a function at a minimum, with the derivative of another
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert._engine.core.recording import no_grad
from wengert._engine.core.subgraph import evaluated
from wengert._engine.implicit.functions import GraphFunction
from wengert._engine.implicit.kept_graphs import by_graph
from wengert._engine.implicit.roots import only_if
from wengert._engine.implicit.solver_calls import SolverRule, solver_call


def projected(x: Any, slope: Any, lower: Any = None, upper: Any = None) -> Any:
    """Zero where the slope is zero, or points out of the interval at an end of it."""
    if lower is None and upper is None:
        return slope
    step = x - slope
    if lower is not None:
        step = np.where(step < lower, lower, step)
    if upper is not None:
        step = np.where(step > upper, upper, step)
    return x - step


def at_bounds(x: Any, slope: Any, lower: Any = None, upper: Any = None) -> Any:
    """The point with the ends of the interval for the elements that are at an active bound."""
    step = x - slope
    if lower is not None:
        x = np.where(step < lower, lower, x)
    if upper is not None:
        x = np.where(step > upper, upper, x)
    return x


def complementarity(multipliers: Any, values: Any) -> Any:
    """The values where multipliers are positive, else the multipliers, which are zero."""
    return np.where(multipliers > 0.0, values, multipliers)


class MinimalValue(SolverRule):
    """The value of a function at a minimum; its derivative is that of the Lagrange function.

    Parameters
    ----------
    value, lagrangian : GraphFunction
        Of the unknowns and multipliers; they have the same captured values.
    reason : str
        Why the minimum was not found, for the message of the error.
    """

    name = "the minimization"

    def __init__(self, value: GraphFunction, lagrangian: GraphFunction, reason: str = "") -> None:
        self.value, self.lagrangian, self.reason = value, lagrangian, reason

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MinimalValue) and (self.value, self.lagrangian) == (
            other.value,
            other.lagrangian,
        )

    def __hash__(self) -> int:
        return hash((self.value, self.lagrangian))

    @property
    def size_names(self) -> frozenset[str]:
        """The symbolic sizes in the functions."""
        return self.value.body.size_names | self.lagrangian.body.size_names

    def at_sizes(self, sizes: Any) -> MinimalValue:
        """The same with numbers for symbolic sizes."""
        return MinimalValue(
            self.value.at_sizes(sizes), self.lagrangian.at_sizes(sizes), self.reason
        )

    def solution(self, operands: Sequence[Any]) -> list[Any]:
        """The value."""
        return self.value(operands[:-2], operands[-2:-1])

    def values(self, operands: Sequence[Any]) -> tuple[Any, ...]:
        """The value for plain operands."""
        with no_grad():
            return tuple(evaluated(self.value.body)(operands[:-1]))

    def bars(
        self, operands: Sequence[Any], outs: Sequence[Any], ts: Sequence[Any], saved: Any = None
    ) -> list[Any]:
        """The cotangents of the captured values; that of the minimum is zero."""
        return self.needed_bars(operands, outs, ts, [True] * len(operands))

    def needed_bars(
        self,
        operands: Sequence[Any],
        outs: Sequence[Any],
        ts: Sequence[Any],
        needed: Sequence[bool],
        saved: Any = None,
    ) -> list[Any]:
        """The same for some of the captured values."""
        *consts, z, success = operands
        minimum = only_if(success, [z], self.name, self.reason)
        count = len(consts)
        only = tuple([k for k in range(count) if needed[k]])

        def pulled(*xs: Any) -> list[Any]:
            return self.lagrangian.cotangents_of_captured(xs[:count], [xs[count]], xs[-1:], only)

        key = "minimal value", self.lagrangian, only
        return [*by_graph(key, pulled, [*consts, *minimum, *ts]), None, None]

    def dots(self, operands: Sequence[Any], outs: Sequence[Any], dots: Sequence[Any]) -> list[Any]:
        """The tangent along the captured values."""
        *consts, z, success = operands
        minimum = only_if(success, [z], self.name, self.reason)
        found = self.lagrangian.tangent_of_captured(consts, minimum, dots[:-2])
        return [None] if found is None else found


def minimal_value_of(
    value: GraphFunction,
    lagrangian: GraphFunction,
    consts: Sequence[Any],
    z: Any,
    success: Any,
    reason: str = "",
) -> Any:
    """The value of a function at a minimum, with the derivative of the envelope theorem.

    Parameters
    ----------
    value, lagrangian : GraphFunction
        Of one vector, unknowns and multipliers; with the same captured values, which are
        differentiated.
    consts : sequence
        The captured values.
    z : array
        The minimum; derivatives of higher order depend on it.
    success : bool
        Whether it was found; otherwise the value has no derivative.
    reason : str
        Why it was not found, if that is known.
    """
    return solver_call(MinimalValue(value, lagrangian, reason), [*consts, z, success])[0]
