"""Backward differences of variable order: the formulas, their equations, and steps as in SciPy.

    KAPPA, SUMS, LEADING, ERROR  by order, from 0, which has no meaning
    rescaled                     backward differences for another step size
    BdfFormula                   the equation of a step
    BdfJacobian                  the Jacobian and the factors of the iteration, kept over steps
    solved                       the iteration, as in SciPy: with the Jacobian of an earlier step as
                                 long as it converges; its result is a BdfSolution
    BdfMethod                    the method
    BdfCarry                     what a step leaves for the next one

With backward differences D of the states, and d the difference of order k + 1 at the new state, the
formula of order k is ``h f = sum(SUMS[j] * D[j], j = 1..k) + LEADING[k] * d``, and the local error
is about ``ERROR[k] * d``.  KAPPA = 0 is the backward differentiation formula; the others have
smaller errors and are nearly as stable.  The numbers are those of [1]_, table 1.
Only the residual of the equation is differentiated.

A step of order k extrapolates the polynomial of the last k + 1 states and solves for the difference
d of order k + 1 at the new state.  Steps are equal until the order
or the step size changes; then the differences become those for the new size.  The iteration runs on
values; the derivative of d is that of its equation, with the Jacobian at the new state, and states
are linear in d and in earlier differences.  Orders have no derivative, like step sizes.

References
----------
.. [1] L. F. Shampine, M. W. Reichelt, "The MATLAB ODE Suite", SIAM Journal on Scientific Computing
   18 (1), 1-22 (1997).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.control_flow import cond, while_loop
from wengert._engine.core.handle import shape_of
from wengert._engine.ops.linalg.packed_factors import lu_or_nan, solve_or_nan, solve_packed
from wengert._engine.tensor.numpy_dispatch import as_tensor

from .method import Evaluations, IvpProblem, Method, MethodStep, Tolerance, fixed, rms
from .stage_equations import NearMatrix, is_small, newton_tolerance, stage_root
from .stage_systems import StructuredMatrix, identity, structured_jacobian

Row = tuple[float, ...]

MAX_ORDER = 5
_ORDERS = range(MAX_ORDER + 1)

KAPPA: Row = (0.0, -0.1850, -1 / 9, -0.0823, -0.0415, 0.0)
SUMS: Row = (0.0, *accumulate([1 / k for k in _ORDERS[1:]]))
LEADING: Row = tuple([(1 - KAPPA[k]) * SUMS[k] for k in _ORDERS])
ERROR: Row = tuple([KAPPA[k] * SUMS[k] + 1 / (k + 1) for k in _ORDERS])


def rescaled(differences: Sequence[Any], ratio: Any) -> list[Any]:
    """The backward differences of order 1, 2, ... of the same polynomial for ``ratio * h``.

    With the difference operator D for h, that for ``ratio * h`` is ``1 - (1 - D)**ratio``: a power
    series in D, whose powers are the operators of higher order.
    """
    count = len(differences)
    series = [ratio]  # the coefficients of D, D**2, ...
    for i in range(1, count):
        series.append(series[-1] * (i - ratio) * (1 / (i + 1)))
    power, found = series, []
    for order in range(1, count + 1):
        # `power` has the coefficients of D**order, D**(order + 1), ...
        total = 0.0
        for a, difference in zip(power, differences[order - 1 :], strict=True):
            total = total + a * difference
        found.append(total)
        power = [
            sum([power[m] * series[i - m] for m in range(i + 1)]) for i in range(count - order)
        ]
    return found


MAX_ITERATIONS = 4
_RUNNING, _CONVERGED, _FAILED = 0, 1, 2


class BdfFormula(NamedTuple):
    """The equation ``M (earlier + d) = scale * f(t, predicted + d)`` for the difference d."""

    t: Any
    predicted: Any
    earlier: Any
    scale: Any

    @classmethod
    def of(cls, t: Any, h: Any, y: Any, differences: list[Any], order: Any) -> BdfFormula:
        """For a step from (t, y) of size h; the differences are zero above the order."""
        leading = as_tensor(LEADING)[order]
        predicted, earlier = y, 0.0
        for weight, difference in zip(SUMS[1:], differences, strict=True):
            predicted = predicted + difference
            earlier = earlier + weight * difference
        return cls(t + h, predicted, earlier / leading, h / leading)

    def residual(self, problem: IvpProblem, d: Any) -> Any:
        """The difference of both sides."""
        left = self.earlier + d
        left = left if problem.mass is None else problem.mass @ left
        return left - self.scale * problem.f(self.t, self.predicted + d)


class BdfJacobian(NamedTuple):
    """The matrix ``M - scale * jac`` of the iteration.

    jac : the Jacobian, of this step or an earlier one; empty if it is banded or sparse.
    t, y : where a banded or sparse Jacobian is taken; otherwise `y` is empty.
    packed, pivots : factors of the matrix; empty for small, banded and sparse systems.
    scale : of the matrix.
    has_factors : whether the matrix is used in the next attempt.
    is_current : whether `jac` is that of this step.
    """

    jac: Any
    t: Any
    y: Any
    packed: Any
    pivots: Any
    scale: Any
    has_factors: Any
    is_current: Any

    @classmethod
    def at(cls, problem: IvpProblem, t: Any, y: Any) -> BdfJacobian:
        """The Jacobian at a state, without factors."""
        n = shape_of(y)[0]
        if structured_jacobian(problem, t, y) is not None:
            jac, size = np.zeros((0, 0), y.dtype), 0
        else:
            jac, size = fixed(problem.jacobian(t, y)), 0 if is_small(y) else n
            y = np.zeros(0, y.dtype)
        packed, pivots = np.zeros((size, size), jac.dtype), np.zeros((size,), np.int32)
        none = np.bool_(False)
        return cls(jac, t * 1.0, y, packed, pivots, np.float64(0.0), none, none)

    def updated(self, problem: IvpProblem, formula: BdfFormula, is_again: Any) -> BdfJacobian:
        """With factors; `is_again`: of the Jacobian at the new time."""
        scale = np.where(self.has_factors, self.scale, formula.scale)
        new = self._replace(
            scale=scale, has_factors=np.bool_(True), is_current=self.is_current | is_again
        )
        if self.is_structured:
            return new._replace(
                t=np.where(is_again, formula.t, self.t),
                y=np.where(is_again, formula.predicted, self.y),
            )
        jac = cond(
            is_again,
            lambda old: fixed(problem.jacobian(formula.t, formula.predicted)),
            lambda old: old,
            self.jac,
        )
        if is_small(formula.predicted):
            return new._replace(jac=jac)
        packed, pivots = cond(
            self.has_factors,
            lambda jac, *old: old,
            lambda jac, *old: tuple(lu_or_nan(_matrix(problem, jac, formula.scale))),
            jac,
            self.packed,
            self.pivots,
        )
        return new._replace(jac=jac, packed=packed, pivots=pivots)

    @property
    def is_structured(self) -> bool:
        """Whether the Jacobian is banded or sparse: then it is known by its products."""
        return shape_of(self.y)[0] != 0

    def solution(self, problem: IvpProblem, b: Any) -> Any:
        """The solution of the linear system."""
        if self.is_structured:
            found = structured_jacobian(problem, self.t, self.y)
            assert found is not None
            return StructuredMatrix(lambda v: v - self.scale * found.products(v)).solve(b)
        if is_small(b):
            return solve_or_nan(_matrix(problem, self.jac, self.scale), b)
        return solve_packed(self.packed, self.pivots, b[:, None])[:, 0]

    def near(self, problem: IvpProblem) -> NearMatrix | None:
        """The matrix, which is near that at the solution, if it is sparse."""
        if not self.is_structured:
            return None
        found = structured_jacobian(problem, self.t, self.y)
        return None if found is None else NearMatrix.sparse(found, self.scale, self.y.dtype)


def _matrix(problem: IvpProblem, jac: Any, scale: Any) -> Any:
    return (identity(jac) if problem.mass is None else problem.mass) - scale * jac


class BdfSolution(NamedTuple):
    """The result of the iteration.

    d : the solution, if `converged`.
    is_finite : whether the right-hand side is.
    iterations : their number with the last Jacobian.
    counts : evaluations.
    jacobian : that was used.
    """

    d: Any
    converged: Any
    is_finite: Any
    iterations: Any
    counts: Any
    jacobian: Any


def solved(
    problem: IvpProblem, formula: BdfFormula, jacobian: BdfJacobian, tolerance: Tolerance
) -> BdfSolution:
    """Iterate; if that fails with an earlier Jacobian, again with that at the new time."""
    formula = BdfFormula(*map(fixed, formula))
    weights, small = tolerance.scale(formula.predicted), newton_tolerance(tolerance)

    def attempt(state: Any) -> Any:
        _, is_again, found = state
        found = BdfSolution(*found)
        before = BdfJacobian(*found.jacobian)
        used = before.updated(problem, formula, is_again)
        d, converged, is_finite, count = _iterated(problem, formula, used, weights, small)
        counts = Evaluations(count, np.where(is_again, 1, 0), np.where(before.has_factors, 0, 1))
        counts = Evaluations(*found.counts).plus(counts)
        repeats = ~converged & ~used.is_current
        used = used._replace(has_factors=used.has_factors & converged)
        found = BdfSolution(d, converged, is_finite, count, tuple(counts), tuple(used))
        return repeats, repeats, tuple(found)

    yes, no, zero = np.bool_(True), np.bool_(False), np.int64(0)
    start = BdfSolution(0.0 * formula.predicted, no, no, zero, (zero,) * 3, tuple(jacobian))
    *_, found = while_loop(lambda s: s[0], attempt, (yes, no, tuple(start)))
    found = BdfSolution(*found)
    d, converged, is_finite, iterations = map(fixed, found[:4])
    counts, used = Evaluations(*map(fixed, found.counts)), BdfJacobian(*map(fixed, found.jacobian))
    return BdfSolution(d, converged, is_finite, iterations, counts, used)


def _iterated(
    problem: IvpProblem, formula: BdfFormula, jacobian: BdfJacobian, weights: Any, small: Any
) -> tuple[Any, Any, Any, Any]:
    """The solution, whether it is one, whether the right-hand side is finite, and iterations."""

    def iteration(state: Any) -> Any:
        _, d, old_size, count, _ = state
        residual = formula.residual(problem, d)
        is_finite = np.all(np.isfinite(residual))
        change = jacobian.solution(problem, residual)
        size = rms(change / weights)
        is_first = count == 0
        rate = size / np.where(is_first, 1.0, old_size)
        left = np.where(rate < 1, 1.0 - rate, 1.0)
        power = rate * np.where(count < 3, rate, 1.0) * np.where(count < 2, rate, 1.0)
        is_slow = ~is_first & ((rate >= 1) | (power / left * size > small))
        fails = ~is_finite | is_slow
        is_done = (size == 0) | (~is_first & (rate / left * size < small))
        is_last = count == MAX_ITERATIONS - 1
        status = np.where(is_done, _CONVERGED, np.where(is_last, _FAILED, _RUNNING))
        new = np.where(fails, d, d - change)
        return np.where(fails, _FAILED, status), new, size, count + 1, is_finite

    start = 0.0 * formula.predicted
    state = (np.int64(_RUNNING), start, np.float64(1.0), np.int64(0), np.bool_(True))
    status, d, _, count, is_finite = while_loop(lambda s: s[0] == _RUNNING, iteration, state)
    return d, status == _CONVERGED, is_finite, count


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
