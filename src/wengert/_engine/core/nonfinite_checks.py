"""Checking: finding the first NaN or infinity, while it is on and at no cost while it is off.

`wengert.debug(nan=True)` opens a session (recording.py) with `Checks`.  The one door (dispatch.py)
shows it every value; what sweeps and compiled graphs compute is shown by those who run them
(autodiff/nan_gradients.py, backends/interpreter/nonfinite_checks.py).  Where none is open, the door
looks at a number that it looks at anyway.

    Checks    what is looked for, and what has been found
    Switch    turns it on or off: from where it is made, or for a block
    here      the checks that hold here
    unseen    a block in which values are not looked at: a sweep looks at what it returns
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from wengert.errors import ArgumentError, NotFiniteError, at, user_line

from .dynamic_scope import Block, Blocks
from .lazy_import import Late
from .policy import gated
from .recording import Session, naming, open_session, paused, session
from .spec import spec_of

_bodies = Late("wengert._engine.core.nan_locator")
_unseen: Blocks[bool] = Blocks("wengert_unseen", False)
SHOWN = 6  # an array of no more elements is shown as it is
ADVICE = (
    "Keep the operands away from there (np.where around them, or clip them), or look at where they "
    "come from (wengert.debug.show, wengert.why); if it is meant, put the line into a block "
    "`with wengert.debug(nan=False):`"
)


class Checks:
    """What is looked for, and what has been found.

    Attributes
    ----------
    nan, inf : bool
        Whether NaN and infinities are looked for.
    raises : bool
        Whether the first one raises.
    found : list of NotFiniteError
        What has been found, if it does not raise.
    """

    def __init__(self, nan: bool, inf: bool, raises: bool) -> None:
        self.nan, self.inf, self.raises = nan, inf, raises
        self.found: list[NotFiniteError] = []

    def is_bad(self, value: Any) -> bool:
        """Whether there is one in a value: an array, a number, a tuple of them."""
        return self.first(value) is not None

    def first(self, value: Any) -> tuple[Any, tuple[int, ...]] | None:
        """The first one in a value, and its index; None if there is none."""
        if type(value) in (tuple, list):
            return next((f for f in map(self.first, value) if f is not None), None)
        if isinstance(value, dict):  # the cotangents of several outputs
            return self.first(tuple(value.values()))
        if not isinstance(value, np.ndarray | np.generic | float | complex):
            return None
        array = np.asarray(value)
        if array.dtype.kind not in "fc" or array.size == 0:
            return None
        with np.errstate(all="ignore"):
            if np.isfinite(np.add.reduce(array, axis=None)):  # one sum, as a rule
                return None
            mask = np.isnan(array) if self.nan else np.zeros(array.shape, bool)
            if self.inf:
                mask = mask | np.isinf(array)
        if not mask.any():
            return None
        index = tuple(int(i) for i in np.unravel_index(int(np.argmax(mask)), array.shape))
        return array[index], index

    def look(self, op: Any, params: Any, values: Sequence[Any], value: Any) -> None:
        """Look at what an operation made of its operands."""
        if self.is_bad(value) and not _unseen.get():
            if op.kind == "control":
                _bodies.look_inside(self, op, params, values)
            self.tell(op.name, values, value, user_line())

    def tell(self, name: str, values: Sequence[Any], value: Any, where: str | None) -> None:
        """Raise, or keep, what an operation made of its operands.

        Raises
        ------
        NotFiniteError
        """
        given = [i for i, v in enumerate(values) if self.is_bad(v)]
        if given and not self.raises:
            return  # it was found, or given, before
        element, index = self.first(value) or (None, ())
        place = f" at index {index}" if index else ""
        operands = "; ".join(short(v) for v in values)
        if given:
            words = (
                f"it was there before: operand {given[0]} has it, and no operation in this block "
                "made it. Look where that comes from"
            )
        else:
            words = f"here it begins. {ADVICE}"
        self.report(
            f"{name} gives {element}{place} of {spec_of(value)}, from {operands}: {words}", where
        )

    def report(self, text: str, where: str | None) -> None:
        """Raise a message, or keep it."""
        error = NotFiniteError(f"{text}{at(where)}.")
        if self.raises:
            raise error
        self.found.append(error)


def short(value: Any) -> str:
    """A value in a few words: what it is, and its elements or their range."""
    if type(value) is tuple:
        return f"({', '.join(map(short, value))})"
    if not isinstance(value, np.ndarray | np.generic):
        return repr(value)[:40]
    spec = spec_of(value)
    if value.size <= SHOWN:
        return f"{spec} {np.array2string(np.asarray(value), precision=6, separator=', ')}"
    if value.dtype.kind not in "iufb":
        return str(spec)
    finite = np.asarray(value)[np.isfinite(value)]
    counts = [(int(f(value).sum()), word) for f, word in ((np.isnan, "nan"), (np.isinf, "inf"))]
    odd = "".join(f", {n} of {value.size} {word}" for n, word in counts if n)
    reach = f" from {np.min(finite):.6g} to {np.max(finite):.6g}" if finite.size else ""
    return f"{spec}{reach}{odd}"


def here() -> Checks | None:
    """The checks that hold here, if any."""
    opened = naming()
    return None if opened is None or _unseen.get() else opened.checks


@contextmanager
def unseen() -> Iterator[None]:
    """A block in which values are not looked at."""
    block = Block(True)
    try:
        _unseen.open(block)
        yield
    finally:
        block.end(True)
        _unseen.forget()


class Switch:
    """Checks turned on, or off: from where it is made, or, as a block, until its end.

    Attributes
    ----------
    found : list of NotFiniteError
        With ``raises=False``, what has been found.
    """

    def __init__(self, nan: bool = False, inf: bool = False, raises: bool = True) -> None:
        for name, given in (("nan", nan), ("inf", inf), ("raises", raises)):
            if not isinstance(given, bool):
                raise ArgumentError(
                    f"debug({name}={given!r}): it is True or False{at(user_line())}."
                )
        self._settings = nan, inf, raises
        self._checks = Checks(*self._settings)
        self._closing = ExitStack()
        self._lasting: list[Switch] = []  # switches without a block, which this one turns off
        self._outer = _lasting.get()
        if not nan and not inf:
            while self._outer is not None:
                self._lasting.append(self._outer)
                self._outer.close()
                self._outer = self._outer._outer
            _lasting.set(None)
        self._begin()

    def _begin(self) -> None:
        """Let it hold from here."""
        is_on = self._checks.nan or self._checks.inf
        if session() is not None or (not is_on and naming() is None):
            return  # a graph is being built, where no value is known; or nothing is on
        if is_on:
            self._closing.enter_context(paused())
            self._closing.enter_context(gated())
            opened = Session(watching=True)
            opened.checks, opened.reads = self._checks, _Nowhere()
            session_block = open_session(opened, self)
            self._closing.callback(session_block.end, True)
            _lasting.set(self)
        block = Block(not is_on)
        block.end_with(self)
        _unseen.open(block)
        self._closing.callback(block.end, True)

    @property
    def found(self) -> list[NotFiniteError]:
        """With ``raises=False``, what has been found."""
        return self._checks.found

    def close(self) -> None:
        """End what it began."""
        self._closing.close()

    def __enter__(self) -> Switch:
        if _lasting.get() is self:
            _lasting.set(self._outer)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        for other in reversed(self._lasting):
            other._begin()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function that runs with these settings (a decorator)."""
        with self:
            settings = self._settings

        @functools.wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            with Switch(*settings):
                return function(*args, **kwargs)

        return checked


_lasting: ContextVar[Switch | None] = ContextVar("wengert_lasting_checks", default=None)


class _Nowhere(list[Any]):
    """A list that keeps nothing."""

    def append(self, item: Any) -> None:
        """Nothing."""
