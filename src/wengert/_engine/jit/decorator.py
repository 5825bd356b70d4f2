"""The decorator `jit` and its options.

Options are checked here, once.  The docstring of `jit` says which values are inputs of the program,
which are compared at each call, and which are constants.

    jit    the decorator; returns a `Jitted` (jitted.py)
"""

from __future__ import annotations

import difflib
import functools
import inspect
import warnings
from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np

from wengert._engine.backends import Backend
from wengert._engine.backends import backend as backend_of
from wengert._engine.core.validation import integers, spelled, words
from wengert.errors import ArgumentError, at, user_line

from .jitted import Jitted, P, R


@overload
def jit(
    fun: np.ufunc,
    *,
    static_argnums: int | Sequence[int] = ...,
    static_argnames: str | Sequence[str] = ...,
    backend: str | Backend | None = ...,
    threads: int | None = ...,
    host_callbacks: str = ...,
    simplify: bool = ...,
    source: bool = ...,
) -> Jitted[..., Any]: ...


@overload
def jit(
    fun: Callable[P, R],
    *,
    static_argnums: int | Sequence[int] = ...,
    static_argnames: str | Sequence[str] = ...,
    backend: str | Backend | None = ...,
    threads: int | None = ...,
    host_callbacks: str = ...,
    simplify: bool = ...,
    source: bool = ...,
) -> Jitted[P, R]: ...


@overload
def jit(
    fun: None = None,
    *,
    static_argnums: int | Sequence[int] = ...,
    static_argnames: str | Sequence[str] = ...,
    backend: str | Backend | None = ...,
    threads: int | None = ...,
    host_callbacks: str = ...,
    simplify: bool = ...,
    source: bool = ...,
) -> Callable[[Callable[P, R]], Jitted[P, R]]: ...


def jit(
    fun: Callable[..., Any] | None = None,
    *,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    backend: str | Backend | None = None,
    threads: int | None = None,
    host_callbacks: str = "allow",
    simplify: bool = True,
    source: bool = True,
    islands: str | None = None,
    **unknown: Any,
) -> Any:
    """Compile a function: the first call traces it into a graph, and later calls run its program.

    Parameters
    ----------
    fun : callable, optional
        A function of arrays and numbers, or of nested containers of them; a method, a graph, a
        module. Without it, `jit` returns a decorator with the given options.
    static_argnums, static_argnames : int or str, or a sequence of them, optional
        Static arguments: they are constants of the program, and each new value compiles another
        program. Arguments that are neither arrays nor numbers are always static.
    backend : str or Backend, optional
        The backend to compile with; by default native code where LLVM is available.
    threads : int, optional
        The maximum number of threads that the program may use; by default the backend decides.
    host_callbacks : {"allow", "forbid"}
        Whether operations without a native implementation may be called back in Python. A
        condition that raises is allowed: Python is called only to raise.
    simplify : bool, default True
        Whether to simplify the graph first.
    source : bool, default True
        Whether the source of the function, and of the user's functions that it calls, is read, so
        that loops and branches become nodes of the graph. Otherwise the function is only traced:
        loops are unrolled, and a branch on a value is an error.
    islands : str, optional
        Deprecated name of `host_callbacks`.
    **unknown
        Options of other libraries, and misspelled ones, are an error that names the right one.

    Returns
    -------
    Jitted
        Called like `fun`, with the methods ``lower``, ``compile``, ``address``, ``cache_info`` and
        ``clear_cache``.

    Raises
    ------
    TracedBranchError
        When called, if a branch depends on a value in code that is not read from source (a
        library, ``source=False``). The message names the node.
    TraceError
        When called, if the function needs an unknown value, or draws random numbers that
        every run would repeat.
    BackendError
        When called with ``host_callbacks="forbid"``, if an operation would be called back.
    ArgumentError
        If an option is invalid, or a static argument is an array.
    TypeError
        If there is no such option.

    Notes
    -----
    *Arguments and captured values.* Arguments are inputs of the program, including Python numbers.
    Parameters and variables (`wengert.variable`) that the function reads are read at each call, and
    those that it assigns are updated after each call. Captured arrays (globals, closures, defaults,
    attributes) are inputs too; other captured values are compared at each call, and the function is
    traced again when one has changed. Programs are cached for the last 8 sets of captured values,
    and for the last 64 signatures of each set. A change of the mode of a module (``train()``,
    ``eval()``) or of a frozen parameter is detected.

    *Shapes.* The first call compiles for the shapes of its arguments. A call with other sizes
    compiles one more program, for all sizes. If that is not possible, because the function loops
    over an axis or depends on a size, one program is compiled for each shape.

    *Loops and branches.* ``for`` over ranges and arrays, ``while``, ``if``, ``and``, ``or``,
    ``break``, ``continue`` and early ``return`` become loops and branches of the program, so that
    the time to compile does not grow with the number of iterations. A loop of at most 8 iterations
    with a short body is unrolled, and so is any loop over a container of Python, over
    `wengert.unroll`, and one that cannot be traced once (`explain` says why). Python integers that
    are needed as lengths become static arguments; so do, for the first few values, integers without
    which the lengths of slices in a loop are not known to be equal.

    *Derivatives.* ``jit(grad(f))`` compiles the derivative. In ``grad(jit(f))``, and if a tensor
    that requires a gradient is passed to a compiled function, the call is recorded as one
    operation, whose derivatives of all orders are compiled as well.

    *Cost.* A call takes the time to look up its program. Compiling takes one run of the function
    and the time of the backend.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> @wg.jit
    ... def energy(x, k):
    ...     return 0.5 * k * np.sum(x * x)
    >>> float(energy(np.array([1.0, 2.0]), 3.0))
    7.5
    >>> wg.jit(wg.grad(energy))(np.array([1.0, 2.0]), 3.0)
    array([3., 6.])
    >>> energy.cache_info().programs
    1
    """
    if unknown:
        raise _unknown_option(*next(iter(unknown.items())))
    if islands is not None:
        warnings.warn("jit: islands is now host_callbacks.", DeprecationWarning, stacklevel=2)
        host_callbacks = islands
    if host_callbacks not in ("allow", "forbid"):
        raise ArgumentError(
            f"host_callbacks={host_callbacks!r}: must be 'allow', which calls operations without a "
            f"native implementation back in Python, or 'forbid', which refuses "
            f"them{at(user_line())}."
        )
    if threads is not None and (not isinstance(threads, int) or threads < 1):
        raise ArgumentError(
            f"threads={spelled(threads)}: must be an integer of at least 1{at(user_line())}."
        )
    if backend is not None:
        backend_of(backend)
    options = {
        "static_argnums": tuple(integers(static_argnums, "static_argnums")),
        "static_argnames": tuple(words(static_argnames, "static_argnames")),
        "backend": backend,
        "threads": threads,
        "host_callbacks": host_callbacks,
        "simplify": bool(simplify),
        "source": bool(source),
    }
    if fun is None:
        return functools.partial(Jitted, options=options)
    return Jitted(fun, options)


_OPTIONS = tuple(inspect.signature(jit).parameters)[1:-2]
_OF_OTHERS = {
    "fallback": "host_callbacks='allow' (the default: what a backend lacks runs on the host), or "
    "host_callbacks='forbid' (it is an error)",
    "fullgraph": "host_callbacks='forbid'",
    "nopython": "host_callbacks='forbid'",
    "device": "backend='cuda'",
}


def _unknown_option(name: str, value: object) -> TypeError:
    """The error for an option that `jit` does not have."""
    near = difflib.get_close_matches(name, _OPTIONS, 1)
    if name in _OF_OTHERS:
        advice = f"Here it is {_OF_OTHERS[name]}"
    elif near:
        advice = f"Did you mean {near[0]}?"
    else:
        advice = f"Its options are {', '.join(_OPTIONS)}"
    return TypeError(f"jit has no option {name}={spelled(value)}. {advice}{at(user_line())}.")
