"""The Schur and Hessenberg forms, and the derivative of the unitary factor of the former.

    schur_form           operation
    schur, hessenberg    as in SciPy
    schur_rotation       operation: a linear equation in the Schur form, and its adjoint
    nearly_upper         the quasi-triangular part of a matrix

a = z @ t @ adjoint(z) with unitary z, and w = adjoint(z) dz is skew-Hermitian.  w follows from the
zeros of t, and dt is adjoint(z) da z - w t + t w.  The derivative requires distinct eigenvalues.
The phases of complex columns are arbitrary; the derivative keeps them constant.

Below the diagonal blocks of t, w t - t w = adjoint(z) da z =: c, which is solved for w by block
columns.  A 2x2 block
[[p, q], [r, s]], for a pair of conjugate eigenvalues, has equal diagonal elements (LAPACK's
dlanv2); this condition determines the rotation angle of its columns, with the coefficient
-2 (q + r).  If q = -r the block is a scaled rotation and the angle is arbitrary: there is no
derivative.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
from numpy.linalg import LinAlgError

from wengert._engine.autodiff.grad import stop_gradient
from wengert._engine.core.handle import is_traced, value_of
from wengert._engine.ops import casts
from wengert._engine.ops.creation import positions
from wengert._engine.ops.elementwise.selection import where
from wengert._engine.ops.linalg.factorizations import triangle
from wengert._engine.ops.linalg.linear_solve import adjoint

from ...errors import ArgumentError, MatrixError, at, user_line
from ..dispatch import counterpart
from .register import entry, square

__all__ = ["schur", "hessenberg", "nearly_upper", "schur_rotation"]


def nearly_upper(x: Any, t: Any) -> Any:
    """The upper triangle of `x`, and the elements below it within the blocks of `t`."""
    upper = triangle(x, False)
    if t.dtype.kind == "c":
        return upper
    i = positions(x.shape[-1])
    subdiagonal = (i[:, None] == i + 1) & (value_of(t) != 0)
    return upper + where(subdiagonal, x, 0.0)


def _separate_blocks(t: Any) -> Any:
    """Set subdiagonal elements to 0 if they are negligible or overlap with another block."""
    large = np.abs(value_of(t)) > 0.1
    follows = np.roll(triangle(large * 1.0, True, strict=True), (1, 1), axis=(-2, -1))
    return nearly_upper(t, where(large & (follows == 0.0), t, 0.0))


def _blocks(t: Any) -> list[tuple[int, int]]:
    """The start and end of the diagonal blocks."""
    n, found, start = t.shape[-1], [], 0
    while start < n:
        stop = start + (2 if start + 1 < n and t[start + 1, start] != 0 else 1)
        found.append((start, stop))
        start = stop
    return found


def _check_distinct(t: Any, blocks: list[tuple[int, int]]) -> None:
    """Raise an error if the derivative does not exist, up to rounding."""
    n = t.shape[-1]
    limit = np.finfo(t.dtype).eps * n * np.abs(t).max(initial=0.0)
    values: list[Any] = [np.linalg.eigvals(t[i:j, i:j]) for i, j in blocks]
    for k, ((i, j), w) in enumerate(zip(blocks, values, strict=True)):
        if j - i == 2 and abs(t[i, i + 1] + t[i + 1, i]) <= limit:
            raise LinAlgError(
                "a 2x2 block of the Schur form is a scaled rotation, so the rotation of its "
                "columns is not unique"
            )
        for other in values[:k]:
            if np.abs(w[:, None] - other).min() <= limit:
                raise LinAlgError("two eigenvalues are equal, up to rounding")


def _rotation_oracle(t: Any, c: Any, *, back: bool) -> Any:
    """Test oracle: solve with the matrix of the linear map, from its values at unit matrices."""
    n = t.shape[-1]
    t = np.triu(t, -1)
    indices = list(zip(*np.tril_indices(n, -1), strict=True))
    in_blocks = [(i, j) for i, j in indices if i == j + 1 and t[i, j] != 0]

    def read(y: Any) -> Any:
        return np.array([y[j, j] - y[i, i] if (i, j) in in_blocks else y[i, j] for i, j in indices])

    def map_of(k: int) -> Any:
        x = np.zeros((n, n))
        x[indices[k]] = 1.0
        w = x - x.T
        return read(w @ t - t @ w)

    m = np.array([map_of(k) for k in range(len(indices))]).T
    out = np.zeros((n, n), np.result_type(t, c))
    if not back:
        for p, value in zip(indices, np.linalg.solve(m, read(c)), strict=True):
            out[p] = value
        return out
    found = np.linalg.solve(np.conj(m.T), np.array([c[p] for p in indices]))
    for (i, j), value in zip(indices, found, strict=True):
        if (i, j) in in_blocks:
            out[j, j], out[i, i] = out[j, j] + value, out[i, i] - value
        else:
            out[i, j] = value
    return out


@entry(
    "Its eigenvalues must be distinct; use output='complex' if a 2x2 block is a scaled rotation",
    "22",
    like=1,
    prepare=lambda t, c: (_separate_blocks(t), c),
    oracle=_rotation_oracle,
)
def schur_rotation(t, c, *, back):
    """The strictly lower x such that w = x - adjoint(x) preserves the Schur form of t.

    Below the blocks w @ t - t @ w equals c; within a 2x2 block the differences of the two diagonal
    elements are equal.  With `back`, the adjoint map of c.
    """
    dtype = np.result_type(t, c, np.float32)
    if not t.size:
        return c.astype(dtype, copy=False)
    t, c = np.triu(t, -1).astype(dtype, copy=False), c.astype(dtype, copy=False)
    blocks = _blocks(t)
    _check_distinct(t, blocks)
    return (_solve_adjoint if back else _solve_forward)(t, c, blocks)


def _solve_forward(t: Any, c: Any, blocks: list[tuple[int, int]]) -> Any:
    x = np.zeros_like(c)
    n, (solve,) = t.shape[-1], scipy.linalg.get_lapack_funcs(("trsyl",), (t,))
    for i, j in blocks:
        rest, own = slice(j, n), slice(i, j)
        if j < n:
            right = x[rest, :i] @ t[:i, own] - c[rest, own]
            x[rest, own] = _trsyl_result(solve(t[rest, rest], t[own, own], right, isgn=-1))
    for i, j in blocks:
        if j - i == 2:
            own = slice(i, j)
            moved = x[own, :i] @ t[:i, own] - t[own, j:] @ x[j:, own] - c[own, own]
            x[i + 1, i] = (moved[0, 0] - moved[1, 1]) / (2.0 * (t[i, i + 1] + t[i + 1, i]))
    return x


def _solve_adjoint(t: Any, c: Any, blocks: list[tuple[int, int]]) -> Any:
    y = np.zeros_like(c)
    n, (solve,) = t.shape[-1], scipy.linalg.get_lapack_funcs(("trsyl",), (t,))
    transpose = "C" if t.dtype.kind == "c" else "T"
    for i, j in blocks:
        if j - i == 2:
            angle = c[i + 1, i] / (-2.0 * (t[i, i + 1] + t[i + 1, i]))
            y[i, i], y[i + 1, i + 1] = angle, -angle
    for i, j in reversed(blocks):
        rest, own = slice(j, n), slice(i, j)
        if j < n:
            known = y[rest, rest] @ adjoint(t[own, rest]) - adjoint(t[own, rest]) @ y[own, own]
            options = {"trana": transpose, "tranb": transpose, "isgn": -1}
            found = solve(t[rest, rest], t[own, own], known - c[rest, own], **options)
            y[rest, own] = _trsyl_result(found)
    return y


def _trsyl_result(found: Any) -> Any:
    x, scale, info = found
    if info:
        raise LinAlgError("two eigenvalues are equal, up to rounding")
    return x / scale


@schur_rotation.define_vjp
def _schur_rotation_vjp(g, out, t, c, *, back):
    z = schur_rotation(t, g, back=not back)
    x, y = (z, out) if back else (out, z)
    w = adjoint(x) - x
    return nearly_upper(y @ w - w @ y, t), triangle(z, True, strict=True) if back else z


@schur_rotation.define_jvp
def _schur_rotation_jvp(dots, out, t, c, *, back):
    t_dot, right = dots
    if t_dot is not None:
        m = nearly_upper(t_dot, t)
        if back:
            moved = adjoint(m) @ out - out @ adjoint(m)
            moved = moved - adjoint(moved)
        else:
            w = out - adjoint(out)
            moved = m @ w - w @ m
        right = moved if right is None else right + moved
    return schur_rotation(t, right, back=back)


@schur_rotation.examples
def _(rng):
    t = np.triu(rng.normal(size=(3, 3)), 1) + np.diag([1.0, -2.0, 4.0])
    yield (t, rng.normal(size=(3, 3))), {"back": False}
    yield (t, rng.normal(size=(3, 3))), {"back": True}
    t = np.triu(rng.normal(size=(5, 5)), 1) + np.diag([1.0, 1.0, -2.0, 4.0, 4.0])
    t[[0, 3], [1, 4]], t[[1, 4], [0, 3]] = [2.0, 0.7], [-0.5, -1.5]
    yield (t, rng.normal(size=(5, 5))), {"back": False}
    yield (t, rng.normal(size=(5, 5))), {"back": True}


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
