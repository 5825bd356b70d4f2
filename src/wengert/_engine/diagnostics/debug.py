"""Debugging: inspect intermediate values without changing the result.

    debug(...)  find the first NaN or infinity: ``with wengert.debug(nan=True):``
    show       print a value
    retrieve   keep a value, to be read from `retrieved` after the run
    log        append a line of JSON about a value to a file, or send it to a logger
    guard      raise GuardError when a value is out of range, NaN or infinite

Each is an identity, also for derivatives.  Outside of a graph it acts immediately; in a graph it
acts whenever the graph runs, in program order, even if its result is not used.  In a graph that is
built from `wengert.input`, use the result, or name it in ``computation(..., effects=[...])``.
"""

from __future__ import annotations

import os
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.handle import Handle, describe
from wengert._engine.core.lazy_import import public_dir
from wengert._engine.core.static_params import stated
from wengert._engine.core.validation import spelled
from wengert._engine.ops import side_effects
from wengert._engine.ops.side_effects import Retrieved, retrieved
from wengert.errors import ArgumentError, DtypeError, ShapeError, at, user_line

from .nan_switch import Switch

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Operand

__all__ = ["Retrieved", "guard", "log", "retrieve", "retrieved", "show"]


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
        Receives the text at level INFO instead of its being printed.
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
    if logger is not None and not hasattr(logger, "info"):
        raise ArgumentError(f"logger={logger!r} is not a logger{at(user_line())}.")
    return side_effects.show(
        _value(x), **_given(label=_word(label), file=file, logger=logger, gradient=gradient)
    )


def retrieve(x: Array, name: str, *, keep: int = 1, gradient: bool = False) -> Any:
    """Keep a copy of a value under a name, in `retrieved`; return the value.

    Parameters
    ----------
    x : array_like or Tensor
    name : str
    keep : int
        The number of last values to keep: ``retrieved.history(name)``.
    gradient : bool
        Whether to also keep the cotangent, as ``"gradient of <name>"``.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> graph = wg.trace(lambda x: np.sum(wg.debug.retrieve(np.sin(x), "sine")))(wg.spec(2))
    >>> y = graph(np.zeros(2))
    >>> wg.debug.retrieved["sine"]
    array([0., 0.])
    """
    if not isinstance(keep, int) or not 1 <= keep <= sys.maxsize:
        raise ArgumentError(f"keep={keep!r}: keep at least one value{at(user_line())}.")
    if not isinstance(name, str):
        raise ArgumentError(f"the name {name!r} is not a word{at(user_line())}.")
    return side_effects.retrieve(_value(x), **_given(label=name, keep=keep, gradient=gradient))


def log(
    x: Operand,
    to: Any,
    label: str | None = None,
    *,
    bins: int | None = None,
    gradient: bool = False,
) -> Any:
    """Write a line of JSON about a value; return the value.

    The line has ``time``, ``label``, ``dtype``, ``shape``, ``min``, ``max`` and ``mean`` of the
    finite elements (of complex numbers: of their magnitude), how many are ``nan`` or ``inf``, and
    ``where``: the user's line.

    Parameters
    ----------
    x : array_like or Tensor
    to : path or logging.Logger
        A file to append to, in one write for each line; or a logger, at level INFO.
    label : str, optional
    bins : int, optional
        For a histogram of the finite elements, too: ``counts`` of so many bins, and their
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
        raise ArgumentError(f"bins={bins!r}: give a number of bins{at(user_line())}.")
    if not hasattr(to, "info"):
        try:
            to = os.fspath(to)
        except TypeError as error:
            raise ArgumentError(
                f"to={to!r}: give the path of a file, or a logger{at(user_line())}."
            ) from error
    given = _given(label=_word(label), bins=bins, gradient=gradient)
    return side_effects.log(_value(x, numeric=True), to=to, **given)


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
        The least and the largest value allowed.
    finite : bool
        Whether NaN and infinity are errors; if not, NaN passes, and infinity if it is in the
        range.
    label : str, optional
        Its name in the message.
    gradient : bool
        Whether the cotangent is checked in the same way.

    Raises
    ------
    GuardError
        When the value is computed: the message has the label, the first index out of range, the
        element there, and the user's line.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> wg.debug.guard(np.array([0.5, 2.0]), high=1.0, label="p")
    Traceback (most recent call last):
        ...
    wengert.errors.GuardError: the guarded value p, float64[2], is 2.0 at index 1; it must be at
    most 1.0. Inspect the nodes it is computed from (wengert.why, or earlier guards) (at ...).
    """
    for word, bound in (("low", low), ("high", high)):
        if bound is not None and not isinstance(bound, int | float):
            raise ArgumentError(f"{word}={bound!r} is not a number{at(user_line())}.")
    x = _value(x, numeric=True)
    spec = describe(x)
    if (low is not None or high is not None) and spec is not None and spec.dtype.kind == "c":
        raise ArgumentError(
            f"a range for {spec}: complex numbers have no order. Guard their magnitude, "
            f"np.abs(x){at(user_line())}."
        )
    given = _given(low=low, high=high, label=_word(label), gradient=gradient)
    return side_effects.guard(x, finite=bool(finite), **given)


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
        *Values*: the results of operations on tensors, and so all in a function that is
        differentiated; in compiled functions and graphs, all nodes. NumPy's functions of plain
        arrays are not checked; use ``np.errstate(all="raise")`` for them.

        *Derivatives*: an intermediate NaN in a branch that is not taken has no effect and is
        ignored; if a result of a backward pass is NaN, the operation that produced the first is
        reported.

        *Compiled functions* are interpreted node by node while it is on, loops included, so that
        the message names the node and the iteration. Values that the program does not compute are
        not checked: the gradient of ``log(x)`` at -1 is -1, and the logarithm is not computed.

        *Cost*: none while it is off; some microseconds an operation while it is on.

        Examples
        --------
        >>> import numpy as np, wengert as wg
        >>> with np.errstate(all="ignore"), wg.debug(nan=True):
        ...     wg.grad(lambda x: np.sum(np.log(x - 2.0)))(np.ones(1))
        Traceback (most recent call last):
            ...
        wengert.errors.NotFiniteError: log gives nan at index (0,) of float64[1], from float64[1]
        [-1.]: here it begins. Keep ... (at ...).
        """
        return Switch(nan, inf, raises)


sys.modules[__name__].__class__ = _Debug


def _given(**params: Any) -> dict[str, Any]:
    return stated(params)


def _value(x: Operand, numeric: bool = False) -> Any:
    """A value that can be printed, kept, logged or checked."""
    if isinstance(x, Handle):
        return x
    try:
        array = np.asarray(x)
    except ValueError as error:
        raise ShapeError(
            f"{spelled(x)}: {str(error).rstrip('.')}. Give it numbers in rows of equal length"
            f"{at(user_line())}."
        ) from error
    if numeric and array.dtype.kind not in "biufc":
        raise DtypeError(f"{spelled(x)} must be a number or an array of numbers{at(user_line())}.")
    return x if isinstance(x, np.ndarray | np.generic | float | int | complex) else array


def _word(label: int | str | None) -> str | None:
    if label is not None and not isinstance(label, str):
        raise ArgumentError(f"the label {label!r} is not a word{at(user_line())}.")
    return label


__dir__ = public_dir(__name__)
