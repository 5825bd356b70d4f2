"""Triangular and nearly triangular forms: Schur's and Hessenberg's.

    schur_form, schur_rotation    operations
    schur, hessenberg             SciPy's names

a = z @ t @ adjoint(z) with unitary z.  With w = adjoint(z) dz, skew, the part of adjoint(z) da z
below the diagonal is that of w t - t w, which is solved for w column by column; what is left moves
t.  It needs distinct eigenvalues.  The phases of complex columns are free, and the derivative does
not turn them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
from numpy.linalg import LinAlgError

from ...core.handle import is_traced, value_of
from ...errors import ArgumentError, MatrixError, at, user_line
from ...ops import casts
from ...ops.choice import where
from ...ops.factorizations import triangle
from ...ops.linalg import adjoint
from ..dispatch import counterpart
from .entries import entry, square

__all__ = ["schur", "hessenberg"]


# ---- the equation ------------------------------------------------------------------------------


def _below(x: Any) -> Any:
    return triangle(x, True, strict=True)


def _rotation_oracle(t: Any, c: Any, *, back: bool) -> Any:
    """By the matrix of the map, from its values at unit matrices."""
    n = t.shape[-1]
    places = list(zip(*np.tril_indices(n, -1), strict=True))
    t = np.triu(t)
    m = np.conj(t.T) if back else t
    columns = []
    for i, j in places:
        x = np.zeros((n, n))
        x[i, j] = 1.0
        moved = x @ m - m @ x
        columns.append([moved[p] for p in places])
    found = np.linalg.solve(np.array(columns).T, np.array([c[p] for p in places]))
    out = np.zeros((n, n), found.dtype)
    for p, value in zip(places, found, strict=True):
        out[p] = value
    return out


@entry(
    "Its eigenvalues have to be distinct, and of a real matrix real: use output='complex'",
    "22",
    like=1,
    prepare=lambda t, c: (triangle(t, False), c),
    oracle=_rotation_oracle,
)
def schur_rotation(t, c, *, back):
    """The strictly lower x with the strictly lower part of x @ t - t @ x that of c; t upper.

    With `back`, the adjoint map: y @ adjoint(t) - adjoint(t) @ y.
    """
    n = t.shape[-1]
    if np.any(np.diagonal(t, -1)):
        raise LinAlgError("a block of two rows: two eigenvalues are conjugate")
    w, x = np.diagonal(t), np.zeros(c.shape, np.result_type(t, c))
    gaps = np.abs(w[:, None] - w)[np.tril_indices(n, -1)]
    if gaps.size and gaps.min() <= np.finfo(w.dtype).eps * n * np.abs(t).max():
        raise LinAlgError("two eigenvalues are equal, or nearly so")
    for j in range(n - 1)[::-1] if back else range(n - 1):
        rest = slice(j + 1, n)
        if back:
            known = x[rest, rest] @ np.conj(t[j, rest])
            m, lower = np.conj(t[rest, rest].T), True
        else:
            known, m, lower = x[rest, :j] @ t[:j, j], t[rest, rest], False
        middle = np.conj(w[j]) if back else w[j]
        m = middle * np.eye(n - 1 - j) - m
        x[rest, j] = scipy.linalg.solve_triangular(m, c[rest, j] - known, lower=lower)
    return x.astype(np.result_type(t, c, np.float32), copy=False)


@schur_rotation.define_vjp
def _schur_rotation_vjp(g, out, t, c, *, back):
    z = schur_rotation(t, g, back=not back)
    x, y = (z, out) if back else (out, z)
    return triangle(y @ adjoint(x) - adjoint(x) @ y, False), _below(z)


@schur_rotation.define_jvp
def _schur_rotation_jvp(dots, out, t, c, *, back):
    t_dot, right = dots
    if t_dot is not None:
        m = triangle(t_dot, False)
        m = adjoint(m) if back else m
        moved = m @ out - out @ m
        right = moved if right is None else right + moved
    return schur_rotation(t, right, back=back)


@schur_rotation.examples
def _(rng):
    t = np.triu(rng.normal(size=(3, 3)), 1) + np.diag([1.0, -2.0, 4.0])
    yield (t, rng.normal(size=(3, 3))), {"back": False}
    yield (t, rng.normal(size=(3, 3))), {"back": True}


# ---- Schur's form ------------------------------------------------------------------------------


def _schur_oracle(a: Any) -> Any:
    """From eigenvectors in LAPACK's order, made orthonormal, with its signs."""
    t, z = scipy.linalg.schur(a)
    w, v = np.linalg.eig(a)
    order = [int(np.argmin(np.abs(w - d))) for d in np.diagonal(t)]
    q = np.linalg.qr(v[:, order])[0]
    q = q * np.sign(np.sum(q * z, axis=0))
    return q.T @ a @ q, q


@entry("Look for NaN or infinity in it", "2", oracle=_schur_oracle)
def schur_form(a):
    """t, upper triangular, and unitary z with a = z @ t @ adjoint(z)."""
    t, z = scipy.linalg.schur(a)
    return t.astype(a.dtype, copy=False), z.astype(a.dtype, copy=False)


@schur_form.define_jvp
def _schur_form_jvp(dots, out, a):
    t, z = out
    c = adjoint(z) @ dots[0] @ z
    x = schur_rotation(t, c, back=False)
    w = x - adjoint(x)
    return triangle(c - w @ t + t @ w, False), z @ w


@schur_form.define_vjp
def _schur_form_vjp(g, out, a):
    t, z = out
    g_t = triangle(g[0], False)
    w_bar = adjoint(t) @ g_t - g_t @ adjoint(t) + adjoint(z) @ g[1]
    y = schur_rotation(t, _below(w_bar - adjoint(w_bar)), back=True)
    return (z @ (g_t + _below(y)) @ adjoint(z),)


@schur_form.examples
def _(rng):
    yield (np.array([[1.0, 0.3, -0.2], [0.1, 2.0, 0.4], [0.2, -0.3, 4.0]]),), {}


@counterpart(scipy.linalg.schur)
def schur(a: Any, output: str = "real", **kwargs: Any) -> tuple[Any, Any]:
    """Unitary triangularisation, as ``scipy.linalg.schur``.

    Parameters
    ----------
    a : array_like of shape (..., n, n)
    output : {"real", "complex"}
        "real" of a real matrix that has eigenvalues which are not real leaves blocks of two rows,
        and has no derivative here: use "complex".

    Returns
    -------
    T, Z : Tensor of shape (..., n, n)

    Raises
    ------
    MatrixError
        A derivative is asked for, and two eigenvalues are equal, or T has blocks.
    ArgumentError
        Sorting is asked for.

    Notes
    -----
    The phases of the columns of a complex Z are free, and a function of them has a derivative if it
    does not depend on them.
    """
    if kwargs.get("sort") is not None:
        raise ArgumentError(f"schur of a tensor with sort: the order is LAPACK's{at(user_line())}.")
    if output not in ("real", "complex", "r", "c"):
        raise ArgumentError(f"output={output!r} is neither 'real' nor 'complex'{at(user_line())}.")
    a = square(a, "schur")
    if output in ("complex", "c"):
        a = casts.astype(a, np.result_type(a.dtype, np.complex64))
    return schur_form(a)


# ---- Hessenberg's form -------------------------------------------------------------------------


@counterpart(scipy.linalg.hessenberg)
def hessenberg(
    a: Any, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Any:
    """What is zero below the first diagonal under it, as ``scipy.linalg.hessenberg``.

    Parameters
    ----------
    a : array_like of shape (n, n)
    calc_q : bool, default False
        Also return the unitary q with ``a = q @ h @ adjoint(q)``.

    Raises
    ------
    MatrixError
        A column is zero below that diagonal already: there the form jumps.

    Notes
    -----
    By Householder's reflections, each a few lines of a graph.
    """
    h = square(a, "hessenberg")
    n = h.shape[-1]
    q: Any = np.eye(n, dtype=h.dtype)
    for k in range(n - 1 if h.dtype.kind == "c" else n - 2):
        v, tau = _reflection(h[..., k + 1 :, k])
        keep = np.concatenate([np.zeros((*v.shape[:-1], k + 1), v.dtype), v], axis=-1)[..., None]
        h = h - np.conjugate(tau) * (keep @ (adjoint(keep) @ h))
        h = h - tau * ((h @ keep) @ adjoint(keep))
        q = q - tau * ((q @ keep) @ adjoint(keep))
    h = triangle_with_one(h)
    return (h, q) if calc_q else h


def triangle_with_one(h: Any) -> Any:
    """`h` with exact zeros below the first diagonal under the main one."""
    n = h.shape[-1]
    return where(np.tril(np.ones((n, n), bool), -2), 0.0, h)


def _reflection(x: Any) -> tuple[Any, Any]:
    """LAPACK's v and tau, by which 1 - tau v adjoint(v) brings a vector to its first axis."""
    first, rest = x[..., :1], x[..., 1:]
    outside = np.sum(np.abs(rest) ** 2, axis=-1, keepdims=True)
    zero = value_of(outside) == 0
    if x.shape[-1] == 1:  # the last element of a complex matrix is made real
        zero = False
    if not is_traced(outside) and np.any(zero):
        raise MatrixError(
            "hessenberg of a matrix that has zeros there already: the reflections jump next to "
            f"it{at(user_line())}."
        )
    real = first.real if x.dtype.kind == "c" else first
    size = np.sqrt(np.abs(first) ** 2 + where(zero, np.nan, outside))
    beta = where(value_of(real) >= 0, -size, size)
    ones = np.ones((*x.shape[:-1], 1), x.dtype)
    v = np.concatenate([ones, rest / (first - beta)], axis=-1)
    return v, ((beta - first) / beta)[..., None]
