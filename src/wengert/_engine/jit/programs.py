"""Programs of a compiled function: for its captured values, and for calls with other sizes.

    CapturedState  captured values, and the programs for them
    States         the states of a function; finds the current one, or creates it
    relaxed_gc     a context manager that raises the threshold of garbage collection

A function that reads ``k`` has different programs for ``k = 2`` and ``k = 3``.  So programs belong
to a state: the values that were captured when they were traced (graphs/captures).  Captured arrays
are not part of the state: they are inputs, read at each call.

Shape polymorphism: the first call compiles a program for its sizes.  At a call with other sizes,
the function is traced again, with a symbolic size wherever old and new size differ, and the same
one for equal pairs (old, new).  This general program supports batches of any size.

If a function cannot be traced with symbolic sizes (it loops over an axis, or compares a size with
3), one program is compiled for each shape.  This is also done for shapes that the general program
does not support: with a size of zero, with different sizes where it has one symbolic size, or with
equal sizes that the function compared.

Compiling allocates tens of thousands of small objects, nearly all of which survive or are freed by
reference counting.  Collections of the young generation after every 700 objects, and of older
generations, would take a tenth of the time of the first call.
"""

from __future__ import annotations

import functools
import gc
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.core.conversion_hook import converted
from wengert._engine.core.device_arrays import is_on_device
from wengert._engine.core.symbolic.constraints import dim
from wengert._engine.core.symbolic.dim import Comparisons, Dim, names_in, valued
from wengert._engine.core.thread_state import lock
from wengert._engine.core.user_functions import originals_by
from wengert._engine.graphs.captures import Captured, captured_by
from wengert._engine.graphs.captures.guards import CaptureSource, Location
from wengert._engine.graphs.captures.traced_function import Substitution
from wengert.errors import ArgumentError, TraceError, at, user_line

from .call_signature import CallSignature, Pinned, StaticArguments
from .compiled_program import EXACT, FAMILIES, MODES, OBJECTS, CompiledProgram

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


Shapes = tuple[Any, ...]
Compile = Callable[[CallSignature, Shapes], CompiledProgram]
_REFUSED = 64  # patterns that are known to fail; the oldest are removed


class General(NamedTuple):
    """A program for many shapes.

    pattern : the shape of each leaf, in which some sizes are symbolic.
    differences : differences of sizes that tracing assumed not to be zero.
    """

    pattern: Shapes
    compiled: CompiledProgram
    differences: tuple[Any, ...]

    def supports(self, shapes: Shapes) -> bool:
        """Whether the program is valid for these shapes."""
        sizes: dict[str, int] = {}
        for expected, actual in zip(self.pattern, shapes, strict=True):
            for n, m in zip(expected or (), actual or (), strict=True):
                if not isinstance(n, Dim):
                    if n != m:
                        return False
                elif isinstance(m, Dim) or m < 1 or sizes.setdefault(str(n), m) != m:
                    return False
        if any(valued(d, sizes) == 0 for d in self.differences):
            return False
        return all(r.holds(sizes) for r in self.compiled.graph.requirements)


class ProgramFamily:
    """The programs of one family."""

    def __init__(self) -> None:
        self.exact: OrderedDict[Shapes, CompiledProgram] = OrderedDict()
        self.general: General | None = None
        self._refused: OrderedDict[Shapes, None] = OrderedDict()

    @property
    def programs(self) -> list[CompiledProgram]:
        """The programs for one shape each, and the general one."""
        general = [] if self.general is None else [self.general.compiled]
        return [*self.exact.values(), *general]

    def is_valid(self) -> bool:
        """Whether everything that its programs read besides the arguments is unchanged."""
        return all(p.is_valid() for p in self.programs)

    def find(self, call: CallSignature, compile: Compile) -> CompiledProgram:
        """The program for a call, compiled now if there is none.

        Parameters
        ----------
        call : CallSignature
        compile : callable
            Compiles a program for a call, with given shapes in place of its own.
        """
        program = self.exact.get(call.shapes)
        if program is not None:
            self.exact.move_to_end(call.shapes)
            return program
        if any(isinstance(n, Dim) for s in call.shapes if s for n in s):  # specs from the user
            self.general = self._traced(call, call.shapes, compile)
            return self.general.compiled
        if self.general is not None and self.general.supports(call.shapes):
            return self.general.compiled
        for base in self._bases(call.shapes):
            general = self._generalized(call, base, compile)
            if general is not None:
                self.general = general
                return general.compiled
        program = self.exact[call.shapes] = self._compiled(call, call.shapes, compile)
        while len(self.exact) > EXACT:
            self.exact.popitem(last=False)
        return program

    def _compiled(self, call: CallSignature, shapes: Shapes, compile: Compile) -> CompiledProgram:
        with relaxed_gc():
            return compile(call, shapes)

    def _bases(self, shapes: Shapes) -> list[Shapes]:
        """Shapes from which a more general pattern may be derived."""
        if any(n == 0 for s in shapes if s for n in s):
            return []
        bases = [] if self.general is None else [self.general.pattern]
        recent = [s for s in self.exact if not any(n == 0 for shape in s if shape for n in shape)]
        return [*bases, *recent[-2:]]

    def _generalized(self, call: CallSignature, base: Shapes, compile: Compile) -> General | None:
        """A program that supports two shapes; None if it cannot be compiled."""
        pattern = _pattern(base, call.shapes)
        if pattern in self._refused or pattern == base:
            return None
        try:
            general = self._traced(call, pattern, compile)
        except Exception:  # tracing with concrete sizes may succeed, or raises the error again
            general = None
        if (
            general is not None
            and general.supports(call.shapes)
            and not _is_probed(general.compiled)
        ):
            return general
        self._refused[pattern] = None
        while len(self._refused) > _REFUSED:
            self._refused.popitem(last=False)
        return None

    def _traced(self, call: CallSignature, pattern: Shapes, compile: Compile) -> General:
        with Comparisons.watched() as differences:
            compiled = self._compiled(call, pattern, compile)
        symbolic = [d for d in dict.fromkeys(differences) if isinstance(d, Dim)]
        sizes = names_in([n for s in pattern if s for n in s])
        compared = tuple([d for d in symbolic if names_in([d]) <= sizes])
        compiled.assumes_inequalities = bool(compared)
        return General(pattern, compiled, compared)


def _pattern(base: Shapes, shapes: Shapes) -> Shapes:
    """Shapes with the sizes that are equal, and symbolic sizes for those that differ."""
    names: dict[tuple[Any, int], Any] = {}

    def length(old: Any, new: int) -> Any:
        if not isinstance(old, Dim) and old == new:
            return new
        if (old, new) not in names:
            names[old, new] = dim(_name(len(names)))
        return names[old, new]

    pairs = zip(base, shapes, strict=True)
    return tuple([None if s is None else _sizes(length, b, s) for b, s in pairs])


def _sizes(length: Callable[[Any, int], Any], old: Sequence[Any], new: Sequence[int]) -> Any:
    return tuple([length(a, b) for a, b in zip(old, new, strict=True)])


def _name(count: int) -> str:
    return "nmklpqrs"[count] if count < 8 else f"n{count}"


def _is_probed(compiled: CompiledProgram) -> bool:
    """Whether a shape was inferred by running an operation, so that other sizes may differ."""
    return any(n.info is not None and n.info.probed for n in compiled.graph.nodes)


_RAISED_THRESHOLD = 50_000  # objects between collections: some megabytes
_LOCK = lock()


class _CompileCount:
    """The number of compiling threads, and the threshold to restore."""

    users = 0
    usual = (0, 0, 0)


@contextmanager
def relaxed_gc() -> Iterator[None]:
    """Raise the threshold of the young generation, unless it is higher, or zero (no collection)."""
    with _LOCK:
        if not _CompileCount.users:
            _CompileCount.usual = gc.get_threshold()
            if 0 < _CompileCount.usual[0] < _RAISED_THRESHOLD:
                gc.set_threshold(_RAISED_THRESHOLD, *_CompileCount.usual[1:])
        _CompileCount.users += 1
    try:
        yield
    finally:
        with _LOCK:
            _CompileCount.users -= 1
            if not _CompileCount.users and gc.get_threshold() == (
                _RAISED_THRESHOLD,
                *_CompileCount.usual[1:],
            ):
                gc.set_threshold(*_CompileCount.usual)
