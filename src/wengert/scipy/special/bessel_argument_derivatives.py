"""Derivatives of Bessel functions with respect to the argument, as functions: DLMF 10.6, 10.29.

    jvp yvp h1vp h2vp     of J, Y and Hankel functions
    ivp kvp               of I and K

The n-th derivative is a sum of n + 1 Bessel functions with binomial coefficients (DLMF 10.6.7,
10.29.5), which is differentiable with respect to argument and order.
"""

from __future__ import annotations

from math import comb
from typing import Any

import scipy.special

from wengert._engine.tensor.numpy_dispatch import counterpart
from wengert.errors import ArgumentError, at, user_line

from .bessel import hankel1, hankel2, iv, jv, kv, yv

__all__ = "jvp yvp h1vp h2vp ivp kvp".split()


def _derivative(name: str, function: Any, alternate: float, sign: float) -> Any:
    """SciPy's function of that name, and the sum of Bessel functions for tensors."""

    def ours(v: Any, z: Any, n: int = 1) -> Any:
        if n != int(n) or n < 0:
            raise ArgumentError(
                f"{name} with n={n}: the order of the derivative must be a nonnegative integer"
                f"{at(user_line())}."
            )
        total: Any = 0.0
        for k in range(int(n) + 1):
            total = total + alternate**k * comb(int(n), k) * function(v - n + 2 * k, z)
        return total * (sign / 2.0) ** n

    ours.__name__ = name
    name_of_function = function.name.split(".")[-1]
    ours.__doc__ = f"""The n-th derivative of ``{name_of_function}(v, z)`` with respect to z.

    Parameters
    ----------
    v, z : array or Tensor
        Order and argument; both are differentiable.
    n : int
        The order of the derivative, 0 or more.

    Returns
    -------
    array or Tensor

    Raises
    ------
    ArgumentError
        n is negative or not an integer.

    Notes
    -----
    DLMF 10.6.7 and 10.29.5. *Cost.* That of n + 1 Bessel functions.

    Examples
    --------
    >>> import wengert as wg
    >>> from wengert.scipy.special import {name}
    >>> slope = wg.grad(lambda z: abs({name}(1.5, z, 0)) ** 2 / 2)(2.0)
    >>> value, first = {name}(1.5, 2.0, 0), {name}(1.5, 2.0, 1)
    >>> bool(abs(slope - (value * first.conjugate()).real) < 1e-12)
    True
    """
    return counterpart(getattr(scipy.special, name))(ours)


jvp = _derivative("jvp", jv, -1.0, 1.0)
yvp = _derivative("yvp", yv, -1.0, 1.0)
h1vp = _derivative("h1vp", hankel1, -1.0, 1.0)
h2vp = _derivative("h2vp", hankel2, -1.0, 1.0)
ivp = _derivative("ivp", iv, 1.0, 1.0)
kvp = _derivative("kvp", kv, 1.0, -1.0)
