"""The part of a function that runs while it is traced: all but the callbacks that it passes.

A callback (`wg.debug.callback(record, x)`) runs when the program does, and reads what it needs
then.  What it reads is not searched and not guarded; which function it is, is guarded.  A function
whose source is not available is searched as a whole.

    TracedPart     what a function reads while it is traced, and the callbacks that it passes
    traced_part    that of a function
"""

from __future__ import annotations

import functools
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from wengert._engine.core.bytecode_names import Reads, reads_of
from wengert._engine.core.callback_arguments import NAMES, any_calls, parameter_called
from wengert._engine.core.lazy_import import LazyModule

from .sources import ABSENT, CaptureSource, Kind

if TYPE_CHECKING:
    from wengert._engine.frontend.rewriting import callback_arguments
else:  # for functions with callbacks
    callback_arguments = LazyModule("wengert._engine.frontend.rewriting.callback_arguments")


class TracedPart(NamedTuple):
    """What a function reads while it is traced.

    reads : Reads
        The names that it reads while it is traced.
    cells : list of CaptureSource
        The free variables among them.
    callbacks : list of (CaptureSource, set of str)
        The variables that it only passes as callbacks, each with the attributes that it passes.
    attributes : frozenset of str
        The attributes that are passed as callbacks.
    """

    reads: Reads
    cells: list[CaptureSource]
    callbacks: list[tuple[CaptureSource, set[str]]]
    attributes: frozenset[str]


def traced_part(fun: FunctionType) -> TracedPart:
    """The part of a function that runs while it is traced."""
    code, scope = fun.__code__, fun.__globals__
    reads = reads_of(code)
    sources = [
        CaptureSource(Kind.CELL, cell, None, name)
        for name, cell in zip(code.co_freevars, fun.__closure__ or (), strict=True)
    ]
    rest = None
    if (
        not reads.attributes.isdisjoint(NAMES)
        or any_calls([scope.get(name) for name in reads.globals])
        or any_calls([source.read() for source in sources])
    ):
        rest = _without_callbacks(fun, reads, sources)
    if rest is None:
        return TracedPart(reads, sources, [], frozenset())
    cells = {source.name: source for source in sources}
    remaining = reads_of(rest.code)
    passed = {name: {a for n, a in rest.variables if n == name and a} for name, _ in rest.variables}
    read = [cells.pop(name) for name in rest.code.co_freevars]
    only_passed = [source for name, source in cells.items() if name in passed]
    names = (passed.keys() & reads.globals) - remaining.globals
    only_passed += [CaptureSource(Kind.ITEM, scope, name, name) for name in sorted(names)]
    callbacks = [(source, passed[source.name]) for source in only_passed]
    return TracedPart(remaining, read, callbacks, rest.attributes)


def _without_callbacks(
    fun: FunctionType, reads: Reads, cells: list[CaptureSource]
) -> callback_arguments.WithoutCallbacks | None:
    """A function without the callbacks that it passes; None if that is not known."""
    code = fun.__code__
    values = {name: fun.__globals__.get(name, ABSENT) for name in reads.globals}
    values |= {cell.name: cell.read() for cell in cells}
    paths = callback_arguments.called_paths(code, code.co_filename)
    known = {p: _at(p, values) for p in paths if p.partition(".")[0] not in reads.written_globals}
    parameters = frozenset((p, name) for p, f in known.items() if (name := parameter_called(f)))
    if not parameters:
        return None
    partials = frozenset(p for p, f in known.items() if f is functools.partial)
    return callback_arguments.without_callbacks(code, code.co_filename, parameters, partials)


def _at(path: str, values: dict[str, Any]) -> Any:
    """The value of a dotted name whose first part is a variable; None if that is not a module."""
    root, *attributes = path.split(".")
    value = values.get(root)
    for attribute in attributes:
        if not isinstance(value, ModuleType):
            return None
        value = getattr(value, attribute, None)
    return value
