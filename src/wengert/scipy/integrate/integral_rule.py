"""Integrals by a routine of SciPy, and their derivatives.

By Leibniz's rule (NIST DLMF 1.5.22) the integral of ``f(x, theta)`` from `a` to `b` has the
derivative

    integral of (df/dtheta) dtheta  +  f(b) db - f(a) da

whose integral is computed by the same routine, with its own subintervals and error estimate.

    Integral     the rule
    integral_of  the integral of a function, as a node with this rule
    Found        its results
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.core.handle import Handle, describe, is_traced, value_of
from wengert._engine.core.node import Node
from wengert._engine.core.op import lookup
from wengert._engine.core.spec import Spec
from wengert._engine.implicit.functions import GraphFunction, raveled
from wengert._engine.implicit.solver_calls import SolverRule, solver_call
from wengert._engine.tensor.numpy_dispatch import as_tensor
from wengert.errors import NotDifferentiableError, OperandError, at, user_line

from .integral_operation import Integrated, QuadRoutine, Routine, integrate, scipy_integral
from .moving_jumps import MovingJumps

_NUMBER = Spec((), np.dtype(float))


class Found(NamedTuple):
    """An integral, the estimate of its error, SciPy's status and number of evaluations."""

    value: Any
    error: Any
    status: Any
    neval: Any
    more: tuple[Any, ...]


class Integral(SolverRule):
    """The integral of a function; operands are captured values, limits, and those of the weight.

    Parameters
    ----------
    name : str
    integrand : GraphFunction
    routine : Routine
    moving : sequence of bool
        Which of the limits, and parameters of the weight, may have a derivative.
    """

    def __init__(
        self, name: str, integrand: GraphFunction, routine: Routine, moving: Sequence[bool]
    ) -> None:
        self.name, self.integrand, self.routine = name, integrand, routine
        self.moving = tuple(moving)
        self.outcome: Integrated | None = None
        self._key = (name, integrand, routine, self.moving)
        self._derived: dict[Any, GraphFunction] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Integral) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def size_names(self) -> frozenset[str]:
        """The symbolic sizes in the integrand."""
        return self.integrand.body.size_names

    def at_sizes(self, sizes: Any) -> Integral:
        """The same integral with numbers for symbolic sizes."""
        return Integral(self.name, self.integrand.at_sizes(sizes), self.routine, self.moving)

    def solution(self, operands: Sequence[Any]) -> list[Any]:
        """The integral, the estimate of its error, status, and number of evaluations."""
        body, captured = self.integrand.body, self.integrand.captured
        if any(map(is_traced, operands)):
            return list(
                scipy_integral(*operands, integrand=body, captured=captured, routine=self.routine)
            )
        plain = [value_of(x) for x in operands]
        self.outcome = integrate(body, captured, self.routine, plain, compile=False)
        return list(self.outcome[:4])

    # ---- derivatives ---------------------------------------------------------------------------

    @functools.cached_property
    def _jumps(self) -> MovingJumps:
        return MovingJumps(self.name, self.integrand, self.routine)

    def refuse(self, wanted: Sequence[bool]) -> None:
        """Raise if the function may jump at a position that depends on a wanted captured value."""
        self._jumps.refuse(wanted)

    def bars(
        self, operands: Sequence[Any], outs: Sequence[Any], ts: Sequence[Any], saved: Any = None
    ) -> list[Any]:
        """The cotangents: one integral for each captured value."""
        captured, t = self.integrand.captured, ts[0]
        consts, ends = operands[:captured], operands[captured:]
        spec = self.integrand.body.outputs[0].spec
        # The derivative of a number is multiplied afterwards, so that it does not depend on `t`.
        single = not spec.shape and spec.dtype.kind == "f"
        bars: list[Any] = []
        for k, node in enumerate(self.integrand.body.inputs[:captured]):
            if type(node) is not Node or node.spec.dtype.kind not in "fc":
                bars.append(None)
                continue
            gradient = self._gradient(k, single)
            values = list(consts) if single else [*consts, t]
            count = gradient.body.outputs[0].spec.shape[0] if node.spec.shape else None
            slope = self._integral(gradient, values, ends, self._routine(count, node.spec))
            slope = lookup("reshape")(slope, shape=tuple(node.spec.shape))
            bars.append(slope * t if single else slope)
        for k, bar in self._jumps.bars(consts, ends, lambda jump: _inner(jump, t)).items():
            bars[k] = bars[k] + bar
        return [*bars, *self._end_bars(consts, ends, t)]

    def dots(self, operands: Sequence[Any], outs: Sequence[Any], dots: Sequence[Any]) -> list[Any]:
        """The tangents: one integral for all captured values."""
        captured = self.integrand.captured
        consts, ends = operands[:captured], operands[captured:]
        of_consts, of_ends = dots[:captured], dots[captured:]
        total: Any = None
        active = tuple(
            [k for k, d in enumerate(of_consts) if d is not None and _is_inexact(consts[k])]
        )
        if active:
            tangent = self._tangent(active)
            values = [*consts, *[of_consts[k] for k in active]]
            total = self._integral(tangent, values, ends, self._routine(None))
            for term in self._jumps.dot(consts, ends, of_consts):
                total = total + term
        for k, dot in enumerate(of_ends):
            if dot is not None and _is_inexact(ends[k]):
                change = self._slope_of_end(k, consts, ends)
                change = None if change is None else change * dot
                total = change if total is None else total if change is None else total + change
        return [total, *[None] * (len(outs) - 1)]

    def _routine(self, count: Any, spec: Spec = _NUMBER) -> Routine:
        routine = self.routine.for_derivative(count)
        if spec.dtype.kind == "c" and isinstance(routine, QuadRoutine):
            if routine.weight is not None:
                raise NotDifferentiableError(
                    f"{self.name} with weight={routine.weight!r}: the derivative with respect to a "
                    f"complex number is not supported. Include the weight in the function"
                    f"{at(user_line())}."
                )
            return routine.of_vectors()
        return routine

    def _integral(
        self, integrand: GraphFunction, consts: Sequence[Any], ends: Sequence[Any], routine: Routine
    ) -> Any:
        rule = Integral(f"the derivative of {self.name}", integrand, routine, self.moving)
        return solver_call(rule, [*consts, *ends])[0]

    def _derive(
        self, key: Any, function: Callable[..., Any], extra: Sequence[Spec]
    ) -> GraphFunction:
        """A function of captured values, further ones, and the variable, as a graph."""
        if key not in self._derived:
            specs = [n.spec for n in self.integrand.body.inputs]
            known, variable = specs[:-1], specs[-1]
            traced = GraphFunction.traced_alone(
                lambda *xs: [function(*xs)], [*known, *extra, variable], self.name
            )
            self._derived[key] = GraphFunction(traced.body, len(known) + len(extra))
        return self._derived[key]

    def _gradient(self, k: int, single: bool) -> GraphFunction:
        """The gradient of the integrand with respect to a captured value, as a vector."""
        integrand, captured = self.integrand, self.integrand.captured
        spec = integrand.body.outputs[0].spec

        def gradient(*xs: Any) -> Any:
            consts, x = xs[:captured], xs[-1]
            t = np.ones((), spec.dtype) if single else xs[captured]
            bar = integrand.cotangents_of_captured(consts, [x], [t], (k,))[k]
            return raveled([bar]) if integrand.body.inputs[k].spec.shape else bar

        return self._derive(("gradient", k), gradient, [] if single else [spec])

    def _tangent(self, active: tuple[int, ...]) -> GraphFunction:
        """The tangent of the integrand for tangents of captured values."""
        integrand, captured = self.integrand, self.integrand.captured

        def tangent(*xs: Any) -> Any:
            consts, x = xs[:captured], xs[-1]
            dots: list[Any] = [None] * captured
            for k, d in zip(active, xs[captured:-1], strict=True):
                dots[k] = d
            found = integrand.tangent_of_captured(consts, [x], dots)
            assert found is not None
            return found[0]

        extra = [integrand.body.inputs[k].spec for k in active]
        return self._derive(("tangent", active), tangent, extra)

    # ---- limits, and parameters of the weight ---------------------------------------------------

    def _end_bars(self, consts: Sequence[Any], ends: Sequence[Any], t: Any) -> list[Any]:
        bars: list[Any] = []
        for k, moves in enumerate(self.moving):
            slope = self._slope_of_end(k, consts, ends) if moves else None
            bars.append(None if slope is None else _inner(slope, t))
        return bars

    def _slope_of_end(self, k: int, consts: Sequence[Any], ends: Sequence[Any]) -> Any:
        """The derivative with respect to a limit or a parameter of the weight; None if zero."""
        if k >= 2:
            return self._slope_of_parameter(k, consts, ends)
        end = ends[k]
        sign = -1.0 if k == 0 else 1.0
        if not is_traced(end):
            here = value_of(end)
            if not np.isfinite(here):
                return None
            with np.errstate(divide="ignore", invalid="ignore"):
                value = self._weighted(consts, end, ends)
            if not is_traced(value) and not np.all(np.isfinite(value_of(value))):
                raise OperandError(
                    f"{self.name} with a tensor of value {here} as a limit: the function is not "
                    f"finite there, so there is no derivative. Detach the limit{at(user_line())}."
                )
            return sign * value
        finite = lookup("isfinite")(end)
        choose = lookup("where")
        value = self._weighted(consts, choose(finite, end, 0.0), ends)
        return choose(finite, sign * value, 0.0)

    def _weighted(self, consts: Sequence[Any], x: Any, ends: Sequence[Any]) -> Any:
        return self.routine.weighted(x, self.integrand(consts, [x])[0], ends)

    def _slope_of_parameter(self, k: int, consts: Sequence[Any], ends: Sequence[Any]) -> Any:
        """The derivative with respect to a parameter of the weight: another weight."""
        assert isinstance(self.routine, QuadRoutine)
        routine, factor = self.routine.for_parameter(k - 2)
        captured, integrand = self.integrand.captured, self.integrand

        def with_factor(*xs: Any) -> Any:
            value = integrand(xs[:captured], [xs[-1]])[0]
            return value if factor == 0.0 else factor * xs[-1] * value

        function = self._derive(("parameter", k), with_factor, [])
        return self._integral(function, consts, ends, routine)


def _inner(slope: Any, t: Any) -> Any:
    """The cotangent of a real number for the derivative of a result."""
    if describe(slope).dtype.kind == "c":
        return np.real(np.sum(np.conj(slope) * t))
    return np.sum(slope * t)


def _is_inexact(x: Any) -> bool:
    return bool(describe(x).dtype.kind in "fc")


def integral_of(
    name: str,
    f: Callable[[Any], Any],
    spec: Spec,
    ends: Sequence[Any],
    routine: Routine,
) -> Found:
    """The integral of a function, with its derivatives.

    Parameters
    ----------
    name : str
        For messages.
    f : callable
        The integrand; captured tensors are differentiated.
    spec : Spec
        Of its variable.
    ends : sequence
        The limits, and parameters of the weight.
    routine : Routine
    """
    if isinstance(routine, QuadRoutine):
        known = [x for x in ends[:2] if not isinstance(x, Handle)]
        routine = replace(routine, is_infinite=bool(np.any(np.isinf(known))))
    integrand, consts = GraphFunction.traced(lambda x: [f(x)], [spec], name)
    rule = Integral(name, integrand, routine, [isinstance(x, Handle) for x in ends])
    numbers = [x if isinstance(x, Handle) else np.float64(x) for x in ends]
    results = solver_call(rule, [*consts, *numbers])
    # A tensor also where nothing is recorded, so that an outer integral knows of it.
    value, error, status, neval = *map(as_tensor, results[:2]), *results[2:]
    return Found(value, error, status, neval, () if rule.outcome is None else rule.outcome.more)
