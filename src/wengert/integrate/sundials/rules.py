"""Solutions and adjoints by SUNDIALS as operations, with derivatives of any order in both modes.

    StatesRule             S
    CotangentsRule         A
    slope                  the derivative of the state with respect to time
    sundials_states        states at times
    sundials_cotangents    cotangents of captured values and of the initial state

A solution is a function S of its operands p; its tangent T(p; dp) is a part of the solution of the
system with its linearization, by the same solver.  Its cotangents A(p; bar) are those of the
adjoint equation.  Since A is the gradient of ``<bar, S(p)>``,

    dA = A(p; dbar) + gradient of <bar, T(p; dp)>

with dp as a constant, in which T is again a solution: so rules of two nodes give all orders.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert._engine.autodiff.grad import stop_gradient
from wengert._engine.autodiff.jacobians import jacfwd
from wengert._engine.autodiff.jvp_vjp import jvp
from wengert._engine.autodiff.vmap import vmap
from wengert._engine.core.op import lookup
from wengert._engine.core.spec import Spec
from wengert._engine.implicit.functions import cotangents_of, is_constant
from wengert._engine.implicit.roots import custom_root
from wengert._engine.implicit.solver_calls import SolverRule, solver_call
from wengert._engine.kinds.opaque import opaque
from wengert._engine.ops.linalg.linear_solve import solve
from wengert._engine.tensor.numpy_dispatch import as_tensor

from .adjoint import cotangents
from .system import System, joined, tangent_system
from .trajectory import OTHERS, ReachedStates, SolverOperands, states

_FLOAT, _WHOLE = np.dtype(float), np.dtype(np.int64)
_REASON = "SUNDIALS computes it"


@opaque(name="sundials_states", trusted=True)
def sundials_states(*operands: Any, system: System) -> Any:
    """The fields of `ReachedStates`."""
    return tuple(states(system, operands))


@sundials_states.spec
def _(*operands: Spec, system: System) -> Any:
    count, n = operands[-1].shape[0] + 1, system.size
    many = Spec((count, n), _FLOAT)
    fields = many, many, Spec((n + 1,), _FLOAT), Spec((5,), _WHOLE)
    assert len(fields) == len(ReachedStates._fields)
    return fields


@opaque(name="sundials_cotangents", trusted=True)
def sundials_cotangents(*operands: Any, system: System, active: tuple[int, ...]) -> Any:
    """The cotangents; the last operand are those of the states."""
    return cotangents(system, active, operands[:-1], operands[-1])


@sundials_cotangents.spec
def _(*operands: Spec, system: System, active: tuple[int, ...]) -> Any:
    total = sum([int(np.prod(system.const_specs[k].shape)) for k in active])
    return Spec((total,), _FLOAT), Spec((system.size,), _FLOAT)


sundials_states.host_callback = _REASON
sundials_cotangents.host_callback = _REASON


_REFINEMENTS = 3  # Newton steps from a solution to its last digits


def slope(system: System, consts: Sequence[Any], t: Any, y: Any, guess: Any) -> Any:
    """The derivative of the state with respect to time, as a function of both.

    guess : of the result, for a residual; it has no derivative.
    """
    basis = system.basis
    if basis is None:
        return system.function(consts, [joined([t[None], y])])[0]
    d, a, r = basis.differential, basis.algebraic, basis.rank

    def residual(t: Any, x: Any, u: Any) -> Any:
        """For the differential part x, and u: its derivative, and the algebraic part."""
        packed = joined([t[None], d @ x + a @ u[r:], d @ u[:r]])
        return system.function(consts, [packed])[0]

    x = d.T @ y
    first = joined([d.T @ stop_gradient(guess), a.T @ stop_gradient(y)])
    u = custom_root(lambda u: residual(t, x, u), first, _newton)
    # The derivative of the equations along the solution determines that of the algebraic part.
    one = np.ones((), dtype=np.float64)
    _, change = jvp(lambda t, x: residual(t, x, u), (t, x), (one * 1.0, u[:r]))
    rest = -solve(jacfwd(lambda u: residual(t, x, u))(u), change)
    return d @ u[:r] + a @ rest[r:]


def _newton(f: Any, u: Any) -> Any:
    for _ in range(_REFINEMENTS):
        u = u - solve(jacfwd(f)(u), f(u))
    return u


class _SensitivityRule(SolverRule):
    """What both rules share."""

    system: System
    is_moving: bool

    def _slopes(self, given: SolverOperands, times: Any, ys: Any, guesses: Any) -> Any:
        """The derivatives of the states at times."""
        each = vmap(lambda t, y, guess: slope(self.system, given.consts, t, y, guess))
        return each(times, ys, guesses)

    def _tangent(self, operands: Sequence[Any], dots: Sequence[Any], outs: Any = None) -> Any:
        """The tangent of the states at the start and at the times."""
        system, given, moved = self.system, SolverOperands.of(operands), SolverOperands.of(dots)
        active = [k for k in system.floats if moved.consts[k] is not None]
        is_moving = moved.t0 is not None or moved.times is not None
        if outs is None and is_moving:
            outs = solver_call(StatesRule(system, self.is_moving), operands)
        tangent: Any = None
        slopes: Any = None
        times = joined([as_tensor(given.t0)[None], as_tensor(given.times)])
        if is_moving:
            slopes = self._slopes(given, times, outs[0], outs[1])
        if active or moved.y0 is not None or moved.t0 is not None:
            start = np.zeros(system.size) if moved.y0 is None else moved.y0
            if moved.t0 is not None:
                start = start - slopes[0] * moved.t0
            tangent = self._linearized(given, moved, active, start)
        if is_moving:
            t0_dot = np.zeros(1) if moved.t0 is None else as_tensor(moved.t0)[None]
            rest = np.zeros(given.times.shape) if moved.times is None else moved.times
            along = slopes * joined([t0_dot, rest])[:, None]
            tangent = along if tangent is None else tangent + along
        return tangent

    def _linearized(
        self, given: SolverOperands, moved: SolverOperands, active: Sequence[int], start: Any
    ) -> Any:
        """The tangent for tangents of captured values, from a tangent of the state at the start."""
        system, n = self.system, self.system.size
        dots = [moved.consts[k] for k in active]
        pairs = [(given.consts[k], moved.consts[k]) for k in active]
        scale = _scale([*pairs, (given.y0, start)])
        both = SolverOperands(
            [*given.consts, *dots],
            given.t0,
            joined([given.y0, start]),
            joined([as_tensor(given.slope0), np.zeros(n)]),
            given.rtol,
            joined([as_tensor(given.atol), scale * given.atol]),
            given.max_step,
            given.first_step,
            given.times,
        )
        rule = StatesRule(tangent_system(system, active), self.is_moving)
        found = solver_call(rule, both.operands())
        return found[0][:, n:]


def _scale(pairs: Sequence[tuple[Any, Any]]) -> Any:
    """The size of tangents relative to their primals, without derivative.

    The absolute tolerance of a tangent of the state is that of the state times this number, as in
    CVODES, where it is one over the size of a parameter.
    """
    scale: Any = 0.0
    for primal, tangent in pairs:
        size, dot = np.abs(stop_gradient(primal)), np.abs(stop_gradient(tangent))
        if np.size(dot):
            scale = np.maximum(scale, np.max(dot / np.where(size == 0.0, 1.0, size)))
    return stop_gradient(np.where(scale > 0.0, scale, 1.0))


class StatesRule(_SensitivityRule):
    """The states at the start and at times; operands are those of `SolverOperands`.

    Parameters
    ----------
    system : System
    is_moving : bool
        Whether the start or the times may have derivatives.
    """

    name = "a solution by SUNDIALS"

    def __init__(self, system: System, is_moving: bool = False) -> None:
        self.system, self.is_moving = system, is_moving
        self._key = system, is_moving

    @classmethod
    def of(cls, system: System, given: SolverOperands) -> StatesRule:
        """The rule for operands."""
        return cls(system, not (is_constant(given.t0) and is_constant(given.times)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StatesRule) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def solution(self, operands: Sequence[Any]) -> list[Any]:
        """The fields of `ReachedStates`."""
        return list(sundials_states(*operands, system=self.system))

    def dots(self, operands: Sequence[Any], outs: Sequence[Any], dots: Sequence[Any]) -> list[Any]:
        """The tangent, by the linearized equations."""
        return [self._tangent(operands, dots, outs), None, None, None]

    def bars(
        self, operands: Sequence[Any], outs: Sequence[Any], ts: Sequence[Any], saved: Any = None
    ) -> Sequence[Any]:
        """The cotangents, by the adjoint equation."""
        return self.needed_bars(operands, outs, ts, [True] * len(operands))

    def needed_bars(
        self,
        operands: Sequence[Any],
        outs: Sequence[Any],
        ts: Sequence[Any],
        needed: Sequence[bool],
        saved: Any = None,
    ) -> list[Any]:
        """The same; integrals only for captured values that are needed."""
        system, given, wanted = self.system, SolverOperands.of(operands), SolverOperands.of(needed)
        active = tuple([k for k in system.floats if wanted.consts[k]])
        rule = CotangentsRule(system, active, self.is_moving)
        theta, y0_bar = solver_call(rule, [*operands, ts[0]])
        bars: list[Any] = [None] * len(operands)
        for k, part in rule.parts(theta):
            bars[k] = part
        t0_bar = times_bar = None
        if self.is_moving and (wanted.t0 or wanted.times):
            times = joined([as_tensor(given.t0)[None], as_tensor(given.times)])
            slopes = self._slopes(given, times, outs[0], outs[1])
            along = np.sum(slopes * ts[0], axis=1)
            t0_bar, times_bar = along[0] - np.sum(slopes[0] * y0_bar), along[1:]
        others = [None] * OTHERS
        others[0], others[1], others[-1] = t0_bar, y0_bar, times_bar
        return [*bars[:-OTHERS], *others]


class CotangentsRule(_SensitivityRule):
    """The cotangents of active captured values, one vector, and of the initial state.

    Operands are those of `StatesRule`, and the cotangents of its states.
    """

    name = "the adjoint of a solution by SUNDIALS"

    def __init__(self, system: System, active: tuple[int, ...], is_moving: bool) -> None:
        self.system, self.active, self.is_moving = system, active, is_moving
        self._key = system, active, is_moving

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CotangentsRule) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def parts(self, theta: Any) -> list[tuple[int, Any]]:
        """The cotangents of active captured values, with their positions."""
        found, start = [], 0
        for k in self.active:
            shape = self.system.const_specs[k].shape
            size = int(np.prod(shape))
            found.append((k, lookup("reshape")(theta[start : start + size], shape=shape)))
            start += size
        return found

    def solution(self, operands: Sequence[Any]) -> list[Any]:
        """The cotangents."""
        return list(sundials_cotangents(*operands, system=self.system, active=self.active))

    def dots(self, operands: Sequence[Any], outs: Sequence[Any], dots: Sequence[Any]) -> list[Any]:
        """The tangents: those for the cotangents, and those for the operands of the solution."""
        *given, bars = operands
        terms = []
        if dots[-1] is not None:
            terms.append(solver_call(self, [*given, dots[-1]]))
        if any([d is not None for d in dots[:-1]]):
            places = [*self.active, len(given) - OTHERS + 1]  # and the initial state
            *theta, y0_bar = self._gradient(given, dots[:-1], bars, places)
            flat = [lookup("reshape")(x, shape=(-1,)) for x in theta]
            terms.append([joined(flat) if flat else np.zeros(0), y0_bar])
        return [a if len(terms) == 1 else a + b for a, b in zip(*(terms * 2)[:2], strict=True)]

    def _gradient(
        self, given: Sequence[Any], dots: Sequence[Any], bars: Any, places: Sequence[int]
    ) -> list[Any]:
        """The gradient of <bars, T(given; dots)> with respect to some operands."""

        def tangent(*varied: Any) -> list[Any]:
            full = list(given)
            for k, x in zip(places, varied, strict=True):
                full[k] = x
            return [self._tangent(full, dots)]

        return cotangents_of(tangent, [given[k] for k in places], [bars])

    def bars(
        self, operands: Sequence[Any], outs: Sequence[Any], ts: Sequence[Any], saved: Any = None
    ) -> list[Any]:
        """The cotangents: of ``<w, A(p; bar)> = <bar, T(p; w)>``."""
        *given, bars = operands
        dots: list[Any] = [None] * len(given)
        for k, part in self.parts(ts[0]):
            dots[k] = part
        first = len(given) - OTHERS
        dots[first + 1] = ts[1]
        ends = (first, len(given) - 1) if self.is_moving else ()
        places = [*self.system.floats, first + 1, *ends]
        found: list[Any] = [None] * len(given)
        for k, x in zip(places, self._gradient(given, dots, bars, places), strict=True):
            found[k] = x
        return [*found, self._tangent(given, dots)]
