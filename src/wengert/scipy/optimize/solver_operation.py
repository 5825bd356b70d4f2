"""A solver of SciPy as one operation, whose parameters are the functions that it calls.

In a compiled function it is a host callback, which calls SciPy with compiled functions.

    Outcome        what a solver returns
    SolverOptions  options of a solver, compared by content
    scipy_solver   the operation; it has no derivative (equations.py)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from wengert._engine.core.handle import wrap
from wengert._engine.core.op_facts import BY_SCIPY
from wengert._engine.core.recording import tracing_body
from wengert._engine.core.spec import Spec
from wengert._engine.core.static_params import frozen
from wengert._engine.core.subgraph import Body
from wengert._engine.core.tracing import placeholder
from wengert._engine.kinds.opaque import opaque

from .compiled_calls import bound, evaluated_last

_NUMBER = Spec((), np.dtype(float))
Function = Callable[[Any], Any]


class Outcome(NamedTuple):
    """The result of a solver.

    solution : the solution, of the shape of the unknowns.
    success : whether it has converged.
    status, nfev, nit : SciPy's status, and the numbers of calls and iterations; -1 if not known.
    result : SciPy's result, or None.
    """

    solution: Any
    success: Any
    status: Any = -1
    nfev: Any = -1
    nit: Any = -1
    result: Any = None


class SolverOptions:
    """Options of a solver, compared by content."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self._key = frozen(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SolverOptions) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


class Solver(Protocol):
    """A solver with its options; hashable.

    A method `without_result` does the same without SciPy's result, for compiled functions.
    """

    def __call__(self, functions: Sequence[Function], starts: Sequence[Any]) -> Outcome:
        """Solve: `functions` take the unknowns; `starts` are initial guesses or brackets."""


def run_solver(
    solver: Solver,
    functions: Sequence[Body],
    captured: int,
    operands: Sequence[Any],
    compiled: bool = False,
) -> Outcome:
    """The outcome for plain operands: captured values, then the starts."""
    consts, starts = list(operands[:captured]), list(operands[captured:])
    make = bound if compiled else evaluated_last
    run = getattr(solver, "without_result", solver) if compiled else solver
    outcome: Outcome = run([make(body, consts) for body in functions], starts)
    return outcome


class _Bisections:
    """Sixty bisections of the interval between the starts, for the examples of the operation."""

    def __call__(self, functions: Sequence[Function], starts: Sequence[Any]) -> Outcome:
        """Halve the interval, and keep the half with a change of signs."""
        low, high = starts
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (low, middle) if functions[0](middle) > 0 else (middle, high)
        return Outcome(np.float64((low + high) / 2), True, 0, 60, 60)

    def __eq__(self, other: object) -> bool:
        return type(other) is _Bisections

    def __hash__(self) -> int:
        return hash(_Bisections)


def _cube_root(c: Any, low: Any, high: Any, **params: Any) -> Any:
    """The outcome of the examples: the root of ``y**3 - c`` (the oracle of the operation)."""
    count = np.int64(60)
    return np.cbrt(c), np.bool_(True), np.int64(0), count, count


@opaque(name="scipy_solver", trusted=True, oracle=_cube_root)
def scipy_solver(*operands: Any, functions: Any, captured: int, solver: Any) -> Any:
    """The solution of a solver, whether it has converged, its status, and counts."""
    outcome = run_solver(solver, functions, captured, operands, compiled=True)
    return (
        np.asarray(outcome.solution),
        np.bool_(outcome.success),
        np.int64(outcome.status),
        np.int64(outcome.nfev),
        np.int64(outcome.nit),
    )


scipy_solver.host_callback = BY_SCIPY


@scipy_solver.spec
def _(*operands: Spec, functions: Any, captured: int, solver: Any) -> Any:
    unknowns = functions[0].inputs[captured].spec
    count = Spec((), np.dtype(np.int64))
    return Spec(unknowns.shape, unknowns.dtype), Spec((), np.dtype(bool)), count, count, count


@scipy_solver.examples
def _(rng: np.random.Generator) -> Any:
    with tracing_body():
        c, y = placeholder(_NUMBER), placeholder(_NUMBER)
        value = wrap(y) * wrap(y) * wrap(y) - wrap(c)
    body = Body(value.node, inputs=[c, y], name="y**3 - c")
    params = {"functions": (body,), "captured": 1, "solver": _Bisections()}
    yield (np.float64(rng.uniform(1.0, 9.0)), np.float64(0.0), np.float64(3.0)), params
