"""Compiled functions of one argument, as SciPy's solvers call them.

SciPy's functions take functions of Python.  The machine code is called by its address with memory
that is allocated once for a solve, so that a call costs a copy of the argument and of the result.

    compiled_body   the compiled function of a graph, for all inputs; the last ones are kept
    bound           a compiled function of the last input, for values of the others
    of_last         the same for any function of all inputs
    evaluated_last  the same for a graph that is not compiled, unless it is called very often
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert._engine.core.fork_safe_locks import lock
from wengert._engine.core.replay import inline_graph
from wengert._engine.core.spec import Spec
from wengert._engine.core.subgraph import Body, evaluated
from wengert._engine.implicit.kept_graphs import KeptGraphs
from wengert._engine.jit import jit
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
