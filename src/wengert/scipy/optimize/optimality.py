"""Conditions that hold at a minimum, and the derivative of the minimal value.

    projected            the first of the equations below; complementarity the last
    at_bounds            the solution as a function of the bounds
    minimal_value_of     the value of a function at a minimum, with the derivative of another
    MinimumFunctions     the functions of the unknowns: the user's, and bounds
    MinimumConditions    what is made from them, by name

With the Lagrange function ``L = f - lambda h - mu g`` of constraints ``h = 0`` and ``g >= 0`` and
bounds ``l <= x <= u``, the conditions of Karush, Kuhn and Tucker are equations:

    x - clip(x - L_x, l, u) = 0    h = 0        g = 0 where mu > 0, and mu = 0 elsewhere

Where a bound or constraint is active, its row of the Jacobian is that of the constraint, elsewhere
that of the gradient (or of mu = 0): no set of active constraints is needed.  The Jacobian is
singular if the minimum is not strict.  If a constraint is active and its multiplier is zero, the
derivative is not unique, and this is a one-sided one.

The minimal value has the derivative ``L_theta`` (envelope theorem), with elements of x at active
bounds as functions of these, so its gradient needs no linear system.

A function of unknowns and multipliers, `z`, is the gradient of L and the constraints, with these
equations; others are what SciPy's methods call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.autodiff.grad import grad
from wengert._engine.autodiff.jacobians import hessian, jacobian
from wengert._engine.autodiff.jvp_vjp import jvp
from wengert._engine.core.graph_classes import evaluated
from wengert._engine.core.recording import no_grad
from wengert._engine.core.spec import Spec
from wengert._engine.implicit.functions import GraphFunction
from wengert._engine.implicit.kept_graphs import by_graph
from wengert._engine.implicit.roots import only_if
from wengert._engine.implicit.solver_calls import SolverRule, solver_call

from .equations import TracedFunctions
from .solver_operation import Function


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


class MinimumFunctions(NamedTuple):
    """Functions of the unknowns.

    by_name : "fun"; "jac" and "hess", if they are given; "eq" and "ineq", if there are constraints.
    ends : lower and upper bounds; empty if there are none.
    """

    by_name: dict[str, Function]
    ends: Sequence[Any]

    def from_bounds(self, x: Any) -> Any:
        """The distances from the bounds."""
        return np.concatenate([x - self.ends[0], self.ends[1] - x])


@dataclass(frozen=True)
class MinimumConditions:
    """What is made from the functions of a problem.

    given : the names of the functions.
    size, equal, unequal : the numbers of unknowns, equalities and inequalities.
    bounded : whether there are bounds.
    is_interior : whether bounds are among the inequalities.  Interior methods do not reach active
        ones, so that multipliers tell which are.
    """

    given: tuple[str, ...]
    size: int
    equal: int
    unequal: int
    bounded: bool
    is_interior: bool

    @property
    def spec(self) -> Spec:
        """The spec of unknowns and multipliers."""
        return Spec((self.size + self.equal + self.unequal,), np.dtype(float))

    def names_for(self, second: bool, interior: bool) -> tuple[str, ...]:
        """The functions that a method of SciPy calls.

        Parameters
        ----------
        second : bool
            Whether it takes the Hessian of the objective.
        interior : bool
            Whether it takes those of constraints.
        """
        names = ["fun", "jac", *["hess"] * second]
        names += ["bound", "bound_jac"] if self.is_interior else []
        for kind in ("eq", "ineq"):
            if kind in self.given:
                names += [kind, f"{kind}_jac", *[f"{kind}_hess"] * interior]
        return (*names, "balance")

    def graph(self, traced: TracedFunctions, name: str) -> GraphFunction:
        """A function of unknowns and multipliers, as a graph that is kept.

        Parameters
        ----------
        traced : TracedFunctions
            The given functions; bounds are shared values.
        name : str
            "fun", "jac", "hess", "eq", "eq_jac", "eq_hess", "ineq", "ineq_jac", "ineq_hess",
            "bound", "bound_jac", "conditions", "envelope" or "balance".
        """

        def make(functions: Sequence[Function], ends: Sequence[Any]) -> Function:
            own = MinimumFunctions(dict(zip(self.given, functions, strict=True)), ends)
            return lambda z: self._value(name, own, z)

        return traced.made((self, name), make, self.spec)

    def _value(self, name: str, own: MinimumFunctions, z: Any) -> Any:
        if name in ("conditions", "envelope", "balance"):
            return getattr(self, name)(own, z)
        kind, _, order = name.rpartition("_")
        x = z[: self.size]
        if name in own.by_name:
            return own.by_name[name](x)
        if name in ("jac", "hess"):
            return (grad if name == "jac" else hessian)(own.by_name["fun"])(x)
        f = own.from_bounds if "bound" in (kind, name) else own.by_name[kind]
        if name == "bound":
            return f(x)
        return jacobian(f)(x) if order == "jac" else jacobian(jacobian(f))(x)

    def inequalities(self, own: MinimumFunctions, x: Any) -> Any:
        """All inequalities."""
        parts = [own.by_name["ineq"](x)] if "ineq" in self.given else []
        return np.concatenate([*parts, own.from_bounds(x)]) if self.is_interior else parts[0]

    def lagrangian(self, own: MinimumFunctions, z: Any) -> Any:
        """The Lagrange function."""
        x = z[: self.size]
        value = own.by_name["fun"](x)
        if self.equal:
            value = value - z[self.size : self.size + self.equal] @ own.by_name["eq"](x)
        if self.unequal:
            multipliers = z[self.size + self.equal :]
            # The distance to a bound that does not exist is infinite.
            active = np.where(multipliers > 0.0, self.inequalities(own, x), 0.0)
            value = value - multipliers @ active
        return value

    def _slope(self, own: MinimumFunctions, z: Any) -> Any:
        """The gradient of the Lagrange function with respect to the unknowns."""
        if not (self.equal or self.unequal):
            return grad(own.by_name["fun"])(z)
        return grad(lambda v: self.lagrangian(own, v))(z)[: self.size]

    def _near_ends(self, own: MinimumFunctions) -> Sequence[Any]:
        return () if self.is_interior or not self.bounded else own.ends

    def conditions(self, own: MinimumFunctions, z: Any) -> Any:
        """The conditions of Karush, Kuhn and Tucker."""
        x = z[: self.size]
        parts = [projected(x, self._slope(own, z), *self._near_ends(own))]
        if self.equal:
            parts.append(own.by_name["eq"](x))
        if self.unequal:
            values = self.inequalities(own, x)
            parts.append(complementarity(z[self.size + self.equal :], values))
        return np.concatenate(parts) if len(parts) > 1 else parts[0]

    def balance(self, own: MinimumFunctions, z: Any) -> Any:
        """The conditions, and the sizes of their terms: the Jacobian times `z`, and the rest."""
        value, terms = jvp(lambda v: self.conditions(own, v), (z,), (z,))
        return np.concatenate([value, np.abs(terms) + np.abs(value - terms)])

    def envelope(self, own: MinimumFunctions, z: Any) -> Any:
        """The Lagrange function, with elements at active bounds as functions of these."""
        ends = self._near_ends(own)
        if not ends:
            return self.lagrangian(own, z)
        x = at_bounds(z[: self.size], self._slope(own, z), *ends)
        return self.lagrangian(own, np.concatenate([x, z[self.size :]]))
