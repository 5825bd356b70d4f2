"""`wengert.profile`: time and memory of a compiled function by source line.

The function is compiled again with timers, and run a few times; its side effects occur once.  The
backend measures (`Backend.timed`), and the result is a `Profile` (profiling/profile.py).

    profile    the transformation
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from wengert._engine.backends import Backend
from wengert._engine.core.validation import spelled
from wengert._engine.profiling.profile import Profile
from wengert.errors import ArgumentError, at, user_line

from .decorator import jit
from .jitted import Jitted


def profile(
    fun: Callable[..., Any],
    *,
    repeats: int | None = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    backend: str | Backend | None = None,
    threads: int | None = None,
) -> Callable[..., Profile]:
    """Return a function that profiles a compiled call of `fun`.

    Parameters
    ----------
    fun : callable
        A function of arrays, which is compiled as by `jit`; or a compiled function, a derivative
        (``wg.grad(f)``), a graph, a module.
    repeats : int, optional
        The number of measured runs; by default as many as fit a tenth of a second, at least 3.
    static_argnums, static_argnames, backend, threads
        As for `jit`; not allowed if `fun` is already compiled.

    Returns
    -------
    callable
        ``profile(fun)(*args)`` returns a `Profile`: print it, show it in a notebook, or read
        ``rows`` (fused loops, calls, host callbacks, and the bodies of loops), ``by_line()`` (your
        lines), ``seconds``, ``peak``, ``value`` (the result of the function); ``to_svg()``,
        ``to_json()`` and ``save(path)`` write it.

    Raises
    ------
    ArgumentError
        `fun` is not a function, or an option is invalid.
    TraceError
        The function cannot be compiled, or is profiled while a graph is built.
    BackendError
        The backend does not support profiling.

    Notes
    -----
    *What is measured.* A second program with a timer around each step, and if there are loops a
    third one with timers inside them, are compiled and run in addition to the program that calls
    use. The overhead of the timers is subtracted. Times are per call: the lower quartile of all
    runs, which is close to that of an idle machine.

    *Your lines.* A fused loop computes several nodes; its time is distributed among them by
    estimated work (an addition 1, an exponential 23, an element of memory 1 to 25 depending on the
    level of the cache), and such lines are marked. Floating-point operations and bytes are
    estimates too.

    *Side effects.* Variables and arguments are written to once, as by one call. Operations that
    print or call back into Python do so in each run.

    *Cost.* The function is compiled up to three times, and run for half a second.

    See Also
    --------
    explain : what a function does, without running it.
    wengert.Graph.profile : a graph by the interpreter, node by node.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> def f(x):
    ...     return np.sum(np.exp(-x * x))
    >>> seen = wg.profile(wg.grad(f), repeats=10)(np.linspace(0.0, 1.0, 1000))
    >>> [row.kind for row in seen.rows]
    ['nest', 'around']
    >>> [line.text for line in seen.by_line() if line.text]
    ['return np.sum(np.exp(-x * x))']
    >>> round(sum(node.share for node in seen.by_line()), 6)
    1.0
    """
    _check_repeats(repeats)
    options: dict[str, Any] = {
        "static_argnums": static_argnums,
        "static_argnames": static_argnames,
        "backend": backend,
        "threads": threads,
    }
    if isinstance(fun, Jitted):
        given_options = [name for name, x in options.items() if x is not None and x != ()]
        if given_options:
            raise ArgumentError(
                f"{', '.join(given_options)}: {fun.__name__} is already compiled, with its own "
                f"options. Give them to jit, or profile the plain function{at(user_line())}."
            )
        compiled = fun
    else:
        compiled = jit(_checked(fun), **options)

    def profiled(*args: Any, **kwargs: Any) -> Profile:
        """The profile of a call with these arguments."""
        program, call = compiled.program(*args, **kwargs)
        run = functools.partial(compiled, *args, **kwargs)
        timing = program.timed(call.fed, repeats, run)
        return Profile(compiled.__name__, run(), timing)

    return profiled


def _checked(fun: Any) -> Any:
    if not callable(fun):
        raise ArgumentError(
            f"profile of {spelled(fun)}, which is not a function. Pass the function, and call the "
            f"result with its arguments: profile(f)(x){at(user_line())}."
        )
    return fun


def _check_repeats(repeats: int | str | None) -> None:
    if repeats is None:
        return
    if not isinstance(repeats, int) or isinstance(repeats, bool) or repeats < 1:
        raise ArgumentError(
            f"repeats={spelled(repeats)}: must be an integer of at least 1{at(user_line())}."
        )
