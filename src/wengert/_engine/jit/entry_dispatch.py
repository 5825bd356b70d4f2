"""Dispatch of calls to the native entry points of a compiled function, one for each signature.

Signatures differ in types, dtypes, numbers of axes and layouts of the arguments, and in which are
keywords.  If there are several, one entry point dispatches to the others
(backends/llvm/abi/dispatch.py), so that a second signature does not make the first one slower.

    entry_signature  the signature of a call
    Routes           the entry points of a function
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wengert._engine.core.lazy_import import LazyModule

from .compiled_program import CompiledProgram
from .settings import ENTRIES, ROUTES

if TYPE_CHECKING:
    from wengert._engine.backends.llvm.abi import dispatch
else:  # most functions have one signature
    dispatch = LazyModule("wengert._engine.backends.llvm.abi.dispatch")

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
            dispatch.Route(
                signature.positional, signature.names, signature.kinds, signature.order, entry
            )
            for signature, (_, entry) in self._known.items()
        ]
        self.entry = dispatch.dispatching(routes, otherwise)


def _is_c_contiguous(signature: EntrySignature) -> bool:
    """Whether all arrays are C-contiguous."""
    return all(cls is not np.ndarray or layout & 1 for cls, _, _, layout in signature.kinds)
