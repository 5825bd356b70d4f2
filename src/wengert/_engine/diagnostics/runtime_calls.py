"""print, breakpoint and callback of `wengert.debug`: functions called when a program runs.

    callback     call a function with values
    print        print values by a format string
    breakpoint   open Python's debugger with the values of the local variables

They have JAX's names and signatures, and act in the order of the program: at each run of a compiled
function, in each step of a loop, for each element of a batch, and in a branch if it is taken.
Derivatives do not call them a second time.
"""

from __future__ import annotations

import bdb
import pdb
import string
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, TextIO

from wengert._engine.core.user_functions import called_at_run_time
from wengert._engine.core.validation import function as check_function
from wengert._engine.ops.debug_callbacks import PendingCall, call_in_order
from wengert.errors import ArgumentError, at, user_line

__all__ = ["breakpoint", "callback", "print"]


@called_at_run_time("callback")
def callback(
    callback: Callable[..., Any], *args: Any, ordered: bool = False, **kwargs: Any
) -> None:
    """Call a function with the values that arguments have when the program runs.

    Parameters
    ----------
    callback : callable
        Its result is ignored; its exceptions end the run.
    *args, **kwargs
        Nested containers; tensors in them become arrays.
    ordered : bool
        Accepted for JAX's signature: calls are always in order.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> seen = []
    >>> @wg.jit
    ... def f(x):
    ...     for i in range(3):
    ...         x = 2.0 * x
    ...         wg.debug.callback(seen.append, x)
    ...     return x
    >>> y = f(1.0)
    >>> np.array(seen).tolist()
    [2.0, 4.0, 8.0]
    """
    check_function(callback, "debug.callback")
    call_in_order(PendingCall(callback, args, kwargs))


def print(fmt: str, *args: Any, ordered: bool = False, **kwargs: Any) -> None:
    """Print values when the program runs.

    Parameters
    ----------
    fmt : str
        A format string as of `str.format`: ``"x is {x}, y is {y:.3f}"``.
    *args, **kwargs
        The values; nested containers become those of arrays.
    ordered : bool
        Accepted for JAX's signature: lines are always in order.

    Raises
    ------
    ArgumentError
        The string names a value that is not given, or does not name one that is.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> def f(x):
    ...     wg.debug.print("x is {x}", x=x)
    ...     return np.sum(x**2)
    >>> wg.jit(wg.grad(f))(np.array([1.0, 2.0]))
    x is [1. 2.]
    array([2., 4.])
    """
    _check_format(fmt, args, kwargs)
    call_in_order(PendingCall(_write, (fmt, *args), kwargs))


def _write(fmt: str, *args: Any, **kwargs: Any) -> None:
    # A single write, so that lines of concurrent threads do not interleave.
    sys.stdout.write(fmt.format(*args, **kwargs) + "\n")


def _check_format(fmt: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    if not isinstance(fmt, str):
        raise ArgumentError(
            f"debug.print({fmt!r}): the first argument must be a format string. Write "
            f'debug.print("{{}}", x){at(user_line())}.'
        )
    try:
        fields = [name for _, name, _, _ in string.Formatter().parse(fmt) if name is not None]
    except ValueError as error:
        raise ArgumentError(f"debug.print({fmt!r}): {error}{at(user_line())}.") from error
    names = [name.replace("[", ".").partition(".")[0] for name in fields]
    positions = {str(k) for k in range(len([n for n in names if not n]))}
    used = {n for n in names if n} | positions
    given = {str(k) for k in range(len(args))} | set(kwargs)
    for found, what in ((used - given, "names {}, which is not given"),
                        (given - used, "does not name {}, which is given")):  # fmt: skip
        if found:
            raise ArgumentError(
                f"debug.print({fmt!r}): the string {what.format(sorted(found)[0])}. A place is "
                f"{{}}, {{0}} or {{name}}{at(user_line())}."
            )


def breakpoint(*, stdin: TextIO | None = None, stdout: TextIO | None = None) -> None:
    r"""Open Python's debugger when the program runs, with the values of the local variables.

    Commands are those of `pdb`; ``c`` continues, and ``q`` ends the program. Local variables cannot
    be changed, and ``n`` and ``s`` continue too: the lines have been compiled.

    Parameters
    ----------
    stdin, stdout : file, optional
        Where it reads and writes; by default the terminal.

    Examples
    --------
    >>> import io, wengert as wg
    >>> def f(x):
    ...     y = 3.0 * x
    ...     wg.debug.breakpoint(stdin=io.StringIO("p y\nc\n"), stdout=written)
    ...     return y
    >>> written = io.StringIO()
    >>> float(wg.jit(f)(2.0))
    6.0
    >>> "6.0" in written.getvalue()
    True
    """
    frame = sys._getframe(1)
    place = _Place(frame, stdin, stdout)
    call_in_order(PendingCall(place.open, (dict(frame.f_locals),), {}))


class _Place:
    """A line of the program, at which a debugger opens."""

    def __init__(self, frame: FrameType, stdin: Any, stdout: Any) -> None:
        self._globals = frame.f_globals
        self._file, self._line = frame.f_code.co_filename, frame.f_lineno
        self._stdin, self._stdout = stdin, stdout

    def open(self, variables: dict[str, Any]) -> None:
        """Open a debugger with these local variables."""
        debugger = pdb.Pdb(
            stdin=self._stdin, stdout=self._stdout, nosigint=True, readrc=self._stdin is None
        )
        name = "__wengert_debugger__"

        def interact() -> None:
            debugger.reset()
            debugger.interaction(sys._getframe(1), None)

        # A frame with the values, at the user's line.
        code = compile("\n" * (self._line - 1) + f"{name}()", self._file, "exec")
        exec(code, {**self._globals, name: interact}, variables)
        sys.settrace(None)
        if debugger.quitting:
            raise bdb.BdbQuit
