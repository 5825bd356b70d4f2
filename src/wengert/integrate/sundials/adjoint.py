r"""The adjoint equation for plain values, integrated backward by CVODE.

The linearized equations determine the slope c of the differential part a of a tangent, and its
algebraic part b: G (c, b) = -(F_y V a + F_theta dtheta) with G = (F_y' V, F_y W), for the bases V
and W of both parts; G is regular for equations of index 1.  So cotangents of a satisfy an ordinary
differential equation [1], for w = G^-T (lambda, 0):

    lambda' = (F_y V)^T w        cotangents of parameters: - integral of F_theta^T w

with a jump for each cotangent of a state.  Of y' = f, w is lambda, F_y is -f_y and V the identity.
The integrals are Gauss's quadrature in each backward step.

    cotangents   of captured values and of the initial state

References
----------
.. [1] Y. Cao, S. Li, L. Petzold, R. Serban, "Adjoint sensitivity analysis for differential-
   algebraic equations", SIAM J. Sci. Comput. 24, 1076-1089 (2003).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.scipy.integrate.ivp.loop import Status

from .library import Array, Functions, StepLimits
from .system import Compiled, System
from .trajectory import SampledSolution, SolverOperands, nodes_of, sampled, start_of

_SCALE = 1e-6  # absolute tolerance of the adjoint, relative to its size and to rtol
_MAX_KEPT = 1 << 22  # elements of the matrices at known times


def cotangents(
    system: System, active: Sequence[int], operands: Sequence[Any], bars: Any
) -> tuple[Array, Array]:
    """The cotangents of active captured values, one vector, and of the initial state.

    Parameters
    ----------
    system : System
    active : sequence of int
        Positions of captured values.
    operands : sequence of arrays
        Those of the solution.
    bars : array of shape (times + 1, n)
        Cotangents of the states at the start and at the times.
    """
    given = SolverOperands.of([np.asarray(x) for x in operands])
    total = sum([int(np.prod(system.const_specs[k].shape)) for k in active])
    run = Compiled(system, given.consts)
    y, slope, status = start_of(run, given)
    backward = None
    if status == Status.FINISHED:
        backward = _AdjointIntegration.of(run, given, y, slope, active, total)
    if backward is None:
        return np.full(total, np.nan), np.full(system.size, np.nan)
    bars, now = np.asarray(bars, float), float(given.times[-1]) if np.size(given.times) else 0.0
    times = [float(given.t0), *np.asarray(given.times, float)]
    for time, bar in zip(times[::-1], bars[::-1], strict=True):
        backward.to(now, time)
        backward.jump(time, bar)
        now = time
    return backward.theta, backward.at_start()


class _AdjointIntegration:
    """The integration backward."""

    def __init__(
        self,
        run: Compiled,
        control: StepLimits,
        states: SampledSolution,
        active: Sequence[int],
        total: int,
    ) -> None:
        self.run, self.control, self.states = run, control, states
        self.system = run.system
        self.pullback = run.pullback(active) if total else None
        basis = self.system.basis
        self.adjoint = np.zeros(self.system.size if basis is None else basis.rank)
        self.theta = np.zeros(total)
        self._matrices: dict[float, Array] = {}

    @classmethod
    def of(
        cls,
        run: Compiled,
        given: SolverOperands,
        y: Array,
        slope: Array,
        active: Sequence[int],
        total: int,
    ) -> _AdjointIntegration | None:
        """The integration for operands; None if the solution does not reach the last time."""
        system, control = run.system, given.control(run.system.max_steps)
        t0, end = (
            float(given.t0),
            float(given.times[-1]) if np.size(given.times) else float(given.t0),
        )
        if not np.isfinite(end) or not np.all(np.diff([t0, *given.times]) * np.sign(end - t0) >= 0):
            return None
        nodes = nodes_of(system.solver)
        if end == t0:
            constant = np.array([t0, t0 + 1.0])
            both = np.concatenate([y, slope])
            samples = np.tile(both[: run.system.packed_size - 1], (1, len(nodes), 1))
            return cls(run, control, SampledSolution(constant, nodes, samples), active, total)
        path, ends, ys, slopes = sampled(
            system.solver, run.functions(), (t0, end), y, slope, control, nodes
        )
        if path.status != Status.FINISHED:
            return None
        samples = np.concatenate([ys, slopes], axis=2)[:, :, : run.system.packed_size - 1]
        return cls(run, control, SampledSolution(ends, nodes, samples), active, total)

    def _linearized(self, t: float) -> tuple[Array, Array]:
        """G, and F_y V."""
        return self._parts(self.run.jacobian(t, self.states(t)))

    def _parts(self, both: Array) -> tuple[Array, Array]:
        """G, and F_y V, of the Jacobian, or of several."""
        basis, n = self.system.basis, self.system.size
        assert basis is not None
        d, a = basis.differential, basis.algebraic
        whole = np.concatenate([both[..., n:] @ d, both[..., :n] @ a], axis=-1)
        return whole, both[..., :n] @ d

    def _matrix(self, t: float) -> Array:
        """The matrix A of lambda' = A lambda; kept, as solvers return to the same times."""
        found = self._matrices.get(t)
        if found is None:
            if self.system.basis is None:
                found = -self.run.jacobian(t, self.states(t)).T
            else:
                whole, own = self._linearized(t)
                found = np.linalg.solve(whole.T, np.eye(len(whole))[:, : own.shape[1]])
                found = own.T @ found
            if len(self._matrices) * found.size > _MAX_KEPT:
                self._matrices.clear()
            self._matrices[t] = found
        return found

    def jump(self, t: float, bar: Array) -> None:
        """Add the cotangent of the state at a time."""
        basis = self.system.basis
        if not np.any(bar):
            return
        if basis is None:
            self.adjoint = self.adjoint + bar
            return
        self.adjoint = self.adjoint + basis.differential.T @ bar
        algebraic = basis.algebraic.T @ bar
        if np.any(algebraic):
            whole, own = self._linearized(t)
            zero = np.zeros(basis.rank)
            w = np.linalg.solve(whole.T, np.concatenate([zero, algebraic]))
            self.adjoint = self.adjoint - own.T @ w
            if self.pullback is not None:
                self.theta = self.theta - self.pullback(t, self.states(t), w)

    def to(self, start: float, end: float) -> None:
        """Integrate to an earlier time."""
        if start == end or not self.adjoint.any():
            return
        solver = "CVODE_BDF" if self.system.solver == "IDA" else self.system.solver
        size = np.max(np.abs(self.adjoint))
        atol = np.full(len(self.adjoint), _SCALE * self.control.rtol * size)
        control = StepLimits(self.control.rtol, atol, max_steps=self.control.max_steps)
        # Time is counted from the start: steps behind a jump may be smaller than its spacing there.
        functions = Functions(
            lambda t, x: self._matrix(start + t) @ x, lambda t, x: self._matrix(start + t)
        )
        places, weights = np.polynomial.legendre.leggauss(len(nodes_of(solver)))
        nodes = np.concatenate([[0.0], 0.5 + 0.5 * places, [1.0]])
        path, ends, adjoints, _ = sampled(
            solver, functions, (0.0, end - start), self.adjoint, 0.0 * self.adjoint, control, nodes
        )
        if path.status != Status.FINISHED:
            self.adjoint, self.theta = self.adjoint * np.nan, self.theta * np.nan
            return
        sizes = np.diff(ends)[:, None]
        ts = start + ends[:-1, None] + sizes * nodes[1:-1]
        self._integrate(ts.ravel(), (0.5 * weights * sizes).ravel(), adjoints[:, 1:-1])
        self.adjoint = adjoints[-1, -1]

    def _integrate(self, ts: Array, weights: Array, adjoints: Array) -> None:
        """Add the integrals of one interval, by quadrature."""
        if self.pullback is None:
            return
        adjoints = adjoints.reshape(len(ts), -1)
        at_times = self.states.at_times(ts)
        if self.system.basis is None:
            multipliers = -adjoints
        else:
            many = [self.run.jacobian(t, x) for t, x in zip(ts, at_times, strict=True)]
            whole, _ = self._parts(np.stack(many))
            zeros = np.zeros((len(ts), self.system.size - adjoints.shape[1]))
            cotangents = np.concatenate([adjoints, zeros], axis=1)[:, :, None]
            multipliers = np.linalg.solve(np.swapaxes(whole, 1, 2), cotangents)[:, :, 0]
        for t, weight, x, w in zip(ts, weights, at_times, multipliers, strict=True):
            self.theta = self.theta + self.pullback(t, x, weight * w)

    def at_start(self) -> Array:
        """The cotangent of the initial state."""
        basis = self.system.basis
        return self.adjoint if basis is None else basis.differential @ self.adjoint
