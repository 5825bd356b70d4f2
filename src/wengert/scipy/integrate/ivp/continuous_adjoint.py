r"""The continuous adjoint: gradients from the adjoint equation, integrated backward.

For cotangents of the states at some times, lambda' = -f_y^T lambda from the end to the start, with
a jump at each of the times; the cotangents of parameters are integrals of f_p^T lambda.  The
solution that both need is the interpolant of the forward steps, not a solution backward, which
would be unstable for stiff problems [2].

    ADJOINTS     names: the control of errors includes the integrals, or not
    checked_adjoint  the kind of derivative of a problem
    continuous   the results of a program, with this derivative

References
----------
.. [1] L. S. Pontryagin et al., The Mathematical Theory of Optimal Processes (1962).
.. [2] S. Kim, W. Ji, S. Deng, Y. Ma, C. Rackauckas, "Stiff neural ordinary differential equations",
   Chaos 31, 093122 (2021).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.autodiff.jvp_vjp import vjp
from wengert._engine.control_flow import custom_jvp, custom_vjp, scan
from wengert._engine.core import pytree
from wengert._engine.core.handle import describe
from wengert._engine.core.op import lookup
from wengert.errors import ArgumentError, at, user_line

from .loop import Settings, Status, integrate
from .method import IvpProblem, Method, Tolerance
from .step_control import StepControl

ADJOINTS = ("discrete", "continuous", "quadrature")
Rhs = Callable[[Sequence[Any], Any, Any], Any]


def checked_adjoint(
    name: str, values: Sequence[Any], save: str, has: dict[str, bool], what: str
) -> str:
    """The kind of derivative, which must be possible.

    values : the state, and what the right-hand side captures.
    has : whether the problem has events, a mass matrix, and times of jumps, by argument.

    Raises
    ------
    ArgumentError
        There is no such kind, or it is not for this problem.
    """
    if name not in ADJOINTS:
        raise ArgumentError(
            f"{what}: there is no adjoint={name!r}. Choose one of {', '.join(ADJOINTS)}"
            f"{at(user_line())}."
        )
    why = ""
    if name != "discrete":
        given = [argument for argument, is_given in has.items() if is_given]
        if given:
            why = f"takes no {given[0]}"
        elif save not in ("end", "times"):
            why = "needs the times of the result, saveat"
        elif any([describe(x).dtype.kind == "c" for x in values]):
            why = "needs a real state and real parameters"
    if why:
        raise ArgumentError(
            f"{what}: adjoint={name!r} {why}. Use adjoint='discrete'{at(user_line())}."
        )
    return name


class Record(NamedTuple):
    """The forward steps, in buffers: `StepBuffers`, and how many are in use.

    ts, ys : the ends of the steps, and the states there.
    parts : the sizes of the steps, the states at their ends, and what the interpolant takes.
    """

    count: Any
    ts: Any
    ys: Any
    parts: tuple[Any, ...]

    def increasing(self) -> tuple[Any, Any]:
        """The sign of the direction, and the ends of the steps times it, increasing to infinity."""
        steps = self.count - 1
        sign = np.where(self.ts[np.maximum(steps, 0)] < self.ts[0], -1.0, 1.0)
        in_use = np.arange(self.ts.shape[0]) <= steps
        return sign, np.where(in_use, sign * self.ts, np.inf)

    def at(self, method: Method, t: Any, increasing: tuple[Any, Any]) -> Any:
        """The state at a time; the arrays are the result of `increasing`."""
        steps = self.count - 1
        sign, ends = increasing
        index = np.searchsorted(ends, sign * t, side="left") - 1
        index = np.minimum(np.maximum(index, 0), np.maximum(steps - 1, 0))
        size, y_new, *prepared = [x[index] for x in self.parts]
        theta = (t - self.ts[index]) / np.where(size == 0, 1.0, size)
        return method.interpolate(theta, size, self.ys[index], y_new, prepared)


class AdjointProblem(NamedTuple):
    """What the backward integration takes.

    rhs : ``rhs(consts, t, y)``, the right-hand side with its captured values.
    with_integrals : whether the control of errors includes the integrals.
    """

    rhs: Rhs
    method: Method
    control: StepControl
    rtol: Any
    atol: Any
    max_steps: Any
    with_integrals: bool


def continuous(
    outcome: Callable[..., Any],
    recorded: Callable[..., Any],
    problem: Callable[[Any], AdjointProblem],
    values: Any,
) -> Any:
    """The results for `values`, whose derivative is that of the adjoint equation.

    Parameters
    ----------
    outcome : callable
        The results, an `IvpOutcome`, of `IvpValues`.
    recorded : callable
        The same, and a `Record`.
    problem : callable
        What the backward integration takes, of `IvpValues`.
    values : IvpValues
    """
    all_leaves, structure = pytree.flatten(values)
    given = [x for x in all_leaves if x is not None]
    found: list[Any] = []

    def unflatten(leaves: Sequence[Any]) -> Any:
        rest = iter(leaves)
        full = [None if x is None else next(rest) for x in all_leaves]
        return pytree.unflatten(structure, full)

    def flat(result: Any) -> tuple[Any, ...]:
        outputs, shape = pytree.flatten(result)
        found[:] = [shape]
        return tuple(outputs)

    def values_alone(*leaves: Any) -> Any:
        return flat(outcome(unflatten(leaves)))

    # The name is that of errors in forward mode.
    values_alone.__name__ = "a solution with a continuous adjoint, which has reverse mode only,"
    run = custom_vjp(values_alone)

    def forward(*leaves: Any) -> Any:
        result, record = recorded(unflatten(leaves))
        return flat(result), (leaves, tuple(record), result.y, result.saved, result.status)

    def backward(residuals: Any, cotangents: Any) -> Any:
        leaves, record, y, saved, status, cotangents = _once((*residuals, tuple(cotangents)))
        values = unflatten(leaves)
        ts = pytree.unflatten(found[0], list(cotangents))
        # If there are more steps than are kept, no gradient is known.
        ts = ts._replace(y=np.where(status < Status.FINISHED, np.nan, ts.y))
        cotangent = _cotangents(problem(values), values, Record(*record), y, saved, ts)
        return tuple([_like(t, x) for t, x in zip(cotangent, leaves, strict=True)])

    run.defvjp(forward, backward)
    outputs = list(run(*given))
    return pytree.unflatten(found[0], outputs)


def _once(operands: Any) -> Any:
    """Containers of arrays, of which no derivative can be taken."""
    leaves, structure = pytree.flatten(operands)
    return pytree.unflatten(structure, [x if x is None else _undifferentiable(x) for x in leaves])


@custom_jvp
def _undifferentiable(x: Any) -> Any:
    return x * 1


@_undifferentiable.defjvp
def _refuse(primals: Any, tangents: Any) -> Any:
    raise ArgumentError(
        "solve: a continuous adjoint has first derivatives in reverse mode only. Use "
        f"adjoint='discrete' for the others{at(user_line())}."
    )


def _like(cotangent: Any, value: Any) -> Any:
    """A cotangent for a leaf: zero if there is none."""
    return np.zeros(np.shape(value)) + 0.0 * value if cotangent is None else cotangent


def _cotangents(
    problem: AdjointProblem, values: Any, record: Record, y: Any, saved: Any, ts: Any
) -> list[Any]:
    """The cotangents of the leaves of `values`, None for those that have none."""
    consts = list(values.captured[0])
    active = [k for k, c in enumerate(consts) if describe(c).dtype.kind == "f"]
    backward = _Backward(problem, consts, active, record, y)
    t0_bar, t1_bar, times_bar = 0.0, ts.t, None
    t1_bar = t1_bar + np.sum(ts.y * problem.rhs(consts, values.t1, y))
    z, now = backward.start(ts.y), values.t1
    if values.times is not None:
        _, states = saved

        def piece(carry: Any, row: Any) -> tuple[Any, Any]:
            z, now = carry
            time, state, bar = row
            z = backward.to(z, now, time)
            return (backward.plus(z, bar), time), np.sum(bar * problem.rhs(consts, time, state))

        rows = (values.times[::-1], states[::-1], ts.saved[1][::-1])
        (z, now), reversed_bars = scan(piece, (z, now), rows)
        times_bar = reversed_bars[::-1]
    z = backward.to(z, now, values.t0)
    y0_bar, consts_bar = backward.results(z)
    t0_bar = -np.sum(y0_bar * problem.rhs(consts, values.t0, values.y0))
    found = values._replace(
        captured=(tuple(consts_bar), *[tuple([None] * len(c)) for c in values.captured[1:]]),
        t0=t0_bar,
        t1=t1_bar,
        y0=y0_bar,
        rtol=None,
        atol=None,
        max_step=None,
        max_steps=None,
        first_step=None,
        mass=None,
        times=times_bar,
    )
    return _leaves_like(found, values)


def _leaves_like(found: Any, values: Any) -> list[Any]:
    """The leaves of `found` where `values` has leaves."""
    result = []
    for field, given in zip(found, values, strict=True):
        if isinstance(given, tuple):
            result.extend([x for part in field for x in part])
        elif given is not None:
            result.append(field)
    return result


class _Backward:
    """The integration backward of the adjoint and the integrals, one vector."""

    def __init__(
        self,
        problem: AdjointProblem,
        consts: Sequence[Any],
        active: Sequence[int],
        record: Record,
        y: Any,
    ) -> None:
        self.problem, self.consts, self.active = problem, consts, active
        self.record, self.n = record, int(y.shape[0])
        self.increasing = record.increasing()
        self.shapes = [tuple(describe(consts[k]).shape) for k in active]
        self.sizes = [int(np.prod(shape)) for shape in self.shapes]

    def start(self, y_bar: Any) -> Any:
        """The vector for a cotangent of the last state."""
        return lookup("concatenate")(y_bar * 1.0, np.zeros(sum(self.sizes)), axis=0)

    def plus(self, z: Any, bar: Any) -> Any:
        """The vector after a jump of the adjoint."""
        return z + self.start(bar)

    def to(self, z: Any, start: Any, end: Any) -> Any:
        """The vector at an earlier time; NaN if the integration fails."""
        p = self.problem
        settings = Settings(self._tolerance(), p.control, max_steps=p.max_steps)
        last = integrate(IvpProblem(self._derivative), p.method, settings, start, end, z)
        return np.where(last.status < Status.FINISHED, np.nan, last.y)

    def _tolerance(self) -> Tolerance:
        """For integrals outside of the control of errors: none, and the norm without them."""
        p, total = self.problem, self.n + sum(self.sizes)
        many = np.ones(total) * (np.min(p.atol) if np.ndim(p.atol) else p.atol)
        if p.with_integrals:
            return Tolerance(np.min(p.rtol), many)
        share = np.sqrt(self.n / total)
        is_adjoint = np.arange(total) < self.n
        return Tolerance(share * np.min(p.rtol), np.where(is_adjoint, share * many, np.inf))

    def _derivative(self, t: Any, z: Any) -> Any:
        y = self.record.at(self.problem.method, t, self.increasing)

        def rhs(y: Any, *varied: Any) -> Any:
            consts = list(self.consts)
            for k, x in zip(self.active, varied, strict=True):
                consts[k] = x
            return self.problem.rhs(consts, t, y)

        _, pull = vjp(rhs, y, *[self.consts[k] for k in self.active])
        bars = pull(z[: self.n])
        flat = [lookup("reshape")(x, shape=(-1,)) for x in bars]
        return -lookup("concatenate")(*flat, axis=0)

    def results(self, z: Any) -> tuple[Any, list[Any]]:
        """The cotangents of the initial state, and of the captured values."""
        bars: list[Any] = [None] * len(self.consts)
        start = self.n
        for k, shape, size in zip(self.active, self.shapes, self.sizes, strict=True):
            bars[k] = lookup("reshape")(z[start : start + size], shape=shape)
            start += size
        return z[: self.n], bars
