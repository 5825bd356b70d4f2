"""A solver of SciPy as one operation, whose parameters are the compiled functions that it calls.

    Outcome           what a solver returns
    SolverOptions     options of a solver, compared by content
    scipy_solver      the operation; it has no derivative (equations.py)
    compiled_body     the compiled function of a graph, for all inputs; the last ones are kept
    bound             a compiled function of the last input, for values of the others
    of_last           the same for any function of all inputs
    evaluated_last    the same for a graph that is not compiled, unless it is called very often

In a compiled function it is a host callback, which calls SciPy with compiled functions.

SciPy's functions take functions of Python.  The machine code is called by its address with memory
that is allocated once for a solve, so that a call costs a copy of the argument and of the result.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from wengert._engine.core.graph_classes import Body, evaluated
from wengert._engine.core.graph_copies import inline_graph
from wengert._engine.core.handle import wrap
from wengert._engine.core.node_properties import frozen
from wengert._engine.core.op_facts import BY_SCIPY
from wengert._engine.core.recording import tracing_body
from wengert._engine.core.spec import Spec
from wengert._engine.core.thread_state import lock
from wengert._engine.core.tracing import placeholder
from wengert._engine.implicit.kept_graphs import KeptGraphs
from wengert._engine.jit import jit
from wengert._engine.kinds.opaque import opaque
from wengert.errors import BackendError

_CALLS_BEFORE_COMPILATION = 5000  # code for a node takes 1 to 2 ms, an evaluation of it 0.5 us
_MAX_COMPILED_NODES = 1000
_Program = Callable[[Sequence[Any]], list[Any]]


class CompiledBody:
    """The compiled function of a graph.

    Parameters
    ----------
    body : Body
    """

    def __init__(self, body: Body) -> None:
        self._body = body
        self._program = jit(lambda *xs: inline_graph(body, xs), source=False)
        self._lock = lock()
        self._pointer: Any = None
        self._is_tried = False

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        """The results for values of all inputs."""
        found: list[Any] = self._program(*values)
        return found

    @property
    def pointer(self) -> Any:
        """The C function; None if it calls Python, or its lengths or types are not known."""
        with self._lock:
            if not self._is_tried:
                self._is_tried, self._pointer = True, self._made()
            return self._pointer

    def _made(self) -> Any:
        body = self._body
        specs = [n.spec for n in body.inputs]
        ends = [*specs, *[n.spec for n in body.outputs]]
        if body.size_names or len(body.outputs) != 1 or not all(map(_is_fixed, ends)):
            return None
        program = jit(lambda *xs: inline_graph(body, xs)[0], source=False, host_callbacks="forbid")
        try:
            return program.address(*[Spec(s.shape, s.dtype) for s in specs], signature="arrays")
        except BackendError:  # it calls Python, or its frame does not fit on the stack
            return None


def _is_fixed(spec: Any) -> bool:
    return type(spec) is Spec and spec.dtype.kind in "fiub" and spec.dtype.isnative


_compiled: KeptGraphs[CompiledBody] = KeptGraphs()


def compiled_body(body: Body) -> CompiledBody:
    """The compiled function of a body; the last ones are kept."""
    return _compiled.get(body, lambda: CompiledBody(body))


class _CallCount:
    """How often a graph was evaluated node by node."""

    calls = 0


_counts: KeptGraphs[_CallCount] = KeptGraphs()


def evaluated_last(body: Body, values: Sequence[Any]) -> Callable[[Any], Any]:
    """A function of the last input, evaluated node by node for the first calls of a graph.

    Code is generated when that takes less time than the calls that there were.
    """
    count = _counts.get(body, _CallCount)
    if count.calls >= _CALLS_BEFORE_COMPILATION and len(body.nodes) <= _MAX_COMPILED_NODES:
        return bound(body, values)
    run, given = evaluated(body), list(values)

    def function(y: Any) -> Any:
        count.calls += 1
        return run([*given, y])[0]

    return function


def _in_memory(value: Any, dtype: np.dtype[Any]) -> Any:
    """An array as machine code reads it: contiguous and aligned."""
    if type(value) is np.ndarray and value.dtype == dtype:
        flags = value.flags
        if flags.c_contiguous and flags.aligned:
            return value
    return np.require(np.asarray(value, dtype), dtype, ["C", "A"])


class _Bound:
    """Machine code with memory for its argument and result.

    Parameters
    ----------
    body : Body
    run : CompiledBody
    values : sequence of arrays
        Of all inputs except the last.
    """

    def __init__(self, body: Body, run: CompiledBody, values: Sequence[Any]) -> None:
        self._run, self._values = run, list(values)
        *specs, own = [n.spec for n in body.inputs]
        self._given = [_in_memory(v, s.dtype) for v, s in zip(values, specs, strict=True)]
        self._argument = np.empty(own.shape, own.dtype)
        self._result = np.empty(body.outputs[0].spec.shape, body.outputs[0].spec.dtype)
        arrays = [*self._given, self._argument]
        addresses = ctypes.c_void_p * len(arrays)
        self._inputs = addresses(*[x.ctypes.data for x in arrays])
        self._outputs = (ctypes.c_void_p * 1)(self._result.ctypes.data)
        self._function, self._thread = run.pointer.function, threading.get_ident()

    def __call__(self, y: Any) -> Any:
        """The result, in memory of its own."""
        if np.shape(y) != self._argument.shape or threading.get_ident() != self._thread:
            return self._run([*self._values, y])[0]
        self._argument[...] = y
        if self._function(self._inputs, self._outputs, None):
            return self._run([*self._values, y])[0]  # which raises the error
        return self._result.copy() if self._result.ndim else self._result[()]


def bound(body: Body, values: Sequence[Any]) -> Callable[[Any], Any]:
    """A compiled function of the last input of a body with one result; compiled when it is called.

    Parameters
    ----------
    body : Body
    values : sequence of arrays
        Of the other inputs.
    """
    made: list[Callable[[Any], Any]] = []

    def function(y: Any) -> Any:
        if not made:
            run = compiled_body(body)
            native = run.pointer is not None
            made.append(_Bound(body, run, values) if native else of_last(run, values))
        return made[0](y)

    return function


def of_last(run: _Program, values: Sequence[Any]) -> Callable[[Any], Any]:
    """A function of the last input, for values of the others."""
    given = list(values)
    return lambda y: run([*given, y])[0]


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
