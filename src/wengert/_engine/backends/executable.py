"""Executable: a graph compiled for a backend, called with arrays.

Checks arguments against the specs of the inputs (argument_conversion.py), solves the named sizes,
compiles once for each set of sizes, copies results that share memory (argument_conversion.py), and
writes the updates of variables, all or none (variable_updates.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.graph_copies import check_general
from wengert._engine.core.handle import owners_of
from wengert._engine.core.recording import switches
from wengert._engine.core.runtime_checks import current_checks
from wengert._engine.core.symbolic.constraints import solve
from wengert._engine.core.symbolic.dim import names_in
from wengert._engine.core.thread_state import lock
from wengert.errors import ShapeError, at, user_line

from .registry import Backend, Run
from .variable_updates import exclusively, locks_of

_PROGRAMS = 64  # limit of the sets of sizes, the oldest are evicted


class Executable:
    """A graph and a backend.

    Parameters
    ----------
    graph : Graph
    backend : Backend

    Raises
    ------
    BackendError
        The backend lacks an operation of the graph.

    Notes
    -----
    Thread-safe: each run reads a consistent state of the variables, updates of one run are written
    atomically, and none is lost.
    """

    __module__ = "wengert.backends"

    def __init__(self, graph: BaseGraph, backend: Backend) -> None:
        # A deferred graph was checked when its program was made.
        if not getattr(graph, "is_deferred", False):
            backend.check(graph)
            for node in graph.nodes:
                check_general(node)
        self.graph, self.backend = graph, backend
        variables = graph.variables
        self.owners = owners_of(variables)
        places = {v: k for k, v in enumerate(variables)}
        self._written = [self.owners[places[v]] for v in graph.updates]
        self._exclusive = locks_of(self._written)
        self._inputs = [(n.spec, n.name or f"input {i}") for i, n in enumerate(graph.inputs)]
        self._lengths = [d for s, _ in self._inputs for d in s.shape]
        self._symbolic = bool(names_in(self._lengths))
        self._requirements = graph.requirements
        self._programs: dict[Any, Run] = {}
        self._lock = lock()

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        """Values of the outputs, for values of the inputs in order.

        Raises
        ------
        ShapeError, DtypeError
            A value does not match its input; the message names it.
        """
        fed = self._fitted(values)
        run = self._program(fed)
        if not self._written:
            return self.backend.own(
                run([*fed, *self.backend.values_of(self.owners, self._written)])
            )
        return exclusively(self._exclusive, partial(self._updating, run, fed))

    def _fitted(self, values: Sequence[Any]) -> list[Any]:
        convert = self.backend.fitted
        return [convert(v, s, name) for v, (s, name) in zip(values, self._inputs, strict=True)]

    def _updating(self, run: Run, fed: Sequence[Any]) -> list[Any]:
        found = self.backend.own(run([*fed, *self.backend.values_of(self.owners, self._written)]))
        count = len(self.graph.outputs)
        self.backend.write(self._written, found[count:])
        return found[:count]

    def prepared(self, values: Sequence[Any]) -> tuple[list[Any], dict[str, int]]:
        """The arguments of a run for values of the inputs: values of all leaves, and sizes.

        Raises
        ------
        ShapeError, DtypeError
            As for a call.
        """
        fed = self._fitted(values)
        sizes = self._sizes(fed) if self._symbolic else {}
        return [*fed, *self.backend.values_of(self.owners, self._written)], sizes

    def __deepcopy__(self, memo: Any) -> Executable:
        return Executable(self.graph, self.backend)

    def _program(self, fed: Sequence[Any]) -> Run:
        """The compiled program for these shapes."""
        checks = current_checks() if switches.count else None
        if checks is not None:  # wengert.debug(nan=True)
            sizes = self._sizes(fed) if self._symbolic else {}
            return self.backend.checked(self.graph, sizes, checks)
        key: Any = None
        if self._symbolic:
            key = tuple([np.shape(value) for value in fed])
        run = self._programs.get(key)
        if run is None:
            run = self.backend.compile(self.graph, self._sizes(fed) if self._symbolic else {})
            with self._lock:
                while len(self._programs) >= _PROGRAMS:
                    self._programs.pop(next(iter(self._programs)))
                self._programs[key] = run
        return run

    def _sizes(self, fed: Sequence[Any]) -> dict[str, int]:
        pairs = [
            (length, number, f"axis {k} of {name}")
            for value, (spec, name) in zip(fed, self._inputs, strict=True)
            for k, (length, number) in enumerate(zip(spec.shape, np.shape(value), strict=True))
        ]
        sizes = solve(pairs)
        for requirement in self._requirements:
            if not requirement.holds(sizes):
                known = ", ".join(f"{k} = {v}" for k, v in sorted(sizes.items()))
                raise ShapeError(
                    f"the graph is not valid for the sizes {known}: {requirement.reason}. Trace "
                    f"again with these sizes as numbers{at(user_line())}."
                )
        return sizes
