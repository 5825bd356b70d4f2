"""The interface of the methods: one step, with an estimate of its error.

The loop (loop.py) repeats steps; it holds step sizes fixed in derivatives, so that the derivative
of the loop is the derivative of the steps taken.

    Evaluations   evaluations of the right-hand side and of the Jacobian, and factorizations
    MethodStep     the result of a step
    Method   the interface
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .problem import IvpProblem, Tolerance, rms


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
