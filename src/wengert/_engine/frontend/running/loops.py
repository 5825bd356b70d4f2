"""Loops: ``for`` and ``while``.

Outside of a trace, and over containers of Python, a loop is run by Python.  In a trace it becomes a
node (loop_tracer.py).  If that is not possible, and the number of trips is known, the loop is
unrolled.

    for_, while_
    TRIPS_UNROLLED    loops up to this length are unrolled, if their bodies are short
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import FunctionType
from typing import TYPE_CHECKING, Any

from wengert._engine.core.handle import is_traced
from wengert._engine.core.lazy_import import LazyModule
from wengert._engine.core.recording import current_trace
from wengert._engine.core.trace_notes import note
from wengert.errors import TraceError, at, user_place, user_source

from ..state import NotTraceable, SharedVariables
from .block_tracing import with_slice_lengths
from .booleans import not_
from .branches import if_
from .iterables import Items, UnrolledRange, has_traced_items, items_of
from .loop_facts import LoopFacts, stopped
from .reachability import can_reach_traced

if TYPE_CHECKING:
    from . import loop_tracer
else:  # for loops that become nodes
    loop_tracer = LazyModule("wengert._engine.frontend.running.loop_tracer")

TRIPS_UNROLLED = 8
_STATEMENTS_UNROLLED = 64  # trips times statements, with those of loops inside for each trip
_TRIPS_IN_PYTHON = 10_000  # iterations of a loop that cannot become a node, and is unrolled


def for_(iterable: Any, body: Callable[[Any], None], *facts: Any) -> None:
    """A ``for`` statement."""
    known = LoopFacts(*facts)
    variables = SharedVariables([body])
    in_python = current_trace() is None or isinstance(iterable, UnrolledRange)
    items = None if in_python else items_of(iterable)
    if items is None:
        _by_python(iter(iterable), body, known, variables)
        return
    length = items.length
    is_known = type(length) is int
    if is_known and (
        (length <= TRIPS_UNROLLED and length * known.size <= _STATEMENTS_UNROLLED)
        or not (has_traced_items(iterable) or can_reach_traced(body))
    ):
        _by_python(_python_items(items), body, known, variables)
        return
    try:
        _run_traced(body, items, None, known, variables)
    except NotTraceable as error:
        if not is_known:
            raise _refused(error, "for") from error.__cause__
        rest = _python_items(items)
        if error.peeling and not known.stops:
            body(next(rest))
            shorter = items._replace(length=length - 1, start=items.start + items.step)
            try:
                _run_traced(body, shorter, None, known, variables)
                return
            except NotTraceable as again:
                error = again
        if length > _TRIPS_IN_PYTHON:
            raise _refused(error, "for") from error.__cause__
        note("unrolled", f"a loop of {length} trips is unrolled: {error}")
        _by_python(rest, body, known, variables)


def _run_traced(
    body: Callable[..., None],
    items: Items | None,
    test: Callable[[], Any] | None,
    facts: LoopFacts,
    variables: SharedVariables,
    runs: Any = None,
) -> None:
    """Make the node of a loop, and set the variables to the values after it."""
    try:
        with_slice_lengths(
            lambda slices: loop_tracer.LoopTracer(
                body, items, test, facts, variables, slices, runs
            ).run()
        )
    except RecursionError as error:
        raise NotTraceable("a function that it calls ends its recursion by a value") from error


def while_(test: Callable[[], Any], body: Callable[[], None], *facts: Any) -> None:
    """A ``while`` statement."""
    known = LoopFacts(*facts)
    variables = SharedVariables([test, body])
    trips = 0
    tried = current_trace() is None
    while True:
        stop = stopped(known, variables)
        goes_on = not_(stop) if is_traced(stop) else not stop
        if goes_on is True:
            goes_on = test()
        if is_traced(goes_on) or (not tried and trips >= TRIPS_UNROLLED):
            if _while_node(test, body, known, variables, goes_on):
                return
            tried = True
        if not goes_on:
            return
        body()
        trips += 1


def _while_node(
    test: Callable[[], Any],
    body: Callable[[], None],
    facts: LoopFacts,
    variables: SharedVariables,
    goes_on: Any,
) -> bool:
    """Make the node of a loop; False if it must be run by Python, which is possible."""
    try:
        _run_traced(body, None, test, facts, variables, goes_on)
    except NotTraceable as error:
        if is_traced(goes_on):
            raise _refused(error, "while") from error.__cause__
        note("unrolled", f"a while loop is unrolled: {error}")
        return False
    return True


def _refused(error: NotTraceable, what: str) -> Exception:
    cause = error.__cause__
    if isinstance(cause, TraceError):
        return cause
    return TraceError(
        f"a {what} loop whose number of trips is not known while a graph is built, or is above "
        f"{_TRIPS_IN_PYTHON}, cannot be traced: {error}{at(user_place())}.{user_source()}"
    )


def _python_items(items: Items) -> Any:
    for k in range(items.length):
        yield items.item(items.start + k * items.step)


def _by_python(
    items: Iterator[Any], body: Callable[[Any], None], facts: LoopFacts, variables: SharedVariables
) -> None:
    """Run the trips one after the other; after a flag that is not known, each in a branch."""
    for item in items:
        body(item)
        stop = stopped(facts, variables)
        if is_traced(stop):

            def rest() -> None:
                _by_python(items, body, facts, variables)

            rest = _with_cells(rest, body)
            if_(not_(stop), rest, None, facts.assigned, facts.assigned, None)
            return
        if stop:
            return


def _with_cells(fun: Callable[[], None], body: Any) -> Any:
    """A function with the variables of another one in addition to its own."""
    return _Shared(fun, body)


class _Shared:
    """A callable with the names of the variables that it shares."""

    def __init__(self, fun: Callable[[], None], body: FunctionType) -> None:
        self._fun = fun
        self.__code__, self.__closure__ = body.__code__, body.__closure__

    def __call__(self) -> None:
        self._fun()
