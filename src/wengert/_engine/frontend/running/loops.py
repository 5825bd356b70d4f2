"""``for`` and ``while`` statements.

Outside of a trace, and over containers of Python, a loop is run by Python.  In a trace, it becomes
a node (loop_tracer.py); if that is not possible, and the number of iterations is known, it is run
by Python, which unrolls it.

    for x in xs: ...    for_(xs, body, *facts)
    while c: ...        while_(test, body, *facts)

    ITERATIONS_UNROLLED    loops with at most so many iterations are unrolled, if they are short

Whether a block can use traced values.

Its free variables are searched, through containers, attributes, closures and bound arguments.

can_reach_traced    whether some of the values are traced
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.handle import Handle, is_traced
from wengert._engine.core.lazy_import import LazyModule
from wengert._engine.core.recording import current_trace
from wengert._engine.core.trace_notes import note
from wengert.errors import TraceError, at, user_place, user_source

from ..state import UNBOUND, NotTraceable, SharedVariables, cell_value
from .block_tracing import with_slice_lengths
from .branches import if_
from .builtin_operations import LoopFacts, not_, stopped
from .filled_lists import tested
from .iterables import Items, UnrolledRange, has_traced_items, items_of
from .stacked_lists import ListNeeded

if TYPE_CHECKING:
    from . import loop_tracer
else:  # for loops that become nodes
    loop_tracer = LazyModule("wengert._engine.frontend.running.loop_tracer")

ITERATIONS_UNROLLED = 8
_STATEMENTS_UNROLLED = 64  # iterations times statements, including those of inner loops
_MAX_ITERATIONS_IN_PYTHON = 10_000  # of a loop that cannot become a node, and is unrolled


def for_(iterable: Any, body: Callable[[Any], None], *facts: Any) -> None:
    """A ``for`` statement."""
    loop_facts = LoopFacts(*facts)
    variables = SharedVariables([body])
    runs_in_python = current_trace() is None or isinstance(iterable, UnrolledRange)
    items = None if runs_in_python else items_of(iterable)
    if items is None:
        _run_in_python(iter(iterable), body, loop_facts, variables)
        return
    length = items.length
    is_known = type(length) is int
    if is_known and (
        (length <= ITERATIONS_UNROLLED and length * loop_facts.size <= _STATEMENTS_UNROLLED)
        or not (has_traced_items(iterable) or can_reach_traced(body))
    ):
        _run_in_python(_python_items(items), body, loop_facts, variables)
        return
    try:
        _run_traced(body, items, None, loop_facts, variables)
    except ListNeeded:
        raise
    except NotTraceable as error:
        if not is_known:
            raise _trace_error(error, "for") from error.__cause__
        remaining = _python_items(items)
        if error.peeling and not loop_facts.stops:
            body(next(remaining))
            peeled = items._replace(length=length - 1, start=items.start + items.step)
            try:
                _run_traced(body, peeled, None, loop_facts, variables)
                return
            except ListNeeded:
                raise
            except NotTraceable as second_error:
                error = second_error
        if length > _MAX_ITERATIONS_IN_PYTHON:
            raise _trace_error(error, "for") from error.__cause__
        note("unrolled", f"a loop of {length} iterations is unrolled: {error}")
        _run_in_python(remaining, body, loop_facts, variables)


def _run_traced(
    body: Callable[..., None],
    items: Items | None,
    test: Callable[[], Any] | None,
    facts: LoopFacts,
    variables: SharedVariables,
    runs: Any = None,
) -> None:
    """Add the node of a loop, and set the variables to their values after it."""
    try:
        with_slice_lengths(
            lambda slices: loop_tracer.LoopTracer(
                body, items, test, facts, variables, slices, runs
            ).run(),
            body,
        )
    except RecursionError as error:
        raise NotTraceable(
            "the recursion of a function that it calls ends at a traced condition"
        ) from error


def while_(test: Callable[[], Any], body: Callable[[], None], *facts: Any) -> None:
    """A ``while`` statement."""
    loop_facts = LoopFacts(*facts)
    variables = SharedVariables([test, body])
    iterations = 0
    tracing_failed = current_trace() is None
    while True:
        stop_flag = stopped(loop_facts, variables)
        continues = not_(stop_flag) if is_traced(stop_flag) else not stop_flag
        if continues is True:
            continues = tested(test())
        if is_traced(continues) or (not tracing_failed and iterations >= ITERATIONS_UNROLLED):
            if _while_node(test, body, loop_facts, variables, continues):
                return
            tracing_failed = True
        if not continues:
            return
        body()
        iterations += 1


def _while_node(
    test: Callable[[], Any],
    body: Callable[[], None],
    facts: LoopFacts,
    variables: SharedVariables,
    continues: Any,
) -> bool:
    """Add the node of a loop; False if it cannot be traced, and Python can run it."""
    try:
        _run_traced(body, None, test, facts, variables, continues)
    except ListNeeded:
        raise
    except NotTraceable as error:
        if is_traced(continues):
            raise _trace_error(error, "while") from error.__cause__
        note("unrolled", f"a while loop is unrolled: {error}")
        return False
    return True


def _trace_error(error: NotTraceable, what: str) -> Exception:
    cause = error.__cause__
    if isinstance(cause, TraceError):
        return cause
    return TraceError(
        f"a {what} loop whose number of iterations is not known while a graph is built, or is "
        f"above {_MAX_ITERATIONS_IN_PYTHON}, cannot be traced: {error}{at(user_place())}."
        f"{user_source()}"
    )


def _python_items(items: Items) -> Any:
    for k in range(items.length):
        yield items.item(items.start + k * items.step)


def _run_in_python(
    items: Iterator[Any], body: Callable[[Any], None], facts: LoopFacts, variables: SharedVariables
) -> None:
    """Run the iterations; once the flag that ends the loop is traced, the others in a branch."""
    for item in items:
        body(item)
        stop_flag = stopped(facts, variables)
        if is_traced(stop_flag):

            def remaining() -> None:
                _run_in_python(items, body, facts, variables)

            remaining = _sharing_variables(remaining, body)
            variables_of_branch = facts.assigned, facts.assigned
            if_(not_(stop_flag), remaining, None, *variables_of_branch, None, facts.filled)
            return
        if stop_flag:
            return


def _sharing_variables(fun: Callable[[], None], body: Any) -> Any:
    """A callable that shares the variables of a loop body, for `SharedVariables`."""
    return _SharingCallable(fun, body)


class _SharingCallable:
    """A callable with the code and closure of another function."""

    def __init__(self, fun: Callable[[], None], body: FunctionType) -> None:
        self._fun = fun
        self.__code__, self.__closure__ = body.__code__, body.__closure__

    def __call__(self) -> None:
        self._fun()


_MAX_OBJECTS = 10_000  # objects to examine; if there are more, the result is True
_ATOMIC: tuple[type, ...] = (
    str, bytes, int, float, complex, np.generic, np.ndarray, type, ModuleType, range, slice,
    BuiltinFunctionType, np.ufunc, np.dtype, type(None), type(Ellipsis),
)  # fmt: skip


def can_reach_traced(block: Callable[..., Any]) -> bool:
    """Whether a block refers to traced values, or to objects that may contain some."""
    stack: list[Any] = [block]
    seen: set[int] = set()
    while stack:
        x = stack.pop()
        if id(x) in seen or x is UNBOUND:
            continue
        seen.add(id(x))
        if len(seen) > _MAX_OBJECTS:
            return True
        if isinstance(x, Handle):
            if is_traced(x):
                return True
        elif isinstance(x, FunctionType):
            stack += [cell_value(c) for c in x.__closure__ or ()]
            stack += x.__defaults__ or ()
        elif isinstance(x, MethodType):
            stack += [x.__func__, x.__self__]
        elif isinstance(x, functools.partial):
            stack += [x.func, *x.args, *x.keywords.values()]
        elif isinstance(x, list | tuple | set | frozenset):
            stack += x
        elif isinstance(x, dict):
            stack += x.values()
        elif not isinstance(x, _ATOMIC):
            attributes = getattr(x, "__dict__", None)
            if attributes is None:
                return True
            stack += attributes.values()
    return False
