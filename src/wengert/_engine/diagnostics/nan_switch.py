"""Switching the NaN checks on and off: ``with wengert.debug(nan=True):``.

Checks apply to a block, or from the call of `wengert.debug` until ``wengert.debug()``.  Inside a
block that turns them off, values are not checked.

Switch    checks turned on or off, permanently or for a block
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import ExitStack
from contextvars import ContextVar
from typing import Any

from wengert._engine.core.implicit_conversions import gated
from wengert._engine.core.recording import (
    Session,
    current_trace,
    innermost_session,
    open_session,
    paused,
)
from wengert._engine.core.runtime_checks import UNCHECKED, Checks
from wengert._engine.core.thread_state import ScopedValue
from wengert.errors import ArgumentError, NotFiniteError, at, user_line

from . import nan_locator


class Switch:
    """NaN checks turned on or off, until changed or, as a context manager, for a block.

    Attributes
    ----------
    found : list of NotFiniteError
        With ``raises=False``, the errors.
    """

    def __init__(self, nan: bool = False, inf: bool = False, raises: bool = True) -> None:
        for name, option in (("nan", nan), ("inf", inf), ("raises", raises)):
            if not isinstance(option, bool):
                raise ArgumentError(
                    f"debug({name}={option!r}): {name} must be True or False{at(user_line())}."
                )
        self._settings = nan, inf, raises
        self._checks = Checks(*self._settings, nan_locator)
        self._closing = ExitStack()
        self._lasting: list[Switch] = []  # permanent switches, which this one turns off
        self._outer = _lasting.get()
        if not nan and not inf:
            while self._outer is not None:
                self._lasting.append(self._outer)
                self._outer.close()
                self._outer = self._outer._outer
            _lasting.set(None)
        self._begin()

    def _begin(self) -> None:
        """Apply the settings."""
        is_on = self._checks.nan or self._checks.inf
        if current_trace() is not None or (not is_on and innermost_session() is None):
            return  # a graph is being built, which has no values, or there is nothing to turn off
        if is_on:
            self._closing.enter_context(paused())
            self._closing.enter_context(gated())
            session = Session(watching=True)
            session.checks, session.reads = self._checks, _NullList()
            session_block = open_session(session, self)
            self._closing.callback(session_block.end, True)
            _lasting.set(self)
        block = ScopedValue(not is_on)
        block.end_with(self)
        UNCHECKED.open(block)
        self._closing.callback(block.end, True)

    @property
    def found(self) -> list[NotFiniteError]:
        """With ``raises=False``, the errors."""
        return self._checks.found

    def close(self) -> None:
        """Restore the previous state."""
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
        """Wrap a function to run with these settings (a decorator)."""
        with self:
            settings = self._settings

        @functools.wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            with Switch(*settings):
                return function(*args, **kwargs)

        return checked


_lasting: ContextVar[Switch | None] = ContextVar("wengert_lasting_checks", default=None)


class _NullList(list[Any]):
    """A list that discards what is appended."""

    def append(self, item: Any) -> None:
        """Do nothing."""
