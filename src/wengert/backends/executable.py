"""Executable: a graph ready to be called with arrays, whatever the backend.

Checks what is fed against the specs of the inputs, solves the named sizes, compiles once for each
set of sizes, puts results into the graph's structure and updates the variables, all or none.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core import tree
from ..core.dims import names_in
from ..core.graph import Graph
from ..core.handle import Handle, rebind
from ..core.node import Node, constant
from ..core.rebuild import own_variables
from ..core.recording import no_grad
from ..core.sizes import solve
from ..core.spec import Spec, spec_of
from ..errors import DtypeError, ShapeError, at, user_line
from .base import Backend, Run

_PROGRAMS = 64  # compiled for that many sets of sizes, the oldest forgotten first


class Executable:
    """A graph and a backend.

    Parameters
    ----------
    graph : Graph
    backend : Backend

    Notes
    -----
    Safe to call from several threads; updates of one call are written together.
    """

    def __init__(self, graph: Graph, backend: Backend) -> None:
        backend.check(graph)
        self.graph, self.backend = graph, backend
        self._owners = own_variables(graph.variables)
        self._written = [self._owners[graph.variables.index(v)] for v in graph.updates]
        self._names = [n.name or f"input {i}" for i, n in enumerate(graph.inputs)]
        self._specs: list[Spec] = [n.spec for n in graph.inputs]
        self._symbolic = bool(names_in([d for s in self._specs for d in s.shape]))
        self._requirements = graph.requirements
        self._programs: dict[tuple[tuple[str, int], ...], Run] = {}
        self._lock = threading.Lock()

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        """Values of the outputs, for values of the inputs in order."""
        fed = [
            self._fitted(v, s, name)
            for v, s, name in zip(values, self._specs, self._names, strict=True)
        ]
        sizes = self._sizes(fed) if self._symbolic else {}
        run = self._program(sizes)
        found = run([*fed, *[owner.node.value for owner in self._owners]])
        count = len(self.graph.outputs)
        self._update(found[count:])
        return found[:count]

    def _fitted(self, value: Any, spec: Spec, name: str) -> Any:
        if isinstance(value, Handle):
            value = value.node.value
        if type(value) is np.ndarray and value.dtype == spec.dtype and value.shape == spec.shape:
            return value
        if spec.weak and isinstance(value, int | float | complex | np.generic):
            return value.item() if isinstance(value, np.generic) else value
        try:
            array = np.asarray(value)
        except ValueError as error:
            raise ShapeError(f"{name}: {error}{at(user_line())}.") from error
        if array.ndim != len(spec.shape) or not _may_be(array.shape, spec.shape):
            raise ShapeError(
                f"{name} has shape {array.shape}, but the graph was built for {spec}. Trace again "
                f"for this shape, or name the lengths that vary{at(user_line())}."
            )
        if array.dtype != spec.dtype:
            given = spec_of(value)
            weak = not isinstance(value, np.ndarray | np.generic) or (given and given.weak)
            fits = np.can_cast(array.dtype, spec.dtype, "same_kind" if weak else "safe")
            if not fits:
                raise DtypeError(
                    f"{name} is {array.dtype}, but the graph was built for {spec}. Cast it, "
                    f"x.astype({str(spec.dtype)!r}), or trace again{at(user_line())}."
                )
            array = array.astype(spec.dtype)
        return array if array.ndim else array[()]

    def _sizes(self, fed: Sequence[Any]) -> dict[str, int]:
        pairs = [
            (length, number, f"axis {k} of {name}")
            for value, spec, name in zip(fed, self._specs, self._names, strict=True)
            for k, (length, number) in enumerate(zip(spec.shape, np.shape(value), strict=True))
        ]
        sizes = solve(pairs)
        for requirement in self._requirements:
            if not requirement.holds(sizes):
                known = ", ".join(f"{k} = {v}" for k, v in sorted(sizes.items()))
                raise ShapeError(
                    f"the graph does not serve the sizes {known}: {requirement.reason}. Trace "
                    f"again with these sizes as numbers{at(user_line())}."
                )
        return sizes

    def _program(self, sizes: dict[str, int]) -> Run:
        key = tuple(sorted(sizes.items()))
        run = self._programs.get(key)
        if run is None:
            run = self.backend.compile(self.graph, sizes)
            with self._lock:
                while len(self._programs) >= _PROGRAMS:
                    self._programs.pop(next(iter(self._programs)))
                self._programs[key] = run
        return run

    def _update(self, values: Sequence[Any]) -> None:
        if not values:
            return
        with self._lock, no_grad():
            for owner, value in zip(self._written, values, strict=True):
                rebind(owner, constant(np.array(value, dtype=owner.node.spec.dtype)))


def _may_be(shape: Sequence[int], wanted: Sequence[Any]) -> bool:
    return all(not isinstance(n, int) or n == m for m, n in zip(shape, wanted, strict=True))


def restored(graph: Graph, values: Sequence[Any]) -> Any:
    """Values of the outputs in the graph's structure."""
    structure = graph.structure[1]
    made = tree.unflatten(structure, list(values))
    single = isinstance(made, tuple) and len(made) == 1
    return made[0] if single else made


def node_of(x: Any) -> Node:
    """The node behind a tensor."""
    return x.node if isinstance(x, Handle) else x
