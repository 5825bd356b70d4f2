"""Orthogonal polynomials, differentiable in argument, order and parameters; constructors.

    eval_legendre, eval_chebyt, eval_chebyu, eval_gegenbauer, eval_jacobi
                                     on [-1, 1]
    eval_laguerre, eval_genlaguerre  on [0, inf)
    eval_hermite, eval_hermitenorm   of integer order
    eval_chebyc eval_chebys          on [-2, 2]
    eval_sh_legendre eval_sh_chebyt eval_sh_chebyu eval_sh_jacobi  on [0, 1]
    assoc_laguerre                   Laguerre polynomial, with another order of arguments
    legendre_p                       Legendre polynomial of integer order, with its derivatives
    diric                            Dirichlet kernel
    legendre chebyt chebyu ...       SciPy's constructors of polynomials of integer order; the
                                     polynomials accept tensors

The derivative with respect to x is a polynomial of the preceding order (DLMF 18.9(iii)).  As
functions of order and parameters they are hypergeometric functions (DLMF 18.5.7, 15.9(i)).  Between
integer orders they are real for x > -1 only; the derivative with respect to the order is NaN
elsewhere.
From `eval_chebyc` on, all but the constructors are expressed by the functions before.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import scipy.special

from wengert._engine.core.handle import dtype_of
from wengert._engine.kinds.elementwise import POSITIVE, REAL, UNIT
from wengert._engine.tensor.numpy_dispatch import counterpart
from wengert.errors import ArgumentError, at, user_line

from .beta import binom, poch
from .gamma import digamma, rgamma, rgamma_derivative
from .hypergeometric_parameter_derivatives import hyp1f1_orders, hyp2f1_orders
from .register import OracleExpression, function

__all__ = [
    "eval_chebyt", "eval_chebyu", "eval_gegenbauer", "eval_genlaguerre", "eval_hermite",
    "eval_hermitenorm", "eval_jacobi", "eval_laguerre", "eval_legendre",
]  # fmt: skip


def _entry(name: str, operands: str, doc: str, expression: str, domains: Any) -> Any:
    entry = function(
        name,
        operands,
        domain=domains,
        oracle=OracleExpression(operands, expression),
        singular=True,
        half=False,
        doc=doc,
    )

    @entry.examples  # type: ignore[untyped-decorator]
    def _(rng: Any) -> Any:
        order = rng.uniform(0.5, 3.5, size=2)
        if domains[0] == (0, 4):
            order = rng.integers(0, 4, size=2)
        others = [rng.uniform(0.3, 1.5) for _ in domains[2:]]
        yield (order, *others, rng.uniform(0.1, 0.9)), {}

    return entry


def _gauss(n: Any, p: Any, c: Any, x: Any, i: int, j: int, k: int) -> Any:
    """The derivative of 2F1(-n, p; c; (1 - x) / 2), of orders i, j, k in its three parameters."""
    return hyp2f1_orders(-n, p, c, 0.5 * (1.0 - x), i=i, j=j, k=k, m=0)


def _by_n(n: Any, p: Any, c: Any, x: Any) -> Any:
    """The derivative of 2F1(-n, p; c; (1 - x) / 2) with respect to n, where dp/dn = 1."""
    return _gauss(n, p, c, x, 0, 1, 0) - _gauss(n, p, c, x, 1, 0, 0)


def _zero_for_order_0(n: Any, x: Any, derivative: Any) -> Any:
    """`derivative`, with respect to x; 0 for order 0 and x <= -1."""
    return np.where((n == 0) & (x <= -1.0), 0.0, derivative)


# ---- Jacobi and Gegenbauer -----------------------------------------------------------------------

eval_jacobi = _entry(
    "eval_jacobi",
    "n a b x",
    "Jacobi polynomial of order n and parameters a, b, DLMF 18.3.",
    "jacobi(n, a, b, x)",
    [POSITIVE, POSITIVE, POSITIVE, UNIT],
)
eval_gegenbauer = _entry(
    "eval_gegenbauer",
    "n a x",
    "Gegenbauer polynomial of order n and parameter a, DLMF 18.3.",
    "gegenbauer(n, a, x)",
    [POSITIVE, POSITIVE, UNIT],
)


def _order_derivative(n: Any, a: Any, value: Any, derivative: Any) -> Any:
    """The derivative with respect to n of gamma(n + a) / (gamma(a) gamma(n + 1)) times a function.

    For n = -1, which occurs in the derivative of a polynomial of order 0 with respect to x, the
    quotient is 0 but its derivative is not.
    """
    inverse = rgamma(n + 1.0)
    rate = digamma(n + a) * inverse + rgamma_derivative(inverse, n + 1.0)
    return poch(a, n) * (rate * value + inverse * derivative)


def _jacobi_by_order(t: Any, out: Any, n: Any, a: Any, b: Any, x: Any) -> Any:
    arguments = n, n + a + b + 1.0, a + 1.0, x
    return t * _order_derivative(n, a + 1.0, _gauss(*arguments, 0, 0, 0), _by_n(*arguments))


def _jacobi_by_a(t: Any, out: Any, n: Any, a: Any, b: Any, x: Any) -> Any:
    rate = digamma(n + a + 1.0) - digamma(a + 1.0)
    arguments = n, n + a + b + 1.0, a + 1.0, x
    return t * (
        rate * out + binom(n + a, n) * (_gauss(*arguments, 0, 1, 0) + _gauss(*arguments, 0, 0, 1))
    )


eval_jacobi.partials(
    _jacobi_by_order,
    _jacobi_by_a,
    lambda t, out, n, a, b, x: (
        t * (binom(n + a, n) * _gauss(n, n + a + b + 1.0, a + 1.0, x, 0, 1, 0))
    ),
    lambda t, out, n, a, b, x: (
        0.5 * t * ((n + a + b + 1.0) * eval_jacobi(n - 1, a + 1.0, b + 1.0, x))
    ),
)


def _gegenbauer_scale(n: Any, a: Any) -> Any:
    """gamma(n + 2a) / (gamma(2a) gamma(n + 1))."""
    return binom(n + 2.0 * a - 1.0, n)


def _gegenbauer_by_order(t: Any, out: Any, n: Any, a: Any, x: Any) -> Any:
    arguments = n, n + 2.0 * a, a + 0.5, x
    return t * _order_derivative(n, 2.0 * a, _gauss(*arguments, 0, 0, 0), _by_n(*arguments))


def _gegenbauer_by_a(t: Any, out: Any, n: Any, a: Any, x: Any) -> Any:
    rate = 2.0 * (digamma(n + 2.0 * a) - digamma(2.0 * a))
    arguments = n, n + 2.0 * a, a + 0.5, x
    derivative = 2.0 * _gauss(*arguments, 0, 1, 0) + _gauss(*arguments, 0, 0, 1)
    return t * (rate * out + _gegenbauer_scale(n, a) * derivative)


eval_gegenbauer.partials(
    _gegenbauer_by_order,
    _gegenbauer_by_a,
    lambda t, out, n, a, x: (
        2.0 * t * _zero_for_order_0(n, x, a * eval_gegenbauer(n - 1, a + 1.0, x))
    ),
)

# ---- Legendre and Chebyshev ----------------------------------------------------------------------

eval_legendre = _entry(
    "eval_legendre",
    "n x",
    "Legendre polynomial of order n, DLMF 18.3; Legendre function P between integer orders.",
    "legendre(n, x)",
    [POSITIVE, UNIT],
)
eval_legendre.partials(
    lambda t, out, n, x: t * _by_n(n, n + 1.0, 1.0, x),
    lambda t, out, n, x: 0.5 * t * ((n + 1.0) * eval_jacobi(n - 1, 1.0, 1.0, x)),
)
eval_chebyt = _entry(
    "eval_chebyt",
    "n x",
    "Chebyshev polynomial T of order n, DLMF 18.3: cos(n arccos x).",
    "cos(n * acos(x))",
    [POSITIVE, UNIT],
)
eval_chebyu = _entry(
    "eval_chebyu",
    "n x",
    "Chebyshev polynomial U of order n, DLMF 18.3.",
    "sin((n + 1) * acos(x)) / sin(acos(x))",
    [POSITIVE, UNIT],
)
eval_chebyt.partials(
    lambda t, out, n, x: t * _by_n(n, n * 1.0, 0.5, x),
    lambda t, out, n, x: t * _zero_for_order_0(n, x, n * eval_chebyu(n - 1, x)),
)
eval_chebyu.partials(
    lambda t, out, n, x: (
        t * (_gauss(n, n + 2.0, 1.5, x, 0, 0, 0) + (n + 1.0) * _by_n(n, n + 2.0, 1.5, x))
    ),
    lambda t, out, n, x: 2.0 * t * _zero_for_order_0(n, x, eval_gegenbauer(n - 1, 2.0, x)),
)

# ---- Laguerre ------------------------------------------------------------------------------------


def _kummer(n: Any, a: Any, x: Any, j: int, k: int) -> Any:
    return hyp1f1_orders(-n, a + 1.0, x, j=j, k=k, m=0)


eval_genlaguerre = _entry(
    "eval_genlaguerre",
    "n a x",
    "Laguerre polynomial of order n and parameter a, DLMF 18.3.",
    "laguerre(n, a, x)",
    [POSITIVE, POSITIVE, POSITIVE],
)
eval_genlaguerre.partials(
    lambda t, out, n, a, x: (
        t * _order_derivative(n, a + 1.0, _kummer(n, a, x, 0, 0), -_kummer(n, a, x, 1, 0))
    ),
    lambda t, out, n, a, x: (
        t
        * (
            (digamma(n + a + 1.0) - digamma(a + 1.0)) * out
            + binom(n + a, n) * _kummer(n, a, x, 0, 1)
        )
    ),
    lambda t, out, n, a, x: -t * eval_genlaguerre(n - 1, a + 1.0, x),
)
eval_laguerre = _entry(
    "eval_laguerre",
    "n x",
    "Laguerre polynomial of order n, DLMF 18.3.",
    "laguerre(n, 0, x)",
    [POSITIVE, POSITIVE],
)
eval_laguerre.partials(
    lambda t, out, n, x: -t * _kummer(n, 0.0, x, 1, 0),
    lambda t, out, n, x: -t * eval_genlaguerre(n - 1, 1.0, x),
)

# ---- Hermite -------------------------------------------------------------------------------------

eval_hermite = _entry(
    "eval_hermite",
    "n x",
    "Hermite polynomial H of integer order n, DLMF 18.3.",
    "hermite(n, x)",
    [(0, 4), REAL],
)
eval_hermite.partials(
    None, lambda t, out, n, x: 2.0 * t * (n * eval_hermite(np.maximum(n - 1, 0), x))
)
eval_hermitenorm = _entry(
    "eval_hermitenorm",
    "n x",
    "Hermite polynomial He of integer order n, DLMF 18.3.",
    "2**(-mpf(n) / 2) * hermite(n, x / sqrt(2))",
    [(0, 4), REAL],
)
eval_hermitenorm.partials(
    None, lambda t, out, n, x: t * (n * eval_hermitenorm(np.maximum(n - 1, 0), x))
)


# ---- other intervals ---------------------------------------------------------------------------


_CONSTRUCTORS = """
    legendre chebyt chebyu chebyc chebys hermite hermitenorm laguerre sh_legendre sh_chebyt
    sh_chebyu
""".split()
globals().update({name: getattr(scipy.special, name) for name in _CONSTRUCTORS})

__all__ += [
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
