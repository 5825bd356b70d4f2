"""Linear algebra: solving, inverse, determinants, pseudoinverse.

    matrices    the decorator that registers such an operation: LAPACK's refusals become our errors
    adjoint     conjugate transpose
    solve, inv, det, slogdet, pinv, matrix_rank

Factorizations are in ops/factorizations.py, eigenvalues and singular values in ops/spectral.py.
Matrices stand in the last two axes.  Rules are written with the operations themselves, so every
order of derivative exists; for complex matrices they give the direction of steepest ascent.  Most
are collected by M. B. Giles, "Collected matrix derivative results for forward and reverse mode
algorithmic differentiation", 2008.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from ..core.handle import Handle, value_of
from ..core.op import register
from ..core.spec import example_of, spec_of
from ..errors import MatrixError, at, user_line
from ..kinds.opaque import Opaque
from .choice import where
from .joining import stack
from .shapes import reshape


class MatrixOperation(Opaque):
    """An operation of LAPACK's; made by the decorator `matrices`.

    Attributes
    ----------
    prepare : callable or None
        Makes operands as the operation needs them of any: Hermitian ones, for an operation that
        reads one triangle only.  The laws differentiate the operation after it.
    """

    prepare: Any = None

    def example(self, spec: Any) -> Any:
        """An identity matrix, which LAPACK does not refuse."""
        x = example_of(spec)
        return x * np.eye(*x.shape[-2:], dtype=x.dtype) if np.ndim(x) > 1 else x


def matrices(hint: str, *, prepare: Any = None, **options: Any) -> Any:
    """Register the function below it as an operation on matrices (a decorator).

    Parameters
    ----------
    hint : str
        What to do when LAPACK refuses the matrix.
    prepare : callable, optional
        See `MatrixOperation`.
    """

    def enter(run: Any) -> Any:
        @functools.wraps(run)
        def checked(*args: Any, **params: Any) -> Any:
            try:
                return run(*args, **params)
            except LinAlgError as error:
                given = ", ".join(str(spec_of(np.asarray(x))) for x in args)
                raise MatrixError(
                    f"{run.__name__} of {given}: {str(error).rstrip('.')}. {hint}{at(user_line())}."
                ) from error

        op = MatrixOperation(checked, trusted=True, **options)
        op.prepare = prepare
        return register(op)

    return enter


def adjoint(x: Any) -> Any:
    """The conjugate transpose of the matrices in the last two axes."""
    return np.conjugate(x.mT) if x.dtype.kind == "c" else x.mT


def hermitian(x: Any) -> Any:
    """The Hermitian part."""
    return (x + adjoint(x)) * 0.5


def trace_of(x: Any, y: Any) -> Any:
    """The trace of x @ y."""
    return np.sum(x * y.mT, axis=(-2, -1))


def spread(x: Any) -> Any:
    """A number for each matrix, with two axes of length one, to be multiplied with it."""
    return x[..., None, None]


# ---- solving -----------------------------------------------------------------------------------


@matrices("Use lstsq, or add a multiple of the identity, if it may be singular", oracle="numpy")
def solve(a, b):
    """x with a @ x = b; b is one vector if it has one axis, else matrices."""
    return np.linalg.solve(a, b)


@solve.define_vjp
def _solve_vjp(t, out, a, b):
    if b.ndim == 1:
        b_bar = solve(adjoint(a), t[..., None])
        x = out[..., None]
        return -(b_bar @ adjoint(x)), b_bar[..., 0]
    b_bar = solve(adjoint(a), t)
    return -(b_bar @ adjoint(out)), b_bar


@solve.define_jvp
def _solve_jvp(dots, out, a, b):
    a_dot, b_dot = dots
    vector = b.ndim == 1
    right = None if b_dot is None else b_dot[:, None] if vector else b_dot
    if a_dot is not None:
        moved = a_dot @ (out[..., None] if vector else out)
        right = -moved if right is None else right - moved
    x_dot = solve(a, right)
    return x_dot[..., 0] if vector else x_dot


@solve.examples
def _(rng):
    yield (_regular(rng, 3), rng.normal(size=3)), {}
    yield (_regular(rng, 3), rng.normal(size=(3, 2))), {}
    yield (_regular(rng, 2, 1, 3), rng.normal(size=(4, 3, 2))), {}
    yield (_regular(rng, 2, 3), rng.normal(size=3)), {}


def _regular(rng, *shape):
    """Matrices that are well away from singular ones; the last length counts twice."""
    n = shape[-1]
    return rng.normal(size=(*shape, n)) + 3.0 * np.eye(n)


@matrices("Use pinv, or solve or lstsq for a right-hand side", oracle="numpy")
def inv(a):
    """The inverse."""
    return np.linalg.inv(a)


@inv.define_vjp
def _inv_vjp(t, out, a):
    h = adjoint(out)
    return (-(h @ t @ h),)


@inv.define_jvp
def _inv_jvp(dots, out, a):
    return -(out @ dots[0] @ out)


@inv.examples
def _(rng):
    yield (_regular(rng, 3),), {}
    yield (_regular(rng, 2, 2),), {}


# ---- determinants ------------------------------------------------------------------------------


@matrices("The determinant is that of square matrices", oracle="numpy")
def det(a):
    """The determinant; its derivatives of every order are right for singular matrices too."""
    return np.linalg.det(a)


@det.define_vjp
def _det_vjp(t, out, a):
    c = cofactors(a, out)
    return (spread(t) * (np.conjugate(c) if c.dtype.kind == "c" else c),)


@det.define_jvp
def _det_jvp(dots, out, a):
    return np.sum(cofactors(a, out) * dots[0], axis=(-2, -1))


@det.examples
def _(rng):
    yield (_regular(rng, 3),), {}
    yield (_regular(rng, 2, 2),), {}
    yield (np.outer([1.0, 2.0, -1.0], [0.5, 1.0, 3.0]),), {}
    yield (np.diag([2.0, 0.0, 1.0]),), {}


def cofactors(a: Any, d: Any) -> Any:
    """The matrices of cofactors, the derivatives of the determinants `d` by the elements.

    det(a) inv(a).T where that is sound; the singular value decomposition otherwise.  When the
    derivative is being recorded, so that it may be differentiated again, a matrix that is singular
    or not far from it takes a form that is smooth (`_smooth`).
    """
    x = value_of(a)
    recorded = isinstance(a, Handle)
    rounding = float(np.finfo(x.dtype).eps) * max(x.shape[-1], 1)
    inverse = _sound_inverse(x, 1.0 / STEP if recorded else 0.01 / rounding)
    if inverse is not None:
        return spread(d) * (inv(a) if recorded else inverse).mT
    if not recorded:
        return _cofactors_by_svd(x)
    every = []
    for index in np.ndindex(*x.shape[:-2]):
        floor = 10.0 * rounding * np.linalg.norm(x[index], 2)
        every.append(_smooth(a[index], floor)[0].mT)
    return reshape(stack(*every, axis=0), shape=x.shape)


def _sound_inverse(x: Any, limit: float) -> Any:
    """The inverses, or None if one of them is missing or has a condition above the limit."""
    try:
        inverse = np.linalg.inv(x)
    except LinAlgError:
        return None
    return inverse if np.all(_one_norm(x) * _one_norm(inverse) < limit) else None


def _one_norm(x: Any) -> Any:
    return np.abs(x).sum(-2).max(-1, initial=0.0)


def _cofactors_by_svd(x: Any) -> Any:
    u, s, vh = np.linalg.svd(x)
    n = s.shape[-1]
    others = np.ones_like(s)  # the product of the other singular values
    for i in range(n):
        others[..., i] = np.prod(np.delete(s, i, -1), -1)
    sign = np.linalg.det(u) * np.linalg.det(vh)
    return spread(sign) * np.conjugate((u * others[..., None, :]) @ vh)


STEP = 1e-4  # how much smaller than the largest a singular value is to be set apart


def _smooth(a: Any, floor: float) -> tuple[Any, Any]:
    """Adjugate and determinant of one matrix, of whatever rank, as smooth functions of it.

    In the bases of its singular vectors, which are constants here, the matrix is [[p, q], [r, w]]
    with p well conditioned and w small.  Its determinant is det(p) det(z), z = w - r inv(p) q, and
    its adjugate needs inv(p) and the adjugate of z; z is taken apart in the same way, down to what
    is zero but for rounding, or small enough to have its adjugate as a polynomial.
    """
    u, s, vh = np.linalg.svd(value_of(a))
    n = s.size
    rank = int(np.sum(s > STEP * s[0]))
    if s[0] <= floor or (rank == n and n <= 3):
        return _adjugate(a)
    v, uh = np.conjugate(vh.mT), np.conjugate(u.mT)
    b = uh @ a @ v
    v1, v2, u1, u2 = v[:, :rank], v[:, rank:], uh[:rank], uh[rank:]
    p = b[:rank, :rank]
    inverse, scale = inv(p), det(p) * (np.linalg.det(u) * np.linalg.det(vh))
    if rank == n:
        return (v @ inverse @ uh) * scale, scale
    q, r = b[:rank, rank:], b[rank:, :rank]
    left, right = v2 - v1 @ (inverse @ q), u2 - (r @ inverse) @ u1
    core, last = _smooth(b[rank:, rank:] - r @ inverse @ q, floor)
    return (last * (v1 @ inverse @ u1) + left @ core @ right) * scale, last * scale


def _adjugate(z: Any) -> tuple[Any, Any]:
    """Adjugate and determinant by Faddeev and LeVerrier: a polynomial, right at zero."""
    n = z.shape[-1]
    eye = np.eye(n, dtype=z.dtype)
    m: Any = eye
    for k in range(1, n):
        product = z @ m
        m = product - eye * (np.sum(product * eye) / k)
    sign = -1.0 if n % 2 == 0 else 1.0
    return m * sign, np.sum((z @ m) * eye) * (sign / n)


@matrices("The determinant is that of square matrices", oracle="numpy")
def slogdet(a):
    """The sign of the determinant (a phase if complex), and the logarithm of its size."""
    return tuple(np.linalg.slogdet(a))


@slogdet.define_vjp
def _slogdet_vjp(t, out, a):
    t_sign, t_log = t
    weight = t_log
    if a.dtype.kind == "c":
        weight = t_log - 1j * (np.conjugate(t_sign) * out[0]).imag
    unused = np.isneginf(value_of(out[1])) & (value_of(weight) == 0)
    if unused.any():  # singular, and nobody asks
        a = where(spread(unused), np.eye(a.shape[-1], dtype=a.dtype), a)
    return (spread(weight) * adjoint(inv(a)),)


@slogdet.define_jvp
def _slogdet_jvp(dots, out, a):
    change = trace_of(inv(a), dots[0])
    if a.dtype.kind != "c":
        return np.zeros_like(value_of(out[0])), change
    return 1j * (change.imag * out[0]), change.real


@slogdet.examples
def _(rng):
    yield (_regular(rng, 3),), {}
    yield (_regular(rng, 2, 2),), {}


# ---- matrices of any rank ----------------------------------------------------------------------


@matrices("Look for NaN or infinity in it", oracle="numpy")
def pinv(a, *, rtol=None, hermitian=False):
    """The pseudoinverse; differentiable among matrices of the same rank.

    Golub and Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares problems
    whose variables separate", SIAM J. Numer. Anal. 10 (1973), 413-432.
    """
    cutoff = () if rtol is None else (np.asarray(rtol),)
    return np.linalg.pinv(a, *cutoff, hermitian=hermitian)


@pinv.define_vjp
def _pinv_vjp(t, out, a, *, rtol=None, hermitian=False):
    h, th = adjoint(out), adjoint(t)
    outside = th - a @ (out @ th)  # t^H, outside the range of a
    across = th - (th @ out) @ a
    return (-(h @ t @ h) + outside @ (out @ h) + (h @ out) @ across,)


@pinv.define_jvp
def _pinv_jvp(dots, out, a, *, rtol=None, hermitian=False):
    h, dh = adjoint(out), adjoint(dots[0])
    outside = dh - (dh @ a) @ out
    across = dh - out @ (a @ dh)
    return -(out @ dots[0] @ out) + (out @ h) @ outside + across @ (h @ out)


@pinv.examples
def _(rng):
    yield (rng.normal(size=(4, 2)),), {}
    yield (rng.normal(size=(2, 2, 3)),), {}


@matrices("Look for NaN or infinity in it", oracle="numpy", discrete=True)
def matrix_rank(a, *, tol=None, hermitian=False, rtol=None):
    """How many singular values are larger than the tolerance; a whole number."""
    return np.linalg.matrix_rank(a, tol, hermitian, rtol=rtol)


@matrix_rank.examples
def _(rng):
    yield (rng.normal(size=(3, 2)) @ rng.normal(size=(2, 4)),), {}
    yield (rng.normal(size=(2, 2, 2)),), {}
