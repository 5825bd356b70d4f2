"""`wengert.profile`: where time and memory of a compiled function go.

What compiles is compiled once more, with clocks in it, and run a few times; what a call leaves
behind is left once.  The figures are a backend's (`Backend.timed`), what is made of them is a
`Profile` (profiling/profile.py).

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
    """Return a function that says where time and memory go when `fun` is called compiled.

    Parameters
    ----------
    fun : callable
        A function of arrays, which is compiled as by `jit`; or one that is compiled already, a
        derivative (``wg.grad(f)``), a graph, a module.
    repeats : int, optional
        How often it is run to be measured; by default as often as fits into a tenth of a second,
        at least 3 times.
    static_argnums, static_argnames, backend, threads
        As for `jit`; of a compiled function they are what it was compiled with.

    Returns
    -------
    callable
        ``profile(fun)(*args)`` returns a `Profile`: print it, let a notebook draw it, or read
        ``rows`` (nests, calls, host callbacks, and what is inside loops), ``by_line()`` (your
        nodes), ``seconds``, ``peak``, ``value`` (what the function returned); ``to_svg()``,
        ``to_json()`` and ``save(path)`` write it.

    Raises
    ------
    ArgumentError
        `fun` is not a function, an option cannot be, or is given for a function that is compiled.
    TraceError
        The function cannot be compiled, or is profiled while a graph is built.
    BackendError
        The backend has no clock to look into a run with.

    Notes
    -----
    *What is measured.* A second program with a clock around each step, and if there are loops a
    third with clocks inside them, are compiled and run beside the one that calls run, which stays
    as it is. What reading the clocks costs is known and taken off. Times are those of one call, of
    all runs the lower quartile: what it would be if nobody else used the machine.

    *Your nodes.* A nest computes what several nodes asked for at once; its time is shared out among
    them by estimated work (an addition 1, an exponential 23, an element of memory 1 to 25 by how
    far away it lies), and such nodes are marked. Floating-point operations and bytes are estimates,
    too.

    *What is left behind.* Variables and arguments are written to once, as by one call. Operations
    that print or call back take place in every run.

    *Cost.* Compiling up to three times, and half a second of runs.

    See Also
    --------
    explain : what a function does, without running it.
    wengert.Graph.profile : a graph by the interpreter, line by line.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> def f(x):
    ...     return np.sum(np.exp(-x * x))
    >>> seen = wg.profile(wg.grad(f), repeats=10)(np.linspace(0.0, 1.0, 1000))
    >>> [row.kind for row in seen.rows]
    ['nest', 'around']
    >>> seen.by_line()[0].text
    'return np.sum(np.exp(-x * x))'
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
        chosen = [name for name, x in options.items() if x is not None and x != ()]
        if chosen:
            raise ArgumentError(
                f"{', '.join(chosen)}: {fun.__name__} is compiled already, with options of its "
                f"own. Give them to jit, or profile the plain function{at(user_line())}."
            )
        compiled = fun
    else:
        compiled = jit(_checked(fun), **options)

    def profiled(*args: Any, **kwargs: Any) -> Profile:
        """Where time and memory go in a call with these arguments."""
        program, call = compiled.program(*args, **kwargs)
        run = functools.partial(compiled, *args, **kwargs)
        timing = program.timed(call.fed, repeats, run)
        return Profile(compiled.__name__, run(), timing)

    return profiled


def _checked(fun: Any) -> Any:
    if not callable(fun):
        raise ArgumentError(
            f"profile of {spelled(fun)}, which is not a function. Give the function, and call what "
            f"comes back with its arguments: profile(f)(x){at(user_line())}."
        )
    return fun


def _check_repeats(repeats: int | str | None) -> None:
    if repeats is None:
        return
    if not isinstance(repeats, int) or isinstance(repeats, bool) or repeats < 1:
        raise ArgumentError(
            f"repeats={spelled(repeats)}: how often to run, an integer of at least 1"
            f"{at(user_line())}."
        )
