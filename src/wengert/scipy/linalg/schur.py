"""The Schur and Hessenberg forms.

    schur_form            operation
    schur, hessenberg     as in SciPy

a = z @ t @ adjoint(z) with unitary z, and w = adjoint(z) dz is skew-Hermitian.  w follows from the
zeros of t (schur_vjp.py), and dt is adjoint(z) da z - w t + t w.  The derivative requires distinct
eigenvalues.  The phases of complex columns are arbitrary; the derivative keeps them constant.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from wengert._engine.autodiff.grad import stop_gradient
from wengert._engine.core.handle import is_traced, value_of
from wengert._engine.ops import casts
from wengert._engine.ops.elementwise.selection import where
from wengert._engine.ops.linalg.factorizations import triangle
from wengert._engine.ops.linalg.linear_solve import adjoint

from ...errors import ArgumentError, MatrixError, at, user_line
from ..dispatch import counterpart
from .register import entry, square
from .schur_vjp import nearly_upper, schur_rotation

__all__ = ["schur", "hessenberg"]


# ---- Schur form --------------------------------------------------------------------------------


def _schur_oracle(a: Any) -> Any:
    """Test oracle: orthonormalized eigenvectors in LAPACK's order, with its signs.

    The two columns of a 2x2 block are then rotated so that its diagonal elements are equal.
    """
    t, z = scipy.linalg.schur(a)
    w, v = np.linalg.eig(a)
    pairs = np.diagonal(t, -1) * np.diagonal(t, 1)
    w_of_t = np.diagonal(t) + 1j * np.sqrt(np.maximum(-np.append(pairs, 0.0), 0.0))
    columns = v[:, [int(np.argmin(np.abs(w - d))) for d in w_of_t]]
    firsts = np.flatnonzero(np.diagonal(t, -1))
    columns[:, firsts + 1] = columns[:, firsts].imag
    q = np.linalg.qr(columns.real)[0]
    for i in firsts:
        b = q[:, i : i + 2].T @ a @ q[:, i : i + 2]
        angle = 0.5 * np.arctan2(b[1, 1] - b[0, 0], b[0, 1] + b[1, 0])
        rotation = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        rotated = q[:, i : i + 2] @ rotation
        same_order = np.abs(rotated.T @ z[:, i : i + 2]).trace() > 1.0
        q[:, i : i + 2] = rotated if same_order else rotated[:, ::-1]
    q = q * np.sign(np.sum(q * z, axis=0))
    return q.T @ a @ q, q


@entry("Check it for NaN and infinity", "2", oracle=_schur_oracle)
def schur_form(a):
    """t, upper triangular except for 2x2 blocks, and unitary z with a = z @ t @ adjoint(z)."""
    t, z = scipy.linalg.schur(a)
    return t.astype(a.dtype, copy=False), z.astype(a.dtype, copy=False)


@schur_form.define_jvp
def _schur_form_jvp(dots, out, a):
    t, z = out
    c = adjoint(z) @ dots[0] @ z
    x = schur_rotation(t, c, back=False)
    w = x - adjoint(x)
    return nearly_upper(c - w @ t + t @ w, t), z @ w


@schur_form.define_vjp
def _schur_form_vjp(g, out, a):
    t, z = out
    g_t = nearly_upper(g[0], t)
    w_bar = adjoint(t) @ g_t - g_t @ adjoint(t) + adjoint(z) @ g[1]
    y = schur_rotation(t, triangle(w_bar - adjoint(w_bar), True, strict=True), back=True)
    return (z @ (g_t + y) @ adjoint(z),)


@schur_form.examples
def _(rng):
    yield (np.array([[1.0, 0.3, -0.2], [0.1, 2.0, 0.4], [0.2, -0.3, 4.0]]),), {}
    yield (np.array([[1.0, 1.4, -0.2], [-0.7, 1.5, 0.4], [0.2, -0.3, 4.0]]),), {}


@counterpart(scipy.linalg.schur)
def schur(a: Any, output: str = "real", **kwargs: Any) -> tuple[Any, Any]:
    """The Schur decomposition, as ``scipy.linalg.schur``.

    Parameters
    ----------
    a : array_like of shape (..., n, n)
    output : {"real", "complex"}
        "real" for a real matrix leaves a 2x2 block, with equal diagonal elements, for each pair of
        conjugate eigenvalues.

    Returns
    -------
    T, Z : Tensor of shape (..., n, n)

    Raises
    ------
    MatrixError
        A derivative is needed and two eigenvalues are equal; or a 2x2 block of T is a scaled
        rotation, as for every normal matrix: the rotation of its columns is not unique, and the
        real form is discontinuous. The complex form has a derivative there.
    ArgumentError
        `sort` is given.

    Notes
    -----
    The phases of the columns of a complex Z are arbitrary; derivatives are correct for functions
    that do not depend on them.
    """
    if kwargs.get("sort") is not None:
        raise ArgumentError(
            f"schur of a tensor with sort: sorting is not supported{at(user_line())}."
        )
    if output not in ("real", "complex", "r", "c"):
        raise ArgumentError(
            f"schur with output={output!r}: the output must be 'real' or 'complex'"
            f"{at(user_line())}."
        )
    a = square(a, "schur")
    if output in ("complex", "c"):
        a = casts.astype(a, np.result_type(a.dtype, np.complex64))
    return schur_form(a)


# ---- Hessenberg form ---------------------------------------------------------------------------


@counterpart(scipy.linalg.hessenberg)
def hessenberg(
    a: Any, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Any:
    """The Hessenberg form, zero below the first subdiagonal, as ``scipy.linalg.hessenberg``.

    Parameters
    ----------
    a : array_like of shape (n, n)
    calc_q : bool, default False
        Also return the unitary q with ``a = q @ h @ adjoint(q)``.

    Raises
    ------
    MatrixError
        A column is already zero below the subdiagonal: the form is discontinuous there.

    Notes
    -----
    Computed by Householder reflections; the number of graph nodes is proportional to n.
    """
    h = square(a, "hessenberg")
    n = h.shape[-1]
    q: Any = np.eye(n, dtype=h.dtype)
    for k in range(n - 1 if h.dtype.kind == "c" else n - 2):
        v, tau = _reflection(h[..., k + 1 :, k])
        padded_v = np.concatenate([np.zeros((*v.shape[:-1], k + 1), v.dtype), v], axis=-1)[
            ..., None
        ]
        h = h - np.conjugate(tau) * (padded_v @ (adjoint(padded_v) @ h))
        h = h - tau * ((h @ padded_v) @ adjoint(padded_v))
        q = q - tau * ((q @ padded_v) @ adjoint(padded_v))
    h = to_hessenberg(h)
    return (h, q) if calc_q else h


def to_hessenberg(h: Any) -> Any:
    """`h` with exact zeros below the first subdiagonal."""
    n = h.shape[-1]
    return where(np.tril(np.ones((n, n), bool), -2), 0.0, h)


def _reflection(x: Any) -> tuple[Any, Any]:
    """LAPACK's v and tau: 1 - tau v adjoint(v) maps a vector to a multiple of the first axis."""
    largest = stop_gradient(np.max(np.abs(x), axis=-1, keepdims=True))  # v, tau are scale invariant
    x = x / where(value_of(largest) == 0, 1.0, largest)
    first, rest = x[..., :1], x[..., 1:]
    rest_norm = np.sum(np.abs(rest) ** 2, axis=-1, keepdims=True)
    zero = value_of(rest_norm) == 0
    if x.shape[-1] == 1:  # the last element of a complex matrix is made real
        zero = False
    if not is_traced(rest_norm) and np.any(zero):
        raise MatrixError(
            "hessenberg of a matrix with a column that is already zero below the subdiagonal: the "
            f"form is discontinuous there{at(user_line())}."
        )
    real = first.real if x.dtype.kind == "c" else first
    size = np.sqrt(np.abs(first) ** 2 + where(zero, np.nan, rest_norm))
    beta = where(value_of(real) >= 0, -size, size)
    ones = np.ones((*x.shape[:-1], 1), x.dtype)
    v = np.concatenate([ones, rest / (first - beta)], axis=-1)
    return v, ((beta - first) / beta)[..., None]
