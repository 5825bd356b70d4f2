"""Shape polymorphism: programs shared by calls that differ only in array sizes.

The first call compiles a program for its sizes.  At a call with other sizes, the function is traced
again, with a symbolic size wherever old and new size differ, and the same one for equal pairs (old,
new).  This general program supports batches of any size.

If a function cannot be traced with symbolic sizes (it loops over an axis, or compares a size with
3), one program is compiled for each shape.  This is also done for shapes that the general program
does not support: with a size of zero, with different sizes where it has one symbolic size, or with
equal sizes that the function compared.

Garbage collection: a higher threshold while a function is traced and compiled.

Compiling allocates tens of thousands of small objects, nearly all of which survive or are freed by
reference counting.  Collections of the young generation after every 700 objects, and of older
generations, would take a tenth of the time of the first call.

    relaxed_gc    a context manager that raises the threshold
"""

from __future__ import annotations

import gc
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from wengert._engine.core.symbolic.constraints import dim
from wengert._engine.core.symbolic.dim import Comparisons, Dim, names_in, valued
from wengert._engine.core.thread_state import lock

from .call_signature import CallSignature
from .compiled_program import EXACT, CompiledProgram

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
