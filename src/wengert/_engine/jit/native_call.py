"""Native calls: runs of a graph by the native entry point of a backend that makes one.

The entry point takes values of inputs and variables, and returns outputs and updates.  Arguments
that it does not support (a list instead of an array, a dtype that must be cast) and failed runs are
passed to the `Executable`, which checks the arguments and raises the error.

    entry_of          the native entry point of a graph
    writing_entry_of  that of a graph whose last outputs are new values of inputs
    run_of            a function that runs a graph, and writes updates
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.backends import Executable
from wengert._engine.backends.variable_updates import (
    Lending,
    VariableWriter,
    exclusively,
    locks_of,
    values_of,
)
from wengert._engine.core.deferred_graph import result_specs
from wengert._engine.core.policy import gate

Run = Callable[[Sequence[Any]], list[Any]]
_MISSED = object()


def entry_of(
    executable: Executable,
    single: bool,
    otherwise: Callable[..., Any],
    nested: bool = False,
    overwrites: bool = False,
    fed: Sequence[Any] = (),
) -> Callable[..., Any] | None:
    """The native entry point of a graph, or None if its backend makes none.

    Parameters
    ----------
    executable : Executable
    single : bool
        Whether it returns its only output instead of a tuple.
    otherwise : callable
        Called with arguments that it does not support.
    nested : bool
        Whether it returns nested tuples, as the graph does.
    overwrites : bool
        Whether it may write updates into the arrays that are the values of variables.
    fed : sequence
        Examples of the arguments, for their memory layouts.
    """
    make = getattr(executable.backend, "entry", None)
    if make is None:
        return None
    options = {"single": single, "otherwise": otherwise, "gate": gate.cell, "nested": nested}
    if overwrites:
        options["overwrites"] = True
    if fed:
        options["fed"] = fed
    return make(executable.graph, **options)  # type: ignore[no-any-return]


class Written(NamedTuple):
    """The arguments that a function modifies in place.

    positions : their positions in the inputs; their new values are the last outputs of the graph.
    results : the number of outputs before these.
    is_tuple : whether the results are returned as a tuple; otherwise the only one, or None.
    """

    positions: tuple[int, ...]
    results: int
    is_tuple: bool


def writing_entry_of(
    executable: Executable, otherwise: Callable[..., Any], written: Written, fed: Sequence[Any]
) -> Callable[..., Any] | None:
    """The native entry point of a graph whose last outputs are new values of some of its inputs.

    Returns
    -------
    callable or None
        None if the backend makes no entry points, or a modified input is not a C-contiguous array.
    """
    graph, make = executable.graph, getattr(executable.backend, "writing_entry", None)
    if make is None:
        return None
    new_specs = result_specs(graph)[written.results :]
    for k, new in zip(written.positions, new_specs, strict=True):
        old = graph.inputs[k].spec
        if not old.shape or (old.shape, old.dtype) != (new.shape, new.dtype):
            return None
        if fed and not (type(fed[k]) is np.ndarray and fed[k].flags.carray):
            return None
    target = entry_of(executable, False, _missed, fed=fed)
    if target is None:
        return None
    itemsizes = [n.spec.dtype.itemsize if n.spec.shape else 0 for n in graph.inputs]
    entry: Callable[..., Any] = make(target, otherwise, _MISSED, itemsizes, *written)
    return entry


def run_of(executable: Executable, single: bool, overwrites: bool = False) -> Run:
    """A function from the values of inputs to a list of outputs, which also writes updates.

    Parameters
    ----------
    executable : Executable
    single : bool
        Whether the graph has one output and no updates.
    overwrites : bool
        Whether updates may be written in place, because the old values are not needed.
    """
    graph, owners = executable.graph, executable.owners
    overwritten: Any = getattr(executable.backend, "overwritten", None)
    overwrites = overwrites and overwritten is not None and bool(graph.updates)
    entry = entry_of(executable, single, _missed, overwrites=overwrites)
    if entry is None:
        return executable
    positions = {v: k for k, v in enumerate(graph.variables)}
    written = [owners[positions[v]] for v in graph.updates]
    locks, write, count = locks_of(written), VariableWriter(written), len(result_specs(graph))

    def run(fed: Sequence[Any]) -> list[Any]:
        out = entry(*fed, *values_of(owners))
        if out is _MISSED:
            return executable(fed)
        if written:
            write(out[count:])
            return list(out[:count])
        return [out] if single else list(out)

    overwritable = overwritten(graph) if overwrites else ()
    lending = Lending(owners, overwritable, lambda out: write(out[count:]))

    def run_overwriting(fed: Sequence[Any]) -> list[Any]:
        out = lending.run(entry, fed, _MISSED)
        return executable(fed) if out is _MISSED else list(out[:count])

    run_once = run_overwriting if overwritable else run

    def locked(fed: Sequence[Any]) -> list[Any]:
        return exclusively(locks, functools.partial(run_once, fed))

    return locked if written else run


def _missed(*_: Any) -> Any:
    return _MISSED
