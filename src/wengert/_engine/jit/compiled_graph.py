"""The graph that a program is compiled from: traced without random draws, simplified, or refused.

    simplified             the graph that derivatives are derived from, and the graph to run
    check_host_callbacks   raises for operations that would be called back in Python
    refuse_generators      raises for generators, coroutines and classes
    traced_without_draws   the result of tracing, during which no generator may change its state

A program is found by a fingerprint of the traced graph, which is made without rewriting it. If it
is on disk, the graphs are deferred.

A graph is built once and run often.  Random numbers drawn by NumPy or Python while it is built
would silently be the same in each run.  So the states of the generators that a function can reach
by name are compared before and after tracing.

Other threads may draw numbers meanwhile, as event loops do.  If the generator of Python's module
has changed and there are other threads, the function is traced again, while the calls of its thread
are observed.
"""

from __future__ import annotations

import functools
import inspect
import random
import sys
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from wengert._engine.autodiff.arguments import name_of
from wengert._engine.backends import Backend
from wengert._engine.core.graph_classes import DeferredGraph, completed
from wengert._engine.core.implicit_conversions import gate
from wengert._engine.core.node_properties import sizes_of
from wengert._engine.core.recording import switches
from wengert._engine.core.spec import Spec
from wengert._engine.graphs import Graph
from wengert._engine.rewrite import without_calls
from wengert.errors import ArgumentError, BackendError, TraceError, at, user_line

from .compiled_operation import extras_of, with_inlined_calls

if TYPE_CHECKING:
    from wengert._engine.core.graph import BaseGraph
    from wengert._engine.core.node import Node


def simplified(traced: Graph, backend: Backend, simplify: bool) -> tuple[BaseGraph, BaseGraph]:
    """The simplified graph, and the same with custom calls inlined, for a backend to run.

    If the backend has a program for them on disk, both are deferred.  If not `simplify`, custom
    calls are inlined only.
    """
    if not simplify:
        return traced, with_inlined_calls(traced, False)
    known: Any = backend if hasattr(backend, "key_before_simplification") else None
    # In a block that changes how operations are recorded, the result may depend on it.
    key = None
    if known is not None and not switches.count and not gate.count:
        key = known.key_before_simplification(traced)
    if key is not None and known.is_on_disk(key):
        later = DeferredGraph(traced, traced.simplify)
        return later, DeferredGraph(traced, lambda: with_inlined_calls(completed(later), True), key)
    inlined = without_calls(traced)
    if inlined is not traced and _depends_on_inputs_only(traced):
        # The graph with its calls is needed by derivatives only.
        executed = inlined.simplify()
        executed.cache_key = key
        return DeferredGraph(traced, traced.simplify), executed
    graph = traced.simplify()
    executed = with_inlined_calls(graph, True)
    executed.cache_key = key
    return graph, executed


def _depends_on_inputs_only(graph: Graph) -> bool:
    """Whether a graph has no captured leaves and no updates, and all its sizes are numbers."""
    if extras_of(graph) or graph.updates or graph.requirements:
        return False
    specs = [s for n in (*graph.inputs, *graph.outputs) for s in _specs(n)]
    return not sizes_of(tuple([s.shape for s in specs]))


def _specs(node: Node) -> tuple[Spec, ...]:
    return node.spec if isinstance(node.spec, tuple) else (node.spec,)


def check_host_callbacks(backend: Backend, graph: Graph) -> None:
    """Refuse a program that would call back into Python."""
    make = getattr(backend, "program", None)
    if make is None:
        return
    # A condition that raises is evaluated in native code, and calls Python only to raise.
    nodes = [n for n in make(graph).host_callbacks if not n.op.effects.only_if_true]
    if nodes:
        names = ", ".join(sorted({f"{n.op.name}{at(n.where)}" for n in nodes}))
        raise BackendError(
            f"{graph.name} would call back into Python for {names}, which "
            "host_callbacks='forbid' does not allow. Use other operations, or allow it, "
            "host_callbacks='allow'."
        )


def refuse_generators(fun: Any) -> None:
    """Refuse callables that do not return arrays when they are called."""
    for is_kind, what in (
        (inspect.isgeneratorfunction, "a generator"),
        (inspect.iscoroutinefunction, "a coroutine"),
        (inspect.isasyncgenfunction, "an asynchronous generator"),
        (inspect.isclass, "a class"),
    ):
        if is_kind(fun):
            raise ArgumentError(
                f"jit of {name_of(fun)}, which is {what}. Compile a function that returns arrays, "
                f"and call it from there{at(user_line())}."
            )


R = TypeVar("R")
_PYTHON: Any = random._inst  # the generator of Python's module


def traced_without_draws(fun: Callable[..., Any], leaves: list[Any], trace: Callable[[], R]) -> R:
    """The result of `trace`, if no generator of NumPy or Python was drawn from.

    Parameters
    ----------
    fun : callable
        The generators in its closure and globals, and in the attributes of these, are checked.
    leaves : list
        Leaves of its arguments, which are checked too.
    trace : callable
        Traces the function; it may be called twice.

    Raises
    ------
    TraceError
        A number was drawn.
    """
    found = [g for g in _generators(fun, leaves) if g is not _PYTHON]
    states = {id(g): (g, _state(g)) for g in found}
    legacy, python = _legacy(), random.getstate()
    result = trace()
    changed = [name for g, before in states.values() if (name := _name_if_changed(g, before))]
    if not _is_untouched() if legacy is None else _legacy() != legacy:
        changed.append("numpy.random")
    if not changed and random.getstate() != python:
        if len(sys._current_frames()) == 1:
            changed.append("random")
        else:
            result, draws = _observed(trace)
            changed += ["random"] * draws
    if changed:
        name = getattr(fun, "__name__", type(fun).__name__)
        raise TraceError(
            f"{name} draws random numbers ({changed[0]}) while it is compiled, so every run would "
            "use the same. Draw from a stream, wengert.random.Stream(seed), which draws in each "
            f"run, or pass the numbers as an argument{at(user_line())}."
        )
    return result


def _observed(trace: Callable[[], R]) -> tuple[R, bool]:
    """The result, and whether this thread draws from the generator of Python's module."""
    draws = False

    def observe(frame: FrameType, event: str, called: Any) -> None:
        nonlocal draws
        if event == "c_call" and getattr(called, "__self__", None) is _PYTHON:
            draws = True

    previous = sys.getprofile()
    sys.setprofile(observe)
    try:
        return trace(), draws
    finally:
        sys.setprofile(previous)


def _legacy() -> Any:
    """The state of NumPy's global generator; None if it has not been imported."""
    if "numpy.random" not in sys.modules:
        return None
    state: Any = np.random.get_state()
    return state[1].tobytes(), state[2:]


def _is_untouched() -> bool:
    """Whether NumPy's global generator, if it has been imported since, has not been used."""
    if "numpy.random" not in sys.modules:
        return True
    state: Any = np.random.get_state()
    fresh: Any = np.random.RandomState().get_state()
    # All parts of the state except the key are the same in all generators that are unused.
    return bool(state[2:] == fresh[2:] and state[1][0] == fresh[1][0])


def _state(generator: Any) -> Any:
    if isinstance(generator, random.Random):
        return generator.getstate()
    bits = getattr(generator, "bit_generator", None)
    return repr(generator.get_state() if bits is None else bits.state)


def _name_if_changed(generator: Any, before: Any) -> str:
    return type(generator).__name__ if _state(generator) != before else ""


def _kinds() -> tuple[Any, ...]:
    # Not imported here, because that takes 10 ms; if it has not been imported, no generator exists.
    if "numpy.random" not in sys.modules:
        return (random.Random,)
    return np.random.Generator, np.random.RandomState, random.Random


def _generators(fun: Any, leaves: list[Any]) -> Iterator[Any]:
    kinds = _kinds()
    looked_at: dict[int, Any] = {}  # NumPy's module has 600 names, and most functions have it
    for x in _reachable(fun, leaves):
        if isinstance(x, kinds):
            yield x
        elif id(x) not in looked_at and not isinstance(x, type):
            looked_at[id(x)] = x
            attributes = _attribute(x, "__dict__")
            if type(attributes) is dict:  # __getattr__ may answer with anything
                yield from (v for v in list(attributes.values()) if isinstance(v, kinds))


def _reachable(fun: Any, leaves: list[Any]) -> Iterator[Any]:
    yield from leaves
    stack, seen = [fun], set()
    while stack:
        f = stack.pop()
        if id(f) in seen:
            continue
        seen.add(id(f))
        yield f
        if isinstance(f, functools.partial):
            stack.append(f.func)
            yield from (*f.args, *f.keywords.values())
        stack += [g for g in (_attribute(f, "__wrapped__"), _attribute(f, "__func__")) if g]
        owner = _attribute(f, "__self__")
        if owner is not None:
            yield owner
        for cell in _attribute(f, "__closure__") or ():
            try:
                contents = cell.cell_contents
            except ValueError:  # not filled yet
                continue
            yield contents
            if _has_code(contents):
                stack.append(contents)
        yield from _attribute(f, "__defaults__") or ()
        code, names = _attribute(f, "__code__"), _attribute(f, "__globals__") or {}
        for name in _names(code):
            if name in names:
                yield names[name]
                if _has_code(names[name]):
                    stack.append(names[name])


def _has_code(x: object) -> bool:
    return isinstance(_attribute(x, "__code__"), CodeType) and not isinstance(x, type)


def _attribute(x: object, name: str) -> Any:
    """None, if there is no such attribute or a `__getattr__` of the user raises on the name."""
    try:
        return getattr(x, name, None)
    except Exception:
        return None


def _names(code: CodeType | None) -> Iterator[str]:
    """The names of globals in a function, and in those that are nested in it."""
    if code is not None:
        yield from code.co_names
        for inner in code.co_consts:
            if isinstance(inner, CodeType):
                yield from _names(inner)
