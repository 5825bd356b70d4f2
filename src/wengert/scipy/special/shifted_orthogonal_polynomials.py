"""Orthogonal polynomials on other intervals, and constructors of polynomials: DLMF 18.1, 18.7.

    eval_chebyc eval_chebys          on [-2, 2]
    eval_sh_legendre eval_sh_chebyt eval_sh_chebyu eval_sh_jacobi    on [0, 1]
    assoc_laguerre                   Laguerre polynomial, with another order of arguments
    legendre_p                       Legendre polynomial of integer order, with its derivatives
    diric                            Dirichlet kernel
    legendre chebyt chebyu ...       SciPy's constructors of polynomials of integer order; the
                                     polynomials accept tensors

All but the constructors are expressed by functions of orthogonal_polynomials.py.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import scipy.special

from wengert._engine.core.handle import dtype_of
from wengert._engine.tensor.numpy_dispatch import counterpart
from wengert.errors import ArgumentError, at, user_line

from .beta import binom
from .orthogonal_polynomials import (
    eval_chebyt,
    eval_chebyu,
    eval_gegenbauer,
    eval_genlaguerre,
    eval_jacobi,
    eval_legendre,
)

_CONSTRUCTORS = """
    legendre chebyt chebyu chebyc chebys hermite hermitenorm laguerre sh_legendre sh_chebyt
    sh_chebyu
""".split()
globals().update({name: getattr(scipy.special, name) for name in _CONSTRUCTORS})

__all__ = [
    *"eval_chebyc eval_chebys eval_sh_legendre eval_sh_chebyt eval_sh_chebyu".split(),
    *"eval_sh_jacobi assoc_laguerre diric".split(),
    *_CONSTRUCTORS,
]


def eval_chebyc(n: Any, x: Any) -> Any:
    """Chebyshev polynomial C, 2 T_n(x / 2), DLMF 18.1.3."""
    return 2.0 * eval_chebyt(n, 0.5 * x)


def eval_chebys(n: Any, x: Any) -> Any:
    """Chebyshev polynomial S, U_n(x / 2), DLMF 18.1.3."""
    return eval_chebyu(n, 0.5 * x)


def eval_sh_legendre(n: Any, x: Any) -> Any:
    """Legendre polynomial on [0, 1], P_n(2 x - 1), DLMF 18.7.10."""
    return eval_legendre(n, 2.0 * x - 1.0)


def eval_sh_chebyt(n: Any, x: Any) -> Any:
    """Chebyshev polynomial of the first kind on [0, 1], T_n(2 x - 1), DLMF 18.7.7."""
    return eval_chebyt(n, 2.0 * x - 1.0)


def eval_sh_chebyu(n: Any, x: Any) -> Any:
    """Chebyshev polynomial of the second kind on [0, 1], U_n(2 x - 1), DLMF 18.7.8."""
    return eval_chebyu(n, 2.0 * x - 1.0)


def eval_sh_jacobi(n: Any, p: Any, q: Any, x: Any) -> Any:
    """Jacobi polynomial on [0, 1] with leading coefficient 1, DLMF 18.1.2."""
    return eval_jacobi(n, p - q, q - 1.0, 2.0 * x - 1.0) / binom(2.0 * n + p - 1.0, n)


@counterpart(scipy.special.assoc_laguerre)
def assoc_laguerre(x: Any, n: Any, k: Any = 0.0) -> Any:
    """Laguerre polynomial of order n and parameter k, as ``scipy.special.assoc_laguerre``.

    Parameters
    ----------
    x, n, k : array or Tensor
        All three are differentiable.

    Returns
    -------
    array or Tensor

    Examples
    --------
    >>> import wengert as wg
    >>> from wengert.scipy.special import assoc_laguerre
    >>> float(wg.grad(assoc_laguerre)(0.5, 1, 2.0))  # 1 + k - x
    -1.0
    """
    return eval_genlaguerre(n, k, x)


@counterpart(scipy.special.diric)
def diric(x: Any, n: int) -> Any:
    """Dirichlet kernel sin(n x / 2) / (n sin(x / 2)), as ``scipy.special.diric``.

    Parameters
    ----------
    x : array or Tensor
        Angles.
    n : int
        1 or more.

    Returns
    -------
    array or Tensor

    Raises
    ------
    ArgumentError
        n is not a positive integer.

    Notes
    -----
    Computed as the Chebyshev polynomial U of order n - 1 at cos(x / 2), divided by n (DLMF 18.5.2),
    which is smooth at multiples of 2 pi.

    Examples
    --------
    >>> import wengert as wg
    >>> from wengert.scipy.special import diric
    >>> float(wg.grad(wg.grad(lambda x: diric(x, 3)))(0.0).round(12))  # -(n^2 - 1) / 12
    -0.666666666667
    """
    if not isinstance(n, int | np.integer) or n < 1:
        raise ArgumentError(f"diric with n={n!r}: n must be a positive integer{at(user_line())}.")
    return eval_chebyu(int(n) - 1, np.cos(0.5 * x)) / n


if hasattr(scipy.special, "legendre_p"):  # SciPy 1.15
    __all__ += ["legendre_p"]

    @counterpart(scipy.special.legendre_p)
    def legendre_p(n: Any, z: Any, *, diff_n: int = 0) -> Any:
        """Legendre polynomial of integer order n and its derivatives with respect to z, DLMF 18.3.

        Parameters
        ----------
        n : int or array of int
            Not differentiable; use `eval_legendre` for derivatives with respect to n.
        z : array or Tensor
            Real.
        diff_n : int
            The highest order of derivative that is returned.

        Returns
        -------
        array or Tensor
            Shape (diff_n + 1, ...): the value and its derivatives along the first axis.

        Examples
        --------
        >>> import wengert as wg
        >>> from wengert.scipy.special import legendre_p
        >>> float(wg.grad(lambda z: legendre_p(2, z)[0])(0.5))
        1.5
        """
        rows = []
        for k in range(diff_n + 1):
            scale = float(prod(range(1, 2 * k, 2)))
            lower = np.maximum(n - k, 0)
            row = eval_gegenbauer(lower, k + 0.5, z) if k else eval_legendre(n, z)
            rows.append(np.where(n >= k, scale * row, 0.0).astype(dtype_of(z)))
        return np.stack(rows)
