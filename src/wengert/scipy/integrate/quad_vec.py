"""Integrals of array-valued functions of one number: scipy.integrate.quad_vec.

As for `quad`, the derivative is an integral by the same routine; a function that cannot be traced
is sampled outside of graphs.

    quad_vec  the integral
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import scipy.integrate

from wengert._engine.control_flow.eager_loops import becomes_node
from wengert._engine.core.conversion_hook import converted
from wengert.errors import ArgumentError, ConversionError, TraceError, at, user_line

from ..dispatch import floating, holds_tensors
from .integral_operation import VectorRoutine
from .integral_rule import integral_of
from .quad import NUMBER, limit_of, uses_tensors
from .sampled_integrand import sampled_integral

__all__ = ["quad_vec"]


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
