"""An initial value problem on vectors: the right-hand side, its Jacobian and the mass matrix.

IvpProblem     M y' = f(t, y)
Tolerance   absolute and relative tolerances
rms         the root mean square, which is the norm of errors
fixed       a value without derivative
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from wengert._engine.autodiff.grad import stop_gradient
from wengert._engine.autodiff.jacobians import jacfwd
from wengert._engine.autodiff.jvp_vjp import jvp
from wengert._engine.ops.linalg.linear_solve import solve

Rhs = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class IvpProblem:
    """An initial value problem M y' = f(t, y) for a vector y of n numbers.

    f : the right-hand side ``f(t, y)``, a vector; parameters are captured.
    mass : the constant matrix M of shape (n, n), or None for the identity.
    jac : the derivative ``jac(t, y)`` of `f` with respect to y, of shape (n, n), or None: it is
        computed.
    computed_jac : how it is computed, or None: by forward mode.
    """

    f: Rhs
    mass: Any = None
    jac: Rhs | None = None
    computed_jac: Rhs | None = None

    def jacobian(self, t: Any, y: Any) -> Any:
        """The derivative of `f` with respect to y, of shape (n, n)."""
        if self.jac is not None:
            return self.jac(t, y)
        if self.computed_jac is not None:
            return self.computed_jac(t, y)
        return jacfwd(lambda x: self.f(t, x))(y)

    def slope(self, t: Any, y: Any) -> Any:
        """The derivative of the state.

        A row of zeros of the mass matrix is an equation between the components of the state, whose
        derivative with respect to time determines theirs.
        """
        f = self.f(t, y)
        if self.mass is None:
            return f
        is_equation = np.all(self.mass == 0, axis=1)
        one = np.ones((), dtype=np.float64)
        _, change = jvp(lambda time: self.f(time, y), (t * one,), (one,))
        rows = np.where(is_equation[:, None], self.jacobian(t, y), self.mass)
        return solve(rows, np.where(is_equation, -change, f))


@dataclass(frozen=True)
class Tolerance:
    """Tolerances of the error in each step: ``atol + rtol * |y|``.

    atol : a number, or a vector with one number for each component.
    """

    rtol: Any
    atol: Any

    def scale(self, *states: Any) -> Any:
        """The tolerated error of each component: of the largest of the states."""
        size = np.abs(states[0])
        for y in states[1:]:
            size = np.maximum(size, np.abs(y))
        return self.atol + self.rtol * size


def fixed(x: Any) -> Any:
    """The value, without derivative."""
    return stop_gradient(x)


def rms(x: Any) -> Any:
    """The root mean square of a real or complex vector."""
    squares = (x * np.conj(x)).real if x.dtype.kind == "c" else x * x
    return np.sqrt(np.sum(squares) / x.size)
