"""Linear matrix equations: Sylvester and Lyapunov; other derivative rules use them too.

    sylvester             x with a @ x + x @ b = q
    discrete_lyapunov     x with a @ x @ adjoint(a) - x + q = 0
    solve_sylvester, solve_continuous_lyapunov, solve_discrete_lyapunov     as in SciPy

The derivative of such an equation is an equation of the same kind: differentiating
a x + x b = q gives a dx + dx b = dq - da x - x db.  So one operation serves both modes and all
orders.  (S. F. Walter and L. Lehmann, "Algorithmic differentiation of linear algebra functions",
2018; R. H. Bartels and G. W. Stewart, Comm. ACM 15 (1972), 820-826, for the solution.)
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
from numpy.linalg import LinAlgError

from wengert._engine.ops import casts
from wengert._engine.ops.linalg.linear_solve import adjoint, inv, regular

from ..dispatch import counterpart, floating
from .register import entry, power_into_range, square

__all__ = [
    *("solve_sylvester", "solve_continuous_lyapunov", "solve_discrete_lyapunov"),
    "solve_lyapunov",
]

_DISJOINT_SPECTRA = "The matrices a and -b must not have a common eigenvalue"


@entry(_DISJOINT_SPECTRA, "222", like=2, oracle=lambda a, b, q: _by_kronecker(a, b, q))
def sylvester(a, b, q):
    """x with a @ x + x @ b = q."""
    m, n = a.shape[-1], b.shape[-1]
    if a.shape != (m, m) or b.shape != (n, n) or q.shape != (m, n):
        raise ValueError(f"matrices of shape {a.shape}, {b.shape} and {q.shape}")
    dtype = np.result_type(a, b, q, np.float32)
    if q.size == 0:
        return np.zeros(q.shape, dtype)
    output = "complex" if dtype.kind == "c" else "real"
    unit = dtype.type(power_into_range(a, b))  # the threshold of trsyl is absolute
    r, u = scipy.linalg.schur(a.astype(dtype, copy=False) * unit, output=output)
    s, v = scipy.linalg.schur(adjoint(b.astype(dtype, copy=False)) * unit, output=output)
    (solve,) = scipy.linalg.get_lapack_funcs(("trsyl",), (r, s))
    inner = adjoint(u) @ q.astype(dtype, copy=False) @ v
    y, scale, info = solve(r, s, inner, tranb="C" if output == "complex" else "T")
    if info:
        raise LinAlgError("a and -b have a common eigenvalue, up to rounding")
    return u @ (y / scale) @ adjoint(v) * unit


def _by_kronecker(a: Any, b: Any, q: Any) -> Any:
    m, n = q.shape[-2:]
    rows = a[..., :, None, :, None] * np.eye(n)[:, None, :]
    columns = np.eye(m)[:, None, :, None] * b.mT[..., None, :, None, :]
    matrix = rows + columns
    batch = matrix.shape[:-4]
    right = np.broadcast_to(q, (*batch, m, n)).reshape((*batch, m * n, 1))
    return np.linalg.solve(matrix.reshape((*batch, m * n, -1)), right).reshape((*batch, m, n))


@sylvester.define_vjp
def _sylvester_vjp(t, out, a, b, q):
    z = sylvester(adjoint(a), adjoint(b), t)
    h = adjoint(out)
    return -(z @ h), -(h @ z), z


@sylvester.define_jvp
def _sylvester_jvp(dots, out, a, b, q):
    a_dot, b_dot, q_dot = dots
    right = q_dot
    for product in (
        None if a_dot is None else a_dot @ out,
        None if b_dot is None else out @ b_dot,
    ):
        if product is not None:
            right = -product if right is None else right - product
    return sylvester(a, b, right)


@sylvester.examples
def _(rng):
    yield (regular(rng, 3), regular(rng, 2), rng.normal(size=(3, 2))), {}
    yield (regular(rng, 2, 2), regular(rng, 2), rng.normal(size=(2, 2))), {}


@entry(
    "No product of two eigenvalues of a may be 1",
    "22",
    like=1,
    oracle=lambda a, q: _stein_by_kronecker(a, q),
)
def discrete_lyapunov(a, q):
    """x with a @ x @ adjoint(a) - x + q = 0."""
    n = a.shape[-1]
    if a.shape != (n, n) or q.shape != (n, n):
        raise ValueError(f"matrices of shape {a.shape} and {q.shape}")
    dtype = np.result_type(a, q, np.float32)
    if q.size == 0:
        return np.zeros(q.shape, dtype)
    return scipy.linalg.solve_discrete_lyapunov(a, q).astype(dtype, copy=False)


def _stein_by_kronecker(a: Any, q: Any) -> Any:
    n = a.shape[-1]
    batch = np.broadcast_shapes(a.shape[:-2], q.shape[:-2])
    both = np.einsum("...ij,...kl->...ikjl", a, np.conjugate(a))
    both = both.reshape((*a.shape[:-2], n * n, n * n))
    right = np.broadcast_to(q, (*batch, n, n)).reshape((*batch, n * n, 1))
    return np.linalg.solve(np.eye(n * n, dtype=a.dtype) - both, right).reshape((*batch, n, n))


_DIRECT = 10  # number of rows below which SciPy solves one system for all elements


@discrete_lyapunov.compose
def _(a, q):
    n = a.shape[-1]
    if not isinstance(n, int) or n == 0:
        return NotImplemented
    dtype = np.result_type(a.dtype, q.dtype, np.float32)
    a, q = casts.astype(a, dtype), casts.astype(q, dtype)
    if n < _DIRECT:
        return _stein_by_kronecker(a, q)
    h = adjoint(a)
    identity = np.eye(n, dtype=dtype)
    inverse = inv(h + identity)
    b = adjoint((h - identity) @ inverse)
    return sylvester(b, adjoint(b), -2.0 * (adjoint(inverse) @ q @ inverse))


@discrete_lyapunov.define_vjp
def _discrete_lyapunov_vjp(t, out, a, q):
    z = discrete_lyapunov(adjoint(a), t)
    return z @ a @ adjoint(out) + adjoint(z) @ a @ out, z


@discrete_lyapunov.define_jvp
def _discrete_lyapunov_jvp(dots, out, a, q):
    a_dot, right = dots
    if a_dot is not None:
        product = a_dot @ out @ adjoint(a) + a @ out @ adjoint(a_dot)
        right = product if right is None else right + product
    return discrete_lyapunov(a, right)


@discrete_lyapunov.examples
def _(rng):
    yield (0.3 * rng.normal(size=(3, 3)), rng.normal(size=(3, 3))), {}
    a = 0.3 * (rng.normal(size=(2, 2, 2)) + 1j * rng.normal(size=(2, 2, 2)))
    yield (a, rng.normal(size=(2, 2))), {}


# ---- SciPy's names -----------------------------------------------------------------------------


@counterpart(scipy.linalg.solve_sylvester)
def solve_sylvester(a: Any, b: Any, q: Any) -> Any:
    """The x with ``a @ x + x @ b = q``, as ``scipy.linalg.solve_sylvester``.

    Parameters
    ----------
    a : array_like of shape (..., m, m)
    b : array_like of shape (..., n, n)
    q : array_like of shape (..., m, n)

    Raises
    ------
    MatrixError
        `a` and ``-b`` have a common eigenvalue.

    Notes
    -----
    Two Schur factorizations; a gradient has the same cost.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> solve = wg.scipy.linalg.solve_sylvester
    >>> wg.grad(lambda q: solve(np.eye(2), np.eye(2), q).sum())(np.ones((2, 2)))
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """
    return sylvester(square(a, "solve_sylvester"), square(b, "solve_sylvester"), floating(q))


@counterpart(scipy.linalg.solve_continuous_lyapunov)
def solve_continuous_lyapunov(a: Any, q: Any) -> Any:
    """The x with ``a @ x + x @ adjoint(a) = q``, as ``scipy.linalg.solve_continuous_lyapunov``.

    Parameters
    ----------
    a, q : array_like of shape (..., n, n)

    Raises
    ------
    MatrixError
        Two eigenvalues of `a`, one of them conjugated, sum to zero.
    """
    a = square(a, "solve_continuous_lyapunov")
    return sylvester(a, adjoint(a), floating(q))


solve_lyapunov = solve_continuous_lyapunov  # SciPy's older name


@counterpart(scipy.linalg.solve_discrete_lyapunov)
def solve_discrete_lyapunov(a: Any, q: Any, method: str | None = None) -> Any:
    """The x with ``a @ x @ adjoint(a) - x + q = 0``, as ``scipy.linalg.solve_discrete_lyapunov``.

    Parameters
    ----------
    a, q : array_like of shape (..., n, n)
    method : {"direct", "bilinear"}, optional
        Ignored; the method depends on the size, as in SciPy.

    Raises
    ------
    MatrixError
        The product of two eigenvalues of `a`, one of them conjugated, is one.
    """
    return discrete_lyapunov(square(a, "solve_discrete_lyapunov"), floating(q))
