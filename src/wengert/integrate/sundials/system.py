"""A system of equations as graphs, with the graphs that its solution and derivatives need.

All functions take one packed vector: time, state and, of IDA, the derivative of the state.

    System           y' = f(t, y) for CVODE, F(t, y, y') = 0 for IDA
    Basis            which parts of the state are differential, and which are algebraic
    tangent_system   the system with its linearization, whose state contains a tangent
    Compiled         its compiled functions
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wengert._engine.autodiff.jacobians import jacfwd
from wengert._engine.autodiff.jvp_vjp import jvp
from wengert._engine.core.op import lookup
from wengert._engine.core.spec import Spec
from wengert._engine.implicit.functions import GraphFunction, raveled
from wengert._engine.implicit.kept_graphs import KeptGraphs
from wengert.scipy.optimize.solver_operation import bound

from .library import Array, Functions

_FLOAT = np.dtype(float)


class Basis:
    """Orthonormal bases of the differential and of the algebraic part of the state.

    differential : of shape (n, r): the derivative of these components occurs in the equations.
    algebraic : of shape (n, n - r): that of these does not.
    """

    def __init__(self, differential: Array, algebraic: Array) -> None:
        self.differential, self.algebraic = differential, algebraic
        self._key = (differential.shape, differential.tobytes(), algebraic.tobytes())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Basis) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def rank(self) -> int:
        """The number of differential components."""
        return int(self.differential.shape[1])

    def twice(self) -> Basis:
        """The bases of a state and a tangent of it."""
        zero_d, zero_a = np.zeros_like(self.differential), np.zeros_like(self.algebraic)
        d, a = self.differential, self.algebraic
        return Basis(np.block([[d, zero_d], [zero_d, d]]), np.block([[a, zero_a], [zero_a, a]]))


@dataclass(frozen=True)
class System:
    """A system of equations.

    solver : "CVODE_BDF", "CVODE_Adams" or "IDA".
    function : of a packed vector; what it captures are its first operands.
    size : of the state.
    basis : of IDA.
    max_steps : the largest number of attempted steps.
    """

    solver: str
    function: GraphFunction
    size: int
    basis: Basis | None = None
    max_steps: int = 100_000

    @property
    def is_implicit(self) -> bool:
        """Whether the function is a residual."""
        return self.basis is not None

    @property
    def packed_size(self) -> int:
        """The length of the vector that the function takes."""
        return 1 + self.size * (1 + self.is_implicit)

    @property
    def const_specs(self) -> list[Spec]:
        """The specs of captured values."""
        return [n.spec for n in self.function.inputs[0]]

    @property
    def floats(self) -> tuple[int, ...]:
        """The captured values that have derivatives."""
        return tuple([k for k, s in enumerate(self.const_specs) if s.dtype.kind == "f"])


def joined(parts: Sequence[Any]) -> Any:
    """Vectors as one vector."""
    return parts[0] if len(parts) == 1 else lookup("concatenate")(*parts, axis=0)


def tangent_system(system: System, active: Sequence[int]) -> System:
    """The system whose state is (y, s) with the tangent s of y.

    It captures what the system captures, and the tangents of the active captured values.
    """

    def make() -> System:
        count, n = len(system.const_specs), system.size
        specs = [*system.const_specs, *[system.const_specs[k] for k in active]]

        def both(*values: Any) -> list[Any]:
            consts, dots, x = values[:count], values[count:-1], values[-1]
            y, s = x[1 : n + 1], x[n + 1 : 2 * n + 1]
            base, change = [x[:1], y], [0.0 * x[:1], s]
            if system.is_implicit:
                base.append(x[2 * n + 1 : 3 * n + 1])
                change.append(x[3 * n + 1 :])

            def value(packed: Any, *varied: Any) -> Any:
                full = list(consts)
                for k, v in zip(active, varied, strict=True):
                    full[k] = v
                return system.function(full, [packed])[0]

            primals = joined(base), *[consts[k] for k in active]
            return [joined(jvp(value, primals, (joined(change), *dots)))]

        packed = Spec((1 + 2 * n * (1 + system.is_implicit),), _FLOAT)
        made = GraphFunction.traced_alone(both, [*specs, packed], "a system with its tangent")
        function = GraphFunction(made.body, len(specs))
        basis = None if system.basis is None else system.basis.twice()
        return System(system.solver, function, 2 * n, basis, system.max_steps)

    return _tangent_systems.get((system, tuple(active)), make)


_tangent_systems: KeptGraphs[System] = KeptGraphs()
_derived: KeptGraphs[GraphFunction] = KeptGraphs()


def _jacobian(system: System) -> GraphFunction:
    """The derivative of the function with respect to the packed vector."""

    def make() -> GraphFunction:
        def jacobian(*values: Any) -> list[Any]:
            return [jacfwd(lambda x: system.function(values[:-1], [x])[0])(values[-1])]

        specs = [*system.const_specs, Spec((system.packed_size,), _FLOAT)]
        found = GraphFunction.traced_alone(jacobian, specs, "the Jacobian of a system")
        return GraphFunction(found.body, len(specs) - 1)

    return _derived.get(("jacobian", system.function), make)


def _pullback(system: System, active: Sequence[int]) -> GraphFunction:
    """The cotangents of active captured values, one vector, for a packed vector and a cotangent."""

    def make() -> GraphFunction:
        size = system.packed_size

        def pullback(*values: Any) -> list[Any]:
            consts, packed = values[:-1], values[-1]
            bars = system.function.cotangents_of_captured(
                consts, [packed[:size]], [packed[size:]], active
            )
            return [raveled([bars[k] for k in active])]

        specs = [*system.const_specs, Spec((size + system.size,), _FLOAT)]
        found = GraphFunction.traced_alone(pullback, specs, "cotangents of a system")
        return GraphFunction(found.body, len(specs) - 1)

    return _derived.get(("pullback", system.function, tuple(active)), make)


class Compiled:
    """The compiled functions of a system for some captured values.

    Parameters
    ----------
    system : System
    consts : sequence of arrays
    """

    def __init__(self, system: System, consts: Sequence[Array]) -> None:
        self.system, self.consts = system, consts
        self._packed = np.empty(system.packed_size)
        self._value = bound(system.function.body, consts)
        self._jacobian = bound(_jacobian(system).body, consts)

    def _pack(self, t: float, *vectors: Array) -> Array:
        self._packed[0], start = t, 1
        for v in vectors:
            self._packed[start : start + len(v)] = v
            start += len(v)
        return self._packed

    def value(self, t: float, *vectors: Array) -> Array:
        """The value of the function."""
        found: Array = self._value(self._pack(t, *vectors))
        return found

    def jacobian(self, t: float, *vectors: Array) -> Array:
        """Its derivative with respect to the state and, beside it, the slope."""
        found: Array = self._jacobian(self._pack(t, *vectors))[:, 1:]
        return found

    def functions(self) -> Functions:
        """What the solvers call."""
        return Functions(self.value, self.jacobian)

    def pullback(self, active: Sequence[int]) -> Callable[..., Array]:
        """The cotangents of active captured values for time, vectors and a cotangent."""
        run = bound(_pullback(self.system, active).body, self.consts)
        return lambda t, *vectors: run(np.concatenate([[t], *vectors]))
