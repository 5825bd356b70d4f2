"""Eigenvalues and singular values, and the exponential of a matrix.

    eigh   of Hermitian matrices        eig   of any square matrix        svd   of any matrix
    expm   the exponential

Eigenvectors are determined up to a factor, so only functions that do not depend on that factor
have a derivative: for complex eigh and svd the rules take the direction in which the factor stays
(diag(adjoint(v) @ v_dot) = 0); eig takes LAPACK's own (largest component real).

Where two eigenvalues are equal, eigenvectors have no derivative: it is NaN, unless nothing asks for
it, as for a sum of functions of eigenvalues.  Singular values zero: likewise.
"""

from __future__ import annotations

from math import nan
from typing import Any

import numpy as np
import scipy  # scipy.linalg is loaded when it is first used

from ..core.handle import Handle, is_traced, value_of
from ..core.node import Node
from ..kinds.batching import on_last_axes
from ..kinds.elementwise import POSITIVE, REAL, elementwise
from .choice import where
from .creation import full, identity, positions
from .linalg import adjoint, hermitian, matrices, real_dtype, solve
from .reductions import argmax

CONVERGE = "Look for NaN or infinity in it"


def quotient(x: Any, d: Any) -> Any:
    """x / d; where d is 0 it is NaN, but 0 where x is a zero that nobody will vary."""
    if is_traced(x) or is_traced(d):
        return spared_quotient(x, d)
    divisor = value_of(d)
    pole = divisor == 0
    if not pole.any():
        return x / d
    if not (isinstance(x, Handle) and type(x.node) is Node):
        spared = pole & (value_of(x) == 0)
        substitute = np.where(spared, 1.0, np.nan).astype(divisor.dtype)
        return x / where(pole, substitute, d)
    return x / where(pole, np.array(np.nan, divisor.dtype), d)


@elementwise(oracle="x / d", domain=[REAL, POSITIVE], complex_ok=True, singular=True)
def spared_quotient(s, x, d):
    """x / d; where d is 0 it is 0 if x is too, and NaN if not; its derivative there is NaN.

    What `quotient` is in graphs, in which values cannot be looked at.
    """
    pole = s.equal(d, 0)
    spared = s.logical_and(pole, s.equal(x, 0))
    return s.where(spared, 0 * x, x / s.where(pole, nan, d))


def _or_nan(d: Any) -> Any:
    return where(value_of(d) == 0, nan, d)


spared_quotient.partials(
    lambda t, out, x, d: t / _or_nan(d), lambda t, out, x, d: -t * (out / _or_nan(d))
)


def absent(t: Any) -> bool:
    """Whether a cotangent is a zero that nobody will vary: nobody asks for that output."""
    if is_traced(t):
        return type(t.node) is not Node and t.node.op is full and t.node.params["value"] == 0
    varied = isinstance(t, Handle) and type(t.node) is Node
    return not varied and not np.any(value_of(t))


def diagonal_of(x: Any) -> Any:
    """The diagonals of the matrices in the last two axes."""
    return np.diagonal(x, axis1=-2, axis2=-1)


def _off_diagonal(x: Any) -> Any:
    return where(identity(x.shape[-1], bool), 0.0, x)


def _diagonal_matrix(d: Any) -> Any:
    return d[..., None, :] * identity(d.shape[-1], real_dtype(d))


def _differences(w: Any) -> Any:
    """w_j - w_i, and 1 on the diagonal."""
    return where(identity(w.shape[-1], bool), 1.0, w[..., None, :] - w[..., :, None])


# ---- eigenvalues -------------------------------------------------------------------------------


@matrices(CONVERGE, oracle="numpy", prepare=lambda a: (hermitian(a),))
def eigh(a, *, lower=True):
    """Eigenvalues in rising order and orthonormal eigenvectors of Hermitian matrices.

    One triangle of `a` is read; the derivative is that of a function of (a + adjoint(a)) / 2.
    """
    return tuple(np.linalg.eigh(a, "L" if lower else "U"))


@eigh.define_vjp
def _eigh_vjp(t, out, a, *, lower=True):
    w, v = out
    t_w, t_v = t
    if absent(t_v):
        return (hermitian((v * t_w[..., None, :]) @ adjoint(v)),)
    turn = quotient(_off_diagonal(adjoint(v) @ t_v), _differences(w))
    return (hermitian(v @ (turn + _diagonal_matrix(t_w)) @ adjoint(v)),)


@eigh.define_jvp
def _eigh_jvp(dots, out, a, *, lower=True):
    w, v = out
    x = adjoint(v) @ hermitian(dots[0]) @ v
    return diagonal_of(x).real, v @ quotient(_off_diagonal(x), _differences(w))


on_last_axes(eigh, 2)


@eigh.examples
def _(rng):
    a = rng.normal(size=(3, 3)) + np.diag([0.0, 3.0, 6.0])
    yield (hermitian(a),), {}
    a = rng.normal(size=(2, 2, 2)) + np.diag([0.0, 3.0])
    yield (hermitian(a),), {"lower": False}


@matrices(CONVERGE, oracle="numpy")
def eig(a):
    """Eigenvalues and eigenvectors of length one, always complex."""
    w, v = np.linalg.eig(a)
    dtype = np.result_type(w.dtype, np.complex64)
    return w.astype(dtype), v.astype(dtype)


def _largest(v: Any) -> Any:
    """Where in each column the component of largest size stands, which LAPACK makes real."""
    size = np.abs(value_of(v))
    if size.shape[-1] == 0:
        return size > 0
    return argmax(size, axis=-2, keepdims=True) == positions(size.shape[-2])[:, None]


def _column_sums(x: Any) -> Any:
    return np.sum(x, axis=-2, keepdims=True)


@eig.define_jvp
def _eig_jvp(dots, out, a):
    w, v = out
    x = solve(v, dots[0] @ v)
    v_dot = v @ quotient(_off_diagonal(x), _differences(w))
    v_dot = v_dot - v * _column_sums(np.conjugate(v) * v_dot).real  # the length stays one
    mark = _largest(v)
    turn = _column_sums(where(mark, v_dot, 0.0)).imag / _column_sums(where(mark, v, 0.0)).real
    return diagonal_of(x), v_dot - v * (1j * turn)


@eig.define_vjp
def _eig_vjp(t, out, a):
    w, v = out
    t_w, t_v = t
    x_bar = _diagonal_matrix(t_w)
    if not absent(t_v):
        mark = _largest(v)
        turn = _column_sums(np.conjugate(t_v) * v).imag / _column_sums(where(mark, v, 0.0)).real
        t_v = t_v + where(mark, 1j * turn, 0.0)
        t_v = t_v - v * _column_sums(np.conjugate(t_v) * v).real
        gaps = np.conjugate(_differences(w))
        x_bar = x_bar + quotient(_off_diagonal(adjoint(v) @ t_v), gaps)
    return (solve(adjoint(v), x_bar @ adjoint(v)),)


on_last_axes(eig, 2)


@eig.examples
def _(rng):  # fixed: elsewhere LAPACK's sign may change between two points of a difference
    yield (np.array([[1.0, 0.3, -0.2], [0.1, 2.0, 0.4], [0.2, -0.3, 4.0]]),), {}
    yield (np.array([[1.0, 2.0], [-3.0, 0.5]]),), {}


# ---- singular values ---------------------------------------------------------------------------


@matrices(CONVERGE, oracle="numpy")
def svd(a, *, full_matrices=False):
    """U, s and adjoint(V) with a = U @ diag(s) @ adjoint(V), s falling.

    With `full_matrices` the bases are completed; the derivative of what completes them is the
    one that leaves them as they are within their own space.
    """
    return tuple(np.linalg.svd(a, full_matrices=full_matrices))


@svd.define_vjp
def _svd_vjp(t, out, a, *, full_matrices=False):
    (u, s, vh), (t_u, t_s, t_vh) = out, t
    k = s.shape[-1]
    v, t_v = adjoint(vh), adjoint(t_vh)
    u1, v1, t_u1, t_v1 = u[..., :k], v[..., :k], t_u[..., :k], t_v[..., :k]
    if absent(t_u) and absent(t_vh):
        return ((u1 * t_s[..., None, :]) @ vh[..., :k, :],)
    gaps = _differences(s) * _sums(s)  # s_j**2 - s_i**2
    in_u, in_v = adjoint(u1) @ t_u1, adjoint(v1) @ t_v1
    turn_u, turn_v = (quotient(_off_diagonal(x), gaps) for x in (in_u, in_v))
    core = (turn_u + adjoint(turn_u)) * s[..., None, :] + _diagonal_matrix(t_s)
    core = core + s[..., :, None] * (turn_v + adjoint(turn_v))
    if a.dtype.kind == "c":
        phase = diagonal_of(in_u).imag - diagonal_of(in_v).imag
        core = core + 1j * _diagonal_matrix(quotient(phase, 2.0 * s))
    bar = u1 @ core @ adjoint(v1)
    if a.shape[-2] != k:
        rest = _outside(u, u1, t_u, t_u1, in_u)
        bar = bar + quotient(rest, s[..., None, :]) @ adjoint(v1)
    if a.shape[-1] != k:
        rest = _outside(v, v1, t_v, t_v1, in_v)
        bar = bar + u1 @ adjoint(quotient(rest, s[..., None, :]))
    return (bar,)


def _sums(s: Any) -> Any:
    return where(identity(s.shape[-1], bool), 1.0, s[..., None, :] + s[..., :, None])


def _outside(u: Any, u1: Any, t_u: Any, t_u1: Any, inside: Any) -> Any:
    """The part of the cotangent outside the range, with what the completing vectors add."""
    rest = t_u1 - u1 @ inside
    k = u1.shape[-1]
    if u.shape[-1] != k:
        rest = rest - u[..., k:] @ (adjoint(t_u[..., k:]) @ u1)
    return rest


on_last_axes(svd, 2)


@svd.examples
def _(rng):
    yield (rng.normal(size=(3, 3)),), {}
    yield (rng.normal(size=(2, 2, 4)),), {}
    yield (rng.normal(size=(4, 2)),), {}


# ---- functions of a matrix ---------------------------------------------------------------------


@matrices(CONVERGE, oracle=lambda a: _expm_series(a))
def expm(a):
    """The exponential of a square matrix."""
    return scipy.linalg.expm(a)


def _derivative_of_expm(a: Any, direction: Any) -> Any:
    """By the exponential of [[a, direction], [0, a]]: Van Loan 1978, IEEE Trans. AC 23, 395-404."""
    n = a.shape[-1]
    both = identity(2 * n, real_dtype(a))
    first, second = both[:, :n], both[:, n:]
    block = first @ a @ first.T + second @ a @ second.T + first @ direction @ second.T
    return first.T @ expm(block) @ second


@expm.define_vjp
def _expm_vjp(t, out, a):
    return (_derivative_of_expm(adjoint(a), t),)


@expm.define_jvp
def _expm_jvp(dots, out, a):
    return _derivative_of_expm(a, dots[0])


def _expm_series(a: Any) -> Any:
    """By the power series of a small part of the matrix, squared up again."""
    small = a / 1024.0
    term = total = np.broadcast_to(np.eye(a.shape[-1]), a.shape)
    for k in range(1, 12):
        term = term @ small / k
        total = total + term
    return np.linalg.matrix_power(total, 1024)


on_last_axes(expm, 2)


@expm.examples
def _(rng):
    yield (rng.normal(size=(2, 2)),), {}
