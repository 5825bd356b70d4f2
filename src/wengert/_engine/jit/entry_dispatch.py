"""Dispatch of calls to the native entry points of a compiled function, one for each signature.

Signatures differ in types, dtypes, numbers of axes and layouts of the arguments, and in which are
keywords.  If there are several, one entry point dispatches to the others
(backends/llvm/abi/guarded_entries.py), so that a second signature does not make the first one
slower.

    entry_signature  the signature of a call
    Routes           the entry points of a function

Fast path for calls with containers, directly to a native entry point.

Flattening a call takes ten times longer than running a small program, and nearly every call has the
structure of the previous one.  So Python code is generated for the structure of a call: a matcher,
which checks whether the containers of another call have this structure, and returns the leaves.
The entry point checks their dtypes and shapes.  Other calls take the slow path.

    Shortcut         for one structure of arguments: matcher, entry point, structure of results
    with_shortcut    the shortcuts of a function, and a new one
    SlowPath         the call through Python, to which native entry points fall back
    WithoutCaptured  drops captured arrays from the arguments of such a call
    MISSED           the result of a shortcut for a call that it does not support
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wengert._engine.core import pytree
from wengert._engine.core.conversion_hook import is_immutable
from wengert._engine.core.lazy_import import LazyModule
from wengert._engine.graphs.captures import Captured

from .call_signature import CallSignature, IdentityKey
from .compiled_program import ENTRIES, ROUTES, STRUCTURES, CompiledProgram

if TYPE_CHECKING:
    from wengert._engine.backends.llvm.abi import guarded_entries
else:  # most functions have one signature
    guarded_entries = LazyModule("wengert._engine.backends.llvm.abi.guarded_entries")

_NUMBERS = frozenset((float, int, bool, complex))
_LAYOUT = 0x103  # C-contiguous, Fortran-contiguous, aligned
_MIN_CALLS = 2  # with arrays that are not C-contiguous, until an entry point is made for them


class EntrySignature(NamedTuple):
    """The signature of a call for native dispatch.

    positional : the number of positional arguments.
    names : the keyword arguments, in order.
    kinds : for each argument its type; for arrays also dtype number, number of axes and layout.
    """

    positional: int
    names: tuple[str, ...]
    kinds: tuple[tuple[type, int, int, int], ...]

    @property
    def order(self) -> tuple[int, ...]:
        """The arguments in the order of a graph's inputs: by position, then by name."""
        count = self.positional
        named = sorted(range(len(self.names)), key=self.names.__getitem__)
        return (*range(count), *(count + k for k in named))


def entry_signature(args: tuple[Any, ...], kwargs: dict[str, Any]) -> EntrySignature | None:
    """The signature of a call with arrays and numbers; None for any other."""
    kinds: list[tuple[type, int, int, int]] = []
    for x in (*args, *kwargs.values()) if kwargs else args:
        cls = type(x)
        if cls is np.ndarray:
            kinds.append((cls, x.dtype.num, x.ndim, x.flags.num & _LAYOUT))
        elif cls in _NUMBERS or isinstance(x, np.generic):
            kinds.append((cls, -1, 0, 0))
        else:
            return None
    return EntrySignature(len(args), tuple(kwargs), tuple(kinds))


class Routes:
    """The native entry points of a function.

    Attributes
    ----------
    entry : callable or None
        The replacement of the function's ``__call__``.
    """

    def __init__(self) -> None:
        self.entry: Callable[..., Any] | None = None
        self._known: dict[EntrySignature, tuple[list[CompiledProgram], Callable[..., Any]]] = {}
        self._seen: dict[EntrySignature, int] = {}

    def wants(self, signature: EntrySignature, compiled: CompiledProgram) -> bool:
        """Whether to make an entry point for calls with this signature to this program."""
        if signature in self._known and compiled in self._known[signature][0]:
            return False
        seen = self._seen.get(signature, 0)
        if len(self._seen) < 16 * ROUTES or seen:
            self._seen[signature] = seen + 1
        return seen >= 0 and (seen + 1 >= _MIN_CALLS or _is_c_contiguous(signature))

    def refuse(self, signature: EntrySignature) -> None:
        """Never make an entry point for calls with this signature."""
        self._seen[signature] = -(1 << 30)

    def last(self, signature: EntrySignature, otherwise: Callable[..., Any]) -> Callable[..., Any]:
        """The callable that a new entry point for this signature falls back to."""
        known = self._known.get(signature)
        if known is None or len(known[0]) >= ENTRIES:
            return otherwise
        return known[1]

    def add(
        self,
        signature: EntrySignature,
        compiled: CompiledProgram,
        entry: Callable[..., Any],
        otherwise: Callable[..., Any],
    ) -> None:
        """Add an entry point for calls with this signature, which is tried before the others."""
        programs = self._known[signature][0] if signature in self._known else []
        if len(programs) >= ENTRIES:
            programs = []
        if signature not in self._known and len(self._known) >= ROUTES:
            del self._known[next(iter(self._known))]
        self._known[signature] = [*programs, compiled], entry
        if len(self._known) == 1 and not signature.names:
            self.entry = entry
            return
        routes = [
            guarded_entries.Route(
                signature.positional, signature.names, signature.kinds, signature.order, entry
            )
            for signature, (_, entry) in self._known.items()
        ]
        self.entry = guarded_entries.dispatching(routes, otherwise)


def _is_c_contiguous(signature: EntrySignature) -> bool:
    """Whether all arrays are C-contiguous."""
    return all(cls is not np.ndarray or layout & 1 for cls, _, _, layout in signature.kinds)


MISSED: Any = object()
_MAX_LEAVES = 1000
Match = Callable[[tuple[Any, ...], dict[str, Any]], Sequence[Any] | None]


class Shortcut:
    """The fast path of calls whose arguments have the same structure.

    Attributes
    ----------
    programs : tuple of CompiledProgram
        The programs that it calls.
    """

    __slots__ = ("_entry", "_match", "_results", "_structure", "_unfed", "programs")

    def __init__(
        self,
        call: CallSignature,
        programs: tuple[CompiledProgram, ...],
        entry: Callable[..., Any],
        match: Match,
    ) -> None:
        self.programs = programs
        self._structure = call.structure
        self._unfed = [(k, IdentityKey(x)) for k, x in call.unfed]
        self._match, self._entry = match, entry
        self._results = None if programs[-1].is_single else programs[-1].results

    @classmethod
    def after(
        cls,
        existing: Shortcut | None,
        call: CallSignature,
        compiled: CompiledProgram,
        captured: Captured,
    ) -> Shortcut | None:
        """The shortcut `existing`, or a new one, extended by this call; None if not possible."""
        if existing is not None and not existing._may_precede(compiled):
            existing = None
        programs = existing.programs if existing else ()
        if compiled in programs:
            return existing
        match = None if call.policy else _matcher(call)
        if match is None:
            return None
        fallback = existing._entry if existing else _missed
        count, position = len(call.fed), call.positional
        feeds = len(captured.feeds)
        entry = compiled.entry(
            WithoutCaptured(fallback, position, feeds) if feeds else fallback, flat=True
        )
        if entry is not None:
            entry = captured.guarded(entry, fallback, count, position)
        if entry is None:
            return None
        return cls(call, (*programs, compiled), entry, match)

    def matches(self, call: CallSignature) -> bool:
        """Whether a call has this structure, and the same leaves that are not inputs."""
        unfed = [(k, IdentityKey(x)) for k, x in call.unfed]
        return self._structure == call.structure and self._unfed == unfed

    def _may_precede(self, compiled: CompiledProgram) -> bool:
        """Whether another program may be tried before those of this shortcut."""
        last = self.programs[-1].results
        return len(self.programs) < ENTRIES and last == compiled.results

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of the function, or `MISSED`."""
        leaves = self._match(args, kwargs)
        if leaves is None:
            return MISSED
        result = self._entry(*leaves)
        if result is MISSED or self._results is None:
            return result
        structure, live = self._results
        if len(result) < len(live):
            remaining = iter(result)
            result = [next(remaining) if is_present else None for is_present in live]
        return pytree.unflatten(structure, result)


def with_shortcut(
    known: tuple[Shortcut, ...], call: CallSignature, compiled: CompiledProgram, captured: Captured
) -> tuple[Shortcut, ...]:
    """The shortcuts of a function, with one for calls like this one if possible."""
    existing = next((s for s in known if s.matches(call)), None)
    shortcut = Shortcut.after(existing, call, compiled, captured)
    if shortcut is None:
        return known
    return (shortcut, *[s for s in known if s is not existing][: STRUCTURES - 1])


def _missed(*_: Any) -> Any:
    return MISSED


class SlowPath:
    """A call through Python, for native entry points; has a weak reference to avoid a cycle."""

    __slots__ = ("_call", "_of")

    def __init__(self, of: Any, call: Callable[..., Any]) -> None:
        self._of, self._call = weakref.ref(of), call

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The result of the function."""
        of = self._of()
        assert of is not None
        return self._call(of, *args, **kwargs)


class WithoutCaptured:
    """A callable that drops the captured arrays from its arguments.

    Parameters
    ----------
    fun : callable
    position, count : int
        The position of the arrays, and their number.
    """

    __slots__ = ("_fun", "_position", "_rest")

    def __init__(self, fun: Callable[..., Any], position: int, count: int) -> None:
        self._fun, self._position, self._rest = fun, position, position + count

    def __call__(self, *args: Any) -> Any:
        """The result for the other arguments."""
        return self._fun(*args[: self._position], *args[self._rest :])


def _matcher(call: CallSignature) -> Match | None:
    """A function that returns the leaves of a call, or None if the call has another structure.

    The result is None if there are containers that are not built-in.  Objects are compared by
    identity here, because guards of captured values detect their changes.
    """
    if len(call.leaves) > _MAX_LEAVES:
        return None
    writer = _Matching()
    try:
        writer.container("args", call.unflattened(range(len(call.leaves)))[0])
        writer.container("kwargs", call.unflattened(range(len(call.leaves)))[1])
    except TypeError:
        return None
    if writer.leaves != len(call.leaves):
        return None
    for k, x in call.unfed:
        writer.require(f"leaf{k} is {writer.reference(x)}")
    unfed = {k for k, _ in call.unfed}
    return writer.function([f"leaf{k}" for k in range(len(call.leaves)) if k not in unfed])


class _Matching:
    """The source code of a matcher."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._constants: dict[str, Any] = {}
        self._containers = 0
        self.leaves = 0

    def constant(self, x: Any) -> str:
        """The name of a constant."""
        name = f"constant{len(self._constants)}"
        self._constants[name] = x
        return name

    def reference(self, x: Any) -> str:
        """An expression for an object, by a weak reference if possible."""
        if is_immutable(x):
            return self.constant(x)
        try:
            return f"{self.constant(weakref.ref(x))}()"
        except TypeError:
            return self.constant(x)

    def require(self, condition: str) -> None:
        self._lines.append(f"if not ({condition}): return None")

    def container(self, name: str, x: Any) -> None:
        """Match a container, in which leaves are represented by their positions.

        Raises
        ------
        TypeError
            It is not a built-in container.
        """
        cls = type(x)
        if cls not in (dict, list, tuple) and not hasattr(cls, "_fields"):
            raise TypeError  # subclasses too, because users may define how they are accessed
        self.require(f"type({name}) is {self.constant(cls)} and len({name}) == {len(x)}")
        for key, inner in x.items() if cls is dict else enumerate(x):
            if type(inner) is int:
                self.leaves += 1
                variable = f"leaf{inner}"
            else:
                self._containers += 1
                variable = f"inner{self._containers}"
            self._lines.append(f"{variable} = {name}[{self.constant(key)}]")
            if type(inner) is not int:
                self.container(variable, inner)

    def function(self, leaves: list[str]) -> Match:
        """The matcher, which returns these leaves."""
        body = [*self._lines, f"return ({''.join(f'{leaf}, ' for leaf in leaves)})"]
        source = ["def match(args, kwargs):", " try:", *(f"  {line}" for line in body)]
        source += [" except KeyError:", "  return None"]
        exec("\n".join(source), self._constants)
        return self._constants.pop("match")  # type: ignore[no-any-return]
