"""Matrix equations: Sylvester, Lyapunov, and the algebraic Riccati equations.

    sylvester          x with a @ x + x @ b = q
    discrete_lyapunov  x with a @ x @ adjoint(a) - x + q = 0
    continuous_are     a' x e + e' x a - (e' x b + s) inv(r) (b' x e + s') + q = 0
    discrete_are       a' x a - e' x e - (a' x b + s) inv(r + b' x b) (b' x a + s') + q = 0
    solve_sylvester, solve_continuous_lyapunov, solve_discrete_lyapunov, solve_continuous_are,
    solve_discrete_are    as in SciPy

The derivative of such an equation is an equation of the same kind: differentiating
a x + x b = q gives a dx + dx b = dq - da x - x db.  So one operation serves both modes and all
orders.  (S. F. Walter and L. Lehmann, "Algorithmic differentiation of linear algebra functions",
2018; R. H. Bartels and G. W. Stewart, Comm. ACM 15 (1972), 820-826, for the solution.)

In the Riccati equations ' is the adjoint.  Their derivative by the implicit function theorem is the
solution of a Lyapunov equation of the closed loop (P. Gahinet and A. Laub, "Computable bounds for
the sensitivity of the algebraic Riccati equation", SIAM J. Control Optim. 28 (1990), 1461-1480).  q
and r are Hermitian, and so are x and the gradients with respect to q and r.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
from numpy.linalg import LinAlgError

from wengert._engine.core.op_facts import BY_SCIPY, facts
from wengert._engine.ops import casts
from wengert._engine.ops.linalg.linear_solve import adjoint, hermitian, inv, regular, solve

from ..dispatch import counterpart, floating
from .register import entry, power_into_range, square

__all__ = [
    "solve_continuous_are", "solve_continuous_lyapunov", "solve_discrete_are",
    "solve_discrete_lyapunov", "solve_lyapunov", "solve_sylvester",
]  # fmt: skip

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


_STABILIZABLE = "The pair (a, b) must be stabilizable, and r nonsingular"


def _symmetric(a: Any, b: Any, q: Any, r: Any, e: Any, s: Any) -> Any:
    return a, b, hermitian(q), hermitian(r), e, s


def _eliminate_e(a: Any, b: Any, q: Any, r: Any, e: Any, s: Any) -> Any:
    """Equivalent operands with the identity as e, for which SciPy sorts eigenvalues correctly."""
    inverse = np.linalg.inv(e)
    reduced_q = hermitian(adjoint(inverse) @ q @ inverse)
    return a @ inverse, b, reduced_q, r, None, adjoint(inverse) @ s


def _residual(discrete: bool, x: Any, a: Any, b: Any, q: Any, r: Any, e: Any, s: Any) -> Any:
    if discrete:
        g = adjoint(b) @ x @ a + adjoint(s)
        rest = adjoint(a) @ x @ a - adjoint(e) @ x @ e
        return rest - adjoint(g) @ np.linalg.solve(r + adjoint(b) @ x @ b, g) + q
    g = adjoint(b) @ x @ e + adjoint(s)
    return adjoint(a) @ x @ e + adjoint(e) @ x @ a - adjoint(g) @ np.linalg.solve(r, g) + q


def _by_newton(discrete: bool) -> Any:
    """Test oracle: Newton steps on the residual, starting from SciPy's solution."""

    def value(a: Any, b: Any, q: Any, r: Any, e: Any, s: Any) -> Any:
        n = a.shape[-1]
        x, step = (
            scipy.linalg.solve_discrete_are(np.eye(n), b @ b.T + np.eye(n), q, np.eye(n)),
            1e-6,
        )
        units = [u.reshape(n, n) for u in np.eye(n * n)]
        for _ in range(60):
            at = [
                _residual(discrete, x + k * step * u, a, b, q, r, e, s)
                for u in units
                for k in (1, -1)
            ]
            slope = np.stack(
                [(p - m).ravel() / (2 * step) for p, m in zip(at[::2], at[1::2], strict=True)], -1
            )
            x = x - np.linalg.solve(
                slope, _residual(discrete, x, a, b, q, r, e, s).ravel()
            ).reshape(n, n)
        return x

    return value


@facts(host_callback=BY_SCIPY)
@entry(_STABILIZABLE, "222222", like=0, prepare=_symmetric, oracle=_by_newton(False))
def continuous_are(a, b, q, r, e, s):
    """The stabilizing x of the Riccati equation in continuous time."""
    dtype = np.result_type(a, b, q, r, e, s, np.float32)
    found = scipy.linalg.solve_continuous_are(*_eliminate_e(a, b, q, r, e, s))
    return found.astype(dtype, copy=False)


@facts(host_callback=BY_SCIPY)
@entry(_STABILIZABLE, "222222", like=0, prepare=_symmetric, oracle=_by_newton(True))
def discrete_are(a, b, q, r, e, s):
    """The stabilizing x of the Riccati equation in discrete time."""
    dtype = np.result_type(a, b, q, r, e, s, np.float32)
    found = scipy.linalg.solve_discrete_are(*_eliminate_e(a, b, q, r, e, s))
    return found.astype(dtype, copy=False)


def _plus_adjoint(x: Any) -> Any:
    return x + adjoint(x)


def _continuous_terms(x: Any, a: Any, b: Any, q: Any, r: Any, e: Any, s: Any) -> Any:
    k = solve(hermitian(r), adjoint(b) @ x @ e + adjoint(s))
    closed = a - b @ k
    return k, closed, x @ e, x @ closed


def _discrete_terms(x: Any, a: Any, b: Any, q: Any, r: Any, e: Any, s: Any) -> Any:
    k = solve(hermitian(r) + adjoint(b) @ x @ b, adjoint(b) @ x @ a + adjoint(s))
    closed = a - b @ k
    return k, closed, x @ closed, -(x @ e)


def _define_rules(op: Any, terms: Any, equation: Any) -> None:
    """Define the jvp and vjp of a Riccati equation.

    With the gain k, the tangent of the left side at constant x is dq + k' dr k plus the Hermitian
    part (a sum with the adjoint) of p' da + o' de - p' db k - ds k: `terms` are k, a - b k, p and
    o. The tangent of x solves the Lyapunov equation `equation` with this right-hand side.
    """

    @op.define_jvp
    def forward(dots, out, *args):
        a_dot, b_dot, q_dot, r_dot, e_dot, s_dot = dots
        k, closed, p, o = terms(out, *args)
        total: Any = 0.0
        if a_dot is not None:
            total = total + _plus_adjoint(adjoint(p) @ a_dot)
        if e_dot is not None:
            total = total + _plus_adjoint(adjoint(o) @ e_dot)
        if b_dot is not None:
            total = total - _plus_adjoint(adjoint(p) @ b_dot @ k)
        if s_dot is not None:
            total = total - _plus_adjoint(s_dot @ k)
        if q_dot is not None:
            total = total + hermitian(q_dot)
        if r_dot is not None:
            total = total + adjoint(k) @ hermitian(r_dot) @ k
        h = adjoint(args[4])
        right_side = adjoint(solve(h, adjoint(solve(h, total))))
        return equation(solve(h, adjoint(closed)), right_side)

    @op.define_vjp
    def reverse(t, out, *args):
        e = args[4]
        k, closed, p, o = terms(out, *args)
        w = equation(adjoint(solve(adjoint(e), adjoint(closed))), hermitian(t))
        w = solve(e, adjoint(solve(e, adjoint(w))))
        side = w @ adjoint(k)
        a_bar = 2.0 * (p @ w)
        return a_bar, -2.0 * (p @ side), w, k @ side, 2.0 * (o @ w), -2.0 * side


_define_rules(continuous_are, _continuous_terms, lambda m, n: sylvester(m, adjoint(m), -n))
_define_rules(discrete_are, _discrete_terms, discrete_lyapunov)


def _system(rng: Any) -> Any:
    a, b = 0.1 * rng.normal(size=(2, 2)) - 0.5 * np.eye(2), rng.normal(size=(2, 1))
    q = 0.3 * rng.normal(size=(2, 2))
    s, e = 0.1 * rng.normal(size=(2, 1)), np.eye(2) + 0.1 * rng.normal(size=(2, 2))
    return a, b, q @ q.T + np.eye(2), np.array([[2.0]]), e, s


@continuous_are.examples
def _(rng):
    yield _system(rng), {}


@discrete_are.examples
def _(rng):
    yield _system(rng), {}


def _with_defaults(name: str, a: Any, b: Any, q: Any, r: Any, e: Any, s: Any) -> Any:
    a, b, q, r = square(a, name), floating(b), square(q, name), square(r, name)
    e = np.eye(a.shape[-1], dtype=a.dtype) if e is None else square(e, name)
    s = np.zeros(b.shape[-2:], b.dtype) if s is None else floating(s)
    return a, b, q, r, e, s


@counterpart(scipy.linalg.solve_continuous_are)
def solve_continuous_are(
    a: Any, b: Any, q: Any, r: Any, e: Any = None, s: Any = None, balanced: bool = True
) -> Any:
    """The stabilizing solution in continuous time, as ``scipy.linalg.solve_continuous_are``.

    Parameters
    ----------
    a : array_like of shape (..., n, n)
    b : array_like of shape (..., n, m)
    q : array_like of shape (..., n, n)
        Hermitian, as its gradient is.
    r : array_like of shape (..., m, m)
        Hermitian and nonsingular; its gradient is Hermitian.
    e : array_like of shape (..., n, n), optional
        Nonsingular; by default the identity.
    s : array_like of shape (..., n, m), optional
        By default zero.
    balanced : bool
        Ignored; for compatibility with SciPy.

    Raises
    ------
    MatrixError
        There is no stabilizing solution.
    """
    return continuous_are(*_with_defaults("solve_continuous_are", a, b, q, r, e, s))


@counterpart(scipy.linalg.solve_discrete_are)
def solve_discrete_are(
    a: Any, b: Any, q: Any, r: Any, e: Any = None, s: Any = None, balanced: bool = True
) -> Any:
    """The stabilizing solution in discrete time, as ``scipy.linalg.solve_discrete_are``.

    Parameters and errors are those of `solve_continuous_are`.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> one = np.ones((1, 1))
    >>> x = lambda a: wg.scipy.linalg.solve_discrete_are(a, one, one, one)[0, 0]
    >>> round(float(x(one)), 6), float(wg.grad(x)(one)[0, 0].round(6))
    (1.618034, 1.447214)
    """
    return discrete_are(*_with_defaults("solve_discrete_are", a, b, q, r, e, s))
