"""The Radau IIA method of order 5, with the coefficients, iteration and steps of SciPy's `Radau`.

    NODES, WEIGHTS       times of the three stages, and the matrix of the method, h A f = Z
    ERROR                of the embedded formula
    REAL, COMPLEX        eigenvalues of the inverse of the matrix: a real one and one of a pair
    VECTORS, INVERSE     the real transformation to its block diagonal form, and the inverse
    INTERPOLANT          powers of theta in the collocation polynomial, for each stage
    RadauMethod          the method; RadauCarry what a step leaves for the next one

The new state is that of the last stage.  The source is E. Hairer, G. Wanner, Solving Ordinary
Differential Equations II (1996), IV.5 and IV.8.  `tests/integrate/test_tables.py` checks the order
conditions and the transformation.

The increments Z of the three stages solve ``M Z = h A f(t + c h, y + Z)``.  Newton's iteration for
them has one real and one complex linear system of n unknowns; its matrix is that of an earlier step
as long as it converges fast.  The iteration runs on values; the derivative of the increments is
that of their equation, with Jacobians at the stages.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from wengert._engine.control_flow import cond, while_loop
from wengert._engine.core.handle import shape_of
from wengert._engine.ops.linalg.packed_factors import lu_or_nan, solve_or_nan, solve_packed

from .explicit_methods import combination
from .method import Evaluations, IvpProblem, Method, MethodStep, Tolerance, fixed, rms
from .stage_equations import is_small, newton_tolerance, stage_root
from .stage_systems import identity

Row = tuple[float, ...]

_S6 = 6.0**0.5
_CUBE_ROOT = 3.0 ** (1 / 3)

# fmt: off
NODES: Row = ((4 - _S6) / 10, (4 + _S6) / 10, 1.0)
WEIGHTS: tuple[Row, ...] = (
    ((88 - 7 * _S6) / 360, (296 - 169 * _S6) / 1800, (-2 + 3 * _S6) / 225),
    ((296 + 169 * _S6) / 1800, (88 + 7 * _S6) / 360, (-2 - 3 * _S6) / 225),
    ((16 - _S6) / 36, (16 + _S6) / 36, 1 / 9),
)
ERROR: Row = ((-13 - 7 * _S6) / 3, (-13 + 7 * _S6) / 3, -1 / 3)
REAL = 3 + 3 ** (2 / 3) - _CUBE_ROOT
COMPLEX = (3 + 0.5 * (_CUBE_ROOT - 3 ** (2 / 3)) - 0.5j * (3 ** (5 / 6) + 3 ** (7 / 6)))
VECTORS: tuple[Row, ...] = (
    (0.09443876248897524, -0.14125529502095421, 0.03002919410514742),
    (0.25021312296533332, 0.20412935229379994, -0.38294211275726192),
    (1.0, 1.0, 0.0),
)
INVERSE: tuple[Row, ...] = (
    (4.17871859155190428, 0.32768282076106237, 0.52337644549944951),
    (-4.17871859155190428, -0.32768282076106237, 0.47662355450055044),
    (0.50287263494578682, -2.57192694985560522, 0.59603920482822492),
)
INTERPOLANT: tuple[Row, ...] = (
    (13 / 3 + 7 * _S6 / 3, -23 / 3 - 22 * _S6 / 3, 10 / 3 + 5 * _S6),
    (13 / 3 - 7 * _S6 / 3, -23 / 3 + 22 * _S6 / 3, 10 / 3 - 5 * _S6),
    (1 / 3, -8 / 3, 10 / 3),
)
# fmt: on


_MAX_ITERATIONS = 6
_SAFETY = 0.9
_SMALLEST_FACTOR, _LARGEST_FACTOR = 0.2, 10.0
_LEAST_GROWTH = 1.2  # steps grow by more than this or not at all, so that factors are kept
_SLOW_RATE = 1e-3  # of convergence: the Jacobian is computed anew
_RUNNING, _CONVERGED, _FAILED = 0, 1, 2


class RadauCarry(NamedTuple):
    """What a step leaves for the next one, or for another attempt of it.

    f : the right-hand side at the state.
    jac : the Jacobian, at this state or an earlier one.
    real, complex : packed factors and pivots; empty for small systems.
    has_factors, is_current, needs_jac, was_rejected : flags
        Whether the factors are those of `jac` and the step size, whether `jac` is that at the
        state, whether it is computed at the next attempt, and whether an attempt of this step was
        rejected because of its error.
    planned : the step size of the first attempt; 0 before it.
    old_step, old_error : of the step before, for the step size; NaN if not known.
    base, stages, step : the state, the increments and the size of the last accepted step, whose
        polynomial predicts the stages; step 0: none.
    """

    f: Any
    jac: Any
    real: Any
    complex: Any
    has_factors: Any
    is_current: Any
    needs_jac: Any
    was_rejected: Any
    planned: Any
    old_step: Any
    old_error: Any
    base: Any
    stages: Any
    step: Any


class RadauMethod(Method):
    """The method; its controller is part of the step (`MethodStep.factor`)."""

    name = "Radau"
    order = 5
    error_order = 3
    is_implicit = True
    takes_complex = False
    dense_arrays = 3

    def start(self, problem: IvpProblem, t: Any, y: Any) -> Any:
        """No factors, and no earlier step."""
        n = shape_of(y)[0]
        size = 0 if is_small(y) else n
        no, zero = np.bool_(False), np.float64(0.0)
        pivots = np.zeros((size,), np.int32)
        return tuple(
            RadauCarry(
                fixed(problem.f(t, y)),
                np.zeros((n, n)),
                (np.zeros((size, size)), pivots),
                (np.zeros((size, size), np.complex128), pivots),
                no,
                np.bool_(True),
                np.bool_(True),
                no,
                zero,
                np.float64(np.nan),
                np.float64(np.nan),
                fixed(y),
                (np.zeros(n),) * 3,
                zero,
            )
        )

    def derivative(self, carry: Any) -> Any:
        """The right-hand side."""
        return carry[0]

    def limited(self, carry: Any, is_limited: Any) -> Any:
        """Without the step before, which does not predict the change of the step size."""
        c = RadauCarry(*carry)
        unknown = np.where(is_limited, np.nan, c.old_step)
        return tuple(c._replace(old_step=unknown))

    def step(
        self, problem: IvpProblem, t: Any, h: Any, y: Any, carry: Any, tolerance: Tolerance
    ) -> MethodStep:
        """The iteration, the error, and what is kept for the next step."""
        c, start = RadauCarry(*carry), fixed(y)
        jac = cond(
            c.needs_jac,
            lambda t, y, jac: fixed(problem.jacobian(t, y)),
            lambda t, y, jac: jac,
            t,
            start,
            c.jac,
        )
        has_factors = c.has_factors & ~c.needs_jac
        systems = _Systems.updated(problem, jac, h, c, has_factors)
        found = _iterated(problem, systems, t, h, start, c, tolerance)
        zs = _stages(problem, t, h, y, found.stages)
        y_new = y + zs[2]
        fixed_new = fixed(y_new)
        scale = tolerance.scale(start, fixed_new)
        error, repeats = _error(problem, systems, t, h, start, scale, c, found)
        norm = rms(error / scale)
        accepted = found.converged & (norm < 1)
        f_new = fixed(problem.f(t + h, fixed_new))
        plan = _planned(h, c, norm, found, accepted)
        counts = Evaluations(
            3 * found.iterations + np.where(repeats, 1, 0) + np.where(accepted, 1, 0),
            np.where(c.planned == 0, 1, 0) + np.where(plan.needs_jac, 1, 0),
            np.where(has_factors, 0, 2),
        )
        shared = {"jac": jac, "real": systems.real, "complex": systems.complex}
        new = c._replace(
            **shared,
            f=f_new,
            has_factors=plan.keeps,
            is_current=plan.needs_jac,
            needs_jac=plan.needs_jac,
            was_rejected=np.bool_(False),
            planned=np.abs(h) * plan.factor,
            old_step=plan.planned,
            old_error=norm,
            base=start,
            stages=tuple(map(fixed, zs)),
            step=h,
        )
        same = c._replace(
            **shared,
            has_factors=np.bool_(False),
            is_current=c.is_current | ~found.converged,
            needs_jac=plan.needs_jac,
            was_rejected=c.was_rejected | found.converged,
            planned=plan.planned,
        )
        kept = tuple(new), tuple(same)
        return MethodStep(y_new, error, *kept, tuple(zs), found.converged, counts, plan.factor)

    def prepared(self, problem: IvpProblem, t: Any, h: Any, y: Any, y_new: Any, dense: Any) -> Any:
        """The coefficients of the powers of theta."""
        return [combination(column, dense) for column in zip(*INTERPOLANT, strict=True)]

    def interpolate(self, theta: Any, h: Any, y: Any, y_new: Any, prepared: Any) -> Any:
        """The collocation polynomial."""
        value: Any = 0.0
        for term in reversed(prepared):
            value = (value + term) * theta
        return y + value


class _Systems(NamedTuple):
    """The real and the complex linear system of the iteration.

    matrices : the two matrices, if they are small.
    real, complex : packed factors and pivots, otherwise.
    """

    matrices: Any
    real: Any
    complex: Any

    @classmethod
    def updated(
        cls, problem: IvpProblem, jac: Any, h: Any, carry: RadauCarry, has_factors: Any
    ) -> _Systems:
        """The systems for a step size, with factors of the step before if they are valid."""
        mass = identity(jac) if problem.mass is None else problem.mass

        def matrices(jac: Any, h: Any) -> tuple[Any, Any]:
            return REAL / h * mass - jac, COMPLEX / h * mass - jac

        if is_small(jac):
            return cls(matrices(jac, h), carry.real, carry.complex)
        real, pair = cond(
            has_factors,
            lambda jac, h, *old: old,
            lambda jac, h, *old: tuple([tuple(lu_or_nan(a)) for a in matrices(jac, h)]),
            jac,
            h,
            carry.real,
            carry.complex,
        )
        return cls(None, real, pair)

    def real_solution(self, b: Any) -> Any:
        """The solution of the real system."""
        if self.matrices is not None:
            return solve_or_nan(self.matrices[0], b)
        return solve_packed(*self.real, b[:, None])[:, 0]

    def complex_solution(self, b: Any) -> Any:
        """The solution of the complex system."""
        if self.matrices is not None:
            return solve_or_nan(self.matrices[1], b)
        return solve_packed(*self.complex, b[:, None])[:, 0]


class _Found(NamedTuple):
    """The result of the iteration: the increments of the stages, and how it went."""

    stages: Any
    converged: Any
    rate: Any
    iterations: Any


def _iterated(
    problem: IvpProblem,
    systems: _Systems,
    t: Any,
    h: Any,
    y: Any,
    c: RadauCarry,
    tolerance: Tolerance,
) -> _Found:
    """Newton's iteration, from the polynomial of the last step."""
    scale, small = tolerance.scale(y), newton_tolerance(tolerance)
    vectors = [combination(row, _predicted(y, h, c)) for row in INVERSE]
    pair_row = [INVERSE[1][i] + 1j * INVERSE[2][i] for i in range(3)]

    def with_mass(x: Any) -> Any:
        return x if problem.mass is None else problem.mass @ x

    def iteration(state: Any) -> Any:
        _, ws, old_size, _, count = state
        zs = [combination(row, ws) for row in VECTORS]
        fs = [problem.f(t + node * h, y + z) for node, z in zip(NODES, zs, strict=True)]
        finite = np.all(np.isfinite(fs[0])) & np.all(np.isfinite(fs[1]))
        finite = finite & np.all(np.isfinite(fs[2]))
        pair = sum(w * f for w, f in zip(pair_row, fs, strict=True))
        first = systems.real_solution(combination(INVERSE[0], fs) - with_mass(REAL / h * ws[0]))
        second = systems.complex_solution(pair - with_mass(COMPLEX / h * (ws[1] + 1j * ws[2])))
        changes = [first, second.real, second.imag]
        size = np.sqrt(sum(np.sum((x / scale) ** 2) for x in changes) / (3.0 * scale.size))
        is_first = count == 0
        rate = np.where(is_first, 0.0, size / np.where(is_first, 1.0, old_size))
        left = np.where(rate < 1, 1.0 - rate, 1.0)
        remaining = _power(rate, _MAX_ITERATIONS - count) / left * size
        fails = ~finite | (~is_first & ((rate >= 1) | (remaining > small)))
        is_done = (size == 0) | (~is_first & (rate / left * size < small))
        is_last = count == _MAX_ITERATIONS - 1
        status = np.where(is_done, _CONVERGED, np.where(is_last, _FAILED, _RUNNING))
        ws = [np.where(fails, w, w + x) for w, x in zip(ws, changes, strict=True)]
        return np.where(fails, _FAILED, status), ws, size, rate, count + 1

    start = (np.int64(_RUNNING), vectors, np.float64(1.0), np.float64(0.0), np.int64(0))
    status, ws, _, rate, count = while_loop(lambda s: s[0] == _RUNNING, iteration, start)
    zs = [fixed(combination(row, ws)) for row in VECTORS]
    return _Found(zs, fixed(status) == _CONVERGED, fixed(rate), fixed(count))


def _error(
    problem: IvpProblem,
    systems: _Systems,
    t: Any,
    h: Any,
    y: Any,
    scale: Any,
    c: RadauCarry,
    found: _Found,
) -> tuple[Any, Any]:
    """The error of the embedded formula; in repeated steps a better one where it is too large.

    Returns
    -------
    error : vector
    repeats : bool
        Whether the better one is computed.
    """
    side = combination(ERROR, found.stages) / h
    side = side if problem.mass is None else problem.mass @ side
    error = systems.real_solution(c.f + side)
    repeats = c.was_rejected & (rms(error / scale) > 1) & found.converged
    error = cond(
        repeats,
        lambda y, error, side: systems.real_solution(problem.f(t, y + error) + side),
        lambda y, error, side: error,
        y,
        error,
        side,
    )
    return error, repeats


def _power(x: Any, exponent: Any) -> Any:
    """The power for an exponent from 1 to 5, or 0 for larger ones."""
    square = x * x
    powers = (x, square, square * x, square * square, square * square * x)
    value: Any = 0.0
    for k, power in enumerate(powers, start=1):
        value = np.where(exponent == k, power, value)
    return value


def _predicted(y: Any, h: Any, c: RadauCarry) -> list[Any]:
    """Increments of the stages by the polynomial of the last step; zero in the first one."""
    exists = c.step != 0
    ratio = h / np.where(exists, c.step, 1.0)
    columns = [combination(column, c.stages) for column in zip(*INTERPOLANT, strict=True)]
    zs = []
    for node in NODES:
        x, value = 1.0 + node * ratio, 0.0
        for term in reversed(columns):
            value = (value + term) * x
        zs.append(np.where(exists, c.base + value - y, 0.0))
    return zs


def _stages(problem: IvpProblem, t: Any, h: Any, y: Any, zs: list[Any]) -> Any:
    """The increments, with the derivative of the equation that they solve."""
    n = shape_of(y)[0]

    def residual(flat: Any) -> Any:
        zs = [flat[k * n : (k + 1) * n] for k in range(3)]
        fs = [problem.f(t + node * h, y + z) for node, z in zip(NODES, zs, strict=True)]
        left = zs if problem.mass is None else [problem.mass @ z for z in zs]
        rows = zip(left, WEIGHTS, strict=True)
        return np.concatenate([z - h * combination(row, fs) for z, row in rows])

    start = np.concatenate(zs)
    flat = stage_root(residual, start)
    return [flat[k * n : (k + 1) * n] for k in range(3)]


class _Plan(NamedTuple):
    """The next step size, and what is kept.

    factor : of the step size.
    keeps : whether the factors of this step are used in the next one.
    needs_jac : whether the Jacobian is computed for the next attempt.
    planned : as in `RadauCarry`, for another attempt of this step.
    """

    factor: Any
    keeps: Any
    needs_jac: Any
    planned: Any


def _planned(h: Any, c: RadauCarry, norm: Any, found: _Found, accepted: Any) -> _Plan:
    """The controller of SciPy, which is that of Gustafsson [1]_.

    References
    ----------
    .. [1] E. Hairer, G. Wanner, Solving Ordinary Differential Equations II (1996), IV.8.
    """
    size = np.abs(h)
    planned = np.where(c.planned == 0, size, c.planned)
    inverse_root = np.where(norm > 0, norm, 1.0) ** -0.25
    ratio = size / c.old_step * c.old_error**0.25 * inverse_root
    ratio = np.where(np.isnan(ratio) | (norm == 0), 1.0, ratio)
    factor = np.minimum(1.0, ratio) * np.where(norm == 0, np.inf, inverse_root)
    safety = _SAFETY * (2 * _MAX_ITERATIONS + 1) / (2.0 * _MAX_ITERATIONS + found.iterations)
    factor = safety * factor
    is_slow = (found.iterations > 2) & (found.rate > _SLOW_RATE)
    grown = np.minimum(_LARGEST_FACTOR, factor)
    keeps = ~is_slow & (grown < _LEAST_GROWTH)
    grown = np.where(keeps, 1.0, grown)
    factor = np.where(accepted, grown, np.maximum(_SMALLEST_FACTOR, factor))
    failed = np.where(c.is_current, 0.5, 1.0)
    needs_jac = np.where(found.converged, accepted & is_slow, ~c.is_current)
    return _Plan(np.where(found.converged, factor, failed), keeps, needs_jac, planned)
