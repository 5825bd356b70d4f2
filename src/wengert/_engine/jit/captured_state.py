"""Captured state: the captured values of a compiled function, and the programs for them.

A function that reads ``k`` has different programs for ``k = 2`` and ``k = 3``.  So programs belong
to a state: the values that were captured when they were traced (graphs/captures).  Captured arrays
are not part of the state: they are inputs, read at each call.

    CapturedState  captured values, and the programs for them
    States         the states of a function; finds the current one, or creates it
"""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from wengert._engine.core.conversion_hook import converted
from wengert._engine.core.device_arrays import is_on_device
from wengert._engine.core.user_functions import originals_by
from wengert._engine.graphs.captures import Captured, captured_by
from wengert._engine.graphs.captures.guards import CaptureSource, Location
from wengert._engine.graphs.captures.traced_function import Substitution
from wengert.errors import ArgumentError, TraceError, at, user_line

from .call_signature import CallSignature, Pinned, StaticArguments
from .compiled_program import FAMILIES, MODES, OBJECTS, CompiledProgram
from .shape_polymorphism import ProgramFamily

# Which captured arrays, and numbers that change, are inputs: all; if tracing fails, arrays and
# floats; then arrays; only inexact arrays; none.
_FED: tuple[Callable[[Any], bool], ...] = (
    lambda x: True,
    lambda x: _is_array(x) or isinstance(x, float | np.floating),
    lambda x: _is_array(x),
    lambda x: is_on_device(x) or (_is_array(x) and x.dtype.kind in "fc"),
    lambda x: False,
)
# Changes of a number after which it is an input; an integer may be a mode or a length.
_CHANGES_OF_FLOATS, _CHANGES_OF_INTEGERS = 1, 2
_MOST_NUMBERS = 256  # numbers whose changes are counted


def _is_array(x: Any) -> bool:
    return isinstance(x, np.ndarray) or is_on_device(x)


class CapturedState:
    """The captured values of a function, and the programs for them.

    Attributes
    ----------
    captured : Captured
    level : int
        Which captured arrays are inputs, as an index of `_FED`.
    calls : dict
        Programs by the keys of calls.
    """

    def __init__(self, captured: Captured, level: int) -> None:
        self.captured, self.level = captured, level
        self.calls: dict[Any, CompiledProgram] = {}
        self.families: OrderedDict[Any, list[ProgramFamily]] = OrderedDict()

    def family(self, call: CallSignature) -> ProgramFamily:
        """The family of a call, for the current modes of modules and options."""
        candidates = self.families.setdefault(call.family, [])
        self.families.move_to_end(call.family)
        family = next((f for f in candidates if f.is_valid()), None)
        if family is None:
            family = ProgramFamily()
            candidates[:] = [*candidates[1 - MODES :], family]
        while len(self.families) > FAMILIES:
            _, evicted = self.families.popitem(last=False)
            removed = {p for f in evicted for p in f.programs}
            self.calls = {k: p for k, p in self.calls.items() if p not in removed}
        return family


class States:
    """The states of a function, for each set of objects in its arguments, most recent first."""

    def __init__(
        self, fun: Callable[..., Any], layout: StaticArguments, lock: AbstractContextManager[Any]
    ) -> None:
        self._fun, self._layout, self._lock = fun, layout, lock
        self.known: OrderedDict[Hashable, list[CapturedState]] = OrderedDict()
        self._changes: OrderedDict[Location, tuple[CaptureSource, int]] = OrderedDict()

    def find(
        self, call: CallSignature, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[CapturedState, CallSignature]:
        """The current state, and the call with captured arrays as inputs."""
        state_and_call = self._known(call, args, kwargs)
        if state_and_call is None:
            with self._lock:  # another thread may be creating the same state
                state_and_call = self._known(call, args, kwargs) or self._next(call, args, kwargs)
        return state_and_call

    def _known(
        self, call: CallSignature, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[CapturedState, CallSignature] | None:
        candidates = list(self.known.get(call.objects_key, ()))
        for state in candidates:
            arrays = state.captured.quickly()
            if arrays is not None:
                return state, self._extended(state, call, arrays, args, kwargs)
        for state in candidates:
            arrays = state.captured.arrays()
            if arrays is not None:
                return state, self._extended(state, call, arrays, args, kwargs)
        return None

    def _next(
        self, call: CallSignature, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[CapturedState, CallSignature]:
        # Arrays that could not be inputs of an earlier state cannot be inputs of this one.
        known = self.known.get(call.objects_key, ())
        level = max((s.level for s in known), default=0)
        for state in known[:1]:
            self._count_changes(state)
        return self._new(call, level, args, kwargs)

    def _count_changes(self, state: CapturedState) -> None:
        """Count the changes of captured numbers since the last state."""
        for source in state.captured.changed_numbers():
            _, count = self._changes.pop(source.location, (source, 0))
            self._changes[source.location] = source, count + 1
            while len(self._changes) > _MOST_NUMBERS:
                self._changes.popitem(last=False)

    def _variable(self) -> set[Location]:
        """The parts of objects with numbers that change, and may be inputs."""
        return {
            location
            for location, (source, count) in self._changes.items()
            if count
            >= (
                _CHANGES_OF_INTEGERS
                if isinstance(source.read(), int | np.integer)
                else _CHANGES_OF_FLOATS
            )
        }

    def with_fewer_inputs(
        self, state: CapturedState, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[CapturedState, CallSignature]:
        """A new state with fewer captured arrays as inputs than `state`, which is removed."""
        call = self._layout.call(args, kwargs, specs=True)
        known = self.known.get(call.objects_key, [])
        if state in known:
            known.remove(state)
        previous = set(state.captured.feeds)
        level = state.level
        while True:
            level += 1
            new_state, new_call = self._new(call, level, args, kwargs)
            if set(new_state.captured.feeds) < previous or not new_state.captured.feeds:
                return new_state, new_call
            self.known[call.objects_key].remove(new_state)

    def discovered(self, call: CallSignature, level: int) -> Captured:
        """The current captured values of the function."""
        objects = {f"argument {k}": x for k, x in call.objects}
        captured = captured_by(
            self._fun, objects.items(), _FED[min(level, len(_FED) - 1)], self._variable()
        )
        static = {f"argument {k}" for k, x in enumerate(call.leaves) if type(x) is Pinned}
        for name in objects.keys() - static:
            if name in captured.unguarded:
                type_name = type(objects[name]).__name__
                raise ArgumentError(
                    f"a compiled function was given a {type_name}, which is not an array, and "
                    "whose changes cannot be detected. Pass arrays, or, if it never changes, list "
                    f"the argument in static_argnames{at(user_line())}."
                )
        return captured

    def substituted(
        self, state: CapturedState, call: CallSignature
    ) -> tuple[Callable[..., Any], Callable[[Any], Any]]:
        """The function with the captured arrays as an additional last argument, a dict.

        The second result is a function from replacements of captured objects to these.
        """
        captured = state.captured
        if not captured.feeds:
            return self._fun, lambda x: x
        substitutions: list[Substitution] = []
        if not captured.objects:
            captured = self.discovered(call, state.level)
            if list(captured.feeds) != list(state.captured.feeds):
                raise TraceError(
                    f"another thread changed a captured value of "
                    f"{getattr(self._fun, '__name__', self._fun)} while it was compiled. Compile "
                    f"it before threads change the values that it reads{at(user_line())}."
                )

        @functools.wraps(self._fun, updated=())
        def run(*args: Any, **kwargs: Any) -> Any:
            *arguments, arrays = args
            substitution = Substitution(captured, arrays)
            substitutions.append(substitution)
            fun = substitution.of(self._fun)
            keywords = {k: substitution.of(x) for k, x in kwargs.items()}
            try:
                with originals_by(substitution.restored):
                    return converted(fun)(*map(substitution.of, arguments), **keywords)
            finally:
                substitution.write_back()

        return run, lambda x: substitutions[-1].original(x)

    def _new(
        self, call: CallSignature, level: int, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[CapturedState, CallSignature]:
        for _ in range(3):
            state = CapturedState(self.discovered(call, level), level)
            arrays = state.captured.arrays()
            if arrays is not None:
                break
        else:
            name = state.captured.changed()
            raise TraceError(
                f"{getattr(self._fun, '__name__', self._fun)} captures {name}, which changes each "
                f"time it is read. Pass it as an argument{at(user_line())}."
            )
        known = self.known.setdefault(call.objects_key, [])
        known.insert(0, state)
        del known[MODES:]
        self.known.move_to_end(call.objects_key)
        while len(self.known) > OBJECTS:
            self.known.popitem(last=False)
        return state, self._extended(state, call, arrays, args, kwargs)

    def _extended(
        self,
        state: CapturedState,
        call: CallSignature,
        arrays: Sequence[np.ndarray[Any, Any]],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> CallSignature:
        """The call with the captured arrays as an additional last argument, a dict."""
        if not arrays:
            return call
        arrays_by_name = dict(zip(state.captured.feeds, arrays, strict=True))
        extended = self._layout.call((*args, arrays_by_name), kwargs, specs=True, captured=True)
        extended.given = call
        return extended
