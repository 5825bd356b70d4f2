"""Integrals of functions of one number: scipy.integrate.quad and quad_vec.

    quad      the integral of a number
    quad_vec  the integral of an array

With tensors the integral is a node whose derivatives are integrals by the same routine
(integral_rule.py).  A function that cannot be traced (it calls code that takes plain numbers only)
is integrated outside of graphs by a sum of its values (integrands.py).
"""

from __future__ import annotations

from collections.abc import Callable
from types import CellType
from typing import Any

import numpy as np
import scipy.integrate

from wengert._engine.control_flow.eager_loops import becomes_node
from wengert._engine.core import pytree
from wengert._engine.core.conversion_hook import converted
from wengert._engine.core.handle import Handle, describe, is_traced, value_of
from wengert._engine.core.node import Node
from wengert._engine.core.recording import no_grad
from wengert._engine.core.spec import Spec
from wengert._engine.ops import casts
from wengert.errors import (
    ArgumentError,
    ConversionError,
    DtypeError,
    ShapeError,
    TraceError,
    at,
    user_line,
)

from ..dispatch import floating, holds_tensors
from .integral_operation import QuadRoutine, VectorRoutine
from .integral_rule import Found, integral_of
from .integrands import sampled_integral

__all__ = ["quad", "quad_vec"]

NUMBER = Spec((), np.dtype(float))
_EMPTY = CellType()
_WEIGHTS = ("cos", "sin", "alg", "alg-loga", "alg-logb", "alg-log", "cauchy")


def quad(
    func: Callable[..., Any],
    a: Any,
    b: Any,
    args: Any = (),
    full_output: Any = 0,
    epsabs: float = 1.49e-8,
    epsrel: float = 1.49e-8,
    limit: int = 50,
    points: Any = None,
    weight: str | None = None,
    wvar: Any = None,
    wopts: Any = None,
    maxp1: int = 50,
    limlst: int = 50,
    complex_func: bool = False,
) -> Any:
    """The integral of a function from a to b, as ``scipy.integrate.quad``.

    Parameters
    ----------
    func : callable
        ``func(x, *args)``, a number; captured tensors are differentiated.
    a, b : float or Tensor
        The limits, which may be infinite.
    args : tuple
        Further arguments, which are differentiated.
    points : sequence of float, optional
        Positions of kinks or jumps of the function, which must not be tensors.
    weight, wvar : optional
        As in SciPy. Derivatives with respect to `wvar` exist for 'cos', 'sin', 'cauchy' and 'alg'.
    full_output, epsabs, epsrel, limit, maxp1, limlst, complex_func
        As in SciPy.
    wopts
        Not supported with tensors.

    Returns
    -------
    float or Tensor
        The integral.
    float or Tensor
        An estimate of its error, whose derivative is zero.
    dict
        With `full_output`. In a graph it has `neval` only.

    Raises
    ------
    ArgumentError
        `points` contains a tensor, `wopts` is given with tensors, or `func` is not a Python
        function.
    OperandError
        It is differentiated with respect to a limit where the function is not finite; in a
        compiled function that derivative is not finite.
    NotDifferentiableError
        The derivative has a weight that SciPy does not have, or the function may jump at an unknown
        position that depends on the parameter.

    Warns
    -----
    IntegrationWarning
        The tolerance is not reached, for the integral or for its derivative; the warning says
        which.

    Notes
    -----
    The derivative is an integral too, by the same routine with the same tolerances (Leibniz). Where
    the position of a jump depends on a parameter, as in ``x < c``, the term of the jump is added.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.integrate import quad
    >>> moment = lambda s: quad(lambda x: x * np.exp(-s * x), 0, np.inf)[0]
    >>> [round(float(g), 10) for g in (moment(2.0), wg.jit(wg.grad(moment))(2.0))]
    [0.25, -0.25]
    """
    args = args if isinstance(args, tuple) else (args,)
    by_scipy = (epsabs, epsrel, limit, points, weight, wvar, wopts, maxp1, limlst, complex_func)
    called = converted(func) if callable(func) else func
    if not uses_tensors(called, a, b, args, (points, wvar)):
        return scipy.integrate.quad(func, a, b, args, full_output, *by_scipy)
    _refuse(func, points, weight, wopts)
    fixed = None if points is None else tuple([float(p) for p in points])
    routine = QuadRoutine("quad", epsabs, epsrel, limit, fixed, weight, maxp1, limlst)

    def found(of: Callable[[Any], Any]) -> Any:
        parameters = () if wvar is None else wvar if isinstance(wvar, tuple | list) else (wvar,)
        return _integrated(of, a, b, routine, list(parameters))

    def function(x: Any) -> Any:
        return converted(func)(x, *args)  # inside of the graph, whose branches are nodes

    if complex_func:
        real, imag = found(lambda x: np.real(function(x))), found(lambda x: np.imag(function(x)))
        more = ({"real": _more(real), "imag": _more(imag)},) if full_output else ()
        return real.value + 1j * imag.value, real.error + 1j * imag.error, *more
    try:
        result = found(function)
    except (TraceError, ConversionError):
        if weight is not None or full_output or becomes_node([a, b, *args]):
            raise
        options = {"points": points, "epsabs": epsabs, "epsrel": epsrel, "limit": limit}
        return sampled_integral(func, a, b, args, "quad", options)
    return (result.value, result.error, *(_more(result) if full_output else ()))


def _refuse(func: Any, points: Any, weight: str | None, wopts: Any) -> None:
    """Raise for arguments that are not supported with tensors."""
    if holds_tensors(points if points is None else list(points)):
        raise ArgumentError(
            "quad with a tensor in points: the derivative with respect to a point is that of a jump"
            ", which is not known. Use an integral for each side, with the point as a limit"
            f"{at(user_line())}."
        )
    if not callable(func):
        raise ArgumentError(
            f"quad of a {type(func).__name__} and tensors: it has no derivative. Pass a Python "
            f"function, which is compiled{at(user_line())}."
        )
    if wopts is not None:
        raise ArgumentError(
            "quad with wopts and tensors: precomputed moments are not supported with tensors. "
            f"Leave wopts out{at(user_line())}."
        )
    if weight is not None and weight not in _WEIGHTS:
        raise ValueError(f"{weight} not a recognized weighting function.")


def uses_tensors(f: Any, a: Any, b: Any, args: tuple[Any, ...], more: Any) -> bool:
    """Whether an integral depends on tensors: its arguments, or what the function captures."""
    if holds_tensors((a, b, list(args), *[list(m) if isinstance(m, tuple) else m for m in more])):
        return True
    if any([isinstance(x, Handle) for x in pytree.flatten((args, more))[0]]):
        return True
    if not callable(f) or isinstance(f, tuple):
        return False
    if any([isinstance(cell.cell_contents, Handle) for cell in _cells(f)]):
        return True
    with no_grad():
        result = f(inner_point(float(a), float(b)), *args)
    return any([isinstance(x, Handle) for x in pytree.flatten(result)[0]])


def _cells(f: Any) -> list[Any]:
    """What a function captures; a branch that is not taken at the inner point may use it."""
    cells = getattr(f, "__closure__", None) or ()
    return [cell for cell in cells if cell != _EMPTY]


def inner_point(a: float, b: float) -> float:
    """A point between two limits, which may be infinite."""
    a, b = min(a, b), max(a, b)
    if np.isfinite(a) and np.isfinite(b):
        return a + 0.5 * (b - a)
    return a + 1.0 if np.isfinite(a) else b - 1.0 if np.isfinite(b) else 0.0


def number(value: Any, what: str) -> Any:
    """The value of an integrand as a float64 number.

    Raises
    ------
    ShapeError
        It is an array.
    """
    value = floating(value)
    if value.shape != ():
        if value.size != 1:
            raise ShapeError(
                f"{what}: the result of the function has shape {value.shape}, and must be a "
                f"number. Use quad_vec for arrays{at(user_line())}."
            )
        value = value.reshape(())
    if value.dtype.kind == "c":
        raise ArgumentError(
            f"{what}: the function is complex. Use complex_func=True{at(user_line())}."
        )
    return casts.astype(value, float)


def limit_of(x: Any) -> Any:
    """A limit as a float64 number or tensor; a constant tensor is a number.

    Raises
    ------
    DtypeError
        It is complex.
    """
    if describe(x).dtype.kind == "c":
        raise DtypeError(
            f"a limit of an integral is {describe(x)}, and must be real. Substitute a real variable"
            f"{at(user_line())}."
        )
    if not isinstance(x, Handle) or is_constant(x):
        return float(value_of(x))
    return casts.astype(floating(x), float)


def is_constant(x: Handle) -> bool:
    """Whether a tensor depends on nothing: in a converted function, `np.array` makes tensors."""
    return not is_traced(x) and type(x.node) is not Node


def _integrated(
    f: Callable[[Any], Any], a: Any, b: Any, routine: QuadRoutine, parameters: list[Any]
) -> Found:
    """The integral; weights at moving positions are moved to fixed ones by a substitution."""
    a, b = limit_of(a), limit_of(b)
    parameters = [limit_of(p) for p in parameters]
    of_number = lambda x: number(f(x), "quad")  # noqa: E731
    if routine.weight == "cauchy" and isinstance(parameters[0], Handle):
        c = parameters[0]
        shifted = lambda y: number(f(y + c), "quad")  # noqa: E731
        return integral_of("quad", shifted, NUMBER, [a - c, b - c, 0.0], routine)
    if str(routine.weight).startswith("alg") and (isinstance(a, Handle) or isinstance(b, Handle)):
        return _with_moving_ends(f, a, b, routine, parameters)
    return integral_of("quad", of_number, NUMBER, [a, b, *parameters], routine)


def _with_moving_ends(
    f: Callable[[Any], Any], a: Any, b: Any, routine: QuadRoutine, parameters: list[Any]
) -> Found:
    """The integral with the weight ``(x - a)**alpha * (b - x)**beta`` and moving limits."""
    if routine.weight != "alg":
        raise ArgumentError(
            f"quad with weight={routine.weight!r} and a tensor as a limit: not supported. Include "
            f"the logarithm in the function, with weight='alg'{at(user_line())}."
        )
    length = b - a
    scale = np.abs(length) ** (parameters[0] + parameters[1]) * length
    # SciPy's limits of the weight are in increasing order.
    low = np.minimum(a, b)
    inside = lambda u: number(f(low + np.abs(length) * u), "quad")  # noqa: E731
    found = integral_of("quad", inside, NUMBER, [0.0, 1.0, *parameters], routine)
    size = value_of(scale) if not is_traced(scale) else scale
    return found._replace(value=scale * found.value, error=np.abs(size) * found.error)


def _more(found: Found) -> tuple[Any, ...]:
    return found.more or ({"neval": found.neval},)


def quad_vec(
    f: Callable[..., Any],
    a: Any,
    b: Any,
    epsabs: float = 1e-200,
    epsrel: float = 1e-8,
    norm: str = "2",
    cache_size: float = 100e6,
    limit: int = 10000,
    workers: Any = 1,
    points: Any = None,
    quadrature: str | None = None,
    full_output: bool = False,
    *,
    args: tuple[Any, ...] = (),
) -> Any:
    """The integral of an array-valued function, as ``scipy.integrate.quad_vec``.

    Parameters
    ----------
    f : callable
        ``f(x, *args)``, an array; captured tensors are differentiated.
    a, b : float or Tensor
        The limits, which may be infinite.
    epsabs, epsrel, norm, cache_size, limit, points, quadrature, full_output
        As in SciPy. In a graph, `full_output` is not supported.
    workers : int or callable
        As in SciPy; 1 with tensors.
    args : tuple
        Further arguments, which are differentiated.

    Returns
    -------
    array or Tensor
        The integral.
    float or Tensor
        An estimate of its error, whose derivative is zero.
    object
        With `full_output`.

    Raises
    ------
    ArgumentError
        An option is given that is not supported with tensors.

    Warns
    -----
    IntegrationWarning
        The tolerance is not reached for the derivative.

    See Also
    --------
    quad : about derivatives.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.integrate import quad_vec
    >>> powers = lambda s: quad_vec(lambda x: x ** np.arange(3.0) * s, 0.0, 1.0)[0]
    >>> wg.jit(wg.jacobian(powers))(2.0).round(6)
    array([1.      , 0.5     , 0.333333])
    """
    called = converted(f)
    if not uses_tensors(called, a, b, args, (points,)):
        return scipy.integrate.quad_vec(
            f,
            a,
            b,
            epsabs,
            epsrel,
            norm,
            cache_size,
            limit,
            workers,
            points,
            quadrature,
            full_output,
            args=args,
        )
    graph = becomes_node([a, b, *args])
    for name, unsupported in (
        ("workers", workers != 1),
        ("points with a tensor", points is not None and holds_tensors(list(points))),
        ("full_output in a graph", full_output and graph),
    ):
        if unsupported:
            raise ArgumentError(
                f"quad_vec: {name} is not supported with tensors. Leave it out{at(user_line())}."
            )
    fixed = None if points is None else tuple([float(p) for p in points])
    options = (("norm", norm), ("cache_size", cache_size), ("limit", limit), ("points", fixed))
    routine = VectorRoutine("quad_vec", epsabs, epsrel, (*options, ("quadrature", quadrature)))
    try:
        found = integral_of(
            "quad_vec",
            lambda x: floating(converted(f)(x, *args)),
            NUMBER,
            [limit_of(a), limit_of(b)],
            routine,
        )
    except (TraceError, ConversionError):
        if full_output or graph:
            raise
        plain = {"points": points, "epsabs": epsabs, "epsrel": epsrel, "limit": min(limit, 10000)}
        return sampled_integral(f, a, b, args, "quad_vec", plain)
    return (found.value, found.error, *(found.more if full_output else ()))
