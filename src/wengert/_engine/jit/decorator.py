"""The decorator `jit` and its options.

Options are checked here, once; what they mean for a call is decided by what the decorator makes.
Its docstring says what is fed, what is compared and what is fixed.

    jit    the decorator; what it makes is a `Jitted` (jitted.py)
"""

from __future__ import annotations

import functools
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
    islands: str = ...,
    simplify: bool = ...,
) -> Jitted[..., Any]: ...


@overload
def jit(
    fun: Callable[P, R],
    *,
    static_argnums: int | Sequence[int] = ...,
    static_argnames: str | Sequence[str] = ...,
    backend: str | Backend | None = ...,
    threads: int | None = ...,
    islands: str = ...,
    simplify: bool = ...,
) -> Jitted[P, R]: ...


@overload
def jit(
    fun: None = None,
    *,
    static_argnums: int | Sequence[int] = ...,
    static_argnames: str | Sequence[str] = ...,
    backend: str | Backend | None = ...,
    threads: int | None = ...,
    islands: str = ...,
    simplify: bool = ...,
) -> Callable[[Callable[P, R]], Jitted[P, R]]: ...


def jit(
    fun: Callable[..., Any] | None = None,
    *,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    backend: str | Backend | None = None,
    threads: int | None = None,
    islands: str = "allow",
    simplify: bool = True,
) -> Any:
    """Compile a function: its first call writes it down as a graph, and later calls run that.

    Parameters
    ----------
    fun : callable, optional
        A function of arrays and numbers, or of nested containers of them; a method, a graph, a
        module. Without it, a decorator with the options given.
    static_argnums, static_argnames
        Arguments that are a part of the program: another value needs another program. What is
        neither an array nor a number is static anyway.
    backend : str or Backend, optional
        What compiles; by default the best there is.
    threads : int, optional
        How many the program may use; by default the backend decides.
    islands : {"allow", "forbid"}
        Whether operations that cannot be compiled are called back in Python.
    simplify : bool, default True
        Whether the graph is simplified first.

    Returns
    -------
    Jitted
        Called as `fun`. Its ``lower``, ``compile``, ``address``, ``cache_info`` and ``clear_cache``
        are documented there.

    Raises
    ------
    TracedBranchError
        When it is called: a branch of the function depends on a value. The message names the line.
    TraceError
        It needs a value in another way, or draws random numbers that every run would use again.
    BackendError
        ``islands="forbid"``, and an operation would be called back.
    ArgumentError
        An option that cannot be, or a static argument that is an array.

    Notes
    -----
    *What is fed and what is fixed.* Arguments are fed, Python numbers among them. Parameters and
    variables (`wengert.variable`) that the function reads are read at each call, and what it writes
    to them is written after each. Arrays that it captures (globals, closures, defaults, attributes)
    are fed, too; other captured values are compared at each call, and where one has changed the
    function is traced again. The last 8 sets of captured values have programs, each for the last
    64 ways of calling; what falls out is let go. The mode of a module (``train()``, ``eval()``) and
    whether a parameter is frozen are noticed.

    *Sizes.* The first call compiles for its shapes. A call with other lengths compiles once more,
    for all of them. Where that cannot be, because the function loops over rows or asks for a
    length, each shape has its own program.

    *Derivatives.* ``jit(grad(f))`` compiles the derivative. With ``grad(jit(f))``, and where a
    tensor that requires a gradient meets a compiled function, one line is recorded, whose
    derivatives of all orders are compiled too.

    *Cost.* A call costs no more than finding its program. Compiling costs a run of the function,
    and what the backend takes.

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
    if islands not in ("allow", "forbid"):
        raise ArgumentError(
            f"islands={islands!r}: 'allow' calls operations that cannot be compiled back in "
            f"Python, 'forbid' refuses them{at(user_line())}."
        )
    if threads is not None and (not isinstance(threads, int) or threads < 1):
        raise ArgumentError(
            f"threads={spelled(threads)}: how many may run at once, at least 1{at(user_line())}."
        )
    if backend is not None:
        backend_of(backend)
    options = {
        "static_argnums": tuple(integers(static_argnums, "static_argnums")),
        "static_argnames": tuple(words(static_argnames, "static_argnames")),
        "backend": backend,
        "threads": threads,
        "islands": islands,
        "simplify": bool(simplify),
    }
    if fun is None:
        return functools.partial(Jitted, options=options)
    return Jitted(fun, options)
