"""Jitted: the callable that `jit` returns.

    Jitted     the callable: finds the program for a call, or compiles it

A call takes the fastest path that supports it:

1. a native entry point that replaces `__call__`, if all arguments are arrays and numbers
   (`_install_entry`);
2. a native entry point behind a matcher of containers (entry_dispatch.py);
3. a known program, by the key of the call;
4. the programs of its family (programs.py), which traces and compiles.

While an outer graph is built, the function itself is called: its nodes become nodes of that graph.
"""

from __future__ import annotations

import copy
import functools
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from types import MethodType
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from wengert._engine.autodiff.arguments import name_in_module, name_of
from wengert._engine.autodiff.messages import Messages
from wengert._engine.backends import Backend
from wengert._engine.backends import backend as backend_of
from wengert._engine.core.assigned_parts import AssignedPart
from wengert._engine.core.conversion_hook import conversion, converted
from wengert._engine.core.handle import Handle
from wengert._engine.core.implicit_conversions import IntegersWanted, gate, may_be_wanted
from wengert._engine.core.lazy_import import LazyModule
from wengert._engine.core.message_order import current, is_used
from wengert._engine.core.other_libraries import Labelled
from wengert._engine.core.recording import recording_session, switches
from wengert._engine.core.thread_state import lock
from wengert._engine.core.validation import function as check_function
from wengert._engine.graphs import Graph
from wengert._engine.graphs.tracing_session import built, infinite_recursion, parameter_names
from wengert.errors import BackendError, TraceError, at, user_line

from . import lowered, special_arguments
from .call_signature import CallSignature, StaticArguments
from .compiled_graph import (
    check_host_callbacks,
    refuse_generators,
    simplified,
    traced_without_draws,
)
from .compiled_program import CALLS, CompiledProgram, preferred_backend
from .entry_dispatch import (
    MISSED,
    Routes,
    Shortcut,
    SlowPath,
    WithoutCaptured,
    entry_signature,
    with_shortcut,
)
from .lowered import CacheInfo, Lowered
from .programs import CapturedState, Shapes, States
from .special_arguments import StaticNumbers

if TYPE_CHECKING:
    from . import exporting
else:
    exporting = LazyModule("wengert._engine.jit.exporting")

P = ParamSpec("P")
R = TypeVar("R")


def _empty(cls: type) -> None:
    """Remove the native entry point from the class that was created for one function."""
    if cls is not Jitted and "entry" in vars(cls):
        del cls.__call__, cls.entry  # type: ignore[attr-defined]


class Jitted(Generic[P, R]):
    """A compiled function; see `jit`."""

    __module__ = "wengert.compiling"

    __name__: str
    _shortcuts: tuple[Shortcut, ...]

    def __init__(self, fun: Callable[P, R], options: dict[str, Any]) -> None:
        check_function(fun, "jit")
        refuse_generators(fun)
        self._fun, self._options = fun, options
        functools.update_wrapper(self, fun, updated=())
        self.__name__ = name_of(fun)
        self._lock = lock()
        parameters = parameter_names(fun, 0)
        numbers, names = options["static_argnums"], options["static_argnames"]
        self._layout = StaticArguments(numbers, names, parameters)
        self._of_labelled: Jitted[..., Any] | None = None  # for calls with labels or units
        self._numbers = StaticNumbers(self._layout, options["source"])
        self._states = States(fun, self._layout, self._lock)
        self.clear_cache()

    # ---- calls ---------------------------------------------------------------------------------

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function by a compiled program."""
        # A graph is being built, or another session observes operations.
        if switches.count and recording_session() is not None:
            return self._traced_call(args, kwargs)  # type: ignore[no-any-return]
        for shortcut in self._shortcuts:
            result = shortcut(args, kwargs)
            if result is not MISSED:
                return result  # type: ignore[no-any-return]
        if self._returns_labels:
            return special_arguments.called(self, args, kwargs)  # type: ignore[no-any-return]
        if gate.count:  # Ctrl-C may have prevented the end of a block
            gate.recount()
        try:
            call = self._layout.call(args, kwargs)
            if call.traced:
                return self._traced_call(args, kwargs)  # type: ignore[no-any-return]
            state, call = self._states.find(call, args, kwargs)
            compiled = state.calls.get(call.key)
            if compiled is None or not compiled.is_valid():
                compiled, call = self._compiled(state, call, args, kwargs)
            elif not call.handles and compiled.may_have_entry:
                self._add_entry(state, call, compiled, args, kwargs)
        except Labelled as found:
            return special_arguments.called(self, args, kwargs, found)  # type: ignore[no-any-return]
        if compiled.is_inline or (current() is not None and compiled.sends_messages):
            return self._fun(*args, **kwargs)
        if is_used() and compiled.sends_messages and compiled.is_recorded(call.fed):
            # Each process takes part in all messages of backward(), also if its part of a compiled
            # backward pass does not need them.
            return Messages().run(lambda: self._fun(*args, **kwargs))  # type: ignore[no-any-return]
        if compiled.writes and not compiled.writes_to_unshared(call.fed, call.handles):
            return self._fun(*args, **kwargs)
        if compiled.numbers and compiled.has_array_for_number(call.fed):
            return self._fun(*args, **kwargs)
        if not compiled.assigns_without_history(call.handles):
            return self._fun(*args, **kwargs)
        return compiled.run(call.fed, call.handles, (args, kwargs))  # type: ignore[no-any-return]

    def _traced_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the function itself while a graph is built."""
        try:
            with self._conversion():
                return converted(self._fun)(*args, **kwargs)
        except RecursionError as error:
            raise infinite_recursion(self.__name__, error) from error

    def _conversion(self) -> AbstractContextManager[None]:
        """A context in which the sources of functions are read, unless ``source=False``."""
        return nullcontext() if self._options["source"] else conversion(False)

    def _compiled(
        self,
        state: CapturedState,
        call: CallSignature,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> tuple[CompiledProgram, CallSignature]:
        """The program for a call, found in its family or compiled, by one thread at a time.

        If tracing fails, perhaps because it needs the values of captured arrays, these become
        constants of the program, which are compared at each call. If it still fails, Python
        integers become static arguments (special_arguments.py).
        """
        with self._lock:
            first_error: Exception | None = None
            while True:
                try:
                    compile = functools.partial(self._compile, state)
                    with may_be_wanted(self._numbers.may_be_wanted(args, kwargs)):
                        compiled = state.family(call).find(call, compile)
                    state.captured.rebase()
                    break
                except Labelled:
                    raise
                except Exception as error:
                    is_wanted = isinstance(error, IntegersWanted)
                    if state.captured.feeds and not is_wanted:
                        state, call = self._states.with_fewer_inputs(state, args, kwargs)
                    elif not self._numbers.after_error(error, args, kwargs):
                        raise first_error or error from None
                    else:
                        first_error = first_error or (None if is_wanted else error)
                        call = self._layout.call(args, kwargs, specs=True)
                        state, call = self._states.find(call, args, kwargs)
            if len(state.calls) >= CALLS:
                state.calls = {}
            state.calls[call.key] = compiled
            state.captured.objects = {}
            self._install_entry(state, call, compiled, args, kwargs)
            self._numbers.note_compiled(args, kwargs)
        return compiled, call

    def _add_entry(
        self,
        state: CapturedState,
        call: CallSignature,
        compiled: CompiledProgram,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        """Make an entry point for a call with a new signature."""
        signature = entry_signature(args, kwargs) if self._layout.is_plain else None
        if signature is not None and self._routes.wants(signature, compiled):
            with self._lock:
                self._install_entry(state, call, compiled, args, kwargs)

    def _install_entry(
        self,
        state: CapturedState,
        call: CallSignature,
        compiled: CompiledProgram,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        """Install the native entry point of a program, if it supports calls like this one.

        The entry point replaces `__call__`, in a class of this function alone, so that a call runs
        no Python. It passes calls that it does not support to the slow path.
        """
        captured, plain_call = state.captured, call.given
        if not self._layout.is_plain or plain_call.policy or compiled.numbers:
            return
        signature = entry_signature(args, kwargs)
        if signature is None and plain_call.is_simple:  # specs or tensors, which are rare
            return
        if signature is None:
            self._shortcuts = with_shortcut(self._shortcuts, plain_call, compiled, captured)
            return
        if not self._routes.wants(signature, compiled):
            return
        otherwise = SlowPath(self, Jitted.__call__)
        fallback = self._routes.last(signature, otherwise)
        count, position, feeds = len(signature.kinds), signature.positional, len(captured.feeds)
        entry = compiled.entry(
            WithoutCaptured(fallback, position, feeds) if feeds else fallback, fed=call.fed
        )
        if entry is not None:
            entry = captured.guarded(entry, fallback, count, position)
        if entry is None:
            self._routes.refuse(signature)
            return
        self._routes.add(signature, compiled, entry, otherwise)
        previous, entry = type(self), self._routes.entry
        assert entry is not None
        self.__class__ = type(
            "Jitted", (Jitted,), {"entry": entry, "__call__": staticmethod(entry)}
        )
        _empty(previous)

    def _remove_entries(self) -> None:
        """Remove all native entry points."""
        previous = type(self)
        self.__class__ = Jitted
        _empty(previous)
        self._routes = Routes()
        self._shortcuts = ()

    def _compile(
        self, state: CapturedState, call: CallSignature, shapes: Shapes
    ) -> CompiledProgram:
        """Compile a program for a call, with the given shapes in place of its own."""
        start, options = time.perf_counter(), self._options
        args, kwargs = call.specs(shapes)
        positions, static = call.pinned
        fun, original = self._states.substituted(state, call)
        self._traces += 1

        def trace() -> tuple[Graph, tuple[list[Any], ...]]:
            guards: list[Any] = []
            grads: list[Any] = []
            written: list[int] = []
            assigned: list[AssignedPart] = []
            numbers: list[int] = []
            with self._conversion():
                graph = built(
                    Graph,
                    fun,
                    args,
                    kwargs,
                    positions=positions,
                    static=static,
                    names=self._names(state, args),
                    name=self.__name__,
                    guards=guards,
                    grads=grads,
                    written=written,
                    assigned=assigned,
                    numbers=numbers,
                    original=original,
                    constants=len(args) - 1 if state.captured.feeds else None,
                )
            return graph, (guards, grads, written, assigned, numbers)

        try:
            plain_leaves = [x for x in call.leaves if not isinstance(x, Handle)]
            graph, found = traced_without_draws(self._fun, plain_leaves, trace)
            backend, simplify = self._backend(), options["simplify"]
            simple, executed = simplified(graph, backend, simplify)
            compiled = CompiledProgram(simple, executed, backend, simplify, *found)
            if options["host_callbacks"] != "allow":
                check_host_callbacks(backend, compiled.executed)
            return compiled
        except RecursionError as error:
            raise infinite_recursion(self.__name__, error) from error
        finally:
            self._seconds += time.perf_counter() - start

    def _names(self, state: CapturedState, args: tuple[Any, ...]) -> list[str] | None:
        """The names of the positional arguments, followed by that of the captured arrays."""
        if not state.captured.feeds:
            return None
        count = len(args) - 1
        return [*parameter_names(self._fun, count)[:count], "captured"]

    def _backend(self) -> Backend:
        """The backend, with the options that it supports."""
        options = self._options
        backend = backend_of(options["backend"] or preferred_backend())
        configured = getattr(backend, "configured", None)
        if configured is not None:
            backend = configured(threads=options["threads"])
        strict = getattr(backend, "without_host_callbacks", None)
        return backend if strict is None or options["host_callbacks"] == "allow" else strict()

    # ---- ahead of time, and inspection -----------------------------------------------------------

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """The graph and the program for given arguments, for inspection.

        Parameters
        ----------
        *args, **kwargs
            Arrays and numbers, or specs (`wengert.spec`). With symbolic sizes the program supports
            all sizes.

        Returns
        -------
        Lowered
            ``.graph``, ``.loops``, ``.llvm_ir``, ``.assembly``.
        """
        return Lowered(self._compiled_ahead(args, kwargs))

    def compile(self, *args: Any, **kwargs: Any) -> Jitted[P, R]:
        """Compile ahead of time, for arguments as in `lower`; returns the function itself."""
        self._compiled_ahead(args, kwargs)
        return self

    def address(self, *args: Any, **options: Any) -> Any:
        """The address of a C function, for arguments as in `lower`.

        Captured arrays are constants of the function, copied now.

        Raises
        ------
        BackendError
            The backend does not generate machine code.
        """
        compiled, call = self._executable_program(self._layout.call(args, {}, specs=True), args, {})
        make = getattr(compiled.backend, "address", None)
        if make is None:
            raise BackendError(
                f"the backend {compiled.backend.name!r} generates no machine code, so "
                f"{self.__name__} has no address. Compile it with backend='llvm'{at(user_line())}."
            )
        if call.given is call:
            return make(compiled.executed, **options)
        # Captured arrays are inputs of the program.
        return make(lowered.with_constants(self, args, self._layout.is_plain), **options)

    def export(self, path: Any, specs: Any, **options: Any) -> Any:
        """Write the function, and derivatives of it, as a file for other languages.

        `specs` are the arguments, as of `lower`, in a tuple. The options are those of
        `wengert.compiling.export`: ``derivatives=("value", "gradient")``, ``format="shared"``,
        ``target="aarch64"``.
        """
        return exporting.export(self, path, specs, **options)

    def program(self, /, *args: Any, **kwargs: Any) -> tuple[CompiledProgram, CallSignature]:
        """The program for a call, compiled if there is none, and the signature of the call."""
        call = self._layout.call(args, kwargs)
        if call.traced or recording_session() is not None:
            raise TraceError(
                f"{self.__name__}: the program of a call is not available while a graph is built. "
                f"Call this outside of the traced function, with arrays{at(user_line())}."
            )
        return self._executable_program(call, args, kwargs)

    def _compiled_ahead(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> CompiledProgram:
        return self._executable_program(self._layout.call(args, kwargs, specs=True), args, kwargs)[
            0
        ]

    def _executable_program(
        self, call: CallSignature, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[CompiledProgram, CallSignature]:
        state, call = self._states.find(call, args, kwargs)
        compiled, call = self._compiled(state, call, args, kwargs)
        if compiled.is_inline:
            raise TraceError(
                f"{self.__name__} uses an input of a graph that is built by hand, and cannot be "
                f"compiled without it. Pass it as an argument{at(user_line())}."
            )
        return compiled, call

    def cache_info(self) -> CacheInfo:
        """The number of programs, and the time that they took to compile."""
        states = [s for known in list(self._states.known.values()) for s in known]
        own = lowered.counted(states, self._traces, self._seconds)
        return lowered.added(own, self._of_labelled)

    def clear_cache(self) -> None:
        """Remove all programs; the next call compiles."""
        with self._lock:
            self._states = States(self._fun, self._layout, self._lock)
            self._of_labelled, self._returns_labels = None, False
            self._remove_entries()
            self._traces, self._seconds = 0, 0.0

    def __del__(self, empty: Callable[[type], None] = _empty) -> None:
        # Only the cycle collector frees a class, but the entry point can be freed now.  When the
        # program ends, the names of this module may be gone.
        empty(type(self))

    # ---- protocols of functions ------------------------------------------------------------------

    def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def _like(self, fun: Callable[..., Any]) -> Jitted[..., Any]:
        """Another function, compiled with the same options."""
        return Jitted(fun, self._options)

    def __copy__(self) -> Jitted[P, R]:
        return Jitted(self._fun, self._options)

    def __deepcopy__(self, memo: dict[int, Any]) -> Jitted[P, R]:
        return Jitted(copy.deepcopy(self._fun, memo), self._options)

    def __reduce__(self) -> Any:
        return name_in_module(self) or (Jitted, (self._fun, self._options))

    __repr__, _repr_html_ = lowered.text, lowered.table
