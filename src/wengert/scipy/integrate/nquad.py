"""Integrals of functions of several numbers: nquad, dblquad, tplquad.

With tensors they are nested integrals by `quad`: the inner ones are functions of the outer
variables, so that derivatives with respect to limits that are functions follow from those of
`quad`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import scipy.integrate

from wengert._engine.core import pytree
from wengert._engine.core.conversion_hook import converted
from wengert._engine.core.handle import Handle
from wengert._engine.core.recording import no_grad
from wengert.errors import ArgumentError, at, user_line

from .quad import inner_point, quad

__all__ = ["dblquad", "nquad", "tplquad"]


def nquad(
    func: Callable[..., Any],
    ranges: Sequence[Any],
    args: Any = None,
    opts: Any = None,
    full_output: bool = False,
) -> Any:
    """The integral of a function of several numbers, as ``scipy.integrate.nquad``.

    Parameters
    ----------
    func : callable
        ``func(x0, ..., xn, *args)``, a number; captured tensors are differentiated.
    ranges : sequence
        For each variable the two limits, numbers or tensors, or a function of the later variables
        (and `args`) that returns them.
    args : tuple, optional
        Further arguments, which are differentiated.
    opts : dict or sequence of dict, optional
        Arguments of `quad`, for all variables or each. Functions are not supported with tensors.
    full_output : bool
        Not supported with tensors.

    Returns
    -------
    float or Tensor
        The integral.
    float or Tensor
        With tensors, the estimate of the error of the outermost integral.

    Raises
    ------
    ArgumentError
        An option is given that is not supported with tensors.

    See Also
    --------
    quad : about derivatives.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.integrate import nquad
    >>> def volume(r):
    ...     return nquad(lambda y, x: r * x * y, [lambda x: (0, x), (0, r)])[0]
    >>> wg.jit(wg.grad(volume))(2.0).round(9)  # r^5 / 8
    np.float64(10.0)
    """
    given = args if isinstance(args, tuple) else () if args is None else (args,)
    called = converted(func) if callable(func) else func
    limits = [_limits_of(r) for r in ranges]
    if not _uses_tensors(called, limits, ranges, given):
        return scipy.integrate.nquad(func, ranges, args, opts, full_output)
    if full_output:
        raise ArgumentError(
            "nquad with full_output=True and tensors: not supported. Leave it out"
            f"{at(user_line())}."
        )
    return _nested(func, limits, _options(opts, len(limits)), (), given)


def _limits_of(limits: Any) -> Callable[..., Any]:
    """The limits of a variable as a function of the later ones, converted where it is called."""
    return lambda *xs: converted(limits)(*xs) if callable(limits) else limits


def _options(opts: Any, count: int) -> list[dict[str, Any]]:
    each = [opts] * count if opts is None or isinstance(opts, Mapping) or callable(opts) else opts
    if any(map(callable, each)):
        raise ArgumentError(
            "nquad with functions in opts and tensors: not supported. Use dicts, or nested calls "
            f"of quad{at(user_line())}."
        )
    return [dict(o or {}) for o in each]


def _nested(
    f: Callable[..., Any],
    limits: Sequence[Callable[..., Any]],
    options: Sequence[dict[str, Any]],
    outer: tuple[Any, ...],
    args: tuple[Any, ...],
) -> Any:
    """The integral over the first variables, for given values of the later ones."""
    low, high = limits[-1](*outer, *args)
    rest = limits[:-1]

    def integrand(x: Any) -> Any:
        if not rest:
            return converted(f)(x, *outer, *args)
        return _nested(f, rest, options[:-1], (x, *outer), args)[0]

    return quad(integrand, low, high, **options[-1])


def _uses_tensors(
    f: Any, limits: Sequence[Callable[..., Any]], ranges: Sequence[Any], args: tuple[Any, ...]
) -> bool:
    """Whether tensors are among the arguments or limits, or captured by a function."""
    fixed = [r for r in ranges if not callable(r)]
    if any([isinstance(x, Handle) for x in pytree.flatten((fixed, args))[0]]):
        return True
    if not callable(f):
        return False
    point: tuple[float, ...] = ()
    with no_grad():
        for limit in reversed(limits):
            ends = list(limit(*point, *args))
            if any([isinstance(x, Handle) for x in ends]):
                return True
            point = (inner_point(*map(float, ends)), *point)
        result = f(*point, *args)
    return any([isinstance(x, Handle) for x in pytree.flatten(result)[0]])


def _function_of(limit: Any, arguments: int) -> Callable[..., Any]:
    """A limit, a number or a function, as a function of `arguments` numbers."""
    if not callable(limit):
        return lambda *_: limit
    return lambda *xs: converted(limit)(*xs[:arguments])


def dblquad(
    func: Callable[..., Any],
    a: Any,
    b: Any,
    gfun: Any,
    hfun: Any,
    args: tuple[Any, ...] = (),
    epsabs: float = 1.49e-8,
    epsrel: float = 1.49e-8,
) -> Any:
    """The integral of func(y, x) over a region of the plane, as ``scipy.integrate.dblquad``.

    Parameters
    ----------
    func : callable
        Takes y and x (and `args`); captured tensors are differentiated.
    a, b : float or Tensor
        The limits of x.
    gfun, hfun : callable, float or Tensor
        The limits of y, or functions of x.
    args : tuple
        Further arguments, which are differentiated.
    epsabs, epsrel : float
        The tolerances of each integral.

    Returns
    -------
    float or Tensor
        The integral.
    float or Tensor
        An estimate of the error.

    See Also
    --------
    quad : about derivatives.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.integrate import dblquad
    >>> area = lambda r: dblquad(lambda y, x: x * y, 0.0, r, 0.0, lambda x: x)[0]
    >>> float(wg.grad(area)(2.0).round(8))  # r^4 / 8
    4.0
    """
    low, high = _function_of(gfun, 1), _function_of(hfun, 1)
    options = {"epsabs": epsabs, "epsrel": epsrel}
    return nquad(func, [lambda *xs: (low(*xs), high(*xs)), (a, b)], args, options)


def tplquad(
    func: Callable[..., Any],
    a: Any,
    b: Any,
    gfun: Any,
    hfun: Any,
    qfun: Any,
    rfun: Any,
    args: tuple[Any, ...] = (),
    epsabs: float = 1.49e-8,
    epsrel: float = 1.49e-8,
) -> Any:
    """The integral of func(z, y, x) over a region of space, as ``scipy.integrate.tplquad``.

    Parameters
    ----------
    func : callable
        Takes z, y and x (and `args`); captured tensors are differentiated.
    a, b : float or Tensor
        The limits of x.
    gfun, hfun : callable, float or Tensor
        The limits of y, or functions of x.
    qfun, rfun : callable, float or Tensor
        The limits of z, or functions of x and y.
    args : tuple
        Further arguments, which are differentiated.
    epsabs, epsrel : float
        The tolerances of each integral.

    Returns
    -------
    float or Tensor
        The integral.
    float or Tensor
        An estimate of the error.

    See Also
    --------
    quad : about derivatives.

    Examples
    --------
    >>> import wengert as wg
    >>> from wengert.scipy.integrate import tplquad
    >>> mass = lambda s: tplquad(lambda z, y, x: s * x * z, 0, 1, 0, 1, 0, 1)[0]
    >>> float(wg.grad(mass)(3.0).round(8))
    0.25
    """
    low, high = _function_of(gfun, 1), _function_of(hfun, 1)
    below, above = _function_of(qfun, 2), _function_of(rfun, 2)

    def of_z(y: Any, x: Any, *_: Any) -> Any:
        return below(x, y), above(x, y)

    options = {"epsabs": epsabs, "epsrel": epsrel}
    ranges = [of_z, lambda *xs: (low(*xs), high(*xs)), (a, b)]
    return nquad(func, ranges, args, options)
