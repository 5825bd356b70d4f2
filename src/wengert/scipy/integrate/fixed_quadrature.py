"""Fixed quadrature rules: fixed_quad and the Newton-Cotes weights.

Gauss-Legendre points and weights are constants, so the integral is a sum of function values and can
be differentiated with respect to the limits and everything the function depends on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.integrate
import scipy.special

from wengert._engine.core.handle import is_traced, value_of
from wengert.errors import ArgumentError, at, user_line

newton_cotes = scipy.integrate.newton_cotes  # constants


def fixed_quad(
    func: Callable[..., Any], a: Any, b: Any, args: tuple[Any, ...] = (), n: int = 5
) -> tuple[Any, None]:
    """The integral of a function by Gauss-Legendre quadrature, as ``scipy.integrate.fixed_quad``.

    Parameters
    ----------
    func : callable
        Takes an array of n points (and `args`) and returns the values along the last axis.
    a, b : float or Tensor
        The limits.
    args : tuple
    n : int, default 5
        The rule is exact for polynomials of degree 2 n - 1.

    Returns
    -------
    float or Tensor, None

    Raises
    ------
    ArgumentError
        A limit is infinite.

    Notes
    -----
    Differentiable with respect to `a`, `b` and everything that `func` uses. DLMF 3.5(v).

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.integrate import fixed_quad
    >>> slope = wg.grad(lambda b: fixed_quad(lambda x: x**3, 0.0, b)[0])
    >>> float(slope(2.0).round(12))
    8.0
    """
    for end in (a, b):
        if not is_traced(end) and np.any(np.isinf(value_of(end))):
            raise ArgumentError(
                f"fixed_quad from {value_of(a)} to {value_of(b)}: the limits must be finite. "
                f"Substitute a variable with a finite range{at(user_line())}."
            )
    points, weights = scipy.special.roots_legendre(n)
    values = func((b - a) * (np.real(points) + 1) / 2.0 + a, *args)
    return (b - a) / 2.0 * np.sum(weights * values, axis=-1), None
