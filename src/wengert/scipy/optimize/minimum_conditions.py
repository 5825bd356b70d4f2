"""The functions of a minimization problem that are made from those of the user.

With objective f, equalities h = 0, inequalities g >= 0 and multipliers y, the Lagrange function is
``f - y_h h - y_g g``.  A function of unknowns and multipliers, `z`, is the gradient of it and the
constraints, with the equations of optimality.py; others are what SciPy's methods call.

    MinimumFunctions    the functions of the unknowns: the user's, and bounds
    MinimumConditions   what is made from them, by name
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.autodiff.grad import grad
from wengert._engine.autodiff.jacobians import hessian, jacobian
from wengert._engine.autodiff.jvp_vjp import jvp
from wengert._engine.core.spec import Spec
from wengert._engine.implicit.functions import GraphFunction

from .derived_functions import TracedFunctions
from .optimality import at_bounds, complementarity, projected
from .solver_operation import Function


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
