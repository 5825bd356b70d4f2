"""Debugging: inspect intermediate values without changing the result.

    debug(...)  find the first NaN or infinity: ``with wengert.debug(nan=True):``
    show        print a value
    retrieve    store a value, to be read from `retrieved` after the run
    log         append a line of JSON about a value to a file, or send it to a logger
    guard       raise GuardError if a value is out of range, NaN or infinite
    print, breakpoint, callback    of JAX: functions called when the program runs, in loops too

show, retrieve, log and guard return the value, and derivatives pass through them unchanged.
Outside of a graph they act immediately; in a graph they act whenever it runs, in program order,
even if the result is not used.  In a graph that is built from `wengert.input`, use the result, or
list it in
``computation(..., effects=[...])``.

Switching the NaN checks on and off: ``with wengert.debug(nan=True):``.

Checks apply to a block, or from the call of `wengert.debug` until ``wengert.debug()``.  Inside a
block that turns them off, values are not checked.

Switch    checks turned on or off, permanently or for a block
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from contextvars import ContextVar
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.handle import Handle, describe
from wengert._engine.core.implicit_conversions import gated
from wengert._engine.core.lazy_import import public_dir
from wengert._engine.core.node_properties import stated
from wengert._engine.core.recording import (
    Session,
    current_trace,
    innermost_session,
    open_session,
    paused,
)
from wengert._engine.core.runtime_checks import UNCHECKED, Checks
from wengert._engine.core.thread_state import ScopedValue
from wengert._engine.core.validation import spelled
from wengert._engine.ops import side_effects
from wengert._engine.ops.debug_callbacks import is_logger
from wengert._engine.ops.side_effects import Retrieved, retrieved
from wengert.errors import ArgumentError, DtypeError, NotFiniteError, ShapeError, at, user_line

from . import nan_locator
from .runtime_calls import breakpoint, callback, print

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Operand

__all__ = [
    "Retrieved",
    "breakpoint",
    "callback",
    "guard",
    "log",
    "print",
    "retrieve",
    "retrieved",
    "show",
]


def show(
    x: Operand,
    label: str | None = None,
    *,
    file: Any = None,
    logger: Any = None,
    gradient: bool = False,
) -> Any:
    """Print a value; return it.

    Parameters
    ----------
    x : array_like or Tensor
    label : str, optional
        By default the user's file and line.
    file : file, optional
        Open for writing; by default the standard output at run time.
    logger : logging.Logger, optional
        Receives the text at level INFO; nothing is printed then.
    gradient : bool
        Whether to print the cotangent too.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> f = lambda x: np.sum(wg.debug.show(x * 2.0, "twice", gradient=True) ** 2)
    >>> wg.grad(f)(np.ones(2))
    twice: float64[2] [2. 2.]
    gradient of twice: float64[2] [4. 4.]
    array([8., 8.])

    In a graph it is a node:

    >>> def g(x):
    ...     wg.debug.show(x, "x")
    ...     return x + 1.0
    >>> graph = wg.trace(g)(wg.spec())
    >>> float(graph(1.0))
    x: float64[] 1.0
    2.0
    """
    if file is not None and not hasattr(file, "write"):
        raise ArgumentError(f"file={file!r} is not open for writing{at(user_line())}.")
    if logger is not None and not is_logger(logger):
        raise ArgumentError(f"logger={logger!r} is not a logger{at(user_line())}.")
    return side_effects.show(
        _value(x), **_options(label=_label(label), file=file, logger=logger, gradient=gradient)
    )


def retrieve(x: Array, name: str, *, keep: int = 1, gradient: bool = False) -> Any:
    """Store a copy of a value under a name, in `retrieved`; return the value.

    Parameters
    ----------
    x : array_like or Tensor
    name : str
    keep : int
        The number of values to keep, the latest ones: ``retrieved.history(name)``.
    gradient : bool
        Whether to store the cotangent too, as ``"gradient of <name>"``.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> graph = wg.trace(lambda x: np.sum(wg.debug.retrieve(np.sin(x), "sine")))(wg.spec(2))
    >>> y = graph(np.zeros(2))
    >>> wg.debug.retrieved["sine"]
    array([0., 0.])
    """
    if not isinstance(keep, int) or not 1 <= keep <= sys.maxsize:
        raise ArgumentError(f"keep={keep!r} must be an integer of at least 1{at(user_line())}.")
    if not isinstance(name, str):
        raise ArgumentError(f"the name must be a string, not {name!r}{at(user_line())}.")
    return side_effects.retrieve(_value(x), **_options(label=name, keep=keep, gradient=gradient))


def log(
    x: Operand,
    to: Any,
    label: str | None = None,
    *,
    bins: int | None = None,
    gradient: bool = False,
) -> Any:
    """Write a line of JSON about a value; return the value.

    The line has ``time``, ``label``, ``dtype``, ``shape``; ``min``, ``max`` and ``mean`` of the
    finite elements (for complex numbers, of their magnitudes); the counts ``nan`` and ``inf``; and
    ``where``, the user's line.

    Parameters
    ----------
    x : array_like or Tensor
    to : path or logging.Logger
        A file to append to, in one write for each line; or a logger, at level INFO.
    label : str, optional
    bins : int, optional
        Also log a histogram of the finite elements with this number of bins: ``counts`` and
        ``edges``.
    gradient : bool
        Whether to log the cotangent too.

    Examples
    --------
    >>> import json, pathlib, tempfile, numpy as np, wengert as wg
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "values.jsonl"
    >>> y = wg.debug.log(np.array([1.0, np.nan, 3.0]), path, "x")
    >>> line = json.loads(path.read_text())
    >>> line["label"], line["mean"], line["nan"]
    ('x', 2.0, 1)
    """
    if bins is not None and (not isinstance(bins, int) or isinstance(bins, bool) or bins < 1):
        raise ArgumentError(f"bins={bins!r} must be an integer of at least 1{at(user_line())}.")
    if not is_logger(to):
        try:
            to = os.fspath(to)
        except TypeError as error:
            raise ArgumentError(
                f"to={to!r}: give the path of a file, or a logger{at(user_line())}."
            ) from error
    options = _options(label=_label(label), bins=bins, gradient=gradient)
    return side_effects.log(_value(x, numeric=True), to=to, **options)


def guard(
    x: Operand,
    low: float | None = None,
    high: float | None = None,
    finite: bool = True,
    label: str | None = None,
    *,
    gradient: bool = False,
) -> Any:
    """Return the value, if all its elements are in a range.

    Parameters
    ----------
    x : array_like or Tensor
    low, high : float, optional
        The minimum and the maximum that are allowed.
    finite : bool
        Whether NaN and infinity are errors; if not, NaN is accepted, and so is infinity if it is in
        the range.
    label : str, optional
        Its name in the message.
    gradient : bool
        Whether the cotangent is checked in the same way.

    Raises
    ------
    GuardError
        When the value is computed and an element is out of range. The message has the label, the
        first such index, the element, and the user's line.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> wg.debug.guard(np.array([0.5, 2.0]), high=1.0, label="p")
    Traceback (most recent call last):
        ...
    wengert.errors.GuardError: the guarded value p, float64[2], is 2.0 at index 1; it must be at
    most 1.0. Inspect the nodes it is computed from (wengert.why, or earlier guards) (at ...).
    """
    for name, bound in (("low", low), ("high", high)):
        if bound is not None and not isinstance(bound, int | float):
            raise ArgumentError(f"{name}={bound!r} is not a number{at(user_line())}.")
    x = _value(x, numeric=True)
    spec = describe(x)
    if (low is not None or high is not None) and spec is not None and spec.dtype.kind == "c":
        raise ArgumentError(
            f"a range for {spec}: complex numbers have no order. Guard their magnitude, "
            f"np.abs(x){at(user_line())}."
        )
    options = _options(low=low, high=high, label=_label(label), gradient=gradient)
    return side_effects.guard(x, finite=bool(finite), **options)


class _Debug(ModuleType):
    """The class of this module, so that it can be called."""

    def __call__(self, *, nan: bool = False, inf: bool = False, raises: bool = True) -> Switch:
        """Find the first NaN or infinity, in values and derivatives, eager and compiled.

        Turns the checks on or off; as a context manager or decorator, for the block or function. It
        applies to this thread (or task).

        Parameters
        ----------
        nan, inf : bool
            What to check for. With neither, the checks are turned off.
        raises : bool, default True
            Whether the first one raises an error; otherwise the errors are collected in ``.found``.

        Returns
        -------
        Switch
            ``.found`` is a list of errors.

        Raises
        ------
        NotFiniteError
            At the first NaN or infinity: the message has the operation, its operands, and the
            user's line. It is a GuardError and, like NumPy's own, a FloatingPointError.

        Notes
        -----
        *Values*: the results of all operations on tensors, which includes those in a function that
        is differentiated, and all nodes of compiled functions and graphs. NumPy functions of plain
        arrays are not checked; use ``np.errstate(all="raise")`` for them.

        *Derivatives*: an intermediate NaN in a branch that is not taken has no effect and is
        ignored; if a result of a backward pass is NaN, the operation that produced the first NaN is
        reported.

        *Compiled functions*, including their loops, are interpreted node by node while the checks
        are on, so that the message names the node and the iteration; those of ``backend="cuda"``
        run on the graphics card, and are interpreted if it finds such a value. Values that the
        program does not compute are not checked: the gradient of ``log(x)`` at -1 is -1, and the
        logarithm is not computed.

        *Cost*: none while the checks are off; some microseconds per operation while they are on.

        Examples
        --------
        >>> import numpy as np, wengert as wg
        >>> with np.errstate(all="ignore"), wg.debug(nan=True):
        ...     wg.grad(lambda x: np.sum(np.log(x - 2.0)))(np.ones(1))
        Traceback (most recent call last):
            ...
        wengert.errors.NotFiniteError: log gives nan at index (0,) of float64[1], from float64[1]
        [-1.]: it first occurs here. Keep ... (at ...).
        """
        return Switch(nan, inf, raises)


sys.modules[__name__].__class__ = _Debug


def _options(**params: Any) -> dict[str, Any]:
    """The parameters of an operation, without defaults."""
    return stated(params)


def _value(x: Operand, numeric: bool = False) -> Any:
    """A value that can be printed, stored, logged or checked."""
    if isinstance(x, Handle):
        return x
    try:
        array = np.asarray(x)
    except ValueError as error:
        raise ShapeError(
            f"{spelled(x)}: {str(error).rstrip('.')}. Give nested lists of equal lengths"
            f"{at(user_line())}."
        ) from error
    if numeric and array.dtype.kind not in "biufc":
        raise DtypeError(f"{spelled(x)} must be a number or an array of numbers{at(user_line())}.")
    return x if isinstance(x, np.ndarray | np.generic | float | int | complex) else array


def _label(label: int | str | None) -> str | None:
    if label is not None and not isinstance(label, str):
        raise ArgumentError(f"the label must be a string, not {label!r}{at(user_line())}.")
    return label


__dir__ = public_dir(__name__)


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
