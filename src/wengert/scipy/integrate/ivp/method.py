"""An initial value problem on vectors, and the interface of the methods that solve it.

    IvpProblem     M y' = f(t, y): the right-hand side, its Jacobian and the mass matrix
    Tolerance      absolute and relative tolerances
    rms            the root mean square, which is the norm of errors
    fixed          a value without derivative
    Method         the interface: one step, with an estimate of its error
    MethodStep     the result of a step
    Evaluations    of the right-hand side and of the Jacobian, and factorizations

The loop (ivp/loop.py) repeats steps; it holds step sizes fixed in derivatives, so that the
derivative of the loop is the derivative of the steps taken.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

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


class Evaluations(NamedTuple):
    """Numbers of evaluations, Python numbers or values.

    rhs : of the right-hand side.
    jac : of the Jacobian.
    lu : of factorizations.
    """

    rhs: Any = 0
    jac: Any = 0
    lu: Any = 0

    def plus(self, other: Evaluations) -> Evaluations:
        """The sums."""
        return Evaluations(*[a + b for a, b in zip(self, other, strict=True)])

    def shared(self, other: Evaluations) -> Evaluations:
        """The larger numbers: of evaluations that both need, counted once."""
        return Evaluations(*[np.maximum(a, b) for a, b in zip(self, other, strict=True)])


class MethodStep(NamedTuple):
    """The result of a step from t to t + h.

    y : the state at t + h.
    error : an estimate of the local error, a vector; methods with a norm of their own give what
        that norm needs.
    carry : what the next step takes if this one is accepted.
    rejected : what the next attempt takes if it is rejected.
    dense : what `Method.interpolate` takes.
    converged : whether the equations of the stages are solved; True if there are none.
    counts : evaluations in this step.
    factor : of the step size for the next attempt, in place of that of the controller where it is
        not NaN; None: that of the controller.
    """

    y: Any
    error: Any
    carry: Any
    rejected: Any
    dense: Any
    converged: Any = True
    counts: Evaluations = Evaluations()
    factor: Any = None


class Method:
    """A method of one step.

    name : as users write it.
    order : of the solution.
    error_order : of the embedded solution that estimates the error.
    """

    name: str
    order: int
    error_order: int
    is_implicit = False  # whether it takes a Jacobian and a mass matrix
    takes_complex = True
    start_counts = Evaluations(1)  # evaluations in `start`
    dense_counts = Evaluations()  # evaluations in `prepared`
    dense_arrays = 0  # how many vectors `prepared` returns

    def start(self, problem: IvpProblem, t: Any, y: Any) -> Any:
        """What the first step takes: a container of arrays.

        It contains the derivative ``f(t, y)``, see `derivative`.
        """
        raise NotImplementedError

    def derivative(self, carry: Any) -> Any:
        """The derivative f(t, y) at the start, of what `start` returns."""
        raise NotImplementedError

    def limited(self, carry: Any, is_limited: Any) -> Any:
        """What a step takes whose size is not the planned one, but a limit of the settings."""
        return carry

    def step(
        self, problem: IvpProblem, t: Any, h: Any, y: Any, carry: Any, tolerance: Tolerance
    ) -> MethodStep:
        """A step of size h, which is negative in backward time."""
        raise NotImplementedError

    def error_norm(self, step: MethodStep, h: Any, scale: Any) -> Any:
        """The error relative to the tolerance; at most 1 in accepted steps."""
        return rms(step.error / scale)

    def prepared(self, problem: IvpProblem, t: Any, h: Any, y: Any, y_new: Any, dense: Any) -> Any:
        """What `interpolate` takes, of `MethodStep.dense`, with further evaluations."""
        return dense

    def dense_like(self, problem: IvpProblem, t: Any, y: Any) -> list[Any]:
        """Arrays with the shapes and dtypes of what `prepared` returns."""
        return [y] * self.dense_arrays

    def interpolate(self, theta: Any, h: Any, y: Any, y_new: Any, prepared: Any) -> Any:
        """The state at ``t + theta * h``, for a number theta from 0 to 1."""
        raise NotImplementedError
