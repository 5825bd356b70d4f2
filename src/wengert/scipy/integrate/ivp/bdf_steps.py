"""Steps of variable order with backward differences: the iteration and step sizes of SciPy's `BDF`.

    BdfMethod    the method
    BdfCarry     what a step leaves for the next one

A step of order k extrapolates the polynomial of the last k + 1 states and solves for the difference
d of order k + 1 at the new state (bdf_formula.py, bdf_formula.py).  Steps are equal until the order
or the step size changes; then the differences become those for the new size.  The iteration runs on
values; the derivative of d is that of its equation, with the Jacobian at the new state, and states
are linear in d and in earlier differences.  Orders have no derivative, like step sizes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from wengert._engine.control_flow import cond
from wengert._engine.core.handle import shape_of
from wengert._engine.tensor.numpy_dispatch import as_tensor

from .bdf_formula import (
    ERROR,
    MAX_ITERATIONS,
    MAX_ORDER,
    BdfFormula,
    BdfJacobian,
    BdfSolution,
    rescaled,
    solved,
)
from .method import Evaluations, IvpProblem, Method, MethodStep, Tolerance, fixed, rms
from .stage_roots import stage_root

_SAFETY = 0.9
_SMALLEST_FACTOR, _LARGEST_FACTOR = 0.2, 10.0
_FAILED_FACTOR = 0.5  # if the iteration does not converge with the Jacobian of this step


class BdfCarry(NamedTuple):
    """What a step leaves for the next one, or for another attempt of it.

    differences : backward differences of order 1 to 5 at the state, for steps of size `step`; those
        above `order` have no meaning.
    last : the difference d of the last step.
    order : of the next step.
    count : the number of steps of this order and size.
    step, planned : the size for the differences, and the next one; negative in backward time.
    jacobian : of the iteration.
    """

    differences: Any
    last: Any
    order: Any
    count: Any
    step: Any
    planned: Any
    jacobian: Any


class BdfMethod(Method):
    """The method; its controller is part of the step (`MethodStep.factor`)."""

    name = "BDF"
    order = MAX_ORDER
    error_order = 1  # of the first step
    is_implicit = True
    dense_arrays = MAX_ORDER
    start_counts = Evaluations(1, 1)

    def start(self, problem: IvpProblem, t: Any, y: Any) -> Any:
        """Order 1; its difference for a step of size 1 is the derivative of the state."""
        zero = np.zeros(shape_of(y)[0], y.dtype)
        differences = (problem.slope(t, y), *[zero] * (MAX_ORDER - 1))
        one, none = np.int64(1), np.int64(0)
        jacobian = tuple(BdfJacobian.at(problem, t, fixed(y)))
        unknown = np.float64(np.nan)
        return tuple(BdfCarry(differences, zero, one, none, np.float64(1.0), unknown, jacobian))

    def derivative(self, carry: Any) -> Any:
        """The derivative of the state."""
        return BdfCarry(*carry).differences[0]

    def step(
        self, problem: IvpProblem, t: Any, h: Any, y: Any, carry: Any, tolerance: Tolerance
    ) -> MethodStep:
        """The iteration, the error, and order and size of the next step."""
        c = _as_planned(BdfCarry(*carry), t, h)
        used = [np.where(k <= c.order, x, 0.0) for k, x in enumerate(c.differences, start=1)]
        differences = rescaled(used, c.planned / c.step)
        formula = BdfFormula.of(t, h, y, differences, c.order)
        found = solved(problem, formula, c.jacobian, tolerance)
        near = found.jacobian.near(problem)
        d = stage_root(lambda d: formula.residual(problem, d), found.d, near)
        sums = [d]
        for difference in reversed(differences):
            sums.append(sums[-1] + difference)
        new = tuple(sums[:0:-1])
        y_new = y + new[0]
        scale = tolerance.scale(fixed(y_new))
        error = rms(as_tensor(ERROR)[c.order] * found.d / scale)
        error = np.where(found.is_finite, error, np.nan)
        plan = _planned(c, found, error, scale, new)
        accepted = BdfCarry(
            new,
            found.d,
            plan.order,
            plan.count,
            h,
            h * plan.factor,
            tuple(found.jacobian._replace(has_factors=plan.count > 0, is_current=np.bool_(False))),
        )
        rejected = c._replace(
            count=np.int64(0), planned=h * plan.rejected, jacobian=tuple(found.jacobian)
        )
        return MethodStep(
            y_new,
            error,
            tuple(accepted),
            tuple(rejected),
            tuple([np.where(k <= plan.order, x, 0.0) for k, x in enumerate(new, start=1)]),
            found.converged,
            found.counts,
            np.where(found.converged & (error < 1), plan.factor, plan.rejected),
        )

    def error_norm(self, step: MethodStep, h: Any, scale: Any) -> Any:
        """The norm relative to the tolerance at the new state."""
        return step.error

    def interpolate(self, theta: Any, h: Any, y: Any, y_new: Any, prepared: Any) -> Any:
        """The polynomial of the last states, of the order of the next step."""
        value, weight = y_new, 1.0
        for k, difference in enumerate(prepared):
            weight = weight * ((theta - 1 + k) / (k + 1))
            value = value + weight * difference
        return value


def _as_planned(c: BdfCarry, t: Any, h: Any) -> BdfCarry:
    """The carry for a step of size h; if it is not the planned one, equal steps begin anew."""
    is_planned = (t + c.planned) - t == h
    jacobian = BdfJacobian(*c.jacobian)
    return c._replace(
        count=np.where(is_planned, c.count, 0),
        planned=np.where(is_planned, c.planned, h),
        jacobian=jacobian._replace(has_factors=jacobian.has_factors & is_planned),
    )


class _BdfPlan(NamedTuple):
    """The next step.

    order, count : as in `BdfCarry`.
    factor : of the step size, if this step is accepted.
    rejected : if it is not.
    """

    order: Any
    count: Any
    factor: Any
    rejected: Any


def _planned(c: BdfCarry, found: BdfSolution, error: Any, scale: Any, new: Any) -> _BdfPlan:
    """The order and the step size for which the next step is largest, after enough equal steps.

    new : the differences of order 1 to 5 after this step.
    """
    order, d = c.order, found.d
    safety = _SAFETY * (2 * MAX_ITERATIONS + 1) / (2.0 * MAX_ITERATIONS + found.iterations)
    constants = as_tensor(ERROR)

    def chosen(d: Any, last: Any, *new: Any) -> Any:
        below: Any = new[1]
        for k, difference in enumerate(new[2:], start=3):
            below = np.where(order == k, difference, below)
        lower = rms(constants[order - 1] * below / scale)
        higher = rms(constants[np.minimum(order + 1, MAX_ORDER)] * (d - last) / scale)
        factors = [
            np.where(order > 1, _power(lower, order), 0.0),
            _power(error, order + 1),
            np.where(order < MAX_ORDER, _power(higher, order + 2), 0.0),
        ]
        best, chosen_order = factors[0], order - 1
        for k, factor in enumerate(factors[1:]):
            chosen_order = np.where(factor > best, order + k, chosen_order)
            best = np.maximum(best, factor)
        return chosen_order, np.int64(0), np.minimum(_LARGEST_FACTOR, safety * best)

    count = c.count + 1
    next_order, next_count, factor = cond(
        count > order,
        chosen,
        lambda *_: (order, count, np.float64(1.0)),
        d,
        c.last,
        *[fixed(x) for x in new],
    )
    rejected = np.maximum(_SMALLEST_FACTOR, safety * _power(error, order + 1))
    rejected = np.where(found.converged, rejected, _FAILED_FACTOR)
    return _BdfPlan(fixed(next_order), fixed(next_count), fixed(factor), rejected)


def _power(error: Any, order: Any) -> Any:
    """``error**(-1 / order)``, which is infinite for no error."""
    is_zero = error == 0
    return np.where(is_zero, np.inf, np.where(is_zero, 1.0, error) ** (-1.0 / order))
