"""Traced scalars: numbers of native code that NumPy's functions accept as arrays.

The functions of a family (scipy/special/register.py) are written with NumPy, for arrays.
They are traced once with these scalars in place of arrays: NumPy's protocols dispatch their calls
here, where instructions are emitted.  So there is one formula for both.

    x[mask]         the number, if the mask holds: a branch
    x[mask] = y     stored in that branch; x is in memory from then on
    x[i, None]      the number at many points of an integral: broadcast
    mask.any()      True: code that may be needed is emitted, and skipped at run time
    x += y          a new number under the old name

A traced scalar has length 1.  Arrays of objects, such as the coefficients of power series, may
contain traced scalars; NumPy's operations apply to each of them.

    Scope     where the instructions of a value are emitted; `branch` and `loop` open nested scopes
    deepest   the innermost of several scopes
    sees      whether a value of one scope can be used in another

Straight-line text is a *stage*.  A branch or a loop separates two stages of its scope, and has a
scope of its own inside:

    stage 0    branch (scope: stage 0, loop (scope ...), stage 1)    stage 1    loop    stage 2 ...

A value is emitted into the last stage of its operands.  So a value that depends on stage 0 only is
computed before the branch, whenever it is requested, and all later code may use it; a load from
memory that a branch has written belongs to the stage after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..ir.ir_builder import Function, Name, Section
from ..ir.llvm_types import C128, F64, in_register, part_of
from ..ir.memory_access import load, store
from ..ir.simd_value import ComplexLane, Lane
from .scipy_symbols import UnsupportedFunction


class Scope:
    """A part of a function with its branches and loops.

    Parameters
    ----------
    container : Section
        Its text.
    homes : dict
        The scope and number of every stage; all scopes of a function share it.
    condition : str
        The i1 under which it is reached, in addition to the conditions of its parent.

    Attributes
    ----------
    stages : list of Section
    opened : int
        The number of the parent's stage that it follows.
    depth : int
    """

    def __init__(
        self,
        container: Section,
        homes: dict[Section, tuple[Scope, int]],
        parent: Scope | None = None,
        condition: Name = "",
    ) -> None:
        self.container, self.homes = container, homes
        self.parent, self.condition = parent, condition
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.opened = -1 if parent is None else len(parent.stages) - 1
        self.stages: list[Section] = []
        self._branches: list[Scope] = []
        self.advance()

    @property
    def function(self) -> Function:
        """The function that it belongs to."""
        return self.container.function

    @property
    def now(self) -> Section:
        """The last stage."""
        return self.stages[-1]

    def advance(self) -> None:
        """Begin a new stage, after all that has been emitted."""
        stage = self.container.inside()
        self.homes[stage] = (self, len(self.stages))
        self.stages.append(stage)

    def chain(self) -> Iterable[Scope]:
        """The scope and its ancestors, innermost first."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent

    def branch(self, condition: Name, stage: int) -> Scope:
        """The scope of code that runs only if a condition holds; it sees stages up to `stage`."""
        for known in self._branches:
            if known.condition == condition and known.opened >= stage:
                return known
        n = self.function.number()
        ahead = self.container.inside()
        ahead.write(f"br i1 {condition}, label %then{n}, label %done{n}")
        ahead.label(f"then{n}")
        body = Scope(self.container.inside(), self.homes, self, condition)
        behind = self.container.inside()
        behind.block(f"done{n}")
        self.advance()
        self._branches.append(body)
        return body

    def loop(self, stop: Name) -> LoopScope:
        """A loop that counts from 0 up to an i64, exclusive; `finish` closes it."""
        return LoopScope(self, stop)


class LoopScope:
    """A loop that is being emitted.

    Attributes
    ----------
    ahead : Section
        The section before it.
    body : Scope
    Its i64 counter, in the body.
        The i64 that counts, in the body.
    """

    def __init__(self, scope: Scope, stop: Name) -> None:
        self.scope, self._n = scope, scope.function.number()
        self.ahead = scope.container.inside()
        head = scope.container.inside()
        self._cell = scope.function.slot("i64")
        head.write(f"store i64 0, ptr {self._cell}")
        head.block(f"head{self._n}")
        self.counter = head.value(f"load i64, ptr {self._cell}")
        more = head.value(f"icmp slt i64 {self.counter}, {stop}")
        head.write(f"br i1 {more}, label %body{self._n}, label %done{self._n}")
        head.label(f"body{self._n}")
        self.body = Scope(scope.container.inside(), scope.homes, scope, f"body{self._n}")

    def leave_unless(self, condition: Name) -> None:
        """Leave the loop here if a condition of the body is false."""
        n, body = self.scope.function.number(), self.body
        text = body.container.inside()
        text.write(f"br i1 {condition}, label %go{n}, label %done{self._n}")
        text.label(f"go{n}")
        body.advance()

    def finish(self) -> Section:
        """The section at the end of the body; the loop is closed after it."""
        last = self.body.container.inside()
        end = self.scope.container.inside()
        following = end.value(f"add nsw i64 {self.counter}, 1")
        end.write(f"store i64 {following}, ptr {self._cell}")
        end.write(f"br label %head{self._n}")
        end.label(f"done{self._n}")
        self.scope.advance()
        return last


def deepest(scopes: Iterable[Scope]) -> Scope:
    """The innermost of nested scopes; the later of siblings."""
    return max(scopes, key=lambda s: (s.depth, s.container.rank))


def sees(scope: Scope, other: Scope, stage: int) -> bool:
    """Whether a value of a stage of another scope can be used at the end of this one."""
    if scope is other:
        return True
    return any(s.parent is other and s.opened >= stage for s in scope.chain())


class TracedScalar(np.lib.mixins.NDArrayOperatorsMixin):
    """One number, or one for each point of an integral.

    Parameters
    ----------
    writer : ScalarBuilder
        Emits operations and loops.
    scope : Scope
        The scope in which it is computed.
    """

    shape, ndim, size = (1,), 1, 1

    def __init__(self, writer: Any, value: Any, scope: Scope) -> None:
        self.writer, self._value, self.scope = writer, value, scope
        self._slot = ""
        self._written = 0  # the rank of the last section in its scope that wrote it

    # ---- value and scope -----------------------------------------------------------------------

    @property
    def value(self) -> Any:
        """The lane, or the pair of a complex number; loaded if it is in memory."""
        if not self._slot:
            return self._value
        width = max(1, self._value.width)
        language = self.writer.language
        return load(language, self.scope.now, self._slot, self._value.dtype, width, None)

    @property
    def stage(self) -> int:
        """The index of the stage of its scope in which it is computed."""
        value = self.value
        found = None if value.section is None else self.scope.homes[value.section]
        return found[1] if found is not None and found[0] is self.scope else 0

    def seen_in(self, scope: Scope) -> Any:
        """The lane or pair, for use in a scope.

        A value from a sibling branch under the same condition is passed in memory.

        Raises
        ------
        AssertionError
            It is not known there.
        """
        value = self.value
        if value.section is None or sees(scope, self.scope, self.stage):
            return value
        known = {s.condition for s in scope.chain()}
        own = [s for s in self.scope.chain() if s not in set(scope.chain())]
        if not own or not all(s.condition in known for s in own):
            raise AssertionError(f"{self} is not known under {sorted(known)}")
        language, width = self.writer.language, max(1, value.width)
        slot = self._place(value)
        store(language, self.scope.now, slot, value, width, None)
        return load(language, scope.now, slot, value.dtype, width, None)

    @property
    def dtype(self) -> Any:
        """The NumPy dtype."""
        return self._value.dtype

    @property
    def real(self) -> Any:
        """The real part."""
        return self._part("real")

    @real.setter
    def real(self, part: TracedScalar) -> None:
        self._replace(part, self.imag)

    @property
    def imag(self) -> Any:
        """The imaginary part."""
        if self.dtype.kind == "c":
            return self._part("imag")
        return self.writer.constant(0.0, self.scope)

    @imag.setter
    def imag(self, part: TracedScalar) -> None:
        self._replace(self.real, part)

    def _part(self, name: str) -> Any:
        value = self.value
        return self.writer.wrapped(getattr(value, name, value), self.scope)

    def _replace(self, real: TracedScalar, imag: TracedScalar) -> None:
        language = self.writer.language
        self.scope = deepest([self.scope, real.scope, imag.scope])
        parts = [language.cast(x.seen_in(self.scope), F64) for x in (real, imag)]
        self._value = ComplexLane(language, parts[0], parts[1], C128)

    def __len__(self) -> int:
        return 1

    def __bool__(self) -> bool:
        raise TypeError("a traced scalar has no boolean value while code is generated")

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise UnsupportedFunction("an array of a traced scalar")

    def __repr__(self) -> str:
        return f"<element {self._value}>"

    # ---- array interface -----------------------------------------------------------------------

    def any(self, *_: Any) -> bool:
        """True: the code that depends on it is emitted, and skipped at run time."""
        return True

    def astype(self, dtype: np.dtype[Any]) -> TracedScalar:
        """The value in another dtype."""
        cast = self.writer.language.cast(self.value, np.dtype(dtype))
        return self.writer.wrapped(cast, self.scope)  # type: ignore[no-any-return]

    def copy(self) -> TracedScalar:
        """A copy that changes independently."""
        return self.writer.wrapped(self.value, self.scope)  # type: ignore[no-any-return]

    def __getitem__(self, index: tuple[slice | None, ...] | TracedScalar) -> Any:
        mask = index[0] if isinstance(index, tuple) else index
        if not isinstance(mask, TracedScalar) or mask.dtype.kind != "b":
            return self.copy()  # a column, a row, or the points of some elements
        if mask.value.width == 0:
            return self.copy()
        kept = self.copy()  # loaded before the branch
        scope = self.writer.branch(mask, [kept])
        return self.writer.wrapped(_moved(kept.seen_in(scope), scope), scope)

    def __setitem__(self, mask: Any, x: Any) -> None:
        x = x.copy() if isinstance(x, TracedScalar) else self.writer.constant(x, mask.scope)
        inside = mask.value.name in [s.condition for s in x.scope.chain()]
        self.in_memory()
        scope = x.scope if inside else self.writer.branch(mask, [self, x])
        language, dtype = self.writer.language, self._value.dtype
        section = scope.now
        place = next((s.container for s in scope.chain() if s.parent is self.scope), section)
        if place.rank < self._written:
            raise AssertionError("two branches write an element out of order")
        self._written = place.rank
        value = _moved(language.cast(x.seen_in(scope), dtype), scope)
        store(language, section, self._slot, value, max(1, self._value.width), None)

    def in_memory(self) -> None:
        """Move it to a stack slot, to which branches can write."""
        if self._slot:
            return
        value, language = self._value, self.writer.language
        width = max(1, value.width)
        self._slot = self._place(value)
        home = self.scope.stages[0]
        if value.section is not None and value.section in self.scope.homes:
            found, number = self.scope.homes[value.section]
            home = self.scope.stages[number] if found is self.scope else home
        store(language, home, self._slot, value, width, None)
        self._written = home.rank

    def _place(self, value: Any) -> str:
        number = max(1, value.width) * (2 if type(value) is ComplexLane else 1)
        kind = in_register(part_of(value.dtype))
        return self.scope.function.slot(f"[{number} x {kind}]", 64)

    # ---- NumPy's protocols ---------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        out = options.pop("out", None)
        if out is not None and out[0] is not None and out[0] is not inputs[0]:
            raise UnsupportedFunction(f"{ufunc.__name__} into another array")
        if method != "__call__" or any(v is not None for v in options.values()):
            raise UnsupportedFunction(f"{ufunc.__name__}.{method}")
        arrays = [x for x in inputs if isinstance(x, np.ndarray) and x.ndim]
        if any(x.dtype != object for x in arrays):
            raise UnsupportedFunction(f"{ufunc.__name__} of an array and a traced scalar")
        if arrays:
            return over_objects(ufunc, *inputs)
        return self.writer.called(ufunc, inputs)

    def __array_function__(
        self,
        function: Any,
        _: tuple[type[Any], ...],
        inputs: tuple[float | TracedScalar, ...],
        options: dict[Any, Any],
    ) -> Any:
        known = FUNCTIONS.get(function)
        if known is None:
            raise UnsupportedFunction(function.__name__)
        return known(*inputs, **options)


def _moved(value: Any, scope: Scope) -> Any:
    """The same value in a scope that can see it."""
    if type(value) is ComplexLane:
        real, imag = _moved(value.real, scope), _moved(value.imag, scope)
        return ComplexLane(value.language, real, imag, value.dtype)
    if value.width == 0:
        return value
    return Lane(value.language, scope.stages[0], value.name, value.dtype, value.width)


def over_objects(function: Callable[..., Any], *inputs: Any) -> Any:
    """A function of arrays of objects, applied to each element."""
    arrays = [x if isinstance(x, np.ndarray) else _boxed(x) for x in inputs]
    shape = np.broadcast_shapes(*[x.shape for x in arrays])
    found = np.empty(shape, object)
    spread = [np.broadcast_to(x, shape) for x in arrays]
    for place in np.ndindex(shape):
        found[place] = function(*[x[place] for x in spread])
    return found


def _boxed(x: TracedScalar) -> Any:
    box = np.empty((), object)
    box[()] = x
    return box


# ---- functions of NumPy that are not ufuncs-------------------------------------------------------


def _where(condition: Any, x: Any, y: Any) -> Any:
    if any(isinstance(v, np.ndarray) and v.ndim for v in (condition, x, y)):
        return over_objects(_where, condition, x, y)
    writer = next(v.writer for v in (condition, x, y) if isinstance(v, TracedScalar))
    return writer.chosen(condition, x, y)


def _like(value: Any) -> Callable[..., Any]:
    def made(x: TracedScalar, dtype: type[Any] | None = None) -> TracedScalar:
        made = x.writer.constant(np.dtype(dtype or x.dtype).type(value), x.scope)
        return made  # type: ignore[no-any-return]

    return made


def _full_like(x: TracedScalar, value: float, dtype: type[Any] | None = None) -> Any:
    if isinstance(value, TracedScalar):
        return value.copy()
    return x.writer.constant(np.dtype(dtype or x.dtype).type(value), x.scope)


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.where: _where,
    np.clip: lambda x, low, high: np.minimum(np.maximum(x, low), high),
    np.zeros_like: _like(0),
    np.empty_like: _like(0),
    np.ones_like: _like(1),
    np.full_like: _full_like,
    np.any: lambda x, *_: True,
    np.round: lambda x: np.rint(x),
    np.real: lambda x: x.real,
    np.imag: lambda x: x.imag,
    np.iscomplexobj: lambda x: x.dtype.kind == "c",
    np.broadcast_to: lambda x, shape: x,
    np.shape: lambda x: (),
    np.ndim: lambda x: 0,
}
