"""Polynomials given by their coefficients, the highest power first: NumPy's poly functions.

    polyval, polyadd, polysub, polymul, polydiv   arithmetic
    polyder, polyint                              calculus in the variable
    poly, roots, polyfit                          from roots, to roots, from points

All are differentiable with respect to coefficients and points.  Roots are computed as eigenvalues
of the companion matrix, fits as least-squares solutions, as in NumPy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.handle import is_traced
from wengert._engine.ops import casts
from wengert._engine.tensor.numpy_dispatch import as_array, counterpart, numbers, plain
from wengert.errors import OperandError, at, user_line

from .creation import zeros_like
from .joining import concatenate
from .linalg.decompositions_and_solve import roots_of_companion
from .shape_manipulation import atleast_1d, trim_zeros

__all__ = [
    "poly", "polyadd", "polyder", "polydiv", "polyfit", "polyint", "polymul", "polysub",
    "polyval", "roots",
]  # fmt: skip


@counterpart(np.polyval)
def polyval(p: Any, x: Any) -> Any:
    """The polynomial at x, by Horner's rule; see `numpy.polyval`.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> wg.grad(lambda p: np.polyval(p, 2.0))(np.array([1.0, 0.0, 3.0]))
    array([4., 2., 1.])
    """
    p, x = as_array(p), as_array(x)
    y = zeros_like(x)
    for i in range(len(p)):
        y = y * x + p[i]
    return y


def _aligned(a: Any, b: Any) -> tuple[Any, Any]:
    a, b = atleast_1d(as_array(a)), atleast_1d(as_array(b))
    n = max(len(a), len(b))
    return tuple(  # type: ignore[return-value]
        concatenate([np.zeros(n - len(c), c.dtype), c]) if len(c) < n else c for c in (a, b)
    )


@counterpart(np.polyadd)
def polyadd(a1: Any, a2: Any) -> Any:
    """The sum of two polynomials; see `numpy.polyadd`."""
    a, b = _aligned(a1, a2)
    return a + b


@counterpart(np.polysub)
def polysub(a1: Any, a2: Any) -> Any:
    """The difference of two polynomials; see `numpy.polysub`."""
    a, b = _aligned(a1, a2)
    return a - b


@counterpart(np.polymul)
def polymul(a1: Any, a2: Any) -> Any:
    """The product of two polynomials; see `numpy.polymul`.

    Notes
    -----
    In a graph leading zeros of the operands are kept, because shapes cannot depend on values.
    """
    a, b = (atleast_1d(as_array(c)) for c in (a1, a2))
    if not (is_traced(a) or is_traced(b)):
        a, b = trim_zeros(a, "f"), trim_zeros(b, "f")
    return np.convolve(a, b)


@counterpart(np.polydiv)
def polydiv(u: Any, v: Any) -> tuple[Any, Any]:
    """Quotient and remainder of two polynomials; see `numpy.polydiv`.

    Notes
    -----
    In a graph leading zeros of the remainder are kept, because shapes cannot depend on values.
    """
    u, v = atleast_1d(as_array(u)) + 0.0, atleast_1d(as_array(v)) + 0.0
    quotient, rest, scale = [], u, 1.0 / v[0]
    for k in range(len(u) - len(v) + 1):
        factor = rest[k] * scale
        quotient.append(factor)
        after = len(u) - len(v) - k
        none = [np.zeros(n, v.dtype) for n in (k, after)]
        rest = rest - concatenate([none[0], factor * v, none[1]])
    if is_traced(rest):
        remainder = rest[min(len(quotient), len(rest) - 1) :]
    else:  # as NumPy: remove leading zeros, but not rounding errors, and keep one coefficient
        remainder = rest
        while len(remainder) > 1 and np.allclose(plain(remainder)[0], 0, rtol=1e-14):
            remainder = remainder[1:]
    return (np.stack(quotient) if quotient else zeros_like(u[:1])), remainder


@counterpart(np.polyder)
def polyder(p: Any, m: int = 1) -> Any:
    """The m-th derivative of a polynomial; see `numpy.polyder`."""
    if m < 0:
        raise ValueError("Order of derivative must be positive (see polyint)")
    p = as_array(p)
    for _ in range(int(m)):
        p = p[:-1] * numbers(p.shape[0])[:0:-1]
    return p


@counterpart(np.polyint)
def polyint(p: Any, m: int = 1, k: Any = None) -> Any:
    """The m-th integral of a polynomial, with constants k; see `numpy.polyint`."""
    if m < 0:
        raise ValueError("Order of integral must be positive (see polyder)")
    constants = atleast_1d(as_array(0.0 if k is None else k))
    if constants.shape[0] == 1:
        constants = np.broadcast_to(constants, (m,))
    if constants.shape[0] < m:
        raise ValueError("k must be a scalar or a rank-1 array of length 1 or >m.")
    p = as_array(p)
    for i in range(int(m)):
        p = concatenate([p / (numbers(p.shape[0]) + 1)[::-1], constants[i : i + 1]])
    return p


@counterpart(np.poly)
def poly(seq_of_zeros: Any) -> Any:
    """The coefficients of the polynomial with these roots; see `numpy.poly`."""
    zeros = atleast_1d(as_array(seq_of_zeros))
    if zeros.ndim == 2 and zeros.shape[0] == zeros.shape[1] and zeros.shape[0] != 0:
        zeros = np.linalg.eigvals(zeros)
    elif zeros.ndim != 1:
        raise ValueError("input must be 1d or non-empty square 2d array.")
    dtype = np.dtype(np.mintypecode(zeros.dtype.char))  # as in NumPy: at least float64
    zeros = zeros if zeros.dtype == dtype else casts.astype(zeros, dtype)
    a: Any = np.ones(1, dtype)
    nothing = np.zeros(1, dtype)
    for i in range(len(zeros)):
        a = concatenate([a, nothing]) - concatenate([nothing, a * zeros[i]])
    return a.real.copy() if _come_in_pairs(zeros) else a


def _come_in_pairs(zeros: Any) -> bool:
    """Whether complex roots are known to be conjugate pairs, so that the polynomial is real."""
    if zeros.dtype.kind != "c" or is_traced(zeros):
        return False
    found = plain(zeros)
    return bool(np.array_equal(np.sort(found), np.sort(found.conjugate())))


@counterpart(np.roots)
def roots(p: Any) -> Any:
    """The roots of a polynomial, eigenvalues of its companion matrix; see `numpy.roots`.

    Notes
    -----
    In a graph the leading coefficient must not be zero, and the roots are complex, because shapes
    and dtypes cannot depend on values.
    """
    p = atleast_1d(as_array(p))
    if p.ndim != 1:
        raise ValueError("Input must be a rank-1 array.")
    places = np.arange(p.shape[0]) if is_traced(p) else np.flatnonzero(plain(p))
    if places.size == 0:
        return zeros_like(p[:0])
    behind = len(p) - int(places[-1]) - 1
    p = p[int(places[0]) : int(places[-1]) + 1]
    n = len(p)
    if n == 1:
        return zeros_like(p, shape=behind)
    first = -p[1:] / p[0]
    below = np.eye(n - 2, n - 1, dtype=first.dtype)
    found = roots_of_companion(np.vstack([first[None], below]))
    return np.concatenate([found, np.zeros(behind, found.dtype)]) if behind else found


@counterpart(np.polyfit)
def polyfit(
    x: Any, y: Any, deg: int, rcond: float | None = None, full: bool = False, w: Any = None,
    cov: Any = False,
) -> Any:  # fmt: skip
    """The least-squares polynomial through points; see `numpy.polyfit`."""
    if full or cov:
        raise OperandError(
            "polyfit of tensors returns the coefficients only. Omit full= and cov=, or convert "
            f"with .detach().numpy(){at(user_line())}."
        )
    x, y = as_array(x) + 0.0, as_array(y) + 0.0
    lhs = np.vander(x, int(deg) + 1)
    if w is not None:
        w = as_array(w) + 0.0
        lhs = lhs * w[:, None]
        y = y * (w[:, None] if y.ndim == 2 else w)
    scale = np.sqrt(np.sum(lhs * lhs, axis=0))
    rcond = x.shape[0] * np.finfo(x.dtype).eps if rcond is None else rcond
    c = np.linalg.lstsq(lhs / scale, y, rcond)[0]
    return (c.T / scale).T
